"""Situations of public reports on attributes that few frameworks write. See docs/internals/public-reports.md."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.spans import agent, chat, turn_of

ASKED, SAID = "What is the weather in Paris?", "It is 21 degrees in Paris."


@pytest.mark.parametrize(("name", "value", "cost"), [
    ("github.copilot.cost", 1, None),
    ("github.copilot.cost", 0.33, None),
    ("acme.credits.cost", 2.0, None),
    ("acme.cost_usd", 0.02, 0.02),
    ("acme.usage.cost", 0.02, 0.02),
    ("acme.total_cost", 0.02, 0.02),
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
