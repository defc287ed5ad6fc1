"""What is known of traces while they are open, and what is handed on when a turn closes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..core.turn import CloseReason
from ..dialects.step import ROOT_ROLES, UNKNOWN
from ..spans.record import LogPart

OWNER_ROLES = ROOT_ROLES | {UNKNOWN}
"""Roles that a turn root may have, or may turn out to have."""


def size_of(attributes: Mapping[str, Any]) -> int:
    """Bytes that a span is taken to hold: its texts, and a share for everything else."""
    size = 512
    for value in attributes.values():
        if value.__class__ is str:
            size += len(value)
    return size


class Portion:
    """Spans that share one outcome: the turns that they were closed into are scored, or lost.

    The first outcome counts: what was scored once is not lost by what happens to a part of it later.

    Args:
        spans: how many.
        count: gets the outcome and the number, once.
    """

    __slots__ = ("_count", "spans")

    def __init__(self, spans: int, count: Callable[[str, int], None]) -> None:
        self.spans = spans
        self._count = count

    def count(self, outcome: str) -> None:
        """Count their outcome, unless it was counted before."""
        spans, self.spans = self.spans, 0
        if spans:
            self._count(outcome, spans)


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds in time (seconds), turns, spans and bytes."""

    decision_delay: float = 2.0
    idle_timeout: float = 300.0
    max_duration: float = 3600.0
    max_open: int = 50_000
    max_spans: int = 2_000
    max_bytes: int = 4 * 1024 * 1024
    total_bytes: int = 256 * 1024 * 1024


class Owner:
    """A span that may be a turn root, and what counts towards it."""

    # Defaults are on the class: an owner is made for every turn, and most of these never change.
    heir: Owner | None = None
    """The owner that got the spans, where this one turned out to be no root."""
    references: dict[str, Any] | None = None
    size = 0
    turns = 0
    ended = False
    closed = False
    deadline = 0.0
    started = 0.0
    leak = False
    """Whether it began below a request that was over."""
    missing = False
    """Whether a span of it was pruned."""
    ids: set[int] | None = None
    """Ids of its spans, where its trace has other owners."""
    below: dict[Owner, None] | None = None
    """Owners that count towards it and are not done, in the order of their starts."""
    orphan = False
    """Whether its parent is a span of this process that was never seen: then only an agent is a root."""

    def __init__(self, span: Any, role: str | None, span_id: int, up: Owner | None) -> None:
        self.span = span
        self.role = role
        self.takes_all = role in OWNER_ROLES
        """Whether whatever starts below it counts towards it, whatever it is."""
        self.span_id = span_id
        self.up = up
        """The application's span that this one counts towards as a whole."""
        self.open = 1
        """Open spans, itself and owners below it included."""
        self.members: list[Any] = []
        self.genai = role is not None


class Share:
    """The part of the open traces that belongs to one tenant."""

    __slots__ = ("seen", "size", "traces")

    def __init__(self) -> None:
        self.traces: OrderedDict[int, Trace] = OrderedDict()
        """Its open traces, the oldest first."""
        self.seen: OrderedDict[int, Trace] = OrderedDict()
        """Those of them that only wait for their deadline."""
        self.size = 0
        """Bytes of them."""


_NO_OWNERS: dict[Owner, None] = {}


class Trace:
    """What is known of one trace at the moment."""

    owners = 0
    """Owners that are not done: open, or closed with something below them open."""
    several = False
    """Whether there was ever more than one owner."""
    tops = _NO_OWNERS
    """Open owners that count towards none, in the order of their starts."""
    turns = _NO_OWNERS
    """Open owners that are turns for certain. Most traces that are received have none: a trace gets dicts of its own with the first."""
    continued = False
    """Whether it goes on after a part of it was closed at a bound."""
    loose_size = 0
    logs: dict[int, list[LogPart]] | None = None
    ids: set[bytes] | None = None
    """Ids of the spans that were received over a wire."""
    root_seen = False
    deadline = 0.0
    share: Share | None = None
    """Its tenant's, where it has one."""

    def __init__(self, trace_id: int, now: float) -> None:
        self.trace_id = trace_id
        self.nodes: dict[int, Owner] = {}
        """Every span that started here → the owner that it counts towards."""
        self.loose: list[Any] = []
        self.first_seen = now
        self.last_seen = now


@dataclass(slots=True)
class Closed:
    """Spans that wait for nothing more: exactly one turn (``sole``), or any number of turns that are still to be separated."""

    trace_id: int
    spans: list[Any]
    reason: CloseReason
    complete: bool
    root: Any = None
    """The owner's span."""
    sole: bool = False
    """Whether the owner is the root of exactly one turn that holds all spans."""
    remainder: bool = False
    """Whether turns of this local root were closed before: then what is left is no turn of its own."""
    logs: dict[int, list[LogPart]] | None = None
    references: dict[str, Any] | None = None
    size: int = 0
    late: bool = False
    """Whether these came after the trace's turns were closed: they revise them."""
    above: Any = None
    """The application's span that the owner stands below: it may be open still."""
    continued: bool = False
    """Whether the trace goes on after a part of it was closed at a bound: only what is a turn by itself is one here."""
    cut_off: bool = False
    """Whether the root is one although its parent is a span of this process, which is not among the spans."""
    portion: Portion | None = None
    """The account of its spans, once they are separated into turns."""
