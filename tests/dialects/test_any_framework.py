"""General rules for frameworks without a recording. Each table tests one rule with several attribute names."""

from __future__ import annotations

import json

import pytest

from otel_agenteval.spans.record import SpanEvent
from otel_agenteval.turns.roots import split
from otel_agenteval.turns.stitching import reader_of
from tests.support.spans import agent, chat, span, tool, turn_of

ASKED, SAID, RESULT = "Weather in Paris?", "It is 18 °C.", "18 °C"
CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Paris"}'}}
USER = {"role": "user", "content": ASKED}
WANTS = {"role": "assistant", "content": None, "tool_calls": [CALL]}
TOLD = {"role": "tool", "tool_call_id": "c1", "content": RESULT}


def fw(span_id, parent, name, attributes, **more):
    return span(span_id, parent, name, attributes, scope="fw.core", **more)


def model(span_id, parent, given, made, *, at=0.0, **more):
    attributes = {"llm.model": "gpt-4.1", "llm.input": json.dumps(given), "llm.output": json.dumps([made])}
    usage = {"llm.usage.input_tokens": 10, "llm.usage.output_tokens": 4}
    return fw(span_id, parent, "llm.call", {"fw.kind": "llm", **attributes, **usage, **more}, at=at)


def loop(*, called="support.agent", tool="weather", **everywhere):
    """Return a run with one tool call. All spans have the attributes ``everywhere``."""
    return (
        fw(1, 0, called, {"fw.kind": "agent", "fw.input": ASKED, "fw.output": SAID, **everywhere}, ms=100),
        model(2, 1, [USER], WANTS, **everywhere),
        fw(3, 1, tool, {"fw.kind": "tool", "fw.input": '{"city": "Paris"}', "fw.output": RESULT, **everywhere}, at=20),
        model(4, 1, [USER, WANTS, TOLD], {"role": "assistant", "content": SAID}, at=40, **everywhere),
    )


@pytest.mark.parametrize(
    "everywhere",
    [
        {"user.name": "Ada"}, {"fw.user.name": "Ada"}, {"organization.name": "ACME"}, {"sdk.name": "fw"}, {"fw.library.name": "fw"},
        {"fw.metadata": '{"user": {"name": "Ada"}}'}, {"fw.metadata": '{"userName": "Ada"}'}, {"fw.display_name": "Ada"},
        {"fw.name": "Ada"}, {"name": "Ada"}, {"user.agent": "Mozilla/5.0"},
    ],
)  # fmt: skip
def test_name_of_somebody_else_isnt_a_tools_or_agents(everywhere):
    turn = turn_of(*loop(called="support", **everywhere))
    assert (turn.agent, [call.name for call in turn.tool_calls]) == ("support", ["weather"])


@pytest.mark.parametrize("key", ["fw.function.name", "step_name", "entity.name", "fw:name", "name"])
def test_tool_has_the_name_in_its_attribute(key):
    root, first, tool, last = loop(tool="run 7")
    tool.attributes[key] = "weather"
    assert [call.name for call in turn_of(root, first, tool, last).tool_calls] == ["weather"]


@pytest.mark.parametrize("scope", ["fw.core", "opentelemetry.instrumentation.openai"])
@pytest.mark.parametrize(
    "operation",
    ["chat", "chat.completions", "Chat", "ChatCompletion", "chat_completion", "llm_call", "generateText", "responses.create", "openai.chat"],
)  # fmt: skip
def test_failed_model_call_counts_under_any_operation(operation, scope):
    attributes = {"gen_ai.operation.name": operation, "gen_ai.request.model": "gpt-4.1"}
    for root in ([], [agent(1)]):
        turn = turn_of(*root, span(2, len(root), "request", attributes, error="429", scope=scope))
        assert [(call.model, call.error.message) for call in turn.llm_calls] == [("gpt-4.1", "429")]


@pytest.mark.parametrize("name", ["ai.generateText.doGenerate", "fw chat", "ChatCompletion", "llm"])
def test_failed_model_call_counts_by_its_name_and_model(name):
    turn = turn_of(*loop()[:1], fw(2, 1, name, {"fw.model": "gpt-4.1", "fw.prompt": ASKED}, error="429"))
    assert [(call.model, call.error.message) for call in turn.llm_calls] == [("gpt-4.1", "429")]


@pytest.mark.parametrize("operation", ["tool_call", "run_tool", "ToolExecution"])
def test_tool_counts_under_any_operation(operation):
    attributes = {"gen_ai.operation.name": operation, "gen_ai.tool.name": "weather", "gen_ai.tool.call.result": RESULT}
    turn = turn_of(agent(1), span(2, 1, "x", attributes))
    assert [(call.name, call.result) for call in turn.tool_calls] == [("weather", RESULT)]


@pytest.mark.parametrize(
    "about", [{"level": "INFO", "target": "fw::tools"}, {"severity_text": "INFO", "timestamp": "2026-01-01T00:00:00Z"}]
)
@pytest.mark.parametrize(("event", "result"), [({}, None), ({"result": RESULT}, RESULT), ({"message": RESULT}, RESULT)])
def test_properties_of_an_event_arent_content(about, event, result):
    root, first, tool, last = loop()
    del tool.attributes["fw.output"], last.attributes["llm.input"]
    tool.events = [SpanEvent("tool result", {**about, **event})]
    assert [call.result for call in turn_of(root, first, tool, last).tool_calls] == [result]


RAISED = SpanEvent("exception", {"exception.type": "APIError", "exception.message": "503"})
TOOLS = [{"fw.kind": "tool"}, {"openinference.span.kind": "TOOL", "tool.name": "weather"}, {"gen_ai.tool.name": "weather"}]
MODELS = [{"fw.kind": "llm", "fw.model": "m-1"}, {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m-1"}]


@pytest.mark.parametrize("kind", TOOLS)
@pytest.mark.parametrize(
    ("result", "error"), [({}, "APIError"), ({"fw.output": RESULT, "gen_ai.tool.call.result": RESULT}, None)]
)
def test_exception_of_tool_without_result_is_its_failure(kind, result, error):
    root, first, _, last = loop()
    del last.attributes["llm.input"]
    turn = turn_of(root, first, fw(3, 1, "weather", {**kind, **result}, at=20, events=[RAISED]), last)
    assert [call.error and call.error.type for call in turn.tool_calls] == [error]


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ({}, "APIError"),
        ({"gen_ai.usage.output_tokens": 0, "llm.usage.output_tokens": 0}, "APIError"),
        ({"gen_ai.output.messages": '[{"role": "assistant", "parts": []}]'}, "APIError"),
        ({"gen_ai.response.id": "r-1"}, "APIError"),
        ({"gen_ai.usage.output_tokens": 4, "llm.usage.output_tokens": 4}, None),
        ({"gen_ai.output.messages": '[{"role": "assistant", "parts": [{"type": "text", "content": "Sunny"}]}]'}, None),
        (
            {
                "gen_ai.output.messages": '[{"role": "assistant", "parts": [{"type": "tool_call", "id": "c", "name": "f", "arguments": {}}]}]'
            },
            None,
        ),
    ],
)
def test_exception_of_model_without_response_is_its_failure(kind, answer, error):
    turn = turn_of(agent(1), fw(2, 1, "call", {**kind, **answer}, events=[RAISED]))
    assert [call.error and call.error.type for call in turn.llm_calls] == [error]


@pytest.mark.parametrize(
    "message", ["Error code: 500 - {}", "HTTP 503 Service Unavailable", "Request failed with status code 500", "APIError: x"]
)
def test_failure_of_an_untraced_model_call_isnt_the_tools(message):
    root, first, *_ = loop()
    root.status, root.status_message = 2, message
    del root.attributes["fw.output"]
    assert [(call.name, call.error) for call in turn_of(root, first).tool_calls] == [("weather", None)]


@pytest.mark.parametrize(
    ("name", "target"),
    [("transfer_to_billing", "billing"), ("handoff_to_billing", "billing"), ("handoffToBilling", "Billing"), ("hand_off_to_x", "x")],
)  # fmt: skip
def test_handoff_tool_is_a_handoff_in_any_spelling(name, target):
    turn = turn_of(
        agent(1), chat(2, 1, user=ASKED, calls=[{"id": "c1", "name": name, "arguments": {}}]), chat(3, 1, says="Hi", at=20)
    )
    assert (turn.tool_calls, [handoff.to for handoff in turn.handoffs]) == ([], [target])


@pytest.mark.parametrize("name", ["transfer_tokens", "transferTomato", "handle_offer"])
def test_tool_with_a_similar_name_isnt_a_handoff(name):
    turn = turn_of(agent(1), tool(2, 1, name), chat(3, 1, says="Hi", at=20))
    assert ([call.name for call in turn.tool_calls], turn.handoffs) == ([name], [])


@pytest.mark.parametrize(
    ("name", "attributes"),
    [("self_check_input", {}), ("rail: output", {}), ("moderation", {"fw.kind": "chain"}), ("x", {"openinference.span.kind": "GUARDRAIL"})],
)  # fmt: skip
@pytest.mark.parametrize("root", [agent(1), span(1, 0, "POST /ask", ms=100)])
def test_call_below_a_guard_isnt_the_answer(name, attributes, root):
    turn = turn_of(
        root,
        span(2, 1, name, attributes),
        chat(3, 2, user="Is this allowed: weather", says="yes"),
        chat(4, 1, user=ASKED, says=SAID, at=20),
        span(5, 1, name, attributes, at=40, ms=20),
        chat(6, 5, user="Is this allowed: 18", says="no", at=45),
    )
    assert (turn.input, turn.output, len(turn.llm_calls)) == (ASKED, SAID, 3)


def test_call_whose_id_changes_in_the_next_prompt_is_one():
    renamed = {**WANTS, "tool_calls": [{**CALL, "id": "x9"}]}
    turn = turn_of(
        fw(1, 0, "run", {"fw.kind": "chain", "fw.input": ASKED, "fw.output": SAID}, ms=100),
        model(2, 1, [USER], WANTS),
        model(3, 1, [USER, renamed, {**TOLD, "tool_call_id": "x9"}], {"role": "assistant", "content": SAID}, at=40),
    )
    assert [(call.name, call.result) for call in turn.tool_calls] == [("weather", RESULT)]


@pytest.mark.parametrize("name", ["Agent: 'triage' generate", 'agent "triage"', "Agent `triage[2]`"])
def test_name_that_quotes_an_agent_is_its_runs(name):
    first = [span(2, 1, name, at=0, ms=40), chat(3, 2, user=ASKED, says=SAID, at=5)]
    later = [span(4, 1, name, at=50, ms=40), chat(5, 4, user="And in Rome?", says="21 °C.", at=55)]
    groups = split([span(1, 0, "shop", ms=100), *first, *later])
    found = [reader_of(group).turn("recorded_file", True) for group in groups]
    assert [(turn.input, turn.agent) for turn in found] == [(ASKED, "triage"), ("And in Rome?", "triage")]


def test_guards_answer_is_the_turns_if_nothing_else_answered():
    turn = turn_of(agent(1), span(2, 1, "self_check_input"), chat(3, 2, user=ASKED, says="I can't help with that."))
    assert turn.output == "I can't help with that."


@pytest.mark.parametrize(
    ("attributes", "arguments"),
    [
        ({"fw.kind": "tool", "city": "Paris", "days": 2, "result": RESULT}, {"city": "Paris", "days": 2}),
        ({"fw.kind": "tool", "tool.city": "Paris", "tool.result": RESULT}, {"city": "Paris"}),
        ({"fw.kind": "tool", "fw.input.city": "Paris", "fw.output": RESULT}, {"city": "Paris"}),
        ({"gen_ai.tool.name": "weather", "city": "Paris", "gen_ai.tool.call.result": RESULT}, {"city": "Paris"}),
        ({"fw.kind": "tool", "fw.input": '{"city": "Paris"}', "days": 2, "fw.output": RESULT}, {"city": "Paris"}),
        ({"fw.kind": "tool", "duration_ms": 3, "success": True, "fw.version": "1", "user.id": "u", "result": RESULT}, None),
        ({"fw.kind": "tool", "city": "Paris"}, None),
    ],
)
def test_plain_attributes_beside_a_result_are_arguments(attributes, arguments):
    root, first, _, last = loop()
    first.attributes["llm.output"] = last.attributes["llm.output"]
    del last.attributes["llm.input"]
    turn = turn_of(root, first, fw(3, 1, "weather", attributes, at=20), last)
    assert [(call.name, call.arguments) for call in turn.tool_calls] == [("weather", arguments)]


@pytest.mark.parametrize(
    "kind", [{}, {"fw.kind": "chain"}, {"openinference.span.kind": "CHAIN"}, {"traceloop.span.kind": "workflow"}]
)
@pytest.mark.parametrize("key", ["fw.messages", "fw.output", "output.value", "fw.state"])
@pytest.mark.parametrize("wrapped", [False, True])
def test_calls_come_from_a_runs_messages_without_tool_spans(kind, key, wrapped):
    earlier = {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}
    messages = [*earlier, USER, WANTS, TOLD, {"role": "assistant", "content": SAID}]
    root = fw(1, 0, "run", {**kind, "fw.input": ASKED, key: json.dumps({"messages": messages} if wrapped else messages)}, ms=100)
    usage = {"fw.kind": "llm", "llm.model": "m-1", "llm.usage.input_tokens": 10, "llm.usage.output_tokens": 4}
    turn = turn_of(root, fw(2, 1, "llm.call", usage), fw(3, 1, "llm.call", usage, at=20))
    assert (turn.input, turn.output) == (ASKED, SAID)
    assert [(call.name, call.arguments, call.result) for call in turn.tool_calls] == [("weather", {"city": "Paris"}, RESULT)]


def answered(made, given=(USER,)):
    """Return the turns of a model call, with a framework's attributes and with the convention's."""
    texts = [one if isinstance(one, str) else json.dumps(one) for one in (given, made)]
    framework = {
        "fw.kind": "llm",
        "llm.model": "m-1",
        "llm.input": texts[0],
        "llm.output": texts[1],
        "llm.usage.output_tokens": 4,
    }
    convention = {"gen_ai.input.messages": texts[0], "gen_ai.output.messages": texts[1], "gen_ai.request.model": "m-1"}
    return [turn_of(agent(1), fw(2, 1, "chat", attributes)) for attributes in (framework, convention)]


PIECES = ["It is", " 18", " °C", "."]


@pytest.mark.parametrize(
    "made",
    [
        [{"role": "assistant", "content": piece} for piece in PIECES],
        [{"role": "assistant", "parts": [{"type": "text", "content": piece}]} for piece in PIECES],
        [{"role": "model", "parts": [{"text": piece}]} for piece in PIECES],
        [{"type": "AIMessageChunk", "content": piece} for piece in PIECES],
        [{"role": "assistant", "content": [{"type": "text", "text": piece} for piece in PIECES]}],
        [{"delta": {"content": piece}} for piece in PIECES],
        [{"choices": [{"delta": {"content": piece}}]} for piece in PIECES],
        [{"candidates": [{"content": {"role": "model", "parts": [{"text": piece}]}}]} for piece in PIECES],
        PIECES,
        [{"role": "assistant", "text": SAID}],
    ],
)  # fmt: skip
def test_pieces_of_a_streamed_answer_are_joined(made):
    assert [turn.output for turn in answered(made)] == [SAID, SAID]


@pytest.mark.parametrize("event", ["gen_ai.choice", "llm.chunk", "fw.completion.delta"])
def test_pieces_in_events_are_joined(event):
    events = [SpanEvent(event, {"content": piece}) for piece in PIECES]
    assert turn_of(chat(1, events=events)).output == SAID


@pytest.mark.parametrize(
    ("texts", "output"),
    [(["First paragraph.", "Second one."], "First paragraph.\nSecond one."), (["It is", " 1", "8 °C."], "It is 18 °C.")],
)
def test_parts_that_arent_streamed_keep_their_lines(texts, output):
    made = [{"role": "assistant", "content": [{"type": "text", "text": text} for text in texts]}]
    assert {turn.output for turn in answered(made)} == {output}


def test_first_of_several_choices_is_the_answer():
    made = [{"role": "assistant", "content": text} for text in ("Option A", "Option B")]
    assert {turn.output for turn in answered(made)} == {"Option A"}


@pytest.mark.parametrize("context", ["<context>\nA <b>b</b>\n</context>", '<system-reminder kind="x">y</system-reminder>'])
def test_text_inside_a_tag_beside_another_isnt_the_users(context):
    said = {"role": "assistant", "content": SAID}
    for given in (
        [{"role": "user", "content": [{"type": "text", "text": context}, {"type": "text", "text": ASKED}]}],
        [{"role": "user", "content": [{"type": "text", "text": ASKED}, {"type": "text", "text": context}]}],
        [{"role": "user", "content": ASKED}, {"role": "user", "content": context}],
    ):
        assert {turn.input for turn in answered([said], given)} == {ASKED}
    for text in (context, "<b>a</b> or <b>b</b>"):
        assert {turn.input for turn in answered([said], [{"role": "user", "content": text}])} == {text}


@pytest.mark.parametrize(
    "made",
    [
        [{"role": "assistant", "content": [{"name": "weather", "args": {"city": "Paris"}, "id": "c1"}]}],
        [{"role": "assistant", "parts": [{"name": "weather", "arguments": {"city": "Paris"}, "id": "c1"}]}],
        [{"name": "weather", "args": {"city": "Paris"}, "id": "c1"}],
        'AssistantMessage [messageType=ASSISTANT, toolCalls=[ToolCall[id=c1, type=function, name=weather, arguments={"city":"Paris"}]]]',
        'AiMessage { text = null, toolExecutionRequests = [ToolExecutionRequest { id = "c1", name = "weather", arguments = "{"city": "Paris"}" }] }',
    ],
)  # fmt: skip
def test_tool_requests_are_read_in_any_form(made):
    found = [[(call.name, call.arguments) for call in turn.tool_calls] for turn in answered(made)]
    assert found == [[("weather", {"city": "Paris"})]] * 2


@pytest.mark.parametrize(
    "given",
    [
        "UserMessage{content='Weather in Paris?', properties={messageType=USER}, messageType=USER}",
        "[SystemMessage [textContent=Be brief, x=1], UserMessage [textContent=Weather in Paris?, metadata={}]]",
        '[UserMessage { name = null, contents = [TextContent { text = "Weather in Paris?" }] }]',
        "Prompt{messages=[UserMessage{content='Weather in Paris?', messageType=USER}], modelOptions=null}",
        "[Message{role='user', content='Weather in Paris?'}]",
        [{"role": "user", "text": ASKED}],
        {"messages": [{"role": "user", "message": ASKED}]},
    ],
)
def test_users_words_are_read_in_any_form(given):
    assert {turn.input for turn in answered([{"role": "assistant", "content": SAID}], given)} == {ASKED}


@pytest.mark.parametrize("result", ['"Error: no such city"', "Error: no such city", {"state": "error", "text": "x"}])
def test_results_that_report_an_error_are_failures(result):
    told = {"role": "tool", "tool_call_id": "c1", "content": result if isinstance(result, str) else json.dumps(result)}
    root, first, _, last = loop()
    last.attributes["llm.input"] = json.dumps([USER, WANTS, told])
    assert [call.error and call.error.type for call in turn_of(root, first, last).tool_calls] == ["tool_error"]


def test_results_without_ids_follow_the_order_of_the_calls():
    calls = [{**CALL, "id": f"c{n}", "function": {"name": "weather", "arguments": json.dumps({"n": n})}} for n in (1, 2)]
    told = [{"role": "tool", "content": text} for text in ("one", "two")]
    root, first, _, last = loop()
    first.attributes["llm.output"] = json.dumps([{**WANTS, "tool_calls": calls}])
    last.attributes["llm.input"] = json.dumps([USER, {**WANTS, "tool_calls": calls}, *told])
    found = [(call.arguments, call.result) for call in turn_of(root, first, last).tool_calls]
    assert found == [({"n": 1}, "one"), ({"n": 2}, "two")]


@pytest.mark.parametrize(
    ("note", "input_"),
    [
        ("<current_time>2026-01-02</current_time>\n\n", ASKED),
        ("<current_time>2026-01-02</current_time>\n\n<user-tz>UTC</user-tz>\n\n", ASKED),
        ("<b>Paris</b>\n\n", None), ("<order_xml>\n<id>1</id>\n</order_xml>\n\n", None), ("<current_time>2026-01-02</current_time> ", None),
    ],
)  # fmt: skip
def test_notes_before_the_users_words_arent_theirs(note, input_):
    turn = turn_of(agent(1), chat(2, 1, user=note + ASKED, says=SAID))
    assert turn.input == (input_ or note + ASKED)
