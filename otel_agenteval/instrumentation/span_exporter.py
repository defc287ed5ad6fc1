"""The entry point where only exporters can be configured: it sees spans after their end, in batches, and only sampled ones."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from ..config.loader import load_config
from ..config.root import Config
from ..core import semconv
from ..engine.engine import BEHIND_OTLP, Engine, switched_on
from ..spans.record import cut_long_values
from ..spans.sdk import from_sdk
from ..spans.wire import Part, WireSpan

_log = logging.getLogger("otel_agenteval")


class AgentEvalSpanExporter(SpanExporter):
    """Evaluates turns from exported spans. Prefer the span processor: it sees a turn's exact end, and can write span events.

    Spans come here in batches, after their end, so a turn is decided as a sidecar does it: ``turn.decision_delay`` is
    ten seconds unless it is configured. A span that has ended takes no event, so ``outlets.span_events`` means nothing here.

    Args:
        config: as for :class:`~otel_agenteval.AgentEvalSpanProcessor`.
        logger_provider: where log events go (default: the global LoggerProvider).
        meter_provider: where OTLP metrics go when they are on.
    """

    def __init__(
        self, config: Config | Mapping[str, Any] | str | None = None, *, logger_provider: Any = None, meter_provider: Any = None
    ) -> None:
        wanted = load_config(load_config(config), overrides={"outlets": {"span_events": "off"}})
        self.engine = Engine(wanted, decision_delay=BEHIND_OTLP, logger_provider=logger_provider, meter_provider=meter_provider)
        self._passive = not self.engine.enabled
        if not self._passive:
            self.engine.register_exit()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Take a batch. Always succeeds: an evaluation must never make the SDK retry or drop."""
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
            engine.receive_spans(parts.items())
        except Exception as error:
            engine.failed("export", error)
        return SpanExportResult.SUCCESS

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Deliver the scores of all turns that are closed; False unless that was all done in time."""
        return self.engine.flush(timeout_millis / 1000)

    def shutdown(self) -> None:
        """Evaluate what is waiting and release what is held."""
        self._passive = True
        self.engine.shutdown()

    def stand_down(self) -> None:
        """Do nothing from now on: our span processor sees the same spans, and no turn must be scored twice."""
        if not self._passive:
            self._passive = True
            _log.warning("this provider has an AgentEvalSpanProcessor too; the exporter does nothing")


class SafeExporter(SpanExporter):
    """The exporter as an entry point (``OTEL_TRACES_EXPORTER=agenteval``, or in a file of ``OTEL_CONFIG_FILE``, where the
    keys below its name are our configuration): a fault in its set-up switches it off, and does nothing else.
    """

    def __init__(self, **config: Any) -> None:
        self._exporter: AgentEvalSpanExporter | None = None
        try:
            if switched_on():
                self._exporter = AgentEvalSpanExporter(config or None)
        except Exception as error:  # start-up of the agent comes first
            _log.warning("otel-agenteval is off: %s", error)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """See :meth:`AgentEvalSpanExporter.export`."""
        return self._exporter.export(spans) if self._exporter is not None else SpanExportResult.SUCCESS

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """See :meth:`AgentEvalSpanExporter.force_flush`."""
        return self._exporter.force_flush(timeout_millis) if self._exporter is not None else True

    def shutdown(self) -> None:
        """See :meth:`AgentEvalSpanExporter.shutdown`."""
        if self._exporter is not None:
            self._exporter.shutdown()

    def stand_down(self) -> None:
        """See :meth:`AgentEvalSpanExporter.stand_down`."""
        if self._exporter is not None:
            self._exporter.stand_down()
