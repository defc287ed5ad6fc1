"""Situations of public reports on tools that the provider runs, and on OpenAI's other items. See README.md in this folder."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from otel_agenteval.core.turn import ToolCall
from otel_agenteval.turns.recordings import turns_of
from tests.support.spans import agent, chat, span, tool, turn_of

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


# --- what these calls must not change


APP = {"type": "tool_call", "id": "c1", "name": "get_weather", "arguments": CITY}


def test_call_without_an_id_has_its_result() -> None:
    """The convention allows calls without ids. The provider ran them, so they don't wait for approval."""
    ran = [{**part, "id": None} for part in of_convention()["parts"]]
    code = {"type": "server_tool_call", "name": "code", "server_tool_call": {"type": "code", "code": "1"}}
    answer = {"role": "assistant", "parts": [*ran, code, {"type": "text", "content": SAID}]}
    expected = [("web_search", QUERY, "a page", False, "executed"), ("code", {"code": "1"}, None, False, "executed")]
    for turn in (turn_of(answering(answer, parent_id=0)), turn_of(agent(1), answering(answer))):
        assert [facts(call) for call in turn.tool_calls or ()] == expected


@pytest.mark.parametrize("response", [
    {"type": "server_tool_call_response", "id": "s1", "server_tool_call_response": "a page"},
    {"type": "tool_call_response", "id": "s1", "response": "a page"},
    {"type": "server_tool_result", "tool_call_id": "s1", "status": "success", "output": "a page"},
])  # fmt: skip
def test_result_on_an_agents_span(response: dict[str, Any]) -> None:
    call = of_convention(result=None)["parts"][0]
    said = [{"role": "assistant", "parts": [call, response, {"type": "text", "content": SAID}]}]
    turn = turn_of(agent(1, attributes={"gen_ai.output.messages": json.dumps(said)}))
    assert [facts(call)[:3] for call in turn.tool_calls or ()] == [(*SEARCHED, "a page")]


def test_message_of_a_turn_is_json() -> None:
    turn = turn_of(answering(of_convention({"type": "text", "content": SAID}), parent_id=0))
    run = {"call_id": "s1", "name": "web_search", "arguments": QUERY, "result": "a page"}
    assert json.loads(json.dumps(turn.to_dict()["messages"]))[-1]["server_tool_calls"] == [run]


def test_agents_are_named_after_the_applications_requests() -> None:
    asks = of_convention(*({**APP, "id": name, "name": name} for name in ("ask_paris", "ask_rome")))
    runs = [span(3 + at, 1, "invoke_agent", {"gen_ai.operation.name": "invoke_agent"}, at=20 * at) for at in (1, 2)]
    calls = [chat(6 + at, 3 + at, says="21", at=20 * at, ms=5) for at in (1, 2)]
    turn = turn_of(agent(1), answering(asks, at=1), *runs, *calls, chat(9, 1, says=SAID, at=80))
    assert [run.name for run in turn.agent_runs][:3] == ["bot", "ask_paris", "ask_rome"]


def test_requests_of_a_lost_call_are_kept() -> None:
    """The span of the first call is missing, and the second call searches the web."""
    result = {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "21"}]}
    prompt = [text("user", ASKED), {"role": "assistant", "parts": [APP]}, result]
    turn = turn_of(agent(1), answering(of_convention({"type": "text", "content": SAID}), prompt=prompt))
    assert {call.name: call.result for call in turn.tool_calls or ()} == {"web_search": "a page", "get_weather": "21"}


@pytest.mark.parametrize("ids", [("c0", None), ("x0", "x1")])
def test_result_of_a_repeated_id_goes_to_no_other_call(ids: tuple[str, str | None]) -> None:
    """The server keeps the history, and the second call requests the first id again."""

    def asks(*names: str) -> dict[str, Any]:
        return {"role": "assistant", "parts": [{**APP, "id": f"c{at}", "name": name} for at, name in enumerate(names)]}

    def results(*values: str) -> list[dict[str, Any]]:
        parts = [
            {"type": "tool_call_response", "id": one, "response": said} for one, said in zip(ids, values, strict=False) if one
        ]
        return [{"role": "tool", "parts": parts}]

    turn = turn_of(
        agent(1), answering(asks("first")), answering(asks("first", "second"), prompt=results("a"), span_id=3, at=20),
        chat(4, 1, messages=results("b", "c"), says=SAID, at=40),
    )  # fmt: skip
    assert [call.result for call in turn.tool_calls or () if call.name == "second"] == [None if ids[1] is None else "c"]


def test_span_without_arguments_belongs_to_the_applications_tool() -> None:
    own = {**APP, "name": "web_search"}
    asks = of_convention(own)
    ran = tool(3, 1, "web_search", at=20, attributes={"gen_ai.tool.call.result": "own"})
    result = {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "own"}]}
    turn = turn_of(
        agent(1), answering(asks, at=5), ran, chat(4, 1, messages=[text("user", ASKED), asks, result], says=SAID, at=40)
    )
    assert [facts(call)[:3] for call in turn.tool_calls or ()] == [(*SEARCHED, "a page"), ("web_search", CITY, "own")]


@pytest.mark.parametrize("kind", [["function"], {"a": 1}, 7])
def test_odd_type_of_a_request_causes_no_error(kind: Any) -> None:
    call = {"id": "c1", "type": kind, "name": "get_weather", "arguments": json.dumps(CITY)}
    turn = turn_of(agent(1), answering({"role": "assistant", "tool_calls": [call]}))
    assert [call.name for call in turn.tool_calls or ()] == ["get_weather"]
    google = {"role": "model", "parts": [{"function_call": {"type": kind, "name": "get_weather", "args": CITY}}]}
    assert [call.name for call in turn_of(agent(1), answering(google)).tool_calls or ()] == ["get_weather"]


def test_thousands_of_results_are_read_in_linear_time() -> None:
    parts = of_convention()["parts"]
    seconds = []
    for count in (4_000, 16_000):
        many = [{**part, "id": f"s{at}"} for at in range(count) for part in (parts[0], {**parts[1], "id": "other"})]
        began = time.process_time()
        turn = turn_of(answering({"role": "assistant", "parts": many}, parent_id=0))
        seconds.append(time.process_time() - began)
        assert len(turn.tool_calls or ()) == count
    assert seconds[1] < 10 * seconds[0], "16 times if it were quadratic"
