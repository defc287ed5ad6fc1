"""Write ``otel_agenteval/core/price_table.json``: the prices of the installed genai-prices as rates per token.

python scripts/price_table.py            checks whether the file matches the installed version
python scripts/price_table.py --write    writes the file
"""

from __future__ import annotations

import argparse
import datetime
import sys
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path
from typing import Any

import orjson

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from otel_agenteval.core import prices as asked  # noqa: E402 - found only now
from otel_agenteval.core.price_table import Tokens  # noqa: E402

FILE = ROOT / "otel_agenteval" / "core" / "price_table.json"
_KINDS = {"ClauseEquals": "is", "ClauseContains": "in", "ClauseRegex": "re", "ClauseStartsWith": "from", "ClauseEndsWith": "to"}
_MUCH = 100_000_000


def table() -> bytes:
    """Return the content of the file."""
    from genai_prices import data_snapshot

    providers = data_snapshot.get_snapshot().providers
    content = {"version": version("genai-prices"), "providers": [_provider(one) for one in providers]}
    return orjson.dumps(content).replace(b'{"id":', b'\n{"id":') + b"\n"


def _provider(provider: Any) -> dict[str, Any]:
    written = {
        "id": provider.id,
        "api": provider.api_pattern,
        "match": _clause(provider.provider_match),
        "models_match": _clause(provider.model_match),
        "others": provider.fallback_model_providers,
        "models": [(_clause(model.match), [_prices(one) for one in _conditional(model)]) for model in provider.models],
    }
    return {name: value for name, value in written.items() if value is not None}


def _clause(clause: Any) -> list[Any] | None:
    if clause is None:
        return None
    kind = type(clause).__name__
    if kind in ("ClauseOr", "ClauseAnd"):
        return ["or", *map(_clause, clause.or_)] if kind == "ClauseOr" else ["and", *map(_clause, clause.and_)]
    (wanted,) = vars(clause).values()
    return [_KINDS[kind], wanted if kind == "ClauseRegex" else wanted.lower()]


def _conditional(model: Any) -> list[tuple[Any, Any]]:
    """Return (condition, prices) pairs. The condition is None if the prices always apply."""
    return [(one.constraint, one.prices) for one in model.prices] if isinstance(model.prices, list) else [(None, model.prices)]


def _prices(conditional: tuple[Any, Any]) -> dict[str, Any]:
    constraint, price = conditional
    written: dict[str, Any] = {}
    if type(constraint).__name__ == "StartDateConstraint":
        written["since"] = constraint.start_date.isoformat()
    elif constraint is not None:
        written["daily"] = [_utc(constraint.start_time), _utc(constraint.end_time)]
    steps = asked.steps_of(price)
    written["steps"] = [[upto, *_rates(price, upto or _MUCH)] for upto in (*steps, None)]
    return written


def _utc(time: datetime.time) -> str:
    if time.tzinfo is None:
        return time.isoformat()
    return datetime.datetime.combine(datetime.date(1970, 1, 1), time).astimezone(datetime.timezone.utc).time().isoformat()


def _rates(price: Any, given: int) -> list[str | None]:
    rates = asked.rates_of(price, given)
    if rates is None:
        raise ValueError(f"{price}: unsupported price, must consist of rates per token")
    cached = None if _takes_any_cached(price) else rates.cached
    written = None if rates.written == rates.fresh else rates.written
    return [None if one is None else _plain(one) for one in (rates.fresh, rates.output, cached, rates.call, written)]


def _plain(number: Decimal) -> str:
    return format(number.normalize(), "f") if number else "0"


def _takes_any_cached(price: Any) -> bool:
    """Return True if more cached tokens than input tokens are allowed, because cached tokens have no separate price."""
    try:
        price.calc_price(asked.usage_of(Tokens(1, 0, 2)))
    except ValueError:
        return False
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="write the file")
    options = parser.parse_args()
    made = table()
    if options.write:
        FILE.write_bytes(made)
        print(f"{FILE.relative_to(ROOT)}: {len(made):,} bytes")
        return 0
    same = made == FILE.read_bytes()
    print("the file matches the installed genai-prices" if same else "the installed genai-prices differs; write it with --write")
    return int(not same)


if __name__ == "__main__":
    sys.exit(main())
