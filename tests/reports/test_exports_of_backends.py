"""Files of backends in public reports: LangSmith, Datadog, Jaeger, Elasticsearch and ClickHouse. See README.md in this folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import otel_agenteval as oa

ASKED, SAID = "Which rakes do you sell?", "We sell two, one of wood and one of steel."
QUESTION, ANSWER = {"role": "user", "content": ASKED}, {"role": "assistant", "content": SAID}
TRACE, SPANS = "0af7651916cd43dd8448eb211c80319c", ["b7ad6b7169203331", "b7ad6b7169203332", "b7ad6b7169203333"]
START = 1_767_225_600_000_000_000


def facts_in(folder: Path, document: Any) -> dict[str, Any]:
    """Return the facts of the only turn in a file, which must be readable without faults."""
    path, faults = folder / "export.json", []
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    (turn,) = oa.load_turns(path, report=faults.append)
    assert not faults
    calls = [(call.input_tokens, call.output_tokens) for call in turn.llm_calls or ()]
    tools = [(call.name, call.arguments, call.result) for call in turn.tool_calls or ()]
    return {"texts": (turn.input, turn.output), "calls": calls, "tools": tools, "conversation": turn.conversation_id}


EXPECTED = {"texts": (ASKED, SAID), "calls": [(10, 5)], "tools": [("count_stock", {"shelf": 1}, "2 left")]}


# --- LangSmith


def run(number: int, kind: str, inputs: Any, outputs: Any, at: int, **more: Any) -> dict[str, Any]:
    ids = [f"0190a0a0-0000-7000-8000-00000000000{one}" for one in (number, 1)]
    times = {"start_time": f"2026-01-01T00:00:0{at}.000000", "end_time": f"2026-01-01T00:00:0{at + 1}.000000"}
    shared = {
        "trace_id": ids[1],
        "session_id": "project-1",
        "extra": {"metadata": {"thread_id": "t-7", "ls_model_name": "gpt-4o"}},
    }
    name = "count_stock" if kind == "tool" else kind
    return {"id": ids[0], "parent_run_id": ids[1] if number > 1 else None, "name": name, "run_type": kind, "inputs": inputs, "outputs": outputs, **times, **shared, **more}  # fmt: skip


RUNS = [
    run(1, "chain", {"messages": [QUESTION]}, {"messages": [QUESTION, ANSWER]}, 0, end_time="2026-01-01T00:00:09.000000", prompt_tokens=10),
    run(2, "tool", {"input": "{'shelf': 1}"}, {"output": "2 left"}, 1),
    run(3, "llm", {"messages": [QUESTION]}, {"generations": [[{"message": ANSWER}]]}, 3, prompt_tokens=10, completion_tokens=5),
]  # fmt: skip


@pytest.mark.parametrize(
    "document", ["\n".join(map(json.dumps, RUNS)), RUNS, {"runs": RUNS[:0], "data": RUNS}, {**RUNS[0], "child_runs": RUNS[1:]}]
)
def test_runs_of_langsmith_are_read(tmp_path: Path, document: Any) -> None:
    """phoenix 3908: runs from LangSmith's API. ``session_id`` is the project, and the thread's id is in the metadata."""
    assert facts_in(tmp_path, document) == {**EXPECTED, "conversation": "t-7"}


# --- Datadog


def event(number: int, kind: str, given: Any, made: Any, **more: Any) -> dict[str, Any]:
    times = {"start_ns": START + number * 10**9, "duration": 5e8 if number > 1 else 9e9}
    parent = {"parent_id": "1" if number > 1 else "undefined", "tags": ["env:prod", "session_id:t-7"], "status": "ok"}
    name = "count_stock" if kind == "tool" else kind
    found = {
        "trace_id": "69001",
        "span_id": str(number),
        "name": name,
        "span_kind": kind,
        "input": given,
        "output": made,
        "ml_app": "shop",
    }
    return {"id": f"AAA{number}", "type": "span", "attributes": {**found, **times, **parent, **more}}


REQUEST = {
    "role": "assistant",
    "content": "",
    "tool_calls": [{"name": "count_stock", "arguments": {"shelf": 1}, "tool_id": "c1"}],
}
RESULT = {"role": "tool", "content": "", "tool_results": [{"name": "count_stock", "result": "2 left", "tool_id": "c1"}]}
COUNTS = {
    "metrics": {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15},
    "model_name": "gpt-4o",
    "model_provider": "openai",
}
TOOL = event(2, "tool", {"value": '{"shelf": 1}'}, {"value": "2 left"})


@pytest.mark.parametrize(("prompt", "tools"), [([QUESTION], [TOOL]), ([QUESTION, REQUEST, RESULT], [])])
def test_span_events_of_datadog_are_read(tmp_path: Path, prompt: Any, tools: Any) -> None:
    """dd-trace-py 12006: the response of the export API of LLM Observability, with tool calls in spans or in messages."""
    call = event(3, "llm", {"messages": prompt}, {"messages": [ANSWER]}, **COUNTS)
    root = event(1, "workflow", {"value": ASKED}, {"value": SAID})
    document = {"data": [root, *tools, call], "meta": {"status": "done", "page": {"after": None}}}
    assert facts_in(tmp_path, document) == {**EXPECTED, "conversation": "t-7"}


# --- OpenTelemetry's spans in other envelopes

ATTRIBUTES: list[dict[str, Any]] = [
    {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "bot"},
    {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "count_stock", "gen_ai.tool.call.arguments": '{"shelf": 1}', "gen_ai.tool.call.result": "2 left"},
    {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o", "gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 5,
     "gen_ai.input.messages": json.dumps([QUESTION]), "gen_ai.output.messages": json.dumps([ANSWER])},
]  # fmt: skip
ROWS = [(span, SPANS[0] if at else "", at, found) for at, (span, found) in enumerate(zip(SPANS, ATTRIBUTES, strict=True))]
OTLP = [
    {"traceId": TRACE, "spanId": span, "parentSpanId": parent, "name": "step", "startTimeUnixNano": str(START + at), "endTimeUnixNano": str(START + 9),
     "attributes": [{"key": key, "value": {"intValue": one} if isinstance(one, int) else {"stringValue": one}} for key, one in found.items()]}
    for span, parent, at, found in ROWS
]  # fmt: skip
ELASTIC = [
    {"_index": "traces-otel", "_source": {"@timestamp": f"2026-01-01T00:00:00.00{at}Z", "trace_id": TRACE, "span_id": span, "parent_span_id": parent,
                                          "name": "step", "duration": 5, "attributes": found}}
    for span, parent, at, found in ROWS
]  # fmt: skip
COLUMNS = ("Timestamp", "TraceId", "SpanId", "ParentSpanId", "SpanName", "SpanAttributes", "Duration")
CLICKHOUSE = [
    [f"2026-01-01 00:00:00.00{at}000000", TRACE, span, parent, "step", {key: str(one) for key, one in found.items()}, "5"]
    for span, parent, at, found in ROWS
]


@pytest.mark.parametrize(
    "document",
    [
        {"result": {"resourceSpans": [{"scopeSpans": [{"scope": {"name": "app"}, "spans": OTLP}]}]}},
        "\n".join(map(json.dumps, ELASTIC)),
        {"took": 1, "hits": {"total": {"value": 3}, "hits": ELASTIC}},
        {"meta": [{"name": one, "type": "String"} for one in COLUMNS], "data": CLICKHOUSE, "rows": 3},
        {"meta": [{"name": "TraceId"}], "data": [dict(zip(COLUMNS, row, strict=True)) for row in CLICKHOUSE], "rows": 3},
    ],
    ids=["Jaeger", "Elasticsearch", "Elasticsearch search", "ClickHouse JSONCompact", "ClickHouse JSON"],
)
def test_envelopes_of_backends_are_read(tmp_path: Path, document: Any) -> None:
    """opentelemetry-mcp-server 13: results of ClickHouse in several formats. Jaeger's API v3 and Elasticsearch also wrap spans."""
    assert facts_in(tmp_path, document) == {**EXPECTED, "conversation": None}
