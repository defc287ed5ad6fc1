"""A record of one judge call: the prompt and the reply."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Exchange:
    """A judge call's prompt as it was sent, and its reply. Both are content."""

    stage: str
    """Step of the metric that made the call, in the metric's own words."""
    model: str
    question: str
    """Text of the last message, without media."""
    reply: str | None
    """The model's raw reply, or None if there was none."""
