"""Group turns by conversation ID until the conversation ends.

A conversation ends when the application ends it, when it is idle for too long, when there are too many, or at shutdown. Its turns
are then evaluated as one :class:`~otel_agenteval.core.turn.Turn` with all inputs and outputs. A later turn reopens the
conversation. When the conversation ends again, its new scores replace the earlier scores.

Some turn scores are *signals*, which conversation metrics read. If a judge returns a signal after the conversation ended, the
conversation's metrics are evaluated again, as a new revision.
"""

from __future__ import annotations

import bisect
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ..config.turn import ConversationOptions
from ..core.score import Score
from ..core.tenancy import qualified
from ..core.turn import Message, Turn, Usage
from ..evaluation.selection import SIGNALS
from ..metrics.bound_metric import BoundMetric, asked_in

EndReason = Literal["ended", "idle", "evicted", "shutdown", "signals"]
_SIGNAL_PAUSE = 30.0
"""Seconds without new signals before an ended conversation is evaluated again. A shorter ``idle_timeout`` replaces this value."""
_HISTORY = 20
"""Maximum number of earlier turns that :meth:`Conversations.before` returns."""
_EARLY = 1_000
"""Maximum number of turns whose signals (scores) are kept before the turns themselves arrive."""
_FIELDS = (
    "turn_id", "tenant", "trace_id", "conversation_id", "user_id", "service", "agent", "framework", "start", "duration_s", "error", "input",
    "output", "llm_calls", "tool_calls", "tool_definitions", "retrievals", "context", "retrieved_ids", "agent_runs", "handoffs",
    "interactions", "conflicts", "usage", "cost_usd", "cost_estimated", "attachments", "references", "ground_truth", "relevant_ids",
)  # fmt: skip
_JOINED = (
    "llm_calls", "tool_calls", "retrievals", "context", "retrieved_ids", "agent_runs", "handoffs", "interactions", "conflicts", "attachments",
)  # fmt: skip


@dataclass(slots=True)
class Ended:
    turn: Turn
    """The conversation as one turn. Its ID is ``conversation-<conversation id>``, or ``<tenant>:conversation-…`` with a tenant."""
    reason: EndReason
    last: Any
    """Argument ``last`` that the caller of :meth:`Conversations.add` passed with the latest turn, such as the turn's root."""
    supersedes: str | None


@dataclass(slots=True)
class _Conversation:
    revision: int
    turns: list[Turn] = field(default_factory=list)
    last: Any = None
    active_at: float = 0.0
    sizes: dict[str, int] = field(default_factory=dict)
    signals: dict[str, dict[str, float]] = field(default_factory=dict)
    stale_at: float | None = None
    """Arrival time of the latest signal since the conversation ended, or None if all signals are evaluated."""


class Conversations:
    """Thread-safe store of conversations with size limits.

    Args:
        idle_timeout: seconds without a new turn after which a conversation ends.
        max_open: maximum number of open conversations. If exceeded, the longest idle conversation ends.
        max_turns: maximum number of turns per conversation. If exceeded, the oldest turns are dropped.
        max_bytes: maximum total bytes. If exceeded, ended conversations are dropped. Then the longest idle ones end, except the latest.
        now: function that returns monotonic seconds.
        gives_history: True if callers set each turn's ``history`` to the result of :meth:`before`.
    """

    def __init__(
        self,
        idle_timeout: float,
        max_open: int,
        max_turns: int,
        max_bytes: int,
        now: Callable[[], float],
        gives_history: bool = False,
    ) -> None:
        self.gives_history = gives_history
        self._idle_timeout = idle_timeout
        self._max_open = max_open
        self._max_turns = max_turns
        self._max_bytes = max_bytes
        self._now = now
        self.forget()

    def forget(self) -> None:
        """Drop all conversations in a forked child process, because the parent process evaluates these conversations."""
        self._lock = threading.Lock()
        self._open: OrderedDict[str, _Conversation] = OrderedDict()
        self._ended: OrderedDict[str, _Conversation] = OrderedDict()
        self._revisions: OrderedDict[str, int] = OrderedDict()
        """Maps each recently dropped conversation's key to its latest revision, so that its next result gets a new ID."""
        self._conversation_of: dict[str, str] = {}
        """Maps each held turn's ID to its conversation key. A revision can move a turn to another conversation."""
        self._early: OrderedDict[str, dict[str, float]] = OrderedDict()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._open) + sum(found.stale_at is not None for found in self._ended.values())

    def add(self, turn: Turn, size: int, last: Any = None, replaces: Iterable[str] = ()) -> list[Ended]:
        """Add an evaluated turn if it has a conversation ID. Return the conversations that ended because of a limit.

        ``turn`` replaces the turns with the IDs ``turn.supersedes`` and ``replaces``. ``Ended.last`` is the latest turn's ``last``.
        """
        key = conversation_of(turn)
        turn_id = turn.turn_id or ""
        replaced = {turn_id, turn.supersedes or "", *replaces}
        lean = Turn(**{name: getattr(turn, name) for name in _FIELDS}) if key else None
        with self._lock:
            for other in {held for one in replaced if (held := self._conversation_of.get(one)) is not None}:
                self._drop_turns(other, replaced)
                for index in (self._open, self._ended):
                    if other != key and other in index and not index[other].turns:
                        self._drop(index, other)
            if not key or lean is None:
                return []
            found = self._open.pop(key, None) or self._ended.pop(key, None) or _Conversation(self._revisions.pop(key, 0))
            self._open[key] = found  # the most recent one is last
            bisect.insort(found.turns, lean, key=_start)
            found.sizes[turn_id] = size
            self._conversation_of[turn_id] = key
            self._bytes += size
            if len(found.turns) > self._max_turns:
                self._drop_turns(key, {one.turn_id or "" for one in found.turns[: -self._max_turns]})
            early = self._early.pop(turn_id, None)
            if early and turn_id in found.sizes:
                found.signals.setdefault(turn_id, {}).update(early)
            found.stale_at = None
            found.last, found.active_at = last, self._now()
            return self._make_room()

    def _drop_turns(self, key: str, replaced: set[str]) -> None:
        found = self._open.get(key) or self._ended.get(key)
        if found is None:
            return
        found.turns = [turn for turn in found.turns if turn.turn_id not in replaced]
        for turn_id in replaced & found.sizes.keys():
            self._bytes -= found.sizes.pop(turn_id)
            found.signals.pop(turn_id, None)
            self._conversation_of.pop(turn_id, None)

    def _drop(self, index: OrderedDict[str, _Conversation], key: str) -> None:
        found = index.pop(key)
        self._revisions[key] = found.revision
        if len(self._revisions) > self._max_open:
            self._revisions.popitem(last=False)
        for turn_id, size in found.sizes.items():
            self._bytes -= size
            self._conversation_of.pop(turn_id, None)

    def note(self, conversation_id: str | None, turn_id: str, signals: Mapping[str, float]) -> None:
        """Keep a turn's signals (scores that conversation metrics read), even if the turn itself isn't added yet."""
        if not conversation_id or not signals:
            return
        with self._lock:
            found = self._open.get(conversation_id) or self._ended.get(conversation_id)
            if found is None or all(turn.turn_id != turn_id for turn in found.turns):
                self._early.setdefault(turn_id, {}).update(signals)
                if len(self._early) > _EARLY:
                    self._early.popitem(last=False)
                return
            known = found.signals.setdefault(turn_id, {})
            changed = any(known.get(name) != value for name, value in signals.items())
            known.update(signals)
            if changed and conversation_id in self._ended:
                found.stale_at = self._now()

    def before(self, turn: Turn) -> list[dict[str, Any]]:
        earlier = [one for one in self.turns(conversation_of(turn)) if _start(one) < _start(turn) and one.turn_id != turn.turn_id]
        return [{"input": one.input, "output": one.output} for one in earlier[-_HISTORY:]]

    def turns(self, conversation_id: str) -> list[Turn]:
        with self._lock:
            found = self._open.get(conversation_id) or self._ended.get(conversation_id)
            return list(found.turns) if found is not None else []

    def end(self, conversation_id: str, reason: EndReason = "ended") -> list[Ended]:
        with self._lock:
            return self._end([conversation_id] if conversation_id in self._open else [], reason)

    def due(self) -> list[Ended]:
        """End and return idle conversations. After a pause, also return ended conversations with new signals (:meth:`note`)."""
        now = self._now()
        oldest = now - self._idle_timeout
        with self._lock:
            silent = []
            for key, found in self._open.items():
                if found.active_at > oldest:
                    break
                silent.append(key)
            late = self._end_again(now - min(_SIGNAL_PAUSE, self._idle_timeout))
            while self._ended and next(iter(self._ended.values())).active_at <= oldest - self._idle_timeout:
                self._drop(self._ended, next(iter(self._ended)))
            return [*self._end(silent, "idle"), *late]

    def end_late(self) -> list[Ended]:
        with self._lock:
            return self._end_again(self._now())

    def end_all(self) -> list[Ended]:
        with self._lock:
            return self._end(list(self._open), "shutdown")

    def _make_room(self) -> list[Ended]:
        ended: list[Ended] = []
        while len(self._open) > self._max_open or (self._bytes > self._max_bytes and (self._ended or len(self._open) > 1)):
            if self._ended and self._bytes > self._max_bytes:
                self._drop(self._ended, next(iter(self._ended)))
            else:
                ended += self._end([next(iter(self._open))], "evicted")
        return ended

    def _end(self, keys: Iterable[str], reason: EndReason) -> list[Ended]:
        ended = []
        for key in keys:
            found = self._ended[key] = self._open.pop(key)
            ended.append(_ended_as(found, reason))
        return ended

    def _end_again(self, before: float) -> list[Ended]:
        late = [found for found in self._ended.values() if found.stale_at is not None and found.stale_at <= before]
        for found in late:
            found.stale_at = None
        return [_ended_as(found, "signals") for found in late]


def _ended_as(found: _Conversation, reason: EndReason) -> Ended:
    found.revision += 1
    turn = whole(found.turns, found.revision, found.signals)
    return Ended(turn, reason, found.last, turn.turn_id if found.revision > 1 else None)


def conversation_of(turn: Turn) -> str:
    """Return a turn's conversation ID, after its tenant if any (``acme:chat-7``), or ``""`` if the turn lacks a conversation ID."""
    return qualified(turn.tenant, turn.conversation_id) if turn.conversation_id else ""


def signals_in(scores: Iterable[Score]) -> dict[str, float]:
    found = {}
    for score in scores:
        name = SIGNALS.get(score.metric.partition(".")[0])
        if name is not None and score.status == "ok" and score.value is not None:
            found[name] = score.value
    return found


def _start(turn: Turn) -> float:
    return turn.start.timestamp() if turn.start is not None else 0.0


def whole(turns: list[Turn], revision: int = 1, signals: Mapping[str, Mapping[str, float]] | None = None) -> Turn:
    first, last = turns[0], turns[-1]
    costs = [turn.cost_usd for turn in turns if turn.cost_usd is not None]
    known: dict[str, Any] = {
        "turn_id": qualified(last.tenant, f"conversation-{last.conversation_id}"), "tenant": last.tenant, "trace_id": last.trace_id, "conversation_id": last.conversation_id,
        "user_id": last.user_id, "service": last.service, "agent": last.agent, "framework": last.framework, "start": first.start,
        "duration_s": _duration_s(turns), "revision": revision, "input": last.input, "output": last.output,
        "error": next((turn.error for turn in reversed(turns) if turn.error is not None), None),
        "usage": _usage(turns), "cost_usd": sum(costs) if costs else None,
        "tool_definitions": last.tool_definitions, "references": last.references, "ground_truth": last.ground_truth,
        "relevant_ids": last.relevant_ids,
    }  # fmt: skip
    if any(turn.cost_estimated for turn in turns):
        known["cost_estimated"] = True
    for name in _JOINED:
        known[name] = _joined([getattr(turn, name) for turn in turns])
    if not known["tool_calls"] and any(turn.tool_calls is None for turn in turns):
        known["tool_calls"] = None  # unknown, because calls of some turns weren't captured
    texts = [(role, text) for turn in turns for role, text in (("user", turn.input), ("assistant", turn.output))]
    known["messages"] = [Message(role, text) for role, text in texts if text is not None]
    known["history"] = [{"input": turn.input, "output": turn.output} for turn in turns[:-1]]
    if signals:
        known["session"] = {
            "traces": [{"trace_id": turn.turn_id, "signals": dict(signals.get(turn.turn_id or "", {}))} for turn in turns]
        }
    return Turn(**{name: value for name, value in known.items() if value is not None})


def _joined(lists: list[list[Any] | None]) -> list[Any] | None:
    known = [items for items in lists if items is not None]
    return [item for items in known for item in items] if known else None


def _duration_s(turns: list[Turn]) -> float | None:
    first, last = turns[0], turns[-1]
    if first.start is None or last.start is None or last.duration_s is None:
        return None
    return (last.start - first.start).total_seconds() + last.duration_s


def _usage(turns: list[Turn]) -> Usage | None:
    known = [turn.usage for turn in turns if turn.usage is not None]
    if not known:
        return None
    input_tokens = sum(usage.input_tokens or 0 for usage in known)
    output_tokens = sum(usage.output_tokens or 0 for usage in known)
    return Usage(input_tokens, output_tokens, input_tokens + output_tokens)


# --- recorded turns


def looks_back(metrics: Iterable[BoundMetric]) -> bool:
    """Return True if any judged metric reads earlier turns of the conversation."""
    return any("history" in metric.metric.reads for metric in asked_in(list(metrics)))


def of_conversations(metric: BoundMetric) -> bool:
    """Return True if ``metric`` is a built-in metric that scores whole conversations."""
    return metric.metric.family == "conversation_session" and "output" not in metric.metric.needs


class RecordedConversations:
    """Conversations in recorded turns. Callers must add turns in order of start time. There is no idle timeout.

    Args:
        history: True to set each turn's ``history`` to up to 20 earlier turns of its conversation.
        whole: True to return whole conversations from :meth:`ended`.
    """

    def __init__(self, options: ConversationOptions, *, history: bool, whole: bool) -> None:
        self.wanted = whole or history
        self._ends = whole
        self._store = Conversations(float("inf"), sys.maxsize, options.max_turns, sys.maxsize, lambda: 0.0, gives_history=history)

    def take(self, turn: Turn) -> None:
        """Add a turn to its conversation, if any. If ``history`` is True, also set the turn's ``history``, unless already set."""
        if not self.wanted or not turn.conversation_id:
            return
        self._store.add(turn, 0, (turn.turn_id or "").rpartition("-")[2])
        if self._store.gives_history and not turn.history:
            turn.history = self._store.before(turn)

    def note(self, turn: Turn, scores: Iterable[Score]) -> None:
        if self._ends:
            self._store.note(conversation_of(turn), turn.turn_id or "", signals_in(scores))

    def ended(self) -> list[Ended]:
        """Return conversations by start time, or ``[]`` if ``whole`` is False. ``Ended.last`` is the last turn's root span ID."""
        return sorted(self._store.end_all(), key=lambda one: (str(one.turn.start), one.turn.turn_id)) if self._ends else []
