"""What a judge says of the output of a workflow."""

from __future__ import annotations

from typing import Any

from ...core.turn import Turn
from ..lib.prompts import PERCENT
from ..lib.replies import number_within, reason_of
from ..prompts import workflow as prompts
from ..registry import Asks, Result, metric

_QUALITY = "It does what was asked, and is right, complete, clear and ready for use."


@metric(
    version="2",
    needs=("input", "output"),
    threshold=0.7,
    aliases=("agenteval:llm_workflow_output_quality", "agenteval:WorkflowOutputQualityMetric"),
)
def llm_workflow_output_quality(turn: Turn, judge: Asks, *, criteria: str | list[str] | None = None) -> Result:
    """How good the workflow's final output is, by criteria and by what was asked of it. 0..1.

    One question to the judge; the value is its score of 0..100, divided by 100. An empty output is 0, and the judge is not asked.

    Parameters:
        criteria: a text or a list of texts to judge by; default general quality: it does what was asked, is right and
            complete, clear and ready for use.

    Detail: ``reasoning``.

    Source: AgentEval llm_workflow_output_quality.
    """
    if not (turn.output or "").strip():
        return Result(0.0, explanation="the output is empty")
    reply = judge.ask(
        "score",
        prompts.OUTPUT,
        {"request": turn.input or "", "final_output": turn.output or ""},
        PERCENT,
        criteria={"criteria": criteria or _QUALITY},
    )
    detail: dict[str, Any] = {"reasoning": reason_of(reply, "reasoning")}
    value = number_within(reply, 0, 100) / 100
    return Result(value, detail=detail, explanation=detail["reasoning"])
