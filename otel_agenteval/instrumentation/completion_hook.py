"""The entry point for content that is put on no span: OpenTelemetry's GenAI completion hook.

With ``OTEL_INSTRUMENTATION_GENAI_COMPLETION_HOOK=agenteval``, instrumentations that are built on
``opentelemetry-util-genai`` pass the messages of every call before its span ends, also when they are configured to capture
no content. Here the messages join the turn of the call, which is scored with them. They go nowhere else.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from ..core.later import Later
from ..core.wellformed import plain
from ..spans.record import LogPart
from .span_processor import AgentEvalSpanProcessor

_DETAILS = "gen_ai.client.inference.operation.details"


class CompletionHook:
    """Takes content to the processor that sees the span. Never raises, copies nothing, reads nothing on the agent's thread."""

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
        """A call is over. Messages are ``opentelemetry.util.genai.types``; the span is the call's, and still open."""
        del log_record  # its content is the same
        for processor in _processors_of(span):
            processor.take_content(span, LogPart(_DETAILS, _content(inputs, outputs, system_instruction, tool_definitions), None))


def _processors_of(span: Any) -> list[AgentEvalSpanProcessor]:
    """Ours, among the processors of the provider that made the span."""
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
    """Data classes, and lists of them, as the dicts that stand in attributes otherwise."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value
