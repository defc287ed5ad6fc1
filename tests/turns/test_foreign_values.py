"""Values of unexpected types affect only their field, never the whole turn."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from otel_agenteval.core.turn import Turn
from otel_agenteval.spans.record import SpanEvent
from otel_agenteval.spans.writing import attributes_as_json
from otel_agenteval.turns.recordings import Reading, items_in, turn_of, wholes_of
from tests.support import spans
from tests.support.checked import check_turn

START = 1_767_225_600_000_000_000
CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
TOOL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"}


def turns_of(attributes: dict[str, Any], scope: str = "acme", **fields: Any) -> list[Turn]:
    """Return the turns of an agent with one span that has these attributes, and these fields instead of valid fields."""
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


ODD = [
    None, 5, True, [], ["a"], {"a": 1}, b"x", "", "{", "{'a': ", "{'a': __import__('os')}", "[1]", '"a', '{"cut', '{"params": 5}',
    '{"messages": 5}', '{"replies": [5], "meta": 5}', '{"message": 5, "usage": 5}', '{"a": {"b": {}}}', "{'messages': [" + "[" * 5_000,
]  # fmt: skip
LLAMA = [
    "FunctionAgent.run",
    "OpenAI.chat",
    "OpenAI._chat",
    "X.retrieve",
    "X.query",
    "X.call_tool",
    "X.run_agent_step",
    "no method",
    "",
]
NAMES = {
    "acme.agents": ["agent.run", "llm.call"],
    "com.anthropic.claude_code.tracing": [f"claude_code.{kind}" for kind in ("interaction", "llm_request", "tool", "tool.execution")],
    "gcp.vertex.agent": ["call_llm", "execute_tool x"],
    "haystack": [f"haystack.{part}" for part in ("pipeline.run", "agent.run", "component.run", "agent.step.llm", "agent.step.tool")],
    "llamaindex.opentelemetry.tracer": LLAMA,
    "logfire.mcp": ["MCP request: tools/call t"],
    "logfire.openai": ["Chat Completion with {request_data[model]!r}"],
    "openinference.instrumentation.crewai": ["crew.kickoff"],
    "openinference.instrumentation.dspy": ["ReAct.forward"],
    "openinference.instrumentation.llama_index": LLAMA[::3],
    "opentelemetry.instrumentation.crewai": ["crewai.workflow"],
    "opentelemetry.instrumentation.llamaindex": [f"{name}.task" for name in ("FunctionTool", "BM25Retriever", "BaseWorkflowAgent")],
    "opentelemetry.instrumentation.mcp.instrumentation": ["tools/call.mcp"],
}  # fmt: skip
"""Names of spans by scope, for dialects that parse structured values."""
KEYS = [
    "cache_read_tokens", "crew_inputs", "crew_tasks", "crewai.crew.tasks", "crewai.crew.tasks_output",
    "crewai.crew.token_usage", "decision", "error", "gcp.vertex.agent.llm_request", "gcp.vertex.agent.llm_response",
    "gcp.vertex.agent.session_id", "gcp.vertex.agent.tool_call_args", "gcp.vertex.agent.tool_response",
    "gen_ai.request.model", "graph.node.id", "haystack.agent.input", "haystack.agent.output",
    "haystack.agent.step.llm.output", "haystack.agent.tools", "haystack.component.input", "haystack.component.output",
    "haystack.component.type", "haystack.pipeline.input_data", "haystack.tool.name", "input.value", "input_tokens",
    "llamaindex.session_id", "llamaindex.step.input_summary", "model", "new_context", "output.value", "request",
    "request_data", "response", "response_data", "success", "tool.arguments", "tool.name", "tool_input", "tool_use_id",
    "tools", "traceloop.entity.input", "traceloop.entity.output", "ttft_ms",
]  # fmt: skip
EVENTS = [
    "LLMChatStartEvent", "LLMChatEndEvent", "QueryEndEvent", "RetrievalEndEvent", "workflow.output", "step.output",
    "tool_result",
]  # fmt: skip
PARTS = [
    "messages", "response.message.blocks", "response.raw.choices", "response.raw.usage.prompt_tokens", "nodes", "query",
    "output", "tool_input",
]  # fmt: skip


@pytest.mark.parametrize("scope", NAMES)
def test_any_attribute_of_a_framework_may_have_any_value(scope: str) -> None:
    for name, value in itertools.product(NAMES[scope], ODD):
        for kind in ("CHAIN", "TOOL", "LLM", "RETRIEVER", value) if scope.startswith("openinference") else (None,):
            odd = {**dict.fromkeys(KEYS, value), **({"openinference.span.kind": kind} if kind else {})}
            events = [SpanEvent(event, dict.fromkeys(PARTS, value)) for event in EVENTS]
            record = spans.span(2, 1, name, odd, scope=scope, events=events)
            for root in (spans.agent(1), spans.span(1, 0, NAMES[scope][0], odd, scope=scope, ms=90)):
                assert all(turn.to_dict() for turn in spans.turns_of(root, record, spans.chat(3, 1, at=20)))


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
