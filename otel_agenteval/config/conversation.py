"""Section ``conversation``: metrics over whole conversations."""

from __future__ import annotations

from typing import Annotated

from .metrics import MetricEntry
from .section import Section
from .types import Count, Duration, Kind, Size


class ConversationOptions(Section):
    """Turns with one conversation id, evaluated as a whole when the conversation ends. Nothing is held while ``metrics`` is empty."""

    metrics: Annotated[tuple[MetricEntry, ...], Kind("list of metrics, see [below](#metrics)")] = ()
    """Metrics over the conversation: they see all its messages, and as history the turns before the last."""
    idle_timeout: Duration = 1800.0
    """Seconds without a new turn after which a conversation has ended; a later turn resumes it."""
    max_open: Count = 10_000
    """Maximum conversations held; beyond that the one that has been silent longest ends."""
    max_turns: Count = 200
    """Maximum turns held of one conversation; beyond that the oldest are dropped."""
    max_bytes: Size = 64 * 2**20
    """Maximum bytes of all conversations."""
