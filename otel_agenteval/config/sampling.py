"""Which turns a judged metric is evaluated on: the key ``sample`` of metrics and groups."""

from __future__ import annotations

from typing import Annotated, Any

from .section import Section, options_of, written
from .selector import Selector
from .types import Before, Share, Text, whole_number


class _AsGiven(Section):
    """Written with the options that were given, and no others, because the defaults of the rest may change."""

    def to_dict(self) -> dict[str, Any]:
        """The options that were given."""
        return {name: written(getattr(self, name)) for name in options_of(type(self)) if name in self.options_given}


class SampleRate(_AsGiven):
    """A different rate for some turns: ``{when: {agent: travel}, rate: 0.5}``."""

    when: Selector | None = None
    """The turns that it applies to; all by default."""
    rate: Share
    """Share of them, 0 to 1."""


class CascadeOptions(_AsGiven):
    """A cheaper judged metric decides first: ``{after: embed_answer_relevance, judge_if: "score.embed_answer_relevance < 0.5"}``."""

    after: Text
    """Name of that metric, which must be configured too."""
    judge_if: Text
    """Condition on its score under which the turn is judged; otherwise the rate decides."""


def _strata(value: Any) -> Any:
    items = [value] if isinstance(value, str) else value
    if isinstance(items, (list, tuple)) and all(item in ("agent", "service", "model", "conversation") for item in items):
        return tuple(items)
    raise ValueError("it must be a list of agent, service, model and conversation")


def _quota(value: Any) -> int | None:
    return None if value is None else whole_number(value, 1, 10**6, "it must be a whole number from 1, or null")


class SampleOptions(_AsGiven):
    """Which turns a judged metric is evaluated on: ``{rate: 0.05, always_if: "error or duration_s > 30"}``."""

    rate: Share
    """Share of the turns, 0 to 1."""
    always_if: Text | None = None
    """Condition for turns that are judged whatever the rate."""
    rates: tuple[SampleRate, ...] = ()
    """Other rates for some turns; the first whose ``when`` matches applies."""
    min_per_hour: Annotated[int | None, Before(_quota)] = None
    """Minimum number of turns judged per hour in each stratum, provided there are that many."""
    strata: Annotated[tuple[str, ...], Before(_strata)] = ("agent",)
    """What defines a stratum: ``agent``, ``service``, ``model``, ``conversation``, or several of them."""
    cascade: CascadeOptions | None = None
    """A cheaper judged metric that decides first."""
