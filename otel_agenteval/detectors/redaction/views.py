"""Decode a text in layers, and map positions back to the original.

The first view has the same length as the text. It replaces digits of all scripts, full-width and mathematical letters, dashes, and
spaces with ASCII characters. Each further view decodes one layer of JSON and Python escapes, percent-encoding, HTML entities, and
quoted-printable ``@``, and removes invisible characters. A match in a view is replaced in the original text, without
splitting escapes.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from functools import cache

_MAX_LAYERS = 4
"""Maximum number of views after the first view. JSON inside JSON inside JSON needs three."""

_INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0"
    "\U000e0000-\U000e0fff"
)
_ENTITY = r"&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|commat|period|lowbar|hyphen|dash|num|colon|sol|equals|plus|nbsp|amp|quot|apos|lt|gt|shy|zwnj|zwj);"
_WRITTEN = re.compile(
    r"\\u[dD][89abAB][0-9A-Fa-f]{2}\\u[dD][c-fC-F][0-9A-Fa-f]{2}"  # a surrogate pair: one character over U+FFFF
    r"|\\(?:u[0-9A-Fa-f]{4}|u\{[0-9A-Fa-f]{1,6}\}|x[0-9A-Fa-f]{2}|[nrtbfv]|[^\w\s]|_)"
    r"|(?:%[89A-Fa-f][0-9A-Fa-f]){2,4}|%[0-7][0-9A-Fa-f]"
    rf"|{_ENTITY}"
    r"|=40(?=[\w-]{1,63}\.[A-Za-z])|=\r?\n(?=@)|(?<=@)=\r?\n"  # quoted-printable
    rf"|[{_INVISIBLE}]+"
)
_MARKS = re.compile(rf"[\\%&{_INVISIBLE}]|=40|=\r?\n")
_TAG = re.compile(r"</?(?:b|i|u|em|strong|span|font|mark|wbr|small|code)(?:\s[^<>]{0,200})?/?>")
"""Pattern for markup inside a word or number."""
_CONTROL = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", "v": "\v"}


class View:
    __slots__ = ("_begins", "_places", "_under", "text")

    def __init__(self, text: str, under: View | None = None, places: list[tuple[int, int, int, bool]] | None = None) -> None:
        self.text = text
        self._under = under
        self._places = places or []
        """Segments: the start in this view, the start and end in the preceding view, and True if the segment was decoded."""
        self._begins = [place[0] for place in self._places]

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """Convert a range in this view to a range in the original text."""
        view: View | None = self
        while view is not None and view._places:
            start, end = view._below(start)[0], view._below(end - 1)[1]
            view = view._under
        return start, end

    def _below(self, at: int) -> tuple[int, int]:
        begin, start, end, decoded = self._places[bisect_right(self._begins, at) - 1]
        return (start, end) if decoded else (start + at - begin, start + at - begin + 1)


def views_of(text: str) -> Iterator[View]:
    """Yield the views of a text, least decoded first. The first view has the text's length."""
    view: View | None = View(folded(text))
    for _ in range(_MAX_LAYERS + 1):
        if view is None:
            return
        yield view
        view = next_view(view)


def decoded(text: str) -> str:
    """Return the last view's text, in which most spellings of a value are equal."""
    *_, last = views_of(text)
    return last.text


def next_view(view: View) -> View | None:
    """Return a view with one more layer decoded, or without inline HTML tags, or None if nothing changes or remains."""
    text = view.text
    encoded = _WRITTEN if _MARKS.search(text) is not None and _WRITTEN.search(text) is not None else _TAG
    parts: list[str] = []
    places: list[tuple[int, int, int, bool]] = []
    at = out = 0
    for found in encoded.finditer(text):
        start, end = found.span()
        means = _decoded_part(found.group())
        if start > at:
            places.append((out, at, start, False))
            parts.append(text[at:start])
            out += start - at
        if means:
            places.append((out, start, end, True))
            parts.append(means)
            out += len(means)
        at = end
    if not at:
        return None
    if at < len(text):
        places.append((out, at, len(text), False))
        parts.append(text[at:])
    return View(folded("".join(parts)), view, places) if places else None


def _decoded_part(written: str) -> str:
    first = written[0]
    if first == "\\":
        kind = written[1]
        if kind in "ux" and len(written) > 2:
            code = written[2:].strip("{}") if kind == "x" or len(written) < 12 else ""
            if code:
                number = int(code, 16)
                return chr(number) if number < 0x110000 and not 0xD800 <= number < 0xE000 else "\ufffd"
            return (bytes.fromhex(written[2:6] + written[8:12])).decode("utf-16-be", "replace")
        return _CONTROL.get(kind, kind)
    if first == "%":
        return bytes.fromhex(written.replace("%", "")).decode("utf-8", "replace")
    if first == "&":
        import html

        return html.unescape(written)
    return "@" if written == "=40" else ""


# --- look-alike characters


def folded(text: str) -> str:
    """Replace full-width letters, digits of other scripts, and similar characters with ASCII. The length stays the same."""
    if text.isascii():
        return text
    table, foldable = _folding()
    return foldable.sub(lambda found: table.get(found[0], found[0]), text)  # many times as fast as str.translate


@cache
def _folding() -> tuple[dict[str, str], re.Pattern[str]]:
    table: dict[str, str] = {}
    for first, last in ((0x80, 0x3100), (0xA620, 0xAC00), (0xFE10, 0xFFF0), (0x10400, 0x1FC00)):
        for code in range(first, last):
            if (means := _looks_like(chr(code))) is not None:
                table[chr(code)] = means
    # One range for all characters above U+FFFF, because a class with single characters is 100 times as slow.
    return table, re.compile("[" + "".join(sign for sign in table if sign < "\U00010000") + "\U00010400-\U0001fc00]")


def _looks_like(character: str) -> str | None:
    kind = unicodedata.category(character)
    if kind == "Nd":
        return str(unicodedata.decimal(character))
    if kind == "Pd" or character == "\u2212":
        return "-"
    if kind == "Zs":
        return " "
    if kind in ("Zl", "Zp") or character == "\x85":
        return "\n"
    if ord(character) >= 0x2000:
        plain = unicodedata.normalize("NFKC", character)
        if len(plain) == 1 and plain.isascii():
            return plain
    return None
