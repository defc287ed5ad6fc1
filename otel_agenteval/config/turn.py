"""Sections ``turn`` and ``queue``: when a turn closes, and where it then waits."""

from __future__ import annotations

from .section import Section
from .types import Count, Duration, DurationOrAuto, DurationOrZero, Size


class TurnOptions(Section):
    """Closing of turns, and memory limits of open turns."""

    idle_timeout: Duration = 300.0
    """Seconds without a new span after which a turn closes, even if its root hasn't ended."""
    max_duration: Duration = 3600.0
    """Maximum seconds from a turn's first span until it closes."""
    decision_delay: DurationOrAuto = "auto"
    """Seconds after the root's end to wait for open or delayed spans. ``auto`` depends on how spans arrive."""
    stitch_timeout: DurationOrZero = 30.0
    """Seconds that a model call without a parent, which requested a tool, waits for the next call with the tool's result. 0 joins no such calls."""
    max_open: Count = 50_000
    """Maximum open turns. Beyond it, the oldest turn closes and is evaluated."""
    max_spans: Count = 2_000
    """Maximum spans of one turn. At the limit, the turn closes and is evaluated."""
    max_bytes: Size = 4 * 2**20
    """Maximum bytes of one turn. At the limit, the turn closes and is evaluated."""
    total_bytes: Size = 256 * 2**20
    """Maximum bytes of all open turns. Beyond it, the oldest turns close and are evaluated."""
    max_work: Duration = 10.0
    """Maximum CPU seconds to read and score one turn in ``serve`` and ``worker``. Beyond it, the turn is dropped and counted.
    A custom metric that takes 1.5 times as many real seconds gives an error."""


class QueueOptions(Section):
    """The queue between your agent's threads and the worker thread."""

    max_bytes: Size = 64 * 2**20
    """Maximum bytes of waiting turns. Turns beyond it are dropped and counted."""
