"""Section ``turn``: when a turn closes."""

from __future__ import annotations

from .section import Section
from .types import Count, Duration, DurationOrAuto, DurationOrZero, Size


class TurnOptions(Section):
    """When a turn closes, and how much may be held in memory until then."""

    idle_timeout: Duration = 300.0
    """Seconds without a new span after which a turn closes although its root has not ended."""
    max_duration: Duration = 3600.0
    """Seconds after its first span at which a turn closes in any case."""
    decision_delay: DurationOrAuto = "auto"
    """Seconds to wait after the root's end for spans that are still open or on their way; ``auto`` depends on how spans arrive."""
    stitch_timeout: DurationOrZero = 30.0
    """Seconds that a model call with a trace of its own, which asked for a tool, waits for the call that brings the tool's result; 0 joins no such calls."""
    max_open: Count = 50_000
    """Maximum turns held open; beyond that the oldest is closed and evaluated."""
    max_spans: Count = 2_000
    """Maximum spans of one turn; at the limit it is closed and evaluated."""
    max_bytes: Size = 4 * 2**20
    """Maximum bytes of one turn; at the limit it is closed and evaluated."""
    total_bytes: Size = 256 * 2**20
    """Maximum bytes of all open turns; beyond that the oldest are closed and evaluated."""
    max_work: Duration = 10.0
    """Maximum seconds of CPU time for reading and scoring one turn in ``serve`` and ``worker``; a turn that takes longer is dropped and counted."""
