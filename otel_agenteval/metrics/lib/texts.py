"""What several detectors ask of the same texts."""

from __future__ import annotations


def in_small_letters(text: str) -> str:
    """The text in small letters, as long as it was: a few letters have longer small ones, of which the first character is taken."""
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else "".join(sign.lower()[:1] or sign for sign in text)
