"""OTLP export of scores to real receivers that accept, refuse, disappear and return."""

from __future__ import annotations

import json
import socket
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.json_format import MessageToDict
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse

from otel_agenteval.config.loader import effective_yaml, load_config
from otel_agenteval.config.outlets import OtlpOptions
from otel_agenteval.core import semconv
from otel_agenteval.core.errors import ConfigError
from otel_agenteval.core.score import Score
from otel_agenteval.core.sqlite import open_file
from otel_agenteval.core.telemetry import Telemetry
from otel_agenteval.evaluation.scored_turn import Root, ScoredTurn
from otel_agenteval.outlets.accounting import account
from otel_agenteval.outlets.otlp.client import SendResult, client_for
from otel_agenteval.outlets.otlp.outlet import OtlpOutlet
from otel_agenteval.outlets.otlp.spool import SCHEMA, SpooledBatch, SpoolFile
from otel_agenteval.spans.otlp import from_json
from tests.outlets.factories import SPAN_ID, TRACE_ID, scored_turn
from tests.support.certificates import Authority
from tests.support.process import PRELUDE, run
from tests.support.receiver import GrpcReceiver, Receiver, plain
from tests.support.servers import until

FAILED = Score("code_tool_success", 0.25, False, label="fail", threshold=0.7, policy="gate", result_id="f" * 32)
RESOURCE = {"service.name": "shop", "service.instance.id": "pod-7", "nested": {"a": [1, 2.5, True]}}
UNAVAILABLE = (grpc.StatusCode.UNAVAILABLE, ())

Make = Callable[..., OtlpOutlet]


def one(number: int = 0, **more: Any) -> ScoredTurn:
    """Return a turn of a separate trace, with one score."""
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


def options_of(receiver: Any, **options: Any) -> OtlpOptions:
    """Return the configuration for a receiver, or for an address over gRPC."""
    over_http = isinstance(receiver, Receiver)
    address = receiver if isinstance(receiver, str) else receiver.url if over_http else f"http://{receiver.address}"
    wanted = {"endpoint": address, "protocol": "http" if over_http else "grpc", "metrics_interval": 0, **options}
    config = load_config({"outlets": {"otlp": wanted}}, {})
    assert config.outlets.otlp is not None
    return config.outlets.otlp


@pytest.fixture
def make() -> Iterator[Make]:
    made: list[OtlpOutlet] = []

    def make(receiver: Any, telemetry: Telemetry | None = None, **options: Any) -> OtlpOutlet:
        wanted, counts = options_of(receiver, **options), telemetry or Telemetry()
        outlet = OtlpOutlet(wanted, counts, lambda: "engine-1", "0.1.0", pauses=(0.02, 0.1), adopt_every=0.1)
        made.append(outlet)
        return outlet

    yield make
    for outlet in made:
        outlet.close()


def handed_over(outlet: OtlpOutlet) -> None:
    """Wait until everything is delivered. A flush doesn't wait if the receiver has refused before."""
    until(lambda: outlet.flush(5), "all is delivered", every=0.01)


def ends(call: Callable[[], Any]) -> Any:
    """Return the result of a call that must not wait for its own timeout of an hour."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(call()), daemon=True)
    thread.start()
    thread.join(90)
    assert found, "it waits"
    return found[0]


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
    root = Root(TRACE_ID, SPAN_ID, resource=RESOURCE)
    outlet.emit([scored_turn(FAILED, error, Score("code_absent", status="skipped"), root=root)])
    handed_over(outlet)
    (request,) = receiver.requests
    (group,) = request.resource_logs
    assert plain(group.resource.attributes)["service.instance.id"] == "pod-7"
    (scope,) = group.scope_logs
    assert (scope.scope.name, scope.scope.version) == ("otel_agenteval", "0.1.0")
    failed, broken = scope.log_records
    assert (int.from_bytes(failed.trace_id, "big"), int.from_bytes(failed.span_id, "big")) == (TRACE_ID, SPAN_ID)
    assert (failed.event_name, failed.severity_number, failed.flags) == ("gen_ai.evaluation.result", 13, 1)
    wanted = {"agenteval.result.id": "f" * 32, "gen_ai.evaluation.score.value": 0.25, "agenteval.severity": "warning"}
    assert wanted.items() <= plain(failed.attributes).items()
    assert (broken.severity_number, plain(broken.attributes)["error.type"]) == (13, "boom")
    assert outcomes(outlet) == {"sent": 2}


def test_many_batches_leave_in_one_request(grpc_receiver: GrpcReceiver, make: Make) -> None:
    outlet = make(grpc_receiver)
    for number in range(50):
        outlet.emit([one(number)])
    handed_over(outlet)
    assert len(grpc_receiver.requests) <= 2
    assert len(set(result_ids(grpc_receiver))) == 50


def test_metrics_leave_under_our_own_resource_each_interval_and_at_a_flush(receiver: Any, make: Make) -> None:
    telemetry = Telemetry()
    outlet = make(receiver, telemetry, metrics_interval="50ms", log_events=False)
    account(telemetry, one())
    outlet.emit([one()])
    receiver.wait_for(lambda: len(receiver.requests) >= 2)  # without a flush
    handed_over(outlet)
    last = {metric.name: metric for metric in receiver.requests[-1].resource_metrics[0].scope_metrics[0].metrics}
    assert last["agenteval.score"].histogram.data_points[0].count == 1
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


RETRIED_BY_GRPC = {"CANCELLED", "DEADLINE_EXCEEDED", "ABORTED", "OUT_OF_RANGE", "UNAVAILABLE", "DATA_LOSS"}
RETRIED_BY_HTTP = {429, 502, 503, 504}


def test_codes_that_are_tried_again(grpc_receiver: GrpcReceiver, make: Make) -> None:
    grpc_receiver.refusals.extend((grpc.StatusCode[code], ()) for code in RETRIED_BY_GRPC)
    outlet = make(grpc_receiver)
    outlet.emit([one()])
    handed_over(outlet)
    assert len(grpc_receiver.scores()) == 1
    assert (outcomes(outlet), errors(outlet)) == ({"sent": 1}, dict.fromkeys(RETRIED_BY_GRPC, 1))


def test_codes_that_are_not(grpc_receiver: GrpcReceiver, make: Make) -> None:
    codes = {code.name for code in grpc.StatusCode} - RETRIED_BY_GRPC - {"OK"}
    outlet = make(grpc_receiver)
    for code in codes:
        grpc_receiver.refusals.append((grpc.StatusCode[code], ()))
        outlet.emit([one()])
        handed_over(outlet)
    assert (outcomes(outlet), errors(outlet)) == ({"refused": len(codes)}, dict.fromkeys(codes, 1))
    assert len(grpc_receiver.attempts) == len(codes)


@pytest.fixture
def http_receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.close()


def test_only_temporary_statuses_are_tried_again(http_receiver: Receiver, make: Make) -> None:
    others = {301, 400, 401, 403, 404, 408, 413, 500}
    outlet = make(http_receiver)
    for status in (*RETRIED_BY_HTTP, *others):
        http_receiver.refusals.append((status, {}))
        outlet.emit([one()])
        handed_over(outlet)
    assert len(http_receiver.attempts) == 2 * len(RETRIED_BY_HTTP) + len(others)
    assert outcomes(outlet) == {"sent": len(RETRIED_BY_HTTP), "refused": len(others)}
    assert errors(outlet) == {str(status): 1 for status in (*RETRIED_BY_HTTP, *others)}


@pytest.mark.parametrize("in_details", [True, False])
@pytest.mark.parametrize("code", ["UNAVAILABLE", "RESOURCE_EXHAUSTED"])
def test_a_receiver_says_when_to_try_again(grpc_receiver: GrpcReceiver, code: str, in_details: bool) -> None:
    grpc_receiver.refusals.append((grpc.StatusCode[code], retry_info(7.5, in_details=in_details)))
    client = client_for(options_of(grpc_receiver))
    assert client.send("logs", b"", 60) == SendResult("retry", code, 7.5)
    client.close()


def test_a_receiver_that_says_when_is_not_asked_before(http_receiver: Receiver, make: Make) -> None:
    http_receiver.refusals.append((503, {"Retry-After": "1"}))
    outlet = make(http_receiver)
    outlet.emit([one()])
    handed_over(outlet)
    (first, _), (second, _) = http_receiver.attempts
    assert second - first >= 1
    assert outcomes(outlet) == {"sent": 1}


def test_one_that_a_receiver_does_not_like_does_not_take_the_others_with_it(grpc_receiver: GrpcReceiver, make: Make) -> None:
    outlet = make(grpc_receiver)
    outlet._may_start = False  # so that all eight wait when the first request is made
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
        receiver.wait_for(lambda: len(result_ids(receiver)) == 3, 60)
        handed_over(outlet)
        assert len(result_ids(receiver)) == 3
    finally:
        receiver.close()


@pytest.mark.parametrize("spool", [True, False])
def test_a_flush_does_not_wait_for_a_receiver_that_is_known_to_be_gone(make: Make, tmp_path: Path, spool: bool) -> None:
    outlet = make(free_address()[0], spool={"directory": str(tmp_path)} if spool else None)
    outlet.emit([one()])
    until(lambda: sum(errors(outlet).values()) > 1, "it was tried", every=0.01)
    for _ in range(2):  # a sidecar asks every second what its journal may forget
        outlet.emit([one()])
        assert ends(lambda: outlet.flush(3_600)) is spool, "what is in a file is in safe hands"


def test_at_the_end_a_receiver_that_refuses_for_a_moment_is_waited_for(grpc_receiver: GrpcReceiver, make: Make) -> None:
    grpc_receiver.refusals.extend([UNAVAILABLE] * 5)
    outlet = make(grpc_receiver)
    outlet.emit([one()])
    grpc_receiver.wait_for(lambda: grpc_receiver.attempts)
    outlet.begin_exit()
    assert outlet.flush(60)
    assert len(result_ids(grpc_receiver)) == 1


def test_without_a_receiver_the_queue_is_bounded_and_nobody_waits(make: Make) -> None:
    outlet = make(free_address()[0], queue_bytes="20kB")
    for number in range(1_000):
        outlet.emit([one(number)])
    dropped = outcomes(outlet)["queue_full"]
    assert 900 < dropped < 1_000
    assert outlet._spool.bytes <= 20_000
    outlet.close()
    assert outcomes(outlet) == {"queue_full": dropped, "shutdown": 1_000 - dropped}


def test_a_receiver_that_hangs_does_not_hold_up_the_end(make: Make) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        outlet = make(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout="1h")
        outlet.emit([one()])
        assert not outlet.flush(0.1)
        ends(outlet.close)
    assert outcomes(outlet) == {"shutdown": 1}


# --- the spool -------------------------------------------------------------------------------------------------------


def killed_with_scores(address: str, spool: Path) -> None:
    """Run a process that ends by SIGKILL before it has sent its twenty scores."""
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
    done = run(script)
    assert done.returncode == -9, done.stderr


def test_what_a_killed_process_leaves_is_sent_by_those_that_run(grpc_receiver: GrpcReceiver, make: Make, tmp_path: Path) -> None:
    outlet = make(grpc_receiver, spool={"directory": str(tmp_path)})
    outlet.start()
    outlet.emit([one(100)])
    handed_over(outlet)  # it holds the first file
    address, _ = free_address()
    killed_with_scores(address, tmp_path)
    grpc_receiver.wait_for(lambda: len(set(result_ids(grpc_receiver))) == 21, 60)
    handed_over(outlet)
    assert outcomes(outlet) == {"sent": 21}
    assert {file.stat().st_mode & 0o777 for file in tmp_path.glob("outbox-*.db")} == {0o600}


def test_the_spool_is_bounded_and_shared_by_taking_different_files(make: Make, tmp_path: Path) -> None:
    address, _ = free_address()
    spool = {"directory": str(tmp_path), "max_bytes": "20kB"}
    first, second = make(address, spool=spool), make(address, spool=spool)
    for outlet in (first, second):
        for number in range(100):
            outlet.emit([one(number)])
        assert outcomes(outlet)["queue_full"] > 0
        assert outlet._spool.bytes <= 20_000
    assert sorted(file.name for file in tmp_path.glob("*.db")) == ["outbox-0.db", "outbox-1.db"]


def test_spool_file_of_another_version_stays_and_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "outbox-0.db"
    open_file(path, SCHEMA).close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 99")
    before = path.read_bytes()
    spool = SpoolFile(str(tmp_path), 1 << 20)
    for _ in range(2):
        assert spool.adopt() == 0
    assert spool.put(SpooledBatch("logs", 1, 0.0, b"x"))
    spool.close()
    (said,) = [record.message for record in caplog.records]
    assert said.startswith(f"outlets.otlp.spool: {path}")
    assert path.read_bytes() == before


def test_without_a_spool_that_can_be_used_memory_does(grpc_receiver: GrpcReceiver, make: Make, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    outlet = make(grpc_receiver, spool={"directory": str(tmp_path / "file" / "spool")})
    outlet.emit([one()])
    handed_over(outlet)
    assert (outcomes(outlet), errors(outlet)) == ({"sent": 1}, {"spool_not_opened": 1})


@pytest.mark.parametrize("log_events", ["all", "off"])
def test_flush_at_exit_ends_with_the_last_metrics(receiver: Any, log_events: str, make: Make) -> None:
    """The next metrics are due after an hour, which nothing may wait for."""
    outlet = make(receiver, metrics_interval="1h", log_events=log_events)
    outlet._telemetry.add(semconv.EMIT_ERRORS, outlet="any", reason="any")
    outlet.begin_exit()
    outlet.emit([one()])
    assert ends(lambda: outlet.flush(3600))
    assert receiver.metrics()


def test_flush_at_exit_is_incomplete_if_records_wait(make: Make) -> None:
    outlet = make(free_address()[0], metrics_interval="1h", log_events="all")
    outlet.begin_exit()
    outlet.emit([one()])
    assert not outlet.flush(0.2)


# --- in a circle -----------------------------------------------------------------------------------------------------


def test_what_comes_back_is_known_and_never_evaluated(grpc_receiver: GrpcReceiver, make: Make) -> None:
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
config = {"outlets": {"otlp": json.loads(sys.argv[1]), "prometheus": None}, "exit_timeout": sys.argv[2]}
provider = TracerProvider()
oa.instrument(tracer_provider=provider, config=config)
turn(provider.get_tracer("app"))
"""


def run_agent(script: str, wanted: Mapping[str, Any], exit_timeout: str = "60s") -> str:
    """Run an agent, and return its error output."""
    program, arguments = (sys.executable, "-W", "ignore"), (json.dumps({"log_events": "all", **wanted}), exit_timeout)
    done = run(PRELUDE + script, *arguments, command=program, timeout=180)
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_an_agent_that_ends_at_once_has_sent_its_scores(grpc_receiver: GrpcReceiver) -> None:
    assert run_agent(AGENT, {"endpoint": f"http://{grpc_receiver.address}"}) == ""
    assert len(result_ids(grpc_receiver)) > 5
    assert {metric.name for metric in grpc_receiver.metrics()} >= {"agenteval.turns", "agenteval.score"}


def test_an_agent_whose_receiver_is_gone_ends_and_says_what_was_lost() -> None:
    assert "not all scores were delivered" in run_agent(AGENT, {"endpoint": free_address()[0]}, "200ms")


def test_a_forked_child_sends_for_itself(grpc_receiver: GrpcReceiver) -> None:
    fork = """
engine = oa.instrument(tracer_provider=provider)._processor.engine
assert engine.flush(60)
child = os.fork()
turn(provider.get_tracer("app"))
assert engine.flush(60)
if child: assert os.waitpid(child, 0)[1] == 0
"""
    run_agent(AGENT + fork, {"endpoint": f"http://{grpc_receiver.address}", "metrics_interval": 0})
    instances = {plain(record.attributes)["agenteval.instance.id"] for record in grpc_receiver.scores()}
    assert len(instances) == 2
    assert len(set(result_ids(grpc_receiver))) == len(result_ids(grpc_receiver))


# --- configuration ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "outlets.otlp.endpoint"),
        ({"endpoint": "127.0.0.1:4317"}, "http:// or https://"),
        ({"endpoint": "http://h:4318/v1/logs"}, "outlets.otlp.endpoint: must be an address without /v1/logs"),
        ({"endpoint": "http://h/otlp/v1/traces/"}, "without /v1/traces"),
        ({"endpoint": "http://h/v1/metrics", "protocol": "http"}, "without /v1/metrics"),
        ({"endpoint": "http://h", "protocol": "thrift"}, "grpc or http"),
        ({"endpoint": "http://h", "protocol": "http/json"}, "grpc or http"),
        ({"endpoint": "http://h", "cert_file": "a.pem"}, "cert_file and key_file"),
        ({"endpoint": "http://h", "headers": {"a b": "c"}}, "header names"),
        ({"endpoint": "http://h", "spool": {}}, "outlets.otlp.spool.directory"),
    ],
)
def test_a_bad_option_is_explained(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        load_config({"outlets": {"otlp": options}}, {})


@pytest.mark.parametrize("endpoint", ["http://h/v1", "http://h/v1/logs/team", "http://h/otlp"])
def test_endpoint_with_another_path_is_accepted(endpoint: str) -> None:
    assert options_of(endpoint).endpoint == endpoint


def test_protocol_http_protobuf_means_http() -> None:
    assert options_of("http://h", protocol="http/protobuf") == options_of("http://h", protocol="http")


@pytest.mark.parametrize(
    ("endpoint", "protocol", "reason", "hinted"),
    [
        ("http://h:4318", "grpc", "UNAVAILABLE", True),
        ("http://h:4317", "grpc", "UNAVAILABLE", False),
        ("http://h:4318", "grpc", "UNAUTHENTICATED", False),
        ("http://h:4318", "http", "UNAVAILABLE", False),
    ],
)
def test_unavailable_grpc_receiver_hints_at_http(
    endpoint: str, protocol: str, reason: str, hinted: bool, make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    make(endpoint, protocol=protocol)._failed(reason)
    assert f"can't send to {endpoint}: {reason}" in caplog.text
    assert ("set outlets.otlp.protocol: http" in caplog.text) is hinted


def test_a_certificate_that_is_not_there_is_said_at_once(make: Make) -> None:
    with pytest.raises(ConfigError, match=r"outlets.otlp.ca_file: .*'/no/such/file'"):
        make("https://localhost:1", ca_file="/no/such/file")


def test_headers_are_shown_masked() -> None:
    config = load_config({"outlets": {"otlp": {"endpoint": "http://h", "headers": {"x-team": "s3cret"}}}}, {})
    assert "s3cret" not in effective_yaml(config)
    assert "x-team" in effective_yaml(config)
