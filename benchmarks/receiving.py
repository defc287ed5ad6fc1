"""Measure the sidecar's CPU time per span, as a multiple of the time to parse all attributes of the same bytes.

    python benchmarks/receiving.py                    prints the table
    python benchmarks/receiving.py --against TREE     compares with the package of another checkout
    python benchmarks/receiving.py --write | --check

One thread reads, assembles and evaluates, so CPU times are per core. The time of outlet threads is included. Rounds alternate
between rows, and the best round of each row counts. The first two rows keep nothing, and process each request four times. Before
each row, caches are cleared. The turns of the mix (``mix.py``) are received one by one.
``serving.py`` measures a whole process with open listeners.
"""

from __future__ import annotations

import gc
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import harness
import mix
import psutil
from harness import Row, Runs
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from sink import sink
from traffic import SPANS, TURNS, request, text

from otel_agenteval.config.loader import load_config
from otel_agenteval.core.caches import forget
from otel_agenteval.engine.builder import engine_from
from otel_agenteval.outlets.prometheus import PrometheusOutlet
from otel_agenteval.server.process import tune
from otel_agenteval.server.receiver import ExportRequest, Receiver
from otel_agenteval.spans.otlp import Signal, _proto_value
from otel_agenteval.spans.split import split_spans

ROUNDS = 9
OPEN_TURNS = 50_000


Request = tuple[Signal, bytes]


def naive(body: bytes, signal: Signal = "traces") -> None:
    """Parse a request, and put every attribute into a dictionary. No receiver that reads everything can do less."""
    if signal == "traces":
        for group in ExportTraceServiceRequest.FromString(body).resource_spans:
            for scope in group.scope_spans:
                for span in scope.spans:
                    {pair.key: _proto_value(pair.value, 0) for pair in span.attributes}
    else:
        for group in ExportLogsServiceRequest.FromString(body).resource_logs:
            for scope in group.scope_logs:
                for record in scope.log_records:
                    {pair.key: _proto_value(pair.value, 0) for pair in record.attributes}, _proto_value(record.body, 0)


def naive_all(*requests: Request) -> None:
    for signal, body in requests:
        naive(body, signal)


class Sidecar:
    """The sidecar without sockets. It evaluates turns on this thread."""

    def __init__(self, config: dict[str, Any], *, prometheus: bool = False) -> None:
        loaded = load_config({**config, "outlets": {"log_events": False, "prometheus": None, **config.get("outlets", {})}})
        self.engine = engine_from(loaded, decision_delay=10.0)
        if prometheus:
            self.engine.outlets.add(PrometheusOutlet(self.engine.telemetry))
        self.engine.worker.may_start = False
        self.engine.worker.is_courteous = False
        self.receiver = Receiver(self.engine, loaded.serve)

    def take(self, body: bytes) -> None:
        """Process a request with spans, and close its turns."""
        self.take_all(("traces", body))

    def take_all(self, *requests: Request) -> None:
        """Process the requests with all spans and log records of some turns."""
        for signal, body in requests:
            self.receiver.process(ExportRequest(signal, body, "", json=False))
        with self.engine.assembler.lock:
            closed = self.engine.assembler.close_all("delay")
        self.engine.intake.take(closed)
        assert self.engine.evaluate_closed(60)


NAIVE, SPLIT, SAMPLED, OFF, OUT = (
    "naive: parsing, and storing every attribute in a dict",
    "split: spans separated by trace id",
    "split and assembled, 10 % of the traces evaluated",
    "every turn evaluated, default metrics, outlets off",
    "the same, with the OTLP outlet (one log record per score) and Prometheus",
)
BOUNDS = {SPLIT: (0.10, "≤ 0.10 ×"), OUT: (10.0, "≤ 10 ×")}
OUT_BOUND = 1.25
LARGE = "large"
MIX_ROUNDS = 2


def sidecar(endpoint: str) -> Sidecar:
    """Return a sidecar with the default metrics, the OTLP outlet and Prometheus."""
    otlp = {"endpoint": endpoint, "metrics_interval": "5s", "queue_bytes": "256MiB"}
    return Sidecar({"outlets": {"otlp": otlp}}, prometheus=True)


def measure() -> dict[str, float]:
    """Return the CPU µs per span of each row."""
    tune()
    dice = random.Random(5)
    bodies = [request(number * TURNS, dice) for number in range(ROUNDS + 1)]
    with sink("grpc") as endpoint:
        everything, sampled, out = Sidecar({}), Sidecar({"serve": {"sample_rate": 0.1}}), sidecar(endpoint)
        rows: dict[str, Callable[[bytes], object]] = {
            NAIVE: naive, SPLIT: split_spans, SAMPLED: sampled.take, OFF: everything.take,
            OUT: lambda body: (out.take(body), out.engine.outlets.flush(30)),
        }  # fmt: skip
        best = dict.fromkeys(rows, float("inf"))
        for body in bodies:
            for name, work in rows.items():
                gc.collect()
                forget()
                for _ in range(4 if name in (NAIVE, SPLIT) else 1):  # a repeated turn isn't evaluated again
                    started = time.process_time()
                    work(body)
                    best[name] = min(best[name], (time.process_time() - started) / (TURNS * SPANS) * 1e6)
        assert everything.engine.assembler.received == len(bodies) * TURNS * SPANS
    return best


def measure_mix() -> dict[str, float]:
    """Return the CPU µs per span of the mix, by group and row."""
    tune()
    groups: dict[str, list[list[Request]]] = {}
    spans: Counter[str] = Counter()
    for case in mix.cases():
        group = case.kind if case.kind in (mix.RECORDED, mix.WRITTEN) else LARGE
        requests = case.requests()
        groups.setdefault(group, []).append([(signal, message.SerializeToString()) for signal, message in requests])
        for _, message in requests:
            spans[group] += sum(len(scope.spans) for some in getattr(message, "resource_spans", ()) for scope in some.scope_spans)
    best: dict[str, float] = {}
    with sink("grpc") as endpoint:
        for _ in range(MIX_ROUNDS):
            off, out = Sidecar({}), sidecar(endpoint)
            rows: dict[str, Callable[..., object]] = {NAIVE: naive_all, OFF: off.take_all, OUT: out.take_all}
            for group, turns in groups.items():
                for name, work in rows.items():
                    gc.collect()
                    forget()
                    started = time.process_time()
                    for turn in turns:
                        work(*turn)
                    if name == OUT:
                        out.engine.outlets.flush(30)
                    key = f"{group} {name}"
                    best[key] = min(best.get(key, float("inf")), (time.process_time() - started) / spans[group] * 1e6)
    return best


def rows(found: Runs) -> list[Row]:
    naively, off = found.best("cost", NAIVE), found.best("cost", OFF)
    made = []
    for name in (NAIVE, SPLIT, SAMPLED, OFF, OUT):
        us = found.best("cost", name)
        row = Row(name, f"{us:.2f} µs ({1e6 / us:,.0f} spans/s)", f"{us / naively:.2f} × naive")
        if name in BOUNDS:
            bound, row.bound = BOUNDS[name]
            row.over = us / naively / bound
        if name == OUT:
            row.ratio += f", {us / off:.2f} × off"
            row.bound += f", ≤ {OUT_BOUND} × off"
            row.over = max(row.over or 0.0, us / off / OUT_BOUND)
        made.append(row.compared(us, found.before("cost", name), "{:.2f} µs"))
    for group in (mix.RECORDED, mix.WRITTEN, LARGE):
        for name, what in ((NAIVE, "naive"), (OFF, "default metrics, outlets off"), (OUT, "with the OTLP outlet and Prometheus")):
            us = found.best("mix", f"{group} {name}")
            row = Row(f"mix, {group}: {what}", f"{us:,.1f} µs", f"{us / found.best('mix', f'{group} {NAIVE}'):,.1f} × naive")
            made.append(row.compared(us, found.before("mix", f"{group} {name}"), "{:,.1f} µs"))
    held = found.best("memory", "peak")
    made.append(
        Row(
            f"{2 * OPEN_TURNS:,} turns of one span that never close, at most {OPEN_TURNS:,} open, `turn.total_bytes` {ALLOWED >> 20} MiB: peak above the start",
            f"{held:.0f} MiB",
        ).compared(held, found.before("memory", "peak"), "{:.0f} MiB")
    )
    return made


ALLOWED = 160 << 20


def hold_open_turns() -> dict[str, float]:
    """Return the MiB of 50,000 open turns, while 100,000 turns arrive."""
    tune()
    sidecar = Sidecar({"turn": {"total_bytes": ALLOWED, "max_open": OPEN_TURNS}, "inline": {"metrics": []}})
    dice = random.Random(6)
    process = psutil.Process()
    gc.collect()
    before = process.memory_info().rss
    peak = 0
    for number in range(2 * OPEN_TURNS // TURNS):
        sidecar.receiver.feed.pass_on(sidecar.receiver.feed.read("traces", small_request(number * TURNS, dice), False))
        sidecar.engine.evaluate_closed(60)
        peak = max(peak, process.memory_info().rss - before)
    assert sidecar.engine.assembler.bytes <= ALLOWED
    return {"peak": peak / 2**20}


def small_request(first: int, dice: random.Random) -> bytes:
    """Return 64 traces with one span of half a kilobyte, whose local root never arrives."""
    message = ExportTraceServiceRequest()
    scope = message.resource_spans.add().scope_spans.add()
    for turn in range(first, first + TURNS):
        span = scope.spans.add(
            trace_id=(turn + 1).to_bytes(8, "big") + dice.randbytes(8), span_id=dice.randbytes(8), parent_span_id=b"12345678"
        )
        span.attributes.add(key="gen_ai.operation.name").value.string_value = "chat"
        span.attributes.add(key="gen_ai.output.messages").value.string_value = text(dice, 500)
    return message.SerializeToString()


def main() -> int:
    """Measure and print. Return 1 with ``--check`` if a limit is exceeded."""
    options = harness.parser(__doc__)
    options.add_argument("--rounds", type=int, help="processes of each checkout (default: 1, or 2 with --against)")
    args = options.parse_args()
    children = {"cost": measure, "mix": measure_mix, "memory": hold_open_turns}
    harness.answer_as_child(args, children)
    setups = {what: {"what": what} for what in children}
    found = harness.alternate(__file__, setups, args.against, args.rounds or (2 if args.against else 1))
    return harness.report(rows(found), args, "receiving")


if __name__ == "__main__":
    sys.exit(main())
