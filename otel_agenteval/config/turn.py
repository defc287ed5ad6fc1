"""Section ``turn``: when a turn closes."""

from __future__ import annotations

from .section import Section
from .types import Count, Duration, DurationOrAuto, DurationOrZero, Size


class TurnOptions(Section):
    """When a turn closes, and how much may be held until then."""

    idle_timeout: Duration = 300.0
    """Seconds without a new span after which a turn closes whose root was never seen to end."""
    max_duration: Duration = 3600.0
    """Seconds after its first span at which a turn closes whatever happens."""
    decision_delay: DurationOrAuto = "auto"
    """Seconds to wait after the root's end for spans that are still open or under way; ``auto`` fits the door."""
    stitch_timeout: DurationOrZero = 30.0
    """Seconds that a model call which is a trace of its own, and asked for a tool, waits for the call that brings the result; 0 joins none."""
    max_open: Count = 50_000
    """Turns held open; past it the oldest is closed and evaluated."""
    max_spans: Count = 2_000
    """Spans of one turn; at the limit it is closed and evaluated."""
    max_bytes: Size = 4 * 2**20
    """Bytes of one turn; at the limit it is closed and evaluated."""
    total_bytes: Size = 256 * 2**20
    """Bytes of all open turns; past it the oldest are closed and evaluated."""
