"""Report on the differences between two sets of turns, such as failed and passed turns."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..core.errors import ConfigError, refusal
from ..core.score import Score
from ..core.turn import Turn
from ..evaluation.turn_facts import EFFECTS, FactCondition, attributes_of, facts_of, follows_from
from ..metrics.registry import indexed
from ..outlets.store.reader import MOST_OF_COMMAND, VerdictRow
from ..outlets.store.views import Filter, Views
from ..outlets.turn_text import number_of
from ..statistics.differences import ERROR, FEW, Contrast, Differences, find_differences
from ..statistics.tests import fisher, holm
from .compare import ALPHA, Comparison
from .formatting import p_value, percent, points
from .render import Table, TabularReport
from .run import Run

if TYPE_CHECKING:
    from ..statistics.changes import Change


MOST_NAMED = 3
_LEAST_BEFORE = 60.0
"""To explain a change, read turns from at least this many seconds before its start."""


def compare_verdicts(metric: str, rows: Sequence[VerdictRow], *, selected: bool = False) -> Differences:
    """Compare a metric's failed turns with its passed turns. Ignore facts from which the metric itself is computed."""
    known = indexed(metric.partition(".")[0])
    left_out = follows_from(known) if known is not None else frozenset[str]()
    facts = [{name: value for name, value in row.facts.items() if name not in left_out} for row in rows]
    return find_differences(
        facts, [row.bad for row in rows], weights=[row.weight for row in rows], draws=[row.conversation for row in rows],
        effects=EFFECTS, selected=selected,
    )  # fmt: skip


def explained(path: str, change: Change) -> Change:
    """Return ``change`` with the facts that distinguish failed turns. If the store can't be read, return ``change`` unchanged."""
    agents = (change.agent,) if change.agent else ()
    # A score arrives after its turn's end, the decision delay, and the judge call, so start earlier.
    since = change.found.since - max(_LEAST_BEFORE, change.at - change.found.since)
    wanted = Filter(since=since, agents=agents, tenant=change.tenant, metric=change.metric)
    with contextlib.suppress(Exception), Views(path) as views:  # report the change without differences
        findings = compare_verdicts(change.metric, views.filtered_verdicts(wanted, MOST_OF_COMMAND)).findings[:MOST_NAMED]
        return replace(change, facts=tuple(one.summary for one in findings))
    return change


@dataclass(frozen=True, slots=True)
class ShownDifferences:
    title: str
    """Title template with placeholders for three turn counts: one per side, and the total."""
    about: Mapping[str, str]
    """Keys and values in the JSON report that identify the metric or the group."""
    sides: tuple[str, str]
    found: Differences


def differences_of(metric: str, rows: Sequence[VerdictRow]) -> ShownDifferences:
    title = f"{metric}: {{0:,}} of {{2}} failed"
    return ShownDifferences(title, {"metric": metric}, ("failed", "passed"), compare_verdicts(metric, rows))


def differences_of_group(rows: Sequence[VerdictRow], group: Sequence[FactCondition], option: str = "--group") -> ShownDifferences:
    """Compare turns that meet all conditions in ``group`` with other turns. Unknown facts raise a ConfigError about ``option``."""
    known = {name for row in rows for name in row.facts}
    facts: list[Mapping[str, Any]] = [row.facts for row in rows]
    for condition in group:
        if condition.name not in known:
            raise ConfigError(
                refusal(option, repr(condition.name), f"must be one of these facts: {', '.join(sorted(known)) or 'none'}")
            )
        facts = [condition.without(one) for one in facts]
    chosen = [all(condition.holds(row.facts) for condition in group) for row in rows]
    compared = find_differences(facts, chosen, draws=[row.conversation for row in rows], selected=True)
    name = " and ".join(map(str, group))
    title = f"{name.replace('{', '{{').replace('}', '}}')}: {{0:,}} of {{2}}"
    return ShownDifferences(title, {"where": name}, ("group", "rest"), compared)


def differences_of_runs(
    before: Mapping[str, Sequence[VerdictRow]], after: Mapping[str, Sequence[VerdictRow]]
) -> list[ShownDifferences]:
    """For each metric that got worse, find properties of its failed turns. Then compare all turns of the runs (key ``""``)."""
    metrics = sorted((before.keys() & after.keys()) - {""})
    ps = holm([fisher(_failed(before[metric]), _failed(after[metric])) for metric in metrics])
    found = []
    for metric, p in zip(metrics, ps, strict=True):
        (old, of_old), (new, of_new) = _failed(before[metric]), _failed(after[metric])
        if p >= ALPHA or new * of_old <= old * of_new:
            continue
        title = f"{metric} got worse: {new:,} of {number_of(of_new, 'turn')} failed, {old:,} of {of_old:,} in the baseline"
        failed = [row for row in after[metric] if row.bad]
        failed += [row._replace(bad=False) for row in before[metric] if row.bad]
        compared = compare_verdicts(metric, failed, selected=True)
        sides = "failed", "failed in baseline"
        if not compared.tested:  # too few failures before
            compared, sides = compare_verdicts(metric, after[metric]), ("failed", "passed")
        found.append(ShownDifferences(title, {"metric": metric}, sides, compared))
    for title, one, other, sides in (
        ("more frequent now", after[""], before[""], ("now", "baseline")),
        ("more frequent in the baseline", before[""], after[""], ("baseline", "now")),
    ):
        rows = [*one, *other]
        of_run = [True] * len(one) + [False] * len(other)
        conversations = [row.conversation for row in rows]
        compared = find_differences([row.facts for row in rows], of_run, draws=conversations, error=ERROR / 2, selected=True)
        found.append(ShownDifferences(f"All turns, {title}: {{0:,}} of {{2}}", {"where": title}, sides, compared))
    return found


def _failed(rows: Sequence[VerdictRow]) -> tuple[int, int]:
    return sum(row.bad for row in rows), len(rows)


def facts_row(turn: Turn, attributes: Collection[str] = ()) -> VerdictRow:
    """Return a turn's facts and span ``attributes`` as a row without a verdict."""
    facts = {**attributes_of(turn, attributes), **facts_of(turn)}
    return VerdictRow(turn.turn_id, False, facts, turn.conversation_id or turn.turn_id, 1.0)


def verdicts_in(row: VerdictRow, scores: Iterable[Score]) -> dict[str, VerdictRow]:
    return {
        score.metric: row._replace(bad=not score.verdict) for score in scores if score.verdict is not None and not score.vacuous
    }


def causes_of(comparison: Comparison, run: Run) -> list[str]:
    """For each metric that regressed, return up to three findings about its failed turns."""
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


def as_report(found: Sequence[ShownDifferences]) -> TabularReport:
    tables = []
    for one in found:
        heads = ("fact", *(f"share of {side}" for side in one.sides), "difference, interval", "p", "turns with it", "")
        tested = f"no difference shown; {one.found.tested:,} facts and pairs of facts were compared"
        empty = tested if one.found.tested or one.found.same else "too few turns to compare them"
        title = one.title.format(one.found.bad, one.found.rest, number_of(one.found.bad + one.found.rest, "turn"))
        if one.found.same:
            title += f" (same turns: {', '.join(map(str, one.found.same))})"
        tables.append(Table(title, heads, [*map(_cells, one.found.findings)], empty))
    return TabularReport("Differences", tables, as_data(found))


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


def _keyed(one: ShownDifferences, *values: float) -> dict[str, float]:
    return {side.replace(" ", "_"): value for side, value in zip(one.sides, values, strict=True)}


def as_data(found: Sequence[ShownDifferences]) -> list[dict[str, Any]]:
    return [
        {
            **one.about, **_keyed(one, one.found.bad, one.found.rest), "tested": one.found.tested,
            "same": [fact._asdict() for fact in one.found.same],
            "findings": [
                {
                    "facts": [fact._asdict() for fact in finding.facts], **_keyed(one, finding.bad, finding.rest),
                    "interval": list(finding.interval), "p_adjusted": finding.p, "turns": list(finding.turns), "few": finding.few,
                    "also": [fact._asdict() for fact in finding.also], "effect": finding.effect,
                }
                for finding in one.found.findings
            ],
        }
        for one in found
    ]  # fmt: skip
