"""Screen a text once for the words of all detectors, to skip detectors that can't match.

A separate search for each of fifty words would read the text fifty times. Instead, the screen looks up every four letters of the
text once, in a table for all words. So the time depends only on the text. A group of words (:class:`ScreenedWords`) that the screen rules
out isn't searched, and others are searched word by word. The screen never rules out a word that occurs, so detectors find the
same with and without it.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from .texts import SCAN_LIMIT

# --- many pieces at once -------------------------------------------------------------------------------------------

_QUAD = 4
_PLACE_BITS = 18
"""Size of the table, as a power of two. A larger table has fewer collisions and takes more of the CPU cache."""
_FOUR_BYTES = np.dtype("<u4")
_SPREAD = 0x9E3779B1
"""Multiplier that spreads four bytes over the upper bits of a 32-bit number."""
_MANY, _RIGHT = np.array(_SPREAD, np.uint32), np.array(32 - _PLACE_BITS, np.uint32)  # numpy scalars would be slower
_NUMBERS = 255
_FREQUENT = "etaoinsrhldcumfpgwybvkxjqz~"  # the last character has the number 30
_RANKS = [_FREQUENT.find(chr(number + 96)) for number in range(32)]
_ANYWHERE = frozenset(
    bytes(ord(letter) - 96 for letter in quad)
    for quad in "tion atio with here ould that have this from ough ence able ally ever ight hous ting ions ents ingt hing ithe ofth nthe".split()  # noqa: SIM905
)
"""Frequent groups of four letters, which don't distinguish texts."""


class Finder:
    """A search for many words in a text at once. ``pieces`` are initial words, as for :meth:`add`."""

    __slots__ = ("_fresh", "_known", "_table")

    def __init__(self, pieces: Iterable[tuple[bytes, int]] = ()) -> None:
        self._table: NDArray[np.uint8] = np.zeros(1 << _PLACE_BITS, np.uint8)
        """Maps the hash of four letters to a number."""
        self._known: list[list[tuple[bytes, int]]] = [[] for _ in range(_NUMBERS + 1)]
        """Maps the number to the words with these letters. Words share numbers if there are more than 255."""
        self._fresh = 0
        self.add(pieces)

    def add(self, pieces: Iterable[tuple[bytes, int]]) -> None:
        """Add words of three letters or more, numbers below 32 with ``a`` as 1, each with the bit of its group."""
        for piece, meaning in pieces:
            places = [_place_of(quad) for quad in _quads_of(piece)]
            numbers = {int(self._table[place]) for place in places}
            if 0 in numbers:
                self._fresh = fresh = self._fresh % _NUMBERS + 1
                for place in places:
                    self._table[place] = self._table[place] or fresh
                numbers = numbers - {0} | {fresh}
            for number in numbers:
                self._known[number].append((piece, meaning))

    def found_in(self, letters: bytes) -> int:
        """Return the bits of the words that occur in a text of such letters."""
        quads = np.ndarray((max(0, len(letters) - _QUAD + 1),), _FOUR_BYTES, letters, 0, (1,)) * _MANY
        quads >>= _RIGHT
        seen = self._table.take(quads, mode="clip").tobytes().translate(None, b"\0")
        found = 0
        for number in set(seen) if seen else ():
            for piece, meaning in self._known[number]:
                if not found & meaning and piece in letters:
                    found |= meaning
        return found


def _place_of(quad: bytes) -> int:
    return (int.from_bytes(quad, "little") * _SPREAD & 0xFFFFFFFF) >> (32 - _PLACE_BITS)


def _quads_of(piece: bytes) -> list[bytes]:
    """Return a word's four rarest letters, or all four-letter continuations of a word of three letters."""
    if len(piece) < _QUAD:
        return [piece + bytes([last]) for last in range(32)]
    quads = [piece[at : at + _QUAD] for at in range(len(piece) - _QUAD + 1)]
    return [max(quads, key=lambda quad: -1 if quad in _ANYWHERE else sum([_RANKS[letter] for letter in quad]))]


# --- words of a detector -------------------------------------------------------------------------------------------

_GAP, _DIGIT, _SIGN, _OTHER = 27, 28, 29, 30


def _letter(byte: int) -> int:
    if 97 <= byte <= 122:
        return byte - 96
    if byte >= 0xC4 and byte != 0xE2:
        return _OTHER  # first byte of a letter outside Western languages
    return _DIGIT if 48 <= byte <= 57 else _GAP if byte <= 32 or byte == 45 or byte >= 128 else _SIGN


_LETTERS = bytes(map(_letter, range(256)))
"""Byte map that numbers the letters ``a`` to ``z`` from 1 to 26. Spaces, hyphens and non-ASCII characters of Western languages are gaps between words."""
_END = bytes([_GAP]) * _QUAD
_MOST_GROUPS = 32
_ALL = (1 << _MOST_GROUPS) - 1
_GROUPS: list[tuple[str, ...]] = []
"""Words of each group in lower case. Importing a detector adds its groups."""


_FINDER = Finder()
_FOUND_GROUPS = 0
"""Bits of the groups that the finder already contains."""


def _groups_in(letters: bytes) -> int:
    """Return the bits of the groups that may occur, including those that another thread just added, without a search."""
    global _FOUND_GROUPS
    looked_for = _FOUND_GROUPS
    if looked_for + 1 != 1 << len(_GROUPS):
        for place in range(looked_for.bit_length(), len(_GROUPS)):
            _FINDER.add((piece.encode().translate(_LETTERS), 1 << place) for piece in _GROUPS[place])
            looked_for |= 1 << place
        _FOUND_GROUPS = looked_for
    return ~looked_for & _ALL | _FINDER.found_in(letters)


class ScreenedWords:
    """Words of which a detector requires at least one. ``pieces`` are searched as they are. Upper case matches only upper case.
    ``screened`` are the words for the screen, if they differ. A space in them stands for any gap, start or end.
    """

    __slots__ = ("_bit", "_pieces")

    def __init__(self, pieces: Iterable[str], screened: Iterable[str] | None = None) -> None:
        pieces = tuple(pieces)
        self._pieces = tuple(piece.encode() for piece in pieces)
        if len(_GROUPS) == _MOST_GROUPS:
            raise ValueError(f"ScreenedWords: must have at most {_MOST_GROUPS} groups")
        _GROUPS.append(tuple(piece.lower() for piece in (pieces if screened is None else screened)))
        self._bit = 1 << len(_GROUPS) - 1

    def may_be_in(self, look: Look | None) -> bool:
        """Return True if the screen doesn't rule out all of the words."""
        return look is None or bool(look.found() & self._bit)

    def occur_in(self, written: bytes, look: Look | None = None) -> bool:
        """Return True if one of the words occurs in a text, which may be a part of the text of ``look``."""
        if look is not None and not look.found() & self._bit:
            return False
        for piece in self._pieces:  # a generator would be slower than the search
            if piece in written:
                return True
        return False


# --- screen of a text ----------------------------------------------------------------------------------------------

_SHORT = 120
"""Maximum length in bytes of a text that is faster to search word by word."""


class Look:
    """A text with the groups of words that it may contain. The first :data:`SCAN_LIMIT` characters are screened."""

    __slots__ = ("_found", "text", "whole", "written")

    def __init__(self, text: str) -> None:
        self.whole = text
        self.text = text[:SCAN_LIMIT]
        self.written = self.text.encode("utf-8", "replace")
        self._found = -1

    def found(self) -> int:
        """Return a bit for each group of words that may occur in the text. The text is screened on the first call."""
        if self._found < 0:
            self._found = _ALL
            if len(self.written) > _SHORT:
                lower = self.written.lower() if self.text.isascii() else _lowered(self.text)
                self._found = _groups_in(_END + lower.translate(_LETTERS) + _END)
        return self._found


def _lowered(text: str) -> bytes:
    for space in "\u1680\u3000":  # other spaces begin with a byte that is a gap
        if space in text:
            text = text.replace(space, " ")
    return text.lower().encode("utf-8", "replace")
