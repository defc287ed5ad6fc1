"""Mappings from other tools' parameter names and units to otel-agenteval's parameters.

``Param`` in a parameter's annotation adds names that work for every catalog and tool. The data files in :mod:`.names` define names
for one catalog or tool. They map each name to an otel-agenteval name, to :class:`Converted`, or to :class:`Unsupported`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple


class Converted(NamedTuple):
    """Another tool's parameter whose value must be converted."""

    ours: str
    """Equivalent parameters in otel-agenteval, as text for the documentation."""
    convert: Callable[[Any], Mapping[str, Any]]
    """Function that returns otel-agenteval parameters for a value. Raises TypeError or ValueError if the value is invalid."""


class Unsupported(NamedTuple):
    """Another tool's parameter that has no equivalent in otel-agenteval."""

    how: str
    """Advice for users: an alternative to the parameter, or the reason to omit it."""


Spelling = str | Converted | Unsupported
"""Meaning of another tool's parameter name. A string is the equivalent otel-agenteval name."""
Spellings = Mapping[str, Spelling]


def meaning_of(spelling: Spelling) -> str:
    if isinstance(spelling, Unsupported):
        return f"not supported: {spelling.how}"
    return spelling.ours if isinstance(spelling, Converted) else spelling
