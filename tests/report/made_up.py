"""Made-up runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import otel_agenteval as oa
from otel_agenteval.report import About, Run


def about(i: int, *, prefix: str = "turn", case: str | None = None) -> About:
    return About(f"{prefix}-{i}", case, "travel", "gpt-x")


def score(metric: str, value: float | bool | None, **more: Any) -> oa.Score:
    """Return a score. A boolean is a verdict, None a skipped score."""
    if value is None:
        return oa.Score(metric, status="skipped", detail={"reason": "missing:output"})
    if isinstance(value, bool):
        return oa.Score(metric, float(value), value, type="boolean", **more)
    return oa.Score(metric, float(value), **more)


def run_of(
    values: Mapping[str, Sequence[float | bool | None]],
    *,
    prefix: str = "turn",
    cases: Sequence[str] | None = None,
    parameters: str = "",
    **more: Any,
) -> Run:
    """Return a run of turns ``turn-0``, ``turn-1``, … with a score of each metric."""
    run = Run()
    for metric, found in values.items():
        for i, value in enumerate(found):
            case = cases[i] if cases is not None else None
            run.add(about(i, prefix=prefix, case=case), score(metric, value, **more), parameters)
    return run
