"""HTTP/1.1 over one socket: what servers send, also what they should not, and what is made of it."""

from __future__ import annotations

import gzip
import socket
import ssl
import struct
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from otel_agenteval.core.clock import SYSTEM_CLOCK
from otel_agenteval.judging.models import http1
from otel_agenteval.judging.models.http1 import Bounds, BrokenAnswer, Connection, Origin, Reply, ReplyTooLarge
from tests.support.certificates import Authority
from tests.support.clock import FakeClock

BOUNDS = Bounds(answer=1_000, refusal=10)
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
Script = Callable[[socket.socket, bytes], object]


def trusted() -> ssl.SSLContext:
    raise AssertionError("nothing is encrypted here")


class Server:
    """Takes one connection after the other, and does with each request on it what the next step says; then it closes the connection."""

    def __init__(
        self, *connections: list[Script], family: socket.AddressFamily = socket.AF_INET, tls: ssl.SSLContext | None = None
    ) -> None:
        self.requests: list[bytes] = []
        self._tls = tls
        self._connections = connections
        self._listener = socket.create_server(("::1" if family == socket.AF_INET6 else "127.0.0.1", 0), family=family)
        host, self.port = self._listener.getsockname()[:2]
        self.url = f"{'http' if tls is None else 'https'}://{f'[{host}]' if ':' in host else host}:{self.port}/v1"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        for steps in self._connections:
            try:
                raw, _ = self._listener.accept()
            except OSError:
                return
            with suppress(OSError), raw if self._tls is None else self._tls.wrap_socket(raw, server_side=True) as connected:
                for step in steps:
                    self._answer(connected, step)

    def _answer(self, connected: socket.socket, step: Script) -> None:
        request = b""
        while b"\r\n\r\n" not in request:
            came = connected.recv(65_536)
            if not came:
                return
            request += came
        self.requests.append(request)
        step(connected, request)

    def close(self) -> None:
        self._listener.close()
        with suppress(OSError):  # wakes who still waits for a connection
            socket.create_connection(("127.0.0.1", self.port), 0.1).close()
        self._thread.join(10)


@contextmanager
def serving(*connections: list[Script], **options: object) -> Iterator[Server]:
    server = Server(*connections, **options)  # type: ignore[arg-type]
    try:
        yield server
    finally:
        server.close()


@contextmanager
def connected(server: Server) -> Iterator[Connection]:
    connection = Connection(Origin(server.url, trusted), SYSTEM_CLOCK)
    try:
        yield connection
    finally:
        connection.close()


def post(connection: Connection, server: Server, content: bytes = b"{}", bounds: Bounds = BOUNDS, **headers: str) -> Reply:
    return connection.post(f"{server.url}/chat", headers, content, time.monotonic() + 10, bounds)


def says(*pieces: bytes) -> Script:
    def step(connected: socket.socket, _: bytes) -> None:
        for piece in pieces:
            connected.sendall(piece)

    return step


def answer(*pieces: bytes) -> Reply:
    """What is made of the answer of a server that sends these bytes and closes the connection."""
    with serving([says(*pieces)]) as server, connected(server) as connection:
        return post(connection, server)


def chunked(*chunks: bytes) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

# --- what is sent


def test_a_request_is_a_post_with_its_host_headers_and_length() -> None:
    with serving([says(OK)]) as server, connected(server) as connection:
        connection.post(
            f"{server.url}/models/a b%2Fc:say", {"X-Key": "k", "Content-Length": "7"}, b"{}", time.monotonic() + 10, BOUNDS
        )
    head = f"POST /v1/models/a%20b%2Fc:say HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nX-Key: k\r\nContent-Length: 2\r\n\r\n"
    assert server.requests == [head.encode() + b"{}"]


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://models.example/v1", "models.example"),
        ("https://models.example/v1", "models.example"),
        ("https://models.example:443/v1", "models.example"),
        ("http://Models.example:443/v1", "models.example:443"),
        ("http://[::1]/v1", "[::1]"),
        ("http://[::1]:8080/v1", "[::1]:8080"),
    ],
)
def test_the_host_is_named_as_the_protocol_wants_it(url: str, host: str) -> None:
    head = Origin(url, trusted).head(f"{url}/chat", {})
    assert head == f"POST /v1/chat HTTP/1.1\r\nHost: {host}\r\nContent-Length: ".encode()


def test_a_configured_host_takes_the_place_of_the_address() -> None:
    head = Origin("http://127.0.0.1/v1", trusted).head("http://127.0.0.1/v1/chat", {"host": "models.example"})
    assert head.count(b"ost: ") == 1
    assert b"Host: models.example\r\n" in head


@pytest.mark.parametrize(("name", "value"), [("X-Key", "a\r\nX: b"), ("X Key", "a"), ("X-Key:", "a"), ("", "a"), ("X-Key", "ä")])
def test_what_would_break_out_of_a_header_is_refused(name: str, value: str) -> None:
    with pytest.raises(ValueError, match="header"):
        Origin("http://127.0.0.1/v1", trusted).head("http://127.0.0.1/v1/chat", {name: value})


def test_other_headers_make_another_head() -> None:
    origin = Origin("http://127.0.0.1/v1", trusted)
    heads = [origin.head("http://127.0.0.1/v1/chat", {"X-Date": date}) for date in ("1", "2")]
    assert heads[0] != heads[1]


# --- bodies


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param([OK], id="at once"),
        pytest.param([bytes([byte]) for byte in OK], id="byte by byte"),
        pytest.param([b"HTTP/1.1 200\r\nContent-Length: 2, 2\r\n\r\n{}"], id="without a reason, length twice"),
        pytest.param([b"HTTP/1.1 200 OK\nContent-Length: 2\n\n{}"], id="lines end with a line feed alone"),
        pytest.param([b"HTTP/1.1 200 OK\r\n\r\n{}"], id="until the end"),
        pytest.param([b"HTTP/1.0 200 OK\r\n\r\n{}"], id="until the end, version 1.0"),
        pytest.param([CHUNKED + chunked(b"{", b"}", b"")], id="in chunks"),
        pytest.param([bytes([byte]) for byte in CHUNKED + chunked(b"{", b"}", b"")], id="in chunks, byte by byte"),
        pytest.param([CHUNKED + b'002 ;a="b;c"\r\n{}\r\n0;end\r\nX-Sum: 1\r\nX-More: 2\r\n\r\n'], id="extensions and trailers"),
        pytest.param([CHUNKED + b"2\n{}\n0\n\n"], id="chunks whose lines end with a line feed alone"),
        pytest.param([b"HTTP/1.1 200 OK\r\ncontent-length: 7\r\nTRANSFER-ENCODING: Chunked\r\n\r\n" + chunked(b"{}", b"")], id="chunks and a length"),
        pytest.param([b"HTTP/1.1 100 Continue\r\n\r\n" + OK], id="an informational answer before"),
        pytest.param([b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", OK], id="several of them"),
    ],
)  # fmt: skip
def test_a_body_is_read_whole_however_it_comes(pieces: list[bytes]) -> None:
    assert answer(*pieces)[::2] == (200, b"{}")


@pytest.mark.parametrize("status", [204, 304])
def test_some_answers_have_no_body(status: int) -> None:
    with (
        serving([says(b"HTTP/1.1 %d No\r\nContent-Length: 5\r\n\r\n" % status), says(OK)]) as server,
        connected(server) as connection,
    ):
        assert post(connection, server) == Reply(status, {"content-length": "5"}, b"")
        assert post(connection, server).body == b"{}"


def test_headers_are_found_whatever_their_case_and_form() -> None:
    found = answer(b"HTTP/1.1 429 No\r\nRetry-After:7 \r\nX-A: 1\r\nX-a: 2\r\nX-Folded: a\r\n\tb\r\nContent-Length: 0\r\n\r\n")
    assert found.headers == {"retry-after": "7", "x-a": "1, 2", "x-folded": "a b", "content-length": "0"}


def deflated(text: bytes) -> bytes:
    made = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return made.compress(text) + made.flush()


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", gzip.compress(b"{}", mtime=0)),
        ("GZIP", gzip.compress(b"{}", mtime=0)),
        ("deflate", zlib.compress(b"{}")),
        ("deflate", deflated(b"{}")),
        ("deflate, gzip", gzip.compress(zlib.compress(b"{}"), mtime=0)),
        ("identity", b"{}"),
        ("gzip", b""),
    ],
)
def test_a_compression_that_was_not_asked_for_is_undone(encoding: str, body: bytes) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: %b\r\nContent-Length: %d\r\n\r\n" % (encoding.encode(), len(body))
    assert answer(head + body).body == (b"{}" if body else b"")


# --- what is no answer


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-", id="ends in the head"),
        pytest.param(OK[:-1], id="ends in the body"),
        pytest.param(CHUNKED + b"5\r\n{", id="ends in a chunk"),
        pytest.param(CHUNKED + b"1\r\n{\r\n", id="ends between chunks"),
        pytest.param(CHUNKED + b"1\r\n{\r\n0\r\n", id="ends before the trailers"),
        pytest.param(CHUNKED + b"1\r\n{}\r\n0\r\n\r\n", id="a chunk is longer than it says"),
        pytest.param(CHUNKED + b"-1\r\n{\r\n0\r\n\r\n", id="a chunk has a sign"),
        pytest.param(CHUNKED + b"0x1\r\n{\r\n0\r\n\r\n", id="a chunk has a prefix"),
        pytest.param(CHUNKED + b"1;" + b"a" * 10_000 + b"\r\n{\r\n0\r\n\r\n", id="a long extension"),
        pytest.param(CHUNKED + b"0\r\n" + b"X-A: 1\r\n" * 10_000 + b"\r\n", id="many trailers"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}", id="two lengths"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\n{}", id="a negative length"),
        pytest.param("HTTP/1.1 200 OK\r\nContent-Length: ².\r\n\r\n{}".encode("latin-1"), id="no length"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", id="another coding"),
        pytest.param(b"HTTP/1.1 101 Switching\r\nUpgrade: h2c\r\n\r\n", id="another protocol"),
        pytest.param(b"HTTP/1.1 100 Continue\r\n\r\n" * 100 + OK, id="informational answers without end"),
        pytest.param(b"HTTP/2 200 OK\r\n\r\n", id="another version"),
        pytest.param(b"HTTP/1.1 99 OK\r\n\r\n", id="no status"),
        pytest.param(b"SSH-2.0-OpenSSH_9.0\r\n\r\n", id="another server"),
        pytest.param(b"HTTP/1.1 200 OK\r\nno header\r\n\r\n", id="a line without a colon"),
        pytest.param(b"HTTP/1.1 200 OK\r\nX A: 1\r\n\r\n", id="a name with a space"),
        pytest.param(b"HTTP/1.1 200 OK\r\nX-A: " + b"a" * 100_000 + b"\r\n\r\n", id="a huge header"),
        pytest.param(b"HTTP/1.1 200 OK\r\n" + b"X-A: 1\r\n" * 100_000 + b"\r\n", id="headers without end"),
        pytest.param(b"a" * 1_000_000, id="a line without end"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}", id="no gzip"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + gzip.compress(b"{}" * 99, mtime=0)[:-9], id="gzip that ends early"),
    ],
)  # fmt: skip
def test_what_breaks_the_protocol_is_no_answer(sent: bytes) -> None:
    with pytest.raises(ConnectionError) as caught:
        answer(sent)
    assert isinstance(
        caught.value, (BrokenAnswer, ConnectionResetError, BrokenPipeError)
    )  # the last ones where it was not read to its end


LARGE = [
    pytest.param(b"Content-Length: 1001\r\n\r\n" + b"a" * 1_001, id="says its length"),
    pytest.param(b"\r\n" + b"a" * 1_001, id="until the end"),
    pytest.param(b"Transfer-Encoding: chunked\r\n\r\n" + chunked(b"a" * 1_000, b"a"), id="in chunks"),
    pytest.param(b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n" + b"a" * 1_000, id="in one chunk"),
]


@pytest.mark.parametrize("sent", LARGE)
def test_an_answer_that_is_too_large_is_refused(sent: bytes) -> None:
    with pytest.raises(ReplyTooLarge) as caught:
        answer(b"HTTP/1.1 201 OK\r\n" + sent)
    assert caught.value.status == 201


@pytest.mark.parametrize("sent", LARGE)
def test_a_refusal_that_is_too_large_is_cut(sent: bytes) -> None:
    assert answer(b"HTTP/1.1 400 No\r\n" + sent)[::2] == (400, b"a" * 10)


def test_the_bounds_are_those_of_what_is_unpacked() -> None:
    bomb = gzip.compress(b"a" * 1_000_000, mtime=0)
    with serving([says(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + bomb)]) as server, connected(server) as connection:
        large = Bounds(100_000, 10)
        with pytest.raises(ReplyTooLarge):
            post(connection, server, bounds=large)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(
        st.sampled_from([
            b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 100 Continue\r\n", b"HTTP/1.0 500 No\r\n", b"\r\n", b"\n", b"\r\n\r\n", b"0\r\n", b"2\r\n", b"{}", b":", b" ",
            b"Content-Length: 2\r\n", b"Content-Length: 999\r\n", b"Transfer-Encoding: chunked\r\n", b"Content-Encoding: gzip\r\n", b"\xff\x00", b"ff\r\n",
            b"Content-Encoding: deflate\r\n", b"Connection: close\r\n",
        ]) | st.binary(max_size=8),
        max_size=12,
    )
)  # fmt: skip
@example([b"HTTP/1.1 200 OK\r\n", b"Content-Encoding: deflate\r\n", b"\r\n", b"\x00"])
def test_whatever_comes_is_an_answer_or_a_fault_that_is_known(pieces: list[bytes]) -> None:
    with suppress(OSError, ReplyTooLarge):
        assert 200 <= answer(b"".join(pieces)).status <= 999


# --- time


def test_a_server_that_says_nothing_is_left_in_time() -> None:
    release = threading.Event()
    with serving([lambda *_: release.wait(10)]) as server, connected(server) as connection:
        with pytest.raises(TimeoutError):
            connection.post(f"{server.url}/chat", {}, b"{}", time.monotonic() + 0.1, BOUNDS)
        release.set()


def test_a_server_that_drips_is_left_in_time() -> None:
    clock = FakeClock()
    going = threading.Event()

    def drip(connected: socket.socket, _: bytes) -> None:
        connected.sendall(OK[:20])
        for byte in OK[20:-1]:
            going.wait(10)
            going.clear()
            connected.sendall(bytes([byte]))

    class Running(FakeClock):
        def monotonic(self) -> float:  # each look at it lets a byte pass, and a second
            going.set()
            clock.advance(1.0)
            return clock.monotonic()

    with serving([drip]) as server:
        connection = Connection(Origin(server.url, trusted), Running())
        with pytest.raises(TimeoutError):
            connection.post(f"{server.url}/chat", {}, b"{}", clock.monotonic() + 12.0, BOUNDS)
        going.set()


def test_a_server_that_does_not_read_is_left_in_time() -> None:
    release = threading.Event()
    with serving([lambda *_: release.wait(10)]) as server, connected(server) as connection:
        with pytest.raises(TimeoutError):
            connection.post(f"{server.url}/chat", {}, b"a" * 50_000_000, time.monotonic() + 0.2, BOUNDS)
        release.set()


# --- one request after the other


def test_a_connection_is_used_again_after_each_kind_of_whole_body() -> None:
    kinds = [OK, CHUNKED + chunked(b"{}", b""), b"HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 2\r\n\r\n{}", OK]
    with serving([says(kind) for kind in kinds]) as server, connected(server) as connection:
        assert [post(connection, server).body for _ in kinds] == [b"{}"] * 4
    assert len(server.requests) == 4


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: x, Close\r\n\r\n{}", id="it says so"),
        pytest.param(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}", id="version 1.0"),
        pytest.param(OK + b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfake", id="more came than was asked for"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(b"{}", b""), id="two lengths"),
    ],
)  # fmt: skip
def test_a_connection_whose_state_is_in_doubt_is_not_used_again(first: bytes) -> None:
    waiting = threading.Event()

    def stay(connected: socket.socket, _: bytes) -> None:
        connected.sendall(first)
        assert not connected.recv(1)  # the client closes it
        waiting.set()

    with serving([stay], [says(OK)]) as server, connected(server) as connection:
        assert [post(connection, server).body for _ in range(2)] == [b"{}"] * 2
        assert waiting.wait(10)


def _reset(connected: socket.socket) -> None:
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connected.close()


@pytest.mark.parametrize("end", [socket.socket.close, _reset, lambda one: one.sendall(b"HTTP/1.1 408 Late\r\n\r\n")])
def test_a_connection_that_ended_between_two_requests_is_replaced_before_anything_is_sent(
    end: Callable[[socket.socket], object],
) -> None:
    ended = threading.Event()
    wanted = threading.Event()

    def step(connected: socket.socket, _: bytes) -> None:
        connected.sendall(OK)
        wanted.wait(10)
        end(connected)
        ended.set()

    with serving([step], [says(OK)]) as server, connected(server) as connection:
        assert post(connection, server).body == b"{}"
        wanted.set()
        assert ended.wait(10)
        assert post(connection, server).body == b"{}"
    assert len(server.requests) == 2


def test_nothing_is_sent_twice_when_the_connection_ends_once_a_request_was_read() -> None:
    with serving([says(OK), lambda connected, _: connected.close()], [says(OK)]) as server, connected(server) as connection:
        post(connection, server)
        with pytest.raises(ConnectionError):
            post(connection, server)
        assert len(server.requests) == 2
        assert post(connection, server).body == b"{}"  # whoever asked decides whether to ask again


@pytest.mark.parametrize("said", [b"HTTP/1.1 413 Large\r\nContent-Length: 5\r\n\r\nlarge", b""])
def test_what_was_said_before_all_was_sent_is_read(said: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    send = http1._send

    def broken(*args: Any) -> OSError:
        assert send(*args) is None
        return BrokenPipeError()

    monkeypatch.setattr(http1, "_send", broken)
    with serving([says(said)], [says(OK)]) as server, connected(server) as connection:
        if said:
            assert post(connection, server)[::2] == (413, b"large")
        else:
            with pytest.raises(BrokenPipeError):
                post(connection, server)
        monkeypatch.undo()
        assert post(connection, server).body == b"{}"  # over another connection


# --- where it connects


def test_the_next_address_is_tried_when_one_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        closed = unused.getsockname()[1]
    with serving([says(OK)]) as server, connected(server) as connection:
        found = [(socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", port)) for port in (closed, server.port)]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
        assert post(connection, server).body == b"{}"


def test_a_server_that_is_not_there_is_a_fault_of_the_network() -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    connection = Connection(Origin(f"http://127.0.0.1:{port}/v1", trusted), SYSTEM_CLOCK)
    with pytest.raises(ConnectionRefusedError):
        connection.post(f"http://127.0.0.1:{port}/v1/chat", {}, b"{}", time.monotonic() + 10, BOUNDS)


@pytest.mark.skipif(not socket.has_ipv6, reason="needs IPv6")
def test_an_address_of_version_6_is_asked() -> None:
    try:
        server = Server([says(OK)], family=socket.AF_INET6)
    except OSError:
        pytest.skip("this machine has no IPv6")
    with connected(server) as connection:
        assert post(connection, server).body == b"{}"
    server.close()
    assert f"Host: [::1]:{server.port}\r\n".encode() in server.requests[0]


# --- encrypted


def _encrypted(authority: Authority, name: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue(name))
    return context


def test_an_encrypted_connection_trusts_its_authority_and_is_used_again(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    tls = _encrypted(authority, "127.0.0.1")
    large = b'"' + b"a" * 300_000 + b'"'
    sent = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(large) + large
    with serving([says(OK), says(sent), says(OK[:-1])], tls=tls) as server:
        connection = Connection(Origin(server.url, lambda: ssl.create_default_context(cafile=str(authority.file))), SYSTEM_CLOCK)
        assert post(connection, server).body == b"{}"
        assert post(connection, server, bounds=Bounds(1_000_000, 10)).body == large
        with pytest.raises(ConnectionError):
            post(connection, server)
    assert len(server.requests) == 3


def test_an_authority_that_is_not_trusted_is_a_fault_of_the_certificate(tmp_path: Path) -> None:
    with serving([says(OK)], tls=_encrypted(Authority(tmp_path), "127.0.0.1")) as server:
        connection = Connection(Origin(server.url, ssl.create_default_context), SYSTEM_CLOCK)
        with pytest.raises(ssl.SSLCertVerificationError):
            post(connection, server)
    assert server.requests == []


def test_a_server_without_encryption_is_not_asked_over_it(tmp_path: Path) -> None:
    with serving([lambda connected, _: connected.sendall(b"no")]) as server:
        encrypted = server.url.replace("http", "https", 1)
        connection = Connection(Origin(encrypted, ssl.create_default_context), SYSTEM_CLOCK)
        with pytest.raises(OSError):  # noqa: PT011 - what it is depends on the version of OpenSSL
            connection.post(f"{encrypted}/chat", {}, b"{}", time.monotonic() + 1.0, BOUNDS)
