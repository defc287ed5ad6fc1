"""Other spellings of parameters: camel case, and names and units of other tools.

A metric's decorator lists spellings that work under any of its names. Spellings under the names of one catalog or tool
(:mod:`.names`) map their name to our name, to :class:`Converted`, or to :class:`Unsupported`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from ..core.errors import ConfigError
from ..core.forms import snake_case


class Converted(NamedTuple):
    """Parameter whose value has another form here."""

    ours: str
    """Resulting parameters, for the documentation."""
    convert: Callable[[Any], Mapping[str, Any]]
    """Conversion from their value to our parameters. Raises TypeError or ValueError for an invalid value."""


class Unsupported(NamedTuple):
    """Parameter without an equivalent here."""

    how: str
    """Alternative to the parameter."""


Spelling = str | Converted | Unsupported
"""Meaning of a parameter name. A text is our name for the same parameter."""
Spellings = Mapping[str, Spelling]

_PASS_MARKS = frozenset(("pass_threshold", "passing_threshold"))
"""Names that mean ``threshold`` everywhere."""


class HasParameters(Protocol):
    """Metric whose parameters are given."""

    @property
    def name(self) -> str: ...

    @property
    def parameters(self) -> Mapping[str, object]: ...

    @property
    def spellings(self) -> Mapping[str, str]: ...


def translated(metric: HasParameters, params: Mapping[str, Any], theirs: Spellings | None = None) -> dict[str, Any]:
    """Return parameters under our names and in our units. An unknown name is unchanged.

    ``theirs`` has the spellings under the name by which the metric was called.

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


def _ours(metric: HasParameters, key: str, value: Any, theirs: Spellings) -> Mapping[str, Any]:
    spelling = _spelling(metric, key, theirs)
    if isinstance(spelling, Unsupported):
        raise ConfigError(f"{metric.name}.{key}: not supported. {spelling.how}")
    if isinstance(spelling, Converted):
        try:
            return spelling.convert(value)
        except (TypeError, ValueError) as error:
            problem, separator, fix = str(error).partition(". ")
            raise ConfigError(f"{metric.name}.{key}: {problem}, got {value!r}{separator}{fix}") from None
    return {spelling: value}


def _spelling(metric: HasParameters, key: str, theirs: Spellings) -> Spelling:
    for spelled in (key, snake_case(key)):
        if spelled in theirs:
            return theirs[spelled]
        if spelled in metric.spellings:
            return metric.spellings[spelled]
        if spelled in metric.parameters:
            return spelled
    if snake_case(key) in _PASS_MARKS and "threshold" in metric.parameters:
        return _spelling(metric, "threshold", theirs)
    return key


def meaning_of(spelling: Spelling) -> str:
    """Return the meaning of a parameter name in words."""
    if isinstance(spelling, Unsupported):
        return f"not supported: {spelling.how}"
    return spelling.ours if isinstance(spelling, Converted) else spelling
