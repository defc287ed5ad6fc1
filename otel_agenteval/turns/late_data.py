"""Remember closed traces, and hold their late spans and log records. Also hold log records that arrive before their trace."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..core.feedback import LOGFIRE_SCOPE
from ..core.semconv import SCOPE
from ..core.turn import CloseReason
from ..dialects.reader import role_in, role_of
from ..dialects.step import AGENT, LLM, RETRIEVAL, TOOL, WORKFLOW
from ..spans.record import LogPart, SpanRecord
from ..spans.sdk import attributes_of, scope_of
from ..spans.wire import WireSpan
from .state import Closed, HeldBytes, Role, TurnLimits

MAX_TRACES = 2_048
"""Maximum number of remembered closed traces, and maximum number of traces with late data."""
_MAX_SPAN_IDS = 50_000
"""Maximum number of remembered span IDs. A late span with a remembered parent usually belongs to the parent's turn."""
FEEDBACK = "feedback"
"""Role of a span with user feedback. When this span arrives, its parent's turn has usually closed."""
_REVISING_ROLES = frozenset((LLM, TOOL, RETRIEVAL, AGENT, WORKFLOW, FEEDBACK))
_AT_LIMIT: frozenset[CloseReason] = frozenset(("span_limit", "byte_limit", "evicted", "shutdown", "exit"))
_TOO_LARGE: frozenset[CloseReason] = frozenset(("span_limit", "byte_limit"))

_NO_SPANS: Mapping[int, str | None] = {}


@dataclass(slots=True)
class _ClosedTrace:
    closed_at: float = 0.0
    continues: bool = False
    """True if the trace's loose spans closed because they exceeded a size limit. Later spans are treated as a new trace."""
    roles: dict[int, str | None] | None = field(default_factory=dict)
    """Maps a span ID to the role of the span's candidate (possible turn root). The role is ``""`` if the candidate lacks a
    role, or None if the span started after the trace closed. The attribute is None if late spans can't revise the turn.
    """


@dataclass(slots=True)
class _LateData:
    deadline: float
    revises: bool = False
    spans: list[Any] = field(default_factory=list)
    logs: dict[int, list[LogPart]] = field(default_factory=dict)
    size: int = 0


class LateData:
    """Spans and log records that arrived after their trace closed. Not thread-safe."""

    def __init__(self, limits: TurnLimits, held: HeldBytes, role: Role, now: Callable[[], float]) -> None:
        self.limits = limits
        self._bytes = held
        self._role = role
        self._now = now
        self._closed: OrderedDict[int, _ClosedTrace] = OrderedDict()
        self._held: OrderedDict[int, _LateData] = OrderedDict()
        self._known_ids = 0
        self.count = 0
        self.ages: deque[float] = deque(maxlen=1_024)
        """For recent late spans, the seconds since their traces last closed. The engine exports and removes these values."""
        self.unused = 0
        """Number of late spans that can't revise a turn, for example because of a limit or their role."""

    def __bool__(self) -> bool:
        return bool(self._held)

    def __contains__(self, trace_id: int) -> bool:
        return trace_id in self._held

    # --- closed traces

    def has_closed(self, trace_id: int) -> bool:
        return trace_id in self._closed

    def receives(self, trace_id: int) -> bool:
        """Return True if a trace's new spans are late: the trace has closed, and the new spans aren't treated as a new trace."""
        closed = self._closed.get(trace_id)
        return closed is not None and not closed.continues

    def roles_in(self, trace_id: int) -> Mapping[int, str | None]:
        closed = self._closed.get(trace_id)
        return _NO_SPANS if closed is None or closed.roles is None else closed.roles

    def remember(self, trace_id: int, reason: CloseReason, roles: dict[int, str | None]) -> None:
        """Remember the roles of a closed turn's spans. If a limit or shutdown closed the turn, forget its trace's roles."""
        closed = self._remembered(trace_id)
        if reason in _AT_LIMIT:
            self._forget_ids(closed)
        elif closed.roles is not None:
            if closed.roles:
                self._add_ids(closed.roles, roles)
            else:
                closed.roles = roles
                self._known_ids += len(roles)
            while self._known_ids > _MAX_SPAN_IDS:
                self._forget_oldest()

    def remember_received(self, trace_id: int, reason: CloseReason) -> None:
        closed = self._remembered(trace_id)
        if reason in _AT_LIMIT:
            self._forget_ids(closed)
            closed.continues = reason in _TOO_LARGE

    def add_started(self, trace_id: int, span_id: int) -> None:
        closed = self._closed[trace_id]
        assert closed.roles is not None
        self._add_ids(closed.roles, {span_id: None})

    def _remembered(self, trace_id: int) -> _ClosedTrace:
        closed = self._closed.get(trace_id)
        if closed is None:
            closed = self._closed[trace_id] = _ClosedTrace()
            if len(self._closed) > MAX_TRACES:
                self._forget_oldest()
        closed.closed_at = self._now()
        return closed

    def _add_ids(self, known: dict[int, str | None], ids: Mapping[int, str | None]) -> None:
        before = len(known)
        known.update(ids)
        self._known_ids += len(known) - before

    def _forget_ids(self, closed: _ClosedTrace) -> None:
        if closed.roles is not None:
            self._known_ids -= len(closed.roles)
            closed.roles = None

    def _forget_oldest(self) -> None:
        self._forget_ids(self._closed.popitem(last=False)[1])

    # --- late spans and log records

    def note(self, trace_id: int) -> None:
        self.count += 1
        closed = self._closed.get(trace_id)
        if closed is not None:
            self.ages.append(self._now() - closed.closed_at)

    def hold(self, trace_id: int, span: Any, size: int, local_root: bool = False, *, noted: bool = False) -> None:
        """Hold a late span, which also counts as late unless it was already ``noted``. If the turn can't be revised or a limit is
        reached, count the span in :attr:`unused` instead.
        """
        if not noted:
            self.note(trace_id)
        late = self._late_of(trace_id)
        if late is not None and len(late.spans) < self.limits.max_spans and late.size + size <= self.limits.max_bytes:
            late.revises = late.revises or local_root or self._role(span) in _REVISING_ROLES
            late.spans.append(span)
            late.size += size
            self._bytes.used += size
        else:
            self.unused += 1

    def logs_of(self, trace_id: int) -> dict[int, list[LogPart]] | None:
        """Return a trace's late log records by span ID, or None if records can't be kept. Callers can add records to the result."""
        late = self._late_of(trace_id) if trace_id in self._closed else None
        return late.logs if late is not None else None

    def _late_of(self, trace_id: int) -> _LateData | None:
        late = self._held.get(trace_id)
        closed = self._closed.get(trace_id)
        if late is None and not (closed is not None and closed.roles is None) and len(self._held) < MAX_TRACES:
            late = self._held[trace_id] = _LateData(self._now() + self.limits.decision_delay)
        return late

    def close_due(self) -> list[Closed]:
        found: list[Closed] = []
        while self._held and next(iter(self._held.values())).deadline <= self._now():
            found += self.close_oldest()
        return found

    def close_oldest(self) -> list[Closed]:
        """Remove and return the oldest late data. If the data can't revise a turn, count its spans as unused, and return ``[]``."""
        trace_id, late = self._held.popitem(last=False)
        self._bytes.used -= late.size
        if not late.revises and not late.logs:
            self.unused += len(late.spans)
            return []
        return [Closed(trace_id, late.spans, "delay", True, logs=late.logs, size=late.size, late=True)]

    # --- forgetting

    def forget_trace(self, trace_id: int) -> int:
        closed = self._closed.pop(trace_id, None)
        if closed is not None:
            self._forget_ids(closed)
        late = self._held.pop(trace_id, None)
        if late is None:
            return 0
        self._bytes.used -= late.size
        return len(late.spans)

    def forget_all(self, open_traces: Iterable[int]) -> None:
        """In a forked child process, drop late data. The parent process evaluates and revises ``open_traces`` and closed traces."""
        for trace_id in [*open_traces, *self._closed]:
            self._remembered(trace_id).roles = None
        self._held.clear()
        self.ages.clear()
        self._known_ids = self.count = self.unused = 0


def role_of_span(span: Any) -> str | None:
    if span is None:
        return None
    if isinstance(span, (SpanRecord, WireSpan)):
        record = span.record() if isinstance(span, WireSpan) else span
        return FEEDBACK if record.scope == LOGFIRE_SCOPE else role_in(record)
    scope = scope_of(span)
    return None if scope == SCOPE else role_of(attributes_of(span), scope, span.name)


Parts = list[tuple[int, LogPart, int]]
"""Log records, each as (span ID, log record, size in bytes)."""


class EarlyLogs:
    """Log records that arrived before any span of their trace. Not thread-safe.

    A trace's records are dropped after ``max_age()`` seconds. If ``max_bytes`` is exceeded, the oldest traces' records are dropped.
    """

    def __init__(self, max_bytes: int, max_age: Callable[[], float], now: Callable[[], float]) -> None:
        self._max_bytes = max_bytes
        self._max_age = max_age
        self._now = now
        self._traces: OrderedDict[int, tuple[float, Parts]] = OrderedDict()
        self._bytes = 0

    def __bool__(self) -> bool:
        return bool(self._traces)

    def __contains__(self, trace_id: int) -> bool:
        return trace_id in self._traces

    def add(self, trace_id: int, span_id: int, part: LogPart, size: int) -> int:
        """Keep a log record (``part``). Return how many records were dropped because of their age or the size limit."""
        self._traces.setdefault(trace_id, (self._now(), []))[1].append((span_id, part, size))
        self._bytes += size
        lost = self.expire()
        while self._bytes > self._max_bytes:
            lost += len(self.pop(next(iter(self._traces))))
        return lost

    def expire(self) -> int:
        oldest, lost = self._now() - self._max_age(), 0
        while self._traces and next(iter(self._traces.values()))[0] <= oldest:
            lost += len(self.pop(next(iter(self._traces))))
        return lost

    def pop(self, trace_id: int) -> Parts:
        found = self._traces.pop(trace_id, (0.0, []))[1]
        self._bytes -= sum(size for _, _, size in found)
        return found

    def forget(self) -> None:
        self._traces.clear()
        self._bytes = 0
