"""Which turns a judged metric is evaluated on: the key ``sample`` of metrics and groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, model_validator

from .section import _Section
from .selector import Selector
from .types import Text, _rate, _whole


class SampleRate(_Section):
    """A rate of its own for some turns: ``{when: {agent: travel}, rate: 0.5}``."""

    when: Selector | None = None
    """Turns that it is for; all, if left out."""
    rate: Annotated[float, BeforeValidator(_rate)]
    """Share of them, 0 to 1."""


class CascadeOptions(_Section):
    """A cheaper judged metric is asked first: ``{after: embed_answer_relevance, judge_if: "score.embed_answer_relevance < 0.5"}``."""

    after: Text
    """Name of that metric, which is configured too."""
    judge_if: Text
    """Condition on its score: the turn is judged then; else the rate decides."""


def _strata(value: Any) -> Any:
    items = [value] if isinstance(value, str) else value
    if isinstance(items, (list, tuple)) and all(item in ("agent", "service", "model", "conversation") for item in items):
        return tuple(items)
    raise ValueError("a list of agent, service, model and conversation is")


def _quota(value: Any) -> int | None:
    return None if value is None else _whole(value, 1, 10**6, "a whole number from 1, or null, is")


class SampleOptions(_Section):
    """Which turns a judged metric is evaluated on: ``{rate: 0.05, always_if: "error or duration_s > 30"}``."""

    rate: Annotated[float, BeforeValidator(_rate)]
    """Share of the turns, 0 to 1."""
    always_if: Text | None = None
    """Condition of turns that are judged whatever the rate."""
    rates: tuple[SampleRate, ...] = ()
    """Other rates for some turns; the first whose ``when`` fits wins."""
    min_per_hour: Annotated[int | None, BeforeValidator(_quota)] = None
    """Turns of each stratum that are judged in any hour at least, as far as there are so many."""
    strata: Annotated[tuple[str, ...], BeforeValidator(_strata)] = ("agent",)
    """What makes a stratum: ``agent``, ``service``, ``model``, ``conversation``, or several of them."""
    cascade: CascadeOptions | None = None
    """A cheaper judged metric that is asked first."""

    @model_validator(mode="before")
    @classmethod
    def _with_a_rate(cls, value: Any) -> Any:
        if isinstance(value, Mapping) and "rate" not in value:
            raise ValueError("a mapping with a rate (1 is every turn) is")
        return value
