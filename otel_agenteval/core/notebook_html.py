"""HTML tables of turns and scores for notebooks. Text of agents and users is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .score import Score
    from .turn import Turn

_MOST_CHARS = 600
_MOST_ROWS = 40
_MARKS = {True: "✓", False: "✗", None: "·"}


def turn_html(turn: Turn) -> str:
    """Return a table of a turn: agent, input, tools, output and error."""
    facts = [turn.agent or "agent without a name", turn.service or "", f"{len(turn.llm_calls)} model calls"]
    facts += [f"{turn.duration_s:.2f} s"] if turn.duration_s is not None else []
    facts += [f"{turn.usage.input_tokens or 0:,} + {turn.usage.output_tokens or 0:,} tokens"] if turn.usage is not None else []
    facts += [f"${turn.cost_usd:.4f}"] if turn.cost_usd is not None else []
    facts += ["incomplete"] if not turn.complete else []
    calls = [f"{call.name}{' ✗' if call.error is not None else ''}" for call in turn.tool_calls or ()]
    error = (turn.error.message or turn.error.type or "unknown") if turn.error is not None else None
    rows = [("asked", turn.input), ("tools", ", ".join(calls) or None), ("answered", turn.output), ("error", error)]
    return _table(
        f"turn {turn.turn_id}", " · ".join(filter(None, facts)), [(name, text) for name, text in rows if text is not None]
    )


def scores_html(scores: Sequence[Score], title: str = "scores") -> str:
    """Return a table with one row per score: failures first, skipped scores last."""
    order = {"error": 0, "ok": 1, "skipped": 2}
    ranked = sorted(scores, key=lambda score: (order[score.status], score.verdict is not False, score.metric))
    lines = [(f"{_MARKS[score.verdict]} {score.metric}", _said(score)) for score in ranked[:_MOST_ROWS]]
    more = f"{len(ranked)} scores" + (f", the first {_MOST_ROWS} are shown" if len(ranked) > _MOST_ROWS else "")
    return _table(title, more, lines)


def _said(score: Score) -> str:
    if score.status == "skipped":
        return f"skipped: {score.detail.get('reason', '')}"
    if score.status == "error":
        return f"error: {score.error_type}: {score.explanation or ''}"
    value = (
        score.label
        if score.type == "boolean" and score.label
        else f"{score.value:.4g}"
        if score.value is not None
        else score.label or ""
    )
    bound = "" if score.threshold is None else f" ({'≤' if score.direction == 'down' else '≥'} {score.threshold:g})"
    return f"{value}{bound if score.type != 'boolean' else ''}{f': {score.explanation}' if score.explanation else ''}"


def table_html(title: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table with a header row."""
    first = "".join(f'<th style="text-align:left">{escape(head)}</th>' for head in heads)
    others = "".join(
        "<tr>" + "".join(f'<td style="text-align:left">{escape(_cut(cell))}</td>' for cell in row) + "</tr>" for row in rows
    )
    return f'<table><caption style="text-align:left"><b>{escape(title)}</b></caption><tr>{first}</tr>{others}</table>'


def _table(title: str, facts: str, rows: Iterable[tuple[str, str]]) -> str:
    cells = "".join(
        f'<tr><th style="text-align:left;vertical-align:top;white-space:nowrap">{escape(name)}</th>'
        f'<td style="text-align:left;white-space:pre-wrap">{escape(_cut(text))}</td></tr>'
        for name, text in rows
    )
    return f'<table><caption style="text-align:left"><b>{escape(title)}</b> {escape(facts)}</caption>{cells}</table>'


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_CHARS else f"{text[: _MOST_CHARS - 1]}…"
