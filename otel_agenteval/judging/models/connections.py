"""Connections to one server for many concurrent requests, and what they send and receive.

A connection pool checks every connection on every request. With 200 connections, that takes several times as long as the rest
of a request. So each concurrent request has its own connection. httpx is used only for proxies and for hosts with non-ASCII
names.
"""

from __future__ import annotations

import http.client
import io
import os
import re
import select
import socket
import ssl
import threading
import urllib.parse
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import NamedTuple, Protocol

from ...core.clock import SYSTEM_CLOCK, Clock
from ...core.deadlines import Deadline, addresses_of
from ...core.proxies import proxy_for

_IDLE_SECONDS = 30.0
_PATH_SAFE = "!$%&'()*+,-./:;=@[\\]^_|~"
_STATUS = re.compile(rb"HTTP/1\.([01]) ([1-9]\d\d)(?: .*)?")
_LONGEST_LINE = 65_536
_SENT_AT_ONCE, _READ_AT_ONCE = 262_144, 65_536


class BrokenAnswer(ConnectionError):
    """The reply isn't complete, valid HTTP/1.1. The message contains nothing of it."""


class ReplyTooLarge(Exception):
    def __init__(self, status: int) -> None:
        super().__init__("the reply exceeds the size limit")
        self.status = status


class Reply(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes


class Bounds(NamedTuple):
    answer: int
    """Maximum bytes with status 2xx. A larger body is an error."""
    refusal: int
    """Maximum bytes with any other status. A larger body is truncated."""

    def body_of(self, status: int, pieces: Iterable[bytes]) -> tuple[bytes, bool]:
        """Return a reply's body, and False if it was truncated. A too large answer is an error."""
        is_answer = 200 <= status < 300
        most = self.answer if is_answer else self.refusal
        body = bytearray()
        for piece in pieces:
            body += piece
            if len(body) > most:
                if is_answer:
                    raise ReplyTooLarge(status)
                return bytes(body[:most]), False
        return bytes(body), True


class Posts(Protocol):
    """Protocol of a connection. Only one thread uses it at a time."""

    def post(self, url: str, headers: Mapping[str, str], content: bytes, stop: float, bounds: Bounds) -> Reply:
        """Send one request and return the reply. A request is never sent twice.

        Args:
            url: a URL at the same server.
            headers: printable ASCII headers. ``Host`` and ``Content-Length`` are added.
            content: the body.
            stop: the deadline, in seconds of the monotonic clock.
            bounds: the limits on the reply's size.

        Raises:
            TimeoutError: the reply wasn't complete at the deadline.
            OSError: the connection failed or broke, or the reply was invalid (:class:`BrokenAnswer`).
            ReplyTooLarge: the reply exceeds the limit.
            ValueError: a header contains invalid characters.
        """

    def close(self) -> None:
        """Close the connection. A later request connects again."""


class Connections:
    """Connections to one server, one for each concurrent request. Thread-safe."""

    def __init__(self, url: str, clock: Clock = SYSTEM_CLOCK) -> None:
        self._url = url
        self._clock = clock
        self._lock = threading.Lock()
        self._reset()

    def _reset(self) -> None:
        self._process = os.getpid()
        self._idle: deque[tuple[Posts, float]] = deque()
        self._opened = 0
        """Number of calls of :meth:`close`. Connections taken before the last one aren't kept."""

    @contextmanager
    def one(self) -> Iterator[Posts]:
        """Lend a connection to one thread. The most recently used one is most likely still open."""
        with self._lock:
            if self._process != os.getpid():  # after a fork connections belong to the parent
                self._reset()
            opened = self._opened
            found = self._idle.pop()[0] if self._idle else None
        connection = found or self._made()
        try:
            yield connection
        finally:
            self._give_back(connection, opened)

    def close(self) -> None:
        with self._lock:
            idle = [] if self._process != os.getpid() else [connection for connection, _ in self._idle]
            self._idle.clear()
            self._opened += 1
        for connection in idle:
            connection.close()

    def _give_back(self, connection: Posts, opened: int) -> None:
        now = self._clock.monotonic()
        with self._lock:
            over = []
            if self._process == os.getpid() and opened == self._opened:
                self._idle.append((connection, now))
                while self._idle[0][1] < now - _IDLE_SECONDS:
                    over.append(self._idle.popleft()[0])
            else:
                over.append(connection)
        for one in over:
            one.close()

    def _made(self) -> Posts:
        proxy = proxy_for(self._url)
        if proxy is None and (urllib.parse.urlsplit(self._url).hostname or "").isascii():
            return HttpConnection(self._url, self._clock)
        return _HttpxConnection(proxy, self._clock)


# --- with the standard library


class HttpConnection:
    """Connection whose replies are parsed by the standard library.

    Requests don't use ``http.client.HTTPConnection``, because tracing tools patch it to record an application's requests.
    """

    def __init__(self, url: str, clock: Clock) -> None:
        parts = urllib.parse.urlsplit(url)
        self._host = parts.hostname or ""
        self._is_encrypted = parts.scheme == "https"
        self._port = parts.port or (443 if self._is_encrypted else 80)
        self._clock = clock
        self._socket: socket.socket | None = None

    def post(self, url: str, headers: Mapping[str, str], content: bytes, stop: float, bounds: Bounds) -> Reply:
        message = _head(url, headers, len(content)) + content
        deadline = Deadline(self._clock, stop)
        lasts = False
        fault: BrokenAnswer
        try:
            connected = self._connected(deadline)
            sent = _send(connected, message, deadline)
            reply, lasts = _received(connected, deadline, bounds)
            deadline.left()
            lasts = lasts and sent
            return reply
        except OSError:
            raise
        except (http.client.HTTPException, ValueError, zlib.error) as error:
            fault = BrokenAnswer(f"the reply isn't valid HTTP/1.1 ({type(error).__name__})")
        finally:
            if not lasts:
                self.close()
        raise fault  # outside the handler, because the other exception contains what the server sent

    def close(self) -> None:
        connected, self._socket = self._socket, None
        if connected is not None:
            connected.close()

    def _connected(self, deadline: Deadline) -> socket.socket:
        if self._socket is not None and _is_idle(self._socket):
            return self._socket
        self.close()
        self._socket = _connect(self._host, self._port, deadline)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._is_encrypted:
            from ...core.outbound import trusted  # imports httpx

            self._socket.settimeout(deadline.left())
            self._socket = trusted().wrap_socket(self._socket, server_hostname=self._host)
        return self._socket


def _head(url: str, headers: Mapping[str, str], length: int) -> bytes:
    parts = urllib.parse.urlsplit(url)
    lines = [f"POST {urllib.parse.quote(parts.path or '/', safe=_PATH_SAFE)} HTTP/1.1"]
    lines += [] if any(name.lower() == "host" for name in headers) else [f"Host: {parts.netloc}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    lines += [f"Content-Length: {length}"]
    if not all(map(str.isprintable, lines)):
        raise ValueError("header: contains characters that can't be sent")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("ascii")


def _connect(host: str, port: int, deadline: Deadline) -> socket.socket:
    addresses = addresses_of(host, port, deadline)
    fault: OSError = BrokenAnswer("the host name has no address")
    for number, (family, kind, protocol, _, address) in enumerate(addresses):
        found = socket.socket(family, kind, protocol)
        try:
            found.settimeout(deadline.left() / (len(addresses) - number))
            found.connect(address)
        except OSError as error:
            found.close()
            fault = error
        else:
            return found
    raise fault


def _is_idle(connected: socket.socket) -> bool:
    """Return True if nothing arrived since the last reply, such as the end of the connection."""
    if isinstance(connected, ssl.SSLSocket) and connected.pending():
        return False
    if not hasattr(select, "poll"):  # Windows
        return not select.select([connected], (), (), 0)[0]
    poll = select.poll()
    poll.register(connected, select.POLLIN)
    return not poll.poll(0)


def _send(connected: socket.socket, message: bytes, deadline: Deadline) -> bool:
    """Send a request. Return False if the server stopped reading, maybe because it replied."""
    view = memoryview(message)
    try:
        for start in range(0, len(message), _SENT_AT_ONCE):
            deadline.bind(connected)
            connected.sendall(view[start : start + _SENT_AT_ONCE])
    except TimeoutError:
        raise
    except OSError:
        return False
    return True


def _received(connected: socket.socket, deadline: Deadline, bounds: Bounds) -> tuple[Reply, bool]:
    receiver = _Receiver(connected, deadline, 2 * bounds.answer + _READ_AT_ONCE)
    response = _Response(receiver, method="POST")  # type: ignore[arg-type]
    response.begin()
    pieces: Iterator[bytes] = iter(lambda: response.read(_READ_AT_ONCE), b"")
    if response.by_name.get("content-encoding", "").lower() in ("gzip", "deflate"):
        pieces = _decompressed(pieces)
    body, whole = bounds.body_of(response.status, pieces)
    if whole and response.length:
        raise http.client.IncompleteRead(b"")
    return Reply(response.status, response.by_name, body), whole and not response.will_close


def _decompressed(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Decompress a body. Some servers compress although the request doesn't accept that."""
    inflater = zlib.decompressobj(zlib.MAX_WBITS | 32)
    for piece in pieces:
        left = piece
        while left and not inflater.eof:
            yield inflater.decompress(left, _READ_AT_ONCE)
            left = inflater.unconsumed_tail


class _Response(http.client.HTTPResponse):
    """Reply of the standard library. Its headers aren't parsed as an e-mail's, which takes as long as the rest of a request."""

    by_name: dict[str, str]

    def begin(self) -> None:
        """Read the status and headers. Skip informational replies."""
        self.status = 0
        while self.status < 200:
            first = _STATUS.fullmatch(self._line())
            if first is None:
                raise http.client.BadStatusLine("")
            self.version, self.status = int(first[1]), int(first[2])
            self.by_name = {}
            while line := self._line():
                name, _, value = line.decode("latin-1").partition(":")
                self.by_name[name.lower()] = value.strip()
        self.chunk_left = None
        self.chunked = self.by_name.get("transfer-encoding", "").lower() == "chunked"
        length = 0 if self.status in (204, 304) else int(self.by_name.get("content-length", -1))
        self.length = None if self.chunked or length < 0 else length
        connection = self.by_name.get("connection", "").lower()
        until_end = self.length is None and not self.chunked
        self.will_close = until_end or "close" in connection or (self.version == 0 and "keep-alive" not in connection)

    def _line(self) -> bytes:
        line = self.fp.readline(_LONGEST_LINE)
        if not line.endswith(b"\n"):
            raise http.client.IncompleteRead(b"")
        return line.rstrip()


class _Receiver(io.RawIOBase):
    """Stream of what a socket receives until a deadline, at most ``left`` bytes."""

    def __init__(self, connected: socket.socket, deadline: Deadline, left: int) -> None:
        self._connected = connected
        self._deadline = deadline
        self._left = left

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(self)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        self._deadline.bind(self._connected)
        count = self._connected.recv_into(buffer)
        self._left -= count
        if self._left < 0:
            raise BrokenAnswer("the reply is too long")
        return count


# --- with httpx


class _HttpxConnection:
    def __init__(self, proxy: str | None, clock: Clock) -> None:
        from ...core.outbound import Transport, trusted  # imports httpx

        self._transport = Transport(trusted(), proxy)
        self._clock = clock

    def post(self, url: str, headers: Mapping[str, str], content: bytes, stop: float, bounds: Bounds) -> Reply:
        import httpx

        from ...core.outbound import bounded_by

        deadline = Deadline(self._clock, stop)
        fault: Exception
        try:
            timeout = {"timeout": httpx.Timeout(deadline.left()).as_dict()}
            request = httpx.Request("POST", url, headers=headers, content=content, extensions=timeout)
            with bounded_by(deadline), closing(self._transport.handle_request(request)) as response:
                body, _ = bounds.body_of(response.status_code, response.iter_bytes())
                return Reply(response.status_code, response.headers, body)
        except httpx.TimeoutException:
            fault = TimeoutError()
        except httpx.TransportError as error:
            fault = _untrusted(error) or BrokenAnswer(type(error).__name__)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            fault = ValueError(type(error).__name__)
        raise fault  # outside the handler, because httpx's exception contains the request with the API key

    def close(self) -> None:
        self._transport.close()


def _untrusted(error: BaseException) -> ssl.SSLCertVerificationError | None:
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLCertVerificationError):
        cause = cause.__cause__ or cause.__context__
    return cause
