"""Data types for open traces, spans that might be turn roots (candidates), and closed spans."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..core.turn import CloseReason
from ..dialects.step import ROOT_ROLES, UNKNOWN
from ..spans.record import LogPart

CANDIDATE_ROLES = ROOT_ROLES | {UNKNOWN}
"""Roles of spans that are turn roots or might become turn roots."""
Role = Callable[[Any], "str | None"]
"""Function that returns the current role of an open or ended span."""


def size_of(attributes: Mapping[str, Any]) -> int:
    """Return a span's estimated size in bytes: the length of its text attributes plus a fixed amount."""
    size = 512
    for value in attributes.values():
        if value.__class__ is str:
            size += len(value)
    return size


class PendingSpans:
    """Number of spans whose outcome (scored, or why not) isn't known yet. Only the first :meth:`settle` call counts them."""

    __slots__ = ("_count", "spans")

    def __init__(self, spans: int, count: Callable[[str, int], None]) -> None:
        self.spans = spans
        self._count = count

    def settle(self, outcome: str) -> None:
        spans, self.spans = self.spans, 0
        if spans:
            self._count(outcome, spans)


@dataclass(frozen=True, slots=True)
class TurnLimits:
    decision_delay: float = 2.0
    idle_timeout: float = 300.0
    max_duration: float = 3600.0
    max_open: int = 50_000
    max_spans: int = 2_000
    max_bytes: int = 4 * 1024 * 1024
    total_bytes: int = 256 * 1024 * 1024


@dataclass(slots=True)
class HeldBytes:
    limit: int
    used: int = 0


class Candidate:
    """Span that might be a turn's root, together with the spans assigned to it."""

    # Class attributes save memory and time: most of these values never change.
    references: dict[str, Any] | None = None
    size = 0
    closed_turns = 0
    ended = False
    deadline = 0.0
    started = 0.0
    stale_context = False
    """True if the candidate started below a request span that had already ended."""
    pruned = False
    parent_id = 0
    beside: Candidate | None = None
    """Agent run with the same parent. If this candidate isn't a turn's root, its spans move to the run, unless the run closed."""
    children: dict[Candidate, None] | None = None
    """Unfinished candidates below this candidate, by start time."""
    tools: set[int] = set()  # noqa: RUF012 - shared while it is empty
    """IDs of tool spans and of all spans below tool spans. Empty if :attr:`collects_all` is True."""
    orphan = False
    """True if the span's local parent was never reported. Unless it is an agent or workflow, its spans wait for the local root."""

    def __init__(self, span: Any, role: str | None, span_id: int, parent: Candidate | None) -> None:
        self.span = span
        self.role = role
        self.collects_all = role in CANDIDATE_ROLES
        """True if all spans that start below this candidate are assigned to it."""
        self.span_id = span_id
        self.parent = parent
        """Next candidate above (one of the application's own spans), or None."""
        self.open = 1
        """Number of open spans, including this candidate's own span and candidates below it."""
        self.spans: list[Any] = []
        self.genai = role is not None
        self.closed = False
        self.merged_into: Candidate | None = None
        """Candidate that received this candidate's spans because this candidate isn't a turn's root. Otherwise, None."""
        self.span_ids: set[int] | None = None
        """IDs of this candidate's spans, or None if this is the trace's only candidate."""

    @property
    def current(self) -> Candidate:
        found = self
        while found.merged_into is not None:
            found = found.merged_into
        return found


@dataclass(slots=True)
class TenantShare:
    traces: OrderedDict[int, OpenTrace] = field(default_factory=OrderedDict)
    waiting: OrderedDict[int, OpenTrace] = field(default_factory=OrderedDict)
    size: int = 0


_NO_CANDIDATES: dict[Candidate, None] = {}


class OpenTrace:
    unfinished = 0
    """Number of candidates with open spans, except topmost candidates that were closed early, and candidates below them."""
    had_several = False
    outermost = _NO_CANDIDATES
    """Topmost open candidates (possible turn roots), by start time."""
    agents = _NO_CANDIDATES
    """Open candidates that are agents or workflows. Most received traces share one empty dictionary."""
    continued = False
    """True if earlier spans of the trace were closed because the trace was too large."""
    loose_size = 0
    logs: dict[int, list[LogPart]] | None = None
    received_ids: set[bytes] | None = None
    root_seen = False
    deadline = 0.0
    share: TenantShare | None = None

    def __init__(self, trace_id: int, now: float) -> None:
        self.trace_id = trace_id
        self.candidate_of: dict[int, Candidate] = {}
        """Maps IDs of this process's spans to the candidates (possible turn roots) that the spans are assigned to."""
        self.loose: list[Any] = []
        """Ended spans without a candidate, such as spans received over OTLP."""
        self.first_seen = now
        self.last_seen = now


@dataclass(slots=True)
class Closed:
    """Closed spans that can be evaluated. They are one turn (``sole``), or belong to any number of turns."""

    trace_id: int
    spans: list[Any]
    reason: CloseReason
    complete: bool
    root: Any = None
    sole: bool = False
    """True if the spans are one turn with the root ``root``, unless :func:`~.separation.separate` splits this turn."""
    remainder: bool = False
    """True if turns below this local root closed earlier. The remaining spans are a turn only if the root is a GenAI span."""
    logs: dict[int, list[LogPart]] | None = None
    references: dict[str, Any] | None = None
    size: int = 0
    late: bool = False
    """True if the trace's turns closed before these spans arrived. These spans can then revise the closed turns."""
    ancestor: Any = None
    """The application's own span above the candidate. This span might still be open."""
    continued: bool = False
    """True if earlier spans closed because the trace was too large. Then only agents, workflows, and local roots start turns."""
    cut_off: bool = False
    """True if the root's parent is a known local span that ``spans`` doesn't contain."""
    beside: int | None = None
    """Trace ID of the only open agent run without spans below it. This run might have made the model call in ``spans``."""
    pending: PendingSpans | None = None
