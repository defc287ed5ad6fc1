"""Convert other tools' parameter values to otel-agenteval's parameters.

In a data file, ``{kind: argument, option: value}`` means ``SPELLINGS[kind](argument, option=value)``.
"""

from __future__ import annotations

import datetime
import functools
import json
import logging
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from ...core.forms import snake_case
from ..spellings import Converted, Spelling, Unsupported


@functools.cache
def _warn_once(text: str) -> None:
    logging.getLogger("otel_agenteval").warning("%s", text)


# --- kinds that set one parameter -------------------------------------------------------------------------------------


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError("must be a number")
    return value


def _share(value: Any) -> float | None:
    """Convert a threshold from 0 to 100: 70 → 0.70. Numbers below 1 stay unchanged. 1 is ambiguous and raises ValueError."""
    if value is None:
        return None
    number = _number(value)
    if number == 1 or not 0 <= number <= 100:
        raise ValueError("must be a number above 1 and at most 100, or a share below 1. Example: 70 for 0.70")
    return number if number < 1 else number / 100


_DURATION = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>ms|s|m|min|h)")
_CLOCK = re.compile(r"(?:(?P<d>\d+)\.)?(?P<h>\d{1,2}):(?P<m>\d{2})(?::(?P<s>\d{2}(?:\.\d+)?))?")
_SECONDS_OF = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def _seconds(value: Any) -> float:
    """Convert a duration to seconds: a number, ``00:00:30`` (.NET ``TimeSpan``), ``30s``, or ``timedelta``."""
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if isinstance(value, str):
        if found := _DURATION.fullmatch(value.strip()):
            return float(found["number"]) * _SECONDS_OF[found["unit"]]
        if found := _CLOCK.fullmatch(value.strip()):
            days, hours, minutes, seconds = (float(found[part] or 0) for part in "dhms")
            return ((days * 24 + hours) * 60 + minutes) * 60 + seconds
        raise ValueError("must be a number of seconds, or a string such as 00:00:30 or 500ms")
    return _number(value)


_ATTRIBUTE_CONDITIONS = frozenset(("has_attributes", "has_attribute_keys"))
"""Query conditions that contain attribute names. Attribute names aren't converted."""


def _query(query: Any) -> Any:
    """Convert a span query: camel-case keys to snake case, ``not_`` to ``not``, and durations to seconds."""
    if isinstance(query, list):
        return [_query(one) for one in query]
    if not isinstance(query, Mapping):
        return query
    found: dict[str, Any] = {}
    for key, value in query.items():
        if (name := snake_case(str(key)).rstrip("_")) in ("min_duration", "max_duration"):
            found[f"{name}_s"] = _seconds(value)
        else:
            found[name] = value if name in _ATTRIBUTE_CONDITIONS else _query(value)
    return found


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError("must be true or false")
    return value


def _of_one(shown: str, convert: Callable[[Any], Any]) -> Callable[[str], Converted]:
    """Return a function that returns the conversion for a parameter name. In the documentation, ``shown`` follows the name."""
    return lambda ours: Converted(f"`{ours}`{shown}", lambda value: {ours: convert(value)})


percent = _of_one(" (70 becomes 0.70)", _share)


def renamed(ours: str, keys: Mapping[str, str]) -> Converted:
    """Return a conversion of an object or a list of objects that renames ``keys`` and converts other keys to snake case."""

    def rename(value: Any) -> Any:
        if isinstance(value, list):
            return [rename(item) for item in value]
        if not isinstance(value, Mapping):
            return value
        return {keys.get(snake_case(str(key)), snake_case(str(key))): item for key, item in value.items()}

    return Converted(f"`{ours}` (keys can also be in camel case)", lambda value: {ours: rename(value)})


def keyed_by(ours: str, keys: list[str]) -> Converted:
    """Return a conversion of a mapping. For a key that isn't in ``keys``, the conversion warns once that the key has no effect."""

    def convert(value: Any) -> Mapping[str, Any]:
        for key in value.keys() - keys if isinstance(value, Mapping) else ():
            _warn_once(f"{ours}: {key} has no effect, because only {', '.join(keys)} are detected")
        return {ours: value}

    return Converted(f"`{ours}` for {', '.join(keys)}", convert)


# --- kinds that set any number of parameters --------------------------------------------------------------------------


def only(allowed: Any, how: str, sets: Mapping[str, Any] | None = None) -> Converted:
    """Return a conversion of the value ``allowed`` to the parameters ``sets``. For other values, raise ValueError with ``how``."""

    def convert(value: Any) -> Mapping[str, Any]:
        if value != allowed or isinstance(value, bool) is not isinstance(allowed, bool):
            raise ValueError(f"must be {json.dumps(allowed)}. {how[:1].upper()}{how[1:]}")
        return sets or {}

    shown = ", ".join(f"{name}={given!r}" for name, given in (sets or {}).items())
    reason = f" or omitted, {how[9:]}" if how.startswith("omit it, ") else f" ({how})"
    return Converted(f"must be `{json.dumps(allowed)}`{f', which sets {shown}' if shown else ''}{reason}", convert)


def flag(sets: Mapping[str, Any], shown: str = "") -> Converted:
    shown = shown or ", ".join(f"`{name}={given!r}`" for name, given in sets.items()) + " if true"
    return Converted(shown, lambda value: sets if _flag(value) else {})


def ignored(why: str) -> Converted:

    def convert(value: Any) -> Mapping[str, Any]:
        _warn_once(why)
        return {}

    return Converted(f"no effect, {why.partition(', ')[2]}", convert)


def spread(shown: str) -> Converted:
    """Return a conversion that sets one parameter per field of an object: ``{Alpha: 0.8}`` sets ``alpha``."""

    def convert(value: Any) -> Mapping[str, Any]:
        fields = value if isinstance(value, Mapping) else getattr(value, "__dict__", None)
        if fields is None:
            raise TypeError("must be an object")
        return {snake_case(str(key)): item for key, item in fields.items()}

    return Converted(shown, convert)


# --- the kind "convert": one parameter of one tool --------------------------------------------------------------------


def _parts_shown(value: Any) -> Mapping[str, Any]:
    names = {str(getattr(part, "value", part)).lower() for part in value} if isinstance(value, (list, tuple, set)) else {""}
    if not names <= {"input", "actual_output", "actualoutput"}:
        raise ValueError("must contain only input and actual_output (all that the judge reads). Put other data into `criteria`")
    return {}


def _compared(value: Any) -> Mapping[str, Any]:
    options = {"input_parameters": "check_arguments", "output": "check_output"}
    names = [str(getattr(part, "value", part)).lower() for part in value] if isinstance(value, (list, tuple)) else [""]
    if not set(names) <= options.keys():
        raise ValueError("must be a list of input_parameters and output")
    return {options[name]: True for name in names}


def _words(value: Any) -> Mapping[str, Any]:
    if isinstance(value, Mapping) and value and value.keys() <= {"min", "max"}:
        return value
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError("must be a number of words, or an object with min, max, or both")
    return {"exact": value}


def _one_tool(value: Any) -> Mapping[str, Any]:
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, str):
        raise TypeError("must be one tool name. Use one entry per tool, and code_tool_call_count for min and max")
    return {"tool": value}


def _sequence(value: Any) -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        if value.get("mode", "in_order") != "in_order":
            how = "For an exact sequence, use code_tool_correctness with exact_match"
            raise ValueError(f"mode must be in_order, because the metric allows other calls in between. {how}")
        value = value.get("steps")
    if not isinstance(value, list) or not all(isinstance(step, str) for step in value):
        raise ValueError("must be a list of tool names")
    return {"expected": value}


def _one_argument(value: Any) -> Mapping[str, Any]:
    given = value.get("args", value.get("arguments")) if isinstance(value, Mapping) else None
    known = {"name", "args", "arguments"}
    if not isinstance(given, Mapping) or len(given) != 1 or not isinstance(value.get("name"), str) or value.keys() - known:
        raise ValueError("must be {name, args} with one argument. For several, use code_tool_correctness with check_arguments")
    ((argument, expected),) = given.items()
    return {"tool": value["name"], "argument": argument, "expected": expected}


_DIALECTS = {"postgresql": "postgres", "mariadb": "mysql", "transactsql": "tsql"}
"""Mapping of promptfoo's database names to sqlglot's dialect names."""


def _sql(value: Any) -> Mapping[str, Any]:
    names = {"databaseType": "dialect", "allowedTables": "allowed_tables", "allowedColumns": "allowed_columns"}
    if not isinstance(value, Mapping) or not value.keys() <= names.keys():
        raise ValueError("must be an object whose keys are databaseType, allowedTables, or allowedColumns (all optional)")
    if any("::" in str(name) for key in ("allowedTables", "allowedColumns") for name in value.get(key) or ()):
        raise ValueError("must contain table and column names without a prefix such as select::null::")
    if (database := str(value.get("databaseType", "")).lower()) in ("db2", "flinksql", "noql"):
        raise ValueError("databaseType must be a supported dialect. For generic SQL, omit databaseType")
    return {names[key]: _DIALECTS.get(database, database) if key == "databaseType" else item for key, item in value.items()}


def _split(value: Any) -> Any:
    return [name.strip() for name in value.split(",")] if isinstance(value, str) else value


def _window(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping) or value.keys() != {"windowSize"}:
        raise ValueError("must be {windowSize: number}")
    return {"window_size": value["windowSize"]}


def _one_text(value: Any) -> Mapping[str, Any]:
    if isinstance(value, (Mapping, list, tuple, set)):
        raise TypeError("must be a string or a number, because the output is a string")
    return {"value": [str(value)]}


def _any_mark(value: Any) -> Mapping[str, Any]:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= 1:
        raise ValueError("must be a number above 0 and at most 1. Boolean metrics ignore the threshold, so you can omit it")
    return {}


_OF_ONE_TOOL: Mapping[str, Callable[[Any], Mapping[str, Any]]] = {
    "parts_shown": _parts_shown, "compared": _compared, "words": _words, "one_tool": _one_tool, "sequence": _sequence,
    "one_argument": _one_argument, "sql": _sql, "window": _window,
    "elements": lambda value: {"required_elements": value.get("requiredElements", []) if isinstance(value, Mapping) else _split(value)},
    "listed": lambda value: {"expected_tools": _split(value)}, "whole": lambda value: {"pattern": rf"\A\s*(?:{value})\s*\z"},
    "one_text": _one_text, "any_mark": _any_mark,
}  # fmt: skip

SPELLINGS: Mapping[str, Callable[..., Spelling]] = {
    **{kind.__name__: kind for kind in (flag, ignored, keyed_by, only, renamed, spread)},
    "convert": lambda name, shown: Converted(shown, _OF_ONE_TOOL[name]),
    "joined": _of_one(
        " (for a list, every entry must be met)",
        lambda value: "\n".join(f"- {line}" for line in value) if isinstance(value, (list, tuple)) else value,
    ),
    "lowered": _of_one(
        " (`RougeL` is accepted for `rougeL`)", lambda value: value[:1].lower() + value[1:] if isinstance(value, str) else value
    ),
    "negated": _of_one(", with the opposite value", lambda value: not _flag(value)),
    "percent": percent,
    "seconds": _of_one(" (seconds, or `00:00:30`)", lambda value: None if value is None else _seconds(value)),
    "span_query": _of_one(" (also accepts `min_duration`, `not_`, and keys in camel case)", _query),
    "unsupported": Unsupported,
}
"""Functions that create a :data:`Spelling`, by their key in the data files."""
