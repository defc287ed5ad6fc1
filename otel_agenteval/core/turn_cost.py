"""Cost of a turn's model calls: reported by spans, given in metadata, or estimated from tokens and prices."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from .price_table import Tokens, knows_provider
from .prices import table_cost, table_name
from .turn import LlmCall, Turn, Usage

COST_KEYS = ("cost_usd", "turn_cost_usd", "estimated_cost_usd", "cost")
"""Metadata keys for a turn's cost. The first key with a finite number is used."""

_MILLION = 1_000_000
_MOST_CALLS = 1_000
"""Maximum number of model calls to price in one turn. For turns with more calls, the cost isn't estimated."""
_LONGEST_NAME = 200
"""Maximum length of a name to look up in the price table, to limit the memory of cached names."""
_SHOWN = 10
_SHARED = "cost"
_LATEST = datetime.datetime(2100, 1, 1, 12, tzinfo=datetime.timezone.utc)
"""Assumed time of calls whose time is unknown. The time is fixed, so that a call costs the same whenever it is scored."""
_PROVIDERS = {"gcp.gen_ai": "google", "x_ai": "x-ai", "azure.ai.inference": "azure", "az.ai.inference": "azure"}
"""Mapping from provider names in the semantic conventions to names in the price table."""
_BEDROCK = re.compile(r"(?:[a-z]{2,4}\.)?(?:ai21|amazon|anthropic|cohere|deepseek|meta|mistral|openai|qwen)\.")
_AT_LIST_PRICE = ("none", "default", "auto", "standard", "standard_only", "on_demand")
"""Service tiers to which the price table applies. Other tiers, such as OpenAI's ``flex``, have different prices."""


class Cost(NamedTuple):
    usd: float
    key: str
    """Source: a key in :data:`COST_KEYS` (turn's cost), ``llm_calls`` (sum of call costs), or ``tokens`` (computed from tokens)."""
    estimated: bool = False
    price_source: str | None = None


class _Estimate(NamedTuple):
    prices: Mapping[str, Any]
    usd: float | None
    found: tuple[Cost | None, list[str]]


class _Call(NamedTuple):
    model: str | None
    provider: str | None
    tokens: Tokens
    tier: str | None = None

    @property
    def is_at_list_price(self) -> bool:
        return (self.tier or "none").lower().replace("-", "_") in _AT_LIST_PRICE


def cost_of(turn: Turn, prices: Mapping[str, Any] | None = None, *, estimate: bool = True) -> tuple[Cost | None, list[str]]:
    """Return the cost of the turn's model calls (or None), and the names of models without a price. ``prices`` (mapping from model
    to USD per million tokens) override the price table. If ``estimate`` is False, only costs from spans or metadata are used.
    """
    given = turn.cost_usd
    known: _Estimate | None = turn.shared.get(_SHARED)
    if known is not None and known.usd == given and estimate and (not prices or prices == known.prices):
        return known.found
    estimated, metadata = given is not None and turn.cost_estimated, turn.metadata
    for key in COST_KEYS if metadata else ():
        amount = metadata.get(key)
        if isinstance(amount, (int, float)) and not isinstance(amount, bool) and math.isfinite(amount):
            if given is None or estimated or given == amount:
                return Cost(amount, key), []
            break
    if given is not None and not estimated:
        return Cost(given, COST_KEYS[0]), []
    if not estimate:
        return None, []
    found = _computed(turn, prices or {})
    if given is not None and not (found[0] is not None and (prices or found[0].usd == given)):
        return Cost(given, COST_KEYS[0], estimated=True), []
    turn.shared[_SHARED] = _Estimate(prices or {}, None if found[0] is None else found[0].usd, found)
    return found


class Pricing(NamedTuple):
    """Settings to estimate the cost of turns without a reported cost."""

    prices: Mapping[str, Any] = {}
    estimate: bool = True


LIST_PRICES = Pricing()


def add_cost(turn: Turn, pricing: Pricing = LIST_PRICES) -> None:
    """Set the turn's cost if unknown. If ``pricing`` has prices, recompute an estimated cost. If estimates are off, delete it."""
    prices, estimate = pricing
    if turn.cost_usd is not None and not (turn.cost_estimated and (prices or not estimate)):
        return
    cost, _ = cost_of(turn, prices, estimate=estimate)
    if cost is not None:
        turn.cost_usd, turn.cost_estimated = cost.usd, cost.estimated
    elif not estimate:
        turn.cost_usd, turn.cost_estimated = None, False


def _computed(turn: Turn, prices: Mapping[str, Any]) -> tuple[Cost | None, list[str]]:
    """Return the calls' total cost, and the models without a price. If any call's cost is unknown, the total is None."""
    calls = turn.llm_calls
    if not calls or len(calls) > _MOST_CALLS:
        return None, []
    total = sum([call.cost_usd for call in calls if call.cost_usd is not None])
    wanted = _to_be_priced(turn, calls)
    if wanted is None:
        return None, []
    sources: set[str] = set()
    unpriced: dict[str, None] = {}
    for call in wanted:
        own = prices.get(f"{call.provider}/{call.model}") or prices.get(call.model or "") if prices else None
        if own is not None:
            given, output, cached, _ = call.tokens
            of_cached = own.get("cached_input", own["input"])
            total += ((given - cached) * own["input"] + cached * of_cached + output * own["output"]) / _MILLION
            sources.add("prices")
        elif (usd := _table_price(call, turn.start)) is not None:
            total += usd
            sources.add(table_name())
        else:
            unpriced[_unpriced(call)] = None
    if unpriced or not math.isfinite(total):
        return None, list(unpriced)[:_SHOWN]
    if not wanted:
        return Cost(total, "llm_calls"), []
    return Cost(total, "tokens", estimated=True, price_source=" + ".join(sorted(sources))), []


def _to_be_priced(turn: Turn, calls: list[LlmCall]) -> list[_Call] | None:
    """Return the calls to price, or None if a call's tokens are unknown. Omit calls that have a cost, and failed calls without
    tokens. If no call has tokens or a cost, but all used the same model, return the turn's total tokens as one call.
    """
    counted: list[_Call] = []
    priced = answered = 0
    for call in calls:
        if call.cost_usd is not None:
            priced += 1
        elif call.input_tokens is not None:
            counted.append(_call(call.model, call.provider, call)._replace(tier=call.service_tier))
        elif call.error is None:
            answered += 1
    if not answered and (counted or priced):
        return counted
    usage = turn.usage  # counts as one call if all calls used the same model
    models = {(call.model, call.provider) for call in calls}
    if priced or counted or len(models) > 1:
        return None
    if usage is None or usage.input_tokens is None:
        return None
    ((model, provider),) = models
    return [_call(model, provider, usage)]


def _call(model: str | None, provider: str | None, usage: LlmCall | Usage) -> _Call:
    given, cached, written = (max(0, count or 0) for count in (usage.input_tokens, usage.cached_tokens, usage.cache_write_tokens))
    if cached + written > given:  # counted in addition to the input, not as part of it
        given += cached + written
    return _Call(model, provider, Tokens(given, max(0, usage.output_tokens or 0), cached, written))


def _table_price(call: _Call, start: datetime.datetime | None) -> float | None:
    model, provider = call.model, call.provider
    if not model or len(model) > _LONGEST_NAME or len(provider or "") > _LONGEST_NAME or not call.is_at_list_price:
        return None
    provider = _PROVIDERS.get(provider or "", provider) or None
    if provider is not None and not knows_provider(provider):  # a framework or a gateway, so the model's name decides
        provider = "aws" if _BEDROCK.match(model) else "litellm"
    return table_cost(model, call.tokens, start or _LATEST, provider=provider)


def _unpriced(call: _Call) -> str:
    model, provider = (str(name or "?")[:_LONGEST_NAME] for name in (call.model, call.provider))
    if not call.is_at_list_price:
        return f"{model} (service tier {call.tier})"
    known = not call.provider or provider in _PROVIDERS or knows_provider(provider)
    return model if known else f"{model} (unknown provider {provider})"
