"""Outlet that exports the metrics through the application's MeterProvider.

Counters and gauges are observable instruments that read the engine's telemetry, as the Prometheus outlet does. Histograms can't be
observable. A turn's histogram values are recorded in the context of the turn's root span, so that exemplars refer to this span.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from opentelemetry.metrics import CallbackOptions, Observation, get_meter_provider

from ..core.caches import ByIdentity
from ..core.semconv import INSTRUMENTS, OTHER, SCOPE, SPAN_LABELS, Instrument
from ..core.telemetry import Labels, Telemetry, TelemetryGroup
from ..core.wellformed import MOST
from ..evaluation.scored_turn import ScoredTurn
from .accounting import observations
from .base import Outlet, Setup
from .log_events import LateOutlet, context_of

if TYPE_CHECKING:
    from opentelemetry.metrics import Histogram, MeterProvider

_groups: ByIdentity[TelemetryGroup] = ByIdentity()
"""Telemetry by provider. Engines share a provider's telemetry, because the SDK ignores callbacks of repeated instruments."""
_groups_lock = threading.Lock()
MAX_SETS = 10_000
"""Number of label sets per instrument and outlet that stay unchanged. Needed because the SDK never removes unused label sets."""
_NO_PROVIDER = "outlets.otlp_metrics: no SDK MeterProvider is configured, so no metrics are exported; configure a MeterProvider, or set the option to false"


class OtlpMetricsOutlet(Outlet):
    """Outlet for an SDK MeterProvider. To avoid name clashes, the provider must not export to the Prometheus outlet's registry."""

    name = "otlp_metrics"
    flushed_at_exit = False

    def __init__(self, provider: MeterProvider, telemetry: Telemetry, version: str) -> None:
        self._provider = provider
        self._telemetry = telemetry
        self._closed = False
        with _groups_lock:
            known = _groups.get(provider)
            self._group = TelemetryGroup() if known is None else known
            _groups.put(provider, self._group)
        meter = provider.get_meter(SCOPE, version)
        self._histograms: dict[str, tuple[Histogram, _LabelSets]] = {}
        for instrument in INSTRUMENTS:
            if instrument.kind == "histogram":
                histogram = meter.create_histogram(
                    instrument.name,
                    instrument.unit,
                    instrument.description,
                    explicit_bucket_boundaries_advisory=list(instrument.buckets),
                )
                self._histograms[instrument.name] = (histogram, _LabelSets(instrument))
            else:
                create = meter.create_observable_counter if instrument.kind == "counter" else meter.create_observable_gauge
                create(instrument.name, [_callback(instrument, self._group)], instrument.unit, instrument.description)
        self._taps = [telemetry.tap(item.name) for item in INSTRUMENTS if item.kind == "histogram" and item.about_us]
        self._group.join(telemetry)

    def emit(self, batch: Sequence[ScoredTurn]) -> None:
        _, fault = self.render(batch, self._record)
        self._record_tapped()
        if fault is not None:
            raise fault

    def _record(self, scored: ScoredTurn) -> None:
        context = context_of(scored.root)
        for name, labels, value in observations(scored):
            if name in self._histograms:
                histogram, label_sets = self._histograms[name]
                histogram.record(value, label_sets.attributes(self._telemetry.folded(name, labels)), context=context)

    def flush(self, timeout: float) -> bool:
        """Flush the provider. The SDK waits for an export in progress, even if that export takes longer than ``timeout``."""
        self._record_tapped()
        return bool(self._provider.force_flush(timeout * 1000))  # type: ignore[attr-defined]  # the SDK's, see usable()

    def close(self) -> None:
        """Record remaining values, then stop using the provider. The application closes the provider."""
        if not self._closed:
            self._closed = True
            self._record_tapped()
            self._group.leave(self._telemetry)

    def _record_tapped(self) -> None:
        for tapped in self._taps:
            for _ in range(len(tapped)):
                name, labels, value = tapped.popleft()
                histogram, label_sets = self._histograms[name]
                histogram.record(value, label_sets.attributes(labels))


class _LabelSets:
    def __init__(self, instrument: Instrument) -> None:
        self._names = instrument.attributes
        self._bounded = not SPAN_LABELS.isdisjoint(instrument.attributes)
        self._sets: set[Labels] = set()

    def bounded(self, labels: Labels) -> Labels:
        """Return ``labels``. If the instrument has too many label sets, replace label values from spans with ``__other__``."""
        if not self._bounded or labels in self._sets:
            return labels
        if len(self._sets) >= MAX_SETS:
            return tuple([OTHER if name in SPAN_LABELS else label for name, label in zip(self._names, labels, strict=True)])
        self._sets.add(labels)
        return labels

    def attributes(self, labels: Labels) -> dict[str, str]:
        return dict(zip(self._names, self.bounded(labels), strict=True))


def _callback(instrument: Instrument, group: TelemetryGroup) -> Callable[[CallbackOptions], Iterable[Observation]]:
    label_sets = _LabelSets(instrument)

    def read(_: CallbackOptions) -> Iterable[Observation]:
        family = group.read(instrument.name)
        if family is None:
            return []
        sums: dict[Labels, float] = {}
        for labels, value in family.values.items():
            bounded = label_sets.bounded(labels)
            sums[bounded] = sums.get(bounded, 0) + value
        # The SDK sends an int as 64 bits, and drops the whole export if an int doesn't fit.
        return [
            Observation(value if abs(value) <= MOST else float(value), label_sets.attributes(labels))
            for labels, value in sums.items()
        ]

    return read


def outlet_from(wanted: bool, setup: Setup) -> Outlet:
    return LateOutlet(
        OtlpMetricsOutlet.name,
        get_meter_provider if setup.meter_provider is None else lambda: setup.meter_provider,
        lambda provider: OtlpMetricsOutlet(provider, setup.telemetry, setup.version),
        _NO_PROVIDER,
    )
