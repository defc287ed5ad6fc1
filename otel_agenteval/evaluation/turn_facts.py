"""Facts about a turn that can explain why it failed: who answered, with which model and tools, how long, in which language."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping
from typing import Any

from ..core.turn import Turn
from ..detectors.refusal.evidence import language_of, plain
from ..metrics.registry import Metric

FactValue = str | float | list[str]
_READ = 2_000  # characters that decide the language
_MEASURED: Mapping[str, Collection[str]] = {
    "duration_s": ("duration_s",),
    "cost_usd": ("cost_usd", "usage"),
    "input_tokens": ("usage", "cost_usd"),
    "output_tokens": ("usage", "cost_usd"),
    "output_chars": ("output", "error"),
    "stop_kind": ("stop_kind", "error"),
    "finish_reason": ("error",),
    "tool_calls": ("tool_calls",),
    "tool_errors": ("tool_calls", "error"),
    "llm_calls": ("llm_call_count",),
    "documents": ("retrieved_ids", "retrievals", "context"),
}
"""Measured facts, with the turn fields that they follow from."""
EFFECTS: Collection[str] = frozenset((
    "duration_s", "cost_usd", "input_tokens", "output_tokens", "output_chars", "stop_kind", "finish_reason", "close_reason", "error",
    "tool failed", "tool after tool", "tool_calls", "tool_errors", "llm_calls",
))  # fmt: skip
"""Facts that a failure itself can change, such as by repeated calls."""


def facts_of(turn: Turn) -> dict[str, FactValue]:
    """Return the known facts: a name, a number, or several names for each attribute."""
    calls, usage = turn.llm_calls, turn.usage
    tools = [call.name for call in turn.tool_calls or ()]
    failed = [call.name for call in turn.tool_calls or () if call.error is not None]
    last = next((call for call in reversed(calls) if call.model), None)
    language = language_of(plain(turn.input[:_READ])) if turn.input else None
    names: dict[str, Any] = {
        "agent": turn.agent,
        "service": turn.service,
        "framework": turn.framework,
        "model": last.model if last is not None else None,
        "provider": last.provider if last is not None else None,
        "finish_reason": calls[-1].finish_reason if calls else None,
        "stop_kind": turn.stop_kind,
        "close_reason": turn.close_reason,
        "error": None if turn.error is None else turn.error.type or "error",
        "language": language.name if language is not None else None,
        "tool": [*dict.fromkeys(tools)],
        "tool failed": [*dict.fromkeys(failed)],
        "tool after tool": [*dict.fromkeys(f"{one} → {other}" for one, other in itertools.pairwise(tools))],
    }
    numbers = {
        "duration_s": turn.duration_s,
        "cost_usd": turn.cost_usd,
        "input_tokens": usage.input_tokens if usage is not None else None,
        "output_tokens": usage.output_tokens if usage is not None else None,
        "input_chars": len(turn.input) if turn.input is not None else None,
        "output_chars": len(turn.output) if turn.output is not None else None,
        "turn_number": 1 + sum(message.role == "user" for message in turn.messages[:-1]) if turn.messages else None,
        "llm_calls": turn.llm_call_count,
        "tool_calls": len(tools) if turn.tool_calls is not None else None,
        "tool_errors": len(failed) if turn.tool_calls is not None else None,
        "documents": len(turn.retrieved_ids) if turn.retrieved_ids is not None else None,
    }
    return {name: value for name, value in (names | numbers).items() if value is not None and value != []}


def follows_from(metric: Metric) -> frozenset[str]:
    """Return the facts that follow from the definition of a metric, because it measures the same fields."""
    return frozenset(name for name, fields in _MEASURED.items() if not metric.reads.isdisjoint(fields))
