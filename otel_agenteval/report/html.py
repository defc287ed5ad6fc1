"""Report on a run as a web page with charts. All text from the run is escaped."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

import numpy as np

from ..core.score import pass_rate
from ..outlets.turn_text import number_of, one_line
from .compare import Comparison, MetricChange
from .formatting import (
    Report,
    by_weight,
    change_numbers,
    describe_pairing,
    effect_of,
    n_of,
    number,
    p_value,
    percent,
    rate_and_interval,
    remarks,
    worst_turns,
)
from .render import html_table, page
from .run import MOST_TEXT, MetricSeries, Run, ScoreRow

_MOST_TURNS = 500
_BINS = 20
_WIDTH, _HEIGHT = 160, 28


def render_html(report: Report) -> str:
    state = "fail" if report.failures else "pass" if report.decides else "dim"
    parts = [
        "<h1>Agent evaluation</h1>",
        f'<p class="{state}"><strong>{escape(report.verdict())}</strong></p>',
        _list(report.failures[bool(report.gates_failed) :]),
    ]
    if report.comparison is not None:
        parts.append(_comparison(report.comparison))
    parts += [_metrics(report.run), _groups(report.run), _turns(report.run)]
    return page(f"Agent evaluation: {report.verdict()}", parts)


# --- parts -----------------------------------------------------------------------------------------------------------


def _metrics(run: Run) -> str:
    rows = []
    for series in run.series.values():
        summary = series.summary()
        numeric = series.facts.type == "numeric"
        unit = series.facts.unit
        rate, between = rate_and_interval(summary)
        values = [_number(value if numeric else None, number(value, unit)) for value in (summary.mean, summary.p50, summary.p95)]
        rows.append([
            _cell(f'<code class="name">{escape(series.label)}</code>' + (" <strong>gate</strong>" if series.facts.policy == "gate" else "")),
            _number(summary.n), _number(summary.pass_rate, f'{rate} <span class="dim">{between}</span>'), *values, _count(summary.outcomes["fail"]), _count(summary.outcomes["error"]),
            _number(summary.outcomes["skipped"] + summary.outcomes["vacuous"]), _cell(_histogram(series)),
        ])  # fmt: skip
    heads = ("metric", "n", "pass rate", "mean", "p50", "p95", "failed", "errors", "not applicable", "distribution")
    about = "Pass rates with their 95 % interval. Not applicable: skipped, or nothing to evaluate."
    return f"<h2>Metrics</h2>\n{html_table(about, heads, rows)}"


def _groups(run: Run) -> str:
    found: dict[tuple[str, str], list[ScoreRow]] = {}
    for row in run.rows:
        found.setdefault((row.about.agent or "–", row.about.model or "–"), []).append(row)
    rows = []
    for (agent, model), scores in found.items():
        verdicts = [row.passed for row in scores if row.passed is not None and row.outcome != "vacuous"]
        passed, failed, errors = sum(verdicts), len(verdicts) - sum(verdicts), sum(row.outcome == "error" for row in scores)
        rows.append([
            _cell(escape(agent)), _cell(escape(model)), _number(len({row.about.turn_id for row in scores})),
            _cell(_bar(passed, passed + failed), "" if (rate := pass_rate(passed, failed)) is None else rate),
            _count(failed), _count(errors), _count(sum(row.fails_gate for row in scores)),
        ])  # fmt: skip
    heads = ("agent", "model", "turns", "pass rate", "failed", "errors", "failed gates")
    return f"<h2>Agents and models</h2>\n{html_table('Combined results of all metrics that have a verdict.', heads, rows)}"


def _turns(run: Run) -> str:
    if not (turns := worst_turns(run)):
        return "<h2>Failed turns</h2>\n<p>None.</p>"
    rows = []
    for failed in turns[:_MOST_TURNS]:
        about = failed[0].about
        name = f'<code title="{escape(about.turn_id)}">{escape(run.short_name(about))}</code>'
        for word, text in (("asked", about.asked), ("answered", about.answered)):
            if text:
                name += f'<div class="content"><span class="dim">{word}</span> {escape(one_line(text, MOST_TEXT))}</div>'
        rows.append([
            _cell(name), _cell(escape(about.agent or "–")), _number(sum(row.fails_gate for row in failed)), _number(len(failed)),
            _cell(_list(map(_reason, failed), escaped=True)),
        ])  # fmt: skip
    cut = f" The first {_MOST_TURNS:,} of {len(turns):,} are shown." if len(turns) > _MOST_TURNS else ""
    heads = ("turn", "agent", "failed gates", "failed", "why")
    return f"<h2>Failed turns</h2>\n{html_table(f'Turns with a failed score or an error, worst first.{cut}', heads, rows)}"


def _reason(row: ScoreRow) -> str:
    word = "gate failed" if row.fails_gate else "error" if row.outcome == "error" else "failed"
    note = f": {escape(one_line(row.why, 600))}" if row.why else ""
    return f'<span class="{"warn" if word == "error" else "fail"}">{word}</span> <code>{escape(row.series.label)}</code>{note}'


def _comparison(comparison: Comparison) -> str:
    rows = []
    for change in by_weight(comparison.changes):
        before, after, difference, _ = change_numbers(change)
        word = f"{change.verdict} (gates)" if change.watched and change.verdict == "regression" else change.verdict
        css = {"regression": "fail" if change.watched else "warn", "improvement": "pass"}.get(change.verdict, "dim")
        rows.append([
            _cell(f'<code class="name">{escape(change.label)}</code>'), _cell(change.measure), _number(change.before, before),
            _number(change.after, after), _number(change.difference, difference), _cell(_interval(change)),
            _number(change.effect, effect_of(change)), _number(change.adjusted, escape(p_value(change.adjusted).removeprefix("p = "))),
            _number(change.counts[1], n_of(change)), _cell(f'<span class="{css}">{word}</span>'),
        ])  # fmt: skip
    about = f"{describe_pairing(comparison)}. Differences are now minus then, with 95 % intervals. p includes Holm's correction."
    heads = ("metric", "measure", "then", "now", "difference", "interval", "effect", "p", "n", "verdict")
    title = f"<h2>Against {escape(comparison.baseline)}</h2>"
    return "\n".join([title, html_table(about, heads, rows), _list(remarks(comparison))])


# --- charts ----------------------------------------------------------------------------------------------------------


def _histogram(series: MetricSeries) -> str:
    values = [row.value for row in series.evaluated if row.value is not None]
    if not values:
        return ""
    if series.facts.type == "boolean":
        yes, no = ("yes", "no") if series.facts.direction == "neutral" else ("pass", "fail")
        return _bar(int(sum(values)), len(values), f"{yes} {sum(values):.0f}, {no} {len(values) - sum(values):.0f}")
    most = {"1": 1.0, "/100": 100.0}.get(series.facts.unit, 0.0)
    low, high = (0.0, most) if min(values) >= 0 and max(values) <= most else (min(values), max(values))
    counts, _ = np.histogram(values, bins=_BINS, range=(low, high))
    top, width = int(counts.max()), _WIDTH / _BINS
    unit = series.facts.unit
    label = f"{number_of(len(values), 'value')} from {number(min(values), unit)} to {number(max(values), unit)}; axis {low:g} to {high:g}"
    bars = "".join(
        f'<rect class="bar" x="{i * width:.1f}" y="{_HEIGHT - height:.1f}" width="{width - 1:.1f}" height="{height:.1f}"/>'
        for i, height in ((i, (_HEIGHT - 2) * int(n) / top) for i, n in enumerate(counts))
        if height
    )
    return _svg(label, f'{bars}<line class="axis" x1="0" x2="{_WIDTH}" y1="{_HEIGHT}" y2="{_HEIGHT}"/>')


def _bar(part: int, whole: int, label: str = "") -> str:
    if not whole:
        return ""
    at = _WIDTH * part / whole
    fill = "ok" if not label or label.startswith("pass") else "bar"
    rest = "no" if fill == "ok" else "rest"
    rects = f'<rect class="{fill}" y="8" width="{at:.1f}" height="12"/><rect class="{rest}" x="{at:.1f}" y="8" width="{_WIDTH - at:.1f}" height="12"/>'
    return _svg(label or f"{percent(part / whole)}: {part:,} of {whole:,}", rects)


def _interval(change: MetricChange) -> str:
    low, high = change.interval
    reach = max(abs(low), abs(high), abs(change.difference)) or 1.0
    x = [_WIDTH / 2 * (1 + 0.95 * value / reach) for value in (low, high, change.difference)]
    css = {"regression": " worse", "improvement": " better"}.get(change.verdict, "")
    middle = _HEIGHT / 2
    return _svg(
        f"95 % interval {change_numbers(change)[3]}",
        f'<line class="axis" x1="{_WIDTH / 2}" x2="{_WIDTH / 2}" y1="4" y2="{_HEIGHT - 4}"/>'
        f'<line class="range{css}" x1="{x[0]:.1f}" x2="{x[1]:.1f}" y1="{middle}" y2="{middle}"/>'
        f'<circle class="bar" cx="{x[2]:.1f}" cy="{middle}" r="4"/>',
    )


def _svg(label: str, inner: str) -> str:
    text = escape(label)
    return (
        f'<svg role="img" aria-label="{text}" width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}">'
        f"<title>{text}</title>{inner}</svg>"
    )


# --- cells --------------------------------------------------------------------------------------------------------


def _cell(html: str, sort: float | str | None = None) -> str:
    return f"<td>{html}</td>" if sort is None else f'<td data-v="{sort}">{html}</td>'


def _number(value: float | None, shown: str = "") -> str:
    if value is None:
        return '<td class="n" data-v="">–</td>'
    return f'<td class="n" data-v="{value!r}">{shown or number(value)}</td>'


def _count(n: int) -> str:
    return f'<td class="n{" fail" if n else ""}" data-v="{n}">{n:,}</td>'


def _list(items: Iterable[str], *, escaped: bool = False) -> str:
    inner = "".join(f"<li>{item if escaped else escape(item)}</li>" for item in items)
    return f"<ul>{inner}</ul>" if inner else ""
