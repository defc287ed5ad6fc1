"""Short functions that create span records with fixed ids and times."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from otel_agenteval.core.turn import Turn
from otel_agenteval.spans.record import ERROR, LogPart, SpanEvent, SpanRecord
from otel_agenteval.turns.reading.turn import build_turn
from otel_agenteval.turns.roots import split

TRACE = 0xA1
START = 1_767_225_600_000_000_000
MS = 1_000_000


def span(
    span_id: int,
    parent_id: int = 0,
    name: str = "span",
    attributes: Mapping[str, Any] | None = None,
    *,
    at: float = 0.0,
    ms: float = 10.0,
    trace_id: int = TRACE,
    scope: str = "acme.app",
    error: str | None = None,
    remote: bool = False,
    events: list[SpanEvent] | None = None,
    logs: list[LogPart] | None = None,
    resource: Mapping[str, Any] | None = None,
) -> SpanRecord:
    """Return a span that starts at ``at`` and takes ``ms`` milliseconds."""
    record = SpanRecord(
        name, trace_id, span_id, parent_id, remote_parent=remote, start_ns=START + int(at * MS), end_ns=START + int((at + ms) * MS),
        status=ERROR if error else 0, status_message=error, attributes=dict(attributes or {}), events=events or [], scope=scope,
        resource=dict(resource or {}),
    )  # fmt: skip
    record.logs = logs or []
    return record


def agent(span_id: int, parent_id: int = 0, name: str = "bot", **more: Any) -> SpanRecord:
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name, **more.pop("attributes", {})}
    return span(span_id, parent_id, f"invoke_agent {name}", attributes, **{"ms": 100.0, **more})


def chat(
    span_id: int,
    parent_id: int = 0,
    *,
    user: str | None = None,
    says: str | None = None,
    calls: list[dict[str, Any]] | None = None,
    messages: list[dict[str, Any]] | None = None,
    **more: Any,
) -> SpanRecord:
    """Return a model call: user message, and answer or requested tools."""
    attributes: dict[str, Any] = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m-1", **more.pop("attributes", {})}
    if user is not None:
        messages = [{"role": "user", "parts": [{"type": "text", "content": user}]}, *(messages or [])]
    if messages is not None:
        attributes["gen_ai.input.messages"] = json.dumps(messages)
    parts: list[dict[str, Any]] = [{"type": "text", "content": says}] if says is not None else []
    parts += [{"type": "tool_call", **call} for call in calls or []]
    if parts:
        attributes["gen_ai.output.messages"] = json.dumps([{"role": "assistant", "parts": parts}])
    return span(span_id, parent_id, more.pop("name", "chat m-1"), attributes, **more)


def tool(span_id: int, parent_id: int = 0, name: str = "search", **more: Any) -> SpanRecord:
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, **more.pop("attributes", {})}
    return span(span_id, parent_id, f"execute_tool {name}", attributes, **more)


def turns_of(*records: SpanRecord) -> list[Turn]:
    """Return the turns of some spans of one trace."""
    return [
        build_turn(group.root, group.members, close_reason="recorded_file", complete=group.all_seen) for group in split(records)
    ]


def turn_of(*records: SpanRecord) -> Turn:
    """Return the only turn of some spans."""
    found = turns_of(*records)
    assert len(found) == 1, found
    return found[0]
