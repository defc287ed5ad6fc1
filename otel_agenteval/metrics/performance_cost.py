"""How long, how many tokens, how much money. Missing data is skipped, never 0; limits are inclusive."""

from __future__ import annotations

import math
from typing import Annotated, Any

from annotated_types import Ge

from ..model import Turn, Usage
from ..registry import Result, metric, skip

_COST_KEYS = ("cost_usd", "turn_cost_usd", "estimated_cost_usd", "cost")


def _within(observed: float, limit: float) -> Result:
    return Result(observed <= limit, detail={"observed": observed, "limit": limit})


@metric(unit="s", needs=("duration",), direction="down", inline=True, aliases=("hpd:LatencyEvaluator",))
def code_latency(turn: Turn) -> Result:
    """Wall-clock seconds from the start to the end of the turn's root span.

    Skipped while the root is open or was never seen.

    Detail: ``latency_ms``, the same in milliseconds.

    Source: HPD LatencyEvaluator.
    """
    seconds = turn.duration_s or 0.0
    return Result(seconds, detail={"latency_ms": seconds * 1000})


@metric(needs=("duration",), boolean=True, aliases=("hpd:MaxDurationEvaluator",))
def code_max_duration(turn: Turn, *, max_seconds: Annotated[float, Ge(0)]) -> Result:
    """Whether the turn took at most ``max_seconds``.

    Skipped while the duration is unknown.

    Parameters:
        max_seconds: required; wall-clock seconds, inclusive.

    Detail: ``observed``, ``limit``, in seconds.

    Source: HPD MaxDurationEvaluator.
    """
    return _within(turn.duration_s or 0.0, max_seconds)


def _total_tokens(usage: Usage) -> int | None:
    """The total as reported; where that is absent or 0, input plus output; None when no number is known."""
    if usage.total_tokens:
        return usage.total_tokens
    if usage.input_tokens is None and usage.output_tokens is None:
        return usage.total_tokens
    return (usage.input_tokens or 0) + (usage.output_tokens or 0)


@metric(needs=("usage",), boolean=True, aliases=("hpd:MaxTokensEvaluator",))
def code_max_tokens(turn: Turn, *, max_tokens: Annotated[int, Ge(0)]) -> Result:
    """Whether the turn used at most ``max_tokens`` tokens, input and output together.

    Skipped when no usage is known: unknown tokens are not few tokens.

    Parameters:
        max_tokens: required; inclusive.

    Detail: ``observed``, ``limit``, in tokens.

    Source: HPD MaxTokensEvaluator.
    """
    total = _total_tokens(turn.usage or Usage())
    return skip("missing:usage") if total is None else _within(total, max_tokens)


@metric(
    unit="{token}",
    needs=("usage",),
    direction="down",
    inline=True,
    aliases=("agentunit:token_usage", "agentunit:TokenUsageMetric"),
)
def code_token_usage(turn: Turn) -> Result:
    """Tokens that the turn used: the total as reported, or input plus output where that is absent or 0.

    Skipped when no usage is known.

    Detail: ``prompt_tokens``, ``completion_tokens`` (null where unknown), ``total_tokens``.

    Source: AgentUnit token_usage.
    """
    usage = turn.usage or Usage()
    total = _total_tokens(usage)
    if total is None:
        return skip("missing:usage")
    return Result(
        total,
        detail={"prompt_tokens": usage.input_tokens, "completion_tokens": usage.output_tokens, "total_tokens": total},
    )


def _amount(value: Any) -> float | None:
    """A sum of money, or None for anything that is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return value


def _turn_cost(turn: Turn) -> float | None:
    """The cost of the turn's model calls in USD: as read from spans or computed, else from the turn's metadata."""
    known = turn.cost_usd
    if known is not None:
        return known
    metadata = turn.metadata
    return next((cost for key in _COST_KEYS if (cost := _amount(metadata.get(key))) is not None), None)


@metric(unit="USD", direction="down", inline=True, aliases=("agentunit:cost", "agentunit:CostMetric"))
def code_cost(turn: Turn, *, include_tool_costs: bool = True) -> Result:
    """What the turn cost in USD: its model calls plus its tool calls.

    The model's part is the turn's cost, else the first of ``cost_usd``, ``turn_cost_usd``, ``estimated_cost_usd`` and
    ``cost`` in its metadata. One part is enough; skipped with ``missing:cost`` when no cost is known at all, because no
    cost is ever invented.

    Parameters:
        include_tool_costs: whether the cost of tool calls is added.

    Detail: ``cost``, ``model_cost``, ``tool_cost``; ``estimated`` when the model's part was computed from tokens and a price
    table instead of read.

    Source: AgentUnit cost.
    """
    model_cost = _turn_cost(turn)
    tool_cost = 0.0
    known = model_cost is not None
    if include_tool_costs:
        for call in turn.tool_calls or ():
            if call.cost_usd is not None:
                tool_cost += call.cost_usd
                known = True
    if not known:
        return skip("missing:cost")
    total = (model_cost or 0.0) + tool_cost
    detail: dict[str, Any] = {"cost": total, "model_cost": model_cost or 0.0, "tool_cost": tool_cost}
    if turn.cost_estimated:
        detail["estimated"] = True
    return Result(total, detail=detail)
