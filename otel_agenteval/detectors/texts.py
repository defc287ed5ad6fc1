"""Provide text functions that several detectors share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import AnyStr


def in_small_letters(text: str) -> str:
    """Return the text in lower case with the same length, also for the Turkish İ, of which the first character is used."""
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else text.replace("\u0130", "i").lower()


def has_any(text: AnyStr, pieces: Sequence[AnyStr]) -> bool:
    for piece in pieces:  # a generator would be slower than the search
        if piece in text:
            return True
    return False


def tree(words: Iterable[str]) -> str:
    """Return a pattern with shared prefixes, the longest word first, which is many times as fast as a list of alternatives."""
    branches: dict[str, list[str]] = {}
    for word in words:
        branches.setdefault(word[:1], []).append(word[1:])
    ends = "" in branches
    inner = "|".join(re.escape(sign) + tree(rests) for sign, rests in sorted(branches.items()) if sign)
    return f"(?:{inner}{'|' if ends else ''})" if inner else ""
