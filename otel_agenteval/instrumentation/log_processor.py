"""The entry point for content in log records: newer instrumentations write messages there instead of on spans."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from opentelemetry.sdk._logs import LogRecordProcessor

from ..core import semconv
from ..core.feedback import is_feedback_record
from ..spans.record import LogPart
from .span_processor import AgentEvalSpanProcessor

if TYPE_CHECKING:
    from opentelemetry.sdk._logs import ReadWriteLogRecord

_PREFIX = "gen_ai."


def _may_be_message(body: Any) -> bool:
    """Whether a body may be a message to or from a model, of an instrumentation that nobody has named."""
    return '"role"' in body if body.__class__ is str else isinstance(body, Mapping) and "role" in body


def _part_of(record: Any, name: str, attributes: Mapping[str, Any]) -> LogPart:
    return LogPart(name, dict(attributes), record.body, record.timestamp or record.observed_timestamp or 0)


class AgentEvalLogProcessor(LogRecordProcessor):
    """Joins GenAI log records, and those that may hold messages, to the turn that their span belongs to. Changes no record.

    Args:
        processor: the span processor whose turns get the content.
    """

    def __init__(self, processor: AgentEvalSpanProcessor) -> None:
        self._processor = weakref.ref(processor)

    def on_emit(self, log_record: ReadWriteLogRecord) -> None:
        """Keep a record of an open turn that may hold content; ignore everything else."""
        processor = self._processor()
        if processor is None:
            return
        engine = processor.engine
        try:
            record = log_record.log_record
            attributes: Any = record.attributes or {}
            name = record.event_name or attributes.get("event.name") or ""
            if not record.trace_id:
                return
            if is_feedback_record(name, attributes):
                engine.receive_feedback_record(record.trace_id, record.span_id or 0, _part_of(record, name, attributes))
                return
            if not record.span_id or name == semconv.EVENT:
                return
            if not name.startswith(_PREFIX) and not _may_be_message(record.body):
                return
            engine.receive_log(record.trace_id, record.span_id, _part_of(record, name, attributes))
        except Exception as error:
            engine.failed("on_emit", error)

    def shutdown(self) -> None:
        """Nothing of its own to release."""

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Nothing of its own to flush."""
        return True
