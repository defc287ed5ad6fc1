"""Rule out most texts without personal data in a few microseconds.

The check maps a text's bytes to a *shape* of digits, capitals, and separators. Most personal data contains ``@`` or at least seven
digits that aren't part of a date. Shorter data, such as an address or a date of birth, is recognized by typical words.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from .screen import Look, ScreenedWords
from .texts import has_any, lazy, words

_SIGNS = {b"0123456789": 48, b"ABCDEFGHIJKLMNOPQRSTUVWXYZ": 65, b"-./": 45, b" ()\t\n\xc2\xa0\xe2\x80\x90\x91\x93\xaf": 32}
_SHAPES = bytes(next((shape for signs, shape in _SIGNS.items() if code in signs), 97) for code in range(256))
"""Byte table for shapes: ``0`` for digits, ``A`` for capitals, ``-`` or a space for separators, ``a`` for other bytes."""
_ROW_OF_DIGITS = b"0000000"
_DATE_SHAPE = re.compile(rb"0(?<!00)(?:000-00?-00?|0?- ?00?- ?0000)(?!-?0)")
_CODES = (b"AA000000A", b"AAAAAA00A00", b"AAAAA0000A", b"AAAA000000A")
"""Shapes of identity numbers with few digits: British, Italian, Indian, and Mexican."""
_OTHER_DIGITS = lazy(
    "[\u0660-\u0669\u06f0-\u06f9\u0966-\u096f\u09e6-\u09ef\u0a66-\u0a6f\u0ae6-\u0aef\u0be6-\u0bef\u0c66-\u0c6f\u0e50-\u0e59\uff10-\uff19\uff20\U0001d7ce-\U0001d7ff]"
)
_INVISIBLE_SIGNS = tuple(sign.encode() for sign in "\u200b\u200c\u200d\u2060")


_LEADS = {
    "cyrillic": b"\xd0", "greek": b"\xce", "arabic": b"\xd8", "hebrew": b"\xd7", "indic": b"\xe0", "kana": b"",
    "han": b"", "hangul": b"\xec",
}  # fmt: skip
"""First UTF-8 byte of frequent letters per script, if there is one. Stems in a script are found only in texts with this byte."""


def _spaced(stems: str) -> tuple[str, ...]:
    return tuple(stem.replace("_", " ") for stem in stems.split())


def _stems(**by_script: str) -> tuple[tuple[bytes, tuple[bytes, ...]], ...]:
    """Group word stems by their script's byte in :data:`_LEADS`. Most stems omit the first letter, because it can be a capital."""
    return tuple((_LEADS[script], tuple(stem.encode() for stem in _spaced(stems))) for script, stems in by_script.items())


class _TypicalWords(NamedTuple):
    """Words that usually occur near a kind of personal data, such as "lives" near an address."""

    ascii: ScreenedWords
    accented: ScreenedWords
    stems: tuple[tuple[bytes, tuple[bytes, ...]], ...]

    def occur_in(self, written: bytes, look: Look | None = None) -> bool:
        if self.ascii.occur_in(written, look):
            return True
        if written.isascii():
            return False
        return self.accented.occur_in(written, look) or any(
            lead in written and has_any(written, stems) for lead, stems in self.stems
        )


HOMES = _TypicalWords(
    ScreenedWords(words("personal/screened.txt", "home")),
    ScreenedWords(_spaced("ống_tại bor_på hà_riêng ydlí ocuieș turduğ")),
    _stems(cyrillic="рожив живёт живет ешка", greek="ένει", arabic="سكن يقيم عنوان", hebrew="מתגורר גר", indic="रहत घर", kana="住 自宅", han="住", hangul="자택 거주"),
)  # fmt: skip
BIRTHS = _TypicalWords(
    ScreenedWords(words("personal/screened.txt", "birth")),
    ScreenedWords(_spaced("ödelsed ødselsd gày_sinh äaika oğum född født née_le né_le Nació nació")),
    _stems(cyrillic="рожд народ родил", arabic="الميلاد", hebrew="לידה", indic="जन्म วันเกิด", kana="生年月日 生まれ", han="出生", hangul="생년월일 년생"),
)  # fmt: skip
PAPERS = _TypicalWords(
    ScreenedWords(_spaced("assp PASSP nsurance_n asseport asapor assapo aspo aszport eisepass assnum icen")),
    ScreenedWords(_spaced("ộ_chiếu ührersch ermis_de_cond")),
    _stems(cyrillic="аспорт", arabic="جواز", hebrew="דרכון", indic="पासपोर्ट", kana="パスポート 旅券 免許", han="护照 驾驶", hangul="여권"),
)  # fmt: skip
_CODE = b"0000000"
"""Shape of the shortest identity number with letters and digits, in which letters are also ``0``."""
_REACH, _STRIDE = 144, 32
"""Number of bytes to search before and after a digit. This is enough for a word such as "lives" and a street name."""


def may_hold(text: str, look: Look | None = None) -> bool:
    """Return True if a text needs the full check. ``look`` is the text's :class:`~.screen.Look`, if it exists."""
    if "@" in text or " dot " in text or ("(" in text and "(at)" in text) or ("[" in text and "[at]" in text):
        return True
    if ("&" in text and "&#" in text) or ("%" in text and "%4" in text) or ("\\" in text and "\\u" in text):
        return True
    written = text.encode("utf-8", "replace") if look is None else look.written
    if not text.isascii() and (_hides_something(text, written) or " arroba " in text):
        return True
    return may_hold_numbers(written, look)


def _hides_something(text: str, written: bytes) -> bool:
    if b"\xc2\xad" in written or b"\xef\xbb\xbf" in written:
        return True
    if b"\xe2" in written and any(sign in written for sign in _INVISIBLE_SIGNS):
        return True
    other = b"\xe0" in written or b"\xd9" in written or b"\xdb" in written or b"\xef" in written or b"\xf0" in written
    return other and _OTHER_DIGITS.search(text) is not None


def may_hold_numbers(written: bytes, look: Look | None = None) -> bool:
    """Return True if a text has a long number, or digits and words that are typical of personal data."""
    shape = written.translate(_SHAPES)
    if b"0" not in shape:
        return False
    joined = shape.translate(None, b"- ")
    if b"000000" in joined:
        joined = _DATE_SHAPE.sub(b"a", shape).translate(None, b"- ")
    if _CODE not in joined.replace(b"A", b"0") and b"000000" not in joined:
        if not (HOMES.ascii.may_be_in(look) or BIRTHS.ascii.may_be_in(look)) and written.isascii():
            return False
        written = _around_digits(written, shape)  # only an address or a date of birth is still possible
    elif (
        _ROW_OF_DIGITS in joined or (b"A0" in joined and any(code in joined for code in _CODES)) or PAPERS.occur_in(written, look)
    ):
        return True
    return HOMES.occur_in(written, look) or BIRTHS.occur_in(written, look)


def _around_digits(written: bytes, shape: bytes) -> bytes:
    """Return the text near digits, where words for an address or a date of birth are. Return non-ASCII or encoded text as it is."""
    if not written.isascii() or b"&" in written or b"%" in written or b"\\" in written:
        return written  # decoded or non-ASCII text has other distances in bytes
    parts = []
    end, at = 0, shape.find(b"0")
    while at >= 0:
        begin, stop = max(end, at - _REACH), at + _STRIDE
        parts.append(written[begin:stop])
        end, at = stop, shape.find(b"0", stop)
    return b"".join(parts)
