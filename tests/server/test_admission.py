"""Memory of requests: limited while they are processed, and released after the response."""

from __future__ import annotations

import gc
import gzip
import http.client
import json
import random
import sys
import threading
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import grpc
import pytest
import zstandard

from otel_agenteval.core import jsonio
from tests.server.test_answers import TRACES, _head, call, connected, details, silent_calls, wait
from tests.support.clock import FakeClock
from tests.support.service import AGENT, CHAT, Sidecar, request, turn_of
from tests.support.sidecar import Sidecar as Process

LARGE = 100_000
JSON = {"Content-Type": "application/json"}
GZIP = {"Content-Encoding": "gzip"}


# --- nothing holds what was refused


def bodies_in(garbage: list[Any]) -> list[str]:
    """Return large bytes that only a garbage collection would free, by the objects that hold them."""
    return [
        f"{len(inner)} bytes in {held.f_code if isinstance(held, FrameType) else type(held).__name__}"
        for held in garbage
        for inner in gc.get_referents(held)
        if isinstance(inner, (bytes, bytearray, memoryview)) and len(inner) >= LARGE
    ]


def raw(sidecar: Sidecar, data: bytes) -> bytes:
    """Return the first bytes of the response to some bytes, before the connection is cut."""
    with connected(sidecar) as client, suppress(ConnectionError):
        client.sendall(data)
        return client.recv(1_000)
    return b""


def cut(sidecar: Sidecar) -> None:
    """Disconnect in the middle of a body."""
    with connected(sidecar) as client:
        client.sendall(_head("content-length: 900000") + bytes(500_000))
        wait(lambda: sidecar.service.receiver.in_flight.used >= 500_000)
    wait(lambda: sidecar.service.receiver.running == 0)


def cancelled(sidecar: Sidecar) -> None:
    """Cancel a call before its message has arrived."""
    never = threading.Event()
    with grpc.insecure_channel(sidecar.addresses["grpc"]) as channel:
        (one,) = silent_calls(1, channel, never)
        wait(lambda: sidecar.service.receiver.running == 1)
        one.cancel()
        never.set()
    wait(lambda: sidecar.service.receiver.running == 0)


def posted_body(body: bytes, headers: Mapping[str, str] = {}, path: str = "/v1/traces") -> Callable[[Sidecar], Any]:
    return lambda sidecar: sidecar.post(path, body, headers)


ZEROS = bytes(1 << 19)
DEEP = b'{"resourceSpans": ' + b"[" * 200_000 + b"]" * 200_000 + b"}"
LARGE_ZEROS = bytes(3 << 20)
REFUSED: dict[str, Callable[[Sidecar], Any]] = {
    "not_otlp": posted_body(ZEROS),
    "not_otlp_gzip": posted_body(gzip.compress(ZEROS), GZIP),
    "not_otlp_logs": posted_body(ZEROS, path="/v1/logs"),
    "broken_gzip": posted_body(gzip.compress(ZEROS, 0)[:-9], GZIP),
    "broken_deflate": posted_body(zlib.compress(ZEROS, 0)[:-9], {"Content-Encoding": "deflate"}),
    "broken_zstd": posted_body(zstandard.ZstdCompressor().compress(ZEROS)[:-3], {"Content-Encoding": "zstd"}),
    "unknown_encoding": posted_body(ZEROS, {"Content-Encoding": "br"}),
    "broken_json": posted_body(b'{"resourceSpans": "' + b"x" * LARGE, JSON),
    "no_otlp_json": posted_body(json.dumps({"x": "y" * LARGE}).encode(), JSON),
    "deep_json": posted_body(DEEP, JSON),
    "nan_json": posted_body(b'{"a": NaN, "b": ' + DEEP, JSON),
    "too_large": posted_body(LARGE_ZEROS),
    "too_large_unpacked": posted_body(gzip.compress(LARGE_ZEROS), GZIP),
    "too_large_chunked": lambda sidecar: sidecar.post(
        "/v1/traces", iter([ZEROS] * 6), {"Transfer-Encoding": "chunked"}  # type: ignore[arg-type]
    ),
    "no_room_for_what_it_becomes": posted_body(b"[" + b"{}," * 30_000 + b"{}]", JSON),
    "bad_chunks": lambda sidecar: raw(
        sidecar, _head("transfer-encoding: chunked") + b"3d090\r\n" + bytes(0x3D090) + b"\r\nnonsense\r\n"
    ),
    "slow": lambda sidecar: raw(sidecar, _head("content-length: 900000") + bytes(500_000)),
    "cut": cut,
    "path": posted_body(ZEROS, path="/v2/traces"),
    "grpc_not_otlp": lambda sidecar: call(sidecar, ZEROS),
    "grpc_gzip": lambda sidecar: call(sidecar, ZEROS, compression=grpc.Compression.Gzip),
    "grpc_gzip_unmarked": lambda sidecar: call(sidecar, gzip.compress(ZEROS, 0)),
    "grpc_too_large": lambda sidecar: call(sidecar, LARGE_ZEROS),
    "grpc_too_large_unpacked": lambda sidecar: call(sidecar, LARGE_ZEROS, compression=grpc.Compression.Gzip),
    "grpc_cancelled": cancelled,
}  # fmt: skip


@pytest.fixture
def frozen() -> Iterator[None]:
    """Run garbage collections only on objects of the test, and keep the objects that they would free."""
    gc.collect()
    gc.freeze()  # the objects of other tests, which take long to go through
    gc.disable()
    try:
        yield
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
        gc.unfreeze()


def kept_by_garbage(sidecar: Sidecar, refuse: Callable[[Sidecar], Any]) -> list[Any]:
    """Return bodies and frames of ours that only a garbage collection frees after a request was refused."""
    refuse(sidecar)
    gc.collect()
    refuse(sidecar)
    sidecar.on_loop(_nothing)  # what the answer left to do is done
    gc.set_debug(gc.DEBUG_SAVEALL)
    gc.collect()
    frames = [one for one in gc.garbage if isinstance(one, (FrameType, TracebackType)) and "otel_agenteval" in str(one)]
    found = bodies_in(gc.garbage) + frames
    gc.set_debug(0)
    gc.garbage.clear()
    wait(lambda: sidecar.service.receiver.in_flight.used == 0)
    return found


def test_no_garbage_holds_a_body_that_was_refused(frozen: None) -> None:
    held: dict[str, list[Any]] = {}
    for patience, ways in (("5m", REFUSED.keys() - {"slow"}), ("300ms", {"slow"})):
        options = {"max_body": "2MiB", "max_inflight": "6MiB", "body_timeout": patience}
        with Sidecar({"serve": options}) as sidecar:
            assert sidecar.post("/v1/traces", turn_of(1))[0] == 200  # what is loaded at the first request is loaded
            for how in ways:
                held[how] = kept_by_garbage(sidecar, REFUSED[how])
    assert {how: found for how, found in held.items() if found} == {}


async def _nothing() -> None:
    """Let the event loop do its pending work."""


# --- what they hold together is bounded


def test_who_finds_no_room_is_asked_to_come_again() -> None:
    with Sidecar({"serve": {"max_body": "1MiB", "max_inflight": "1MiB", "body_timeout": "5m"}}) as own:
        with connected(own) as slow:
            slow.sendall(_head("content-length: 1000000") + bytes(700_000))
            wait(lambda: own.service.receiver.in_flight.used == 700_000)
            body = request({"attributes": {"x": "y" * 400_000}})
            packed = gzip.compress(body)
            for data, headers in ((body, {}), (body, {"Transfer-Encoding": "chunked"}), (packed, GZIP)):
                sent: Any = iter([data]) if "Transfer-Encoding" in headers else data
                status, found, _ = own.post("/v1/traces", sent, headers)
                assert (status, found["retry-after"]) == (503, "1")
            code, told, retry = details(call(own, body))
            assert (code, told is not None, retry is not None) == (grpc.StatusCode.UNAVAILABLE, True, True)
            assert own.post("/v1/traces", turn_of(2))[0] == 200  # small ones fit
            assert call(own, turn_of(2)) == b""
            assert own.get("/readyz")[0] == 200
        wait(lambda: own.service.receiver.in_flight.used == 0)
        assert own.post("/v1/traces", packed, GZIP)[0] == 413  # and never will: it is held three times while it is read
        assert call(own, turn_of(1)) == b""
        assert own.service.receiver.in_flight.peak <= 1 << 20


def nested(tag: bytes, inner: bytes) -> bytes:
    size, length = len(inner), b""
    while size >= 0x80:
        length += bytes((size & 0x7F | 0x80,))
        size >>= 7
    return tag + length + bytes((size,)) + inner


EMPTY = b"\x12\x00" * 500_000
BOMBS = {
    "resources": b"\x0a\x00" * 500_000,
    "scopes": nested(b"\x0a", EMPTY),
    "spans": nested(b"\x0a", nested(b"\x12", EMPTY)),
    "json": b'{"resourceSpans": [' + b"{}," * 300_000 + b"{}]}",
    "json_text": b'{"resourceSpans": "' + b"x" * 1_000_000 + "\N{GRINNING FACE}".encode() * 20_000 + b'"}',
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_what_takes_a_multiple_once_it_is_read_is_refused_before(bomb: str) -> None:
    with Sidecar({"serve": {"max_body": "2MiB", "max_inflight": "5MiB"}}) as own:
        before = own.service.receiver.in_flight.peak
        if bomb.startswith("json"):
            assert own.post("/v1/traces", gzip.compress(BOMBS[bomb]), {**JSON, **GZIP})[0] == 413
        else:
            assert own.post("/v1/traces", gzip.compress(BOMBS[bomb]), GZIP)[0] == 413
            assert details(call(own, BOMBS[bomb])) == (grpc.StatusCode.RESOURCE_EXHAUSTED, None, None)
        assert before <= own.service.receiver.in_flight.peak <= 5 << 20


def test_json_in_texts_weighs_what_texts_weigh() -> None:
    inner = json.dumps([{"a": 1}] * 10_000)
    body = json.dumps({"resourceSpans": [{"text": inner}]}).encode()
    assert jsonio.weight(body) < 2 * len(body)
    assert jsonio.weight(inner.encode()) > 20 * len(inner)
    assert jsonio.weight(b'"' + b'\\"' * 200_000) < 10_000_000  # no end, and no time


def test_bodies_in_very_many_parts_are_refused() -> None:
    with Sidecar() as own:
        for pack, encoding in ((gzip.compress, "gzip"), (zstandard.ZstdCompressor().compress, "zstd")):
            assert own.post("/v1/traces", pack(b"") * 20_000, {"Content-Encoding": encoding})[0] == 400
            assert own.post("/v1/traces", pack(b"") * 500, {"Content-Encoding": encoding})[0] == 200


def test_connections_over_grpc_are_bounded_in_number() -> None:
    with Sidecar({"serve": {"max_connections": 3}}) as own:
        channels = [grpc.insecure_channel(own.addresses["grpc"], options=[("grpc.channel_id", n)]) for n in range(4)]
        for channel in channels[:3]:
            assert channel.unary_unary(TRACES)(turn_of(1), timeout=60) == b""
        with pytest.raises(grpc.RpcError) as refused:
            channels[3].unary_unary(TRACES)(turn_of(1), timeout=60)
        assert refused.value.code() is grpc.StatusCode.UNAVAILABLE  # type: ignore[attr-defined]
        channels[0].close()
        wait(lambda: call(own, turn_of(1)) == b"")
        for channel in channels[1:]:
            channel.close()


def test_calls_whose_messages_do_not_come_take_no_room() -> None:
    with (
        Sidecar({"serve": {"max_body": "1MiB", "max_inflight": "4MiB", "body_timeout": "5m"}}) as own,
        grpc.insecure_channel(own.addresses["grpc"]) as channel,
    ):
        never = threading.Event()
        slow = silent_calls(10, channel, never)
        wait(lambda: own.service.receiver.running == 10)
        assert own.service.receiver.in_flight.used == 0
        assert call(own, turn_of(11)) == b""
        never.set()
        for one in slow:
            one.exception(timeout=60)
        wait(lambda: own.service.receiver.in_flight.used == 0)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_flood_takes_no_more_memory_than_the_configuration_names(tmp_path: Path) -> None:
    """Large bodies, bombs and garbage over both transports, from many simultaneous connections."""
    serve = {"max_body": "8MiB", "max_inflight": "32MiB"}
    bounds = {"turn": {"total_bytes": "32MiB"}, "queue": {"max_bytes": "16MiB"}, "inline": {"metrics": []}}
    big = request(*[{"trace": n + 1, "attributes": {**CHAT, "x": "y" * 20_000}} for n in range(300)])
    bodies = [big, bytes(8 << 20), EMPTY * 8, BOMBS["resources"] * 8, random.Random(1).randbytes(8 << 20)]
    with Process(tmp_path, {"serve": serve, **bounds}) as sidecar:
        forms = [form for body in bodies for form in ((body, {}), (gzip.compress(body, 1), GZIP))]
        answers: Counter[Any] = Counter()

        def send(number: int) -> None:
            dice = random.Random(number)
            options = [("grpc.max_send_message_length", -1), ("grpc.use_local_subchannel_pool", 1)]
            with grpc.insecure_channel(sidecar.grpc, options=options) as channel:
                for turn in range(8):
                    body, headers = dice.choice(forms)
                    if (number + turn) % 2:
                        try:
                            channel.unary_unary(TRACES)(body, timeout=60)
                        except grpc.RpcError as error:
                            answers[error.code()] += 1  # type: ignore[attr-defined]
                    else:
                        answers[posted(sidecar, body, headers)] += 1

        threads = [threading.Thread(target=send, args=(number,)) for number in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        status = Path(f"/proc/{sidecar.pid}/status").read_text()
        assert posted(sidecar, turn_of(1), {}) == 200
    assert {503, 413, grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED} & set(answers)
    assert grpc.StatusCode.UNKNOWN not in answers
    peak = int(status.partition("VmHWM:")[2].split()[0]) // 1024
    assert peak < 1.2 * (PROGRAM + 32 + 32 + 16), (peak, answers)


PROGRAM = 110
"""MiB of the process without requests, including memory that libraries use to read one request."""


def posted(sidecar: Process, body: bytes, headers: dict[str, str]) -> int:
    """Return the status, or 0 if the connection was cut."""
    connection = http.client.HTTPConnection(sidecar.http.removeprefix("http://"), timeout=60)
    try:
        connection.request("POST", "/v1/traces", body, {"Content-Type": "application/x-protobuf", **headers})
        return connection.getresponse().status
    except OSError:
        return 0
    finally:
        connection.close()


# --- open turns


def test_open_turns_are_finished_where_new_ones_wait() -> None:
    clock = FakeClock()
    with Sidecar({"turn": {"max_open": 100}}, clock=clock) as own:
        for trace in range(1, 76):
            assert own.post("/v1/traces", request({"trace": trace, "id": 2, "parent": 1, "attributes": CHAT}))[0] == 200
        new = request({"trace": 900, "id": 2, "parent": 1, "attributes": CHAT})
        status, headers, _ = own.post("/v1/traces", new)
        assert (status, headers["retry-after"]) == (503, "1")
        code, _, retry = details(call(own, new))
        assert (code, retry is not None) == (grpc.StatusCode.UNAVAILABLE, True)
        assert own.post("/v1/traces", request({"trace": 5, "id": 1, "attributes": AGENT}))[0] == 200
        assert own.get("/readyz", "metrics")[0] == 200
        clock.advance(31)  # nothing closed: they wait for spans that do not come
        assert own.post("/v1/traces", new)[0] == 200
        assert own.engine.telemetry.read("agenteval.turns").values.get(("", "", "evicted", "false"), 0) == 0


def test_open_turns_that_grow_to_the_limit_are_refused_for_30_seconds() -> None:
    clock = FakeClock()
    with Sidecar({"turn": {"total_bytes": "4MiB"}}, clock=clock) as own:

        def grow(span: int) -> int:
            text = CHAT | {"gen_ai.output.messages": "x" * 50_000}
            spans = ({"trace": trace, "id": span, "parent": 1, "attributes": text} for trace in range(1, 5))
            return own.post("/v1/traces", request(*spans))[0]

        found = [grow(span) for span in range(2, 40)]
        assert (found[0], found[-1]) == (200, 503)
        clock.advance(31)
        assert [grow(span) for span in range(40, 45)] == [200] * 5
