"""Read the texts that the agent was given, which can ground its answer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from ..core import jsonio

SCAN_LIMIT = 100_000

_ESCAPED_CHARACTER = re.compile(r"\\{1,8}u([0-9a-fA-F]{4})")
_ESCAPED_SLASH = re.compile(r"\\{1,8}/")


def text_of(value: Any) -> str:
    """Return a value as text without JSON escapes, at most :data:`SCAN_LIMIT` characters."""
    return unescaped(jsonio.text_of(value)[:SCAN_LIMIT])


def unescaped(text: str) -> str:
    r"""Undo ``\uXXXX`` and ``\/`` escapes of JSON, even if it was serialized several times."""
    if "\\u" in text:
        text = _ESCAPED_CHARACTER.sub(lambda found: chr(int(found.group(1), 16)), text)
        if not text.isascii():  # two escapes of a surrogate pair are one character
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return _ESCAPED_SLASH.sub("/", text) if "\\/" in text else text


class GivenTexts:
    """The texts that the agent was given. Iteration reads the texts lazily and keeps them. They are searched in their order."""

    __slots__ = ("_read", "_rest", "is_cut")

    def __init__(self, values: Iterable[Any]) -> None:
        self._read: list[str] = []
        self._rest = iter(values)
        self.is_cut = False
        """True if a text that was read is longer than :data:`SCAN_LIMIT`."""

    def __iter__(self) -> Iterator[str]:
        yield from self._read
        for value in self._rest:
            text = jsonio.text_of(value)
            if len(text) > SCAN_LIMIT:
                self.is_cut = True
                text = text[:SCAN_LIMIT]
            text = unescaped(text)
            self._read.append(text)
            yield text
