"""Find the reference data of a metric whose parameter isn't set."""

from __future__ import annotations

from typing import Any

from ...core.turn import Turn


def reference(turn: Turn, given: Any, *names: str) -> Any:
    """Return the parameter, or if None, the turn's first reference among ``names``.

    A set parameter always takes precedence, even if empty: an empty list of expected tools is meaningful. Returns None if there
    is neither.
    """
    if given is not None:
        return given
    references = turn.references
    return next((references[name] for name in names if references.get(name) is not None), None)


def truth_of(turn: Turn) -> Any:
    """Return the turn's ground truth, or None.

    An empty text, list or object doesn't count as a ground truth, but ``0`` and ``False`` do.
    """
    known = turn.ground_truth
    return known if known or isinstance(known, (int, float)) else None
