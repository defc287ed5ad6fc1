"""These judged metrics evaluate the agent's recorded reasoning."""

from __future__ import annotations

from typing import Annotated

from annotated_types import Ge

from ...core.turn import Turn
from ..lib.replies import scored
from ..lib.steps import calls_as_text, cut
from ..prompts import SCORE, Prompts
from ..registry import Asks, Result, metric, skip

_PROMPTS = Prompts("reasoning")

Chars = Annotated[int, Ge(1)]


@metric(needs=("reasoning", "output"), version="2", aliases=("hpd:ReasoningCoherenceEvaluator",))
def llm_reasoning_coherence(turn: Turn, judge: Asks) -> Result:
    """Rate how consistent the reasoning is, and how well it leads to the answer, from 0 to 1.

    A single judge call returns the value.

    Detail: ``reason``.
    """
    if not (reasoning := turn.reasoning or "").strip():
        return skip("missing:reasoning")
    return scored(judge.ask("coherence", _PROMPTS["coherent"], {"reasoning": reasoning, "answer": turn.output or ""}, SCORE))


@metric(needs=("reasoning",), uses=("context",), version="2", aliases=("hpd:ReasoningGroundednessEvaluator",))
def llm_reasoning_groundedness(turn: Turn, judge: Asks, *, max_result_chars: Chars = 300) -> Result:
    """Rate how well tool results, retrieved context, and user input support the reasoning, from 0 to 1.

    A single judge call returns the value.

    Parameters:
        max_result_chars: Maximum number of characters that the judge reads from each tool result.

    Detail: ``reason``.
    """
    if not (reasoning := turn.reasoning or "").strip():
        return skip("missing:reasoning")
    calls = "(unknown)"
    if turn.tool_calls is not None:
        calls = calls_as_text(turn.tool_calls, most=None, result_chars=max_result_chars, shorten=cut) or "(none were made)"
    data = {"reasoning": reasoning, "tool_calls": calls}
    if turn.input:
        data["input"] = turn.input
    if turn.context:
        data["context"] = "\n---\n".join(turn.context)
    return scored(judge.ask("groundedness", _PROMPTS["grounded"], data, SCORE))


@metric(needs=("reasoning", "input", "output"), version="2", aliases=("hpd:ReasoningEfficiencyEvaluator",))
def llm_reasoning_efficiency(turn: Turn, judge: Asks, *, max_chars: Chars = 800) -> Result:
    """Brevity of the reasoning: 1 if minimal and targeted, 0 if far too long.

    A single judge call returns the value. The judge reads the user's input, the start of the reasoning, and the lengths of the
    complete reasoning and the answer.

    Parameters:
        max_chars: Maximum number of characters that the judge reads from the reasoning.

    Detail: ``reason``.
    """
    if not (reasoning := turn.reasoning or "").strip():
        return skip("missing:reasoning")
    lengths = {"reasoning": len(reasoning), "answer": len(turn.output or "")}
    material = {"task": turn.input or "", "reasoning": reasoning[:max_chars], "lengths": lengths}
    return scored(judge.ask("efficiency", _PROMPTS["efficient"], material, SCORE))
