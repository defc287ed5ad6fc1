"""The list prices that come with this package: those of one version of genai-prices, as rates per token.

genai-prices itself keeps every price of every model as objects of its own, with an HTTP client to renew them: tens of thousands of objects
that the garbage collector of the application goes over again and again, for the one or two models that an agent uses. Here the table is a
file (``price_table.json``, made by ``scripts/price_table.py``), read when a model is first seen, of which that model's rates are kept.

Models and providers are found by the same rules, in the same order.
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
_UTC = datetime.timezone.utc


class Tokens(NamedTuple):
    """Tokens that a call used."""

    input: int
    output: int
    cached: int = 0
    """Of the input."""


class Rates(NamedTuple):
    """USD per token."""

    fresh: Decimal
    output: Decimal
    cached: Decimal | None
    """None: tokens from a cache cost what others do, however many are said to be."""
    call: Decimal = Decimal(0)
    """USD for each call, whatever its tokens."""

    def times(self, tokens: Tokens) -> Decimal:
        """USD of a call."""
        cached = 0 if self.cached is None else tokens.cached
        return self.call + self.fresh * (tokens.input - cached) + (self.cached or 0) * cached + self.output * tokens.output


class Prices(NamedTuple):
    """What a model costs during some time, by how much input a call has."""

    since: datetime.date | None
    daily: tuple[datetime.time, datetime.time] | None
    """Only between these times of the day, UTC."""
    steps: tuple[tuple[int | None, Rates], ...]
    """Up to how many tokens of input the rates hold; None for the last."""

    def hold_at(self, at: datetime.datetime) -> bool:
        """Whether these are the prices of a call at this time (UTC)."""
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
    """USD of a call; None when the table has no such model, or its counts cannot be right. For the arguments see ``prices.table_cost``."""
    found = _prices(model, provider, base_url)
    if found is None:
        return None
    utc = at if at.tzinfo is None else at.astimezone(_UTC)
    prices = next((one for one in reversed(found) if one.hold_at(utc)), found[0])
    rates = next(rates for upto, rates in prices.steps if upto is None or tokens.input <= upto)
    if rates.cached is not None and tokens.cached > tokens.input:
        return None
    return rates.times(tokens)


@functools.cache
def source() -> tuple[str, tuple[int, ...]]:
    """The name of the table, with its version, and the version as numbers."""
    version: str = _table()["version"]
    return f"genai-prices {version}", numbers(version)


def numbers(version: str) -> tuple[int, ...]:
    """The leading numbers of a version, for comparisons."""
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def _table() -> dict[str, Any]:
    """The file, read anew: models are looked up once each."""
    table: dict[str, Any] = orjson.loads(_FILE.read_bytes())
    return table


@functools.lru_cache(maxsize=4_096)
def _prices(model: str, provider: str | None, base_url: str | None) -> tuple[Prices, ...] | None:
    """A model's prices, each of which takes precedence over those before it."""
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
    return None if found is None else tuple(_read(one) for one in found)


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
    """The prices of the provider's first model of this name; else of the providers whose models it serves too."""
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
    """Whether a rule of the table is true of a lower-case text."""
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


def _read(written: dict[str, Any]) -> Prices:
    since, daily = written.get("since"), written.get("daily")
    return Prices(
        None if since is None else datetime.date.fromisoformat(since),
        None if daily is None else (datetime.time.fromisoformat(daily[0]), datetime.time.fromisoformat(daily[1])),
        tuple(
            (upto, Rates(Decimal(fresh), Decimal(output), None if cached is None else Decimal(cached), Decimal(call)))
            for upto, fresh, output, cached, call in written["steps"]
        ),
    )
