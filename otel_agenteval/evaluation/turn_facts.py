"""Collect facts about a turn that can explain its failure, such as its agent, model, tools, duration, and language."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from operator import eq, gt, le, lt
from typing import Any, NamedTuple

from ..core.errors import ConfigError, refusal
from ..core.turn import Turn
from ..core.wellformed import bounded_name
from ..detectors.refusal.evidence import language_of, plain
from ..metrics.registry import Metric

FactValue = str | float | list[str]
_SIGNS: Mapping[str, Callable[[float, float], bool]] = {"=": eq, "<": lt, ">": gt, "≤": le}
CONDITION = r"[^=<>≤]+(=[\s\S]+|[<>≤] ?-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?)"
_SIGN = re.compile("[=<>≤]")
_READ = 2_000  # characters that decide the language
_MOST_NAMES = 50
_MEASURED: Mapping[str, Collection[str]] = {
    "duration_s": ("duration_s",), "cost_usd": ("cost_usd", "usage"), "input_tokens": ("usage", "cost_usd"),
    "output_tokens": ("usage", "cost_usd"), "output_chars": ("output", "error"), "stop_kind": ("stop_kind", "error"),
    "finish_reason": ("error",), "tool_calls": ("tool_calls",), "tool_errors": ("tool_calls", "error"),
    "llm_calls": ("llm_call_count",), "documents": ("retrieved_ids", "retrievals", "context"), "top_score": ("retrievals",),
}  # fmt: skip
"""Maps each measured fact to the turn fields that determine it."""
EFFECTS: Collection[str] = frozenset((
    "duration_s", "cost_usd", "input_tokens", "output_tokens", "output_chars", "stop_kind", "finish_reason", "close_reason", "error",
    "tool failed", "tool error", "tool after tool", "tool_calls", "tool_errors", "llm_calls",
))  # fmt: skip
"""Names of facts that a failure itself can change, for example through repeated calls."""


def facts_of(turn: Turn) -> dict[str, FactValue]:
    """Return a turn's facts by name. A fact's value is a text, a number, or a list of names. Unknown facts are absent."""
    calls, usage = turn.llm_calls, turn.usage
    last = next((call for call in reversed(calls) if call.model), None)
    language = language_of(plain(turn.input[:_READ])) if turn.input else None
    names: dict[str, Any] = {
        "agent": turn.agent,
        "service": turn.service,
        "service.version": turn.service_version,
        "framework": turn.framework,
        "model": last.model if last is not None else None,
        "provider": last.provider if last is not None else None,
        "finish_reason": calls[-1].finish_reason if calls else None,
        "stop_kind": turn.stop_kind,
        "close_reason": turn.close_reason,
        "error": None if turn.error is None else turn.error.type or "error",
        "language": language.name if language is not None else None,
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
        "documents": len(turn.retrieved_ids) if turn.retrieved_ids is not None else None,
        "top_score": max(
            (one.score for found in turn.retrievals for one in found.documents if one.score is not None), default=None
        ),
    }
    known = names | numbers | _facts_of_tools(turn)
    return {
        name: bounded_name(value) if isinstance(value, str) else value
        for name, value in known.items()
        if value is not None and value != []
    }


def _facts_of_tools(turn: Turn) -> dict[str, Any]:
    if turn.tool_calls is None:
        return {}
    tools = [bounded_name(call.name) for call in turn.tool_calls]
    failed = [(name, call.error.type) for name, call in zip(tools, turn.tool_calls, strict=True) if call.error is not None]
    return {
        "tool": _first_names(tools),
        "tool failed": _first_names(name for name, _ in failed),
        "tool error": _first_names(error for _, error in failed if error),
        "tool after tool": _first_names(f"{one} → {other}" for one, other in itertools.pairwise(tools)),
        "tool_calls": len(tools),
        "tool_errors": len(failed),
    }


def _first_names(found: Iterable[str]) -> list[str]:
    return [bounded_name(name) for name in itertools.islice(dict.fromkeys(found), _MOST_NAMES)]


class FactCondition(NamedTuple):
    name: str
    sign: str
    value: str

    @classmethod
    def parse(cls, text: str, option: str) -> FactCondition:
        """Parse a condition such as ``model = gpt-5`` or ``duration_s > 20``. Raise a ConfigError that begins with ``option``."""
        if re.fullmatch(CONDITION, text) is None:
            raise ConfigError(refusal(option, repr(text), "must be NAME=VALUE, NAME>NUMBER, or NAME<NUMBER"))
        sign = _SIGN.search(text)
        assert sign is not None
        return cls(text[: sign.start()].strip(), sign[0], text[sign.end() :].strip())

    @property
    def number(self) -> float | None:
        try:
            return float(self.value)
        except ValueError:
            return None

    def holds(self, facts: Mapping[str, Any]) -> bool:
        known, number = facts.get(self.name), self.number
        if isinstance(known, bool):
            known = "yes" if known else "no"
        if isinstance(known, (int, float)):
            return number is not None and _SIGNS[self.sign](known, number)
        return self.sign == "=" and (known == self.value or (isinstance(known, list) and self.value in known))

    def without(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        """Return ``facts`` without the fact that the condition tests. If this fact is a list, remove only the condition's value."""
        known = facts.get(self.name)
        left = [name for name in known if name != self.value] if isinstance(known, list) else None
        return {name: left if name == self.name else value for name, value in facts.items() if name != self.name or left}

    def __str__(self) -> str:
        return f"{self.name} {self.sign} {self.value}"


def attributes_of(turn: Turn, names: Collection[str]) -> dict[str, Any]:
    """Return the values of the attributes in ``names``, each from the first span that has the attribute."""
    found: dict[str, Any] = {}
    for span in turn.spans if names else ():
        for name in names:
            if name in (span.attributes or {}):
                found.setdefault(name, (span.attributes or {})[name])
    return found


def follows_from(metric: Metric) -> frozenset[str]:
    """Return the facts computed from turn fields that ``metric`` also reads. These facts can't explain the metric's failures."""
    return frozenset(name for name, fields in _MEASURED.items() if not metric.reads.isdisjoint(fields))
