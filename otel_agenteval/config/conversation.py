"""Section ``conversation``: metrics over whole conversations."""

from __future__ import annotations

from typing import Annotated

from .metrics import MetricEntry
from .section import Section
from .types import Count, Duration, Kind, Size


class ConversationOptions(Section):
    """Turns with one conversation id, evaluated as a whole when the conversation ends. Nothing is held while ``metrics`` is empty."""

    metrics: Annotated[tuple[MetricEntry, ...], Kind("list of metrics, see [below](#metrics)")] = ()
    """Metrics over the conversation: its messages are all that was said, its history the turns before the last."""
    idle_timeout: Duration = 1800.0
    """Seconds without a new turn after which a conversation has ended; a later turn resumes it."""
    max_open: Count = 10_000
    """Conversations held; past it the one that was silent longest ends."""
    max_turns: Count = 200
    """Turns of one conversation that are held; past it the oldest go."""
    max_bytes: Size = 64 * 2**20
    """Bytes of all conversations."""
