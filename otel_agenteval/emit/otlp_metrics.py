"""The metrics through the application's MeterProvider (OTLP, or whatever its readers are).

Counters and gauges are observable and read the accumulators, so they always equal the Prometheus view. Histograms cannot
be observable: their values are recorded one by one, in the context of the evaluated root, which makes the SDK's
exemplars point at it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from opentelemetry.metrics import CallbackOptions, Observation, get_meter_provider

from .. import __version__
from ..names import INSTRUMENTS, SCOPE, Instrument
from ..telemetry import Telemetry, TelemetryGroup
from .accounting import observations
from .base import ScoredTurn
from .log_events import context_of, usable

if TYPE_CHECKING:
    from opentelemetry.metrics import Histogram, Meter, MeterProvider

_groups: WeakKeyDictionary[MeterProvider, TelemetryGroup] = WeakKeyDictionary()
"""The SDK keeps the callbacks of the first instrument of a name only: all engines of a provider have to share them."""
_groups_lock = threading.Lock()


class OtlpMetricsOutlet:
    """Hands the metrics of one engine to a MeterProvider.

    Do not also read that provider with a Prometheus exporter in the registry that the Prometheus outlet uses: the same
    names would be there twice.

    Args:
        telemetry: the engine's accumulators. They are fed by :class:`accounting.Accounting`, whether or not this is on.
        provider: gets one meter, scope ``otel_agenteval``. None is the global one, which may be set after us: the API's
            stand-in passes instruments on to it.
    """

    name = "otlp_metrics"

    def __init__(self, telemetry: Telemetry, provider: MeterProvider | None = None) -> None:
        self._provider = provider
        self._telemetry = telemetry
        self._closed = False
        with _groups_lock:
            made_by = get_meter_provider() if provider is None else provider
            self._group = _groups.setdefault(made_by, TelemetryGroup())
        meter = made_by.get_meter(SCOPE, __version__)
        self._histograms: dict[str, tuple[Histogram, tuple[str, ...]]] = {}
        for instrument in INSTRUMENTS:
            if instrument.kind == "histogram":
                self._histograms[instrument.name] = (_histogram(meter, instrument), instrument.attributes)
            else:
                _observable(meter, instrument, self._group)
        self._taps = [telemetry.tap(item.name) for item in INSTRUMENTS if item.kind == "histogram" and item.about_us]
        self._group.join(telemetry)

    def emit(self, batch: Sequence[ScoredTurn]) -> None:
        """Record the values of the batch, and what the engine measured of itself since the last one."""
        for scored in batch:
            context = context_of(scored.root)
            for name, labels, value in observations(scored):
                if name in self._histograms:
                    histogram, attributes = self._histograms[name]
                    labels = self._telemetry.folded(name, labels)
                    histogram.record(value, dict(zip(attributes, labels)), context=context)
        self._record_tapped()

    def flush(self, timeout: float) -> bool:
        """Ask the provider to export now. The SDK may take longer than ``timeout`` seconds: it ends its running export."""
        self._record_tapped()
        provider = get_meter_provider() if self._provider is None else self._provider
        if not usable(provider):
            return True
        return bool(provider.force_flush(timeout * 1000))  # type: ignore[attr-defined]  # usable() says it is there

    def close(self) -> None:
        """Hand over the rest and stop feeding the provider; it belongs to the application and stays open."""
        if not self._closed:
            self._closed = True
            self._record_tapped()
            self._group.leave(self._telemetry)

    def _record_tapped(self) -> None:
        for tapped in self._taps:
            for _ in range(len(tapped)):
                name, labels, value = tapped.popleft()
                histogram, attributes = self._histograms[name]
                histogram.record(value, dict(zip(attributes, labels)))


def _histogram(meter: Meter, instrument: Instrument) -> Histogram:
    return meter.create_histogram(
        instrument.name,
        instrument.unit,
        instrument.description,
        explicit_bucket_boundaries_advisory=list(instrument.buckets),
    )


def _observable(meter: Meter, instrument: Instrument, group: TelemetryGroup) -> None:
    create = meter.create_observable_counter if instrument.kind == "counter" else meter.create_observable_gauge
    create(instrument.name, [_callback(instrument, group)], instrument.unit, instrument.description)


def _callback(instrument: Instrument, group: TelemetryGroup) -> Callable[[CallbackOptions], Iterable[Observation]]:
    def read(_: CallbackOptions) -> Iterable[Observation]:
        family = group.read(instrument.name)
        if family is None:
            return []
        return [Observation(value, dict(zip(instrument.attributes, labels))) for labels, value in family.values.items()]

    return read
