"""The beginning of a text, to be shown in a score."""

from __future__ import annotations

import re

_PIECE = re.compile(r"[\w.@+%-]*\Z")
"""The last piece of a text without spaces, as an address is."""

_TELLING = re.compile(r"[\d@%]")
"""Every address, number and token has at least one of these."""


def excerpt(text: str, limit: int) -> str:
    """At most ``limit`` characters of a text, which never end inside a word or number.

    Scores are redacted after they are made, and half an address or number would not be recognised.
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
    """Where the last word begins, with the groups of digits before it: together they may be a card or a telephone number."""
    word = len(head)
    while word and not head[word - 1].isspace():
        word -= 1
    start = at = word
    while at and (head[at - 1].isdecimal() or head[at - 1].isspace() or head[at - 1] in "()./-"):
        at -= 1
        start = at if head[at].isdecimal() else start
    return start - 1 if start < word and head[start - 1 : start] in ("+", "(") else start
