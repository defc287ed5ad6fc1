"""Unknown isn't empty: "no tools", "no answer" and "no text" are facts only if such data would have been recorded."""

from __future__ import annotations

import json

import pytest

import otel_agenteval as oa
from otel_agenteval.core.turn import ToolCall
from otel_agenteval.turns.conversations import Conversations
from tests.support import check_turns
from tests.support.recordings import files_in
from tests.support.spans import agent, chat, span, tool, turn_of

# --- recordings without content


def quiet_turns(archive, folder):
    """Yield each turn of the recordings without content, with its truth."""
    files = files_in(archive)
    for name, text in files.items():
        if name.endswith("truth.json"):
            path = folder / "truth.json"
            path.write_text(text, encoding="utf-8")
            for recording, truth in check_turns.load_truth(path).items():
                recorded = name.replace("truth.json", recording)
                if "_off" in recording and recorded in files:
                    logs = files.get(recorded.replace(".jsonl", ".logs.jsonl"), "")
                    (folder / "telemetry.jsonl").write_text(files[recorded] + logs, encoding="utf-8")
                    yield from turns_beside(list(oa.load_turns([folder / "telemetry.jsonl"])), truth["turns"])


def turns_beside(turns, truths):
    by_id = {turn.turn_id: turn for turn in turns}
    for found, truth in zip(check_turns.align([turn.to_dict() for turn in turns], truths), truths, strict=True):
        yield by_id[found["turn_id"]], truth


@pytest.fixture(scope="module")
def quiet(tmp_path_factory):
    folder = tmp_path_factory.mktemp("quiet")
    return list(quiet_turns("corpus.tar.xz", folder)), list(quiet_turns("frameworks.tar.xz", folder))


def test_no_turn_without_content_says_that_no_tool_was_called_where_one_was(quiet):
    corpus, frameworks = ([turn.tool_calls for turn, truth in turns if truth["tools"]] for turns in quiet)
    assert (len(corpus), corpus.count(None), corpus.count([])) == (103, 42, 0)
    assert (len(frameworks), frameworks.count(None), frameworks.count([])) == (13, 2, 0)


def test_it_does_where_every_call_says_that_it_asked_for_none(quiet):
    for turn, truth in (*quiet[0], *quiet[1]):
        if not truth["tools"]:
            reasons = [call.finish_reason for call in turn.llm_calls if call.error is None]
            assert turn.tool_calls == (None if None in reasons else [])


def test_what_was_not_captured_is_no_empty_answer(quiet):
    assert {turn.output for turn, truth in quiet[0] if truth["output"]} == {None}


SKIPPED = ("code_no_tools_called", "code_tool_success", "code_repeated_tool_calls", "code_turn_autonomy")


@pytest.mark.parametrize("name", SKIPPED)
def test_metrics_of_tools_are_skipped_where_calls_are_unknown(quiet, name):
    for turn, _ in quiet[0]:
        if turn.tool_calls is None:
            score = oa.get_metric(name).evaluate(turn)
            assert (score.status, score.detail["reason"]) == ("skipped", "missing:tool_calls")


def test_so_is_the_metric_of_empty_answers(quiet):
    for turn, _ in quiet[0]:
        score = oa.get_metric("code_empty_answer").evaluate(turn)
        assert (score.status, score.detail["reason"]) == ("skipped", "missing:output")


# --- which tools were called, from spans by hand

SEARCH = {"id": "c1", "name": "search", "arguments": {}}
HANDOFF = {"id": "c2", "name": "transfer_to_billing", "arguments": {}}


def ended(reason, **more):
    return {"gen_ai.response.finish_reasons": [reason], **more}


NONE_CALLED = [
    pytest.param([chat(2, 1, says="Hello")], id="the answer was captured, and only speaks"),
    pytest.param([chat(2, 1, attributes=ended("stop"))], id="the call ended by itself"),
    pytest.param([chat(2, 1, attributes=ended("length"))], id="the answer was cut"),
    pytest.param([chat(2, 1, attributes={"gen_ai.usage.output_tokens": 0})], id="nothing was answered"),
    pytest.param([chat(2, 1, attributes=ended("tool_calls"), calls=[HANDOFF]), chat(3, 1, says="Hi", at=50)], id="a hand-off"),
    pytest.param([chat(2, 1, attributes=ended("tool_calls")), tool(3, 1, "transfer_to_billing")], id="only a hand-off ran"),
    pytest.param([chat(2, 1, error="429"), chat(3, 1, says="Hello", at=50)], id="what failed asked for nothing"),
    pytest.param([chat(2, 1, attributes=ended("completed"))], id="a status that does not say, of the only call"),
    pytest.param([chat(2, 1, attributes=ended("stop")), chat(3, 1, attributes=ended("stop"), at=50)], id="two steps"),
]
UNKNOWN = [
    pytest.param([], id="no model call was seen"),
    pytest.param([chat(2, 1)], id="a call that says nothing"),
    pytest.param([chat(2, 1, attributes=ended("tool_calls")), chat(3, 1, says="18", at=50)], id="a call ended for tools"),
    pytest.param([chat(2, 1, says="Let me see", attributes=ended("tool_calls"))], id="a text without its request"),
    pytest.param([chat(2, 1, attributes=ended("unknown"))], id="a reason that is none"),
    pytest.param([chat(2, 1, attributes=ended("completed")), chat(3, 1, says="18", at=50)], id="a status that does not say"),
    pytest.param(
        [chat(2, 1, attributes=ended("stop", **{"gen_ai.request.model": "gemini-2.5-flash"})), chat(3, 1, says="18", at=50)],
        id="a model that always stops",
    ),
    pytest.param([chat(2, 1, says="<code>\nget_weather()\n</code>"), chat(3, 1, says="18", at=50)], id="code that is run"),
    pytest.param(
        [
            chat(
                2,
                1,
                attributes={"gen_ai.output.messages": '[{"role":"assistant","parts":[{"type":"text","content":"I will"},{"ty'},
            )
        ],
        id="an answer that was cut on the way",
    ),
]


def whole_run(**said):
    """Return OpenInference's span of an ADK run, which is overwritten with the data of each of its model calls."""
    attributes = {"openinference.span.kind": "LLM", "llm.model_name": "gemini-2.5-flash", **said}
    return span(2, 1, "invoke_agent bot", attributes, scope="openinference.instrumentation.google_adk", ms=20)


def given(*messages):
    return {
        f"llm.input_messages.{n}.message.{key}": value for n, message in enumerate(messages) for key, value in message.items()
    }


ASKED = {"role": "user", "content": "Weather?"}
CALLED = {"role": "model", "tool_calls.0.tool_call.function.name": "search", "tool_calls.0.tool_call.function.arguments": "{}"}


@pytest.mark.parametrize(
    ("before", "error", "expected"),
    [((), None, None), ((), "500", None), ((ASKED, CALLED), None, None), ((ASKED,), None, []), ((ASKED,), "500", [])],
)
def test_the_last_call_of_a_run_does_not_speak_for_those_before_it(before, error, expected):
    step = whole_run(
        **given(*before), **{"llm.output_messages.0.message.role": "model", "llm.output_messages.0.message.content": "18"}
    )
    if error:
        step.status, step.status_message = 2, error
    turn = turn_of(agent(1), step)
    assert turn.tool_calls == expected or (CALLED in before and turn.tool_calls)


@pytest.mark.parametrize("steps", NONE_CALLED)
def test_that_no_tool_was_called_is_a_fact(steps):
    assert turn_of(agent(1), *steps).tool_calls == []


@pytest.mark.parametrize("steps", UNKNOWN)
def test_whether_a_tool_was_called_is_unknown(steps):
    turn = turn_of(agent(1), *steps)
    assert turn.tool_calls is None
    assert "tool_calls" not in turn.to_dict()


def test_a_finish_reason_alone_never_invents_a_call():
    seen = turn_of(
        agent(1), chat(2, 1, attributes=ended("tool_calls")), tool(3, 1), chat(4, 1, attributes=ended("tool_calls"), at=50)
    )
    assert [call.name for call in seen.tool_calls] == ["search"]  # and what was seen is kept, though more may have been asked for


def test_a_request_that_nothing_answers_leaves_open_whether_it_was_executed():
    assert turn_of(chat(1, user="Weather?", calls=[SEARCH], attributes=ended("tool_calls"))).tool_calls is None


# --- what was answered

FAILURE = "Error code: 500 - the server had an error"


def failing(span_id, parent_id=0, **more):
    return chat(span_id, parent_id, error=FAILURE, **more)


def outputs(text):
    return {"gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": text}]}])}


def quiet_answer(parts=(), **attributes):
    return {"gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": list(parts)}]), **attributes}


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        pytest.param(chat(1, attributes=quiet_answer()), "", id="a message without a word"),
        pytest.param(chat(1, attributes=quiet_answer(**{"gen_ai.usage.output_tokens": 0})), "", id="of no tokens"),
        pytest.param(chat(1, attributes=quiet_answer(**{"gen_ai.usage.output_tokens": 8})), None, id="of tokens left out"),
        pytest.param(chat(1, attributes=quiet_answer(**ended("stop"))), None, id="of a call that had said all"),
        pytest.param(chat(1, attributes=quiet_answer(**ended("content_filter"))), "", id="of one that was stopped"),
        pytest.param(
            chat(1, user="Hi", attributes=quiet_answer(**ended("stop", **{"gen_ai.usage.output_tokens": 3}))),
            "",
            id="beside its prompt",
        ),
        pytest.param(chat(1, user="Hi", attributes={"gen_ai.output.messages": "[]"}), None, id="no message at all"),
        pytest.param(
            chat(1, attributes=quiet_answer(**{"gen_ai.usage.output_tokens": 9, "gen_ai.usage.reasoning.output_tokens": 9})),
            "",
            id="of thoughts only",
        ),
    ],
)
def test_an_answer_is_empty_only_where_nothing_was_left_out(step, expected):
    assert turn_of(step).output == expected


@pytest.mark.parametrize(
    "said", [FAILURE, f"InternalServerError: {FAILURE}", '{"error": "internal"}', '{"error_code": "INTERNAL"}']
)
def test_the_text_of_an_error_is_no_answer(said):
    assert turn_of(agent(1, error=FAILURE, attributes=outputs(said)), failing(2, 1)).output is None
    assert turn_of(agent(1, error=FAILURE, attributes=outputs(said))).output is None


def test_nor_is_that_of_the_call_where_the_run_went_well():
    assert turn_of(agent(1, attributes=outputs(FAILURE)), failing(2, 1)).output is None


def test_but_what_an_application_says_about_an_error_is_one():
    sorry = f"I am sorry, I could not reach the order system just now. Please try again in a few minutes. (Details: {FAILURE})"
    assert turn_of(agent(1, attributes=outputs(sorry)), failing(2, 1)).output == sorry
    found = '{"error": "no such city"}'
    assert turn_of(agent(1, attributes=outputs(found)), chat(2, 1, says=found)).output == found


def test_what_was_said_before_a_call_that_ended_the_turn_is_no_answer():
    turn = turn_of(agent(1, error=FAILURE), chat(2, 1, says="Let me look that up."), failing(3, 1, at=50))
    assert turn.output is None


def test_an_answer_that_was_cut_by_its_limit_is_one():
    assert turn_of(agent(1, error="MaxTokensReached"), chat(2, 1, says="Photosynthesis is")).output == "Photosynthesis is"


# --- on the way out and back


@pytest.mark.parametrize(
    ("calls", "expected"), [([[], []], []), ([[], None], None), ([None, None], None), ([None, [ToolCall("search")]], ["search"])]
)
def test_a_conversation_knows_no_more_than_its_turns(calls, expected):
    held = Conversations(60, 10, 10, 10_000, lambda: 0.0)
    for number, given in enumerate(calls):
        held.add(oa.Turn(turn_id=f"t{number}", conversation_id="c", output="x", tool_calls=given), 10)
    (over,) = held.end("c")
    found = over.turn.tool_calls
    assert (found and [call.name for call in found]) == expected
