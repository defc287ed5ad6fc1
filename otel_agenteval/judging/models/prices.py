"""What a call cost: by configured prices, else by the table of list prices; never invented."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Mapping

from ...core.price_table import Tokens
from ...core.prices import table_cost, table_name
from .providers import Usage

Prices = Mapping[str, Mapping[str, float]]
"""By model: USD per million tokens of ``input``, ``output`` and, where they differ, ``cached_input``."""
_MILLION = 1_000_000
_FIRST = threading.Lock()
_ASKED: set[tuple[str, str]] = set()
"""Models whose price was looked for, each with its server."""


def cost_of(model: str, base_url: str, usage: Usage, prices: Prices) -> tuple[float | None, str | None]:
    """USD, and where the price is from; (None, None) where the tokens or the price are not known.

    The table knows a provider by its address: a model at any other server costs what the configuration says, or its cost is unknown.
    """
    if usage.input_tokens is None or usage.output_tokens is None:
        return None, None
    own = prices.get(model)
    if own is not None:
        cached = min(usage.cached_tokens or 0, usage.input_tokens)
        fresh = (usage.input_tokens - cached) * own["input"] + cached * own.get("cached_input", own["input"])
        return (fresh + usage.output_tokens * own["output"]) / _MILLION, "prices"
    tokens = Tokens(usage.input_tokens, usage.output_tokens, usage.cached_tokens or 0)
    now = datetime.datetime.now(datetime.timezone.utc)
    if (model, base_url) in _ASKED:
        usd = table_cost(model, tokens, now, base_url=base_url)
    else:
        with _FIRST:  # the table takes long to load and to search: not every thread that has its first answer does it
            usd = table_cost(model, tokens, now, base_url=base_url)
            _ASKED.add((model, base_url))
    return (None, None) if usd is None else (usd, table_name())
