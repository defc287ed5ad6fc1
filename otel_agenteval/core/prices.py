"""List prices of model calls, from the table of genai-prices. Nothing is fetched.

The table that comes with this package (:mod:`.price_table`) is asked, unless a newer genai-prices is installed (extra ``[cost]``).
genai-prices takes a third of a millisecond to price one call, and every model call of every turn is priced, often on the agent's thread.
Its prices are rates per token, some with steps: from so many tokens of input on, all tokens cost more. Those rates are
found once, by asking the package, and applied here. The package itself is asked only where a price is made otherwise.
"""

from __future__ import annotations

import datetime
import functools
import importlib.metadata
from bisect import bisect_left
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from ..core.extras import require
from . import price_table
from .errors import MissingExtra
from .price_table import Rates, Tokens

_UNKNOWN = (LookupError, ValueError, ArithmeticError)
"""Raised for an unknown model or provider, and for prices that a usage does not fit."""
_TRIED = 1_000_000
_ENDLESS = 1_000_000_000
"""Tokens that no call has."""


@functools.cache
def newer_package() -> Any:
    """genai-prices, if what is installed is newer than the table that comes with us; else None."""
    try:
        if price_table.numbers(importlib.metadata.version("genai-prices")) > price_table.source()[1]:
            return require("genai_prices", feature="prices newer than those of this package", extra="cost")
    except (importlib.metadata.PackageNotFoundError, MissingExtra):
        pass
    return None


@functools.cache
def table_name() -> str:
    """What prices from the table are called, with the version."""
    if newer_package() is None:
        return price_table.source()[0]
    return f"genai-prices {importlib.metadata.version('genai-prices')}"


_LONGEST_NAME = 500
"""Characters of a name or address that is looked up: some patterns of the table take time for long ones."""


def table_cost(
    model: str, tokens: Tokens, at: datetime.datetime, *, provider: str | None = None, base_url: str | None = None
) -> float | None:
    """USD; None where the table has no such model, or a name is longer than any of its names.

    Args:
        model: as the server calls it.
        tokens: those that the call used.
        at: when it was made; prices change with time.
        provider: the model's provider, as the table calls it.
        base_url: where it was asked, in place of a provider.
    """
    if any(len(name) > _LONGEST_NAME for name in (model, provider or "", base_url or "")):
        return None
    prices = newer_package()
    if prices is None:
        usd = price_table.cost(model, tokens, at, provider=provider, base_url=base_url)
        return None if usd is None else float(usd)
    found = _model(model, provider, base_url)
    if found is None:
        return None
    rates = None if tokens.cached > tokens.input else rates_of(found.get_prices(at), tokens.input)
    if rates is not None:
        return float(rates.times(tokens))
    try:
        asked = prices.calc_price(
            usage_of(tokens), model, provider_id=provider, provider_api_url=base_url, genai_request_timestamp=at
        )
    except _UNKNOWN:
        return None
    return float(asked.total_price)


def usage_of(tokens: Tokens) -> Any:
    """Tokens as the package counts them."""
    from genai_prices import Usage

    return Usage(input_tokens=tokens.input, output_tokens=tokens.output, cache_read_tokens=tokens.cached or None)


@functools.lru_cache(maxsize=4_096)
def _model(model: str, provider: str | None, base_url: str | None) -> Any:
    """A model of the table."""
    try:
        return newer_package().calc_price(usage_of(Tokens(0, 0)), model, provider_id=provider, provider_api_url=base_url).model
    except _UNKNOWN:
        return None


_RATES: dict[tuple[int, int], tuple[Any, Rates | None]] = {}
"""By the id of a price of the table, which is kept with its rates, and the step; there are no more than the table has."""
_STEPS: dict[int, tuple[Any, tuple[int, ...]]] = {}
"""By the id of a price: up to how many tokens of input each of its steps but the last goes."""


def rates_of(price: Any, given: int) -> Rates | None:
    """The rates per token of a price for a call with so much input; None if it is not made of fixed rates."""
    steps = _STEPS.get(id(price))
    if steps is None:
        _STEPS[id(price)] = steps = price, steps_of(price)
    step = bisect_left(steps[1], given)
    found = _RATES.get((id(price), step))
    if found is None:
        try:
            found = price, _tried(price, (0, *steps[1], _ENDLESS)[step : step + 2])
        except _UNKNOWN:
            found = price, None
        _RATES[id(price), step] = found
    return found[1]


def steps_of(price: Any) -> tuple[int, ...]:
    """Up to how much input each step of a price but the last goes."""
    parts = [part for part in vars(price).values() if part is not None and not isinstance(part, Decimal)]
    return tuple(sorted({int(tier.start) for part in parts for tier in getattr(part, "tiers", ())}))


def _tried(price: Any, step: Sequence[int]) -> Rates | None:
    """The rates from more than the first to the second number of tokens of input, if every answer of the table agrees with them."""

    def asked(*tokens: int) -> Decimal:
        total: Decimal = price.calc_price(usage_of(Tokens(*tokens)))["total_price"]
        return total

    above, upto = step
    call = asked(0, 0)
    fresh, cached = asked(upto, 0), asked(upto, 0, upto)
    rates = Rates((fresh - call) / upto, (asked(upto, _TRIED) - fresh) / _TRIED, (cached - call) / upto, call)
    low = above + 1 if above else 0
    several = (
        Tokens(low, 0),
        Tokens(low, 3 * _TRIED, low),
        Tokens(upto, 5, upto // 3),
        Tokens((low + upto) // 2, 7 * _TRIED, low // 2),
    )
    return rates if all(rates.times(tokens) == asked(*tokens) for tokens in several) else None
