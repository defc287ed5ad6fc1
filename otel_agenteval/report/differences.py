"""What sets some turns apart from others, such as those that failed a metric from those that passed it, as a report."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.score import Score
from ..core.turn import Turn
from ..evaluation.turn_facts import FactCondition, attributes_of, facts_of
from ..outlets.store.differences import MOST_NAMED, compare_group, compare_verdicts
from ..outlets.store.reader import VerdictRow
from ..statistics.differences import FEW, Contrast, Differences
from .compare import Comparison
from .formatting import aligned, count, markdown_table, p_value, percent, points
from .html import page, text_table
from .run import Run


@dataclass(frozen=True, slots=True)
class ShownDifferences:
    title: str
    """With places for the numbers of turns on both sides and of all turns."""
    about: Mapping[str, str]
    """Keys of the report as data, besides the findings: the metric or the group."""
    sides: tuple[str, str]
    found: Differences


def differences_of(metric: str, rows: Sequence[VerdictRow]) -> ShownDifferences:
    title = f"{metric}: {{0:,}} of {{2}} failed"
    return ShownDifferences(title, {"metric": metric}, ("failed", "passed"), compare_verdicts(metric, rows))


def differences_of_group(rows: Sequence[VerdictRow], group: Sequence[FactCondition], option: str = "--group") -> ShownDifferences:
    """Compare the turns that meet all conditions with the rest.

    Raises:
        ConfigError: no turn has a fact of that name. The message begins with ``option``.
    """
    name = " and ".join(map(str, group))
    title = f"{name.replace('{', '{{').replace('}', '}}')}: {{0:,}} of {{2}}"
    return ShownDifferences(title, {"where": name}, ("group", "rest"), compare_group(rows, group, option))


def facts_row(turn: Turn, attributes: Collection[str] = ()) -> VerdictRow:
    """Return the facts of a turn and the named attributes of its spans, without a verdict."""
    facts = {**attributes_of(turn, attributes), **facts_of(turn)}
    return VerdictRow(turn.turn_id, False, facts, turn.conversation_id or turn.turn_id, 1.0)


def verdicts_in(row: VerdictRow, scores: Iterable[Score]) -> dict[str, VerdictRow]:
    """Return the verdict of each metric on a turn. Vacuous ones and metric errors are left out."""
    return {
        score.metric: row._replace(bad=not score.verdict) for score in scores if score.verdict is not None and not score.vacuous
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


def _heads(one: ShownDifferences) -> tuple[str, ...]:
    return ("fact", *one.sides, "difference, interval", "p", "turns", "")


def _cells(one: Contrast) -> tuple[str, ...]:
    low, high = one.interval
    notes = [f"few turns (fewer than {FEW})"] if one.few else []
    if one.effect:
        notes.append("can be an effect")
    if one.also:
        notes.append(f"same turns: {', '.join(map(str, one.also))}")
    return (
        str(one), percent(one.bad), percent(one.rest), f"{points(one.bad - one.rest)} ({points(low)} … {points(high)})", p_value(one.p),
        f"{one.turns[0]:,} and {one.turns[1]:,}", "; ".join(notes),
    )  # fmt: skip


def _title(one: ShownDifferences) -> str:
    title = one.title.format(one.found.bad, one.found.rest, count(one.found.bad + one.found.rest, "turn"))
    return f"{title} (same turns: {', '.join(map(str, one.found.same))})" if one.found.same else title


def _nothing(one: ShownDifferences) -> str:
    if not one.found.tested:
        return "too few turns to compare them"
    return f"no difference shown; {one.found.tested:,} facts and pairs of facts were compared"


def as_text(found: Sequence[ShownDifferences]) -> str:
    return "\n\n".join(
        f"{_title(one)}\n{aligned([_heads(one), *map(_cells, one.found.findings)]) if one.found.findings else _nothing(one)}"
        for one in found
    )


def as_markdown(found: Sequence[ShownDifferences]) -> str:
    return "\n\n".join(
        f"**{_title(one)}**\n\n{markdown_table([_heads(one), *map(_cells, one.found.findings)]) if one.found.findings else _nothing(one)}"
        for one in found
    )


def as_html(found: Sequence[ShownDifferences]) -> str:
    tables = [
        text_table(_title(one), _heads(one), map(_cells, one.found.findings))
        if one.found.findings
        else text_table(_title(one), ("",), [[_nothing(one)]])
        for one in found
    ]
    return page("Differences", ["<h1>Differences</h1>", *tables])


def as_data(found: Sequence[ShownDifferences]) -> list[dict[str, Any]]:
    return [
        {
            **one.about, one.sides[0]: one.found.bad, one.sides[1]: one.found.rest, "tested": one.found.tested,
            "same": [fact._asdict() for fact in one.found.same],
            "findings": [
                {
                    "facts": [fact._asdict() for fact in finding.facts], one.sides[0]: finding.bad, one.sides[1]: finding.rest,
                    "interval": list(finding.interval), "p_adjusted": finding.p, "turns": list(finding.turns), "few": finding.few,
                    "also": [fact._asdict() for fact in finding.also], "effect": finding.effect,
                }
                for finding in one.found.findings
            ],
        }
        for one in found
    ]  # fmt: skip


RENDERINGS: Mapping[str, Callable[[Sequence[ShownDifferences]], str]] = {
    "table": as_text, "markdown": as_markdown, "html": as_html,
}  # fmt: skip
