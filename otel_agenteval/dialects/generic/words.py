"""Names split into words, in any spelling. ``gen_ai.usage.inputTokens`` gives gen, ai, usage, input, tokens."""

from __future__ import annotations

import re
from functools import lru_cache

_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+")
MOST_NAMES = 16_384
"""Names whose words and meanings are cached."""


@lru_cache(MOST_NAMES)
def words_of(name: str) -> tuple[str, ...]:
    """Return a name's words in lower case."""
    return tuple(word.lower() for word in _WORD.findall(name[:400]))


def last_word(name: str) -> str:
    """Return a name's last word, or "" if it has none."""
    words = words_of(name)
    return words[-1] if words else ""


def word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())
