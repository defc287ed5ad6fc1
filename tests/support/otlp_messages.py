"""OTLP/JSON as protobuf messages. Protobuf's own JSON parser would expect ids in base64."""

from __future__ import annotations

import base64
import json
from typing import Any

from google.protobuf.json_format import ParseDict

_IDS = ("traceId", "spanId", "parentSpanId")


def message_of(line: bytes, kind: Any) -> Any:
    """Parse one line of OTLP/JSON as a message of a type."""
    return ParseDict(_based(json.loads(line)), kind(), ignore_unknown_fields=True)


def _based(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: base64.b64encode(bytes.fromhex(inner or "")).decode() if key in _IDS else _based(inner)
            for key, inner in value.items()
        }
    return [_based(item) for item in value] if isinstance(value, list) else value
