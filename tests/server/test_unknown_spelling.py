"""Spans and log records of a framework without a dialect, received in each form of OTLP."""

from __future__ import annotations

import json

import pytest
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from tests.support.service import Sidecar, request

USAGE = json.dumps({"usage": {"inputTokens": 12, "outputTokens": 5}})
SPANS = request(
    {"id": 1, "name": "run"},
    {"id": 2, "parent": 1, "name": "call", "attributes": {"fw.model": "gpt-4.1-mini", "fw.output": USAGE}},
    scope="fw.core",
)


def logs(structured: bool) -> ExportLogsServiceRequest:
    """Return log records with a user message and an answer of the call's span."""
    message = ExportLogsServiceRequest()
    records = message.resource_logs.add().scope_logs.add(scope={"name": "fw.log"}).log_records
    for number, (role, content) in enumerate((("user", "Weather in Paris?"), ("assistant", "It is 18 °C.")), 1):
        record = records.add(trace_id=(1).to_bytes(16, "big"), span_id=(2).to_bytes(8, "big"), time_unix_nano=number)
        body = {"role": role, "content": content}
        if structured:
            for key, value in body.items():
                record.body.kvlist_value.values.add(key=key).value.string_value = value
        else:
            record.body.string_value = json.dumps(body)
    return message


@pytest.mark.parametrize("structured", [True, False], ids=["structured, in JSON", "text, in protobuf"])
def test_messages_in_log_records_are_read(structured):
    message = logs(structured)
    body, kind = message.SerializeToString(), "application/x-protobuf"
    if structured:
        sent = MessageToDict(message)
        for record in sent["resourceLogs"][0]["scopeLogs"][0]["logRecords"]:
            record.update(traceId=f"{1:032x}", spanId=f"{2:016x}")
        body, kind = json.dumps(sent).encode(), "application/json"
    with Sidecar() as sidecar:
        assert sidecar.post("/v1/traces", SPANS)[0] == 200
        assert sidecar.post("/v1/logs", body, {"Content-Type": kind})[0] == 200
        (turn,) = sidecar.turns()
        assert (turn.input, turn.output, turn.reading) == ("Weather in Paris?", "It is 18 °C.", "inferred")
        assert (turn.usage.input_tokens, turn.usage.output_tokens) == (12, 5)
        shown = sidecar.get("/metrics", "metrics")[1]
        assert 'agenteval_turns_read_total{reading="inferred",scope="fw.core"} 1' in shown


def test_a_trace_without_a_turn_is_on_the_metrics_page():
    archived = json.dumps([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}])
    with Sidecar() as sidecar:
        for trace in (1, 2, 3):
            span = {"trace": trace, "name": "save", "attributes": {"archive.messages": archived}}
            assert sidecar.post("/v1/traces", request(span, scope="fw.archive"))[0] == 200
        assert sidecar.turns() == []
        assert 'agenteval_unread_traces_total{missing="turn",scope="fw.archive"} 3' in sidecar.get("/metrics", "metrics")[1]
