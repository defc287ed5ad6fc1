"""Random invalid requests. ``AGENTEVAL_FUZZ_BODIES`` sets their number (100,000 take some minutes).

The process always responds as OTLP specifies, never with a status that makes a sender drop valid data. It evaluates accepted data
without errors, and its memory doesn't grow.
"""

from __future__ import annotations

import gzip
import http.client
import os
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import psutil
import pytest
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from otel_agenteval.core.errors import NotOtlp
from otel_agenteval.core.wellformed import bounded_name
from otel_agenteval.spans.otlp import from_json
from otel_agenteval.spans.split import split_spans
from tests.support.otlp_messages import message_of
from tests.support.recordings import recording
from tests.support.servers import until
from tests.support.sidecar import Sidecar

BODIES = int(os.environ.get("AGENTEVAL_FUZZ_BODIES", "500"))
GROWTH = 48 * 2**20
"""Maximum growth of resident memory, in bytes, after the first two fifths."""
METHODS = {
    "traces": "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
    "logs": "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
}
KINDS: dict[str, Any] = {"traces": ExportTraceServiceRequest, "logs": ExportLogsServiceRequest}
CODES = {
    grpc.StatusCode.OK, grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAVAILABLE,
}  # fmt: skip
STATUSES = {200, 400, 413, 415, 503}


def seeds() -> list[tuple[str, str, bytes]]:
    """Return (signal, content type, body) of requests from real frameworks."""
    found = []
    for signal, file in (
        ("traces", "pydantic_ai-native_v6/s2.jsonl"),
        ("traces", "langchain-openinference/s3.jsonl"),
        ("traces", "openai_sdk-otel_genai_event/s2.jsonl"),
        ("logs", "openai_sdk-otel_genai_event/s2.logs.jsonl"),
    ):
        for line in [line for line in recording(file).splitlines() if line.strip()][:2]:
            found.append((signal, "application/json", line))
            found.append((signal, "application/x-protobuf", message_of(line, KINDS[signal]).SerializeToString()))
    return found


def mutated(body: bytes, others: list[bytes], dice: random.Random) -> bytes:
    """Damage a body in one to four places."""
    for _ in range(dice.randint(1, 4)):
        at = dice.randrange(len(body) + 1)
        other = dice.choice(others)
        end, new = dice.choice(
            (
                (at + 1, bytes([dice.choice((0, 1, 0x7F, 0x80, 0xFF, 0x0A, 0x12, 0x5B, 0x22))])),
                (at + dice.randint(1, 40), b""),
                (at, dice.randbytes(dice.randint(1, 30))),
                (at, body[at : at + dice.randint(1, 300)]),
                (len(body), b""),
                (len(body), other[dice.randrange(len(other)) :]),
                (at, b"\x0a" * dice.randint(1, 400)),  # nested for ever
                (at, b"\xff\xff\xff\xff\x0f"),
            )
        )
        body = body[:at] + new + body[end:]
    return body or b"\x00"


def damaged(count: int, seed: int, *, as_json: bool = True) -> Iterator[tuple[str, str, bytes]]:
    """Yield (signal, content type, body). tests/support/mutations.py covers odd values in valid bodies."""
    dice = random.Random(seed)
    known = [one for one in seeds() if as_json or not one[1].endswith("json")]
    bodies = [body for _, _, body in known]
    for _ in range(count):
        signal, content_type, body = dice.choice(known)
        yield signal, content_type, mutated(body, bodies, dice) if dice.randrange(4) else body


def over_http(sidecar: Sidecar, count: int, seed: int, dice: random.Random) -> Counter[Any]:
    host, _, port = sidecar.http.removeprefix("http://").rpartition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=120)
    seen: Counter[Any] = Counter()
    for signal, content_type, body in damaged(count, seed):
        headers = {"Content-Type": content_type}
        packing = dice.choice(("gzip", "zstd", "deflate", *[""] * 13))
        if packing:
            headers["Content-Encoding"] = packing
            body = dice.choice((body, gzip.compress(body, 1), mutated(gzip.compress(body, 1), [body], dice)))  # noqa: PLW2901
        connection.request("POST", f"/v1/{signal}", body, headers)
        response = connection.getresponse()
        answer = response.read()
        assert response.status in STATUSES, (response.status, answer[:200])
        assert response.status != 503 or response.getheader("Retry-After")
        seen[response.status] += 1
    connection.close()
    return seen


def over_grpc(sidecar: Sidecar, count: int, seed: int) -> Counter[Any]:
    seen: Counter[Any] = Counter()
    with grpc.insecure_channel(sidecar.grpc) as channel:
        methods = {signal: channel.unary_unary(method) for signal, method in METHODS.items()}
        for signal, _, body in damaged(count, seed, as_json=False):
            try:
                methods[signal](body, timeout=120)
                code = grpc.StatusCode.OK
                trailers: Any = ()
            except grpc.RpcError as error:
                code, trailers = error.code(), error.trailing_metadata()  # type: ignore[attr-defined]
            assert code in CODES
            assert code is not grpc.StatusCode.UNAVAILABLE or trailers
            seen[code] += 1
    return seen


def test_no_body_breaks_the_process_or_stays_in_its_memory(tmp_path: Path) -> None:
    config = {
        "turn": {"decision_delay": "100ms", "idle_timeout": "500ms", "total_bytes": "8MiB", "max_bytes": "1MiB"},
        "queue": {"max_bytes": "16MiB"},
        "serve": {"max_body": "1MiB"},
    }
    dice = random.Random(7)
    seen: Counter[Any] = Counter()
    with Sidecar(tmp_path, config) as sidecar:
        process = psutil.Process(sidecar.pid)
        rss = []
        for fifth in range(5):
            seen += over_http(sidecar, BODIES // 10, fifth, dice) + over_grpc(sidecar, BODIES // 10, 100 + fifth)
            rss.append(process.memory_info().rss)
        assert rss[-1] - rss[1] < GROWTH, [size >> 20 for size in rss]
        until(lambda: sidecar.metric("agenteval_turns_open") == 0, "everything is evaluated")
        assert sidecar.stop() == 0
    ledger = sidecar.ledger()
    assert ledger["faults"] == {}
    assert ledger["handed_over"] is True
    assert ledger["requests"].get("error", 0) == 0
    assert "rendering scores failed" not in sidecar.text()
    good, bad = seen[200] + seen[grpc.StatusCode.OK], seen[400] + seen[grpc.StatusCode.INVALID_ARGUMENT]
    assert min(good, bad) > BODIES / 10, seen  # damage of both kinds was done


def named(attributes):
    """Return the attributes with a name and a value. Damaged pairs may have neither."""
    return {key: value for key, value in attributes.items() if key and value is not None}


def test_what_a_whole_reading_takes_is_read_the_same_in_parts() -> None:
    same = 0
    for signal, _, body in damaged(400, 1_000, as_json=False):
        if signal != "traces":
            continue
        try:
            whole = list(from_json(MessageToDict(ExportTraceServiceRequest.FromString(body))))
        except Exception:
            continue
        expected = {(r.trace_id, r.span_id): r for r in whole if hasattr(r, "attributes") and r.trace_id and r.span_id}
        try:
            parts, _ = split_spans(body)
        except NotOtlp:
            pytest.fail("a good message was refused")
        found = {
            (int.from_bytes(trace_id, "big"), int.from_bytes(span.id, "big")): span.record()
            for trace_id, part in parts.items()
            for span in part.spans
        }
        assert found.keys() == expected.keys()
        for key, record in expected.items():
            other = found[key]
            for name in ("name", "parent_id", "remote_parent", "start_ns", "end_ns", "truncated", "status"):
                assert getattr(other, name) == getattr(record, name), name
            assert other.scope == bounded_name(record.scope)
            assert named(other.resource) == named(record.resource)
            assert [(event.name, event.time_ns, named(event.attributes)) for event in other.events] == [
                (event.name, event.time_ns, named(event.attributes)) for event in record.events
            ]
            assert named(other.attributes) == named(record.attributes)
            same += 1
    assert same > 20
