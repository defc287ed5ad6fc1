"""LlamaIndex's spellings → one step, from OpenInference, OpenLLMetry and LlamaIndex's own package."""

from __future__ import annotations

import json

import pytest

from otel_agenteval.dialects.content import arguments_of, decode, unwrap_result
from otel_agenteval.dialects.otel_genai import documents
from otel_agenteval.dialects.reader import read, role_of
from otel_agenteval.spans.record import SpanEvent
from tests.support.spans import chat, span, turn_of, turns_of

OPENINFERENCE = "openinference.instrumentation.llama_index"
TRACELOOP = "opentelemetry.instrumentation.llamaindex"
NATIVE = "llamaindex.opentelemetry.tracer"


def stop(rest: str) -> str:
    """The ``repr`` of a workflow's last event."""
    message = "ChatMessage(role=<MessageRole.ASSISTANT: 'assistant'>, additional_kwargs={}, blocks=[TextBlock(block_type='text', "
    return f"StopEvent(result=AgentOutput(response={message}{rest}"


@pytest.mark.parametrize(
    ("name", "role"),
    [
        pytest.param("FunctionAgent.run", "agent", id="an agent"),
        pytest.param("ReActAgent.run", "agent", id="another agent"),
        pytest.param("AgentWorkflow.run", "workflow", id="several agents"),
        pytest.param("MyFlow.run", "chain", id="an application's workflow counts when it holds a model call"),
        pytest.param("AgentWorkflow.run_agent_step", "inner", id="a step"),
        pytest.param("OpenAI.astream_chat", "llm", id="a model call"),
        pytest.param("Anthropic.complete", "llm", id="another model call"),
        pytest.param("OpenAI._prepare_chat_with_tools", "inner", id="a preparation"),
        pytest.param("ContextChatEngine.chat", "chain", id="an engine's call is no model's"),
        pytest.param("RetrieverQueryEngine.query", "chain", id="an engine"),
        pytest.param("RetrieverQueryEngine._query", "inner", id="an engine's inside"),
        pytest.param("VectorIndexRetriever.aretrieve", "retrieval", id="a retriever"),
        pytest.param("VectorIndexRetriever._aretrieve", "inner", id="a retriever's inside"),
        pytest.param("OpenAIEmbedding.get_query_embedding", "embedding", id="an embedding"),
        pytest.param("LLMRerank.postprocess_nodes", "rerank", id="a reranker"),
        pytest.param("SimilarityPostprocessor.postprocess_nodes", "inner", id="a filter"),
        pytest.param("FunctionTool.acall", "tool", id="a tool"),
        pytest.param("BaseWorkflowAgent.call_tool", "tool", id="an agent's call of a tool"),
        pytest.param("CompactAndRefine.synthesize", "inner", id="anything else"),
    ],
)
def test_the_own_package_says_everything_in_the_name(name, role):
    assert role_of({}, NATIVE, name) == role


@pytest.mark.parametrize(
    ("attributes", "name", "role"),
    [
        pytest.param({"openinference.span.kind": "CHAIN"}, "FunctionAgent.run", "agent", id="an agent"),
        pytest.param({"openinference.span.kind": "CHAIN"}, "AgentWorkflow.run", "workflow", id="several agents"),
        pytest.param({"openinference.span.kind": "CHAIN"}, "BaseWorkflowAgent.call_tool", "inner", id="a step"),
        pytest.param({"openinference.span.kind": "CHAIN"}, "RetrieverQueryEngine.query", "chain", id="an engine"),
        pytest.param({"openinference.span.kind": "LLM"}, "OpenAI.chat", "llm", id="a model call"),
        pytest.param({"openinference.span.kind": "LLM"}, "OpenAI._prepare_chat_with_tools", "inner", id="a preparation"),
        pytest.param({"openinference.span.kind": "TOOL"}, "FunctionTool.acall", "tool", id="a tool"),
        pytest.param(
            {"openinference.span.kind": "TOOL", "tool.name": "handoff"}, "FunctionTool.acall", "handoff", id="a hand-off"
        ),
    ],
)
def test_openinference_says_the_kind_beside(attributes, name, role):
    assert role_of(attributes, OPENINFERENCE, name) == role


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


def test_a_workflow_s_result_as_json():
    message = {"role": "assistant", "additional_kwargs": {}, "blocks": [{"block_type": "text", "text": "Yes."}]}
    value = json.dumps({"result": {"response": message, "current_agent_name": "a"}})
    attributes = {"traceloop.span.kind": "workflow", "traceloop.entity.output": value}
    root = span(1, name="FunctionAgent.workflow", attributes=attributes, scope=TRACELOOP, ms=90)
    assert turn_of(root, chat(2, 1, says="no")).output == "Yes."


@pytest.mark.parametrize(
    ("scope", "attributes", "events"),
    [
        pytest.param(
            OPENINFERENCE,
            {"openinference.span.kind": "CHAIN", "input.value": json.dumps({"ev": "AgentSetup(input=[], current_agent_name='a')"})},
            [], id="in the event that came in",
        ),
        pytest.param(
            TRACELOOP, {**TASK, "traceloop.entity.output": json.dumps({"input": [], "current_agent_name": "a"})}, [], id="in the one that went out"
        ),
        pytest.param(NATIVE, {"llamaindex.step.input_summary": "AgentInput(current_agent_name='a')"}, [], id="in a summary"),
        pytest.param(NATIVE, {}, [SpanEvent("step.output", {"output": "AgentSetup(current_agent_name='a')"})], id="in a span event"),
    ],
)  # fmt: skip
def test_an_agent_s_steps_name_it(scope, attributes, events):
    root = span(
        1, name="FunctionAgent.workflow" if scope == TRACELOOP else "FunctionAgent.run", scope=scope, ms=90,
        attributes={"openinference.span.kind": "CHAIN"} if scope == OPENINFERENCE else {"traceloop.span.kind": "workflow"},
    )  # fmt: skip
    name = "BaseWorkflowAgent.task" if scope == TRACELOOP else "BaseWorkflowAgent.run_agent_step"
    steps = [span(n, 1, name, attributes, scope=scope, events=events, at=n) for n in (2, 3)]
    turn = turn_of(root, *steps, chat(4, 3, at=5))
    assert turn.agent == "a"
    assert [run.name for run in turn.agent_runs] == ["a"]


def test_agents_of_a_workflow_take_turns():
    kind = {"openinference.span.kind": "CHAIN"}
    root = span(1, name="AgentWorkflow.run", attributes=kind, scope=OPENINFERENCE, ms=90)
    steps = [
        span(
            n,
            1,
            "AgentWorkflow.run_agent_step",
            {**kind, "input.value": f"current_agent_name='{name}'"},
            scope=OPENINFERENCE,
            at=n,
        )
        for n, name in ((2, "triage"), (4, "billing"), (5, "billing"))
    ]
    given = {
        "openinference.span.kind": "TOOL",
        "tool.name": "handoff",
        "input.value": '{"kwargs": {"to_agent": "billing", "reason": "r"}}',
    }
    handoff = span(3, 1, "FunctionTool.acall", given, scope=OPENINFERENCE, at=3)
    turn = turn_of(root, *steps, handoff, chat(6, 5, at=6))
    assert [run.name for run in turn.agent_runs] == ["triage", "billing"]
    assert [handoff.to for handoff in turn.handoffs] == ["billing"]
    assert turn.tool_calls == []


def test_the_own_package_s_tool_call_is_one_with_the_tool_below_it():
    summary = {"llamaindex.step.input_summary": "ToolCall(tool_name='search', tool_kwargs={'q': 'x'}, tool_id='c1')"}
    root = span(1, name="FunctionAgent.run", scope=NATIVE, ms=90)
    call = span(2, 1, "BaseWorkflowAgent.call_tool", summary, scope=NATIVE, at=10)
    failed = span(3, 2, "FunctionTool.acall", summary, scope=NATIVE, at=11, ms=2, error="no such page")
    (found,) = turn_of(root, call, failed, chat(4, 1, at=30)).tool_calls
    assert (found.name, found.arguments, found.call_id) == ("search", {"q": "x"}, "c1")
    assert found.error is not None
    assert found.error.message == "no such page"


def test_openllmetry_s_tool_call_says_whether_it_failed():
    output = {
        "tool_name": "search",
        "tool_id": "c1",
        "tool_output": {"blocks": [{"block_type": "text", "text": "lost"}], "is_error": True},
    }
    attributes = {**TASK, "tool.name": "search", "tool.arguments": '{"q": "x"}', "traceloop.entity.output": json.dumps(output)}
    step = read(span(1, name="BaseWorkflowAgent.task", attributes=attributes, scope=TRACELOOP))
    assert (step.tool_name, step.tool_failed, arguments_of(step.tool_arguments)) == ("search", True, {"q": "x"})


MESSAGES = [
    {"role": "system", "additional_kwargs": {}, "blocks": [{"block_type": "text", "text": "Be kind."}]},
    {"role": "user", "additional_kwargs": {}, "blocks": [{"block_type": "text", "text": "Why?"}]},
    {
        "role": "assistant",
        "additional_kwargs": {"tool_calls": [{"id": "c1", "function": {"name": "search", "arguments": "{}"}}]},
        "blocks": [{"block_type": "tool_call", "tool_call_id": "c1", "tool_name": "search", "tool_kwargs": {"q": "x"}}],
    },
    {"role": "tool", "additional_kwargs": {"tool_call_id": "c1"}, "blocks": [{"block_type": "text", "text": "found"}]},
]


def test_messages_of_blocks():
    system, user, assistant, result = decode(json.dumps(MESSAGES), "user").messages
    assert (system.role, system.content, user.content) == ("system", "Be kind.", "Why?")
    assert [(call.call_id, call.name, call.arguments) for call in assistant.tool_calls] == [("c1", "search", {"q": "x"})]
    assert [(found.call_id, found.result) for found in result.tool_results] == [("c1", "found")]


def test_a_model_call_s_facts_are_in_span_events():
    start = SpanEvent(
        "LLMChatStartEvent",
        {"messages": json.dumps(MESSAGES[:2]), "model_dict.model_name": "m", "additional_kwargs.tools": "[]"},
    )
    end = SpanEvent("LLMChatEndEvent", {
        "response.message.role": "assistant", "response.message.blocks": '[{"block_type": "text", "text": "So."}]',
        "response.raw.model": "m-1", "response.raw.id": "r1", "response.raw.choices": '[{"finish_reason": "stop", "index": 0}]',
        "response.raw.usage.prompt_tokens": 5, "response.raw.usage.completion_tokens": 3,
        "response.raw.usage.prompt_tokens_details.cached_tokens": 2,
    })  # fmt: skip
    step = read(span(1, name="OpenAI.chat", scope=NATIVE, events=[start, end]))
    assert (step.model, step.response_id, step.finish_reason) == ("m-1", "r1", "stop")
    assert (step.input_tokens, step.output_tokens, step.cached_tokens) == (5, 3, 2)
    assert decode(step.output_messages, "assistant").messages[0].content == "So."
    turn = turn_of(span(2, name="MyFlow.run", scope=NATIVE, ms=90), span(1, 2, "OpenAI.chat", scope=NATIVE, events=[start, end]))
    assert (turn.input, turn.output) == ("Why?", "So.")


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


def test_a_retriever_inside_another_one_found_the_same():
    found = {"openinference.span.kind": "RETRIEVER", "retrieval.documents.0.document.content": "A text.", "input.value": "q"}
    root = span(1, name="RetrieverQueryEngine.query", attributes={"openinference.span.kind": "CHAIN"}, scope=OPENINFERENCE, ms=90)
    outer = span(2, 1, "AutoMergingRetriever.retrieve", found, scope=OPENINFERENCE)
    inner = span(3, 2, "VectorIndexRetriever.retrieve", found, scope=OPENINFERENCE)
    assert turn_of(root, outer, inner, chat(4, 1, at=20)).context == ["A text."]


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        pytest.param([{"node": {"id_": "n", "text": "t"}, "score": 0.5}], [("n", "t", 0.5)], id="objects"),
        pytest.param(
            json.dumps([json.dumps({"node": {"id_": "n", "text": "t"}, "score": 1})]), [("n", "t", 1.0)], id="JSON in JSON"
        ),
    ],
)
def test_nodes_are_documents(raw, found):
    assert [(document.id, document.content, document.score) for document in documents(raw)] == found


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


@pytest.mark.parametrize(
    ("raw", "arguments"),
    [
        pytest.param('{"kwargs": {"q": "x"}}', {"q": "x"}, id="given by name"),
        pytest.param('{"args": [], "kwargs": {"q": "x"}}', {"q": "x"}, id="and none by place"),
        pytest.param('{"kwargs": "x"}', {"kwargs": "x"}, id="a parameter of that name"),
    ],
)
def test_tool_arguments(raw, arguments):
    assert arguments_of(raw) == arguments


def test_a_streamed_call_and_the_sdk_s_span_beside_it_are_one():
    root = span(1, name="FunctionAgent.run", scope=NATIVE, ms=90)
    step = span(2, 1, "BaseWorkflowAgent.run_agent_step", scope=NATIVE, ms=80)
    start = SpanEvent("LLMChatStartEvent", {"messages": json.dumps(MESSAGES[:2]), "model_dict.model_name": "m"})
    framework = span(3, 2, "OpenAI.astream_chat", scope=NATIVE, at=5, ms=1, events=[start])
    sdk = chat(4, 2, says="So.", at=10, ms=30, attributes={"gen_ai.response.model": "m-1", "gen_ai.usage.output_tokens": 3})
    turn = turn_of(root, step, framework, sdk)
    assert [(call.output_tokens, call.error) for call in turn.llm_calls] == [(3, None)]
    assert turn.output == "So."


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


@pytest.mark.parametrize("value", [5, True, ["a"], {"a": 1}, b"x"], ids=["int", "bool", "list", "object", "bytes"])
def test_wrong_types_say_nothing(value):
    keys = (
        "input.value", "output.value", "tool.name", "tool.arguments", "traceloop.entity.input", "traceloop.entity.output",
        "llamaindex.step.input_summary", "llamaindex.session_id",
    )  # fmt: skip
    attributes = dict.fromkeys(keys, value)
    for kind in ("CHAIN", "TOOL", "LLM", "RETRIEVER", value):
        for name in ("FunctionAgent.run", "OpenAI._chat", "BaseWorkflowAgent.run_agent_step"):
            read(span(1, name=name, attributes={**attributes, "openinference.span.kind": kind}, scope=OPENINFERENCE))
    for name in ("FunctionAgent.workflow", "FunctionTool.task", "BM25Retriever.task", "BaseWorkflowAgent.task"):
        read(span(1, name=name, attributes=attributes, scope=TRACELOOP))
    parts = (
        "messages",
        "response.message.blocks",
        "response.raw.choices",
        "response.raw.usage.prompt_tokens",
        "nodes",
        "query",
        "output",
    )
    names = ("LLMChatStartEvent", "LLMChatEndEvent", "QueryEndEvent", "RetrievalEndEvent", "workflow.output", "step.output")
    events = [SpanEvent(name, dict.fromkeys(parts, value)) for name in names]
    for name in ("FunctionAgent.run", "OpenAI.chat", "X.retrieve", "X.query", "X.call_tool", "X.step", "no method", ""):
        read(span(1, name=name, attributes=attributes, scope=NATIVE, events=events))
