"""Read facts that an application reports in its own span events and attributes.

No convention covers these facts. The span events may be on any span of the turn, and their attributes may have the
event's name as a prefix, such as ``agent.handoff.from``:

- ``agent.handoff``: ``from``, ``to``, ``success``, ``duration_s``
- ``agent.interaction``: ``from``, ``to`` (one name or several), ``type``, ``message_type``, ``success``, ``response_time_s``
- ``agent.conflict``: ``resolved``, ``resolution_time_s``

The span attribute ``agent.stop_kind`` states how the turn stopped.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from ...core.turn import Handoff
from ...dialects.step import Step
from ...spans.record import SpanEvent

STOP_KINDS = frozenset(("completed", "unknown", "requested_credentials", "asked_clarification", "awaiting_confirmation"))
_HANDOFF, _INTERACTION, _CONFLICT = "agent.handoff", "agent.interaction", "agent.conflict"
_INTERACTION_FACTS = ("from", "to", "type", "message_type", "success", "response_time_s")
_CONFLICT_FACTS = ("resolved", "resolution_time_s")


def stop_kind(root: Step, steps: Iterable[Step]) -> str | None:
    """Return the ``agent.stop_kind`` of the root or, if unset, of the last span that has it."""
    kinds = [step.record.attributes.get("agent.stop_kind") for step in (*steps, root)]
    return next((kind for kind in reversed(kinds) if isinstance(kind, str) and kind in STOP_KINDS), None)


def handoffs(steps: Iterable[Step]) -> list[Handoff]:
    found = []
    for event in _events(steps, _HANDOFF):
        facts = _facts(event, ("from", "to", "success", "duration_s"))
        success, seconds = facts.get("success"), facts.get("duration_s")
        if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 <= seconds < math.inf:
            seconds = None
        success = success if isinstance(success, bool) else None
        found.append(
            Handoff(_text(facts.get("from")), _text(facts.get("to")), success, None if seconds is None else float(seconds))
        )
    return found


def interactions(steps: Iterable[Step]) -> list[dict[str, Any]]:
    return [_facts(event, _INTERACTION_FACTS) for event in _events(steps, _INTERACTION)]


def conflicts(steps: Iterable[Step]) -> list[dict[str, Any]]:
    return [_facts(event, _CONFLICT_FACTS) for event in _events(steps, _CONFLICT)]


def _events(steps: Iterable[Step], name: str) -> list[SpanEvent]:
    return sorted(
        (event for step in steps for event in step.record.events if event.name == name), key=lambda event: event.time_ns
    )


def _facts(event: SpanEvent, names: Iterable[str]) -> dict[str, Any]:
    attributes: Mapping[str, Any] = event.attributes
    found = {name: attributes.get(name, attributes.get(f"{event.name}.{name}")) for name in names}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in found.items() if value is not None}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
