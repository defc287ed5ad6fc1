"""Situations of public reports on answers that other calls prepare, and on counts. See README.md in this folder."""

from __future__ import annotations

from typing import Any

import pytest

from otel_agenteval.core.turn_cost import add_cost
from tests.support.spans import agent, chat, span, turn_of

ASKED, SAID = "Which rakes do you sell?", "We sell two, one of wood and one of steel."
ALONE = "Which kinds of garden rakes can a customer buy here?"


def text(role: str, content: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": content}]}


# --- an earlier call that prepares the answer, and a later call that only processes it

REPHRASE = f"Rephrase the follow-up.\nHistory:\nHuman: Good morning\nFollow-up: {ASKED}\nStandalone question:"
POEM, TRANSLATED = "Autumn leaves beneath the old rake.", "Des feuilles mortes, un vieux râteau."
SUMMARY = "The customer said hello and asked for the opening hours."
INSTRUCTED = [text("system", "Summarize."), text("user", "Hello"), text("user", "Write a summary of the conversation above.")]


@pytest.mark.parametrize(
    ("prepares", "prepared", "answers", "said"),
    [
        ([text("user", REPHRASE)], ALONE, [text("user", f"Context: two rakes\n\nQuestion: {ALONE}\nAnswer:")], SAID),
        (
            [text("system", "Rephrase."), text("user", ASKED)],
            ALONE,
            [text("user", f"Context: two rakes. Question: {ALONE}")],
            SAID,
        ),
        ([text("user", "Write a poem on rakes.")], POEM, [text("user", f"Translate: {POEM}")], TRANSLATED),
        ([text("user", "Outline a text.")], "1. Wood. 2. Steel.", [text("user", "Write it: 1. Wood. 2. Steel.")], SAID),
        (INSTRUCTED, SUMMARY, [text("system", "Sell."), text("user", f"So far: {SUMMARY}"), text("user", ASKED)], SAID),
        (INSTRUCTED, SUMMARY, [text("system", f"Sell. So far: {SUMMARY}"), text("user", ASKED)], "Two."),
        (INSTRUCTED, SUMMARY, [text("user", f"So far: {SUMMARY}"), text("user", "Go on.")], SAID),
    ],
)
def test_answer_is_the_last_calls_if_an_earlier_call_prepares_it(
    prepares: list[Any], prepared: str, answers: list[Any], said: str
) -> None:
    """langchain 15164, 5608, 7136, Flowise 2247 and xagent 1939: a rephrased question, a chain of prompts and a compaction."""
    calls = chat(2, 1, messages=prepares, says=prepared), chat(3, 1, messages=answers, says=said, at=20)
    for root in (agent(1), span(1, 0, "POST /chat", ms=90)):
        turn = turn_of(root, *calls)
        assert (turn.output, len(turn.llm_calls or ())) == (said, 2)


def test_answer_is_the_last_calls_if_an_earlier_text_was_searched() -> None:
    """langchain 15164, with the user's own question beside the rephrased one."""
    search = span(4, 1, "retrieval", {"gen_ai.operation.name": "retrieval", "gen_ai.retrieval.query.text": ALONE}, at=12, ms=5)
    calls = chat(2, 1, user=ASKED, says=ALONE), chat(3, 1, user=f"Question: {ASKED} ({ALONE})", says=SAID, at=20)
    assert turn_of(agent(1), search, *calls).output == SAID


def test_input_is_the_question_after_a_summary() -> None:
    """xagent 1939 and opencode 35935: the turn begins with a call that summarizes the conversation."""
    answers = [text("system", "Sell."), text("user", f"So far: {SUMMARY}"), text("user", ASKED)]
    turn = turn_of(agent(1), chat(2, 1, messages=INSTRUCTED, says=SUMMARY), chat(3, 1, messages=answers, says=SAID, at=20))
    assert (turn.input, turn.output) == (ASKED, SAID)


@pytest.mark.parametrize("question", [ASKED, f"Context: two rakes in stock\nQuestion: {ASKED}\nAnswer:"])
@pytest.mark.parametrize(
    ("asked", "made"),
    [
        ("Write a title.\nUser: {q}\nAssistant: {a}", "Garden tools in stock"),
        ("Suggest follow-up questions after: {a}", '["How much?", "Which sizes?"]'),
        ("Is this reply safe? {a}", "safe"),
    ],
)
def test_answer_is_the_earlier_calls_if_the_last_one_is_about_it(question: str, asked: str, made: str) -> None:
    """The opposite of langchain 15164: a title, follow-up questions or a check after the answer."""
    later = chat(3, 1, messages=[text("system", "Help."), text("user", asked.format(q=ASKED, a=SAID))], says=made, at=20)
    turn = turn_of(agent(1), chat(2, 1, user=question, says=SAID), later)
    assert (turn.input, turn.output) == (ASKED, SAID)


# --- tool calls that only the prompt of a later call has, because the span of their call was lost


def asks(number: int, *, has_id: bool = True) -> list[dict[str, Any]]:
    """Return a tool request and its result."""
    one = {"id": f"c{number}"} if has_id else {}
    request = {"type": "tool_call", "name": "count_stock", "arguments": {"shelf": number}, **one}
    result = {"type": "tool_call_response", "name": "count_stock", "response": f"{number} left", **one}
    return [{"role": "assistant", "parts": [request]}, {"role": "tool", "parts": [result]}]


def counted(*spans: Any) -> list[Any] | None:
    calls = turn_of(*spans).tool_calls
    return None if calls is None else [(call.arguments, call.result, call.state) for call in calls]


def left(number: int) -> Any:
    return {"shelf": number}, f"{number} left", "executed"


@pytest.mark.parametrize("has_id", [True, False])
@pytest.mark.parametrize("root", [[], [agent(1)], [span(1, 0, "POST /chat", ms=90)]])
def test_tool_calls_in_the_only_calls_prompt_were_executed(root: list[Any], has_id: bool) -> None:
    """openllmetry 3349: a prompt has the question, a tool request and its result. The span of the first call isn't there."""
    prompt = [text("user", ASKED), *asks(1, has_id=has_id), *asks(2, has_id=has_id)]
    assert counted(*root, chat(2, len(root), messages=prompt, says=SAID, at=20)) == [left(1), left(2)]


def test_each_split_turn_of_a_loop_has_its_own_tool_call() -> None:
    """Each call is a separate trace and repeats the conversation. A turn with a tool request doesn't contain earlier requests."""
    request = {"id": "c2", "name": "count_stock", "arguments": {"shelf": 2}}
    root = span(1, 0, "workflow", {"gen_ai.operation.name": "invoke_workflow"})
    assert counted(root, chat(2, 1, messages=[text("user", ASKED), *asks(1)], calls=[request])) == [
        ({"shelf": 2}, None, "requested")
    ]


@pytest.mark.parametrize("has_id", [True, False])
@pytest.mark.parametrize("said", [[{"type": "text", "content": ASKED}], []])
def test_tool_calls_of_earlier_turns_do_not_count(has_id: bool, said: list[Any]) -> None:
    """The opposite of openllmetry 3349. The user's new message may lack its content."""
    prompt = [text("user", "Hello"), *asks(1, has_id=has_id), text("assistant", "One left."), {"role": "user", "parts": said}]
    assert counted(agent(1), chat(2, 1, messages=prompt, says=SAID)) == []


@pytest.mark.parametrize("has_id", [True, False])
def test_tool_calls_of_earlier_turns_do_not_count_beside_others(has_id: bool) -> None:
    prompt = [text("user", "Hello"), *asks(1, has_id=has_id), text("assistant", "One left."), text("user", ASKED)]
    request = {"name": "count_stock", "arguments": {"shelf": 2}, **({"id": "c2"} if has_id else {})}
    last = chat(3, 1, messages=[*prompt, *asks(2, has_id=has_id)], says=SAID, at=20)
    assert counted(agent(1), chat(2, 1, messages=prompt, calls=[request]), last) == [left(2)]


# --- counts of 0 beside an answer


def tokens(given: int, made: int) -> dict[str, Any]:
    return {"gen_ai.request.model": "gpt-4o", "gen_ai.usage.input_tokens": given, "gen_ai.usage.output_tokens": made}


def cost_and_tokens(*spans: Any) -> Any:
    turn = turn_of(*spans)
    add_cost(turn)
    return turn.cost_usd, None if turn.usage is None else (turn.usage.input_tokens, turn.usage.output_tokens)


@pytest.mark.parametrize(("given", "made", "counts"), [(0, 0, None), (0, 5, (None, 5))])
@pytest.mark.parametrize("root", [[], [agent(1)], [agent(1, attributes=tokens(0, 0))]])
def test_cost_is_unknown_if_an_answered_call_counts_0_tokens(root: list[Any], given: int, made: int, counts: Any) -> None:
    """agents-at-scale-ark 524: a streaming client writes 0 for counts that it doesn't receive."""
    asks_tool = [{"id": "c1", "name": "count_stock", "arguments": {}}]
    for answer in ({"says": SAID}, {"calls": asks_tool}):
        call = chat(2, len(root), user=ASKED, attributes=tokens(given, made), **answer)
        assert cost_and_tokens(*root, call) == (None, counts)
    plain = {"openinference.span.kind": "LLM", "llm.model_name": "gpt-4o", "input.value": ASKED, "output.value": SAID}
    call = span(2, len(root), "LLM", {**plain, "llm.token_count.prompt": given, "llm.token_count.completion": made})
    assert cost_and_tokens(*root, call) == (None, counts)


def test_cost_is_unknown_if_one_of_two_calls_counts_0_tokens() -> None:
    calls = (chat(n, 1, user=ASKED, says=SAID, at=n * 20, attributes=tokens(*used)) for n, used in ((2, (10, 5)), (3, (0, 0))))
    assert cost_and_tokens(agent(1), *calls) == (None, (10, 5))


def test_tokens_of_a_run_count_if_its_calls_count_0() -> None:
    call = chat(2, 1, user=ASKED, says=SAID, attributes=tokens(0, 0))
    assert cost_and_tokens(agent(1, attributes=tokens(10, 4)), call)[1] == (10, 4)


@pytest.mark.parametrize(
    ("call", "cost", "counts"),
    [
        (chat(2, 1, messages=[text("user", ASKED)], says="", attributes=tokens(10, 0)), 10 * 2.5e-6, (10, 0)),
        (chat(2, 1, user=ASKED, error="RateLimitError", attributes=tokens(0, 0)), 0.0, (0, 0)),
        (chat(2, 1, attributes=tokens(0, 0)), 0.0, (0, 0)),
    ],
)
def test_zero_tokens_without_an_answer_are_zero(call: Any, cost: float, counts: Any) -> None:
    """The opposite of agents-at-scale-ark 524: an empty answer and a failed call."""
    assert cost_and_tokens(agent(1), call) == (pytest.approx(cost), counts)


def test_zero_input_tokens_beside_cached_ones_are_counted() -> None:
    attributes = {**tokens(0, 5), "gen_ai.usage.cache_read.input_tokens": 100}
    assert cost_and_tokens(agent(1), chat(2, 1, user=ASKED, says=SAID, attributes=attributes))[1] == (100, 5)


# --- tokens and costs that only an agent's span has

DETAILS = {"gen_ai.usage.reasoning_tokens": 50, "gen_ai.usage.cache_creation.input_tokens": 30}


def all_tokens(*spans: Any) -> Any:
    used = turn_of(*spans).usage
    return used and (used.input_tokens, used.output_tokens, used.cached_tokens, used.cache_write_tokens, used.reasoning_tokens)


@pytest.mark.parametrize("cached", ["gen_ai.usage.cached_input_tokens", "gen_ai.usage.cache_read.input_tokens"])
def test_details_of_usage_on_an_agents_span_count(cached: str) -> None:
    """agent-framework-go 495 and 493: only the agent's span has the tokens, with cached and reasoning tokens."""
    attributes = {**tokens(1000, 200), cached: 600, **DETAILS}
    counts = (1000, 200, 600, 30, 50)
    assert all_tokens(agent(1, attributes=attributes)) == counts
    assert all_tokens(agent(1, attributes=attributes), chat(2, 1, user=ASKED, says=SAID)) == counts
    runs = agent(2, 1, attributes=attributes), agent(3, 1, at=20, attributes=attributes)
    assert all_tokens(span(1, 0, "flow", {"gen_ai.operation.name": "invoke_workflow"}, ms=90), *runs) == tuple(
        2 * count for count in counts
    )
    call = chat(4, 1, user=ASKED, says=SAID, at=40, attributes={**tokens(10, 5), cached: 4})
    assert all_tokens(agent(1, ms=90), call, agent(2, 1, "remote", at=20, ms=15, attributes=attributes)) == (
        1010,
        205,
        604,
        30,
        50,
    )


def test_details_of_usage_on_an_agents_span_are_not_added_to_its_calls() -> None:
    """The opposite of agent-framework-go 495."""
    attributes = {**tokens(1000, 200), "gen_ai.usage.cached_input_tokens": 600, **DETAILS}
    assert all_tokens(agent(1, attributes=attributes), chat(2, 1, says=SAID, attributes=attributes)) == (1000, 200, 600, 30, 50)
    plain = chat(2, 1, says=SAID, attributes=tokens(1000, 200))
    assert all_tokens(agent(1, attributes=attributes), plain) == (1000, 200, None, None, None)


def cost_of_runs(*runs: tuple[int, int, float | None], calls: list[Any] | None = None, root: bool = False) -> float | None:
    """Return the cost of a turn with OpenInference's agent spans: id, parent's id and cost."""
    spans = [span(9, 0, "flow", {"openinference.span.kind": "CHAIN", "input.value": ASKED}, ms=90)] if root else []
    for number, (span_id, parent_id, cost) in enumerate(runs):
        attributes = {"openinference.span.kind": "AGENT", "input.value": ASKED, "output.value": SAID}
        more = {} if cost is None else {"llm.cost.total": cost}
        spans.append(span(span_id, parent_id, "query", {**attributes, **more}, at=1 + number * 10, ms=80 - 20 * number))
    return turn_of(*spans, *(calls or [])).cost_usd


def openinference_call(parent_id: int, cost: float | None) -> Any:
    attributes = {"openinference.span.kind": "LLM", "llm.model_name": "gpt-4o", "input.value": ASKED, "output.value": SAID}
    return span(5, parent_id, "LLM", attributes if cost is None else {**attributes, "llm.cost.total": cost}, at=35, ms=5)


def test_cost_on_an_agents_span_counts_if_no_call_has_one() -> None:
    """langfuse 14338: only the spans of runs have a cost. That of a sub-agent is part of the main agent's."""
    assert cost_of_runs((1, 0, 2.42)) == 2.42
    assert cost_of_runs((1, 0, 2.42), (2, 1, 0.4)) == 2.42
    assert cost_of_runs((1, 9, 2.42), (2, 1, 0.4), root=True) == 2.42
    assert cost_of_runs((1, 9, 2.0), (2, 9, 0.5), root=True) == 2.5
    assert cost_of_runs((1, 0, 2.42), calls=[openinference_call(1, None)]) == 2.42


def test_cost_on_an_agents_span_is_not_added_to_its_calls() -> None:
    """The opposite of langfuse 14338. The cost of some of the runs isn't the turn's."""
    assert cost_of_runs((1, 0, 2.42), calls=[openinference_call(1, 0.5)]) == 0.5
    assert cost_of_runs((1, 9, 2.0), (2, 9, None), root=True) is None
    assert cost_of_runs((1, 0, None)) is None


FACTS = "The customer asks which rakes we sell. The search returned two of them, one of wood and one of steel."


@pytest.mark.parametrize(("request_", "continued", "said"), [
    ("Summarize the conversation so far.", f"This session is continued. Summary:\n{FACTS}", "There are two."),
    ("Write a summary of the messages above.", f"<summary>{FACTS}</summary>\nContinue.", "We sell two rakes."),
    (f"Compress this.\n\nuser: {ASKED}", f"Conversation summary:\n{FACTS}", "Two, of wood and of steel."),
])  # fmt: skip
def test_answer_after_a_compacted_conversation_is_the_output(request_: str, continued: str, said: str) -> None:
    """xagent 519: the answer is much shorter than the summary that replaces the conversation."""
    asks = [{"id": "c1", "name": "search", "arguments": {"item": "rake"}}]
    turn = turn_of(
        agent(1, ms=200),
        chat(2, 1, user=ASKED, calls=asks, at=5),
        chat(3, 1, messages=[text("user", request_)], says=FACTS, at=30),
        chat(4, 1, messages=[text("user", continued)], says=said, at=60),
    )
    assert (turn.input, turn.output) == (ASKED, said)


@pytest.mark.parametrize(("first", "grader", "grade"), [
    ("Summarize what we sell.", f"Is this summary faithful? {FACTS}", "Yes, all of it."),
    ("Classify: which rakes?", f"Rate this summary: {FACTS}", "4/5"),
    ("Classify: which rakes?", f"Rate this answer: {FACTS}", "The answer is faithful."),
    ("Classify: which rakes?", f"Rate this summary: {FACTS}", "The summary is good."),
    ("Classify: which rakes?", f"Write a title, as a summary of this answer:\n{FACTS}", "Rakes in stock"),
    ("Classify: which rakes?", f"Summarize the conversation for later.\nassistant: {FACTS}", "Asked for rakes."),
])  # fmt: skip
def test_grade_of_a_summary_is_not_the_output(first: str, grader: str, grade: str) -> None:
    """The opposite of xagent 519: the summary is the answer, and a later call only grades it."""
    steps = [("Summarize what we sell.", FACTS), (grader, grade)]
    if first != steps[0][0]:
        steps.insert(0, (first, "sales"))
    calls = [chat(2 + place, 1, user=asked, says=said, at=30 * place) for place, (asked, said) in enumerate(steps)]
    assert turn_of(agent(1, ms=200), *calls).output == FACTS


@pytest.mark.parametrize(("request_", "instructions", "later"), [
    ("Summarize the results for the customer.", ("", ""), f"Rate this summary: {FACTS}"),
    ("Summarize the conversation for the customer.", ("You sell rakes.", "You grade."), f"Summary: {FACTS}\nIs it faithful?"),
    ("Write the email's text now.", ("", ""), f"Write a subject that is a summary of:\n{FACTS}"),
])  # fmt: skip
def test_helper_of_an_agent_with_tools_is_not_the_output(request_: str, instructions: tuple[str, str], later: str) -> None:
    """The opposite of xagent 519: a tool was called, but no call compacts the conversation to go on with it."""
    asks = [{"id": "c1", "name": "search", "arguments": {"item": "rake"}}]
    first, second = ([text("system", one)] if one else [] for one in instructions)
    turn = turn_of(
        agent(1, ms=200),
        chat(2, 1, messages=[*first, text("user", ASKED)], calls=asks, at=5),
        chat(3, 1, messages=[*first, text("user", request_)], says=FACTS, at=30),
        chat(4, 1, messages=[*second, text("user", later)], says="Rakes, as asked.", at=60),
    )
    assert turn.output == FACTS
