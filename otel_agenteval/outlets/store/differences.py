"""What sets the turns that failed a metric apart from those that passed it, from the facts in a score store."""

from __future__ import annotations

from collections.abc import Sequence

from ...evaluation.turn_facts import follows_from
from ...metrics.registry import indexed
from ...statistics.differences import Differences, find_differences
from .reader import VerdictRow
from .views import Filter, Views

MOST_NAMED = 3
"""Findings that a notice or a report names."""


def compare_verdicts(metric: str, rows: Sequence[VerdictRow]) -> Differences:
    """Compare the turns that failed a metric with those that passed it, without facts that follow from its definition."""
    known = indexed(metric.partition(".")[0])
    left_out = follows_from(known) if known is not None else frozenset[str]()
    facts = [{name: value for name, value in row.facts.items() if name not in left_out} for row in rows]
    return find_differences(
        facts, [row.bad for row in rows], weights=[row.weight for row in rows], draws=[row.conversation for row in rows]
    )


def stored_findings(path: str, wanted: Filter) -> list[str]:
    """Return the largest differences of a metric in a store, one line each. Raises StoreError if it can't be opened."""
    assert wanted.metric is not None  # callers set it
    with Views(path) as views:
        rows = views.filtered_verdicts(wanted)
    return [one.summary for one in compare_verdicts(wanted.metric, rows).findings[:MOST_NAMED]]
