"""Rendering of a report as text, Markdown, JSON, or a web page. A report has titled tables, and the tables' data for JSON.

A page is a single file with inline style and script. Its content security policy forbids all requests, and allows only the page's
own style and script, by hash. Even if escaping failed, other scripts couldn't run.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from typing import Any

from ..core.wellformed import for_document

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'sha256-{style_hash}'; script-src 'sha256-{script_hash}'">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
{body}
</main>
<script>{script}</script>
</body>
</html>
"""


@dataclass(frozen=True, slots=True)
class Table:
    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    """Rows of cells. A cell that begins with spaces is indented."""
    empty: str = ""


@dataclass(frozen=True, slots=True)
class TabularReport:
    title: str
    """Title of the web page. Text formats show only the tables' titles."""
    tables: Sequence[Table]
    data: Any
    warnings: Sequence[str] = ()
    about: str = ""


def render(report: TabularReport, form: str) -> str:
    if form == "json":
        return json.dumps(report.data, indent=2)
    if form == "html":
        return _as_page(report)
    parts = []
    for table in report.tables:
        rows = [table.heads, *table.rows]
        if form == "markdown":
            title = f"**{table.title}**\n\n" if table.title else ""
            text = markdown_table([[_indented(cell) for cell in row] for row in rows])
        else:
            title = f"{table.title}\n" if table.title else ""
            text = aligned(rows)
        parts.append(title + (table.empty if table.empty and not table.rows else text))
    return "\n\n".join([*parts, *(["\n".join(report.warnings)] if report.warnings else [])])


def _as_page(report: TabularReport) -> str:
    parts = [f"<h1>{escape(report.title)}</h1>"]
    if report.about:
        parts.append(f"<p>{escape(report.about)}</p>")
    tables = [Table(table.title, ("",), [[table.empty]]) if table.empty and not table.rows else table for table in report.tables]
    if report.warnings:
        tables.append(Table("Warnings", ("",), [[warning] for warning in report.warnings]))
    for table in tables:
        rows = [[f"<td>{escape(cell)}</td>" for cell in row] for row in table.rows]
        parts.append(html_table(table.title or report.title, table.heads, rows))
    return page(report.title, parts)


def aligned(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)


def markdown_table(rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table. Line breaks in cells become spaces, and ``|`` is escaped."""
    head, *body = [[" ".join(cell.split()).replace("|", "\\|") for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *body))


def _indented(cell: str) -> str:
    """Return a Markdown cell that keeps its indentation. Markup in an indented cell is escaped."""
    text = cell.lstrip(" ")
    indent = "&nbsp;" * (len(cell) - len(text))
    return indent + re.sub(r"([\\`*_{}\[\]<>#!~&])", r"\\\1", text) if indent else cell


def page(title: str, parts: Iterable[str]) -> str:
    """Return an HTML document with the HTML ``parts`` as its body. Users can sort the tables by column."""
    style, script = ((files(__package__) / name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    style_hash, script_hash = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, script))
    return for_document(_PAGE.format(
        title=escape(title), style=style, script=script, body="\n".join(filter(None, parts)), style_hash=style_hash, script_hash=script_hash,
    ))  # fmt: skip


def html_table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f'<th scope="col"><button type="button">{escape(text)}</button></th>' for text in heads)
    body = "\n".join(f"<tr>{''.join(cells)}</tr>" for cells in rows)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}"><table>\n<caption>{escape(caption)}</caption>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>"
    )
