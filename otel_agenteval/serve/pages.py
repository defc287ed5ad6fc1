"""What others read of us: ``/metrics``, and an API that says what became of a turn."""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Callable
from typing import Any, Protocol

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from ..tenancy import qualified
from ..why import what_became_of
from .answers import Refusal
from .guard import Guard
from .http_server import Exchange, Head, Response
from .intake import Intake


class Faults(Protocol):
    """Counts faults of ours, as an engine does."""

    def failed(self, where: str, error: BaseException) -> None:
        """One more."""


class Page:
    """A handler of GET requests.

    Args:
        guard: checks where a request comes from.
        engine: where faults are counted.
        get: the answer to a request that may pass; None where there is nothing at its path.
    """

    def __init__(self, guard: Guard, engine: Callable[[], Faults], get: Callable[[Head], Response | None]) -> None:
        self._guard = guard
        self._engine = engine
        self._get = get

    def begin(self, head: Head) -> Exchange | Response:
        """The answer."""
        try:
            self._guard.check(head)
            if head.method not in ("GET", "HEAD"):
                raise Refusal("bad_method", "only GET is answered here")
            found = self._get(head)
        except Refusal as refusal:
            answer = refusal.answer
            headers = [("www-authenticate", "Bearer")] if answer.kind == "unauthenticated" else []
            return Response(answer.http_status, f"{answer.message}\n".encode(), headers=headers)
        return found if found is not None else Response(404, b"not found\n")

    def failed(self, error: Exception) -> Response:
        """A fault of ours."""
        self._engine().failed("web", error)
        return Response(503, b"internal error\n")


def metrics_page(registry: CollectorRegistry) -> Callable[[Head], Response | None]:
    """``/metrics`` in the form that the scraper asks for; exemplars are in OpenMetrics alone. Numbers need no token."""

    def get(head: Head) -> Response | None:
        if head.path != "/metrics":
            return None
        encode, content_type = choose_encoder(head.headers.get("accept", ""))
        return Response(200, encode(registry), content_type)

    return get


def api(intake: Intake, status: Callable[[], dict[str, Any]]) -> Callable[[Head], Response | None]:
    """``/api/status`` (the ledger) and ``/api/why/TURN_ID`` (for each metric: scored, sampled out, gated, dropped, error)."""

    def get(head: Head) -> Response | None:
        tenant = intake.authorize_reader(head.headers.get("authorization"))
        if head.path == "/api/status":
            if tenant is not None:
                raise Refusal("forbidden", "a tenant is told of its own turns only")
            return _json(status())
        turn_id = urllib.parse.unquote(head.path.removeprefix("/api/why/"))
        if not head.path.startswith("/api/why/"):
            return None
        may_know = tenant is None or turn_id.startswith(qualified(tenant.name, ""))
        found = what_became_of(intake.engine, turn_id) if may_know else None
        return _json({"turn_id": turn_id, "metrics": found}, 404 if found is None else 200)

    return get


def _json(value: Any, status: int = 200) -> Response:
    return Response(status, json.dumps(value, ensure_ascii=False).encode(), "application/json", [("cache-control", "no-store")])
