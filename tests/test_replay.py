"""Reading recorded telemetry: files, standard input, compressed files, and unreadable files."""

from __future__ import annotations

import base64
import gzip
import io
import json
import sys

import pytest
import zstandard
from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

import otel_agenteval as oa
from otel_agenteval.spans.otlp import from_json
from otel_agenteval.spans.split import split_spans
from otel_agenteval.turns.recordings import Reading

CHAT = {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}}


def line(span_id=1, *, kind="traces", trace_id=1, **more):
    if kind == "logs":
        record = {"traceId": f"{trace_id:032x}", "spanId": f"{span_id:016x}", "eventName": "gen_ai.choice",
                  "body": {"kvlistValue": {"values": [{"key": "message", "value": {"stringValue": "hello"}}]}}, **more}  # fmt: skip
        return json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]})
    span = {"traceId": f"{trace_id:032x}", "spanId": f"{span_id:016x}", "name": "chat", "startTimeUnixNano": "1700000000000000000",
            "endTimeUnixNano": 1700000001000000000, "attributes": [CHAT], **more}  # fmt: skip
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]})


def load(tmp_path, *lines, name="t.jsonl"):
    path = tmp_path / name
    path.write_text("\n".join(lines))
    said, reading = [], Reading()
    return list(oa.load_turns(path, report=said.append, reading=reading)), said, reading


def test_a_turn_from_a_file_says_so(tmp_path):
    (turn,), said, reading = load(tmp_path, line())
    assert (turn.close_reason, turn.complete, turn.duration_s, said) == ("recorded_file", True, 1.0, [])
    assert (reading.lines, reading.spans, reading.turns, reading.bad) == (1, 1, 1, 0)


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        ("garbage", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "not OTLP"),
        ('{"a": 1}', "not OTLP"),
        ('{"resourceSpans": 3}', "not OTLP: resourceSpans"),
        (line(traceId=""), "skipped: trace ID"),
        (line(spanId="zz"), "skipped: span ID"),
    ],
)
def test_a_line_that_cannot_be_read_is_reported_counted_and_skipped(tmp_path, bad, problem):
    turns, said, reading = load(tmp_path, bad, line())
    assert len(turns) == 1
    assert f"t.jsonl:1: {problem}" in said[0]
    assert reading.bad == 1


def test_ids_as_protobuf_s_own_json_writes_them_are_read_too(tmp_path):
    (turn,), _, _ = load(tmp_path, line(traceId="AAAAAAAAAAAAAAAAAAAAAQ==", spanId="AAAAAAAAAAI="))
    assert turn.turn_id == f"{1:032x}-{2:016x}"


@pytest.mark.parametrize(
    ("parent", "flags", "complete"),
    [("", 0, True), ("0" * 16, 0, True), (None, 0, True), (f"{9:016x}", 0x301, True), (f"{9:016x}", 0, False)],
    ids=["empty", "zeros", "null", "remote", "absent"],
)
def test_a_turn_is_complete_unless_its_local_parent_never_came(tmp_path, parent, flags, complete):
    (turn,), _, _ = load(tmp_path, line(parentSpanId=parent, flags=flags))
    assert turn.complete is complete


def test_a_value_of_ten_megabytes_is_cut_and_not_a_number_is_unknown(tmp_path):
    attributes = [
        CHAT,
        {"key": "gen_ai.input.messages", "value": {"stringValue": "x" * 10_000_000}},
        {"key": "operation.cost", "value": {"doubleValue": float("nan")}},
    ]
    (turn,), said, _ = load(tmp_path, line(attributes=attributes))
    assert (turn.truncated, turn.cost_usd, said) == (True, None, [])


@pytest.mark.parametrize("order", [("t.jsonl", "t.logs.jsonl"), ("t.logs.jsonl", "t.jsonl")])
def test_log_records_join_their_span_whichever_comes_first(tmp_path, order):
    (tmp_path / "t.jsonl").write_text(line())
    (tmp_path / "t.logs.jsonl").write_text(line(kind="logs"))
    (turn,) = oa.load_turns([tmp_path / name for name in order])
    assert turn.output == "hello"


def test_packed_files_and_standard_input_are_read(tmp_path, monkeypatch):
    for name, pack in (("t.jsonl.gz", gzip.compress), ("t.jsonl.zst", zstandard.compress)):
        (tmp_path / name).write_bytes(pack(line().encode()))
        assert len(list(oa.load_turns(tmp_path / name))) == 1
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(line().encode())))
    assert len(list(oa.load_turns("-"))) == 1


def test_a_span_that_was_exported_twice_is_one_span_and_an_absent_file_is_named(tmp_path):
    (turn,), _, _ = load(tmp_path, line(), line())
    assert len(turn.llm_calls) == 1
    with pytest.raises(oa.AgentEvalError, match=r"none\.jsonl: "):
        list(oa.load_turns(tmp_path / "none.jsonl"))


def test_protobuf_and_json_say_the_same(tmp_path):
    attributes = [
        CHAT,
        {"key": "gen_ai.usage.input_tokens", "value": {"intValue": "5"}},
        {"key": "x", "value": {"kvlistValue": {"values": [{"key": "a", "value": {"arrayValue": {"values": [{"boolValue": True}, {"doubleValue": 0.5}]}}}]}}},
    ]  # fmt: skip
    data = json.loads(line(attributes=attributes, parentSpanId=f"{3:016x}", flags=0x301, status={"code": 2, "message": "no"}))
    (from_text,) = from_json(data)
    span = data["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    for key in ("traceId", "spanId", "parentSpanId"):
        span[key] = base64.b64encode(bytes.fromhex(span[key])).decode()
    (part,) = split_spans(json_format.ParseDict(data, ExportTraceServiceRequest()).SerializeToString())[0].values()
    from_message = part.spans[0].record()
    ids, rest = (
        ("trace_id", "span_id", "parent_id", "remote_parent"),
        ("start_ns", "end_ns", "status", "status_message", "attributes"),
    )
    for name in (*ids, *rest):
        assert getattr(from_text, name) == getattr(from_message, name), name
