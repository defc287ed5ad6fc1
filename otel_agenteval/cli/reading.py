"""Reading recorded traces for a command: progress on a terminal, and what could not be read."""

from __future__ import annotations

import sys
from typing import Any

from ..turns.recordings import Reading
from .exit_codes import OK, UNUSABLE


def progress() -> Any:
    """A function that shows the progress on a terminal; None where standard error is none."""
    if not sys.stderr.isatty():
        return None

    def show(reading: Reading) -> None:
        print(f"\rread {reading.lines:,} lines, {reading.spans:,} spans …", end="", file=sys.stderr, flush=True)

    return show


def report_reading(reading: Reading) -> int:
    """Print what could not be read, and return the exit code."""
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    if reading.bad:
        print(f"{reading.bad} of {reading.lines} lines or records could not be read", file=sys.stderr)
    if not reading.spans and not reading.logs:
        print("no spans found in the given files", file=sys.stderr)
        return UNUSABLE
    if not reading.turns:
        print(f"{reading.spans:,} spans were read, but no agent or model call is among them: no turns", file=sys.stderr)
    return OK
