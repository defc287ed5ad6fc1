"""Compute the cost of a turn's model calls.

Reported costs take precedence over those computed from tokens and a price table. Costs are never guessed.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

from annotated_types import Ge, Lt, Predicate

from ...core.price_table import Tokens
from ...core.prices import table_cost, table_name
from ...core.turn import LlmCall, Turn

COST_KEYS = ("cost_usd", "turn_cost_usd", "estimated_cost_usd", "cost")
"""Metadata keys that can hold a turn's cost. The first one with a value counts."""

_MILLION = 1_000_000
_MOST_CALLS = 1_000
"""Maximum number of priced model calls in one turn. Turns with more calls have no estimate."""
_LONGEST_NAME = 200
"""Maximum length of a model or provider name. Longer names have no price, because the price table caches every name."""
_SHOWN = 10
_LATEST = datetime.datetime(2100, 1, 1, 12, tzinfo=datetime.timezone.utc)
"""Assumed time of calls without a known time. Prices change over time, and a score must not."""
_PROVIDERS = {"gcp.gen_ai": "google", "x_ai": "x-ai", "azure.ai.inference": "azure"}
"""Provider names of the semantic conventions that the price table spells differently."""


def _complete(price: Mapping[str, float]) -> bool:
    return "input" in price and "output" in price


Price = Annotated[
    dict[Literal["input", "output", "cached_input"], Annotated[float, Ge(0), Lt(math.inf)]],
    Predicate(_complete),
]
"""USD per million tokens. Cached input costs as much as other input unless set."""
Prices = dict[str, Price]
"""Prices by ``model`` or ``provider/model``."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of the model calls and its source."""

    usd: float
    key: str
    """Source of the cost: one of :data:`COST_KEYS`, ``llm_calls``, or ``tokens`` if computed."""
    estimated: bool = False
    price_source: str | None = None
    """Price table of an estimate."""


class _Call(NamedTuple):
    """The facts that determine a call's price."""

    model: str | None
    provider: str | None
    input_tokens: int
    output_tokens: int
    cached_tokens: int


def model_cost(turn: Turn, prices: Mapping[str, Any] | None, *, estimate: bool) -> tuple[Cost | None, list[str]]:
    """Return the cost of the turn's model calls, and the models without a price.

    If the cost can't be computed, it is None.
    """
    if turn.cost_usd is not None:
        return Cost(turn.cost_usd, COST_KEYS[0], turn.cost_estimated), []
    metadata = turn.metadata
    for key in COST_KEYS:
        amount = _amount(metadata.get(key))
        if amount is not None:
            return Cost(amount, key), []
    return _computed(turn, prices or {}) if estimate else (None, [])


def _amount(value: Any) -> float | None:
    """Return the value if it is a finite number, or None."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return value


def _computed(turn: Turn, prices: Mapping[str, Any]) -> tuple[Cost | None, list[str]]:
    """Return the sum of the calls' costs, or None if one of them is unknown.

    The cost of a call is the reported one, or if there is none, its tokens times the price.
    """
    calls = turn.llm_calls
    if not calls or len(calls) > _MOST_CALLS:
        return None, []
    total = sum(call.cost_usd for call in calls if call.cost_usd is not None)
    wanted = _to_be_priced(turn, calls)
    if wanted is None:
        return None, []
    sources: set[str] = set()
    unpriced: dict[str, None] = {}
    for call in wanted:
        own = _own_price(call, prices)
        usd = _times(own, call) if own is not None else _table_price(call, turn.start)
        if usd is None:
            unpriced[str(call.model or "?")[:_LONGEST_NAME]] = None
        else:
            total += usd
            sources.add("prices" if own is not None else table_name())
    if unpriced or not math.isfinite(total):
        return None, list(unpriced)[:_SHOWN]
    if not wanted:
        return Cost(total, "llm_calls"), []
    return Cost(total, "tokens", estimated=True, price_source=" + ".join(sorted(sources))), []


def _to_be_priced(turn: Turn, calls: list[LlmCall]) -> list[_Call] | None:
    """Return the calls without a reported cost, or None if the tokens of one are unknown.

    A call that failed before any token was counted costs nothing, unless nothing else is known about the turn.
    """
    silent = [call for call in calls if call.cost_usd is None]
    counted = [call for call in silent if call.input_tokens is not None or call.output_tokens is not None]
    answered = sum(call.error is None for call in silent if call.input_tokens is None and call.output_tokens is None)
    if not answered and (counted or len(silent) < len(calls)):
        return [_call(call.model, call.provider, call.input_tokens, call.output_tokens, call.cached_tokens) for call in counted]
    return _as_one(turn, calls) if len(silent) == len(calls) and not counted else None


def _as_one(turn: Turn, calls: list[LlmCall]) -> list[_Call] | None:
    """Return the turn's token counts as one call, if all its calls used the same model.

    This is for turns whose calls have no token counts.
    """
    usage = turn.usage
    models = {(call.model, call.provider) for call in calls}
    if usage is None or len(models) > 1 or (usage.input_tokens is None and usage.output_tokens is None):
        return None
    ((model, provider),) = models
    return [_call(model, provider, usage.input_tokens, usage.output_tokens, usage.cached_tokens)]


def _call(model: str | None, provider: str | None, given: int | None, answered: int | None, cached: int | None) -> _Call:
    given = max(0, given or 0)
    return _Call(model, provider, given, max(0, answered or 0), min(given, max(0, cached or 0)))


def _own_price(call: _Call, prices: Mapping[str, Any]) -> Mapping[str, float] | None:
    return (prices.get(f"{call.provider}/{call.model}") or prices.get(call.model or "")) if prices else None


def _times(price: Mapping[str, float], call: _Call) -> float:
    fresh = call.input_tokens - call.cached_tokens
    cached = price.get("cached_input", price["input"])
    return (fresh * price["input"] + call.cached_tokens * cached + call.output_tokens * price["output"]) / _MILLION


def _table_price(call: _Call, start: datetime.datetime | None) -> float | None:
    """Return the cost in USD by the bundled table, or None for an unknown model."""
    model, provider = call.model, call.provider
    if not model or len(model) > _LONGEST_NAME or len(provider or "") > _LONGEST_NAME:
        return None
    provider = _PROVIDERS.get(provider or "", provider) or None
    return table_cost(
        model, Tokens(call.input_tokens, call.output_tokens, call.cached_tokens), start or _LATEST, provider=provider
    )
