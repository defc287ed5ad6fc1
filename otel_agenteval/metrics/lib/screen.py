"""Screen a turn's answer once for all metrics."""

from __future__ import annotations

from ...core.turn import Turn
from ...detectors.screen import Look

_KEPT = "look"


def look_at_output(turn: Turn) -> Look:
    """Return the screen of a turn's answer, which all detectors share.

    An unknown answer counts as an empty text.
    """
    output = turn.output or ""
    kept: Look | None = turn.shared.get(_KEPT)
    if kept is None or kept.whole is not output:
        kept = turn.shared[_KEPT] = Look(output)
    return kept
