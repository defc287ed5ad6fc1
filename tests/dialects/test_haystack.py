"""Haystack's own spans, and its spans by OpenInference."""

from __future__ import annotations

import json

import pytest

from otel_agenteval.dialects.content import decode
from otel_agenteval.dialects.reader import read, role_of
from tests.support.spans import span, turn_of

SCOPE = "haystack"
OPENINFERENCE = "openinference.instrumentation.haystack"
META = {
    "model": "m-1-2026",
    "finish_reason": "stop",
    "usage": {"prompt_tokens": 7, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 2}},
}


def says(role, *content, meta=None):
    return {"role": role, "meta": meta or {}, "name": None, "content": list(content)}


ASKED = says("user", {"text": "How warm is it?"})
WISH = {"tool_call": {"tool_name": "weather", "arguments": {"city": "Oslo"}, "id": "c1", "extra": None}}
RESULT = {"tool_call_result": {"result": "3 degrees", "origin": WISH["tool_call"], "error": False}}
ANSWER = says("assistant", {"text": "It is 3 degrees."}, meta=META)


def component(span_id, parent_id, kind, given=None, gave=None, **more):
    attributes = {"haystack.component.name": "part", "haystack.component.type": kind}
    for key, value in (("input", given), ("output", gave)):
        if value is not None:
            attributes[f"haystack.component.{key}"] = value if isinstance(value, str) else json.dumps(value)
    return span(span_id, parent_id, "haystack.component.run", attributes, scope=SCOPE, **more)


def pipeline(given, gave=None):
    attributes = {"haystack.pipeline.max_runs_per_component": 100, "haystack.pipeline.input_data": json.dumps(given)}
    if gave is not None:
        attributes["haystack.pipeline.output_data"] = json.dumps(gave)
    return turn_of(
        span(1, 0, "haystack.pipeline.run", attributes, scope=SCOPE, ms=50),
        component(2, 1, "OpenAIChatGenerator", gave={"replies": [ANSWER]}),
    )


@pytest.mark.parametrize(
    ("name", "kind", "role"),
    [
        pytest.param("haystack.pipeline.run", None, "chain", id="a pipeline is a turn when a model works in it"),
        pytest.param("haystack.agent.step", None, "inner", id="a step of its loop"),
        pytest.param("haystack.chat_generator.run", None, "llm", id="a model call inside a component"),
        pytest.param("haystack.agent.hook", None, "inner", id="a hook"),
        pytest.param("haystack.component.run", None, "unknown", id="a component that has not said its type yet"),
        pytest.param("haystack.component.run", "OpenAIChatGenerator", "llm", id="a chat generator"),
        pytest.param("haystack.component.run", "InMemoryBM25Retriever", "retrieval", id="a retriever"),
        pytest.param("haystack.component.run", "ToolInvoker", "chain", id="what calls tools is none of them"),
        pytest.param("haystack.component.run", 5, "unknown", id="a type that is none"),
    ],
)
def test_a_span_s_role(name, kind, role):
    assert role_of({"haystack.component.type": kind} if kind is not None else {}, SCOPE, name) == role


def test_a_streamed_call_s_input_is_the_text_of_a_dict():
    given = (
        "{'messages': [ChatMessage(_role=<ChatRole.USER: 'user'>, _content=[TextContent(text='It\\'s <b>?')], _name=None, _meta={})],"
        " 'streaming_callback': <function stream.<locals>.one at 0x7f00>, 'tools': [Tool(name='a', function=<function a at 0x7f01>)]}"
    )
    assert turn_of(component(1, 0, "OpenAIChatGenerator", given, {"replies": [ANSWER]})).input == "It's <b>?"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        pytest.param({"retriever": {"query": "Why?"}, "prompt_builder": {"question": "Why?"}}, "Why?", id="questions"),
        pytest.param({"llm": {"messages": [says("system", {"text": "Be short."}), ASKED]}}, "How warm is it?", id="messages"),
        pytest.param({"builder": {"template": [ASKED], "template_variables": {"query": "Why?"}}}, "Why?", id="a template"),
        pytest.param({"embedder": {"text": "Why?"}, "retriever": {"top_k": 3}}, "Why?", id="a text to embed"),
        pytest.param({"llm": {"prompt": "Why?", "system_prompt": "Be short."}}, "Why?", id="a prompt"),
        pytest.param({"part": {"topic": "Oslo"}}, "Oslo", id="a text of any other name"),
        pytest.param({}, None, id="nothing"),
    ],
)
def test_the_user_s_words_among_the_inputs(given, words):
    assert pipeline(given).input == words


@pytest.mark.parametrize(
    ("gave", "answer"),
    [
        pytest.param({"llm": {"replies": [ANSWER]}}, "It is 3 degrees.", id="a generator's reply"),
        pytest.param({"llm": {"replies": ["So.", "Or so."]}}, "So.", id="the first of several"),
        pytest.param({"agent": {"messages": [ASKED, says("assistant", WISH), says("tool", RESULT), says("assistant", {"text": "So."})]}}, "So.", id="an agent's last words"),
        pytest.param({"builder": {"answers": [{"type": "GeneratedAnswer", "init_parameters": {"data": "So.", "query": "Why?"}}]}}, "So.", id="an answer"),
        pytest.param({"retriever": {"documents": []}, "llm": {"replies": [says("assistant", {"text": "So."})]}}, "So.", id="beside other outputs"),
        pytest.param({"cleaner": {"value": "So."}}, "So.", id="the only text"),
        pytest.param({}, "It is 3 degrees.", id="written before the run: what the model said"),
        pytest.param(None, "It is 3 degrees.", id="nothing: what the model said"),
    ],
)  # fmt: skip
def test_the_answer_among_the_outputs(gave, answer):
    assert pipeline({"llm": {"messages": [ASKED]}}, gave).output == answer


def test_an_agent_in_a_pipeline_is_one_run_with_the_component_s_name():
    run = span(2, 1, "haystack.agent.run", {"haystack.agent.max_steps": 5}, scope=SCOPE)
    other = span(5, 4, "haystack.agent.run", {"haystack.agent.max_steps": 5}, scope=SCOPE, at=5, ms=2)
    tool = span(4, 2, "haystack.agent.step.tool", {"haystack.tool.name": "ask"}, scope=SCOPE, at=4, ms=4)
    turn = turn_of(component(1, 0, "Agent", ms=50), run, tool, other, span(3, 2, "haystack.agent.step.llm", scope=SCOPE))
    assert [(found.name, found.parent) for found in turn.agent_runs] == [("part", None), ("ask", "part")]


def test_retrieved_documents():
    gave = {"documents": [{"id": "d1", "content": "Text.", "score": 0.5, "title": "T"}]}
    llm = component(3, 1, "OpenAIChatGenerator", gave={"replies": [ANSWER]})
    turn = turn_of(
        span(1, 0, "haystack.pipeline.run", scope=SCOPE, ms=50),
        component(2, 1, "InMemoryBM25Retriever", {"query": "why"}, gave),
        llm,
    )
    assert [(one.query, [(doc.id, doc.content, doc.score) for doc in one.documents]) for one in turn.retrievals] == [
        ("why", [("d1", "Text.", 0.5)])
    ]


REPR = "ChatMessage(_role=<ChatRole.{0}: '{1}'>, _content=[{2}], _name=None, _meta={{'usage': CompletionUsage(completion_tokens=3), 'at': <object>}})"


@pytest.mark.parametrize(
    ("content", "text", "calls", "results"),
    [
        pytest.param("TextContent(text='It\\'s so.')", "It's so.", [], [], id="text"),
        pytest.param("ToolCall(tool_name='weather', arguments={'at': -1}, id='c1', extra=None)", None, [("c1", "weather", {"at": -1})], [], id="a wish"),
        pytest.param("ToolCallResult(result='3', origin=ToolCall(tool_name='weather', arguments={}, id='c1', extra=None), error=False)", None, [], [("c1", "weather", "3")], id="a result"),
        pytest.param("ToolCallResult(result='no', origin=ToolCall(tool_name='weather', arguments={}, id='c1', extra=None), error=True)", None, [], [("c1", "weather", {"error": "no"})], id="an error"),
        pytest.param("ImageContent(base64_image='x', meta=<broken", None, [], [], id="what cannot be read"),
    ],
)  # fmt: skip
def test_openinference_s_messages_are_the_text_of_python_objects(content, text, calls, results):
    given = json.dumps({"messages": [REPR.format("USER", "user", content)]})
    step = read(
        span(1, 0, "OpenAIChatGenerator.run", {"openinference.span.kind": "LLM", "input.value": given}, scope=OPENINFERENCE)
    )
    messages = decode(step.input_messages, "user").messages
    assert [message.content for message in messages] == ([text] if text or calls or results else [])
    assert [(call.call_id, call.name, call.arguments) for message in messages for call in message.tool_calls] == calls
    assert [(found.call_id, found.name, found.result) for message in messages for found in message.tool_results] == results
