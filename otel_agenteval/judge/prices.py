"""What a call cost: by configured prices, else by the table of the extra [cost]; never invented."""

from __future__ import annotations

import functools
import importlib.metadata
from collections.abc import Mapping
from typing import Any

from ..errors import MissingExtra
from ..registry import require
from .providers import Usage

Prices = Mapping[str, Mapping[str, float]]
"""By model: USD per million tokens of ``input``, ``output`` and, where they differ, ``cached_input``."""
_MILLION = 1_000_000


def cost_of(model: str, base_url: str, usage: Usage, prices: Prices) -> tuple[float | None, str | None]:
    """USD, and where the price is from; (None, None) where the tokens or the price are not known.

    The table knows a provider by its address: a model at any other server costs what the configuration says, or nobody knows.
    """
    if usage.input_tokens is None or usage.output_tokens is None:
        return None, None
    own = prices.get(model)
    if own is not None:
        cached = min(usage.cached_tokens or 0, usage.input_tokens)
        fresh = (usage.input_tokens - cached) * own["input"] + cached * own.get("cached_input", own["input"])
        return (fresh + usage.output_tokens * own["output"]) / _MILLION, "prices"
    usd = _by_table(model, base_url, usage)
    return (None, None) if usd is None else (usd, _table_name())


@functools.cache
def _table() -> Any:
    try:
        return require("genai_prices", feature="prices of models", extra="cost")
    except MissingExtra:
        return None


@functools.cache
def _table_name() -> str:
    return f"genai-prices {importlib.metadata.version('genai-prices')}"


def _by_table(model: str, base_url: str, usage: Usage) -> float | None:
    table = _table()
    if table is None:
        return None
    counted = table.Usage(
        input_tokens=usage.input_tokens, output_tokens=usage.output_tokens, cache_read_tokens=usage.cached_tokens or None
    )
    try:
        return float(table.calc_price(counted, model, provider_api_url=base_url).total_price)
    except (LookupError, ValueError, ArithmeticError):  # an unknown server or model; prices that its usage does not fit
        return None
