"""Values of other types than a reader expects: each costs what it says, and never the turn that it stands in."""

from __future__ import annotations

import json
from typing import Any

import pytest

from otel_agenteval.core.turn import Turn
from otel_agenteval.spans.writing import attributes_as_json
from otel_agenteval.turns.recordings import Reading, items_in, turn_of, wholes_of
from tests.support.checked import check_turn

START = 1_767_225_600_000_000_000
CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
TOOL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"}


def turns_of(attributes: dict[str, Any], scope: str = "acme", **fields: Any) -> list[Turn]:
    """The turns of an agent with one span that has these attributes, and these fields instead of sane ones."""
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "bot"}
    spans = [
        {"spanId": f"{1:016x}", "name": "invoke_agent bot", "attributes": attributes_as_json(agent)},
        {"spanId": f"{2:016x}", "parentSpanId": f"{1:016x}", "name": "x", "attributes": attributes_as_json(attributes), **fields},
    ]
    times = {"startTimeUnixNano": START, "endTimeUnixNano": START + 10**9}
    found = [{"traceId": f"{1:032x}", **times, **span} for span in spans]
    message = {"resourceSpans": [{"scopeSpans": [{"scope": {"name": scope}, "spans": found}]}]}
    groups = wholes_of(items_in(json.dumps(message).encode(), Reading(), pytest.fail), pytest.fail)
    turns = [turn_of(group) for group in groups]
    for turn in turns:
        check_turn(turn)
    return turns


def said(*calls: Any) -> str:
    return json.dumps([{"role": "assistant", "content": "", "tool_calls": list(calls)}])


@pytest.mark.parametrize(
    ("attributes", "scope"),
    [
        ({**TOOL, "gen_ai.tool.call.arguments": "{[1]: 2}"}, "acme"),
        ({**TOOL, "gen_ai.tool.call.arguments": "{(1, 2): {3}, None: b'x'}"}, "acme"),
        ({**TOOL, "gen_ai.tool.call.arguments": '{"a":' * 240 + "1" + "}" * 240}, "acme"),
        ({**TOOL, "gen_ai.tool.call.result": "[" * 600 + "]" * 600}, "acme"),
        ({**CHAT, "gen_ai.output.messages": said({"id": {}}, {"id": [1]}, {"id": {"a": []}, "function": 5})}, "acme"),
        ({"message": json.dumps([{"type": {}, "content": [{}], "role": {}}])}, "acme"),
        ({"gen_ai.operation.name": "invoke_agent", "gen_ai.workflow.nodes": json.dumps([{}, []])}, "opentelemetry.instrumentation.langchain"),
        ({"request_data": "{}", "gen_ai.operation.name": ["embeddings"]}, "logfire.openai"),
        ({"mcp.method.name": "tools/call", "traceloop.span.kind": ["session"]}, "acme"),
        ({**CHAT, "ai.operationId": ["ai.streamText"]}, "ai"),
        ({"crewai.crew.tasks_output": f"messages={said({'function': 'x'}, {'function': {'name': {}}})}", "crew_tasks": "[]"}, "crewai.telemetry"),
        ({"genkit:type": ["action"], "genkit:metadata:subtype": {"a": 1}, "genkit:input": 5}, "genkit-tracer"),
    ],
)  # fmt: skip
def test_value_of_another_type_costs_no_turn(attributes: dict[str, Any], scope: str) -> None:
    assert len(turns_of(attributes, scope)) == 1


def test_failure_that_is_told_over_and_over_costs_no_turn() -> None:
    once = (
        "\nError:\nboom\nNow let's retry: take care not to repeat previous errors!"
        "If you have retried several times, try a completely different approach."
    )
    asked = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "hi" + once * 3_000}]}])
    (turn,) = turns_of({**CHAT, "gen_ai.input.messages": asked})
    assert turn.input == "hi"


@pytest.mark.parametrize("end", ["9" * 30, 2**64, -1, "", None, [], 1e300, "1e3", True])
def test_end_that_is_no_time_is_unknown(end: Any) -> None:
    (turn,) = turns_of(CHAT, endTimeUnixNano=end)
    assert turn.spans[1].duration_s is None


@pytest.mark.parametrize("span_id", ["-00000000000000f", "+00000000000000f", "0x0000000000000f", "٣" * 16, "0_000_000_000_00f"])
def test_span_id_that_only_python_takes_for_a_number_is_refused(span_id: str) -> None:
    message = {"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": f"{1:032x}", "spanId": span_id, "name": "x"}]}]}]}
    reading, faults = Reading(), list[str]()
    assert list(items_in(json.dumps(message).encode(), reading, faults.append)) == []
    assert (reading.bad, len(faults)) == (1, 1)
