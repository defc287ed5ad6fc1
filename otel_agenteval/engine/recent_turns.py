"""Memory of scored turns, with enough facts to add later user feedback."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass

from ..core import forks
from ..core.feedback import Feedback
from ..core.score import Score
from ..core.turn import LlmCall, Turn
from ..evaluation.scored_turn import Root, ScoredTurn


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
    """User feedback that arrived after scoring, by its id."""

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
    """Bounded memory of scored turns. Thread-safe."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._reset()
        forks.in_child(self._reset)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._turns: OrderedDict[str, RecentTurn] = OrderedDict()
        self._of_trace: dict[int, str | list[str]] = {}
        """Turn ids by trace key. Usually there is one, and a list would be one more object for the garbage collector."""
        self._alike: dict[str, str] = {}
        """Names, shared by many turns to save memory."""

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
        """Return the turns of a trace in the order in which they were scored."""
        with self._lock:
            found = self._of_trace.get(trace_key, [])
            return [self._turns[turn_id] for turn_id in ([found] if isinstance(found, str) else found)]


def unknown_turn(turn_id: str, tenant: str | None, trace_id: int, span_id: int) -> RecentTurn:
    """Return a turn with only its ids, because it was scored too long ago, or by another process."""
    return RecentTurn(Root(trace_id, span_id, tenant=tenant), turn_id, turn_id, 1)
