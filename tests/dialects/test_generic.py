"""Single rules that read unknown attribute names by their shape. ``scripts/unseen.py`` measures all rules together."""

from __future__ import annotations

import datetime
import json

import pytest

from otel_agenteval.dialects.content import decode
from otel_agenteval.dialects.generic.facts import model_in
from otel_agenteval.dialects.generic.interest import argument_in
from otel_agenteval.dialects.generic.keys import meaning_of
from otel_agenteval.dialects.generic.kinds import role_of_kind, role_of_name
from otel_agenteval.dialects.generic.values import opened, transcript
from otel_agenteval.dialects.reader import read, review_roles
from otel_agenteval.spans.record import LogPart, SpanEvent
from otel_agenteval.turns.roots import split
from tests.support.spans import span, turn_of, turns_of

ASKED = {"role": "user", "content": "Weather in Paris?"}
CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Paris"}'}}
WANTS = {"role": "assistant", "content": None, "tool_calls": [CALL]}
TOLD = {"role": "tool", "tool_call_id": "c1", "content": "18 °C"}
SAID = {"role": "assistant", "content": "It is 18 °C."}
FOUND = [{"id": "1", "text": "Paris is the capital of France."}, {"id": "2", "text": "Berlin is the capital of Germany."}]
USAGE = {"prompt_tokens": 12, "completion_tokens": 5}


def request(span_id=2, parent=1, *, given=(ASKED,), made=SAID, at=0.0, name="call", **more):
    """Return a model call of an unknown framework."""
    attributes = {
        "fw:input": json.dumps({"model": "gpt-4.1-mini", "messages": [*given]}),
        "fw:output": json.dumps(
            {"model": "gpt-4.1-mini-2025-04-14", "choices": [{"message": made, "finish_reason": "stop"}], "usage": USAGE}
        ),
        **more,
    }
    return span(span_id, parent, name, attributes, at=at, scope="fw.core")


def step_of(attributes, name="one", **more):
    record = span(1, name=name, attributes=attributes, scope="fw.core", **more)
    review_roles([record])
    return read(record)


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("gen_ai.usage.input_tokens", "input_tokens"),
        ("llm.token_count.prompt", "input_tokens"),
        ("usageMetadata.promptTokenCount", "input_tokens"),
        ("prompt_eval_count", "input_tokens"),
        ("usage.input", "input_tokens"),
        ("x.usage_details.output", "output_tokens"),
        ("ai.usage.completionTokens", "output_tokens"),
        ("usage.prompt_tokens_details.cached_tokens", "cached_tokens"),
        ("usage.cache_creation.input_tokens", "cache_write_tokens"),
        ("usage.non_cached_input_tokens", None),
        ("usage.completion_tokens_details.reasoning_tokens", "reasoning_tokens"),
        ("usage.inputCharacters", None),
        ("llm.max_tokens", None),
        ("gen_ai.response.model", "model"),
        ("fw:modelId", "model"),
        ("device.model", None),
        ("data.model", None),
        ("tool.parameters.type", None),
        ("gen_ai.conversation.id", "conversation_id"),
        ("metadata.thread_id", "conversation_id"),
        ("mcp.session.id", None),
        ("gen_ai.response.id", "response_id"),
        ("gen_ai.request.previous_response.id", None),
        ("fw.span.kind", "kind"),
        ("fw:metadata:subtype", "kind"),
        ("message.type", None),
        ("gen_ai.operation.name", "kind"),
        ("tools.0.name", None),
        ("agentName", "agent"),
    ],
)
def test_what_a_name_says(name, field):
    assert meaning_of(name.replace(":", ".")).field == field


@pytest.mark.parametrize(
    ("kind", "role"),
    [
        ("LLM", "llm"), ("chat_model", "llm"), ("ai.generateText.doGenerate", None), ("model_generation", "llm"), ("ToolCall", "tool"),
        ("agent_run", "agent"), ("invoke_agent", "agent"), ("workflow", "chain"), ("retriever", "retrieval"), ("ChatPromptBuilder", None),
        ("INTERNAL", None), ("agent_step", "inner"), ("handoff", "handoff"), ("a whole sentence that says nothing about an agent at all", None),
    ],
)  # fmt: skip
def test_what_a_kind_says(kind, role):
    assert role_of_kind(kind) == role


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("chat gpt-4o", ("llm", "gpt-4o")),
        ("execute_tool weather", ("tool", "weather")),
        ("Tool: weather", ("tool", "weather")),
        ("support.agent", ("agent", "support")),
        ("GET /orders", (None, None)),
    ],
)
def test_what_a_span_s_name_says(name, found):
    assert role_of_name(name) == found


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ("{'city': 'Paris', 'n': -1}", {"city": "Paris", "n": -1}),
        ('"{\\"a\\": 1}"', {"a": 1}),
        ("[ChatMessage(role=<Role.USER: 'user'>, content='hi')]", [{"role": "user", "content": "hi"}]),
        ("[AIMessage(content='hi', id='x')]", [{"type": "AIMessage", "content": "hi", "id": "x"}]),
        ("content='It is 18.' additional_kwargs={} id='x'", {"role": "assistant", "content": "It is 18."}),
        ("content='18' name='weather' tool_call_id='c1'", {"role": "tool", "content": "18", "tool_call_id": "c1"}),
        ("Agent(run=<object at 0x0>)", {"run": None}),
        ("not (a call)", "not (a call)"),
        ("f(x, y)", "f(x, y)"),
        ("{'cut': 'in the mid", "{'cut': 'in the mid"),
        ("__import__('os').system('true')", "__import__('os').system('true')"),
    ],
)
def test_values_are_opened_and_nothing_is_run(raw, value):
    assert opened(raw) == value


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("content='18' name='weather' tool_call_id='c1'", None),
        ("content=[{'text': '18'}] tool_call_id='c1'", None),
        ("content=null and tool_call_id=null: what is that?", "content=null and tool_call_id=null: what is that?"),
    ],
)
def test_only_a_shown_message_of_a_tool_is_no_text(text, shown):
    attributes = {"openinference.span.kind": "LLM", "llm.model_name": "m", "input.value": text}
    assert turn_of(span(1, 0, "chat m", attributes)).input == shown


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("phi-4", "phi-4"),
        ("Phi3", "Phi3"),
        ("command-r", "command-r"),
        ("models/nova-pro", "nova-pro"),
        ("yi:34b", "yi:34b"),
        ("titan", "titan"),
    ]
    + [
        (word, None)
        for word in ("philosopher", "yield", "titanic", "command_runner", "novation", "sonarqube", "palmtree", "my-gpt")
    ],
)
def test_words_that_begin_like_a_model_are_none(name, model):
    assert model_in(name) == model


def test_a_transcript_is_messages():
    assert transcript("system: Be brief.\nuser: Hi\nthere\nassistant: Hello.") == [
        {"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi\nthere"}, {"role": "assistant", "content": "Hello."},
    ]  # fmt: skip
    assert transcript("Dear user: hello") is None


def test_what_a_known_dialect_says_is_exact():
    turn = turn_of(span(1, 0, "chat m", {"openinference.span.kind": "LLM", "llm.model_name": "m", "output.value": "hi"}))
    assert turn.reading == "exact"


@pytest.mark.parametrize(
    ("given", "made"),
    [
        pytest.param({"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]},
                     {"candidates": [{"content": {"role": "model", "parts": [{"text": "Hello"}]}, "finishReason": "STOP"}],
                      "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 2}}, id="Gemini"),
        pytest.param({"messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}]},
                     {"id": "msg_1234", "type": "message", "role": "assistant", "content": [{"type": "text", "text": "Hello"}],
                      "usage": {"input_tokens": 3, "output_tokens": 2}}, id="Anthropic"),
        pytest.param({"input": [{"role": "user", "content": "Hi"}]},
                     {"output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello"}]}],
                      "usage": {"input_tokens": 3, "output_tokens": 2}}, id="Responses"),
        pytest.param({"messages": [{"role": "user", "content": [{"text": "Hi"}]}]},
                     {"output": {"message": {"role": "assistant", "content": [{"text": "Hello"}]}},
                      "usage": {"inputTokens": 3, "outputTokens": 2}}, id="Bedrock"),
        pytest.param({"messages": [[{"lc": 1, "type": "constructor", "id": ["x", "HumanMessage"], "kwargs": {"content": "Hi"}}]]},
                     {"generations": [[{"text": "Hello", "message": {"lc": 1, "type": "constructor", "id": ["x", "AIMessage"],
                                        "kwargs": {"content": "Hello", "usage_metadata": {"input_tokens": 3, "output_tokens": 2}}}}]]}, id="LangChain"),
    ],
)  # fmt: skip
def test_payloads_of_providers(given, made):
    turn = turn_of(span(1, 0, "x", {"request.body": json.dumps({"model": "gpt-4o", **given}), "response.body": json.dumps(made)}))
    assert (turn.input, turn.output) == ("Hi", "Hello")
    assert (turn.usage.input_tokens, turn.usage.output_tokens) == (3, 2)


def test_indexed_attributes_are_put_together():
    step = step_of({
        "my.llm.messages[0].role": "user", "my.llm.messages[0].content": "Hi", "my.llm.completions.0.role": "assistant",
        "my.llm.completions.0.content": "Hello", "my.llm.model": "openai/gpt-4o", "my.llm.usage.prompt_tokens": 3,
    })  # fmt: skip
    assert (step.role, step.model, step.input_tokens) == ("llm", "gpt-4o", 3)
    assert decode(step.input_messages, "user").messages[0].content == "Hi"
    assert decode(step.output_messages, "assistant").messages[0].content == "Hello"


def test_span_events_and_log_records_are_messages():
    said = [
        SpanEvent("fw.user.message", {"content": "Hi"}),
        SpanEvent("fw.choice", {"message": '{"role": "assistant", "content": "Hello"}'}),
    ]
    step = step_of({"fw.llm.model": "gpt-4o"}, events=said)
    assert decode(step.input_messages, "user").messages[0].content == "Hi"
    assert decode(step.output_messages, "assistant").messages[0].content == "Hello"
    logged = [LogPart("", {}, {"role": "user", "content": "Hi"}, 1), LogPart("fw.completion", {}, {"content": "Hello"}, 2)]
    step = step_of({"fw.llm.model": "gpt-4o"}, logs=logged)
    assert decode(step.input_messages, "user").messages[0].content == "Hi"
    assert decode(step.output_messages, "assistant").messages[0].content == "Hello"


def test_usage_of_answer_event_counts_after_input_attribute():
    """Token counts in an input are those of earlier calls. Counts in an event after the input are the call's own."""
    answer = {**SAID, "usage": USAGE}
    events = [SpanEvent("fw.choice", {"message": json.dumps(answer)})]
    step = step_of({"fw.llm.model": "gpt-4o", "fw.llm.prompt": "Hi"}, events=events)
    assert (step.input_tokens, step.output_tokens) == (12, 5)


@pytest.mark.parametrize("more", [{"events": 1}, {"logs": 1}])
@pytest.mark.parametrize("content", [{"results": FOUND}, {"matches": FOUND}, FOUND, {"results": []}, [], {}, ""])
def test_events_may_be_search_results(content, more):
    """Search results in events aren't messages, even if the span has no other content."""
    said = {"content": json.dumps(content)}
    more = {key: [SpanEvent("fw.response", said) if key == "events" else LogPart("fw.response", said, None, 1)] for key in more}
    agent = span(1, None, "agent.run", {"fw.input": "Where is Paris?", "fw.output": "In France.", "fw.kind": "agent"}, scope="fw")
    search = span(2, 1, "search", {"fw.query": "capital of France", "fw.kind": "retriever"}, scope="fw", **more)
    turn = turn_of(agent, search)
    assert (turn.input, turn.output) == ("Where is Paris?", "In France.")
    if isinstance(content, dict) and FOUND in content.values():
        assert [document.id for one in turn.retrievals for document in one.documents] == ["1", "2"]


def test_a_model_s_span_around_a_loop_is_no_call():
    outer = {"fw.kind": "llm", "fw.model": "gpt-4o", "fw.usage.input_tokens": 24, "fw.usage.output_tokens": 10}
    turn = turn_of(
        span(1, 0, "generate", outer, ms=100, scope="fw.core"),
        request(2, made=WANTS),
        span(3, 1, "weather", {"fw.kind": "tool", "fw:input": "{}"}, at=20, scope="fw.core"),
        request(4, given=(ASKED, WANTS, TOLD), at=40),
    )
    assert len(turn.llm_calls) == 2
    assert turn.usage.input_tokens == 24


def test_a_call_that_is_only_prepared_is_none():
    turn = turn_of(
        span(1, 0, "agent", {"fw.kind": "agent"}, ms=100, scope="fw.core"),
        span(2, 1, "prepare", {"fw.kind": "llm", "fw.model": "gpt-4o"}, scope="fw.core"),
        request(3, at=20),
    )
    assert len(turn.llm_calls) == 1


def test_a_request_over_http_is_no_call_beside_a_known_one():
    body = {"http.request.body": json.dumps({"model": "gpt-4o", "messages": [ASKED]}), "http.method": "POST"}
    known = {"openinference.span.kind": "LLM", "llm.model_name": "gpt-4o", "llm.output_messages.0.message.content": "Hello",
             "llm.output_messages.0.message.role": "assistant"}  # fmt: skip
    turn = turn_of(
        span(1, 0, "LLM", known, ms=50),
        span(2, 0, "POST", body, at=60, scope="http"),
        span(3, 1, "POST", body, at=5, scope="http"),
    )
    assert (len(turn.llm_calls), turn.reading) == (1, "exact")


def test_an_application_s_span_around_an_agent_stays_its_own():
    own = span(
        1,
        0,
        "POST /chat",
        {"request.body": json.dumps({"messages": [{"role": "user", "content": "hello"}]})},
        ms=200,
        scope="web",
    )
    turn = turn_of(
        own,
        span(2, 1, "agent", {"fw.kind": "agent", "fw:input": "Hi", "fw:output": "Hello"}, ms=90, scope="fw.core"),
        request(3, 2, at=5),
    )
    assert (turn.input, turn.output) == ("Hi", "Hello")


def test_the_convention_in_a_scope_that_nobody_knows_is_filled_in():
    """If a span has the convention's names and its own names for content, both are read."""
    turn = turn_of(span(1, 0, "chat", {
        "gen_ai.operation.name": "chat", "gen_ai.request.model": "openai/gpt-4o", "mine.input": json.dumps([ASKED]),
        "mine.output": '{"type": "text", "value": "It is 18 °C."}',
    }, scope="mine"))  # fmt: skip
    assert (turn.input, turn.output, turn.llm_calls[0].model, turn.reading) == (
        "Weather in Paris?", "It is 18 °C.", "gpt-4o", "inferred",
    )  # fmt: skip
    assert [one.inferred for one in turn.spans] == [True]


def test_each_argument_may_be_an_attribute_and_so_may_each_field_of_a_result():
    spread = {
        "fw.inputs.order_id": "A-1",
        "fw.inputs.amount": 20,
        "fw.outputs.result.amount": 25,
        "fw.outputs.result.currency": "EUR",
    }
    whole = {"fw.inputs.value": '{"city": "Paris"}', "fw.inputs.mime_type": "json"}
    turn = turn_of(
        span(1, 0, "run", {"fw.span.kind": "agent", "fw.input": "Weather in Paris?"}, scope="fw.core"),
        request(),
        span(3, 1, "pay", {"fw.span.kind": "tool", **spread}, at=20, scope="fw.core"),
        span(4, 1, "weather", {"fw.span.kind": "tool", **whole}, at=30, scope="fw.core"),
    )
    assert [(call.arguments, call.result) for call in turn.tool_calls] == [
        ({"order_id": "A-1", "amount": 20}, {"amount": 25, "currency": "EUR"}),
        ({"city": "Paris"}, None),
    ]


def test_what_came_out_is_counted_from_the_total():
    step = step_of({"fw.span.kind": "llm", "outputs.prompt_tokens": 100, "outputs.total_tokens": 111, "usage.n_requests": 1})
    assert (step.input_tokens, step.output_tokens) == (100, 11)


def test_an_object_with_type_parameters_is_read_as_what_it_shows():
    assert opened("Answer[str](content='Hi.', usage=Usage(total_tokens=3))") == {"content": "Hi.", "usage": {"total_tokens": 3}}


def test_identities_of_another_sdk_do_not_say_who_wrote_a_span():
    identity = {"traceloop.association.properties.session_id": "s-1"}
    turn = turn_of(
        span(1, 0, "run", {"fw.span.kind": "agent", "fw.input": "Weather in Paris?", **identity}, scope="fw.core"),
        request(**identity),
    )
    assert (len(turn.llm_calls), turn.output, turn.conversation_id) == (1, "It is 18 °C.", "s-1")


def test_scores_on_a_span_are_no_words_of_its_agent():
    """If a recording contains scores, their text isn't part of the agent's input or output."""
    scored = [SpanEvent("gen_ai.evaluation.result", {"gen_ai.evaluation.name": "x", "gen_ai.evaluation.score.label": "pass",
                                                     "gen_ai.evaluation.explanation": '{"role": "assistant", "content": "well done"}'})]  # fmt: skip
    run = span(
        1, 0, "invoke_agent", {"gen_ai.operation.name": "invoke_agent", "mine.state": "done"}, events=scored, ms=90, scope="mine"
    )
    turn = turn_of(run, request(2, 1))
    assert turn.output == "It is 18 °C."


def test_a_tool_is_not_named_after_the_method_that_runs_it():
    tool = {"fw.span.kind": "TOOL", "fw:input": '{"city": "Paris"}', "fw:output": "18 °C"}
    turn = turn_of(
        span(1, 0, "run", {"fw.span.kind": "AGENT", "fw:input": "Weather in Paris?"}, scope="fw.core"),
        request(),
        span(3, 1, "weather.__call__", tool, at=20, scope="fw.core"),
    )
    assert [(call.name, call.result) for call in turn.tool_calls] == [("weather", "18 °C")]


def test_function_that_returns_documents_unrequested_is_retrieval():
    found = json.dumps([{"id": "d1", "content": "30 days", "score": 0.9}])
    search = {"kind": "Function", "fw:input": '{"query": "returns?"}', "fw:output": found}
    turn = turn_of(
        span(1, 0, "run", {"fw:input": '{"question": "returns?"}'}, ms=100, scope="fw.core"),
        span(2, 1, "search", search, at=5, scope="fw.core"),
        request(3, at=20),
    )
    assert (turn.tool_calls, turn.retrieved_ids) == ([], ["d1"])


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        ({"input": 27, "output": 14, "total": 105, "cache_read_input_tokens": 64}, (91, 14)),
        ({"input": 26, "output": 9, "total": 99, "output_reasoning": 64}, (26, 73)),
        ({"input": 91, "output": 14, "total": 105, "cache_read_input_tokens": 64}, (91, 14)),
    ],
)
def test_total_shows_which_tokens_counts_exclude(usage, counts):
    step = step_of({"fw.kind": "llm", "fw.usage_details": json.dumps(usage)})
    assert (step.input_tokens, step.output_tokens) == counts


@pytest.mark.parametrize("names", [("hit", "miss"), ("miss", "hit")])
def test_cache_misses_are_no_cached_tokens_in_any_order(names):
    amounts = {"hit": 64, "miss": 27}
    usage = {"prompt_tokens": 91, "completion_tokens": 5, **{f"prompt_cache_{name}_tokens": amounts[name] for name in names}}
    step = step_of({"fw.kind": "llm", "fw.usage": json.dumps(usage)})
    assert (step.input_tokens, step.cached_tokens) == (91, 64)


@pytest.mark.parametrize(
    ("name", "value", "cost"),
    [
        ("fw.cost_details", '{"input": 0.25, "output": 0.5}', 0.75),
        ("fw.cost_details", '{"input": 0.25, "output": 0.5, "total": 1.0}', 1.0),
        ("fw.llm.cost", 0.5, 0.5),
        ("fw.llm.input_cost", 0.5, None),
    ],
)
def test_cost_is_total_or_sum_of_its_kinds(name, value, cost):
    assert step_of({"fw.kind": "llm", "fw.model": "gpt-4o", name: value}).cost_usd == cost


def test_first_token_is_at_completion_start_time():
    started = span(1).start_ns / 1e9
    moment = datetime.datetime.fromtimestamp(started + 1.5, datetime.timezone.utc).isoformat()
    step = step_of({"fw.kind": "llm", "fw.model": "gpt-4o", "fw.completion_start_time": json.dumps(moment)})
    assert step.time_to_first_token_s == pytest.approx(1.5, abs=1e-3)


def test_tool_definitions_may_be_among_messages():
    tool = {"type": "function", "function": {"name": "weather", "parameters": {}}}
    step = step_of({"fw.kind": "llm", "fw.input": json.dumps([ASKED, {"role": "tool", "content": tool}])})
    assert step.tool_definitions == [tool]


@pytest.mark.parametrize(
    "attributes",
    [
        pytest.param({"fw.metadata.lc_agent_name": "support"}, id="metadata"),
        pytest.param({"fw.output": json.dumps({"messages": [{**SAID, "name": "support"}]})}, id="author of the answer"),
        pytest.param({"fw.input": json.dumps({"name": "support", "tools": ["weather"]})}, id="description"),
    ],
)
def test_chain_named_after_its_agent_is_an_agent(attributes):
    step = step_of({"fw.kind": "chain", **attributes}, name="support")
    assert (step.role, step.agent) == ("agent", "support")


@pytest.mark.parametrize(
    ("missing", "server", "others", "role"),
    [
        pytest.param("", True, {}, "llm", id="server with input and answer"),
        pytest.param("fw:input", True, {}, None, id="server without input"),
        pytest.param("fw:output", True, {"fw.usage.output_tokens": 5}, None, id="server without answer"),
        pytest.param("fw:input", False, {}, "llm", id="no server"),
        pytest.param("", False, {"messaging.system": "kafka"}, None, id="broker"),
        pytest.param("", False, {"db.system.name": "redis"}, None, id="store"),
    ],
)
def test_server_or_store_is_a_call_only_with_input_and_answer(missing, server, others, role):
    record = request(**others)
    record.attributes.pop(missing, None)
    record.server = server
    review_roles([record])
    assert read(record).role == role


def test_an_earlier_call_in_an_input_is_not_a_call():
    earlier = {key: json.loads(request().attributes[f"fw:{key}"]) for key in ("input", "output")}
    assert step_of({"fw.input": json.dumps(earlier), "fw.output": "sha256:77ab"}).role is None


def test_json_lines_are_not_a_value():
    text = "\n".join(json.dumps(line) for line in (ASKED, SAID))
    assert opened(text) == text


def test_failure_in_the_output_is_the_error():
    output = {"finishReason": "failed", "error": {"message": "QuotaError: no more tokens"}}
    step = step_of({"fw.kind": "agent", "fw.input": "Hi", "fw.output": json.dumps(output)})
    assert step.error is not None
    assert (step.error.type, step.error.message) == ("QuotaError", "QuotaError: no more tokens")


def test_documents_in_a_message_are_retrieved():
    found = {"documents": [{"content": "30 days.", "metadata": {"id": "returns", "score": 0.9}}]}
    made = [{"role": "assistant", "content": found}]
    search = {"fw.input.messages": json.dumps([ASKED]), "fw.output.messages": json.dumps(made)}
    turn = turn_of(
        span(1, 0, "run", {"fw.kind": "agent"}, scope="fw.core"), request(), span(3, 1, "find", search, scope="fw.core")
    )
    assert (turn.retrievals[0].query, turn.retrieved_ids) == ("Weather in Paris?", ["returns"])


JAVA_STATE = (
    "{input=Weather?, messages=[UserMessage{content='Weather?', messageType=USER}, AssistantMessage [toolCalls=[ToolCall["
    'id=c1, name=weather, arguments={"city": "Paris"}]], textContent=null], ToolResponseMessage{responses=[ToolResponse['
    "id=c1, name=weather, responseData=18 °C (HTTP 200)]], messageType=TOOL}"
)


def calls_of_graph(answer, **failed):
    """Return the turn of a graph whose spans contain Java message lists, around a call without content."""
    state = f"{JAVA_STATE}, AssistantMessage [toolCalls=[], textContent={answer}]]}}"
    return turn_of(
        span(1, 0, "fw.graph", {"fw.ai.state": state}, ms=90, scope="fw"),
        span(2, 1, "node", {"node.before.state": f"{JAVA_STATE}]}}", "node.after.state": state}, ms=80, scope="fw"),
        span(3, 2, "chat m", {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}, ms=70, scope="fw", **failed),
    )


def test_tool_calls_are_in_java_messages_of_a_graph():
    turn = calls_of_graph("Mild.")
    assert (turn.input, turn.output, turn.error) == ("Weather?", "Mild.", None)
    assert [(call.name, call.arguments, call.result) for call in turn.tool_calls] == [
        ("weather", {"city": "Paris"}, "18 °C (HTTP 200)")
    ]


def test_answer_is_a_failure_with_the_failed_call_s_message():
    turn = calls_of_graph("Exception: no quota", error="no quota")
    assert (turn.output, turn.error.message) == (None, "no quota")


@pytest.mark.parametrize(("key", "value", "failed"), [
    ("gen_ai.tool.call.outcome", "error", True), ("fw.tool.status", "FAILED", True), ("gen_ai.tool.call.outcome", "success", False),
])  # fmt: skip
def test_outcome_of_a_tool_shows_its_failure(key, value, failed):
    step = step_of({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "weather", key: value})
    assert (step.error is not None) is failed


@pytest.mark.parametrize(("prompt", "asked"), [
    ("You are a cook.\nSoup?", "Soup?"), ("You saw it.\nIs it red?", "You saw it.\nIs it red?"), ("You are a cook.", "You are a cook."),
])  # fmt: skip
def test_instructions_begin_a_prompt_without_roles(prompt, asked):
    attributes = {"gen_ai.request.model": "m", "gen_ai.prompt": prompt, "gen_ai.completion": "Yes."}
    turn = turn_of(span(1, 0, "completion m", attributes, scope="fw"))
    assert (turn.input, turn.output) == (asked, "Yes.")


def test_content_under_shared_names_leaves_role_to_shape():
    attributes = {
        "fw.tool.name": "weather",
        "langfuse.observation.input": '{"city": "Paris"}',
        "langfuse.observation.output": "18",
    }
    turn = turn_of(
        span(1, 0, "run", {"fw:input": '{"question": "Weather?"}'}, ms=100, scope="fw.core"),
        request(2, 1, made=WANTS),
        span(3, 1, "tool.execute", attributes, at=20, scope="fw.core"),
        request(4, 1, given=(ASKED, WANTS), at=40),
    )
    assert [(call.name, call.arguments) for call in turn.tool_calls] == [("weather", {"city": "Paris"})]


def test_langchain_messages_as_str_have_only_their_text():
    """traceAI writes the state of a graph in this form."""
    asked, answered = "content='Weather?' additional_kwargs={} id='1'", "content=\"It's sunny.\" additional_kwargs={} id='2'"
    tool = "content='18' name='get_weather' tool_call_id='c1'"
    state = json.dumps({"messages": [asked, tool, answered]})
    assert [message.content for message in decode(state, "assistant").messages] == ["Weather?", "It's sunny."]


def test_user_message_answer_and_tokens_are_enough_evidence():
    attributes = {
        "acme.prompt": json.dumps([{"role": "user", "content": "Which trains run on Sunday?"}]), "acme.response": "None.",
        "acme.usage.prompt_tokens": 9, "acme.usage.completion_tokens": 2,
    }  # fmt: skip
    (turn,) = turns_of(span(1, 0, "acme call", attributes, scope="acme"))
    assert (turn.input, turn.output, turn.usage.input_tokens) == ("Which trains run on Sunday?", "None.", 9)
    del attributes["acme.usage.prompt_tokens"], attributes["acme.usage.completion_tokens"]
    assert turns_of(span(1, 0, "acme call", attributes, scope="acme")) == []


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('@ag.type=json:{"city": "Porto"}', {"city": "Porto"}),
        ('@type=json:["Porto"]', ["Porto"]),
        ('@json:[{"role": "user", "content": "Hi"}]', [{"role": "user", "content": "Hi"}]),
        ("@ag.type=json:Porto", "@ag.type=json:Porto"),
        ("@ines: {no JSON}", "@ines: {no JSON}"),
        ('Ask @ines:{"city": "Porto"}', 'Ask @ines:{"city": "Porto"}'),
    ],
)
def test_json_with_a_type_before_it_is_opened(text, value):
    assert opened(text) == value


TOOLS_OF_CALL = json.dumps(
    [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}]
)


@pytest.mark.parametrize(
    ("attributes", "is_turn"),
    [
        ({"in.messages": json.dumps([ASKED]), "in.tools": TOOLS_OF_CALL}, True),
        ({"in.messages": json.dumps([{"role": "system", "content": "Help."}, ASKED]), "in.tools": TOOLS_OF_CALL}, True),
        ({"input.messages": json.dumps([ASKED]), "input.tools": "@json:" + TOOLS_OF_CALL}, True),
        ({"in.messages": json.dumps([ASKED])}, False),
        ({"in.tools": TOOLS_OF_CALL}, False),
        ({"in.messages": json.dumps(["Hi"]), "in.tools": json.dumps(["hammer", "saw"])}, False),
    ],
)
def test_failed_call_with_messages_and_tools_is_a_turn(attributes, is_turn):
    spans = [span(1, name="shop", error="429", scope="fw"), span(2, 1, "chat", attributes, error="429", scope="fw")]
    assert bool(split(spans)) == is_turn


@pytest.mark.parametrize(
    ("name", "attributes", "names"),
    [
        ("weather", {"fw.inputs.city": "Paris"}, ["weather"]),
        ("weather", {"fw.inputs.city": "Paris", "fw.inputs.day": "Monday"}, ["weather"]),
        ("weather", {"fw.arguments.city": "Paris"}, ["weather"]),
        ("weather", {"fw.city": "Paris"}, []),
        ("weather", {}, []),
        ("climate", {"fw.inputs.city": "Paris"}, []),
    ],
)
def test_failed_function_with_arguments_is_a_tool_call(name, attributes, names):
    tool = span(3, 1, name, attributes, at=20, error="timeout", scope="fw.core")
    turn = turn_of(span(1, name="shop", ms=100, scope="fw.core"), request(2, 1, made=WANTS), tool)
    assert [call.name for call in turn.tool_calls or () if call.span_id == f"{3:016x}"] == names


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("agent_id", None), ("agent_name", None), ("tool.agent_id", None),
        ("city", "city"), ("tool.order_id", "order_id"), ("agency", "agency"),
    ],
)  # fmt: skip
def test_attribute_about_the_agent_is_no_argument(key, name):
    assert argument_in(key) == name
