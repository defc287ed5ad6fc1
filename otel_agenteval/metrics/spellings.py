"""Parameters under the names that others give them: in our own way or in camel case, and in the unit of the catalogue whose name is used.

A metric's decorator lists spellings that hold under any of its names. What holds only under the names of one catalogue or tool
(:mod:`.seeds`, :mod:`.other_tools`) is a mapping of their name to one of three things: our name, :class:`Converted`, or :class:`Refused`.
"""

from __future__ import annotations

import datetime
import json
import math
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ..core.errors import ConfigError

if TYPE_CHECKING:
    from .registry import Metric


class Converted(NamedTuple):
    """A parameter whose value is written in another way than ours."""

    ours: str
    """What it becomes, for the documentation."""
    convert: Callable[[Any], Mapping[str, Any]]
    """Their value → our parameters; raises TypeError or ValueError, with what is allowed, for a value that cannot be meant."""


class Refused(NamedTuple):
    """A parameter that has no meaning here."""

    how: str
    """What to do in its place."""


Spelling = str | Converted | Refused
"""What a name of theirs stands for; a text is our name for the same."""
Spellings = Mapping[str, Spelling]

_PASS_MARKS = frozenset(("pass_threshold", "passing_threshold"))
"""Names of a pass mark that mean ``threshold`` everywhere."""


def translated(metric: Metric, params: Mapping[str, Any], theirs: Spellings | None = None) -> dict[str, Any]:
    """Parameters under our names and in our units. A name that is not known stays as it is.

    Args:
        metric: whose parameters they are.
        params: as they were given.
        theirs: spellings that hold under the name by which the metric was called.

    Raises:
        ConfigError: a parameter that is given twice, one that has no meaning here, or a value that cannot be meant.
    """
    found: dict[str, Any] = {}
    given_as: dict[str, str] = {}
    for key, value in params.items():
        for ours, converted in _ours(metric, key, value, theirs or {}).items():
            if ours in found:
                raise ConfigError(f"{metric.name}.{key}: {ours!r} is given twice, as {given_as[ours]!r} and as {key!r}")
            found[ours], given_as[ours] = converted, key
    return found


def _ours(metric: Metric, key: str, value: Any, theirs: Spellings) -> Mapping[str, Any]:
    spelling = _spelling(metric, key, theirs)
    if isinstance(spelling, Refused):
        raise ConfigError(f"{metric.name}.{key}: not a parameter here: {spelling.how}")
    if isinstance(spelling, Converted):
        try:
            return spelling.convert(value)
        except (TypeError, ValueError) as error:
            raise ConfigError(f"{metric.name}.{key}: {value!r} is not allowed; {error}") from None
    return {spelling: value}


def _spelling(metric: Metric, key: str, theirs: Spellings) -> Spelling:
    for spelled in (key, _snake(key)):
        if spelled in theirs:
            return theirs[spelled]
        if spelled in metric.spellings:
            return metric.spellings[spelled]
        if spelled in metric.parameters:
            return spelled
    if _snake(key) in _PASS_MARKS and "threshold" in metric.parameters:
        return _spelling(metric, "threshold", theirs)
    return key


def _snake(key: str) -> str:
    """``maxRank``, ``MaxRank`` and ``max-rank`` as ``max_rank``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key).replace("-", "_").lower()


def written(spelling: Spelling) -> str:
    """What a name of theirs stands for, in words."""
    if isinstance(spelling, Refused):
        return f"refused: {spelling.how}"
    return spelling.ours if isinstance(spelling, Converted) else spelling


# --- how values are read ---------------------------------------------------------------------------------------------


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError("it must be a number")
    return value


def percent(ours: str) -> Converted:
    """A pass mark of 0 to 100. One below 1 cannot be meant on that scale, and is read as a share; 1 could be either."""

    def convert(value: Any) -> dict[str, Any]:
        if value is None:
            return {ours: None}
        number = _number(value)
        if number == 1 or not 0 <= number <= 100:
            raise ValueError("scores are 0 to 100 under this name: write 70 for 0.70, and 100 for all")
        return {ours: number if number < 1 else number / 100}

    return Converted(f"{ours} (70 is 0.70)", convert)


_DURATION = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>ms|s|m|min|h)")
_CLOCK = re.compile(r"(?:(?P<d>\d+)\.)?(?P<h>\d{1,2}):(?P<m>\d{2})(?::(?P<s>\d{2}(?:\.\d+)?))?")
_SECONDS_OF = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def _seconds(value: Any) -> float:
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if isinstance(value, str):
        if found := _DURATION.fullmatch(value.strip()):
            return float(found["number"]) * _SECONDS_OF[found["unit"]]
        if found := _CLOCK.fullmatch(value.strip()):
            days, hours, minutes, seconds = (float(found[part] or 0) for part in "dhms")
            return ((days * 24 + hours) * 60 + minutes) * 60 + seconds
        raise ValueError("it must be a number of seconds, 00:00:30 or 500ms")
    return _number(value)


def seconds(ours: str) -> Converted:
    """A duration: seconds as a number, a .NET ``TimeSpan`` (``00:00:30``), ``30s`` or ``500ms``, or a ``timedelta``."""
    return Converted(f"{ours} (seconds, or `00:00:30`)", lambda value: {ours: None if value is None else _seconds(value)})


def renamed(ours: str, keys: Mapping[str, str]) -> Converted:
    """An object, or a list of objects, with keys of theirs; other keys are taken in snake case."""

    def rename(value: Any) -> Any:
        if isinstance(value, list):
            return [rename(item) for item in value]
        if not isinstance(value, Mapping):
            return value
        return {keys.get(_snake(str(key)), _snake(str(key))): item for key, item in value.items()}

    return Converted(f"{ours}, with keys in camel case too", lambda value: {ours: rename(value)})


_KEPT = frozenset(("has_attributes", "has_attribute_keys"))
"""Conditions of a query whose values are the spans' own names."""


def _query(query: Any) -> Any:
    if isinstance(query, list):
        return [_query(one) for one in query]
    if not isinstance(query, Mapping):
        return query
    found: dict[str, Any] = {}
    for key, value in query.items():
        name = _snake(str(key)).rstrip("_")
        if name in ("min_duration", "max_duration"):
            found[f"{name}_s"] = _seconds(value)
        else:
            found[name] = value if name in _KEPT else _query(value)
    return found


def span_query(ours: str) -> Converted:
    """A query for spans with keys in camel case, or with the underscore of ``not_``, and durations as :func:`seconds` reads them."""
    return Converted(f"{ours}, with `min_duration`, `not_` and keys in camel case too", lambda value: {ours: _query(value)})


def lowered(ours: str) -> Converted:
    """A constant whose first letter they write large (``RougeL``)."""
    return Converted(
        f"{ours} (`RougeL` is `rougeL`)", lambda value: {ours: value[:1].lower() + value[1:] if isinstance(value, str) else value}
    )


def negated(ours: str) -> Converted:
    """A flag that says the opposite of ours."""

    def convert(value: Any) -> dict[str, Any]:
        if not isinstance(value, bool):
            raise TypeError("it must be true or false")
        return {ours: not value}

    return Converted(f"{ours}, the other way round", convert)


def only(allowed: Any, how: str, sets: Mapping[str, Any] | None = None) -> Converted:
    """A parameter with one value that is what we do anyway, or what ``sets`` does; any other is refused with ``how``."""

    def convert(value: Any) -> Mapping[str, Any]:
        if value != allowed or isinstance(value, bool) is not isinstance(allowed, bool):
            raise ValueError(how)
        return sets or {}

    shown = ", ".join(f"{name}={given!r}" for name, given in (sets or {}).items())
    return Converted(f"{shown or 'nothing'}; only `{json.dumps(allowed)}`: {how}", convert)


def flag(sets: Mapping[str, Any]) -> Converted:
    """A flag that, when true, sets parameters of ours."""

    def convert(value: Any) -> Mapping[str, Any]:
        if not isinstance(value, bool):
            raise TypeError("it must be true or false")
        return sets if value else {}

    return Converted(", ".join(f"`{name}={given!r}`" for name, given in sets.items()) + " when true", convert)
