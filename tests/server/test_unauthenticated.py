"""What a client without a token can take: bounded memory, no place of a sender's, one line of log."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
import pytest

from tests.server.test_answers import TRACES, call, connected, details, wait
from tests.support.certificates import Authority
from tests.support.service import Sidecar, turn_of
from tests.support.sidecar import Sidecar as Process

TOKEN = (("authorization", "Bearer open-sesame"),)
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEADERS, SETTINGS, PING, CONTINUATION = 0x1, 0x4, 0x6, 0x9


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes((kind, flags)) + struct.pack(">I", stream) + payload


def literal(name: bytes, value: bytes, *, kept: bool = False) -> bytes:
    """A header in HPACK, without compression; a kept one is entry 62 of the table from then on."""
    size = b""
    rest = len(value)
    if rest >= 127:
        rest, size = rest - 127, b"\x7f"
        while rest >= 128:
            rest, size = rest >> 7, size + bytes((rest & 0x7F | 0x80,))
    return (b"\x40" if kept else b"\x00") + bytes((len(name),)) + name + size + bytes((rest,)) + value


HEAD = b"".join(
    literal(name, value)
    for name, value in (
        (b":method", b"POST"), (b":scheme", b"http"), (b":path", TRACES.encode()), (b":authority", b"x"),
        (b"content-type", b"application/grpc"),
    )
)  # fmt: skip
LARGE, AGAIN = literal(b"x", b"v" * 4_000, kept=True), b"\xbe"


def bomb(copies: int) -> Iterator[bytes]:
    """Calls whose headers refer to one large header many times."""
    yield PREFACE + frame(SETTINGS, 0, 0) + frame(HEADERS, 4, 1, HEAD + LARGE + AGAIN * copies)
    for stream in range(3, 4_001, 2):
        yield frame(HEADERS, 4, stream, HEAD + AGAIN * copies)


def endless_headers() -> Iterator[bytes]:
    yield PREFACE + frame(SETTINGS, 0, 0) + frame(HEADERS, 0, 1, HEAD + LARGE)
    for _ in range(200):
        yield frame(CONTINUATION, 0, 1, AGAIN * 16_000)


def pings() -> Iterator[bytes]:
    """Frames whose responses aren't read."""
    yield PREFACE + frame(SETTINGS, 0, 0)
    for _ in range(200):
        yield frame(PING, 0, 0, bytes(8)) * 500


def body() -> Iterator[bytes]:
    yield b"POST /v1/traces HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/x-protobuf\r\ncontent-length: 60000000\r\n\r\n"
    yield from [bytes(65_536)] * 50


def head() -> Iterator[bytes]:
    yield b"POST /v1/traces HTTP/1.1\r\n"
    yield from [b"x-a: " + b"x" * 60_000 + b"\r\n"] * 50


ATTACKS: dict[str, tuple[str, Callable[[], Iterator[bytes]]]] = {
    "grpc, headers within the limit": ("grpc", lambda: bomb(1)),
    "grpc, headers beyond it": ("grpc", lambda: bomb(1_000)),
    "grpc, headers without end": ("grpc", endless_headers),
    "grpc, unread responses": ("grpc", pings),
    **{f"{port}, {name}": (port, sent) for port in ("http", "web", "metrics") for name, sent in (("body", body), ("head", head))},
}


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("attack", ATTACKS)
def test_a_hundred_connections_take_little_memory(attack: str, tmp_path: Path) -> None:
    """Report: 48 connections over gRPC took 2.2 GB before the token was read, with a line of log for each call."""
    port, sent = ATTACKS[attack]
    with Process(tmp_path, {"serve": {"token": "open-sesame"}}) as sidecar:
        addresses = {"grpc": sidecar.grpc, "metrics": sidecar.metrics, "http": sidecar.http[7:], "web": sidecar.web[7:]}
        with grpc.insecure_channel(sidecar.grpc) as channel:
            export = channel.unary_unary(TRACES)
            assert export(turn_of(1), timeout=60, metadata=TOKEN) == b""
            before = memory(sidecar.pid)
            threads = [threading.Thread(target=flood, args=(addresses[port], sent)) for _ in range(100)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(120)
            assert export(turn_of(2), timeout=60, metadata=TOKEN) == b""
        assert memory(sidecar.pid, "VmHWM") - before < 64 << 20
        assert len(sidecar.text().splitlines()) < 20


def memory(pid: int, kind: str = "VmRSS") -> int:
    return int(Path(f"/proc/{pid}/status").read_text().partition(f"{kind}:")[2].split()[0]) << 10


def flood(address: str, sent: Callable[[], Iterator[bytes]]) -> None:
    host, _, port = address.rpartition(":")
    with contextlib.suppress(OSError), socket.create_connection((host, int(port)), timeout=2) as client:
        for piece in sent():
            client.sendall(piece)


def test_senders_get_in_although_others_hold_connections(caplog: pytest.LogCaptureFixture) -> None:
    """Report: 540 idle connections from one address, and none of 10 senders got in, without a metric or a line of log."""
    with Sidecar({"serve": {"token": "open-sesame", "client_connections": 8}}) as own, contextlib.ExitStack() as held:
        server = own.service._servers["grpc"]
        for _ in range(40):
            held.enter_context(connected(own, "grpc")).sendall(PREFACE + frame(SETTINGS, 0, 0))
        wait(lambda: server.connections <= 8 and server.refused == 32)
        assert [call(own, turn_of(number), metadata=TOKEN) for number in range(1, 11)] == [b""] * 10
        assert own.get("/metrics", "metrics")[1].count('agenteval_serve_connections_refused_total{listener="grpc"}') == 1
    assert len([record for record in caplog.records if "serve.client_connections" in record.getMessage()]) == 1


def test_connections_of_senders_make_no_room() -> None:
    with Sidecar({"serve": {"client_connections": 2}}) as own:
        channels = [grpc.insecure_channel(own.addresses["grpc"], options=[("grpc.channel_id", n)]) for n in range(2)]
        for channel in channels:
            assert channel.unary_unary(TRACES)(turn_of(1), timeout=60) == b""
        with connected(own, "grpc") as late:
            late.sendall(PREFACE)
            with contextlib.suppress(ConnectionError):
                assert late.recv(1) == b""
        for channel in channels:
            assert channel.unary_unary(TRACES)(turn_of(1), timeout=60) == b""
            channel.close()


def test_a_connection_without_a_call_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("otel_agenteval.server.grpc.HEAD_TIMEOUT", 0.1)
    with Sidecar({"serve": {"token": "open-sesame"}}) as own:
        for sent in (b"", PREFACE[:5], PREFACE + frame(SETTINGS, 0, 0) + frame(HEADERS, 0, 1, HEAD)):
            with connected(own, "grpc") as client:
                client.sendall(sent)
                while client.recv(4_096):
                    pass


def test_senders_connect_again_after_a_while_and_lose_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that they discover added servers."""
    monkeypatch.setattr("otel_agenteval.server.grpc.HEAD_TIMEOUT", 0.05)
    monkeypatch.setattr("otel_agenteval.server.grpc._AGE", 0.05)
    with Sidecar() as own, grpc.insecure_channel(own.addresses["grpc"]) as channel:
        export = channel.unary_unary(TRACES)
        ends = []
        leave = own.service._servers["grpc"].leave
        monkeypatch.setattr(own.service._servers["grpc"], "leave", lambda one: (ends.append(one), leave(one)))
        wait(lambda: export(turn_of(1), timeout=60) != b"" or len(ends) >= 2)


def test_refused_calls_end_their_connection() -> None:
    with Sidecar({"serve": {"token": "open-sesame"}}) as own, connected(own, "grpc") as client:
        client.sendall(PREFACE + frame(SETTINGS, 0, 0))
        with contextlib.suppress(ConnectionError):
            for stream in range(1, 801, 2):
                client.sendall(frame(HEADERS, 4, stream, HEAD))
            while client.recv(65_536):
                pass
        wait(lambda: own.service._servers["grpc"].connections == 0)
        assert 100 <= own.service.receiver.outcomes["grpc", "traces", "unauthenticated"] <= 102
        assert details(call(own, turn_of(1)))[0] is grpc.StatusCode.UNAUTHENTICATED


@pytest.mark.parametrize("padding", [None, 0, 9])
def test_messages_come_in_any_frames(padding: int | None, authority: Authority) -> None:
    """One byte a frame, with padding or without, with a length in the headers, behind TLS."""
    cert = authority.issue("server")
    message = turn_of(1)
    sent = struct.pack(">?I", False, len(message)) + message
    with Sidecar({"serve": {"tls": {"cert_file": str(cert[0]), "key_file": str(cert[1])}}}) as own:
        context = ssl.create_default_context(cafile=str(authority.file))
        context.set_alpn_protocols(["h2"])
        with context.wrap_socket(connected(own, "grpc"), server_hostname="localhost") as client:
            client.sendall(PREFACE + frame(SETTINGS, 0, 0))
            client.sendall(frame(HEADERS, 4, 1, HEAD + literal(b"content-length", str(len(sent)).encode())))
            for place in range(len(sent)):
                piece = sent[place : place + 1]
                if padding is not None:
                    piece = bytes((padding,)) + piece + bytes(padding)
                client.sendall(frame(0, (0 if padding is None else 8) | (place == len(sent) - 1), 1, piece))
            wait(lambda: own.service.receiver.outcomes["grpc", "traces", "ok"] == 1)
        assert len(own.turns()) == 1


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)
