"""Other spellings of parameters: camel case, and names and units of other tools.

A metric's decorator lists spellings that work under any of its names. Spellings under the names of one catalog or tool
(:mod:`.names`) map a parameter's name there to our name, to :class:`Converted`, or to :class:`Unsupported`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple


class Converted(NamedTuple):
    """Parameter whose value has another form here."""

    ours: str
    """Resulting parameters, for the documentation."""
    convert: Callable[[Any], Mapping[str, Any]]
    """Conversion from a value in the other tool to our parameters. Raises TypeError or ValueError for an invalid value."""


class Unsupported(NamedTuple):
    """Parameter without an equivalent here."""

    how: str
    """Alternative to the parameter."""


Spelling = str | Converted | Unsupported
"""Meaning of a parameter name. A string is our name for the same parameter."""
Spellings = Mapping[str, Spelling]


def meaning_of(spelling: Spelling) -> str:
    if isinstance(spelling, Unsupported):
        return f"not supported: {spelling.how}"
    return spelling.ours if isinstance(spelling, Converted) else spelling
