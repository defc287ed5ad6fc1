"""Signals of a conversation: scores of its turns, which session metrics read.

A session metric turns on the metrics of its signals, unless they are configured.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..metrics.bound_metric import BoundMetric, live_metric
from ..metrics.registry import Metric

SIGNALS: Mapping[str, str] = {
    "llm_confidence": "confidence", "embed_loop_detection": "loop_detection", "llm_tool_correctness": "tool_correctness",
    "embed_coherence": "coherence",
}  # fmt: skip
"""Metrics of single turns whose scores are signals of their conversation, with the names of the signals."""


def reads_signals(metric: Metric) -> bool:
    return "session" in metric.reads and metric.kind == "code"


def with_signals(
    selected: list[BoundMetric], readers: Iterable[BoundMetric], known: Iterable[BoundMetric] = ()
) -> list[BoundMetric]:
    """Return the selected metrics of turns and, after them, those whose signals the readers need with a weight above 0. A signal
    uses the first of the ``known`` metrics of its name.
    """
    wanted = [one for one in readers if reads_signals(one.metric)]
    present = {one.metric.name for one in selected}
    configured = {one.metric.name: one for one in reversed([*known])}
    added = []
    for name, signal in SIGNALS.items():
        using = [one for one in wanted if _weight(one.params, signal)]
        if using and name not in present:
            bound = configured.get(name)
            if bound is None:
                bound = live_metric(name, {})
                bound.when = using[0].when if all(one.when == using[0].when for one in using) else None
            added.append(bound)
    return [*selected, *added]


def _weight(params: Mapping[str, Any], signal: str) -> float:
    weights: Mapping[str, float] = params.get("signal_weights") or {}
    return weights.get(signal, 1.0)
