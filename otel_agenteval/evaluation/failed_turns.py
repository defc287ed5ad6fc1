"""Score failed and canceled turns on their task without a judge call.

A turn that ended in an error didn't do its task. Without an answer, the judge isn't called, and the turn would be
missing from averages. The live pipeline, ``eval`` and a backfill therefore score it 0. A direct call of a metric's
``evaluate()`` skips it, as the metric's definition states.
"""

from __future__ import annotations

from ..core.score import Score
from ..core.turn import Turn
from ..metrics.bound_metric import BoundMetric

OF_THE_TASK = frozenset(("llm_task_completion", "llm_task_success"))
"""Metrics that rate whether the task was done."""
TURN_FAILED, CANCELLED = "turn_failed", "cancelled"


def decided(metric: BoundMetric, turn: Turn) -> Score | None:
    """Return the score of a task metric on a failed or canceled turn, or None if the judge must be called."""
    if metric.metric.name not in OF_THE_TASK or turn.error is None or metric.missing is not None:
        return None
    if (turn.turn_id or "").rpartition(":")[2].startswith("conversation-"):  # a conversation continues after a failed turn
        return None
    if turn.error.is_cancellation:
        return metric.left_out(CANCELLED)
    return metric.scored(0.0, {"decided_by": TURN_FAILED}) if gave_nothing(turn) else None


def gave_nothing(turn: Turn) -> bool:
    """Return True if the captured content has no answer, and no model call returned text that wasn't captured."""
    if turn.output is not None or not turn.complete or turn.truncated:
        return turn.output == ""
    if turn.input is None:  # content capture is probably off
        return False
    last = turn.llm_calls[-1] if turn.llm_calls else None
    if last is None or last.error is not None:
        return True
    message = turn.messages[-1] if turn.messages else None
    if message is not None and (message.role == "tool" or (message.role == "assistant" and message.tool_calls)):
        return True  # the turn ended while it used tools
    return last.output_tokens == 0
