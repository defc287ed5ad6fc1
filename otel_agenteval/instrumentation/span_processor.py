"""Spans of this process: a SpanProcessor that can stand anywhere in a provider's list.

On the agent's thread it collects, and when a turn's root ends with nothing open below it, promises the span its events and
hands the turn to the worker. Nothing it does can raise into the agent, block it, or do I/O.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor

from ..config.loader import load_config
from ..config.root import Config
from ..core import semconv
from ..core.clock import SYSTEM_CLOCK, Clock
from ..core.feedback import LOGFIRE_FEEDBACK, LOGFIRE_SCOPE
from ..dialects.reader import ROLE_KEYS, is_genai_scope, role_of
from ..engine.engine import Engine
from ..spans.sdk import end_of, start_of
from .expectations import current_references, expect
from .span_exporter import AgentEvalSpanExporter, SafeExporter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opentelemetry.context import Context

    from ..spans.record import LogPart

_MAX_SCOPES = 1_000
_NO_PART_OF_A_TURN = (semconv.SCOPE, LOGFIRE_SCOPE)
_log = logging.getLogger("otel_agenteval")


class AgentEvalSpanProcessor(SpanProcessor):
    """Puts turns together from GenAI spans, evaluates them, and sends the scores out.

    Args:
        config: a :class:`Config`, a mapping of the same form, a path to a YAML file, or None for file and environment.
        logger_provider: where log events go (default: the global LoggerProvider).
        meter_provider: where OTLP metrics go when they are on (default: the global MeterProvider).
        clock: for tests.

    Raises:
        ConfigError: the configuration is not valid.
    """

    def __init__(
        self,
        config: Config | Mapping[str, Any] | str | None = None,
        *,
        logger_provider: Any = None,
        meter_provider: Any = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self.engine = Engine(load_config(config), logger_provider=logger_provider, meter_provider=meter_provider, clock=clock)
        assembler = self.engine.assembler
        self._traces = assembler.traces
        self._start_below, self._ending = assembler.start_below, assembler.ending
        self._baggage = self.engine.accepted_baggage
        self._active = False
        self._passive = not self.engine.enabled
        self._ending_is_called = False
        self._plain_scopes: dict[str, bool] = {}
        """Scopes that no GenAI instrumentation has: a span of theirs is GenAI only by its attributes."""

    def on_start(self, span: Any, parent_context: Context | None = None) -> None:
        """Note that a span is open."""
        try:
            # Nearly every span is below one that is known, and this is all there is to do: written out flat, because
            # an agent waits for it. An SDK whose spans are made otherwise goes the long way.
            parent = span._parent
            trace = self._traces.get(parent[0]) if parent is not None else None
            if trace is not None:
                owner: Any = trace.nodes.get(parent[1])
                if (
                    (owner.takes_all and not expect.in_use)
                    or (
                        self._plain_scopes.get(span._instrumentation_scope._name) and ROLE_KEYS.isdisjoint(span._attributes._dict)
                    )
                ) and self._start_below(trace, owner, span._context[1]):
                    return
        except Exception:  # noqa: S110 - the long way tells faults from other SDKs
            pass
        self._start(span, parent_context)

    def _start(self, span: Span, parent_context: Context | None) -> None:
        try:
            if not self._active and not self._activate(span):
                return
            trace_id, span_id, parent_id, scope, attributes = start_of(span)
            plain = self._plain_scopes.get(scope)
            if plain is None:
                plain = self._learn(scope)
            role = references = None
            if not (plain and ROLE_KEYS.isdisjoint(attributes)):
                if scope in _NO_PART_OF_A_TURN:
                    return
                role = role_of(attributes, scope, span.name)
                if (expect.in_use or self._baggage) and role is not None:
                    references = current_references(parent_context, self._baggage)
            parent = None if parent_id else span.parent
            carried_id = parent.span_id if parent is not None else 0
            self.engine.span_started(trace_id, span_id, parent_id, role, span, references, carried_id)
        except Exception as error:
            self.engine.failed("on_start", error)

    def _on_ending(self, span: Any) -> None:
        """A span is about to end. If that closes its turn, this is the last moment at which the span can get its scores."""
        self._ending_is_called = True
        try:
            context = span._context
            span_id = context[1]
            trace = self._traces[context[0]]
            owner: Any = trace.nodes[span_id]
            attributes = span._attributes._dict
        except Exception:  # an SDK whose spans are made otherwise, or a span whose start was not seen
            self._end(span)
            return
        try:
            closed = self._ending(trace, owner, span_id, span, attributes)
            if closed:
                self.engine.root_closed(closed, span, still_ending=True)
        except Exception as error:
            self.engine.failed("on_end", error)

    def on_end(self, span: ReadableSpan) -> None:
        """A span ended. Only an SDK that does not call ``_on_ending`` leaves anything to do."""
        if not self._ending_is_called:
            self._end(span)

    def _end(self, span: Any) -> None:
        try:
            if not self._active and not self._activate(span):
                return
            trace_id, span_id, local_root, attributes = end_of(span)
            if LOGFIRE_FEEDBACK in attributes and span.parent is not None:
                self.engine.receive_annotation(trace_id, span.parent.span_id, span_id, attributes)
                return
            closed = self.engine.span_ended(trace_id, span_id, span, attributes, local_root)
            if closed:
                self.engine.root_closed(closed, span, still_ending=self._ending_is_called)
        except Exception as error:
            self.engine.failed("on_end", error)

    def take_content(self, span: Any, part: LogPart) -> None:
        """Content of an open span that is written nowhere else (see :mod:`.completion_hook`)."""
        try:
            if self._active:
                context = span.context
                self.engine.receive_log(context.trace_id, context.span_id, part)
        except Exception as error:
            self.engine.failed("take_content", error)

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Deliver the scores of all turns that are closed. False unless that was all done in time.

        Open turns stay open, and judges are not waited for.
        """
        return self.engine.flush(timeout_millis / 1000)

    def shutdown(self) -> None:
        """Evaluate open turns, deliver everything within ``exit_timeout``, and release ports and files."""
        self._passive = True
        self._active = False
        self.engine.shutdown()

    def _learn(self, scope: str) -> bool:
        """Whether a scope is an application's own: most spans are asked about by scopes that were seen before."""
        plain = scope not in _NO_PART_OF_A_TURN and not is_genai_scope(scope)
        if len(self._plain_scopes) < _MAX_SCOPES:
            self._plain_scopes[scope] = plain
        return plain

    def _activate(self, span: Span) -> bool:
        """The first span: whether this processor is the one of its kind that works here."""
        if self._passive:
            return False
        siblings = getattr(getattr(span, "_span_processor", None), "_span_processors", ())
        first = next((sibling for sibling in siblings if isinstance(sibling, AgentEvalSpanProcessor)), self)
        if first is not self:
            self._passive = True
            _log.warning("this provider has two AgentEvalSpanProcessors; the second one does nothing")
            return False
        for exporter in [getattr(sibling, "span_exporter", None) for sibling in siblings]:
            if isinstance(exporter, (AgentEvalSpanExporter, SafeExporter)):
                exporter.stand_down()
        self.engine.register_exit()
        self._active = True
        return True
