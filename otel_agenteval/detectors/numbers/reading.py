"""Find the numbers in a text and their possible values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from ..lists import table
from .words import cjk_value, values_of_words

_TOKEN = re.compile(r"[0-9]+(?:[.,'’\u00a0\u202f][0-9]+)*")
_SPACED = re.compile(
    r"[0-9](?<![0-9.,][0-9])(?<![0-9][ \u00a0\u202f][0-9])[0-9]{0,2}(?:[ \u00a0\u202f][0-9]{3}){1,4}(?:[.,][0-9]{1,2})?(?![ \u00a0\u202f]?[0-9])"
)
_PIECE = re.compile(r"[0-9A-Za-z_][0-9A-Za-z_.,:'’\u00a0\u202f-]*")
_IDENTIFIER = re.compile(r"[A-Za-z_][-_.]?[0-9]")
_LIST_MARKER = re.compile(r"[0-9]{1,3}[.)](?![0-9])")
_HOUR = re.compile(r"[0-9]{1,2}h[0-9]{2}(?![0-9A-Za-z])")
_FOOTNOTE = re.compile(r"[0-9]{1,3}\]")
_DIGITS = bytes(48 if 48 <= code <= 57 else 32 if code <= 32 else 120 for code in range(256))
_LONGEST_WORD = 200
_DEEPEST_LIST = 40
_SMALL = 10.0
_MAX_DIGITS = 300  # more digits overflow a float

_ZEROS = "\u0660\u06f0\u0966\u09e6\u0a66\u0ae6\u0be6\u0c66\u0ce6\u0d66\u0e50\u0ed0\u1040\uff10"
_TO_ASCII = {ord(zero) + digit: str(digit) for zero in _ZEROS for digit in range(10)}
_TO_ASCII |= {
    0x066B: ".",
    0x066C: ",",
    0x066A: "%",
    0xFF0C: ",",
    0xFF0E: ".",
    0xFF05: "%",
    0xFF1A: ":",
    0x2009: "\u202f",
    0x2212: "-",
}
_FOREIGN = re.compile("[" + "".join(f"{z}-{chr(ord(z) + 9)}" for z in _ZEROS) + "\u066a-\u066c\uff05\uff0c\uff1a\u2009]")

SCALES: dict[str, float] = {word: scale for scale, words in table("number_scales.json") for word in words.split()}
_CASED = {"k": "kK", "m": "M", "b": "B", "cr": "Cc"}
_AFTER = re.compile(
    r"[ \u00a0\u202f-]?(?:(%|percent\b|per cent\b|prozent|procent|pour cent|por cien|per cento|процент|відсот|yüzde|persen|प्रतिशत|퍼센트|パーセント)|([^\W\d_](?:[^\W\d_]|[\u0900-\u0903\u093a-\u094f\u0981-\u0983\u09bc-\u09cd\u0e31-\u0e4e\u064b-\u0652]){0,11}))",
    re.IGNORECASE,
)
_GLUED = frozenset("万萬億亿兆千만억조천")
_PERCENT_BEFORE = re.compile(r"(?:yüzde|百分之|bằng)\s?$", re.IGNORECASE)


class Number(NamedTuple):
    """A number in an answer: its text and all possible values."""

    text: str
    readings: tuple[tuple[float, float], ...]
    """Pairs ``(value, half)``. ``half`` is half a unit of the last shown digit, so that an exact number supports a rounded one."""
    is_small: bool
    """True for whole numbers up to 10 with only one reading, which need no source."""
    at: int = 0
    scale: float = 1.0
    """Factor of the following word, such as ``million`` or ``%``."""
    after: str = ""

    @property
    def end(self) -> int:
        return self.at + len(self.text)


def with_ascii_digits(text: str) -> str:
    """Replace digits of other scripts with 0 to 9, without moving positions."""
    if text.isascii():
        return text
    try:
        text.encode("latin-1")  # much faster than searching
    except UnicodeEncodeError:
        return text if _FOREIGN.search(text) is None else text.translate(_TO_ASCII)
    return text


def numbers_in(text: str) -> tuple[list[Number], list[Number]]:
    """Return the numbers in an answer that need a source, and the small ones that don't.

    Small numbers are whole numbers from 0 to 10. List markers at line starts, footnote marks ``[12]``, numbers in URLs,
    identifiers (``GPT-4``, hex ids), ``24/7`` and ``100 %`` are left out.
    """
    shape = text.encode("ascii", "replace").translate(_DIGITS)  # one byte per character keeps positions
    at = shape.find(b"0")
    numbers: list[Number] = []
    small: list[Number] = []
    while at >= 0:
        end = shape.find(b" ", at)
        if end < 0:
            end = len(shape)
        if not _is_left_out(text, at, end):
            token = _TOKEN.match(text, at)
            if token is not None and shape.find(b"0", token.end(), end) < 0:  # most words contain one number
                found = _read(text, token.group(), token.end())
            else:
                found = _numbers_of_word(text, at, end)
            for number in found:
                (small if number.is_small else numbers).append(number)
        at = shape.find(b"0", end)
    return numbers, small


def _is_left_out(text: str, at: int, end: int) -> bool:
    """Return True if the word with its first digit at ``at`` contains no statement."""
    if end - at > _LONGEST_WORD and text[at:end].isascii():
        return True  # encoded data
    before = text[at - 1 : at] or " "
    if before not in " \n\t($€£":
        head = text[max(0, at - _LONGEST_WORD) : at]
        prefix = "" if before.isspace() else head.rsplit(None, 1)[-1]
        if "://" in prefix or "@" in prefix or prefix.startswith("www.") or _ends_in_name(prefix):
            return True
        if before == "[" and _FOOTNOTE.match(text, at):
            return True
    if text[at] == "2" and text.startswith("24/7", at):
        return True
    if not _LIST_MARKER.match(text, at):
        return False
    line = text.rfind("\n", max(0, at - _DEEPEST_LIST), at)
    return (line >= 0 or at <= _DEEPEST_LIST) and not text[line + 1 : at].strip(" \t>#*_-")


_MONEY_CODE = re.compile(r"(?:^|[^A-Za-z])(?:[A-Z]{3}|Rp|Rs\.?|Kč|kr\.?|R|Fr\.?)$")


def _ends_in_name(prefix: str) -> bool:
    last = prefix[-2:-1] if prefix[-1:] in "-_./\\" else prefix[-1:]
    return last.isascii() and (last.isalpha() or last == "_") and not (prefix[-1].isalpha() and _MONEY_CODE.search(prefix))


def _numbers_of_word(text: str, at: int, end: int) -> list[Number]:
    word = text[at:end]
    if "://" in word:  # a footnote, list marker or bracket without a space before a link
        word = re.split(r"\]\(|https?:", word, maxsplit=1)[0]
    found: list[Number] = []
    for piece in _PIECE.finditer(word):
        if not _IDENTIFIER.search(piece.group()) or _HOUR.match(piece.group()):
            for token in _TOKEN.finditer(piece.group()):
                found += _read(text, token.group(), at + piece.start() + token.end())
    return found


def _read(text: str, token: str, end: int) -> list[Number]:
    """Return the number whose digits end at ``end``, or several for a date."""
    at = end - len(token)
    scale = _scale_of(text[end : end + 16])
    found = []
    for readings in _readings(token):
        value, half = readings[0]
        if scale != 1.0:
            if scale == 0.01 and value == 100.0:
                continue
            scaled = tuple((v * scale, h * scale) for v, h in readings)
            found.append(Number(token, readings + scaled, False, at, scale, _scale_word(text[end : end + 16])))
            continue
        small = value <= _SMALL and half == 0.5 and len(readings) == 1
        found.append(Number(token, readings, small, at))
    return found


def scale_after(text: str, at: int) -> float:
    """Return the factor of the word after a number, such as 0.01 for percent."""
    return _scale_of(text[at : at + 16])


def _scale_word(following: str) -> str:
    found = _AFTER.match(following)
    if found is None:
        return ""
    word = found.group(2)
    return word[0] if word and word[0] in _GLUED else found.group()


@lru_cache(maxsize=2048)
def _scale_of(following: str) -> float:
    found = _AFTER.match(following)
    if found is None:
        return 1.0
    if found.group(1):
        return 0.01
    word = found.group(2)
    if word[0] in _GLUED:
        word = word[0]
    cased = _CASED.get(word.lower())
    if cased is not None and word[0] not in cased:
        return 1.0
    return SCALES.get(word.lower(), 1.0)


@lru_cache(maxsize=1024)
def _readings(token: str) -> tuple[tuple[tuple[float, float], ...], ...]:
    """Return the possible readings of a run of digits and separators.

    The result has one item for a number, which may be ambiguous, and several for a date or version.
    """
    if len(token) > _MAX_DIGITS:
        return ()
    if token.isdigit():
        return (((float(token), 0.5),),)
    groups = re.split(r"[^0-9]", token)
    if len(groups) == 2 and len(groups[1]) != 3 and "." in token:
        return (((float(token), 0.5 * 10.0 ** -len(groups[1])),),)
    marks = [ch for ch in token if not ch.isdigit()]
    *whole, last = groups
    decimal = marks[-1] in ".," and (len(marks) == 1 or (marks[-1] not in marks[:-1] and _in_thousands(whole)))
    readings = []
    if _in_thousands(groups) and len(set(marks)) == 1:
        readings.append((float("".join(groups)), 0.5))
    if decimal:
        readings.append((float(f"{''.join(whole)}.{last}"), 0.5 * 10.0 ** -len(last)))
    return (tuple(readings),) if readings else tuple(((float(group), 0.5),) for group in groups)


def _in_thousands(groups: list[str]) -> bool:
    """Return True for groups such as ``1 234 567``, or ``12 34 567`` as in India."""
    first, *rest = groups
    return not rest or (len(first) <= 3 and first[0] != "0" and len(rest[-1]) == 3 and all(2 <= len(g) <= 3 for g in rest[:-1]))


def spaced_numbers(text: str) -> Iterator[Number]:
    """Yield numbers whose groups are separated by spaces (``4 200``), each as one."""
    for found in _SPACED.finditer(text):
        token = found.group()
        whole, mark, cents = re.sub("[ \u00a0\u202f]", "", token).replace(",", ".").partition(".")
        value, half = float(f"{whole[:_MAX_DIGITS]}{mark}{cents}"), 0.5 * 10.0 ** -len(cents)
        scale = scale_after(text, found.end())
        yield Number(token, ((value * scale, half * scale),) if scale != 1.0 else ((value, half),), False, found.start(), scale)


_MIXED = re.compile(
    r"[0-9](?<![0-9][0-9])[0-9.,]{0,40} ?[万萬億亿兆千만억조천百백]+(?: ?[0-9][0-9.,]* ?[万萬億亿兆千만억조천百백]+){0,6}(?: ?[0-9][0-9,]*)?"
)
_MIXED_PART = re.compile("([0-9][0-9.,]*)|([万萬億亿兆千만억조천百백])")
_CJK_SCALE = {"千": 1e3, "천": 1e3, "百": 1e2, "백": 1e2, **{c: SCALES[c] for c in "万萬億亿兆만억조"}}


def mixed_numbers(text: str) -> Iterator[Number]:
    """Yield numbers that mix digits and East Asian magnitudes, each as one.

    Examples are ``34万2千``, ``3천5백만`` and ``3억 4,500만``.
    """
    if text.isascii():
        return
    for found in _MIXED.finditer(text):
        value, half, scale = _mixed(found.group())
        token = found.group().rstrip(".,")
        yield Number(token, ((value, half),), False, found.start(), scale)


def _mixed(token: str) -> tuple[float, float, float]:
    """Return the value, half a unit of the last digit, and the largest magnitude."""
    total = section = 0.0
    digits: str | None = None
    half, largest = 0.5, 1.0
    for number, magnitude in _MIXED_PART.findall(token):
        if number:
            digits, half = number, 0.5 * 10.0 ** -len(number.rstrip(".,").partition(".")[2])
            continue
        scale = _CJK_SCALE[magnitude]
        half, largest = half * scale, max(largest, scale)
        if scale < 1e4:
            section += (_plain(digits) if digits else 1.0) * scale
        else:
            total += (section + (_plain(digits) if digits else 0.0) or 1.0) * scale
            section = 0.0
        digits = None
    return total + section + (_plain(digits) if digits else 0.0), half, largest


def _plain(token: str) -> float:
    try:
        return float(token.replace(",", "").rstrip("."))
    except ValueError:
        return 0.0


def is_named(before: str) -> bool:
    """Return True if two characters before digits make them part of a name, as in ``web12``."""
    return before[-1:].isascii() and before[-1:].islower() and before[-1:] != "p" and before[:1] != "\\"


def values_of(texts: Iterable[str]) -> list[float]:
    found: set[float] = set()
    for text in texts:
        for match in _TOKEN.finditer(text):
            if not is_named(text[max(0, match.start() - 2) : match.start()]):
                found.update(_values_at(text, match))
        for number in chain(spaced_numbers(text), mixed_numbers(text)):
            found.update(value for value, _ in number.readings)
        found.update(value for _, _, value in values_of_words(text))
        if not text.isascii():
            found.update(value for _, _, value in cjk_value(text))
    return sorted(found)


def _values_at(text: str, match: re.Match[str]) -> list[float]:
    token = match.group()
    parts = (token, *token.split(",")) if "," in token else (token,)  # may also be a list of numbers without spaces
    values = [value for part in parts for readings in _readings(part) for value, _ in readings]
    following = text[match.end() : match.end() + 2]
    if following[-1:].isalpha() or "%" in following:
        scale = scale_after(text, match.end())
        if scale != 1.0:
            values += [value * scale for value in values]
    return values
