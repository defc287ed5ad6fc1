"""OTLP requests of an agent's spans. This module doesn't import otel-agenteval, so that every checkout receives the same bytes."""

from __future__ import annotations

import random
from typing import Any

import words
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

TURNS, SPANS = 64, 8
"""Turns per request, and spans per turn."""


def text(dice: random.Random, size: int) -> str:
    """Return ``size`` characters of English words."""
    found = []
    while size > 0:
        word = dice.choice(words.WORDS)
        found.append(word)
        size -= len(word) + 1
    return " ".join(found)


def request(first: int, dice: random.Random) -> bytes:
    """Return 64 agent turns with four model calls (2 kB in, 1 kB out) and three tool calls, about 15 attributes per span."""
    message = ExportTraceServiceRequest()
    group = message.resource_spans.add()
    group.resource.attributes.add(key="service.name").value.string_value = "shop"
    scope = group.scope_spans.add()
    scope.scope.name = "opentelemetry.instrumentation.genai.openai"
    for turn in range(first, first + TURNS):
        trace_id = (turn + 1).to_bytes(8, "big") + dice.randbytes(8)
        ids = [dice.randbytes(8) for _ in range(SPANS)]
        for index in range(SPANS):
            kind = "invoke_agent" if index == 0 else "chat" if index % 2 else "execute_tool"
            span = scope.spans.add(
                trace_id=trace_id, span_id=ids[index], name=f"{kind} x", kind=3, flags=0x101,
                start_time_unix_nano=1_700_000_000_000_000_000 + index * 10**8, end_time_unix_nano=1_700_000_001_000_000_000 + index * 10**8,
            )  # fmt: skip
            if index:
                span.parent_span_id = ids[0]
            for key, value in attributes(kind, index, dice).items():
                pair = span.attributes.add()
                pair.key = key
                if isinstance(value, int):
                    pair.value.int_value = value
                elif isinstance(value, list):
                    pair.value.array_value.values.add().string_value = value[0]
                else:
                    pair.value.string_value = value
    return message.SerializeToString()


def attributes(kind: str, index: int, dice: random.Random) -> dict[str, Any]:
    """Return about 15 attributes of a span, in the GenAI conventions."""
    known: dict[str, Any] = {
        "gen_ai.operation.name": kind, "gen_ai.conversation.id": "c-1", "server.address": "api.example", "server.port": 443,
        "app.region": "eu", "app.tenant": "t-17", "app.release": "2026-11", "app.flag": "on",
    }  # fmt: skip
    if kind == "chat":
        asked, said = text(dice, 2_000), text(dice, 1_000)
        return {
            **known, "gen_ai.request.model": "m-1", "gen_ai.response.model": "m-1", "gen_ai.provider.name": "openai",
            "gen_ai.response.id": f"r-{index}", "gen_ai.usage.input_tokens": 500, "gen_ai.usage.output_tokens": 200,
            "gen_ai.response.finish_reasons": ["stop"],
            "gen_ai.input.messages": f'[{{"role":"user","parts":[{{"type":"text","content":"{asked}"}}]}}]',
            "gen_ai.output.messages": f'[{{"role":"assistant","parts":[{{"type":"text","content":"{said}"}}],"finish_reason":"stop"}}]',
        }  # fmt: skip
    if kind == "execute_tool":
        return {
            **known, "gen_ai.tool.name": "search", "gen_ai.tool.call.id": f"call-{index}", "gen_ai.tool.type": "function",
            "gen_ai.tool.call.arguments": f'{{"q":"{text(dice, 100)}"}}', "gen_ai.tool.call.result": text(dice, 1_500), "app.step": index,
        }  # fmt: skip
    return {**known, "gen_ai.agent.name": "travel", "gen_ai.agent.id": "a-1", "app.user": "u-1", "app.plan": "pro"}
