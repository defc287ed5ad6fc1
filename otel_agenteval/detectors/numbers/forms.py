"""The form of a number, ``#`` for each digit and its unit or next word, and text without the numbers of some forms."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

_DIGIT = re.compile(r"[0-9]")
_CJK = r"\u2e80-\u9fff\uac00-\ud7af"
_JOINED = rf"[^\W{_CJK}]"
"""A character that continues a word. Chinese, Japanese and Korean have no spaces between words."""
_LETTER = rf"[^\W\d_{_CJK}]"
_SIGN = r"[$€£¥₹%‰°]"
_SIGN_BEFORE = re.compile(rf"{_SIGN}[ \u00a0]?\Z")
_AFTER = re.compile(rf"[ \u00a0]?(?:{_SIGN}|{_LETTER}{{1,30}}|[{_CJK}])")
_WORD_BEFORE = re.compile(rf"{_LETTER}{{1,30}}[ \u00a0]?\Z")
_BESIDE = 31


def form_of(text: str, start: int, end: int) -> str:
    """Return the form of the number at a place: ``### kcal``, ``$#,###``, ``Article ##``, or ``##.##.####`` if nothing is beside it."""
    before = text[max(0, start - _BESIDE) : start]
    left, right = _SIGN_BEFORE.search(before), None
    if left is None:
        right = _AFTER.match(text, end)
        left = _WORD_BEFORE.search(before) if right is None and text[start:end].isdigit() else None
    return _DIGIT.sub("#", f"{left[0] if left else ''}{text[start:end]}{right[0] if right else ''}")


def without_forms(text: str, forms: Sequence[str]) -> str:
    """Return the text with spaces for everything of one of the forms. Positions stay the same."""
    return _pattern(tuple(forms)).sub(lambda found: " " * len(found[0]), text)


@lru_cache(maxsize=64)
def _pattern(forms: tuple[str, ...]) -> re.Pattern[str]:
    alternatives = "|".join(re.escape(form).replace(r"\#", "[0-9]") for form in sorted(forms, key=len, reverse=True) if form)
    return re.compile(rf"(?<!{_JOINED})(?<![0-9][.,:/-])(?:{alternatives or '(?!)'})(?!{_JOINED}|[.,:/-][0-9])")
