"""Judges of the reasoning that was captured with an answer. Without reasoning they are skipped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from annotated_types import Ge

from ...core import jsonio
from ...core.turn import ToolCall, Turn
from ..lib.replies import clamped, reason_of
from ..registry import Asks, Result, metric, skip

_REPLY = '{"score": <0 to 1>, "reason": "<why>"}'

Chars = Annotated[int, Ge(1)]


def _asked(judge: Asks, stage: str, task: str, data: dict[str, Any]) -> Result:
    reply = judge.ask(stage, task, data, _REPLY)
    detail: dict[str, Any] = {"reason": reason_of(reply)}
    value = clamped(reply, 0, 1, detail=detail)
    return Result(value, detail=detail, explanation=detail["reason"])


@metric(needs=("reasoning", "output"), aliases=("hpd:ReasoningCoherenceEvaluator",))
def llm_reasoning_coherence(turn: Turn, judge: Asks) -> Result:
    """Whether the reasoning is consistent in itself and leads to the answer.

    One question to the judge; the value is its score of 0..1. Skipped with ``missing:reasoning`` when no reasoning was captured.

    Detail: ``reason``, and ``clamped`` if the score was outside.

    Source: HPD ReasoningCoherenceEvaluator.
    """
    reasoning = turn.reasoning or ""
    if not reasoning.strip():
        return skip("missing:reasoning")
    return _asked(
        judge,
        "coherence",
        "Judge whether the reasoning leads to the answer: its steps follow from each other, it does not contradict itself, and the "
        "answer is what it concludes. 1: coherent throughout, 0: the answer has nothing to do with the reasoning.",
        {"reasoning": reasoning, "answer": turn.output or ""},
    )


@metric(needs=("reasoning",), uses=("context",), aliases=("hpd:ReasoningGroundednessEvaluator",))
def llm_reasoning_groundedness(turn: Turn, judge: Asks, *, max_result_chars: Chars = 300) -> Result:
    """Whether the reasoning can be traced to what the tools gave and to what the user said.

    One question to the judge, which sees the tool calls, what was retrieved and the user's input, as far as they are known; the
    value is its score of 0..1. Skipped with ``missing:reasoning`` when no reasoning was captured.

    Parameters:
        max_result_chars: characters of each tool result that the judge sees; the rest is cut off.

    Detail: ``reason``, and ``clamped`` if the score was outside.

    Source: HPD ReasoningGroundednessEvaluator.
    """
    reasoning = turn.reasoning or ""
    if not reasoning.strip():
        return skip("missing:reasoning")
    data: dict[str, Any] = {"reasoning": reasoning, "tool_calls": _calls_as_text(turn.tool_calls, max_result_chars)}
    if turn.input:
        data["input"] = turn.input
    if turn.context:
        data["context"] = "\n---\n".join(turn.context)
    return _asked(
        judge,
        "groundedness",
        "Judge whether the reasoning is grounded in its sources: what it takes for a fact stands in the results of the tools, in the "
        "context or in the user's input, or follows from them. Long results are cut; what is missing there may be what was cut. "
        "1: all of it can be traced, 0: none of it can.",
        data,
    )


def _calls_as_text(calls: Sequence[ToolCall] | None, limit: int) -> str:
    """The tool calls as a judge reads them, one a paragraph."""
    if calls is None:
        return "It is not known which tools were called."
    if not calls:
        return "No tool was called."
    return "\n\n".join(f"{number}. {_written(call, limit)}" for number, call in enumerate(calls, 1))


def _written(call: ToolCall, limit: int) -> str:
    lines = [call.name]
    if call.arguments is not None:
        lines.append(f"arguments: {jsonio.dumps(call.arguments)}")
    if call.error is not None:
        lines.append(f"error: {call.error.message or call.error.type or 'failed'}")
    result = jsonio.text_of(call.result)
    lines.append(f"result: {result[:limit]}{' […]' if len(result) > limit else ''}" if result else "no result")
    return "\n".join(lines)


@metric(version="2", needs=("reasoning", "input", "output"), aliases=("hpd:ReasoningEfficiencyEvaluator",))
def llm_reasoning_efficiency(turn: Turn, judge: Asks, *, max_chars: Chars = 800) -> Result:
    """Whether the reasoning is no longer than the task asks for: 1 is minimal and targeted, 0 vastly over-reasoned.

    One question to the judge, which sees the user's input, the reasoning, and how long the reasoning and the answer are; the value
    is its score of 0..1. Skipped with ``missing:reasoning`` when no reasoning was captured.

    Parameters:
        max_chars: characters of the reasoning that the judge sees; the rest is cut off. The lengths are those of the whole texts.

    Detail: ``reason``, and ``clamped`` if the score was outside.

    Source: HPD ReasoningEfficiencyEvaluator.
    """
    reasoning = turn.reasoning or ""
    if not reasoning.strip():
        return skip("missing:reasoning")
    return _asked(
        judge,
        "efficiency",
        "Judge how efficient the reasoning is for the task: does it go straight to what is needed, without repetition, detours and "
        "doubts about what is certain? 1: minimal and targeted, 0: vastly over-reasoned. Its end may be cut off: the lengths are "
        "those of the whole texts, in characters.",
        {
            "task": turn.input or "",
            "reasoning": reasoning[:max_chars],
            "lengths": {"reasoning": len(reasoning), "answer": len(turn.output or "")},
        },
    )
