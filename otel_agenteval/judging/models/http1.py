"""HTTP/1.1 over one plain socket: a request is posted, and its whole answer is read within a deadline.

That is all that a question to a model needs, at a fraction of what a general client takes of the processor: no redirects, cookies or
proxies. What the server sends is not trusted: its head and body are bounded, and an answer that does not keep to the protocol, or ends
early, is none. Nothing is sent twice: only a connection that was closed while it was idle is replaced before anything is sent on it.
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
"""Bytes between two looks at the deadline."""
_LARGEST_HEAD = 65_536
"""Bytes of a status line with all its headers; the same bounds the trailers of a body in chunks."""
_LONGEST_LINE = 4_096
"""Bytes of the line before a chunk."""
_MOST_INFORMATIONAL = 20
"""Answers of status 1xx before the one that counts."""
_PATH_SAFE = "!$%&'()*+,-./:;=@[\\]^_|~"
_HEAD_ENDS = re.compile(rb"\n\r?\n")
_STATUS = re.compile(rb"HTTP/1\.([01]) ([1-9]\d\d)(?: .*)?")
_NAME = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_LENGTH = re.compile(r"\d{1,20}")
_CHUNK_SIZE = re.compile(rb"[0-9A-Fa-f]{1,16}")
_FRAMING = frozenset(("host", "content-length", "transfer-encoding"))
_INFLATED = {"gzip": zlib.MAX_WBITS | 16, "deflate": zlib.MAX_WBITS}


class BrokenAnswer(ConnectionError):
    """What came is no answer of HTTP/1.1, or not all of one. The text says why, in our words alone."""


class ReplyTooLarge(Exception):
    """The answer has more bytes than are taken."""

    def __init__(self, status: int) -> None:
        super().__init__("the answer is too large")
        self.status = status


class Reply(NamedTuple):
    """What a server answered."""

    status: int
    headers: Mapping[str, str]
    """By name in small letters. What came under one name several times is joined by commas."""
    body: bytes
    """Without its encodings."""


class Bounds(NamedTuple):
    """How much of an answer is read."""

    answer: int
    """Bytes of the body of one with status 2xx; a longer one is refused."""
    refusal: int
    """The same for any other status; a longer one is cut."""

    def of(self, status: int) -> int:
        """Those of one status."""
        return self.answer if 200 <= status < 300 else self.refusal


class Origin:
    """A server, and what is the same for all requests to it. Thread-safe.

    Args:
        url: where it is.
        trusted: what an encrypted connection trusts.
    """

    def __init__(self, url: str, trusted: Callable[[], ssl.SSLContext]) -> None:
        parts = urllib.parse.urlsplit(url)
        self.host = parts.hostname or ""
        self.port = parts.port or _PORTS[parts.scheme]
        self.trusted = trusted if parts.scheme == "https" else None
        host = f"[{self.host}]" if ":" in self.host else self.host
        self._named = host if self.port == _PORTS[parts.scheme] else f"{host}:{self.port}"
        self._heads: dict[str, tuple[Mapping[str, str], bytes]] = {}
        """The last head of each address, and the headers that it was made of."""

    def head(self, url: str, headers: Mapping[str, str]) -> bytes:
        """A request's head up to the number of its bytes.

        Raises:
            ValueError: a header cannot be sent.
        """
        known = self._heads.get(url)
        if known is not None and known[0] is headers:
            return known[1]
        target = urllib.parse.quote(urllib.parse.urlsplit(url).path or "/", safe=_PATH_SAFE)
        host = next((value for name, value in headers.items() if name.lower() == "host"), self._named)
        fields = [("Host", host), *((name, value) for name, value in headers.items() if name.lower() not in _FRAMING)]
        lines = [f"{name}: {value}\r\n".encode("ascii") for name, value in fields if _is_field(name, value)]
        if len(lines) != len(fields):
            raise ValueError("a header cannot be sent")
        head = b"".join((f"POST {target} HTTP/1.1\r\n".encode("ascii"), *lines, b"Content-Length: "))
        self._heads[url] = headers, head
        return head


def _is_field(name: str, value: str) -> bool:
    return name.isascii() and _NAME.fullmatch(name.encode()) is not None and value.isascii() and value.isprintable()


class Connection:
    """A connection to be used by one thread at a time. It is made when it is needed, and made anew after any fault.

    Args:
        origin: the server.
        clock: measures deadlines.
    """

    def __init__(self, origin: Origin, clock: Clock) -> None:
        self._origin = origin
        self._clock = clock
        self._socket: socket.socket | None = None

    def post(self, url: str, headers: Mapping[str, str], content: bytes, stop: float, bounds: Bounds) -> Reply:
        """The answer to one request.

        Args:
            url: of the same server.
            headers: in ASCII; ``Content-Length`` is added.
            content: the body.
            stop: when to give up, in seconds of the monotonic clock.
            bounds: how much is read.

        Raises:
            TimeoutError: the answer was not there in time.
            OSError: the server could not be reached, or the connection broke; :class:`BrokenAnswer` where it did not keep to the protocol.
            ReplyTooLarge: the answer is larger than is taken.
            ValueError: a header cannot be sent.
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
        """Release it. A later request connects anew."""
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
    """A connection to one of a host's addresses, in the order in which the resolver names them. The time that is left is shared out."""
    addresses = addresses_of(host, port, deadline)
    fault: OSError = BrokenAnswer("its name has no address")
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
    """Whether nothing came since the last answer: what comes unasked is the end of the connection, or means nothing good."""
    if isinstance(connected, ssl.SSLSocket) and connected.pending():
        return False
    if not hasattr(select, "poll"):  # Windows
        return not select.select([connected], (), (), 0)[0]
    poll = select.poll()
    poll.register(connected, select.POLLIN)
    return not poll.poll(0)


def _send(connected: socket.socket, message: bytes, deadline: Deadline) -> OSError | None:
    """Send all of a request; the fault that kept the server from reading it: it may have answered before that.

    Raises:
        TimeoutError: it did not read all of it in time.
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
    """Reads one answer from a socket."""

    __slots__ = ("_buffer", "_connected", "_deadline")

    def __init__(self, connected: socket.socket, deadline: Deadline) -> None:
        self._connected = connected
        self._deadline = deadline
        self._buffer = bytearray()

    def reply(self, bounds: Bounds) -> tuple[Reply, bool]:
        """The answer, and whether the connection can take another request."""
        for _ in range(_MOST_INFORMATIONAL):
            version, status, headers = self._head()
            if status >= 200:
                break
            if status == 101:
                raise BrokenAnswer("it switched to another protocol")
        else:
            raise BrokenAnswer("it sent too many informational answers")
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
        """Wait until more came; False once nothing comes any more."""
        self._deadline.bind(self._connected)
        found = self._connected.recv(_RECEIVED)
        self._buffer += found
        return bool(found)

    def _take(self, count: int) -> bytes:
        """The next bytes."""
        while len(self._buffer) < count:
            if not self._more():
                raise BrokenAnswer("it closed the connection in the middle of its answer")
        found = bytes(self._buffer[:count])
        del self._buffer[:count]
        return found

    def _line(self, most: int) -> bytes:
        """The next line, without its end."""
        while (end := self._buffer.find(b"\n")) < 0 and len(self._buffer) <= most:
            if not self._more():
                raise BrokenAnswer("it closed the connection in the middle of its answer")
        if not 0 <= end <= most:
            raise BrokenAnswer("a line of its answer is too long")
        return self._take(end + 1)[:-1].removesuffix(b"\r")

    # --- the head

    def _head(self) -> tuple[bytes, int, dict[str, str]]:
        """Minor version, status and headers of an answer."""
        looked_at = 0
        while (found := _HEAD_ENDS.search(self._buffer, looked_at)) is None and len(self._buffer) <= _LARGEST_HEAD:
            looked_at = max(0, len(self._buffer) - 2)
            if not self._more():
                raise BrokenAnswer("it closed the connection before it answered")
        if found is None or found.end() > _LARGEST_HEAD:
            raise BrokenAnswer("the head of its answer is too large")
        first, *lines = self._take(found.end()).split(b"\n")
        status = _STATUS.fullmatch(first.removesuffix(b"\r"))
        if status is None:
            raise BrokenAnswer("its answer is not HTTP/1.1")
        headers: dict[str, str] = {}
        name = ""
        for line in lines[:-2]:
            raw, colon, value = line.partition(b":")
            text = value.strip().decode("latin-1")
            if line[:1] in (b" ", b"\t") and name:  # a value that goes on, as it was allowed once
                headers[name] += f" {line.strip().decode('latin-1')}"
                continue
            if not colon or _NAME.fullmatch(raw) is None:
                raise BrokenAnswer("a header of its answer cannot be read")
            name = raw.decode("ascii").lower()
            headers[name] = f"{headers[name]}, {text}" if name in headers else text
        return status[1], int(status[2]), headers

    # --- the body

    def _body(self, status: int, headers: Mapping[str, str], most: int) -> tuple[bytes, bool, bool]:
        """The body or its first bytes, whether it is whole, and whether its end is beyond doubt."""
        if status in (204, 304):
            return b"", True, True
        coding, length = headers.get("transfer-encoding"), headers.get("content-length")
        if coding is not None:
            if coding.strip().lower() != "chunked":
                raise BrokenAnswer("its answer has a transfer coding that was not asked for")
            return *self._chunks(most), length is None
        if length is None:
            return *self._until_end(most), False
        named = {one.strip() for one in length.split(",")}
        exact = named.pop()
        if named or _LENGTH.fullmatch(exact) is None:
            raise BrokenAnswer("the length of its answer cannot be read")
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
                raise BrokenAnswer("the size of a chunk cannot be read")
            count = int(size[0], 16)
            if count == 0:
                break
            if len(body) + count > most:
                return bytes(body + self._take(most - len(body))), False
            body += self._take(count)
            if self._line(1):
                raise BrokenAnswer("a chunk has another length than it says")
        left = _LARGEST_HEAD
        while line := self._line(left):  # trailers
            left -= len(line) + 2
        return bytes(body), True


def _decoded(body: bytes, encodings: str, most: int, whole: bool) -> tuple[bytes, bool]:
    """A body without the compression that was not asked for, and whether it is whole; one that is not known is left as it is."""
    for encoding in reversed([one.strip().lower() for one in encodings.split(",")]):
        bits = _INFLATED.get(encoding)
        if bits is None:
            continue
        if encoding == "deflate" and body[:1] and body[0] & 15 != 8:  # some servers leave out the head of it
            bits = -bits
        inflater = zlib.decompressobj(bits)
        try:
            found = inflater.decompress(body, most + 1)
        except zlib.error:
            raise BrokenAnswer("the compression of its answer cannot be read") from None
        if len(found) > most:
            return found[:most], False
        if whole and not inflater.eof:
            raise BrokenAnswer("the compression of its answer ends early")
        body = found
    return body, whole
