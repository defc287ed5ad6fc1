"""A provider with our span processor and in-memory exporters, and scripted agents."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from typing_extensions import Self

from otel_agenteval import AgentEvalLogProcessor, AgentEvalSpanProcessor
from otel_agenteval.core.clock import SYSTEM_CLOCK
from otel_agenteval.core.semconv import EVENT
from otel_agenteval.core.turn import Turn
from otel_agenteval.evaluation.scored_turn import ScoredTurn


class Rig:
    """A tracer provider with an :class:`AgentEvalSpanProcessor` and in-memory exporters.

    Args:
        config: configuration of the processor. By default, ``outlets.prometheus`` is off (the default registry is global),
            ``outlets.log_events`` is ``all``, and ``inline.expected`` is off.
        clock: clock of the processor.
        before: span processors that are added before ours. The in-memory exporter is added after it.
        provider: existing provider, instead of a new TracerProvider.
        attach: False if the test calls :meth:`attach` itself.
        **options: options of the TracerProvider.
    """

    def __init__(
        self,
        config: Mapping[str, Any] | None = None,
        *,
        clock: Any = SYSTEM_CLOCK,
        before: Sequence[SpanProcessor] = (),
        provider: Any = None,
        attach: bool = True,
        **options: Any,
    ) -> None:
        config = dict(config or {})
        config["outlets"] = {"prometheus": None, "log_events": "all", **config.get("outlets", {})}
        config["inline"] = {"expected": False, **config.get("inline", {})}
        self.provider = provider or TracerProvider(resource=Resource({"service.name": "shop"}), shutdown_on_exit=False, **options)
        self.tracer = self.provider.get_tracer("acme.app")
        self.logger_provider = LoggerProvider(shutdown_on_exit=False)
        self.processor = AgentEvalSpanProcessor(config, logger_provider=self.logger_provider, clock=clock)
        self.engine = self.processor.engine
        self.kept: deque[ScoredTurn] = deque()
        self.engine.keep_turns(self.kept)
        self._spans = InMemorySpanExporter()
        self._logs = InMemoryLogRecordExporter()
        self.logger_provider.add_log_record_processor(AgentEvalLogProcessor(self.processor))
        self.logger_provider.add_log_record_processor(SimpleLogRecordProcessor(self._logs))
        for processor in before:
            self.provider.add_span_processor(processor)
        if attach:
            self.attach()

    def attach(self) -> None:
        """Add our processor, then the in-memory exporter."""
        self.provider.add_span_processor(self.processor)
        self.provider.add_span_processor(SimpleSpanProcessor(self._spans))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.processor.shutdown()
        self.provider.shutdown()
        self.logger_provider.shutdown()

    # --- output

    def scored(self) -> list[ScoredTurn]:
        """Return the evaluated turns, in the order in which they were rendered."""
        assert self.processor.force_flush()
        return list(self.kept)

    def turns(self) -> list[Turn]:
        return [scored.turn for scored in self.scored()]

    def turn(self) -> Turn:
        turns = self.turns()
        assert len(turns) == 1, turns
        return turns[0]

    def exported(self, name: str) -> Any:
        """Return the exported span with this name."""
        found = [span for span in self._spans.get_finished_spans() if span.name == name]
        assert len(found) == 1, [span.name for span in self._spans.get_finished_spans()]
        return found[0]

    def exported_names(self) -> list[str]:
        return [span.name for span in self._spans.get_finished_spans()]

    def score_events(self, name: str) -> dict[str, dict[str, Any]]:
        """Return the attributes of the score events on an exported span, by metric."""
        return events_of(self.exported(name))

    def log_events(self) -> list[Any]:
        """Return the log records that are scores."""
        assert self.processor.force_flush()
        return [item.log_record for item in self._logs.get_finished_logs() if item.log_record.event_name == EVENT]

    def count(self, name: str) -> dict[tuple[str, ...], float]:
        """Return one of our counters by label values."""
        return {key: value for key, value in self.engine.telemetry.read(name).values.items() if value}

    # --- agents

    def agent(self, name: str = "bot", *, attributes: Mapping[str, Any] | None = None, **more: Any) -> Any:
        """Start an agent span as the current span."""
        known = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name, **(attributes or {})}
        return self.tracer.start_as_current_span(f"invoke_agent {name}", attributes=known, **more)

    def chat(
        self, user: str | None = None, says: str | None = None, *, calls: Sequence[dict[str, Any]] = (), **more: Any
    ) -> None:
        """Create a finished model call."""
        self.start_chat(user, says, calls=calls, **more).end()

    def start_chat(
        self,
        user: str | None = None,
        says: str | None = None,
        *,
        calls: Sequence[dict[str, Any]] = (),
        attributes: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> Any:
        """Start a model call, without making it the current span."""
        return self.tracer.start_span("chat m-1", attributes={**chat_attributes(user, says, calls), **(attributes or {})}, **more)

    def tool(self, name: str = "search", *, attributes: Mapping[str, Any] | None = None, **more: Any) -> None:
        """Create a finished tool call."""
        known = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, **(attributes or {})}
        self.tracer.start_span(f"execute_tool {name}", attributes=known, **more).end()

    def run(self, name: str = "bot", user: str = "What is the capital of France?", says: str = "Paris.", **more: Any) -> None:
        """Create a whole turn: an agent with one tool call and one model call."""
        with self.agent(name, **more):
            self.tool()
            self.chat(user, says)


def chat_attributes(user: str | None = None, says: str | None = None, calls: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    """Return the attributes of a model call: user message, answer and requested tools."""
    known: dict[str, Any] = {
        "gen_ai.operation.name": "chat", "gen_ai.request.model": "m-1", "gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 5,
    }  # fmt: skip
    if user is not None:
        known["gen_ai.input.messages"] = json.dumps([{"role": "user", "parts": [{"type": "text", "content": user}]}])
    parts = [{"type": "text", "content": says}] if says is not None else []
    parts += [{"type": "tool_call", **call} for call in calls]
    if parts:
        known["gen_ai.output.messages"] = json.dumps([{"role": "assistant", "parts": parts}])
    return known


def events_of(span: Any) -> dict[str, dict[str, Any]]:
    """Return the attributes of the score events on an SDK span, by metric."""
    return {event.attributes["gen_ai.evaluation.name"]: dict(event.attributes) for event in span.events if event.name == EVENT}
