"""Evaluate turns in a span exporter, for environments that can only configure exporters.

An exporter receives only sampled spans, usually in batches, after the spans have ended.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from ..config.loader import load_config
from ..config.root import Config
from ..core import semconv
from ..core.errors import ConfigError
from ..engine.builder import engine_from, without_environment
from ..engine.engine import BEHIND_OTLP, switched_on
from ..spans.record import cut_long_values
from ..spans.sdk import from_sdk
from ..spans.wire import Part, WireSpan

_log = logging.getLogger("otel_agenteval")


class AgentEvalSpanExporter(SpanExporter):
    """Span exporter that evaluates turns. Prefer AgentEvalSpanProcessor, which is notified as soon as a span ends.

    Because spans arrive late, usually in batches, the default of ``turn.decision_delay`` is ten seconds, as in the sidecar. Ended
    spans don't accept events, so ``outlets.span_events`` has no effect.

    Args:
        config: as for :class:`~otel_agenteval.AgentEvalSpanProcessor`.
        logger_provider: provider for writing log events. The default is the global LoggerProvider.
        meter_provider: provider for exporting OTLP metrics if ``outlets.otlp_metrics`` is on. The default is the global provider.
    """

    def __init__(
        self, config: Config | Mapping[str, Any] | str | None = None, *, logger_provider: Any = None, meter_provider: Any = None
    ) -> None:
        build = partial(engine_from, decision_delay=BEHIND_OTLP, logger_provider=logger_provider, meter_provider=meter_provider)
        try:
            self.engine = build(load_config(load_config(config), overrides={"outlets": {"span_events": "off"}}))
        except ConfigError as error:
            self.engine = build(without_environment(config, error), enabled=False)
        self._passive = not self.engine.enabled
        if not self._passive:
            self.engine.register_exit()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Receive a batch of spans. Always return SUCCESS, because the SDK must not retry or report an evaluation error."""
        engine = self.engine
        if self._passive:
            return SpanExportResult.SUCCESS
        parts: dict[int, Part] = {}
        for span in spans:
            try:
                record = from_sdk(span)
                if record.scope != semconv.SCOPE:
                    parts.setdefault(record.trace_id, Part()).add(WireSpan.of(record, cut_long_values(record)))
            except Exception as error:
                engine.failed("export", error)
        try:
            engine.intake.receive_spans(parts.items())
        except Exception as error:
            engine.failed("export", error)
        return SpanExportResult.SUCCESS

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Deliver the computed scores of all closed turns, within ``timeout_millis``. Return False if any score isn't delivered."""
        return self.engine.flush(timeout_millis / 1000)

    def shutdown(self) -> None:
        """Evaluate open turns, deliver their scores, and release all resources."""
        self._passive = True
        self.engine.shutdown()

    def stand_down(self) -> None:
        """Stop evaluating. The same provider's AgentEvalSpanProcessor calls this method, so that turns aren't scored twice."""
        if not self._passive:
            self._passive = True
            _log.warning(
                "AgentEvalSpanExporter does nothing, because this provider also has an AgentEvalSpanProcessor; remove one of them"
            )


class SafeExporter(SpanExporter):
    """Entry point for the exporter. If its setup fails, a warning is logged and nothing is evaluated.

    To use this exporter, set ``OTEL_TRACES_EXPORTER=agenteval``, or add an exporter ``agenteval`` to the file in
    ``OTEL_CONFIG_FILE``. The keys below ``agenteval`` in this file are otel-agenteval's configuration.
    """

    def __init__(self, **config: Any) -> None:
        self._exporter: AgentEvalSpanExporter | None = None
        try:
            if switched_on():
                self._exporter = AgentEvalSpanExporter(config or None)
        except Exception as error:  # never prevent the agent from starting
            _log.warning("otel-agenteval is off: %s", error)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        return self._exporter.export(spans) if self._exporter is not None else SpanExportResult.SUCCESS

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._exporter.force_flush(timeout_millis) if self._exporter is not None else True

    def shutdown(self) -> None:
        if self._exporter is not None:
            self._exporter.shutdown()

    def stand_down(self) -> None:
        if self._exporter is not None:
            self._exporter.stand_down()
