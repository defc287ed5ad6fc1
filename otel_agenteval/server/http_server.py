"""Listener with connection limits, and a small HTTP/1.1 server with time and size limits.

The package h11 parses the protocol. The server calls :meth:`Handler.begin` when a request's head has arrived. If the handler
accepts a body, the server then calls :meth:`HttpExchange.answer` with the complete body.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import re
import ssl
import threading
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import h11

from ..config.types import split_address
from ..core.errors import ConfigError
from .logformat import Caller, caller

_log = logging.getLogger("otel_agenteval")

HEAD_TIMEOUT = 10.0
"""Maximum seconds for a TLS handshake, and then until the end of the first request's head."""
IDLE_TIMEOUT = 75.0
WRITE_TIMEOUT = 30.0
TLS_HANDSHAKE = b"\x16\x03"
_LOG_EVERY = 10.0
_LINGER = 2.0
_LINGER_BYTES = 64 << 20
"""Maximum bytes to read and discard from a refused body, so that the sender gets the response."""
_READ = 256 * 1024
_SMALL = 4 * 1024
_BUFFER = 64 * 1024
"""Read buffer size of a connection in bytes. If twice as much data is waiting, the sender is paused."""


@dataclass(slots=True)
class Head:
    method: str
    path: str
    query: str
    headers: dict[str, str]
    client: str
    length: int | None

    @property
    def content_type(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


@dataclass(slots=True)
class Response:
    status: int
    body: bytes = b""
    content_type: str = "text/plain; charset=utf-8"
    headers: list[tuple[str, str]] = field(default_factory=list)
    stream: AsyncGenerator[bytes, None] | None = None
    """Data to send after the body, as long as the client is connected and the server runs."""


Failure = Literal["too_large", "too_slow", "no_room", "broken", "gone"]
"""Reason why a request's body is incomplete.

``too_large``: the body is too large. ``too_slow``: the body doesn't arrive in time. ``no_room``: there isn't enough memory.
``broken``: the body isn't valid HTTP. ``gone``: the client disconnected.
"""


class HttpExchange(Protocol):
    """One request and its response."""

    max_body: int
    body_timeout: float

    def received(self, size: int) -> bool:
        """Count ``size`` more bytes of the body. Return False to refuse the body."""
        return True

    async def answer(self, body: bytes) -> Response:
        """Return the response to the complete request."""

    def refuse(self, why: Failure) -> Response:
        """Return the response to a request with an incomplete body."""

    def end(self, size: int) -> None:
        """End the request. ``size`` is the body's size in bytes, or 0 if the body is incomplete."""
        return


class Handler(Protocol):
    def begin(self, head: Head) -> HttpExchange | Response:
        """If the handler needs the body, return an exchange that reads the body. Otherwise, return the response."""

    def failed(self, error: Exception) -> Response:
        """Return the response to a request whose handler raised an exception."""


Fault = Callable[[asyncio.AbstractEventLoop, dict[str, Any]], object]


class Pieces:
    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self.size = 0

    def add(self, data: bytes | memoryview) -> None:
        self.size += len(data)
        if self._pieces and len(self._pieces[-1]) < _SMALL:  # a separate bytes object for one byte takes fifty
            self._pieces[-1] += data
        else:
            self._pieces.append(bytes(data))

    def joined(self) -> bytes:
        whole = b"".join(self._pieces)
        self._pieces.clear()
        return whole


class ClientConnection(Protocol):
    client: str
    ended: asyncio.Future[None]

    def close_if_idle(self) -> None:
        """Close the connection now or, if requests are running, after these requests end."""

    def abort(self) -> None:
        """Close the connection immediately, and cancel its requests."""


_REFUSALS = ("limit", "scheme", "server_certificate", "client_certificate", "handshake")
_PLAIN = "the client doesn't use TLS; use https:// in the client"
_HANDSHAKES = (
    ("scheme", "HTTP", _PLAIN), ("scheme", "WRONG_VERSION", _PLAIN), ("scheme", "LENGTH_TOO_LONG", _PLAIN),
    ("scheme", "RECORD_LAYER", _PLAIN), ("handshake", "ALERT_PROTOCOL", "use TLS 1.2 or later in the client"),
    ("server_certificate", "ALERT", "the client rejects serve.tls.cert_file; give the client its CA, and connect to a name in the certificate"),
    ("client_certificate", "NOT_RETURN", "the client has no certificate; configure a client certificate in the client"),
    ("client_certificate", "CERTIFICATE_VERIFY", "the client's certificate isn't valid for serve.tls.client_ca_file; renew it, or add its CA"),
    ("handshake", "", "use TLS 1.2 or later in the client"),
)  # fmt: skip
"""Reasons for refused TLS connections. Each entry has a label, a part of OpenSSL's reason, and advice. The first match applies."""


def _handshakes(refuse: Callable[[ssl.SSLError], None]) -> type[ssl.SSLObject]:
    """Return a TLS connection class that reports failed handshakes to ``refuse``, because asyncio ignores these failures."""

    class Handshake(ssl.SSLObject):
        def do_handshake(self) -> None:
            try:
                super().do_handshake()
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError, ssl.SSLEOFError):  # unfinished, or a port scan
                raise
            except ssl.SSLError as error:
                refuse(error)
                raise

    return Handshake


class SocketListener:
    """Listener on one address. At a connection limit, it closes an old connection or, if that is impossible, the new connection."""

    def __init__(self, max_connections: int, client_connections: int) -> None:
        self._max_connections = max_connections
        self._client_connections = client_connections
        self._server: asyncio.Server | None = None
        self._connections: dict[ClientConnection, None] = {}
        self._clients: Counter[str] = Counter()
        self.stopping = False
        self.refused = Counter(dict.fromkeys(_REFUSALS, 0))
        self.address = ""
        self._next_log: dict[str, float] = {}

    @property
    def connections(self) -> int:
        return len(self._connections)

    async def start(self, option: str, address: str, context: ssl.SSLContext | None = None) -> None:
        host, port = split_address(address)
        try:
            more: dict[str, Any] = {}
            if context is not None:
                context.sslobject_class = _handshakes(self._refuse_handshake)
                more["ssl_handshake_timeout"] = HEAD_TIMEOUT
            self._server = await self._listen(host, port, ssl=context, **more)
        except OSError as error:
            taken = "another process uses it. Stop that process, or set another port"
            why = taken if error.errno == errno.EADDRINUSE else error.strerror or error
            raise ConfigError(f"{option}: can't listen on {address}: {why}") from None
        port = self._server.sockets[0].getsockname()[1]
        self.address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    async def _listen(self, host: str, port: int, **options: Any) -> asyncio.Server:
        raise NotImplementedError

    async def stop(self, grace: float) -> None:
        self.stopping = True
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections):
            connection.close_if_idle()
        await self._all_ended(grace)
        for connection in list(self._connections):
            connection.abort()
        await self._all_ended(1.0)

    async def _all_ended(self, timeout: float) -> None:
        if self._connections:
            await asyncio.wait([connection.ended for connection in self._connections], timeout=timeout)

    def enter(self, connection: ClientConnection) -> bool:
        client = connection.client
        crowded = self._clients[client] >= self._client_connections
        if crowded or len(self._connections) >= self._max_connections:
            limit = "client_connections" if crowded else "max_connections"
            self._refuse("limit", f"too many connections (serve.{limit}), the last from {client}")
            if not self._make_room(client if crowded else None):
                return False
        self._connections[connection] = None
        self._clients[client] += 1
        return True

    def refuse_tls(self, client: str) -> None:
        self._refuse("scheme", f"refused {client}: TLS on a plain port; use http:// in the client, or set serve.tls")

    def _refuse_handshake(self, error: ssl.SSLError) -> None:
        """Count and log a failed TLS handshake, with advice that matches OpenSSL's reason."""
        reason = error.reason or type(error).__name__
        kind, _, advice = next(one for one in _HANDSHAKES if one[1] in reason)
        self._refuse(kind, f"a TLS handshake failed: {advice} ({getattr(error, 'verify_message', reason)})")

    def _refuse(self, reason: str, message: str) -> None:
        self.refused[reason] += 1
        if time.monotonic() >= self._next_log.get(reason, 0.0):
            self._next_log[reason] = time.monotonic() + _LOG_EVERY
            _log.warning("%s: %s", self.address, message)

    def leave(self, connection: ClientConnection) -> None:
        del self._connections[connection]
        self._clients[connection.client] -= 1
        if not self._clients[connection.client]:
            del self._clients[connection.client]

    def _make_room(self, client: str | None) -> bool:
        """Close a connection (of ``client``, if set) to make room for a new connection. If that is impossible, return False."""
        return False


def client_of(transport: asyncio.BaseTransport) -> str:
    peer = transport.get_extra_info("peername")
    return str(peer[0]) if isinstance(peer, tuple) else "local"


class HttpServer(SocketListener):
    def __init__(self, handler: Handler, max_connections: int = 512, client_connections: int = 128) -> None:
        super().__init__(max_connections, client_connections)
        self._handler = handler

    async def _listen(self, host: str, port: int, **options: Any) -> asyncio.Server:
        return await asyncio.start_server(self._serve, host, port, limit=_BUFFER, **options)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = _Connection(self, self._handler, reader, writer)
        if not self.enter(connection):
            writer.transport.abort()
            return
        try:
            await connection.run()
        except (ConnectionError, TimeoutError, asyncio.TimeoutError, ssl.SSLError):
            writer.transport.abort()  # the client disconnected or was idle, and mightn't read what is left
        except asyncio.CancelledError:
            pass  # at shutdown, nothing awaits this task
        except Exception as error:
            _log.warning("an HTTP connection failed: %s", type(error).__name__)
        finally:
            self.leave(connection)
            with contextlib.suppress(Exception):
                writer.close()


class BackgroundServer(HttpServer):
    """HTTP server with a separate event loop, so that probes get a response under load."""

    def __init__(self, handler: Handler, max_connections: int, client_connections: int, fault: Fault) -> None:
        super().__init__(handler, max_connections, client_connections)
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(fault)
        self._thread = threading.Thread(target=self._loop.run_forever, name="agenteval-background", daemon=True)
        self._thread.start()

    async def start(self, option: str, address: str, context: ssl.SSLContext | None = None) -> None:
        try:
            await self._run_on_loop(super().start(option, address, context))
        except BaseException:
            await self._end()
            raise

    async def stop(self, grace: float) -> None:
        if self._thread.is_alive():
            await self._run_on_loop(super().stop(grace))
            await self._end()

    async def _run_on_loop(self, work: Coroutine[Any, Any, None]) -> None:
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    async def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        await asyncio.get_running_loop().run_in_executor(None, self._thread.join)
        self._loop.close()


class _Connection:
    def __init__(self, server: HttpServer, handler: Handler, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._server = server
        self._handler = handler
        self._reader = reader
        self._writer = writer
        self.client = client_of(writer.transport)
        task = asyncio.current_task()
        assert task is not None
        self.ended: asyncio.Future[None] = task
        self._protocol = h11.Connection(h11.SERVER, max_incomplete_event_size=32 * 1024)
        self._idle = True

    def close_if_idle(self) -> None:
        if self._idle:
            self._writer.close()

    def abort(self) -> None:
        self.ended.cancel()

    async def run(self) -> None:
        timeout = HEAD_TIMEOUT
        while True:
            self._idle = True
            event = await asyncio.wait_for(self._event(), timeout)
            broken = event if isinstance(event, int) else 400 if _is_ambiguous(event) else None
            if broken is not None:
                self._idle = False
                caller.set(Caller.of({}, self.client))
                if self._protocol.trailing_data[0].startswith(TLS_HANDSHAKE):
                    self._server.refuse_tls(self.client)
                is_head = isinstance(event, h11.Request) and event.method == b"HEAD"
                await self._send(Response(broken, b"bad request"), close=True, bodyless=is_head)
                await self._linger()
                return
            if not isinstance(event, h11.Request):
                return
            self._idle = False
            if not await self._exchange(event) or self._server.stopping:
                return
            self._protocol.start_next_cycle()
            timeout = IDLE_TIMEOUT

    # These methods run in tasks with a time limit. They return errors, because a task would keep an exception's frames alive.

    async def _event(self) -> Any:
        while True:
            try:
                event = self._protocol.next_event()
            except h11.RemoteProtocolError as error:
                error.__traceback__ = None  # h11 raises it in a frame that keeps it alive
                return error.error_status_hint
            if event is not h11.NEED_DATA:
                return event
            try:
                data = await self._reader.read(_READ)
            except (OSError, ssl.SSLError):
                return h11.ConnectionClosed()
            self._protocol.receive_data(data)

    async def _exchange(self, request: h11.Request) -> bool:
        head = _head_of(request, self.client)
        caller.set(Caller.of(head.headers, head.client))
        try:
            begun = self._handler.begin(head)
        except Exception as error:
            begun = self._handler.failed(error)
        if isinstance(begun, Response):
            return await self._answer_early(begun, head)
        size = 0
        try:
            body = await self._read_body_in_time(begun, head)
            if body == "gone":
                return False
            if isinstance(body, str):
                return await self._answer_early(begun.refuse(body), head)
            size = len(body)
            try:
                response = await begun.answer(body)
            except Exception as error:
                response = self._handler.failed(error)
        finally:
            begun.end(size)
        await self._send(response, close=self._server.stopping, bodyless=head.method == "HEAD")
        return self._protocol.our_state is h11.DONE

    async def _read_body_in_time(self, exchange: HttpExchange, head: Head) -> bytes | Failure:
        if head.length is not None and head.length > exchange.max_body:
            return "too_large"
        try:
            return await asyncio.wait_for(self._read_body(exchange.max_body, exchange.received), exchange.body_timeout)
        except asyncio.TimeoutError:
            return "too_slow"

    async def _read_body(self, limit: int, received: Callable[[int], bool]) -> bytes | Failure:
        if self._protocol.they_are_waiting_for_100_continue:
            await self._write(self._protocol.send(h11.InformationalResponse(status_code=100, headers=[])))
        pieces = Pieces()
        while True:
            event = await self._event()
            if isinstance(event, h11.Data):
                size = len(event.data)
                if pieces.size + size > limit:
                    return "too_large"
                if not received(size):
                    return "no_room"
                pieces.add(event.data)
            elif isinstance(event, h11.EndOfMessage):
                return pieces.joined()
            else:
                return "broken" if isinstance(event, int) else "gone"

    async def _answer_early(self, response: Response, head: Head) -> bool:
        whole = self._protocol.their_state is h11.DONE
        is_small = response.status != 408 and head.length is not None and head.length <= _READ
        if is_small and not whole and not self._protocol.they_are_waiting_for_100_continue:
            with contextlib.suppress(asyncio.TimeoutError):
                whole = isinstance(await asyncio.wait_for(self._read_body(_READ, lambda size: True), _LINGER), bytes)
        await self._send(response, close=not whole or self._server.stopping, bodyless=head.method == "HEAD")
        if whole:
            return self._protocol.our_state is h11.DONE
        await self._linger()
        return False

    async def _linger(self) -> None:
        async def read_on() -> None:
            left = _LINGER_BYTES
            while left > 0:
                piece = await self._reader.read(_READ)
                if not piece:
                    return
                left -= len(piece)

        self._protocol = h11.Connection(h11.SERVER)  # the previous object can hold a large buffer
        with contextlib.suppress(Exception):
            if self._writer.can_write_eof():
                self._writer.write_eof()
            await asyncio.wait_for(read_on(), _LINGER)

    async def _send(self, response: Response, *, close: bool, bodyless: bool = False) -> None:
        protocol = self._protocol
        if protocol.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            return
        headers = [("content-type", response.content_type), ("x-content-type-options", "nosniff"), *response.headers]
        if response.stream is None:
            headers.append(("content-length", str(len(response.body))))
        request = caller.get()
        if request is not None:
            headers.append(("x-request-id", request.request_id))
            if request.origin is not None:
                headers += [("access-control-allow-origin", request.origin), ("vary", "origin")]
        if close:
            headers.append(("connection", "close"))
        data = protocol.send(h11.Response(status_code=response.status, headers=headers)) or b""
        if response.body and not bodyless:
            data += protocol.send(h11.Data(data=response.body)) or b""
        if response.stream is not None and not bodyless:
            await self._write(data)
            data = b""
            async with contextlib.aclosing(response.stream):
                async for piece in response.stream:
                    if self._server.stopping:
                        break
                    if piece:
                        await self._write(protocol.send(h11.Data(data=piece)))
        data += protocol.send(h11.EndOfMessage()) or b""
        await self._write(data)

    async def _write(self, data: bytes | None) -> None:
        if data:
            self._writer.write(data)
            await asyncio.wait_for(self._writer.drain(), WRITE_TIMEOUT)


def _is_ambiguous(event: Any) -> bool:
    """Return True if a proxy and this server could disagree about where the request's body ends (RFC 9112, 6.1)."""
    names = {name for name, _ in event.headers} if isinstance(event, h11.Request) else ()
    return b"transfer-encoding" in names and (b"content-length" in names or event.http_version < b"1.1")


def _head_of(request: h11.Request, client: str) -> Head:
    headers: dict[str, str] = {}
    for name, value in request.headers:
        headers.setdefault(name.decode("latin-1").lower(), value.decode("latin-1"))
    path, _, query = re.sub(r"^https?://[^/?]*", "", request.target.decode("latin-1")).partition("?")  # proxies send whole URLs
    length = headers.get("content-length")
    return Head(
        request.method.decode("latin-1"), path, query, headers, client,
        int(length) if length is not None else None if "transfer-encoding" in headers else 0,
    )  # fmt: skip
