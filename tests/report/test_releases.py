"""``otel-agenteval compare``: two groups of turns in a store."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from otel_agenteval.cli.main import main
from otel_agenteval.config.loader import load_config
from otel_agenteval.core.score import Score
from otel_agenteval.core.telemetry import Telemetry
from otel_agenteval.core.turn import LlmCall, Turn
from otel_agenteval.evaluation.scored_turn import Judged, Root, ScoredTurn
from otel_agenteval.outlets.store.outlet import StoreOutlet
from otel_agenteval.spans.record import SpanRecord


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a store with three versions of an agent. The last two differ in relevance, but not in success."""
    path = str(tmp_path_factory.mktemp("store") / "scores.db")
    options = load_config({"outlets": {"store": {"path": path, "attributes": ["app.prompt"]}}}, {}).outlets.store
    assert options is not None
    outlet = StoreOutlet(options, Telemetry(), lambda: "engine-1")
    random = np.random.default_rng(1)
    number = 0
    for version, bad in (("1.0", 0.5), ("1.1", 0.1), ("1.2", 0.3)):
        batch = []
        for _ in range(400):
            number += 1
            root = Root(number, number, resource={"service.name": "shop", "service.version": version})
            turn = Turn(turn_id=f"{number:032x}-{number:016x}", agent="bot", llm_calls=[LlmCall(model=f"m-{number % 2}")])
            relevant = float(random.random() >= bad)
            scores = [
                Score("llm_relevance", relevant, relevant == 1.0, threshold=0.5, kind="llm", result_id=f"{number:032x}"),
                Score("code_tool_success", float(random.random() >= 0.1), True, result_id=f"{number + 10_000:032x}"),
                Score("code_latency", 2.0, unit="s", direction="down", result_id=f"{number + 20_000:032x}"),
            ]
            spans = (SpanRecord("chat", number, number, attributes={"app.prompt": f"p{number % 2}"}),)
            batch.append(ScoredTurn(turn, root, scores[1:], spans=spans))
            batch.append(ScoredTurn(turn, root, scores[:1], judged=Judged("llm", 0.5)))
        outlet.emit(batch)
    outlet.close()
    return path


def run(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, Any]:
    code = main(["compare", *args, "--format", "json"])
    said = capsys.readouterr()
    return code, json.loads(said.out) if said.out else said.err


def test_the_two_latest_versions_are_compared_metric_by_metric(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = run(capsys, "--store", store)
    assert code == 0
    assert (found["before"], found["after"], found["turns"]) == ("1.1", "1.2", [400, 400])
    by_name = {metric["metric"]: metric for metric in found["metrics"] if metric["measure"] == "mean"}
    relevance = by_name["llm_relevance"]
    assert relevance["verdict"] == "worse"
    assert relevance["interval"][0] < -0.2 < relevance["interval"][1] < 0
    assert relevance["p"] >= relevance["p_unadjusted"]
    success = by_name["code_tool_success"]
    assert success["verdict"] == "no difference shown"
    assert success["detectable"] == pytest.approx(0.06, abs=0.01)
    assert by_name["code_latency"]["p"] == 1.0
    assert found["warnings"] == ["groups not compared: 1.0"]


@pytest.mark.parametrize("as_cases", [True, False], ids=["cases", "live turns of equal questions"])
def test_only_turns_with_case_ids_are_pairs(tmp_path: Path, capsys: pytest.CaptureFixture[str], as_cases: bool) -> None:
    path = str(tmp_path / "scores.db")
    options = load_config({"outlets": {"store": {"path": path, "content": True}}}, {}).outlets.store
    assert options is not None
    outlet = StoreOutlet(options, Telemetry(), lambda: "engine-1")
    for number in range(1, 81):
        question, version = f"question {number // 2 % 2}", f"1.{number % 2}"
        root = Root(number, number, resource={"service.version": version})
        turn = Turn(turn_id=f"{number:032x}-{number:016x}", input=question, references={"case_id": question} if as_cases else {})
        outlet.emit([ScoredTurn(turn, root, [Score("code_tool_success", float(number > 60), True, result_id=f"{number:032x}")])])
    outlet.close()
    for metric in run(capsys, "1.0", "1.1", "--store", path)[1]["metrics"]:
        assert (metric["turns"], metric["paired_by"]) == (([2, 2], "case") if as_cases else ([40, 40], None))


def test_any_two_can_be_named_and_a_gate_fails_when_one_is_worse(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = run(capsys, "1.0", "1.1", "--store", store, "--gate")
    assert (code, found["metrics"][0]["verdict"]) == (0, "better")
    assert run(capsys, "1.1", "1.2", "--store", store, "--gate")[0] == 1


def test_it_says_how_many_turns_an_effect_would_take(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, found = run(capsys, "--store", store, "--effect", "0.02", "--metric", "code_tool_success")
    [metric] = [metric for metric in found["metrics"] if metric["measure"] == "mean"]
    turns = 400 + metric["turns_needed"][0]
    assert turns == pytest.approx(400 * (metric["detectable"] / 0.02) ** 2, rel=0.01)
    assert turns > 2_000
    assert main(["compare", "--store", store, "--effect", "0.9"]) == 0
    assert "0 and 0" not in capsys.readouterr().out  # no more turns are needed


@pytest.mark.parametrize(("by", "names"), [("gen_ai.request.model", {"m-1", "m-0"}), ("app.prompt", {"p1", "p0"})])
def test_groups_may_be_models_or_attributes_that_the_store_keeps(
    store: str, capsys: pytest.CaptureFixture[str], by: str, names: set[str]
) -> None:
    code, found = run(capsys, "--by", by, "--store", store)
    assert (code, {found["before"], found["after"]}, found["turns"]) == (0, names, [600, 600])


@pytest.mark.parametrize("form", ["table", "markdown", "html"])
def test_it_can_be_read(store: str, form: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "--store", store, "--format", form]) == 0
    said = capsys.readouterr().out
    assert all(text in said for text in ("1.1 (400 turns) and 1.2 (400 turns)", "llm_relevance", "worse"))


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["1.1"], "must be given twice"),
        (["1.1", "9.9"], "must be a group of stored turns, got '9.9'. Stored groups: 1.0 (400 turns), 1.1 (400 turns)"),
        (["--by", "agent"], "a comparison needs two groups of stored turns, got bot (1,200 turns)"),
        (["--by", "nothing"], "a comparison needs two groups of stored turns, got none"),
        (["--effect", "0"], "must be a number above 0"),
        (["--since", "yesterday"], "--since"),
    ],
)
def test_wrong_use_says_what_is_there(store: str, capsys: pytest.CaptureFixture[str], args: list[str], message: str) -> None:
    assert main(["compare", *args, "--store", store]) == 2
    assert message in capsys.readouterr().err


def test_estimates_say_what_the_scores_mean_for_all_turns(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["estimates", "--by", "service.version", "--store", store, "--format", "json"]) == 0
    rows = {(row["group"], row["metric"]): row for row in json.loads(capsys.readouterr().out)}
    relevance = rows["1.0", "llm_relevance"]
    assert (relevance["scored"], relevance["turns"]) == (400, 400)
    assert relevance["low"] < 0.5 < relevance["high"]
    assert rows["1.2", "llm_relevance"]["low"] < 0.7 < rows["1.2", "llm_relevance"]["high"]
    for form in ("table", "markdown", "html"):
        assert main(["estimates", "--store", store, "--format", form]) == 0
        said = capsys.readouterr().out
        assert "llm_relevance" in said
        assert "95 % interval" in said
    assert main(["estimates", "--store", store, "--agent", "nobody"]) == 2
    assert "the store contains no scores of matching turns" in capsys.readouterr().err
    assert main(["estimates", "--store", store, "--out", "/nowhere/x"]) == 2
    assert "--out: /nowhere/x: " in capsys.readouterr().err
