"""Section ``conversation``: metrics over whole conversations."""

from __future__ import annotations

from typing import Annotated

from .metrics import MetricEntry
from .section import Section
from .types import Count, Duration, Kind, Size


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
