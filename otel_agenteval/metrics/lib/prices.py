"""What the model calls of a turn cost: as reported, else computed from tokens and a table of prices; never a guess."""

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
"""Where a turn's metadata can hold its cost, first come first."""

_MILLION = 1_000_000
_MOST_CALLS = 1_000
"""Model calls of a turn that are priced; a turn of more has no estimate."""
_LONGEST_NAME = 200
"""Characters of a name of a model or provider. Longer ones are refused, because the price table caches every name."""
_SHOWN = 10
_LATEST = datetime.datetime(2100, 1, 1, 12, tzinfo=datetime.timezone.utc)
"""When a call was made whose time is unknown: prices change with time, and a score must not."""
_PROVIDERS = {"gcp.gen_ai": "google", "x_ai": "x-ai", "azure.ai.inference": "azure"}
"""Provider names of the semantic conventions that the price table spells otherwise."""


def _complete(price: Mapping[str, float]) -> bool:
    return "input" in price and "output" in price


Price = Annotated[
    dict[Literal["input", "output", "cached_input"], Annotated[float, Ge(0), Lt(math.inf)]],
    Predicate(_complete),
]
"""USD per million tokens; cached input costs what input does unless it is given."""
Prices = dict[str, Price]
"""By ``model`` or ``provider/model``."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What the model calls cost, and how that is known."""

    usd: float
    key: str
    """Where it was found: one of :data:`COST_KEYS`, ``llm_calls``, or ``tokens`` when it was computed."""
    estimated: bool = False
    price_source: str | None = None
    """Which prices an estimate was computed with."""


class _Call(NamedTuple):
    """What a price depends on."""

    model: str | None
    provider: str | None
    input_tokens: int
    output_tokens: int
    cached_tokens: int


def model_cost(turn: Turn, prices: Mapping[str, Any] | None, *, estimate: bool) -> tuple[Cost | None, list[str]]:
    """The cost of the turn's model calls; and where it cannot be computed, the models that have no price."""
    if turn.cost_usd is not None:
        return Cost(turn.cost_usd, COST_KEYS[0], turn.cost_estimated), []
    metadata = turn.metadata
    for key in COST_KEYS:
        amount = _amount(metadata.get(key))
        if amount is not None:
            return Cost(amount, key), []
    return _computed(turn, prices or {}) if estimate else (None, [])


def _amount(value: Any) -> float | None:
    """A sum of money, or None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return value


def _computed(turn: Turn, prices: Mapping[str, Any]) -> tuple[Cost | None, list[str]]:
    """The sum over the calls: what a call says it cost, else its tokens times a price. None if one of them is unknown."""
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
    """The calls that do not say what they cost; None when the tokens of one of them are unknown.

    A call that failed before any token was counted cost nothing, unless that is all there is to know.
    """
    silent = [call for call in calls if call.cost_usd is None]
    counted = [call for call in silent if call.input_tokens is not None or call.output_tokens is not None]
    answered = sum(call.error is None for call in silent if call.input_tokens is None and call.output_tokens is None)
    if not answered and (counted or len(silent) < len(calls)):
        return [_call(call.model, call.provider, call.input_tokens, call.output_tokens, call.cached_tokens) for call in counted]
    return _as_one(turn, calls) if len(silent) == len(calls) and not counted else None


def _as_one(turn: Turn, calls: list[LlmCall]) -> list[_Call] | None:
    """Where only the turn as a whole has token counts: those as one call, if all calls went to one model."""
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
    """USD by the bundled table; None when it is not installed or has no such model of this provider."""
    model, provider = call.model, call.provider
    if not model or len(model) > _LONGEST_NAME or len(provider or "") > _LONGEST_NAME:
        return None
    provider = _PROVIDERS.get(provider or "", provider) or None
    return table_cost(
        model, Tokens(call.input_tokens, call.output_tokens, call.cached_tokens), start or _LATEST, provider=provider
    )
