"""Attributes of received spans are read like protobuf reads them, in wire order."""

from __future__ import annotations

import json
import random
import struct

import pytest
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue

from otel_agenteval.core.wellformed import decoded
from otel_agenteval.dialects.reader import GENAI
from otel_agenteval.spans import pairs
from otel_agenteval.spans.otlp import _proto_value, json_spans
from otel_agenteval.spans.record import SpanRecord
from otel_agenteval.spans.schemas import MESSAGES
from otel_agenteval.spans.split import split_spans
from otel_agenteval.spans.wire import LazyAttributes

TEXTS = (b"", b"chat", b"x" * 70, b"x" * 79, b"y" * 200, "ü€😀".encode() * 40, b"z" * 16_380, b"z" * 16_390)
KEYS = (b"gen_ai.operation.name", b"a", b"", "é中".encode(), b"k" * 127, b"k" * 128)
CASES = 500


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def some_value(dice: random.Random, depth: int = 0) -> bytes:
    """Return an AnyValue of any kind, with several values, or with an unknown field."""
    kind = dice.randrange(10)
    if kind < 3:
        return field(1, dice.choice(TEXTS))
    if kind == 3:
        return b"\x10" + varint(dice.randrange(2))
    if kind == 4:
        return b"\x18" + varint(dice.choice((0, 1, 127, 128, 2**31, 2**63 - 1, 2**63, 2**64 - 1)))
    if kind == 5:
        return b"\x21" + struct.pack("<d", dice.choice((0.0, 1.5, -2.0, float("inf"), float("nan"))))
    if kind == 6 and depth < 3:
        return field(5, b"".join(field(1, some_value(dice, depth + 1)) for _ in range(dice.randrange(3))))
    if kind == 7 and depth < 3:
        return field(6, b"".join(field(1, some_pair(dice, depth + 1)) for _ in range(dice.randrange(3))))
    if kind == 8:
        return field(7, dice.randbytes(4))
    return b"" if depth else field(15, b"new") + some_value(dice, depth + 1)


def some_pair(dice: random.Random, depth: int = 0) -> bytes:
    key, value = field(1, dice.choice(KEYS)), field(2, some_value(dice, depth))
    return dice.choice((key + value,) * 6 + (value + key, key, value, key + value + field(9, b"unknown"), key + value + key))


def text_pair(key: str, text: bytes) -> bytes:
    return field(1, key.encode()) + field(2, field(1, text))


def record_of(*raw_pairs: bytes, scope: str = "opentelemetry.instrumentation.genai.openai") -> SpanRecord:
    """Return a received span with these attributes."""
    span = field(1, b"t" * 16) + field(2, b"s" * 8) + b"".join(field(9, pair) for pair in raw_pairs)
    body = field(1, field(2, field(1, field(1, scope.encode())) + field(2, span)))
    parts, _ = split_spans(body, "", 0, GENAI)
    return parts[b"t" * 16].spans[0].record()


def test_pairs_of_any_form_are_read_as_protobuf_reads_them() -> None:
    dice = random.Random(3)
    for _ in range(CASES):
        raw = some_pair(dice)
        theirs = KeyValue.FromString(raw)
        expected = {theirs.key: _proto_value(theirs.value, 0)}
        for _ in range(2):  # the second time it may be known
            assert repr(pairs.attributes_of([raw])) == repr(expected), raw


def test_bytes_that_protobuf_refuses_are_refused() -> None:
    dice = random.Random(4)
    parse = MESSAGES["Pair"].FromString
    refused = 0
    for _ in range(CASES):
        raw = bytearray(some_pair(dice))
        raw[dice.randrange(len(raw))] = dice.randrange(256)
        try:
            expected = [parse(bytes(raw)).key]
        except DecodeError:
            refused += 1
            with pytest.raises((DecodeError, UnicodeDecodeError)):
                pairs.pairs_of([bytes(raw)])
        else:
            assert list(pairs.pairs_of([bytes(raw)])[0]) == expected
    assert refused > CASES // 20


def test_attributes_keep_the_order_of_the_wire_and_the_last_of_equal_keys_counts() -> None:
    keys = [f"key.{number}" for number in random.Random(5).sample(range(1_000), 40)]
    raw = [text_pair(key, b"v") for key in keys]
    found = record_of(*raw, text_pair(keys[3], b"later")).attributes
    assert list(found) == keys
    assert found[keys[3]] == "later"


def test_new_fields_of_otlp_and_texts_that_are_not_utf_8_are_read() -> None:
    new = text_pair("gen_ai.operation.name", b"chat") + field(3, b"new")
    invalid = text_pair("gen_ai.prompt", b"caf\xe9 " * 50)
    assert record_of(new, invalid).attributes == {"gen_ai.operation.name": "chat", "gen_ai.prompt": decoded(b"caf\xe9 " * 50)}


def test_what_is_known_is_bounded_whatever_comes() -> None:
    for number in range(pairs._MOST_PAIRS + pairs._MOST_KEYS):
        text, key = b"%d" % number, b"key.%d" % number
        pairs.attributes_of(
            [field(1, key) + field(2, field(1, text)), field(1, key) + field(2, field(5, field(1, field(1, text))))]
        )
    assert 0 < len(pairs._known) <= pairs._MOST_PAIRS
    assert 0 < len(pairs._known_lists) <= pairs._MOST_PAIRS
    assert 0 < len(pairs._known_keys) <= pairs._MOST_KEYS


def test_each_span_has_lists_of_its_own() -> None:
    pair = field(1, b"gen_ai.response.finish_reasons") + field(2, field(5, field(1, field(1, b"stop"))))
    first, second = record_of(pair).attributes, record_of(pair).attributes
    first["gen_ai.response.finish_reasons"].append("changed")
    assert second == {"gen_ai.response.finish_reasons": ["stop"]}
    assert record_of(pair).attributes == second


def test_lists_of_an_applications_own_span_are_read_when_they_are_used() -> None:
    pair = field(1, b"http.request.header.accept") + field(2, field(5, field(1, field(1, b"text/html"))))
    attributes = record_of(pair, scope="acme.http").attributes
    assert isinstance(attributes, LazyAttributes)
    assert dict(attributes) == {"http.request.header.accept": ["text/html"]}


def test_requests_of_the_sdk_are_read_as_they_were_written() -> None:
    request = ExportTraceServiceRequest()
    span = request.resource_spans.add().scope_spans.add().spans.add(trace_id=b"t" * 16, span_id=b"s" * 8)
    for key, text in (("gen_ai.operation.name", "chat"), ("gen_ai.input.messages", "ü" * 9_000), ("gen_ai.request.model", "m")):
        span.attributes.add(key=key).value.string_value = text
    span.events.add(name="e").attributes.add(key="n").value.int_value = -3
    parts, _ = split_spans(request.SerializeToString(), "", 0, GENAI)
    record = parts[b"t" * 16].spans[0].record()
    assert list(record.attributes.items()) == [
        ("gen_ai.operation.name", "chat"), ("gen_ai.input.messages", "ü" * 9_000), ("gen_ai.request.model", "m"),
    ]  # fmt: skip
    assert record.events[0].attributes == {"n": -3}


@pytest.mark.parametrize("header", ["ot=th:8", "", "no key"])
def test_a_received_span_has_the_sampler_s_trace_state(header: str) -> None:
    request = ExportTraceServiceRequest()
    sent = request.resource_spans.add().scope_spans.add().spans.add(trace_id=b"t" * 16, span_id=b"s" * 8, trace_state=header)
    item = {"traceId": sent.trace_id.hex(), "spanId": sent.span_id.hex(), "traceState": header}
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [item]}]}]}).encode()
    for parts, _ in (split_spans(request.SerializeToString()), json_spans(body)):
        (span,) = parts[b"t" * 16].spans
        assert (span.record().trace_state or {}).get("ot") == ("th:8" if "th" in header else None)
