"""``POST /v1/feedback``: user feedback without OpenTelemetry log records.

A feedback request is converted to an OTLP logs request. Admission, tenants, quotas and the journal then apply as usual.
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
    """Convert a feedback request to OTLP/JSON. Return that and the number of items.

    The body is one object or a list of objects. An object names its turn by ``turn_id``, ``traceparent``, or ``trace_id`` with
    ``span_id``. For its other keys, see :meth:`Handle.feedback <otel_agenteval.Handle.feedback>`. If one is invalid, a Refusal
    is raised and none is accepted.
    """
    try:
        found = jsonio.loads(body)
    except (ValueError, RecursionError):
        raise Refusal("bad_data", "the body isn't valid JSON") from None
    items = found if isinstance(found, list) else [found]
    if not items:
        raise Refusal("bad_data", "the list of feedback is empty")
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
        raise ConfigError(f"feedback: must be a JSON object, got {type(item).__name__}")
    for key in item:
        if key not in _KEYS:
            raise ConfigError(f"feedback.{key}: unknown key. Did you mean {' or '.join(nearest(str(key), _KEYS, 2))}?")
    trace_id, span_id = ids_of(_turn_of(item))
    given: dict[str, Any] = {key: item.get(key) for key in ("score", "label", "comment", "edited", "scale", "id")}
    read = feedback_of(**given, seed=uuid.uuid4().hex)  # equal feedback of two users counts twice
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
    named = [key for key in ("turn_id", "traceparent", "trace_id") if item.get(key)]
    if len(named) != 1:
        raise ConfigError(f"feedback: requires exactly one of turn_id, traceparent and trace_id, got {len(named)} of them")
    span = item.get("span_id")
    return f"{item['trace_id']}-{span}" if named == ["trace_id"] and span else item[named[0]]
