"""``llm_workflow_output_quality`` uses a judge to rate a workflow's final output."""

from __future__ import annotations

from ...core.turn import Turn
from ..lib.replies import scored
from ..prompts import PERCENT, Prompts
from ..registry import Asks, Result, metric

_PROMPTS = Prompts("workflow")

_QUALITY = "It does what was asked, and is right, complete, clear and ready for use."


@metric(
    needs=("input", "output"),
    threshold=0.7,
    version="2",
    aliases=("agenteval:llm_workflow_output_quality", "agenteval:WorkflowOutputQualityMetric"),
)
def llm_workflow_output_quality(turn: Turn, judge: Asks, *, criteria: str | list[str] | None = None) -> Result:
    """Rate how well the workflow's final output meets the request and your criteria, from 0 to 1.

    A single judge call returns a rating from 0 to 100. The value is this rating divided by 100. If the output is blank, the value
    is 0 and no judge is called.

    Parameters:
        criteria: One criterion, or a list of criteria. By default, the output must do what was asked and be correct, complete,
            clear, and ready to use.

    Detail: ``reasoning``.
    """
    if not (turn.output or "").strip():
        return Result(0.0, explanation="the output is empty")
    material = {"request": turn.input or "", "final_output": turn.output or ""}
    reply = judge.ask("score", _PROMPTS["output"], material, PERCENT, criteria={"criteria": criteria or _QUALITY})
    return scored(reply, top=100, why="reasoning")
