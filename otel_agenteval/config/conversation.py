"""Sections ``conversation`` and ``feedback``: metrics over whole conversations, and what users say about turns."""

from __future__ import annotations

from typing import Annotated

from .metrics import MetricEntry
from .section import Section
from .types import Before, Count, Duration, DurationOrZero, Kind, Share, Size, name_list


class ConversationOptions(Section):
    """Metrics over all turns with one conversation id, evaluated when the conversation ends. No turn is held while ``metrics`` is empty."""

    metrics: Annotated[tuple[MetricEntry, ...], Kind("list of metrics, see [below](#metrics)")] = ()
    """Metrics over the conversation. They receive all its messages, and the turns before the last one as history."""
    idle_timeout: Duration = 1800.0
    """Seconds without a new turn after which a conversation ends. A later turn resumes it."""
    max_open: Count = 10_000
    """Maximum number of open conversations. Beyond it, the one that was idle longest ends."""
    max_turns: Count = 200
    """Maximum turns of one conversation. Beyond it, the oldest are dropped."""
    max_bytes: Size = 64 * 2**20
    """Maximum bytes of all conversations."""


class FeedbackOptions(Section):
    """User feedback on turns (thumbs, ratings, edited answers), which becomes the metric ``code_user_feedback``."""

    threshold: Share = 0.5
    """Score from 0 to 1 from which a turn passes."""
    attributes: Annotated[tuple[str, ...], Before(name_list("span attributes")), Kind("list of span attributes")] = ()
    """Span attributes with feedback. Feedback in events and log records needs no option."""
    wait: DurationOrZero = 60.0
    """Seconds that feedback waits for its turn. After that, the score is exported with the ids of the feedback."""
