"""Section ``judge.budget``: what judges and embedders may spend."""

from __future__ import annotations

from typing import Annotated, Any

from .section import NO_ENTRIES, Section
from .types import Before, Count, Kind, Share, finite_number


def _dollars(value: Any) -> float:
    number = finite_number(value)
    if number is None:
        raise ValueError("it must be an amount of US dollars from 0, or null")
    return number


Dollars = Annotated[float, Before(_dollars), Kind("US dollars")]


class SpendingOptions(Section):
    """The most that may be spent within any minute, hour or day; null means no limit."""

    usd_per_minute: Dollars | None = None
    """US dollars."""
    usd_per_hour: Dollars | None = None
    """US dollars. A model whose price is unknown is not used where dollars are limited."""
    usd_per_day: Dollars | None = None
    """US dollars."""
    tokens_per_minute: Count | None = None
    """Input and output tokens."""
    tokens_per_hour: Count | None = None
    """Input and output tokens."""
    tokens_per_day: Count | None = None
    """Input and output tokens."""
    calls_per_minute: Count | None = None
    """Questions."""
    calls_per_hour: Count | None = None
    """Questions."""
    calls_per_day: Count | None = None
    """Questions."""


class AllocateOptions(Section):
    """Spreads the budget of an hour over metrics and agents, so that the widest intervals of their means shrink most."""

    least: Count = 5
    """Turns of each agent that each metric is judged on in an hour, as far as it has so many."""
    power: Share = 0.5
    """How much an agent's traffic counts: 1 makes the mean over all turns as sure as can be, 0 that of each agent by itself."""


class BudgetOptions(SpendingOptions):
    """What judges and embedders may spend together. Beyond that their jobs wait. What was spent is kept with the queue."""

    soft: Share = 0.8
    """Share of each limit above which only gates, turns of ``always_if`` and jobs already started continue."""
    allocate: AllocateOptions | None = None
    """Has ``usd_per_hour``, or else ``calls_per_hour``, spread over metrics and agents by what is known of each, instead of one share for all; ``{}`` for the defaults."""
    metrics: Annotated[
        dict[str, SpendingOptions],
        Kind("limits by metric, see [Set a daily budget](../guides/set-up-a-judge.md#set-a-daily-budget)"),
    ] = NO_ENTRIES
    """Limits of single metrics by name, besides those for all: ``{llm_faithfulness: {usd_per_day: 1}}``."""
