"""Situations of public reports on tools that the provider runs, and on OpenAI's other items. See docs/internals/public-reports.md."""

from __future__ import annotations

import json
from typing import Any

import pytest

from otel_agenteval.core.turn import ToolCall
from otel_agenteval.turns.recordings import turns_of
from tests.support.spans import agent, chat, tool, turn_of

ASKED, SAID = "What is the weather in Paris?", "It is 21 degrees in Paris."
CITY, QUERY = {"city": "Paris"}, {"query": "weather Paris"}
ANSWER = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": SAID}]}


def text(role: str, content: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": content}]}


def of_convention(*more: dict[str, Any], result: Any = "a page") -> dict[str, Any]:
    call = {"type": "server_tool_call", "id": "s1", "name": "web_search", "server_tool_call": {"type": "web_search", **QUERY}}
    response = {"type": "server_tool_call_response", "id": "s1", "server_tool_call_response": result}
    return {"role": "assistant", "parts": [call, *([response] if result else []), *more]}


def blocks(*content: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": [*content, {"type": "text", "text": SAID}]}


def answering(*items: dict[str, Any], prompt: list[dict[str, Any]] | None = None, **more: Any) -> Any:
    attributes = {"gen_ai.output.messages": json.dumps(items)}
    return chat(
        more.pop("span_id", 2), more.pop("parent_id", 1), messages=prompt or [text("user", ASKED)], attributes=attributes, **more
    )


def facts(call: ToolCall) -> tuple[Any, ...]:
    return call.name, call.arguments, call.result, bool(call.error), call.state


SEARCHED = ("web_search", QUERY)
ITEM = {"id": "i1", "status": "completed"}


@pytest.mark.parametrize(("items", "expected"), [
    ([of_convention({"type": "text", "content": SAID})], (*SEARCHED, "a page", False, "executed")),
    ([of_convention({"type": "text", "content": SAID}, result=None)], (*SEARCHED, None, False, "executed")),
    ([blocks({"type": "server_tool_use", "id": "s1", "name": "web_search", "input": QUERY},
             {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"type": "web_search_result", "url": "a"}]})],
     (*SEARCHED, [{"type": "web_search_result", "url": "a"}], False, "executed")),
    ([blocks({"type": "server_tool_use", "id": "s1", "name": "web_search", "input": QUERY},
             {"type": "web_search_tool_result", "tool_use_id": "s1", "content": {"error_code": "max_uses_exceeded"}})],
     (*SEARCHED, {"error": "max_uses_exceeded"}, True, "failed")),
    ([blocks({"type": "mcp_tool_use", "id": "m1", "name": "get_weather", "server_name": "w", "input": CITY},
             {"type": "mcp_tool_result", "tool_use_id": "m1", "is_error": False, "content": [{"type": "text", "text": "21"}]})],
     ("get_weather", CITY, "21", False, "executed")),
    ([{"type": "web_search_call", **ITEM, "action": {"type": "search", **QUERY}}, ANSWER],
     ("web_search", {"type": "search", **QUERY}, None, False, "executed")),
    ([{"type": "file_search_call", **ITEM, "queries": ["Paris"], "results": [{"text": "21"}]}, ANSWER],
     ("file_search", {"queries": ["Paris"]}, "21", False, "executed")),
    ([{"type": "code_interpreter_call", **ITEM, "code": "print(1)", "outputs": [{"type": "logs", "logs": "1"}]}, ANSWER],
     ("code_interpreter", {"code": "print(1)"}, [{"type": "logs", "logs": "1"}], False, "executed")),
    ([{"type": "image_generation_call", **ITEM, "size": "1024x1024", "result": "iVBOR"}, ANSWER],
     ("image_generation", {"size": "1024x1024"}, None, False, "executed")),
    ([{"type": "mcp_call", **ITEM, "name": "get_weather", "arguments": json.dumps(CITY), "output": "21", "error": None}, ANSWER],
     ("get_weather", CITY, "21", False, "executed")),
    ([{"type": "mcp_call", **ITEM, "name": "get_weather", "arguments": json.dumps(CITY), "output": None, "error": "down"}, ANSWER],
     ("get_weather", CITY, {"error": "down"}, True, "failed")),
])  # fmt: skip
@pytest.mark.parametrize("alone", [True, False])
def test_tools_that_the_provider_runs_are_tool_calls(items: list[Any], expected: tuple[Any, ...], alone: bool) -> None:
    """semantic-conventions 2585, opentelemetry-python-genai 700, aibridge 210, coder 26855: no later prompt has the result."""
    turn = turn_of(answering(*items, parent_id=0)) if alone else turn_of(agent(1), answering(*items))
    assert (turn.output, [facts(call) for call in turn.tool_calls or ()]) == (SAID, [expected])


PATCH = {"type": "custom_tool_call", "id": "i1", "call_id": "c1", "name": "apply_patch", "input": "*** Begin Patch"}
SHELL = {"type": "local_shell_call", "id": "i1", "call_id": "c1", "status": "completed", "action": {"command": ["ls"]}}


@pytest.mark.parametrize(("request_", "response", "expected"), [
    (PATCH, {"type": "custom_tool_call_output", "call_id": "c1", "output": "Done!"}, ("apply_patch", None, "Done!")),
    (SHELL, {"type": "local_shell_call_output", "call_id": "c1", "output": "a.txt"}, ("local_shell", {"command": ["ls"]}, "a.txt")),
    ({"type": "function_call", "id": "i1", "call_id": "c1", "name": "get_weather", "arguments": json.dumps(CITY)},
     {"type": "function_call_output", "call_id": "c1", "output": "21"}, ("get_weather", CITY, "21")),
])  # fmt: skip
def test_items_of_tools_that_the_application_runs(request_: Any, response: Any, expected: tuple[Any, ...]) -> None:
    """coder 26855: OpenAI's items for custom tools and shells. Their input isn't an answer."""
    prompt = [{"role": "user", "content": ASKED}, request_, response]
    turn = turn_of(agent(1), answering(request_, span_id=2, at=5), answering(ANSWER, prompt=prompt, span_id=3, at=30))
    assert (turn.input, turn.output) == (ASKED, SAID)
    assert [facts(call)[:3] for call in turn.tool_calls or ()] == [expected]


@pytest.mark.parametrize("item", [PATCH, SHELL])
def test_request_alone_is_executed_elsewhere(item: dict[str, Any]) -> None:
    turn = turn_of(answering(item, parent_id=0))
    assert (turn.output, turn.tool_calls) == (None, None)


@pytest.mark.parametrize("result_id", ["c1", "other"])
@pytest.mark.parametrize("with_span", [True, False])
def test_provider_and_application_run_tools(result_id: str, with_span: bool) -> None:
    """The result with another id belongs to the application's call, because the provider's call needs none."""
    asks = of_convention({"type": "tool_call", "id": "c1", "name": "get_weather", "arguments": CITY}, result=None)
    result = {"role": "tool", "parts": [{"type": "tool_call_response", "id": result_id, "response": "21"}]}
    spans = [agent(1), answering(asks, span_id=2, at=5)]
    if with_span:
        spans.append(tool(3, 1, "get_weather", at=20, attributes={"gen_ai.tool.call.id": "c1", "gen_ai.tool.call.result": "21"}))
    turn = turn_of(*spans, chat(4, 1, messages=[text("user", ASKED), asks, result], says=SAID, at=40))
    assert turn.output == SAID
    assert [facts(call)[:3] for call in turn.tool_calls or ()] == [(*SEARCHED, None), ("get_weather", CITY, "21")]


def test_provider_call_with_its_own_span_counts_once() -> None:
    searched = tool(3, 2, "web_search", at=6, ms=0, attributes={"gen_ai.tool.call.arguments": json.dumps(QUERY)})
    turn = turn_of(agent(1), answering(of_convention({"type": "text", "content": SAID})), searched)
    assert [facts(call)[:3] for call in turn.tool_calls or ()] == [(*SEARCHED, "a page")]


def test_provider_call_of_an_earlier_turn_is_not_this_turns() -> None:
    """The call is part of an answer, so the next message begins another turn."""
    said = of_convention({"type": "text", "content": SAID})
    later = chat(3, messages=[text("user", ASKED), said, text("user", "Thanks")], says="Welcome", at=5_000, trace_id=7)
    first, second = turns_of([answering(said, parent_id=0), later])
    assert (first.output, [call.name for call in first.tool_calls or ()]) == (SAID, ["web_search"])
    assert (second.input, second.output, second.tool_calls) == ("Thanks", "Welcome", [])


@pytest.mark.parametrize("said", [
    json.dumps({"type": "shell_call", "action": "ls"}), json.dumps({"type": "mcp_call", "output": "21"}), "I made a web_search_call.",
])  # fmt: skip
def test_answer_that_resembles_an_item_is_an_answer(said: str) -> None:
    turn = turn_of(chat(1, user="Give me an example.", says=said))
    assert (turn.output, turn.tool_calls) == (said, [])


@pytest.mark.parametrize("odd", [{"id": ["x"]}, {"id": {"a": 1}, "name": 7}, {"id": None, "name": None}])
def test_odd_ids_of_provider_calls_cause_no_error(odd: dict[str, Any]) -> None:
    call = {"type": "server_tool_call", "server_tool_call": {"type": "web_search"}, **odd}
    turn = turn_of(agent(1), answering({"role": "assistant", "parts": [call, {"type": "text", "content": SAID}]}))
    assert (turn.output, turn.error) == (SAID, None)
    assert all(one.name for one in turn.tool_calls or ())
