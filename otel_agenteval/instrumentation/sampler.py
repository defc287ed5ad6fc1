"""Evaluate what a head sampler would drop, without exporting it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace.sampling import Decision, Sampler, SamplingResult
from opentelemetry.trace import Link, SpanKind, TraceState

from ..dialects.reader import role_of

_NAMES = ("chat ", "invoke_agent", "invoke_workflow", "execute_tool", "agent run", "openai.", "anthropic.")


class RecordAllSampler(Sampler):
    """Asks ``sampler`` first; a GenAI span that it would drop is recorded and not exported."""

    def __init__(self, sampler: Sampler) -> None:
        self._sampler = sampler

    def should_sample(
        self,
        parent_context: Context | None,
        trace_id: int,
        name: str,
        kind: SpanKind | None = None,
        attributes: Any = None,
        links: Sequence[Link] | None = None,
        trace_state: TraceState | None = None,
    ) -> SamplingResult:
        """The wrapped sampler's answer, with DROP turned to RECORD_ONLY for GenAI spans and what runs below them."""
        found = self._sampler.should_sample(parent_context, trace_id, name, kind, attributes, links, trace_state)
        if found.decision is Decision.DROP and (
            _is_genai(name, attributes) or trace.get_current_span(parent_context).is_recording()
        ):
            return SamplingResult(Decision.RECORD_ONLY, attributes, found.trace_state)
        return found

    def get_description(self) -> str:
        """Names the wrapped sampler."""
        return f"AgentEvalRecordAll{{{self._sampler.get_description()}}}"


def _is_genai(name: str, attributes: Any) -> bool:
    return (bool(attributes) and role_of(attributes, "", name) is not None) or name.startswith(_NAMES)


def record_all(sampler: Sampler) -> Sampler:
    """Wrap a head sampler: GenAI spans that it would drop become RECORD_ONLY, so that they are evaluated and not exported.

    A span counts as GenAI by the attributes it starts with, its name, or a recorded parent; instrumentations that say nothing
    at a span's start stay dropped.
    """
    return RecordAllSampler(sampler)
