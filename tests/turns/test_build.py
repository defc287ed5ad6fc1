"""Fields of a turn. Each table tests one field for some spans."""

from __future__ import annotations

import json

import pytest

import otel_agenteval as oa
from otel_agenteval.core.turn import ErrorInfo
from otel_agenteval.spans.record import SpanEvent
from tests.support.spans import agent, chat, span, tool, turn_of

USER = {"role": "user", "parts": [{"type": "text", "content": "Weather in Paris?"}]}
ASKED = {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "search", "arguments": {"q": "Paris"}}]}
CALL = {"id": "c1", "name": "search", "arguments": {"q": "Paris"}}


def usage(input_tokens, output_tokens, **more):
    return {"gen_ai.usage.input_tokens": input_tokens, "gen_ai.usage.output_tokens": output_tokens, **more}


@pytest.mark.parametrize(
    ("later", "seconds"),
    [
        pytest.param(chat(2, 1, at=90, ms=60), 0.15, id="a streamed model call ends after the root"),
        pytest.param(tool(2, 1, at=90, ms=30), 0.12, id="a tool ends after the root"),
        pytest.param(span(2, 1, "GET /", {"http.request.method": "GET"}, at=90, ms=60), 0.1, id="any other span does not count"),
        pytest.param(chat(2, 1, at=10, ms=20), 0.1, id="all spans end before the root"),
        pytest.param(chat(2, 1, at=3.6e6, resource={"host.name": "b"}), 0.1, id="a host's clock is ahead"),
        pytest.param(
            chat(2, 1, at=90, ms=60, resource={"host.name": "b"}), 0.15, id="a call on another host ends after the root"
        ),
    ],
)
def test_the_duration_ends_with_the_root_or_a_later_recognized_span(later, seconds):
    assert turn_of(agent(1), later).duration_s == pytest.approx(seconds)


# --- input and output


def test_the_input_is_the_last_thing_the_user_said():
    old = {"role": "user", "parts": [{"type": "text", "content": "Hello"}]}
    assert turn_of(agent(1), chat(2, 1, messages=[old, {"role": "assistant", "parts": []}, USER])).input == "Weather in Paris?"


def test_a_tool_result_in_the_role_of_the_user_is_not_what_the_user_said():
    result = {"role": "user", "parts": [{"type": "tool_call_response", "id": "c1", "response": "18"}]}
    assert turn_of(agent(1), chat(2, 1, messages=[USER, ASKED, result])).input == "Weather in Paris?"


def test_the_root_s_own_input_wins_over_the_prompt_around_it():
    root = agent(1, attributes={"gen_ai.input.messages": json.dumps([USER])})
    assert turn_of(root, chat(2, 1, user="Answer from the context only: … Weather in Paris?")).input == "Weather in Paris?"


def test_the_output_is_the_text_of_the_call_that_ended_last():
    assert turn_of(agent(1), chat(2, 1, says="first"), chat(3, 1, says="last", at=50)).output == "last"


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        pytest.param('[{"role":"assistant","parts":[]}]', "", id="a message without text is an empty answer"),
        pytest.param('[{"role":"assistant","parts":[{"type":"text","content":""}]}]', "", id="an empty text is an empty answer"),
        pytest.param('[{"role":"assistant","parts":[{"type":"text"}]}]', None, id="a text part without text was not captured"),
        pytest.param('"[REDACTED]"', None, id="a redaction mark is no answer"),
        pytest.param(None, None, id="no attribute, no answer known"),
        pytest.param('[{"role":"assistant","parts":[{"type":"text","content":"Par', "Par", id="cut in the middle"),
    ],
)
def test_an_answer_that_was_not_captured_is_unknown_and_an_empty_one_is_empty(output, expected):
    attributes = {} if output is None else {"gen_ai.output.messages": output}
    assert turn_of(agent(1), chat(2, 1, attributes=attributes)).output == expected


def test_a_turn_that_ends_on_a_tool_request_has_no_answer():
    assert turn_of(agent(1), chat(2, 1, calls=[CALL])).output is None


def test_content_that_was_cut_is_marked():
    turn = turn_of(
        agent(1), chat(2, 1, attributes={"gen_ai.output.messages": '[{"role":"assistant","parts":[{"type":"text","content":"Par'})
    )
    assert turn.truncated


def test_whole_content_is_not_marked():
    assert not turn_of(agent(1), chat(2, 1, user="a", says="b")).truncated


def test_unreadable_messages_are_no_text():
    deep = '[{"role":"user","parts":' + "[" * 100_000
    turn = turn_of(agent(1), chat(2, 1, attributes={"gen_ai.input.messages": deep, "gen_ai.output.messages": deep}))
    assert (turn.input, turn.output, turn.truncated) == (None, None, True)


def test_the_system_instructions_are_found_beside_and_among_the_messages():
    beside = chat(2, 1, user="a", attributes={"gen_ai.system_instructions": '[{"type":"text","content":"Be brief."}]'})
    among = chat(2, 1, messages=[{"role": "system", "parts": [{"type": "text", "content": "Be brief."}]}, USER])
    assert [turn_of(agent(1), s).system for s in (beside, among)] == ["Be brief.", "Be brief."]


# --- model calls


def test_a_model_call_inside_a_tool_inside_an_agent_is_a_call_of_its_own():
    assert len(turn_of(agent(1), chat(2, 1), tool(3, 1), chat(4, 3)).llm_calls) == 2


def test_cost_is_the_sum_of_what_is_stated_and_unknown_otherwise():
    priced = turn_of(agent(1), chat(2, 1, attributes={"operation.cost": 0.5}), chat(3, 1, attributes={"operation.cost": 0.25}))
    assert priced.cost_usd == 0.75
    assert turn_of(agent(1), chat(2, 1)).cost_usd is None


# --- tools


def test_arguments_that_a_span_lost_come_from_the_model_s_request():
    attributes = {"openinference.span.kind": "TOOL", "tool.name": "search", "input.value": "Paris"}
    turn = turn_of(agent(1), chat(2, 1, calls=[CALL]), span(3, 1, "search", attributes, at=20))
    assert [(c.call_id, c.arguments) for c in turn.tool_calls] == [("c1", {"q": "Paris"})]


def test_a_failed_tool_is_not_a_failed_turn():
    turn = turn_of(agent(1), chat(2, 1, says="fine"), tool(3, 1, error="TimeoutError: too slow"))
    assert turn.tool_calls[0].error == ErrorInfo("TimeoutError", "TimeoutError: too slow")
    assert turn.error is None


def test_tool_definitions_are_read_once_and_named():
    definitions = json.dumps([{"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}])
    turn = turn_of(
        agent(1),
        chat(2, 1, attributes={"gen_ai.tool.definitions": definitions}),
        chat(3, 1, attributes={"gen_ai.tool.definitions": definitions}),
    )
    assert turn.tool_definitions == [{"type": "function", "name": "search", "parameters": {"type": "object"}}]


# --- errors


def test_the_error_of_the_root_is_the_turn_s():
    exception = SpanEvent("exception", {"exception.type": "acme.Boom", "exception.message": "no"})
    assert turn_of(agent(1, error="x", events=[exception])).error == ErrorInfo("acme.Boom", "no")


def test_a_root_that_stays_unset_takes_the_error_of_its_last_agent():
    workflow = span(1, attributes={"gen_ai.operation.name": "invoke_workflow"}, ms=200)
    assert turn_of(workflow, agent(2, 1, error="RuntimeError: no")).error == ErrorInfo("RuntimeError", "RuntimeError: no")


# --- content beside the span


def test_finish_reason_is_read_from_the_message_without_attribute():
    said = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": "18"}], "finish_reason": "length"}])
    attributes = {"gen_ai.output.messages": said}
    assert turn_of(agent(1), chat(2, 1, attributes=attributes)).llm_calls[0].finish_reason == "length"
    attributes["gen_ai.response.finish_reasons"] = ["stop"]
    assert turn_of(agent(1), chat(2, 1, attributes=attributes)).llm_calls[0].finish_reason == "stop"


# --- retrieval, agents, identity


def test_without_a_retrieval_nothing_is_known_of_documents():
    assert turn_of(agent(1)).retrieved_ids is None


def test_the_turn_is_named_after_its_root():
    turn = turn_of(agent(0xB, resource={"service.name": "shop"}, attributes={"gen_ai.conversation.id": "c-1"}))
    assert turn.turn_id == f"{0xA1:032x}-{0xB:016x}"
    assert (turn.service, turn.conversation_id, turn.agent) == ("shop", "c-1", "bot")
    assert turn.to_dict()["start"] == "2026-01-01T00:00:00.000000Z"


# --- what the application itself reports


def test_events_of_the_application_tell_hand_offs_interactions_and_conflicts():
    handoff = SpanEvent("agent.handoff", {"from": "triage", "to": "refunds", "success": True, "duration_s": 0.5}, 30)
    asked = SpanEvent(
        "agent.interaction", {"agent.interaction.from": "refunds", "agent.interaction.to": ("bank", "legal"), "x": 1}, 20
    )
    earlier = SpanEvent(
        "agent.interaction", {"from": "triage", "to": "refunds", "type": "delegation", "response_time_s": 2.0}, 10
    )
    conflict = SpanEvent("agent.conflict", {"resolved": True, "resolution_time_s": 4}, 40)
    transfer = tool(3, 1, name="transfer_to_billing")
    turn = turn_of(agent(1, events=[asked, conflict]), chat(2, 1), transfer, span(4, 1, events=[handoff, earlier]))
    assert [(found.from_, found.to, found.success, found.duration_s) for found in turn.handoffs] == [
        ("triage", "refunds", True, 0.5)
    ]
    assert turn.interactions == [
        {"from": "triage", "to": "refunds", "type": "delegation", "response_time_s": 2.0},
        {"from": "refunds", "to": ["bank", "legal"]},
    ]
    assert turn.conflicts == [{"resolved": True, "resolution_time_s": 4}]
    assert oa.get_metric("code_conflict_resolution_rate").evaluate(turn).value == 1.0
    again = oa.Turn.from_dict(turn.to_dict())
    assert (again.handoffs, again.interactions, again.conflicts) == (turn.handoffs, turn.interactions, turn.conflicts)


def test_events_that_tell_nonsense_tell_nothing():
    events = [SpanEvent("agent.handoff", {"from": 3, "to": "", "success": "yes", "duration_s": float("nan")}, 1)]
    turn = turn_of(agent(1, events=events), chat(2, 1))
    assert [(found.from_, found.to, found.success, found.duration_s) for found in turn.handoffs] == [(None, None, None, None)]
    assert (turn.interactions, turn.conflicts) == ([], [])


@pytest.mark.parametrize(
    ("root", "below", "kind"),
    [
        pytest.param("asked_clarification", "completed", "asked_clarification", id="the root's word counts"),
        pytest.param(None, "awaiting_confirmation", "awaiting_confirmation", id="else a span's below it"),
        pytest.param("whatever", None, "completed", id="a word that is none says nothing"),
        pytest.param(7, None, "completed", id="nor does a number"),
    ],
)
def test_the_application_says_how_the_turn_stopped(root, below, kind):
    said = [{} if word is None else {"agent.stop_kind": word} for word in (root, below)]
    call = chat(2, 1, attributes={"gen_ai.response.finish_reasons": ["stop"], **said[1]})
    assert turn_of(agent(1, attributes=said[0]), call).stop_kind == kind


@pytest.mark.parametrize(("reason", "kind"), [("stop", "completed"), ("length", "unknown"), (None, "unknown")])
def test_finish_reason_of_the_answer_message_decides_stop_kind(reason, kind):
    answer = {"role": "assistant", "parts": [{"type": "text", "content": "18 °C"}], "finish_reason": reason}
    turn = turn_of(agent(1), chat(2, 1, attributes={"gen_ai.output.messages": json.dumps([answer])}))
    assert turn.stop_kind == kind


# --- one call in several spans


def executed(span_id, name="w", call_id=None, arguments=None, result=None, **more):
    facts = {"id": call_id, "arguments": arguments and json.dumps(arguments), "result": result}
    return tool(span_id, 1, name, attributes={f"gen_ai.tool.call.{key}": value for key, value in facts.items() if value}, **more)


def phase(span_id, name, facts, at):
    return span(span_id, 1, name, {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "w", **facts}, at=at, ms=0)


ROME, OSLO = {"city": "Rome"}, {"city": "Oslo"}


@pytest.mark.parametrize(
    ("spans", "calls"),
    [
        pytest.param(
            [executed(3, call_id="c", arguments=ROME, at=20), executed(4, call_id="c", result="21", at=22, ms=5)], [(ROME, "21")],
            id="two spans with one id",
        ),
        pytest.param(
            [executed(3, call_id="w__c", arguments=ROME, at=20), executed(4, call_id="c", result="21", at=22, ms=5)], [(ROME, "21")],
            id="an id after the tool's name",
        ),
        pytest.param(
            [executed(3, call_id="0", arguments=ROME, result="21", at=20), executed(4, call_id="0", arguments=ROME, result="21", at=60)],
            [(ROME, "21"), (ROME, "21")], id="an id that a model uses again",
        ),
        pytest.param(
            [executed(3, call_id="0", arguments=ROME, at=20), executed(4, call_id="0", arguments=OSLO, at=22)],
            [(ROME, None), (OSLO, None)], id="one id, two requests",
        ),
        pytest.param([executed(3, call_id="c", arguments=ROME, at=20), executed(4, at=15)], [(ROME, None)], id="a span with only the name"),
        pytest.param([executed(3, at=15), executed(4, at=35)], [(None, None), (None, None)], id="two spans with only the name"),
        pytest.param(
            [
                phase(3, "tool.w.start-7", {"gen_ai.tool.call.arguments": json.dumps(ROME)}, 20),
                phase(4, "tool.w.success-7", {"gen_ai.tool.call.result": "21"}, 30), phase(5, "tool.w.finish-7", {}, 31),
                phase(6, "tool.w.start-8", {"gen_ai.tool.call.arguments": json.dumps(OSLO)}, 25),
            ],
            [(ROME, "21"), (OSLO, None)], id="events of calls as spans",
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize("turned", [False, True])
def test_tool_calls_in_several_spans_count_once(spans, calls, turned):
    records = [agent(1), chat(2, 1, user="hi"), *spans]
    found = turn_of(*(reversed(records) if turned else records)).tool_calls
    assert [(call.arguments, call.result) for call in found] == calls


def counted(span_id, parent_id, tokens, **more):
    given, made = tokens
    return chat(span_id, parent_id, attributes={"gen_ai.usage.input_tokens": given, "gen_ai.usage.output_tokens": made}, **more)


@pytest.mark.parametrize(
    ("spans", "tokens"),
    [
        pytest.param(
            [counted(2, 1, (30, 12), ms=80), counted(3, 2, (10, 5), at=5), counted(4, 2, (20, 7), at=40)], [10, 20],
            id="a span with the sum of those below",
        ),
        pytest.param(
            [counted(2, 1, (30, 12), ms=80), agent(5, 2, ms=70), counted(3, 5, (10, 5), at=5), counted(4, 5, (20, 7), at=40)], [10, 20],
            id="a run between them",
        ),
        pytest.param(
            [counted(2, 1, (20, 7), ms=80), chat(3, 2, at=5, error="429"), counted(4, 2, (20, 7), at=40)], [20], id="a retry inside",
        ),
        pytest.param(
            [counted(2, 1, (10, 5), ms=40, scope="callback"), counted(3, 1, (10, 5), at=2, ms=60, scope="sdk")], [10],
            id="a callback that ends before the stream",
        ),
        pytest.param(
            [span(7, 1, ms=50), counted(2, 7, (10, 5), ms=40, scope="callback"), counted(3, 1, (10, 5), at=2, ms=60, scope="sdk")], [10],
            id="a callback below another span",
        ),
        pytest.param(
            [counted(2, 1, (10, 5), ms=40, scope="sdk"), counted(3, 1, (10, 5), at=2, ms=60, scope="sdk")], [10, 10],
            id="two calls of one scope",
        ),
        pytest.param(
            [counted(2, 1, (10, 5), ms=40, scope="callback"), counted(3, 1, (11, 5), at=2, ms=60, scope="sdk")], [10, 11],
            id="calls with different tokens",
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize("turned", [False, True])
def test_model_calls_in_several_spans_count_once(spans, tokens, turned):
    records = [agent(1), *spans]
    turn = turn_of(*(reversed(records) if turned else records))
    assert [call.input_tokens for call in turn.llm_calls] == tokens


@pytest.mark.parametrize("first", [0.4, 0.1, 0.3])
def test_the_answer_is_found_if_all_calls_start_in_one_millisecond(first: float) -> None:
    """Starts are rounded down to milliseconds, so the order of the ends is only that of the durations."""
    request = {"id": "c1", "name": "departures", "arguments": {"station": "Atlantis"}}
    result = {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "09:15"}]}
    turn = turn_of(
        agent(1, ms=0.5),
        chat(9, 1, user="When do trains leave Atlantis?", calls=[request], ms=first),
        tool(5, 1, "departures", attributes={"gen_ai.tool.call.id": "c1"}, ms=0.25),
        chat(3, 1, user="When do trains leave Atlantis?", messages=[result], says="At 09:15.", ms=0.2),
    )
    assert turn.output == "At 09:15."
    assert [call.span_id[-1] for call in turn.llm_calls] == ["9", "3"]


@pytest.mark.parametrize(
    ("second", "count"),
    [
        pytest.param({"at": 8, "ms": 6.3}, 2, id="the first call ends in the millisecond in which the second starts"),
        pytest.param({"at": 8, "ms": 1.4}, 2, id="a short second call"),
        pytest.param({"at": 1, "ms": 6}, 1, id="two instrumentations record one call"),
        pytest.param({"at": 8, "ms": 0.2}, 1, id="a call within the other's time"),
    ],
)
def test_calls_with_one_id_are_separate_unless_they_overlap(second: dict[str, float], count: int) -> None:
    same = {
        "attributes": {
            "gen_ai.tool.call.id": "c1",
            "gen_ai.tool.call.arguments": '{"order": 7}',
            "gen_ai.tool.call.result": "failed",
        }
    }
    turn = turn_of(agent(1), tool(2, 1, "order_status", ms=8.4, **same), tool(3, 1, "order_status", **same, **second))
    assert len(turn.tool_calls) == count
