"""Prometheus outlet for the application's registry or a separate port.

A scrape reads the current values, so in a single-process program, this outlet costs almost nothing between scrapes. Only the
OpenMetrics format, which Prometheus requests, contains exemplars.

If a program has several processes, a scrape returns the metrics of all processes (:mod:`.workers`). You can also mount the
metrics page in a web application: ``app.mount("/metrics", oa.metrics_app())``.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import threading
import time
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, ref

import prometheus_client
from prometheus_client import CollectorRegistry, make_asgi_app, make_wsgi_app
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.samples import Exemplar
from prometheus_client.utils import floatToGoString

from ..core.semconv import EMIT_ERRORS, INSTRUMENTS, Instrument, prometheus_name, prometheus_unit
from ..core.telemetry import Distribution, Family, Telemetry, TelemetryGroup
from ..evaluation.scored_turn import ScoredTurn
from .base import Outlet, Setup
from .default_registry import join_now
from .workers import Workers, is_of_workers, shared_folder

if TYPE_CHECKING:
    from wsgiref.simple_server import WSGIServer

    from ..config.outlets import PrometheusOptions

_log, _app_log = logging.getLogger(__name__), logging.getLogger("otel_agenteval")


class PrometheusOutlet(Outlet):
    """Outlet that exports an engine's metrics through a Prometheus registry or a separate port.

    If several engines in one process share a registry, their values are combined. If the application already uses a metric's name, the
    outlet omits that metric, logs a warning, and counts ``agenteval.emit.errors{outlet="prometheus", reason="name_clash"}``. If the
    port can't be opened, the outlet logs a warning and counts ``reason="port_in_use"`` or, for other causes, ``"bind_failed"``.

    The default registry and a separate port export the metrics of all processes in the program. One process listens on the port. If
    this process ends, another process takes over.
    """

    name = "prometheus"

    def __init__(
        self, telemetry: Telemetry, *, registry: CollectorRegistry | None = None, port: int | None = None, addr: str = "127.0.0.1"
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
        registration, clashes = _join(self._registry, telemetry, view)
        self._workers = registration.workers
        if clashes:
            _log.warning(
                "outlets.prometheus: the registry already has %s, so these evaluation metrics are missing", ", ".join(clashes)
            )
            telemetry.add(EMIT_ERRORS, len(clashes), outlet=self.name, reason="name_clash")
        if self._wanted is None:
            return
        error = self._serve()
        if error is None or (self._workers is not None and _is_in_use(error) and self._workers.keep_trying(self._take_port)):
            return  # the port becomes free if the program's process that holds it ends
        self._warn_of_port(error)

    @property
    def port(self) -> int | None:
        return self._server.server_port if self._server is not None else None

    def emit(self, batch: Sequence[ScoredTurn]) -> None:
        """Make new counts visible to the program's other processes. A scrape of this process reads the counts directly."""
        if self._workers is not None:
            self._workers.mark_changed()

    def flush(self, timeout: float) -> bool:
        if self._workers is not None:
            self._workers.write()
        return True

    def close(self) -> None:
        """Remove the engine's metrics from the registry, and stop the server. Stopping takes up to half a second."""
        if self._closed:
            return
        self._closed = True
        _leave(self._registry, self._telemetry)
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()

    def after_fork_in_child(self) -> None:
        """Close the inherited server. Otherwise, its socket would keep the port busy after the parent process ends."""
        server, self._server = self._server, None
        if server is not None:
            server.socket.close()
        if self._workers is not None:
            self._workers.after_fork_in_child(None if self._wanted is None else self._take_port)

    def _take_port(self) -> bool:
        """Try to open the port. Called once a second until the result is True."""
        if self._closed or self._server is not None:
            return True
        error = self._serve()
        if error is None:
            return True
        now = time.monotonic()
        is_claimed = self._workers is None or self._workers.has_holder()
        self._unclaimed_since = 0.0 if is_claimed else self._unclaimed_since or now
        if _is_in_use(error) and (not self._unclaimed_since or now - self._unclaimed_since <= _CLAIMED_WITHIN):
            return False
        self._warn_of_port(error)
        return True

    def _serve(self) -> Exception | None:
        assert self._wanted is not None  # callers check this
        port, addr = self._wanted
        try:
            self._server, _ = prometheus_client.start_http_server(port, addr=addr, registry=self._registry)
        except (OSError, OverflowError) as error:
            return error
        if self._workers is not None:
            self._workers.hold()
        self._trouble = ""
        return None

    def _warn_of_port(self, error: Exception) -> None:
        assert self._wanted is not None
        port, addr = self._wanted
        self._trouble = f"can't listen on {addr}:{port}: {error}"
        _log.warning("outlets.prometheus: can't listen on %s:%s: %s", addr, port, error)
        self._telemetry.add(EMIT_ERRORS, outlet=self.name, reason="port_in_use" if _is_in_use(error) else "bind_failed")


_CLAIMED_WITHIN = 5.0
"""Maximum seconds to wait until a process of this program claims a busy port. After that, another program must be using it."""


def _is_in_use(error: Exception) -> bool:
    return isinstance(error, OSError) and error.errno == errno.EADDRINUSE


def outlet_from(wanted: PrometheusOptions, setup: Setup) -> Outlet:
    return PrometheusOutlet(setup.telemetry, port=wanted.port)


class _InstrumentCollector:
    """Prometheus collector for a single instrument, so that a name clash affects only one metric."""

    def __init__(self, instrument: Instrument, registration: _Registration) -> None:
        self.instrument = instrument
        self._registration = registration

    def describe(self) -> list[Metric]:
        """Return a metric without values, because registration must not read values."""
        return [_empty(self.instrument)]

    def collect(self) -> list[Metric]:
        return [] if self._registration.is_shown_by_files() else self.read()

    def read(self) -> list[Metric]:
        family = self._registration.read(self.instrument.name)
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


class _Registration:
    def __init__(self, registry: CollectorRegistry, view: str | None) -> None:
        self.group = TelemetryGroup()
        self.collectors: list[_InstrumentCollector] = []
        count_fault = partial(self.group.add, EMIT_ERRORS, outlet=PrometheusOutlet.name, reason="workers_apart")
        self.workers = Workers(view, self.group, count_fault) if view is not None else None
        self._registry = ref(registry)

    def read(self, name: str) -> Family | None:
        return self.group.read(name, self.workers.others(name) if self.workers is not None else ())

    def is_shown_by_files(self) -> bool:
        """Return True if the registry reads multi-process files, which already contain the metrics."""
        if shared_folder() is None:
            return False
        from prometheus_client.multiprocess import MultiProcessCollector

        registry = self._registry()
        return registry is not None and any(type(one) is MultiProcessCollector for one in list(registry._collector_to_names))


_registrations: WeakKeyDictionary[CollectorRegistry, _Registration] = WeakKeyDictionary()
_registrations_lock = threading.Lock()


def _join(registry: CollectorRegistry, telemetry: Telemetry, view: str | None) -> tuple[_Registration, list[str]]:
    """Add an engine's telemetry to a registry. Return the registration and the names of metrics that the registry already had."""
    with _registrations_lock:
        known = _registrations.get(registry)
        if known is not None:
            known.group.join(telemetry)
            return known, []
        known = _registrations[registry] = _Registration(registry, view)
        known.group.join(telemetry)
        clashes = []
        for instrument in INSTRUMENTS:
            collector = _InstrumentCollector(instrument, known)
            try:
                registry.register(collector)
            except ValueError:  # the name is already registered
                clashes.append(prometheus_name(instrument))
            else:
                known.collectors.append(collector)
        return known, clashes


def _leave(registry: CollectorRegistry, telemetry: Telemetry) -> None:
    with _registrations_lock:
        known = _registrations.get(registry)
        if known is None:
            return
        if known.workers is not None and known.group.is_last(telemetry):
            known.workers.close()
        if known.group.leave(telemetry):
            for collector in known.collectors:
                with contextlib.suppress(KeyError):  # the application has already emptied its registry
                    registry.unregister(collector)
            del _registrations[registry]


_Rendered = CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily
_FAMILIES: dict[str, type[_Rendered]] = {
    "counter": CounterMetricFamily,
    "gauge": GaugeMetricFamily,
    "histogram": HistogramMetricFamily,
}


def _empty(instrument: Instrument) -> _Rendered:
    family, name = _FAMILIES[instrument.kind], prometheus_name(instrument).removesuffix("_total")
    return family(name, instrument.description, labels=instrument.attributes, unit=prometheus_unit(instrument))


def _buckets(instrument: Instrument, distribution: Distribution) -> list[tuple[str, float] | tuple[str, float, Exemplar]]:
    rendered: list[tuple[str, float] | tuple[str, float, Exemplar]] = []
    total = 0
    bounds = (*instrument.buckets, float("inf"))
    for bound, count, kept in zip(bounds, distribution.counts, distribution.exemplars, strict=True):
        total += count
        le = str(floatToGoString(bound))  # type: ignore[no-untyped-call]
        rendered.append((le, total) if kept is None else (le, total, Exemplar(dict(kept.labels), kept.value, kept.time_s)))
    return rendered


class MetricsApp:
    """ASGI and WSGI application that serves the evaluation metrics of all processes, and the application's own metrics.

    Works with FastAPI, Starlette, Django, and Flask. The client's request determines the format: text or OpenMetrics.
    """

    def __init__(self) -> None:
        join_now()
        registry = prometheus_client.REGISTRY
        if shared_folder() is not None:
            registry = CollectorRegistry()
            registry.register(_AllProcesses())
        self._asgi = make_asgi_app(registry)
        self._wsgi = make_wsgi_app(registry)
        self._was_called = False

    def __call__(self, *args: Any) -> Any:
        """Handle a request as ASGI (scope, receive, send) or WSGI (environ, start_response)."""
        if not self._was_called:
            self._was_called = True
            if prometheus_client.REGISTRY not in _registrations:
                _app_log.warning(
                    "metrics_app(): /metrics has no scores. Either oa.instrument() wasn't called in this process, or otel-agenteval is off, or "
                    "outlets.prometheus isn't {registry: default}"
                )
        if len(args) == 1:  # ASGI 2, which uvicorn assumes because this method isn't a coroutine function
            return partial(self._respond, *args)
        return self._respond(*args) if len(args) == 3 else self._wsgi(*args)

    async def _respond(self, scope: Any, receive: Any, send: Any) -> None:
        while scope["type"] == "lifespan":  # only sent to an application that isn't mounted
            kind = (await receive())["type"]
            await send({"type": f"{kind}.complete"})
            if kind == "lifespan.shutdown":
                return
        await self._asgi(scope, receive, send)


def metrics_app() -> MetricsApp:
    """Return an application that serves the default Prometheus registry, including scores.

    Mount this application in your web application. Each worker process serves the evaluation metrics of all workers. If
    ``PROMETHEUS_MULTIPROC_DIR`` is set, your own metrics are read from that folder instead of the registry.
    """
    return MetricsApp()


class _AllProcesses:
    """Collector for multi-process mode. Evaluation metrics aren't read from files, because the files lack exemplars."""

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterable[Metric]:
        from prometheus_client.multiprocess import MultiProcessCollector

        folder = shared_folder()
        files = [str(path) for path in Path(folder).glob("*.db") if not is_of_workers(path)] if folder is not None else []
        yield from MultiProcessCollector.merge(files)  # type: ignore[no-untyped-call]
        known = _registrations.get(prometheus_client.REGISTRY)
        for collector in known.collectors if known is not None else ():
            yield from collector.read()
