"""Bundled list prices of models, as rates per token, copied from one version of genai-prices.

genai-prices itself loads all models' prices as Python objects, and an HTTP client for updates. An application's garbage collector
would then visit tens of thousands of objects, although an agent uses one or two models. When a model first appears, this module
reads the model's prices from ``price_table.json``, and keeps only these prices in memory. ``scripts/price_table.py`` writes the
file.

Models and providers are matched by the rules of genai-prices, in the same order.
"""

from __future__ import annotations

import datetime
import functools
import re
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import orjson

_FILE = Path(__file__).with_name("price_table.json")
_COMPACT_DATE = re.compile(r"-(20\d{2})(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])(?=-|:|$)")


class Tokens(NamedTuple):
    input: int
    output: int
    cached: int = 0
    """Tokens read from a cache, which are included in ``input``."""
    written: int = 0
    """Tokens written to a cache, which are included in ``input``."""


class Rates(NamedTuple):
    """Prices in USD per token."""

    fresh: Decimal
    output: Decimal
    cached: Decimal | None
    """Rate for cached tokens, or None if cached tokens cost the same as other input tokens."""
    call: Decimal = Decimal(0)
    """Price per call in USD, in addition to the token prices."""
    written: Decimal | None = None
    """Rate for tokens written to a cache, or None if these tokens cost the same as other input tokens."""

    def times(self, tokens: Tokens) -> Decimal:
        total = self.call + self.fresh * tokens.input + self.output * tokens.output
        if tokens.cached and self.cached is not None:
            total += (self.cached - self.fresh) * tokens.cached
        if tokens.written and self.written is not None:
            total += (self.written - self.fresh) * tokens.written
        return total


class Prices(NamedTuple):
    """Prices of a model, possibly valid only from a date on or at certain hours. They can depend on the number of input tokens."""

    since: datetime.date | None
    daily: tuple[datetime.time, datetime.time] | None
    """Daily hours (UTC) in which the prices apply, or None if the prices apply all day."""
    steps: tuple[tuple[int | None, Rates], ...]
    """Pairs (maximum number of input tokens, rates). The last pair's maximum is None (unlimited)."""

    def hold_at(self, at: datetime.datetime) -> bool:
        if self.since is not None and at.date() < self.since:
            return False
        if self.daily is None:
            return True
        start, end = self.daily
        time = at.time()
        return start <= time < end if start <= end else time >= start or time < end


def cost(
    model: str, tokens: Tokens, at: datetime.datetime, *, provider: str | None = None, base_url: str | None = None
) -> Decimal | None:
    """Return a call's cost in USD, or None if the cost can't be computed. See :func:`.prices.table_cost`."""
    found = _prices(model, provider, base_url)
    if found is None:
        return None
    prices = found[0]
    if len(found) > 1:
        utc = at if at.tzinfo is None else at.astimezone(datetime.timezone.utc)
        prices = next((one for one in reversed(found) if one.hold_at(utc)), prices)
    rates = prices.steps[0][1]
    if len(prices.steps) > 1:
        rates = next(rates for upto, rates in prices.steps if upto is None or tokens.input <= upto)
    if rates.cached is not None and tokens.cached + tokens.written > tokens.input:
        return None
    return rates.times(tokens)


@functools.cache
def source() -> tuple[str, tuple[int, ...]]:
    """Return the table's name, such as ``genai-prices 1.2.3``, and its version, such as ``(1, 2, 3)``."""
    version: str = _table()["version"]
    return f"genai-prices {version}", numbers(version)


def numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


@functools.lru_cache(maxsize=256)
def knows_provider(name: str) -> bool:
    return _by_name(_table()["providers"], name) is not None


def _table() -> dict[str, Any]:
    """Read the table file. The table isn't cached, because callers cache their results."""
    table: dict[str, Any] = orjson.loads(_FILE.read_bytes())
    return table


@functools.lru_cache(maxsize=4_096)
def _prices(model: str, provider: str | None, base_url: str | None) -> tuple[Prices, ...] | None:
    """Return a model's prices, or None for an unknown model. If several prices apply at the same time, the last price counts."""
    providers = _table()["providers"]
    name = model.lower()
    if provider is not None and provider.lower() == "litellm" and "/" in name:
        own, rest = name.split("/", 1)
        if own and _by_name(providers, own) is not None:
            provider, name = own, rest
    served = _provider(providers, name, provider, base_url)
    if served is None:
        return None
    found = _model(providers, served, name)
    if found is None and (dated := _COMPACT_DATE.sub(_with_dashes, name)) != name:
        found = _model(providers, served, dated)
    return None if found is None else tuple(_prices_from(one) for one in found)


def _provider(providers: list[Any], model: str, name: str | None, base_url: str | None) -> Any:
    if name is not None:
        found = _by_name(providers, name)
        if found is not None or name.lower() != "litellm":
            return found
    if base_url is not None:
        return next((one for one in providers if re.match(one["api"], base_url)), None)
    return next((one for one in providers if one.get("models_match") and _matches(one["models_match"], model)), None)


def _by_name(providers: list[Any], name: str) -> Any:
    name = name.lower().strip()
    exact = next((one for one in providers if one["id"] == name), None)
    if exact is not None:
        return exact
    return next((one for one in providers if one.get("match") and _matches(one["match"], name)), None)


def _model(providers: list[Any], served: Any, name: str) -> Any:
    others = [next((one for one in providers if one["id"] == other), None) for other in served.get("others", ())]
    for provider in (served, *others):
        for match, prices in provider["models"] if provider is not None else ():
            if _matches(match, name):
                return prices
    return None


def _with_dashes(found: re.Match[str]) -> str:
    year, month, day = found.groups()
    try:
        datetime.date(int(year), int(month), int(day))
    except ValueError:
        return found[0]
    return f"-{year}-{month}-{day}"


def _matches(clause: list[Any], text: str) -> bool:
    """Return True if the lower-case ``text`` matches ``clause``. For example, ``["from", "gpt-5"]`` matches ``gpt-5-mini``."""
    kind, *parts = clause
    if kind == "or":
        return any(_matches(part, text) for part in parts)
    if kind == "and":
        return all(_matches(part, text) for part in parts)
    (wanted,) = parts
    if kind == "is":
        return bool(text == wanted)
    if kind == "in":
        return wanted in text
    if kind == "re":
        return re.search(wanted, text) is not None
    return text.startswith(wanted) if kind == "from" else text.endswith(wanted)


def _prices_from(written: dict[str, Any]) -> Prices:
    since, daily = written.get("since"), written.get("daily")

    def rate(text: str | None) -> Decimal | None:
        return None if text is None else Decimal(text)

    return Prices(
        None if since is None else datetime.date.fromisoformat(since),
        None if daily is None else (datetime.time.fromisoformat(daily[0]), datetime.time.fromisoformat(daily[1])),
        tuple(
            (upto, Rates(Decimal(fresh), Decimal(output), rate(cached), Decimal(call), rate(to_cache)))
            for upto, fresh, output, cached, call, to_cache in written["steps"]
        ),
    )
