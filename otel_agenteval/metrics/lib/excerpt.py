"""The beginning of a text, for what a score says of it."""

from __future__ import annotations

import re

_TORN = re.compile(r"(?:[+(]?\d[\d().\s/-]*)?\S*\Z")
"""The last word, with the groups of digits before it: together they may be a card or a telephone number."""
_PIECE = re.compile(r"[\w.@+%-]*\Z")
"""The last piece of a text without spaces, as an address is."""

_TELLING = re.compile(r"[\d@%]")
"""What no piece is an address, a number or a token without."""


def excerpt(text: str, limit: int) -> str:
    """At most ``limit`` characters of a text, which never end inside a word or number.

    What a score says is redacted after it was made, and half an address or number would not be recognised.
    """
    if len(text) <= limit:
        return text
    head = text[:limit]
    start = _TORN.search(head).start()  # type: ignore[union-attr]  # it matches at the end at the latest
    if start == 0:
        piece = _PIECE.search(head)
        start = piece.start() if piece is not None and _TELLING.search(piece[0]) else limit
    return head[:start].rstrip()
