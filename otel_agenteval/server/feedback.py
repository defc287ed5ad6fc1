"""``POST /v1/feedback``: what users say of turns, for applications that send no OpenTelemetry log records.

The request becomes one of log records, which goes the way of all others: admission, tenants, quotas, journal.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from typing import Any

from ..core import jsonio
from ..core.errors import ConfigError, nearest
from ..core.feedback import EVENT_NAME, feedback_of, ids_of
from .responses import Refusal

_KEYS = ("turn_id", "trace_id", "span_id", "traceparent", "score", "label", "comment", "edited", "scale", "id")
_ATTRIBUTES = ("label", "comment", "edited", "id")


def as_log_records(body: bytes) -> tuple[bytes, int]:
    """An OTLP/JSON request with the feedback of a request, and how many there were.

    The body is one object or a list of them: ``turn_id``, or ``traceparent``, or ``trace_id`` and ``span_id``; and ``score``, ``label``, ``comment``, ``edited``,
    ``scale`` and ``id`` as :meth:`Handle.feedback <otel_agenteval.Handle.feedback>` takes them.

    Raises:
        Refusal: it is not; all of it is refused.
    """
    try:
        found = jsonio.loads(body)
    except (ValueError, RecursionError):
        raise Refusal("bad_data", "the body is not JSON") from None
    items = found if isinstance(found, list) else [found]
    if not items:
        raise Refusal("bad_data", "the list is empty")
    records = []
    for place, item in enumerate(items):
        try:
            records.append(_record(item))
        except ConfigError as error:
            at = f"[{place}]: " if isinstance(found, list) else ""
            raise Refusal("bad_data", f"{at}{error}") from None
    message = {"resourceLogs": [{"scopeLogs": [{"scope": {"name": "feedback"}, "logRecords": records}]}]}
    return jsonio.dumps(message).encode(), len(records)


def _record(item: Any) -> dict[str, Any]:
    if not isinstance(item, Mapping):
        raise ConfigError("feedback: it must be an object")
    for key in item:
        if key not in _KEYS:
            raise ConfigError(f"feedback.{key}: unknown key; did you mean {' or '.join(nearest(str(key), _KEYS, 2))}?")
    trace_id, span_id = ids_of(_turn_of(item))
    given: dict[str, Any] = {key: item.get(key) for key in ("score", "label", "comment", "edited", "scale", "id")}
    read = feedback_of(**given, seed=uuid.uuid4().hex)  # two users who say the same are two
    attributes: dict[str, Any] = {key: {"stringValue": item[key]} for key in _ATTRIBUTES if item.get(key)}
    if item.get("score") is not None:
        worst, best = item.get("scale") or (0, 1)
        attributes |= {
            key: {"doubleValue": float(value)} for key, value in (("score", item["score"]), ("min", worst), ("max", best))
        }
    attributes.setdefault("id", {"stringValue": read.id})
    return {
        "traceId": f"{trace_id:032x}", "spanId": f"{span_id:016x}" if span_id else "", "timeUnixNano": str(time.time_ns()),
        "eventName": EVENT_NAME, "attributes": [{"key": f"{EVENT_NAME}.{key}", "value": value} for key, value in attributes.items()],
    }  # fmt: skip


def _turn_of(item: Mapping[str, Any]) -> Any:
    """What names the turn."""
    named = [key for key in ("turn_id", "traceparent", "trace_id") if item.get(key)]
    if len(named) != 1:
        raise ConfigError("feedback: one of turn_id, traceparent and trace_id is required")
    span = item.get("span_id")
    return f"{item['trace_id']}-{span}" if named == ["trace_id"] and span else item[named[0]]
