"""What sets the turns that failed a metric apart from those that passed it, as a report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.score import Score
from ..core.turn import Turn
from ..evaluation.turn_facts import facts_of
from ..outlets.store.differences import MOST_NAMED, compare_verdicts
from ..outlets.store.reader import VerdictRow
from ..statistics.differences import FEW, Contrast, Differences
from .compare import Comparison
from .formatting import aligned, count, markdown_table, p_value, percent, points
from .html import page, text_table
from .run import Run


@dataclass(frozen=True, slots=True)
class MetricDifferences:
    metric: str
    found: Differences


def differences_of(metric: str, rows: Sequence[VerdictRow]) -> MetricDifferences:
    return MetricDifferences(metric, compare_verdicts(metric, rows))


def verdicts_in(turn: Turn, scores: Iterable[Score]) -> dict[str, VerdictRow]:
    """Return the verdict of each metric on a turn. Vacuous ones and metric errors are left out."""
    facts, conversation = facts_of(turn), turn.conversation_id or turn.turn_id
    return {
        score.metric: VerdictRow(turn.turn_id, not score.verdict, facts, conversation, 1.0)
        for score in scores
        if score.verdict is not None and not score.vacuous
    }


def causes_of(comparison: Comparison, run: Run) -> list[str]:
    """Return up to three findings about the failed turns of each metric that regressed."""
    found: list[str] = []
    for series in {change.label: change.series for change in comparison.changes if change.verdict == "regression"}.values():
        rows = [
            VerdictRow(row.about.turn_id, row.outcome == "fail", dict(run.facts[row.about.turn_id]), row.about.case, 1.0)
            for row in series.verdicts
            if row.about.turn_id in run.facts
        ]
        findings = compare_verdicts(series.facts.metric, rows).findings[:MOST_NAMED]
        found += [f"More frequent in failed turns of {series.label}: {one.summary}" for one in findings]
    return found


# --- as texts ------------------------------------------------------------------------------------------------------

_HEADS = ("fact", "failed", "passed", "difference, interval", "p", "turns", "")


def _cells(one: Contrast) -> tuple[str, ...]:
    low, high = one.interval
    notes = [f"few turns (fewer than {FEW} failed)"] if one.few else []
    if one.effect:
        notes.append("can be an effect")
    if one.also:
        notes.append(f"same turns: {', '.join(map(str, one.also))}")
    return (
        str(one), percent(one.bad), percent(one.rest), f"{points(one.bad - one.rest)} ({points(low)} … {points(high)})", p_value(one.p),
        f"{one.turns[0]:,} and {one.turns[1]:,}", "; ".join(notes),
    )  # fmt: skip


def _title(one: MetricDifferences) -> str:
    return f"{one.metric}: {one.found.bad:,} of {count(one.found.bad + one.found.rest, 'turn')} failed"


def _nothing(one: MetricDifferences) -> str:
    if not one.found.tested:
        return "too few turns failed or passed to compare them"
    return f"no difference shown; {one.found.tested:,} facts and pairs of facts were compared"


def as_text(found: Sequence[MetricDifferences]) -> str:
    return "\n\n".join(
        f"{_title(one)}\n{aligned([_HEADS, *map(_cells, one.found.findings)]) if one.found.findings else _nothing(one)}"
        for one in found
    )


def as_markdown(found: Sequence[MetricDifferences]) -> str:
    return "\n\n".join(
        f"**{_title(one)}**\n\n{markdown_table([_HEADS, *map(_cells, one.found.findings)]) if one.found.findings else _nothing(one)}"
        for one in found
    )


def as_html(found: Sequence[MetricDifferences]) -> str:
    tables = [
        text_table(_title(one), _HEADS, map(_cells, one.found.findings))
        if one.found.findings
        else text_table(_title(one), ("",), [[_nothing(one)]])
        for one in found
    ]
    return page("Differences", ["<h1>Differences</h1>", *tables])


def as_data(found: Sequence[MetricDifferences]) -> list[dict[str, Any]]:
    return [
        {
            "metric": one.metric, "failed": one.found.bad, "passed": one.found.rest, "tested": one.found.tested,
            "findings": [
                {
                    "facts": [fact._asdict() for fact in finding.facts], "failed": finding.bad, "passed": finding.rest,
                    "interval": list(finding.interval), "p_adjusted": finding.p, "turns": list(finding.turns), "few": finding.few,
                    "also": [fact._asdict() for fact in finding.also], "effect": finding.effect,
                }
                for finding in one.found.findings
            ],
        }
        for one in found
    ]  # fmt: skip


RENDERINGS: Mapping[str, Callable[[Sequence[MetricDifferences]], str]] = {
    "table": as_text, "markdown": as_markdown, "html": as_html,
}  # fmt: skip
