"""``/metrics`` as a part of a web application: ``app.mount("/metrics", oa.metrics_app())``."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import prometheus_client
from prometheus_client import CollectorRegistry, make_asgi_app, make_wsgi_app
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector

from .multiprocess_files import is_ours
from .prometheus import evaluation_metrics, is_joined
from .workers import shared_folder

_log = logging.getLogger("otel_agenteval")


class MetricsApp:
    """A web application of one page: the default registry of ``prometheus_client`` with the metrics of scores, for all processes of the program.

    It answers ASGI (FastAPI, Starlette, Django) and WSGI (Flask, Django). Text or OpenMetrics, by what the client accepts.
    """

    def __init__(self) -> None:
        registry = _AllProcesses() if shared_folder() is not None else prometheus_client.REGISTRY
        self._asgi = make_asgi_app(registry)
        self._wsgi = make_wsgi_app(registry)
        self._was_looked_at = False

    def __call__(self, *args: Any) -> Any:
        """As ASGI has it, with scope, receive and send, or as WSGI has it, with environ and start_response."""
        if not self._was_looked_at:
            self._was_looked_at = True
            if not is_joined():
                _log.warning(
                    "metrics_app(): nothing is scored in this process, so /metrics has no scores. Call instrument() first; outlets.prometheus must be {registry: default}, as it is by default"
                )
        if len(args) == 3:
            return self._answer(*args)
        return self._wsgi(*args)

    async def _answer(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":  # where it is served by itself
            await _live(receive, send)
        else:
            await self._asgi(scope, receive, send)


def metrics_app() -> MetricsApp:
    """``/metrics`` with the scores and whatever else the application's default registry has, to be mounted in the application itself.

    With several worker processes each of them answers for all. Under ``PROMETHEUS_MULTIPROC_DIR`` it shows what the application's own metrics
    have written there too.
    """
    return MetricsApp()


async def _live(receive: Any, send: Any) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return


class _AllProcesses(CollectorRegistry):
    """The files of the multi-process mode, except ours, and our metrics as they are: with exemplars and estimates."""

    def __init__(self) -> None:
        super().__init__()
        self.register(_Files())
        self.register(_Ours())


class _Files:
    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterable[Metric]:
        folder = shared_folder()
        files = [str(path) for path in Path(folder).glob("*.db") if not is_ours(path)] if folder is not None else []
        return MultiProcessCollector.merge(files)  # type: ignore[no-untyped-call, no-any-return]


class _Ours:
    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterable[Metric]:
        return evaluation_metrics()
