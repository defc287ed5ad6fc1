"""A finding of ``otel-agenteval doctor``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

GOOD, NOTE, BAD = "good", "note", "bad"


class DoctorFinding(NamedTuple):
    """A result of a check: good, a note, or a problem."""

    level: str
    text: str
    advice: str = ""
    """The fix."""


Findings = Iterator[DoctorFinding]
