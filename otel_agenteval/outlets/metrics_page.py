"""``/metrics`` as a web application to mount: ``app.mount("/metrics", oa.metrics_app())``."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import prometheus_client
from prometheus_client import CollectorRegistry, make_asgi_app, make_wsgi_app
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector

from .default_registry import join_now
from .multiprocess_files import is_ours
from .prometheus import evaluation_metrics, is_joined
from .workers import shared_folder

_log = logging.getLogger("otel_agenteval")


class MetricsApp:
    """ASGI and WSGI application that serves the metrics of all processes.

    The page contains the default registry and the scores' metrics. The application works with FastAPI, Starlette, Django and
    Flask. The format is text or OpenMetrics, depending on the client.
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
            if not is_joined():
                _log.warning(
                    "metrics_app(): this process scores no turns, so /metrics has no scores; call instrument() first, and keep the default outlets.prometheus: {registry: default}"
                )
        if len(args) == 3:
            return self._answer(*args)
        return self._wsgi(*args)

    async def _answer(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "lifespan":
            await self._asgi(scope, receive, send)
            return
        kind = ""
        while kind != "lifespan.shutdown":  # if it isn't mounted
            kind = (await receive())["type"]
            await send({"type": f"{kind}.complete"})


def metrics_app() -> MetricsApp:
    """Return an application that serves the default Prometheus registry, including scores.

    Mount it in your web application. With several worker processes, each of them responds for all. Under
    ``PROMETHEUS_MULTIPROC_DIR``, the page also contains the application's own metrics from there.
    """
    return MetricsApp()


class _AllProcesses:
    """Collector for multi-process mode. Our metrics don't come from files, and keep exemplars."""

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterable[Metric]:
        folder = shared_folder()
        files = [str(path) for path in Path(folder).glob("*.db") if not is_ours(path)] if folder is not None else []
        yield from MultiProcessCollector.merge(files)  # type: ignore[no-untyped-call]
        yield from evaluation_metrics()
