"""HTML tables for notebooks. Text of agents and users is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from .wellformed import for_document

_MOST_CHARS = 600


def table_html(title: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    first = "".join(f'<th style="text-align:left">{escape(head)}</th>' for head in heads)
    others = "".join(
        "<tr>" + "".join(f'<td style="text-align:left">{escape(_cut(cell))}</td>' for cell in row) + "</tr>" for row in rows
    )
    return for_document(
        f'<table><caption style="text-align:left"><b>{escape(title)}</b></caption><tr>{first}</tr>{others}</table>'
    )


def facts_html(title: str, facts: str, rows: Iterable[tuple[str, str]]) -> str:
    """Return a table of names and texts, with a caption of facts."""
    cells = "".join(
        f'<tr><th style="text-align:left;vertical-align:top;white-space:nowrap">{escape(name)}</th>'
        f'<td style="text-align:left;white-space:pre-wrap">{escape(_cut(text))}</td></tr>'
        for name, text in rows
    )
    caption = f'<caption style="text-align:left"><b>{escape(title)}</b> {escape(facts)}</caption>'
    return for_document(f"<table>{caption}{cells}</table>")


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_CHARS else f"{text[: _MOST_CHARS - 1]}…"
