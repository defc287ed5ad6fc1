"""Situations of public reports on text beside a message's content, and on model calls that another process serves. See README.md."""

from __future__ import annotations

import json
from typing import Any

import pytest

from otel_agenteval.core.turn_cost import add_cost
from tests.support.spans import agent, chat, span, turn_of, turns_of

ASKED, SAID = "Which rakes do you sell?", "We sell two, one of wood and one of steel."
REFUSED, THOUGHT = "I can't help with that.", "Two rakes are in stock."
QUESTION = {"role": "user", "content": ASKED}


def call_of(prompt: Any, answer: Any, span_id: int = 2, parent_id: int = 0, **more: Any) -> Any:
    messages = {"gen_ai.input.messages": json.dumps(prompt), "gen_ai.output.messages": json.dumps(answer)}
    return chat(span_id, parent_id, attributes={**messages, **more.pop("attributes", {})}, **more)


# --- refusals, reasoning and speech beside the content


@pytest.mark.parametrize(
    ("answer", "output", "reasoning"),
    [
        ({"content": None, "refusal": REFUSED}, REFUSED, None),
        ({"content": "", "refusal": REFUSED}, REFUSED, None),
        ({"content": "", "additional_kwargs": {"refusal": REFUSED}}, REFUSED, None),
        ({"content": "", "audio": {"id": "a1", "transcript": SAID}}, SAID, None),
        ({"content": SAID, "reasoning_content": THOUGHT}, SAID, THOUGHT),
        ({"content": SAID, "additional_kwargs": {"reasoning_content": THOUGHT}}, SAID, THOUGHT),
        ({"content": SAID, "reasoning": None, "reasoning_details": [{"type": "reasoning.text", "text": THOUGHT}]}, SAID, THOUGHT),
        ({"content": SAID, "thinking": THOUGHT}, SAID, THOUGHT),
        ({"content": SAID, "refusal": None, "reasoning": "", "audio": None}, SAID, None),
        ({"content": SAID, "refusal": "no"}, SAID, None),
    ],
)
def test_text_beside_the_content_is_read(answer: Any, output: str, reasoning: str | None) -> None:
    """openllmetry 1815, any-agent 718 and inspect_ai 1310: a refusal, a spoken answer and the reasoning have their own fields."""
    turn = turn_of(agent(1), call_of([QUESTION], [{"role": "assistant", **answer}], parent_id=1))
    assert (turn.output, turn.reasoning) == (output, reasoning)


@pytest.mark.parametrize(("content", "output"), [(None, REFUSED), (SAID, SAID)])
def test_refusal_is_read_from_the_whole_response(content: str | None, output: str) -> None:
    """openllmetry 1815, in OpenInference: its flattened messages have no field for a refusal."""
    response = {"choices": [{"message": {"role": "assistant", "content": content, "refusal": None if content else REFUSED}}]}
    kind = {"openinference.span.kind": "LLM", "llm.model_name": "m-1", "output.value": json.dumps(response)}
    flat = {
        "llm.output_messages.0.message.role": "assistant",
        **({"llm.output_messages.0.message.content": content} if content else {}),
    }
    asked = {"llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": ASKED}
    assert turn_of(span(1, 0, "ChatCompletion", {**kind, **asked, **flat})).output == output


@pytest.mark.parametrize(
    "content", [json.dumps([{"type": "text", "text": ASKED, "cache_control": {"type": "ephemeral"}}]), ASKED]
)
def test_input_is_the_text_of_a_raw_part(content: str) -> None:
    """opentelemetry-instrumentation-ruby_llm 40: the provider's own content blocks are one part."""
    prompt = [{"role": "user", "parts": [{"type": "raw", "content": content}]}]
    assert turn_of(call_of(prompt, [{"role": "assistant", "content": SAID}])).input == ASKED


@pytest.mark.parametrize("beside", [False, True])
def test_function_call_of_openai_is_a_tool_call(beside: bool) -> None:
    """phoenix 1298: applications before OpenAI's tools request a function and add its result by name."""
    function = {"function_call": {"name": "count_stock", "arguments": '{"shelf": 1}'}}
    request = {"role": "assistant", "content": None, **({"additional_kwargs": function} if beside else function)}
    result = {"role": "function", "name": "count_stock", "content": "2 left"}
    first, second = (
        call_of([QUESTION], [request], 2, 1),
        call_of([QUESTION, request, result], [{"role": "assistant", "content": SAID}], 3, 1, at=20),
    )
    (call,) = turn_of(agent(1), first, second).tool_calls or ()
    assert (call.name, call.arguments, call.result, call.state) == ("count_stock", {"shelf": 1}, "2 left", "executed")


# --- messages of LangChain4j as text

REQUEST = 'ToolExecutionRequest { id = "c1", name = "count_stock", arguments = "{"shelf":1}" }'
JAVA = [
    ("system", 'SystemMessage { text = "Sell rakes." }'),
    ("user", f'UserMessage {{ name = null, contents = [TextContent {{ text = "{ASKED}" }}], attributes = {{}} }}'),
    ("assistant", f"AiMessage {{ text = null, thinking = null, toolExecutionRequests = [{REQUEST}], attributes = {{}} }}"),
    ("tool", 'ToolExecutionResultMessage { id = "c1" toolName = "count_stock" text = "2 left" isError = false }'),
]


def test_messages_of_langchain4j_are_read() -> None:
    """openinference 2741, 2036: the content of each message is the output of its ``toString``, without commas in some versions."""
    prompt = {
        f"llm.input_messages.{at}.message.{key}": value
        for at, pair in enumerate(JAVA)
        for key, value in zip(("role", "content"), pair, strict=True)
    }
    answer = {"llm.output_messages.0.message.role": "assistant", "llm.output_messages.0.message.content": SAID}
    turn = turn_of(span(1, 0, "gpt-4o", {"openinference.span.kind": "LLM", "llm.model_name": "gpt-4o", **prompt, **answer}))
    (call,) = turn.tool_calls or ()
    assert (turn.system, turn.input, turn.output) == ("Sell rakes.", ASKED, SAID)
    assert (call.name, call.arguments, call.result) == ("count_stock", {"shelf": 1}, "2 left")


@pytest.mark.parametrize(
    "text", ["UserMessage is a class of LangChain4j {}", 'Explain UserMessage { name = "x" }', "UserMessage { broken }"]
)
def test_question_on_a_message_class_is_the_input(text: str) -> None:
    """The opposite of openinference 2741: the user writes about the class."""
    assert turn_of(call_of([{"role": "user", "content": text}], [{"role": "assistant", "content": SAID}])).input == text


# --- model calls in spans of a gateway, a server or a chain

SERVED = {"gen_ai.usage.prompt_tokens": 10, "gen_ai.usage.completion_tokens": 5, "gen_ai.response.model": "m-1"}


@pytest.mark.parametrize("is_gateway", [True, False])
def test_call_that_another_process_serves_is_one_turn(is_gateway: bool) -> None:
    """ai-gateway 2449 and openllmetry 2291: the client's trace continues in the gateway or the model server."""
    client = call_of(
        [QUESTION], [{"role": "assistant", "content": SAID}], 2, 1, ms=90, attributes={**SERVED, "gen_ai.provider.name": "openai"}
    )
    server = span(
        3, 2, "POST /v1/chat/completions", {"http.method": "POST"}, remote=True, at=2, ms=80, resource={"service.name": "server"}
    )
    kind = {"openinference.span.kind": "LLM", "llm.model_name": "m-1"} if is_gateway else {}
    served = span(4, 3, "llm_request", {**kind, **SERVED}, at=3, ms=70, resource={"service.name": "server"})
    turn = turn_of(agent(1), client, server, served)
    assert (turn.output, len(turn.llm_calls or ()), turn.usage and turn.usage.input_tokens) == (SAID, 1, 10)


def test_agent_that_another_process_serves_is_also_a_turn_there() -> None:
    """The opposite of openllmetry 2291: an agent behind a chat API."""
    client = call_of([QUESTION], [{"role": "assistant", "content": SAID}], ms=90)
    remote = agent(3, 2, remote=True, at=2, ms=80, resource={"service.name": "server"})
    assert len(turns_of(client, remote, call_of([QUESTION], [{"role": "assistant", "content": SAID}], 4, 3, at=3))) == 2


def test_tool_calls_are_read_below_a_request_with_plain_texts() -> None:
    """bifrost 2194: the request's span has only the question and the answer as text, and the call's span the whole prompt."""
    texts = {"gen_ai.input.messages": ASKED, "gen_ai.output.messages": SAID}
    request = {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "c1", "type": "function", "name": "count_stock", "args": "{}"}],
    }
    prompt = [QUESTION, request, {"role": "tool", "tool_call_id": "c1", "content": "2 left"}]
    turn = turn_of(
        span(1, 0, "/v1/chat/completions", texts, ms=90), call_of(prompt, [{"role": "assistant", "content": SAID}], 2, 1)
    )
    assert [(call.name, call.result) for call in turn.tool_calls or ()] == [("count_stock", "2 left")]
    assert (turn.input, turn.output, len(turn.llm_calls or ())) == (ASKED, SAID, 1)


HISTORY = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi!"}]


@pytest.mark.parametrize(
    ("prompt", "asked"),
    [
        ([*HISTORY, QUESTION], ASKED),
        ([{"role": "system", "content": "Sell."}, *HISTORY, QUESTION], ASKED),
        ([QUESTION], "Hello"),
        (HISTORY[:1], "Hello"),
        (HISTORY, "Hello"),
        ([*HISTORY, {"role": "tool", "tool_call_id": "c1", "content": "2"}], "Hello"),
    ],
)
def test_input_is_not_the_first_message_of_the_conversation(prompt: list[Any], asked: str) -> None:
    """brainlid/langchain 652: the chain's span has the conversation's first user message, and the prompt all of them."""
    root = agent(1, attributes={"gen_ai.input.messages": json.dumps(HISTORY[:1])})
    assert turn_of(root, call_of(prompt, [{"role": "assistant", "content": SAID}], 2, 1)).input == asked


@pytest.mark.parametrize(("output", "reasoning", "counted"), [(5, 50, 55), (50, 5, 50), (5, 5, 5), (0, 50, 0)])
def test_output_includes_reasoning_tokens_that_exceed_it(output: int, reasoning: int, counted: int) -> None:
    """langfuse 16508: the convention's output tokens include reasoning tokens, so a smaller count excludes them."""
    counts = {"gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": output, "gen_ai.usage.reasoning_tokens": reasoning}
    turn = turn_of(chat(1, user=ASKED, attributes=counts))
    add_cost(turn)
    assert (turn.usage and turn.usage.output_tokens) == counted


@pytest.mark.parametrize("place", ["item", "metadata"])
@pytest.mark.parametrize("name", ["score", "relevance_score"])
def test_score_of_a_document_is_read(place: str, name: str) -> None:
    """opentelemetry-python-genai 584, 670: a retriever's own field has the score."""
    document = {"content": "Rakes", **({name: 0.9} if place == "item" else {"metadata": {name: 0.9}})}
    found = {"gen_ai.operation.name": "retrieval", "gen_ai.retrieval.documents": json.dumps([document])}
    (retrieval,) = turn_of(agent(1), span(2, 1, "retrieval", found)).retrievals or ()
    assert [one.score for one in retrieval.documents or ()] == [0.9]


@pytest.mark.parametrize("handle", ["<WorkflowHandler pending>", "<Task pending name='Task-1' coro=<run()>>"])
def test_pending_result_is_not_the_output(handle: str) -> None:
    """mlflow 20743: the workflow's span ends when its handle is created."""
    root = agent(1, attributes={"gen_ai.output.messages": handle})
    assert turn_of(root, call_of([QUESTION], [{"role": "assistant", "content": SAID}], 2, 1)).output == SAID


# --- a model call whose parent was lost


@pytest.mark.parametrize("kind", ["CHAIN", None])
def test_call_without_its_parent_belongs_to_the_only_request(kind: str | None) -> None:
    """openinference 368: the query's span has the retriever below it, and the call's parent is missing."""
    root = span(
        1, 0, "query", {"openinference.span.kind": kind, "input.value": ASKED, "output.value": SAID} if kind else {}, ms=90
    )
    found = {"openinference.span.kind": "RETRIEVER", "input.value": ASKED, "retrieval.documents.0.document.content": "Rakes"}
    retriever, call = (
        span(2, 1, "retrieve", found, at=1),
        call_of([QUESTION], [{"role": "assistant", "content": SAID}], 3, 77, at=20),
    )
    turn = turn_of(root, retriever, call)
    assert (turn.input, turn.output, len(turn.retrievals or ()), len(turn.llm_calls or ())) == (ASKED, SAID, 1, 1)


def test_later_call_without_its_parent_is_a_turn() -> None:
    """The opposite of openinference 368: the request had ended."""
    call = call_of([QUESTION], [{"role": "assistant", "content": SAID}], 3, 77, at=200)
    turn = turn_of(span(1, 0, "POST /index", {"http.method": "POST"}, ms=90), call)
    assert (turn.input, turn.output, [one.id for one in turn.spans or ()]) == (ASKED, SAID, [f"{3:016x}"])
