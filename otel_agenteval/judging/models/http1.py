"""Minimal HTTP/1.1 client that posts a request and reads the reply within a deadline.

Model calls need no redirects, cookies or proxies, so this client uses a fraction of a general client's CPU time. It doesn't
trust the server: header and body sizes are limited, and a malformed or truncated reply is an error. A request is never sent
twice. A connection that closed while idle is replaced before anything is sent.
"""

from __future__ import annotations

import re
import select
import socket
import ssl
import urllib.parse
import zlib
from collections.abc import Callable, Mapping
from typing import NamedTuple

from ...core.clock import Clock
from ...core.deadlines import Deadline, addresses_of

_PORTS = {"http": 80, "https": 443}
_RECEIVED = 65_536
_SENT_AT_ONCE = 262_144
"""Bytes sent between two checks of the deadline."""
_LARGEST_HEAD = 65_536
"""Maximum bytes of the status line with all headers, and of the trailers of a chunked body."""
_LONGEST_LINE = 4_096
"""Maximum bytes of a chunk's size line."""
_MOST_INFORMATIONAL = 20
"""Maximum number of 1xx replies before the final one."""
_PATH_SAFE = "!$%&'()*+,-./:;=@[\\]^_|~"
_HEAD_ENDS = re.compile(rb"\n\r?\n")
_STATUS = re.compile(rb"HTTP/1\.([01]) ([1-9]\d\d)(?: .*)?")
_NAME = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_LENGTH = re.compile(r"\d{1,20}")
_CHUNK_SIZE = re.compile(rb"[0-9A-Fa-f]{1,16}")
_FRAMING = frozenset(("host", "content-length", "transfer-encoding"))
_INFLATED = {"gzip": zlib.MAX_WBITS | 16, "deflate": zlib.MAX_WBITS}


class BrokenAnswer(ConnectionError):
    """The reply isn't complete, valid HTTP/1.1.

    The message contains nothing that the server sent.
    """


class ReplyTooLarge(Exception):
    """The reply's body exceeds the limit."""

    def __init__(self, status: int) -> None:
        super().__init__("the reply exceeds the size limit")
        self.status = status


class Reply(NamedTuple):
    """A server's reply."""

    status: int
    headers: Mapping[str, str]
    """Headers by lower-case name. Repeated headers are joined by commas."""
    body: bytes
    """The decoded body."""


class Bounds(NamedTuple):
    """Limits on the size of a reply's body."""

    answer: int
    """Maximum bytes with status 2xx. A larger body is an error."""
    refusal: int
    """Maximum bytes with any other status. A larger body is truncated."""

    def of(self, status: int) -> int:
        """Return the limit for a status."""
        return self.answer if 200 <= status < 300 else self.refusal


class Origin:
    """A server, with the request heads to reuse. Thread-safe.

    Args:
        url: the server's URL.
        trusted: returns the TLS context.
    """

    def __init__(self, url: str, trusted: Callable[[], ssl.SSLContext]) -> None:
        parts = urllib.parse.urlsplit(url)
        self.host = parts.hostname or ""
        self.port = parts.port or _PORTS[parts.scheme]
        self.trusted = trusted if parts.scheme == "https" else None
        host = f"[{self.host}]" if ":" in self.host else self.host
        self._named = host if self.port == _PORTS[parts.scheme] else f"{host}:{self.port}"
        self._heads: dict[str, tuple[Mapping[str, str], bytes]] = {}
        """The last request head of each URL, with the headers that it contains."""

    def head(self, url: str, headers: Mapping[str, str]) -> bytes:
        """Return a request's head, up to the value of ``Content-Length``.

        Raises:
            ValueError: a header contains invalid characters.
        """
        known = self._heads.get(url)
        if known is not None and known[0] is headers:
            return known[1]
        target = urllib.parse.quote(urllib.parse.urlsplit(url).path or "/", safe=_PATH_SAFE)
        host = next((value for name, value in headers.items() if name.lower() == "host"), self._named)
        fields = [("Host", host), *((name, value) for name, value in headers.items() if name.lower() not in _FRAMING)]
        lines = [f"{name}: {value}\r\n".encode("ascii") for name, value in fields if _is_field(name, value)]
        if len(lines) != len(fields):
            raise ValueError("header: contains characters that can't be sent")
        head = b"".join((f"POST {target} HTTP/1.1\r\n".encode("ascii"), *lines, b"Content-Length: "))
        self._heads[url] = headers, head
        return head


def _is_field(name: str, value: str) -> bool:
    return name.isascii() and _NAME.fullmatch(name.encode()) is not None and value.isascii() and value.isprintable()


class Connection:
    """Connection for one thread at a time. It connects on demand, and again after any error.

    Args:
        origin: the server.
        clock: the clock for deadlines.
    """

    def __init__(self, origin: Origin, clock: Clock) -> None:
        self._origin = origin
        self._clock = clock
        self._socket: socket.socket | None = None

    def post(self, url: str, headers: Mapping[str, str], content: bytes, stop: float, bounds: Bounds) -> Reply:
        """Send one request and return the reply.

        Args:
            url: a URL at the same server.
            headers: ASCII headers. ``Content-Length`` is added.
            content: the body.
            stop: the deadline, in seconds of the monotonic clock.
            bounds: the limits on the reply's size.

        Raises:
            TimeoutError: the reply wasn't complete at the deadline.
            OSError: the server couldn't be reached, or the connection broke. :class:`BrokenAnswer` if the reply was invalid.
            ReplyTooLarge: the reply exceeds the limit.
            ValueError: a header contains invalid characters.
        """
        message = b"".join((self._origin.head(url, headers), b"%d\r\n\r\n" % len(content), content))
        deadline = Deadline(self._clock, stop)
        lasts = False
        try:
            connected = self._connected(deadline)
            fault = _send(connected, message, deadline)
            incoming = _Incoming(connected, deadline)
            try:
                reply, lasts = incoming.reply(bounds)
            except ConnectionError:
                if fault is not None:
                    raise fault from None
                raise
            lasts = lasts and fault is None
            deadline.left()
        finally:
            if not lasts:
                self.close()
        return reply

    def close(self) -> None:
        """Close the connection. A later request connects again."""
        connected, self._socket = self._socket, None
        if connected is not None:
            connected.close()

    def _connected(self, deadline: Deadline) -> socket.socket:
        found = self._socket
        if found is not None and _is_idle(found):
            return found
        self.close()
        found = _connect(self._origin.host, self._origin.port, deadline)
        try:
            found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._origin.trusted is not None:
                found.settimeout(deadline.left())
                found = self._origin.trusted().wrap_socket(found, server_hostname=self._origin.host)
        except BaseException:
            found.close()
            raise
        self._socket = found
        return found


def _connect(host: str, port: int, deadline: Deadline) -> socket.socket:
    """Connect to the first reachable address of a host.

    All addresses share the remaining time.
    """
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
        except BaseException:
            found.close()
            raise
        else:
            return found
    try:
        raise fault
    finally:
        del fault


def _is_idle(connected: socket.socket) -> bool:
    """Return True if nothing arrived since the last reply.

    Unexpected data means that the server closed the connection or broke the protocol.
    """
    if isinstance(connected, ssl.SSLSocket) and connected.pending():
        return False
    if not hasattr(select, "poll"):  # Windows
        return not select.select([connected], (), (), 0)[0]
    poll = select.poll()
    poll.register(connected, select.POLLIN)
    return not poll.poll(0)


def _send(connected: socket.socket, message: bytes, deadline: Deadline) -> OSError | None:
    """Send a request and return the error if the server stopped reading.

    The server may have replied before that.

    Raises:
        TimeoutError: the server didn't read the whole request in time.
    """
    try:
        if len(message) <= _SENT_AT_ONCE:
            deadline.bind(connected)
            connected.sendall(message)
            return None
        view = memoryview(message)
        for start in range(0, len(message), _SENT_AT_ONCE):
            deadline.bind(connected)
            connected.sendall(view[start : start + _SENT_AT_ONCE])
    except TimeoutError:
        raise
    except OSError as error:
        return error
    return None


class _Incoming:
    """Parser of one reply from a socket."""

    __slots__ = ("_buffer", "_connected", "_deadline")

    def __init__(self, connected: socket.socket, deadline: Deadline) -> None:
        self._connected = connected
        self._deadline = deadline
        self._buffer = bytearray()

    def reply(self, bounds: Bounds) -> tuple[Reply, bool]:
        """Return the reply, and True if the connection can be reused."""
        for _ in range(_MOST_INFORMATIONAL):
            version, status, headers = self._head()
            if status >= 200:
                break
            if status == 101:
                raise BrokenAnswer("the server switched to another protocol")
        else:
            raise BrokenAnswer("the server sent too many 1xx replies")
        most = bounds.of(status)
        body, whole, lasts = self._body(status, headers, most)
        encoding = headers.get("content-encoding")
        if encoding is not None and body:
            body, whole = _decoded(body, encoding, most, whole)
        if not whole and 200 <= status < 300:
            raise ReplyTooLarge(status)
        said = headers.get("connection")
        if said is not None or version == b"0":
            options = {option.strip().lower() for option in (said or "").split(",")}
            lasts = lasts and "close" not in options and (version == b"1" or "keep-alive" in options)
        return Reply(status, headers, body), lasts and whole and not self._buffer

    def _more(self) -> bool:
        """Receive more bytes. Return False at the end of the stream."""
        self._deadline.bind(self._connected)
        found = self._connected.recv(_RECEIVED)
        self._buffer += found
        return bool(found)

    def _take(self, count: int) -> bytes:
        """Return the next bytes."""
        while len(self._buffer) < count:
            if not self._more():
                raise BrokenAnswer("the server closed the connection during the reply")
        found = bytes(self._buffer[:count])
        del self._buffer[:count]
        return found

    def _line(self, most: int) -> bytes:
        """Return the next line without its line break."""
        while (end := self._buffer.find(b"\n")) < 0 and len(self._buffer) <= most:
            if not self._more():
                raise BrokenAnswer("the server closed the connection during the reply")
        if not 0 <= end <= most:
            raise BrokenAnswer("a line of the reply is too long")
        return self._take(end + 1)[:-1].removesuffix(b"\r")

    # --- the head

    def _head(self) -> tuple[bytes, int, dict[str, str]]:
        """Return the minor version, status and headers."""
        looked_at = 0
        while (found := _HEAD_ENDS.search(self._buffer, looked_at)) is None and len(self._buffer) <= _LARGEST_HEAD:
            looked_at = max(0, len(self._buffer) - 2)
            if not self._more():
                raise BrokenAnswer("the server closed the connection before it replied")
        if found is None or found.end() > _LARGEST_HEAD:
            raise BrokenAnswer("the reply's headers are too large")
        first, *lines = self._take(found.end()).split(b"\n")
        status = _STATUS.fullmatch(first.removesuffix(b"\r"))
        if status is None:
            raise BrokenAnswer("the reply isn't HTTP/1.1")
        headers: dict[str, str] = {}
        name = ""
        for line in lines[:-2]:
            raw, colon, value = line.partition(b":")
            text = value.strip().decode("latin-1")
            if line[:1] in (b" ", b"\t") and name:  # obsolete line folding: the value continues
                headers[name] += f" {line.strip().decode('latin-1')}"
                continue
            if not colon or _NAME.fullmatch(raw) is None:
                raise BrokenAnswer("the reply has an invalid header")
            name = raw.decode("ascii").lower()
            headers[name] = f"{headers[name]}, {text}" if name in headers else text
        return status[1], int(status[2]), headers

    # --- the body

    def _body(self, status: int, headers: Mapping[str, str], most: int) -> tuple[bytes, bool, bool]:
        """Return the body, True if it is complete, and True if its end is unambiguous."""
        if status in (204, 304):
            return b"", True, True
        coding, length = headers.get("transfer-encoding"), headers.get("content-length")
        if coding is not None:
            if coding.strip().lower() != "chunked":
                raise BrokenAnswer("the reply has an unsupported transfer coding")
            return *self._chunks(most), length is None
        if length is None:
            return *self._until_end(most), False
        named = {one.strip() for one in length.split(",")}
        exact = named.pop()
        if named or _LENGTH.fullmatch(exact) is None:
            raise BrokenAnswer("the reply has an invalid content length")
        whole = int(exact) <= most
        return self._take(int(exact) if whole else most), whole, True

    def _until_end(self, most: int) -> tuple[bytes, bool]:
        while len(self._buffer) <= most and self._more():
            pass
        whole = len(self._buffer) <= most
        return self._take(min(most, len(self._buffer))), whole

    def _chunks(self, most: int) -> tuple[bytes, bool]:
        body = bytearray()
        while True:
            size = _CHUNK_SIZE.fullmatch(self._line(_LONGEST_LINE).partition(b";")[0].strip())
            if size is None:
                raise BrokenAnswer("the reply has an invalid chunk size")
            count = int(size[0], 16)
            if count == 0:
                break
            if len(body) + count > most:
                return bytes(body + self._take(most - len(body))), False
            body += self._take(count)
            if self._line(1):
                raise BrokenAnswer("chunk length doesn't match its header")
        left = _LARGEST_HEAD
        while line := self._line(left):  # trailers
            left -= len(line) + 2
        return bytes(body), True


def _decoded(body: bytes, encodings: str, most: int, whole: bool) -> tuple[bytes, bool]:
    """Decompress a body, and return it with True if it is complete.

    Some servers compress although the request doesn't accept that. A body with an unknown encoding is returned unchanged.
    """
    for encoding in reversed([one.strip().lower() for one in encodings.split(",")]):
        bits = _INFLATED.get(encoding)
        if bits is None:
            continue
        if encoding == "deflate" and body[:1] and body[0] & 15 != 8:  # some servers omit the zlib header
            bits = -bits
        inflater = zlib.decompressobj(bits)
        try:
            found = inflater.decompress(body, most + 1)
        except zlib.error:
            raise BrokenAnswer("the reply's compression is invalid") from None
        if len(found) > most:
            return found[:most], False
        if whole and not inflater.eof:
            raise BrokenAnswer("the reply's compressed data ends early")
        body = found
    return body, whole
