"""Encoding of all metrics as one OTLP request, made when it is due.

Observations cost nothing beyond counting. The accumulators are shown to the SDK's encoder as collected metrics. All of them are
cumulative. Unlike the SDK's, histograms accept negative values, as in Prometheus.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from ...core import semconv
from ...core.extras import late_imports
from ...core.semconv import INSTRUMENTS, Instrument
from ...core.telemetry import Distribution, Exemplar, Family, Labels, Telemetry
from ...core.wellformed import MOST, for_label

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import Metric


class MetricsEncoder:
    """Encoder of the accumulators, for one thread at a time. Counts were 0 at ``since``, in nanoseconds since the epoch."""

    def __init__(self, telemetry: Telemetry, version: str, since: int) -> None:
        self._telemetry = telemetry
        self._version = version
        self._resource: Resource | None = None
        exemplars = os.environ.get("OTEL_METRICS_EXEMPLAR_FILTER", "").strip().lower() != "always_off"
        self._views = [_InstrumentView(instrument, since, exemplars=exemplars) for instrument in INSTRUMENTS]

    def request(self, now: int, instance_id: str) -> bytes:
        """Return a request with all metrics at ``now``, in Unix nanoseconds, or an empty one."""
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
    """An instrument's values as the SDK would collect them."""

    def __init__(self, instrument: Instrument, since: int, *, exemplars: bool) -> None:
        self.name = instrument.name
        self._instrument = instrument
        self._since = since
        """Start time of a new label set."""
        self._starts: dict[Labels, int] = {}
        """Start times of the last request's label sets. An evicted one that returns starts again."""
        self._exemplars = exemplars
        self._newest = 0.0
        """Time of the latest exported exemplar in Unix seconds. Each is sent once."""

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
                export.NumberDataPoint(self._attributes(labels), starts[labels], now, _number(value))
                for labels, value in family.values.items()
            ]
            cumulative = export.AggregationTemporality.CUMULATIVE
            data = export.Gauge(numbers) if instrument.kind == "gauge" else export.Sum(numbers, cumulative, is_monotonic=True)
        self._starts, self._since = starts, now
        return export.Metric(self.name, instrument.description, instrument.unit, data) if starts else None

    def _attributes(self, labels: Labels) -> dict[str, str]:
        return dict(zip(self._instrument.attributes, labels, strict=True))

    def _point(self, labels: Labels, one: Distribution, start: int, now: int) -> Any:
        from opentelemetry.sdk.metrics import Exemplar as SdkExemplar
        from opentelemetry.sdk.metrics.export import HistogramDataPoint

        def exemplar(kept: Exemplar) -> SdkExemplar:
            ids = (int(kept.labels[name], 16) for name in ("span_id", "trace_id"))
            return SdkExemplar({}, _number(kept.value), round(kept.time_s * 1e9), *ids)

        sent = [kept for kept in one.exemplars if self._exemplars and kept is not None and kept.time_s > self._newest]
        total: Any = one.sum if one.least >= 0 else None  # OTLP forbids sums that can decrease
        return HistogramDataPoint(
            self._attributes(labels), start, now, sum(one.counts), total, one.counts, self._instrument.buckets, one.least, one.most,
            [exemplar(kept) for kept in sent],
        )  # fmt: skip


def _number(value: float) -> float:
    """Return a number that OTLP can hold. An integer beyond 64 bits becomes a float."""
    return value if abs(value) <= MOST else float(value)
