"""Rate passages with a linear model over character n-grams, all passages of a text in one pass.

``scripts/text_models.py`` fits the model to labeled passages. It hashes n-grams of two to five characters into a table of 8-bit
weights. Because no words are needed, it works across inflections, spellings and languages. A running sum of the weights rates
every passage of a text, so the time depends only on the text: about 10 ns a character.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from ..text_model import text_model

PLACES = 1 << 16
_RUNS = range(2, 6)
_ODD, _HALF = np.array(0x9E3779B1, np.uint32), np.array(15, np.uint32)  # numpy scalars would be slower
_SPACE, _ZERO, _NOTHING, _RARE = 32, 48, 1, 2
_MARKS = "*_`#>"
_LONG_TOKEN = re.compile(r"[A-Za-z0-9+/_=-]{28,}")
_SHAPE = bytes(97 if chr(code).isalnum() or chr(code) in "+/_=-" else 32 for code in range(128)).ljust(256)
_TOKEN_SHAPE = b"a" * 28
_WINDOW, _SHORT_WINDOW = 140, 50
"""Characters that :meth:`Rated.exceeds` rates together, in Latin and in other scripts."""
_FEW, _MANY = 3, 32
"""Numbers of windows that are rated first, and at once if those don't exceed the limit."""


@cache
def _letters() -> NDArray[np.uint16]:
    """Return a map from characters to plain lower-case letters, with one number for all digits and one for all gaps."""
    plain = np.arange(1 << 16, dtype=np.uint16)
    for code in range(1 << 16):
        sign = chr(code)
        if 0xD800 <= code < 0xE000:
            plain[code] = _RARE
        elif sign.isspace() or sign in _MARKS:
            plain[code] = _SPACE
        elif sign.isdigit():
            plain[code] = _ZERO
        elif unicodedata.category(sign) == "Cf" or 0x300 <= code < 0x370:
            plain[code] = _NOTHING
        elif sign.isalpha() or code > 0xFF00:
            bare = unicodedata.normalize("NFKC", sign).lower()
            if code < 0x250 or 0x1E00 <= code < 0x1F00:
                bare = unicodedata.normalize("NFD", bare)[:1]
            plain[code] = ord(bare) if len(bare) == 1 and ord(bare) < 1 << 16 else code
    for signs, same in (("‘’ʼ´", "'"), ("“”„«»", '"'), ("ı", "i"), ("ł", "l"), ("ø", "o"), ("đ", "d")):
        for sign in signs:
            plain[ord(sign)] = ord(same)
    return plain


@cache
def _ascii_letters() -> bytes:
    return bytes(_letters()[:128].tolist()).ljust(256)


def _read(text: str) -> tuple[NDArray[np.uint32], NDArray[np.bool_] | None]:
    """Return the letters of a text, and which of its characters they stand for. None if for all."""
    written = text.encode("ascii", "replace")
    if _TOKEN_SHAPE in written.translate(_SHAPE):
        text = _LONG_TOKEN.sub(lambda found: "0" * len(found.group()), text)
        written = text.encode("ascii", "replace")
    plain: NDArray[np.uint8 | np.uint16]
    if text.isascii():
        small = written.translate(_ascii_letters())
        plain = np.frombuffer(small, np.uint8)
        if b"  " not in small and b"00" not in small and b"\x01" not in small:
            return plain.astype(np.uint32), None
    else:
        plain = _letters().take(np.frombuffer(text.encode("utf-32-le", "replace"), np.uint32), mode="clip")
    repeats = (plain[1:] == plain[:-1]) & ((plain[1:] == _SPACE) | (plain[1:] == _ZERO))
    kept = plain != _NOTHING
    kept[1:] &= ~repeats
    return plain[kept].astype(np.uint32), kept


def _hashes(letters: NDArray[np.uint32]) -> list[NDArray[np.uint16]]:
    """Return the places of all n-grams in the table, by their length."""
    found = []
    mixed = letters * _ODD
    for run in _RUNS[: max(0, len(letters) - 1)]:
        mixed = mixed[:-1]
        mixed ^= letters[run - 1 :]
        mixed *= _ODD
        mixed ^= mixed >> _HALF
        found.append(mixed.astype(np.uint16))
    return found


def places_in(text: str) -> NDArray[np.intp]:
    """Return the places of a passage's n-grams, including duplicates."""
    return np.concatenate([np.zeros(0, np.intp), *(one.astype(np.intp) for one in _hashes(_read(f" {text} ")[0]))])


class OrderModel(NamedTuple):
    """Weights of hashed n-grams. The numbers have at most 8 bits, but are added faster in 16."""

    weights: NDArray[np.int8 | np.int16]
    unit: float
    bias: float

    def score(self, text: str) -> float:
        """Return the log-odds that a passage is an order to an agent."""
        return self.rate(text).scores([(0, len(text))])[0]

    def rate(self, text: str) -> Rated:
        letters, kept = _read(f" {text} ")
        total = np.zeros(len(letters) + 1, np.int16)
        hashes = _hashes(letters)
        for places in hashes:
            part = total[1 : len(places) + 1]
            part += self.weights.take(places)
        return Rated(self, hashes, total.cumsum(dtype=np.int32), kept)


class Rated:
    """The ratings of a text's passages. Callers give positions of characters in the text. Inside, positions count letters: the text has
    a space before and after it, and ``_kept`` has the characters that stand for a letter. ``_hashes`` has each n-gram's place in the table.
    """

    __slots__ = ("_hashes", "_kept", "_known", "_model", "_sums")

    def __init__(
        self, model: OrderModel, hashes: list[NDArray[np.uint16]], sums: NDArray[np.int32], kept: NDArray[np.bool_] | None
    ) -> None:
        self._model, self._hashes, self._sums, self._kept = model, hashes, sums, kept
        self._known: NDArray[np.intp] | None = None

    def scores(self, passages: Sequence[tuple[int, int]]) -> list[float]:
        """Return the log-odds that passages are orders to an agent, each between two positions."""
        ends = np.array(passages, np.intp)
        ends[:, 1] += 2  # the gaps around a passage
        if self._kept is not None:
            ends = self._letters_before().take(ends)
        sums, sizes = self._sums.take(ends), ends[:, 1] - ends[:, 0]
        totals = sums[:, 1] - sums[:, 0]
        odds = totals * self._model.unit / np.sqrt(np.maximum(1, sizes * len(_RUNS))) + self._model.bias
        return cast("list[float]", odds.tolist())

    def distinct_scores(self, passages: Sequence[tuple[int, int]]) -> list[float]:
        """Return the log-odds that passages are orders to an agent, with repeated n-grams counted once."""
        if self._kept is None:
            ends = [(start, end + 2) for start, end in passages]
        else:
            letters = self._letters_before()
            ends = [(int(letters[start]), int(letters[end + 2])) for start, end in passages]
        return self._distinct_each(ends)

    def _letters_before(self) -> NDArray[np.intp]:
        """Return the number of letters before each character."""
        if self._known is None:
            self._known = np.concatenate([[0], np.cumsum(cast("NDArray[np.bool_]", self._kept))])
        return self._known

    def _distinct(self, first: int, last: int) -> float:
        parts = [places[first : max(first, last - run + 1)] for run, places in zip(_RUNS, self._hashes, strict=False)]
        if not parts or not len(parts[0]):
            return self._model.bias
        places = np.concatenate(parts)
        places.sort(kind="stable")  # a radix sort
        is_new = places[1:] != places[:-1]
        weights = self._model.weights.take(places)
        total = int(weights[0]) + int(np.dot(weights[1:].astype(np.float32), is_new))
        return total * self._model.unit / math.sqrt(1 + np.count_nonzero(is_new)) + self._model.bias

    def _scaled(self, total: int, size: int) -> float:
        return total * self._model.unit / math.sqrt(max(1, size * len(_RUNS))) + self._model.bias

    def exceeds(self, limit: float, is_latin: bool) -> bool:
        """Return True if a window has higher log-odds, also without repeated n-grams, because tables and lists repeat them."""
        return self._exceeds(_WINDOW, limit) or self._exceeds(_SHORT_WINDOW, limit + is_latin)

    def may_exceed(self, limit: float, is_latin: bool) -> bool:
        """Return True if a window has higher log-odds when its n-grams are all counted."""
        return self._may_exceed(_WINDOW, limit) or self._may_exceed(_SHORT_WINDOW, limit + is_latin)

    def _may_exceed(self, width: int, limit: float) -> bool:
        sums, size = self._sums, len(self._sums) - 1
        if size <= width:
            return self._scaled(int(sums[-1]), size) > limit
        step = width // 4
        least = (limit - self._model.bias) / self._model.unit * math.sqrt(width * len(_RUNS))
        return bool((sums[width::step] - sums[: size - width + 1 : step]).max() > least or sums[-1] - sums[size - width] > least)

    def _exceeds(self, width: int, limit: float) -> bool:
        sums, size = self._sums, len(self._sums) - 1
        if size <= width:
            return self._scaled(int(sums[-1]), size) > limit and self._distinct(0, size) > limit
        step = width // 4
        least = (limit - self._model.bias) / self._model.unit * math.sqrt(width * len(_RUNS))
        totals = sums[width::step] - sums[: size - width + 1 : step]
        found = (totals > least).nonzero()[0]
        if len(found) > 1:
            found = found[totals[found].argsort()[::-1]]  # the likeliest first
        starts = (found * step).tolist()
        if sums[-1] - sums[size - width] > least:
            starts.append(size - width)
        if any(self._distinct(start, start + width) > limit for start in starts[:_FEW]):
            return True
        later = [[(start, start + width) for start in starts[at : at + _MANY]] for at in range(_FEW, len(starts), _MANY)]
        return any(max(self._distinct_each(each)) > limit for each in later)

    def _distinct_each(self, ends: Sequence[tuple[int, int]]) -> list[float]:
        """Return the results of :meth:`_distinct` for several passages."""
        widths = [last - first for first, last in ends]
        if len(ends) <= 2 or min(widths) < _RUNS[-1]:
            return [self._distinct(*each) for each in ends]
        longest, parts = max(widths), []
        for (first, last), width in zip(ends, widths, strict=True):
            parts += [places[first : last - run + 1] for run, places in zip(_RUNS, self._hashes, strict=True)]
            if width < longest:  # repeated places don't count
                parts.append(np.full(len(_RUNS) * (longest - width), parts[-1][0]))
        places = np.concatenate(parts).reshape(len(ends), -1)
        places.sort(axis=1, kind="stable")
        is_new = places[:, 1:] != places[:, :-1]
        weights = self._model.weights.take(places)
        totals = weights[:, 0] + np.add.reduce(weights[:, 1:] * is_new, axis=1, dtype=np.int32)
        sizes = 1 + np.add.reduce(is_new, axis=1, dtype=np.int32)
        return cast("list[float]", (totals * self._model.unit / np.sqrt(sizes) + self._model.bias).tolist())


@cache
def order_model() -> OrderModel:
    weights, unit, bias = text_model("orders")
    return OrderModel(weights.astype(np.int16), unit, bias)
