"""Encoding of scores and metrics as OTLP requests.

A turn's records have the Resource of the service that created the turn's root span. Backends then show the records with this
service's telemetry. Data that a turn's records share is encoded once per turn. Data that repeats across turns, such as metric
versions, is cached.

Metrics are encoded only when a request is due, so an observation costs only a counter update. Sums and histograms are cumulative.
Like Prometheus histograms, histograms can contain negative values.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from ...config.types import LogEvents
from ...core import semconv
from ...core.extras import late_imports
from ...core.finding import SEVERITIES
from ...core.score import Score, ScoreSummary
from ...core.semconv import INSTRUMENTS, Instrument
from ...core.telemetry import Distribution, Family, Labels, Telemetry
from ...core.wellformed import MOST, for_label
from ...evaluation.scored_turn import Root, ScoredTurn
from ..log_events import change_attributes, scores_to_log, severity_number, turn_attributes
from .protobuf import BYTES, FIXED32, FIXED64, AttributeWriter, as_double, as_fixed32, as_fixed64, delimited, tag, utf8, varint

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import Metric

    from ...statistics.changes import Change

_SAMPLED = 0x1
_HAS_IS_REMOTE, _IS_REMOTE = 0x100, 0x200
_MAX_METRICS, _LONGEST_CONSTANT = 1_000, 2_048
"""Maximum number of cached attribute sets. Sets with over ``_LONGEST_CONSTANT`` encoded bytes after the value aren't cached."""
_RESULT_ID = 32

# Field numbers of a request are the same for logs and spans: ResourceLogs or ResourceSpans 1, which contains Resource 1 and
# ScopeLogs or ScopeSpans 2, which contains the scope 1 and the records 2.
_RECORD = tag(2, BYTES)
_CHANGE_NAME = delimited(12, utf8(semconv.CHANGE_EVENT))
_EVENT_NAME = delimited(12, utf8(semconv.EVENT))
_SEVERITIES = {number: bytes((0x10, number)) for number in (9, 13, 17)}
_INFO, _WARN = _SEVERITIES[9], _SEVERITIES[13]
_RECORD_TIME, _OBSERVED_TIME = tag(1, FIXED64), tag(11, FIXED64)
_RECORD_FLAGS = tag(8, FIXED32) + as_fixed32(_SAMPLED)

_INTERNAL = b"\x30\x01"
_START, _END = tag(7, FIXED64), tag(8, FIXED64)
_SPAN_FLAGS, _LINK_FLAGS = tag(16, FIXED32), tag(6, FIXED32)
_EVENT_TIME = tag(1, FIXED64)
_SPAN_EVENT_NAME = delimited(2, utf8(semconv.EVENT))


class ScoreWriter:
    """Protobuf encoder for score attributes, which are the same as in ``event_attributes``."""

    def __init__(self, field: int) -> None:
        pairs = AttributeWriter(field)
        self._pairs = pairs
        self._name = pairs.text(semconv.EVALUATION_NAME)
        self._result_id = pairs.text(semconv.RESULT_ID)
        self._explanation = pairs.text(semconv.EXPLANATION)
        self._error_type = pairs.text(semconv.ERROR_TYPE)
        self._label = pairs.text(semconv.SCORE_LABEL)
        self._threshold = pairs.double_head(semconv.THRESHOLD)
        self._value = pairs.double_head(semconv.SCORE_VALUE)
        self._verdicts = {verdict: pairs.pair(semconv.PASSED, verdict) for verdict in (True, False)}
        self._severities = {severity: pairs.pair(semconv.SEVERITY, severity) for severity in SEVERITIES}
        self._id_head = self._result_id.head(_RESULT_ID)
        self._known: dict[ScoreSummary, tuple[bytes, bytes, bytes]] = {}

    def __call__(self, score: Score) -> bytes:
        summary, result_id = score.summary, score.result_id
        name, before, after = self._known.get(summary) or self._constants(score, summary)
        if len(result_id) == _RESULT_ID and result_id.isascii():
            parts = [name, self._id_head, result_id.encode(), before]
        else:
            parts = [name, self._result_id(result_id), before]
        if score.value is not None and score.status != "error":
            parts += (self._value, as_double(score.value))
        parts.append(after)
        if score.explanation:
            parts.append(self._explanation(score.explanation))
        return b"".join(parts)

    def _constants(self, score: Score, summary: ScoreSummary) -> tuple[bytes, bytes, bytes]:
        """Return the encoded attributes that scores with this ``summary`` share. There are three parts: before the result ID,
        between the result ID and the value, and after the value.
        """
        facts = score.facts
        before = self._pairs.write(
            {semconv.METRIC_KIND: facts.kind, semconv.METRIC_VERSION: facts.version, semconv.POLICY: facts.policy}
        )
        if facts.threshold is not None:
            before += self._threshold + as_double(facts.threshold)
        after = b""
        if score.status == "error":
            after = self._error_type(score.error_type or "_OTHER")
        else:
            if score.label is not None:
                after += self._label(score.label)
            if score.verdict is not None:
                after += self._verdicts[score.verdict]
            if summary.severity is not None:
                after += self._severities[summary.severity]
        found = self._name(facts.metric), before, after
        if len(after) <= _LONGEST_CONSTANT:
            if len(self._known) >= _MAX_METRICS:
                self._known.clear()
            self._known[summary] = found
        return found


class ScoreEncoder:
    """Encoder that converts scored turns to OTLP export requests. Not thread-safe."""

    def __init__(self, version: str) -> None:
        self._scope = delimited(1, delimited(1, utf8(semconv.SCOPE)), delimited(2, utf8(version)))
        self._of_resource = AttributeWriter(1)
        self._of_record, self._scores = AttributeWriter(6), ScoreWriter(6)
        self._of_span, self._of_event = AttributeWriter(9), ScoreWriter(3)

    def log_records(self, batch: Sequence[ScoredTurn], now: int, instance_id: str, mode: LogEvents = "all") -> tuple[bytes, int]:
        """Return an export request with one log record per score that ``mode`` selects, and the number of records. ``now`` is the
        Unix time in nanoseconds.
        """
        groups = _Groups(self._of_resource, self._scope)
        times = b"".join((_RECORD_TIME, as_fixed64(now), _OBSERVED_TIME, as_fixed64(now), _EVENT_NAME))
        count = 0
        for scored in batch:
            written = scores_to_log(scored, mode)
            if not written:
                continue
            out = groups.records(scored.root.resource)
            root = scored.root
            ids = delimited(9, root.trace_id.to_bytes(16, "big")) + delimited(10, root.span_id.to_bytes(8, "big"))
            shared = self._of_record.write(turn_attributes(scored, instance_id))
            frame = b"".join((times, _RECORD_FLAGS if root.sampled else b"", ids, shared))
            length = len(frame) + 2
            for score in written:
                own = self._scores(score)
                out += (_RECORD, varint(length + len(own)), frame, _SEVERITIES[severity_number(score)], own)
            count += len(written)
        return b"".join(groups.requests()), count

    def change(self, change: Change, root: Root, now: int, instance_id: str) -> bytes:
        groups = _Groups(self._of_resource, self._scope)
        ids = b""
        if root.trace_id:
            ids = delimited(9, root.trace_id.to_bytes(16, "big")) + delimited(10, root.span_id.to_bytes(8, "big"))
        groups.records(root.resource).append(
            delimited(
                2, _RECORD_TIME, as_fixed64(now), _OBSERVED_TIME, as_fixed64(now), _CHANGE_NAME, _RECORD_FLAGS if root.sampled else b"", ids,
                _WARN if change.verdict == "worse" else _INFO, delimited(5, delimited(1, utf8(change.title))),
                self._of_record.write(change_attributes(change, instance_id)),
            )
        )  # fmt: skip
        return b"".join(groups.requests())

    def evaluate_spans(self, batch: Sequence[ScoredTurn], now: int, instance_id: str, *, child: bool) -> tuple[bytes, int]:
        """Return an export request with one span per sampled turn, and the number of spans.

        Turns without scores to export are omitted. A span's events are the turn's scores. If ``child`` is true, the span is a child
        of the turn's root span. Otherwise, the span starts a new trace and links to the turn's root span.
        """
        groups = _Groups(self._of_resource, self._scope)
        count = 0
        for scored in batch:
            written = scores_to_log(scored, "all")
            if not written or not scored.root.sampled:
                continue  # the trace isn't sampled, so a link to it would lead nowhere
            head = _span_head(scored, written, now, child=child)
            attributes = self._of_span.write(turn_attributes(scored, instance_id))
            events = [delimited(11, _EVENT_TIME, as_fixed64(now), _SPAN_EVENT_NAME, self._of_event(score)) for score in written]
            groups.records(scored.root.resource).append(delimited(2, *head, attributes, *events))
            count += 1
        return b"".join(groups.requests()), count


def _span_head(scored: ScoredTurn, written: Sequence[Score], now: int, *, child: bool) -> Iterator[bytes]:
    root = scored.root
    # IDs are derived from the content, so a span that is sent twice is one span.
    seed = hashlib.sha256("".join([score.result_id for score in written]).encode("utf-8", "replace")).digest()
    trace_id, root_id = root.trace_id.to_bytes(16, "big"), root.span_id.to_bytes(8, "big")
    yield delimited(1, trace_id if child else seed[:16])
    yield delimited(2, seed[16:24])
    if child:
        yield delimited(4, root_id)
    else:
        flags = as_fixed32(_SAMPLED | _HAS_IS_REMOTE | _IS_REMOTE)
        yield delimited(13, delimited(1, trace_id), delimited(2, root_id), _LINK_FLAGS, flags)
    yield delimited(5, utf8(f"evaluate {scored.turn.agent}" if scored.turn.agent else "evaluate"))
    yield _INTERNAL
    yield _START + as_fixed64(now - round(scored.seconds * 1e9))
    yield _END + as_fixed64(now)
    yield _SPAN_FLAGS + as_fixed32(_SAMPLED | _HAS_IS_REMOTE | (_IS_REMOTE if child else 0))


class _Groups:
    """Records of one export request, grouped by Resource. Each Resource object is encoded once."""

    def __init__(self, attributes: AttributeWriter, scope: bytes) -> None:
        self._attributes = attributes
        self._scope = scope
        self._of_object: dict[int, list[bytes]] = {}
        self._of_content: dict[bytes, list[bytes]] = {}

    def records(self, resource: Mapping[str, Any]) -> list[bytes]:
        """Return the list that collects the records of ``resource``. Equal Resources share one list."""
        found = self._of_object.get(id(resource))
        if found is None:
            found = self._of_content.setdefault(self._attributes.write(resource), [])
            self._of_object[id(resource)] = found
        return found

    def requests(self) -> Iterator[bytes]:
        for resource, records in self._of_content.items():
            yield delimited(1, delimited(1, resource), delimited(2, self._scope, *records))


class MetricsEncoder:
    """Encoder for metrics. Not thread-safe. Counting started at ``since``, a Unix time in nanoseconds."""

    def __init__(self, telemetry: Telemetry, version: str, since: int) -> None:
        self._telemetry = telemetry
        self._version = version
        self._resource: Resource | None = None
        exemplars = os.environ.get("OTEL_METRICS_EXEMPLAR_FILTER", "").strip().lower() != "always_off"
        self._views = [_InstrumentView(instrument, since, exemplars=exemplars) for instrument in INSTRUMENTS]

    def request(self, now: int, instance_id: str) -> bytes:
        """Return a request with all metrics, or ``b""`` if all metrics are empty. ``now`` is the Unix time in nanoseconds."""
        with late_imports():  # only few processes export metrics
            from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
            from opentelemetry.sdk.metrics import export

        if self._resource is None:
            about = {"service.name": "otel-agenteval", "service.version": self._version, "service.instance.id": instance_id}
            known = {**about, **OTELResourceDetector().detect().attributes}  # environment variables take precedence
            self._resource = Resource({name: for_label(str(value)) for name, value in known.items()})
        metrics = [metric for view in self._views if (metric := view.metric(self._telemetry.read(view.name), now)) is not None]
        if not metrics:
            return b""
        scope = export.ScopeMetrics(InstrumentationScope(semconv.SCOPE, self._version), metrics, "")
        data = export.MetricsData([export.ResourceMetrics(self._resource, [scope], "")])
        body: bytes = encode_metrics(data).SerializeToString()
        return body


class _InstrumentView:
    def __init__(self, instrument: Instrument, since: int, *, exemplars: bool) -> None:
        self.name = instrument.name
        self._instrument = instrument
        self._since = since
        self._starts: dict[Labels, int] = {}
        """Start time of each label set in the latest request. A label set that returns after its eviction gets a new start time."""
        self._exemplars = exemplars
        self._newest = 0.0
        """Unix time of the latest exported exemplar, in seconds. Exemplars up to this time aren't exported again."""

    def metric(self, family: Family, now: int) -> Metric | None:
        from opentelemetry.sdk.metrics import export

        instrument = self._instrument
        starts = {labels: self._starts.get(labels, self._since) for labels in (*family.values, *family.distributions)}
        data: Any
        if instrument.kind == "histogram":
            points = [self._point(labels, one, starts[labels], now) for labels, one in family.distributions.items()]
            data = export.Histogram(points, export.AggregationTemporality.CUMULATIVE)
            times = [kept.time_s for one in family.distributions.values() for kept in one.exemplars if kept is not None]
            self._newest = max([self._newest, *times])
        else:
            numbers = [
                export.NumberDataPoint(dict(zip(instrument.attributes, labels, strict=True)), starts[labels], now, _number(value))
                for labels, value in family.values.items()
            ]
            cumulative = export.AggregationTemporality.CUMULATIVE
            data = export.Gauge(numbers) if instrument.kind == "gauge" else export.Sum(numbers, cumulative, is_monotonic=True)
        self._starts, self._since = starts, now
        return export.Metric(self.name, instrument.description, instrument.unit, data) if starts else None

    def _point(self, labels: Labels, one: Distribution, start: int, now: int) -> Any:
        from opentelemetry.sdk.metrics import Exemplar as SdkExemplar
        from opentelemetry.sdk.metrics.export import HistogramDataPoint

        instrument = self._instrument
        exemplars = [
            SdkExemplar(
                {},
                _number(kept.value),
                round(kept.time_s * 1e9),
                int(kept.labels["span_id"], 16),
                int(kept.labels["trace_id"], 16),
            )
            for kept in one.exemplars
            if self._exemplars and kept is not None and kept.time_s > self._newest
        ]
        total: Any = one.sum if one.least >= 0 else None  # OTLP forbids sums that can decrease
        return HistogramDataPoint(
            dict(zip(instrument.attributes, labels, strict=True)), start, now, sum(one.counts), total, one.counts, instrument.buckets,
            one.least, one.most, exemplars,
        )  # fmt: skip


def _number(value: float) -> float:
    """Return a number that OTLP can represent. Integers that exceed 64 bits become floats."""
    return value if abs(value) <= MOST else float(value)
