"""What operators read: health and readiness, ``/metrics``, and an API for the status and for the outcomes of a turn."""

from __future__ import annotations

import asyncio
import json
import urllib.parse
from collections import Counter
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from ..core.errors import StoreError
from ..core.tenancy import qualified
from .guard import Guard
from .health import Readiness, health
from .http_server import Exchange, Failure, Head, Response
from .receiver import Receiver
from .responses import Refusal
from .why import scores_of, turn_meant, what_became_of


class Faults(Protocol):
    """Counts faults, as an engine does."""

    def failed(self, where: str, error: BaseException) -> None:
        """One more."""


class Page:
    """A handler of GET requests.

    Args:
        guard: checks where a request comes from.
        engine: where faults are counted.
        get: the response to a request that may pass; None where there is nothing at its path.
        readiness: for a server that has health and readiness too.
    """

    def __init__(
        self,
        guard: Guard,
        engine: Callable[[], Faults],
        get: Callable[[Head], Exchange | Response | None],
        readiness: Readiness | None = None,
    ) -> None:
        self._guard = guard
        self._engine = engine
        self._get = get
        self._readiness = readiness

    def begin(self, head: Head) -> Exchange | Response:
        """The response, or an exchange that makes it."""
        well = health(head, self._readiness) if self._readiness is not None else None
        if well is not None:
            return well
        try:
            self._guard.check(head)
            if head.method not in ("GET", "HEAD"):
                raise Refusal("bad_method", "only GET is allowed here")
            found = self._get(head)
        except Refusal as refusal:
            answer = refusal.answer
            headers = [("www-authenticate", "Bearer")] if answer.kind == "unauthenticated" else []
            return Response(answer.http_status, f"{answer.message}\n".encode(), headers=headers)
        return found if found is not None else Response(404, b"not found\n")

    def failed(self, error: Exception) -> Response:
        """Count a fault in this process."""
        self._engine().failed("web", error)
        return Response(503, b"internal error\n")


class _Later:
    """A request without a body, whose response takes its time."""

    max_body = 64 * 1024
    body_timeout = 5.0

    def __init__(self, answer: Callable[[], Awaitable[Response]]) -> None:
        self._answer = answer

    def received(self, size: int) -> bool:
        """It is thrown away."""
        return True

    async def answer(self, body: bytes) -> Response:
        """The response."""
        return await self._answer()

    def refuse(self, why: Failure) -> Response:
        """A body was sent."""
        return Response(400, b"the request must have no body\n")

    def end(self, size: int) -> None:
        """Nothing was kept."""


class Metrics:
    """``/metrics`` in the form that the scraper asks for; exemplars are in OpenMetrics alone. Numbers need no token.

    A large page takes seconds, so it is written on a thread, one at a time. Requests that come while it is written get the same page.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self.scrapes: Counter[str] = Counter()
        """How often the page was asked for, by the kind of client."""
        self._registry = registry
        self._thread = ThreadPoolExecutor(1, "agenteval-metrics")
        self._running: dict[str, asyncio.Future[bytes]] = {}

    def get(self, head: Head) -> Exchange | None:
        """The page; None for another path."""
        if head.path != "/metrics":
            return None
        self.scrapes[_client_of(head.headers.get("user-agent", ""))] += 1
        return _Later(lambda: self._page(head.headers.get("accept", "")))

    async def _page(self, accept: str) -> Response:
        encode, content_type = choose_encoder(accept)
        writing = self._running.get(content_type)
        if writing is None:
            writing = asyncio.get_running_loop().run_in_executor(self._thread, encode, self._registry)
            self._running[content_type] = writing
            writing.add_done_callback(lambda _: self._running.pop(content_type))
        return Response(200, await asyncio.shield(writing), content_type)

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown(wait=False)


_SCRAPERS = ("prometheus", "otelcol", "opentelemetry", "vmagent", "victoriametrics", "grafana", "alloy", "datadog", "telegraf")


def _client_of(user_agent: str) -> str:
    """A scraper's name, by how its requests say who asks; ``other`` for all that is none."""
    said = user_agent.lower()
    return next((name for name in _SCRAPERS if said.startswith(name)), "other")


def api(receiver: Receiver, status: Callable[[], dict[str, Any]]) -> Callable[[Head], Response | None]:
    """``/api/status`` (the ledger) and ``/api/why/TURN_ID`` (the outcome of each metric: scored, sampled out, gated, dropped, error;
    and the scores that the store has). An id may be shortened.
    """

    def get(head: Head) -> Response | None:
        tenant = receiver.authorize_reader(head.headers.get("authorization"))
        if head.path == "/api/status":
            if tenant is not None:
                raise Refusal("forbidden", "a tenant may read about its own turns only")
            return _json(status())
        turn_id = urllib.parse.unquote(head.path.removeprefix("/api/why/"))
        if not head.path.startswith("/api/why/"):
            return None
        if tenant is not None and not turn_id.startswith(qualified(tenant.name, "")):
            return _json({"turn_id": turn_id, "metrics": None}, 404)
        try:
            turn_id = turn_meant(receiver.engine, turn_id)
        except StoreError as error:
            return _json({"turn_id": turn_id, "metrics": None, "error": str(error)}, 409)
        found = what_became_of(receiver.engine, turn_id)
        if found is None:
            return _json({"turn_id": turn_id, "metrics": None}, 404)
        return _json({"turn_id": turn_id, "metrics": found, "scores": scores_of(receiver.engine, turn_id)})

    return get


def _json(value: Any, status: int = 200) -> Response:
    return Response(status, json.dumps(value, ensure_ascii=False).encode(), "application/json", [("cache-control", "no-store")])
