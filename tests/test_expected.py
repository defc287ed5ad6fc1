"""Metrics that ``expect()`` turns on."""

from __future__ import annotations

import logging
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.evaluation.evaluator import turned_on_by
from otel_agenteval.metrics.registry import resolve
from tests.support.rig import Rig


def scores_of(config: dict[str, Any] | None = None, **references: Any) -> dict[str, Any]:
    """Return the scores of one turn with these references, by metric."""
    with Rig({"inline": {"metrics": ["code_latency"], "expected": True}, **(config or {})}) as rig:
        with oa.expect(**references):
            rig.run(says="Paris.")
        (scored,) = rig.scored()
        names = [score.metric for score in scored.scores]
        assert len(names) == len(set(names))
        return {score.metric: score for score in scored.scores}


def test_a_ground_truth_turns_on_what_compares_with_it(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    found = scores_of(ground_truth="Paris.")
    assert found.keys() == {"code_latency", *turned_on_by(["ground_truth"])}
    assert found["code_equals_ground_truth"].passed is True
    assert found["code_equals_ground_truth"].detail["reference_from"] == {"ground_truth": "expect"}
    assert caplog.text.count("expect() sets ground_truth, which turns on the metrics code_content_similarity, ") == 1


def test_expected_tools_turn_on_what_looks_at_tools() -> None:
    found = scores_of(expected_tools=["search"])
    assert "code_tool_selection" in found
    assert "code_equals_ground_truth" not in found


def test_configuration_comes_first() -> None:
    found = scores_of({"metrics": [{"code_text_f1": {"threshold": 0.123}}]}, ground_truth="Paris")
    assert found["code_text_f1"].threshold == 0.123
    found = scores_of({"inline": {"metrics": ["code_latency"], "expected": False}}, ground_truth="Paris")
    assert found.keys() == {"code_latency"}
    assert oa.load_config({}, env={}).inline.expected


def test_other_sources_of_references_turn_nothing_on() -> None:
    given = {"references": {"given": [{"when": {"agent": "*"}, "ground_truth": "Paris"}]}}
    assert scores_of(given).keys() == {"code_latency"}


@pytest.mark.parametrize("given", ["ground_truth", "references", "relevant_ids", "expected_tools", "workflow", "logprobs"])
def test_nothing_that_costs_money_or_lacks_a_parameter_is_turned_on(given: str) -> None:
    names = turned_on_by([given])
    assert names
    for name in names:
        metric = resolve(name).metric
        assert (metric.kind, metric.combines, tuple(metric.required)) == ("code", False, ())
    assert turned_on_by(["case_id", "context", "history", "made_up"]) == []


@pytest.mark.parametrize("answer", ["No.", "42", "Yes, on Friday."])
def test_an_answer_that_is_the_truth_fails_nothing(answer: str) -> None:
    with Rig({"inline": {"metrics": [], "expected": True}}) as rig:
        with oa.expect(ground_truth=answer, references=[answer], relevant_ids=[]):
            rig.run(says=answer)
        (scored,) = rig.scored()
    assert scored.scores
    assert [score.metric for score in scored.scores if score.verdict is False or score.status == "error"] == []
