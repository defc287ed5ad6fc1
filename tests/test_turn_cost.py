"""Estimated cost of turns with tokens but without cost, everywhere that a cost is shown."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.cli.main import main
from otel_agenteval.core import semconv
from otel_agenteval.core.turn import Turn
from otel_agenteval.core.turn_cost import Pricing, add_cost
from otel_agenteval.evaluation.conditions import Condition, Known
from otel_agenteval.evaluation.evaluator import pricing_of
from otel_agenteval.outlets.turn_text import render_turn
from otel_agenteval.turns.conversations import whole
from tests.support.page import ServedPage
from tests.support.rig import Rig

Capture = pytest.CaptureFixture[str]
USD = 1_000_000 * 2.5 / 1e6 + 100_000 * 10 / 1e6
"""Price of 1,000,000 input tokens and 100,000 output tokens of gpt-4o, by the packaged table."""
PRICES = {"gpt-4o": {"input": 1.0, "output": 2.0}}


def of_model(model: str = "gpt-4o", **more: Any) -> dict[str, Any]:
    usage = {"gen_ai.usage.input_tokens": 1_000_000, "gen_ai.usage.output_tokens": 100_000}
    return {"attributes": {"gen_ai.request.model": model, "gen_ai.provider.name": "openai", **usage, **more}}


def run(config: dict[str, Any], *calls: dict[str, Any]) -> Rig:
    rig = Rig(config)
    for call in calls:
        with rig.agent("travel"):
            rig.chat("Where?", "Paris.", **call)
    rig.scored()
    return rig


def turn_of(**more: Any) -> Turn:
    call = {"model": "gpt-4o", "provider": "openai", "input_tokens": 1_000_000, "output_tokens": 100_000}
    return Turn.from_dict({"turn_id": "t", "start": "2026-11-01T00:00:00Z", "llm_calls": [call], **more})


def test_estimated_cost_reaches_every_outlet(tmp_path: Path, capsys: Capture) -> None:
    store, file = tmp_path / "s.db", tmp_path / "scores.jsonl"
    config = {"outlets": {"store": str(store), "jsonl": str(file)}, "inline": {"metrics": ["code_turn_error"]}}

    def printed(*command: str) -> str:
        capsys.readouterr()
        assert main([*command, "--store", str(store)]) == 0
        return capsys.readouterr().out

    with run(config, of_model(), of_model(**{"operation.cost": 0.5})) as rig:
        by_cost = {scored.turn.cost_usd: scored.turn.cost_estimated for scored in rig.scored()}
        assert by_cost == {USD: True, 0.5: False}
        assert rig.count(semconv.TURN_COST) == {
            ("travel", "gpt-4o", "shop", "true"): pytest.approx(USD), ("travel", "gpt-4o", "shop", "false"): 0.5,
        }  # fmt: skip
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert {line["cost_usd"]: line.get("cost_estimated") for line in lines} == {USD: True, 0.5: None}
    rows = list(csv.DictReader(io.StringIO(printed("export", "--format", "csv"))))
    assert {row["cost_estimated"]: float(row["cost_usd"]) for row in rows} == {"true": pytest.approx(USD), "false": 0.5}
    estimated = next(row for row in rows if row["cost_estimated"] == "true")["turn_id"]
    assert f"≈${USD:.4f} estimated" in printed("why", estimated).splitlines()[0]
    assert json.loads(printed("why", estimated, "--json"))["cost_estimated"] is True
    assert f"≈${USD:.4f}" in printed("turns")
    with ServedPage(str(store)) as served:
        (group,) = served.get("estimates", by="agent")["groups"]
        assert (group["cost_usd"], group["priced"], group["cost_estimated"]) == (pytest.approx(USD + 0.5), 2, True)
        assert {turn["cost_estimated"] for turn in served.all_turns()} == {True, False}


def test_unknown_costs_and_durations_are_not_zero_on_the_page(tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    with run({"outlets": {"store": str(store)}, "inline": {"metrics": ["code_turn_error"]}}, of_model("own-model")):
        pass
    with ServedPage(str(store)) as served:
        found = served.get("estimates", by="agent")
        (group,) = found["groups"]
        assert (group["cost_usd"], group["priced"], group["cost_estimated"]) == (None, 0, False)
        assert [one["cost_usd"] for one in found["estimates"]] == [None]
        assert group["duration_s"] is not None


def test_configured_prices_come_first_everywhere() -> None:
    metrics = [{"code_cost": {"prices": PRICES}}, {"code_max_cost": {"max_cost_usd": 1.0}}]
    config = {"metrics": metrics, "inline": {"metrics": ["code_cost", "code_max_cost"]}}
    with run(config, of_model()) as rig:
        (scored,) = rig.scored()
    assert scored.turn.cost_usd == pytest.approx(1.2)
    assert scored.turn.cost_estimated
    (score,) = [score for score in scored.scores if score.metric == "code_cost"]
    assert (score.value, score.detail["price_source"]) == (pytest.approx(1.2), "prices")
    with run({"metrics": [{"code_cost": {"estimate": False}}], "inline": {"metrics": ["code_cost"]}}, of_model()) as rig:
        assert rig.turn().cost_usd is None
        assert rig.count(semconv.TURN_COST) == {}


@pytest.mark.parametrize(
    ("more", "usd", "estimated"),
    [
        ({}, USD, True),
        ({"cost_usd": 0.0}, 0.0, False),
        ({"cost_usd": 7.0, "cost_estimated": True}, 7.0, True),
        ({"metadata": {"cost": 3.0}}, 3.0, False),
        ({"llm_calls": [{"model": "own", "input_tokens": 1, "output_tokens": 1}]}, None, False),
        ({"llm_calls": [{"model": "gpt-4o"}]}, None, False),
    ],
)
def test_cost_is_reported_given_or_estimated(more: dict[str, Any], usd: float | None, estimated: bool) -> None:
    turn = turn_of(**more)
    add_cost(turn)
    assert turn.cost_usd == (None if usd is None else pytest.approx(usd))
    assert turn.cost_estimated is estimated


def test_own_prices_replace_an_estimate_and_no_reported_cost() -> None:
    pricing = pricing_of([oa.get_metric("code_cost", prices=PRICES)])
    for more, usd in (({"cost_usd": 7.0, "cost_estimated": True}, 1.2), ({"cost_usd": 7.0}, 7.0)):
        turn = turn_of(**more)
        add_cost(turn, pricing)
        assert turn.cost_usd == pytest.approx(usd)
    forbidden = turn_of(cost_usd=7.0, cost_estimated=True)
    add_cost(forbidden, Pricing({}, estimate=False))
    assert (forbidden.cost_usd, forbidden.cost_estimated) == (None, False)


def test_turn_v1_and_conditions_know_an_estimate_and_conversations_add_it_up() -> None:
    turns = [turn_of(conversation_id="c"), turn_of(turn_id="u", conversation_id="c", cost_usd=1.0)]
    for turn in turns:
        add_cost(turn)
    for text, holds in (("cost_usd > 0.1", True), ("cost_usd > 0.1 and not cost_estimated", False), ("cost_usd > 9", False)):
        assert Condition(text, (), "sample.always_if").holds(turns[0], Known()) is holds
    assert turns[0].to_dict()["cost_estimated"] is True
    assert "cost_estimated" not in turns[1].to_dict()
    assert Turn.from_dict(turns[0].to_dict()).cost_estimated
    assert turns[0].without_content().cost_estimated
    both = whole(turns)
    assert (both.cost_usd, both.cost_estimated) == (pytest.approx(USD + 1.0), True)
    assert f"≈${USD:.4f}" in render_turn(turns[0], [])
    assert "$1.0000" in render_turn(turns[1], [])
