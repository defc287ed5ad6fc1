"""Read content from log records in the application's own process.

Newer instrumentations write messages to log records instead of span attributes.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from opentelemetry.sdk._logs import LogRecordProcessor

from ..core import semconv
from ..core.feedback import is_feedback_record
from ..dialects.generic.events import is_call
from ..spans.record import LogPart
from .span_processor import AgentEvalSpanProcessor

if TYPE_CHECKING:
    from opentelemetry.sdk._logs import ReadWriteLogRecord

_PREFIX = "gen_ai."


class AgentEvalLogProcessor(LogRecordProcessor):
    """Log record processor that passes messages in log records to their spans' turns, without changing the records.

    The processor reads GenAI log records, user feedback, and all other log records whose content looks like messages.

    Args:
        processor: the span processor whose turns get the messages.
    """

    def __init__(self, processor: AgentEvalSpanProcessor) -> None:
        self._processor = weakref.ref(processor)

    def on_emit(self, log_record: ReadWriteLogRecord) -> None:
        """Pass a log record to the engine if the record might contain user feedback or messages."""
        processor = self._processor()
        if processor is None or processor.engine.closed:
            return
        engine = processor.engine
        try:
            record = log_record.log_record
            attributes: Any = record.attributes or {}
            name = record.event_name or attributes.get("event.name") or ""
            if not record.trace_id:
                return
            if is_feedback_record(name, attributes):
                receive = engine.intake.receive_feedback_record
            elif name != semconv.EVENT and (is_call(attributes) or name.startswith(_PREFIX) or _may_be_message(record.body)):
                receive = engine.intake.receive_log
            else:
                return
            part = LogPart(name, dict(attributes), record.body, record.timestamp or record.observed_timestamp or 0)
            receive(record.trace_id, record.span_id or 0, part)
        except Exception as error:
            engine.failed("on_emit", error)

    def shutdown(self) -> None:
        """Do nothing, because the processor doesn't hold any resources."""

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return True


def _may_be_message(body: Any) -> bool:
    if body.__class__ is str:
        return '"role"' in body
    return isinstance(body, Mapping) and ("role" in body or "input" in body or "output" in body)
