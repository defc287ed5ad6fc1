"""Duration, tokens and cost. Missing data is skipped and never counts as 0; limits are inclusive."""

from __future__ import annotations

import math
from typing import Annotated, Any

from annotated_types import Ge

from ...core.errors import MetricError
from ...core.turn import Turn, Usage
from ..lib.prices import Cost, Prices, model_cost
from ..registry import EPSILON, Result, metric, skip


def _within(observed: float, limit: float) -> Result:
    return Result(observed <= limit + EPSILON, detail={"observed": observed, "limit": limit})


@metric(unit="s", needs=("duration",), direction="down", inline=True, groups=("cost",), aliases=("hpd:LatencyEvaluator",))
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


@metric(
    needs=("duration",),
    boolean=True,
    aliases=("trusys:latency",),
    spellings={"threshold": "threshold_ms"},
)
def code_latency_threshold(turn: Turn, *, threshold_ms: Annotated[float, Ge(0)]) -> Result:
    """Whether the turn took at most ``threshold_ms`` milliseconds.

    Skipped while the duration is unknown.

    Parameters:
        threshold_ms: required; wall-clock milliseconds of the turn's root span, inclusive. Trusys spells it ``threshold``.

    Detail: ``latency_ms``.

    Source: Trusys latency.
    """
    latency_ms = (turn.duration_s or 0.0) * 1000
    return Result(latency_ms <= threshold_ms + EPSILON, detail={"latency_ms": latency_ms})


@metric(needs=("duration",), threshold=1.0, aliases=("agentunit:latency", "agentunit:LatencyMetric"))
def code_latency_score(turn: Turn, *, threshold_ms: Annotated[float, Ge(0)] = 5000) -> Result:
    """How fast the turn was: 1 up to ``threshold_ms``, then ``threshold_ms / latency_ms``.

    Twice the time is 0.5, ten times 0.1. Passes at 1, that is up to ``threshold_ms``, unless another ``threshold`` is set.
    A latency of 0 is 1. Skipped while the duration is unknown.

    Parameters:
        threshold_ms: wall-clock milliseconds of the turn's root span that cost nothing.

    Detail: ``latency_ms``, ``threshold_ms``, ``under_threshold`` (whether the latency is at most ``threshold_ms``).

    Source: AgentUnit latency.
    """
    latency_ms = (turn.duration_s or 0.0) * 1000
    under = latency_ms <= threshold_ms + EPSILON
    value = 1.0 if under else threshold_ms / latency_ms
    return Result(value, detail={"latency_ms": latency_ms, "threshold_ms": threshold_ms, "under_threshold": under})


@metric(needs=("llm_calls",), boolean=True, aliases=("hpd:MaxIterationsEvaluator",))
def code_max_iterations(turn: Turn, *, max_iterations: Annotated[int, Ge(0)]) -> Result:
    """Whether the agent called models at most ``max_iterations`` times in the turn.

    Calls that failed count, and so do retries that have a span of their own. Skipped with ``missing:llm_calls`` when no
    model call is known: that is missing instrumentation, not a short loop. (A count of 0 that was given as a number is a
    fact and passes.)

    Parameters:
        max_iterations: required; inclusive.

    Detail: ``observed``, ``limit``, in model calls.

    Source: HPD MaxIterationsEvaluator.
    """
    return _within(turn.llm_call_count or 0, max_iterations)


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


@metric(needs=("usage",), boolean=True, aliases=("hpd:MaxInputTokensEvaluator",))
def code_max_input_tokens(turn: Turn, *, max_tokens: Annotated[int, Ge(0)]) -> Result:
    """Whether the turn's model calls were given at most ``max_tokens`` tokens, cached ones included.

    Skipped when the number of input tokens is unknown: unknown tokens are not few tokens.

    Parameters:
        max_tokens: required; inclusive.

    Detail: ``observed``, ``limit``, in tokens.

    Source: HPD MaxInputTokensEvaluator.
    """
    known = (turn.usage or Usage()).input_tokens
    return skip("missing:usage") if known is None else _within(known, max_tokens)


@metric(needs=("usage",), boolean=True, aliases=("hpd:MaxOutputTokensEvaluator",))
def code_max_output_tokens(turn: Turn, *, max_tokens: Annotated[int, Ge(0)]) -> Result:
    """Whether the turn's model calls answered with at most ``max_tokens`` tokens, reasoning ones included.

    Skipped when the number of output tokens is unknown: unknown tokens are not few tokens.

    Parameters:
        max_tokens: required; inclusive.

    Detail: ``observed``, ``limit``, in tokens.

    Source: HPD MaxOutputTokensEvaluator.
    """
    known = (turn.usage or Usage()).output_tokens
    return skip("missing:usage") if known is None else _within(known, max_tokens)


@metric(
    unit="{token}",
    needs=("usage",),
    direction="down",
    inline=True,
    groups=("cost",),
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


def _no_cost(unpriced: list[str]) -> Result:
    return skip("missing:cost", unpriced=unpriced) if unpriced else skip("missing:cost")


def _how_known(cost: Cost) -> dict[str, Any]:
    """What a detail says of a cost that was computed instead of read."""
    if not cost.estimated:
        return {}
    return {"estimated": True} if cost.price_source is None else {"estimated": True, "price_source": cost.price_source}


@metric(
    uses=("metadata",),
    unit="USD",
    direction="down",
    inline=True,
    groups=("cost",),
    aliases=("agentunit:cost", "agentunit:CostMetric"),
)
def code_cost(
    turn: Turn,
    *,
    include_tool_costs: bool = True,
    estimate: bool = True,
    prices: Prices | None = None,
) -> Result:
    """What the turn cost in USD: its model calls plus its tool calls.

    The model's part is the turn's cost, else the first of ``cost_usd``, ``turn_cost_usd``, ``estimated_cost_usd`` and
    ``cost`` in its metadata, else an estimate. Skipped with ``missing:cost`` when no part is known, because no cost is ever
    invented.

    The estimate is the sum over the turn's model calls of their tokens times the price of their model: the configured one,
    else that of the bundled table of genai-prices (a newer one with the extra ``[cost]``; nothing is fetched) for this model of this provider at
    the turn's start, the newest where that is unknown. There is none when a call that did not fail has no token counts,
    when a model has no price, or for more than 1 000 calls; only where no call has counts, those of the turn stand for all,
    if they went to one model.

    Parameters:
        include_tool_costs: whether the cost of tool calls is added.
        estimate: whether a cost that was not reported is estimated.
        prices: your own prices in USD per million tokens, before those of the table: ``{model: {input, output,
            cached_input?}}``, where the model can also be ``provider/model``. Cached input costs what input does unless
            given; a model of your own machines costs 0.

    Detail: ``cost``, ``model_cost``, ``tool_cost``; of an estimate also ``estimated`` and ``price_source`` (``prices``,
    ``genai-prices`` with its version, or both). ``unpriced``: the models (at most ten) that have no price, so that no
    estimate could be made.

    Source: AgentUnit cost.
    """
    found, unpriced = model_cost(turn, prices, estimate=estimate)
    tool_costs = [call.cost_usd for call in turn.tool_calls or () if call.cost_usd is not None] if include_tool_costs else []
    if found is None and not tool_costs:
        return _no_cost(unpriced)
    of_models, of_tools = found.usd if found is not None else 0.0, sum(tool_costs, 0.0)
    detail: dict[str, Any] = {"cost": of_models + of_tools, "model_cost": of_models, "tool_cost": of_tools}
    if unpriced:
        detail["unpriced"] = unpriced
    return Result(of_models + of_tools, detail=detail if found is None else {**detail, **_how_known(found)})


@metric(uses=("metadata",), boolean=True, aliases=("hpd:MaxCostEvaluator",))
def code_max_cost(
    turn: Turn,
    *,
    max_cost_usd: Annotated[float, Ge(0)],
    estimate: bool = True,
    prices: Prices | None = None,
) -> Result:
    """Whether the turn's model calls cost at most ``max_cost_usd``.

    The cost is found as the model's part of ``code_cost`` is: reported, else estimated; tool calls are
    left out. Skipped with ``missing:cost`` when it is unknown: an unknown cost is not a low one.

    Parameters:
        max_cost_usd: required; inclusive.
        estimate, prices: as in ``code_cost``.

    Detail: ``cost_usd``; ``source_key``, where it was found (``cost_usd``, ``turn_cost_usd``, ``estimated_cost_usd``,
    ``cost``, ``llm_calls`` when the calls themselves say it, ``tokens`` when it was estimated); ``limit``; ``estimated``,
    ``price_source`` and ``unpriced`` as in ``code_cost``.

    Source: HPD MaxCostEvaluator.
    """
    found, unpriced = model_cost(turn, prices, estimate=estimate)
    if found is None:
        return _no_cost(unpriced)
    detail = {"cost_usd": found.usd, "source_key": found.key, "limit": max_cost_usd, **_how_known(found)}
    return Result(found.usd <= max_cost_usd + EPSILON, detail=detail)


_ROUNDING = 1e-6
"""How far above 0 a log probability may be that was rounded."""


@metric(unit="{item}", needs=("logprobs",), direction="down", aliases=("trusys:perplexity",))
def code_perplexity(turn: Turn) -> Result:
    """How surprised the model was by its own answer: ``exp(-mean(logprobs))``, 1 when it was sure of every token.

    10 means that it was as uncertain throughout as between ten equally likely tokens. No telemetry convention has token
    probabilities, so they come from the turn's ``logprobs`` (natural logarithms, one per generated token). Skipped with
    ``missing:logprobs`` without them. Only trends, unless a ``threshold`` is set; passes at or below it.

    A value that is not a log probability (above 0, or not a finite number) is an error.

    Detail: ``tokens``, ``mean_logprob``; ``normalised_score``, ``1 / (1 + exp(-mean_logprob))``: the same on a scale from 0
    (surprised) to 0.5 (sure).

    Source: Trusys perplexity.
    """
    logprobs = turn.logprobs or []
    if not all(_is_logprob(value) for value in logprobs):
        raise MetricError("invalid_logprobs", "logprobs must be finite numbers that are not above 0")
    try:
        mean = min(0.0, math.fsum(logprobs) / len(logprobs))
        value = math.exp(-mean)
    except OverflowError:
        raise MetricError("invalid_logprobs", "logprobs are so low that the perplexity is not a number") from None
    return Result(value, detail={"tokens": len(logprobs), "mean_logprob": mean, "normalised_score": 1 / (1 + value)})


def _is_logprob(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and value <= _ROUNDING
