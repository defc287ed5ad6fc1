"""Find table cells and their headings in Markdown, CSV, aligned columns, HTML, SQL, and JSON."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from ..texts import Span, lazy

Splitter = Callable[[str, int, int], list[Span]]


class TableCell(NamedTuple):
    head: str
    start: int
    end: int
    sure: bool = True
    """True if ``head`` is certainly a column heading. False if it might be the label at the left of a row."""


_LONGEST_HEAD, _LONGEST_ROW = 1_000, 4_000
_MOST_ROWS = 500
_WRAPPING = " \t\r`*\"'"
_SEPARATOR = lazy(r"[\s|:+=\-\u2500-\u257f]+\Z")
_HEAD = lazy(r"[*`\"]{0,3}[^\W\d][^<>{}()=|,;\t:]{0,40}")


def cells_in(text: str, places: Sequence[int]) -> Iterator[TableCell]:
    """If there are ``places`` (sorted), yield cells of tables with a heading at a place, and of all SQL and JSON tables."""
    if not places:
        return
    if "\n" in text:
        yield from _in_lines(text, places)
    if "<tr" in text:
        yield from _in_html(text, places)
    yield from _in_groups(text)


# --- lines


_OPENED = lazy(r"[:\[]\s{0,4}\"(?=[^\"\n]{0,1000}\Z)")
_CLOSED = lazy(r"\"\s{0,4}[}\],]")
"""Pattern for the end of a JSON string. A table in a JSON string starts and ends in the middle of a line."""


def _split_at(sign: str) -> Splitter:
    one = re.escape(sign)
    field = lazy(rf"(?:\A|(?<={one}))(?:[ ]?\"(?:[^\"\n]|\"\"){{0,1000}}\"[ ]?(?={one}|\Z)|[^{one}\n]*)")
    return lambda text, start, end: [(start + found.start(), start + found.end()) for found in field.finditer(text[start:end])]


_FIELDS = _split_at("|")


def _split_at_bars(text: str, start: int, end: int) -> list[Span]:
    line = text[start:end].rstrip(" \t\r").removesuffix("|")
    inside = line.lstrip(" \t").removeprefix("|")
    start += len(line) - len(inside)
    return _FIELDS(text, start, start + len(inside))


_ALIGNED = lazy(r"\S+(?: \S+)*")
_SPLITTERS: tuple[tuple[str, Splitter], ...] = (
    ("|", _split_at_bars),
    *((sign, _split_at(sign)) for sign in ("\t", ";", ",")),
    ("  ", lambda text, start, end: [found.span() for found in _ALIGNED.finditer(text, start, end)]),
)
"""Field separators, each with a function that splits a line. The first separator that occurs in a line applies."""


class _Heading(NamedTuple):
    heads: list[str]
    split: Splitter
    end: int
    in_json: bool


def _in_lines(text: str, places: Sequence[int]) -> Iterator[TableCell]:
    done = 0
    for place in places:
        heading = _heading_at(text, place) if place >= done else None
        if heading is not None:
            done = heading.end + 1
            for row, end in _rows_below(text, heading):
                done = end
                yield from _cells(text, heading.heads, row)


def _heading_at(text: str, place: int) -> _Heading | None:
    start, end = text.rfind("\n", max(0, place - _LONGEST_HEAD), place) + 1, text.find("\n", place, place + _LONGEST_HEAD)
    if (opened := _OPENED.search(text, start, place)) is not None:
        start = opened.end()
    if end < 0 or end - start > 2 * _LONGEST_HEAD:
        return None
    line = text[start:end]
    split = next((split for sign, split in _SPLITTERS if sign in line), None)
    if split is None or line.rstrip().endswith((",", ";")):
        return None
    heads = [text[begin:stop].strip(_WRAPPING) for begin, stop in split(text, start, end)]
    if sum(map(bool, heads)) < 2 or not all(map(_is_head, heads)):
        return None
    if line.lstrip()[:1] == "|" and _SEPARATOR.match(text, end, _end_of_line(text, end + 1)) is None:
        return None
    return _Heading(heads, split, end, opened is not None)


def _rows_below(text: str, heading: _Heading) -> Iterator[tuple[list[Span], int]]:
    start = heading.end + 1
    for _ in range(_MOST_ROWS):
        end = _end_of_line(text, start)
        if start >= len(text) or end - start > _LONGEST_ROW:
            return
        closed = _CLOSED.search(text, start, end) if heading.in_json else None
        if closed is not None:
            end = closed.start()
        if _SEPARATOR.match(text, start, end) is None:
            row = heading.split(text, start, end)
            if len(row) != len(heading.heads):
                return
            yield row, end + 1
        if closed is not None:
            return
        start = end + 1


def _end_of_line(text: str, at: int) -> int:
    end = text.find("\n", at)
    return end if end >= 0 else len(text)


def _is_head(field: str) -> bool:
    return not field or (_HEAD.fullmatch(field) is not None and field.count(" ") < 4)


def _cells(text: str, heads: Sequence[str], row: Sequence[Span], sure: bool = True) -> Iterator[TableCell]:
    for head, (start, end) in zip(heads, row, strict=True):
        value = text[start:end].lstrip(_WRAPPING)
        begin, value = end - len(value), value.rstrip(_WRAPPING)
        if head and value:
            yield TableCell(head, begin, begin + len(value), sure)


# --- HTML

_HTML_CELL = lazy(r"<t([hd])\b[^<>]{0,200}>(?:\s{0,20}<[a-z]{1,10}>){0,3}([^<>]{0,400})")


def _in_html(text: str, places: Sequence[int]) -> Iterator[TableCell]:
    done = 0
    for place in places:
        at = text.rfind("<tr", max(0, place - 2_000), place) if place >= done else -1
        heads: list[str] = []
        sure = False
        for cells, end in _html_rows(text, at):
            done = end
            row = [cell.span(2) for cell in cells]
            if heads:
                if len(row) != len(heads):
                    break
                yield from _cells(text, heads, row, sure)
                continue
            heads = [text[start:end].strip(" \t\r\n:") for start, end in row]
            kinds = {cell.group(1) for cell in cells}
            sure = kinds == {"h"}
            if len(kinds) != 1 or not all(map(_is_head, heads)):
                break


def _html_rows(text: str, at: int) -> Iterator[tuple[list[re.Match[str]], int]]:
    while at >= 0:
        following = text.find("<tr", at + 3)
        end = following if following >= 0 else len(text)
        yield list(_HTML_CELL.finditer(text, at, min(end, at + _LONGEST_ROW))), end
        at = following if "</table" not in text[at:end] else -1


# --- headings in one bracket, each row in another

_GROUPS = (
    (
        "[[",
        lazy(r"\[\[([^\[\]]{1,500})\]\s{0,8},((?:\s{0,20}\[[^\[\]]{0,1000}\]\s{0,8},?){1,200})"),
        lazy(r"\[([^\[\]]{0,1000})\]"),
    ),
    (
        "values",
        lazy(r"\(([^()]{1,500})\)\s{0,8}VALUES\s{0,8}((?:\([^()\n]{0,500}\)[\s,]{0,8}){1,50})", re.IGNORECASE),
        lazy(r"\(([^()\n]{0,500})\)"),
    ),
    (
        '"rows"',
        lazy(r"\[([^\[\]]{1,500})\]\s{0,8},\s{0,8}\"rows\"\s{0,8}:\s{0,8}\[((?:\s{0,20}\[[^\[\]]{0,1000}\]\s{0,8},?){1,200})"),
        lazy(r"\[([^\[\]]{0,1000})\]"),
    ),
)
"""For each format: text that every table contains, pattern for a table, and pattern for a row."""


def _in_groups(text: str) -> Iterator[TableCell]:
    """Yield cells of SQL ``INSERT``, ``{"columns": […], "rows": [[…]]}``, and ``[[…], […]]``."""
    split = _SPLITTERS[3][1]
    for between, whole, part in _GROUPS:
        for found in whole.finditer(text) if between in text or between.upper() in text else ():
            heads = [text[start:end].strip(_WRAPPING) for start, end in split(text, *found.span(1))]
            for each in part.finditer(text, *found.span(2)):
                row = split(text, *each.span(1))
                if len(row) == len(heads):
                    yield from _cells(text, heads, row, sure=between != "[[")
