"""Remember scored turns, and assign user feedback to these turns.

Feedback can be in the turn's trace, or arrive long after the turn was scored.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..config.turn import FeedbackOptions
from ..core import forks
from ..core.errors import ConfigError
from ..core.feedback import Feedback, ids_of, in_annotation, warn_unmatched
from ..core.score import Score
from ..core.semconv import FEEDBACK
from ..core.telemetry import Telemetry
from ..core.tenancy import tenant_of, trace_id_of, turn_id_in
from ..core.turn import LlmCall, Turn
from ..evaluation.scored_turn import Root, ScoredTurn
from ..turns.composer import Composer
from ..turns.reading.app_events import feedback_in
from ..turns.roots import SpanGroup


@dataclass(slots=True)
class RecentTurn:
    root: Root
    turn_id: str
    first_id: str
    revision: int
    agent: str | None = None
    service: str | None = None
    model: str | None = None
    conversation_id: str | None = None
    close_reason: str | None = None
    complete: bool = True
    feedback: dict[str, Feedback] | None = None
    """User feedback that arrived after scoring, by feedback ID."""

    def scored(self, scores: list[Score]) -> ScoredTurn:
        calls = {"llm_calls": [LlmCall(model=self.model)]} if self.model is not None else {}
        known = {
            "agent": self.agent, "service": self.service, "conversation_id": self.conversation_id, "close_reason": self.close_reason, "tenant": self.root.tenant,
        }  # fmt: skip
        turn = Turn(
            turn_id=self.turn_id, revision=self.revision, complete=self.complete, **calls,
            **{name: value for name, value in known.items() if value is not None},
        )  # fmt: skip
        return ScoredTurn(turn, self.root, scores, counted_as=self.first_id, is_feedback=True)


class RecentTurns:
    def __init__(self, most: int) -> None:
        self._most = most
        self._reset()
        forks.in_child(self._reset)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._turns: OrderedDict[str, RecentTurn] = OrderedDict()
        self._of_trace: dict[int, str | list[str]] = {}
        """Maps trace keys to turn IDs. A single ID is stored without a list, so that the garbage collector checks fewer objects."""
        self._alike: dict[str, str] = {}

    def keep(self, scored: ScoredTurn) -> None:
        turn, root = scored.turn, scored.root
        calls = turn.llm_calls
        model = calls[-1].model if calls else None
        kept = RecentTurn(
            root, turn.turn_id, scored.first_id, turn.revision, self._shared(turn.agent), self._shared(turn.service), self._shared(model),
            turn.conversation_id, turn.close_reason, turn.complete,
        )  # fmt: skip
        with self._lock:
            before = self._drop(scored.supersedes or turn.turn_id) or self._drop(turn.turn_id)
            if before is not None:
                kept.feedback = before.feedback
            self._turns[turn.turn_id] = kept
            others = self._of_trace.setdefault(root.trace_key, turn.turn_id)
            if others is not turn.turn_id:
                if isinstance(others, str):
                    self._of_trace[root.trace_key] = others = [others]
                others.append(turn.turn_id)
            if len(self._turns) > self._most:
                self._drop(next(iter(self._turns)))

    def _drop(self, turn_id: str) -> RecentTurn | None:
        found = self._turns.pop(turn_id, None)
        if found is not None:
            key = found.root.trace_key
            others = self._of_trace[key]
            if isinstance(others, list):
                others.remove(turn_id)
            if not others or others == turn_id:
                del self._of_trace[key]
        return found

    def _shared(self, name: str | None) -> str | None:
        if name is None:
            return None
        if len(self._alike) > self._most:
            self._alike.clear()
        return self._alike.setdefault(name, name)

    def get(self, turn_id: str | None) -> RecentTurn | None:
        with self._lock:
            return None if turn_id is None else self._turns.get(turn_id)

    def of_trace(self, trace_key: int) -> list[RecentTurn]:
        with self._lock:
            found = self._of_trace.get(trace_key, [])
            return [self._turns[turn_id] for turn_id in ([found] if isinstance(found, str) else found)]


_log = logging.getLogger("otel_agenteval")
_MOST_WAITING = 10_000
_MOST_WAITING_TEXT = 16 << 20
_MOST_OF_TURN = 100
"""Maximum number of feedback records to remember per turn. If an older record is delivered again, the record is counted twice."""


class TurnFeedback(NamedTuple):
    feedback: Feedback
    trace_key: int
    span_id: int = 0
    """ID of any span in the rated turn, or 0 for the trace's last turn."""


class FeedbackJoiner:
    """Component that assigns user feedback to turns. Feedback on an unknown turn waits for at most ``feedback.wait`` seconds."""

    def __init__(
        self, options: FeedbackOptions, composer: Composer, recent: RecentTurns, telemetry: Telemetry, now: Callable[[], float],
        store_joins: bool = False,
    ) -> None:  # fmt: skip
        self._options = options
        self._composer = composer
        self.recent = recent
        self._telemetry = telemetry
        self._now = now
        self._store_joins = store_joins
        """True if a score store also joins feedback, because the store might contain other processes' turns."""
        self._refused: set[str] = set()
        self._reset()
        forks.in_child(self._reset)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._waiting: OrderedDict[TurnFeedback, float] = OrderedDict()
        self._text = 0

    def __len__(self) -> int:
        return len(self._waiting) + len(self._composer.notes)

    def reload(self, options: FeedbackOptions) -> None:
        self._options = options

    def add_to(self, scored: ScoredTurn, group: SpanGroup) -> None:
        """Add a score if the turn's spans contain user feedback. A revision also gets the replaced turn's earlier feedback.

        The score uses the last feedback record. If there are several records, the score's detail ``count`` contains their number.
        """
        turn = scored.turn
        found = feedback_in(group.members, self._options.attributes)
        if not scored.new and (before := self.recent.get(scored.supersedes)) is not None:
            found = [*found, *(before.feedback or {}).values()]
        if not found:
            return
        score = found[-1].score_of(turn.turn_id, turn.revision, self._options.threshold)
        if len(found) > 1:
            score.detail["count"] = len(found)
        scored.add_scores([score])
        if scored.new:
            self.count("in_trace")

    def take(self, given: TurnFeedback, *, last: bool) -> Sequence[ScoredTurn]:
        """Return the rated turn with its new score, or ``()``, for example if the feedback waits (not with ``last``)."""
        found = self._turn_of(given.trace_key, given.span_id)
        if found is None:
            return () if not last and self._wait(given) else self._give_up(given)
        scored = self._scored_with(found, given.feedback)
        self.count("joined" if scored else "repeated")
        return scored

    def _scored_with(self, turn: RecentTurn, feedback: Feedback) -> Sequence[ScoredTurn]:
        earlier = {} if turn.feedback is None else turn.feedback
        if earlier.get(feedback.id) == feedback:
            return ()
        earlier.pop(feedback.id, None)
        if len(earlier) >= _MOST_OF_TURN:
            del earlier[next(iter(earlier))]
        turn.feedback = earlier
        earlier[feedback.id] = feedback
        return [turn.scored([feedback.score_of(turn.turn_id, turn.revision, self._options.threshold)])]

    def turn_of(self, span: str) -> str | None:
        """Return the ID of the recent turn that feedback on the span ``TRACE_ID-SPAN_ID`` belongs to, or None."""
        try:
            trace_id, span_id = ids_of(span)
        except ConfigError:
            return None
        found = self._turn_of(trace_id, span_id)
        return None if found is None else found.turn_id

    def _turn_of(self, trace_key: int, span_id: int) -> RecentTurn | None:
        turns = self.recent.of_trace(trace_key)
        if not span_id:
            return turns[-1] if turns else None
        named = turn_id_in(trace_key, span_id)
        exact = next((turn for turn in turns if named in (turn.turn_id, turn.first_id)), None)
        if exact is not None:
            return exact
        holding = self.recent.get(self._composer.turn_of(trace_key, span_id))
        return holding or (turns[0] if len(turns) == 1 else None)

    def _wait(self, given: TurnFeedback) -> bool:
        with self._lock:
            if given in self._waiting:  # it keeps its first deadline
                return True
            text = self._text + given.feedback.characters
            if not self._options.wait or len(self._waiting) >= _MOST_WAITING or text > _MOST_WAITING_TEXT:
                return False
            self._waiting[given] = self._now() + self._options.wait
            self._text = text
        return True

    def _give_up(self, given: TurnFeedback) -> Sequence[ScoredTurn]:
        """For feedback on an unknown turn, return a turn with only the feedback's IDs. If the span ID is missing, return ``()``."""
        if not given.span_id:
            self.count("no_turn")
            return ()
        self.count("unmatched")
        if not self._store_joins:
            warn_unmatched()
        key, turn_id = given.trace_key, turn_id_in(given.trace_key, given.span_id)
        root = Root(trace_id_of(key), given.span_id, tenant=tenant_of(key))
        return self._scored_with(RecentTurn(root, turn_id, turn_id, 1), given.feedback)

    def due(self, *, everything: bool = False) -> list[TurnFeedback]:
        """Remove and return feedback whose turn is now known, and feedback that has waited long enough."""
        if self._composer.notes:
            self._read_notes()
        if not self._waiting:
            return []
        now = self._now()
        with self._lock:
            waiting = list(self._waiting.items())
        found = [given for given, until in waiting if until <= now or everything or self._turn_of(given.trace_key, given.span_id)]
        with self._lock:
            for given in found:
                if self._waiting.pop(given, None) is not None:
                    self._text -= given.feedback.characters
        return found

    def _read_notes(self) -> None:
        notes = self._composer.notes
        while notes:
            note = notes.popleft()
            feedback = in_annotation(note.attributes, turn_id_in(note.trace_id, note.span_id))
            if feedback is None or not self._wait(TurnFeedback(feedback, note.trace_id, note.parent_id)):
                self.count("unreadable" if feedback is None else "dropped")

    def refuse(self, error: ConfigError) -> None:
        field = str(error).partition(":")[0]
        if field not in self._refused:
            self._refused.add(field)
            _log.warning('ignored invalid feedback: %s (counted in agenteval_feedback_total{outcome="unreadable"})', error)
        self.count("unreadable")

    def held(self, trace_keys: Collection[int]) -> set[int]:
        with self._lock:
            return {given.trace_key for given in self._waiting if given.trace_key in trace_keys}

    def count(self, outcome: str) -> None:
        self._telemetry.add(FEEDBACK, outcome=outcome)
