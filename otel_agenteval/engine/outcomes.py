"""Remember each metric's outcome on recent turns, and count scores that are missing because a turn was dropped."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..core import forks
from ..core.score import Score, outcome_of
from ..core.semconv import AGENT_NAME, FEEDBACK
from ..core.telemetry import Telemetry
from ..core.tenancy import matches, turn_id_in
from ..core.turn import Turn
from ..outlets.accounting import account_lost
from ..spans.record import SpanRecord
from ..turns.composer import Composer, count_group
from ..turns.state import Closed
from .ending_root import DeferredTurns
from .work import ClosedSpans, EndedConversation, EvaluatedTurn, GivenFeedback, GroupedSpans, WorkItem

_Outcomes = tuple[tuple[str, str], ...]
_KEPT = 1_000


class TurnOutcomes:
    """Store of each metric's outcome on the last 1,000 turns, and counter of dropped turns. Thread-safe.

    ``names(True)`` returns conversation metrics, and ``names(False)`` returns turn metrics. ``count_error`` counts internal errors.
    """

    def __init__(
        self,
        telemetry: Telemetry,
        composer: Composer,
        names: Callable[[bool], Sequence[str]],
        count_error: Callable[[str, str], None],
    ) -> None:
        self._composer = composer
        self._count_error = count_error
        self._telemetry = telemetry
        self._names = names
        self._outcomes: OrderedDict[str, _Outcomes | str] = OrderedDict()
        """Maps a recent turn's ID to its metrics' outcomes, or to the reason why the turn was dropped."""
        self._alike: dict[_Outcomes, _Outcomes] = {}
        self._make_lock()
        forks.in_child(self._make_lock)

    def _make_lock(self) -> None:
        self._lock = threading.Lock()

    def keep(self, turn_id: str, outcome: Sequence[Score] | str) -> None:
        kept: _Outcomes | str = outcome if isinstance(outcome, str) else self._in_short(outcome)
        with self._lock:
            self._outcomes[turn_id] = kept
            if len(self._outcomes) > _KEPT:
                self._outcomes.popitem(last=False)

    def add(self, turn_id: str, scores: Sequence[Score]) -> None:
        with self._lock:
            known = self._outcomes.get(turn_id, ())
            if not isinstance(known, str):
                new = dict(self._in_short(scores))
                self._outcomes[turn_id] = (*((metric, outcome) for metric, outcome in known if metric not in new), *new.items())
                if len(self._outcomes) > _KEPT:
                    self._outcomes.popitem(last=False)

    def _in_short(self, scores: Sequence[Score]) -> _Outcomes:
        found = tuple([(score.facts.metric, outcome_of(score)) for score in scores])
        if len(self._alike) >= _KEPT:
            self._alike.clear()
        return self._alike.setdefault(found, found)

    def drop(self, item: WorkItem, reason: str) -> None:
        """Count a dropped item's metrics (or feedback) as dropped. Thread-safe. Never raises."""
        try:
            match item:
                case ClosedSpans(closed):
                    self.lose_closed(closed, reason)
                case DeferredTurns():
                    item.drop(reason)
                case GroupedSpans(group):
                    count_group(group, reason)
                    self._lose_roots([(group.root, group.all_seen)], group.reason, reason)
                case EvaluatedTurn(scored):
                    self._lose_turn(scored.turn, reason, new=scored.new)
                case EndedConversation(ended):
                    names = self._names(True) if ended.supersedes is None else ()
                    account_lost(self._telemetry, names, ended.turn.agent or "", reason)
                    self.keep(ended.turn.turn_id, reason)
                case GivenFeedback():
                    self._telemetry.add(FEEDBACK, outcome="dropped")
                case _:  # judged turns: their queue redelivers the job, or has counted it
                    pass
        except Exception as error:
            self._count_error("pipeline", type(error).__name__)

    def hand_over(self, item: WorkItem, reason: str) -> set[int]:
        """Count an item's spans under ``reason``, because another process scores the item. Return the traces' keys, if known."""
        match item:
            case ClosedSpans(closed):
                self._composer.count_closed(closed, reason)
            case GroupedSpans(group):
                count_group(group, reason)
                return {record.trace_id for record in group.members}
            case EvaluatedTurn() | GivenFeedback():
                pass
            case _:
                return set()
        return {item.trace_key}

    def lose_closed(self, closed: Closed, reason: str) -> None:
        """Count closed spans and their turns, which aren't composed yet, as dropped. Thread-safe. Never raises."""
        try:
            self._composer.count_closed(closed, reason)
            self._lose_roots(self._composer.roots(closed), closed.reason, reason)
        except Exception as error:
            self._count_error("pipeline", type(error).__name__)

    def _lose_turn(self, turn: Turn, reason: str, *, new: bool) -> None:
        if new:
            facts = str(turn.service or ""), str(turn.close_reason or ""), turn.complete
            account_lost(self._telemetry, self._names(False), turn.agent or "", reason, facts)
        self.keep(turn.turn_id, reason)

    def _lose_roots(self, roots: Iterable[tuple[SpanRecord, bool]], close_reason: Any, reason: str) -> None:
        """Count one dropped turn per root. ``roots`` yields (root span, True if the turn is complete)."""
        for root, complete in roots:
            facts = str(root.resource_attributes.get("service.name") or ""), str(close_reason or ""), complete
            account_lost(self._telemetry, self._names(False), str(root.attributes.get(AGENT_NAME) or ""), reason, facts)
            self.keep(turn_id_in(root.trace_id, root.span_id), reason)

    def known(self, short: str) -> list[str]:
        with self._lock:
            return [turn_id for turn_id in self._outcomes if matches(turn_id, short)]

    def of(self, turn_id: str) -> dict[str, str] | None:
        found = self._outcomes.get(turn_id)
        if isinstance(found, str):
            return dict.fromkeys(self._names(False), f"dropped: {found}")
        return None if found is None else dict(found)
