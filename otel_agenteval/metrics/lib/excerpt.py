"""Shorten a text to show its beginning in a score."""

from __future__ import annotations

import re

_PIECE = re.compile(r"[\w.@+%-]*\Z")
"""The last piece of a text without spaces, such as an address."""

_TELLING = re.compile(r"[\d@%]")
"""A character that every address, number or token contains."""


def excerpt(text: str, limit: int) -> str:
    """Return at most ``limit`` characters of a text, without a cut inside a word or number.

    Scores are redacted later, and redaction wouldn't recognize half an address or number.
    """
    if len(text) <= limit:
        return text
    head = text[:limit]
    start = _torn(head)
    if start == 0:
        piece = _PIECE.search(head)
        start = piece.start() if piece is not None and _TELLING.search(piece[0]) else limit
    return head[:start].rstrip()


def _torn(head: str) -> int:
    """Return the start of the last word, including the groups of digits before it.

    Together, these groups can be a card or phone number.
    """
    word = len(head)
    while word and not head[word - 1].isspace():
        word -= 1
    start = at = word
    while at and (head[at - 1].isdecimal() or head[at - 1].isspace() or head[at - 1] in "()./-"):
        at -= 1
        start = at if head[at].isdecimal() else start
    return start - 1 if start < word and head[start - 1 : start] in ("+", "(") else start
