"""Situations of public reports on GenAI traces, in the forms that the libraries write. See README.md in this folder."""

from __future__ import annotations

import json
from typing import Any

import pytest

from otel_agenteval.spans.record import SpanEvent
from tests.support.spans import START, agent, chat, span, tool, turn_of

ASKED, SAID = "What is the weather in Paris?", "It is 21 degrees in Paris."
MESSAGES = [{"role": "user", "content": ASKED}]
CITY = {"city": "Paris"}


def openinference(span_id: int, parent_id: int, kind: str, name: str = "step", library: str = "langchain", **more: Any) -> Any:
    attributes = {"openinference.span.kind": kind, **more.pop("attributes", {})}
    return span(span_id, parent_id, name, attributes, scope=f"openinference.instrumentation.{library}", **more)


def said(role: str, text: str, side: str = "output") -> dict[str, str]:
    place = f"llm.{side}_messages.0.message"
    return {f"{place}.role": role, f"{place}.content": text}


def test_agents_input_and_output_under_older_names() -> None:
    """semantic-kernel 13482: the model's span is lost, so only the agent's span has the texts."""
    root = agent(1, attributes={
        "gen_ai.agent.invocation_input": json.dumps(MESSAGES),
        "gen_ai.agent.invocation_output": json.dumps([{"role": "assistant", "content": SAID}]),
    })  # fmt: skip
    turn = turn_of(root, tool(2, 1, "get_weather"))
    assert (turn.input, turn.output, turn.llm_calls) == (ASKED, SAID, [])


@pytest.mark.parametrize("kind", ["TOOL", None])
def test_repeated_results_of_parallel_tools_are_no_tool(kind: str | None) -> None:
    """openinference 3399 and 3338: ADK's span of merged results, with and without the kind that OpenInference adds."""
    merged = tool(3, 1, "(merged tools)", attributes={
        "gen_ai.tool.call.id": "e-1", "gcp.vertex.agent.tool_call_args": "N/A", **({"openinference.span.kind": kind} if kind else {}),
    }, scope="openinference.instrumentation.google_adk")  # fmt: skip
    merged.name = "execute_tool (merged)"
    calls = [{"id": "c1", "name": "get_weather", "arguments": CITY}]
    turn = turn_of(agent(1), chat(4, 1, user=ASKED, calls=calls), tool(2, 1, "get_weather", at=20), merged)
    assert [call.name for call in turn.tool_calls or ()] == ["get_weather"]


@pytest.mark.parametrize(
    "wrap", [lambda text: {"content": text, "score": 0.5}, lambda text: {"document": {"content": text, "score": 0.5}}]
)
@pytest.mark.parametrize("key", ["retrieval.documents", "output.value"])
def test_retrieved_documents_as_one_json_text(wrap: Any, key: str) -> None:
    """openinference 2627."""
    written = json.dumps([wrap("Paris has 21 degrees."), wrap("Rome has 25 degrees.")])
    search = openinference(2, 1, "RETRIEVER", attributes={"input.value": ASKED, key: written})
    answer = openinference(3, 1, "LLM", attributes={**said("user", ASKED, "input"), **said("assistant", SAID)}, at=20)
    (found,) = turn_of(openinference(1, 0, "CHAIN", ms=50), search, answer).retrievals
    assert [(document.content, document.score) for document in found.documents] == [
        ("Paris has 21 degrees.", 0.5), ("Rome has 25 degrees.", 0.5),
    ]  # fmt: skip


@pytest.mark.parametrize("operation", ["vector_db_retrieve", "retrieval"])
def test_retriever_of_openllmetry_has_query_and_documents(operation: str) -> None:
    """openinference 3421: OpenLLMetry's span of a LangChain retriever."""
    search = span(2, 1, "VectorStoreRetriever.task", {
        "traceloop.span.kind": "task", "gen_ai.operation.name": operation, "gen_ai.task.input": json.dumps({"query": ASKED, "tags": ["FAISS"]}),
        "gen_ai.task.output": json.dumps({"documents": [{"page_content": "Paris: 21"}, {"page_content": "Rome: 25"}], "count": 2}),
    }, scope="opentelemetry.instrumentation.langchain")  # fmt: skip
    turn = turn_of(agent(1), search, chat(3, 1, user=ASKED, says=SAID, at=20))
    (found,) = turn.retrievals
    assert (found.query, [document.content for document in found.documents]) == (ASKED, ["Paris: 21", "Rome: 25"])
    assert turn.tool_calls == []


@pytest.mark.parametrize("item", [
    """ResponseFunctionToolCall(arguments='{"city": "Paris"}', call_id='call_Z', name='get_weather', type='function_call', id='fc_0')""",
])  # fmt: skip
def test_tool_request_as_text_is_no_answer(item: str) -> None:
    """opentelemetry-python-contrib 4185: the ``repr`` of the SDK's object as a message's text."""
    turn = turn_of(
        agent(1), chat(2, 1, user=ASKED, says=item), tool(3, 1, "get_weather", at=20), chat(4, 1, user=ASKED, says=SAID, at=40)
    )
    assert [(call.call_id, call.arguments) for call in turn.tool_calls or ()] == [("call_Z", CITY)]
    alone = turn_of(chat(2, user=ASKED, says=item))
    assert alone.output is None
    assert [request.name for message in alone.messages for request in message.tool_calls] == ["get_weather"]


INTERRUPTED = "GraphInterrupt((Interrupt(value={'action': 'refund', 'amount': 20}, ns=['approve:1']),))"


@pytest.mark.parametrize(("level", "message", "error"), [
    ("ERROR", INTERRUPTED, None),
    ("ERROR", "ValueError('no such order')", ("ValueError", "ValueError('no such order')")),
    ("ERROR", "The bridge is out.", ("error", "The bridge is out.")),
    ("ERROR", None, ("error", None)),
    ("DEFAULT", INTERRUPTED, None),
    ("WARNING", None, None),
])  # fmt: skip
@pytest.mark.parametrize("answer", ["Shall I refund it?", None])
def test_langfuse_level_is_an_error_but_no_answer(level: str, message: str | None, error: Any, answer: str | None) -> None:
    """langfuse 14034, langfuse 6704 and dd-trace-py 16614: LangGraph's interrupt isn't a failure."""
    said_ = {} if answer is None else {"langfuse.observation.output": json.dumps({"role": "assistant", "content": answer})}
    root = span(1, 0, "LangGraph", {
        "langfuse.observation.type": "chain", "langfuse.observation.input": json.dumps({"messages": MESSAGES}),
        "langfuse.observation.level": level, **({"langfuse.observation.status_message": message} if message else {}),
    }, scope="langfuse-sdk", ms=50)  # fmt: skip
    model = span(2, 1, "ChatOpenAI", {
        "langfuse.observation.type": "generation", "langfuse.observation.model.name": "gpt-4o", **said_,
        "langfuse.observation.input": json.dumps(MESSAGES),
    }, scope="langfuse-sdk")  # fmt: skip
    turn = turn_of(root, model)
    assert (turn.input, turn.output) == (ASKED, answer)
    assert (turn.error and (turn.error.type, turn.error.message)) == error


@pytest.mark.parametrize("event", [True, False])
def test_interrupt_with_and_without_its_exception(event: bool) -> None:
    """langfuse 14034: the message alone also names the exception."""
    raised = SpanEvent(
        "exception", {"exception.type": "langgraph.errors.GraphInterrupt", "exception.message": INTERRUPTED}, START
    )
    node = openinference(2, 1, "CHAIN", "approve", error=INTERRUPTED, events=[raised] if event else [], at=20)
    root = openinference(1, 0, "CHAIN", "LangGraph", error=INTERRUPTED, events=[raised] if event else [], ms=50)
    model = openinference(3, 1, "LLM", attributes={**said("user", ASKED, "input"), **said("assistant", "Shall I?")})
    assert turn_of(root, node, model).error is None


def test_arguments_of_langchain_s_tools_in_langsmith() -> None:
    """langsmith-sdk 3431: older versions of LangChain give tools their arguments as Python's text of them."""
    scope = {"scope": "langsmith"}
    root = span(
        1, 0, "agent", {"langsmith.span.kind": "chain", "gen_ai.prompt": json.dumps({"messages": MESSAGES})}, ms=50, **scope
    )
    run = span(2, 1, "get_weather", {
        "langsmith.span.kind": "tool", "gen_ai.tool.name": "get_weather", "gen_ai.prompt": json.dumps({"input": str(CITY)}),
        "gen_ai.completion": json.dumps({"output": {"content": "21", "type": "tool", "tool_call_id": "c1"}}),
    }, **scope)  # fmt: skip
    model = span(3, 1, "ChatOpenAI", {
        "langsmith.span.kind": "llm", "gen_ai.prompt": json.dumps({"messages": MESSAGES}),
        "gen_ai.completion": json.dumps({"role": "assistant", "content": SAID}),
    }, at=20, **scope)  # fmt: skip
    (call,) = turn_of(root, run, model).tool_calls or ()
    assert (call.arguments, call.result) == (CITY, "21")


@pytest.mark.parametrize("totals", [{"gen_ai.usage.input_tokens": 5000, "gen_ai.usage.output_tokens": 12}, {}])
def test_details_of_usage_in_langsmith_s_metadata(totals: dict[str, int]) -> None:
    """langsmith-sdk 2837: only the metadata have cached and reasoning tokens."""
    usage = {
        "input_tokens": 5000, "output_tokens": 12,
        "input_token_details": {"cache_read": 4000, "cache_creation": 500}, "output_token_details": {"reasoning": 4},
    }  # fmt: skip
    model = span(1, 0, "ChatAnthropic", {
        "langsmith.span.kind": "llm", "gen_ai.request.model": "claude-sonnet-4-5", "gen_ai.prompt": json.dumps({"messages": MESSAGES}),
        "gen_ai.completion": json.dumps({"role": "assistant", "content": SAID}), "langsmith.metadata.usage_metadata": json.dumps(usage),
        **totals,
    }, scope="langsmith")  # fmt: skip
    (call,) = turn_of(model).llm_calls
    assert (call.input_tokens, call.output_tokens) == (5000, 12)
    assert (call.cached_tokens, call.cache_write_tokens, call.reasoning_tokens) == (4000, 500, 4)


def test_tokens_under_response() -> None:
    """dotnet/extensions 6493."""
    counts = {"gen_ai.response.input_tokens": 100, "gen_ai.response.output_tokens": 12}
    (call,) = turn_of(chat(1, user=ASKED, says=SAID, attributes=counts, scope="Experimental.Microsoft.Extensions.AI")).llm_calls
    assert (call.input_tokens, call.output_tokens) == (100, 12)


@pytest.mark.parametrize("place", ["tool_calls", "tool_calls.0", "tool_calls.0.tool_call"])
def test_tool_request_without_openinference_s_levels(place: str) -> None:
    """phoenix 9410: agentgateway writes one request instead of a list."""
    asked = {
        f"llm.output_messages.0.message.{place}.{key}": value
        for key, value in (("id", "c1"), ("function.name", "get_weather"), ("function.arguments", json.dumps(CITY)))
    }
    model = openinference(
        1, 0, "LLM", attributes={**said("user", ASKED, "input"), "llm.output_messages.0.message.role": "assistant", **asked}
    )
    turn = turn_of(model)
    (request,) = (request for message in turn.messages for request in message.tool_calls)
    assert (request.call_id, request.name, json.loads(request.arguments), turn.output) == ("c1", "get_weather", CITY, None)


@pytest.mark.parametrize("failed", [True, False])
def test_mcp_attributes_of_sentry(failed: bool) -> None:
    """sentry-javascript 20083: the span's status is unset, and arguments have an attribute each."""
    run = span(3, 1, "tools/call get_weather", {
        "mcp.method.name": "tools/call", "mcp.tool.name": "get_weather", "mcp.request.argument.city": '"Paris"',
        "mcp.request.argument.days": "2", "mcp.tool.result.is_error": failed, "mcp.tool.result.content": "boom",
    }, scope="sentry", at=20)  # fmt: skip
    (call,) = turn_of(agent(1), chat(2, 1, user=ASKED), run, chat(4, 1, user=ASKED, says=SAID, at=40)).tool_calls or ()
    assert (call.name, call.arguments, call.error is not None) == ("get_weather", {"city": "Paris", "days": 2}, failed)


@pytest.mark.parametrize(("written", "thoughts", "output"), [(1, 100, 101), (101, 100, 101), (1, 0, 1)])
@pytest.mark.parametrize("names", [("promptTokens", "completionTokens"), ("inputTokens", "outputTokens")])
def test_thoughts_of_gemini_are_output(written: int, thoughts: int, output: int, names: tuple[str, str]) -> None:
    """sentry-javascript 24066: the AI SDK counts them as output since version 6."""
    used = {"promptTokenCount": 14, "candidatesTokenCount": 1, "thoughtsTokenCount": thoughts, "totalTokenCount": 15 + thoughts}
    model = span(1, 0, "ai.generateText.doGenerate", {
        "ai.operationId": "ai.generateText.doGenerate", "gen_ai.request.model": "gemini-2.5-flash", "ai.response.text": SAID,
        "ai.prompt.messages": json.dumps(MESSAGES), f"ai.usage.{names[0]}": 14, f"ai.usage.{names[1]}": written,
        "ai.response.providerMetadata": json.dumps({"google": {"usageMetadata": used}}),
    }, scope="ai")  # fmt: skip
    (call,) = turn_of(model).llm_calls
    assert (call.input_tokens, call.output_tokens) == (14, output)


@pytest.mark.parametrize(
    ("prompt", "cached", "completion", "thoughts", "total", "counted"),
    [
        (14, 0, 1, 100, 115, (14, 101)),
        (14, 0, 101, 100, 115, (14, 101)),
        (50, 8_000, 10, 4, 8_064, (8_050, 14)),
        (500, 100, 10, 4, 614, (600, 14)),
        (600, 100, 14, 4, 614, (600, 14)),
        (500, 100, 14, 4, 614, (600, 14)),
    ],
)
@pytest.mark.parametrize("names", [
    ("llm.token_count.prompt", "llm.token_count.prompt_details.cache_read", "llm.token_count.completion", "llm.token_count.completion_details.reasoning", "llm.token_count.total"),
    ("gen_ai.usage.input_tokens", "gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.output_tokens", "gen_ai.usage.reasoning.output_tokens", "gen_ai.usage.total_tokens"),
    ("ai.usage.inputTokens", "ai.usage.cachedInputTokens", "ai.usage.outputTokens", "ai.usage.reasoningTokens", "ai.usage.totalTokens"),
])  # fmt: skip
def test_tokens_beside_the_counts_are_in_the_total(
    prompt: int, cached: int, completion: int, thoughts: int, total: int, counted: tuple[int, int], names: tuple[str, ...]
) -> None:
    """openinference 1811 and opencode-plugin-otel 110: the total shows whether caches and reasoning are counted beside."""
    counts = {name: count for name, count in zip(names, (prompt, cached, completion, thoughts, total), strict=True) if count}
    model = chat(1, user=ASKED, says=SAID)
    if names[0].startswith("llm."):
        model = openinference(1, 0, "LLM", attributes={**said("user", ASKED, "input"), **said("assistant", SAID)})
    elif names[0].startswith("ai."):
        model = span(1, 0, "ai.generateText.doGenerate", {
            "ai.operationId": "ai.generateText.doGenerate", "ai.prompt.messages": json.dumps(MESSAGES), "ai.response.text": SAID,
        }, scope="ai")  # fmt: skip
    model.attributes.update(counts)
    (call,) = turn_of(model).llm_calls
    assert ((call.input_tokens, call.output_tokens), call.cached_tokens or 0) == (counted, cached)


@pytest.mark.parametrize("written", [str, json.dumps])
def test_content_that_is_the_text_of_a_list(written: Any) -> None:
    """dd-trace-py 19803: text and image in one text, which contains the image's data."""
    parts = [
        {"type": "text", "text": "What's this?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
    ]
    turn = turn_of(chat(1, messages=[{"role": "user", "content": written(parts)}], says="A dot."))
    assert turn.input == "What's this?"
    assert [one["uri"] for message in turn.messages for one in message.attachments] == ["data:image/png;base64,iVBORw0KGgo="]


@pytest.mark.parametrize(("answers", "failed"), [([], True), ([chat(3, 1, user=ASKED, says=SAID, at=20)], False)])
def test_exception_on_a_root_without_a_status_is_an_error_without_an_answer(answers: list[Any], failed: bool) -> None:
    """opentelemetry-specification 1008: recording an exception doesn't set the status, and it may be a handled exception."""
    event = SpanEvent("exception", {"exception.type": "ApiError", "exception.message": "broken"})
    asked = chat(2, 1, user=ASKED, calls=[{"id": "c1", "name": "get_weather", "arguments": CITY}])
    turn = turn_of(span(1, 0, "support", ms=50, events=[event]), asked, *answers)
    assert (turn.error and (turn.error.type, turn.error.message)) == (("ApiError", "broken") if failed else None)
    assert turn.output == (None if failed else SAID)
