"""Other spellings of parameters: camel case, and names and units of other tools.

A metric's decorator lists spellings that work under any of its names. Spellings under the names of one catalog or tool
(:mod:`.seeds`, :mod:`.other_tools`) map their name to our name, to :class:`Converted`, or to :class:`Refused`.
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
    """Parameter whose value has another form here."""

    ours: str
    """Resulting parameters, for the documentation."""
    convert: Callable[[Any], Mapping[str, Any]]
    """Conversion from their value to our parameters. Raises TypeError or ValueError for an invalid value."""


class Refused(NamedTuple):
    """Parameter without an equivalent here."""

    how: str
    """Alternative to the parameter."""


Spelling = str | Converted | Refused
"""Meaning of a parameter name. A text is our name for the same parameter."""
Spellings = Mapping[str, Spelling]

_PASS_MARKS = frozenset(("pass_threshold", "passing_threshold"))
"""Names that mean ``threshold`` everywhere."""


def translated(metric: Metric, params: Mapping[str, Any], theirs: Spellings | None = None) -> dict[str, Any]:
    """Return parameters under our names and in our units. An unknown name is unchanged.

    Args:
        metric: Metric with these parameters.
        params: Parameters as given.
        theirs: Spellings under the name by which the metric was called.

    Raises:
        ConfigError: A parameter that is set twice, has no equivalent here, or has an invalid value.
    """
    found: dict[str, Any] = {}
    given_as: dict[str, str] = {}
    for key, value in params.items():
        for ours, converted in _ours(metric, key, value, theirs or {}).items():
            if ours in found:
                raise ConfigError(f"{metric.name}.{key}: {ours!r} is set twice, as {given_as[ours]!r} and as {key!r}")
            found[ours], given_as[ours] = converted, key
    return found


def _ours(metric: Metric, key: str, value: Any, theirs: Spellings) -> Mapping[str, Any]:
    spelling = _spelling(metric, key, theirs)
    if isinstance(spelling, Refused):
        raise ConfigError(f"{metric.name}.{key}: not supported; {spelling.how}")
    if isinstance(spelling, Converted):
        try:
            return spelling.convert(value)
        except (TypeError, ValueError) as error:
            problem, separator, fix = str(error).partition("; ")
            raise ConfigError(f"{metric.name}.{key}: {problem}, got {value!r}{separator}{fix}") from None
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
    """Return ``maxRank``, ``MaxRank`` or ``max-rank`` as ``max_rank``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key).replace("-", "_").lower()


def written(spelling: Spelling) -> str:
    """Return the meaning of a parameter name in words."""
    if isinstance(spelling, Refused):
        return f"not supported: {spelling.how}"
    return spelling.ours if isinstance(spelling, Converted) else spelling


# --- conversions -------------------------------------------------------------------------------------------------------


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError("must be a number")
    return value


def percent(ours: str) -> Converted:
    """Accept a threshold from 0 to 100.

    A number below 1 is a share, and 1 is refused as ambiguous.
    """

    def convert(value: Any) -> dict[str, Any]:
        if value is None:
            return {ours: None}
        number = _number(value)
        if number == 1 or not 0 <= number <= 100:
            raise ValueError("must be from 0 to 100 under this name; example: 70 for 0.70")
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
        raise ValueError("must be a number of seconds, 00:00:30 or 500ms")
    return _number(value)


def seconds(ours: str) -> Converted:
    """Accept a duration: seconds, ``00:00:30`` (.NET ``TimeSpan``), ``30s`` or ``timedelta``."""
    return Converted(f"{ours} (seconds, or `00:00:30`)", lambda value: {ours: None if value is None else _seconds(value)})


def renamed(ours: str, keys: Mapping[str, str]) -> Converted:
    """Accept an object, or a list of objects, with the given keys or keys in camel case."""

    def rename(value: Any) -> Any:
        if isinstance(value, list):
            return [rename(item) for item in value]
        if not isinstance(value, Mapping):
            return value
        return {keys.get(_snake(str(key)), _snake(str(key))): item for key, item in value.items()}

    return Converted(f"{ours}, with keys in camel case too", lambda value: {ours: rename(value)})


_KEPT = frozenset(("has_attributes", "has_attribute_keys"))
"""Query conditions whose values contain the spans' own names."""


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
    """Accept a span query with camel-case keys, ``not_``, or durations as in :func:`seconds`."""
    return Converted(f"{ours}, with `min_duration`, `not_` and keys in camel case too", lambda value: {ours: _query(value)})


def lowered(ours: str) -> Converted:
    """Accept a constant with an upper-case first letter (``RougeL``)."""
    return Converted(
        f"{ours} (`RougeL` is `rougeL`)", lambda value: {ours: value[:1].lower() + value[1:] if isinstance(value, str) else value}
    )


def negated(ours: str) -> Converted:
    """Accept a flag with the opposite meaning."""

    def convert(value: Any) -> dict[str, Any]:
        if not isinstance(value, bool):
            raise TypeError("must be true or false")
        return {ours: not value}

    return Converted(f"{ours}, inverted", convert)


def only(allowed: Any, how: str, sets: Mapping[str, Any] | None = None) -> Converted:
    """Accept the one value that has the same effect, or the effect of ``sets``.

    Refuse any other value with ``how``.
    """

    def convert(value: Any) -> Mapping[str, Any]:
        if value != allowed or isinstance(value, bool) is not isinstance(allowed, bool):
            raise ValueError(how)
        return sets or {}

    shown = ", ".join(f"{name}={given!r}" for name, given in (sets or {}).items())
    return Converted(f"{shown or 'no effect'}, only `{json.dumps(allowed)}` is allowed ({how})", convert)


def flag(sets: Mapping[str, Any]) -> Converted:
    """Accept a flag that sets other parameters if it is true."""

    def convert(value: Any) -> Mapping[str, Any]:
        if not isinstance(value, bool):
            raise TypeError("must be true or false")
        return sets if value else {}

    return Converted(", ".join(f"`{name}={given!r}`" for name, given in sets.items()) + " if true", convert)
