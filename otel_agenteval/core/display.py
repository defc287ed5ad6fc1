"""Escaping of text for notebooks and terminals. A terminal hides some characters, and interprets others as commands."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from html import escape

from .wellformed import for_document

_JOINED = "[\u0600-\u0dff\u1000-\u109f\u1780-\u18af\ufb50-\ufdff\ufe70-\ufefc]"  # scripts such as Arabic and Devanagari
_EMOJI = "\u2194-\u2199\u2600-\u27bf\u2b1b\U0001f300-\U0001faff"
NEEDED = f"(?<={_JOINED})[\u200c\u200d](?={_JOINED})|(?<=[\ufe0f{_EMOJI}])\u200d(?=[{_EMOJI}])"  # joiners in words and emoji
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # C0, DEL, and C1: they start commands, such as ESC [ and U+009B
    "\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # line ends and text direction
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d\u2060-\u2065\u206a-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb"  # invisible
    f"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff](?<!{NEEDED})"
)
LINES = "\n\t"  # characters to keep in multi-line text


def escaped(text: str, keep: str = "") -> str:
    r"""Escape control characters, line ends, and most invisible characters as in JSON. Keep ``keep`` and joiners in words and emoji."""
    return _UNSAFE.sub(lambda found: found[0] if found[0] in keep else json.dumps(found[0])[1:-1], text)


_MOST_CHARS = 600


def table_html(title: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    left = 'style="text-align:left"'
    first = "".join(f"<th {left}>{escape(head)}</th>" for head in heads)
    others = ("".join(f"<td {left}>{_cell(cell)}</td>" for cell in row) for row in rows)
    body = "".join(f"<tr>{cells}</tr>" for cells in (first, *others))
    return for_document(f"<table><caption {left}><b>{escape(title)}</b></caption>{body}</table>")


def facts_html(title: str, facts: str, rows: Iterable[tuple[str, str]]) -> str:
    """Return an HTML table with one row for each (name, text) pair. The caption is ``title`` in bold, followed by ``facts``."""
    cells = "".join(
        f'<tr><th style="text-align:left;vertical-align:top;white-space:nowrap">{escape(name)}</th>'
        f'<td style="text-align:left;white-space:pre-wrap">{_cell(text)}</td></tr>'
        for name, text in rows
    )
    caption = f'<caption style="text-align:left"><b>{escape(title)}</b> {escape(facts)}</caption>'
    return for_document(f"<table>{caption}{cells}</table>")


def _cell(text: str) -> str:
    return escape(text if len(text) <= _MOST_CHARS else f"{text[: _MOST_CHARS - 1]}…")
