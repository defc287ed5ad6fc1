"""Store open traces with their sizes and deadlines, and choose the next trace to close when a limit is exceeded."""

from __future__ import annotations

import heapq
import itertools
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

from ..core.tenancy import number_in
from .state import Candidate, HeldBytes, OpenTrace, TenantShare

_EMPTY_SIZE = 1_536
"""Measured bytes of an open trace without spans."""

Entry = tuple[OpenTrace, Candidate | None]


class OpenTraces:
    """Open traces, oldest first. Not thread-safe."""

    def __init__(self, held: HeldBytes) -> None:
        self._bytes = held
        self.by_id: OrderedDict[int, OpenTrace] = OrderedDict()
        self.outermost: dict[Candidate, OpenTrace] = {}
        """Topmost open candidates (possible turn roots), oldest first. The oldest candidate reaches ``max_duration`` first."""
        self.waiting: OrderedDict[int, Entry] = OrderedDict()
        """Turns whose root has ended or arrived, oldest first. They close after ``decision_delay`` at the latest."""
        self.shares: dict[int, TenantShare] = {}
        """Each tenant's open received traces, by tenant number. Empty if traces don't have tenants."""
        self.deadlines: list[tuple[float, int, OpenTrace, Candidate | None]] = []
        """Heap of (deadline, number, trace, candidate). The candidate is None if the deadline is for the trace's loose spans."""
        self._sequence = itertools.count()

    def open_received(self, trace_id: int, now: float) -> OpenTrace:
        """Open a trace of received spans. If the trace has a tenant, the trace counts toward the tenant's share."""
        trace = self.by_id[trace_id] = OpenTrace(trace_id, now)
        tenant = number_in(trace_id)
        if tenant:
            trace.share = self.shares.setdefault(tenant, TenantShare())
            trace.share.traces[trace_id] = trace
        self.grow(trace, _EMPTY_SIZE)
        return trace

    def grow(self, trace: OpenTrace, size: int) -> None:
        trace.loose_size += size
        self._bytes.used += size
        if trace.share is not None:
            trace.share.size += size

    def take_loose(self, trace: OpenTrace) -> tuple[list[Any], int]:
        """Remove and return a trace's loose spans and their size. The trace no longer counts toward its tenant's share."""
        spans, size = trace.loose, trace.loose_size
        trace.loose, trace.loose_size = [], 0
        self._bytes.used -= size
        share = trace.share
        if share is not None:
            share.traces.pop(trace.trace_id, None)
            share.waiting.pop(trace.trace_id, None)
            share.size -= size
            trace.share = None
        return spans, size

    def wait(self, trace: OpenTrace, candidate: Candidate | None = None) -> None:
        self.waiting[trace.trace_id] = trace, candidate
        if trace.share is not None:
            trace.share.waiting[trace.trace_id] = trace

    def set_deadline(self, trace: OpenTrace, candidate: Candidate | None, when: float) -> None:
        holder = trace if candidate is None else candidate
        if holder.deadline == 0.0 or when < holder.deadline:
            self.replace_deadline(trace, candidate, when)

    def replace_deadline(self, trace: OpenTrace, candidate: Candidate | None, when: float) -> None:
        holder = trace if candidate is None else candidate
        holder.deadline = when
        heapq.heappush(self.deadlines, (when, next(self._sequence), trace, candidate))
        if len(self.deadlines) > 2 * len(self.by_id) + 1_024:  # most deadlines are of turns that already closed
            self.deadlines = [entry for entry in self.deadlines if self._is_current(*entry)]
            heapq.heapify(self.deadlines)

    def _is_current(self, when: float, _: int, trace: OpenTrace, candidate: Candidate | None) -> bool:
        if self.by_id.get(trace.trace_id) is not trace:
            return False
        return trace.deadline == when if candidate is None else not candidate.closed and candidate.deadline == when

    def overdue(self, started_by: float, most: int) -> Iterator[tuple[OpenTrace, Candidate]]:
        for _ in range(most):
            oldest = next(iter(self.outermost), None)
            if oldest is None or oldest.started > started_by:
                return
            yield self.outermost.pop(oldest), oldest

    def due(self, now: float, most: int) -> Iterator[Entry]:
        """Yield open traces and possible turn roots whose deadline has passed. Check and remove at most ``most`` deadlines."""
        for _ in range(most):
            if not self.deadlines or self.deadlines[0][0] > now:
                return
            when, number, trace, candidate = heapq.heappop(self.deadlines)
            if self._is_current(when, number, trace, candidate):
                yield trace, candidate

    def next_of_largest_tenant(self, crowded: bool) -> tuple[OpenTrace | None, bool]:
        """Return (next trace to close at a limit, or None; True if this trace only waits for its deadline).

        To protect other tenants, choose a trace of the tenant with the most open traces (if ``crowded``) or with the most bytes.
        """
        most = max(self.shares.values(), key=lambda share: len(share.traces) if crowded else share.size)
        return next(iter((most.waiting or most.traces).values()), None), bool(most.waiting)

    def clear(self) -> None:
        self.by_id.clear()
        self.outermost.clear()
        self.waiting.clear()
        self.shares.clear()
        self.deadlines.clear()
