"""Attributes of the OpenTelemetry event for a change of scores."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

from ..core import semconv

if TYPE_CHECKING:
    from ..statistics.changes import Change


def change_attributes(change: Change, instance_id: str) -> dict[str, Any]:
    found = change.found
    low, high = found.difference
    known = {
        semconv.EVALUATION_NAME: change.metric,
        semconv.AGENT_NAME: change.agent or None,
        semconv.CHANGE_VERDICT: change.verdict,
        semconv.CHANGE_DETECTOR: found.detector,
        semconv.CHANGE_BEFORE: found.before,
        semconv.CHANGE_AFTER: found.after,
        semconv.CHANGE_DIFFERENCE: found.size,
        semconv.CHANGE_LOW: low,
        semconv.CHANGE_HIGH: high,
        semconv.CHANGE_SINCE: iso(found.since),
        semconv.CHANGE_N: round(found.n, 1),
        semconv.CHANGE_TURNS: [exemplar.turn_id for exemplar in found.exemplars] or None,
        semconv.CHANGE_TRACES: [exemplar.trace_id for exemplar in found.exemplars] or None,
        semconv.CHANGE_VERSION_BEFORE: found.version_before,
        semconv.CHANGE_VERSION: found.version,
        semconv.INSTANCE_ID: instance_id,
    }
    return {name: value for name, value in known.items() if value is not None}


def iso(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).isoformat(timespec="seconds").replace("+00:00", "Z")
