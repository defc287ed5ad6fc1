"""External values are limited when they are read, so that databases and wire formats can store them."""

from __future__ import annotations

import gc
import json
import tracemalloc
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.core.turn import Turn
from otel_agenteval.core.wellformed import MOST, NAME_BYTES, bounded_name
from otel_agenteval.spans.split import split_spans
from tests.support.rig import Rig
from tests.support.service import AGENT, CHAT, Sidecar, request
from tests.support.spans import agent, chat, span, tool, turn_of

LONG = "é" * 500_000


@pytest.mark.parametrize("name", ["gen_ai.usage.input_tokens", "llm.token_count.prompt"])
@pytest.mark.parametrize(
    ("tokens", "read"),
    [
        *((known, int(known)) for known in (0, MOST, str(MOST))),
        *(
            (unknown, None)
            for unknown in (MOST + 1, str(MOST + 1), 10**400, "9" * 5_000, 2.0**63, float("inf"), float("nan"), -1, -0.5)
        ),
    ],
)
def test_token_count_is_unknown_out_of_bounds(name: str, tokens: Any, read: int | None) -> None:
    (call,) = turn_of(agent(1), chat(2, 1, attributes={name: tokens}, scope="openinference.instrumentation.openai")).llm_calls
    assert call.input_tokens == read


def test_sums_of_tokens_are_unknown_out_of_bounds() -> None:
    most = {"gen_ai.usage.input_tokens": MOST, "gen_ai.usage.output_tokens": 2, "gen_ai.usage.cache_read.input_tokens": MOST}
    one = turn_of(agent(1), chat(2, 1, attributes=most)).usage
    assert one is not None
    assert (one.input_tokens, one.output_tokens, one.total_tokens, one.cached_tokens) == (MOST, 2, None, MOST)
    two = turn_of(agent(1), chat(2, 1, attributes=most), chat(3, 1, attributes=most, at=20)).usage
    assert two is not None
    assert (two.input_tokens, two.output_tokens, two.total_tokens, two.cached_tokens) == (None, 4, None, None)


def test_sums_of_agent_runs_are_unknown_out_of_bounds() -> None:
    most = {"gen_ai.usage.input_tokens": MOST, "gen_ai.usage.output_tokens": MOST}
    assert turn_of(span(1, name="flow", attributes={"gen_ai.operation.name": "invoke_workflow"}, ms=100),
                   agent(2, 1, attributes=most), agent(3, 1, "other", attributes=most)).usage is None  # fmt: skip


def test_sum_of_costs_is_unknown_if_infinite() -> None:
    cost = {"gen_ai.usage.cost": 1.5e308}
    assert turn_of(agent(1), chat(2, 1, attributes=cost)).cost_usd == 1.5e308
    assert turn_of(agent(1), chat(2, 1, attributes=cost), chat(3, 1, attributes=cost, at=20)).cost_usd is None


def test_names_are_cut_with_a_mark() -> None:
    attributes = {
        "gen_ai.conversation.id": f"{LONG}1", "gen_ai.usage.input_tokens": 1, "gen_ai.response.id": LONG, "user.id": LONG,
        "error.type": LONG, "gen_ai.request.model": LONG,
    }  # fmt: skip
    turn = turn_of(
        agent(1, name=LONG, attributes=attributes, resource={"service.name": LONG}, scope=LONG),
        chat(2, 1, attributes=attributes, calls=[{"id": LONG, "name": LONG, "arguments": {}}]),
        tool(3, 1, LONG, attributes={"gen_ai.tool.call.id": LONG}, at=20),
        span(4, 1, LONG, {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.call.result": "x"}, at=40),
    )
    (call,), (run,) = turn.llm_calls, turn.agent_runs
    requests = [request for message in turn.messages for request in message.tool_calls]
    assert turn.error is not None
    names = [
        turn.agent, turn.conversation_id, turn.user_id, turn.service, turn.framework, turn.error.type, call.model, call.response_id, run.name,
        *(one.name for one in turn.tool_calls or ()), *(one.call_id for one in requests), *(one.name for one in requests),
        *(one.name for one in turn.spans if one.name != "chat m-1"),
    ]  # fmt: skip
    assert len(turn.tool_calls or ()) == 2
    for name in names:
        assert name is not None
        assert len(name.encode()) <= NAME_BYTES
        assert "…[cut " in name


def test_cut_names_differ_if_the_names_do() -> None:
    assert len({bounded_name(f"{LONG}{number}") for number in range(50)}) == 50
    assert bounded_name(LONG) == bounded_name(str(LONG))
    assert bounded_name("é" * (NAME_BYTES // 2)) == "é" * (NAME_BYTES // 2)


def test_values_out_of_bounds_are_counted_by_kind() -> None:
    with Rig() as rig:
        rig.run()
        rig.run(LONG, attributes={"gen_ai.conversation.id": LONG})
        with rig.agent():
            for tokens in (MOST, MOST, -1):
                rig.chat("a", "b", attributes={"gen_ai.usage.input_tokens": tokens, "gen_ai.usage.output_tokens": None})
        assert len(rig.turns()) == 3
        # The negative count, the sum of the inputs, and the total.
        assert rig.count("agenteval.values.limited") == {("name",): 2, ("count",): 3}


@pytest.mark.parametrize(
    "given",
    [
        {"usage": {"input_tokens": MOST + 1}},
        {"llm_calls": [{"output_tokens": 10**400}]},
        {"duration_s": 10**400},
        {"cost_usd": float("inf")},
        {"cost_usd": float("nan")},
    ],
)
def test_written_turn_is_refused_out_of_bounds(given: dict[str, Any]) -> None:
    with pytest.raises(oa.ConfigError, match="must be a"):
        Turn.from_dict(given)


def test_written_turn_has_bounded_names() -> None:
    turn = Turn.from_dict(
        {"agent": LONG, "llm_calls": [{"model": LONG}], "tool_calls": [{"name": LONG}], "error": {"type": LONG}}
    )
    assert max(len(part) for part in json.dumps(turn.to_dict(), ensure_ascii=False).split('"')) <= 2 * NAME_BYTES


def test_long_resources_and_scopes_are_not_kept() -> None:
    chat_of = {"trace": 1, "id": 1, "attributes": {"gen_ai.operation.name": "chat"}}
    split_spans(request(chat_of))
    tracemalloc.start()
    try:
        for number in range(20):
            split_spans(request(chat_of, service=f"{number}{'s' * 1_000_000}", scope=f"{number}{'x' * 1_000_000}"))
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] < 4_000_000
    finally:
        tracemalloc.stop()


def test_past_turns_do_not_hold_what_they_said() -> None:
    """Past turns are remembered within a limit in bytes, however long their content is."""
    with Sidecar({"inline": {"metrics": []}}) as own:

        def play(numbers: range) -> int:
            for number in numbers:
                said = f"{number} " * 150_000
                root = {"trace": number, "id": 1, "attributes": {**AGENT, "gen_ai.input.messages": said}}
                call = {"trace": number, "id": 2, "parent": 1, "attributes": {**CHAT, "gen_ai.response.id": f"response-{number}"}}
                own.post("/v1/traces", request(root, call, service=said))
                own.turns()
                own.kept.clear()
            gc.collect()
            return tracemalloc.get_traced_memory()[0]

        tracemalloc.start()
        try:
            before = play(range(100, 130))
            assert play(range(130, 160)) - before < 10_000_000
        finally:
            tracemalloc.stop()
