"""Turns as OTLP export requests: many small turns, each split into several requests."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

from tests.support.otlp_json import line_of

START = 1_767_225_600_000_000_000


@dataclass(frozen=True, slots=True)
class Message:
    """A request with spans of one trace."""

    trace_id: bytes
    proto: bytes
    json: bytes


def messages_of(turns: int, seed: int = 1, together: int = 20) -> list[Message]:
    """Return two requests for each turn (agent, model call and tool call). About ``together`` turns are open at the same time."""
    chosen = random.Random(seed)
    waiting: list[Message] = []
    found: list[Message] = []
    for i in range(turns):
        trace = chosen.getrandbits(128).to_bytes(16, "big")
        waiting += _turn(trace, i)
        while len(waiting) > 2 * together:
            found.append(waiting.pop(chosen.randrange(together)))
    return found + waiting


def apart(messages: Sequence[Message]) -> tuple[list[Message], list[Message]]:
    """Return the requests without content, and requests with log records that contain it, as current instrumentations write it."""
    spans, logs = [], []
    for message in messages:
        request = ExportTraceServiceRequest.FromString(message.proto)
        for span in request.resource_spans[0].scope_spans[0].spans:
            said = [pair for pair in span.attributes if pair.key in ("gen_ai.input.messages", "gen_ai.output.messages")]
            if not said:
                continue
            told = ExportLogsServiceRequest()
            group = told.resource_logs.add(resource=request.resource_spans[0].resource).scope_logs.add(scope={"name": "acme"})
            group.log_records.add(
                trace_id=span.trace_id, span_id=span.span_id, time_unix_nano=span.end_time_unix_nano, attributes=said,
                event_name="gen_ai.client.inference.operation.details",
            )  # fmt: skip
            rest = [pair for pair in span.attributes if pair not in said]
            del span.attributes[:]
            span.attributes.extend(rest)
            logs.append(Message(message.trace_id, told.SerializeToString(), line_of(told).encode()))
        spans.append(Message(message.trace_id, request.SerializeToString(), line_of(request).encode()))
    return spans, logs


def write(messages: Sequence[Message], path: Path) -> Path:
    """Write the requests to a file as OTLP/JSON lines."""
    path.write_bytes(b"".join(message.json + b"\n" for message in messages))
    return path


def _turn(trace: bytes, i: int) -> list[Message]:
    says = [{"role": "user", "parts": [{"type": "text", "content": f"What is {i} and {i}?"}]}]
    answers = [{"role": "assistant", "parts": [{"type": "text", "content": f"It is {2 * i}." if i % 7 else ""}]}]
    chat = {
        "gen_ai.operation.name": "chat", "gen_ai.request.model": "m-1", "gen_ai.usage.input_tokens": 10 + i % 50,
        "gen_ai.usage.output_tokens": 5, "gen_ai.input.messages": json.dumps(says), "gen_ai.output.messages": json.dumps(answers),
    }  # fmt: skip
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "add", "gen_ai.tool.call.id": f"call-{i}"}
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": f"bot-{i % 3}"}
    first = [("chat m-1", 2, 1, chat, 100, 400), ("execute_tool add", 3, 1, tool, 500, 600)]
    return [_message(trace, i, first), _message(trace, i, [("invoke_agent bot", 1, 0, agent, 0, 700 + i % 300)])]


def _message(trace: bytes, i: int, spans: Sequence[tuple[str, int, int, dict[str, object], int, int]]) -> Message:
    request = ExportTraceServiceRequest()
    group = request.resource_spans.add()
    group.resource.attributes.append(_pair("service.name", "shop"))
    scope = group.scope_spans.add()
    scope.scope.name = "acme"
    for name, span_id, parent, attributes, begin, end in spans:
        start = START + i * 1_000_000_000
        scope.spans.add(
            trace_id=trace, span_id=span_id.to_bytes(8, "big"), parent_span_id=parent.to_bytes(8, "big") if parent else b"", name=name,
            start_time_unix_nano=start + begin * 1_000_000, end_time_unix_nano=start + end * 1_000_000,
            attributes=[_pair(key, value) for key, value in attributes.items()],
        )  # fmt: skip
    return Message(trace, request.SerializeToString(), line_of(request).encode())


def _pair(key: str, value: object) -> KeyValue:
    return KeyValue(key=key, value=AnyValue(int_value=value) if isinstance(value, int) else AnyValue(string_value=str(value)))
