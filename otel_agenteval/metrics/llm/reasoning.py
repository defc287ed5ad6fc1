"""Judges of the reasoning that was captured with an answer. Without reasoning they are skipped."""

from __future__ import annotations

from typing import Annotated, Any

from annotated_types import Ge

from ...core.turn import Turn
from ..lib.prompts import SCORE
from ..lib.replies import number_within, reason_of
from ..lib.steps import calls_as_text
from ..lib.trace import cut
from ..prompts import reasoning as prompts
from ..registry import Asks, Result, metric, skip

Chars = Annotated[int, Ge(1)]


def _asked(judge: Asks, stage: str, task: str, data: dict[str, Any]) -> Result:
    reply = judge.ask(stage, task, data, SCORE)
    detail: dict[str, Any] = {"reason": reason_of(reply)}
    value = number_within(reply, 0, 1)
    return Result(value, detail=detail, explanation=detail["reason"])


@metric(version="2", needs=("reasoning", "output"), aliases=("hpd:ReasoningCoherenceEvaluator",))
def llm_reasoning_coherence(turn: Turn, judge: Asks) -> Result:
    """Whether the reasoning is consistent in itself and leads to the answer.

    One question to the judge; the value is its score of 0..1. Skipped with ``missing:reasoning`` when no reasoning was captured.

    Detail: ``reason``.

    Source: HPD ReasoningCoherenceEvaluator.
    """
    reasoning = turn.reasoning or ""
    if not reasoning.strip():
        return skip("missing:reasoning")
    return _asked(
        judge,
        "coherence",
        prompts.COHERENT,
        {"reasoning": reasoning, "answer": turn.output or ""},
    )


@metric(version="2", needs=("reasoning",), uses=("context",), aliases=("hpd:ReasoningGroundednessEvaluator",))
def llm_reasoning_groundedness(turn: Turn, judge: Asks, *, max_result_chars: Chars = 300) -> Result:
    """Whether the reasoning can be traced to what the tools gave and to what the user said.

    One question to the judge, which sees the tool calls, what was retrieved and the user's input, as far as they are known; the
    value is its score of 0..1. Skipped with ``missing:reasoning`` when no reasoning was captured.

    Parameters:
        max_result_chars: characters of each tool result that the judge sees; the rest is cut off.

    Detail: ``reason``.

    Source: HPD ReasoningGroundednessEvaluator.
    """
    reasoning = turn.reasoning or ""
    if not reasoning.strip():
        return skip("missing:reasoning")
    data: dict[str, Any] = {"reasoning": reasoning, "tool_calls": _calls(turn, max_result_chars)}
    if turn.input:
        data["input"] = turn.input
    if turn.context:
        data["context"] = "\n---\n".join(turn.context)
    return _asked(
        judge,
        "groundedness",
        prompts.GROUNDED,
        data,
    )


def _calls(turn: Turn, limit: int) -> str:
    if turn.tool_calls is None:
        return "(unknown)"
    return calls_as_text(turn.tool_calls, most=None, result_chars=limit, shorten=cut) or "(none were made)"


@metric(version="2", needs=("reasoning", "input", "output"), aliases=("hpd:ReasoningEfficiencyEvaluator",))
def llm_reasoning_efficiency(turn: Turn, judge: Asks, *, max_chars: Chars = 800) -> Result:
    """Whether the reasoning is no longer than the task asks for: 1 is minimal and targeted, 0 vastly over-reasoned.

    One question to the judge, which sees the user's input, the reasoning, and how long the reasoning and the answer are; the value
    is its score of 0..1. Skipped with ``missing:reasoning`` when no reasoning was captured.

    Parameters:
        max_chars: characters of the reasoning that the judge sees; the rest is cut off. The lengths are those of the whole texts.

    Detail: ``reason``.

    Source: HPD ReasoningEfficiencyEvaluator.
    """
    reasoning = turn.reasoning or ""
    if not reasoning.strip():
        return skip("missing:reasoning")
    return _asked(
        judge,
        "efficiency",
        prompts.EFFICIENT,
        {
            "task": turn.input or "",
            "reasoning": reasoning[:max_chars],
            "lengths": {"reasoning": len(reasoning), "answer": len(turn.output or "")},
        },
    )
