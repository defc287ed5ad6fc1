"""The words of a name, in any spelling: ``gen_ai.usage.inputTokens`` is gen, ai, usage, input, tokens."""

from __future__ import annotations

import re

_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+")
_MOST_NAMES = 16_384
_words: dict[str, tuple[str, ...]] = {}


def words_of(name: str) -> tuple[str, ...]:
    """The words of a name, in lower case."""
    known = _words.get(name)
    if known is None:
        if len(_words) >= _MOST_NAMES:
            _words.clear()
        known = _words[name] = tuple(word.lower() for word in _WORD.findall(name[:400]))
    return known
