"""AgentEval's documented metrics, as printed."""

from __future__ import annotations

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
