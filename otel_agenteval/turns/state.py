"""Data types for open traces, their candidates for turn roots, and closed spans."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..core.turn import CloseReason
from ..dialects.step import ROOT_ROLES, UNKNOWN
from ..spans.record import LogPart

CANDIDATE_ROLES = ROOT_ROLES | {UNKNOWN}
"""Roles of spans that are turn roots or may become turn roots."""


Role = Callable[[Any], "str | None"]
"""Function that returns the current role of an open or ended span."""


def size_of(attributes: Mapping[str, Any]) -> int:
    """Return a span's estimated size in bytes: the length of its texts plus a fixed amount."""
    size = 512
    for value in attributes.values():
        if value.__class__ is str:
            size += len(value)
    return size


class PendingSpans:
    """Spans that share one outcome, such as scored or dropped. Only the first outcome is counted, so scored spans stay scored."""

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
    """A span that may be a turn root, with the spans that count towards it."""

    # Defaults are on the class because every turn creates a candidate, and most of these attributes never change.
    references: dict[str, Any] | None = None
    size = 0
    closed_turns = 0
    ended = False
    deadline = 0.0
    started = 0.0
    stale_context = False
    """True if the candidate started below a request that had ended."""
    pruned = False
    parent_id = 0
    beside: Candidate | None = None
    """The run that gets the spans if this candidate isn't a root. The run is a sibling, not the candidate above."""
    children: dict[Candidate, None] | None = None
    """Unfinished candidates that count towards it, by start time."""
    tools: set[int] = set()  # noqa: RUF012 - shared while it is empty
    """Ids of an application's tool spans and of the spans below them."""
    orphan = False
    """True if the parent is a span of this process that was never seen. Only an agent or a workflow can then be a root."""

    def __init__(self, span: Any, role: str | None, span_id: int, parent: Candidate | None) -> None:
        self.span = span
        self.role = role
        self.collects_all = role in CANDIDATE_ROLES
        """True if all spans that start below this candidate count towards it."""
        self.span_id = span_id
        self.parent = parent
        """The candidate above, which is an application's span."""
        self.open = 1
        """Number of open spans, including the candidate itself and the candidates below it."""
        self.spans: list[Any] = []
        self.genai = role is not None
        self.closed = False
        self.merged_into: Candidate | None = None
        """The candidate that took over the spans if this candidate isn't a root."""
        self.span_ids: set[int] | None = None
        """Ids of the candidate's spans, or None if its trace has no other candidate."""

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
    """Number of unfinished candidates: open, or closed while a span below them is open."""
    had_several = False
    outermost = _NO_CANDIDATES
    """Open candidates without a candidate above, by start time."""
    agents = _NO_CANDIDATES
    """Open candidates that are agents or workflows. Most received traces have none, so they share an empty dictionary."""
    continued = False
    """True if an earlier part of the trace closed because it was too large."""
    loose_size = 0
    logs: dict[int, list[LogPart]] | None = None
    received_ids: set[bytes] | None = None
    root_seen = False
    deadline = 0.0
    share: TenantShare | None = None

    def __init__(self, trace_id: int, now: float) -> None:
        self.trace_id = trace_id
        self.candidate_of: dict[int, Candidate] = {}
        """Candidate of each span that started in this process, by span id."""
        self.loose: list[Any] = []
        """Ended spans whose start wasn't reported."""
        self.first_seen = now
        self.last_seen = now


@dataclass(slots=True)
class Closed:
    """Spans that can be evaluated now: exactly one turn (``sole``), or spans yet to be separated into any number of turns."""

    trace_id: int
    spans: list[Any]
    reason: CloseReason
    complete: bool
    root: Any = None
    sole: bool = False
    """True if the spans are exactly one turn with the root ``root``."""
    remainder: bool = False
    """True if turns below this local root closed before. The remaining spans are then a turn only if their root has a role."""
    logs: dict[int, list[LogPart]] | None = None
    references: dict[str, Any] | None = None
    size: int = 0
    late: bool = False
    """True if the spans arrived after their trace's turns closed. They revise those turns."""
    ancestor: Any = None
    """The application's span above the candidate, which may still be open."""
    continued: bool = False
    """True if an earlier part of the trace closed because it was too large. Only groups that stand alone are then turns."""
    cut_off: bool = False
    """True if the root's parent is a span of this process, but isn't among the spans."""
    beside: int | None = None
    """For a model call: trace id of the only open run without steps, to which the call may belong (lost context)."""
    pending: PendingSpans | None = None
