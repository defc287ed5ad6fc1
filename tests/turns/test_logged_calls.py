"""Calls and prompts that only log records describe are part of their trace's turn."""

from __future__ import annotations

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from otel_agenteval.dialects.generic.events import kind_of
from otel_agenteval.dialects.reader import GENAI
from otel_agenteval.spans.otlp import OtlpLog
from otel_agenteval.spans.record import LogPart
from otel_agenteval.spans.split import split_logs
from otel_agenteval.turns.recordings import turns_of
from tests.support.rig import Rig
from tests.support.spans import MS, START, TRACE, agent, chat, span, tool
from tests.turns.test_complete import Received

SCOPE = "acme_cli"
ABOUT = {
    "event.timestamp": "2026-01-01T00:00:00Z",
    "conversation.id": "c-1",
    "originator": "acme_exec",
    "user.email": "e@x.io",
    "model": "gpt-5.1",
}
PROMPT, CALL, TOOL = "acme.user_prompt", "acme.sse_event", "acme.tool_result"
RESULT = {
    "tool_name": "shell",
    "call_id": "call-1",
    "arguments": '{"command":"ls"}',
    "output": "a.txt",
    "success": "true",
    "duration_ms": "40",
}


def log(at, name, span_id, body=None, **attributes):
    return OtlpLog(TRACE, span_id, LogPart(name, {"event.name": name, **ABOUT, **attributes}, body, START + int(at * MS)), SCOPE)


def bare(*, call_id="call-1"):
    """Return spans of a command-line agent, without content."""
    return [
        span(1, 0, "session_loop", scope=SCOPE, ms=400),
        span(2, 1, "run_turn", scope=SCOPE, at=5, ms=390),
        span(3, 2, "run_sampling_request", scope=SCOPE, at=10, ms=80),
        span(4, 2, "handle_tool_call", {"tool_name": "shell", **({"call_id": call_id} if call_id else {})}, scope=SCOPE, at=90, ms=50),
        span(5, 2, "run_sampling_request", scope=SCOPE, at=150, ms=80),
    ]  # fmt: skip


def logs(where=lambda span_id: span_id, **result):
    return [
        log(8, PROMPT, where(2), prompt="Which files are here?", prompt_length="21"),
        log(20, "acme.api_request", where(3), attempt=1, endpoint="/responses"),
        log(60, CALL, where(3), **{"event.kind": "response.completed", "input_token_count": "900", "output_token_count": "25"}),
        log(92, "acme.tool_decision", where(4), tool_name="shell", call_id="call-1", decision="approved", source="Config"),
        log(139, TOOL, where(4), **{**RESULT, **result}),
        log(220, CALL, where(5), **{"event.kind": "response.completed", "input_token_count": "1100", "output_token_count": "35"}),
    ]


def facts(turn):
    return {
        "reading": turn.reading,
        "conversation": turn.conversation_id,
        "input": turn.input,
        "calls": [(call.input_tokens, call.output_tokens) for call in turn.llm_calls],
        "tools": [(call.name, call.arguments, call.result, call.error is not None) for call in turn.tool_calls or ()],
    }


EXPECTED = {
    "reading": "inferred",
    "conversation": "c-1",
    "input": "Which files are here?",
    "calls": [(900, 25), (1100, 35)],
    "tools": [("shell", {"command": "ls"}, "a.txt", False)],
}
PLACES = {"own": lambda span_id: span_id, "root": lambda _: 1, "unknown": lambda _: 0xDEAD, "none": lambda _: 0}


def only(items):
    found = [*turns_of(items)]
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize("place", PLACES)
def test_logged_calls_make_a_turn_wherever_they_were_written(place):
    turn = only([*logs(PLACES[place]), *reversed(bare())])
    assert facts(turn) == EXPECTED
    assert {one.id for one in turn.spans} == {f"{number:016x}" for number in range(1, 6)}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("call_id", [None, "call-1"])
def test_logged_tool_fills_the_span_of_its_call(place, call_id):
    call = only([*bare(call_id=call_id), *logs(PLACES[place])]).tool_calls[0]
    assert (call.span_id, call.call_id, call.duration_s) == (f"{4:016x}", "call-1", 0.05)


def test_logged_call_that_was_sent_twice_counts_once():
    assert facts(only([*bare(), *logs(PLACES["none"]), *logs(PLACES["none"])])) == EXPECTED


@pytest.mark.parametrize("failure", [{"success": "false"}, {"success": False}, {"error.message": "boom"}, {"is_error": True}])
def test_logged_tool_failed_if_its_record_states_it(failure):
    assert only([*bare(), *logs(**failure)]).tool_calls[0].error


def run(tokens=None, answer=None, **attributes):
    calls = {"attributes": tokens or {}, "says": answer}
    return [
        agent(1, ms=400),
        chat(2, 1, at=10, ms=50, **calls),
        tool(3, 1, "shell", at=70, ms=50, attributes=attributes),
        chat(4, 1, at=130, ms=50, **calls),
    ]


@pytest.mark.parametrize("place", [0, 0xDEAD, 1])
def test_logged_facts_fill_the_gaps_of_spans_in_order(place):
    found = facts(only([*run(), *logs(lambda _: place)]))
    assert found == EXPECTED


def test_logged_tokens_are_dropped_if_spans_have_theirs():
    spans = run({"gen_ai.usage.input_tokens": 7, "gen_ai.usage.output_tokens": 4})
    assert facts(only([*spans, *logs(PLACES["none"])]))["calls"] == [(7, 4)] * 2


@pytest.mark.parametrize("duration", [1e308, "1e305", float("inf"), 10**400, -5, "x"])
def test_logged_duration_out_of_bounds_is_no_error(duration):
    (turn,) = turns_of([span(1, 0, "run_turn", scope=SCOPE, ms=400), *logs(lambda span_id: 0, duration_ms=duration)])
    assert [call.name for call in turn.tool_calls] == ["shell"]


def test_logged_tool_that_no_model_requested_is_no_call():
    spans = [agent(1, ms=400), chat(2, 1, user="Hi", says="Hello.", at=10)]
    assert facts(only([*spans, log(60, TOOL, 1, **RESULT)]))["tools"] == []


def test_sum_of_logged_calls_is_not_a_call_of_its_own():
    spans = bare()
    spans[1].attributes = {"model": "gpt-5.1", "turn.usage.input_tokens": 2000, "turn.usage.output_tokens": 60}
    for place in PLACES.values():
        assert facts(only([*spans, *logs(place)]))["calls"] == EXPECTED["calls"]


ANSWER = "acme.agent_response"


@pytest.mark.parametrize("place", PLACES)
def test_logged_answer_is_the_output(place):
    found = [
        log(at, ANSWER, PLACES[place](2), response=text, response_length=9) for at, text in ((300, "Wait."), (380, "One file."))
    ]
    turn = only([*bare(), *logs(PLACES[place]), *found])
    assert (turn.output, facts(turn)) == ("One file.", EXPECTED)


def test_logged_answers_of_a_session_belong_to_their_turns():
    spans, found = session("own")
    answers = [log(380, ANSWER, 2, response="One file."), log(1380, ANSWER, 12, response="None.")]
    for order in (1, -1):
        assert [turn.output for turn in turns_of([*spans, *[*found, *answers][::order]])] == ["One file.", "None."]


def test_logged_answer_does_not_replace_a_models():
    spans = [agent(1, ms=400), chat(2, 1, user="Hi", says="Hello.", at=10)]
    assert only([*spans, *logs(PLACES["none"])[:1], log(60, ANSWER, 0, response="ok")]).output == "Hello."


def test_two_records_of_each_logged_call_count_once():
    details = [
        log(at, "gen_ai.client.inference.operation.details", 0, "details", **{"gen_ai.usage.input_tokens": given, "gen_ai.usage.output_tokens": made})
        for at, given, made in ((61, 900, 25), (221, 1100, 35))
    ]  # fmt: skip
    assert facts(only([*bare(), *logs(PLACES["none"]), *details])) == EXPECTED


def test_body_that_describes_a_record_is_not_content():
    attributes = {"prompt": "What is in a.txt?", "prompt_length": 17}
    spans = [agent(1, ms=400), chat(2, 1, at=10)]
    turn = only(
        [
            *spans,
            log(1, PROMPT, 1, "User prompt. Length: 17.", **attributes),
            log(11, "acme.api_request", 1, "API request.", prompt_id="p"),
        ]
    )
    assert (turn.input, turn.output) == ("What is in a.txt?", None)


def test_loose_records_of_a_trace_with_two_turns_are_dropped():
    spans = [
        span(9, 0, "POST /chat", ms=900),
        *(agent(n, 9, at=at) for n, at in ((1, 0), (2, 500))),
        chat(3, 1, at=1),
        chat(4, 2, at=501),
    ]
    assert [turn.input for turn in turns_of([*spans, *logs(PLACES["none"])])] == [None, None]


def session(place, *, root=True):
    """Return two turns below one span, which is missing if it hasn't ended."""
    first, second = [span(2, 1, at=5, ms=395, scope=SCOPE), *bare()[2:]], []
    for one in first:
        second.append(
            span(
                one.span_id + 10,
                one.parent_id + (10 if one.parent_id > 1 else 0),
                one.name,
                scope=SCOPE,
                at=1000 + (one.start_ns - START) / MS,
                ms=395,
            )
        )
        second[-1].attributes = {key: "call-2" if key == "call_id" else value for key, value in one.attributes.items()}
    found = logs(PLACES[place]), logs(lambda span_id: PLACES[place](span_id + 10))
    later = [OtlpLog(TRACE, one.span_id, one.part._replace(time_ns=one.part.time_ns + 1000 * MS), SCOPE) for one in found[1]]
    for one in later:
        one.part.attributes.update({"prompt": "And in /tmp?"} if "prompt" in one.part.attributes else {})
        one.part.attributes.update({"call_id": "call-2"} if "call_id" in one.part.attributes else {})
    return [*([span(1, scope=SCOPE, ms=1500)] if root else []), *first, *second], [*found[0], *later]


@pytest.mark.parametrize("root", [True, False])
@pytest.mark.parametrize("place", ["own", "unknown", "none"])
def test_each_prompt_of_a_session_begins_a_turn(place, root):
    spans, found = session(place, root=root)
    for order in (1, -1):
        turns = [facts(turn) for turn in turns_of([*spans[::order], *found])]
        assert turns == [EXPECTED, {**EXPECTED, "input": "And in /tmp?"}]


def test_prompts_of_one_agent_do_not_split_its_turn():
    spans, found = session("own")
    spans[0].attributes = {"gen_ai.operation.name": "invoke_agent"}
    assert only([*spans, *found]).input == "Which files are here?"


def test_application_logs_do_not_make_a_turn():
    found = [log(5, "acme.audit", place, tool_name="drill", arguments="{}", success=True) for place in (0, 2)]
    assert not [*turns_of([*bare(), *found])]


@pytest.mark.parametrize(
    ("keys", "kind"),
    [
        (("prompt", "prompt_length"), "prompt"),
        (("response", "response_length"), "answer"),
        (("http.response.body", "http.response.status_code"), None),
        (("tool_name", "call_id", "arguments", "output"), "tool"),
        (("function_name", "function_args", "success"), "tool"),
        (("model", "input_token_count", "output_token_count"), "llm"),
        (("gen_ai.request.model", "gen_ai.usage.output_tokens"), "llm"),
        (("model", "prompt_tokens"), None),  # a count in advance
        (("tool_name", "call_id", "decision", "source"), None),
        (("model", "attempt", "endpoint"), None),
        (("code.function.name", "code.file.path"), None),
        (("access_token", "model"), None),
    ],
)
def test_kind_of_a_log_record_follows_from_its_attributes(keys, kind):
    assert kind_of(frozenset(keys)) == kind


def test_sidecar_keeps_logged_calls_of_any_scope():
    message = ExportLogsServiceRequest()
    records = message.resource_logs.add().scope_logs.add(scope={"name": SCOPE}).log_records
    for one in [*logs(PLACES["none"]), log(1, "acme.started", 0)]:
        record = records.add(trace_id=TRACE.to_bytes(16, "big"), event_name=one.part.name)
        for key, value in one.part.attributes.items():
            record.attributes.add(key=key).value.string_value = str(value)
    found, invalid = split_logs(message.SerializeToString(), GENAI)
    assert [log.part.name for log, _ in found] == [PROMPT, CALL, TOOL, CALL]
    assert not invalid


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("when", ["between", "late"])
def test_received_logs_fill_the_turn_whenever_they_arrive(place, when):
    received = Received()
    spans, found = bare(), logs(PLACES[place])
    received.send(spans[1])
    if when == "between":
        give(received, found)
    received.send(*spans[2:], spans[0])
    received.wait(11)
    if when == "late":
        give(received, found)
        received.wait(11)
    assert facts(received.kept[-1].turn) == EXPECTED


def give(received, found):
    for one in found:
        received.engine.intake.receive_log(one.trace_id, one.span_id, one.part, 100, early=True)


def test_logs_of_this_process_fill_the_turn_of_their_span():
    with Rig() as rig:
        logger = rig.logger_provider.get_logger(SCOPE)
        with rig.agent():
            logger.emit(event_name=PROMPT, body="User prompt.", attributes={"prompt": "Which files are here?"})
            with rig.tracer.start_as_current_span("work"):
                logger.emit(event_name=CALL, attributes={"model": "m-1", "input_tokens": 5, "output_tokens": 2})
                logger.emit(event_name=TOOL, attributes=RESULT)
        turn = rig.turn()
    assert (turn.input, turn.usage.input_tokens) == ("Which files are here?", 5)
    assert [(call.name, call.result) for call in turn.tool_calls] == [("shell", "a.txt")]
