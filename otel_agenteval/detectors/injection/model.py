"""Rate passages with a linear model over character n-grams, all passages of a text in one pass.

Each n-gram of two to five characters is hashed to its *place* in a table of 8-bit weights, which ``scripts/text_models.py`` fits to
labeled passages. Because no words are needed, it works across inflections, spellings and languages. A running sum of the weights
rates every passage: the total between two letters is the difference of two sums. This takes about 10 ns a character.
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

_NGRAM_LENGTHS = range(2, 6)
_MULTIPLIER, _SHIFT = np.array(0x9E3779B1, np.uint32), np.array(15, np.uint32)  # numpy scalars would be slower
_SPACE, _ZERO, _DROPPED, _RARE = 32, 48, 1, 2
_MARKDOWN = "*_`#>"
_LONG_TOKEN = re.compile(r"[A-Za-z0-9+/_=-]{28,}")
_TOKEN_SHAPES = bytes(97 if chr(code).isalnum() or chr(code) in "+/_=-" else 32 for code in range(128)).ljust(256)
_LONG_TOKEN_SHAPE = b"a" * 28
_WINDOW, _SHORT_WINDOW = 140, 50
"""Lengths in letters of the windows that :meth:`Rated.exceeds` rates. The short one is for dense scripts, such as Chinese."""
_LATIN_MARGIN = 1.0
"""Added to the limit of the short window in Latin text, of which 50 letters are often too few to decide."""
_FEW, _MANY = 3, 32
"""The likeliest three windows are rated one by one, the others 32 at once."""


@cache
def _letters() -> NDArray[np.uint16]:
    """Return a map from characters to plain letters: ``É`` → ``e``, ``7`` → ``0``, line end → space, accent → dropped."""
    letter_of = np.arange(1 << 16, dtype=np.uint16)
    for code in range(1 << 16):
        character = chr(code)
        if 0xD800 <= code < 0xE000:
            letter_of[code] = _RARE
        elif character.isspace() or character in _MARKDOWN:
            letter_of[code] = _SPACE
        elif character.isdigit():
            letter_of[code] = _ZERO
        elif unicodedata.category(character) == "Cf" or 0x300 <= code < 0x370:
            letter_of[code] = _DROPPED
        elif character.isalpha() or code > 0xFF00:
            plain = unicodedata.normalize("NFKC", character).lower()
            if code < 0x250 or 0x1E00 <= code < 0x1F00:
                plain = unicodedata.normalize("NFD", plain)[:1]
            letter_of[code] = ord(plain) if len(plain) == 1 and ord(plain) < 1 << 16 else code
    for variants, plain in (("‘’ʼ´", "'"), ("“”„«»", '"'), ("ı", "i"), ("ł", "l"), ("ø", "o"), ("đ", "d")):
        for variant in variants:
            letter_of[ord(variant)] = ord(plain)
    return letter_of


@cache
def _ascii_letters() -> bytes:
    return bytes(_letters()[:128].tolist()).ljust(256)


def _letters_in(text: str) -> tuple[NDArray[np.uint32], NDArray[np.bool_] | None]:
    """Return a text's plain letters (``Call  911`` → ``call 0``), and a flag for each character: False if dropped. None if all are kept."""
    ascii_text = text.encode("ascii", "replace")
    if _LONG_TOKEN_SHAPE in ascii_text.translate(_TOKEN_SHAPES):
        text = _LONG_TOKEN.sub(lambda token: "0" * len(token.group()), text)
        ascii_text = text.encode("ascii", "replace")
    letters: NDArray[np.uint8 | np.uint16]
    if text.isascii():
        plain = ascii_text.translate(_ascii_letters())
        letters = np.frombuffer(plain, np.uint8)
        if b"  " not in plain and b"00" not in plain and b"\x01" not in plain:
            return letters.astype(np.uint32), None
    else:
        letters = _letters().take(np.frombuffer(text.encode("utf-32-le", "replace"), np.uint32), mode="clip")
    is_repeat = (letters[1:] == letters[:-1]) & ((letters[1:] == _SPACE) | (letters[1:] == _ZERO))
    is_kept = letters != _DROPPED
    is_kept[1:] &= ~is_repeat
    return letters[is_kept].astype(np.uint32), is_kept


def _places_by_length(letters: NDArray[np.uint32]) -> list[NDArray[np.uint16]]:
    """Return the places of all n-grams: an array for each length, in which index 7 is the n-gram that begins at letter 7."""
    places = []
    hashes = letters * _MULTIPLIER
    for length in _NGRAM_LENGTHS[: max(0, len(letters) - 1)]:
        hashes = hashes[:-1]  # each n-gram is extended by the next letter, and the last one has none
        hashes ^= letters[length - 1 :]
        hashes *= _MULTIPLIER
        hashes ^= hashes >> _SHIFT
        places.append(hashes.astype(np.uint16))
    return places


def places_in(text: str) -> NDArray[np.intp]:
    """Return the places of a passage's n-grams, including duplicates."""
    places_by_length = _places_by_length(_letters_in(f" {text} ")[0])
    return np.concatenate([np.zeros(0, np.intp), *places_by_length])


class OrderModel(NamedTuple):
    """Weights of hashed n-grams. The numbers have at most 8 bits, but are added faster in 16."""

    weights: NDArray[np.int8 | np.int16]
    unit: float
    bias: float

    def score(self, text: str) -> float:
        """Return the log-odds that a passage is an order to an agent."""
        return self.rate(text).scores([(0, len(text))])[0]

    def rate(self, text: str) -> Rated:
        letters, is_kept = _letters_in(f" {text} ")
        letter_totals = np.zeros(len(letters) + 1, np.int16)  # index 8: total of the n-grams that begin at letter 7
        places_by_length = _places_by_length(letters)
        for places in places_by_length:
            letter_totals[1 : len(places) + 1] += self.weights.take(places)
        return Rated(self, places_by_length, letter_totals.cumsum(dtype=np.int32), is_kept)


class Rated:
    """The ratings of a text's passages. Callers give positions of characters. Inside, passages begin and end at letters: the text has
    a space before and after it, and dropped characters don't count. ``places`` are by n-gram length, and ``sums`` are running sums of weights.
    """

    __slots__ = ("_is_kept", "_letters_before_character", "_model", "_places", "_sums")

    def __init__(
        self, model: OrderModel, places: list[NDArray[np.uint16]], sums: NDArray[np.int32], is_kept: NDArray[np.bool_] | None
    ) -> None:
        self._model, self._places, self._sums, self._is_kept = model, places, sums, is_kept
        self._letters_before_character: NDArray[np.intp] | None = None

    def scores(self, passages: Sequence[tuple[int, int]]) -> list[float]:
        """Return the log-odds that passages are orders to an agent, each between two positions."""
        spans = np.array(passages, np.intp)
        spans[:, 1] += 2  # the gaps around a passage
        if self._is_kept is not None:
            spans = self._letters_before().take(spans)
        sums, sizes = self._sums.take(spans), spans[:, 1] - spans[:, 0]
        totals = sums[:, 1] - sums[:, 0]
        odds = totals * self._model.unit / np.sqrt(np.maximum(1, sizes * len(_NGRAM_LENGTHS))) + self._model.bias
        return cast("list[float]", odds.tolist())

    def distinct_scores(self, passages: Sequence[tuple[int, int]]) -> list[float]:
        """Return the log-odds that passages are orders to an agent, with repeated n-grams counted once."""
        spans = [(start, end + 2) for start, end in passages]
        if self._is_kept is not None:
            letters_before = self._letters_before()
            spans = [(int(letters_before[start]), int(letters_before[end])) for start, end in spans]
        return self._distinct_each(spans)

    def _letters_before(self) -> NDArray[np.intp]:
        if self._letters_before_character is None:
            self._letters_before_character = np.concatenate([[0], np.cumsum(cast("NDArray[np.bool_]", self._is_kept))])
        return self._letters_before_character

    def _distinct(self, start: int, end: int) -> float:
        rows = [
            places[start : max(start, end - length + 1)] for length, places in zip(_NGRAM_LENGTHS, self._places, strict=False)
        ]
        if not rows or not len(rows[0]):
            return self._model.bias
        places = np.concatenate(rows)
        places.sort(kind="stable")  # a radix sort
        is_new = places[1:] != places[:-1]
        weights = self._model.weights.take(places)
        total = int(weights[0]) + int(np.dot(weights[1:].astype(np.float32), is_new))
        return self._log_odds(total, 1 + np.count_nonzero(is_new))

    def _log_odds(self, total: int, ngrams: int) -> float:
        return total * self._model.unit / math.sqrt(max(1, ngrams)) + self._model.bias

    def _least_total(self, limit: float, size: int) -> float:
        return (limit - self._model.bias) / self._model.unit * math.sqrt(size * len(_NGRAM_LENGTHS))

    def exceeds(self, limit: float, is_latin: bool) -> bool:
        """Return True if a window has higher log-odds, also without repeated n-grams, because tables and lists repeat them."""
        return self._exceeds(_WINDOW, limit) or self._exceeds(_SHORT_WINDOW, limit + _LATIN_MARGIN * is_latin)

    def may_exceed(self, limit: float, is_latin: bool) -> bool:
        """Return True if a window has higher log-odds when its n-grams are all counted."""
        return self._may_exceed(_WINDOW, limit) or self._may_exceed(_SHORT_WINDOW, limit + _LATIN_MARGIN * is_latin)

    def _may_exceed(self, width: int, limit: float) -> bool:
        sums, size = self._sums, len(self._sums) - 1
        if size <= width:
            return self._log_odds(int(sums[-1]), size * len(_NGRAM_LENGTHS)) > limit
        step, least = width // 4, self._least_total(limit, width)
        return bool((sums[width::step] - sums[: size - width + 1 : step]).max() > least or sums[-1] - sums[size - width] > least)

    def _exceeds(self, width: int, limit: float) -> bool:
        sums, size = self._sums, len(self._sums) - 1
        if size <= width:
            return self._log_odds(int(sums[-1]), size * len(_NGRAM_LENGTHS)) > limit and self._distinct(0, size) > limit
        step, least = width // 4, self._least_total(limit, width)
        totals = sums[width::step] - sums[: size - width + 1 : step]
        windows = (totals > least).nonzero()[0]
        if len(windows) > 1:
            windows = windows[totals[windows].argsort()[::-1]]  # the likeliest first
        starts = (windows * step).tolist()
        if sums[-1] - sums[size - width] > least:
            starts.append(size - width)
        if any(self._distinct(start, start + width) > limit for start in starts[:_FEW]):
            return True
        spans = [(start, start + width) for start in starts[_FEW:]]
        return any(max(self._distinct_each(spans[at : at + _MANY])) > limit for at in range(0, len(spans), _MANY))

    def _distinct_each(self, spans: Sequence[tuple[int, int]]) -> list[float]:
        """Return the results of :meth:`_distinct` for several passages."""
        widths = [end - start for start, end in spans]
        if len(spans) <= 2 or min(widths) < _NGRAM_LENGTHS[-1]:
            return [self._distinct(start, end) for start, end in spans]
        longest, rows = max(widths), []
        for (start, end), width in zip(spans, widths, strict=True):
            rows += [places[start : end - length + 1] for length, places in zip(_NGRAM_LENGTHS, self._places, strict=True)]
            if width < longest:  # rows get the same length; repeated places don't count
                rows.append(np.full(len(_NGRAM_LENGTHS) * (longest - width), rows[-1][0]))
        places = np.concatenate(rows).reshape(len(spans), -1)
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
