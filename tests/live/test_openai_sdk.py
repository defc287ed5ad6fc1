"""The OpenAI SDK in a hand-written loop, instrumented by OpenTelemetry's package, against a scripted server on loopback."""

from __future__ import annotations

import json
from contextlib import contextmanager

import pytest

pytest.importorskip("openai")
pytest.importorskip("opentelemetry.instrumentation.genai.openai")

import openai
from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor

from tests.support.fake_llm import SCRIPTS
from tests.support.live import Live, check_outlets

MODEL = "gpt-4o-mini"
SYSTEM = "You are the support assistant of the Acme store."
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": about,
            "parameters": {"type": "object", "properties": {key: {"type": "string"}}},
        },
    }
    for name, about, key in (("get_weather", "Current weather.", "city"), ("lookup_order", "Look up an order.", "order_id"))
]


def question(script):
    return SCRIPTS[script][0]


def get_weather(city):
    return {"Paris": "18°C and sunny", "Tokyo": "24°C and rainy", "Lima": "21°C and foggy", "Oslo": "3°C"}[city]


def lookup_order(order_id):
    return "shipped" if order_id == "A-1001" else f"Error: no order {order_id}"


@contextmanager
def instrumented(live, monkeypatch, capture):
    """The SDK instrumented with the given capture mode, for the time of a test."""
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", capture)
    if capture == "EVENT_ONLY":
        monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_EMIT_EVENT", "true")
    instrumentor = OpenAIInstrumentor()
    instrumentor.instrument(tracer_provider=live.provider, logger_provider=live.logger_provider)
    try:
        yield
    finally:
        instrumentor.uninstrument()


@pytest.fixture
def client(llm):
    with openai.OpenAI(base_url=llm, api_key="none", max_retries=0) as client:
        yield client


@pytest.fixture
def on_spans(live, monkeypatch):
    """A set-up whose instrumentation writes content on spans."""
    with instrumented(live, monkeypatch, "SPAN_ONLY"):
        yield live


@pytest.fixture
def on_logs(live, monkeypatch):
    """A set-up whose instrumentation writes content in log records only."""
    with instrumented(live, monkeypatch, "EVENT_ONLY"):
        yield live


def loop(client, script, *, stream=False):
    """A tool loop as in every tutorial; returns the answer."""
    history = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": question(script)}]
    while True:
        message = ask(client, history, stream)
        history.append(message)
        if not message.get("tool_calls"):
            return message["content"]
        for call in message["tool_calls"]:
            tool = {"get_weather": get_weather, "lookup_order": lookup_order}[call["function"]["name"]]
            result = tool(**json.loads(call["function"]["arguments"]))
            history.append({"role": "tool", "tool_call_id": call["id"], "content": result})


def ask(client, history, stream):
    if not stream:
        return (
            client.chat.completions.create(model=MODEL, messages=history, tools=TOOLS)
            .choices[0]
            .message.model_dump(exclude_none=True)
        )
    content, calls = "", {}
    for chunk in client.chat.completions.create(
        model=MODEL, messages=history, tools=TOOLS, stream=True, stream_options={"include_usage": True}
    ):
        for choice in chunk.choices:
            content += choice.delta.content or ""
            for part in choice.delta.tool_calls or []:
                call = calls.setdefault(
                    part.index, {"id": part.id, "type": "function", "function": {"name": part.function.name, "arguments": ""}}
                )
                call["function"]["arguments"] += part.function.arguments or ""
    return {"role": "assistant", "content": content, **({"tool_calls": list(calls.values())} if calls else {})}


def handled(live, client, script, **more):
    """The loop below a span of the application."""
    with live.tracer.start_as_current_span("handle_message", attributes={"session.id": "conv-1"}):
        return loop(client, script, **more)


CAPTURE = pytest.mark.parametrize("capture", ["SPAN_ONLY", "EVENT_ONLY"], ids=["content on spans", "content in log records"])


@pytest.fixture
def captured(request, live, monkeypatch, capture):
    with instrumented(live, monkeypatch, capture):
        yield live


@CAPTURE
def test_the_turn_has_its_question_and_answer(captured, client):
    answer = handled(captured, client, "s2")
    turn = captured.turn()
    assert (turn.input, turn.output) == (question("s2"), answer)
    assert (turn.conversation_id, turn.service, turn.close_reason, turn.complete) == ("conv-1", "support", "root_ended", True)


@CAPTURE
def test_the_turn_has_the_tools_that_stand_only_in_messages(captured, client):
    handled(captured, client, "s3")
    assert [(call.name, call.arguments, call.result) for call in captured.turn().tool_calls] == [
        ("get_weather", {"city": "Paris"}, "18°C and sunny"), ("get_weather", {"city": "Tokyo"}, "24°C and rainy"),
    ]  # fmt: skip


@CAPTURE
def test_a_tool_that_failed_is_known_by_its_result(captured, client):
    handled(captured, client, "s4")
    turn = captured.turn()
    assert [(call.arguments, call.error is not None) for call in turn.tool_calls] == [
        ({"order_id": "A1001"}, True),
        ({"order_id": "A-1001"}, False),
    ]
    assert turn.error is None


@CAPTURE
def test_the_turn_has_its_model_calls_and_tokens(captured, client):
    handled(captured, client, "s2")
    turn = captured.turn()
    assert [(call.model, call.input_tokens, call.output_tokens) for call in turn.llm_calls] == [
        ("gpt-4o-mini-2024-07-18", 57, 15), ("gpt-4o-mini-2024-07-18", 91, 14),
    ]  # fmt: skip
    assert (turn.usage.input_tokens, turn.usage.output_tokens, turn.usage.cached_tokens) == (148, 29, 64)


@CAPTURE
def test_a_streamed_turn_is_the_same(captured, client):
    answer = handled(captured, client, "s10b", stream=True)
    turn = captured.turn()
    assert (turn.input, turn.output) == (question("s10b"), answer)
    assert [(call.name, call.arguments) for call in turn.tool_calls] == [("get_weather", {"city": "Lima"})]
    assert (turn.usage.input_tokens, turn.usage.output_tokens) == (150, 27)


@CAPTURE
def test_the_system_text_and_the_tool_definitions_are_known(captured, client):
    handled(captured, client, "s1")
    turn = captured.turn()
    assert turn.system == SYSTEM
    assert {definition["name"] for definition in turn.tool_definitions} == {"get_weather", "lookup_order"}


def test_a_streamed_call_has_a_time_to_its_first_token(on_spans, client):
    handled(on_spans, client, "s10", stream=True)
    assert on_spans.turn().llm_calls[0].time_to_first_token_s > 0


@pytest.mark.parametrize(
    ("script", "error"), [("s9", openai.RateLimitError), ("s9b", openai.InternalServerError)], ids=["429", "500"]
)
def test_a_call_that_fails_fails_the_turn(on_spans, client, script, error):
    with pytest.raises(error):
        handled(on_spans, client, script)
    turn = on_spans.turn()
    assert error.__name__ in (turn.error.type or "")
    assert turn.input == question(script)
    assert {score.metric: score.passed for score in on_spans.scored()[0].scores}["code_turn_error"] is False


def test_the_steps_before_the_failure_are_in_the_turn(on_spans, client):
    with pytest.raises(openai.InternalServerError):
        handled(on_spans, client, "s9b")
    turn = on_spans.turn()
    assert [(call.name, call.result) for call in turn.tool_calls] == [("get_weather", "3°C")]
    assert len(turn.llm_calls) == 2


def test_an_answer_that_was_cut_is_found(on_spans, client):
    handled(on_spans, client, "s17")
    assert {score.metric: score.passed for score in on_spans.scored()[0].scores}["code_truncated_answer"] is False


def test_sample_data_in_the_answer_is_no_leak(on_spans, client):
    """A reserved domain, a number for films, a test card: only the number that looks like a person's is mentioned."""
    handled(on_spans, client, "s11")
    score = next(score for score in on_spans.scored()[0].scores if score.metric == "code_pii_leakage")
    assert score.passed is True
    assert [find["type"] for find in score.detail["uncertain"]] == ["ssn"]


def test_a_stream_that_nobody_reads_to_its_end_closes_the_turn_when_it_is_closed(on_spans, client):
    with on_spans.tracer.start_as_current_span("handle_message"):
        stream = client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": question("s20")}], stream=True)
        next(iter(stream))
    assert on_spans.scored() == []
    stream.close()
    turn = on_spans.turn()
    assert (turn.input, turn.close_reason, turn.complete) == (question("s20"), "root_ended", True)
    assert on_spans.engine.assembler.open_turns == 0


def test_a_call_without_an_application_span_is_its_own_turn(on_spans, client):
    assert loop(client, "s1") == "The capital of France is Paris."
    turn = on_spans.turn()
    assert (turn.input, turn.output) == (question("s1"), "The capital of France is Paris.")


def test_without_content_capture_the_turn_has_facts_and_no_text(live, client, monkeypatch):
    with instrumented(live, monkeypatch, "NO_CONTENT"):
        handled(live, client, "s2")
    turn = live.turn()
    assert (turn.input, turn.output) == (None, None)
    assert turn.usage.input_tokens == 148
    statuses = {score.metric: score.status for score in live.scored()[0].scores}
    assert (statuses["code_empty_answer"], statuses["code_token_usage"]) == ("skipped", "ok")


def test_with_content_in_log_records_none_of_it_is_on_the_spans(on_logs, client):
    handled(on_logs, client, "s1")
    on_logs.flush()
    assert not any("capital of France" in str(span) for span in on_logs.receiver.spans())
    assert on_logs.turn().output == "The capital of France is Paris."


def test_the_instrumentations_own_log_records_still_leave(on_logs, client):
    handled(on_logs, client, "s1")
    on_logs.flush()
    names = [record.event_name for record in on_logs.receiver.log_records()]
    assert names.count("gen_ai.client.inference.operation.details") == 1


def test_its_scores_are_in_everything_that_leaves(live_in_any_order, client, monkeypatch):
    with instrumented(live_in_any_order, monkeypatch, "SPAN_ONLY"):
        handled(live_in_any_order, client, "s2")
    check_outlets(live_in_any_order)


def test_with_content_in_log_records_its_scores_are_in_everything_that_leaves(client, monkeypatch):
    live = Live(metrics=True)
    with instrumented(live, monkeypatch, "EVENT_ONLY"):
        handled(live, client, "s2")
    check_outlets(live)
    live.close()


@pytest.fixture
def hooked(live, monkeypatch):
    """A set-up that captures no content, and gives it to the completion hook."""
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_COMPLETION_HOOK", "agenteval")
    with instrumented(live, monkeypatch, "NO_CONTENT"):
        yield live


def test_the_completion_hook_gives_content_that_is_on_no_span(hooked, client):
    answer = handled(hooked, client, "s2")
    turn = hooked.turn()
    assert (turn.input, turn.output, turn.system) == (question("s2"), answer, SYSTEM)
    assert [(call.name, call.arguments, call.result) for call in turn.tool_calls] == [
        ("get_weather", {"city": "Paris"}, "18°C and sunny")
    ]
    assert [tool["name"] for tool in turn.tool_definitions] == ["get_weather", "lookup_order"]


def test_content_from_the_completion_hook_is_exported_nowhere(hooked, client):
    answer = handled(hooked, client, "s2")
    hooked.flush()
    sent = "".join(str(request) for request in hooked.receiver.requests)
    assert MODEL in sent
    assert answer not in sent
    assert question("s2") not in sent
