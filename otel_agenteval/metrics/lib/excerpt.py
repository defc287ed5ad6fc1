"""The beginning of a text, to be shown in a score."""

from __future__ import annotations

import re

_TORN = re.compile(r"(?:[+(]?\d[\d().\s/-]*)?\S*\Z")
"""The last word, with the groups of digits before it: together they may be a card or a telephone number."""
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
    start = _TORN.search(head).start()  # type: ignore[union-attr]  # it matches at the end at the latest
    if start == 0:
        piece = _PIECE.search(head)
        start = piece.start() if piece is not None and _TELLING.search(piece[0]) else limit
    return head[:start].rstrip()
