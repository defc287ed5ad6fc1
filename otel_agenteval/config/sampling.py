"""The key ``sample`` of metrics and groups: the turns that a judged metric evaluates."""

from __future__ import annotations

from typing import Annotated, Any

from .section import Section, options_of, written
from .selector import Selector
from .types import Before, Share, Text, whole_number


class _AsGiven(Section):
    """A section that is written without its defaults, because they can change."""

    def to_dict(self) -> dict[str, Any]:
        """Return the options that were set."""
        return {name: written(getattr(self, name)) for name in options_of(type(self)) if name in self.options_given}


class SampleRate(_AsGiven):
    """A different rate for some turns: ``{when: {agent: travel}, rate: 0.5}``."""

    when: Selector | None = None
    """Turns with this rate (default: all)."""
    rate: Share
    """Share of these turns, 0 to 1."""


class CascadeOptions(_AsGiven):
    """A cheaper judged metric decides first: ``{after: embed_answer_relevance, judge_if: "score.embed_answer_relevance < 0.5"}``."""

    after: Text
    """Name of the cheaper metric, which must be configured too."""
    judge_if: Text
    """Condition on its score. If it holds, the turn is judged. If not, the rate decides."""


def _strata(value: Any) -> Any:
    items = [value] if isinstance(value, str) else value
    if isinstance(items, (list, tuple)) and all(item in ("agent", "service", "model", "conversation") for item in items):
        return tuple(items)
    raise ValueError("must be a list of agent, service, model and conversation")


def _quota(value: Any) -> int | None:
    return None if value is None else whole_number(value, 1, 10**6, "must be a whole number from 1, or null")


class SampleOptions(_AsGiven):
    """Sampling of the turns of a judged metric: ``{rate: 0.05, always_if: "error or duration_s > 30"}``."""

    rate: Share
    """Share of the turns, 0 to 1."""
    always_if: Text | None = None
    """Condition for turns that are always judged."""
    rates: tuple[SampleRate, ...] = ()
    """Different rates for some turns. The first entry whose ``when`` matches applies."""
    min_per_hour: Annotated[int | None, Before(_quota)] = None
    """Minimum number of judged turns per hour in each stratum, if it has as many."""
    strata: Annotated[tuple[str, ...], Before(_strata)] = ("agent",)
    """Keys of a stratum: ``agent``, ``service``, ``model`` and ``conversation``."""
    cascade: CascadeOptions | None = None
    """A cheaper judged metric that decides first."""
