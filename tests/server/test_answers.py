"""Response codes for senders. A wrong code makes senders drop data, or resend it forever."""

from __future__ import annotations

import gzip
import json
import socket
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import grpc
import pytest
import zstandard
from google.rpc import error_details_pb2, status_pb2
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest, ExportTraceServiceResponse

from otel_agenteval.core.errors import ConfigError
from otel_agenteval.turns.state import Closed
from tests.support.clock import FakeClock
from tests.support.rig import chat_attributes
from tests.support.servers import until
from tests.support.service import CHAT, Sidecar, Transport, request, turn_of

TRACES = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
LOGS = "/opentelemetry.proto.collector.logs.v1.LogsService/Export"
PROTOBUF = "application/x-protobuf"


def wait(condition: Callable[[], Any]) -> None:
    until(condition, "the sidecar has seen it", every=0.005)


def connected(sidecar: Sidecar, server: str = "http") -> socket.socket:
    host, _, port = sidecar.addresses[server].rpartition(":")
    return socket.create_connection((host, int(port)), timeout=60)


def silent_calls(count: int, channel: grpc.Channel, never: threading.Event) -> list[Any]:
    """Make calls whose messages don't arrive until the event is set."""

    def silent() -> Iterator[bytes]:
        never.wait(60)
        yield b""

    return [channel.stream_unary(TRACES).future(silent(), timeout=60) for _ in range(count)]


def call(sidecar: Sidecar, body: bytes, method: str = TRACES, metadata: Any = (), **options: Any) -> Any:
    """Make one gRPC call, and return the response bytes or the RpcError."""
    with grpc.insecure_channel(sidecar.addresses["grpc"], options=[("grpc.max_send_message_length", -1)]) as channel:
        try:
            return channel.unary_unary(method)(body, timeout=60, metadata=metadata, **options)
        except grpc.RpcError as error:
            return error


def details(error: Any) -> tuple[Any, status_pb2.Status | None, error_details_pb2.RetryInfo | None]:
    """Return the code, the status in the Collector's trailer, and the Python SDK's RetryInfo."""
    trailers = dict(error.trailing_metadata() or ())
    status = trailers.get("grpc-status-details-bin")
    retry = trailers.get("google.rpc.retryinfo-bin")
    return (
        error.code(),
        status_pb2.Status.FromString(status) if status is not None else None,
        error_details_pb2.RetryInfo.FromString(retry) if retry is not None else None,
    )


@contextmanager
def busy(sidecar: Sidecar) -> Iterator[None]:
    """Fill the queue of turns, as if evaluation was slow."""
    worker = sidecar.engine.worker
    with worker._working:
        assert worker.put(Closed(1, [], "delay", True), worker.queue.max_bytes)
        yield
    assert worker.flush(60, outlets=False)


@pytest.fixture(scope="module")
def sidecar() -> Iterator[Sidecar]:
    with Sidecar({"serve": {"max_body": "1MiB", "body_timeout": "5m"}}) as running:
        yield running


@pytest.fixture(scope="module")
def impatient() -> Iterator[Sidecar]:
    with Sidecar({"serve": {"body_timeout": "300ms"}}) as running:
        yield running


# --- taken


def test_an_empty_request_is_a_good_one(sidecar: Sidecar) -> None:
    for path in ("/v1/traces", "/v1/logs"):
        assert sidecar.post(path)[::2] == (200, b"")
        assert sidecar.post(path, b"{}", {"Content-Type": "application/json; charset=utf-8"})[::2] == (200, b"{}")
    assert call(sidecar, b"") == call(sidecar, b"", LOGS) == b""


def test_spans_without_ids_are_rejected_and_the_others_are_not() -> None:
    message = ExportTraceServiceRequest.FromString(turn_of(7))
    message.resource_spans[0].scope_spans[0].spans.add(name="no ids")
    message.resource_spans[0].scope_spans[0].spans.add(name="zeros", trace_id=bytes(16), span_id=bytes(8))
    body = message.SerializeToString()
    with Sidecar() as own:
        status, _, answer = own.post("/v1/traces", body)
        partial = ExportTraceServiceResponse.FromString(answer).partial_success
        assert (status, partial.rejected_spans, bool(partial.error_message)) == (200, 2, True)
        assert ExportTraceServiceResponse.FromString(call(own, body)).partial_success.rejected_spans == 2
        bad_json = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [{"name": "no ids"}]}]}]}).encode()
        status, _, answer = own.post("/v1/traces", bad_json, {"Content-Type": "application/json"})
        assert (status, json.loads(answer)["partialSuccess"]["rejectedSpans"]) == (200, "1")
        assert len(own.turns()) == 1
        assert own.service.ledger()["spans"]["not_used"]["invalid"] == 5


# --- refused for good


@pytest.mark.parametrize("body", [b"\xff\xff\xff", b"\x0a\x05abc"])
def test_what_is_not_otlp_is_never_to_be_sent_again(sidecar: Sidecar, body: bytes) -> None:
    status, headers, answer = sidecar.post("/v1/traces", body)
    assert (status, headers["content-type"]) == (400, PROTOBUF)
    assert "retry-after" not in headers
    assert status_pb2.Status.FromString(answer).code == grpc.StatusCode.INVALID_ARGUMENT.value[0]
    for method in (TRACES, LOGS):
        assert details(call(sidecar, body, method)) == (grpc.StatusCode.INVALID_ARGUMENT, None, None)


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b'{"resourceLogs": [{"scopeLogs": [{"logRecords": [{}]}]}]}',
        b"\xff",
        b"[" * 50_000,
        b"[" * 100_000 + b"]" * 100_000,
    ],
)
def test_what_is_not_otlp_json_is_refused_in_json(sidecar: Sidecar, body: bytes) -> None:
    status, headers, answer = sidecar.post("/v1/traces", body, {"Content-Type": "application/json"})
    assert (status, headers["content-type"], json.loads(answer)["code"]) == (400, "application/json", 3)
    assert ("nested too deeply" in answer.decode()) is (len(body) > 10_000)


@pytest.mark.parametrize(("path", "problem"), [("/v1/metrics", "OTEL_METRICS_EXPORTER=none"), ("/v1/trace", "unknown path")])
def test_request_to_another_path_is_refused_with_the_fix(sidecar: Sidecar, path: str, problem: str) -> None:
    status, _, answer = sidecar.post(path, b"{}", {"Content-Type": "application/json"})
    assert (status, problem in json.loads(answer)["message"]) == (404, True)


@pytest.mark.parametrize(
    ("path", "method", "headers", "status"),
    [
        ("/v1/metrics", "POST", {}, 404),
        ("/v1/traces", "GET", {}, 405),
        ("/v1/traces", "POST", {"Content-Type": "text/plain"}, 415),
        ("/v1/traces", "POST", {"Content-Encoding": "br"}, 415),
        ("/v1/traces", "POST", {"Content-Encoding": "gzip"}, 400),
        ("/v1/traces", "POST", {"Content-Encoding": "zstd"}, 400),
        ("/v1/traces", "POST", {"Content-Encoding": "deflate"}, 400),
    ],
)
def test_each_way_to_ask_wrongly_has_its_status(
    sidecar: Sidecar, path: str, method: str, headers: dict[str, str], status: int
) -> None:
    assert sidecar.post(path, b"xyz", headers, method=method)[0] == status


def test_a_name_that_nobody_serves_is_unimplemented(sidecar: Sidecar) -> None:
    name = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"
    assert call(sidecar, b"", name).code() is grpc.StatusCode.UNIMPLEMENTED


PACKED: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress, "deflate": zlib.compress, "zstd": zstandard.ZstdCompressor().compress, "identity": bytes,
}  # fmt: skip


@pytest.mark.parametrize("encoding", PACKED)
def test_a_body_is_too_large_also_after_it_is_unpacked(sidecar: Sidecar, encoding: str) -> None:
    over = PACKED[encoding](bytes((1 << 20) + 1))
    status, headers, answer = sidecar.post("/v1/traces", over, {"Content-Encoding": encoding})
    assert (status, "retry-after" in headers) == (413, False)
    assert b"1048576" in answer
    if encoding != "zstd":
        packed = grpc.Compression.Gzip if encoding == "gzip" else grpc.Compression.Deflate
        assert details(call(sidecar, bytes((1 << 20) + 1), compression=packed)) == (
            grpc.StatusCode.RESOURCE_EXHAUSTED,
            None,
            None,
        )
    fits = ExportTraceServiceRequest.FromString(turn_of(9))
    fits.resource_spans[0].scope_spans[0].spans[0].attributes.add(key="x").value.string_value = "x" * 1_000_000
    assert sidecar.post("/v1/traces", PACKED[encoding](fits.SerializeToString()), {"Content-Encoding": encoding})[0] == 200


def test_packed_bodies_in_several_parts_are_one(sidecar: Sidecar) -> None:
    body = turn_of(10)
    for encoding in ("gzip", "zstd"):
        pack = PACKED[encoding]
        assert sidecar.post("/v1/traces", pack(body[:20]) + pack(body[20:]), {"Content-Encoding": encoding})[0] == 200
        assert sidecar.post("/v1/traces", pack(body)[:-3], {"Content-Encoding": encoding})[0] == 400


def test_a_chunked_body_is_bounded_too(sidecar: Sidecar) -> None:
    def sent(size: int) -> int:
        return sidecar.post("/v1/traces", iter([bytes(64 * 1024)] * size), {"Transfer-Encoding": "chunked"})[0]  # type: ignore[arg-type]

    assert sent(17) == 413
    assert sent(1) == 400


# --- refused for now


def test_overload_is_told_in_the_way_that_each_sender_reads() -> None:
    with Sidecar() as own:
        assert own.get("/readyz") == (200, "ok\n")
        with busy(own):
            status, headers, answer = own.post("/v1/traces", turn_of(1))
            told = status_pb2.Status.FromString(answer)
            assert (status, headers["retry-after"], told.code) == (503, "1", grpc.StatusCode.UNAVAILABLE.value[0])
            code, status_of_collector, retry = details(call(own, turn_of(1)))
            assert code is grpc.StatusCode.UNAVAILABLE
            assert status_of_collector is not None
            assert retry is not None
            packed = error_details_pb2.RetryInfo()
            assert status_of_collector.details[0].Unpack(packed)
            assert (packed.retry_delay.seconds, retry.retry_delay.seconds) == (1, 1)
            assert own.get("/readyz") == (503, "overloaded: evaluation is behind\n")
            assert own.get("/healthz") == (200, "ok\n")
        assert own.post("/v1/traces", turn_of(1))[0] == 200
        assert own.service.ledger()["requests"] == {"ok": 1, "overloaded": 2}


@pytest.mark.parametrize("transport", ["grpc", "http"])
def test_the_sdk_comes_again_after_overload_and_loses_nothing(transport: Transport) -> None:
    with Sidecar() as own:
        exporter = own.exporter(transport)
        span = own.provider(exporter).get_tracer("t").start_span("chat", attributes=chat_attributes("a", "b"))
        thread = threading.Thread(target=span.end)
        with busy(own):
            thread.start()
            wait(lambda: own.service.ledger()["requests"].get("overloaded", 0) >= 1)
        thread.join(120)
        assert [turn.output for turn in own.turns()] == ["b"]
        exporter.shutdown()


@pytest.mark.parametrize("transport", ["grpc", "http"])
def test_a_fault_of_ours_is_never_unknown_and_may_pass(transport: Transport, monkeypatch: pytest.MonkeyPatch) -> None:
    with Sidecar() as own:
        for where in ("admit", "process"):
            with monkeypatch.context() as patch:
                patch.setattr(own.service.receiver, where, lambda *_: 1 // 0)
                if transport == "grpc":
                    code, status, retry = details(call(own, turn_of(1)))
                    assert (code, status is not None, retry is not None) == (grpc.StatusCode.UNAVAILABLE, True, True)
                else:
                    status_code, headers, _ = own.post("/v1/traces", turn_of(1))
                    assert (status_code, headers["retry-after"]) == (503, "1")
        assert own.engine.failures[transport] == 2
        assert own.service.receiver.running == 0


@pytest.mark.parametrize("transport", ["grpc", "http"])
def test_an_answer_comes_in_time_although_the_work_does_not(transport: Transport, monkeypatch: pytest.MonkeyPatch) -> None:
    within = "otel_agenteval.server.receiver.ANSWER_WITHIN"
    monkeypatch.setattr(within, 0.1)
    go = threading.Event()
    with Sidecar() as own:
        take = own.service.receiver.process
        monkeypatch.setattr(own.service.receiver, "process", lambda request: (go.wait(60), take(request))[1])
        if transport == "grpc":
            assert details(call(own, turn_of(1)))[0] is grpc.StatusCode.UNAVAILABLE
        else:
            assert own.post("/v1/traces", turn_of(1))[0] == 503
        assert own.service.receiver.in_flight.used == len(turn_of(1)), "its body is held until the work is done"
        monkeypatch.setattr(within, 60)
        go.set()
        wait(lambda: own.engine.assembler.received == 2)  # and it is done all the same
        wait(lambda: own.service.receiver.in_flight.used == 0)
        monkeypatch.setattr(own.service.receiver, "process", take)
        assert own.post("/v1/traces", turn_of(1))[0] == 200  # the sender came again
        assert len(own.turns()[0].spans) == 2


def test_too_many_requests_at_once_are_sent_away_before_their_bodies_are_read() -> None:
    with Sidecar({"serve": {"max_requests": 1, "body_timeout": "5m"}}) as own:
        with connected(own) as slow:
            slow.sendall(_head("content-length: 10"))
            wait(lambda: own.service.receiver.running == 1)
            status, headers, _ = own.post("/v1/traces", turn_of(1))
            assert (status, headers["retry-after"]) == (503, "1")
            assert details(call(own, turn_of(1)))[0] is grpc.StatusCode.UNAVAILABLE
        wait(lambda: own.service.receiver.running == 0)
        assert own.post("/v1/traces", turn_of(1))[0] == 200


def test_a_client_that_sends_too_fast_waits_and_others_do_not(clock: FakeClock) -> None:
    with Sidecar({"serve": {"client_rate": "1kB"}}, clock=clock) as own:
        body = request(*[{"id": number + 1, "attributes": CHAT} for number in range(40)])
        assert own.post("/v1/traces", body)[0] == 200
        status, headers, _ = own.post("/v1/traces", body)
        assert (status, int(headers["retry-after"]) >= 1) == (429, True)
        code, _, retry = details(call(own, body))
        assert code is grpc.StatusCode.UNAVAILABLE
        assert retry is not None
        assert 0 < retry.retry_delay.seconds + retry.retry_delay.nanos / 1e9 <= 10
        own.service.receiver.admit("192.0.2.7")  # somebody else
        own.service.receiver.release("192.0.2.7", 10)


# --- who may send


@pytest.fixture(scope="module")
def locked() -> Iterator[Sidecar]:
    with Sidecar({"serve": {"token": "s3cret"}}) as running:
        yield running


@pytest.mark.parametrize("given", [None, "Bearer wrong", "Basic s3cret", "s3cret", "Bearer s3cret x", "Bearer é"])
def test_without_the_token_nothing_is_taken(locked: Sidecar, given: str | None) -> None:
    before = locked.engine.assembler.received
    headers = {} if given is None else {"Authorization": given}
    for path in ("/v1/traces", "/v1/logs"):
        status, found, _ = locked.post(path, turn_of(1), headers)
        assert (status, found["www-authenticate"]) == (401, "Bearer")
    assert locked.get("/api/status", "web", headers)[0] == 401
    metadata = (("authorization", given),) if given is not None and given.isascii() else ()
    assert details(call(locked, turn_of(1), metadata=metadata)) == (grpc.StatusCode.UNAUTHENTICATED, None, None)
    assert locked.engine.assembler.received == before


@pytest.mark.parametrize("transport", ["grpc", "http"])
def test_with_the_token_everything_is_open(locked: Sidecar, transport: Transport) -> None:
    headers, before = {"Authorization": "Bearer s3cret"}, locked.engine.assembler.received
    exporter = locked.exporter(transport, headers={"authorization": "Bearer s3cret"})
    locked.provider(exporter).get_tracer("t").start_span("x", attributes=CHAT).end()
    exporter.shutdown()
    assert locked.engine.assembler.received == before + 1
    assert locked.get("/api/status", "web", headers)[0] == 200
    assert locked.get("/healthz")[0] == locked.get("/metrics", "metrics")[0] == 200


def test_a_wrong_token_is_answered_before_the_body_is_read() -> None:
    with Sidecar({"serve": {"token": "s3cret", "body_timeout": "5m"}}) as own, connected(own) as client:
        client.sendall(_head("content-length: 10000000", "authorization: Bearer no"))
        assert client.recv(100).startswith(b"HTTP/1.1 401")


@pytest.mark.parametrize("server", ["http", "metrics", "web"])
def test_pages_of_others_do_not_reach_us(server: str) -> None:
    path = {"http": "/v1/traces", "metrics": "/metrics", "web": "/api/status"}[server]
    method = "POST" if server == "http" else "GET"
    with Sidecar({"serve": {"allowed_origins": ["https://ui.example"], "allowed_hosts": ["sidecar"]}}) as own:
        for headers, passes in (
            ({"Origin": "null"}, False),
            ({"Host": "evil.example:80"}, False),
            ({"Host": "localhost.evil.example"}, False),
            ({"Sec-Fetch-Site": "same-site"}, False),
            ({"Origin": "https://ui.example", "Sec-Fetch-Site": "cross-site"}, True),
            ({"Host": "Sidecar:4318"}, True),
            ({"Host": "[::1]:1"}, True),
        ):
            status = own.post(path, headers=headers, server=server, method=method)[0]
            assert status == (200 if passes else 403), headers


# --- where it listens


@pytest.mark.parametrize("name", ["grpc", "http", "metrics", "web"])
def test_other_machines_need_a_token_certificates_or_the_word_that_this_is_meant(name: str) -> None:
    with pytest.raises(ConfigError, match=rf"serve\.{name}: 0\.0\.0\.0:0 .*--insecure"):
        Sidecar({"serve": {name: "0.0.0.0:0"}})
    for more in ({"insecure": True}, {"token": "t"}):
        with Sidecar({"serve": {name: "0.0.0.0:0", **more}}) as own:
            assert own.addresses[name].startswith("0.0.0.0:")


@pytest.mark.parametrize("name", ["grpc", "http", "metrics", "web"])
def test_a_port_that_is_taken_is_an_error_and_is_not_shared(name: str) -> None:
    with Sidecar() as own:
        with pytest.raises(ConfigError, match=rf"serve\.{name}: can't listen on {own.addresses[name]}"):
            Sidecar({"serve": {name: own.addresses[name]}})
        assert own.post("/v1/traces", turn_of(1))[0] == 200


# --- slow ones


def test_a_body_that_trickles_in_is_given_up(impatient: Sidecar) -> None:
    with connected(impatient) as slow:
        slow.settimeout(1.5)  # no pause before the response
        slow.sendall(_head("content-length: 1000") + b"x")
        assert b"408" in slow.recv(200)
    wait(lambda: impatient.service.receiver.running == 0)


def test_a_call_that_never_sends_its_message_is_given_up_and_blocks_nobody(impatient: Sidecar) -> None:
    never = threading.Event()
    with grpc.insecure_channel(impatient.addresses["grpc"]) as channel:
        slow = silent_calls(20, channel, never)
        assert call(impatient, turn_of(11)) == b""
        codes = {one.exception().code() for one in slow}
        never.set()
    assert codes == {grpc.StatusCode.DEADLINE_EXCEEDED}
    wait(lambda: impatient.service.receiver.running == 0)


def test_connections_are_bounded_in_number_and_their_heads_in_size() -> None:
    with Sidecar({"serve": {"client_connections": 3}}) as own:
        clients = [connected(own) for _ in range(3)]
        server = own.service._servers["http"]
        wait(lambda: len(server._connections) == 3)
        with connected(own) as one_too_many, suppress(ConnectionError):
            assert one_too_many.recv(1) == b""
        clients[0].sendall(b"POST /v1/traces HTTP/1.1\r\n" + b"x-long: " + b"x" * 100_000)
        assert clients[0].recv(20).startswith(b"HTTP/1.1 4")
        for client in clients:
            client.close()
        wait(lambda: not server._connections)
        assert own.get("/healthz")[0] == 200


def test_a_head_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("otel_agenteval.server.http_server.HEAD_TIMEOUT", 0.2)
    with Sidecar() as own, connected(own) as slow:
        slow.sendall(b"POST /v1/tr")
        assert slow.recv(10) == b""


def test_clients_may_ask_before_they_send_and_send_many_over_one_connection(sidecar: Sidecar) -> None:
    body = turn_of(12)
    with connected(sidecar) as client:
        for _ in range(3):
            client.sendall(_head(f"content-length: {len(body)}", "expect: 100-continue"))
            assert client.recv(1000).startswith(b"HTTP/1.1 100")
            client.sendall(body)
            assert client.recv(1000).startswith(b"HTTP/1.1 200")
        client.sendall(_head("content-length: 99999999", "expect: 100-continue"))
        assert client.recv(1000).startswith(b"HTTP/1.1 413")


_HEADS = {
    "both, the length first": (["Content-Length: 5", "Transfer-Encoding: chunked"], 400),
    "both, folded": (["Transfer-Encoding:\r\n chunked", "Content-Length: 5"], 400),
    "two lengths": (["Content-Length: 0", "Content-Length: 5"], 400),
    "a list of lengths": (["Content-Length: 0, 5"], 400),
    "a signed length": (["Content-Length: +5"], 400),
    "chunks of HTTP/1.0": (["Transfer-Encoding: chunked"], 400),
    "another coding": (["Transfer-Encoding: gzip, chunked"], 501),
    "chunks twice": (["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"], 501),
}


@pytest.mark.parametrize("server", ["http", "metrics", "web"])
@pytest.mark.parametrize("method", ["POST", "GET", "HEAD"])
def test_a_body_of_unclear_length_is_refused(server: str, method: str, sidecar: Sidecar) -> None:
    """A proxy could find another end of the body, and treat the rest as another request."""
    for name, (lines, status) in _HEADS.items():
        version = "1.0" if "1.0" in name else "1.1"
        head = "\r\n".join((f"{method} /metrics HTTP/{version}", "Host: localhost", "Connection: keep-alive", *lines, "", ""))
        with connected(sidecar, server) as client:
            client.sendall(f"{head}0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            answer = b"".join(iter(lambda: client.recv(65_536), b""))
        assert answer.startswith(f"HTTP/1.1 {status} ".encode()), name
        assert answer.count(b"HTTP/1.1 ") == 1, name


def _head(*lines: str) -> bytes:
    return "\r\n".join(("POST /v1/traces HTTP/1.1", "host: localhost", f"content-type: {PROTOBUF}", *lines, "", "")).encode()
