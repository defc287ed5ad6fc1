"""Section ``judge.budget``: limits on the spending of judges and embedders."""

from __future__ import annotations

from typing import Annotated, Any

from .section import NO_ENTRIES, Section
from .types import Before, Count, Kind, Share, finite_number


def _dollars(value: Any) -> float:
    number = finite_number(value)
    if number is None:
        raise ValueError("must be an amount of US dollars from 0, or null. Example: 2.5")
    return number


Dollars = Annotated[float, Before(_dollars), Kind("US dollars")]


class SpendingOptions(Section):
    """Limits within any hour or day. Null means no limit."""

    usd_per_hour: Dollars | None = None
    """Maximum US dollars in any hour. If a dollar limit is set, models without a known price aren't called."""
    usd_per_day: Dollars | None = None
    """Maximum US dollars in any day."""
    calls_per_hour: Count | None = None
    """Maximum judge calls in any hour."""
    calls_per_day: Count | None = None
    """Maximum judge calls in any day."""


class BudgetOptions(SpendingOptions):
    """Limits for judges and embedders together. At a limit, judge calls wait. The spending is stored with the queue."""

    soft: Share = 0.8
    """Share of each limit above which the judge is called only for gates, for turns selected by ``always_if``, and to finish
    evaluations."""
    metrics: Annotated[
        dict[str, SpendingOptions],
        Kind("mapping of metrics to limits, see [Set a daily budget](../guides/set-up-a-judge.md#set-a-daily-budget)"),
    ] = NO_ENTRIES
    """Additional limits for single metrics, for example ``{llm_faithfulness: {usd_per_day: 1}}``."""
