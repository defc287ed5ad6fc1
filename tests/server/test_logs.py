"""What a process logs: in text or JSON, with the id of the request that it is about, and never what was in it."""

from __future__ import annotations

import json
import logging
import re
import socket
import sys
from pathlib import Path
from typing import Any

import grpc
import pytest

from otel_agenteval.server.logformat import Caller, JsonFormatter, TextFormatter, caller
from otel_agenteval.server.receiver import LOG_EVERY, RefusalLog
from otel_agenteval.server.responses import Refused
from tests.support.clock import FakeClock
from tests.support.process import run
from tests.support.service import Sidecar, turn_of
from tests.support.sidecar import Sidecar as Process

TRACES = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"
MADE = r"[0-9a-f]{32}"


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"x-request-id": "abc-1.2:3"}, r"abc-1\.2:3"),
        ({"x-request-id": "Root=1-67891233-abcdef"}, r"Root=1-67891233-abcdef"),
        ({"x-request-id": "abc", "traceparent": PARENT}, "abc"),
        ({"traceparent": PARENT}, TRACE),
        ({"x-request-id": 'a", "level": "error', "traceparent": PARENT}, TRACE),
        ({"x-request-id": "a\nb"}, MADE),
        ({"x-request-id": "a\n"}, MADE),
        ({"x-request-id": "ä"}, MADE),
        ({"x-request-id": "x" * 129}, MADE),
        ({"x-request-id": ""}, MADE),
        ({"traceparent": f"00-{'0' * 32}-00f067aa0ba902b7-01"}, MADE),
        ({"traceparent": f"ff-{TRACE}-00f067aa0ba902b7-01"}, MADE),
        ({"traceparent": TRACE}, MADE),
        ({}, MADE),
    ],
)
def test_a_sane_id_is_taken_over_and_another_one_is_made(headers: dict[str, str], expected: str) -> None:
    assert re.fullmatch(expected, Caller.of(headers, "127.0.0.1").request_id)


def record(message: str, *args: Any, exc_info: Any = None) -> logging.LogRecord:
    return logging.LogRecord("otel_agenteval", logging.WARNING, "file", 1, message, args, exc_info)


def test_text_is_one_line_whatever_the_message_holds() -> None:
    text = TextFormatter().format(record("%s", "a\n2026-01-01T00:00:00.000Z CRITICAL made up\x1b[31m\u2028"))
    assert len(text.splitlines()) == 1
    assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z WARNING a\\n2026", text)
    assert "\x1b" not in text


def test_json_is_one_object_with_its_request() -> None:
    reset = caller.set(Caller("r-1", "10.0.0.1"))
    try:
        said = json.loads(JsonFormatter().format(record("a\nb")))
    finally:
        caller.reset(reset)
    assert said.pop("time").endswith("Z")
    assert said.pop("pid") > 0
    assert said == {"level": "warning", "logger": "otel_agenteval", "message": "a\nb", "request_id": "r-1"}


@pytest.mark.parametrize("formatter", [TextFormatter(), JsonFormatter()], ids=["text", "json"])
def test_an_exception_is_told_without_what_it_says(formatter: logging.Formatter) -> None:
    try:
        int("my card is 4111 1111 1111 1111")
    except ValueError:
        text = formatter.format(record("it failed", exc_info=sys.exc_info()))
    assert "ValueError" in text
    assert "test_an_exception_is_told_without_what_it_says" in text
    assert "4111 1111" not in text.replace('int("my card is 4111 1111 1111 1111")', "").replace(
        r"int(\"my card is 4111 1111 1111 1111\")", ""
    )


def test_refusals_of_a_kind_are_logged_once_in_a_while_with_how_many_there_were(caplog: pytest.LogCaptureFixture) -> None:
    clock = FakeClock()
    log = RefusalLog(clock)
    denied, busy = Refused("unauthenticated", "a valid bearer token is required", None), Refused("overloaded", "behind", 1.0)
    for _ in range(100):
        log("http", "traces", denied)
    log("grpc", "traces", denied)
    log("http", "logs", busy)
    clock.advance(LOG_EVERY)
    log("http", "traces", denied)
    log("http", "logs", busy)
    assert caplog.messages == [
        "refused http traces from ?: unauthenticated: a valid bearer token is required",
        "refused grpc traces from ?: unauthenticated: a valid bearer token is required",
        "refused http logs from ?: overloaded: behind",
        "refused http traces from ?: unauthenticated: a valid bearer token is required (99 more since the last line of this kind)",
        "refused http logs from ?: overloaded: behind",
    ]


def test_http_answers_have_the_id(caplog: pytest.LogCaptureFixture) -> None:
    with Sidecar({"serve": {"token": "open-sesame"}}) as sidecar:
        taken = {"x-request-id": "r-1", "authorization": "Bearer open-sesame"}
        assert sidecar.post("/v1/traces", turn_of(1), taken)[1]["x-request-id"] == "r-1"
        status, headers, _ = sidecar.post("/v1/traces", turn_of(2), {"traceparent": PARENT})
        assert (status, headers["x-request-id"]) == (401, TRACE)
        assert re.fullmatch(MADE, sidecar.post("/v1/traces", turn_of(3))[1]["x-request-id"])
        host, _, port = sidecar.addresses["http"].rpartition(":")
        with socket.create_connection((host, int(port)), timeout=5) as raw:
            raw.sendall(b"not HTTP at all\r\n\r\n")
            assert re.search(rb"x-request-id: [0-9a-f]{32}\r\n", raw.recv(4096))
    [line] = [message for message in caplog.messages if "refused" in message]
    assert line == "refused http traces from 127.0.0.1: unauthenticated: a valid bearer token is required"


def test_grpc_answers_have_the_id_in_their_trailers() -> None:
    with Sidecar() as sidecar, grpc.insecure_channel(sidecar.addresses["grpc"]) as channel:
        call = channel.unary_unary(TRACES)
        _, done = call.with_call(turn_of(1), timeout=10, metadata=(("x-request-id", "r-1"),))
        assert dict(done.trailing_metadata())["x-request-id"] == "r-1"
        with pytest.raises(grpc.RpcError) as refused:
            call(b"\xff", timeout=10, metadata=(("traceparent", PARENT),))
        assert dict(refused.value.trailing_metadata())["x-request-id"] == TRACE


def test_a_fault_of_ours_is_logged_with_the_request_that_met_it(tmp_path: Path) -> None:
    script = """
from otel_agenteval.server.receiver import Receiver
def broken(self, request):
    raise ZeroDivisionError("a secret of " + request.body.decode("latin-1"))
Receiver.take = broken
"""
    sidecar = Process(tmp_path, {}, script=script, options=["--log-format", "json"])
    with sidecar, grpc.insecure_channel(sidecar.grpc) as channel, pytest.raises(grpc.RpcError):
        channel.unary_unary(TRACES)(turn_of(1), timeout=10, metadata=(("x-request-id", "r-7"),))
    logged = [json.loads(line) for line in sidecar.text().splitlines() if '"level"' in line]
    about = [line["message"] for line in logged if line.get("request_id") == "r-7"]
    assert about == [
        "grpc failed: ZeroDivisionError (further failures are only counted)",
        "refused grpc traces from 127.0.0.1: error: internal error",
    ]
    assert "secret" not in sidecar.text()


def test_every_line_on_standard_error_is_an_object_from_start_to_end(tmp_path: Path) -> None:
    config = {"serve": {"token": "hush"}}
    sidecar = Process(tmp_path, config, options=["--log-format", "json", "--log-level", "debug"])
    with sidecar, grpc.insecure_channel(sidecar.grpc) as channel, pytest.raises(grpc.RpcError):
        channel.unary_unary(TRACES)(turn_of(1), timeout=10)
    lines = [line for line in sidecar.text().splitlines() if not line.startswith(("listening: ", '{"ledger"'))]
    said = [json.loads(line) for line in lines]
    assert all(one.keys() >= {"time", "level", "logger", "message"} for one in said)
    assert {one["level"] for one in said} >= {"info", "warning"}
    assert "hush" not in sidecar.text()


def test_a_level_leaves_out_what_is_below_it(tmp_path: Path) -> None:
    with Process(tmp_path, options=["--log-level", "error"]) as sidecar:
        pass
    assert not [line for line in sidecar.text().splitlines() if " INFO " in line or " WARNING " in line]


@pytest.mark.parametrize("command", ["serve", "worker"])
def test_a_fault_at_the_start_is_an_object_too(command: str) -> None:
    bad = (
        "['serve', '--grpc', '0.0.0.0:0', '--log-format', 'json']" if command == "serve" else "['worker', '--log-format', 'json']"
    )
    done = run(f"import sys; from otel_agenteval.cli.main import main; sys.exit(main({bad}))")
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert json.loads(line)["level"] == "error"
