"""What sets the turns that failed a metric apart from those that passed it, from the facts in a score store."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...core.errors import ConfigError, refusal
from ...evaluation.turn_facts import EFFECTS, FactCondition, follows_from
from ...metrics.registry import indexed
from ...statistics.differences import Differences, find_differences
from .reader import MOST_OF_COMMAND, VerdictRow
from .views import Filter, Views

if TYPE_CHECKING:
    from ...statistics.changes import Change

MOST_NAMED = 3
"""Findings that a notice or a report names."""
_LEAST_BEFORE = 60.0
"""Seconds before the start of a change from which turns are read, if the change isn't older."""


def compare_verdicts(metric: str, rows: Sequence[VerdictRow], *, selected: bool = False) -> Differences:
    """Compare the turns that failed a metric with those that passed it, without facts that follow from its definition."""
    known = indexed(metric.partition(".")[0])
    left_out = follows_from(known) if known is not None else frozenset[str]()
    facts = [{name: value for name, value in row.facts.items() if name not in left_out} for row in rows]
    return find_differences(
        facts,
        [row.bad for row in rows],
        weights=[row.weight for row in rows],
        draws=[row.conversation for row in rows],
        effects=EFFECTS,
        selected=selected,
    )


def compare_group(rows: Sequence[VerdictRow], group: Sequence[FactCondition], option: str) -> Differences:
    """Compare the turns that meet all conditions with the rest, without the facts that define the group, or raise ConfigError."""
    known = {name for row in rows for name in row.facts}
    facts: list[Mapping[str, Any]] = [row.facts for row in rows]
    for condition in group:
        if condition.name not in known:
            raise ConfigError(
                refusal(option, repr(condition.name), f"must be a fact of the turns: {', '.join(sorted(known)) or 'none'}")
            )
        facts = [condition.without(one) for one in facts]
    chosen = [all(condition.holds(row.facts) for condition in group) for row in rows]
    return find_differences(facts, chosen, draws=[row.conversation for row in rows], selected=True)


def explained(path: str, change: Change) -> Change:
    """Return a change with the largest differences of its failed turns, as far as the store can be read."""
    agents = (change.agent,) if change.agent else ()
    # A turn starts before its scores are seen: by its duration, the decision delay, and a judge's time.
    since = change.found.since - max(_LEAST_BEFORE, change.at - change.found.since)
    wanted = Filter(since=since, agents=agents, tenant=change.tenant, metric=change.metric)
    with contextlib.suppress(Exception), Views(path) as views:  # a change without them is better than none
        findings = compare_verdicts(change.metric, views.filtered_verdicts(wanted, MOST_OF_COMMAND)).findings[:MOST_NAMED]
        return replace(change, facts=tuple(one.summary for one in findings))
    return change
