"""Read an application's events and attributes about hand-offs, interactions, conflicts, and user feedback.

Semantic conventions don't cover these events. Any span of the turn can have the events. An attribute's name can start with its
event's name, as in ``agent.handoff.from``. The events and their attributes:

- ``agent.handoff``: ``from``, ``to``, ``success``, ``duration_s``
- ``agent.interaction``: ``from``, ``to`` (one or more names), ``type``, ``message_type``, ``success``, ``response_time_s``
- ``agent.conflict``: ``resolved``, ``resolution_time_s``

The span attribute ``agent.stop_kind`` contains the reason why the turn stopped. User feedback is in events, log records, or
configured attributes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from ...core.feedback import Feedback, in_attribute, in_record, is_feedback_record
from ...core.tenancy import turn_id_in
from ...core.turn import Handoff
from ...dialects.step import Step
from ...spans.record import SpanRecord

STOP_KINDS = frozenset(("completed", "unknown", "requested_credentials", "asked_clarification", "awaiting_confirmation"))
_NAME, _NUMBER = (str, int), (int, float)
_FACTS: dict[str, dict[str, Any]] = {
    "agent.handoff": {"from": str, "to": str, "success": bool, "duration_s": _NUMBER},
    "agent.interaction": {
        "from": _NAME, "to": (*_NAME, tuple, list), "type": str, "message_type": str, "success": bool, "response_time_s": _NUMBER,
    },
    "agent.conflict": {"resolved": bool, "resolution_time_s": _NUMBER},
}  # fmt: skip
"""Maps each event to the expected types of its attributes. Values of other types are ignored."""


def stop_kind(root: Step, steps: Iterable[Step]) -> str | None:
    """Return the root's ``agent.stop_kind`` or, if missing or invalid, the last valid value in ``steps``, or None."""
    kinds = [step.record.attributes.get("agent.stop_kind") for step in (*steps, root)]
    return next((kind for kind in reversed(kinds) if isinstance(kind, str) and kind in STOP_KINDS), None)


def handoffs(steps: Iterable[Step]) -> list[Handoff]:
    found = []
    for facts in facts_in(steps, "agent.handoff"):
        seconds = facts.get("duration_s", -1)
        duration_s = float(seconds) if 0 <= seconds < math.inf else None
        found.append(Handoff(facts.get("from") or None, facts.get("to") or None, facts.get("success"), duration_s))
    return found


def facts_in(steps: Iterable[Step], name: str) -> list[dict[str, Any]]:
    types = _FACTS[name]
    events = [event for step in steps for event in step.record.events if event.name == name]
    found = []
    for event in sorted(events, key=lambda event: event.time_ns):
        values = {fact: event.attributes.get(fact, event.attributes.get(f"{name}.{fact}")) for fact in types}
        found.append(
            {
                fact: list(value) if isinstance(value, tuple) else value
                for fact, value in values.items()
                if isinstance(value, types[fact]) and (types[fact] is bool or not isinstance(value, bool))
            }
        )
    return found


def feedback_in(records: Iterable[SpanRecord], attributes: Sequence[str] = ()) -> list[Feedback]:
    """Return user feedback by time. Read span events, log records, and the span attributes whose names are in ``attributes``."""
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
