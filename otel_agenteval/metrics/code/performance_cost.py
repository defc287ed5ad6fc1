"""Duration, tokens and cost. Without the data, a score is skipped. A value equal to a limit passes."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from annotated_types import Ge, Lt, Predicate

from ...core.errors import MetricError
from ...core.turn import Turn, Usage
from ...core.turn_cost import Cost, cost_of
from ..registry import EPSILON, Param, Result, metric, skip


def _within(observed: float, limit: float) -> Result:
    return Result(observed <= limit + EPSILON, detail={"observed": observed, "limit": limit})


@metric(needs=("duration",), unit="s", direction="down", groups=("default", "cost"), aliases=("hpd:LatencyEvaluator",))
def code_latency(turn: Turn) -> Result:
    """Wall-clock seconds from the start to the end of the turn's root span.

    The score is skipped as ``missing:duration`` if the root span is open or missing.

    Detail: ``latency_ms``, in milliseconds.

    Source: HPD LatencyEvaluator.
    """
    seconds = turn.duration_s or 0.0
    return Result(seconds, detail={"latency_ms": seconds * 1000})


@metric(needs=("duration",), boolean=True, aliases=("hpd:MaxDurationEvaluator",))
def code_max_duration(turn: Turn, *, max_seconds: Annotated[float, Ge(0)]) -> Result:
    """Check that the turn took at most ``max_seconds``.

    The score is skipped if the duration is unknown.

    Parameters:
        max_seconds: Maximum number of wall-clock seconds, inclusive.

    Detail: ``observed`` and ``limit``, in seconds.

    Source: HPD MaxDurationEvaluator.
    """
    return _within(turn.duration_s or 0.0, max_seconds)


@metric(needs=("duration",), boolean=True, aliases=("trusys:latency",))
def code_latency_threshold(turn: Turn, *, threshold_ms: Annotated[float, Ge(0), Param("threshold")]) -> Result:
    """Check that the turn took at most ``threshold_ms`` milliseconds.

    The score is skipped if the duration is unknown.

    Parameters:
        threshold_ms: Maximum number of wall-clock milliseconds of the root span, inclusive. Trusys spells it ``threshold``.

    Detail: ``latency_ms``.

    Source: Trusys latency.
    """
    latency_ms = (turn.duration_s or 0.0) * 1000
    return Result(latency_ms <= threshold_ms + EPSILON, detail={"latency_ms": latency_ms})


@metric(needs=("duration",), threshold=1.0, aliases=("agentunit:latency", "agentunit:LatencyMetric"))
def code_latency_score(turn: Turn, *, threshold_ms: Annotated[float, Ge(0)] = 5000) -> Result:
    """Speed of the turn: 1 up to ``threshold_ms``, then ``threshold_ms / latency_ms``.

    Twice ``threshold_ms`` gives 0.5, and ten times gives 0.1. A latency of 0 gives 1. Unless you set ``threshold``, only 1
    passes. The score is skipped
    if the duration is unknown.

    Parameters:
        threshold_ms: Wall-clock milliseconds of the root span up to which the value is 1.

    Detail: ``latency_ms``, ``threshold_ms``, ``under_threshold`` (true if the latency is at most ``threshold_ms``).

    Source: AgentUnit latency.
    """
    latency_ms = (turn.duration_s or 0.0) * 1000
    under = latency_ms <= threshold_ms + EPSILON
    value = 1.0 if under else threshold_ms / latency_ms
    return Result(value, detail={"latency_ms": latency_ms, "threshold_ms": threshold_ms, "under_threshold": under})


@metric(needs=("llm_calls",), boolean=True, aliases=("hpd:MaxIterationsEvaluator",))
def code_max_iterations(turn: Turn, *, max_iterations: Annotated[int, Ge(0)]) -> Result:
    """Check that the agent called models at most ``max_iterations`` times in the turn.

    Failed calls count, and so do retries with their own span. If the number of calls is unknown, the score is skipped as
    ``missing:llm_calls``.

    Parameters:
        max_iterations: Maximum number of model calls, inclusive.

    Detail: ``observed`` and ``limit`` (model calls).

    Source: HPD MaxIterationsEvaluator.
    """
    return _within(turn.llm_call_count or 0, max_iterations)


def _total_tokens(usage: Usage) -> int | None:
    """Return the reported total, or input plus output if the total is missing or 0."""
    if usage.total_tokens:
        return usage.total_tokens
    if usage.input_tokens is None and usage.output_tokens is None:
        return usage.total_tokens
    return (usage.input_tokens or 0) + (usage.output_tokens or 0)


@metric(needs=("usage",), boolean=True, aliases=("hpd:MaxTokensEvaluator",))
def code_max_tokens(turn: Turn, *, max_tokens: Annotated[int, Ge(0)]) -> Result:
    """Check that the turn used at most ``max_tokens`` tokens, input and output together.

    The score is skipped if the usage is unknown.

    Parameters:
        max_tokens: Maximum number of tokens, inclusive.

    Detail: ``observed`` and ``limit``, in tokens.

    Source: HPD MaxTokensEvaluator.
    """
    total = _total_tokens(turn.usage or Usage())
    return skip("missing:usage") if total is None else _within(total, max_tokens)


@metric(needs=("usage",), boolean=True, aliases=("hpd:MaxInputTokensEvaluator",))
def code_max_input_tokens(turn: Turn, *, max_tokens: Annotated[int, Ge(0)]) -> Result:
    """Check that the turn's model calls received at most ``max_tokens`` input tokens.

    Cached tokens count. The score is skipped if the number of input tokens is unknown.

    Parameters:
        max_tokens: Maximum number of tokens, inclusive.

    Detail: ``observed`` and ``limit``, in tokens.

    Source: HPD MaxInputTokensEvaluator.
    """
    known = (turn.usage or Usage()).input_tokens
    return skip("missing:usage") if known is None else _within(known, max_tokens)


@metric(needs=("usage",), boolean=True, aliases=("hpd:MaxOutputTokensEvaluator",))
def code_max_output_tokens(turn: Turn, *, max_tokens: Annotated[int, Ge(0)]) -> Result:
    """Check that the turn's model calls generated at most ``max_tokens`` tokens.

    Reasoning tokens count. The score is skipped if the number of output tokens is unknown.

    Parameters:
        max_tokens: Maximum number of tokens, inclusive.

    Detail: ``observed`` and ``limit``, in tokens.

    Source: HPD MaxOutputTokensEvaluator.
    """
    known = (turn.usage or Usage()).output_tokens
    return skip("missing:usage") if known is None else _within(known, max_tokens)


@metric(
    needs=("usage",),
    unit="{token}",
    direction="down",
    groups=("default", "cost"),
    aliases=("agentunit:token_usage", "agentunit:TokenUsageMetric"),
)
def code_token_usage(turn: Turn) -> Result:
    """Number of tokens that the turn used.

    The value is the reported total. If the total is missing or 0, it is input plus output. The score is skipped if the usage is unknown.

    Detail: ``prompt_tokens``, ``completion_tokens`` (null if unknown), ``total_tokens``.

    Source: AgentUnit token_usage.
    """
    usage = turn.usage or Usage()
    total = _total_tokens(usage)
    if total is None:
        return skip("missing:usage")
    return Result(
        total, detail={"prompt_tokens": usage.input_tokens, "completion_tokens": usage.output_tokens, "total_tokens": total}
    )


# --- cost


_Usd = Annotated[float, Ge(0), Lt(math.inf)]
Prices = dict[str, Annotated[dict[Literal["input", "output", "cached_input"], _Usd], Predicate({"input", "output"}.issubset)]]
"""USD per million tokens, by ``model`` or ``provider/model``. Cached input costs as much as other input unless set."""


def _no_cost(unpriced: list[str]) -> Result:
    return skip("missing:cost", unpriced=unpriced) if unpriced else skip("missing:cost")


def _how_known(cost: Cost) -> dict[str, Any]:
    if not cost.estimated:
        return {}
    return {"estimated": True} if cost.price_source is None else {"estimated": True, "price_source": cost.price_source}


@metric(
    uses=("metadata",),
    unit="USD",
    direction="down",
    groups=("default", "cost"),
    aliases=("agentunit:cost", "agentunit:CostMetric"),
)
def code_cost(turn: Turn, *, include_tool_costs: bool = True, estimate: bool = True, prices: Prices | None = None) -> Result:
    """Cost of the turn's model calls and tool calls in USD.

    The model cost is the first known value:

    1. the turn's cost
    2. ``cost_usd``, ``turn_cost_usd``, ``estimated_cost_usd`` or ``cost`` in its metadata
    3. an estimate

    If neither the model cost nor a tool cost is known, the metric is skipped as ``missing:cost``.

    The estimate multiplies each call's tokens by the model's price, and adds up the results. Prices come from ``prices`` or
    from the bundled
    genai-prices table, without network access. The extra ``[cost]`` provides a newer table. A price depends on the model, the
    provider and the turn's start time. If this time is unknown, the newest price is used.

    The metric makes no estimate if a successful call has no token counts, a model has no price, or the turn has more than
    1,000 calls. As an exception, if all calls used one model and none has token counts, the estimate uses the turn's token
    counts.

    Parameters:
        include_tool_costs: Add the cost of tool calls.
        estimate: Estimate a cost that wasn't reported.
        prices: Your prices in USD per million tokens, which take precedence: ``{model: {input, output, cached_input?}}``.
            The model can be ``provider/model``. Without ``cached_input``, cached input costs as much as input. Prices in the
            configuration also apply to the turn's own cost.

    Detail: ``cost``, ``model_cost``, ``tool_cost``. An estimate adds ``estimated`` and ``price_source`` (``prices``,
    ``genai-prices`` with its version, or both). ``unpriced`` lists at most ten models without a price, which prevented an
    estimate.

    Source: AgentUnit cost.
    """
    found, unpriced = cost_of(turn, prices, estimate=estimate)
    tool_costs = [call.cost_usd for call in turn.tool_calls or () if call.cost_usd is not None] if include_tool_costs else []
    if found is None and not tool_costs:
        return _no_cost(unpriced)
    of_models, of_tools = found.usd if found is not None else 0.0, sum(tool_costs, 0.0)
    detail: dict[str, Any] = {"cost": of_models + of_tools, "model_cost": of_models, "tool_cost": of_tools}
    if unpriced:
        detail["unpriced"] = unpriced
    if found is not None:
        detail |= _how_known(found)
    return Result(of_models + of_tools, detail=detail)


@metric(uses=("metadata",), boolean=True, aliases=("hpd:MaxCostEvaluator",))
def code_max_cost(
    turn: Turn, *, max_cost_usd: Annotated[float, Ge(0)], estimate: bool = True, prices: Prices | None = None
) -> Result:
    """Check that the turn's model calls cost at most ``max_cost_usd``.

    The cost is the model cost of ``code_cost``, reported or estimated, without tool calls. The score is skipped as
    ``missing:cost`` if the cost is unknown.

    Parameters:
        max_cost_usd: Maximum cost in USD, inclusive.
        estimate: Estimate a cost that wasn't reported.
        prices: Your prices, as in ``code_cost``.

    Detail: ``cost_usd``, ``limit``, ``source_key``, and ``estimated``, ``price_source`` and ``unpriced`` as in
    ``code_cost``. ``source_key`` is the metadata key of the cost, ``llm_calls`` if the calls recorded it, or ``tokens`` if
    it was estimated.

    Source: HPD MaxCostEvaluator.
    """
    found, unpriced = cost_of(turn, prices, estimate=estimate)
    if found is None:
        return _no_cost(unpriced)
    detail = {"cost_usd": found.usd, "source_key": found.key, "limit": max_cost_usd, **_how_known(found)}
    return Result(found.usd <= max_cost_usd + EPSILON, detail=detail)


_ROUNDING = 1e-6
"""Largest log probability above 0 that counts as rounded."""


@metric(unit="{item}", needs=("logprobs",), direction="down", aliases=("trusys:perplexity",))
def code_perplexity(turn: Turn) -> Result:
    """Perplexity of the answer: ``exp(-mean(logprobs))``, 1 if every token was certain.

    With a value of 10, the model was as uncertain as if it had chosen each token from ten equally likely ones. Telemetry
    conventions don't
    include token probabilities, so the turn must provide ``logprobs`` (natural logarithms, one per generated token).
    Without them, the metric is skipped as ``missing:logprobs``. A log probability that is above 0 or not finite is an error.

    Detail: ``tokens``, ``mean_logprob``, ``normalised_score`` (``1 / (1 + exp(-mean_logprob))``, from 0 for unsure to 0.5
    for sure).

    Source: Trusys perplexity.
    """
    logprobs = turn.logprobs or []
    numbers = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in logprobs)
    if not numbers or not all(math.isfinite(value) and value <= _ROUNDING for value in logprobs):
        raise MetricError("invalid_logprobs", "logprobs: must be finite numbers of at most 0")
    try:
        mean = min(0.0, math.fsum(logprobs) / len(logprobs))
        value = math.exp(-mean)
    except OverflowError:
        raise MetricError("invalid_logprobs", "logprobs: too low to compute a perplexity") from None
    return Result(value, detail={"tokens": len(logprobs), "mean_logprob": mean, "normalised_score": 1 / (1 + value)})
