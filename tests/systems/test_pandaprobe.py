"""PandaProbe's documented metrics, as printed."""

from __future__ import annotations

import pytest

import otel_agenteval as oa
from tests.support.judges import ScriptedModels

SESSION = {"traces": [{"trace_id": "a", "signals": {"confidence": 0.9}}, {"trace_id": "b", "signals": {"confidence": 0.2}}]}


@pytest.mark.parametrize(("threshold", "success"), [(None, False), (0.1, True)])
def test_details_have_threshold_and_success(threshold: float | None, success: bool, models: ScriptedModels) -> None:
    own = {} if threshold is None else {"threshold": threshold}
    reply = {"reason": "vague", "score": 0.4, "confidence": 0.4}
    score = models.score("pandaprobe:confidence", oa.Turn(input="?", output="Perhaps."), reply, **own)
    assert score.passed is success
    assert score.detail.items() >= {"threshold": threshold or 0.5, "success": success}.items()
    session = oa.get_metric("pandaprobe:agent_reliability", **own).evaluate(oa.Turn(session=SESSION))
    assert session.detail["success"] is session.passed
    assert "success" not in oa.get_metric("code_agent_reliability", **own).evaluate(oa.Turn(session=SESSION)).detail


def test_skipped_metric_has_no_success() -> None:
    assert oa.get_metric("pandaprobe:confidence").evaluate(oa.Turn()).detail.keys() == {"reason"}
