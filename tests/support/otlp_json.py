"""Export requests as OTLP/JSON lines, in the form of the Collector's file exporter."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from google.protobuf.json_format import MessageToDict

_IDS = ("traceId", "spanId", "parentSpanId")


def line_of(request: Any) -> str:
    """Return an export request as OTLP/JSON. Unlike protobuf's own JSON, enums are numbers and ids are hexadecimal."""
    return json.dumps(_with_hex_ids(MessageToDict(request, use_integers_for_enums=True)))


def write_lines(requests: Iterable[Any], path: Path) -> Path:
    """Write requests for traces and logs to a file, one per line. Requests for metrics are left out."""
    kept = [request for request in requests if hasattr(request, "resource_spans") or hasattr(request, "resource_logs")]
    path.write_text("".join(f"{line_of(request)}\n" for request in kept))
    return path


def _with_hex_ids(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: base64.b64decode(inner).hex() if key in _IDS and isinstance(inner, str) else _with_hex_ids(inner)
            for key, inner in value.items()
        }
    return [_with_hex_ids(item) for item in value] if isinstance(value, list) else value
