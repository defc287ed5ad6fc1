"""Situations of public reports on model calls, tokens and answers in traces. See README.md in this folder."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from otel_agenteval.core.turn_cost import Pricing, add_cost
from otel_agenteval.engine.work import GroupedSpans
from otel_agenteval.turns.recordings import turns_of
from tests.support.spans import agent, chat, span, tool, turn_of
from tests.turns.test_complete import Received

ASKED, SAID = "What is the weather in Paris?", "It is 21 degrees in Paris."


def usage(input_tokens: int, output_tokens: int, prefix: str = "gen_ai.usage.") -> dict[str, Any]:
    return {f"{prefix}input_tokens": input_tokens, f"{prefix}output_tokens": output_tokens}


def call(span_id: int, parent_id: int, tokens: tuple[int, int], *, scope: str = "acme", **more: Any) -> Any:
    made = chat(span_id, parent_id, attributes=usage(*tokens), **more)
    made.scope = scope
    return made


@pytest.mark.parametrize("first_ms", [5, 100])
@pytest.mark.parametrize("tool_parent", [1, 2])
def test_later_call_below_an_earlier_calls_span_is_another_call(first_ms: int, tool_parent: int) -> None:
    """adk-python 4607: the second call is recorded below the first one, whose span has ended or still runs."""
    asks = [{"id": "c1", "name": "get_weather", "arguments": {"city": "Paris"}}]
    turn = turn_of(
        agent(1, ms=200),
        call(2, 1, (10, 5), user=ASKED, calls=asks, ms=first_ms),
        tool(3, tool_parent, "get_weather", at=20),
        call(4, 2, (20, 5), says=SAID, at=40),
    )
    assert [(one.input_tokens, one.output_tokens) for one in turn.llm_calls or ()] == [(10, 5), (20, 5)]
    assert (turn.output, turn.usage.input_tokens, turn.usage.output_tokens, len(turn.tool_calls or ())) == (SAID, 30, 10, 1)


@pytest.mark.parametrize("inner", [(10, 5), (9, 5)])
@pytest.mark.parametrize("scope", ["acme", "other"])
def test_span_of_the_same_call_below_a_calls_span_is_no_other_call(inner: tuple[int, int], scope: str) -> None:
    """The opposite of adk-python 4607: a layer of the same call."""
    turn = turn_of(agent(1, ms=200), call(2, 1, (10, 5), user=ASKED, says=SAID, ms=50), call(3, 2, inner, scope=scope, at=5))
    assert [(one.input_tokens, one.output_tokens) for one in turn.llm_calls or ()] == [(10, 5)]


@pytest.mark.parametrize("scope", ["acme", "strands.telemetry.tracer", "agent_framework", "pydantic-ai"])
@pytest.mark.parametrize("prefix", ["gen_ai.usage.", "gen_ai.aggregated_usage."])
@pytest.mark.parametrize("with_call", [True, False])
def test_tokens_of_an_agent_count_if_no_call_has_any(scope: str, prefix: str, with_call: bool) -> None:
    """promptfoo 9030."""
    root = agent(1, attributes=usage(80, 20, prefix))
    root.scope = scope
    turn = turn_of(root, *([chat(2, 1, user=ASKED, says=SAID)] if with_call else [tool(2, 1, "get_weather")]))
    assert (turn.usage.input_tokens, turn.usage.output_tokens) == (80, 20)


def test_tokens_of_an_agent_of_openinference_count_if_no_call_has_any() -> None:
    """promptfoo 9030, in OpenInference's names."""
    counts = {"llm.token_count.prompt": 80, "llm.token_count.completion": 20}
    turn = turn_of(span(1, 0, "agent", {"openinference.span.kind": "AGENT", **counts}), tool(2, 1, "get_weather"))
    assert (turn.usage.input_tokens, turn.usage.output_tokens) == (80, 20)


def test_tokens_of_an_agent_that_runs_elsewhere_are_added() -> None:
    """vercel/eve 362 and Application-Insights-Workbooks 3208: only the span of the remote agent has its tokens."""
    remote = agent(3, 1, at=20, ms=15, attributes=usage(80, 20))
    turn = turn_of(
        agent(1, ms=200), call(2, 1, (100, 20), user=ASKED, says="I'll ask."), remote, call(4, 1, (50, 5), says=SAID, at=40)
    )
    assert (turn.usage.input_tokens, turn.usage.output_tokens) == (230, 45)


def test_tokens_of_an_agent_beside_its_call_are_not_added() -> None:
    """The opposite of vercel/eve 362: OpenLIT's span of a graph's node is beside the span of its call."""
    node, around = agent(2, 1, "node", at=10, ms=90, attributes=usage(80, 20)), agent(3, 1, "graph", at=5, ms=99)
    turn = turn_of(agent(1, ms=200), node, around, call(4, 3, (80, 20), user=ASKED, says=SAID, at=20))
    assert (turn.usage.input_tokens, turn.usage.output_tokens) == (80, 20)


@pytest.mark.parametrize("depth", [1, 2])
def test_tokens_of_an_agent_whose_calls_have_spans_are_not_added(depth: int) -> None:
    """The opposite of vercel/eve 362: agents repeat the tokens of their calls, and of the agents that they call."""
    inner = [agent(3, 1, at=20, ms=30, attributes=usage(80, 20)), agent(5, 3, at=21, ms=20, attributes=usage(80, 20))][:depth]
    turn = turn_of(
        agent(1, ms=200, attributes=usage(180, 40)),
        call(2, 1, (100, 20), user=ASKED, says="I'll ask."),
        *inner,
        call(4, inner[-1].span_id, (80, 20), says=SAID, at=22, ms=5),
    )
    assert (turn.usage.input_tokens, turn.usage.output_tokens) == (180, 40)


@pytest.mark.parametrize("says", ["It runs in the background.", "I'll tell you later."])
def test_answer_of_a_tool_in_the_background_is_not_the_turns_answer(says: str) -> None:
    """weave 7630: a sub-agent goes on after the agent has answered."""
    asks = [{"id": "c1", "name": "research", "arguments": {}}]
    start = (agent(1, ms=300), chat(2, 1, user=ASKED, calls=asks), tool(3, 1, "research", at=20, ms=5))
    helper = (agent(4, 3, "helper", at=21, ms=900), chat(5, 4, user="Search.", says="Found it.", at=30, ms=800))
    assert turn_of(*start, *helper, chat(6, 1, says=says, at=40)).output == says


def test_answer_of_a_tool_is_the_turns_answer_if_the_agent_gives_none() -> None:
    """The opposite of weave 7630: the agent returns a tool's answer directly."""
    asks = [{"id": "c1", "name": "research", "arguments": {}}]
    helper = (agent(4, 3, "helper", at=21, ms=50), chat(5, 4, user="Search.", says=SAID, at=30))
    assert (
        turn_of(agent(1, ms=300), chat(2, 1, user=ASKED, calls=asks), tool(3, 1, "research", at=20, ms=60), *helper).output
        == SAID
    )


REQUEST = {"id": "c1", "name": "delete_file", "arguments": {"path": "a"}}
REQUESTING = json.dumps([{"role": "assistant", "parts": [{"type": "tool_call", **REQUEST}]}])
DEFERRED = json.dumps({"calls": [], "approvals": [{"tool_name": "delete_file", "tool_call_id": "c1"}]})


@pytest.mark.parametrize(
    ("output", "state"),
    [
        ({}, "requested"),
        ({"gen_ai.output.messages": REQUESTING}, "requested"),
        ({"openinference.span.kind": "AGENT", "output.value": ""}, "requested"),
        ({"final_result": DEFERRED}, "requested"),
        (
            {"gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": SAID}]}])},
            "executed",
        ),
        ({"openinference.span.kind": "AGENT", "output.value": SAID}, "executed"),
        ({"final_result": SAID}, "executed"),
    ],
)
def test_tool_without_result_waits_if_the_turn_has_no_answer(output: dict[str, str], state: str) -> None:
    """vercel/ai 7660 and 17177: tools of the browser, and tools that wait for approval. With an answer, the tool must have run."""
    (call_,) = turn_of(agent(1, attributes=output), chat(2, 1, user=ASKED, calls=[REQUEST])).tool_calls or ()
    assert (call_.name, call_.state) == ("delete_file", state)


def recorded(*spans: Any) -> list[Any]:
    return [*turns_of(spans)]


def answered(span_id: int, parent_id: int, question: str, answer: str, *history: str, **more: Any) -> Any:
    roles = itertools.cycle(("user", "assistant"))
    texts = [
        {"role": role, "parts": [{"type": "text", "content": text}]}
        for role, text in zip(roles, (*history, question), strict=False)
    ]
    return chat(span_id, parent_id, messages=texts, says=answer, **more)


def test_run_below_an_ended_run_is_the_next_turn() -> None:
    """agno 5712 and 5573: the second run of a session is recorded below the first run's ended span."""
    second = (agent(4, 1, at=5_000), answered(5, 4, "And tomorrow?", "Rain.", ASKED, SAID, at=5_010))
    first, later = recorded(agent(1), answered(2, 1, ASKED, SAID, at=1, ms=5), *second)
    assert [(turn.input, turn.output, len(turn.llm_calls or ())) for turn in (first, later)] == [
        (ASKED, SAID, 1),
        ("And tomorrow?", "Rain.", 1),
    ]
    assert (first.agent, later.agent) == ("bot", "bot")


@pytest.mark.parametrize("start", [20, 5_000])
def test_agent_without_a_new_question_below_an_ended_run_is_part_of_its_turn(start: int) -> None:
    """The opposite of agno 5712: a sub-agent, which may go on after the agent."""
    helper = (agent(4, 1, "helper", at=start), answered(5, 4, "Search for Paris.", "21 degrees", at=start + 10))
    assert len(recorded(agent(1), answered(2, 1, ASKED, SAID, at=1, ms=5), *helper)) == 1


@pytest.mark.parametrize("with_tool", [True, False])
def test_spans_beside_a_run_that_ends_early_belong_to_it(with_tool: bool) -> None:
    """NVIDIA-NeMo/labs-OO-Agents 38: the run's span ends when its generator is created, and the consumer's span contains the rest."""
    rest = [chat(3, 1, user=ASKED, says=SAID, at=50), *([tool(4, 1, "get_weather", at=40, ms=5)] if with_tool else [])]
    turn = turn_of(span(1, 0, "consumer", ms=500), agent(2, 1, at=1, ms=1), *rest)
    assert (turn.input, turn.output, len(turn.llm_calls or ()), turn.agent) == (ASKED, SAID, 1, "bot")


@pytest.mark.parametrize(
    "report", ["called tool `transfer` with parameters: {}", "`transfer` tool returned result: {}", "said: a draft"]
)
def test_reports_of_other_agents_are_not_the_users_words(report: str) -> None:
    """adk-python 4742 and 4715: the first agent's call is lost in a transfer. ADK tells the second one about it as a user."""
    texts = [ASKED, f"For context:\n[root] {report}"]
    messages = [{"role": "user", "parts": [{"type": "text", "content": text}]} for text in texts]
    assert turn_of(agent(1), chat(2, 1, messages=messages, says=SAID)).input == ASKED


def test_users_own_words_for_context_are_the_users_words() -> None:
    asked = "For context: I live in Paris. Will it rain?"
    assert turn_of(agent(1), chat(2, 1, user=asked, says=SAID)).input == asked


@pytest.mark.parametrize(
    ("scope", "attributes", "is_known"),
    [
        ("acme", {"openai.response.service_tier": "default"}, True),
        ("acme", {"openai.response.service_tier": "flex"}, False),
        ("acme", {"gen_ai.openai.response.service_tier": "priority"}, False),
        ("ai", {"ai.response.providerMetadata": '{"openai":{"serviceTier":"auto"}}'}, True),
        ("ai", {"ai.response.providerMetadata": '{"openai":{"serviceTier":"flex"}}'}, False),
        ("acme", {"openai.request.service_tier": "flex"}, True),
    ],
)
def test_cost_of_another_service_tier_is_unknown(scope: str, attributes: dict[str, str], is_known: bool) -> None:
    """litellm 13810 and langfuse 13780: flex costs half of the list price, and priority twice as much."""
    made = call(2, 1, (1000, 100), user=ASKED, says=SAID, scope=scope)
    made.attributes |= {
        "gen_ai.request.model": "gpt-5",
        "gen_ai.provider.name": "openai",
        "ai.operationId": "ai.generateText.doGenerate",
    }
    made.attributes |= attributes
    turn = turn_of(agent(1), made)
    add_cost(turn)
    assert (turn.cost_usd is not None) is is_known
    priced = Pricing({"gpt-5": {"input": 1.0, "output": 2.0}})
    add_cost(turn, priced)
    assert turn.cost_usd == pytest.approx(0.0012)


class Waiting(Received):
    """An engine behind OTLP that also evaluates turns that waited long enough for another trace."""

    def wait(self, seconds: int) -> None:
        for _ in range(seconds):
            super().wait(1)
            self.engine.pipeline.run([GroupedSpans(group) for group in self.engine.pipeline.composer.due()])

    def answers(self) -> list[tuple[str | None, int, int]]:
        return [(one.turn.output, len(one.turn.llm_calls), one.turn.revision) for one in self.kept]


LOOKUP = [{"id": "c1", "name": "search", "arguments": {}}]


def told(call_id: str) -> list[dict[str, Any]]:
    asked = {"role": "assistant", "parts": [{"type": "tool_call", **LOOKUP[0], "id": call_id}]}
    return [asked, {"role": "tool", "parts": [{"type": "tool_call_response", "id": call_id, "response": "21"}]}]


@pytest.mark.parametrize("route", [{"http.route": "/chat"}, {}])
@pytest.mark.parametrize(("pause", "found"), [
    (5, [(SAID, 2, 1)]), (15, [(SAID, 2, 1)]), (28, [(SAID, 2, 1)]), (60, [(None, 1, 1), (SAID, 2, 2)]),
])  # fmt: skip
def test_calls_after_the_end_of_their_root(route: dict[str, str], pause: int, found: list[Any]) -> None:
    """litellm 16779: the root ended with the first call. Calls that arrived while the turn waited for another trace were lost."""
    received = Waiting()
    received.send(chat(2, 1, user=ASKED, calls=LOOKUP), span(1, 0, "handle", route, ms=20))
    received.wait(pause)
    received.send(tool(3, 1, at=30), chat(4, 1, user=ASKED, says=SAID, at=60))
    received.wait(90)
    assert received.answers() == found
    assert (received.engine.pipeline.composer.spans.scored, dict(received.engine.pipeline.composer.spans.left_out)) == (4, {})


@pytest.mark.parametrize("late", [
    span(5, 11, "GET /weather", {"http.request.method": "GET"}, at=130, trace_id=0xB2), span(5, 77, "cache", at=130, trace_id=0xB2),
])  # fmt: skip
def test_late_span_of_a_part_in_another_trace_keeps_the_parts_together(late: Any) -> None:
    """The opposite of litellm 16779: each step has its own trace, and an application's span arrives late."""
    received = Waiting()
    received.send(chat(2, 1, user=ASKED, calls=LOOKUP), span(1, ms=20))
    second = chat(12, 11, user=ASKED, messages=told("c1"), calls=[{**LOOKUP[0], "id": "c2"}], at=100, trace_id=0xB2)
    received.send(second, span(11, at=100, ms=20, trace_id=0xB2))
    received.wait(15)
    received.send(late)
    received.wait(3)
    last = chat(22, 21, user=ASKED, messages=[*told("c1"), *told("c2")], says=SAID, at=200, trace_id=0xC3)
    received.send(last, span(21, at=200, ms=20, trace_id=0xC3))
    received.wait(90)
    assert received.answers() == [(SAID, 3, 1)]


def test_late_span_beside_a_waiting_call_without_root_changes_nothing() -> None:
    """The opposite of litellm 16779: the root never arrives, and the late span isn't part of a turn."""
    received = Waiting()
    received.send(chat(2, 7, user=ASKED, says=SAID))
    received.wait(301)
    received.send(span(5, 7, "GET /weather", {"http.request.method": "GET"}))
    received.wait(90)
    assert received.answers() == [(SAID, 1, 1)]
