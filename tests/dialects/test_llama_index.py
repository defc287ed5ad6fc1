"""LlamaIndex's spans by OpenInference, OpenLLMetry and its own package."""

from __future__ import annotations

import json

import pytest

from otel_agenteval.dialects.payloads import unwrap_result
from otel_agenteval.dialects.reader import role_of
from otel_agenteval.spans.record import SpanEvent
from tests.support.spans import chat, span, turn_of, turns_of

OPENINFERENCE = "openinference.instrumentation.llama_index"
TRACELOOP = "opentelemetry.instrumentation.llamaindex"
NATIVE = "llamaindex.opentelemetry.tracer"


def stop(rest: str) -> str:
    """Return the ``repr`` of a workflow's last event."""
    message = "ChatMessage(role=<MessageRole.ASSISTANT: 'assistant'>, additional_kwargs={}, blocks=[TextBlock(block_type='text', "
    return f"StopEvent(result=AgentOutput(response={message}{rest}"


@pytest.mark.parametrize(
    ("name", "role"),
    [
        pytest.param("FunctionAgent.run", "agent", id="an agent"),
        pytest.param("AgentWorkflow.run", "workflow", id="several agents"),
        pytest.param("MyFlow.run", "chain", id="an application's workflow counts when it holds a model call"),
        pytest.param("OpenAI._prepare_chat_with_tools", "inner", id="a preparation"),
        pytest.param("ContextChatEngine.chat", "chain", id="an engine's call is no model's"),
        pytest.param("RetrieverQueryEngine._query", "inner", id="an engine's inside"),
        pytest.param("VectorIndexRetriever.aretrieve", "retrieval", id="a retriever"),
        pytest.param("OpenAIEmbedding.get_query_embedding", "embedding", id="an embedding"),
        pytest.param("SimilarityPostprocessor.postprocess_nodes", "inner", id="a filter"),
        pytest.param("BaseWorkflowAgent.call_tool", "tool", id="an agent's call of a tool"),
        pytest.param("CompactAndRefine.synthesize", "inner", id="anything else"),
    ],
)
def test_the_own_package_says_everything_in_the_name(name, role):
    assert role_of({}, NATIVE, name) == role


TASK = {"traceloop.span.kind": "task"}


@pytest.mark.parametrize(
    ("attributes", "name", "role"),
    [
        pytest.param({"traceloop.span.kind": "workflow"}, "FunctionAgent.workflow", "agent", id="an agent"),
        pytest.param({"traceloop.span.kind": "workflow"}, "AgentWorkflow.workflow", "workflow", id="several agents"),
        pytest.param({"traceloop.span.kind": "workflow"}, "RetrieverQueryEngine.workflow", "workflow", id="an engine"),
        pytest.param(TASK, "BaseWorkflowAgent.task", "inner", id="a step"),
        pytest.param({**TASK, "tool.name": "search"}, "BaseWorkflowAgent.task", "tool", id="a step that calls a tool"),
        pytest.param({**TASK, "tool.name": "handoff"}, "AgentWorkflow.task", "handoff", id="a step that hands off"),
        pytest.param({**TASK, "traceloop.entity.output": "{}"}, "FunctionTool.task", "tool", id="a tool"),
        pytest.param(TASK, "FunctionTool.task", "inner", id="a tool that does not say its name"),
        pytest.param({**TASK, "gen_ai.operation.name": "chat"}, "OpenAILike.task", "llm", id="a model call"),
        pytest.param(
            {**TASK, "traceloop.entity.input": '{"str_or_query_bundle": "q"}'},
            "BM25Retriever.task",
            "retrieval",
            id="a retriever",
        ),
        pytest.param(
            {**TASK, "traceloop.entity.input": '{"query_bundle": {}}'}, "BM25Retriever.task", "inner", id="a retriever's inside"
        ),
        pytest.param({**TASK, "traceloop.entity.input": 5}, "BM25Retriever.task", "retrieval", id="an input of the wrong type"),
        pytest.param(TASK, "LLMRerank.task", "rerank", id="a reranker"),
    ],
)
def test_openllmetry_says_the_class(attributes, name, role):
    assert role_of(attributes, TRACELOOP, name) == role


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        pytest.param(stop("text='Yes.')]), structured..."), "Yes.", id="whole"),
        pytest.param(stop('text="It\'s.")]), structured...'), "It's.", id="quoted otherwise"),
        pytest.param(stop("text='Yes, I do th..."), None, id="cut"),
        pytest.param(stop("text='Yes.'), ImageBlock(block_type..."), None, id="one of several"),
        pytest.param("StopEvent(result=5)", None, id="another result"),
    ],
)  # fmt: skip
def test_a_cut_repr_is_no_answer(text, answer):
    root = span(
        1,
        name="FunctionAgent.run",
        attributes={"openinference.span.kind": "CHAIN", "output.value": text},
        scope=OPENINFERENCE,
        ms=90,
    )
    assert turn_of(root, chat(2, 1, says="What the model said.")).output == (answer or "What the model said.")


@pytest.mark.parametrize(
    ("value", "output"),
    [
        pytest.param("Yes.", "Yes.", id="a text"),
        pytest.param('{"response": "Yes.", "source_nodes": []}', "Yes.", id="a response"),
        pytest.param('{"response": "Yes.", "sources": [], "chat_stream": null}', "Yes.", id="a chat's response"),
        pytest.param('{"response": "", "chat_stream": "<generator object>"}', "Read later.", id="a chat that streams"),
        pytest.param('{"response_gen": "<generator object>", "source_nodes": []}', "Read later.", id="a response that streams"),
    ],
)
def test_what_an_engine_gives_back(value, output):
    attributes = {"openinference.span.kind": "CHAIN", "output.value": value}
    root = span(1, name="RetrieverQueryEngine.query", attributes=attributes, scope=OPENINFERENCE, ms=90)
    assert turn_of(root, chat(2, 1, says="Read later.")).output == output


def test_the_own_package_s_tool_call_is_one_with_the_tool_below_it():
    summary = {"llamaindex.step.input_summary": "ToolCall(tool_name='search', tool_kwargs={'q': 'x'}, tool_id='c1')"}
    root = span(1, name="FunctionAgent.run", scope=NATIVE, ms=90)
    call = span(2, 1, "BaseWorkflowAgent.call_tool", summary, scope=NATIVE, at=10)
    failed = span(3, 2, "FunctionTool.acall", summary, scope=NATIVE, at=11, ms=2, error="no such page")
    (found,) = turn_of(root, call, failed, chat(4, 1, at=30)).tool_calls
    assert (found.name, found.arguments, found.call_id) == ("search", {"q": "x"}, "c1")
    assert found.error is not None
    assert found.error.message == "no such page"


MESSAGES = [
    {"role": "system", "additional_kwargs": {}, "blocks": [{"block_type": "text", "text": "Be kind."}]},
    {"role": "user", "additional_kwargs": {}, "blocks": [{"block_type": "text", "text": "Why?"}]},
]


def test_a_query_in_span_events():
    node = {"node": {"id_": "n1", "text": "A text.", "metadata": {"title": "t"}}, "score": 0.5}
    found = SpanEvent("RetrievalEndEvent", {"str_or_query_bundle.query_str": "q", "nodes": json.dumps([node])})
    asked = SpanEvent("QueryStartEvent", {"query": "Why?"})
    answered = SpanEvent("QueryEndEvent", {"response.response": "So."})
    turn = turn_of(
        span(1, name="RetrieverQueryEngine.query", scope=NATIVE, ms=90, events=[asked, answered]),
        span(2, 1, "VectorIndexRetriever.retrieve", scope=NATIVE, events=[found]),
        span(3, 2, "VectorIndexRetriever._retrieve", scope=NATIVE), chat(4, 1, says="no"),
    )  # fmt: skip
    assert (turn.input, turn.output, turn.context, turn.retrieved_ids) == ("Why?", "So.", ["A text."], ["n1"])
    assert [retrieval.query for retrieval in turn.retrievals] == ["q"]


@pytest.mark.parametrize(
    ("raw", "result"),
    [
        pytest.param({"blocks": [{"text": "found"}], "raw_output": "found", "is_error": False}, "found", id="a text"),
        pytest.param({"blocks": [{"text": "{'a': 1}"}], "raw_output": {"a": 1}, "is_error": False}, {"a": 1}, id="an object"),
        pytest.param({"blocks": [{"text": "found"}], "raw_output": {"source_nodes": []}}, "found", id="an engine's response"),
        pytest.param(
            {"tool_name": "s", "tool_output": {"blocks": [{"text": "found"}], "raw_output": 1}}, "found", id="in an event"
        ),
    ],
)
def test_tool_outputs(raw, result):
    assert unwrap_result(json.dumps(raw)) == result


def test_a_stream_that_failed_under_its_reader():
    root = span(1, name="FunctionAgent.run", scope=NATIVE, ms=90, error="Error code: 429")
    step = span(2, 1, "BaseWorkflowAgent.run_agent_step", scope=NATIVE, ms=80, error="Error code: 429")
    turn = turn_of(root, step, span(3, 2, "OpenAI.astream_chat", scope=NATIVE, at=5, ms=1))
    assert turn.error is not None
    assert [call.error is not None for call in turn.llm_calls] == [True]


def test_an_agent_s_span_that_ends_before_its_steps():
    root = span(1, name="FunctionAgent.workflow", attributes={"traceloop.span.kind": "workflow"}, scope=TRACELOOP, ms=30)
    steps = [span(n, 1, "BaseWorkflowAgent.task", TASK, scope=TRACELOOP, at=at, ms=20) for n, at in ((2, 0), (3, 50), (4, 80))]
    turn = turn_of(root, *steps, chat(5, 2, at=5), chat(6, 4, at=85, says="Done."))
    assert (len(turn.llm_calls), turn.output) == (2, "Done.")


def test_a_model_call_that_lost_its_parent_goes_on_where_the_turn_stopped():
    root = span(1, name="FunctionAgent.workflow", attributes={"traceloop.span.kind": "workflow"}, scope=TRACELOOP, ms=30)
    asked = chat(
        2, 1, user="Why?", calls=[{"id": "c1", "name": "search"}], attributes={"gen_ai.response.finish_reasons": ["tool_call"]}
    )
    prompt = [{"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "found"}]}]
    lost = chat(3, 99, messages=prompt, at=50, error="Error code: 500")
    turn = turn_of(root, asked, lost)
    assert (len(turn.llm_calls), turn.error is not None) == (2, True)


def test_runs_that_miss_the_same_parent_are_turns_each():
    runs = [
        span(n, 99, "FunctionAgent.workflow", {"traceloop.span.kind": "workflow"}, scope=TRACELOOP, at=n, ms=50) for n in (1, 2)
    ]
    assert len(turns_of(*runs, chat(3, 1, at=5), chat(4, 2, at=6))) == 2


def test_a_streamed_call_and_the_sdk_s_span_beside_it_are_one():
    root = span(1, name="FunctionAgent.run", scope=NATIVE, ms=90)
    step = span(2, 1, "BaseWorkflowAgent.run_agent_step", scope=NATIVE, ms=80)
    start = SpanEvent("LLMChatStartEvent", {"messages": json.dumps(MESSAGES), "model_dict.model_name": "m"})
    framework = span(3, 2, "OpenAI.astream_chat", scope=NATIVE, at=5, ms=1, events=[start])
    sdk = chat(4, 2, says="So.", at=10, ms=30, attributes={"gen_ai.response.model": "m-1", "gen_ai.usage.output_tokens": 3})
    turn = turn_of(root, step, framework, sdk)
    assert [(call.output_tokens, call.error) for call in turn.llm_calls] == [(3, None)]
    assert turn.output == "So."
