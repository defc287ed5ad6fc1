"""List prices of model calls, from the table of genai-prices (extra ``[cost]``). Nothing is fetched.

The table takes a third of a millisecond to price one call, and every model call of every turn is priced, often on the agent's thread.
Nearly all of its prices are fixed rates per token, some with steps: from so many tokens of input on, all tokens cost more. Those rates are
found once, by asking the table, and applied here. The table itself is asked only where a price is made otherwise.
"""

from __future__ import annotations

import datetime
import functools
import importlib.metadata
from bisect import bisect_left
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from ..core.extras import require
from .errors import MissingExtra

_UNKNOWN = (LookupError, ValueError, ArithmeticError)
"""Raised for an unknown model or provider, and for prices that a usage does not fit."""
_TRIED = 1_000_000
_ENDLESS = 1_000_000_000
"""Tokens that no call has."""


class Tokens(NamedTuple):
    """Tokens that a call used."""

    input: int
    output: int
    cached: int = 0
    """Of the input."""


class _Rates(NamedTuple):
    """USD per token."""

    fresh: Decimal
    output: Decimal
    cached: Decimal

    def times(self, tokens: Tokens) -> Decimal:
        return self.fresh * (tokens.input - tokens.cached) + self.cached * tokens.cached + self.output * tokens.output


@functools.cache
def table() -> Any:
    """The package with the prices, or None without it."""
    try:
        return require("genai_prices", feature="prices of models", extra="cost")
    except MissingExtra:
        return None


@functools.cache
def table_name() -> str:
    """What prices from it are called, with the version."""
    return f"genai-prices {importlib.metadata.version('genai-prices')}"


def table_cost(
    model: str, tokens: Tokens, at: datetime.datetime, *, provider: str | None = None, base_url: str | None = None
) -> float | None:
    """USD; None without the package, and where it has no such model.

    Args:
        model: as the server calls it.
        tokens: those that the call used.
        at: when it was made; prices change with time.
        provider: the model's provider, as the table calls it.
        base_url: where it was asked, in place of a provider.
    """
    prices = table()
    if prices is None:
        return None
    found = _model(model, provider, base_url)
    if found is None:
        return None
    rates = None if tokens.cached > tokens.input else _rates(found.get_prices(at), tokens.input)
    if rates is not None:
        return float(rates.times(tokens))
    try:
        asked = prices.calc_price(
            _usage(tokens), model, provider_id=provider, provider_api_url=base_url, genai_request_timestamp=at
        )
    except _UNKNOWN:
        return None
    return float(asked.total_price)


def _usage(tokens: Tokens) -> Any:
    return table().Usage(input_tokens=tokens.input, output_tokens=tokens.output, cache_read_tokens=tokens.cached or None)


@functools.lru_cache(maxsize=4_096)
def _model(model: str, provider: str | None, base_url: str | None) -> Any:
    """A model of the table."""
    try:
        return table().calc_price(_usage(Tokens(0, 0)), model, provider_id=provider, provider_api_url=base_url).model
    except _UNKNOWN:
        return None


_RATES: dict[tuple[int, int], tuple[Any, _Rates | None]] = {}
"""By the id of a price of the table, which is kept with its rates, and the step; there are no more than the table has."""
_STEPS: dict[int, tuple[Any, tuple[int, ...]]] = {}
"""By the id of a price: up to how many tokens of input each of its steps but the last goes."""


def _rates(price: Any, given: int) -> _Rates | None:
    """The rates per token of a price for a call with so much input; None if it is not made of fixed rates."""
    steps = _STEPS.get(id(price))
    if steps is None:
        _STEPS[id(price)] = steps = price, _steps(price)
    step = bisect_left(steps[1], given)
    found = _RATES.get((id(price), step))
    if found is None:
        try:
            found = price, _tried(price, (0, *steps[1], _ENDLESS)[step : step + 2])
        except _UNKNOWN:
            found = price, None
        _RATES[id(price), step] = found
    return found[1]


def _steps(price: Any) -> tuple[int, ...]:
    parts = [part for part in vars(price).values() if part is not None and not isinstance(part, Decimal)]
    return tuple(sorted({int(tier.start) for part in parts for tier in getattr(part, "tiers", ())}))


def _tried(price: Any, step: Sequence[int]) -> _Rates | None:
    """The rates from more than the first to the second number of tokens of input, if every answer of the table agrees with them."""

    def asked(*tokens: int) -> Decimal:
        total: Decimal = price.calc_price(_usage(Tokens(*tokens)))["total_price"]
        return total

    above, upto = step
    fresh, cached = asked(upto, 0), asked(upto, 0, upto)
    rates = _Rates(fresh / upto, (asked(upto, _TRIED) - fresh) / _TRIED, cached / upto)
    low = above + 1 if above else 0
    several = (
        Tokens(low, 0),
        Tokens(low, 3 * _TRIED, low),
        Tokens(upto, 5, upto // 3),
        Tokens((low + upto) // 2, 7 * _TRIED, low // 2),
    )
    return rates if all(rates.times(tokens) == asked(*tokens) for tokens in several) else None
