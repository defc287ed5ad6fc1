"""Situations of public reports on attributes that few frameworks write. See README.md in this folder."""

from __future__ import annotations

import json
from typing import Any

import pytest

from otel_agenteval.core.turn import ErrorInfo, ToolCall, Turn
from tests.support.spans import agent, chat, span, turn_of

ASKED, SAID = "What is the weather in Paris?", "It is 21 degrees in Paris."


@pytest.mark.parametrize(("name", "value", "cost"), [
    ("github.copilot.cost", 1, None),
    ("github.copilot.cost", 0.33, None),
    ("acme.credits.cost", 2.0, None),
    ("acme.cost_usd", 0.02, 0.02),
    ("acme.usage.cost", 0.02, 0.02),
    ("acme.total_cost", 0.02, 0.02),
    ("acme.estimated_cost", 0.02, 0.02),
    ("acme.llm.cost", 0.02, 0.02),
    ("gen_ai.cost", 0.02, 0.02),
    ("cost", 0.02, 0.02),
])  # fmt: skip
@pytest.mark.parametrize("on_call", [True, False])
def test_cost_under_a_vendors_name_is_not_in_dollars(name: str, value: float, cost: float | None, on_call: bool) -> None:
    """tlaps-bench 66 and copilot-cli 4224: Copilot's cost is a multiple of a premium request."""
    tokens: dict[str, Any] = {"gen_ai.usage.input_tokens": 1000, "gen_ai.usage.output_tokens": 100}
    call = chat(2, 1, user=ASKED, says=SAID, attributes={**tokens, **({name: value} if on_call else {})})
    turn = turn_of(agent(1, attributes={} if on_call else {name: value}, scope="acme"), call)
    assert turn.cost_usd == cost


def openinference(
    span_id: int, parent_id: int, kind: str, name: str, at: float = 0, library: str = "pipecat", **attributes: Any
) -> Any:
    marks = {"openinference.span.kind": kind, **attributes.pop("more", {})}
    return span(span_id, parent_id, name, {**marks, **attributes}, scope=f"openinference.instrumentation.{library}", at=at)


def oi_model(span_id: int, parent_id: int, *, name: str = "pipecat.llm", **more: Any) -> Any:
    return openinference(span_id, parent_id, "LLM", name, more={
        "llm.model_name": "gpt-4o", "llm.token_count.prompt": 10, "llm.token_count.completion": 5, "output.value": SAID,
        "llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": ASKED,
    }, **more)  # fmt: skip


@pytest.mark.parametrize(("names", "kinds"), [
    (("pipecat.stt", "pipecat.tts"), (None, None)),
    (("pipecat.stt", "pipecat.tts"), ("stt", "tts")),
    (("transcribe", "speak"), ("stt", "tts")),
    (("stt", "tts"), (None, None)),
])  # fmt: skip
@pytest.mark.parametrize("root_has_texts", [True, False])
def test_speech_services_are_no_model_calls(names: Any, kinds: Any, root_has_texts: bool) -> None:
    """openinference 2441: Pipecat's speech services have OpenInference's kind for models."""
    texts = {"input.value": ASKED, "output.value": SAID} if root_has_texts else {}
    heard, spoken = (
        openinference(number, 1, "LLM", name, at=at, more={
            "input.value": text, "output.value": text, "llm.model_name": "nova-3", **({"service.type": kind} if kind else {}),
        })
        for number, name, kind, at, text in zip((2, 4), names, kinds, (0, 8), (ASKED, "It is 21"), strict=True)
    )  # fmt: skip
    turn = turn_of(openinference(1, 0, "CHAIN", "pipecat.conversation.turn", more=texts), heard, oi_model(3, 1, at=2), spoken)
    assert (turn.input, turn.output, len(turn.llm_calls or ())) == (ASKED, SAID, 1)


@pytest.mark.parametrize(("name", "more"), [("pipecat.llm", {"service.type": "llm"}), ("gpt-4o-tts.chat", {}), ("ask_stt", {})])
def test_model_beside_speech_services_is_a_call(name: str, more: dict[str, Any]) -> None:
    model = oi_model(1, 0, name=name)
    model.attributes.update(more)
    assert len(turn_of(model).llm_calls or ()) == 1


ARGUMENTS = {"city": "Paris"}
REQUEST = {"callId": "c1", "name": "get_weather", "args": ARGUMENTS, "isClientInitiated": False, "prompt_id": "p1"}


def completed(status: str = "success", **answer: str) -> dict[str, Any]:
    part = {"functionResponse": {"id": "c1", "name": "get_weather", "response": answer}}
    response = {"callId": "c1", "responseParts": [part, {"text": "a picture"}], "resultDisplay": "21"}
    return {"status": status, "request": REQUEST, "response": response, "durationMs": 5}


def recorded_tool(given: Any, returned: Any, call_id: str | None = "c1") -> ToolCall:
    ids = {"gen_ai.tool.call_id": call_id} if call_id else {}
    record = span(2, 1, "tool_call", {
        "gen_ai.operation.name": "tool_call", "gen_ai.tool.name": "get_weather", **ids,
        "gen_ai.input.messages": json.dumps(given), "gen_ai.output.messages": json.dumps(returned),
    }, scope="gemini-cli")  # fmt: skip
    (call,) = turn_of(agent(1, scope="gemini-cli"), record, chat(3, 1, user=ASKED, says=SAID, at=20)).tool_calls or ()
    return call


@pytest.mark.parametrize(("given", "returned", "result"), [
    (REQUEST, completed(output="21"), {"output": "21"}),
    (REQUEST, {"request": REQUEST, "response": "21"}, "21"),
    ({"id": "c1", "tool": "get_weather", "arguments": ARGUMENTS}, {"id": "c1", "tool": "get_weather", "result": "21"}, "21"),
    (ARGUMENTS, {"degrees": 21}, '{"degrees": 21}'),
    (ARGUMENTS, {"request": {"name": "get_weather"}, "response": "21"}, '{"request": {"name": "get_weather"}, "response": "21"}'),
])  # fmt: skip
def test_records_of_a_tool_call_have_its_arguments_and_result(given: Any, returned: Any, result: Any) -> None:
    """Observal 547 and gemini-cli 16519: the span has the request's record and the whole call's record."""
    call = recorded_tool(given, returned)
    assert (call.name, call.arguments, call.result, call.error) == ("get_weather", ARGUMENTS, result, None)


def test_failure_in_the_record_of_a_tool_call() -> None:
    call = recorded_tool(REQUEST, completed("error", error="No such city"))
    assert call.error == ErrorInfo("tool_error", "No such city")


@pytest.mark.parametrize(
    "given", [{**REQUEST, "callId": "c2"}, {**REQUEST, "name": "ls"}, {"name": "get_weather", "args": ["-l"]}]
)
def test_arguments_that_resemble_a_record_of_another_call_stay_whole(given: dict[str, Any]) -> None:
    assert recorded_tool(given, "done").arguments == given


@pytest.mark.parametrize("parts", [5, "functionResponse", ["functionResponse"], [{}], []])
def test_record_of_a_tool_call_with_invalid_parts(parts: Any) -> None:
    response = {"callId": "c1", "responseParts": parts}
    assert recorded_tool(REQUEST, {"request": REQUEST, "response": response}).result == response


def handed_off(
    name: str, attributes: dict[str, Any], *, scope: str = "acme", later: str | None = None
) -> tuple[str | None, str | None]:
    kinds = {"span.kind": "agent", "agent.name": "Triage"}
    runs = [span(4, 1, "agent", {"span.kind": "agent", "agent.name": later}, scope=scope, at=30)] if later else []
    handoff = span(2, 1, name, attributes, scope=scope, at=10)
    turn = turn_of(
        span(1, 0, "agent Triage", kinds, scope=scope, ms=90), handoff, *runs, chat(3, 1, user=ASKED, says=SAID, at=20)
    )
    (found,) = turn.handoffs or ()
    return found.from_, found.to


@pytest.mark.parametrize(("name", "attributes"), [
    ("Handoff", {"type": "handoff", "from_agent": "Triage", "to_agent": "Billing"}),
    ("handoff", {"span.kind": "handoff", "handoff.to_agent": "Billing", "handoff.from_agent": "Triage"}),
    ("handoff", {"agents.data": '{"type": "handoff", "from_agent": "Triage", "to_agent": "Billing"}'}),
    ("handoff from Triage to Billing", {"gen_ai.operation.name": "handoff"}),
    ("Handoff to Billing", {"gen_ai.operation.name": "handoff"}),
    ("Triage → Billing.handoff", {"traceloop.span.kind": "handoff"}),
])  # fmt: skip
@pytest.mark.parametrize("later", ["Refunds", None])
def test_handoff_is_between_the_agents_that_its_span_names(name: str, attributes: dict[str, Any], later: str | None) -> None:
    """llm-tracekit 14 and sentry-python 5528: the ends are in attributes or in the span's name."""
    assert handed_off(name, attributes, later=later) == ("Triage", "Billing")


@pytest.mark.parametrize("name", ["handoff", "Handoff", "HANDOFF"])
def test_handoff_without_a_target_goes_to_the_next_agent(name: str) -> None:
    assert handed_off(name, {"span.kind": "handoff"}, later="Billing") == ("Triage", "Billing")


@pytest.mark.parametrize("more", [{}, {"message.from_agent": "Triage", "message.to_agent": "Billing"}])
def test_messages_between_agents_are_no_handoffs(more: dict[str, str]) -> None:
    assert not turn_of(agent(1), span(2, 1, "notify", more), chat(3, 1, user=ASKED, says=SAID, at=20)).handoffs


def cohere(*messages: tuple[str, str, str], library: str = "@traceloop/instrumentation-cohere") -> Any:
    attributes = {"gen_ai.system": "Cohere", "llm.request.type": "chat", "gen_ai.request.model": "command-r"}
    for index, (role, key, text) in enumerate(messages):
        attributes |= {f"gen_ai.prompt.{index}.role": role, f"gen_ai.prompt.{index}.{key}": text}
    answer = {"gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.content": SAID}
    return span(1, 0, "cohere.chat", {**attributes, **answer}, scope=library)


@pytest.mark.parametrize("key", ["user", "content"])
@pytest.mark.parametrize(
    "history",
    [(), (("USER", "user", "Hello"), ("CHATBOT", "user", "Hi!")), (("USER", "content", "Hello"), ("CHATBOT", "content", "Hi!"))],
)
def test_texts_of_cohere_messages(key: str, history: Any) -> None:
    """openllmetry-js 1035: Cohere's instrumentation for JavaScript writes each text under ``user``."""
    turn = turn_of(cohere(*history, ("user", key, ASKED)))
    assert (turn.input, turn.output) == (ASKED, SAID)
    old = [("user", "Hello"), ("assistant", "Hi!")] if history else []
    assert [(message.role, message.content) for message in turn.messages] == [*old, ("user", ASKED), ("assistant", SAID)]


def test_user_beside_a_messages_content_is_not_its_text() -> None:
    record = cohere(("user", "content", ASKED), library="opentelemetry.instrumentation.openai")
    record.attributes["gen_ai.prompt.0.user"] = "u-1"
    assert turn_of(record).input == ASKED


MESSAGES = {
    **{f"llm.input_messages.{index}.message.role": ("user", "assistant")[index % 2] for index in range(18, 41)},
    **{f"llm.input_messages.{index}.message.content": f"Old text {index}" for index in range(18, 41)},
}
ANSWER = {"llm.output_messages.0.message.role": "assistant", "llm.output_messages.0.message.content": SAID}
COUNTS = {"llm.token_count.prompt": 10, "llm.token_count.completion": 5}


def without_oldest(attributes: dict[str, Any], root_kind: str | None) -> Turn:
    """Return the turn of a span whose oldest attributes were dropped, alone or below a span with a kind."""
    record = span(2, 1 if root_kind else 0, "ChatCompletion", attributes, scope="openinference.instrumentation.openai")
    record.truncated = True
    return turn_of(*([openinference(1, 0, root_kind, "agent")] if root_kind else []), record)


@pytest.mark.parametrize("root_kind", ["AGENT", "CHAIN", None])
@pytest.mark.parametrize("attributes", [MESSAGES | ANSWER | COUNTS, ANSWER | COUNTS, MESSAGES | ANSWER])
def test_model_call_without_its_oldest_attributes(attributes: dict[str, Any], root_kind: str | None) -> None:
    """litellm 34828: Python's SDK drops the span kind and the model first, if a span has too many attributes."""
    turn = without_oldest(attributes, root_kind)
    (call,) = turn.llm_calls or ()
    assert (turn.output, call.output_tokens) == (SAID, attributes.get("llm.token_count.completion"))


@pytest.mark.parametrize("attributes", [COUNTS, ANSWER, {"input.value": ASKED, "output.value": SAID}])
def test_span_without_kind_and_messages_is_no_model_call(attributes: dict[str, Any]) -> None:
    assert not without_oldest(attributes, "AGENT").llm_calls


def test_chain_with_a_models_attributes_is_no_model_call() -> None:
    chain = openinference(1, 0, "CHAIN", "LangGraph", more={**ANSWER, "input.value": ASKED, "output.value": SAID, **COUNTS})
    assert len(turn_of(chain, oi_model(2, 1)).llm_calls or ()) == 1


# --- models, roles and placeholders that don't mean what they seem to


@pytest.mark.parametrize(("name", "model", "calls"), [
    ("tts_node", "cartesia/sonic-3", 1),
    ("stt_node", "deepgram/nova-3", 1),
    ("tts_request", "cartesia/sonic-3", 1),
    ("tts", "gpt-4o-mini-tts", 1),
    ("tts_script_writer", "gpt-4o", 2),
    ("chat gpt-4o", "gpt-4o", 2),
    ("stream_request", "gpt-4o", 2),
])  # fmt: skip
def test_model_of_a_speech_service_is_no_model_call(name: str, model: str, calls: int) -> None:
    """livekit/agents 7143 and latitude 3526: LiveKit writes the service's model on the spans of its nodes."""
    call = chat(2, 1, user=ASKED, says=SAID)
    other = span(3, 1, name, {"gen_ai.request.model": model, "gen_ai.provider.name": "x"}, scope="livekit-agents", at=20)
    assert len(turn_of(agent(1), call, other).llm_calls or ()) == calls


@pytest.mark.parametrize("texts", [
    {"gen_ai.prompt.0.content": ASKED, "gen_ai.completion.0.content": SAID},
    {"gen_ai.output.messages": json.dumps([{"role": "assistant", "content": SAID}])},
])  # fmt: skip
@pytest.mark.parametrize("name", ["tts", "stt_request"])
def test_speech_service_with_an_answer_is_a_model_call(name: str, texts: dict[str, str]) -> None:
    """The opposite of livekit/agents 7143: a span of an audio model with its texts."""
    turn = turn_of(span(1, 0, name, {"gen_ai.request.model": "gpt-4o-audio", **texts}))
    assert (turn.output, len(turn.llm_calls or ())) == (SAID, 1)


def of_proxy(attributes: dict[str, Any], content: dict[str, Any]) -> Turn:
    """Return the turn of a proxy's server span with these attributes, and the request's own span if ``content`` isn't on both."""
    server = span(1, 0, "POST /v1/chat", {"http.route": "/v1/chat", "gen_ai.request.model": "gpt-4o", **attributes}, ms=90)
    server.server = True
    named = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o", "gen_ai.response.model": "gpt-4o-2024-08-06"}
    return turn_of(server, span(2, 1, "chat gpt-4o", {**named, **content}, at=5)) if content else turn_of(server)


@pytest.mark.parametrize("content", [
    {"gen_ai.usage.output_tokens": 5}, {"gen_ai.output.messages": json.dumps([{"role": "assistant", "content": SAID}])},
])  # fmt: skip
def test_requested_model_on_a_server_span_is_no_call(content: dict[str, Any]) -> None:
    """litellm 35193: the proxy writes the requested model on all its spans."""
    assert [call.model for call in of_proxy({}, content).llm_calls or ()] == ["gpt-4o-2024-08-06"]


@pytest.mark.parametrize("counts", [{"gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 5}, {}])
def test_server_span_of_a_gateway_is_the_call(counts: dict[str, int]) -> None:
    """The opposite of litellm 35193: the gateway writes the whole call on its only span."""
    messages = {
        "gen_ai.input.messages": json.dumps([{"role": "user", "content": ASKED}]),
        "gen_ai.output.messages": json.dumps([{"role": "assistant", "content": SAID}]),
    }
    turn = of_proxy({**messages, **counts}, {})
    assert (turn.input, turn.output, [call.model for call in turn.llm_calls or ()]) == (ASKED, SAID, ["gpt-4o"])


@pytest.mark.parametrize("counts", [
    {"gen_ai.usage.input_tokens": 4}, {"gen_ai.usage.prompt_tokens": 4, "gen_ai.usage.completion_tokens": 5},
    {"gen_ai.response.model": "gpt-4o"}, {"gen_ai.response.finish_reasons": ["stop"]}, {"gen_ai.prompt": ASKED, "gen_ai.completion": SAID},
    {"input": ASKED, "output": SAID},
])  # fmt: skip
@pytest.mark.parametrize("alone", [True, False])
def test_server_span_with_part_of_a_call_is_the_call(counts: dict[str, Any], alone: bool) -> None:
    """The opposite of litellm 35193: a gateway that captures no messages of the convention."""
    server = span(2, 0 if alone else 1, "POST /v1/chat", {"http.route": "/v1/chat", "gen_ai.request.model": "gpt-4o", **counts})
    turn = turn_of(server) if alone else turn_of(agent(1), server)
    assert [call.model for call in turn.llm_calls or ()] == ["gpt-4o"]


def test_agents_name_on_a_server_span() -> None:
    server = span(
        1, 0, "POST /chat", {"http.route": "/chat", "gen_ai.request.model": "gpt-4o", "gen_ai.agent.name": "bot"}, ms=90
    )
    turn = turn_of(server, chat(2, 1, user=ASKED, says=SAID, at=5))
    assert (turn.agent, turn.output, len(turn.llm_calls or ())) == ("bot", SAID, 1)


@pytest.mark.parametrize(("operation", "calls"), [
    ("acompletion", 1), ("aresponses", 1), ("atext_completion", 1), ("anthropic_messages", 1), ("chat", 1),
    ("aembedding", 0), ("arerank", 0), ("alist_files", 0),
])  # fmt: skip
@pytest.mark.parametrize("model", [{"gen_ai.request.model": ""}, {"gen_ai.request.model": "gpt-4o"}, {}])
def test_operation_is_the_name_of_litellms_function(operation: str, calls: int, model: dict[str, str]) -> None:
    """litellm 31583: a streamed call lacks the model and the tokens."""
    attributes = {
        "gen_ai.operation.name": operation, **model,
        "gen_ai.input.messages": json.dumps([{"role": "user", "content": ASKED}]),
        "gen_ai.output.messages": json.dumps([{"role": "assistant", "content": SAID}]),
    }  # fmt: skip
    turn = turn_of(agent(1), span(2, 1, "litellm_request", attributes, scope="litellm"))
    assert (len(turn.llm_calls or ()), turn.output) == (calls, SAID if calls else None)


def test_other_spans_of_litellm_with_the_operation_are_no_calls() -> None:
    """The opposite of litellm 31583: spans of the proxy and of a guardrail."""
    named = {"gen_ai.operation.name": "acompletion"}
    call = chat(3, 2, user=ASKED, says=SAID, attributes=named, name="litellm_request", scope="litellm", at=10)
    proxy = span(2, 1, "Received Proxy Server Request", {**named, "gen_ai.request.model": "gpt-4o"}, scope="litellm", ms=50)
    guard = span(4, 1, "guardrail", {**named, "guardrail_name": "pii"}, scope="litellm", at=60)
    turn = turn_of(agent(1), proxy, call, guard)
    assert [one.span_id for one in turn.llm_calls or ()] == [f"{3:016x}"]


REALTIME = {"tool.function_name": "get_weather", "tool.call_id": "c1"}


def test_realtime_spans_of_a_call_and_its_result_are_one_call() -> None:
    """pipecat 3681: the names of the operations contain ``llm``."""
    spans = [
        ("llm_tool_call", {**REALTIME, "tool.arguments": json.dumps({"city": "Paris"})}),
        ("llm_tool_result", {**REALTIME, "tool.result": "21", "tool.result_status": "success"}),
        ("llm_response", {"output": SAID, "gen_ai.usage.input_tokens": 60, "gen_ai.usage.output_tokens": 12}),
    ]
    names = {"gen_ai.request.model": "gpt-realtime", "gen_ai.provider.name": "openai"}
    records = [
        span(2 + place, 1, name, {"gen_ai.operation.name": name, **names, **more}, scope="pipecat", at=20 * place)
        for place, (name, more) in enumerate(spans)
    ]
    turn = turn_of(span(1, 0, "turn", {"turn.number": 1}, scope="pipecat", ms=90), *records)
    assert [(call.name, call.arguments, call.result) for call in turn.tool_calls or ()] == [
        ("get_weather", {"city": "Paris"}, "21")
    ]
    assert (turn.output, [(call.input_tokens, call.output_tokens) for call in turn.llm_calls or ()]) == (SAID, [(60, 12)])


@pytest.mark.parametrize("operation", ["tool_calling_completion", "function_calling_chat", "chat_with_tools"])
def test_operation_of_a_model_that_calls_tools_is_a_model_call(operation: str) -> None:
    """The opposite of pipecat 3681."""
    call = chat(2, 1, user=ASKED, says=SAID, attributes={"gen_ai.operation.name": operation})
    turn = turn_of(agent(1), call)
    assert (turn.output, len(turn.llm_calls or ()), turn.tool_calls) == (SAID, 1, [])


@pytest.mark.parametrize("operation", ["chat.completions", "llm", "generate", "LlmCall"])
def test_model_call_with_the_name_of_a_function(operation: str) -> None:
    """The opposite of pipecat 3681: an application's own attribute on the span of its model call."""
    call = chat(2, 1, user=ASKED, says=SAID, attributes={"gen_ai.operation.name": operation, **REALTIME})
    turn = turn_of(agent(1), call)
    assert (turn.output, len(turn.llm_calls or ()), turn.tool_calls) == (SAID, 1, [])


@pytest.mark.parametrize(("text", "expected"), [
    ("<redacted>", None), ("<REDACTED>", None), ("[Filtered]", None), ("****", None), ("***", None), ("[MASKED]", None), ("<masked>", None),
    ("__REDACTED__", None), ("[Scrubbed due to 'password']", None),
    ("The name is <redacted>.", "The name is <redacted>."), ("[Filtered] by date", "[Filtered] by date"),
    ("**", "**"), ("**** stars", "**** stars"), ("masked", "masked"), ("Filtered", "Filtered"), ("[x]", "[x]"),
])  # fmt: skip
def test_placeholder_of_redacted_content_is_unknown(text: str, expected: str | None) -> None:
    """genkit 4848 and opentelemetry-collector-contrib 50801: an exporter or the Collector redacts the input and output of each span."""
    flow = {"genkit:type": "action", "genkit:metadata:subtype": "flow", "genkit:input": text, "genkit:output": text}
    model = {"genkit:type": "action", "genkit:metadata:subtype": "model", "genkit:input": text, "genkit:output": text}
    root = span(1, 0, "flow", {"genkit:name": "flow", **flow}, scope="genkit-tracer", ms=50)
    turn = turn_of(root, span(2, 1, "gemini", {"genkit:name": "googleai/gemini-2.5-flash", **model}, scope="genkit-tracer"))
    assert (turn.input, turn.output) == (expected, expected)
    plain = turn_of(chat(1, user=text, says=text))
    assert (plain.input, plain.output) == (expected, expected)
