"""A turn with its scores, from the moment it is read until it has left through every outlet."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..core.score import Kind, Score
from ..core.tenancy import base_of
from ..core.turn import Turn
from ..metrics.bound_metric import BoundMetric
from .redaction import Redactor


class Receipt(Protocol):
    """A job that is done once its score was emitted."""

    def acknowledge(self) -> None:
        """The score was emitted."""


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
    final: bool = True
    """False for a conversation of which only the signals are new: judges are not asked about it again."""
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
    pending: Sequence[BoundMetric] = ()
    """Metrics that are still to be evaluated on the worker: heavy ones, and those that the time budget cut."""
    receipt: Receipt | None = None
    """Of a judged score: the job that it comes of."""

    @property
    def first_id(self) -> str:
        """The turn id under which the turn was counted, whatever its revisions are called."""
        return self.counted_as or self.turn.turn_id
