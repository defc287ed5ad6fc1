"""Where a metric finds what it compares with, when its configuration does not say so."""

from __future__ import annotations

from typing import Any

from ...core.turn import Turn


def reference(turn: Turn, given: Any, *names: str) -> Any:
    """The parameter as given, else the turn's first reference of one of ``names``, else None.

    The parameter is nearest to the metric and wins, also when it is empty: an empty list of expected tools is a statement.
    """
    if given is not None:
        return given
    references = turn.references
    return next((references[name] for name in names if references.get(name) is not None), None)


def truth_of(turn: Turn) -> Any:
    """The turn's ground truth, or None; an empty text, list or object is not a ground truth, ``0`` and ``False`` are."""
    known = turn.ground_truth
    return known if known or isinstance(known, (int, float)) else None
