"""The outcome of each metric on recent turns (scored, skipped, gated, dropped, in error), and the count of metrics that are lost."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..core.score import GATED, SHED, Score
from ..core.semconv import AGENT_NAME
from ..core.telemetry import Telemetry
from ..core.tenancy import turn_id_in
from ..core.turn import Turn
from ..outlets.accounting import account_lost
from ..spans.record import SpanRecord
from ..turns.composer import Composer, count_group
from ..turns.roots import Group
from ..turns.state import Closed

_Outcomes = tuple[tuple[str, str], ...]
_KEPT = 1_000
"""Turns whose outcomes are remembered."""


class TurnOutcomes:
    """Remembers the outcomes of recent turns, and counts every metric of a turn that is lost. Thread-safe.

    Args:
        telemetry: counts what is lost.
        composer: knows the turns in what was closed.
        names: the metrics of turns; with True those of conversations.
        count_error: counts a fault in the counting itself.
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
        """Of recent turns, for each metric its outcome; of one that was lost, why."""
        self._alike: dict[_Outcomes, _Outcomes] = {}
        """Most turns have the same outcomes, and share them: scores are not held for this."""
        self.reset()

    def reset(self) -> None:
        """A forked child gets a lock of its own."""
        self._lock = threading.Lock()

    def keep(self, turn_id: str, outcome: Sequence[Score] | str) -> None:
        """Remember a turn's scores, or why it has none."""
        kept: _Outcomes | str = outcome if isinstance(outcome, str) else self._in_short(outcome)
        with self._lock:
            self._outcomes[turn_id] = kept
            if len(self._outcomes) > _KEPT:
                self._outcomes.popitem(last=False)

    def add(self, turn_id: str, scores: Sequence[Score]) -> None:
        """Remember scores that came later than a turn's own."""
        with self._lock:
            known = self._outcomes.get(turn_id, ())
            if not isinstance(known, str):
                new = dict(self._in_short(scores))
                self._outcomes[turn_id] = (*((metric, outcome) for metric, outcome in known if metric not in new), *new.items())
                if len(self._outcomes) > _KEPT:
                    self._outcomes.popitem(last=False)

    def _in_short(self, scores: Sequence[Score]) -> _Outcomes:
        found = tuple([(score.metric, "scored" if score.status == "ok" else outcome_of(score)) for score in scores])
        if len(self._alike) >= _KEPT:
            self._alike.clear()
        return self._alike.setdefault(found, found)

    def lose(self, turn: Turn, reason: str, *, new: bool) -> None:
        """A turn that was composed is lost. One that is not new was counted with its first revision."""
        if new:
            facts = str(turn.service or ""), str(turn.close_reason or ""), turn.complete
            account_lost(self._telemetry, self._names(False), turn.agent or "", reason, facts)
        self.keep(turn.turn_id, reason)

    def lose_closed(self, closed: Closed, reason: str) -> None:
        """Closed spans are lost before they were composed. Safe from any thread, never raises."""
        try:
            self._composer.count_closed(closed, reason)
            self._lose_roots(self._composer.roots(closed), closed.reason, reason)
        except Exception as error:
            self._count_error("pipeline", type(error).__name__)

    def lose_group(self, group: Group, reason: str) -> None:
        """The spans of one turn are lost before they were evaluated. Safe from any thread, never raises."""
        try:
            count_group(group, reason)
            self._lose_roots([(group.root, group.all_seen)], group.reason, reason)
        except Exception as error:
            self._count_error("pipeline", type(error).__name__)

    def _lose_roots(self, roots: Iterable[tuple[SpanRecord, bool]], close_reason: Any, reason: str) -> None:
        """Turns of which only the root was looked at are lost; each with whether all of the turn was seen."""
        for root, complete in roots:
            facts = str(root.resource_attributes.get("service.name") or ""), str(close_reason or ""), complete
            account_lost(self._telemetry, self._names(False), str(root.attributes.get(AGENT_NAME) or ""), reason, facts)
            self.keep(turn_id_in(root.trace_id, root.span_id), reason)

    def lose_conversation(self, turn: Turn, reason: str, *, new: bool) -> None:
        """A whole conversation is lost."""
        account_lost(self._telemetry, self._names(True) if new else (), turn.agent or "", reason)
        self.keep(turn.turn_id, reason)

    def known(self, short: str) -> list[str]:
        """Ids of remembered turns that begin so."""
        with self._lock:
            return [turn_id for turn_id in self._outcomes if turn_id.startswith(short)]

    def of(self, turn_id: str) -> dict[str, str] | None:
        """For each metric that ran on the turn, or would have, its outcome; None when the turn is not remembered."""
        found = self._outcomes.get(turn_id)
        if isinstance(found, str):
            return dict.fromkeys(self._names(False), f"dropped: {found}")
        return None if found is None else dict(found)


def outcome_of(score: Score) -> str:
    """The outcome of one metric in a few words."""
    if score.status == "error":
        return f"error: {score.error_type}"
    if score.status == "skipped":
        reason = score.detail.get("reason", "")
        if reason == GATED:
            return f"gated: {score.detail.get('by', '')}"
        return f"dropped: {SHED}" if reason == SHED else f"skipped: {reason}"
    return "scored"
