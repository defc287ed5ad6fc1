"""Section ``feedback``: user feedback on turns."""

from __future__ import annotations

from typing import Annotated

from .section import Section
from .types import Before, DurationOrZero, Kind, Share, name_list


class FeedbackOptions(Section):
    """User feedback on turns (thumbs, ratings, edited answers), which becomes the metric ``code_user_feedback``."""

    threshold: Share = 0.5
    """Score from 0 to 1 from which a turn passes."""
    attributes: Annotated[tuple[str, ...], Before(name_list("span attributes")), Kind("list of span attributes")] = ()
    """Span attributes with feedback. Feedback in events and log records needs no option."""
    wait: DurationOrZero = 60.0
    """Seconds that feedback waits for its turn. After that, the score is exported with the ids of the feedback."""
