"""The OpenAI SDK in a hand-written loop, instrumented by OpenTelemetry's package, against a scripted server on loopback."""

from __future__ import annotations

import pytest

pytest.importorskip("openai")
pytest.importorskip("opentelemetry.instrumentation.genai.openai")

import openai

from tests.support.agents import MODEL, SYSTEM, asker, definitions, openai_traced, tool_loop
from tests.support.fake_llm import SCRIPTS
from tests.support.live import Live, check_outlets


def get_weather(city):
    return {"Paris": "18°C and sunny", "Tokyo": "24°C and rainy", "Lima": "21°C and foggy", "Oslo": "3°C"}[city]


def lookup_order(order_id):
    return "shipped" if order_id == "A-1001" else f"Error: no order {order_id}"


TOOLS = {"get_weather": get_weather, "lookup_order": lookup_order}
OFFERED = definitions({"get_weather": "city", "lookup_order": "order_id"})


def question(script):
    return SCRIPTS[script][0]


@pytest.fixture
def client(llm):
    with openai.OpenAI(base_url=llm, api_key="none", max_retries=0) as client:
        yield client


def handled(live, client, script, **more):
    """Return the loop below an application span."""
    with live.tracer.start_as_current_span("handle_message", attributes={"session.id": "conv-1"}):
        return tool_loop(asker(client, OFFERED, **more), question(script), TOOLS)


CAPTURE = pytest.mark.parametrize("capture", ["SPAN_ONLY", "EVENT_ONLY"], ids=["content on spans", "content in log records"])


@pytest.fixture
def captured(live, capture):
    with openai_traced(live, capture):
        yield live


@CAPTURE
def test_the_turn_has_everything_that_the_loop_did(captured, client):
    answer = handled(captured, client, "s2")
    turn = captured.turn()
    assert (turn.input, turn.output, turn.system) == (question("s2"), answer, SYSTEM)
    assert (turn.conversation_id, turn.service, turn.close_reason, turn.complete) == ("conv-1", "support", "root_ended", True)
    assert [(call.name, call.arguments, call.result) for call in turn.tool_calls] == [
        ("get_weather", {"city": "Paris"}, "18°C and sunny")
    ]
    assert {definition["name"] for definition in turn.tool_definitions} == {"get_weather", "lookup_order"}
    assert [(call.model, call.input_tokens, call.output_tokens) for call in turn.llm_calls] == [
        ("gpt-4o-mini-2024-07-18", 57, 15), ("gpt-4o-mini-2024-07-18", 91, 14),
    ]  # fmt: skip
    assert (turn.usage.input_tokens, turn.usage.output_tokens, turn.usage.cached_tokens) == (148, 29, 64)


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
def test_a_streamed_turn_is_the_same(captured, client):
    answer = handled(captured, client, "s10b", stream=True)
    turn = captured.turn()
    assert (turn.input, turn.output) == (question("s10b"), answer)
    assert [(call.name, call.arguments) for call in turn.tool_calls] == [("get_weather", {"city": "Lima"})]
    assert (turn.usage.input_tokens, turn.usage.output_tokens) == (150, 27)
    assert turn.llm_calls[0].time_to_first_token_s > 0


def test_without_content_capture_the_turn_has_facts_and_no_text(live, client):
    with openai_traced(live, "NO_CONTENT"):
        handled(live, client, "s2")
    turn = live.turn()
    assert (turn.input, turn.output) == (None, None)
    assert turn.usage.input_tokens == 148
    statuses = {score.metric: score.status for score in live.scored()[0].scores}
    assert (statuses["code_empty_answer"], statuses["code_token_usage"]) == ("skipped", "ok")


def test_its_scores_are_in_everything_that_leaves(live_in_any_order, client):
    with openai_traced(live_in_any_order, "SPAN_ONLY"):
        handled(live_in_any_order, client, "s2")
    check_outlets(live_in_any_order)


def test_with_content_in_log_records_its_scores_leave_beside_the_records(client):
    live = Live(metrics=True)
    with openai_traced(live, "EVENT_ONLY"):
        handled(live, client, "s1")
    check_outlets(live)
    names = [record.event_name for record in live.receiver.log_records()]
    assert names.count("gen_ai.client.inference.operation.details") == 1
    assert not any("capital of France" in str(span) for span in live.receiver.spans())
    assert live.turn().output == "The capital of France is Paris."
    live.close()


def test_the_completion_hook_gives_content_that_is_exported_nowhere(live, client, monkeypatch):
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_COMPLETION_HOOK", "agenteval")
    with openai_traced(live, "NO_CONTENT"):
        answer = handled(live, client, "s2")
    turn = live.turn()
    assert (turn.input, turn.output, turn.system) == (question("s2"), answer, SYSTEM)
    assert [(call.name, call.arguments, call.result) for call in turn.tool_calls] == [
        ("get_weather", {"city": "Paris"}, "18°C and sunny")
    ]
    assert [tool["name"] for tool in turn.tool_definitions] == ["get_weather", "lookup_order"]
    live.flush()
    sent = "".join(str(request) for request in live.receiver.requests)
    assert MODEL in sent
    assert answer not in sent
    assert question("s2") not in sent
