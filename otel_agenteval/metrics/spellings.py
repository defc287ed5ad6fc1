"""Parameter names and units of other tools, and how they map to our parameters.

``Param`` in a parameter's annotation adds names that work for every catalog and tool. The data files in :mod:`.names` define the
names that one catalog or tool uses. They map each name to our name, to :class:`Converted`, or to :class:`Unsupported`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple


class Converted(NamedTuple):
    """A tool's parameter whose value must be converted."""

    ours: str
    """Our parameters that result from the conversion, for the documentation."""
    convert: Callable[[Any], Mapping[str, Any]]
    """Function that converts the tool's value to our parameters. Raises TypeError or ValueError for an invalid value."""


class Unsupported(NamedTuple):
    """A tool's parameter without an equivalent here."""

    how: str
    """Alternative to the parameter, for users."""


Spelling = str | Converted | Unsupported
"""Meaning of a parameter name in another tool. A string is our name for the same parameter."""
Spellings = Mapping[str, Spelling]


def meaning_of(spelling: Spelling) -> str:
    if isinstance(spelling, Unsupported):
        return f"not supported: {spelling.how}"
    return spelling.ours if isinstance(spelling, Converted) else spelling
