"""Evaluates spans that a head sampler drops, without exporting them."""

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
    """A sampler that wraps another one, and records GenAI spans that the other would drop."""

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
        """Return the wrapped sampler's decision, but record GenAI spans and those below recorded spans."""
        found = self._sampler.should_sample(parent_context, trace_id, name, kind, attributes, links, trace_state)
        if found.decision is not Decision.DROP:
            return found
        is_genai = (bool(attributes) and role_of(attributes, "", name) is not None) or name.startswith(_NAMES)
        if is_genai or trace.get_current_span(parent_context).is_recording():
            return SamplingResult(Decision.RECORD_ONLY, attributes, found.trace_state)
        return found

    def get_description(self) -> str:
        """Return a description that includes the wrapped sampler."""
        return f"AgentEvalRecordAll{{{self._sampler.get_description()}}}"


def record_all(sampler: Sampler) -> Sampler:
    """Wrap a head sampler so that dropped GenAI spans are evaluated but not exported.

    These spans become RECORD_ONLY. A span counts as GenAI by its initial attributes, its name, or a recorded parent. Spans that
    show none of these at their start stay dropped.
    """
    return RecordAllSampler(sampler)
