"""Turns that failed, or were given up: what is said of their task without asking a judge.

A turn that ended in an error gave the user nothing, so its task was not done. Without an answer a judge is not asked, and such a turn
would be missing from the average. So the live pipeline, ``eval`` and a backfill say 0; ``evaluate()`` of a metric does as its
definition says, and is skipped.
"""

from __future__ import annotations

import re

from ..core.score import Score
from ..core.turn import ErrorInfo, Turn
from ..metrics.bound_metric import BoundMetric

OF_THE_TASK = frozenset(("llm_task_completion", "llm_task_success"))
"""The metrics that ask whether the task was done."""
TURN_FAILED, CANCELLED = "turn_failed", "cancelled"
_CANCELLATION = re.compile(
    r"(?:task|operation|job|request|run|stream)?cancel(?:l?ed|l?ation)(?:error|exception)?"
    r"|aborted|abort(?:error|exception)|generatorexit|keyboardinterrupt|interrupted(?:error|exception)?"
    r"|client_?(?:closed|disconnect(?:ed)?)(?:_request|error|exception)?|user_?abort(?:ed)?(?:error|exception)?|apiuseraborterror|499"
)
"""Types of errors that say that nobody waited for the answer any more, without the module before them."""
_SAID_SO = re.compile(
    r"\s*(?:the |this )?(?:context cancel{1,2}ed|(?:client|user) (?:has )?(?:disconnected|aborted|cancel{1,2}ed)|(?:request|operation|run|turn|task|stream)"
    r" (?:was )?(?:aborted|cancel{1,2}ed)(?: by (?:the )?(?:user|client|caller))?)[.!]?\s*",
    re.IGNORECASE,
)


def decided(metric: BoundMetric, turn: Turn) -> Score | None:
    """The score of a metric of the task on a turn that failed or was cancelled; None where its judge is to be asked."""
    if metric.name not in OF_THE_TASK or turn.error is None or metric.missing is not None or _is_conversation(turn):
        return None
    if is_cancellation(turn.error):
        return metric.left_out(CANCELLED)
    return metric.scored(0.0, {"decided_by": TURN_FAILED}) if gave_nothing(turn) else None


def _is_conversation(turn: Turn) -> bool:
    """Whether it is a whole conversation, which goes on where one of its turns failed."""
    return (turn.turn_id or "").rpartition(":")[2].startswith("conversation-")


def is_cancellation(error: ErrorInfo) -> bool:
    """Whether a turn ended because somebody gave it up: the user, the client, or who called the agent."""
    name = re.split(r"[.:*]", (error.type or "").strip().lower())[-1]
    return _CANCELLATION.fullmatch(name) is not None or _SAID_SO.fullmatch(error.message or "") is not None


def gave_nothing(turn: Turn) -> bool:
    """Whether a turn is known to have given no answer: its content was captured, and no call wrote words that may only be unseen."""
    if turn.output is not None or not turn.complete or turn.truncated:
        return turn.output == ""
    if turn.input is None:  # content is off, for all that is known
        return False
    last = turn.llm_calls[-1] if turn.llm_calls else None
    if last is None or last.error is not None:
        return True
    said = turn.messages[-1] if turn.messages else None
    asked_for_tools = said is not None and (said.role == "tool" or (said.role == "assistant" and bool(said.tool_calls)))
    return asked_for_tools or last.output_tokens == 0
