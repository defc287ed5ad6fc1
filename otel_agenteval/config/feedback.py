"""Section ``feedback``: what users say of turns."""

from __future__ import annotations

from typing import Annotated

from .section import Section
from .types import Before, DurationOrZero, Kind, Share, name_list


class FeedbackOptions(Section):
    """How what users say of turns counts: thumbs, ratings, edited answers. It is the metric ``code_user_feedback``."""

    threshold: Share = 0.5
    """From which score on, of 0 to 1, a turn passes."""
    attributes: Annotated[tuple[str, ...], Before(name_list("span attributes")), Kind("list of span attributes")] = ()
    """Names of span attributes that are feedback. Events and log records are known by their names; no attribute is read that is not named here."""
    wait: DurationOrZero = 60.0
    """Seconds that feedback waits for a turn that is not known yet. Then it leaves with the ids that it came with."""
