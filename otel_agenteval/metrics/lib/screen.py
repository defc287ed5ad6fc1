"""One look at a text for the words of all detectors: which of them can have something to find in it.

Looking for fifty pieces of words one after the other reads a text fifty times. Here each four letters of the text are looked up once in a
table of all that any detector wants to know, so that the time depends on the text alone. A group of words (:class:`Words`) that the look rules
out is not searched for; any other is, piece by piece. The look is never wrong about what it rules out, so that detectors find the same without it.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ...core.turn import Turn

SCAN_LIMIT = 100_000
"""Characters of a text that are looked at."""

# --- many pieces at once -------------------------------------------------------------------------------------------

_QUAD = 4
_PLACE_BITS = 18
"""A larger table has fewer letters at the same place by chance, and takes more of the caches."""
_FOUR_BYTES = np.dtype("<u4")
_SPREAD = 0x9E3779B1
"""Multiplied by this, four bytes differ in the upper bits of 32."""
_MANY, _RIGHT = np.array(_SPREAD, np.uint32), np.array(32 - _PLACE_BITS, np.uint32)  # numbers of numpy take longer
_NUMBERS = 255
_FREQUENT = "etaoinsrhldcumfpgwybvkxjqz~"  # the last is the number 30
_RANKS = [_FREQUENT.find(chr(number + 96)) for number in range(32)]
_ANYWHERE = frozenset(
    bytes(ord(letter) - 96 for letter in quad)
    for quad in "tion atio with here ould that have this from ough ence able ally ever ight hous ting ions ents ingt hing ithe ofth nthe".split()  # noqa: SIM905
)
"""Four letters that say nothing."""


class Finder:
    """Finds which of many pieces stand in a text, all at once.

    Args:
        pieces: as :meth:`add` takes them.
    """

    __slots__ = ("_fresh", "_known", "_table")

    def __init__(self, pieces: Iterable[tuple[bytes, int]] = ()) -> None:
        self._table: NDArray[np.uint8] = np.zeros(1 << _PLACE_BITS, np.uint8)
        """Four letters → a number."""
        self._known: list[list[tuple[bytes, int]]] = [[] for _ in range(_NUMBERS + 1)]
        """That number → the pieces that have these letters; what does not fit into a byte shares a number."""
        self._fresh = 0
        self.add(pieces)

    def add(self, pieces: Iterable[tuple[bytes, int]]) -> None:
        """Look for more pieces. To add one twice, as two threads may, changes nothing.

        Args:
            pieces: each of three letters or more, with a bit that says what it means. Letters are numbers below 32, the small Latin ones 1 to 26.
        """
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
        """The bits of the pieces that stand in a text of such letters."""
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
    """The four letters by which a piece is looked for: its rarest; all that begin so for three."""
    if len(piece) < _QUAD:
        return [piece + bytes([last]) for last in range(32)]
    quads = [piece[at : at + _QUAD] for at in range(len(piece) - _QUAD + 1)]
    return quads if len(quads) == 1 else [max(quads, key=_rarity)]


def _rarity(quad: bytes) -> int:
    return -1 if quad in _ANYWHERE else sum([_RANKS[letter] for letter in quad])


# --- words that a detector looks for -------------------------------------------------------------------------------

_GAP, _DIGIT, _SIGN, _OTHER = 27, 28, 29, 30


def _letter(byte: int) -> int:
    if 97 <= byte <= 122:
        return byte - 96
    if byte >= 0xC4 and byte != 0xE2:
        return _OTHER  # the first byte of a letter that is in no Western language
    return _DIGIT if 48 <= byte <= 57 else _GAP if byte <= 32 or byte == 45 or byte >= 128 else _SIGN


_LETTERS = bytes(map(_letter, range(256)))
"""Small letters as 1 to 26. Spaces, hyphens, and signs and letters with marks, are gaps between words."""
_END = bytes([_GAP]) * _QUAD
_MOST_GROUPS = 8
_ALL = (1 << _MOST_GROUPS) - 1
_GROUPS: list[tuple[str, ...]] = []
"""The pieces of each group, in small letters. Groups are made where detectors are imported."""


_FINDER = Finder()
_FOUND_GROUPS = 0
"""The groups that it looks for: a bit each."""


def _new_group(pieces: Iterable[str]) -> int:
    """The bit of a new group."""
    if len(_GROUPS) == _MOST_GROUPS:
        raise ValueError(f"more than {_MOST_GROUPS} groups of words")
    _GROUPS.append(tuple(piece.lower() for piece in pieces))
    return 1 << len(_GROUPS) - 1


def _groups_in(letters: bytes) -> int:
    """The groups that can be in a text, and those that were not looked for yet."""
    global _FOUND_GROUPS
    looked_for = _FOUND_GROUPS
    if looked_for + 1 != 1 << len(_GROUPS):
        for place in range(looked_for.bit_length(), len(_GROUPS)):
            _FINDER.add((piece.encode().translate(_LETTERS), 1 << place) for piece in _GROUPS[place])
            looked_for |= 1 << place
        _FOUND_GROUPS = looked_for
    return ~looked_for & _ALL | _FINDER.found_in(letters)


class Words:
    """Pieces of words of which a detector needs one.

    Args:
        pieces: to be searched for as they are; upper case only finds upper case.
        screened: what texts are looked at for instead, where that is not the same. A space in it stands for any gap or end.
    """

    __slots__ = ("_bit", "_pieces")

    def __init__(self, pieces: Iterable[str], screened: Iterable[str] | None = None) -> None:
        pieces = tuple(pieces)
        self._pieces = tuple(piece.encode() for piece in pieces)
        self._bit = _new_group(pieces if screened is None else screened)

    def may_be_in(self, look: Look | None) -> bool:
        """Whether a look does not rule them out."""
        return look is None or bool(look.found() & self._bit)

    def occur_in(self, written: bytes, look: Look | None = None) -> bool:
        """Whether one of them stands in a text, in UTF-8.

        Args:
            written: the text, or a part of it.
            look: at all of the text, where there was one.
        """
        if look is not None and not look.found() & self._bit:
            return False
        for piece in self._pieces:  # a generator would cost more than the search
            if piece in written:
                return True
        return False


# --- a look at a text ----------------------------------------------------------------------------------------------

_SHORT = 120
"""Bytes up to which searching piece by piece is faster."""
_KEPT = "look"


class Look:
    """A text, and which groups of words can be in it.

    Args:
        text: of which at most :data:`SCAN_LIMIT` characters are looked at.
    """

    __slots__ = ("_found", "text", "whole", "written")

    def __init__(self, text: str) -> None:
        self.whole = text
        self.text = text[:SCAN_LIMIT]
        """What is looked at."""
        self.written = self.text.encode("utf-8", "replace")
        """The same in UTF-8."""
        self._found = -1

    def found(self) -> int:
        """A bit for each group of words that can be in the text. It is looked at when this is first asked."""
        if self._found < 0:
            self._found = _ALL
            if len(self.written) > _SHORT:
                lower = self.written.lower() if self.text.isascii() else _lowered(self.text)
                self._found = _groups_in(_END + lower.translate(_LETTERS) + _END)
        return self._found


def _lowered(text: str) -> bytes:
    for space in "\u1680\u3000":  # the others begin with a byte that is a gap
        if space in text:
            text = text.replace(space, " ")
    return text.lower().encode("utf-8", "replace")


def look_at_output(turn: Turn) -> Look:
    """The look at a turn's answer (``""`` where it is unknown), which all detectors share."""
    output = turn.output or ""
    kept: Look | None = turn.shared.get(_KEPT)
    if kept is None or kept.whole is not output:
        kept = turn.shared[_KEPT] = Look(output)
    return kept
