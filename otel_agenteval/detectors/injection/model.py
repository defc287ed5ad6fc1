"""Rate passages with a linear model over character n-grams, all passages of a text in one pass.

``scripts/text_models.py`` fits the model to labeled passages. It hashes n-grams of two to five characters into a table of 8-bit
weights. Because no words are needed, it works across inflections, spellings and languages. A running sum of the weights rates
every passage of a text, so the time depends only on the text: about 20 ns a character.
"""

from __future__ import annotations

import math
import re
import unicodedata
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PLACES = 1 << 16
_RUNS = range(2, 6)
_FILE = Path(__file__).parents[1] / "text_models" / "orders.npz"
_SPACE, _ZERO, _NOTHING, _RARE = 32, 48, 1, 2
_MARKS = "*_`#>"
_LONG_TOKEN = re.compile(r"[A-Za-z0-9+/_=-]{28,}")
_SHAPE = bytes(97 if chr(code).isalnum() or chr(code) in "+/_=-" else 32 for code in range(128)).ljust(256)
_TOKEN_SHAPE = b"a" * 28
_WINDOW, _SHORT_WINDOW = 140, 50
"""Characters that :meth:`Rated.exceeds` rates together, in Latin and in other scripts."""


@cache
def _letters() -> NDArray[np.uint16]:
    """Return a map from characters to plain lower-case letters, with one number for all digits and one for all gaps."""
    import numpy as np

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


def _read(text: str) -> tuple[NDArray[np.uint32], NDArray[np.bool_]]:
    """Return the letters of a text, and which of its characters they stand for."""
    import numpy as np

    if _TOKEN_SHAPE in text.encode("ascii", "replace").translate(_SHAPE):
        text = _LONG_TOKEN.sub(lambda found: "0" * len(found.group()), text)
    codes = np.frombuffer(text.encode("utf-32-le", "replace"), np.uint32)
    plain = _letters().take(codes, mode="clip")
    repeats = (plain[1:] == plain[:-1]) & ((plain[1:] == _SPACE) | (plain[1:] == _ZERO))
    kept = plain != _NOTHING
    kept[1:] &= ~repeats
    return plain[kept].astype(np.uint32), kept


def _hashes(letters: NDArray[np.uint32]) -> list[NDArray[np.uint16]]:
    """Return the places of all n-grams in the table, by their length."""
    import numpy as np

    odd, half = np.uint32(0x9E3779B1), np.uint32(15)
    found = []
    mixed = letters * odd
    for run in _RUNS[: max(0, len(letters) - 1)]:
        mixed = mixed[:-1] ^ letters[run - 1 :]
        mixed *= odd
        mixed ^= mixed >> half
        found.append(mixed.astype(np.uint16))
    return found


def places_in(text: str) -> NDArray[np.intp]:
    """Return the places of a passage's n-grams, including duplicates."""
    import numpy as np

    return np.concatenate([np.zeros(0, np.intp), *(one.astype(np.intp) for one in _hashes(_read(f" {text} ")[0]))])


class OrderModel(NamedTuple):
    """Weights of hashed n-grams."""

    weights: NDArray[np.int8]
    unit: float
    bias: float

    def score(self, text: str) -> float:
        """Return the log-odds that a passage is an order to an agent."""
        return self.rate(text).score(0, len(text))

    def rate(self, text: str) -> Rated:
        import numpy as np

        letters, kept = _read(f" {text} ")
        total = np.zeros(len(letters) + 1, np.int32)
        hashes = _hashes(letters)
        for places in hashes:
            total[1 : len(places) + 1] += self.weights.take(places)
        return Rated(self, hashes, np.cumsum(total), kept)


class Rated:
    """A text whose passages can be rated."""

    __slots__ = ("_hashes", "_kept", "_model", "_places", "_sums")

    def __init__(
        self, model: OrderModel, hashes: list[NDArray[np.uint16]], sums: NDArray[np.int64], kept: NDArray[np.bool_]
    ) -> None:
        self._model, self._hashes, self._sums, self._kept = model, hashes, sums, kept
        self._places: NDArray[np.intp] | None = None

    def score(self, start: int, end: int) -> float:
        """Return the log-odds that the characters between two positions are an order to an agent."""
        first, last = self._letters_of(start, end)
        return self._scaled(int(self._sums[last] - self._sums[first]), last - first)

    def distinct_score(self, start: int, end: int) -> float:
        """Return the log-odds of the characters between two positions, of which repeated n-grams count once."""
        return self._distinct(*self._letters_of(start, end))

    def _letters_of(self, start: int, end: int) -> tuple[int, int]:
        import numpy as np

        if self._places is None:
            self._places = np.concatenate([[0], np.cumsum(self._kept)])
        return int(self._places[start]), int(self._places[min(end + 2, len(self._kept))])

    def _distinct(self, first: int, last: int) -> float:
        import numpy as np

        parts = [places[first : max(first, last - run + 1)] for run, places in zip(_RUNS, self._hashes, strict=False)]
        if not parts:
            return self._model.bias
        places = np.concatenate(parts)
        places.sort()
        is_new = np.ones(len(places), np.bool_)
        np.not_equal(places[1:], places[:-1], out=is_new[1:])
        places = places[is_new]
        total = int(self._model.weights.take(places).sum(dtype=np.int64))
        return total * self._model.unit / math.sqrt(max(1, len(places))) + self._model.bias

    def _scaled(self, total: int, size: int) -> float:
        return total * self._model.unit / math.sqrt(max(1, size * len(_RUNS))) + self._model.bias

    def exceeds(self, limit: float, is_latin: bool) -> bool:
        """Return True if a window has higher log-odds, also without repeated n-grams.

        Short windows in Latin script count less. Repetitions alone, as in tables and lists, aren't an order.
        """
        return self._exceeds(_WINDOW, limit) or self._exceeds(_SHORT_WINDOW, limit + is_latin)

    def _exceeds(self, width: int, limit: float) -> bool:
        sums, size = self._sums, len(self._sums) - 1
        if size <= width:
            return self._scaled(int(sums[-1]), size) > limit and self._distinct(0, size) > limit
        step = width // 4
        totals = sums[width::step] - sums[: size - width + 1 : step]
        least = (limit - self._model.bias) / self._model.unit * math.sqrt(width * len(_RUNS))
        starts = [*(int(at) * step for at in (totals > least).nonzero()[0]), size - width]
        return any(
            int(sums[start + width] - sums[start]) > least and self._distinct(start, start + width) > limit for start in starts
        )


@cache
def order_model() -> OrderModel:
    import numpy as np

    with np.load(_FILE) as kept:
        return OrderModel(kept["weights"], float(kept["unit"]), float(kept["bias"]))
