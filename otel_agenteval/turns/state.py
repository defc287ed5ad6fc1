"""Data types for open traces, turn owners and closed spans."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..core.turn import CloseReason
from ..dialects.step import ROOT_ROLES, UNKNOWN
from ..spans.record import LogPart

OWNER_ROLES = ROOT_ROLES | {UNKNOWN}
"""Roles of spans that are turn roots or may become one."""


def size_of(attributes: Mapping[str, Any]) -> int:
    """Return the estimated size of a span in bytes.

    It is the length of its texts plus a fixed amount for the rest.
    """
    size = 512
    for value in attributes.values():
        if value.__class__ is str:
            size += len(value)
    return size


class Portion:
    """Spans that share one outcome: the turns that contain them were scored or dropped.

    Only the first outcome counts. Spans that were scored stay scored, whatever happens to a part of them later.

    Args:
        spans: number of spans.
        count: called once with the outcome and the number.
    """

    __slots__ = ("_count", "spans")

    def __init__(self, spans: int, count: Callable[[str, int], None]) -> None:
        self.spans = spans
        self._count = count

    def count(self, outcome: str) -> None:
        """Count the outcome of the spans, unless it was counted before."""
        spans, self.spans = self.spans, 0
        if spans:
            self._count(outcome, spans)


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits in time (seconds), turns, spans and bytes."""

    decision_delay: float = 2.0
    idle_timeout: float = 300.0
    max_duration: float = 3600.0
    max_open: int = 50_000
    max_spans: int = 2_000
    max_bytes: int = 4 * 1024 * 1024
    total_bytes: int = 256 * 1024 * 1024


class Owner:
    """A span that may be a turn root, with the spans that count towards it."""

    # Defaults are on the class because every turn creates an owner, and most of these attributes never change.
    heir: Owner | None = None
    """The owner that took over the spans if this one isn't a root."""
    references: dict[str, Any] | None = None
    size = 0
    turns = 0
    ended = False
    closed = False
    deadline = 0.0
    started = 0.0
    leak = False
    """True if it started below a request that had ended."""
    missing = False
    """True if one of its spans was pruned."""
    ids: set[int] | None = None
    """Ids of its spans, or None if its trace has no other owner."""
    below: dict[Owner, None] | None = None
    """Unfinished owners that count towards it, by start time."""
    orphan = False
    """True if its parent is a span of this process that was never seen. Only an agent can then be a root."""

    def __init__(self, span: Any, role: str | None, span_id: int, up: Owner | None) -> None:
        self.span = span
        self.role = role
        self.takes_all = role in OWNER_ROLES
        """True if all spans that start below it count towards it."""
        self.span_id = span_id
        self.up = up
        """The application's span that contains this one and all its spans."""
        self.open = 1
        """Number of open spans, including itself and the owners below it."""
        self.members: list[Any] = []
        self.genai = role is not None


class Share:
    """The open traces of one tenant."""

    __slots__ = ("seen", "size", "traces")

    def __init__(self) -> None:
        self.traces: OrderedDict[int, Trace] = OrderedDict()
        """Open traces of the tenant, oldest first."""
        self.seen: OrderedDict[int, Trace] = OrderedDict()
        """Traces that only wait for their deadline."""
        self.size = 0
        """Size of the traces in bytes."""


_NO_OWNERS: dict[Owner, None] = {}


class Trace:
    """The current state of one trace."""

    owners = 0
    """Number of unfinished owners: open, or closed while a span below them is open."""
    several = False
    """True if the trace has ever had more than one owner."""
    tops = _NO_OWNERS
    """Open owners without an owner above, by start time."""
    turns = _NO_OWNERS
    """Open owners that are certainly turns.

    Most received traces have none, so a trace gets its own dictionaries only with its first owner.
    """
    continued = False
    """True if the trace continues after a part of it closed at a limit."""
    loose_size = 0
    logs: dict[int, list[LogPart]] | None = None
    ids: set[bytes] | None = None
    """Ids of the spans that were received over the network."""
    root_seen = False
    deadline = 0.0
    share: Share | None = None
    """The share of its tenant, if it has one."""

    def __init__(self, trace_id: int, now: float) -> None:
        self.trace_id = trace_id
        self.nodes: dict[int, Owner] = {}
        """Owner of each span that started in this process, by span id."""
        self.loose: list[Any] = []
        self.first_seen = now
        self.last_seen = now


@dataclass(slots=True)
class Closed:
    """Spans that can be evaluated now.

    They are exactly one turn (``sole``), or any number of turns that still have to be separated.
    """

    trace_id: int
    spans: list[Any]
    reason: CloseReason
    complete: bool
    root: Any = None
    """The owner's span."""
    sole: bool = False
    """True if the owner is the root of exactly one turn that contains all spans."""
    remainder: bool = False
    """True if turns below this local root closed before. The remaining spans are then not a turn of their own."""
    logs: dict[int, list[LogPart]] | None = None
    references: dict[str, Any] | None = None
    size: int = 0
    late: bool = False
    """True if the spans arrived after their trace's turns closed. They revise those turns."""
    above: Any = None
    """The application's span above the owner, which may still be open."""
    continued: bool = False
    """True if the trace continues after a part of it closed at a limit. Only groups that stand alone are then turns."""
    cut_off: bool = False
    """True if the root's parent is a span of this process that isn't among the spans."""
    portion: Portion | None = None
    """The account of the spans, set when they are separated into turns."""
