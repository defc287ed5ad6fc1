"""Markdown summary for a pull request.

Names and explanations can quote an agent or its user. Code spans enclose these texts, which therefore can't mention GitHub users,
add links or pictures, or contain HTML.
"""

from __future__ import annotations

import re

from ..outlets.turn_text import number_of, one_line
from .compare import Comparison
from .formatting import (
    Report,
    by_weight,
    change_numbers,
    describe_pairing,
    effect_of,
    n_of,
    number,
    p_value,
    rate_and_interval,
    remarks,
    worst_turns,
)
from .run import MOST_TEXT, Run

LIMIT = 65_000
"""Maximum length of the summary. GitHub accepts 65,536 characters in a comment."""
_WORST = 10
_REASONS = 3
_METRIC_HEAD = ("| metric | n | pass rate | mean | p50 | p95 | failed | errors |", "|---|--:|--:|--:|--:|--:|--:|--:|")
_CHANGE_HEAD = (
    "| metric | | before | now | difference | 95 % CI | effect | p (Holm) | n | |", "|---|---|--:|--:|--:|--:|--:|--:|--:|---|",
)  # fmt: skip
_TURN_HEAD = ("| turn | agent | what failed |", "|---|---|---|")
_SHARES = {"failures": 0.07, "worst": 0.2, "changes": 0.25, "unchanged": 0.15, "metrics": 0.25}


def render_markdown(report: Report) -> str:
    mark = "❌" if report.failures else "✅" if report.decides else "ℹ️"
    parts = [f"### {mark} {report.verdict()}"]
    parts += _fitting([f"- {_code(failure)}" for failure in report.failures[bool(report.gates_failed) :]], "failures", "failures")
    parts += _worst(report.run)
    if report.comparison is not None:
        parts += _comparison(report.comparison)
    parts += _metrics(report.run)
    return "\n".join(parts) + "\n"


def _worst(run: Run) -> list[str]:
    if not (turns := worst_turns(run)):
        return []
    lines = []
    for rows in turns[:_WORST]:
        about = rows[0].about
        reasons = [
            f"{'**gate** ' if row.fails_gate else ''}{_code(row.series.label)}{': ' + _code(row.why) if row.why else ''}"
            for row in rows[:_REASONS]
        ]
        if len(rows) > _REASONS:
            reasons.append(f"and {len(rows) - _REASONS} more")
        for word, text in (("asked", about.asked), ("answered", about.answered)):
            if text:
                reasons.append(f"{word}: {_code(text, MOST_TEXT)}")
        lines.append(f"| {_code(run.short_name(about))} | {_code(about.agent or '–')} | {'<br>'.join(reasons)} |")
    more = [f"\n{number_of(len(turns) - _WORST, 'more turn')} with failed scores or errors."] if len(turns) > _WORST else []
    return ["", "**Worst turns**", "", *_TURN_HEAD, *_fitting(lines, "worst", "turns"), *more]


def _comparison(comparison: Comparison) -> list[str]:
    ranked = by_weight(comparison.changes)
    unchanged = ("no change shown", "too few")
    lines: dict[bool, list[str]] = {True: [], False: []}
    for change in ranked:
        verdicts = {"regression": "❌ regression" if change.watched else "⚠️ regression"}
        cells = (
            _code(change.label), change.measure, *change_numbers(change), effect_of(change),
            p_value(change.adjusted).removeprefix("p ").removeprefix("= "), n_of(change), verdicts.get(change.verdict, change.verdict),
        )  # fmt: skip
        lines[change.verdict not in unchanged or change.series.facts.policy == "gate"].append(f"| {' | '.join(cells)} |")
    found = ["", f"**Against {_code(comparison.baseline)}**: {describe_pairing(comparison)}.", ""]
    if lines[True]:
        found += [*_CHANGE_HEAD, *_fitting(lines[True], "changes", "measures"), ""]
    if others := lines[False]:
        title = f"No change shown in {number_of(len(others), 'other measure' if lines[True] else 'measure')}"
        table = [*_CHANGE_HEAD, *_fitting(others, "unchanged", "measures")]
        found += [f"<details><summary>{title}</summary>", "", *table, "", "</details>"]
    notes = _fitting([f"- {_code(remark, 1_000)}" for remark in remarks(comparison)], "failures", "remarks")
    return [*found, "", *notes] if notes else found


def _metrics(run: Run) -> list[str]:
    summed = [(series, series.summary()) for series in run.series.values()]
    never = [series for series, summary in summed if not summary.n and not summary.outcomes["error"]]
    shown = [(series, summary) for series, summary in summed if series not in never]
    shown.sort(key=lambda item: (-item[1].gates_failed, -item[1].outcomes["error"], -item[1].outcomes["fail"]))
    lines = []
    for series, summary in shown:
        name = f"{_code(series.label)}{' **gate**' if series.facts.policy == 'gate' else ''}"
        rate = " ".join(rate_and_interval(summary)).rstrip()
        is_boolean = series.facts.type == "boolean"
        numbers = ("" if is_boolean else number(value, series.facts.unit) for value in (summary.mean, summary.p50, summary.p95))
        counts = f"{summary.outcomes['fail']:,}", f"{summary.outcomes['error']:,}"
        lines.append(f"| {' | '.join((name, f'{summary.n:,}', rate, *numbers, *counts))} |")
    applied = [f"\nNever applied: {number_of(len(never), 'metric')}."] if never else []
    head = ["", "<details><summary>All metrics</summary>", "", *_METRIC_HEAD]
    return [*head, *_fitting(lines, "metrics", "metrics"), *applied, "", "</details>"]


def _fitting(lines: list[str], part: str, what: str) -> list[str]:
    room = _SHARES[part] * LIMIT - 100
    for kept, line in enumerate(lines):
        room -= len(line) + 1
        if room < 0:
            return [*lines[:kept], "", f"… and {len(lines) - kept:,} more {what}, left out for length."]
    return lines


def _code(text: str, limit: int = 200) -> str:
    """Return a code span for a table cell, with ``|`` replaced, because Markdown tables can't reliably escape ``|``."""
    plain = one_line(text, limit).replace("|", "¦") or " "
    fence = "`" * (max(map(len, re.findall("`+", plain)), default=0) + 1)
    pad = " " if plain[0] == "`" or plain[-1] == "`" else ""
    return f"{fence}{pad}{plain}{pad}{fence}"
