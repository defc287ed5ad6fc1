"""What every outlet gets and must do.

A score is made once; outlets are renderings of it. All of them run on the worker, except the span event, which can only
be written while the root is ending (see ``span_events.py``).
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from ..core.score import Kind, Score
from ..core.semconv import EMIT_RECORDS
from ..core.telemetry import Telemetry
from ..core.tenancy import base_of
from ..core.turn import Turn
from ..evaluation.redaction import Redactor
from ..judging.queues import Job

_log = logging.getLogger("otel_agenteval")


@dataclass(slots=True)
class Root:
    """The span that scores are about: enough of it to point at it long after it ended."""

    trace_id: int
    span_id: int
    sampled: bool = True
    """Whether the trace is exported: exemplars must not point at traces that nobody keeps."""
    trace_state: Any = None
    """The SDK's TraceState, where there is one."""
    resource: Mapping[str, Any] = field(default_factory=dict)
    """Resource attributes of the service that made the root."""
    tenant: str | None = None
    """Whose it is, where the sidecar has tenants."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """What the configuration says of the tenant."""

    @property
    def trace_key(self) -> int:
        """What the receiver knows its trace by, see :mod:`otel_agenteval.core.tenancy`."""
        return base_of(self.tenant) + self.trace_id


@dataclass(frozen=True, slots=True)
class Judged:
    """How a judged score came to be."""

    kind: Kind
    """``llm`` or ``embed``."""
    probability: float
    """P(judged | the turn was seen)."""
    model: str | None = None
    """Who was asked last."""
    cost_usd: float | None = None
    """Of all questions; None while any of them has no known price."""
    decided_by: str = "rate"
    """What made the probability: ``rate``, ``rule``, ``quota``, or the metric that was asked before."""
    upstream: float | None = None
    """P(the trace was kept by head samplers); None where nobody knows."""
    asked: bool = True
    """Whether it took a question; some turns answer for themselves, as an empty one does."""
    input_truncated: bool = False
    """Whether the judge did not see all of what it was to judge: it was longer than ``judge.max_input_tokens``."""


@dataclass(slots=True)
class ScoredTurn:
    """One evaluated turn on its way out."""

    turn: Turn
    root: Root
    scores: Sequence[Score]
    supersedes: str | None = None
    """The turn id whose scores these replace (revisions)."""
    new: bool = True
    """False for a revision: counters must not count the turn or its scores twice."""
    conversation: bool = False
    """Whether the turn is a whole conversation, whose turns were counted one by one."""
    size: int = 0
    """Bytes it is taken to hold in a queue."""
    seconds: float = 0.0
    """Time that its metrics took."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """Where each of the turn's references came from."""
    events: Collection[str] = ()
    """Names of the events on its spans, where a condition asks for some."""
    judged: Judged | None = None
    """Of a score that a judge made after the turn was counted: how."""
    content: Mapping[str, str] = field(default_factory=dict)
    """What log events say of the turn's content, by attribute; nothing unless that was asked for."""
    redactor: Redactor | None = None
    """Takes out what may not leave, with the same markers throughout the turn; None while nothing was taken out."""
    redacted: int = 0
    """How many of the scores, from the first one on, have been through it."""
    counted_as: str | None = None
    """The turn id of its first revision, under which the turn was counted; None where that is its own."""
    absorbs: Sequence[str] = ()
    """Ids of other turns that were counted, and turned out to be parts of this one."""

    @property
    def first_id(self) -> str:
        """The turn id under which the turn was counted, whatever its revisions are called."""
        return self.counted_as or self.turn.turn_id


@dataclass(frozen=True, slots=True)
class Verdict:
    """A judged score on its way to the worker."""

    scored: ScoredTurn
    job: Job
    """What it comes of. It may be sent out as long as nobody else has claimed that."""
    settle: Callable[[], None]
    """To be called once it was sent out."""
    keep: Callable[[], None]
    """To be called when it is not sent out: what was paid for is remembered."""


class Outlet(Protocol):
    """A place that scores leave through."""

    name: str
    """As in the counter ``agenteval.emit.errors{outlet}``."""

    def emit(self, batch: Sequence[ScoredTurn]) -> None:
        """Render a batch. May do I/O; may raise (the pipeline counts it, and the other outlets still run)."""

    def flush(self, timeout: float) -> bool:
        """Hand over what is buffered, within ``timeout`` seconds; False when that was not all."""

    def close(self) -> None:
        """Release what the outlet holds. Safe to call twice."""


@runtime_checkable
class OwnDelivery(Outlet, Protocol):
    """An outlet that sends by itself, so that nobody else hands over its rest at exit."""

    def begin_exit(self) -> None:
        """This is the end: start no thread any more; what is flushed now is flushed for the last time."""


class RecordAccount:
    """What became of an outlet's records: ``made`` = ``delivered`` + ``waiting`` + what ``failed`` by reason. Thread-safe.

    Args:
        outlet: whose.
        telemetry: counts them as ``agenteval.emit.records{outlet, outcome}``; None where nobody asks.
    """

    def __init__(self, outlet: str, telemetry: Telemetry | None = None) -> None:
        self._outlet = outlet
        self._telemetry = telemetry
        self.reset()

    def reset(self) -> None:
        """Begin anew: in a forked child, what the parent made is the parent's."""
        self._lock = threading.Lock()
        self.made = 0
        """Records that were rendered here, or found where an earlier process had left them."""
        self.delivered = 0
        self.failed: Counter[str] = Counter()

    @property
    def waiting(self) -> int:
        """Records that are still to be delivered."""
        return self.made - self.delivered - sum(self.failed.values())

    def add(self, records: int) -> None:
        """So many were made."""
        with self._lock:
            self.made += records

    def settle(self, outcome: str, records: int) -> None:
        """So many were ``sent``, or never will be, for a reason."""
        if not records:
            return
        with self._lock:
            if outcome == "sent":
                self.delivered += records
            else:
                self.failed[outcome] += records
        if self._telemetry is not None:
            self._telemetry.add(EMIT_RECORDS, records, outlet=self._outlet, outcome=outcome)

    def to_dict(self) -> dict[str, Any]:
        """For the ledger."""
        return {"made": self.made, "delivered": self.delivered, "waiting": self.waiting, "failed": dict(self.failed)}


@runtime_checkable
class Retains(Outlet, Protocol):
    """An outlet that keeps what it cannot hand over yet, within bounds, and keeps count of it."""

    records: RecordAccount

    @property
    def full(self) -> bool:
        """Whether its bound is reached."""

    def keep_all(self) -> None:
        """Drop nothing for lack of room any more: whoever emits asks for :attr:`full` first."""


@runtime_checkable
class TakesFates(Outlet, Protocol):
    """An outlet that also keeps what became of judged metrics that gave no score."""

    def note(self, turn_id: str, metric: str, fate: str) -> None:
        """Called on any thread; must not wait for anything."""


class LateOutlet:
    """An outlet whose provider may be set up only after us: looked for with each batch until it is there.

    Args:
        name: of the outlet.
        make: the outlet, or None while its provider leads nowhere.
        missing: said once when a batch had nowhere to go.
    """

    def __init__(self, name: str, make: Callable[[], Outlet | None], missing: str) -> None:
        self.name = name
        self._make = make
        self._missing = missing
        self._said = False
        self._outlet: Outlet | None = None

    def emit(self, batch: Sequence[ScoredTurn]) -> None:
        """Pass the batch on, if there is somebody to take it."""
        if self._outlet is None:
            self._outlet = self._make()
        if self._outlet is not None:
            self._outlet.emit(batch)
        elif not self._said:
            self._said = True
            _log.info("%s", self._missing)

    def flush(self, timeout: float) -> bool:
        """Flush the outlet, if it was made."""
        return self._outlet.flush(timeout) if self._outlet is not None else True

    def close(self) -> None:
        """Close the outlet, if it was made."""
        if self._outlet is not None:
            self._outlet.close()

    def after_fork_in_child(self) -> None:
        """Make it anew in the child, which has an id of its own."""
        self._outlet = None
