"""Read user feedback from the spans of a turn.

Feedback is in span events, in log records, or in attributes that the configuration names.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...core.feedback import Feedback, in_attribute, in_record, is_feedback_record
from ...core.tenancy import turn_id_in
from ...spans.record import SpanRecord


def feedback_in(records: Iterable[SpanRecord], attributes: Sequence[str] = ()) -> list[Feedback]:
    """Return the feedback in spans of a turn and in the given span attributes, by time."""
    found: list[tuple[int, Feedback]] = []
    for record in records:
        for event in record.events:
            if is_feedback_record(event.name, event.attributes):
                _add(found, event.time_ns, in_record(event.name, event.attributes, None, _seed(record, event.time_ns)))
        for log in record.logs:
            if is_feedback_record(log.name, log.attributes):
                _add(found, log.time_ns, in_record(log.name, log.attributes, log.body, _seed(record, log.time_ns)))
        for name in attributes:
            if name in record.attributes:
                _add(found, record.end_ns, in_attribute(name, record.attributes[name], _seed(record, 0)))
    return [feedback for _, feedback in sorted(found, key=lambda one: one[0])]


def _add(found: list[tuple[int, Feedback]], time_ns: int, feedback: Feedback | None) -> None:
    if feedback is not None:
        found.append((time_ns, feedback))


def _seed(record: SpanRecord, time_ns: int) -> str:
    return f"{turn_id_in(record.trace_id, record.span_id)} {time_ns}"
