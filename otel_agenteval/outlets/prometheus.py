"""The metrics on a Prometheus page: the application's own, or one on a port of ours.

Everything is read when Prometheus asks, so this outlet costs nothing between scrapes. Exemplars are part of the
OpenMetrics format only (``Accept: application/openmetrics-text``, which Prometheus sends).

The multi-process mode of ``prometheus_client`` merges files that its own metrics write; it does not know collectors, so
under it use one port per process or the OTLP metrics.
"""

from __future__ import annotations

import errno
import logging
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import prometheus_client
from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.samples import Exemplar
from prometheus_client.utils import floatToGoString

from ..core.semconv import EMIT_ERRORS, INSTRUMENTS, Instrument, prometheus_name, prometheus_unit
from ..core.telemetry import Distribution, Telemetry, TelemetryGroup
from ..evaluation.scored_turn import ScoredTurn
from .base import Outlet, Setup

if TYPE_CHECKING:
    from wsgiref.simple_server import WSGIServer

    from ..config.outlets import PrometheusOptions

_log = logging.getLogger(__name__)


class PrometheusOutlet(Outlet):
    """Shows an engine's metrics in a registry, or on a port of its own. A registry or port that is in use already raises nothing.

    Several engines in one process can share a registry: their numbers are added up. A metric whose name the application
    already uses is left out, with one warning and ``agenteval.emit.errors{outlet="prometheus", reason="name_clash"}``;
    a port that cannot be opened is one warning and ``reason="port_in_use"`` (``"bind_failed"`` for any other cause).

    Args:
        telemetry: the engine's accumulators.
        registry: None is ``prometheus_client.REGISTRY``, which most applications serve. Not used with ``port``.
        port: serve a registry of our own here; 0 takes any free port (see :attr:`port`).
        addr: the interface to serve on.
    """

    name = "prometheus"

    def __init__(
        self,
        telemetry: Telemetry,
        *,
        registry: CollectorRegistry | None = None,
        port: int | None = None,
        addr: str = "127.0.0.1",
    ) -> None:
        self._telemetry = telemetry
        self._server: WSGIServer | None = None
        self._closed = False
        if port is not None:
            self._registry = CollectorRegistry()
            self._serve(port, addr)
        else:
            self._registry = prometheus_client.REGISTRY if registry is None else registry
        clashes = _join(self._registry, telemetry)
        if clashes:
            _log.warning("the Prometheus registry already has %s: left out of the evaluation metrics", ", ".join(clashes))
            telemetry.add(EMIT_ERRORS, len(clashes), outlet=self.name, reason="name_clash")

    @property
    def port(self) -> int | None:
        """The port that is served; None when there is none of our own."""
        return self._server.server_port if self._server is not None else None

    def emit(self, batch: Sequence[ScoredTurn]) -> None:
        """Nothing to do: a scrape reads the accumulators."""

    def close(self) -> None:
        """Leave the registry and stop the server (within its poll of half a second)."""
        if self._closed:
            return
        self._closed = True
        _leave(self._registry, self._telemetry)
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()

    def after_fork_in_child(self) -> None:
        """Drop the inherited server, whose thread lives in the parent.

        An open copy of its socket would keep the port taken after the parent has gone.
        """
        server, self._server = self._server, None
        if server is not None:
            server.socket.close()

    def _serve(self, port: int, addr: str) -> None:
        try:
            self._server, _ = prometheus_client.start_http_server(port, addr=addr, registry=self._registry)
        except (OSError, OverflowError) as error:
            in_use = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
            _log.warning("no Prometheus endpoint on %s:%s: %s", addr, port, error)
            self._telemetry.add(EMIT_ERRORS, outlet=self.name, reason="port_in_use" if in_use else "bind_failed")


def outlet_from(wanted: PrometheusOptions, setup: Setup) -> Outlet:
    """The application's registry, or a port of our own."""
    return PrometheusOutlet(setup.telemetry, port=wanted.port)


# --- one set of collectors per registry ------------------------------------------------------------------------------


class _InstrumentCollector:
    """Renders one instrument. One collector each, so that a clash of names costs that metric only."""

    def __init__(self, instrument: Instrument, group: TelemetryGroup) -> None:
        self._instrument = instrument
        self._group = group

    def describe(self) -> list[Metric]:
        """The name alone: registering must not read anything."""
        return [_empty(self._instrument)]

    def collect(self) -> list[Metric]:
        """The present values; no family at all while there are none."""
        family = self._group.read(self._instrument.name)
        if family is None or not (family.values or family.distributions):
            return []
        rendered = _empty(self._instrument)
        if isinstance(rendered, HistogramMetricFamily):
            for labels, distribution in family.distributions.items():
                rendered.add_metric(labels, _buckets(self._instrument, distribution), distribution.sum)
        else:
            for labels, value in family.values.items():
                rendered.add_metric(labels, value)
        return [rendered]


class _Joined:
    """What we have in one registry."""

    def __init__(self) -> None:
        self.group = TelemetryGroup()
        self.collectors: list[_InstrumentCollector] = []
        self.clashes: list[str] = []


_joined: WeakKeyDictionary[CollectorRegistry, _Joined] = WeakKeyDictionary()
_joined_lock = threading.Lock()


def _join(registry: CollectorRegistry, telemetry: Telemetry) -> list[str]:
    """Show a telemetry in a registry; the names that the registry already had, when this was the first to try."""
    with _joined_lock:
        ours = _joined.get(registry)
        if ours is not None:
            ours.group.join(telemetry)
            return []
        ours = _joined[registry] = _Joined()
        ours.group.join(telemetry)
        clashes = []
        for instrument in INSTRUMENTS:
            collector = _InstrumentCollector(instrument, ours.group)
            try:
                registry.register(collector)
            except ValueError:  # the registry's way to say that a name is taken
                clashes.append(prometheus_name(instrument))
            else:
                ours.collectors.append(collector)
        return clashes


def _leave(registry: CollectorRegistry, telemetry: Telemetry) -> None:
    with _joined_lock:
        ours = _joined.get(registry)
        if ours is not None and ours.group.leave(telemetry):
            for collector in ours.collectors:
                registry.unregister(collector)
            del _joined[registry]


# --- rendering -------------------------------------------------------------------------------------------------------

_Rendered = CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily
_FAMILIES: dict[str, type[_Rendered]] = {
    "counter": CounterMetricFamily,
    "gauge": GaugeMetricFamily,
    "histogram": HistogramMetricFamily,
}


def _empty(instrument: Instrument) -> _Rendered:
    name = prometheus_name(instrument).removesuffix("_total")
    return _FAMILIES[instrument.kind](
        name, instrument.description, labels=instrument.attributes, unit=prometheus_unit(instrument)
    )


def _buckets(instrument: Instrument, distribution: Distribution) -> list[tuple[str, float] | tuple[str, float, Exemplar]]:
    """Cumulative counts, as Prometheus wants them, each with its bucket's exemplar."""
    rendered: list[tuple[str, float] | tuple[str, float, Exemplar]] = []
    total = 0
    bounds = (*instrument.buckets, float("inf"))
    for bound, count, kept in zip(bounds, distribution.counts, distribution.exemplars, strict=True):
        total += count
        le = str(floatToGoString(bound))  # type: ignore[no-untyped-call]
        if kept is None:
            rendered.append((le, total))
        else:
            rendered.append((le, total, Exemplar(dict(kept.labels), kept.value, kept.time_s)))
    return rendered
