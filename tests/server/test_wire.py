"""The sidecar gives the same results as the in-process engine, however spans arrive."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import grpc
import pytest
import zstandard
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from otel_agenteval.config.loader import load_config
from otel_agenteval.evaluation.evaluator import evaluate
from otel_agenteval.evaluation.references import ReferenceSources
from otel_agenteval.evaluation.selection import select_metrics
from otel_agenteval.turns.recordings import load_turns
from tests.support.otlp_messages import message_of
from tests.support.recordings import recording, unpack
from tests.support.rig import Rig
from tests.support.service import CHAT, Sidecar, Transport, request, said_by

TRACES = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
LOGS = "/opentelemetry.proto.collector.logs.v1.LogsService/Export"
RECORDINGS = (
    "pydantic_ai-native_v6/s2.jsonl",
    "langchain-openinference/s3.jsonl",
    "openai_agents-traceloop/s2.jsonl",
    "strands-native/s7.jsonl",
    "openai_sdk-otel_genai_event/s2.jsonl",
)


def _lines(name: str) -> list[bytes]:
    return [line for line in recording(name).splitlines() if line.strip()]


def _send(sidecar: Sidecar, how: str, line: bytes, signal: str) -> None:
    kind: Any = ExportTraceServiceRequest if signal == "traces" else ExportLogsServiceRequest
    path = f"/v1/{signal}"
    if how == "json":
        status, headers, body = sidecar.post(path, line, {"Content-Type": "application/json"})
        assert (status, headers["content-type"], body) == (200, "application/json", b"{}")
        return
    body = message_of(line, kind).SerializeToString()
    if how == "grpc":
        with grpc.insecure_channel(sidecar.addresses["grpc"]) as channel:
            method = TRACES if signal == "traces" else LOGS
            assert channel.unary_unary(method)(body, timeout=60, compression=grpc.Compression.Gzip) == b""
        return
    packed = {"gzip": gzip.compress, "zstd": zstandard.ZstdCompressor().compress, "identity": bytes}[how](body)
    status, headers, answer = sidecar.post(path, packed, {"Content-Encoding": how})
    assert (status, headers["content-type"], answer) == (200, "application/x-protobuf", b"")


@pytest.mark.parametrize("how", ["json", "gzip", "zstd", "identity", "grpc"])
def test_recordings_score_as_they_do_from_a_file(how: str, tmp_path: Path) -> None:
    metrics, references = select_metrics(load_config({})), ReferenceSources(load_config({}))
    expected: dict[Any, Any] = {}
    with Sidecar() as sidecar:
        for name in RECORDINGS:
            logs = name.replace(".jsonl", ".logs.jsonl")
            files = [unpack(name, tmp_path)]
            if "event" in name:  # content in log records, which leave their process first
                files.append(unpack(logs, tmp_path))
                for line in _lines(logs):
                    _send(sidecar, how, line, "logs")
            for line in _lines(name):
                _send(sidecar, how, line, "traces")
            for turn in load_turns(files):
                for score in evaluate(turn, metrics, references):
                    expected[turn.turn_id, score.metric] = (
                        score.status,
                        score.value,
                        score.passed,
                        score.label,
                        score.explanation,
                    )
        found = {key: said[:5] for key, said in sidecar.scores().items()}
    assert found == expected
    assert len({turn_id for turn_id, _ in found}) >= len(RECORDINGS)


@pytest.mark.parametrize("transport", ["grpc", "http"])
@pytest.mark.parametrize("compressed", [False, True])
def test_an_agent_that_exports_gets_the_numbers_that_it_has_in_its_process(transport: Transport, compressed: bool) -> None:
    kinds: dict[str, Any] = {"grpc": grpc.Compression.Gzip, "http": Compression.Gzip}
    options = {"compression": kinds[transport]} if compressed else {}
    with Sidecar() as sidecar, Rig() as rig:
        rig.provider.add_span_processor(SimpleSpanProcessor(sidecar.exporter(transport, **options)))
        for number in range(3):
            rig.run(user=f"What is {number}?", says="A number, as https://a.example says.")
        with rig.agent("planner"):
            rig.chat("Book it.", "Done.", calls=[{"id": "1", "name": "book", "arguments": {"to": "Paris"}}])
            rig.tool("book", attributes={"error.type": "timeout"})
            rig.provider.get_tracer("acme.http").start_span("GET", attributes={"http.route": "/x"}).end()
        here, there = said_by(rig.scored()), sidecar.scores()
        close_reasons = {turn.close_reason for turn in rig.turns()}, {turn.close_reason for turn in sidecar.turns()}
    assert there == here
    assert len(here) > 40
    assert close_reasons == ({"root_ended"}, {"delay"})


def test_scores_of_ours_that_come_round_are_no_spans_of_an_agent() -> None:
    logs = ExportLogsServiceRequest()
    record = logs.resource_logs.add().scope_logs.add().log_records.add(event_name="gen_ai.evaluation.result")
    record.trace_id, record.span_id = (1).to_bytes(16, "big"), (1).to_bytes(8, "big")
    record.body.string_value = "x"
    with Sidecar() as sidecar:
        assert sidecar.post("/v1/traces", request({"attributes": CHAT}, scope="otel_agenteval"))[0] == 200
        assert sidecar.post("/v1/logs", logs.SerializeToString())[0] == 200
        assert sidecar.turns() == []
        assert sidecar.service.ledger()["spans"]["received"] == 0
