"""AgentEval's documented metrics, as printed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import otel_agenteval as oa

REPAIRED = [
    {"name": "search", "arguments": {"q": "a"}, "error": "Timeout"},
    {"name": "search", "arguments": {"q": "a"}, "result": "ok"},
]
TURN = {"input": "?", "output": "!", "tool_calls": REPAIRED}


@pytest.mark.parametrize(
    ("name", "config", "threshold", "passed"),
    [
        ("agenteval:ToolSuccessMetric", {}, 0.7, False),
        ("agenteval:code_tool_success", {}, 0.7, False),
        ("ToolSuccessMetric", {}, 0.7, False),
        ({"agenteval:ToolSuccessMetric": {"passThreshold": 40}}, {}, 0.4, True),
        ("code_tool_success", {"preset": "agenteval"}, 0.7, False),
        ("code_tool_success", {}, 0.7, True),
        ("code_tool_success", {"preset": "trusys"}, 0.7, True),
    ],
)
def test_repaired_failure_counts_under_agenteval_s_names(
    name: Any, config: dict[str, Any], threshold: float, passed: bool
) -> None:
    ((_, (score,)),) = oa.score_turns(oa.Turn.from_dict(TURN), [name], config=config)
    assert (score.value, score.threshold, score.passed) == (0.5, threshold, passed)
    assert score.detail["repaired"] == 1


BOOKING = {"tool_calls": [{"name": "Search"}, {"name": "Book"}]}


@pytest.mark.parametrize(
    ("patterns", "value"),
    [
        ([oa.ToolPattern("Search", beforeTool="Book")], 1.0),
        ([oa.ToolPattern("Search", afterTool="Book")], 0.0),
        ([oa.ToolPattern("Search", before="Book"), oa.ToolPattern("Pay")], 0.5),
        ([oa.ToolPattern("Pay", afterTool="Book", required=False)], 1.0),
        ([{"toolName": "Search", "beforeTool": "Book"}], 1.0),
    ],
)
def test_tool_patterns_are_those_of_the_page(patterns: list[Any], value: float) -> None:
    metric = oa.get_metric("agenteval:WorkflowToolChainValidityMetric", requiredPatterns=patterns)
    assert metric.evaluate(oa.Turn.from_dict(BOOKING)).value == value


RANKED = {"retrieved_ids": ["doc1", "doc4", "doc2", "doc5", "doc6"], "relevant_ids": ["doc1", "doc2", "doc3"]}


def test_ids_are_columns_of_a_data_set(tmp_path: Path) -> None:
    (tmp_path / "cases.jsonl").write_text(json.dumps({"input": "?", **RANKED}) + "\n", "utf-8")
    (tmp_path / "cases.csv").write_text(
        "input,retrieved_ids,relevant_ids\n?,"
        + ",".join('"' + json.dumps(ids).replace('"', '""') + '"' for ids in RANKED.values())
        + "\n",
        "utf-8",
    )
    for cases in ([{"input": "?", **RANKED}], tmp_path / "cases.jsonl", tmp_path / "cases.csv"):
        result = oa.evaluate(lambda question: "!", cases, [{"agenteval:RecallAtKMetric": {"k": 5}}, "agenteval:MRRMetric"])
        assert [score.value for score in result.scored[0][1]] == [pytest.approx(2 / 3), 1.0]


def test_search_that_found_nothing_keeps_its_ids() -> None:
    for known, value in (([], 0.0), (["doc3"], 1 / 3), (None, 2 / 3)):
        turn = oa.Turn(turn_id="t", retrieved_ids=known, references=dict(RANKED))
        ((_, (score,)),) = oa.score_turns(turn, [{"agenteval:RecallAtKMetric": {"k": 5}}])
        assert score.value == pytest.approx(value)
