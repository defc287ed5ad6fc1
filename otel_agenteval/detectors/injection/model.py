"""Rate passages with a linear model over character n-grams.

Characters are first mapped to *letters*, which are lower-case characters without accents. Each n-gram of two to five letters is
hashed to a *place*, which is an index in a table of 8-bit weights. ``scripts/text_models.py`` trains the weights with labeled
passages. The model doesn't need word lists, so it works across inflections, spellings, and languages. Cumulative sums of the
weights make rating fast: about 10 ns per character.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from ..text_model import text_model

_NGRAM_LENGTHS = range(2, 6)
_MULTIPLIER = np.array(0x9E3779B1, np.uint32)  # for hashes; a numpy scalar would be slower
_SHIFT = np.array(15, np.uint32)  # for hashes
_SPACE = ord(" ")  # replaces white space and Markdown
_ZERO = ord("0")  # replaces digits
_DROPPED = 1  # replaces accents and invisible characters
_MARKDOWN = "*_`#>"
_LONG_TOKEN = re.compile(r"[A-Za-z0-9+/_=-]{28,}")
_TOKEN_SHAPES = bytes(97 if chr(code).isalnum() or chr(code) in "+/_=-" else 32 for code in range(128)).ljust(256)
_LONG_TOKEN_SHAPE = b"a" * 28  # shapes are "a" for the characters of tokens, and a space for all others
_WINDOW, _SHORT_WINDOW = 140, 50
"""Window lengths for :meth:`Rated.exceeds`, in letters. The short window is for dense scripts such as Chinese."""
_LATIN_MARGIN = 1.0
"""Amount added to the short window's limit for Latin text, because 50 Latin letters often aren't enough for a decision."""
_FEW, _MANY = 3, 32
"""The three most likely windows are rated one by one. The remaining windows are rated in batches of 32."""
_NO_WINDOW, _FIRST_WINDOW = np.zeros(0, np.intp), np.zeros(1, np.intp)


@cache
def _letters() -> tuple[NDArray[np.uint16], bytes]:
    """Return two tables that map characters to letters, such as ``É`` to ``e`` and ``7`` to ``0``. The second maps only ASCII."""
    letter_of = np.arange(1 << 16, dtype=np.uint16)
    for code in range(1 << 16):
        character = chr(code)
        if character.isspace() or character in _MARKDOWN:
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
        letter_of[[*map(ord, variants)]] = ord(plain)
    return letter_of, bytes(letter_of[:128].tolist()).ljust(256)


def _letters_in(text: str) -> tuple[NDArray[np.uint32], NDArray[np.bool_] | None]:
    """Return a text's normalized letters, and a mask of kept letters (None means all). ``Call  911`` becomes ``call 0``."""
    if _LONG_TOKEN_SHAPE in text.encode("ascii", "replace").translate(_TOKEN_SHAPES):  # faster than a search for the pattern
        text = _LONG_TOKEN.sub(lambda token: "0" * len(token.group()), text)
    letter_of, ascii_letter_of = _letters()
    letters: NDArray[np.uint8 | np.uint16]
    if text.isascii():  # the same result as below, but faster
        plain = text.encode().translate(ascii_letter_of)
        letters = np.frombuffer(plain, np.uint8)
        if b"  " not in plain and b"00" not in plain and _DROPPED not in plain:
            return letters.astype(np.uint32), None
    else:
        letters = letter_of.take(np.frombuffer(text.encode("utf-32-le", "replace"), np.uint32), mode="clip")
    is_repeat = (letters[1:] == letters[:-1]) & ((letters[1:] == _SPACE) | (letters[1:] == _ZERO))
    is_kept = letters != _DROPPED
    is_kept[1:] &= ~is_repeat
    return letters[is_kept].astype(np.uint32), is_kept


def _places_by_length(letters: NDArray[np.uint32]) -> list[NDArray[np.uint16]]:
    """Return one array of table indexes per n-gram length. Element i is for the n-gram that starts at letter i.

    For ``abc``, the first array contains the indexes of ``ab`` and ``bc``, and the second array contains the index of ``abc``.
    """
    places = []
    hashes = letters * _MULTIPLIER
    for length in _NGRAM_LENGTHS:
        if length > len(letters):
            break
        hashes = hashes[:-1]  # each n-gram is extended by the next letter, and the last one has none
        hashes ^= letters[length - 1 :]
        hashes *= _MULTIPLIER
        hashes ^= hashes >> _SHIFT
        places.append(hashes.astype(np.uint16))
    return places


def places_in(text: str) -> NDArray[np.intp]:
    places_by_length = _places_by_length(_letters_in(f" {text} ")[0])
    return np.concatenate([np.zeros(0, np.intp), *places_by_length])


class OrderModel(NamedTuple):
    """Weights of hashed n-grams. The 8-bit weights are stored as 16-bit numbers, which numpy adds faster."""

    weights: NDArray[np.int8 | np.int16]
    unit: float
    bias: float

    def score(self, text: str) -> float:
        """Return the log-odds that a passage is an instruction to an agent."""
        return self.rate(text).scores([(0, len(text))])[0]

    def rate(self, text: str) -> Rated:
        letters, is_kept = _letters_in(f" {text} ")
        letter_totals = np.zeros(len(letters) + 1, np.int16)  # index 8: total of the n-grams that begin at letter 7
        places_by_length = _places_by_length(letters)
        for places in places_by_length:
            letter_totals[1 : len(places) + 1] += self.weights.take(places)
        return Rated(self, places_by_length, letter_totals.cumsum(dtype=np.int32), is_kept)

    def log_odds(self, total: Any, root: Any) -> Any:
        """Return the log-odds of one or more passages. ``root`` is the square root of the n-gram count."""
        return total * self.unit / root + self.bias

    def total_for(self, log_odds: float, root: float) -> float:
        """Return the total weight that results in the given log-odds. This is the inverse of :meth:`log_odds`."""
        return (log_odds - self.bias) / self.unit * root


@dataclass(eq=False)
class Rated:
    """Ratings of passages in one text. Public methods accept character positions, and most private methods accept letter positions.

    A *score* counts every n-gram and is fast. Tables and lists repeat n-grams, which can inflate their scores. A *distinct score*
    counts each n-gram once. It requires sorting, so it is computed only for passages with a high score.
    """

    _model: OrderModel
    _places: list[NDArray[np.uint16]]  # see _places_by_length
    _sums: NDArray[np.int32]  # index 8: total of the n-grams that begin before letter 8
    _is_kept: NDArray[np.bool_] | None  # see _letters_in

    def scores(self, passages: Sequence[tuple[int, int]]) -> list[float]:
        """Return the log-odds that each ``(start, end)`` passage is an instruction to an agent."""
        spans = self._letter_spans(passages)
        sums, sizes = self._sums.take(spans), spans[:, 1] - spans[:, 0]
        roots = np.sqrt(np.maximum(1, sizes * len(_NGRAM_LENGTHS)))
        return cast("list[float]", self._model.log_odds(sums[:, 1] - sums[:, 0], roots).tolist())

    def distinct_scores(self, passages: Sequence[tuple[int, int]]) -> list[float]:
        return [self._distinct(start, end) for start, end in self._letter_spans(passages).tolist()]

    def _letter_spans(self, passages: Sequence[tuple[int, int]]) -> NDArray[np.intp]:
        """Convert character positions to letter positions. Extend each passage by one character on both sides."""
        spans = np.array(passages, np.intp)
        spans[:, 1] += 2  # 1 for the space before the rated text, and 1 for the character after the passage
        return spans if self._is_kept is None else self._letters_before.take(spans)

    @cached_property
    def _letters_before(self) -> NDArray[np.intp]:
        return np.concatenate([[0], np.cumsum(cast("NDArray[np.bool_]", self._is_kept))])

    def _distinct(self, start: int, end: int) -> float:
        if end - start < _NGRAM_LENGTHS[0]:
            return self._model.bias
        by_length = zip(_NGRAM_LENGTHS, self._places, strict=False)
        places = np.concatenate([places[start : max(start, end + 1 - length)] for length, places in by_length])
        places.sort(kind="stable")  # a radix sort
        is_new = places[1:] != places[:-1]
        weights = self._model.weights.take(places)
        total = int(weights[0]) + int(np.dot(weights[1:].astype(np.float32), is_new))
        return float(self._model.log_odds(total, math.sqrt(1 + np.count_nonzero(is_new))))

    def _distinct_each(self, starts: Sequence[int], width: int) -> list[float]:
        """Return the distinct scores of windows with equal width. This is faster than calling :meth:`_distinct` for each window."""
        if len(starts) <= 2:
            return [self._distinct(start, start + width) for start in starts]
        by_length = list(zip(_NGRAM_LENGTHS, self._places, strict=True))
        rows = [places[start : start + width + 1 - length] for start in starts for length, places in by_length]
        places = np.concatenate(rows).reshape(len(starts), -1)
        places.sort(kind="stable")
        is_new = places[:, 1:] != places[:, :-1]
        weights = self._model.weights.take(places)
        totals = weights[:, 0] + np.add.reduce(weights[:, 1:] * is_new, axis=1, dtype=np.int32)
        roots = np.sqrt(1 + np.add.reduce(is_new, axis=1, dtype=np.int32))
        return cast("list[float]", self._model.log_odds(totals, roots).tolist())

    def may_exceed(self, limit: float, is_latin: bool) -> bool:
        short_limit = limit + _LATIN_MARGIN * is_latin
        return bool(len(self._likely_windows(_WINDOW, limit)[0]) or len(self._likely_windows(_SHORT_WINDOW, short_limit)[0]))

    def exceeds(self, limit: float, is_latin: bool) -> bool:
        """Return True if a window of the text has a score and a distinct score above the limit."""
        return self._exceeds(_WINDOW, limit) or self._exceeds(_SHORT_WINDOW, limit + _LATIN_MARGIN * is_latin)

    def _exceeds(self, width: int, limit: float) -> bool:
        windows, totals = self._likely_windows(width, limit)
        if not len(windows):
            return False
        if len(windows) > 1:
            windows = windows[totals[windows].argsort()[::-1]]  # the likeliest first
        size, step = len(self._sums) - 1, width // 4
        width = min(width, size)
        starts = [min(window * step, size - width) for window in windows[:_FEW].tolist()]
        if any(self._distinct(start, start + width) > limit for start in starts):
            return True
        batches = (windows[at : at + _MANY] for at in range(_FEW, len(windows), _MANY))
        return any(max(self._distinct_each(np.minimum(some * step, size - width).tolist(), width)) > limit for some in batches)

    def _likely_windows(self, width: int, limit: float) -> tuple[NDArray[np.intp], NDArray[np.int32]]:
        """Return indexes of windows with a score above the limit, and all windows' total weights."""
        sums, size, step = self._sums, len(self._sums) - 1, width // 4
        least = self._model.total_for(limit, math.sqrt(min(width, size) * len(_NGRAM_LENGTHS)))
        if size <= width:
            return (_FIRST_WINDOW if int(sums[-1]) > least else _NO_WINDOW), sums[-1:]
        ends = sums[width::step]
        totals = np.empty(len(ends) + 1, np.int32)
        np.subtract(ends, sums[:-width:step], out=totals[:-1])  # window 3 begins at letter 3 * step
        totals[-1] = sums[-1] - sums[-1 - width]  # the last window ends with the text
        return (totals > least).nonzero()[0], totals


@cache
def order_model() -> OrderModel:
    weights, unit, bias = text_model("orders")
    return OrderModel(weights.astype(np.int16), unit, bias)
