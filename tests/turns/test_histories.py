"""Histories that every model call of a turn repeats."""

from __future__ import annotations

import json
from typing import Any

import pytest

from otel_agenteval.dialects.content import decode, decode_longer
from otel_agenteval.spans.record import SpanRecord
from otel_agenteval.turns.reading.llm_calls import TurnCalls

OF_CONVENTION = [
    {"role": "user", "parts": [{"type": "text", "content": "Weather in Oslo?"}]},
    {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "weather", "arguments": {"city": "Oslo"}}]},
    {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "result": "Rain"}]},
    {"role": "assistant", "parts": [{"type": "text", "content": "[REDACTED]"}]},
]
OF_CHAT = [
    {"role": "user", "content": "Weather in Oslo?"},
    {"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}]},
    {"role": "tool", "tool_call_id": "c1", "content": "Rain"},
    {"role": "assistant", "content": "It rains."},
]
STREAMED = [
    {"role": "assistant", "parts": [{"type": "text", "content": "It "}], "finish_reason": ""},
    {"role": "assistant", "parts": [{"type": "text", "content": "rains."}], "finish_reason": "stop"},
]


def _all_of(raw: str) -> tuple[Any, ...]:
    found = decode(raw, "user")
    return found.messages, found.hidden, found.truncated


@pytest.mark.parametrize("messages", [OF_CONVENTION, OF_CHAT])
@pytest.mark.parametrize("length", [1, 2, 3])
def test_a_longer_history_has_the_same_messages_as_alone(messages: list[Any], length: int) -> None:
    shorter, whole = json.dumps(messages[:length]), json.dumps(messages)
    known = decode(shorter, "user")
    found = decode_longer(whole, shorter, known)
    assert found is not None
    assert (found.messages, found.hidden, found.truncated) == _all_of(whole)
    assert found.messages[0] is known.messages[0]
    assert known.messages == decode(shorter, "user").messages


@pytest.mark.parametrize(
    ("shorter", "longer"),
    [
        (json.dumps(STREAMED[:1]), json.dumps(STREAMED)),  # the second message changes the first one
        (json.dumps(OF_CHAT[:2]), json.dumps(OF_CHAT[1:])),
        (json.dumps(OF_CHAT[:2]), json.dumps(OF_CHAT)[:-3]),
        (json.dumps(OF_CHAT[:2]), json.dumps(OF_CHAT[:2])[:-1] + ",]"),
        (json.dumps(OF_CHAT)[:-9], json.dumps(OF_CHAT)),
        ("[]", json.dumps(OF_CHAT)),
        ("Hello", json.dumps(OF_CHAT)),
    ],
)
def test_a_history_is_decoded_alone_unless_it_goes_on(shorter: str, longer: str) -> None:
    assert decode_longer(longer, shorter, decode(shorter, "user")) is None


def _call(number: int, messages: list[Any]) -> SpanRecord:
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.input.messages": json.dumps(messages)}
    return SpanRecord("chat", 1, number, 0, start_ns=number * 1_000, end_ns=number * 1_000 + 9, attributes=attributes, scope="s")


def test_calls_share_the_messages_of_their_histories() -> None:
    history = [{"role": "system", "content": "Be brief. " * 100}, *OF_CHAT]
    turn = TurnCalls(record := _call(1, history[:2]), [record, _call(2, history[:4]), _call(3, history)])
    last, middle, first = (turn.inputs(step) for step in reversed(turn.steps))
    assert [len(first), len(middle), len(last)] == [2, 4, 5]
    assert all(one is other for one, other in zip(first, last, strict=False))
    assert middle[3] is last[3]
