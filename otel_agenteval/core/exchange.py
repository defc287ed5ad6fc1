"""What a judge was asked, word by word."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Exchange:
    """One question to a judge as it was sent, and what came back. Both are content."""

    stage: str
    """What was asked for, in the metric's words."""
    model: str
    question: str
    """The text of the last message; media are not in it."""
    reply: str | None
    """As the model wrote it; None where nothing came."""
