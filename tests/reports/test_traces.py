"""Situations of public reports on traces, rebuilt in our own words. The cases of the archive name their reports.

Each case has traces and an ``expected.json`` with the reports (``source``), the situation, and the expected result.
"""

from __future__ import annotations

import json
import shlex
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.core.turn import LlmCall
from otel_agenteval.core.turn_cost import cost_of
from otel_agenteval.spans.record import SpanEvent
from otel_agenteval.turns.composer import Composer
from otel_agenteval.turns.duplicates import Duplicates
from otel_agenteval.turns.reading.turn import build_turn
from otel_agenteval.turns.recordings import wholes_of
from otel_agenteval.turns.relations import stitch
from otel_agenteval.turns.roots import SpanGroup, split
from otel_agenteval.turns.state import Closed
from otel_agenteval.turns.stitching import Stitcher, reader_of
from tests.support.recordings import files_in
from tests.support.spans import START, agent, chat, span, tool, turn_of, turns_of

ARCHIVE = "reports/traces.tar.xz"
CASES = sorted({name.partition("/")[0] for name in files_in(ARCHIVE)})


def fits(want: Any, got: Any) -> bool:
    if isinstance(want, dict) and want and set(want) <= {"min", "max"}:
        return isinstance(got, (int, float)) and want.get("min", got) <= got <= want.get("max", got)
    if isinstance(want, dict):
        return isinstance(got, dict) and all(fits(value, got.get(key)) for key, value in want.items())
    if isinstance(want, list):
        return isinstance(got, list) and len(want) == len(got) and all(map(fits, want, got))
    return got == (pytest.approx(want, rel=0.02) if isinstance(want, float) else want)


@pytest.mark.parametrize("case", CASES)
def test_case_of_a_report(case: str, tmp_path: Path) -> None:
    expected = json.loads(files_in(ARCHIVE)[f"{case}/expected.json"])
    for run in expected["runs"]:
        program, *arguments = shlex.split(run["command"])
        if [program, *arguments[:1]] != ["otel-agenteval", "turns"] or len(arguments) > 2:
            continue
        path = tmp_path / arguments[1]
        path.write_text(files_in(ARCHIVE)[f"{case}/{arguments[1]}"], encoding="utf-8")
        found = [turn.to_dict() for turn in oa.load_turns([str(path)])]
        assert len(found) == run.get("count", len(found)), run
        for want in run.get("turns", ()):
            assert any(fits(want, turn) for turn in found), (want, found)
        for want in run.get("no_turns", ()):
            assert not any(fits(want, turn) for turn in found), want
        for place, total in run.get("sums", {}).items():
            of, field = place.split(".")
            assert sum((turn.get(of) or {}).get(field) or 0 for turn in found) == total, place


# --- siblings


def words(*texts: str) -> list[dict[str, Any]]:
    """Return a conversation that the user begins."""
    return [
        {"role": "assistant" if place % 2 else "user", "parts": [{"type": "text", "content": text}]}
        for place, text in enumerate(texts)
    ]


@pytest.mark.parametrize(
    ("counts", "given", "cached", "written"),
    [
        ({"input_tokens": 100, "cache_read.input_tokens": 60, "total_tokens": 110}, 100, 60, None),
        ({"input_tokens": 100, "cache_read.input_tokens": 60, "total_tokens": 170}, 160, 60, None),
        ({"input_tokens": 5, "cache_creation_input_tokens": 900}, 905, None, 900),
        ({"input_tokens": 10, "cache_read_tokens": 8, "cache_write_tokens": 6}, 24, 8, 6),
        ({"prompt_tokens": 7, "details.cached_tokens": 90, "details.audio.cached_tokens": 3}, 97, 90, None),
    ],
)
def test_cached_tokens_are_part_of_the_input(counts: dict[str, int], given: int, cached: int | None, written: int | None) -> None:
    """genkit 5412, vercel/ai 8794, langfuse 12306: counts beside the input, under other names."""
    attributes = {f"gen_ai.usage.{name}": count for name, count in {**counts, "output_tokens": 10}.items()}
    (call,) = turn_of(chat(1, user="Hi", says="Hello.", attributes=attributes)).llm_calls
    assert (call.input_tokens, call.cached_tokens, call.cache_write_tokens) == (given, cached, written)


@pytest.mark.parametrize(
    ("provider", "model", "usd"),
    [
        ("anthropic", "claude-sonnet-4-5", (1_000 * 3 + 8_000 * 3.75 + 1_000 * 0.3) / 1e6),
        ("langchain", "claude-sonnet-4-5", (1_000 * 3 + 8_000 * 3.75 + 1_000 * 0.3) / 1e6),
        ("nat", "anthropic/claude-sonnet-4-5", (1_000 * 3 + 8_000 * 3.75 + 1_000 * 0.3) / 1e6),
        ("elastic", "my-own-model", None),
    ],
)
def test_written_cache_has_its_price_and_a_framework_none(provider: str, model: str, usd: float | None) -> None:
    """opik 6759, and prices of cache writes."""
    call = LlmCall(None, model, provider, input_tokens=10_000, output_tokens=0, cached_tokens=1_000, cache_write_tokens=8_000)
    found, unpriced = cost_of(oa.Turn(turn_id="1", llm_calls=[call]))
    assert (None if found is None else found.usd) == (None if usd is None else pytest.approx(usd))
    assert unpriced == ([] if usd else ["my-own-model (unknown provider elastic)"])


@pytest.mark.parametrize(
    "shown",
    [
        "<async_generator object chat at 0x7f00>", "<coroutine object Bot.ask at 0x7f00>", "<map object at 0x7f00>",
        "<openai.AsyncStream object at 0x7f00>", "'<EventSourceResponse>'", "[object AsyncGenerator]", "[object ReadableStream]",
        {"status_code": 200, "body_iterator": "<async_generator object at 0x7f00>"},
    ],
)  # fmt: skip
def test_handle_of_a_stream_is_no_answer(shown: Any) -> None:
    """langfuse 7226, openlayer-python 500."""
    root = span(1, name="chat.workflow", attributes={
        "traceloop.span.kind": "workflow", "traceloop.entity.input": '{"args": ["Hi"]}', "traceloop.entity.output": json.dumps(shown),
    }, ms=5)  # fmt: skip
    turn = turn_of(root, chat(2, 1, user="Hi", says="Hello.", at=1, ms=200))
    assert (turn.output, turn.duration_s) == ("Hello.", 0.201)


@pytest.mark.parametrize(
    "answer", ["<b>Bold</b>", "<List of objects at our shop>", "[object of interest]", "<generator> is a word"]
)
def test_text_with_angle_brackets_is_an_answer(answer: str) -> None:
    assert turn_of(chat(1, user="Hi", says=answer)).output == answer


@pytest.mark.parametrize("written", [lambda value: json.dumps(json.dumps(json.dumps(value))), repr, lambda value: repr(value[0])])
def test_messages_in_other_encodings(written: Any) -> None:
    """sentry 114151 and others: encoded twice or more, or Python's repr."""
    given, made = [{"role": "user", "content": "It's on?"}], [{"role": "assistant", "content": "Yes, in 5 days."}]
    attributes = {
        "gen_ai.operation.name": "chat", "gen_ai.input.messages": written(given), "gen_ai.output.messages": written(made)
    }  # fmt: skip
    turn = turn_of(span(1, attributes=attributes))
    assert (turn.input, turn.output, turn.truncated) == ("It's on?", "Yes, in 5 days.", False)


def test_answer_that_is_json_stays_as_it_is() -> None:
    answer = json.dumps([{"role": "admin", "name": "Ann"}])
    assert turn_of(chat(1, user="Who?", says=answer)).output == answer


@pytest.mark.parametrize(("cut", "known"), [(30, None), (90, "Weather"), (-40, None)])
def test_question_that_was_cut_off_is_unknown(cut: int, known: str | None) -> None:
    """langfuse 6517: only a cut in the only message leaves its beginning."""
    messages = json.dumps(words("Weather in Riga, please, and be brief about it?", "7 degrees.", "And in Porto?"))
    turn = turn_of(chat(1, says="21 degrees.", attributes={"gen_ai.input.messages": messages[:cut]}))
    assert (turn.input is None) if known is None else (turn.input or "").startswith(known)
    assert turn.truncated


def test_constant_response_ids_are_several_calls() -> None:
    """A mock server or gateway gives each response the same id."""
    same = {"gen_ai.response.id": "x"}
    calls = [
        chat(
            n + 2,
            1,
            user=f"Question {n}",
            says=f"Answer {n}",
            at=20 * n,
            attributes={**same, "gen_ai.usage.output_tokens": n + 1},
        )
        for n in range(3)
    ]
    turn = turn_of(agent(1), *calls)
    assert (len(turn.llm_calls), turn.output, turn.usage and turn.usage.output_tokens) == (3, "Answer 2", 6)


def test_call_without_a_span_has_its_place() -> None:
    """agent-framework 6357. A waiting call isn't an executed call, and an agent's span isn't a lost tool."""
    requests = [{"id": f"c{n}", "name": name, "arguments": {}} for n, name in enumerate(("a", "b", "helper", "later"))]
    results = [
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": f"c{n}", "response": f"r{n}"}]} for n in range(3)
    ]  # fmt: skip
    asked = {"role": "assistant", "parts": [{"type": "tool_call", **one} for one in requests]}
    turn = turn_of(
        agent(1), chat(2, 1, user="Go", calls=requests), tool(3, 1, "b", at=10, attributes={"gen_ai.tool.call.id": "c1"}),
        agent(4, 1, "helper", at=10, ms=5), chat(5, 1, user="Go", messages=[asked, *results], says="Done.", at=30),
    )  # fmt: skip
    assert [call.name for call in turn.tool_calls or ()] == ["a", "b"]


@pytest.mark.parametrize(
    ("pairs", "server", "turns"),
    [
        ([(f"Sort {n}", f"box {n}") for n in range(200)], False, 200),
        ([(f"Sort {n}", f"box {n}") for n in range(3)], True, 3),
        ([("Find words for big", "a huge size"), ("Translate a huge size", "riesig")], False, 1),
        ([("What is big?", "huge"), ("Answer briefly: What is big?", "enormous")], False, 1),
    ],
)
def test_items_of_a_program(pairs: list[tuple[str, str]], server: bool, turns: int) -> None:
    """langfuse 2777, 2940, openllmetry 1545, 1113: unrelated inputs below one span, but not the steps of one job."""
    calls = [chat(n + 2, 1, user=asked, says=said, at=n * 20) for n, (asked, said) in enumerate(pairs)]
    root = span(1, name="POST /batch", ms=20 * len(pairs))
    root.server = server
    found = turns_of(root, *calls)
    assert len(found) == turns
    assert turns == 1 or [(turn.input, turn.output) for turn in found] == pairs


@pytest.mark.parametrize(("pause", "turns"), [(2_000, 2), (50, 1)])
def test_chat_loop_of_a_person_but_not_of_a_program(pause: float, turns: int) -> None:
    """openllmetry 1113: a library that asks the model to repair its answer sends the next message immediately."""
    first = chat(2, 1, user="Name a city", says="{city: Lima}")
    again = chat(3, 1, messages=words("Name a city", "{city: Lima}", "Write JSON"), says='{"city": "Lima"}', at=10 + pause)
    found = turns_of(span(1, ms=5_000), first, again)
    assert [turn.output for turn in found][-1] == '{"city": "Lima"}'
    assert len(found) == turns


@pytest.mark.parametrize(
    ("asked", "made"),
    [
        ("Write a title. User: {q} Assistant: {a}", "Rakes in stock"),
        ("Suggest follow-up questions after: {a}", '["How much?", "Which sizes?"]'),
        ("Question: {q}\nAnswer: {a}\nGrade it from 0 to 1.", "0.9"),
        ("Keep facts for later from this conversation: {q} / {a}", "The user needs a rake."),
    ],
)
def test_helper_after_the_answer_has_no_answer(asked: str, made: str) -> None:
    """A title, follow-up questions, a grade or a memory ends last, but only describes the answer."""
    question, answer = "Do you sell rakes?", "Yes, we sell two rakes, one of wood and one of steel."
    helper = chat(3, 1, user=asked.format(q=question, a=answer), says=made, at=20)
    assert turn_of(agent(1), chat(2, 1, user=question, says=answer), helper).output == answer


def test_later_version_of_an_answer_is_the_answer() -> None:
    draft, final = (
        "We sell two rakes, one of wood and one of steel.",
        "Yes! We sell two rakes, one of wood and one of steel, for 9 EUR.",
    )
    calls = chat(2, 1, user="Do you sell rakes?", says=draft), chat(3, 1, user=f"Make it friendly: {draft}", says=final, at=20)
    assert turn_of(agent(1), *calls).output == final


# --- set-ups that nobody has shown us

SERVER = {"http.request.method": "POST"}
CALL = {"id": "c1", "name": "search", "arguments": {"q": "shoes"}}
ANSWERED = [
    {"role": "assistant", "parts": [{"type": "tool_call", **CALL}]},
    {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "42"}]},
]


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("own", [{}, {"gen_ai.request.model": "m-1", "litellm.api_key.hash": "h"}])
def test_calls_of_a_gateway_that_continue_each_other_are_one_turn(own: dict[str, Any], order: int) -> None:
    """litellm 35193: a gateway traces each request separately, below its own spans, and some have the request's model."""
    stitcher = Stitcher(30.0)
    requests = [
        [span(1, 0, "POST /chat", SERVER, trace_id=1), span(2, 1, "route", own, trace_id=1), chat(3, 2, user="How many?", calls=[CALL], trace_id=1)],
        [
            span(4, 0, "POST /chat", SERVER, trace_id=2, at=50), span(5, 4, "route", trace_id=2, at=50),
            chat(6, 5, user="How many?", messages=ANSWERED, says="42 pairs.", trace_id=2, at=51),
        ],
    ][::order]  # fmt: skip
    (group,) = [group for spans in requests for part in split(spans) for group in stitcher.add(part, 0.0)]
    turn = build_turn(group.root, group.members, close_reason="recorded_file")
    assert (turn.input, turn.output, [call.result for call in turn.tool_calls or ()]) == ("How many?", "42 pairs.", ["42"])


def steps(first: dict[str, Any], second: dict[str, Any], wrapped: bool, error: str | None = None) -> list[Any]:
    """Return two runs below one request, each in a span of its own if ``wrapped``."""
    return [
        span(1, 0, "POST /ask", SERVER, ms=900), *([span(2, 1, "step"), span(5, 1, "step", at=200)] if wrapped else []),
        agent(3, 2 if wrapped else 1, at=1, ms=90, error=error), chat(4, 3, at=2, error=error, **first),
        agent(6, 5 if wrapped else 1, at=201, ms=90), chat(7, 6, at=202, **second),
    ]  # fmt: skip


@pytest.mark.parametrize("wrapped", [True, False])
@pytest.mark.parametrize(
    ("first", "second", "error", "count"),
    [
        ({"user": "How many?", "calls": [CALL]}, {"user": "How many?", "messages": ANSWERED, "says": "42"}, None, 1),
        ({"user": "How many?"}, {"user": "How many?", "says": "42"}, "503", 1),
        ({"user": "How many?"}, {"user": "Which?", "says": "42"}, "503", 2),
        ({"user": "How many?", "says": "1"}, {"user": "Which?", "says": "42"}, None, 2),
    ],
)
def test_runs_that_continue_each_other_are_one_turn(
    first: dict[str, Any], second: dict[str, Any], error: str | None, count: int, wrapped: bool
) -> None:
    """One loop in several wrapper spans, and a retry of the same prompt."""
    turns = turns_of(*steps(first, second, wrapped, error))
    assert (len(turns), turns[-1].output, turns[-1].error) == (count, "42", None)


@pytest.mark.parametrize("key", ["span.type", "acme.span.kind", "node.type", "operation.type"])
@pytest.mark.parametrize(("kind", "calls"), [("LLM", 1), ("chat_model", 1), ("model", 0), ("document", 0)])
def test_kind_alone_is_a_call(key: str, kind: str, calls: int) -> None:
    assert sum(turn.llm_call_count or 0 for turn in turns_of(span(1, 0, "ask", {key: kind}))) == calls


@pytest.mark.parametrize("operation", ["streamText", "doStream", "invoke", "count_tokens", "embed", "moderate"])
def test_operation_of_another_name_is_a_call_if_its_words_say_so(operation: str) -> None:
    """semantic-conventions-genai 510, and calls without token counts."""
    attributes = {"gen_ai.operation.name": operation, "gen_ai.request.model": "gpt-4o", "gen_ai.provider.name": "openai"}
    assert len(turns_of(span(1, 0, operation, attributes))) == (operation in ("streamText", "doStream", "invoke"))


def test_name_that_is_only_the_kind_is_read_elsewhere() -> None:
    turn = turn_of(
        span(1, 0, "agent", {"gen_ai.operation.name": "invoke_agent", "operation.name": "triage"}, ms=90),
        chat(2, 1, user="Hi", says="Yo", at=1),
        span(3, 1, "tool", {"openinference.span.kind": "TOOL", "operation.name": "search", "input.value": "{}"}, at=20),
    )
    assert (turn.agent, [call.name for call in turn.tool_calls or ()]) == ("triage", ["search"])


@pytest.mark.parametrize(
    ("around", "stated", "name"),
    [("step", {"gen_ai.agent.name": "buyer"}, "buyer"), ("buyer_agent", {}, "buyer_agent"), ("run_agent", {}, "search"), ("step", {}, "search")],
)  # fmt: skip
def test_another_agents_name_on_calls_in_a_tool_is_a_sub_agent(around: str, stated: dict[str, str], name: str) -> None:
    turn = turn_of(
        agent(1, name="main"), chat(2, 1, user="Hi", calls=[CALL], at=1), tool(3, 1, at=20, ms=30), span(6, 3, around, at=21, ms=8),
        chat(4, 6, user="shoes", says="42", at=22, ms=5, attributes=stated), chat(5, 1, user="Hi", says="Yo", at=60),
    )  # fmt: skip
    assert [(run.name, run.parent) for run in turn.agent_runs] == [("main", None), (name, "main")]


@pytest.mark.parametrize(
    ("said", "message", "failed"), [("Done.", "boom", False), (None, "boom", True), ("Done.", "other", True)]
)
def test_error_that_only_repeats_a_tools_error(said: str | None, message: str, failed: bool) -> None:
    turn = turn_of(
        agent(1, error=message), chat(2, 1, user="Hi", calls=[CALL], at=1), tool(3, 1, at=20, ms=30, error="boom"),
        *([chat(4, 1, user="Hi", says=said, at=60)] if said else []),
    )  # fmt: skip
    assert (turn.error is not None) is failed


@pytest.mark.parametrize(
    ("says", "reason", "wrong"),
    [(None, None, [False, True]), (None, "stop", [False, False]), ("Wave after wave", None, [False, False])],
)
def test_last_call_of_a_failed_run_without_a_response_failed(says: str | None, reason: str | None, wrong: list[bool]) -> None:
    """In pydantic-ai, only the run's span has the error of a streamed request (recording pydantic-ai-v6-fastapi-stream/s9b)."""
    turn = turn_of(
        agent(1, error="429"), chat(2, 1, user="Hi", calls=[CALL], at=1), tool(3, 1, at=20), chat(4, 1, user="Hi", says=says, at=60,
        attributes={"gen_ai.response.finish_reasons": [reason]} if reason else {}),
    )  # fmt: skip
    assert [call.error is not None for call in turn.llm_calls] == wrong


@pytest.mark.parametrize(
    ("more", "state", "success", "error"),
    [
        ([], "requested", None, None),
        (
            [tool(3, 1, at=20, attributes={"gen_ai.tool.call.id": "c1", "error.type": "GraphInterrupt"}, error="x")],
            "requested",
            None,
            None,
        ),
        (
            [
                tool(
                    3,
                    1,
                    at=20,
                    attributes={"gen_ai.tool.call.id": "c1"},
                    events=[SpanEvent("exception", {"exception.type": "langgraph.errors.GraphInterrupt"}, START)],
                )
            ],
            "requested",
            None,
            None,
        ),  # OpenInference sets the status OK
        (
            [
                tool(
                    3,
                    1,
                    at=20,
                    attributes={"gen_ai.tool.call.id": "c1"},
                    events=[SpanEvent("exception", {"exception.type": "langgraph.errors.ParentCommand"}, START)],
                )
            ],
            "executed",
            1.0,
            None,
        ),  # a command to the parent graph is the tool's result
        (["This tool call requires confirmation, please approve or reject."], "requested", None, None),
        (["Error: The user declined to run this tool."], "declined", None, "tool_error"),
        (["The tool call was denied."], "declined", None, None),
        (["Order 7 was rejected by the shop."], "executed", 1.0, None),
        (["Your order awaits approval."], "executed", 1.0, None),
        (["Error: no such order"], "failed", 0.0, "tool_error"),
    ],
)
def test_request_is_no_execution(more: list[Any], state: str, success: float | None, error: str | None) -> None:
    """A tool that waits for an approval, or was declined, neither succeeded nor failed."""
    said = [text for text in more if isinstance(text, str)]
    results = [{"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": text}]} for text in said]
    turn = turn_of(
        agent(1), chat(2, 1, user="Hi", calls=[CALL], at=1), *(one for one in more if not isinstance(one, str)),
        *([chat(4, 1, user="Hi", messages=[ANSWERED[0], *results], says="So be it.", at=60)] if said else []),
    )  # fmt: skip
    (call,) = turn.tool_calls or ()
    assert (call.state, call.error and call.error.type) == (state, error)
    score = oa.get_metric("code_tool_success").evaluate(turn)
    assert (None if score.vacuous else score.value) == success
    assert oa.Turn.from_dict(turn.to_dict()).tool_calls[0].state == state  # type: ignore[index]
    assert oa.get_metric("code_empty_answer").evaluate(oa.Turn(turn_id="1", output="", tool_calls=[call])).passed is (
        None if state == "requested" else False
    )


def run_of(number: int, says: str | None = None, **more: Any) -> list[SpanGroup]:
    said = {} if says is None else {"gen_ai.output.messages": json.dumps([{"role": "assistant", "content": says}])}
    return split([agent(number, trace_id=number, attributes=said, **more)])


def call_of(number: int, **more: Any) -> list[SpanGroup]:
    return split([chat(number, trace_id=number, ms=20, **{"at": 10, **more})])


def as_they_arrive(groups: list[SpanGroup]) -> list[SpanGroup]:
    """Return the turns of groups that arrive in this order, in their last revisions."""
    duplicates, found = Duplicates(Stitcher(30.0)), dict[int, SpanGroup]()

    def keep(wholes: list[SpanGroup]) -> None:
        for whole in wholes:
            parts = {member.trace_id for member in whole.members}
            for trace in [trace for trace in found if trace in parts]:
                del found[trace]
            found[whole.root.trace_id] = whole

    for group in groups:
        keep(duplicates.add(group, 0.0))
    keep(duplicates.due(31.0))
    return [*found.values()]


def run_first(groups: list[SpanGroup]) -> list[SpanGroup]:
    return as_they_arrive(groups[::-1])


@pytest.mark.parametrize("joined", [stitch, as_they_arrive, run_first])
@pytest.mark.parametrize(
    ("groups", "wanted"),
    [
        (lambda: call_of(2, user="Hi", says="Yo") + run_of(1), [("bot", "Hi", "Yo", 1)]),
        (lambda: call_of(2, user="Hi", says="Yo") + run_of(1, "Yo"), [("bot", "Hi", "Yo", 1)]),
        (lambda: call_of(2, user="Hi", says="Yo") + run_of(1, "Other"), [("bot", None, "Other", None), (None, "Hi", "Yo", 1)]),
        (lambda: call_of(2, user="Hi", says="Yo", at=200) + run_of(1), [("bot", None, None, None), (None, "Hi", "Yo", 1)]),
        (
            lambda: [*call_of(2, user="Hi", calls=[CALL]), *call_of(3, user="Hi", messages=ANSWERED, says="Yo", at=40), *run_of(1)],
            [("bot", "Hi", "Yo", 2)],
        ),
        (
            lambda: [
                *call_of(3, user="A?", says="A"), *call_of(4, user="B?", says="B", at=11), *run_of(1, "A"), *run_of(2, "B", at=1)
            ],
            [("bot", "A?", "A", 1), ("bot", "B?", "B", 1)],
        ),
    ],
)  # fmt: skip
def test_run_whose_calls_are_in_traces_of_their_own(joined: Any, groups: Any, wanted: list[Any]) -> None:
    """opentelemetry-python-genai 513, traceroot-py 119, opik 1128, agent-framework 5089."""
    given = groups()  # kept, as turns are that can be revised
    turns = [reader_of(group).turn("root_ended", True) for group in sorted(joined(given), key=lambda group: group.root.trace_id)]
    assert [(turn.agent, turn.input, turn.output, turn.llm_call_count) for turn in turns] == wanted


DELEGATES = {"id": "c9", "name": "ask", "arguments": {"task": "Pack for Oslo?"}}


def caller(number: int, result: str, **more: Any) -> list[SpanGroup]:
    """Return a turn whose tool runs an agent in a thread without the context."""
    given = {"gen_ai.tool.call.arguments": '{"task": "Pack for Oslo?"}', "gen_ai.tool.call.result": result}
    of = {"trace_id": number, **more}
    return split([
        agent(number, name="boss", **of), chat(number + 1, number, user="Ask.", calls=[DELEGATES], **of),
        tool(number + 2, number, "ask", attributes=given, at=20, ms=50, **more, trace_id=number),
        chat(number + 3, number, at=75, says="A jacket, I hear.", user="Ask.", trace_id=number),
    ])  # fmt: skip


def loop_calls(number: int, result: str) -> list[SpanGroup]:
    """Return a hand-written loop with the same calls, without a span of its own."""
    asked = {"role": "assistant", "parts": [{"type": "tool_call", **DELEGATES}]}
    told = {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c9", "response": result}]}
    first = chat(number, trace_id=number, user="Ask.", calls=[DELEGATES])
    return split([first]) + split([
        chat(number + 1, trace_id=number + 1, at=75, user="Ask.", messages=[asked, told], says="A jacket, I hear.")
    ])  # fmt: skip


def specialist(number: int, says: str = "A jacket.", at: float = 25) -> list[SpanGroup]:
    return split([
        agent(number, name="specialist", trace_id=number, at=at, ms=30),
        chat(number + 1, number, trace_id=number, at=at + 5, user="Pack for Oslo?", says=says),
    ])  # fmt: skip


@pytest.mark.parametrize("joined", [stitch, as_they_arrive, run_first])
@pytest.mark.parametrize(
    ("groups", "wanted"),
    [
        pytest.param(lambda: specialist(50) + caller(10, "A jacket."), [("boss", "Ask.", 3)], id="agents"),
        pytest.param(lambda: loop_calls(10, "A jacket.") + specialist(50), [("specialist", "Ask.", 3)], id="a loop and an agent"),
        pytest.param(
            lambda: loop_calls(10, "A jacket.") + call_of(50, user="Pack for Oslo?", says="A jacket.", at=30), [(None, "Ask.", 3)], id="loops"
        ),
        pytest.param(
            lambda: specialist(50) + caller(10, "A hat."), [("boss", "Ask.", 2), ("specialist", "Pack for Oslo?", 1)], id="another result"
        ),
        pytest.param(
            lambda: specialist(50, at=120) + caller(10, "A jacket."), [("boss", "Ask.", 2), ("specialist", "Pack for Oslo?", 1)],
            id="another time",
        ),
    ],
)  # fmt: skip
def test_run_of_a_tool_in_a_trace_of_its_own_is_part_of_the_turn(joined: Any, groups: Any, wanted: list[Any]) -> None:
    """smolagents 1840, langsmith-sdk 771, strands-agents 489, cap-js/agents 87: a thread or a client loses the context."""
    given = groups()
    turns = [reader_of(group).turn("root_ended", True) for group in sorted(joined(given), key=lambda group: group.root.trace_id)]
    assert [(turn.agent, turn.input, turn.llm_call_count) for turn in turns] == wanted


def test_agent_in_a_tool_of_a_loop_is_not_the_turns_agent() -> None:
    """A hand-written loop has no agent. Only one of its tools runs an agent (recording smolagents-openinference-loop/s7)."""
    turn = turn_of(
        span(1), chat(2, 1, user="Ask.", calls=[DELEGATES]), tool(3, 1, "ask", at=20, ms=50), agent(4, 3, "helper", at=21, ms=40),
        chat(5, 4, at=22, user="Pack for Oslo?", says="A jacket."), chat(6, 1, at=80, user="Ask.", says="A jacket, I hear."),
    )  # fmt: skip
    assert (turn.agent, turn.input, turn.output, turn.llm_call_count) == (None, "Ask.", "A jacket, I hear.", 3)
    assert [run.name for run in turn.agent_runs or ()] == ["helper"]


def test_calls_with_one_id_have_their_own_results() -> None:
    """koog 1085, hermes-otel 73: a tool's name is the id of all its calls."""
    asks = [{"id": "call-search", "name": "search", "arguments": {"day": day}} for day in ("today", "friday")]
    results = [{"role": "tool", "parts": [{"type": "tool_call_response", "id": "call-search", "response": one}]} for one in "AB"]
    requested = {"role": "assistant", "parts": [{"type": "tool_call", **ask} for ask in asks]}
    turn = turn_of(
        agent(1), chat(2, 1, user="Q", calls=asks), chat(3, 1, at=20, user="Q", messages=[requested, *results], says="Fine.")
    )
    assert [call.result for call in turn.tool_calls or ()] == ["A", "B"]


def test_request_with_an_empty_text_is_no_answer() -> None:
    """openlit 1540: an empty text next to a tool's request."""
    said = json.dumps({"messages": [{"type": "human", "content": "Q"}, {"type": "ai", "content": "", "tool_calls": [{"name": "pay", "args": {}, "id": "c1"}]}]})  # fmt: skip
    root = span(1, 0, "graph", {"openinference.span.kind": "CHAIN", "input.value": "Q", "output.value": said})
    assert turn_of(root, chat(2, 1, user="Q", calls=[{"id": "c1", "name": "pay", "arguments": {}}])).output is None


def test_steps_of_a_loop_without_its_run_are_one_turn() -> None:
    """harness-sdk 118: each cycle of an agent is a separate root."""
    cycle = {"gen_ai.operation.name": "execute_event_loop_cycle"}
    stitcher = Stitcher(30.0)
    cycles = [
        [
            span(1, 0, "Cycle 1", cycle, trace_id=1), chat(2, 1, user="Q", calls=[CALL], trace_id=1),
            tool(3, 1, at=20, trace_id=1, attributes={"gen_ai.tool.call.id": "c1"}),
        ],
        [span(4, 0, "Cycle 2", cycle, trace_id=2, at=50), chat(5, 4, user="Q", messages=ANSWERED, says="42", trace_id=2, at=51)],
    ]  # fmt: skip
    (group,) = [group for spans in cycles for part in split(spans) for group in stitcher.add(part, 0.0)]
    turn = reader_of(group).turn("root_ended", True)
    assert (turn.input, turn.output, [call.result for call in turn.tool_calls or ()]) == ("Q", "42", ["42"])


@pytest.mark.parametrize(("key", "count"), [("session.id", 3), ("user.id", 3), ("color", 2)])
def test_call_of_one_of_two_runs_never_gets_the_others_user(key: str, count: int) -> None:
    runs = [split([agent(number, trace_id=number, at=number, attributes={key: f"id-{number}"})]) for number in (1, 2)]
    assert len(stitch([*runs[0], *runs[1], *call_of(3, user="Hi", says="Yo")])) == count


def live(*traces: list[Any], beside: Any = ()) -> list[Any]:
    """Return the turns of traces that close in this order, in their last revisions."""
    now, still_open = [0.0], [*traces, *beside]
    composer = Composer(30.0, lambda: now[0], open_spans=lambda: still_open)
    found = {}
    for records in traces:
        del still_open[0]
        for group in composer.compose(Closed(records[0].trace_id, records, "root_ended", True)):
            found[group.root.span_id] = group
    now[0] = 60.0
    found.update((group.root.span_id, group) for group in composer.due())
    return [composer.read(group).turn for group in found.values()]


SHOP, OTHER = {"service.name": "shop"}, {"service.name": "tools"}


@pytest.mark.parametrize(
    ("more", "at", "resource", "calls", "lost"),
    [
        ((), 30, SHOP, ["pay"], 0),
        ((), 30, OTHER, [], 1),
        ((), 130, SHOP, [], 1),
        ((agent(9, trace_id=9, at=20, resource=SHOP),), 30, SHOP, [], 1),
        ((agent(9, trace_id=9, at=60, resource=SHOP),), 30, SHOP, ["pay"], 0),
        ((agent(9, trace_id=9, at=20, resource=OTHER),), 30, SHOP, ["pay"], 0),
    ],
)  # fmt: skip
def test_tool_without_its_caller_belongs_to_the_only_request(more: Any, at: float, resource: Any, calls: Any, lost: int) -> None:
    """spring-ai 5971: the context is lost when a stream runs a tool."""
    run = [agent(1, trace_id=1, resource=SHOP), chat(2, 1, user="Q", says="A", trace_id=1, resource=SHOP)]
    unread: list[Any] = []
    found = wholes_of([tool(3, 0, "pay", trace_id=3, at=at, resource=resource), *more, *run], unread.append)
    turn = next(reader_of(group).turn("recorded_file", True) for group in found if group.root.span_id == 1)
    assert ([call.name for call in turn.tool_calls or ()], turn.output, turn.duration_s) == (calls, "A", 0.1)
    assert [trace.missing for trace in unread] == ["caller"] * lost
    for order in permutations([run, [tool(3, 0, "pay", trace_id=3, at=at, resource=resource)], *([one] for one in more)]):
        turn = next(turn for turn in live(*order) if turn.output == "A")
        assert ([call.name for call in turn.tool_calls or ()], turn.duration_s) == (calls, 0.1)


def test_tool_waits_while_another_request_runs() -> None:
    run = [agent(1, trace_id=1, resource=SHOP), chat(2, 1, user="Q", says="A", trace_id=1, resource=SHOP)]
    lost = [tool(3, 0, "pay", trace_id=3, at=30, resource=SHOP)]
    for service, calls in ((SHOP, 0), (OTHER, 1)):
        beside = [[chat(8, 7, user="R", trace_id=9, at=10, resource=service)]]
        (turn,) = live(lost, run, beside=beside)
        assert len(turn.tool_calls or ()) == calls
