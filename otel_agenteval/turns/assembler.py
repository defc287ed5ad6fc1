"""Track open turns and close each one when its spans are complete.

The assembler receives spans in two ways. Spans of this process report their start, so a turn closes as soon as its
root has ended and no span below it is open. Other spans are seen only after they end: through OTLP, or because a
processor was added late. Their turn closes ``decision_delay`` after the local root arrives, or, without a local root,
when the trace has been idle.

An *owner* is a span that may become a turn root. It is a local root, or the topmost agent, workflow, chain or unknown
span below an application's spans. All spans below an owner count towards it, even if their parent has ended. An owner
that isn't a root passes its spans to the owner above.

The assembler does no I/O and reads only a span's role. The caller serializes the calls (see :attr:`Assembler.lock`)
and evaluates each :class:`Closed` elsewhere.
"""

from __future__ import annotations

import heapq
import itertools
import math
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..core.tenancy import number_in
from ..core.turn import CloseReason
from ..dialects.generic.keys import PLAIN_KEYS, is_plain
from ..dialects.reader import ROLE_KEYS
from ..dialects.step import AGENT, LLM, RETRIEVAL, ROOT_ROLES, TOOL, WORKFLOW
from ..spans.record import LogPart
from .live_roles import FEEDBACK
from .state import OWNER_ROLES, Closed, Limits, Owner, Share, Trace, size_of

if TYPE_CHECKING:
    from ..spans.wire import WireSpan

_TURN_ROLES = frozenset((AGENT, WORKFLOW))
PLAIN_KEPT = 256
"""Maximum number of spans kept of a trace without GenAI spans."""
_RECENT = 2_048
_CLOSED_IDS = 50_000
"""Maximum number of remembered span ids of closed turns. A span that starts below one of them belongs to that turn."""
_MATTERS = frozenset((LLM, TOOL, RETRIEVAL, AGENT, WORKFLOW, FEEDBACK))
"""Roles of spans that revise a turn when they arrive after it closed."""
_PER_TICK = 3_000
_TRACE_SIZE = 1_536
"""Measured size of an open trace in bytes, without its spans."""
_BOUNDS: frozenset[CloseReason] = frozenset(("span_limit", "byte_limit", "evicted", "shutdown", "exit"))
_TOO_LARGE: frozenset[CloseReason] = frozenset(("span_limit", "byte_limit"))

Role = Callable[[Any], "str | None"]


def _first_of_each(spans: Iterable[WireSpan], known: set[bytes]) -> list[WireSpan]:
    """Return the spans whose ids aren't in ``known``, and add their ids to it."""
    found = []
    for span in spans:
        if span.id not in known:
            known.add(span.id)
            found.append(span)
    return found


class _RecentTrace:
    """A trace of which at least one turn has closed."""

    __slots__ = ("at", "goes_on", "ids")

    def __init__(self, at: float) -> None:
        self.at = at
        self.goes_on = False
        """True if a received trace closed because it was too large. Its next spans are then held like a new trace."""
        self.ids: dict[int, Owner | None] | None = {}
        """Spans of the closed turns, with their owners. The owner is None for a span that started after the close.

        The dictionary is None if late spans can't revise the turn: it closed at a limit, or the parent process owns
        it.
        """


_NO_SPANS: dict[int, Owner | None] = {}


class _Late:
    """Spans and log records that arrived after their trace's turns closed.

    They are held until ``deadline``.
    """

    __slots__ = ("deadline", "logs", "matters", "size", "spans")

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline
        self.matters = False
        self.spans: list[Any] = []
        self.logs: dict[int, list[LogPart]] = {}
        self.size = 0


def _leave_share(trace: Trace, size: int) -> None:
    """Remove a closed trace from its tenant's share."""
    share = trace.share
    if share is not None:
        share.traces.pop(trace.trace_id, None)
        share.seen.pop(trace.trace_id, None)
        share.size -= size
        trace.share = None


class Assembler:
    """All open turns.

    Not thread-safe. The caller holds :attr:`lock` around every call, except for :meth:`start_below` and
    :meth:`ending`, which acquire the lock themselves.

    Args:
        limits: limits in time, turns, spans and bytes.
        role: returns the current role of a span that is open or has ended.
        now: returns monotonic seconds.
    """

    def __init__(self, limits: Limits, role: Role, now: Callable[[], float]) -> None:
        self.set_limits(limits)
        self._role = role
        self._now = now
        self.lock = threading.Lock()
        """Held for microseconds, never during evaluation or I/O."""
        self.received = 0
        """Number of received spans, whatever their outcome."""
        self.traces: OrderedDict[int, Trace] = OrderedDict()
        self._shares: dict[int, Share] = {}
        """Open traces by the number of their tenant. Empty without tenants."""
        self._tops: dict[Owner, Trace] = {}
        """Open owners without an owner above, oldest first. The first one is the next to reach ``max_duration``."""
        self._heap: list[tuple[float, int, Trace, Owner | None]] = []
        """All other deadlines. Most turns have none."""
        self._sequence = itertools.count()
        self._recent: OrderedDict[int, _RecentTrace] = OrderedDict()
        """Traces of which a turn has closed."""
        self._known_ids = 0
        self._late: OrderedDict[int, _Late] = OrderedDict()
        self._seen: OrderedDict[int, tuple[Trace, Owner | None]] = OrderedDict()
        """Turns whose root was seen and that only wait for ``decision_delay``, oldest first. They are evicted first."""
        self._recent_plain: OrderedDict[int, None] = OrderedDict()
        """Traces that ended without GenAI spans. Spans that start below them later aren't part of a future turn."""
        self._size = 0
        self.late_spans = 0
        self.late_ages: deque[float] = deque(maxlen=1_024)
        """Seconds between the close of a turn and the arrival of each late span. Reporting the ages removes them."""
        self.orphan_parents = 0
        self.pruned_spans = 0
        self.duplicates = 0
        """Number of spans that were received again while their turn was open."""
        self.late_unused = 0
        """Number of late spans that revise nothing, because the turn closed at a limit, too much arrived late, or they
        don't matter.
        """
        self.moved = 0
        """Number of spans dropped because another process evaluates them."""

    def set_limits(self, limits: Limits) -> None:
        """Replace the limits. Existing deadlines don't change."""
        self._limits = limits
        self._max_spans = limits.max_spans
        self._max_bytes = limits.max_bytes
        self._total_bytes = limits.total_bytes

    # --- spans of this process

    def start_below(self, trace: Trace, owner: Owner, span_id: int) -> bool:
        """Record the start of a span whose parent is known, which is the usual case.

        Returns False and changes nothing if :meth:`start` must handle the span.
        """
        with self.lock:
            if owner.heir is not None:
                return False
            trace.nodes[span_id] = owner
            owner.open += 1
            if owner.ids is not None:
                owner.ids.add(span_id)
            return True

    def ending(self, trace: Trace, owner: Owner, span_id: int, span: Any, attributes: dict[str, Any]) -> Sequence[Closed]:
        """Record the end of a span whose trace and owner are known.

        Returns the turns that it closes. The agent waits for this call. The most frequent case is therefore handled
        first and inline: a span of a turn in which other spans are open.
        """
        with self.lock:
            self.received += 1
            if owner.open > 1 and not owner.closed and owner.span_id != span_id:
                members = owner.members
                if owner.genai:
                    size = 512
                    for value in attributes.values():
                        if value.__class__ is str:
                            size += len(value)
                    if (
                        owner.size + size <= self._max_bytes
                        and len(members) < self._max_spans
                        and self._size + size <= self._total_bytes
                    ):
                        owner.size += size
                        self._size += size
                        owner.open -= 1
                        members.append(span)
                        return ()
                elif len(members) < PLAIN_KEPT and ROLE_KEYS.isdisjoint(attributes) and PLAIN_KEYS.issuperset(attributes):
                    owner.open -= 1
                    members.append(span)
                    return ()
            return self._ended(trace, owner, span_id, span, attributes)

    def start(
        self,
        trace_id: int,
        span_id: int,
        parent_id: int,
        role: str | None,
        span: Any,
        references: dict[str, Any] | None = None,
        carried_id: int = 0,
    ) -> None:
        """Record the start of a span.

        ``parent_id`` is 0 if the span has no parent or if its parent seems to be remote. ``carried_id`` is the id of
        that remote parent. A context that was carried within this process also seems to be remote, but its span is
        known here.
        """
        trace = self.traces.get(trace_id)
        recent = self._recent.get(trace_id)
        closed = _NO_SPANS if recent is None or recent.ids is None else recent.ids
        if carried_id and ((trace is not None and carried_id in trace.nodes) or carried_id in closed):
            parent_id = carried_id
        parent = trace.nodes.get(parent_id) if trace is not None and parent_id else None
        after = closed.get(parent_id)
        # A request below one that has ended isn't part of it. The application forgot to detach a context.
        leak = parent is None and role is None and after is not None and after.role is None
        if parent is None and parent_id in closed and not leak:
            self._note_orphan(trace_id)
            self._add_ids(closed, {span_id: None})
            return
        if parent is None and parent_id:
            self._note_orphan(trace_id)
            parent = self._home_of_orphan(trace)
        if trace is None or parent is None:
            now = self._now()
            if trace is None:
                trace = self.traces[trace_id] = Trace(trace_id, now)
            owner = self._new_owner(trace, span, role, span_id, None)
            owner.started = now
            self._tops[owner] = trace
            trace.tops[owner] = None
            if parent_id:
                owner.orphan = trace_id not in self._recent and trace_id not in self._recent_plain
                owner.leak = leak
        else:
            owner = parent
            while owner.heir is not None:
                owner = owner.heir
            owner.open += 1
            if role is not None:
                owner.genai = True
                if role in OWNER_ROLES and owner.role not in OWNER_ROLES:
                    owner = self._new_owner(trace, span, role, span_id, owner)
            trace.nodes[span_id] = owner
            if owner.ids is not None:
                owner.ids.add(span_id)
        if references is not None and owner.references is None:
            owner.references = references

    def end(
        self, trace_id: int, span_id: int, span: Any, attributes: dict[str, Any], local_root: bool = False
    ) -> Sequence[Closed]:
        """Record a span that has ended or is ending, and return the turns that it closes.

        ``local_root`` has the same meaning as in :meth:`add`.
        """
        trace = self.traces.get(trace_id)
        owner = trace.nodes.get(span_id) if trace is not None else None
        if trace is None or owner is None:
            recent = self._recent.get(trace_id)
            if recent is not None and recent.ids is not None and span_id in recent.ids:
                if recent.ids[span_id] is not None:  # None: it was counted when it started
                    self._note_late(trace_id)
                self._keep_late(trace_id, span, size_of(attributes))
                return ()
            return () if self._role(span) is None else self.add(trace_id, span, size_of(attributes), local_root)
        return self._ended(trace, owner, span_id, span, attributes)

    def _ended(self, trace: Trace, owner: Owner, span_id: int, span: Any, attributes: dict[str, Any]) -> Sequence[Closed]:
        """Record the end of a span whose owner is known, as the second step of :meth:`end`."""
        trace_id = trace.trace_id
        own = owner.span_id == span_id
        if own:
            owner.ended = True
        while owner.heir is not None:
            owner = owner.heir
        owner.open -= 1
        if owner.closed:
            if not own:
                self._note_late(trace_id)
                self._keep_late(trace_id, span, size_of(attributes))
        elif owner.genai or not (ROLE_KEYS.isdisjoint(attributes) and is_plain(attributes)):
            owner.genai = True
            size = 512
            for value in attributes.values():
                if value.__class__ is str:
                    size += len(value)
            owner.size += size
            self._size += size
            owner.members.append(span)
        elif len(owner.members) < PLAIN_KEPT:
            owner.members.append(span)
            if owner.open and not own:  # the usual end in a trace without GenAI spans
                return ()
        else:
            self.pruned_spans += 1
            owner.missing = True
            if not own:
                del trace.nodes[span_id]
                if owner.ids is not None:
                    owner.ids.discard(span_id)
        if owner.open == 0:
            if trace.owners == 1 and owner.role in _TURN_ROLES and not (owner.closed or trace.loose):  # the usual case
                self.traces.pop(trace_id, None)
                if owner.deadline:
                    self._seen.pop(trace_id, None)
                return (self._close(trace, owner, "root_ended", complete=True),)
            return self._complete(trace, owner)
        if owner.closed:
            return ()
        if own:
            owner.span = span
            self._set_deadline(trace, owner, self._now() + self._limits.decision_delay)
            self._seen[trace_id] = trace, owner
        if owner.size > self._max_bytes or len(owner.members) > self._max_spans or self._size > self._limits.total_bytes:
            return self._enforce(trace, owner)
        return ()

    # --- spans that arrive after their end, and log records

    def add(self, trace_id: int, span: Any, size: int, local_root: bool) -> list[Closed]:
        """Add a span whose start wasn't reported, and return the turns that close.

        ``local_root`` is True if the span has no parent or a remote one.
        """
        trace = self.traces.get(trace_id)
        recent = self._recent.get(trace_id) if trace is None else None
        if recent is not None and not recent.goes_on:
            self._note_late(trace_id)
            self._keep_late(trace_id, span, size, local_root)
            return []
        now = self._now()
        if trace is None:
            trace = self.traces[trace_id] = Trace(trace_id, now)
            trace.continued = recent is not None
        trace.last_seen = now
        trace.loose.append(span)
        trace.loose_size += size
        self._size += size
        self._wait_for_more(trace, now, local_root)
        return self._enforce_loose(trace)

    def add_received(self, trace_id: int, spans: Sequence[WireSpan], size: int, local_root: bool) -> list[Closed]:
        """Add the spans of one trace from one request, like :meth:`add`.

        A sender without a response sends spans again. Each span counts once.
        """
        trace = self.traces.get(trace_id)
        recent = self._recent.get(trace_id) if trace is None else None
        if recent is not None and not recent.goes_on:
            for span in spans:
                self._note_late(trace_id)
                self._keep_late(trace_id, span, span.size, local_root)
            return []
        now = self._now()
        if trace is None:
            trace = self.traces[trace_id] = Trace(trace_id, now)
            trace.continued = recent is not None
            trace.loose_size = _TRACE_SIZE
            self._size += _TRACE_SIZE
            tenant = number_in(trace_id)
            if tenant:
                trace.share = self._shares.setdefault(tenant, Share())
                trace.share.traces[trace_id] = trace
                trace.share.size += _TRACE_SIZE
        ids = {span.id for span in spans}
        known = trace.ids
        if len(ids) == len(spans) and (known is None or known.isdisjoint(ids)):
            if known is None:
                trace.ids = ids
            else:
                known |= ids
        else:
            known = trace.ids = known or set()
            received = len(spans)
            spans = _first_of_each(spans, known)
            self.duplicates += received - len(spans)
            size = sum(span.size for span in spans)
        trace.last_seen = now
        trace.loose += spans
        trace.loose_size += size
        self._size += size
        if trace.share is not None:
            trace.share.size += size
        self._wait_for_more(trace, now, local_root)
        return self._enforce_loose(trace)

    def add_log(self, trace_id: int, span_id: int, part: LogPart, size: int = 0) -> bool:
        """Keep a log record for its span.

        Returns False if no open or recently closed turn contains that span. ``size`` counts towards the limits of a
        turn whose spans are received.
        """
        trace = self.traces.get(trace_id)
        recent = self._recent.get(trace_id)
        if trace is not None and (recent is None or recent.ids is None or span_id not in recent.ids):
            if trace.logs is None:
                trace.logs = {}
            parts = trace.logs.setdefault(span_id, [])
        elif recent is not None:
            late = self._late_of(trace_id)
            if late is None:
                return False
            parts = late.logs.setdefault(span_id, [])
        else:
            return False
        if len(parts) >= self._limits.max_spans:
            return False
        parts.append(part)
        if size and trace is not None and trace.owners == 0:
            trace.loose_size += size
            self._size += size
            if trace.share is not None:
                trace.share.size += size
        return True

    # --- deadlines, limits and shutdown

    def tick(self, room: float = math.inf) -> list[Closed]:
        """Close turns that reached a deadline or exceed a limit.

        At most about ``room`` bytes of turns that only reached their deadline are closed.
        """
        now = self._now()
        closed = self._evict()
        while self._late and next(iter(self._late.values())).deadline <= now:
            closed += self._close_late()
        for _ in range(_PER_TICK):
            oldest = next(iter(self._tops), None)
            if oldest is None or oldest.started + self._limits.max_duration > now:
                break
            closed.extend(self._force(self._tops.pop(oldest), oldest, "delay" if oldest.ended else "max_duration"))
        for _ in range(_PER_TICK):
            if not self._heap or self._heap[0][0] > now or room <= 0:
                break
            when, _, trace, owner = heapq.heappop(self._heap)
            if owner is not None:
                if owner.closed or owner.deadline != when or self.traces.get(trace.trace_id) is not trace:
                    continue
                closed.extend(self._force(trace, owner, "delay"))
            elif trace.deadline == when and self.traces.get(trace.trace_id) is trace and trace.loose:
                due = min(trace.last_seen + self._limits.idle_timeout, trace.first_seen + self._limits.max_duration)
                if not trace.root_seen and due > now:
                    trace.deadline = due
                    heapq.heappush(self._heap, (due, next(self._sequence), trace, None))
                    continue
                late = now >= trace.first_seen + self._limits.max_duration
                room -= trace.loose_size
                closed.extend(self._close_loose(trace, "delay" if trace.root_seen else "max_duration" if late else "idle"))
        if len(closed) > 1:  # parts of one turn in several traces are joined in the order of their starts
            closed.sort(key=_began)
        return closed

    def held(self, trace_ids: Iterable[int]) -> set[int]:
        """Return the given traces that are open or have late data."""
        return {trace_id for trace_id in trace_ids if trace_id in self.traces or trace_id in self._late}

    def close_all(self, reason: CloseReason) -> list[Closed]:
        """Close all turns and late data, oldest first, so that shutdown evaluates everything."""
        closed: list[Closed] = []
        for trace in list(self.traces.values()):
            closed.extend(self._close_trace(trace, reason))
        while self._late:
            closed += self._close_late()
        return closed

    def forget_traces(self, trace_ids: Iterable[int]) -> None:
        """Drop the received spans of traces that another process evaluates."""
        for trace_id in trace_ids:
            trace = self.traces.pop(trace_id, None)
            if trace is not None:
                self._size -= trace.loose_size
                self.moved += len(trace.loose)
                _leave_share(trace, trace.loose_size)
                trace.loose, trace.loose_size = [], 0
                self._seen.pop(trace_id, None)
            late = self._late.pop(trace_id, None)
            if late is not None:
                self._size -= late.size
                self.moved += len(late.spans)
            recent = self._recent.pop(trace_id, None)
            if recent is not None and recent.ids is not None:
                self._known_ids -= len(recent.ids)

    def forget(self) -> None:
        """Drop everything in a forked child. The parent process evaluates these turns."""
        self.lock = threading.Lock()
        self.received = 0
        for trace_id in [*self.traces, *self._recent]:
            self._remember(trace_id).ids = None
        self.traces.clear()
        self._shares.clear()
        self._known_ids = 0
        self._late.clear()
        self._seen.clear()
        self._tops.clear()
        self._heap.clear()
        self._size = 0
        self.late_spans = self.orphan_parents = self.pruned_spans = self.duplicates = self.late_unused = self.moved = 0
        self.late_ages.clear()

    def knows(self, trace_id: int) -> bool:
        """Return True if the trace is open or had a turn that closed recently."""
        return trace_id in self.traces or trace_id in self._recent

    def open_turns_of(self, tenant: int) -> int:
        """Return the number of open traces of a tenant, given by its number."""
        share = self._shares.get(tenant)
        return len(share.traces) if share is not None else 0

    def next_close_of(self, tenant: int) -> float:
        """Return the seconds until a turn of the tenant is expected to close."""
        share = self._shares.get(tenant)
        oldest = next(iter(share.traces.values()), None) if share is not None else None
        return 0.0 if oldest is None else max(0.0, oldest.deadline - self._now())

    @property
    def open_turns(self) -> int:
        """Number of traces with open or waiting spans."""
        return len(self.traces)

    @property
    def waiting(self) -> bool:
        """True if a deadline may be due later."""
        return bool(self.traces or self._late)

    @property
    def max_open(self) -> int:
        """Maximum number of open turns. The next turn evicts another."""
        return self._limits.max_open

    @property
    def bytes(self) -> int:
        """Approximate number of bytes held."""
        return self._size

    @property
    def max_bytes(self) -> int:
        """Maximum number of bytes that all open turns may hold before turns are evicted."""
        return self._total_bytes

    @property
    def fill(self) -> float:
        """Fill level of the fuller of the two eviction limits, from 0 to 1.

        Above 1, turns are being evicted.
        """
        return max(self._size / self._total_bytes, len(self.traces) / self._limits.max_open)

    # --- inside

    def _new_owner(self, trace: Trace, span: Any, role: str | None, span_id: int, up: Owner | None) -> Owner:
        owner = Owner(span, role, span_id, up)
        if trace.nodes and not trace.several:
            trace.several = True
            for known_id, node in trace.nodes.items():
                known = node if node.heir is None else node.heir
                if known.ids is None:
                    known.ids = set()
                known.ids.add(known_id)
        if trace.several:
            owner.ids = {span_id}
        if trace.owners == 0 and not trace.tops:
            trace.tops, trace.turns = {}, {}
        trace.nodes[span_id] = owner
        trace.owners += 1
        if role in _TURN_ROLES:
            trace.turns[owner] = None
        if up is not None:
            if up.below is None:
                up.below = {}
            up.below[owner] = None
        return owner

    def _mark_closed(self, trace: Trace, owner: Owner) -> None:
        owner.closed = True
        self._tops.pop(owner, None)
        trace.tops.pop(owner, None)
        trace.turns.pop(owner, None)

    def _remember(self, trace_id: int) -> _RecentTrace:
        """Record that a turn of this trace has closed, and return the trace's entry."""
        recent = self._recent.get(trace_id)
        if recent is not None:
            recent.at = self._now()
            return recent
        recent = self._recent[trace_id] = _RecentTrace(self._now())
        if len(self._recent) > _RECENT:
            self._forget_oldest()
        return recent

    def _forget_oldest(self) -> None:
        ids = self._recent.popitem(last=False)[1].ids
        self._known_ids -= len(ids) if ids is not None else 0

    @staticmethod
    def _home_of_orphan(trace: Trace | None) -> Owner | None:
        """Return the owner for a span whose parent was never seen.

        It is the trace's only open turn, or its only open owner without an owner above.
        """
        for running in (trace.turns, trace.tops) if trace is not None else ():
            if len(running) == 1:
                return next(iter(running))
        return None

    def _wait_for_more(self, trace: Trace, now: float, local_root: bool) -> None:
        """Set the deadline of a trace that received spans without a reported start."""
        if local_root and not trace.root_seen:
            trace.root_seen = True
            if trace.owners == 0:
                self._seen[trace.trace_id] = trace, None
                if trace.share is not None:
                    trace.share.seen[trace.trace_id] = trace
        if trace.owners == 0:
            self._await_loose(trace, now)

    def _enforce_loose(self, trace: Trace) -> list[Closed]:
        if len(trace.loose) > self._max_spans:
            return self._close_loose(trace, "span_limit")
        if trace.loose_size > self._max_bytes:
            return self._close_loose(trace, "byte_limit")
        return self._evict()

    def _await_loose(self, trace: Trace, now: float) -> None:
        """Set the deadline for the trace's loose spans, whose start wasn't reported.

        They close ``decision_delay`` after their local root, or, without one, when the trace is idle.
        """
        limits = self._limits
        wanted = min(
            now + (limits.decision_delay if trace.root_seen else limits.idle_timeout), trace.first_seen + limits.max_duration
        )
        # Only the idle deadline may move later, and it does so lazily, when the heap hands it out.
        if trace.deadline == 0.0 or wanted < trace.deadline:
            trace.deadline = wanted
            self._push(wanted, trace, None)

    def _note_orphan(self, trace_id: int) -> None:
        self.orphan_parents += 1
        if trace_id in self._recent:
            self._note_late(trace_id)

    def _note_late(self, trace_id: int) -> None:
        self.late_spans += 1
        recent = self._recent.get(trace_id)
        if recent is not None:
            self.late_ages.append(self._now() - recent.at)

    def _keep_late(self, trace_id: int, span: Any, size: int, local_root: bool = False) -> None:
        """Keep a span that arrived after its turn closed.

        If it matters, the turn is evaluated again.
        """
        late = self._late_of(trace_id)
        if late is not None and len(late.spans) < self._max_spans and late.size + size <= self._max_bytes:
            late.matters = late.matters or local_root or self._role(span) in _MATTERS
            late.spans.append(span)
            late.size += size
            self._size += size
        else:
            self.late_unused += 1

    def _late_of(self, trace_id: int) -> _Late | None:
        late = self._late.get(trace_id)
        recent = self._recent.get(trace_id)
        if late is None and not (recent is not None and recent.ids is None) and len(self._late) < _RECENT:
            late = self._late[trace_id] = _Late(self._now() + self._limits.decision_delay)
        return late

    def _close_late(self) -> list[Closed]:
        trace_id, late = self._late.popitem(last=False)
        self._size -= late.size
        if not late.matters and not late.logs:
            self.late_unused += len(late.spans)
            return []
        return [Closed(trace_id, late.spans, "delay", True, logs=late.logs, size=late.size, late=True)]

    def _set_deadline(self, trace: Trace, owner: Owner, when: float) -> None:
        if owner.deadline == 0.0 or when < owner.deadline:  # never later
            owner.deadline = when
            self._push(when, trace, owner)

    def _push(self, when: float, trace: Trace, owner: Owner | None) -> None:
        heapq.heappush(self._heap, (when, next(self._sequence), trace, owner))
        if len(self._heap) > 2 * len(self.traces) + 1_024:  # most of these turns closed before their deadline
            self._heap = [entry for entry in self._heap if self._alive(entry)]
            heapq.heapify(self._heap)

    def _alive(self, entry: tuple[float, int, Trace, Owner | None]) -> bool:
        when, _, trace, owner = entry
        if self.traces.get(trace.trace_id) is not trace:
            return False
        return trace.deadline == when if owner is None else not owner.closed and owner.deadline == when

    def _is_root(self, owner: Owner) -> bool:
        """Return True if this owner's spans can close as turns now.

        Otherwise, they belong to the owner above.
        """
        if owner.up is None:
            return True
        if owner.role not in _TURN_ROLES and not (owner.role in ROOT_ROLES and self._holds_model_or_agent(owner)):
            return False
        return self._role(owner.up.span) not in OWNER_ROLES  # attributes set since its start can make it an agent

    def _holds_model_or_agent(self, owner: Owner) -> bool:
        return any(self._role(span) in (LLM, AGENT, WORKFLOW) for span in owner.members)

    def _complete(self, trace: Trace, owner: Owner) -> list[Closed]:
        """Close an owner whose spans have all ended, or pass its spans on."""
        if owner.closed:
            return self._leave(trace, owner)
        closed: list[Closed] = []
        if owner.role not in _TURN_ROLES:  # agents and workflows keep the role from their start
            owner.role = self._role(owner.span) if owner.genai else None
        if not owner.genai and owner.role is None:  # an application's own trace without GenAI spans
            self._size -= owner.size
            self._let_go(trace, owner)
            self._recent_plain[trace.trace_id] = None
            if len(self._recent_plain) > _RECENT:
                self._recent_plain.popitem(last=False)
        elif owner.orphan and owner.role not in _TURN_ROLES:
            trace.loose.extend(owner.members)  # its local root started before this processor; wait for its end
            trace.loose_size += owner.size
            self._let_go(trace, owner)
        elif self._is_root(owner):
            closed.append(self._close(trace, owner, "root_ended", complete=True))
        else:
            self._hand_up(trace, owner)
        closed += self._leave(trace, owner)
        return closed

    def _let_go(self, trace: Trace, owner: Owner) -> None:
        """Drop the spans of an owner that isn't a turn.

        A pending deadline would otherwise keep them in memory.
        """
        self._mark_closed(trace, owner)
        owner.members = []
        owner.span = None

    def _hand_up(self, trace: Trace, owner: Owner) -> None:
        up = owner.up
        assert up is not None
        self._mark_closed(trace, owner)
        if owner.ids and up.ids is not None:
            up.ids |= owner.ids
        up.members.extend(owner.members)
        up.missing = up.missing or owner.missing
        up.size += owner.size
        up.references = up.references or owner.references
        owner.members = []
        owner.heir = up

    def _close(self, trace: Trace, owner: Owner, reason: CloseReason, complete: bool) -> Closed:
        self._mark_closed(trace, owner)
        spans = owner.members
        owner.members = []
        self._size -= owner.size
        if trace.loose and trace.owners == 1:  # loose spans belong to the trace's only open turn
            spans.extend(trace.loose)
            self._size -= trace.loose_size
            trace.loose = []
            trace.loose_size = 0
        if owner.up is not None:
            owner.up.turns += 1
        recent = self._remember(trace.trace_id)
        if reason in _BOUNDS:
            recent.ids = None
        elif recent.ids is not None:
            if trace.owners == 1 and not recent.ids:  # the trace has ended, and nothing else needs its nodes
                recent.ids = trace.nodes  # type: ignore[assignment]  # only read from now on
                self._known_ids += len(trace.nodes)
            else:
                self._add_ids(recent.ids, dict.fromkeys(trace.nodes if owner.ids is None else owner.ids, owner))
            while self._known_ids > _CLOSED_IDS:
                self._forget_oldest()
        root = owner.span
        owner.span = None  # a pending deadline must not keep the turn's content in memory
        return Closed(
            trace.trace_id, spans, reason, complete and not owner.missing, root, owner.role in _TURN_ROLES, owner.turns > 0, trace.logs,
            owner.references, owner.size, above=owner.up.span if owner.up is not None else None,
            cut_off=owner.leak or owner.up is not None,
        )  # fmt: skip

    def _add_ids(self, known: dict[int, Owner | None], ids: Mapping[int, Owner | None]) -> None:
        before = len(known)
        known.update(ids)
        self._known_ids += len(known) - before

    def _leave(self, trace: Trace, owner: Owner) -> list[Closed]:
        """Remove a finished owner from its trace, and complete what was waiting for it.

        The owner above may now be complete, and the trace may have ended.
        """
        trace.owners -= 1
        up = owner.up
        if owner.up is not None and up is not None:
            while up.heir is not None:
                up = up.heir
            if owner.up.below is not None:
                owner.up.below.pop(owner, None)
            if owner.heir is None:
                self._drop_nodes(trace, owner)
            up.open -= 1
            return self._complete(trace, up) if up.open == 0 else []
        self._tops.pop(owner, None)
        if trace.owners == 0:
            if trace.loose and owner.orphan:
                trace.last_seen = self._now()
                self._drop_nodes(trace, owner)
                self._await_loose(trace, trace.last_seen)
                if trace.root_seen:
                    self._seen[trace.trace_id] = trace, None
                return []
            if trace.loose:
                return self._close_loose(trace, "root_ended")
            self._drop_trace(trace)
        else:
            self._drop_nodes(trace, owner)
        return []

    @staticmethod
    def _drop_nodes(trace: Trace, owner: Owner) -> None:
        if owner.ids is None:  # the trace has only this owner
            trace.nodes = {}
            return
        for span_id in owner.ids:
            trace.nodes.pop(span_id, None)
        owner.ids = None

    def _enforce(self, trace: Trace, owner: Owner) -> list[Closed]:
        limits = self._limits
        if len(owner.members) > limits.max_spans:
            return self._force(trace, owner, "span_limit")
        if owner.size > limits.max_bytes:
            return self._force(trace, owner, "byte_limit")
        return self._evict()

    def _evict(self) -> list[Closed]:
        """Close turns until the limits hold.

        Turns that only wait for a deadline close first, then late spans, then the oldest trace.
        """
        limits = self._limits
        closed: list[Closed] = []
        while (crowded := len(self.traces) > limits.max_open) or (
            self._size > limits.total_bytes and (self.traces or self._late)
        ):
            if self._shares:
                closed.extend(self._evict_of_tenants(crowded))
            elif self._seen:
                trace, owner = self._seen.popitem(last=False)[1]
                if owner is None:
                    closed.extend(self._close_trace(trace, "evicted"))
                elif not owner.closed:
                    closed.extend(self._force(trace, owner, "evicted"))
            elif self._late and not crowded:
                closed.extend(self._close_late())
            else:
                closed.extend(self._close_trace(next(iter(self.traces.values())), "evicted"))
        return closed

    def _evict_of_tenants(self, crowded: bool) -> list[Closed]:
        """Evict from the tenant that uses most of the exceeded limit.

        One tenant therefore can't evict the turns of others.
        """
        most = max(self._shares.values(), key=lambda share: len(share.traces) if crowded else share.size)
        if not most.seen and self._late and not crowded:
            return self._close_late()
        oldest = next(iter(self.traces.values()))  # used if no tenant has an open trace
        return self._close_trace(next(iter((most.seen or most.traces).values()), oldest), "evicted")

    def _force(self, trace: Trace, owner: Owner, reason: CloseReason) -> list[Closed]:
        """Close an owner although a span below it is open. Its open spans will be late."""
        owner.role = self._role(owner.span)
        closed = [self._close(trace, owner, reason, complete=False)]
        below = owner.below or {}
        for inner in below:
            if not inner.closed:  # open owners below an application's span close with it
                closed[0].spans.extend(inner.members)
                self._size -= inner.size
                inner.members = []
                self._mark_closed(trace, inner)
        if owner.up is None:
            trace.owners -= 1 + len(below)
            if trace.owners > 0:
                for done in (owner, *below):
                    self._drop_nodes(trace, done)
            else:
                self._drop_trace(trace)
                if trace.loose:
                    closed.extend(self._close_loose(trace, reason))
        return closed

    def _drop_trace(self, trace: Trace) -> None:
        self.traces.pop(trace.trace_id, None)
        self._seen.pop(trace.trace_id, None)
        trace.nodes = {}
        if not trace.loose:
            _leave_share(trace, trace.loose_size)

    def _close_trace(self, trace: Trace, reason: CloseReason) -> list[Closed]:
        closed: list[Closed] = []
        for owner in list(trace.tops):
            closed.extend(self._force(trace, owner, reason))
        self._drop_trace(trace)
        if trace.loose:
            closed.extend(self._close_loose(trace, reason))
        return closed

    def _close_loose(self, trace: Trace, reason: CloseReason) -> list[Closed]:
        spans, size = trace.loose, trace.loose_size
        trace.loose = []
        trace.loose_size = 0
        trace.deadline = 0.0
        self._size -= size
        _leave_share(trace, size)
        if trace.owners == 0:
            self._drop_trace(trace)
        recent = self._remember(trace.trace_id)
        if reason in _BOUNDS:
            recent.ids = None
            recent.goes_on = reason in _TOO_LARGE
        # The composer decides later whether each turn of these spans is complete.
        complete = trace.root_seen and not trace.continued
        return [Closed(trace.trace_id, spans, reason, complete, logs=trace.logs, size=size, continued=trace.continued)]


def _began(closed: Closed) -> int:
    """Return the start time of the first span, or 0 if unknown."""
    span = closed.spans[0] if closed.spans else None
    found: int | None = getattr(span, "start_ns", None) or getattr(span, "start_time", None)
    return found or 0
