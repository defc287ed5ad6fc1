"""These metrics measure a turn's duration, tokens, and cost. If data is missing, they are skipped. A value at the limit passes."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from annotated_types import Ge, Lt, Predicate

from ...core.errors import MetricError
from ...core.turn import Turn, Usage
from ...core.turn_cost import Cost, cost_of
from ..registry import EPSILON, Param, Result, metric, skip


def _within(observed: float | None, limit: float) -> Result:
    if observed is None:
        return skip("missing:usage")
    return Result(observed <= limit + EPSILON, detail={"observed": observed, "limit": limit})


@metric(needs=("duration",), unit="s", direction="down", groups=("default", "cost"), aliases=("hpd:LatencyEvaluator",))
def code_latency(turn: Turn) -> Result:
    """Wall-clock duration of the turn in seconds.

    The duration starts with the turn's root span. It ends when this span and all agent, model, tool, and similar spans have ended.
    For example, a streamed model call can end after the root span. If the root span is missing, the duration covers the received
    spans.

    Detail: ``latency_ms``, in milliseconds.
    """
    seconds = turn.duration_s or 0.0
    return Result(seconds, detail={"latency_ms": seconds * 1000})


@metric(needs=("duration",), boolean=True, aliases=("hpd:MaxDurationEvaluator",))
def code_max_duration(turn: Turn, *, max_seconds: Annotated[float, Ge(0)]) -> Result:
    """Check that the turn took at most ``max_seconds``.

    Parameters:
        max_seconds: Maximum duration in seconds (see ``code_latency``).

    Detail: ``observed`` and ``limit``, in seconds.
    """
    return _within(turn.duration_s or 0.0, max_seconds)


@metric(needs=("duration",), boolean=True, aliases=("trusys:latency",))
def code_latency_threshold(turn: Turn, *, threshold_ms: Annotated[float, Ge(0), Param("threshold")]) -> Result:
    """Check that the turn took at most ``threshold_ms`` milliseconds.

    Parameters:
        threshold_ms: Maximum duration in milliseconds (see ``code_latency``). Alias: ``threshold``, as in Trusys.

    Detail: ``latency_ms``.
    """
    latency_ms = (turn.duration_s or 0.0) * 1000
    return Result(latency_ms <= threshold_ms + EPSILON, detail={"latency_ms": latency_ms})


@metric(needs=("duration",), threshold=1.0, aliases=("agentunit:latency", "agentunit:LatencyMetric"))
def code_latency_score(turn: Turn, *, threshold_ms: Annotated[float, Ge(0)] = 5000) -> Result:
    """Speed of the turn: 1 up to ``threshold_ms``, then ``threshold_ms / latency_ms``.

    Parameters:
        threshold_ms: Longest duration that still scores 1, in milliseconds.

    Detail: ``latency_ms``, ``threshold_ms``, and ``under_threshold``.
    """
    latency_ms = (turn.duration_s or 0.0) * 1000
    under = latency_ms <= threshold_ms + EPSILON
    value = 1.0 if under else threshold_ms / latency_ms
    return Result(value, detail={"latency_ms": latency_ms, "threshold_ms": threshold_ms, "under_threshold": under})


@metric(needs=("llm_calls",), boolean=True, aliases=("hpd:MaxIterationsEvaluator",))
def code_max_iterations(turn: Turn, *, max_iterations: Annotated[int, Ge(0)]) -> Result:
    """Check that the agent called models at most ``max_iterations`` times in the turn.

    The number of calls includes failed calls, and retries that have their own span.

    Parameters:
        max_iterations: Maximum number of model calls.

    Detail: ``observed`` and ``limit``, in model calls.
    """
    return _within(turn.llm_call_count or 0, max_iterations)


def _total_tokens(usage: Usage) -> int | None:
    if usage.total_tokens:
        return usage.total_tokens
    if usage.input_tokens is None and usage.output_tokens is None:
        return usage.total_tokens
    return (usage.input_tokens or 0) + (usage.output_tokens or 0)


@metric(needs=("usage",), boolean=True, aliases=("hpd:MaxTokensEvaluator",))
def code_max_tokens(turn: Turn, *, max_tokens: Annotated[int, Ge(0)]) -> Result:
    """Check that the turn used at most ``max_tokens`` input and output tokens in total.

    The metric counts tokens in the same way as ``code_token_usage``.

    Parameters:
        max_tokens: Maximum number of input and output tokens.

    Detail: ``observed`` and ``limit``, in tokens.
    """
    return _within(_total_tokens(turn.usage or Usage()), max_tokens)


@metric(needs=("usage",), boolean=True, aliases=("hpd:MaxInputTokensEvaluator",))
def code_max_input_tokens(turn: Turn, *, max_tokens: Annotated[int, Ge(0)]) -> Result:
    """Check that the turn's model calls received at most ``max_tokens`` input tokens.

    Input tokens include cached tokens. If the number of input tokens is unknown, the score is skipped as ``missing:usage``.

    Parameters:
        max_tokens: Maximum number of input tokens.

    Detail: ``observed`` and ``limit``, in tokens.
    """
    return _within((turn.usage or Usage()).input_tokens, max_tokens)


@metric(needs=("usage",), boolean=True, aliases=("hpd:MaxOutputTokensEvaluator",))
def code_max_output_tokens(turn: Turn, *, max_tokens: Annotated[int, Ge(0)]) -> Result:
    """Check that the turn's model calls generated at most ``max_tokens`` tokens.

    Output tokens include reasoning tokens. If the number of output tokens is unknown, the score is skipped as ``missing:usage``.

    Parameters:
        max_tokens: Maximum number of output tokens.

    Detail: ``observed`` and ``limit``, in tokens.
    """
    return _within((turn.usage or Usage()).output_tokens, max_tokens)


@metric(
    needs=("usage",),
    unit="{token}",
    direction="down",
    groups=("default", "cost"),
    aliases=("agentunit:token_usage", "agentunit:TokenUsageMetric"),
)
def code_token_usage(turn: Turn) -> Result:
    """Number of input and output tokens that the turn used.

    The value is ``total_tokens`` in the turn's usage data. If it is missing or 0, the value is the sum of input and output tokens.

    Detail: ``prompt_tokens``, ``completion_tokens`` (null if unknown), and ``total_tokens``.
    """
    usage = turn.usage or Usage()
    if (total := _total_tokens(usage)) is None:
        return skip("missing:usage")
    detail = {"prompt_tokens": usage.input_tokens, "completion_tokens": usage.output_tokens, "total_tokens": total}
    return Result(total, detail=detail)


# --- cost


_Usd = Annotated[float, Ge(0), Lt(math.inf)]
_Price = Annotated[dict[Literal["input", "output", "cached_input"], _Usd], Predicate({"input", "output"}.issubset)]
Prices = Annotated[dict[str, _Price], "mapping of models to prices"]
"""USD per million tokens, by ``model`` or ``provider/model``. The default of ``cached_input`` is the price of ``input``."""


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

    The cost of the model calls comes from the first of these sources that has a value:

    1. the turn's reported cost
    2. ``cost_usd``, ``turn_cost_usd``, ``estimated_cost_usd``, or ``cost`` in the turn's metadata
    3. an estimate

    By default, the value also includes the cost of tool calls. If no cost is known, the score is skipped as ``missing:cost``.

    The estimate is the sum over all model calls. For a call without a reported cost, the call's tokens are multiplied by the model's price.
    Prices come from ``prices`` or from the bundled genai-prices table, without network access. The extra ``[cost]`` can provide a newer table.
    A price depends on the model, the provider, and the turn's start time. If the start time is unknown, the newest price is used.

    The metric doesn't estimate a cost in these cases:

    - A model's price is unknown. The bundled table has no prices for service tiers such as ``flex`` and ``priority``.
    - The turn has more than 1,000 model calls.
    - A successful call has neither an input token count nor a cost. Exception: if this is true for all calls, and they used the
      same model, the estimate uses the turn's token counts.

    Parameters:
        include_tool_costs: If true, the value includes the cost of tool calls.
        estimate: If true, the metric estimates a cost that wasn't reported.
        prices: Prices in USD per million tokens: ``{model: {input, output, cached_input?}}``. These prices override the bundled
            prices. The model can be ``provider/model``. If ``cached_input`` is unset, cached input costs as much as other input. If
            you set ``prices`` in a configuration file, these prices are also used to estimate the turn's ``cost_usd``.

    Detail: ``cost``, ``model_cost``, and ``tool_cost``. If prices were used, it also contains ``estimated`` and, if known,
    ``price_source``: ``prices``, ``genai-prices`` with its version, or both. ``unpriced`` lists up to ten models without a price.
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

    The cost is ``model_cost`` in the detail of ``code_cost``, without tool calls. If the cost is unknown, the score is skipped as
    ``missing:cost``.

    Parameters:
        max_cost_usd: Maximum cost in USD.
        estimate: If true, the metric estimates a cost that wasn't reported.
        prices: Prices. See ``code_cost``.

    Detail: ``cost_usd``, ``limit``, and ``source_key``. ``source_key`` is the source of the cost: ``cost_usd`` (the turn's reported
    cost), the metadata key with the cost, ``llm_calls`` (costs that the calls report), or ``tokens`` (an estimate). For
    ``estimated``, ``price_source``, and ``unpriced``, see ``code_cost``.
    """
    found, unpriced = cost_of(turn, prices, estimate=estimate)
    if found is None:
        return _no_cost(unpriced)
    detail = {"cost_usd": found.usd, "source_key": found.key, "limit": max_cost_usd, **_how_known(found)}
    return Result(found.usd <= max_cost_usd + EPSILON, detail=detail)


_ROUNDING = 1e-6
"""Highest log probability above 0 that is accepted as a rounding error."""


@metric(unit="{item}", needs=("logprobs",), direction="down", aliases=("trusys:perplexity",))
def code_perplexity(turn: Turn) -> Result:
    """Perplexity of the answer: ``exp(-mean(logprobs))``, which is 1 if every token was certain.

    A value of 10 means that the model was as uncertain as if it had chosen each token from ten equally likely tokens.
    OpenTelemetry's conventions don't include token probabilities. If your instrumentation doesn't record them, provide ``logprobs``
    (natural logarithms, one per generated token). If a log probability is clearly above 0 or not finite, the score is an error.

    Detail: ``tokens`` (count), ``mean_logprob``, and ``normalised_score``, which is ``1 / (1 + exp(-mean_logprob))``. This score is
    near 0 if the model was very uncertain, and 0.5 if every token was certain.
    """
    logprobs = turn.logprobs or []
    numbers = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in logprobs)
    if not numbers or not all(math.isfinite(value) and value <= _ROUNDING for value in logprobs):
        raise MetricError("invalid_logprobs", "logprobs: must be finite numbers, 0 or lower")
    try:
        mean = min(0.0, math.fsum(logprobs) / len(logprobs))
        value = math.exp(-mean)
    except OverflowError:
        raise MetricError("invalid_logprobs", "logprobs: too low to compute a perplexity") from None
    return Result(value, detail={"tokens": len(logprobs), "mean_logprob": mean, "normalised_score": 1 / (1 + value)})
