"""The metrics on a Prometheus page: the application's own, or one on a port of ours.

Everything is read when Prometheus asks, so this outlet costs nothing between scrapes. Exemplars are part of the
OpenMetrics format only (``Accept: application/openmetrics-text``, which Prometheus sends).

Where a program has several processes, each shows what all of them counted: :mod:`.workers`.
"""

from __future__ import annotations

import errno
import logging
import threading
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary, ref

import prometheus_client
from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.samples import Exemplar
from prometheus_client.utils import floatToGoString

from ..core.semconv import EMIT_ERRORS, INSTRUMENTS, Instrument, prometheus_name, prometheus_unit
from ..core.telemetry import Distribution, Family, Telemetry, TelemetryGroup
from ..evaluation.scored_turn import ScoredTurn
from .base import Outlet, Setup
from .workers import Workers, shared_folder

if TYPE_CHECKING:
    from wsgiref.simple_server import WSGIServer

    from ..config.outlets import PrometheusOptions

_log = logging.getLogger(__name__)


class PrometheusOutlet(Outlet):
    """Shows an engine's metrics in a registry, or on a port of its own. A registry or port that is in use already raises nothing.

    Several engines in one process can share a registry: their numbers are added up. A metric whose name the application
    already uses is left out, with one warning and ``agenteval.emit.errors{outlet="prometheus", reason="name_clash"}``;
    a port that cannot be opened is one warning and ``reason="port_in_use"`` (``"bind_failed"`` for any other cause).

    The default registry, and a port, show what all processes of the program counted. Of these one has the port; when it goes, another takes it.

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
        self._wanted = None if port is None else (port, addr)
        self._unclaimed_since = 0.0
        view = None
        if port is not None:
            self._registry, view = CollectorRegistry(), f"port-{port}"
        elif registry is None or registry is prometheus_client.REGISTRY:
            self._registry, view = prometheus_client.REGISTRY, "default"
        else:
            self._registry = registry
        self._joined, clashes = _join(self._registry, telemetry, view)
        if clashes:
            _log.warning("the Prometheus registry already has %s: left out of the evaluation metrics", ", ".join(clashes))
            telemetry.add(EMIT_ERRORS, len(clashes), outlet=self.name, reason="name_clash")
        if self._wanted is not None:
            self._serve_or_wait()

    @property
    def port(self) -> int | None:
        """The port that is served; None when there is none of our own."""
        return self._server.server_port if self._server is not None else None

    def emit(self, batch: Sequence[ScoredTurn]) -> None:
        """A scrape reads the accumulators; only other processes have to be shown what was counted."""
        if self._joined.workers is not None:
            self._joined.workers.note()

    def flush(self, timeout: float) -> bool:
        """Let the other processes see what was counted so far."""
        if self._joined.workers is not None:
            self._joined.workers.write()
        return True

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
        if self._joined.workers is not None:
            self._joined.workers.after_fork_in_child(then=None if self._wanted is None else self._take_port)

    def _serve_or_wait(self) -> None:
        """Open the port, or wait until the other process of this program that has it goes."""
        error = self._serve()
        if error is None:
            return
        workers = self._joined.workers
        if workers is None or not _is_in_use(error) or not workers.keep_trying(self._take_port):
            self._warn_of_port(error)

    def _take_port(self) -> bool:
        """Whether there is nothing more to try. Called every second, on a thread of the workers."""
        if self._closed or self._server is not None:
            return True
        error = self._serve()
        if error is None or not _is_in_use(error):
            if error is not None:
                self._warn_of_port(error)
            return True
        now = time.monotonic()
        workers = self._joined.workers
        if workers is not None and not workers.is_claimed(workers.view):
            self._unclaimed_since = self._unclaimed_since or now
            if now - self._unclaimed_since > _CLAIMED_WITHIN:
                self._warn_of_port(error)
                return True
        else:
            self._unclaimed_since = 0.0
        return False

    def _serve(self) -> Exception | None:
        """Open the port. Why not, or None if it is open."""
        assert self._wanted is not None  # who calls this has looked
        port, addr = self._wanted
        try:
            self._server, _ = prometheus_client.start_http_server(port, addr=addr, registry=self._registry)
        except (OSError, OverflowError) as error:
            return error
        if self._joined.workers is not None:
            self._joined.workers.claim(self._joined.workers.view)
        self._trouble = ""
        return None

    def _warn_of_port(self, error: Exception) -> None:
        assert self._wanted is not None
        port, addr = self._wanted
        self._trouble = f"no endpoint on {addr}:{port}: {error}"
        _log.warning("no Prometheus endpoint on %s:%s: %s", addr, port, error)
        self._telemetry.add(EMIT_ERRORS, outlet=self.name, reason="port_in_use" if _is_in_use(error) else "bind_failed")


_CLAIMED_WITHIN = 5.0
"""Seconds after which a port that no process of this program has claimed is taken for somebody else's."""


def _is_in_use(error: Exception) -> bool:
    return isinstance(error, OSError) and error.errno == errno.EADDRINUSE


def outlet_from(wanted: PrometheusOptions, setup: Setup) -> Outlet:
    """The application's registry, or a port of our own."""
    return PrometheusOutlet(setup.telemetry, port=wanted.port)


# --- one set of collectors per registry ------------------------------------------------------------------------------


class _InstrumentCollector:
    """Renders one instrument. One collector each, so that a clash of names costs that metric only."""

    def __init__(self, instrument: Instrument, joined: _Joined) -> None:
        self.instrument = instrument
        self._joined = joined

    def describe(self) -> list[Metric]:
        """The name alone: registering must not read anything."""
        return [_empty(self.instrument)]

    def collect(self) -> list[Metric]:
        """The present values; no family at all while there are none."""
        family = None if self._joined.is_shown_by_files() else self._joined.read(self.instrument.name)
        return self.rendered(family)

    def rendered(self, family: Family | None) -> list[Metric]:
        """A state of the instrument as Prometheus has it."""
        if family is None or not (family.values or family.distributions):
            return []
        rendered = _empty(self.instrument)
        if isinstance(rendered, HistogramMetricFamily):
            for labels, distribution in family.distributions.items():
                rendered.add_metric(labels, _buckets(self.instrument, distribution), distribution.sum)
        else:
            for labels, value in family.values.items():
                rendered.add_metric(labels, value)
        return [rendered]


class _Joined:
    """What we have in one registry.

    Args:
        registry: which one.
        view: its name among the processes of the program; None if others cannot know it.
    """

    def __init__(self, registry: CollectorRegistry, view: str | None) -> None:
        self.group = TelemetryGroup()
        self.collectors: list[_InstrumentCollector] = []
        self.workers = Workers(view, self.group, self._count_fault) if view is not None else None
        self._registry = ref(registry)

    def read(self, name: str) -> Family | None:
        """What was counted, here and by the other processes."""
        return self.group.read(name, self.workers.others(name) if self.workers is not None else ())

    def is_shown_by_files(self) -> bool:
        """Whether the registry shows the files of ``prometheus_client``'s multi-process mode, and with them what we count."""
        if shared_folder() is None:
            return False
        from prometheus_client.multiprocess import MultiProcessCollector

        registry = self._registry()
        return registry is not None and any(type(one) is MultiProcessCollector for one in list(registry._collector_to_names))

    def _count_fault(self) -> None:
        self.group.add(EMIT_ERRORS, outlet=PrometheusOutlet.name, reason="workers_apart")


_joined: WeakKeyDictionary[CollectorRegistry, _Joined] = WeakKeyDictionary()
_joined_lock = threading.Lock()


def _join(registry: CollectorRegistry, telemetry: Telemetry, view: str | None) -> tuple[_Joined, list[str]]:
    """Show a telemetry in a registry. Also the names that the registry already had, when this was the first to try."""
    with _joined_lock:
        ours = _joined.get(registry)
        if ours is not None:
            ours.group.join(telemetry)
            return ours, []
        ours = _joined[registry] = _Joined(registry, view)
        ours.group.join(telemetry)
        clashes = []
        for instrument in INSTRUMENTS:
            collector = _InstrumentCollector(instrument, ours)
            try:
                registry.register(collector)
            except ValueError:  # the registry's way to say that a name is taken
                clashes.append(prometheus_name(instrument))
            else:
                ours.collectors.append(collector)
        return ours, clashes


def _leave(registry: CollectorRegistry, telemetry: Telemetry) -> None:
    with _joined_lock:
        ours = _joined.get(registry)
        if ours is None:
            return
        if ours.workers is not None and ours.group.is_last(telemetry):
            ours.workers.close()
        if ours.group.leave(telemetry):
            for collector in ours.collectors:
                registry.unregister(collector)
            del _joined[registry]


def is_joined() -> bool:
    """Whether the default registry shows anything of us."""
    return _joined.get(prometheus_client.REGISTRY) is not None


def evaluation_metrics() -> Iterable[Metric]:
    """What the default registry shows of us, whatever else it shows; nothing where no engine uses it."""
    ours = _joined.get(prometheus_client.REGISTRY)
    if ours is not None:
        for collector in ours.collectors:
            yield from collector.rendered(ours.read(collector.instrument.name))


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
