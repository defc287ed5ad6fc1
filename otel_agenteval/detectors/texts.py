"""Functions, collections, word lists, and tables that several detectors share."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any, AnyStr, cast

from ..core import jsonio

SCAN_LIMIT = 100_000
"""Maximum number of characters that detectors search per text."""
Span = tuple[int, int]
"""Start and end of a range in a text."""


def in_small_letters(text: str) -> str:
    """Return the text in lower case, with the same length. ``İ`` becomes ``i``, because its usual lower case has two characters."""
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else text.replace("\u0130", "i").lower()


def has_any(text: AnyStr, pieces: Sequence[AnyStr]) -> bool:
    for piece in pieces:  # a generator would be slower than the search
        if piece in text:
            return True
    return False


_APOSTROPHES = ("`", "\u02bc", "\xb4", "\u2032")
_APOSTROPHE = re.compile(rf"(?<=[^\W\d_])[{''.join(_APOSTROPHES)}](?=[^\W\d_])")


def with_plain_apostrophes(text: str) -> str:
    """Replace accents, primes, and backticks between two letters with apostrophes. The text's length stays the same."""
    return _APOSTROPHE.sub("'", text) if has_any(text, _APOSTROPHES) else text


def tree(words: Iterable[str]) -> str:
    """Return a pattern for any of the words. Shared prefixes make it much faster than a list of alternatives."""
    branches: dict[str, list[str]] = {}
    for word in words:
        branches.setdefault(word[:1], []).append(word[1:])
    ends = "" in branches
    inner = "|".join(re.escape(sign) + tree(rests) for sign, rests in sorted(branches.items()) if sign)
    return f"(?:{inner}{'|' if ends else ''})" if inner else ""


# --- patterns


class _Lazy:
    """A pattern that is compiled on first use, because most processes use only a few patterns."""

    def __init__(self, pattern: str | Callable[[], str], flags: int) -> None:
        self._pattern, self._flags = pattern, flags

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self._pattern if isinstance(self._pattern, str) else self._pattern(), self._flags)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._compiled, name)
        setattr(self, name, found)
        return found


def lazy(pattern: str | Callable[[], str], flags: int = 0) -> re.Pattern[str]:
    """Return a pattern that is compiled on first use. ``pattern`` is its text, or a function that returns the text."""
    return cast("re.Pattern[str]", _Lazy(pattern, flags))


# --- ranges of a text


class DistinctRanges:
    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []

    def add(self, start: int, end: int) -> bool:
        """Add a range and return True. Return False if the range overlaps an earlier range."""
        at = bisect_right(self._ends, start)
        if at < len(self._starts) and self._starts[at] < end:
            return False
        self._starts.insert(at, start)
        self._ends.insert(at, end)
        return True


# --- texts that the agent was given, which can ground its answer

_ESCAPED_CHARACTER = re.compile(r"\\{1,8}u([0-9a-fA-F]{4})")
_ESCAPED_SLASH = re.compile(r"\\{1,8}/")


def text_of(value: Any) -> str:
    r"""Return a value as text, truncated to :data:`SCAN_LIMIT` characters, with ``\uXXXX`` and ``\/`` decoded."""
    return unescaped(jsonio.text_of(value)[:SCAN_LIMIT])


def unescaped(text: str) -> str:
    r"""Decode ``\uXXXX`` and ``\/`` JSON escapes, even if the text was serialized several times."""
    if "\\u" in text:
        text = _ESCAPED_CHARACTER.sub(lambda found: chr(int(found.group(1), 16)), text)
        if not text.isascii():  # two escapes of a surrogate pair are one character
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return _ESCAPED_SLASH.sub("/", text) if "\\/" in text else text


class GivenTexts:
    """Texts that the agent received, in order. Each value is converted to text only when an iteration reaches it."""

    __slots__ = ("_read", "_rest", "is_cut")

    def __init__(self, values: Iterable[Any]) -> None:
        self._read: list[str] = []
        self._rest = iter(values)
        self.is_cut = False
        """True if any text read so far is longer than :data:`SCAN_LIMIT`."""

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


# --- word lists and tables in ``data``, loaded on first use
#
# A list is a text file with sections. Each section has its name in brackets, one entry per line, and an empty line before it. An
# open box (``␣``) stands for a space at the start or end of an entry. The lines before the first section are a comment.

FOLDER = Path(__file__).with_name("data")


@cache
def sections(name: str) -> dict[str, list[str]]:
    _, *blocks = (FOLDER / name).read_text(encoding="utf-8").replace("␣", " ").rstrip("\n").split("\n\n[")
    return {head: entries.split("\n") for head, _, entries in (block.partition("]\n") for block in blocks)}


@cache
def words(name: str, section: str) -> tuple[str, ...]:
    return tuple(sections(name)[section])


@cache
def word_set(name: str, section: str) -> frozenset[str]:
    return frozenset(sections(name)[section])


@cache
def table(name: str) -> Any:
    return jsonio.loads((FOLDER / name).read_bytes())
