"""Parser for MCP requests, in spans from the SDK, FastMCP, OpenLLMetry, or Logfire.

One tool call can have up to four nested spans, written by the framework's tool, the client, the SDK, and the server. These spans
count as one call. Only requests with the method ``tools/call`` are tool calls. Other requests, such as handshakes, aren't steps.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..spans.record import SpanRecord
from .attributes import as_text
from .payloads import parsed
from .step import SETUP, TOOL, Step

MARKS = frozenset(("mcp.method.name",))
SCOPES = re.compile(r"opentelemetry\.instrumentation\.mcp\b|logfire\.mcp$")
_CALL = "tools/call"
_NAMED_CALL = "tools/call "
_SESSIONS = ("session", "server")


def role_of(attributes: Mapping[str, Any], scope: str, name: str) -> str | None:
    """Return ``TOOL`` for a tool call, ``SETUP`` for a session (which is never a turn), or None for other spans."""
    if (method := attributes.get("mcp.method.name")) is not None:
        return TOOL if method == _CALL and ("gen_ai.tool.name" in attributes or _NAMED_CALL in name) else None
    if not SCOPES.match(scope):
        return None
    if attributes.get("traceloop.span.kind") in _SESSIONS:
        return SETUP
    return TOOL if _NAMED_CALL in name or name.startswith(_CALL + ".") or name.endswith(": " + _CALL) else None


def read(record: SpanRecord, step: Step) -> None:
    if step.role != TOOL:
        return
    get = record.attributes.get
    if step.tool_name is None:
        step.tool_name = as_text(get("gen_ai.tool.name"))
        if step.tool_name is None and _NAMED_CALL in record.name:
            step.tool_name = record.name.partition(_NAMED_CALL)[2] or None
    step.tool_failed |= get("mcp.tool.result.is_error") is True  # written by Sentry, as are the arguments' attributes below
    if step.tool_arguments is None:
        arguments = ((key.partition("mcp.request.argument.")[2], value) for key, value in record.attributes.items())
        step.tool_arguments = {name: parsed(value) for name, value in arguments if name} or None
    if SCOPES.match(record.scope):
        request = get("request") if "request" in record.attributes else get("traceloop.entity.input")
        if request.__class__ is str:
            _read_request(request, step)
        result = get("response") if "response" in record.attributes else get("traceloop.entity.output")
        if result is not None:
            _read_result(result, step)


def _read_request(text: str, step: Step) -> None:
    request = parsed(text)
    if isinstance(request, Mapping):
        params = request.get("params", request)  # a whole request or only its parameters
        if isinstance(params, Mapping):
            step.tool_name = as_text(params.get("name")) or as_text(params.get("tool_name")) or step.tool_name
            step.tool_arguments = params.get("arguments")


def _read_result(raw: Any, step: Step) -> None:
    result = parsed(raw)
    if isinstance(result, Mapping):
        step.tool_failed = result.get("isError") is True or result.get("is_error") is True
        structured = result.get("structuredContent")
        if isinstance(structured, Mapping) and structured.keys() == {"result"}:  # other values are wrapped in an object
            result = structured
        if "result" in result and not result.keys() - {"result", "is_error"}:
            result = result["result"]
    step.tool_result = result
