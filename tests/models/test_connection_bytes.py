"""Replies as raw bytes on a socket, including invalid replies."""

from __future__ import annotations

import gzip
import re
import socket
import ssl
import struct
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from otel_agenteval.core import outbound
from otel_agenteval.core.clock import SYSTEM_CLOCK
from otel_agenteval.core.errors import NotAnswered
from otel_agenteval.judging.models import transport
from otel_agenteval.judging.models.transport import JsonTransport, Reply
from tests.support.certificates import Authority

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
Script = Callable[[socket.socket], object]


class Server:
    """Accepts one connection at a time, runs a script for each request on it, and then closes it."""

    def __init__(self, *connections: list[Script], tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[bytes] = []
        self._tls = tls
        self._connections = connections
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{self.port}/v1"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        for scripts in self._connections:
            try:
                raw, _ = self._listener.accept()
            except OSError:
                return
            with suppress(OSError), raw if self._tls is None else self._tls.wrap_socket(raw, server_side=True) as connected:
                for script in scripts:
                    request = b""
                    while len(request.partition(b"\r\n\r\n")[2]) < 2 and (
                        piece := connected.recv(65_536)
                    ):  # the shortest body has two
                        request += piece
                    if request:
                        self.requests.append(request)
                        script(connected)

    def close(self) -> None:
        self._listener.close()
        with suppress(OSError):  # wake the thread
            socket.create_connection(("127.0.0.1", self.port), 0.1).close()
        self._thread.join(60)


@contextmanager
def serving(
    *connections: list[Script], tls: ssl.SSLContext | None = None, **headers: str
) -> Iterator[tuple[Server, JsonTransport]]:
    server = Server(*connections, tls=tls)
    client = JsonTransport(server.url, {}, headers, timeout=60, clock=SYSTEM_CLOCK, largest_reply=1_000, sign=None)
    try:
        yield server, client
    finally:
        client.close()
        server.close()


def post(client: JsonTransport, content: bytes = b"{}", seconds: float = 60) -> Reply:
    return client.post("/chat", content, time.monotonic() + seconds)


def fault_of(client: JsonTransport, content: bytes = b"{}", seconds: float = 60) -> NotAnswered:
    with pytest.raises(NotAnswered) as caught:
        post(client, content, seconds)
    return caught.value


def sends(*pieces: bytes) -> Script:
    def script(connected: socket.socket) -> None:
        for piece in pieces:
            connected.sendall(piece)

    return script


def reply_to(*pieces: bytes) -> Reply:
    with serving([sends(*pieces)]) as (_, client):
        return post(client)


def chunked(*chunks: bytes) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)


# --- requests


def test_request_has_host_headers_and_length() -> None:
    with serving([sends(OK)], **{"X-Key": "k"}) as (server, client):
        client.post("/models/a b%2Fc:say", b"{}", time.monotonic() + 60)
    head = (
        f"POST /v1/models/a%20b%2Fc:say HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nUser-Agent: otel-agenteval\r\n"
        "Accept: application/json\r\nX-Key: k\r\nContent-Type: application/json\r\nAccept-Encoding: identity\r\nContent-Length: 2\r\n\r\n"
    )
    found = [re.sub(rb"traceparent: 00-[0-9a-f]{32}-[0-9a-f]{16}-00\r\n", b"", request) for request in server.requests]
    assert found == [head.encode() + b"{}"]


def test_own_host_header_replaces_the_address() -> None:
    with serving([sends(OK)], host="models.example") as (server, client):
        post(client)
    assert server.requests[0].lower().count(b"host: ") == 1
    assert b"host: models.example\r\n" in server.requests[0]


def test_header_is_refused_with_unsendable_characters() -> None:
    with serving(**{"X-Key": " k"}) as (server, client):
        fault = fault_of(client)
    assert (str(fault), fault.error_type) == (f"can't send the request to {server.url}: ValueError", "unreachable")
    assert fault.__context__ is None


# --- replies


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param([bytes([byte]) for byte in OK], id="byte by byte"),
        pytest.param([b"HTTP/1.1 200\nContent-Length: 2\n\n{}"], id="line feeds only"),
        pytest.param([b"HTTP/1.0 200 OK\r\n\r\n{}"], id="until the end"),
        pytest.param([bytes([byte]) for byte in CHUNKED + chunked(b"{", b"}", b"")], id="in chunks, byte by byte"),
        pytest.param([CHUNKED + b"002;a=b\r\n{}\r\n0;end\r\nX-Sum: 1\r\n\r\n"], id="chunk extensions and trailers"),
        pytest.param([b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Hints\r\nLink: </a>\r\n\r\n" + OK], id="after 1xx"),
    ],
)
def test_reply_is_complete_in_any_form(pieces: list[bytes]) -> None:
    assert reply_to(*pieces)[::2] == (200, b"{}")


def test_headers_are_found_in_any_case() -> None:
    found = reply_to(b"HTTP/1.1 429 No\r\nRETRY-After:7 \r\nContent-Length: 0\r\n\r\n")
    assert found.headers == {"retry-after": "7", "content-length": "0"}


@pytest.mark.parametrize(("encoding", "body"), [(b"gzip", gzip.compress(b"{}", mtime=0)), (b"Deflate", zlib.compress(b"{}"))])
def test_compressed_reply_is_decompressed(encoding: bytes, body: bytes) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: %b\r\nContent-Length: %d\r\n\r\n" % (encoding, len(body))
    assert reply_to(head + body).body == b"{}"


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(OK[:-7], id="ends in the head"),
        pytest.param(OK[:-1], id="ends in the body"),
        pytest.param(CHUNKED + b"5\r\n{", id="ends in a chunk"),
        pytest.param(CHUNKED + b"x\r\n{\r\n0\r\n\r\n", id="invalid chunk size"),
        pytest.param(CHUNKED + b"-1\r\n" + b"a" * 1_000_000, id="negative chunk size"),
        pytest.param(b"HTTP/1.1 101 Switching\r\nUpgrade: h2c\r\n\r\n", id="another protocol"),
        pytest.param(b"HTTP/1.1 200 OK\r\nX-A: " + b"a" * 200_000 + b"\r\n\r\n", id="huge header"),
        pytest.param(b"HTTP/1.1 200 OK\r\n" + b"X-A: 1\r\n" * 100_000 + b"\r\n", id="endless headers"),
        pytest.param(CHUNKED + b"0\r\n" + b"X-A: 1\r\n" * 100_000, id="endless trailers"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}", id="not gzip"),
    ],
)
def test_invalid_reply_is_a_connection_error(sent: bytes) -> None:
    with serving([sends(sent)]) as (_, client):
        fault = fault_of(client)
    assert (fault.error_type, fault.transient) == ("unreachable", True)


def test_error_contains_nothing_from_the_server() -> None:
    with serving([sends(b"SSH-secret\r\n\r\n")]) as (server, client):
        fault = fault_of(client)
    assert str(fault) == f"can't reach {server.url}: the reply isn't valid HTTP/1.1 (RemoteProtocolError)"
    assert fault.__context__ is None


LARGE = [
    pytest.param(b"Content-Length: 1001\r\n\r\n" + b"a" * 1_001, id="content length"),
    pytest.param(b"\r\n" + b"a" * 1_001, id="until the end"),
    pytest.param(b"Transfer-Encoding: chunked\r\n\r\n" + chunked(b"a" * 1_000, b"a", b""), id="chunks"),
    pytest.param(b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(b"a" * 1_000_000, mtime=0), id="compressed"),
]


@pytest.mark.parametrize("sent", LARGE)
def test_reply_is_refused_above_the_limit_and_a_rejection_truncated(sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "_MAX_REJECTION", 10)
    with serving([sends(b"HTTP/1.1 201 OK\r\n" + sent)]) as (_, client):
        fault = fault_of(client)
    assert (fault.error_type, fault.status, str(fault)) == ("reply_too_large", 201, "the reply exceeds the size limit")
    assert reply_to(b"HTTP/1.1 400 No\r\n" + sent)[::2] == (400, b"a" * 10)


@given(
    st.lists(
        st.sampled_from([
            b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 100 Continue\r\n", b"HTTP/1.0 500 No\r\n", b"\r\n", b"\n", b"\r\n\r\n", b"0\r\n",
            b"2\r\n", b"{}", b":", b" ", b"Content-Length: 2\r\n", b"Content-Length: 999\r\n", b"Transfer-Encoding: chunked\r\n",
            b"Content-Encoding: gzip\r\n", b"\xff\x00", b"ff\r\n", b"Content-Encoding: deflate\r\n", b"Connection: close\r\n",
        ]) | st.binary(max_size=8),
        max_size=12,
    )
)  # fmt: skip
@example([b"HTTP/1.1 200 OK\r\n", b"Content-Encoding: deflate\r\n", b"\r\n", b"\x00"])
def test_any_bytes_are_a_reply_or_a_known_error(pieces: list[bytes]) -> None:
    with suppress(NotAnswered):
        assert 200 <= reply_to(b"".join(pieces)).status <= 999


# --- deadlines


@pytest.mark.parametrize("size", [2, 50_000_000], ids=["answers nothing", "reads nothing"])
def test_deadline_holds_if_the_server_does_nothing(size: int) -> None:
    release = threading.Event()
    with serving([lambda _: release.wait(60)]) as (_, client):
        fault = fault_of(client, b"a" * size, seconds=0.1)
        assert (str(fault), fault.error_type) == ("no reply before the deadline", "timeout")
        release.set()


# --- one request after the other


def test_connection_is_reused_after_complete_replies() -> None:
    empty = b"HTTP/1.1 204 No\r\nContent-Length: 5\r\n\r\n"
    kinds = [OK, CHUNKED + chunked(b"{}", b""), empty, OK]
    with serving([sends(kind) for kind in kinds]) as (server, client):
        assert [post(client).body for _ in kinds] == [b"{}", b"{}", b"", b"{}"]
    assert len(server.requests) == 4


@pytest.mark.parametrize("first", [OK.replace(b"\r\n\r\n", b"\r\nConnection: x, Close\r\n\r\n"), OK.replace(b"1.1", b"1.0")])
def test_connection_is_closed_if_the_server_wants_that(first: bytes) -> None:
    closed = threading.Event()

    def stay(connected: socket.socket) -> None:
        connected.sendall(first)
        assert not connected.recv(1)
        closed.set()

    with serving([stay], [sends(OK)]) as (_, client):
        assert [post(client).body for _ in range(2)] == [b"{}"] * 2
        assert closed.wait(60)


def _reset(connected: socket.socket) -> None:
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connected.close()


@pytest.mark.parametrize("end", [socket.socket.close, _reset, lambda one: one.sendall(b"HTTP/1.1 408 Late\r\n\r\n")])
def test_connection_that_ended_is_replaced_before_sending(end: Callable[[socket.socket], object]) -> None:
    ended, wanted = threading.Event(), threading.Event()

    def script(connected: socket.socket) -> None:
        connected.sendall(OK)
        wanted.wait(60)
        end(connected)
        ended.set()

    with serving([script], [sends(OK)]) as (server, client):
        assert post(client).body == b"{}"
        wanted.set()
        assert ended.wait(60)
        assert post(client).body == b"{}"
    assert len(server.requests) == 2


def test_request_is_never_sent_twice() -> None:
    with serving([sends(OK), lambda connected: connected.close()], [sends(OK)]) as (server, client):
        post(client)
        assert fault_of(client).error_type == "unreachable"
        assert len(server.requests) == 2
        assert post(client).body == b"{}"  # the caller decides whether to try again


def test_reply_is_read_if_it_came_before_the_whole_request() -> None:
    reply = b"HTTP/1.1 413 No\r\nContent-Length: 5\r\n\r\nlarge"
    with serving([sends(reply)], [sends(OK)]) as (server, client):
        assert post(client, b"a" * 50_000_000)[::2] == (413, b"large")
        assert post(client).body == b"{}"  # on another connection
    assert len(server.requests) == 2


# --- addresses and certificates


def test_encrypted_connection_is_reused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = Authority(tmp_path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(*authority.issue("127.0.0.1"))
    monkeypatch.setattr(outbound, "trusted", lambda: ssl.create_default_context(cafile=str(authority.file)))
    large = b'"' + b"a" * 300_000 + b'"'
    sent = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(large) + large
    with serving([sends(OK), sends(sent), sends(OK[:-1])], tls=tls) as (server, client):
        assert post(client).body == b"{}"
        client._largest_reply = 1_000_000
        assert post(client).body == large
        assert fault_of(client).error_type == "unreachable"
    assert len(server.requests) == 3
