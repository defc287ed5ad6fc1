"""Scores sent by connections of our own, to real receivers that take them, refuse them, and come and go."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.any_pb2 import Any as AnyMessage
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse

from otel_agenteval.config.loader import load_config
from otel_agenteval.core import semconv
from otel_agenteval.core.errors import ConfigError
from otel_agenteval.core.score import Score
from otel_agenteval.core.sqlite import open_file
from otel_agenteval.core.telemetry import Telemetry
from otel_agenteval.evaluation.scored_turn import Root, ScoredTurn
from otel_agenteval.outlets.accounting import account
from otel_agenteval.outlets.otlp.outlet import OtlpOutlet
from otel_agenteval.outlets.otlp.spool import SCHEMA, SpooledBatch, SpoolFile
from otel_agenteval.spans.otlp import from_json
from tests.outlets.factories import SPAN_ID, TRACE_ID, scored_turn
from tests.support.certificates import Authority
from tests.support.process import ROOT, environment
from tests.support.receiver import GrpcReceiver, Receiver, plain
from tests.support.servers import until

FAILED = Score(
    "code_tool_success",
    0.25,
    False,
    label="fail",
    explanation="Ask ann@example.com.",
    threshold=0.7,
    policy="gate",
    result_id="f" * 32,
)
RESOURCE = {"service.name": "shop", "service.instance.id": "pod-7", "nested": {"a": [1, 2.5, True]}}
UNAVAILABLE = (grpc.StatusCode.UNAVAILABLE, ())

Make = Callable[..., OtlpOutlet]


def one(number: int = 0, **more: Any) -> ScoredTurn:
    """A turn of its own trace, with one score."""
    root = Root(TRACE_ID + number, SPAN_ID, resource=more.pop("resource", RESOURCE))
    score = Score("code_tool_success", 0.75, True, label="pass", result_id=f"{number:032x}")
    return scored_turn(score, turn={"turn_id": f"{TRACE_ID + number:032x}-{SPAN_ID:016x}"}, root=root, **more)


@pytest.fixture(params=["grpc", "http"])
def receiver(request: pytest.FixtureRequest) -> Iterator[Any]:
    receiver = GrpcReceiver() if request.param == "grpc" else Receiver()
    yield receiver
    receiver.close()


@pytest.fixture
def grpc_receiver() -> Iterator[GrpcReceiver]:
    receiver = GrpcReceiver()
    yield receiver
    receiver.close()


@pytest.fixture
def make() -> Iterator[Make]:
    made: list[OtlpOutlet] = []

    def make(receiver: Any, telemetry: Telemetry | None = None, **options: Any) -> OtlpOutlet:
        over_http = isinstance(receiver, Receiver)
        address = receiver if isinstance(receiver, str) else receiver.url if over_http else f"http://{receiver.address}"
        wanted = {"endpoint": address, "protocol": "http" if over_http else "grpc", "metrics_interval": 0, **options}
        config = load_config({"outlets": {"otlp": wanted}}, {})
        assert config.outlets.otlp is not None
        outlet = OtlpOutlet(
            config.outlets.otlp, telemetry or Telemetry(), lambda: "engine-1", "0.1.0", pauses=(0.02, 0.1), adopt_every=0.1
        )
        made.append(outlet)
        return outlet

    yield make
    for outlet in made:
        outlet.close()


def handed_over(outlet: OtlpOutlet) -> None:
    """Wait for it: a flush does not, where the receiver refused before."""
    until(lambda: outlet.flush(5), "all is delivered", 30)


def outcomes(outlet: OtlpOutlet) -> dict[str, float]:
    return {key[1]: value for key, value in outlet._telemetry.read(semconv.EMIT_RECORDS).values.items()}


def errors(outlet: OtlpOutlet) -> dict[str, float]:
    return {key[1]: value for key, value in outlet._telemetry.read(semconv.EMIT_ERRORS).values.items()}


def result_ids(receiver: Any) -> list[str]:
    return [plain(record.attributes)["agenteval.result.id"] for record in receiver.scores()]


# --- what is sent ----------------------------------------------------------------------------------------------------


def test_a_score_is_a_log_event_under_the_resource_of_its_root(receiver: Any, make: Make) -> None:
    outlet = make(receiver)
    error = Score("code_broken", status="error", error_type="boom", result_id="e" * 32)
    outlet.emit(
        [scored_turn(FAILED, error, Score("code_absent", status="skipped"), root=Root(TRACE_ID, SPAN_ID, resource=RESOURCE))]
    )
    handed_over(outlet)
    (request,) = receiver.requests
    (group,) = request.resource_logs
    resource = plain(group.resource.attributes)
    assert (resource["service.name"], resource["service.instance.id"]) == ("shop", "pod-7")
    assert [value.WhichOneof("value") for value in resource["nested"].values[0].value.array_value.values] == [
        "int_value", "double_value", "bool_value",
    ]  # fmt: skip
    (scope,) = group.scope_logs
    assert (scope.scope.name, scope.scope.version) == ("otel_agenteval", "0.1.0")
    failed, broken = scope.log_records
    assert (int.from_bytes(failed.trace_id, "big"), int.from_bytes(failed.span_id, "big")) == (TRACE_ID, SPAN_ID)
    assert (failed.event_name, failed.severity_number, failed.flags) == ("gen_ai.evaluation.result", 13, 1)
    assert plain(failed.attributes) == {
        "gen_ai.response.id": "last",
        "gen_ai.conversation.id": "conv-1",
        "gen_ai.agent.name": "travel",
        "agenteval.turn.id": f"{TRACE_ID:032x}-{SPAN_ID:016x}",
        "agenteval.turn.revision": 1,
        "agenteval.turn.close_reason": "root_ended",
        "agenteval.turn.complete": True,
        "agenteval.instance.id": "engine-1",
        "gen_ai.evaluation.name": "code_tool_success",
        "agenteval.result.id": "f" * 32,
        "agenteval.metric.kind": "code",
        "agenteval.metric.version": "1",
        "agenteval.policy": "gate",
        "gen_ai.evaluation.explanation": "Ask ann@example.com.",
        "agenteval.threshold": 0.7,
        "gen_ai.evaluation.score.value": 0.25,
        "gen_ai.evaluation.score.label": "fail",
        "agenteval.passed": False,
        "agenteval.severity": "warning",
    }
    assert (broken.severity_number, plain(broken.attributes)["error.type"]) == (13, "boom")
    assert "gen_ai.evaluation.score.value" not in plain(broken.attributes)
    assert outcomes(outlet) == {"sent": 2}


def test_turns_of_several_services_have_a_group_each(grpc_receiver: GrpcReceiver, make: Make) -> None:
    outlet = make(grpc_receiver)
    outlet.emit([one(1), one(2, resource={"service.name": "other"}), one(3)])
    handed_over(outlet)
    (request,) = grpc_receiver.requests
    found = {
        plain(group.resource.attributes)["service.name"]: sum(len(scope.log_records) for scope in group.scope_logs)
        for group in request.resource_logs
    }
    assert found == {"shop": 2, "other": 1}


def test_many_batches_leave_in_one_request(grpc_receiver: GrpcReceiver, make: Make) -> None:
    outlet = make(grpc_receiver)
    for number in range(50):
        outlet.emit([one(number)])
    handed_over(outlet)
    assert len(grpc_receiver.requests) <= 2
    assert len(set(result_ids(grpc_receiver))) == 50


@pytest.mark.parametrize("how", ["linked", "child"])
def test_an_evaluate_span_leads_to_its_turn(receiver: Any, make: Make, how: str) -> None:
    outlet = make(receiver, evaluate_spans=how, log_events=False)
    outlet.emit([scored_turn(FAILED, root=Root(TRACE_ID, SPAN_ID, resource=RESOURCE), seconds=0.5)] * 2)
    outlet.emit([scored_turn(FAILED, root=Root(TRACE_ID, SPAN_ID, sampled=False))])
    handed_over(outlet)
    first, again = receiver.spans()
    assert first.span_id == again.span_id, "the same result sent twice is the same span"
    assert first.name == "evaluate travel"
    assert first.end_time_unix_nano - first.start_time_unix_nano == 500_000_000
    turn = (TRACE_ID.to_bytes(16, "big"), SPAN_ID.to_bytes(8, "big"))
    if how == "linked":
        assert [(link.trace_id, link.span_id) for link in first.links] == [turn]
        assert first.trace_id != turn[0]
        assert not first.parent_span_id
    else:
        assert (first.trace_id, first.parent_span_id) == turn
    (event,) = first.events
    assert event.name == "gen_ai.evaluation.result"
    assert plain(event.attributes)["agenteval.result.id"] == "f" * 32


def test_metrics_leave_under_our_own_resource_each_interval_and_at_a_flush(receiver: Any, make: Make) -> None:
    telemetry = Telemetry()
    outlet = make(receiver, telemetry, metrics_interval="50ms", log_events=False)
    account(telemetry, one())
    outlet.emit([one()])
    receiver.wait_for(lambda: len(receiver.requests) >= 2)  # without a flush
    handed_over(outlet)
    last = {metric.name: metric for metric in receiver.requests[-1].resource_metrics[0].scope_metrics[0].metrics}
    assert last["agenteval.score"].histogram.data_points[0].count == 1
    assert last["agenteval.results"].sum.data_points[0].as_double + last["agenteval.results"].sum.data_points[0].as_int == 1
    resource = plain(receiver.requests[-1].resource_metrics[0].resource.attributes)
    assert (resource["service.name"], resource["service.instance.id"]) == ("otel-agenteval", "engine-1")


def test_headers_and_compression(receiver: Any, make: Make) -> None:
    outlet = make(receiver, headers={"X-Tenant": "acme"}, compression="gzip")
    outlet.emit([one()])
    handed_over(outlet)
    ((_, headers),) = receiver.attempts
    assert {name.lower(): value for name, value in headers.items()}["x-tenant"] == "acme"
    assert len(receiver.scores()) == 1


def test_tls_with_a_certificate_of_both_sides(make: Make, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    (cert, key), ours = authority.issue("receiver"), authority.issue("outlet")
    credentials = grpc.ssl_server_credentials(
        [(key.read_bytes(), cert.read_bytes())], root_certificates=authority.file.read_bytes(), require_client_auth=True
    )
    receiver = GrpcReceiver(credentials=credentials)
    try:
        address = f"https://localhost:{receiver.port}"
        outlet = make(address, ca_file=str(authority.file), cert_file=str(ours[0]), key_file=str(ours[1]))
        outlet.emit([one()])
        handed_over(outlet)
        assert len(receiver.scores()) == 1
        unknown = make(address, ca_file=str(authority.file))
        unknown.emit([one()])
        assert not unknown.flush(0.3)
        assert len(receiver.scores()) == 1
    finally:
        receiver.close()


# --- what is refused -------------------------------------------------------------------------------------------------


def retry_info(seconds: float, *, in_details: bool) -> tuple[tuple[str, bytes]]:
    info = RetryInfo()
    info.retry_delay.FromNanoseconds(round(seconds * 1e9))
    if not in_details:
        return (("google.rpc.retryinfo-bin", info.SerializeToString()),)
    detail = AnyMessage()
    detail.Pack(info)
    return (("grpc-status-details-bin", Status(code=14, details=[detail]).SerializeToString()),)


RETRIED_BY_GRPC = ["CANCELLED", "DEADLINE_EXCEEDED", "ABORTED", "OUT_OF_RANGE", "UNAVAILABLE", "DATA_LOSS"]


@pytest.mark.parametrize("code", RETRIED_BY_GRPC)
def test_codes_that_are_tried_again(grpc_receiver: GrpcReceiver, make: Make, code: str) -> None:
    grpc_receiver.refusals.extend([(grpc.StatusCode[code], ())] * 2)
    outlet = make(grpc_receiver)
    outlet.emit([one()])
    handed_over(outlet)
    assert len(grpc_receiver.scores()) == 1
    assert (outcomes(outlet), errors(outlet)) == ({"sent": 1}, {code: 2})


@pytest.mark.parametrize("code", [code.name for code in grpc.StatusCode if code.name not in (*RETRIED_BY_GRPC, "OK")])
def test_codes_that_are_not(grpc_receiver: GrpcReceiver, make: Make, code: str) -> None:
    grpc_receiver.refusals.append((grpc.StatusCode[code], ()))
    outlet = make(grpc_receiver)
    outlet.emit([one()])
    handed_over(outlet)
    assert (len(grpc_receiver.attempts), outcomes(outlet), errors(outlet)) == (1, {"refused": 1}, {code: 1})


@pytest.fixture
def http_receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.close()


RETRIED_BY_HTTP = [429, 502, 503, 504]


@pytest.mark.parametrize("status", [*RETRIED_BY_HTTP, 301, 400, 401, 403, 404, 408, 413, 500])
def test_only_temporary_statuses_are_tried_again(http_receiver: Receiver, make: Make, status: int) -> None:
    http_receiver.refusals.append((status, {}))
    outlet = make(http_receiver)
    outlet.emit([one()])
    handed_over(outlet)
    retried = status in RETRIED_BY_HTTP
    assert len(http_receiver.attempts) == (2 if retried else 1)
    assert (outcomes(outlet), errors(outlet)) == ({"sent" if retried else "refused": 1}, {str(status): 1})


@pytest.mark.parametrize("in_details", [True, False])
@pytest.mark.parametrize("code", ["UNAVAILABLE", "RESOURCE_EXHAUSTED"])
def test_a_receiver_that_says_when_is_not_asked_before(
    grpc_receiver: GrpcReceiver, make: Make, code: str, in_details: bool
) -> None:
    grpc_receiver.refusals.append((grpc.StatusCode[code], retry_info(0.6, in_details=in_details)))
    outlet = make(grpc_receiver)
    outlet.emit([one()])
    handed_over(outlet)
    (first, _), (second, _) = grpc_receiver.attempts
    assert 0.6 <= second - first < 5
    assert outcomes(outlet) == {"sent": 1}


def test_retry_after_of_http(http_receiver: Receiver, make: Make) -> None:
    http_receiver.refusals.append((503, {"Retry-After": "1"}))
    outlet = make(http_receiver)
    outlet.emit([one()])
    handed_over(outlet)
    (first, _), (second, _) = http_receiver.attempts
    assert 1 <= second - first < 5


def test_one_that_a_receiver_does_not_like_does_not_take_the_others_with_it(grpc_receiver: GrpcReceiver, make: Make) -> None:
    outlet = make(grpc_receiver)
    outlet._sender.may_start = False  # so that all eight wait when the first request is made
    for number in range(8):
        outlet.emit([one(number)])
    grpc_receiver.refusals.extend([(grpc.StatusCode.INVALID_ARGUMENT, ())] * 4)  # 8, 4, 2 together, and then one alone
    handed_over(outlet)
    assert outcomes(outlet) == {"sent": 7, "refused": 1}
    assert len(set(result_ids(grpc_receiver))) == 7


def test_what_was_not_taken_of_a_request_is_counted(grpc_receiver: GrpcReceiver, make: Make) -> None:
    response = ExportLogsServiceResponse()
    response.partial_success.rejected_log_records = 1
    grpc_receiver.refusals.append(response)
    outlet = make(grpc_receiver)
    outlet.emit([one(1), one(2), one(3)])
    handed_over(outlet)
    assert outcomes(outlet) == {"sent": 2, "rejected": 1}
    assert len(grpc_receiver.attempts) == 1, "a partial success must not be repeated"


def test_a_receiver_without_one_signal_gets_the_other(grpc_receiver: GrpcReceiver, make: Make) -> None:
    grpc_receiver.refused_signals = {"logs"}
    grpc_receiver.refusals.extend([UNAVAILABLE] * 100_000)
    outlet = make(grpc_receiver, evaluate_spans="linked")
    outlet.emit([one()])
    until(lambda: outcomes(outlet), "the span is counted")
    assert not outlet.flush(0.2)
    assert outcomes(outlet) == {"sent": 1}
    assert len(grpc_receiver.spans()) == 1


def test_what_was_refused_for_too_long_is_given_up(grpc_receiver: GrpcReceiver, make: Make) -> None:
    grpc_receiver.refusals.extend([UNAVAILABLE] * 100_000)
    outlet = make(grpc_receiver, retry_for="100ms")
    outlet.emit([one()])
    handed_over(outlet)
    assert outcomes(outlet) == {"expired": 1}


# --- receivers that are gone, queues that are full -------------------------------------------------------------------


def free_address() -> tuple[str, int]:
    receiver = GrpcReceiver()
    receiver.close()
    return f"http://{receiver.address}", receiver.port


def test_a_receiver_that_comes_late_gets_everything(make: Make) -> None:
    address, port = free_address()
    outlet = make(address)
    outlet.emit([one(number) for number in range(3)])
    assert not outlet.flush(0.2)
    receiver = GrpcReceiver(port)
    try:
        receiver.wait_for(lambda: len(result_ids(receiver)) == 3, 20)
        handed_over(outlet)
        assert len(result_ids(receiver)) == 3
    finally:
        receiver.close()


@pytest.mark.parametrize("spool", [True, False])
def test_a_flush_does_not_wait_for_a_receiver_that_is_known_to_be_gone(make: Make, tmp_path: Path, spool: bool) -> None:
    outlet = make(free_address()[0], spool={"directory": str(tmp_path)} if spool else None)
    outlet.emit([one()])
    outlet.flush(0.5)
    assert errors(outlet), "it was tried"
    start = time.monotonic()
    for _ in range(5):  # a sidecar asks every second what its journal may forget
        outlet.emit([one()])
        assert outlet.flush(30) is spool, "what is in a file is in safe hands"
    assert time.monotonic() - start < 5


def test_at_the_end_a_receiver_that_refuses_for_a_moment_is_waited_for(grpc_receiver: GrpcReceiver, make: Make) -> None:
    grpc_receiver.refusals.extend([UNAVAILABLE] * 5)
    outlet = make(grpc_receiver)
    outlet.emit([one()])
    grpc_receiver.wait_for(lambda: grpc_receiver.attempts)
    outlet.begin_exit()
    assert outlet.flush(20)
    assert len(result_ids(grpc_receiver)) == 1


def test_without_a_receiver_the_queue_is_bounded_and_nobody_waits(make: Make) -> None:
    outlet = make(free_address()[0], queue_bytes="20kB")
    start = time.monotonic()
    for number in range(1_000):
        outlet.emit([one(number)])
    assert time.monotonic() - start < 5
    dropped = outcomes(outlet)["queue_full"]
    assert 900 < dropped < 1_000
    assert outlet._sender.spool.bytes <= 20_000
    outlet.close()
    assert outcomes(outlet) == {"queue_full": dropped, "shutdown": 1_000 - dropped}


def test_a_receiver_that_hangs_does_not_hold_up_the_end(make: Make) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as silent:
        outlet = make(f"http://127.0.0.1:{silent.getsockname()[1]}")
        outlet.emit([one()])
        start = time.monotonic()
        assert not outlet.flush(0.3)
        outlet.close()
        assert time.monotonic() - start < 3
    assert outcomes(outlet) == {"shutdown": 1}


# --- the spool -------------------------------------------------------------------------------------------------------


def killed_with_scores(address: str, spool: Path) -> None:
    """A process that ends by SIGKILL before it could send twenty scores."""
    script = f"""
import os, signal
from tests.outlets.test_otlp import one
from otel_agenteval.config.loader import load_config
from otel_agenteval.outlets.otlp.outlet import OtlpOutlet
from otel_agenteval.core.telemetry import Telemetry
wanted = load_config({{"outlets": {{"otlp": {{"endpoint": "{address}", "spool": {{"directory": {str(spool)!r}}}}}}}}}, {{}}).outlets.otlp
outlet = OtlpOutlet(wanted, Telemetry(), lambda: "killed", "0.1.0")
for number in range(20):
    outlet.emit([one(number)])
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, env=environment(), capture_output=True, check=False, timeout=60
    )
    assert done.returncode == -9, done.stderr


def test_a_killed_process_leaves_its_scores_to_the_next(make: Make, tmp_path: Path) -> None:
    address, port = free_address()
    killed_with_scores(address, tmp_path)
    receiver = GrpcReceiver(port)
    try:
        successor = make(receiver, spool={"directory": str(tmp_path)})
        successor.start()
        receiver.wait_for(lambda: len(set(result_ids(receiver))) == 20)
        handed_over(successor)
        assert outcomes(successor) == {"sent": 20}
        assert (tmp_path / "outbox-0.db").stat().st_mode & 0o777 == 0o600
    finally:
        receiver.close()


def test_what_a_killed_process_leaves_is_sent_by_those_that_run(grpc_receiver: GrpcReceiver, make: Make, tmp_path: Path) -> None:
    outlet = make(grpc_receiver, spool={"directory": str(tmp_path)})
    outlet.start()
    outlet.emit([one(100)])
    handed_over(outlet)  # it holds the first file
    address, _ = free_address()
    killed_with_scores(address, tmp_path)
    grpc_receiver.wait_for(lambda: len(set(result_ids(grpc_receiver))) == 21)
    handed_over(outlet)
    assert outcomes(outlet) == {"sent": 21}


def test_the_spool_is_bounded_and_shared_by_taking_different_files(make: Make, tmp_path: Path) -> None:
    address, _ = free_address()
    spool = {"directory": str(tmp_path), "max_bytes": "20kB"}
    first, second = make(address, spool=spool), make(address, spool=spool)
    for outlet in (first, second):
        for number in range(100):
            outlet.emit([one(number)])
        assert outcomes(outlet)["queue_full"] > 0
        assert outlet._sender.spool.bytes <= 20_000
    assert sorted(file.name for file in tmp_path.glob("*.db")) == ["outbox-0.db", "outbox-1.db"]


@pytest.mark.parametrize("number", [0, 1])
def test_spool_file_of_another_version_stays_and_is_named(tmp_path: Path, number: int, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / f"outbox-{number}.db"
    open_file(path, SCHEMA).close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 99")
    before = path.read_bytes()
    spool = SpoolFile(str(tmp_path), 1 << 20)
    for _ in range(2):
        assert spool.adopt() == 0
    assert spool.put(SpooledBatch("logs", 1, 0.0, b"x"))
    spool.close()
    said = [record.message for record in caplog.records]
    assert len(said) == 1
    assert said[0].startswith(f"outlets.otlp.spool: {path}")
    assert path.read_bytes() == before


def test_without_a_spool_that_can_be_used_memory_does(grpc_receiver: GrpcReceiver, make: Make, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    outlet = make(grpc_receiver, spool={"directory": str(tmp_path / "file" / "spool")})
    outlet.emit([one()])
    handed_over(outlet)
    assert (outcomes(outlet), errors(outlet)) == ({"sent": 1}, {"spool_not_opened": 1})


def test_a_damaged_file_is_passed_over(grpc_receiver: GrpcReceiver, make: Make, tmp_path: Path) -> None:
    (tmp_path / "outbox-0.db").write_bytes(b"not a database, whatever its name says" * 100)
    outlet = make(grpc_receiver, spool={"directory": str(tmp_path)})
    outlet.emit([one()])
    handed_over(outlet)
    assert outcomes(outlet) == {"sent": 1}
    assert (tmp_path / "outbox-1.db").exists()


# --- in a circle -----------------------------------------------------------------------------------------------------


def test_what_comes_back_is_known_and_never_evaluated(grpc_receiver: GrpcReceiver, make: Make) -> None:
    from google.protobuf.json_format import MessageToDict

    outlet = make(grpc_receiver, evaluate_spans="child")
    outlet.emit([one(1), one(2)])
    handed_over(outlet)
    assert grpc_receiver.spans()
    assert grpc_receiver.scores()
    for request in grpc_receiver.requests:
        assert list(from_json(MessageToDict(request))) == []
        for group in (*getattr(request, "resource_spans", ()), *getattr(request, "resource_logs", ())):
            for scope in (*getattr(group, "scope_spans", ()), *getattr(group, "scope_logs", ())):
                scope.scope.name = "renamed.by.a.hop"
        assert list(from_json(MessageToDict(request))) == []


# --- through the engine ----------------------------------------------------------------------------------------------

AGENT = """
import json, os, sys, time
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.resources import Resource
import otel_agenteval as oa
provider = TracerProvider(resource=Resource.create({"service.name": "shop"}))
config = {"outlets": {"otlp": json.loads(sys.argv[1]), "prometheus": None}, "exit_timeout": "5s"}
oa.instrument(tracer_provider=provider, config=config)
tracer = provider.get_tracer("app")
with tracer.start_as_current_span("invoke_agent bot", attributes={"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "bot"}):
    chat = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m-1", "gen_ai.response.finish_reasons": ["stop"]}
    chat["gen_ai.output.messages"] = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": "Done."}]}])
    tracer.start_span("chat m-1", attributes=chat).end()
print("the agent ran", time.monotonic())
"""


def run_agent(wanted: Mapping[str, Any]) -> tuple[str, float]:
    """What it complained of, and how long its end took."""
    done = subprocess.run(
        [sys.executable, "-c", AGENT, json.dumps({"log_events": "all", **wanted})], cwd=ROOT, env=environment(), capture_output=True, text=True, check=False, timeout=90
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said, _, ran_at = done.stdout.rpartition(" ")
    assert said == "the agent ran"
    return done.stderr, time.monotonic() - float(ran_at)


def test_an_agent_that_ends_at_once_has_sent_its_scores(receiver: Any) -> None:
    over_http = isinstance(receiver, Receiver)
    wanted = {
        "endpoint": receiver.url if over_http else f"http://{receiver.address}",
        "protocol": "http" if over_http else "grpc",
    }
    complaints, _ = run_agent(wanted)
    assert complaints == ""
    assert len(result_ids(receiver)) > 5
    assert {metric.name for metric in receiver.metrics()} >= {"agenteval.turns", "agenteval.score"}


def test_an_agent_whose_receiver_is_gone_ends_in_time_and_says_what_was_lost() -> None:
    complaints, seconds = run_agent({"endpoint": free_address()[0]})
    assert "not all scores were delivered" in complaints
    assert seconds < 15


def test_a_forked_child_sends_for_itself(grpc_receiver: GrpcReceiver) -> None:
    wanted = {"endpoint": f"http://{grpc_receiver.address}", "metrics_interval": 0, "log_events": "all"}
    script = AGENT.replace('print("the agent ran", time.monotonic())', "") + (
        "engine = oa.instrument(tracer_provider=provider)._processor.engine\n"
        "assert engine.flush(10)\n"
        "child = os.fork()\n"
        'with tracer.start_as_current_span("invoke_agent bot", attributes={"gen_ai.operation.name": "invoke_agent"}): pass\n'
        "assert engine.flush(10)\n"
        "if child: assert os.waitpid(child, 0)[1] == 0\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script, json.dumps(wanted)], cwd=ROOT, env=environment(), capture_output=True, text=True, check=False, timeout=90
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    instances = {plain(record.attributes)["agenteval.instance.id"] for record in grpc_receiver.scores()}
    assert len(instances) == 2
    assert len(set(result_ids(grpc_receiver))) == len(result_ids(grpc_receiver))


# --- configuration ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "outlets.otlp.endpoint"),
        ({"endpoint": "127.0.0.1:4317"}, "http:// or https://"),
        ({"endpoint": "http://h", "protocol": "thrift"}, "grpc or http"),
        ({"endpoint": "http://h", "cert_file": "a.pem"}, "cert_file and key_file"),
        ({"endpoint": "http://h", "headers": {"a b": "c"}}, "header names"),
        ({"endpoint": "http://h", "spool": {}}, "outlets.otlp.spool.directory"),
    ],
)
def test_a_bad_option_is_explained(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        load_config({"outlets": {"otlp": options}}, {})


def test_a_certificate_that_is_not_there_is_said_at_once(make: Make) -> None:
    with pytest.raises(ConfigError, match=r"outlets.otlp.ca_file: .*'/no/such/file'"):
        make("https://localhost:1", ca_file="/no/such/file")


def test_headers_are_shown_masked() -> None:
    from otel_agenteval.config.loader import effective_yaml

    config = load_config({"outlets": {"otlp": {"endpoint": "http://h", "headers": {"x-team": "s3cret"}}}}, {})
    assert "s3cret" not in effective_yaml(config)
    assert "x-team" in effective_yaml(config)
