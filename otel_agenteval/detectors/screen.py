"""Screen a text once for the words of all detectors, to skip detectors that can't match.

Fifty separate searches would read a text fifty times. Instead, the screen looks up every group of four adjacent letters in one
table for all words. For example, "password" is stored under its rarest letters, "word". The screen rules out groups of words
(:class:`ScreenedWords`) without any word in the text. Detectors search for the words of the other groups one by one.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from .texts import SCAN_LIMIT

# --- many words at once --------------------------------------------------------------------------------------------

_QUAD = 4
_HASH_BITS = 18
"""Binary logarithm of the table's size. A larger table has fewer collisions, but uses more CPU cache."""
_QUAD_AS_INTEGER = np.dtype("<u4")
_MULTIPLIER = 0x9E3779B1
"""Factor that spreads four bytes over the upper bits of a 32-bit number."""
_MULTIPLIER_ARRAY, _SHIFT_ARRAY = np.array(_MULTIPLIER, np.uint32), np.array(32 - _HASH_BITS, np.uint32)  # faster than scalars
_LAST_NUMBER = 255
_BY_FREQUENCY = "etaoinsrhldcumfpgwybvkxjqz~"  # the last character has the number 30
_RARITY = [_BY_FREQUENCY.find(chr(letter + 96)) for letter in range(32)]
_FREQUENT_QUADS = frozenset(
    bytes(ord(letter) - 96 for letter in quad)
    for quad in "tion atio with here ould that have this from ough ence able ally ever ight hous ting ions ents ingt hing ithe ofth nthe".split()  # noqa: SIM905
)
"""Groups of four letters that are too frequent to identify a word."""


class Finder:
    """Index for finding many words in one pass over a text. ``pieces`` contains the first words to :meth:`add`."""

    __slots__ = ("_last_number", "_number_by_hash", "_words_by_number")

    def __init__(self, pieces: Iterable[tuple[bytes, int]] = ()) -> None:
        self._number_by_hash: NDArray[np.uint8] = np.zeros(1 << _HASH_BITS, np.uint8)
        """Number for each group of four letters, by hash. The number is 0 if no word has these letters."""
        self._words_by_number: list[list[tuple[bytes, int]]] = [[] for _ in range(_LAST_NUMBER + 1)]
        """Words with their group bits, by number. After 255, the numbers start again at 1."""
        self._last_number = 0
        self.add(pieces)

    def add(self, pieces: Iterable[tuple[bytes, int]]) -> None:
        """Add ``(word, group_bit)`` pairs. A word needs at least three letters, encoded as numbers below 32 (``a`` is 1)."""
        for word, group_bit in pieces:
            hashes = [
                (int.from_bytes(quad, "little") * _MULTIPLIER & 0xFFFFFFFF) >> (32 - _HASH_BITS) for quad in _quads_of(word)
            ]
            numbers = {int(self._number_by_hash[quad_hash]) for quad_hash in hashes}
            if 0 in numbers:
                self._last_number = new_number = self._last_number % _LAST_NUMBER + 1
                for quad_hash in hashes:
                    self._number_by_hash[quad_hash] = self._number_by_hash[quad_hash] or new_number
                numbers = numbers - {0} | {new_number}
            for number in numbers:
                self._words_by_number[number].append((word, group_bit))

    def found_in(self, letters: bytes) -> int:
        """Return the group bits of the words in a text. Encode the text as in :meth:`add`, and add a gap at its end."""
        overlapping_quads = np.ndarray((max(0, len(letters) - _QUAD + 1),), _QUAD_AS_INTEGER, letters, 0, (1,))
        hashes = overlapping_quads * _MULTIPLIER_ARRAY
        hashes >>= _SHIFT_ARRAY
        numbers = self._number_by_hash.take(hashes, mode="clip").tobytes().translate(None, b"\0")
        group_bits = 0
        for number in set(numbers) if numbers else ():
            for word, group_bit in self._words_by_number[number]:
                if not group_bits & group_bit and word in letters:
                    group_bits |= group_bit
        return group_bits


def _quads_of(word: bytes) -> list[bytes]:
    """Return a word's four rarest adjacent letters. For a word of three letters, return it with each possible fourth letter."""
    if len(word) < _QUAD:
        return [word + bytes([next_letter]) for next_letter in range(32)]
    quads = [word[start : start + _QUAD] for start in range(len(word) - _QUAD + 1)]
    return [max(quads, key=lambda quad: -1 if quad in _FREQUENT_QUADS else sum([_RARITY[letter] for letter in quad]))]


# --- words of a detector -------------------------------------------------------------------------------------------

_GAP, _DIGIT, _SIGN, _OTHER = 27, 28, 29, 30


def _letter_number(byte: int) -> int:
    if 97 <= byte <= 122:
        return byte - 96
    if byte >= 0xC4 and byte != 0xE2:
        return _OTHER  # first byte of a letter outside Western languages
    return _DIGIT if 48 <= byte <= 57 else _GAP if byte <= 32 or byte == 45 or byte >= 128 else _SIGN


_LETTERS = bytes(map(_letter_number, range(256)))
"""Byte table that maps lower-case letters to 1 to 26. Spaces, hyphens, and Western non-ASCII characters become gaps."""
_GAPS = bytes([_GAP]) * _QUAD
_MOST_GROUPS = 32
_ALL = (1 << _MOST_GROUPS) - 1
_GROUPS: list[tuple[str, ...]] = []
"""Lower-case words of each group. The import of a detector adds groups. The group at index 3 has the bit ``1 << 3``."""

_FINDER = Finder()
_FOUND_GROUPS = 0
"""Bits of the groups that are already in the finder."""


def _groups_in(letters: bytes) -> int:
    """Return the bits of all groups with a word that ``letters`` might contain, and of groups that another thread is adding."""
    global _FOUND_GROUPS
    searched_bits = _FOUND_GROUPS
    if searched_bits + 1 != 1 << len(_GROUPS):  # a detector was imported meanwhile
        for index in range(searched_bits.bit_length(), len(_GROUPS)):
            _FINDER.add((word.encode().translate(_LETTERS), 1 << index) for word in _GROUPS[index])
            searched_bits |= 1 << index
        _FOUND_GROUPS = searched_bits
    unsearched_bits = ~searched_bits & _ALL
    return unsearched_bits | _FINDER.found_in(letters)


class ScreenedWords:
    """Words of a detector that can match only texts with at least one of these words. The screen uses ``screened`` (by default
    ``pieces``), in which a space matches any gap between words. :meth:`occur_in` uses ``pieces``, and is case-sensitive.
    """

    __slots__ = ("_group_bit", "_pieces")

    def __init__(self, pieces: Iterable[str], screened: Iterable[str] | None = None) -> None:
        pieces = tuple(pieces)
        self._pieces = tuple(piece.encode() for piece in pieces)
        if len(_GROUPS) == _MOST_GROUPS:
            raise ValueError(f"ScreenedWords: at most {_MOST_GROUPS} instances are allowed; raise _MOST_GROUPS for more")
        _GROUPS.append(tuple(piece.lower() for piece in (pieces if screened is None else screened)))
        self._group_bit = 1 << len(_GROUPS) - 1

    def may_be_in(self, look: Look | None) -> bool:
        """Return False if the screen rules out all words. If ``look`` is None, return True."""
        return look is None or bool(look.found() & self._group_bit)

    def occur_in(self, written: bytes, look: Look | None = None) -> bool:
        """Return True if any word occurs in ``written``. ``written`` must be the text of ``look`` or part of this text."""
        if look is not None and not look.found() & self._group_bit:
            return False
        for piece in self._pieces:  # any() with a generator would be slower
            if piece in written:
                return True
        return False


# --- screen of a text ----------------------------------------------------------------------------------------------

_SHORT = 120
"""Maximum length in bytes of a text that is faster to search word by word."""


class Look:
    """A text, and the groups of words that it might contain. Only the first :data:`SCAN_LIMIT` characters are screened."""

    __slots__ = ("_group_bits", "text", "whole", "written")

    def __init__(self, text: str) -> None:
        self.whole = text
        self.text = text[:SCAN_LIMIT]
        self.written = self.text.encode("utf-8", "replace")
        self._group_bits = -1  # not screened yet

    def found(self) -> int:
        """Return the bits of groups whose words might occur in the text. Long texts are screened on the first call."""
        if self._group_bits < 0:
            self._group_bits = _ALL
            if len(self.written) > _SHORT:
                lower = self.written.lower() if self.text.isascii() else _lowered(self.text)
                self._group_bits = _groups_in(_GAPS + lower.translate(_LETTERS) + _GAPS)
        return self._group_bits


def _lowered(text: str) -> bytes:
    for space in "\u1680\u3000":  # other spaces begin with a byte that is a gap
        if space in text:
            text = text.replace(space, " ")
    return text.lower().encode("utf-8", "replace")
