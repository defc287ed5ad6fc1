"""Judges of captured reasoning.
Without reasoning, they are skipped as ``missing:reasoning``.
"""

from __future__ import annotations

from typing import Annotated, Any

from annotated_types import Ge

from ...core.turn import Turn
from ..lib.replies import number_within, reason_of
from ..lib.steps import calls_as_text
from ..lib.trace import cut
from ..prompts import SCORE, Prompts
from ..registry import Asks, Result, metric, skip

_PROMPTS = Prompts("reasoning")

Chars = Annotated[int, Ge(1)]


def _asked(judge: Asks, stage: str, task: str, data: dict[str, Any]) -> Result:
    reply = judge.ask(stage, task, data, SCORE)
    detail: dict[str, Any] = {"reason": reason_of(reply)}
    value = number_within(reply, 0, 1)
    return Result(value, detail=detail, explanation=detail["reason"])


@metric(needs=("reasoning", "output"), version="2", aliases=("hpd:ReasoningCoherenceEvaluator",))
def llm_reasoning_coherence(turn: Turn, judge: Asks) -> Result:
    """Coherence of the reasoning: it is consistent and leads to the answer, 0..1.

    The value is the score of a single judge call.

    Detail: ``reason``.

    Source: HPD ReasoningCoherenceEvaluator.
    """
    reasoning = turn.reasoning or ""
    if not reasoning.strip():
        return skip("missing:reasoning")
    return _asked(
        judge,
        "coherence",
        _PROMPTS["coherent"],
        {"reasoning": reasoning, "answer": turn.output or ""},
    )


@metric(needs=("reasoning",), uses=("context",), version="2", aliases=("hpd:ReasoningGroundednessEvaluator",))
def llm_reasoning_groundedness(turn: Turn, judge: Asks, *, max_result_chars: Chars = 300) -> Result:
    """Support of the reasoning by tool results, retrieved context and the user's input, 0..1.

    The value is the score of a single judge call.

    Parameters:
        max_result_chars: Characters of each tool result that the judge reads.

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
        _PROMPTS["grounded"],
        data,
    )


def _calls(turn: Turn, limit: int) -> str:
    if turn.tool_calls is None:
        return "(unknown)"
    return calls_as_text(turn.tool_calls, most=None, result_chars=limit, shorten=cut) or "(none were made)"


@metric(needs=("reasoning", "input", "output"), version="2", aliases=("hpd:ReasoningEfficiencyEvaluator",))
def llm_reasoning_efficiency(turn: Turn, judge: Asks, *, max_chars: Chars = 800) -> Result:
    """Brevity of the reasoning: 1 is minimal and targeted, 0 is far too long.

    The value is the score of a single judge call. The judge reads the user's input, the reasoning, and the lengths of the
    whole reasoning and answer.

    Parameters:
        max_chars: Characters of the reasoning that the judge reads.

    Detail: ``reason``.

    Source: HPD ReasoningEfficiencyEvaluator.
    """
    reasoning = turn.reasoning or ""
    if not reasoning.strip():
        return skip("missing:reasoning")
    return _asked(
        judge,
        "efficiency",
        _PROMPTS["efficient"],
        {
            "task": turn.input or "",
            "reasoning": reasoning[:max_chars],
            "lengths": {"reasoning": len(reasoning), "answer": len(turn.output or "")},
        },
    )
