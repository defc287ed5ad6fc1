"""One thing that somebody finds out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

GOOD, NOTE, BAD = "good", "note", "bad"


class Finding(NamedTuple):
    """One thing that is as it should be, worth knowing, or in the way."""

    level: str
    text: str
    advice: str = ""
    """What to do about it."""


Findings = Iterator[Finding]
