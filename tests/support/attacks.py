"""Attacks that a client without a token can make, and the memory that they cost a sidecar."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import grpc

from tests.support.service import turn_of
from tests.support.sidecar import Sidecar

TRACES = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
CONNECTIONS = 100
MEMORY = 96
"""Maximum MB above the memory of an idle sidecar. 37 to 66 were measured, because the allocator keeps an arena per core and thread."""
_LINES = 20
"""Maximum number of log lines."""
TOKEN = (("authorization", "Bearer open-sesame"),)
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEADERS, SETTINGS, PING, CONTINUATION = 0x1, 0x4, 0x6, 0x9


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes((kind, flags)) + struct.pack(">I", stream) + payload


def literal(name: bytes, value: bytes, *, kept: bool = False) -> bytes:
    """Return an uncompressed HPACK header. If ``kept``, it becomes entry 62 of the dynamic table."""
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
    """Yield calls whose headers refer to one large header many times."""
    yield PREFACE + frame(SETTINGS, 0, 0) + frame(HEADERS, 4, 1, HEAD + LARGE + AGAIN * copies)
    for stream in range(3, 4_001, 2):
        yield frame(HEADERS, 4, stream, HEAD + AGAIN * copies)


def endless_headers() -> Iterator[bytes]:
    yield PREFACE + frame(SETTINGS, 0, 0) + frame(HEADERS, 0, 1, HEAD + LARGE)
    for _ in range(200):
        yield frame(CONTINUATION, 0, 1, AGAIN * 16_000)


def pings() -> Iterator[bytes]:
    """Yield frames whose responses aren't read."""
    yield PREFACE + frame(SETTINGS, 0, 0)
    for _ in range(200):
        yield frame(PING, 0, 0, bytes(8)) * 500


def body() -> Iterator[bytes]:
    yield b"POST /v1/traces HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/x-protobuf\r\ncontent-length: 60000000\r\n\r\n"
    yield from [bytes(65_536)] * 50


def head() -> Iterator[bytes]:
    yield b"POST /v1/traces HTTP/1.1\r\n"
    yield from [b"x-a: " + b"x" * 60_000 + b"\r\n"] * 50


def unread(path: str) -> Iterator[bytes]:
    """Yield requests whose responses aren't read."""
    for _ in range(50):
        yield f"GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode() * 100


def idle() -> Iterator[bytes]:
    """Keep the connection open, but send nothing."""
    yield b""


ATTACKS: dict[str, tuple[str, Callable[[], Iterator[bytes]]]] = {
    "headers up to the size limit sent to the gRPC port": ("grpc", lambda: bomb(1)),
    "headers above the size limit sent to the gRPC port": ("grpc", lambda: bomb(1_000)),
    "endless headers sent to the gRPC port": ("grpc", endless_headers),
    "unread responses from the gRPC port": ("grpc", pings),
    "idle connections to the gRPC port": ("grpc", idle),
    **{
        f"{name} the {called} port": (port, sent)
        for port, called, path in (
            ("http", "OTLP/HTTP", "/healthz"), ("web", "web UI", "/"), ("metrics", "metrics", "/metrics"),
        )
        for name, sent in (
            ("large request bodies sent to", body), ("endless headers sent to", head),
            ("unread responses from", lambda path=path: unread(path)), ("idle connections to", idle),
        )
    },
}  # fmt: skip
"""Port and content of each connection, by attack. Connections stay open until a legitimate sender is accepted."""


@dataclass(frozen=True)
class Flooded:
    memory: int
    """Peak of the resident memory above the idle sidecar's, in MB."""
    got_in: int
    """Number of accepted requests with a token, of one during the attack and one at its end."""
    lines: int
    """Number of log lines."""

    @property
    def is_well(self) -> bool:
        """Return True if memory and log lines are within limits, and both requests were accepted."""
        return self.memory <= MEMORY and self.got_in == 2 and self.lines < _LINES


def flooded(attack: str, folder: Path) -> Flooded:
    """Attack a sidecar with a hundred connections without a token."""
    port, sent = ATTACKS[attack]
    with Sidecar(folder, {"serve": {"token": "open-sesame"}}) as sidecar, contextlib.ExitStack() as held:
        address = {"grpc": sidecar.grpc, "metrics": sidecar.metrics, "http": sidecar.http[7:], "web": sidecar.web[7:]}[port]
        assert _got_in(sidecar.grpc)
        before = memory(sidecar.pid)
        threads = [threading.Thread(target=flood, args=(address, sent, held)) for _ in range(CONNECTIONS)]
        for thread in threads:
            thread.start()
        got_in = _got_in(sidecar.grpc)
        for thread in threads:
            thread.join(120)
        got_in += _got_in(sidecar.grpc)
        peak = memory(sidecar.pid, "VmHWM")
        lines = len(sidecar.text().splitlines())
    return Flooded((peak - before + (1 << 20) - 1) >> 20, got_in, lines)


def _got_in(address: str) -> bool:
    """Return True if a new sender with a token is accepted."""
    with grpc.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
        try:
            return channel.unary_unary(TRACES)(turn_of(1), timeout=60, metadata=TOKEN) == b""
        except grpc.RpcError:
            return False


def memory(pid: int, kind: str = "VmRSS") -> int:
    """Return the resident memory of a process in bytes. ``VmHWM`` is the peak."""
    return int(Path(f"/proc/{pid}/status").read_text().partition(f"{kind}:")[2].split()[0]) << 10


def flood(address: str, sent: Callable[[], Iterator[bytes]], held: contextlib.ExitStack) -> None:
    """Connect, send as much as the sidecar reads, and keep the connection open."""
    host, _, port = address.rpartition(":")
    with contextlib.suppress(OSError):
        client = held.enter_context(socket.create_connection((host, int(port)), timeout=2))
        for piece in sent():
            client.sendall(piece)
