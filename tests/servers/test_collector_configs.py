"""The configurations of collector_config/ in the real Collector: they are valid, and work as their comments describe."""

from __future__ import annotations

import os
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor
from opentelemetry.sdk.resources import Resource

import otel_agenteval as oa
from otel_agenteval.cli.demo import SCENES
from otel_agenteval.core.semconv import EVENT, SCOPE
from tests.support.collector import CONFIGS, Agent, Collector
from tests.support.kafka import Kafka
from tests.support.receiver import GrpcReceiver, plain
from tests.support.servers import free_port, program, until
from tests.support.sidecar import Sidecar

NAMES = sorted(path.stem for path in CONFIGS.glob("*.yaml") if path.stem != "builder")
OLD_NAMES = {
    "otlp_grpc": "otlp",
    "otlp_http": "otlphttp",
    "load_balancing": "loadbalancing",
    "prometheus_remote_write": "prometheusremotewrite",
}
WELL = next(scene for scene in SCENES if scene.title == "all is well")
CIRCLES = next(scene for scene in SCENES if "circles" in scene.title)
LEAK = next(scene for scene in SCENES if "leaks" in scene.title)


def text_of(name: str) -> str:
    return (CONFIGS / f"{name}.yaml").read_text(encoding="utf-8")


def keys_of(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from keys_of(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from keys_of(inner)


def validate(path: Path, folder: Path) -> str:
    """Return the errors of ``otelcol validate``."""
    env = {**os.environ, "STORAGE": str(folder)}
    command = [program("otelcol"), "validate", "--config", path]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def span_ids(receiver: GrpcReceiver) -> list[bytes]:
    return [span.span_id for span in receiver.spans()]


def roots(receiver: GrpcReceiver) -> list[Any]:
    return [span for span in receiver.spans() if span.name.startswith("invoke_agent")]


def traces(receiver: GrpcReceiver) -> set[bytes]:
    return {span.trace_id for span in receiver.spans()}


@pytest.mark.parametrize("name", NAMES)
def test_a_configuration_is_valid_and_blocks_no_agent(name: str, tmp_path: Path) -> None:
    """No exporter blocks the agents, and ours has a batch processor. Older Collectors accept the older exporter names."""
    assert validate(CONFIGS / f"{name}.yaml", tmp_path) == ""
    config = yaml.safe_load(text_of(name))
    assert "block_on_overflow" not in set(keys_of(config))
    assert not {kind.partition("/")[0] for kind in config["exporters"]} & set(OLD_NAMES.values())
    for pipeline in config["service"]["pipelines"].values():
        if any("agenteval" in exporter for exporter in pipeline["exporters"]) and pipeline["receivers"] == ["otlp"]:
            assert pipeline["processors"][-1] == "batch/agenteval"
    text = text_of(name)
    for new, old in OLD_NAMES.items():
        text = re.sub(rf"\b{new}(?=[/:\],])", old, text)
    (tmp_path / "old.yaml").write_text(text, encoding="utf-8")
    assert validate(tmp_path / "old.yaml", tmp_path) == ""


@pytest.mark.parametrize("name", NAMES)
def test_each_exporter_to_the_sidecar_can_send_a_token(name: str) -> None:
    text = text_of(name)
    assert text.count("${env:AGENTEVAL_ENDPOINT") == text.count('headers: {authorization: "${env:AGENTEVAL_AUTHORIZATION:-}"}')


@pytest.mark.parametrize("token", ["", "Bearer open-sesame"])
def test_sidecar_with_a_token_receives_spans_only_with_the_token(token: str, tmp_path: Path, backend: GrpcReceiver) -> None:
    env = {"AGENTEVAL_AUTHORIZATION": token, "BACKEND_ENDPOINT": backend.address}
    with (
        Sidecar(tmp_path, {"serve": {"token": "open-sesame"}}) as sidecar,
        Collector("sidecar", tmp_path, AGENTEVAL_ENDPOINT=sidecar.grpc, **env) as collector,
    ):
        agent = Agent(collector.grpc)
        agent.play(1)
        agent.close()
        outcome = "ok" if token else "unauthenticated"
        until(lambda: sidecar.metric("agenteval_serve_requests_total", outcome=outcome), "the request is answered")
        assert bool(sidecar.metric("agenteval_spans_received_total")) is bool(token)


def test_validation_finds_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "wrong.yaml").write_text(text_of("sidecar").replace("otlp_grpc/", "otlp_grcp/"), encoding="utf-8")
    assert "otlp_grcp" in validate(tmp_path / "wrong.yaml", tmp_path)


# --- what the sidecar's configuration does when we are not there


def test_past_our_full_queue_only_our_copy_drops(tmp_path: Path, backend: GrpcReceiver) -> None:
    nobody = f"127.0.0.1:{free_port()}"
    with Collector(
        "sidecar", tmp_path, AGENTEVAL_ENDPOINT=nobody, AGENTEVAL_QUEUE=20_000, BACKEND_ENDPOINT=backend.address
    ) as collector:
        agent = Agent(collector.grpc)
        sent = 0

        def dropped() -> float:
            return collector.metric("otelcol_exporter_enqueue_failed_spans", exporter="otlp_grpc/agenteval")

        while not dropped():
            agent.play(len(SCENES))
            sent += len(SCENES)
            assert sent < 2000, "the queue does not fill"
        agent.close()
        assert agent.failed == 0, "the agent is told nothing of it"
        until(lambda: len(roots(backend)) >= sent, "all at the backend")
        assert max(Counter(span_ids(backend)).values()) == 1
        assert collector.metric("otelcol_exporter_enqueue_failed_spans", exporter="otlp_grpc/backend") == 0


# --- the other places


def test_an_agent_collector_and_a_gateway_feed_backend_and_us(tmp_path: Path, backend: GrpcReceiver, ours: GrpcReceiver) -> None:
    with (
        Collector("gateway", tmp_path, AGENTEVAL_ENDPOINT=ours.address, BACKEND_ENDPOINT=backend.address) as gateway,
        Collector("agent", tmp_path, GATEWAY_ENDPOINT=gateway.grpc) as node,
    ):
        agent = Agent(node.grpc)
        agent.play()
        agent.close()
        until(lambda: len(traces(ours)) == len(traces(backend)) == len(SCENES), "every turn at both")
        until(lambda: sorted(span_ids(ours)) == sorted(span_ids(backend)), "the same spans")
        assert list((tmp_path / "storage").iterdir()), "our queue is on disk"


def test_tail_sampling_keeps_what_scored_badly(tmp_path: Path, backend: GrpcReceiver, ours: GrpcReceiver) -> None:
    env = {"AGENTEVAL_ENDPOINT": ours.address, "BACKEND_ENDPOINT": backend.address, "DECISION_WAIT": "1s", "KEEP_PERCENT": 0}
    with Collector("tail_sampling", tmp_path, **env) as collector:
        agent = Agent(collector.grpc)
        agent.provider.add_span_processor(oa.AgentEvalSpanProcessor({"outlets": {"log_events": False, "prometheus": None}}))
        for scene in (WELL, CIRCLES, WELL):
            agent.play(1, scene)
        agent.close()
        until(lambda: len(traces(ours)) == 3, "we see every trace")
        counted = "otelcol_processor_tail_sampling_global_count_traces_sampled"
        until(lambda: traces(backend) and collector.metric(counted) == 3, "the decision about every trace")
    (kept,) = traces(backend)
    events = [plain(event.attributes) for event in roots(backend)[0].events]
    [bad] = [event for event in events if event["gen_ai.evaluation.name"] == "code_repeated_tool_calls"]
    assert bad["agenteval.passed"] is False
    assert {span.trace_id for span in ours.spans()} > {kept}


def test_redaction_masks_what_the_backend_gets_and_not_what_we_read(
    tmp_path: Path, backend: GrpcReceiver, ours: GrpcReceiver
) -> None:
    secret = re.compile(r"ada\.berger@gmx\.ch|ghp_\w+")
    with Collector("redaction", tmp_path, AGENTEVAL_ENDPOINT=ours.address, BACKEND_ENDPOINT=backend.address) as collector:
        agent = Agent(collector.grpc)
        agent.play(1, LEAK)
        agent.close()
        log_something(collector.grpc, "write to ada.berger@gmx.ch")
        for receiver in (backend, ours):
            until(lambda receiver=receiver: len(receiver.spans()) == 4 and len(receiver.log_records()) == 1, "all there")
    assert len(secret.findall(str(ours.requests))) >= 4
    assert not secret.findall(str(backend.requests))
    (root,) = backend.spans("invoke_agent trip-planner")
    assert plain(root.attributes)["gen_ai.agent.name"] == "trip-planner"


def log_something(address: str, body: str, scope: str = "acme.app", event: str | None = None) -> None:
    """Send one log record."""
    provider = LoggerProvider(resource=Resource({"service.name": "demo"}), shutdown_on_exit=False)
    provider.add_log_record_processor(SimpleLogRecordProcessor(OTLPLogExporter(endpoint=address, insecure=True)))
    provider.get_logger(scope).emit(body=body, event_name=event)
    provider.shutdown()


@pytest.mark.slow
def test_kafka_holds_what_we_cannot_take_yet(tmp_path: Path, backend: GrpcReceiver) -> None:
    port = free_port()
    with (
        Kafka(tmp_path) as kafka,
        Collector("kafka_in", tmp_path, KAFKA=kafka.address, BACKEND_ENDPOINT=backend.address) as before,
        Collector("kafka_out", tmp_path, KAFKA=kafka.address, AGENTEVAL_ENDPOINT=f"127.0.0.1:{port}") as behind,
    ):
        agent = Agent(before.grpc)
        agent.play()
        agent.close()
        log_something(before.grpc, "content in a log record")
        until(lambda: behind.metric("otelcol_receiver_refused_spans") > 0, "a first try that finds nobody")
        ours = GrpcReceiver(port)
        until(lambda: set(span_ids(ours)) == set(span_ids(backend)), "every span, once we are there")
        until(ours.log_records, "the log record too")
        ours.close()


def test_what_is_ours_is_not_sent_to_us_again(tmp_path: Path, backend: GrpcReceiver, ours: GrpcReceiver) -> None:
    with Collector("sidecar", tmp_path, AGENTEVAL_ENDPOINT=ours.address, BACKEND_ENDPOINT=backend.address) as collector:
        log_something(collector.grpc, "a score", SCOPE, EVENT)
        agent = Agent(collector.grpc)
        with agent.provider.get_tracer(SCOPE).start_as_current_span("evaluate bot"):
            pass
        log_something(collector.grpc, "the application's own")
        with agent.provider.get_tracer("acme.app").start_as_current_span("handle"):
            pass
        agent.close()
        until(lambda: len(backend.log_records()) == 2 and len(backend.spans()) == 2, "all of it at the backend")
        until(lambda: ours.log_records() and ours.spans(), "the application's with us")
    assert [record.body.string_value for record in ours.log_records()] == ["the application's own"]
    assert [span.name for span in ours.spans()] == ["handle"]
