"""Names split into words, in any spelling.

``gen_ai.usage.inputTokens`` gives gen, ai, usage, input, tokens.
"""

from __future__ import annotations

import re

_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+")
_MOST_NAMES = 16_384
_words: dict[str, tuple[str, ...]] = {}


def words_of(name: str) -> tuple[str, ...]:
    """Return a name's words in lower case."""
    known = _words.get(name)
    if known is None:
        if len(_words) >= _MOST_NAMES:
            _words.clear()
        known = _words[name] = tuple(word.lower() for word in _WORD.findall(name[:400]))
    return known
