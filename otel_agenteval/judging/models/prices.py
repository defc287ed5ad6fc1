"""Cost of a model call, from configured prices or the table of list prices."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Mapping

from ...core.price_table import Tokens
from ...core.prices import table_cost, table_name
from .providers import PROVIDERS
from .providers.base import TokenUsage

Prices = Mapping[str, Mapping[str, float]]
"""Prices by model, in USD per million tokens: ``input``, ``output`` and optionally ``cached_input``."""
_MILLION = 1_000_000
_FIRST = threading.Lock()
_ASKED: set[tuple[str, str]] = set()


def cost_of(model: str, base_url: str, usage: TokenUsage, prices: Prices) -> tuple[float | None, str | None]:
    """Return the cost in USD and the price's source, or None. The table identifies a provider by its address. For other servers,
    only configured prices apply.
    """
    if usage.input_tokens is None or usage.output_tokens is None:
        return None, None
    own = _own_price(model, prices)
    if own is not None:
        cached = min(usage.cached_tokens or 0, usage.input_tokens)
        fresh = (usage.input_tokens - cached) * own["input"] + cached * own.get("cached_input", own["input"])
        return (fresh + usage.output_tokens * own["output"]) / _MILLION, "prices"
    tokens = Tokens(usage.input_tokens, usage.output_tokens, usage.cached_tokens or 0)
    now = datetime.datetime.now(datetime.timezone.utc)
    if (model, base_url) in _ASKED:
        usd = table_cost(model, tokens, now, base_url=base_url)
    else:
        with _FIRST:  # the table is slow to load and to search, so only one thread does it
            usd = table_cost(model, tokens, now, base_url=base_url)
            _ASKED.add((model, base_url))
    return (None, None) if usd is None else (usd, table_name())


def _own_price(model: str, prices: Prices) -> Mapping[str, float] | None:
    """Return a configured price. A provider's name before the model, as in ``openai/gpt-5``, may stand on one side only."""
    named = {name.partition("/")[2]: price for name, price in prices.items() if name.partition("/")[0] in PROVIDERS}
    return prices.get(model) or named.get(model) or prices.get(model.partition("/")[2])
