"""Logs as text or JSON contain the request id, but never the content of a request."""

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
        ({"x-request-id": "Root=1-67891233-abc.2:3", "traceparent": PARENT}, r"Root=1-67891233-abc\.2:3"),
        ({"traceparent": PARENT}, TRACE),
        ({"x-request-id": 'a", "level": "error', "traceparent": PARENT}, TRACE),
        ({"x-request-id": "a\n"}, MADE),
        ({"x-request-id": "ä"}, MADE),
        ({"x-request-id": "x" * 129}, MADE),
        ({"traceparent": f"00-{'0' * 32}-00f067aa0ba902b7-01"}, MADE),
        ({"traceparent": f"ff-{TRACE}-00f067aa0ba902b7-01"}, MADE),
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
    source = 'int("my card is 4111 1111 1111 1111")'
    assert "4111 1111" not in text.replace(source, "").replace(source.replace('"', r"\""), "")


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
    kinds = ["http traces", "grpc traces", "http logs", "http traces", "http logs"]
    assert [message.split(" from ")[0] for message in caplog.messages] == [f"refused {kind}" for kind in kinds]
    assert [message for message in caplog.messages if "99 more" in message] == [caplog.messages[3]]


def test_http_answers_have_the_id(caplog: pytest.LogCaptureFixture) -> None:
    with Sidecar({"serve": {"token": "open-sesame"}}) as sidecar:
        taken = {"x-request-id": "r-1", "authorization": "Bearer open-sesame"}
        assert sidecar.post("/v1/traces", turn_of(1), taken)[1]["x-request-id"] == "r-1"
        status, headers, _ = sidecar.post("/v1/traces", turn_of(2), {"traceparent": PARENT})
        assert (status, headers["x-request-id"]) == (401, TRACE)
        assert re.fullmatch(MADE, sidecar.post("/v1/traces", turn_of(3))[1]["x-request-id"])
        host, _, port = sidecar.addresses["http"].rpartition(":")
        with socket.create_connection((host, int(port)), timeout=60) as raw:
            raw.sendall(b"not HTTP at all\r\n\r\n")
            assert re.search(rb"x-request-id: [0-9a-f]{32}\r\n", raw.recv(4096))
    [line] = [message for message in caplog.messages if "refused" in message]
    assert line.startswith("refused http traces from 127.0.0.1: unauthenticated")


def test_grpc_answers_have_the_id_in_their_trailers() -> None:
    with Sidecar() as sidecar, grpc.insecure_channel(sidecar.addresses["grpc"]) as channel:
        call = channel.unary_unary(TRACES)
        _, done = call.with_call(turn_of(1), timeout=60, metadata=(("x-request-id", "r-1"),))
        assert dict(done.trailing_metadata())["x-request-id"] == "r-1"
        with pytest.raises(grpc.RpcError) as refused:
            call(b"\xff", timeout=60, metadata=(("traceparent", PARENT),))
        assert dict(refused.value.trailing_metadata())["x-request-id"] == TRACE


def test_every_line_of_a_process_is_an_object_with_its_request(tmp_path: Path) -> None:
    script = """
from otel_agenteval.server.receiver import Receiver
def broken(self, request):
    raise ZeroDivisionError("a secret of " + request.body.decode("latin-1"))
Receiver.process = broken
"""
    options = ["--log-format", "json", "--log-level", "warning"]
    sidecar = Process(tmp_path, {}, script=script, options=options)
    with sidecar, grpc.insecure_channel(sidecar.grpc) as channel, pytest.raises(grpc.RpcError):
        channel.unary_unary(TRACES)(turn_of(1), timeout=60, metadata=(("x-request-id", "r-7"),))
    lines = [line for line in sidecar.text().splitlines() if not line.startswith(("listening: ", '{"ledger"'))]
    logged = [json.loads(line) for line in lines]
    assert all(one.keys() >= {"time", "level", "logger", "message"} for one in logged)
    assert not {one["level"] for one in logged} & {"debug", "info"}, "the level leaves them out"
    failed, refused = (one["message"] for one in logged if one.get("request_id") == "r-7")
    assert "ZeroDivisionError" in failed
    assert refused.startswith("refused grpc traces from 127.0.0.1: error")
    assert "secret" not in sidecar.text()


def test_faults_at_the_start_are_objects_too() -> None:
    script = """
        from otel_agenteval.cli.main import main
        print(main(["serve", "--grpc", "0.0.0.0:0", "--log-format", "json"]))
        print(main(["worker", "--log-format", "json"]))
    """
    done = run(script)
    assert done.stdout.split() == ["2", "2"]
    assert [json.loads(line)["level"] for line in done.stderr.splitlines()] == ["error", "error"]
