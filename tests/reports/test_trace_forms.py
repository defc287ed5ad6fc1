"""Situations of public reports on traces that tools and frameworks write or export. See README.md in this folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.core.turn import Turn
from otel_agenteval.dialects.generic.interest import groups_of
from otel_agenteval.spans.record import SpanEvent, SpanRecord
from otel_agenteval.spans.writing import attributes_as_json
from tests.support.spans import agent, chat, span, tool, turn_of, turns_of

ASKED, SAID = "What is the weather in Paris?", "It is 21 degrees in Paris."
NEXT, THEN = "And in Rome?", "25 degrees."
CITY = {"city": "Paris"}
COUNTED = {"gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 5}


def text(role: str, content: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": content}]}


def turns_in(tmp_path: Path, *documents: Any) -> list[Turn]:
    file = tmp_path / "export.jsonl"
    file.write_text("\n".join(map(json.dumps, documents)))
    return list(oa.load_turns(file))


# --- turns


@pytest.mark.parametrize("wrapped", [None, "handle", "chat turn"])
def test_unrelated_items_below_one_span_count_once(wrapped: str | None) -> None:
    """livekit/agents 4639: each item's spans were also added to it as spans beside it, which doubled calls and tokens."""
    spans = [span(1, name="batch", ms=500)]
    for place in (1, 2):
        parent = 10 * place if wrapped else 1
        spans += [span(parent, 1, wrapped, at=100 * place, ms=50)] if wrapped else []
        asked, said = f"question number {place}", f"answer {place}"
        spans.append(chat(10 * place + 1, parent, user=asked, says=said, at=100 * place + 5, attributes=COUNTED))
    for turn in turns_of(*spans):
        assert turn.usage is not None
        assert (len(turn.llm_calls), turn.usage.total_tokens, len(turn.spans)) == (1, 15, 2 if wrapped else 1)


@pytest.mark.parametrize("mark", ["lk.", "lk.pii."])
def test_turns_of_a_voice_session(mark: str) -> None:
    """livekit/agents 4639, 2905 and 7304: the session's span has an agent's name, and new versions name the operation."""
    spans = [span(1, name="agent_session", attributes={"lk.agent_name": "desk"}, ms=1_000, scope="livekit-agents")]
    for place, (asked, said) in enumerate(((ASKED, SAID), (NEXT, THEN))):
        at, first = 100 + 300 * place, 10 * (place + 1)
        named = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk"} if mark == "lk.pii." else {}
        events = [SpanEvent("gen_ai.user.message", {"content": asked}), SpanEvent("gen_ai.choice", {"content": said})]
        spans += [
            span(first, 1, "agent_turn", {f"{mark}user_input": asked, f"{mark}response.text": said, **named}, at=at, ms=200),
            span(first + 1, first, "llm_node", {f"{mark}response.text": said}, at=at + 5, ms=100),
            span(first + 2, first + 1, "llm_request", {"gen_ai.request.model": "gpt-4o", **COUNTED}, at=at + 6, events=events),
            span(first + 3, first, "tts_node", {f"{mark}input_text": said}, at=at + 90, ms=50),
        ]
    found = turns_of(*spans)
    assert [(turn.input, turn.output, len(turn.llm_calls)) for turn in found] == [(ASKED, SAID, 1), (NEXT, THEN, 1)]


@pytest.mark.parametrize("below", [None, "workflow_run weather"])
def test_agent_name_on_a_model_call_alone(below: str | None) -> None:
    """mastra 12397: the call isn't the agent's run, but nothing else names the agent."""
    call = chat(2, 1 if below else 0, user=ASKED, says=SAID, attributes={"gen_ai.agent.name": "weather"})
    turn = turn_of(*([span(1, name=below)] if below else []), call)
    assert (turn.agent, len(turn.llm_calls), turn.agent_runs) == ("weather", 1, [])


# --- answers


@pytest.mark.parametrize("pieces", [["It is 21", " degrees in", " Paris."], ["It ", "is 21 degrees in Paris."]])
@pytest.mark.parametrize("whole", [[], [SAID]])
def test_pieces_of_an_answer_and_the_whole(pieces: list[str], whole: list[str]) -> None:
    """dd-trace-py 19537: a streamed run's span has each piece as a message and then the whole answer."""
    messages = [text("assistant", piece) for piece in (*pieces, *whole)]
    turn = turn_of(agent(1, attributes={"gen_ai.output.messages": json.dumps(messages)}), chat(2, 1, user=ASKED))
    assert turn.output == SAID


@pytest.mark.parametrize("shown", ["Promise { <pending> }", "Promise { <rejected> }", "[object Promise]", "[object Object]"])
def test_promise_is_no_answer(shown: str) -> None:
    """mastra 5870: a stream's span ends before the answer is there."""
    root = span(1, name="handler", attributes={"openinference.span.kind": "CHAIN", "input.value": ASKED, "output.value": shown})
    assert turn_of(root, chat(2, 1, user=ASKED, says=SAID)).output == SAID


REACT = "Use this format:\nThought: what you think\nFinal Answer: the answer\n\nQuestion: "


@pytest.mark.parametrize(("prompt", "answer"), [(REACT, SAID), ("", f"I can answer.\nFinal Answer: {SAID}")])
def test_final_answer_of_a_react_agent(prompt: str, answer: str) -> None:
    """openinference 2575: an agent of CrewAI without a crew leaves only model spans."""
    turn = turn_of(chat(1, user=prompt + ASKED, says=f"I can answer.\nFinal Answer: {SAID}"))
    assert turn.output == answer


def test_answer_about_the_format_of_thoughts() -> None:
    """A sibling of openinference 2575: the user asks about the format itself."""
    asked = "What do the lines Thought: and Final Answer: in a ReAct prompt mean?"
    said = "Agents write lines with `Thought:`, and end with `Final Answer:` followed by the reply."
    assert turn_of(chat(1, user=asked, says=said)).output == said


@pytest.mark.parametrize("names", [("a", "a..role"), ("a.b", "a.b..content")])
def test_attribute_names_with_empty_parts(names: tuple[str, ...]) -> None:
    """A span's own attributes can have any name, and are grouped by their parts."""
    groups = groups_of(names)
    assert {name for group in groups for name in (dict(group.parts) or (group.name,))} == {*names}


# --- model calls


@pytest.mark.parametrize("counts", [(0, 0), (0, None), None])
@pytest.mark.parametrize("model", ["gpt-4", "unknown", "claude-3"])
def test_model_of_the_span_that_counted(counts: Any, model: str) -> None:
    """openlit 564: LangChain's span has a default model's name and no tokens."""
    names = ("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens")
    given = {name: count for name, count in zip(names, counts or (None, None), strict=True) if count is not None}
    outer = chat(1, user=ASKED, says=SAID, ms=60, scope="acme", attributes={"gen_ai.request.model": model, **given})
    real = {"gen_ai.request.model": "anthropic.claude-3", "gen_ai.provider.name": "aws.bedrock", **COUNTED}
    (call,) = turn_of(outer, chat(2, 1, user=ASKED, says=SAID, at=5, scope="bedrock", attributes=real)).llm_calls
    assert (call.model, call.provider) == ("anthropic.claude-3", "aws.bedrock")
    assert (call.input_tokens, call.output_tokens) == (10, 5)


@pytest.mark.parametrize(("written", "reason", "calls"), [
    ("stop, length", "stop", []), ("tool_calls, tool_calls", "tool_calls", None), ("N/A", "N/A", None), (["stop"], "stop", []),
])  # fmt: skip
def test_finish_reasons_as_one_text(written: Any, reason: str, calls: Any) -> None:
    """langsmith-sdk 3570: several choices. semantic-kernel 12986: ``N/A`` doesn't show whether the answer requested tools."""
    turn = turn_of(agent(1), chat(2, 1, attributes={"gen_ai.response.finish_reasons": written}))
    assert (turn.llm_calls[0].finish_reason, turn.tool_calls) == (reason, calls)


@pytest.mark.parametrize("place", ["99999999999999", "-1", "1e9", "2147483648", "x"])
def test_message_at_an_invalid_place(place: str) -> None:
    """opik 8141: one such attribute doesn't hide the other messages."""
    said = {"llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": ASKED}
    root = {"openinference.span.kind": "LLM", **said, f"llm.input_messages.{place}.message.content": "x"}
    assert turn_of(span(1, attributes=root)).input == ASKED


# --- tool calls


def results_of(turn: Turn) -> list[tuple[Any, ...]]:
    return [(call.name, call.arguments, call.result, call.state) for call in turn.tool_calls or ()]


@pytest.mark.parametrize("root", [True, False])
def test_results_of_tools_that_the_provider_ran(root: bool) -> None:
    """vercel/ai 19076: requests and results are in the same answer."""
    parts: list[dict[str, Any]] = []
    for place, name in enumerate(("mcp.read", "mcp.ask")):
        parts += [{"type": "tool_call", "id": f"m{place}", "name": name, "arguments": CITY}]
        parts += [{"type": "tool_call_response", "id": f"m{place}", "response": f"r{place}"}]
    answer = [{"role": "assistant", "parts": [*parts, {"type": "text", "content": SAID}]}]
    call = chat(2, 1 if root else 0, user=ASKED, attributes={"gen_ai.output.messages": json.dumps(answer)})
    turn = turn_of(*([agent(1)] if root else []), call)
    assert results_of(turn) == [("mcp.read", CITY, "r0", "executed"), ("mcp.ask", CITY, "r1", "executed")]
    assert turn.output == SAID


def test_tool_result_in_the_events_of_its_span() -> None:
    """strands-agents/evals 309: the tool's span has one event with the request and one with the result."""

    def event(side: str, part: dict[str, Any]) -> SpanEvent:
        messages = json.dumps([{"role": "tool", "parts": [{"id": "t1", **part}]}])
        return SpanEvent("gen_ai.client.inference.operation.details", {f"gen_ai.{side}.messages": messages})

    asked = {"id": "t1", "name": "get_weather", "arguments": CITY}
    events = [event("input", {"type": "tool_call", **asked}), event("output", {"type": "tool_call_response", "response": "21"})]
    ran = tool(3, 1, "get_weather", at=20, attributes={"gen_ai.tool.call.id": "t1"}, events=events)
    turn = turn_of(agent(1), chat(2, 1, user=ASKED, calls=[asked]), ran, chat(4, 1, user=ASKED, says=SAID, at=50))
    assert results_of(turn) == [("get_weather", CITY, "21", "executed")]


def test_call_id_of_langsmiths_tool() -> None:
    """langsmith-sdk 3570: older versions write the id only into the metadata."""
    ran = span(2, 1, "Bash", {
        "langsmith.span.kind": "tool", "langsmith.metadata.tool_call_id": "toolu_1", "gen_ai.prompt": json.dumps({"command": "ls"}),
        "gen_ai.completion": json.dumps({"output": "a.txt"}),
    }, scope="langsmith")  # fmt: skip
    calls = turn_of(agent(1), ran, chat(3, 1, user=ASKED, says=SAID, at=20)).tool_calls or []
    assert [(call.name, call.call_id, call.result) for call in calls] == [("Bash", "toolu_1", "a.txt")]


@pytest.mark.parametrize(("ids", "arguments", "calls"), [
    (("a", "b"), ({"t": 1}, {"t": 2}), 2), (("a", "b"), ({"t": 1}, {"t": 1}), 1), (("a", None), ({"t": 1}, {"t": 2}), 1),
    (("a", "a"), ({"t": 1}, {"t": 2}), 1), (("a", "b"), ({"t": 1}, None), 1), (("a", "b"), ({"t": 1}, {"t": 1, "limit": 5}), 1),
])  # fmt: skip
def test_tool_span_inside_a_span_of_the_same_tool(ids: Any, arguments: Any, calls: int) -> None:
    """koog 2236: of two parallel calls, the second got the wrong parent. Two layers of one call have its id or arguments."""
    spans = [agent(1), chat(2, 1, user=ASKED)]
    for place, (call_id, given) in enumerate(zip(ids, arguments, strict=True)):
        own = {"gen_ai.tool.call.id": call_id, "gen_ai.tool.call.arguments": given and json.dumps(given)}
        known = {name: value for name, value in own.items() if value is not None}
        spans.append(tool(3 + place, 1 + 2 * place, "research", at=20 + place, attributes=known))
    assert len(turn_of(*spans).tool_calls or ()) == calls


def test_one_span_for_all_tools_of_a_step() -> None:
    """haystack 11892: before version 3.0, the calls are only in the messages."""

    def message(role: str, *content: Any) -> dict[str, Any]:
        return {"role": role, "meta": {}, "name": None, "content": [*content]}

    def step(span_id: int, parent_id: int, name: str, at: float, **content: Any) -> SpanRecord:
        values = {f"haystack.agent.step.{name}.{side}": json.dumps(value) for side, value in content.items()}
        return span(span_id, parent_id, f"haystack.agent.step.{name}", values, at=at, scope="haystack")

    calls = [{"tool_name": name, "arguments": CITY, "id": f"c{name}"} for name in ("count", "find")]
    asked, requests = message("user", {"text": ASKED}), message("assistant", *({"tool_call": call} for call in calls))
    results = [message("tool", {"tool_call_result": {"result": call["id"], "error": False, "origin": call}}) for call in calls]
    said = message("assistant", {"text": SAID})
    turn = turn_of(
        span(1, 0, "haystack.agent.run", {"haystack.agent.max_steps": 9}, scope="haystack", ms=100),
        step(2, 1, "llm", 5, input={"messages": [asked]}, output={"replies": [requests]}),
        step(3, 1, "tool", 20, input={"messages": [requests]}, output={"tool_messages": results}),
        step(4, 1, "llm", 40, input={"messages": [asked, requests, *results]}, output={"replies": [said]}),
    )
    assert results_of(turn) == [("count", CITY, "ccount", "executed"), ("find", CITY, "cfind", "executed")]
    assert (turn.input, turn.output) == (ASKED, SAID)


@pytest.mark.parametrize(("asked", "query"), [
    ({"query_embedding": [0.1, 0.2], "top_k": 3}, None), ({"query": "rain", "top_k": 3}, "rain"),
])  # fmt: skip
def test_query_of_a_search_by_vector(asked: Any, query: str | None) -> None:
    """openinference 524: the retriever gets the query's embedding, which isn't its text."""
    kind = {"openinference.span.kind": "RETRIEVER", "input.value": json.dumps(asked)}
    search = span(2, 1, "Retriever", {**kind, "retrieval.documents.0.document.content": "Paris: 21"})
    (found,) = turn_of(agent(1), search, chat(3, 1, user=ASKED, says=SAID, at=20)).retrievals
    assert found.query == query


@pytest.mark.parametrize("kind", ["gen_ai.span.kind", "fi.span.kind"])
def test_documents_of_a_vector_store_without_their_texts(kind: str) -> None:
    """traceAI 173: the query's vector is left out, and the matches have only ids and scores."""
    found = json.dumps([{"id": "d1", "score": 0.9}, {"id": "d2", "score": 0.5}])
    asked = {"input.value": json.dumps({"top_k": 2, "vector_dim": 8}), "output.value": found}
    search = span(2, 1, "Index.query", {kind: "RETRIEVER", **asked}, scope="traceai_pinecone")
    turn = turn_of(agent(1), search, chat(3, 1, user=ASKED, says=SAID, at=20))
    assert turn.retrieved_ids == ["d1", "d2"]


def test_answer_with_ids_and_scores_is_no_search() -> None:
    """A sibling of traceAI 173: an agent grades players."""
    graded = json.dumps([{"id": "p1", "score": 10}, {"id": "p2", "score": 7}])
    root = span(1, 0, "invoke_agent grader", {"input": "Grade the players", "output": graded}, scope="acme")
    call = span(2, 1, "llm.generate", {"llm.model": "gpt-4o", "llm.input_tokens": 5, "llm.output_tokens": 5}, scope="acme")
    turn = turn_of(root, call)
    assert (turn.input, turn.output, turn.retrievals) == ("Grade the players", graded, [])


# --- exports


def otlp(*records: SpanRecord) -> dict[str, Any]:
    spans = [
        {
            "traceId": f"{record.trace_id:032x}", "spanId": f"{record.span_id:016x}", "name": record.name,
            "parentSpanId": f"{record.parent_id:016x}" if record.parent_id else "", "startTimeUnixNano": str(record.start_ns),
            "endTimeUnixNano": str(record.end_ns), "attributes": attributes_as_json(record.attributes),
        }
        for record in records
    ]  # fmt: skip
    return {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}


@pytest.mark.parametrize("first", ["unfinished", "whole"])
def test_span_that_was_exported_twice(first: str, tmp_path: Path) -> None:
    """promptfoo 10327: one copy has more attributes. langchain-azure 310: both are equal."""
    whole, root = chat(2, 1, user=ASKED, says=SAID, attributes=COUNTED), agent(1)
    unfinished = span(2, 1, "chat m-1", {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m-1"})
    copies = (unfinished, whole) if first == "unfinished" else (whole, unfinished)
    (turn,) = turns_in(tmp_path, otlp(root, copies[0]), otlp(copies[1], root))
    assert turn.usage is not None
    assert (turn.output, len(turn.llm_calls), turn.usage.total_tokens) == (SAID, 1, 15)


def test_unfinished_copy_of_a_span_with_more_attributes(tmp_path: Path) -> None:
    """A sibling of promptfoo 10327: the copy that ended counts."""
    whole = chat(2, 1, user=ASKED, says=SAID)
    request = {f"gen_ai.request.{name}": 1 for name in ("seed", "top_k", "top_p", "max_tokens", "temperature", "choice.count")}
    unfinished = span(2, 1, "chat m-1", {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m-1", **request})
    unfinished.end_ns = unfinished.start_ns
    (turn,) = turns_in(tmp_path, otlp(agent(1), whole), otlp(unfinished))
    assert turn.output == SAID


def observation(place: int, parent: int | None, kind: str, **more: Any) -> dict[str, Any]:
    return {
        "id": f"o{place}", "traceId": "t-1", "parentObservationId": parent and f"o{parent}", "type": kind, "name": kind.lower(),
        "startTime": f"2026-01-01T00:00:0{place}.000Z", "endTime": "2026-01-01T00:00:09.000Z", "metadata": "{}", **more,
    }  # fmt: skip


TRACE = {"id": "t-1", "name": "desk", "timestamp": "2026-01-01T00:00:00.000Z", "metadata": "{}", "tags": [], "latency": 1.5}


@pytest.mark.parametrize("inside", [True, False])
def test_downloaded_langfuse_trace_lists_its_observations_twice(inside: bool, tmp_path: Path) -> None:
    """langfuse 15337: the page's download, in which only the trace has content."""
    observations = [
        observation(1, None, "SPAN", input=None, output=None),
        observation(2, 1, "GENERATION", input=None, output=None, model="gpt-4o", usageDetails={"input": 10, "output": 5}),
    ]
    trace = {
        **TRACE,
        "input": json.dumps(ASKED),
        "output": json.dumps(SAID),
        **({"observations": observations} if inside else {}),
    }
    (turn,) = turns_in(tmp_path, {"trace": trace, "observations": observations})
    assert (turn.input, turn.output) == (ASKED, SAID)
    assert [(call.model, call.input_tokens, call.output_tokens) for call in turn.llm_calls] == [("gpt-4o", 10, 5)]


@pytest.mark.parametrize("content", [(ASKED, SAID), ({"question": ASKED}, {"answer": SAID})])
@pytest.mark.parametrize("listed", [{}, {"observations": ["o1", "o2"]}, {"observations": []}])
@pytest.mark.parametrize("session", ["sessionId", "session_id"])
def test_langfuse_traces_without_their_observations(content: Any, listed: Any, session: str, tmp_path: Path) -> None:
    """langfuse 6924: a list of traces has only their ids or none."""
    trace = {**TRACE, "input": content[0], "output": content[1], "totalCost": 0.25, session: "s", **listed}
    (turn,) = turns_in(tmp_path, [trace])
    assert (turn.input, turn.output, turn.conversation_id, turn.cost_usd) == (ASKED, SAID, "s", 0.25)


def test_rows_of_questions_are_not_langfuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A sibling of langfuse 6924: a dataset with an id, a time and a session."""
    row = {"id": "1", "timestamp": "2026-01-01T00:00:00Z", "input": ASKED, "output": SAID, "session_id": "s"}
    assert turns_in(tmp_path, row) == []
    assert "experiment recorded" in capsys.readouterr().err


def test_each_root_of_a_langfuse_trace_has_its_own_texts(tmp_path: Path) -> None:
    """A sibling of langfuse 15337: only one of two roots has content."""
    roots = [
        observation(1, None, "GENERATION", input=None, output=None),
        observation(2, None, "GENERATION", input=NEXT, output=THEN),
    ]
    turns = turns_in(tmp_path, {**TRACE, "input": ASKED, "output": SAID, "observations": roots})
    assert [turn.output for turn in turns if turn.output] == [THEN]


def opik_span(place: int, kind: str, given: Any, returned: Any, **more: Any) -> dict[str, Any]:
    times = {
        "start_time": f"2026-01-01T00:00:0{place}.000Z",
        "end_time": f"2026-01-01T00:00:0{8 if place == 1 else place + 1}.000Z",
    }
    ids = {"id": f"0198-{place}", "trace_id": "0198-t", "parent_span_id": None if place == 1 else "0198-1"}
    return {**ids, **times, "name": kind, "type": kind, "input": given, "output": returned, "metadata": {}, **more}


@pytest.mark.parametrize("paged", [True, False])
def test_spans_from_opik(paged: bool, tmp_path: Path) -> None:
    """experiential 777: a page of Opik's API has its spans in ``content``."""
    answer = {"choices": [{"message": {"role": "assistant", "content": SAID}}]}
    counted = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    spans = [
        opik_span(1, "general", {"question": ASKED}, {"answer": SAID}),
        opik_span(2, "tool", {"city": "Paris"}, {"output": "21"}),
        opik_span(4, "llm", {"messages": [{"role": "user", "content": ASKED}]}, answer, model="gpt-4o", usage=counted),
    ]
    (turn,) = turns_in(tmp_path, {"page": 1, "size": 3, "total": 3, "content": spans} if paged else spans)
    assert turn.usage is not None
    assert (turn.input, turn.output, turn.usage.total_tokens) == (ASKED, SAID, 15)
    assert [call.name for call in turn.tool_calls or ()] == ["tool"]


def test_spans_with_an_unreadable_time_are_kept(tmp_path: Path) -> None:
    """langfuse-docs 3686: a missing end and a start that isn't a time."""
    asked = chat(2, 1, user=ASKED, calls=[{"id": "c1", "name": "f", "arguments": {}}], at=10)
    document = otlp(agent(1), asked, chat(3, 1, user=ASKED, says=SAID, at=40))
    spans = document["resourceSpans"][0]["scopeSpans"][0]["spans"]
    del spans[1]["endTimeUnixNano"]
    spans[2]["startTimeUnixNano"] = "soon"
    (turn,) = turns_in(tmp_path, document)
    assert (turn.output, len(turn.llm_calls)) == (SAID, 2)


@pytest.mark.parametrize(("request_type", "kind", "calls"), [
    ("chat", "task", 2), ("completion", "task", 2), ("embedding", "task", 0), ("rerank", "task", 0), (None, "task", 0), ("chat", "workflow", 0),
    (["chat"], "task", 0),
])  # fmt: skip
def test_model_call_that_is_marked_as_a_task(request_type: Any, kind: str, calls: int) -> None:
    """respan 274: the kind of the model's spans is ``task``, and their parents were dropped."""
    scope = "respan.instrumentation.openai_agents"
    more = {} if request_type is None else {"llm.request.type": request_type}
    asked = {
        "traceloop.span.kind": kind,
        "gen_ai.request.model": "gpt-4o",
        **more,
        "gen_ai.prompt.0.role": "user",
        "gen_ai.prompt.0.content": ASKED,
    }
    said = {"gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.content": SAID}
    root = span(1, 0, "assistant.workflow", {"traceloop.span.kind": "workflow"}, scope=scope, ms=100)
    looked_up = span(4, 92, "find.tool", {"traceloop.span.kind": "tool", "traceloop.entity.name": "find"}, scope=scope, at=20)
    first, last = span(3, 91, "response", asked, scope=scope), span(5, 93, "response", {**asked, **said}, scope=scope, at=40)
    found = turns_of(root, first, looked_up, last)
    assert [len(turn.llm_calls) for turn in found] == [calls]
    if calls:
        assert (found[0].input, found[0].output, [call.name for call in found[0].tool_calls or ()]) == (ASKED, SAID, ["find"])


JUDGED = {"gen_ai.request.model": "gpt-4o", "gen_ai.operation.name": "chat"}


@pytest.mark.parametrize(("attributes", "scope"), [
    ({"openinference.span.kind": "EVALUATOR", "input.value": ASKED, "output.value": '{"score": 1}'}, "phoenix"),
    ({"langwatch.span.type": "evaluation"}, "langwatch"),
    ({"acme.span.kind": "evaluator"}, "acme"),
    ({"app.span.type": "scorer"}, "app"),
])  # fmt: skip
@pytest.mark.parametrize("parent", [0, 99])
def test_judges_call_alone_is_no_turn(attributes: dict[str, Any], scope: str, parent: int) -> None:
    """langwatch 8162: an evaluator's span, whose parent is unknown, was evaluated like the application's."""
    judge = chat(2, 1, user="Is the answer relevant?", says="yes", attributes=JUDGED)
    assert turns_of(span(1, parent, "Relevance", attributes, scope=scope, ms=50), judge) == []


def test_judge_within_a_turn_has_not_the_turns_answer() -> None:
    """dd-trace-py 19728 (opposite of langwatch 8162): the agent itself asks a judge after its answer."""
    judged = span(3, 1, "Relevance", {"openinference.span.kind": "EVALUATOR"}, scope="phoenix", at=30, ms=30)
    judge = chat(4, 3, user="Is the answer relevant?", says="yes", attributes=JUDGED, at=31)
    turn = turn_of(agent(1), chat(2, 1, user=ASKED, says=SAID), judged, judge)
    assert (turn.input, turn.output) == (ASKED, SAID)


@pytest.mark.parametrize("inner", [agent(2, 1), span(2, 1, "guard", {"openinference.span.kind": "GUARDRAIL"})])
def test_agent_or_guardrail_below_an_evaluation_is_a_turn(inner: SpanRecord) -> None:
    """The opposite of langwatch 8162: an experiment's span is around the agent, and a guardrail blocks a request."""
    is_agent = inner.name.startswith("invoke_agent")
    root = span(1, 0, "run", {"langwatch.span.type": "evaluation"} if is_agent else {}, scope="langwatch", ms=99)
    assert len(turns_of(root, inner, chat(3, 2, user=ASKED, says=SAID))) == 1


def of_user(*texts: str) -> list[dict[str, Any]]:
    return [{"role": "user", "parts": [{"type": "text", "content": content}]} for content in texts]


SUMMARY = "The user asked for the weather in Paris, and got it."


@pytest.mark.parametrize(("prompt", "asked"), [
    (of_user(ASKED, "And in Rome?", f"Summary of the conversation so far: {SUMMARY}"), "And in Rome?"),
    (of_user("And in Rome?", f"This session was summarized.\n{SUMMARY}\nContinue."), "And in Rome?"),
    (of_user("And in Rome?", f"Go on from this summary. {SUMMARY}"), "And in Rome?"),
    (of_user(f"Summary: {SUMMARY}", "And in Rome?"), "And in Rome?"),
    ([*of_user(ASKED), {"role": "assistant", "parts": [{"type": "text", "content": SAID}]}, *of_user(f"And in Rome?\nSummary: {SUMMARY}")], "Shorten it."),
    (of_user("Context: 25 degrees.", SUMMARY), "Shorten it."),
])  # fmt: skip
def test_summary_after_the_users_message_is_not_the_question(prompt: list[dict[str, Any]], asked: str) -> None:
    """kimi-code 1192: the history became a summary in the user's name, which follows the user's own messages."""
    answer = "It is 25 degrees in Rome, and it will stay dry until Sunday."
    turn = turn_of(
        agent(1), chat(2, 1, messages=of_user("Shorten it."), says=SUMMARY), chat(3, 1, messages=prompt, says=answer, at=40)
    )
    assert (turn.input, turn.output) == (asked, answer)
