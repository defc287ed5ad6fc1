"""HTTP endpoints for operators: health, readiness, ``/metrics``, status, and turn outcomes."""

from __future__ import annotations

import asyncio
import json
import urllib.parse
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import parse_qs

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from ..core.errors import StoreError
from ..core.finding import with_evidence
from ..core.tenancy import qualified
from ..engine.engine import Engine
from ..outlets.store.reader import LEAST_OF_ID, SPAN_OF_TRACE, StoreReader, cost_in, fault_of_row, only_one
from ..outlets.turn_text import number_of
from ..page.api import Reader
from .auth import Guard
from .http_server import Failure, Head, HttpExchange, Response
from .responses import Refusal


class Check(NamedTuple):
    name: str
    reason: str = ""
    """Description of the problem, without turn content. Empty if there is no problem."""
    required: bool = False


class Readiness(NamedTuple):
    unready: Callable[[], str]
    checks: Callable[[], Sequence[Check]]


def health(head: Head, readiness: Readiness) -> Response | None:
    if head.path not in ("/healthz", "/readyz"):
        return None
    if head.method not in ("GET", "HEAD"):
        return Response(405, b"only GET is allowed here\n", headers=[("allow", "GET, HEAD")])
    why = readiness.unready() if head.path == "/readyz" else ""
    status = 503 if why else 200
    if head.path == "/healthz" or "verbose" not in parse_qs(head.query, keep_blank_values=True):
        return Response(status, f"{why or 'ok'}\n".encode())
    checks = readiness.checks()
    if "application/json" in head.headers.get("accept", ""):
        found = {"ready": not why, "reason": why, "checks": [{**check._asdict(), "ok": not check.reason} for check in checks]}
        return Response(status, json.dumps(found, ensure_ascii=False).encode(), "application/json")
    lines = [
        f"[-] {check.name}: {check.reason}{'' if check.required else ' (not required)'}"
        if check.reason
        else f"[+] {check.name}: ok"
        for check in checks
    ]
    return Response(status, "\n".join([*lines, f"not ready: {why}" if why else "ready", ""]).encode())


def checks_in(document: Any, prefix: str) -> list[Check]:
    return [Check(f"{prefix}{one['name']}", str(one["reason"]), bool(one["required"])) for one in document["checks"]]


def delivery(engine: Engine, required: Iterable[str]) -> list[Check]:
    """Return health checks for all outlets, for the judge queue, and for each metric, judge, or embedder that hangs."""
    found = []
    for outlet in engine.outlets:
        reason = engine.outlets.trouble_of(outlet)
        if reason and outlet.records is not None:
            account = outlet.records
            reason = f"{reason}; {number_of(account.waiting, 'record')} waiting, {sum(account.failed.values())} dropped"
        found.append(Check(f"outlet {outlet.name}", reason, outlet.name in set(required)))
    found += [Check(f"metric {name}", reason) for name, reason in engine.hung_metrics().items()]
    found += [Check(name, reason) for name, reason in engine.silent_models().items()]
    if engine.judging is not None:
        held = engine.unsent_jobs
        found.append(Check("judge queue", f"can't be used; {held} jobs wait in memory" if held else ""))
    return found


@dataclass(slots=True)
class GetHandler:
    """Handler for GET and HEAD requests. ``get`` returns None for unknown paths."""

    guard: Guard
    count_fault: Callable[[str, Exception], object]
    get: Callable[[Head], HttpExchange | Response | None]
    readiness: Readiness

    def begin(self, head: Head) -> HttpExchange | Response:
        if (well := health(head, self.readiness)) is not None:
            return well
        try:
            self.guard.check(head)
            if head.method not in ("GET", "HEAD"):
                raise Refusal("bad_method", "only GET is allowed here")
            found = self.get(head)
        except Refusal as refusal:
            return Response(refusal.answer.http_status, f"{refusal.answer.message}\n".encode())
        return found if found is not None else Response(404, b"not found\n")

    def failed(self, error: Exception) -> Response:
        self.count_fault("web", error)
        return Response(503, b"internal error\n")


class _Scrape(HttpExchange):
    max_body = 64 * 1024
    body_timeout = 5.0

    def __init__(self, metrics: Metrics, accept: str) -> None:
        self._metrics, self._accept = metrics, accept

    async def answer(self, body: bytes) -> Response:
        return await self._metrics.page(self._accept)

    def refuse(self, why: Failure) -> Response:
        return Response(400, b"the request must not have a body\n")


class Metrics:
    """Handler for ``/metrics``, which doesn't require a token. The response has the format that the scraper accepts.

    Only the OpenMetrics format contains exemplars. Writing a large response takes seconds, so a separate thread writes one response
    at a time. Scrapers that meanwhile request the same format get the same response.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self.scrapes: Counter[str] = Counter()
        self._registry = registry
        self._thread = ThreadPoolExecutor(1, "agenteval-metrics")
        self._running: dict[str, asyncio.Future[bytes]] = {}

    def get(self, head: Head) -> HttpExchange | None:
        if head.path != "/metrics":
            return None
        user_agent = head.headers.get("user-agent", "").lower()
        self.scrapes[next((name for name in _SCRAPERS if user_agent.startswith(name)), "other")] += 1
        return _Scrape(self, head.headers.get("accept", ""))

    async def page(self, accept: str) -> Response:
        accept = accept.replace("=dots", "=underscores").replace("=values", "=underscores")  # for these, suffixes are escaped too
        encode, content_type = choose_encoder(accept)
        writing = self._running.get(content_type)
        if writing is None:
            writing = asyncio.get_running_loop().run_in_executor(self._thread, encode, self._registry)
            self._running[content_type] = writing
            writing.add_done_callback(lambda _: self._running.pop(content_type))
        return Response(200, await asyncio.shield(writing), content_type)

    def close(self) -> None:
        self._thread.shutdown(wait=False)


_SCRAPERS = ("prometheus", "otelcol", "opentelemetry", "vmagent", "victoriametrics", "grafana", "alloy", "datadog", "telegraf")


def api(
    engine: Engine, status: Callable[[], dict[str, Any]], shows_content: bool = False
) -> Callable[[Head, Reader], Response | None]:
    """Return a handler for ``/api/status`` and ``/api/why/TURN_ID``. Turn IDs can be shortened."""

    def get(head: Head, reader: Reader) -> Response | None:
        if head.path == "/api/status":
            if reader.tenant is not None:
                raise Refusal("forbidden", "a tenant can only read its own turns")
            return _json(status())
        turn_id = urllib.parse.unquote(head.path.removeprefix("/api/why/"))
        if not head.path.startswith("/api/why/"):
            return None
        if reader.tenant is not None and not turn_id.startswith(qualified(reader.tenant, "")):
            turn_id = qualified(reader.tenant, turn_id)
        with _store_of(engine) as store:
            try:
                turn_id = _full_id(engine, store, turn_id)
            except StoreError as error:
                return _json({"turn_id": turn_id, "metrics": None, "error": str(error)}, 409)
            live, stored = engine.why(turn_id), store.why(turn_id) if store is not None else None
            if live is None and stored is None:
                return _json({"turn_id": turn_id, "metrics": None}, 404)
            facts = {"scores": []} if store is None else _facts_in(store, turn_id, shows_content)
        return _json({"turn_id": turn_id, "metrics": {**(stored or {}), **(live or {})}, **facts})

    return get


def _facts_in(store: StoreReader, turn_id: str, shows_content: bool) -> dict[str, Any]:
    turn = store.turn(turn_id) or {}
    content, fault = turn.get("content") if shows_content else None, fault_of_row(turn)
    scores = with_evidence(store.scores(turn_id), content)
    return {"scores": scores, **cost_in(turn), "first_fault": None if fault is None else fault._asdict()}


def _full_id(engine: Engine, store: StoreReader | None, short: str) -> str:
    """Return the full ID of the turn whose ID begins with ``short`` or, without such a turn, of the turn in the trace of the span
    ``short``. If no turn matches, return ``short``. If several turns match, raise StoreError.
    """
    if engine.why(short) is not None:
        return short
    known, trace = engine.known_turns(short) if len(short) >= LEAST_OF_ID else [], SPAN_OF_TRACE.fullmatch(short)
    found = dict.fromkeys(engine.known_turns(trace[1]) if not known and trace is not None else known)
    stored = store.find(short) if store is not None else None
    if stored is not None:
        found[stored] = None
    return only_one(short, [*found]) or short


@contextmanager
def _store_of(engine: Engine) -> Iterator[StoreReader | None]:
    options = engine.config.outlets.store
    try:
        reader = StoreReader(options.path) if options is not None else None
    except StoreError:
        reader = None
    try:
        yield reader
    finally:
        if reader is not None:
            reader.close()


def _json(value: Any, status: int = 200) -> Response:
    return Response(status, json.dumps(value, ensure_ascii=False).encode(), "application/json", [("cache-control", "no-store")])
