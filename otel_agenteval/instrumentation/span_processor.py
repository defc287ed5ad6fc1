"""SpanProcessor that evaluates turns in the application's own process.

The processor can have any position among a provider's processors. The agent's thread usually only collects spans. When a turn's
root has ended and no span below the root is open, the turn is queued for a worker thread. With ``outlets.span_events``, an exporter
that reads the root's events also gets the scores as events. If this exporter is synchronous, as with SimpleSpanProcessor, the
agent's thread waits for the evaluation. Errors in this code are counted, and don't reach the agent.

If spans don't record messages, OpenTelemetry's GenAI completion hook can provide the messages. To use this hook, set
``OTEL_INSTRUMENTATION_GENAI_COMPLETION_HOOK=agenteval``. Instrumentations based on ``opentelemetry-util-genai`` then pass each
call's messages to the hook before the call's span ends, even if content capture is off. The messages aren't added to the span.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.sdk.trace.sampling import Decision, Sampler, SamplingResult
from opentelemetry.trace import Link, SpanKind, TraceState

from ..config.loader import load_config
from ..config.root import Config
from ..core import forks, semconv
from ..core.clock import SYSTEM_CLOCK, Clock
from ..core.errors import ConfigError
from ..core.feedback import LOGFIRE_FEEDBACK, LOGFIRE_SCOPE
from ..core.threads import is_own_work
from ..core.wellformed import Later, plain
from ..dialects.generic.kinds import is_graph
from ..dialects.reader import ROLE_KEYS, is_genai_scope, role_of
from ..dialects.step import UNKNOWN
from ..engine.builder import engine_from, without_environment
from ..spans.record import LogPart
from ..spans.sdk import end_of, has_known_fields, start_of
from .expectations import current_references, expect
from .span_exporter import AgentEvalSpanExporter, SafeExporter

_MAX_SCOPES = 1_000
_NO_PART_OF_A_TURN = (semconv.SCOPE, LOGFIRE_SCOPE)
_log = logging.getLogger("otel_agenteval")


class AgentEvalSpanProcessor(SpanProcessor):
    """Span processor that rebuilds turns from GenAI spans, evaluates them, and exports the scores.

    Args:
        config: a :class:`Config`, a mapping with the same keys, or a YAML file's path (default: ``OTEL_AGENTEVAL_CONFIG_FILE``).
            ``OTEL_AGENTEVAL_…`` variables override the file. A mapping overrides both, and a Config replaces both.
        logger_provider: provider for writing log events. The default is the global LoggerProvider.
        meter_provider: provider for exporting OTLP metrics if ``outlets.otlp_metrics`` is on. The default is the global provider.
        clock: source of the current time, which tests replace.

    Raises:
        ConfigError: If the configuration is invalid. An error in environment variables, or in the file that they name, is only
            logged, and scoring is off, unless the configuration sets ``strict: true``.
    """

    def __init__(
        self,
        config: Config | Mapping[str, Any] | str | None = None,
        *,
        logger_provider: Any = None,
        meter_provider: Any = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        build = partial(engine_from, logger_provider=logger_provider, meter_provider=meter_provider, clock=clock)
        try:
            self.engine = build(load_config(config))
        except ConfigError as error:
            self.engine = build(without_environment(config, error), enabled=False)
        assembler = self.engine.assembler
        self._start_below, self._ending, self._plain_scopes = assembler.start_below, assembler.ending, assembler.plain_scopes
        self._baggage = self.engine.pipeline.evaluator.references.baggage
        self._active = False
        self._passive = not self.engine.enabled
        self._ending_is_called = False
        self._span_class: Any = None
        """The SDK's span class if its private fields can be read, or None."""
        forks.in_child(self._begin_in_child)

    def _begin_in_child(self) -> None:
        self._active = False

    def on_start(self, span: Any, parent_context: Context | None = None) -> None:
        try:
            if span.__class__ is self._span_class and self._start_below(span, expect.in_use):
                return
            self._start(span, parent_context)
        except Exception as error:
            self.engine.failed("on_start", error)

    def _start(self, span: Span, parent_context: Context | None) -> None:
        if is_own_work() or not (self._active or self._activate(span)):
            return
        trace_id, span_id, parent_id, scope, attributes = start_of(span)
        plain = self._plain_scopes.get(scope)
        if plain is None:
            plain = scope not in _NO_PART_OF_A_TURN and not is_genai_scope(scope)
            if len(self._plain_scopes) < _MAX_SCOPES:
                self._plain_scopes[scope] = plain
        role = references = None
        if not (plain and ROLE_KEYS.isdisjoint(attributes)):
            if scope in _NO_PART_OF_A_TURN:
                return
            role = role_of(attributes, scope, span.name)
            if (expect.in_use or self._baggage) and role is not None:
                references = current_references(parent_context, self._baggage)
        parent = None if parent_id else span.parent
        carried_id = parent.span_id if parent is not None else 0
        if role is None and not parent_id and not carried_id and span.kind is not SpanKind.SERVER and is_graph(str(span.name)):
            role = UNKNOWN  # the runs below may be one turn
        self.engine.intake.span_started(trace_id, span_id, parent_id, role, span, references, carried_id)

    def _on_ending(self, span: Any) -> None:
        """Record the end of a span just before the SDK ends the span. Until then, the span can receive score events."""
        self._ending_is_called = True
        try:
            if span.__class__ is self._span_class:
                closed = self._ending(span)
                if closed is not None:
                    if closed:
                        self.engine.intake.root_closed(closed, span, still_ending=True)
                    return
            self._end(span)
        except Exception as error:
            self.engine.failed("on_end", error)

    def on_end(self, span: ReadableSpan) -> None:
        """Record the end of a span if the SDK is too old to call ``_on_ending``."""
        if not self._ending_is_called:
            try:
                self._end(span)
            except Exception as error:
                self.engine.failed("on_end", error)

    def _end(self, span: Any) -> None:
        if is_own_work() or not (self._active or self._activate(span)):
            return
        trace_id, span_id, local_root, attributes = end_of(span)
        if LOGFIRE_FEEDBACK in attributes and span.parent is not None:
            self.engine.intake.receive_annotation(trace_id, span.parent.span_id, span_id, attributes)
            return
        closed = self.engine.intake.span_ended(trace_id, span_id, span, attributes, local_root)
        if closed:
            self.engine.intake.root_closed(closed, span, still_ending=self._ending_is_called)

    def take_content(self, span: Any, part: LogPart) -> None:
        """Add messages to the turn of an open span that doesn't record messages (see :class:`CompletionHook`)."""
        try:
            if self._active:
                context = span.context
                self.engine.intake.receive_log(context.trace_id, context.span_id, part)
        except Exception as error:
            self.engine.failed("take_content", error)

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Deliver the computed scores of all closed turns, within ``timeout_millis``. Return False if any score isn't delivered.

        This method doesn't close open turns or wait for judged scores.
        """
        return self.engine.flush(timeout_millis / 1000)

    def shutdown(self) -> None:
        """Evaluate open turns, deliver all scores within ``exit_timeout``, and release all resources."""
        self._passive = True
        self._active = False
        self.engine.shutdown()

    def _activate(self, span: Span) -> bool:
        """Activate this processor at its first span. Return False if evaluation is off, or another processor is already active."""
        if self._passive:
            return False
        siblings = getattr(getattr(span, "_span_processor", None), "_span_processors", ())
        running = (one for one in siblings if isinstance(one, AgentEvalSpanProcessor) and not is_shut_down(one))
        first = next(running, self)
        if first is not self:
            self._passive = True
            _log.warning("this provider has two AgentEvalSpanProcessors; the second one does nothing. Remove one of them")
            return False
        for exporter in [getattr(sibling, "span_exporter", None) for sibling in siblings]:
            if isinstance(exporter, (AgentEvalSpanExporter, SafeExporter)):
                exporter.stand_down()
        self.engine.register_exit()
        self._span_class = span.__class__ if has_known_fields(span) else None
        self._active = True
        return True


def is_shut_down(processor: SpanProcessor) -> bool:
    """Return True for an otel-agenteval span processor that was shut down."""
    return isinstance(processor, AgentEvalSpanProcessor) and processor.engine.closed


_DETAILS = "gen_ai.client.inference.operation.details"


class CompletionHook:
    """GenAI completion hook that passes a call's messages to the span processor. Another thread parses the messages later."""

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
        """Receive a finished model call's messages while the call's span is still open."""
        del log_record  # it has the same content
        given = {
            "gen_ai.input.messages": inputs, "gen_ai.output.messages": outputs, "gen_ai.system_instructions": system_instruction,
            "gen_ai.tool.definitions": tool_definitions,
        }  # fmt: skip
        inner = getattr(span, "_span_processor", None)
        for processor in (inner, *getattr(inner, "_span_processors", ())):
            if isinstance(processor, AgentEvalSpanProcessor):
                content = {key: Later(_read, value) for key, value in given.items() if value}
                processor.take_content(span, LogPart(_DETAILS, content, None))


def _read(value: Any) -> Any:
    return plain(_plain(value))


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value


# --- spans that a head sampler drops, which are evaluated without being exported

_NAMES = ("chat ", "invoke_agent", "invoke_workflow", "execute_tool", "agent run", "openai.", "anthropic.")


class RecordAllSampler(Sampler):
    """Sampler that follows another sampler, but also records GenAI spans that the other sampler drops."""

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
        """Return the other sampler's decision, or RECORD_ONLY if that sampler drops a GenAI span or a child of a recorded span."""
        found = self._sampler.should_sample(parent_context, trace_id, name, kind, attributes, links, trace_state)
        if found.decision is not Decision.DROP:
            return found
        is_genai = (bool(attributes) and role_of(attributes, "", name) is not None) or name.startswith(_NAMES)
        if is_genai or trace.get_current_span(parent_context).is_recording():
            return SamplingResult(Decision.RECORD_ONLY, attributes, found.trace_state)
        return found

    def get_description(self) -> str:
        return f"AgentEvalRecordAll{{{self._sampler.get_description()}}}"


def record_all(sampler: Sampler) -> Sampler:
    """Wrap a head sampler, so that dropped GenAI spans are still evaluated, but not exported.

    These spans get the decision RECORD_ONLY. A span is treated as a GenAI span if its initial attributes or name indicate a GenAI
    span, or if its parent is recorded. Other spans stay dropped.
    """
    return RecordAllSampler(sampler)
