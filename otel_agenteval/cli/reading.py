"""Progress and errors of commands that read recorded traces."""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

from ..core.display import escaped
from ..dialects.capture import advice_without_turn
from ..turns.recordings import Reading
from . import OK, UNUSABLE

_MOST_SCOPES = 6


def progress() -> Any:
    """Return a function that prints the progress, or None if standard error isn't a terminal."""
    if not sys.stderr.isatty():
        return None

    def show(reading: Reading) -> None:
        print(f"\rread {reading.lines:,} lines, {reading.spans:,} spans …", end="", file=sys.stderr, flush=True)

    return show


def named(scopes: Counter[str]) -> str:
    return ", ".join(f"{scope or 'a tracer without a name'} {count:,}" for scope, count in scopes.most_common(_MOST_SCOPES))


def report_reading(reading: Reading) -> int:
    """Print how many lines couldn't be read, and return the exit code."""
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    if not reading.spans and not reading.logs:
        if not reading.bad:  # otherwise, each file already has a line
            print(
                "no spans found, because the files are empty. Record some: otel-agenteval record -- python app.py",
                file=sys.stderr,
            )
        return UNUSABLE
    if reading.bad:
        print(f"{reading.bad:,} of {reading.lines:,} lines or records can't be read", file=sys.stderr)
    if not reading.turns:
        advice = advice_without_turn([*reading.scopes])
        line = f"no turns: no span is an agent or a model call (spans read: {named(reading.scopes)}); {advice}"
        print(escaped(line), file=sys.stderr)
    return OK
