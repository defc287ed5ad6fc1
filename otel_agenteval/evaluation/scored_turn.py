"""Data types for a turn and its scores on their way to the outlets."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..core.score import Exchange, Kind, Score
from ..core.tenancy import base_of
from ..core.turn import Turn
from ..metrics.bound_metric import BoundMetric
from ..spans.record import SpanRecord
from .redaction import Redactor


class Receipt(Protocol):
    """Receipt for a judge job. Acknowledge the receipt when the job's score has been emitted."""

    def acknowledge(self) -> None: ...


@dataclass(slots=True)
class Root:
    """Span that scores refer to, with the data that is needed after the span ends."""

    trace_id: int
    span_id: int
    sampled: bool = True
    """True if the trace is exported. Exemplars must not refer to traces that aren't exported."""
    trace_state: Any = None
    resource: Mapping[str, Any] = field(default_factory=dict)
    tenant: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def trace_key(self) -> int:
        """Trace ID that includes the tenant (see :mod:`otel_agenteval.core.tenancy`)."""
        return base_of(self.tenant) + self.trace_id


@dataclass(frozen=True, slots=True)
class Judged:
    """Details of a judged score: sampling, model, cost, and judge calls."""

    kind: Kind
    probability: float
    """Probability that a received turn is judged."""
    model: str | None = None
    """Model of the last judge call. Without a judge call, the default model or None."""
    cost_usd: float | None = None
    """Cost of the successful judge calls, or None if unknown."""
    decided_by: str = "rate"
    """Origin of the probability: ``rate``, ``rule`` (``always_if``), ``quota``, or the metric in ``sample.cascade.after``."""
    upstream: float | None = None
    """Probability that head samplers kept the trace, or None if unknown."""
    called_model: bool = True
    """False if the score didn't need a judge call, for example because the turn is empty."""
    input_truncated: bool = False
    """True if the judge read only part of the material, because the material exceeded ``judge.max_input_tokens``."""
    exchanges: Sequence[Exchange] = ()
    """The judge calls in order, for outlets that keep content."""


@dataclass(slots=True)
class ScoredTurn:
    """A turn and its scores on their way to the outlets."""

    turn: Turn
    root: Root
    scores: Sequence[Score]
    supersedes: str | None = None
    """ID of the turn whose scores this revision replaces, or None."""
    new: bool = True
    """False for a revision, whose turn and scores must not be counted again."""
    conversation: bool = False
    """True for an entire conversation, whose turns were counted separately."""
    final: bool = True
    """False for an ended conversation that only got new signals, so that it isn't judged again."""
    size: int = 0
    """Estimated bytes that this turn takes in a queue."""
    seconds: float = 0.0
    sources: Mapping[str, str] = field(default_factory=dict)
    events: Collection[str] = ()
    """Names of the events on the turn's spans, if a sampling condition uses event names."""
    judged: Judged | None = None
    """Details of a judged score that arrives after the turn was counted."""
    is_feedback: bool = False
    content: Mapping[str, str] = field(default_factory=dict)
    """The turn's content for log events, by attribute. Empty unless the configuration exports content."""
    redactor: Redactor | None = None
    """Redactor that uses the same markers throughout the turn, or None before the first redaction."""
    redacted: int = 0
    """Number of scores, from the start of the list, that are already redacted."""
    named: bool = False
    """True if the names and IDs in the turn and in its resource are redacted."""
    counted_as: str | None = None
    """Turn ID of the first revision, under which the turn was counted, or None if this is the turn's own ID."""
    absorbs: Sequence[str] = ()
    """IDs of turns that were counted separately, before this turn absorbed them."""
    pending: Sequence[BoundMetric] = ()
    """Metrics to evaluate later on the worker: heavy metrics, metrics over budget, and metrics that ``expect()`` turns on."""
    spans: Sequence[SpanRecord] = ()
    receipt: Receipt | None = None
    on_span: Collection[int] = ()
    """Indexes of :attr:`scores` that are events on the exported root span. Writing the events sets this attribute."""

    def add_scores(self, scores: Sequence[Score]) -> None:
        self.scores = [*self.scores, *scores]

    @property
    def of_turn_itself(self) -> bool:
        """False if this object contains only judged scores or user feedback, which arrive after the turn's other scores."""
        return self.judged is None and not self.is_feedback

    @property
    def first_id(self) -> str:
        return self.counted_as or self.turn.turn_id
