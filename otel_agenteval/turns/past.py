"""Turns that were closed lately, so that what comes late can revise them.

A span or log record that comes after the close never reopens a turn in place. When it matters, the turn is put together
once more from what it was made of and what came late, and evaluated as its next revision.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import NamedTuple

from ..dialects.reader import role_in
from ..dialects.step import AGENT, WORKFLOW
from ..spans.record import SpanRecord
from .roots import Group, split


class Earlier(NamedTuple):
    """What was evaluated before of the same turn."""

    turn_id: str | None = None
    revision: int = 0


_NOTHING = Earlier()


class _Trace:
    __slots__ = ("groups", "kept_at", "rest", "size", "turns")

    def __init__(self, now: float) -> None:
        self.kept_at = now
        self.groups: list[Group] = []
        self.rest: list[SpanRecord] = []
        """Spans that were in no turn, as far as anybody knew."""
        self.turns: list[tuple[Earlier, frozenset[int]]] = []
        """Each evaluated turn with the ids of its spans."""
        self.size = 0


def _stands_alone(group: Group) -> bool:
    """Whether late spans of a trace that nobody remembers are a turn: a whole one, or an agent that began long after the others."""
    root = group.root
    return group.root_seen and (root.parent_id == 0 or root.remote_parent or role_in(root) in (AGENT, WORKFLOW))


class PastTurns:
    """A bounded memory of closed turns. Thread-safe.

    Args:
        max_bytes: what the remembered spans may hold; the oldest trace goes first.
        max_age: seconds after which nothing late is expected.
        now: monotonic seconds.
    """

    def __init__(self, max_bytes: int, max_age: float, now: Callable[[], float]) -> None:
        self._max_bytes = max_bytes
        self._max_age = max_age
        self._now = now
        self.forget()

    def forget(self) -> None:
        """Drop everything, and start with a new lock: a forked child may have inherited a held one."""
        self._lock = threading.Lock()
        self._traces: OrderedDict[int, _Trace] = OrderedDict()
        self._bytes = 0

    def forget_traces(self, trace_ids: Iterable[int]) -> None:
        """Drop what is known of some traces."""
        with self._lock:
            for trace_id in trace_ids:
                trace = self._traces.pop(trace_id, None)
                if trace is not None:
                    self._bytes -= trace.size

    def keep(self, group: Group, as_what: Earlier) -> None:
        """Remember an evaluated turn."""
        ids = frozenset(record.span_id for record in group.members)
        with self._lock:
            trace = self._trace(group.root.trace_id, group.size)
            again = [index for index, (_, known) in enumerate(trace.turns) if known & ids]
            for index in reversed(again):
                del trace.turns[index], trace.groups[index]
            trace.turns.append((as_what, ids))
            trace.groups.append(group)
            group.reader = None  # what was read of it is several times its spans, and hardly ever asked for again
            self._shrink()

    def keep_rest(self, trace_id: int, records: list[SpanRecord], size: int) -> None:
        """Remember spans that were in no turn: what comes late may show that they are."""
        with self._lock:
            self._trace(trace_id, size).rest += records
            self._shrink()

    def _trace(self, trace_id: int, size: int) -> _Trace:
        trace = self._traces.get(trace_id)
        if trace is None:
            trace = self._traces[trace_id] = _Trace(self._now())
        trace.size += size
        self._bytes += size
        return trace

    def _shrink(self) -> None:
        oldest = self._now() - self._max_age
        while self._traces and (self._bytes > self._max_bytes or next(iter(self._traces.values())).kept_at < oldest):
            self._bytes -= self._traces.popitem(last=False)[1].size

    def before(self, group: Group) -> Earlier:
        """What was evaluated before of this turn: it has a span in common."""
        with self._lock:
            trace = self._traces.get(group.root.trace_id)
            if trace is not None:
                ids = {record.span_id for record in group.members}
                for earlier, known in trace.turns:
                    if not known.isdisjoint(ids):
                        return earlier
        return _NOTHING

    def revised(self, trace_id: int, late: Iterable[SpanRecord], touched: Iterable[int]) -> list[Group]:
        """The turns of a trace that late spans, or late logs of the spans ``touched``, change. Unknown traces: whole turns only."""
        late = list(late)
        with self._lock:
            trace = self._traces.get(trace_id)
            if trace is not None:  # it is not forgotten while it is being revised
                trace.kept_at = self._now()
                self._traces.move_to_end(trace_id)
        known = self.records(trace_id)
        if not known:
            return [group for group in split(late) if _stands_alone(group)]
        roots = self._roots(trace_id)
        ids = {record.span_id for record in known}
        changed = {record.span_id for record in late if record.span_id not in ids} | set(touched)
        groups = split(known + late, frozenset(roots))
        for group in groups:
            group.above = group.above or roots.get(group.root.span_id)
        return [group for group in groups if any(record.span_id in changed for record in group.members)]

    def _roots(self, trace_id: int) -> dict[int, SpanRecord | None]:
        """Roots of a trace's turns, each with the span above it, which is no part of the turn."""
        with self._lock:
            trace = self._traces.get(trace_id)
            return {group.root.span_id: group.above for group in trace.groups if group.root_seen} if trace is not None else {}

    def records(self, trace_id: int) -> list[SpanRecord]:
        """The spans that are remembered of a trace."""
        with self._lock:
            trace = self._traces.get(trace_id)
            if trace is None:
                return []
            return [*trace.rest, *(record for group in trace.groups for record in group.members)]
