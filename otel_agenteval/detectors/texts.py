"""Provide text functions that several detectors share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import AnyStr


def in_small_letters(text: str) -> str:
    """Return the text in lower case, with the same length.

    A few letters have a longer lower-case form. Only its first character is used.
    """
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else "".join(sign.lower()[:1] or sign for sign in text)


def has_any(text: AnyStr, pieces: Sequence[AnyStr]) -> bool:
    for piece in pieces:  # a generator would be slower than the search
        if piece in text:
            return True
    return False
