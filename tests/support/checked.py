"""Checks for any turn: serialize and parse it, evaluate all computed metrics, and render it."""

from __future__ import annotations

import builtins
from typing import Any

import orjson

from otel_agenteval.core.score import Score
from otel_agenteval.core.turn import Turn
from otel_agenteval.core.wellformed import MOST, NAME_BYTES
from otel_agenteval.metrics.bound_metric import BoundMetric
from otel_agenteval.metrics.registry import catalog
from otel_agenteval.outlets.turn_text import render_turn

METRICS = [BoundMetric(metric, {}) for metric in catalog() if metric.kind == "code"]
INTERNAL = {name for name, kind in vars(builtins).items() if isinstance(kind, type) and issubclass(kind, BaseException)}
"""Names of exceptions that a metric must never report, because they are internal errors."""


def strict(value: Any) -> Any:
    """Return the value after serializing and parsing it. Fails for keys that aren't strings, and for excessive depth."""
    return orjson.loads(orjson.dumps(value))


def check_turn(turn: Turn) -> list[Score]:
    """Serialize and parse a turn, evaluate all computed metrics, and render it."""
    written = strict(turn.to_dict())
    assert strict(Turn.from_dict(written).to_dict()) == written
    check_bounds(turn)
    scores = [metric.evaluate(turn) for metric in METRICS]
    for score in scores:
        assert score.error_type not in INTERNAL, (score.metric, score.error_type, score.explanation)
        strict(score.to_dict())
    assert turn.turn_id[:8] in render_turn(turn, scores)
    return scores


def check_bounds(turn: Turn) -> None:
    """Check that counts fit into a database, and names into an index."""
    for of_turn in (turn.usage, *turn.llm_calls):
        for name in ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens"):
            count = getattr(of_turn, name, None)
            assert count is None or 0 <= count <= MOST, name
    names = [turn.agent, turn.service, turn.conversation_id, turn.user_id, turn.framework, turn.error and turn.error.type]
    names += [name for call in turn.llm_calls for name in (call.model, call.provider, call.response_id, call.finish_reason)]
    names += [name for call in turn.tool_calls or () for name in (call.name, call.call_id, call.agent)]
    assert all(len(name.encode()) <= NAME_BYTES for name in names if name)
