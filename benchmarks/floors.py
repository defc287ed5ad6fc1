"""Measure lower bounds for each path, from the libraries' cost alone, for docs/internals/profiling.md.

    python benchmarks/floors.py            prints the tables
    python benchmarks/floors.py --write    also writes them to docs/internals/profiling.md

Decoding uses protobuf's C parser (upb), JSON uses orjson, and output is copied to a socket. The last table estimates what a native
span reader could save: all of the reading time in ``where.py``, minus the C parser's time for the same bytes.
"""

from __future__ import annotations

import random
import socket
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import harness
import orjson
from harness import Runs

PAGE = harness.ROOT / "docs" / "internals" / "profiling.md"
READING = "protobuf: splitting by trace, attributes on first use"


# --- the children


def agent() -> dict[str, float]:
    """Return µs of the agent's thread for one turn."""
    import bench
    import scenario

    with bench.setups("without", "noop", "least", "collect", "default") as made:
        found = bench.best_of_alternating(made, scenario.turn, bench.TURNS_PER_BLOCK, time.thread_time)
    return {**found, "append": harness.per_call(_append_events, 2_000)}


_EVENTS = tuple(object() for _ in range(22))


def _append_events() -> None:
    ready: list[object] = []
    ready.extend(_EVENTS)


def span() -> dict[str, float]:
    """Return µs for one span of the sidecar's requests."""
    import receiving
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    from otel_agenteval.spans.split import split_spans

    receiving.tune()
    dice = random.Random(5)
    bodies = [receiving.request(number * receiving.TURNS, dice) for number in range(6)]
    spans = receiving.TURNS * receiving.SPANS
    texts = _texts(bodies[0])
    records = orjson.dumps(_records_of(bodies[0]))
    found = {
        "copy": harness.per_call(lambda: bytearray(bodies[0]), 20) / spans,
        "parse": harness.per_call(lambda: ExportTraceServiceRequest.FromString(bodies[0]), 5) / spans,
        "naive": harness.per_call(lambda: receiving.naive(bodies[0]), 3) / spans,
        "split": harness.per_call(lambda: split_spans(bodies[0]), 10) / spans,
        "objects": harness.per_call(lambda: orjson.loads(records), 5) / spans,
        "json": harness.per_call(lambda: [orjson.loads(text) for text in texts], 5) / spans,
        "pass": harness.per_call(lambda: [_lowered(text) for text in texts], 5) / spans,
    }
    for name, config in (("assembled", {"inline": {"metrics": []}}), ("whole", {})):
        taking = receiving.Sidecar(config)
        best = float("inf")
        for body in bodies:
            start = time.process_time()
            taking.take(body)
            best = min(best, time.process_time() - start)
        found[name] = best / spans * 1e6
    return found


def _records_of(body: bytes) -> list[dict[str, Any]]:
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    from otel_agenteval.spans.otlp import _proto_value

    message = ExportTraceServiceRequest.FromString(body)
    return [
        {"trace": one.trace_id.hex(), "span": one.span_id.hex(), "parent": one.parent_span_id.hex(), "name": one.name,
         "start": one.start_time_unix_nano, "end": one.end_time_unix_nano, "attributes": {pair.key: _proto_value(pair.value, 0) for pair in one.attributes}}
        for group in message.resource_spans for scope in group.scope_spans for one in scope.spans
    ]  # fmt: skip


def _texts(body: bytes) -> list[str]:
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    message = ExportTraceServiceRequest.FromString(body)
    values = (
        pair.value.string_value for group in message.resource_spans for scope in group.scope_spans for one in scope.spans for pair in one.attributes
    )  # fmt: skip
    return [value for value in values if value.startswith(("[", "{"))]


def _lowered(text: str) -> int:
    return len(text.lower())


def score() -> dict[str, float]:
    """Return µs for one score as an OTLP log record, with 22 records per frame."""
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

    message = _records(ExportLogsServiceRequest)
    body = message.SerializeToString()
    record = body[: len(body) // 22]
    pieces = [record[:-40], b"x" * 16, record[-40:-16], b"y" * 16]
    with _receiving() as connected:
        return {
            "classes": harness.per_call(lambda: _records(ExportLogsServiceRequest).SerializeToString(), 100) / 22,
            "serialize": harness.per_call(message.SerializeToString, 1_000) / 22,
            "join": harness.per_call(lambda: b"".join(pieces), 20_000),
            "send": harness.per_call(lambda: connected.sendall(body), 500) / 22,
            "bytes": len(body) / 22,
        }


def _records(cls: Any) -> Any:
    message = cls()
    scope = message.resource_logs.add().scope_logs.add()
    for number in range(22):
        record = scope.log_records.add(
            time_unix_nano=1_700_000_000_000_000_000 + number, observed_time_unix_nano=1_700_000_000_000_000_000, severity_number=9,
            event_name="gen_ai.evaluation.result", trace_id=b"0123456789abcdef", span_id=b"01234567", flags=1,
        )  # fmt: skip
        for key, value in (
            ("gen_ai.evaluation.name", f"code_metric_{number}"), ("gen_ai.evaluation.score.label", "pass"), ("gen_ai.agent.name", "travel"),
            ("gen_ai.conversation.id", "conversation-1"), ("agenteval.result.id", f"{number:032x}"), ("agenteval.turn.id", f"{number:032x}-{number:016x}"),
            ("agenteval.metric.version", "1"),
        ):  # fmt: skip
            record.attributes.add(key=key).value.string_value = value
        record.attributes.add(key="gen_ai.evaluation.score.value").value.double_value = 1.0
        record.attributes.add(key="agenteval.passed").value.bool_value = True
    return message


class _receiving:  # noqa: N801 - used as a context manager only
    """A connected socket. A thread reads everything at its other end."""

    def __enter__(self) -> socket.socket:
        self._ours, self._theirs = socket.socketpair()
        threading.Thread(target=self._drain, daemon=True).start()
        return self._ours

    def _drain(self) -> None:
        while self._theirs.recv(1 << 20):
            pass

    def __exit__(self, *_: object) -> None:
        self._ours.close()


CHILDREN: dict[str, Callable[[], dict[str, float]]] = {"agent": agent, "span": span, "score": score}


# --- the tables


def tables(found: Runs) -> dict[str, str]:
    """Return Markdown tables by mark."""

    def us(child: str, key: str) -> float:
        return found.best(child, key)

    f = us("agent", "without")
    own = [
        ("Work on the agent's thread", "µs per turn", "× F"),
        *((what, f"{value:.1f}", f"{value / f:.3f}") for what, value in (
            ("a span processor that does nothing (the SDK calls `on_start`, `_on_ending`, and `on_end`)", us("agent", "noop") - f),
            ("a span processor that only tracks the end and size of turns", us("agent", "least") - f),
            ("adding 22 prepared events to a span", us("agent", "append")),
            ("current code, only collecting turns", us("agent", "collect") - f),
            ("current code, default metrics with span events", us("agent", "default") - f),
        )),
    ]  # fmt: skip
    whole = us("span", "whole")
    spans = [
        ("Lower bound for a span in the sidecar", "µs per span", "Share of last row"),
        *((what, f"{us('span', key):.2f}", f"{us('span', key) / whole:.3f}") for what, key in (
            ("copying the span's bytes once", "copy"),
            ("parsing with upb (protobuf's C library), without reading values", "parse"),
            ("parsing with upb, and storing every attribute in a dict", "naive"),
            ("creating Python objects for all attributes in C (orjson parses the span as JSON)", "objects"),
            ("splitting a request by trace, as in the sidecar", "split"),
            ("parsing the span's JSON strings with orjson", "json"),
            ("one pass over the span's JSON strings (`str.lower`)", "pass"),
            ("current code, assembling and reading turns, without metrics", "assembled"),
            ("current code, default metrics, without outlets (exporters)", "whole"),
        )),
    ]  # fmt: skip
    scores = [
        ("Lower bound for exporting a score", "µs per score"),
        (f"a log record of {us('score', 'bytes'):.0f} bytes, created with protobuf's classes", f"{us('score', 'classes'):.2f}"),
        ("serializing a finished log record", f"{us('score', 'serialize'):.2f}"),
        ("joining a log record from four byte strings", f"{us('score', 'join'):.2f}"),
        ("sending log records through a socket and receiving them, 22 per frame", f"{us('score', 'send'):.2f}"),
    ]
    return {
        "floor-agent": harness.plain_table(own), "floor-sidecar": harness.plain_table(spans), "floor-score": harness.plain_table(scores),
        "native": native(found),
    }  # fmt: skip


def native(found: Runs) -> str:
    """Return the estimate for a native span reader."""
    import where

    parse, objects = found.best("span", "parse"), found.best("span", "objects")
    lines = [
        (
            "Evaluation",
            "µs per span",
            "µs for reading",
            "µs with upb",
            "Largest gain",
            "µs with Python objects from C",
            "Gain with objects",
        )
    ]
    for path, what in (("assembled", "no metrics"), ("sidecar", "default metrics, no outlets")):
        parts = where.stages(path, found)
        whole = sum(parts.values())
        reading = parts.get(READING, 0.0)
        most, likely = (f"{max(0.0, reading - least) / whole:.0%}" for least in (parse, parse + objects))
        lines.append((what, f"{whole:.1f}", f"{reading:.1f}", f"{parse:.1f}", most, f"{parse + objects:.1f}", likely))
    return harness.plain_table(lines)


def main() -> int:
    options = harness.parser(__doc__, against=False)
    options.add_argument("--rounds", type=int, default=2, help="runs of each path")
    args = options.parse_args()
    harness.answer_as_child(args, CHILDREN)
    found = harness.alternate(__file__, {path: {"what": path} for path in CHILDREN}, None, args.rounds)
    sampled = str(Path(__file__).with_name("where.py"))
    found.outcomes |= harness.alternate(
        sampled, {path: {"what": path} for path in ("assembled", "sidecar")}, None, args.rounds
    ).outcomes
    for mark, text in tables(found).items():
        print(f"{mark}\n{text}\n")
        if args.write:
            harness.write(text, mark, PAGE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
