"""The labelled cases: turns with the band in which a careful human's score lies.

They stand in ``cases/FAMILY.jsonl``, one JSON object a line: ``id``, ``family``, ``metric``, ``params`` (where the metric needs some), ``turn``
(form ``turn.v1``), ``band`` (lowest and highest value that is right; ``[1, 1]`` and ``[0, 0]`` are the verdicts yes and no), ``lang`` and
``about`` (what the case shows, in English). ``pair`` (``of``, ``bias``) names the twin: a case that deserves the same score and differs only in
the order of its parts, its length, its language, or in praise or authority that it claims for itself.

Metrics that judge images, audio and video have no cases: what they need is no text.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, Literal

from ...core.errors import ConfigError, nearest
from ...core.turn import Turn
from ...metrics.bound_metric import BoundMetric, get_metric

Bias = Literal["position", "length", "language", "self_praise", "authority"]
Level = Literal["bad", "middling", "good"]

BIASES: tuple[Bias, ...] = ("position", "length", "language", "self_praise", "authority")
LEVELS: tuple[Level, ...] = ("bad", "middling", "good")
FAMILIES = (
    "agentic_judges", "rag_judges", "quality_judges", "conversation_session", "safety_policy", "moderation", "reasoning", "risk_autonomy",
    "structured_output", "workflow", "code_evaluation",
)  # fmt: skip
SAFETY = ("safety_policy", "moderation")
"""Families in which a miss and a false alarm are not the same."""
MIDDLING, GOOD = 0.35, 0.7
"""Goodness, 0..1, from which a score is middling, and good."""
_SCALES = {"llm_turn_risk": (1.0, 10.0)}
_SEVERITY = (0.0, 7.0)


@dataclass(frozen=True)
class BenchCase:
    """One labelled turn."""

    id: str
    family: str
    metric: str
    turn: Mapping[str, Any]
    band: tuple[float, float]
    """Lowest and highest value, in the metric's own unit, that careful humans give."""
    lang: str
    about: str
    params: Mapping[str, Any] = field(default_factory=dict)
    pair: Mapping[str, str] | None = None

    @property
    def twin(self) -> str | None:
        """Id of the case that deserves the same score."""
        return self.pair["of"] if self.pair else None

    @functools.cached_property
    def bound(self) -> BoundMetric:
        """The metric with its parameters."""
        return get_metric(self.metric, **self.params)

    def read_turn(self) -> Turn:
        """The turn."""
        return Turn.from_dict(self.turn)

    @property
    def is_verdict(self) -> bool:
        """Whether the metric says yes or no."""
        return self.bound.metric.type == "boolean"

    def goodness(self, value: float) -> float:
        """A value of the metric as 0 (worst) to 1 (best)."""
        low, high = scale_of(self.bound)
        share = (value - low) / (high - low)
        return 1 - share if self.bound.metric.direction == "down" else share

    @property
    def middle(self) -> float:
        """Goodness of the middle of the band."""
        return self.goodness(sum(self.band) / 2)

    def level(self, goodness: float) -> Level:
        """The level of a goodness; of verdicts only good and bad."""
        if self.is_verdict:
            return "good" if goodness >= 0.5 else "bad"
        return "good" if goodness >= GOOD - _SLACK else "middling" if goodness >= MIDDLING - _SLACK else "bad"

    @property
    def expected(self) -> Level:
        """The level that the band lies in."""
        return self.level(self.middle)

    def is_right(self, value: float) -> bool:
        """Whether a value lies in the band."""
        return self.band[0] - _SLACK <= value <= self.band[1] + _SLACK


_SLACK = 1e-9


def scale_of(bound: BoundMetric) -> tuple[float, float]:
    """Lowest and highest value of a metric."""
    if bound.name in _SCALES:
        return _SCALES[bound.name]
    return _SEVERITY if bound.metric.family == "safety_policy" and bound.metric.type == "numeric" else (0.0, 1.0)


@functools.cache
def all_cases() -> tuple[BenchCase, ...]:
    """Every case, family by family."""
    folder = files(__package__) / "cases"
    return tuple(
        read_case(json.loads(line)) for family in FAMILIES for line in (folder / f"{family}.jsonl").read_bytes().splitlines()
    )


def read_case(row: Mapping[str, Any]) -> BenchCase:
    """A case from its line."""
    low, high = row["band"]
    return BenchCase(**{**row, "band": (float(low), float(high))})


def chosen(families: Sequence[str] = (), metrics: Sequence[str] = (), limit: int | None = None) -> list[BenchCase]:
    """The cases of some families and metrics.

    Args:
        families: their names; none means all.
        metrics: their names; none means all.
        limit: at most so many in all, as evenly as possible from every family, and in each from every level and metric. A twin comes with its
            case or not at all.

    Raises:
        ConfigError: a family or metric without cases.
    """
    cases = all_cases()
    _known("--families", families, FAMILIES)
    _known("--metrics", metrics, {case.metric for case in cases})
    found = [case for case in cases if (not families or case.family in families) and (not metrics or case.metric in metrics)]
    if not found:
        raise ConfigError("--metrics: none of them is in --families")
    return found if limit is None else _balanced(found, limit)


def _known(option: str, names: Iterable[str], known: Collection[str]) -> None:
    for name in names:
        if name not in known:
            hint = f"; did you mean {nearest(name, sorted(known), 1)[0]!r}?"
            raise ConfigError(f"{option}: there are no cases for {name!r}{hint}")


def _balanced(cases: Sequence[BenchCase], limit: int) -> list[BenchCase]:
    """By turns one of each family, and in a family one of each level; in a level the metric that was taken least."""
    left: dict[str, dict[Level, list[BenchCase]]] = {}
    for case in cases:
        left.setdefault(case.family, {}).setdefault(case.expected, []).append(case)
    taken: list[BenchCase] = []
    turn = 0
    while len(taken) < limit and any(left.values()):
        for levels in left.values():
            if len(taken) < limit and levels:
                level = sorted(levels, key=LEVELS.index)[turn % len(levels)]
                taken.append(_next(levels[level], taken))
                if not levels[level]:
                    del levels[level]
        turn += 1
    ids = {case.id for case in taken}
    return [case for case in cases if case.id in ids]


def _next(cases: list[BenchCase], taken: Sequence[BenchCase]) -> BenchCase:
    counts = {case.id: sum(other.metric == case.metric for other in taken) for case in cases}
    ids = {case.id for case in taken}
    best = min(cases, key=lambda case: (case.twin is not None and case.twin not in ids, counts[case.id]))
    cases.remove(best)
    return best
