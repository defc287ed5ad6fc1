"""HTTP handler for the web UI and its API, with access checks and caching."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import gzip
import hashlib
import logging
import mimetypes
import sqlite3
import threading
import time
import urllib.parse
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

from ..core import jsonio
from ..core.errors import StoreError
from ..core.threads import mark_as_ours
from ..outlets.store.views import Summer
from ..page.api import Api, FileResponse, Reader, Request
from ..page.parameters import OF_TURNS, Problem, read
from ..page.routes import BASE, Route, document, route_of
from .auth import Guard, is_cross_site
from .http_server import Failure, Head, HttpExchange, Response
from .responses import Refusal

_log = logging.getLogger("otel_agenteval")

POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
"""Content security policy, which allows scripts and styles only from this server. Scripts can't insert text as HTML."""
_SAFE = [
    ("content-security-policy", POLICY), ("referrer-policy", "no-referrer"), ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"), ("x-frame-options", "DENY"),
]  # fmt: skip
_VIEWS = frozenset(("", "turns", "turn", "differences", "failure-modes", "compare", "label", "catalogue", "health"))
_PACKED_FROM = 1_024
_THREADS = 4
_MAX_LIVE = 32
_LIVE_EVERY, _ALIVE_EVERY = 1.0, 15.0
_SUM_EVERY = 5.0

Authorize = Callable[[Head], Reader]
Legacy = Callable[[Head, Reader], "Response | None"]


class Web:
    def __init__(
        self,
        guard: Guard,
        authorize: Authorize,
        api: Api | None,
        failed: Callable[[str, BaseException], None],
        older: Legacy = lambda *_: None,
    ) -> None:
        self._guard = guard
        self._authorize = authorize
        self._api = api
        self._count_fault = failed
        self._older = older
        self._threads = ThreadPoolExecutor(_THREADS, "agenteval-page", mark_as_ours)
        self._exporting = ThreadPoolExecutor(1, "agenteval-export", mark_as_ours)  # exports mustn't keep readers waiting
        self._live = 0
        self._sums = SumsThread(api.path, lambda: api.now) if api is not None else None

    def close(self) -> None:
        if self._sums is not None:
            self._sums.close()
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._exporting.shutdown(wait=False, cancel_futures=True)

    def begin(self, head: Head) -> HttpExchange | Response:
        try:
            if (asked := self._guard.check(head)) is not None:
                return asked
            reader = self._authorize(head)
            if head.path.startswith(f"{BASE}/"):
                return self._api_exchange(head, reader)
            if head.method not in ("GET", "HEAD"):
                raise Problem(405, "only GET is allowed here", "GET")
            found = self._older(head, reader) if head.path.startswith("/api/") else None
            return found if found is not None else _static(head)
        except Refusal as refusal:
            return _problem(refusal.answer.http_status, refusal.answer.message)
        except Problem as problem:
            return _problem(problem.status, str(problem), problem.allow)

    def failed(self, error: Exception) -> Response:
        self._count_fault("web", error)
        return _problem(503, "internal error")

    def _api_exchange(self, head: Head, reader: Reader) -> HttpExchange | Response:
        path = head.path.removeprefix(BASE)
        if path == "/openapi.json":
            return _json(head, jsonio.dumps(document()).encode())
        if self._api is None:
            raise Problem(404, "the web UI needs a store. Set outlets.store")
        query = urllib.parse.parse_qs(head.query, keep_blank_values=True)  # short, because the server limits the head
        if path == "/live":
            if is_cross_site(head):
                raise Problem(403, "live turns are only available to pages from this address")
            return self._live_turns(query, reader, self._api)
        route, in_path = route_of(head.method, path)
        given = read(query, route.query, self._api.now)
        given |= {one.name: one.read(urllib.parse.unquote(in_path[one.name]), self._api.now) for one in route.in_path}
        if route.body is not None and head.content_type != "application/json":
            raise Problem(415, "the request's Content-Type must be application/json")
        threads = self._exporting if path == "/export" else self._threads
        return _ApiExchange(threads, self._answer, head, route, Request(given, reader))

    def _answer(self, head: Head, route: Route, request: Request) -> Response:
        assert self._api is not None
        try:
            found = route.answer(self._api, request)
        except Problem as problem:
            return _problem(problem.status, str(problem))
        except (sqlite3.Error, StoreError, ConnectionError) as error:
            self._count_fault("web", error)
            return _problem(503, "can't read the store at the moment; retry later")
        if isinstance(found, FileResponse):
            named = [("content-disposition", f'attachment; filename="{found.filename}"')] if found.filename is not None else []
            return _sent(head, found.body, found.content_type, named)
        return _json(head, jsonio.dumps(found).encode())

    def _live_turns(self, query: dict[str, list[str]], reader: Reader, api: Api) -> Response:
        if self._live >= _MAX_LIVE:
            raise Problem(503, f"too many pages show live turns (limit: {_MAX_LIVE}); close one of them")
        request = Request({**read(query, OF_TURNS, api.now), "limit": 100}, reader)
        api.filter(request)  # raises a Problem if the reader can't use it
        headers = [*_SAFE, ("cache-control", "no-store")]
        return Response(200, content_type="text/event-stream", headers=headers, stream=self._events(api, request))

    async def _events(self, api: Api, request: Request) -> AsyncGenerator[bytes, None]:
        loop = asyncio.get_running_loop()
        self._live += 1
        last, sent_at = None, loop.time()
        yield b": listening\n\n"
        try:
            while True:
                try:
                    last, turns = await loop.run_in_executor(self._threads, api.lately, request, last)
                except Problem:
                    turns = []
                if turns:
                    yield b"data: " + jsonio.dumps({"turns": turns}).encode() + b"\n\n"
                    sent_at = loop.time()
                elif loop.time() - sent_at >= _ALIVE_EVERY:
                    yield b": alive\n\n"
                    sent_at = loop.time()
                else:
                    yield b""  # lets the server check if it is stopping
                await asyncio.sleep(_LIVE_EVERY)
        finally:
            self._live -= 1


class SumsThread:
    def __init__(self, path: str, time_s: Callable[[], float]) -> None:
        self._summer = Summer(path, time_s)
        with contextlib.suppress(sqlite3.Error, StoreError, OSError):  # readers and the outlet report it
            self._summer.open()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="agenteval-sums", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._over.set()
        self._thread.join(0.5)
        if not self._thread.is_alive():  # it may wait for the store's server
            self._summer.close()

    def _run(self) -> None:
        mark_as_ours()
        minutes_at = 0.0
        while not self._over.is_set():
            wait = _SUM_EVERY
            try:
                if time.monotonic() >= minutes_at:  # even if many hours are left to sum
                    minutes_at = time.monotonic() + _SUM_EVERY
                    self._summer.sum_minutes()
                if self._summer.sum_one():
                    wait = 0.0
            except (sqlite3.Error, StoreError, OSError, ValueError):
                pass  # the store is missing, busy, read-only or can't hold sums, so each request computes them
            self._over.wait(wait)


@dataclass
class _ApiExchange(HttpExchange):
    threads: Executor
    respond: Callable[[Head, Route, Request], Response]
    head: Head
    route: Route
    request: Request
    max_body = 64 * 1024
    body_timeout = 10.0

    async def answer(self, body: bytes) -> Response:
        request = self.request
        if self.route.body is not None:
            try:
                request = replace(request, body=jsonio.loads(body))
            except (ValueError, RecursionError):
                return _problem(400, "the body isn't valid JSON")
        return await asyncio.get_running_loop().run_in_executor(self.threads, self.respond, self.head, self.route, request)

    def refuse(self, why: Failure) -> Response:
        return _problem(413, "the body is too large") if why == "too_large" else _problem(400, "the body is incomplete")


def credentials_in(authorization: str | None) -> tuple[str, str] | None:
    """Return a name and the token from Bearer or Basic credentials (with the token as password). Without a token, return None."""
    kind, _, given = (authorization or "").partition(" ")
    if kind.lower() == "bearer" and given.strip():
        return "token", given.strip()
    if kind.lower() != "basic":
        return None
    try:
        name, found, token = base64.b64decode(given.strip(), validate=True).decode().partition(":")
    except ValueError:
        return None
    return (name or "token", token) if found and token else None


def _problem(status: int, message: str, allow: str | None = None) -> Response:
    headers = [*_SAFE, ("cache-control", "no-store")]
    if allow is not None:
        headers.append(("allow", allow))
    if status == 401:
        headers.append(("www-authenticate", 'Basic realm="otel-agenteval", charset="UTF-8"'))
    return Response(status, jsonio.dumps({"error": message}).encode(), "application/json", headers)


def _json(head: Head, body: bytes) -> Response:
    return _sent(head, body, "application/json", [("cache-control", "no-cache, private")])


def _sent(head: Head, body: bytes, content_type: str, more: list[tuple[str, str]]) -> Response:
    etag = f'W/"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'
    headers = [*_SAFE, *more, ("etag", etag), ("vary", "accept-encoding, authorization")]
    if head.headers.get("if-none-match") == etag and head.method in ("GET", "HEAD"):
        return Response(304, b"", content_type, headers)
    if len(body) >= _PACKED_FROM and "gzip" in head.headers.get("accept-encoding", ""):
        return Response(200, gzip.compress(body, 5, mtime=0), content_type, [*headers, ("content-encoding", "gzip")])
    return Response(200, body, content_type, headers)


def _static(head: Head) -> Response:
    first = head.path.strip("/").partition("/")[0]
    name = head.path.removeprefix("/static/") if head.path.startswith("/static/") else "index.html" if first in _VIEWS else None
    body = _files().get(name) if name is not None else None
    if body is None or name is None:
        raise Problem(404, "unknown path")
    if name == "index.html":  # relative, because a proxy can remove the start of the path
        body = body.replace(b'"/static', b'"./' + b"../" * (head.path.count("/") - 1) + b"static")
    content_type = "text/javascript" if name.endswith(".js") else mimetypes.guess_type(name)[0] or "application/octet-stream"
    charset = "; charset=utf-8" if content_type.startswith("text/") else ""
    return _sent(head, body, content_type + charset, [("cache-control", "no-cache")])


@cache
def _files() -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    folders = [(files("otel_agenteval.page") / "static", "")]
    while folders:
        folder, prefix = folders.pop()
        for one in folder.iterdir():
            if one.is_dir():
                folders.append((one, f"{prefix}{one.name}/"))
            else:
                found[f"{prefix}{one.name}"] = one.read_bytes()
    return found
