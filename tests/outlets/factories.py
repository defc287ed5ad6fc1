"""Scored turns with fixed ids."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from otel_agenteval.core.score import Score
from otel_agenteval.core.turn import Turn
from otel_agenteval.evaluation.scored_turn import Root, ScoredTurn

TRACE_ID = 0x0AF7651916CD43DD8448EB211C80319C
SPAN_ID = 0x00F067AA0BA902B7

MakeScored = Callable[..., ScoredTurn]


def scored_turn(*scores: Score, turn: dict[str, Any] | None = None, root: Root | None = None, **fields: Any) -> ScoredTurn:
    """Return a travel agent's turn with these scores. ``turn`` replaces turn fields (None removes them), ``fields`` those of ScoredTurn."""
    known = {
        "turn_id": f"{TRACE_ID:032x}-{SPAN_ID:016x}",
        "conversation_id": "conv-1",
        "service": "shop",
        "agent": "travel",
        "close_reason": "root_ended",
        "complete": True,
        "duration_s": 2.5,
        "cost_usd": 0.25,
        "usage": {"input_tokens": 100, "output_tokens": 20, "cached_tokens": 60},
        "llm_calls": [{"model": "router-1", "response_id": "first"}, {"model": "gpt-5", "response_id": "last"}],
        "input": "SECRET QUESTION",
        "output": "SECRET ANSWER",
        **(turn or {}),
    }
    return ScoredTurn(Turn.from_dict(known), root or Root(TRACE_ID, SPAN_ID), scores, **fields)
