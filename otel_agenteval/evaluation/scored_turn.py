"""A turn with its scores, from the moment it is read until it has left through every outlet."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..core.exchange import Exchange
from ..core.score import Kind, Score
from ..core.tenancy import base_of
from ..core.turn import Turn
from ..metrics.bound_metric import BoundMetric
from ..spans.record import SpanRecord
from .redaction import Redactor


class Receipt(Protocol):
    """A job that is done once its score was emitted."""

    def acknowledge(self) -> None:
        """The score was emitted."""


@dataclass(slots=True)
class Root:
    """The span that scores belong to: enough of it to refer to it long after it ended."""

    trace_id: int
    span_id: int
    sampled: bool = True
    """Whether the trace is exported: exemplars must not refer to traces that are not kept."""
    trace_state: Any = None
    """The SDK's TraceState, where there is one."""
    resource: Mapping[str, Any] = field(default_factory=dict)
    """Resource attributes of the service that made the root."""
    tenant: str | None = None
    """The tenant, where the sidecar has tenants."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels of the tenant in the configuration."""

    @property
    def trace_key(self) -> int:
        """The key of its trace in the receiver, see :mod:`otel_agenteval.core.tenancy`."""
        return base_of(self.tenant) + self.trace_id


@dataclass(frozen=True, slots=True)
class Judged:
    """How a judged score came to be."""

    kind: Kind
    """``llm`` or ``embed``."""
    probability: float
    """P(judged | the turn was seen)."""
    model: str | None = None
    """The model that was asked last."""
    cost_usd: float | None = None
    """Cost of all questions; None if the price of any of them is unknown."""
    decided_by: str = "rate"
    """What determined the probability: ``rate``, ``rule``, ``quota``, ``budget``, or the metric that was asked before."""
    upstream: float | None = None
    """P(the trace was kept by head samplers); None if unknown."""
    asked: bool = True
    """Whether a model was asked. Some turns need no question, for example an empty one."""
    input_truncated: bool = False
    """Whether the judge saw only a part of the material, because it was longer than ``judge.max_input_tokens``."""
    said: Sequence[Exchange] = ()
    """What was asked, in order; for outlets that keep content."""


@dataclass(slots=True)
class ScoredTurn:
    """One evaluated turn with its scores, on its way to the outlets."""

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
    """Estimated bytes that it occupies in a queue."""
    seconds: float = 0.0
    """Time that its metrics took."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """Where each of the turn's references came from."""
    events: Collection[str] = ()
    """Names of the events on its spans, if a sampling condition uses them."""
    judged: Judged | None = None
    """How a judged score was made, if the turn was already counted."""
    said_later: bool = False
    """Whether its scores are what people said of a turn that was counted before."""
    content: Mapping[str, str] = field(default_factory=dict)
    """The turn's content for log events, by attribute; empty unless the configuration exports content."""
    redactor: Redactor | None = None
    """Redacts with the same markers throughout the turn; None until something was redacted."""
    redacted: int = 0
    """How many of the scores, from the first on, were redacted."""
    named: bool = False
    """Whether the names and ids of the turn and its resource are those that may leave."""
    counted_as: str | None = None
    """The turn id of its first revision, under which the turn was counted; None if that is its own id."""
    absorbs: Sequence[str] = ()
    """Ids of turns that were counted and then turned out to be parts of this one."""
    pending: Sequence[BoundMetric] = ()
    """Metrics that are still to be evaluated on the worker: heavy ones, and those that the time budget cut."""
    spans: Sequence[SpanRecord] = ()
    """The spans that it was read from, where an outlet asks for them."""
    receipt: Receipt | None = None
    """Of a judged score: the job that made it."""
    on_span: Collection[int] = ()
    """Places in :attr:`scores` of those that the exported root span carries as events. Whoever writes the events notes them."""

    @property
    def of_turn_itself(self) -> bool:
        """Whether it is what was made of the turn's spans, with its content: not a score that comes later."""
        return self.judged is None and not self.said_later

    @property
    def first_id(self) -> str:
        """The turn id under which the turn was counted, whatever its revisions are called."""
        return self.counted_as or self.turn.turn_id
