"""The entry point for content that isn't recorded on spans: OpenTelemetry's GenAI completion hook.

Set ``OTEL_INSTRUMENTATION_GENAI_COMPLETION_HOOK=agenteval`` to use it. Instrumentations based on ``opentelemetry-util-genai``
then pass the messages of each call before its span ends, even if they are configured not to capture content. The hook adds the
messages to the call's turn for scoring, and doesn't store them elsewhere.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from ..core.wellformed import Later, plain
from ..spans.record import LogPart
from .span_processor import AgentEvalSpanProcessor

_DETAILS = "gen_ai.client.inference.operation.details"


class CompletionHook:
    """Passes content to the processor that sees the span. It never raises, and leaves reading to other threads."""

    def on_completion(
        self,
        *,
        inputs: Sequence[Any] = (),
        outputs: Sequence[Any] = (),
        system_instruction: Sequence[Any] = (),
        tool_definitions: Sequence[Any] | None = None,
        span: Any = None,
        log_record: Any = None,
    ) -> None:
        """Receive the messages (``opentelemetry.util.genai.types``) of a finished call, whose span is still open."""
        del log_record  # it has the same content
        for processor in _processors_of(span):
            processor.take_content(span, LogPart(_DETAILS, _content(inputs, outputs, system_instruction, tool_definitions), None))


def _processors_of(span: Any) -> list[AgentEvalSpanProcessor]:
    """Return the AgentEvalSpanProcessors of the provider that created the span."""
    inner = getattr(span, "_span_processor", None)
    found = [inner, *getattr(inner, "_span_processors", ())]
    return [processor for processor in found if isinstance(processor, AgentEvalSpanProcessor)]


def _content(inputs: Any, outputs: Any, system: Any, tools: Any) -> dict[str, Any]:
    given = {
        "gen_ai.input.messages": inputs, "gen_ai.output.messages": outputs, "gen_ai.system_instructions": system,
        "gen_ai.tool.definitions": tools,
    }  # fmt: skip
    return {key: Later(_read, value) for key, value in given.items() if value}


def _read(value: Any) -> Any:
    return plain(_plain(value))


def _plain(value: Any) -> Any:
    """Convert data classes, also in lists, to dicts in the form of span attributes."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value
