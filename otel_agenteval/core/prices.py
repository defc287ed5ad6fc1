"""List prices of model calls, calculated without network access.

The prices are from the bundled table (:mod:`.price_table`) or, if newer, from genai-prices (extra ``[cost]``). A call to
genai-prices takes 0.3 ms, often on the agent's thread. So this module derives each model's rates per token once and computes costs
itself. Some models have different rates for long inputs. If a price isn't a fixed rate, this module calls genai-prices.
"""

from __future__ import annotations

import datetime
import functools
from bisect import bisect_left
from decimal import Decimal
from typing import Any

from . import price_table
from .errors import MissingExtra
from .extras import require, version_of
from .price_table import Rates, Tokens

_UNKNOWN = (LookupError, ValueError, ArithmeticError)
"""Exceptions that genai-prices raises for an unknown model or provider, or for token counts that a price doesn't support."""
_SAMPLE = 1_000_000  # output tokens of a sample call
_ENDLESS = 1_000_000_000  # more input tokens than any call has


@functools.cache
def newer_package() -> Any:
    try:
        if price_table.numbers(version_of("genai_prices")) > price_table.source()[1]:
            return require("genai_prices", feature="prices newer than those of this package", extra="cost")
    except (ModuleNotFoundError, MissingExtra):
        pass
    return None


@functools.cache
def table_name() -> str:
    return price_table.source()[0] if newer_package() is None else f"genai-prices {version_of('genai_prices')}"


_LONGEST_NAME = 500
"""Maximum length of a model name, provider, or URL to look up. Some table patterns are slow on long text."""


def table_cost(
    model: str, tokens: Tokens, at: datetime.datetime, *, provider: str | None = None, base_url: str | None = None
) -> float | None:
    """Return a call's cost in USD at the time ``at``, or None if the price is unknown. ``base_url`` can identify the provider."""
    if max(len(model), len(provider or ""), len(base_url or "")) > _LONGEST_NAME:
        return None
    prices = newer_package()
    if prices is None:
        usd = price_table.cost(model, tokens, at, provider=provider, base_url=base_url)
        return None if usd is None else float(usd)
    found = _model(model, provider, base_url)
    if found is None:
        return None
    rates = None if tokens.cached + tokens.written > tokens.input else rates_of(found.get_prices(at), tokens.input)
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
    from genai_prices import Usage

    return Usage(
        input_tokens=tokens.input, output_tokens=tokens.output, cache_read_tokens=tokens.cached or None,
        cache_write_tokens=tokens.written or None,
    )  # fmt: skip


@functools.lru_cache(maxsize=4_096)
def _model(model: str, provider: str | None, base_url: str | None) -> Any:
    try:
        return newer_package().calc_price(usage_of(Tokens(0, 0)), model, provider_id=provider, provider_api_url=base_url).model
    except _UNKNOWN:
        return None


_DERIVED: dict[int, tuple[Any, tuple[int, ...], dict[int, Rates | None]]] = {}
"""Mapping from a price's ``id`` to a tuple: the price (which keeps the ``id`` valid), the step limits, and the rates by step."""


def rates_of(price: Any, input_tokens: int) -> Rates | None:
    """Return the rates for ``input_tokens`` in a genai-prices ``price``, or None if the rates aren't fixed."""
    derived = _DERIVED.get(id(price))
    if derived is None:
        derived = _DERIVED[id(price)] = price, steps_of(price), {}
    _, ends, rates = derived
    step = bisect_left(ends, input_tokens)
    if step not in rates:
        limits = (0, *ends, _ENDLESS)
        try:
            rates[step] = _derive_rates(price, above=limits[step], upto=limits[step + 1])
        except _UNKNOWN:
            rates[step] = None
    return rates[step]


def steps_of(price: Any) -> tuple[int, ...]:
    return tuple(sorted({int(tier.start) for rate in vars(price).values() for tier in getattr(rate, "tiers", ())}))


def _derive_rates(price: Any, above: int, upto: int) -> Rates | None:
    """Derive the rates for ``above`` to ``upto`` input tokens from sample calls. If the rates aren't fixed, return None."""

    def cost(tokens: Tokens) -> Decimal:
        return Decimal(price.calc_price(usage_of(tokens))["total_price"])

    per_call = cost(Tokens(input=0, output=0))
    fresh = (cost(Tokens(input=upto, output=0)) - per_call) / upto
    cached = (cost(Tokens(input=upto, output=0, cached=upto)) - per_call) / upto
    written = (cost(Tokens(input=upto, output=0, written=upto)) - per_call) / upto
    output = (cost(Tokens(input=upto, output=_SAMPLE)) - cost(Tokens(input=upto, output=0))) / _SAMPLE
    rates = Rates(fresh=fresh, output=output, cached=cached, call=per_call, written=written)
    low = above + 1 if above else 0
    checks = [
        Tokens(input=low, output=0),  # the smallest input
        Tokens(input=low, output=3 * _SAMPLE, cached=low),  # long output, all input from the cache
        Tokens(input=upto, output=5, cached=upto // 3, written=upto // 2),  # the largest input, of all three kinds
        Tokens(input=(low + upto) // 2, output=7 * _SAMPLE, cached=low // 2),  # half the input
    ]
    return rates if all(rates.times(tokens) == cost(tokens) for tokens in checks) else None
