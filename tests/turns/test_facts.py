"""Facts that are easily misread: the failed step, agents, tools, and units of time."""

from __future__ import annotations

import json

import pytest

from otel_agenteval import get_metric, load_turns
from otel_agenteval.dialects.reader import read
from otel_agenteval.spans.record import SpanEvent
from tests.support.process import run
from tests.support.recordings import unpack
from tests.support.spans import agent, chat, span, tool, turn_of

LANGCHAIN = "openinference.instrumentation.langchain"
OPENAI_AGENTS = "openinference.instrumentation.openai_agents"
TRACELOOP = "opentelemetry.instrumentation.langchain"


def recorded(name, tmp_path):
    (turn,) = load_turns(unpack(name, tmp_path))
    return turn


def asked_for(name="search", **more):
    return [{"id": "x", "name": name, "arguments": {}, **more}]


# --- times


@pytest.mark.parametrize(
    ("attribute", "scope", "seconds"),
    [
        pytest.param("gen_ai.server.time_to_first_token", "strands.telemetry.tracer", 0.25, id="Strands counts milliseconds"),
        pytest.param("gen_ai.server.time_to_first_token", "acme", 250.0, id="the convention counts seconds"),
        pytest.param("gen_ai.response.time_to_first_chunk", "strands.telemetry.tracer", 250.0, id="and Strands with it"),
    ],
)
def test_the_unit_of_the_time_to_the_first_token(attribute, scope, seconds):
    assert read(chat(1, attributes={attribute: 250}, scope=scope)).time_to_first_token_s == seconds


@pytest.mark.parametrize(
    ("answer", "given", "output"),
    [
        pytest.param("At nine.", "At nine.\n", "At nine.", id="the run adds a line break"),
        pytest.param("At nine.\n", "At nine.\n\n", "At nine.\n", id="to an answer that ends with one"),
        pytest.param("At nine.", "At nine. Bye.\n", "At nine. Bye.\n", id="the run writes another answer"),
    ],
)
def test_line_break_of_a_run_is_not_part_of_the_answer(answer, given, output):
    written = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": given}]}])
    turn = turn_of(agent(1, attributes={"gen_ai.output.messages": written}), chat(2, 1, user="When?", says=answer))
    assert turn.output == output


@pytest.mark.parametrize("answers", [True, False])
def test_run_that_ends_with_a_request_failed_if_its_last_call_did(answers):
    last = {"type": "text", "content": "Sorry."} if answers else {"type": "tool_call", **asked_for()[0]}
    root = agent(1, attributes={"gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [last]}])})
    failed = chat(4, 1, user="When?", at=30, error="overloaded")
    turn = turn_of(root, chat(2, 1, user="When?", calls=asked_for()), tool(3, 1, at=15), failed)
    assert (turn.error is None) == answers


@pytest.mark.parametrize(
    ("prompt", "agents"),
    [
        pytest.param("Pack for Oslo?", ["expert"], id="the tool's argument is another call's user message"),
        pytest.param("When?", [], id="all calls have the turn's user message"),
        pytest.param("Translate.", [], id="another user message"),
    ],
)
def test_tool_without_span_is_an_agent_if_models_read_its_argument(prompt, agents):
    request = [{"id": "x", "name": "expert", "arguments": {"task": "Pack for Oslo?"}}]
    answered = [
        {"role": "user", "parts": [{"type": "text", "content": "When?"}]},
        {"role": "assistant", "parts": [{"type": "tool_call", **request[0]}]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "x", "response": "A coat."}]},
    ]
    turn = turn_of(
        span(1, name="handle", ms=100),
        chat(2, 1, user="When?", calls=request),
        chat(3, 1, user=prompt, says="A coat.", at=20),
        chat(4, 1, messages=answered, says="Take a coat.", at=40),
    )
    assert [call.name for call in turn.tool_calls] == ["expert"]
    assert [run.name for run in turn.agent_runs] == agents


_RECORDED_TWICE = """
import json
from tests.support.spans import span, turn_of

call = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": "{}"}}
said = [{"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": "c1", "content": "29"}]
kind, state = "openinference.span.kind", json.dumps({"messages": [{"role": "user", "content": "When?"}, *said]})
turn = turn_of(
    span(1, 0, "handle", {kind: "CHAIN", "input.value": "When?", "output.value": "At 9."}, ms=100),
    span(2, 1, "bot", {kind: "AGENT", "agent.name": "bot", "output.value": state}, ms=90),
    span(3, 1, "step", {kind: "CHAIN", "output.value": state}, at=1, ms=80),
    span(4, 3, "llm", {kind: "LLM", "llm.model_name": "m"}, at=2),
)
print([(call.name, call.agent) for call in turn.tool_calls])
"""


def test_every_process_reads_the_calls_of_runs_in_the_same_order():
    for seed in ("1", "2"):  # of the hashes of texts, on which the order of a set depends
        found = run(_RECORDED_TWICE, env={"PYTHONHASHSEED": seed})
        assert found.stdout.strip() == "[('search', 'bot')]", found.stderr


def test_agent_in_a_tool_failed_with_an_inner_layer_of_the_tool():
    call = {"gen_ai.tool.call.id": "c1"}
    turn = turn_of(
        agent(1),
        chat(2, 1, user="Bill?", calls=[{"id": "c1", "name": "billing", "arguments": {}}], at=1),
        tool(3, 1, "billing", attributes=call, at=20, ms=40),
        tool(4, 3, "billing", attributes=call, at=21, ms=38, error="HTTP 504"),
        chat(5, 3, user="Look it up.", says="I can't.", at=22),
        chat(6, 1, user="Bill?", says="Sorry.", at=80),
    )
    (failure,) = [call.error for call in turn.tool_calls]
    assert failure.message == "HTTP 504"
    assert [(run.name, run.error) for run in turn.agent_runs] == [("bot", None), ("billing", failure)]


@pytest.mark.parametrize(
    ("inner", "agents"),
    [
        ([tool(4, 3, "billing", at=21, ms=38)], ["bot", "billing"]),
        ([tool(4, 3, "billing", at=21, ms=38), tool(7, 4, "billing", at=21, ms=37)], ["bot", "billing"]),
        ([span(4, 3, "billing", at=21, ms=38)], ["bot", "billing"]),
        ([agent(4, 3, "expert", at=21)], ["bot", "expert"]),
        ([], ["bot"]),
    ],
)
def test_agent_in_a_tool_with_layers_is_found(inner, agents):
    call = chat(5, inner[-1].span_id if inner else 1, user="Look it up.", says="I can't.", at=22)
    first = chat(2, 1, user="Bill?", calls=[{"id": "c1", "name": "billing", "arguments": {}}], at=1)
    turn = turn_of(
        agent(1), first, tool(3, 1, "billing", at=20, ms=40), *inner, call, chat(6, 1, user="Bill?", says="Sorry.", at=80)
    )
    assert [run.name for run in turn.agent_runs] == agents


@pytest.mark.parametrize(
    ("name", "told", "expected"),
    [
        ("Agent", {"subagent_type": "billing"}, "billing"),
        ("Agent", {"description": "Bill", "subagent_type": "billing"}, "billing"),
        ("task", {"subagent_type": "billing"}, "billing"),
        ("expert", {"subagent_type": "billing"}, "expert"),
        ("Agent", {"type": "billing"}, "Agent"),
        ("Agent", {"subagent_type": None}, "Agent"),
    ],
)
def test_agent_named_after_its_tool_has_the_type_in_the_arguments(name, told, expected):
    called = tool(2, 1, "task" if name == "task" else "Agent", attributes={"gen_ai.tool.call.arguments": json.dumps(told)})
    turn = turn_of(agent(1), called, agent(3, 2, name, at=2))
    assert [run.name for run in turn.agent_runs] == ["bot", expected]


def test_spans_say_when_they_began(tmp_path):
    turn = recorded("strands-native/s2.jsonl", tmp_path)
    starts = {one.id: one.start_s for one in turn.spans}
    assert min(starts.values()) == 0.0
    for one in turn.spans:
        if one.parent in starts:
            assert starts[one.parent] <= one.start_s
        assert one.start_s + one.duration_s <= turn.duration_s + 0.001
    assert type(turn).from_dict(turn.to_dict()).spans == turn.spans
    assert {one.inferred for one in turn.spans} == {None}
    early = turn_of(agent(1, at=10.0), chat(2, 1, at=9.5), tool(3, 1, at=12.25))
    assert sorted((one.id[-1], one.start_s) for one in early.spans) == [("1", 0.0), ("2", -0.0005), ("3", 0.00225)]


# --- failures


@pytest.mark.parametrize(
    "kind",
    ["ParentCommand", "langgraph.errors.ParentCommand", "GraphInterrupt", "langgraph.errors.NodeInterrupt", "GeneratorExit"],
)
def test_an_exception_that_steers_is_no_failure(kind):
    raised = [SpanEvent("exception", attributes={"exception.type": kind, "exception.message": "Command(goto='billing')"})]
    assert read(agent(1, error="Command(goto='billing')", events=raised)).error is None
    assert read(agent(1, error="Command(goto='billing')", attributes={"error.type": kind})).error is None


def test_an_agent_that_left_the_turn_to_another_has_not_failed(tmp_path):
    turn = recorded("langchain-otel_genai/s7h.jsonl", tmp_path)
    assert [(run.name, run.error) for run in turn.agent_runs] == [("triage_agent", None), ("billing_agent", None)]


def chain(number, parent, name, *, at, failure=None):
    return span(number, parent, name, {"openinference.span.kind": "CHAIN"}, scope=OPENAI_AGENTS, ms=5, at=at, error=failure)


@pytest.mark.parametrize(
    ("later", "failed"),
    [
        pytest.param([], True, id="nothing else"),
        pytest.param([chain(5, 2, "retry", at=20)], False, id="the agent tried again"),
        pytest.param([chat(5, 2, user="Go", says="Done.", at=20)], False, id="the agent answered"),
    ],
)
def test_an_agent_without_status_failed_if_its_last_part_did(later, failed):
    """OpenAI Agents writes a guardrail's stop only to the span around the agent's iteration."""
    kind = {"openinference.span.kind": "AGENT"}
    root = span(1, 0, "Agent workflow", kind, scope=OPENAI_AGENTS, ms=100)
    inner = span(2, 1, "triage", {**kind, "agent.name": "triage", "graph.node.id": "triage"}, scope=OPENAI_AGENTS, ms=90)
    stopped = chain(3, 2, "turn", at=1, failure="Guardrail tripwire triggered: {'guardrail': 'scope'}")
    turn = turn_of(root, inner, stopped, *later)
    assert (turn.error is not None) == failed
    assert get_metric("code_content_filtered").evaluate(turn).passed is (False if failed else None)


@pytest.mark.parametrize(
    ("failure", "blamed"),
    [
        ("RuntimeError: database connection lost", True),
        ("MaxTurnsExceeded: Max turns (10) exceeded", False),
        ("GraphRecursionError: Recursion limit of 25 reached", False),
        ("UsageLimitExceeded: The next request would exceed the request_limit of 5", False),
        ("RateLimitError: Error code: 429 - slow down", False),
        ("CancelledError: ", False),
    ],
)
def test_a_turn_s_failure_is_its_last_tool_s_unless_it_says_otherwise(failure, blamed):
    root = span(1, 0, "handle", {}, ms=100, error=failure)
    (call,) = turn_of(root, chat(2, 1, user="Go", calls=asked_for(), at=1)).tool_calls
    assert (call.error is not None) == blamed


FLAGGED = [
    pytest.param({"content": [{"type": "text", "text": "no such order"}], "isError": True}, id="the Model Context Protocol's"),
    pytest.param({"toolUseId": "x", "status": "error", "content": [{"text": "no such order"}]}, id="Bedrock's"),
    pytest.param({"type": "tool_result", "content": "no such order", "is_error": True}, id="Anthropic's"),
]


@pytest.mark.parametrize("result", FLAGGED)
@pytest.mark.parametrize("written", [json.dumps, dict])
def test_a_mark_of_failure_on_a_result_counts(result, written):
    ran = tool(3, 1, attributes={"gen_ai.tool.call.result": written(result)}, at=12)
    (call,) = turn_of(agent(1), chat(2, 1, user="Go", says="x", at=1), ran).tool_calls
    assert call.error is not None


def test_a_result_that_only_speaks_of_errors_is_none():
    ran = tool(3, 1, attributes={"gen_ai.tool.call.result": '{"content": "2 errors found", "status": "success"}'}, at=12)
    assert turn_of(agent(1), chat(2, 1, user="Go", says="x", at=1), ran).tool_calls[0].error is None


# --- who is an agent


@pytest.mark.parametrize("name", ["unknown", "OpenAI Agent"])
def test_an_unknown_agent_has_no_name(name):
    assert turn_of(agent(1, name=name), chat(2, 1, user="Go", says="x")).agent is None


def graph(nodes, **more):
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "x", "gen_ai.workflow.nodes": nodes, **more}
    return span(1, 0, "invoke_agent x", attributes, scope=TRACELOOP)


@pytest.mark.parametrize(
    ("record", "role", "name", "workflow"),
    [
        pytest.param(graph('["model", "tools"]'), "agent", "x", None, id="an agent's loop"),
        pytest.param(graph('["chatbot", "tools"]'), "agent", "x", None, id="a loop with a node of another name"),
        pytest.param(graph('["plan", "write"]'), "workflow", None, "x", id="a graph of steps"),
        pytest.param(graph(("plan", "write")), "workflow", None, "x", id="the same as a list"),
        pytest.param(graph("no list"), "agent", "x", None, id="nodes that cannot be read"),
    ],
)
def test_a_graph_is_an_agent_by_its_nodes(record, role, name, workflow):
    step = read(record)
    assert (step.role, step.agent, step.workflow) == (role, name, workflow)


def test_the_agent_of_a_tool_call_stands_in_langgraph_s_metadata():
    metadata = {
        "openinference.span.kind": "TOOL",
        "metadata": json.dumps({"lc_agent_name": "Bj\u00f6rn", "langgraph_node": "tools"}),
    }
    root = span(1, 0, "graph", {"openinference.span.kind": "CHAIN"}, scope=LANGCHAIN, ms=100)
    turn = turn_of(root, chat(2, 1, user="Go", says="x"), span(3, 1, "search", metadata, scope=LANGCHAIN, at=20))
    assert turn.tool_calls[0].agent == "Bj\u00f6rn"


def test_a_class_and_its_method_name_no_agent():
    kinds = {"traceloop.span.kind": "workflow", "traceloop.entity.name": "FunctionAgent.workflow"}
    assert read(span(1, 0, "FunctionAgent.workflow", kinds, scope="opentelemetry.instrumentation.llamaindex")).agent is None


# --- hand-offs


@pytest.mark.parametrize(
    ("recording", "handoff"),
    [
        ("openai_agents-traceloop/s7h.jsonl", ("triage_agent", "billing_agent", True)),  # written as "unknown"
        ("openai_agents-otel_v2/s7h.jsonl", ("triage_agent", "billing_agent", True)),
        ("openai_agents-otel_genai/s7h.jsonl", ("triage_agent", "billing_agent", True)),
        ("langchain-traceloop/s7h.jsonl", ("triage_agent", "billing_agent", True)),
    ],
)
def test_the_next_agent_s_run_says_that_a_hand_off_came_through(recording, handoff, tmp_path):
    (found,) = recorded(recording, tmp_path).handoffs
    assert (found.from_, found.to, found.success) == handoff


def handed(*more):
    return turn_of(agent(1, name="a"), chat(2, 1, user="Go", calls=asked_for("transfer_to_billing_agent"), at=1), *more).handoffs


def test_a_hand_off_to_an_agent_that_never_ran_is_not_known_to_have_come_through():
    assert [(handoff.to, handoff.success) for handoff in handed()] == [("billing_agent", None)]


def test_agents_are_known_by_the_names_of_the_tools_that_lead_to_them():
    assert [handoff.success for handoff in handed(agent(5, 1, name="Billing Agent", at=40, ms=10))] == [True]


def test_without_content_a_tool_s_span_shows_a_hand_off():
    ran = tool(3, 1, "transfer_to_b", at=20)
    (found,) = turn_of(agent(1, name="a"), chat(2, 1, at=1), ran, agent(4, 1, name="b", at=40, ms=10)).handoffs
    assert (found.from_, found.to, found.success) == ("a", "b", True)


# --- tools


def definitions(*names):
    return json.dumps([{"name": name, "parameters": {}} for name in names])


def test_a_sub_agent_s_tools_are_known_from_its_own_span():
    root = agent(1, attributes={"gen_ai.tool.definitions": definitions("ask_billing")})
    below = agent(3, 2, name="billing", at=10, ms=20, attributes={"gen_ai.tool.definitions": definitions("refund")})
    turn = turn_of(root, tool(2, 1, "ask_billing", at=5, ms=50), below, chat(4, 3, user="Go", says="x", at=12))
    assert [each["name"] for each in turn.tool_definitions] == ["ask_billing", "refund"]


def test_a_tool_that_gives_the_answer_its_form_is_no_tool_of_the_agent():
    root = agent(1, attributes={"gen_ai.tool.definitions": definitions("search", "final_result", "final_result_Person")})
    turn = turn_of(root, chat(2, 1, user="Go", calls=asked_for("final_result_Person"), at=1), chat(3, 1, says="x", at=20))
    assert ([each["name"] for each in turn.tool_definitions], turn.tool_calls) == (["search"], [])


@pytest.mark.parametrize(
    "recording", ["strands-native/s14.jsonl", "strands-openinference/s14.jsonl", "strands-native_latest_attrs/s14.jsonl"]
)
def test_so_is_one_that_is_named_after_the_form(recording, tmp_path):
    turn = recorded(recording, tmp_path)
    assert (turn.tool_calls, json.loads(turn.output)) == ([], {"name": "Ada Lovelace", "age": 36})


# --- content


def test_a_summary_of_reasoning_is_read_as_text(tmp_path):
    assert recorded("openai_sdk-traceloop-responses/s19.jsonl", tmp_path).reasoning == "17*20=340, 17*3=51, 340+51=391."


def test_media_on_an_agent_s_span_are_attachments():
    parts = [{"type": "text", "content": "What is it?"}, {"type": "uri", "modality": "image", "uri": "https://x.example/a.png"}]
    given = {"gen_ai.input.messages": json.dumps([{"role": "user", "parts": parts}])}
    for turn in (turn_of(agent(1, attributes=given)), turn_of(agent(1, attributes=given), chat(2, 1, says="A cat."))):
        assert turn.attachments == [{"modality": "image", "uri": "https://x.example/a.png"}]


LOGPROBS = [{"token": "Hi", "logprob": -0.1}, {"token": "!", "logprob": -0.5}]


@pytest.mark.parametrize(
    "answered",
    [
        pytest.param({"choices": [{"logprobs": {"content": LOGPROBS}, "message": {"role": "assistant"}}]}, id="chat completions"),
        pytest.param({"choices": [{"logprobs": {"token_logprobs": [-0.1, -0.5]}}]}, id="completions"),
        pytest.param({"output": [{"content": [{"type": "output_text", "text": "Hi!", "logprobs": LOGPROBS}]}]}, id="responses"),
        pytest.param({"generations": [[{"generation_info": {"logprobs": {"content": LOGPROBS}}}]]}, id="LangChain"),
    ],
)
def test_logprobs_in_a_model_s_answer_are_the_turn_s(answered):
    said = {"openinference.span.kind": "LLM", "llm.model_name": "m", "output.value": json.dumps(answered)}
    assert turn_of(span(1, 0, "ChatCompletion", said, scope="openinference.instrumentation.openai")).logprobs == [-0.1, -0.5]


def test_the_ai_sdk_has_them_in_its_provider_s_metadata():
    said = {
        "ai.operationId": "ai.generateText.doGenerate", "ai.response.text": "Hi!",
        "ai.response.providerMetadata": json.dumps({"openai": {"logprobs": LOGPROBS}}),
    }  # fmt: skip
    assert turn_of(span(1, 0, "ai.generateText.doGenerate", said, scope="ai")).logprobs == [-0.1, -0.5]


@pytest.mark.parametrize(
    "answered",
    [
        '{"choices": [{"logprobs": null}]}',
        '{"logprobs": [{"token": "x"}], "y": "\\"logprob\\""}',
        "logprob",
        '{"logprob": 5}',
        '{"logprobs": 5, "logprob": 5}',
    ],
)
def test_without_them_they_are_unknown(answered):
    said = {"openinference.span.kind": "LLM", "llm.model_name": "m", "output.value": answered}
    assert turn_of(span(1, 0, "ChatCompletion", said, scope="openinference.instrumentation.openai")).logprobs is None


# --- what a dialect leaves empty


OTHERS = {"scope": "openinference.instrumentation.acme"}


@pytest.mark.parametrize(
    ("attributes", "arguments", "result"),
    [
        pytest.param({"app.result": "21 °C", "app.arguments": '{"city": "Rome"}'}, {"city": "Rome"}, "21 °C", id="both"),
        pytest.param(
            {"gen_ai.tool.call.arguments": '{"city": "Rome"}', "tool.output": "21"}, {"city": "Rome"}, "21", id="the result"
        ),
        pytest.param({"tool.output.mime_type": "text/plain"}, None, None, id="only a property of the result"),
    ],
)
def test_a_tool_s_content_is_found_under_any_name(attributes, arguments, result):
    turn = turn_of(agent(1, **OTHERS), tool(2, 1, attributes=attributes, **OTHERS))
    assert [(call.arguments, call.result) for call in turn.tool_calls] == [(arguments, result)]


def test_an_answer_is_found_under_any_name():
    turn = turn_of(agent(1, **OTHERS), chat(2, 1, user="hi", attributes={"acme.response": "Hello."}, **OTHERS))
    assert (turn.input, turn.output, turn.reading) == ("hi", "Hello.", "inferred")


@pytest.mark.parametrize(
    ("attributes", "found"),
    [
        ({"acme.session.id": "s"}, "s"), ({"app.threadId": "t"}, "t"), ({"metadata": '{"session_id": "m"}'}, "m"),
        ({"a.thread_id": "t", "b.conversation.id": "c"}, "c"), ({"thread.id": 7}, None), ({"mcp.session.id": "m"}, None),
        ({"session.id": "[Scrubbed due to 'session']"}, None), ({"tags.metadata": '{"team": "a"}'}, None),
    ],
)  # fmt: skip
def test_a_conversation_is_found_on_any_span(attributes, found):
    assert turn_of(agent(1), chat(2, 1, user="hi", says="Hi."), span(3, 2, attributes=attributes)).conversation_id == found
