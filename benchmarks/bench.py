"""Measure the overhead of collecting and scoring in an agent.

    python benchmarks/bench.py                    prints the table of one run
    python benchmarks/bench.py --against TREE     compares with the package of another checkout
    python benchmarks/bench.py --write            also writes the table to benchmarks/README.md
    python benchmarks/bench.py --check            exit status 1 if a limit is exceeded by more than a quarter

All figures are ratios within one run. F is the CPU time of the agent's thread for one turn with only the OpenTelemetry SDK. Our
overhead is a multiple of F. README.md in this folder describes how each row is measured.
"""

from __future__ import annotations

import contextlib
import gc
import json
import logging
import os
import socket
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import harness
import orjson
import paced
import scenario
from harness import Row, Runs
from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor, LogRecordExporter, LogRecordExportResult
from opentelemetry.sdk.trace import Event, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import Tracer
from sink import sink

from otel_agenteval.instrumentation.span_processor import AgentEvalSpanProcessor
from otel_agenteval.judging.queues import Job, SqliteQueue

ROUNDS = 5
TURNS_PER_BLOCK = 250
TRACES_PER_BLOCK = 60


# --- what is compared ----------------------------------------------------------------------------------------------


class NullExporter(SpanExporter):
    def export(self, spans: Sequence[Any]) -> SpanExportResult:
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        pass


class EncodingExporter(NullExporter):
    """Encodes spans as OTLP, but sends nothing."""

    def export(self, spans: Sequence[Any]) -> SpanExportResult:
        encode_spans(spans).SerializeToString()
        return SpanExportResult.SUCCESS


class EncodingLogExporter(LogRecordExporter):
    """Encodes log records as OTLP, but sends nothing."""

    def export(self, batch: Sequence[Any]) -> LogRecordExportResult:
        encode_logs(batch).SerializeToString()
        return LogRecordExportResult.SUCCESS

    def shutdown(self) -> None:
        pass

    def force_flush(self, timeout_millis: int = 10_000) -> bool:
        return True


class DeadLogExporter(EncodingLogExporter):
    """Hangs for some time, then fails."""

    def export(self, batch: Sequence[Any]) -> LogRecordExportResult:
        time.sleep(0.05)
        raise ConnectionError("no server at this address")


class NoopProcessor(SpanProcessor):
    """Span processor without an effect, to measure the cost of any second processor."""


class LeastProcessor(SpanProcessor):
    """Simplest processor that detects the end of a turn and collects its spans. It has no roots and no roles."""

    def __init__(self) -> None:
        self._turns: dict[int, list[Any]] = {}
        self._lock = threading.Lock()

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        parent, own = span._parent, span._context
        if parent is None:
            self._turns[own[0]] = [1, 0, [], {own[1]: None}]
            return
        turn = self._turns[parent[0]]
        with self._lock:
            if parent[1] in turn[3]:
                turn[0] += 1
                turn[3][own[1]] = None

    def _on_ending(self, span: Any) -> None:
        own = span._context
        turn = self._turns[own[0]]
        size = 512
        for value in span._attributes._dict.values():
            if value.__class__ is str:
                size += len(value)
        with self._lock:
            turn[0] -= 1
            turn[1] += size
            turn[2].append(span)
            if turn[0] == 0:
                self.over(self._turns.pop(own[0])[2])

    def over(self, spans: list[Any]) -> None:
        """Called with all spans of a turn when the turn ends."""


class ReadyEventsProcessor(SpanProcessor):
    """Adds the usual number of score events to the root without evaluating anything, so that only their encoding is measured."""

    def __init__(self) -> None:
        self._events = [
            Event("gen_ai.evaluation.result", {"gen_ai.evaluation.name": f"code_metric_{i}", "gen_ai.evaluation.score.value": 1.0,
                   "gen_ai.evaluation.score.label": "pass", "agenteval.passed": True, "agenteval.result.id": f"{i:032x}"}, 1)
            for i in range(22)
        ]  # fmt: skip

    def _on_ending(self, span: Any) -> None:
        if span._parent is None:
            span._events._dq.extend(self._events)


class Setup:
    """A tracer provider with the processors of one configuration."""

    def __init__(self, kind: str, spans: Callable[[], SpanExporter] = NullExporter) -> None:
        self.provider = TracerProvider()
        self.provider.add_span_processor(BatchSpanProcessor(spans(), max_queue_size=1 << 16))
        self.ours: AgentEvalSpanProcessor | None = None
        self._cleanup = contextlib.ExitStack()
        logs = None
        floors = {"noop": NoopProcessor, "least": LeastProcessor, "ready events": ReadyEventsProcessor}
        if kind in floors:
            self.provider.add_span_processor(floors[kind]())
        elif kind != "without":
            config: dict[str, Any] = {}
            if kind == "collect":
                config["inline"] = {"metrics": []}
            elif kind == "no span events":
                config["outlets"] = {"span_events": "off"}
            elif kind == "notable":
                config["outlets"] = {"span_events": "notable"}
            elif kind == "events only":
                config["outlets"] = {"prometheus": None}
            elif kind == "dead judge":
                config["judge"] = {"base_url": f"http://127.0.0.1:{self._taken_port(listening=False)}/v1", "model": "none"}
                config["metrics"] = ["llm_relevance"]
            elif kind == "dead outlets":
                config["outlets"] = {
                    "log_events": True,
                    "jsonl": self._unwritable_path(),
                    "prometheus": {"port": self._taken_port()},
                }
                logs = self._logs(DeadLogExporter())
            elif kind == "log events":
                config["outlets"] = {"log_events": True}
                logs = self._logs(EncodingLogExporter())
            elif kind in ("own outlet", "own outlet, empty"):
                if kind != "own outlet":
                    config["inline"] = {"metrics": paced.define_empty()}
                endpoint = self._cleanup.enter_context(sink("http"))
                config["outlets"] = {
                    "span_events": "off",
                    "otlp": {"endpoint": endpoint, "protocol": "http", "queue_bytes": "256MiB"},
                }
            self.ours = AgentEvalSpanProcessor(config, logger_provider=logs)
            self.provider.add_span_processor(self.ours)
        self.tracer: Tracer = self.provider.get_tracer("benchmark")

    def _logs(self, exporter: LogRecordExporter) -> LoggerProvider:
        provider = LoggerProvider()
        provider.add_log_record_processor(BatchLogRecordProcessor(exporter))
        self._cleanup.callback(provider.shutdown)
        return provider

    def _unwritable_path(self) -> str:
        folder = self._cleanup.enter_context(tempfile.TemporaryDirectory())
        return str(Path(folder, "missing", "scores.jsonl"))

    def _taken_port(self, *, listening: bool = True) -> int:
        taken = self._cleanup.enter_context(socket.socket())
        taken.bind(("127.0.0.1", 0))
        if listening:
            taken.listen()
        return int(taken.getsockname()[1])

    def finish(self) -> None:
        """Wait until everything is delivered, so that the next block doesn't include this work."""
        if self.ours is not None:
            self.ours.force_flush()
        self.provider.force_flush()

    def close(self) -> None:
        self.provider.shutdown()
        self._cleanup.close()


# --- measuring -----------------------------------------------------------------------------------------------------


def best_of_alternating(
    setups: dict[str, Setup],
    work: Callable[[Tracer], object],
    repeat: int,
    clock: Callable[[], float],
    finish_inside: bool = False,
) -> dict[str, float]:
    """Return the microseconds of one ``work`` call for each setup. Blocks of calls alternate between setups. The best block counts."""
    best = dict.fromkeys(setups, float("inf"))
    for setup in setups.values():
        for _ in range(repeat):
            work(setup.tracer)
        setup.finish()
    for _ in range(ROUNDS):
        for name, setup in setups.items():
            tracer = setup.tracer
            gc.collect()
            start = clock()
            for _ in range(repeat):
                work(tracer)
            if finish_inside:
                setup.finish()
            best[name] = min(best[name], (clock() - start) / repeat * 1e6)
            setup.finish()
    return best


@contextlib.contextmanager
def setups(*kinds: str, spans: Callable[[], SpanExporter] = NullExporter) -> Iterator[dict[str, Setup]]:
    """Yield one setup of each kind, and close them at the end."""
    made = {kind: Setup(kind, spans) for kind in kinds}
    try:
        yield made
    finally:
        for setup in made.values():
            setup.close()


def p99_of_root_end(setup: Setup, turns: int = 1_500) -> float:
    """Return the 99th percentile of the wall-clock time of ``root.end()``, in milliseconds."""
    taken = []
    for count in range(turns):
        taken.append(scenario.turn(setup.tracer))
        if count % TURNS_PER_BLOCK == 0:
            setup.finish()
    return sorted(taken)[int(turns * 0.99)] * 1e3


def memory_growth(kind: str) -> float:
    """Return the MB that 10,000 turns add after the first 2,000 turns."""
    setup = Setup(kind)
    sizes = []
    for turns in (2_000, 10_000):
        for count in range(turns):
            scenario.turn(setup.tracer)
            if count % 500 == 0:
                setup.finish()
        setup.finish()
        gc.collect()
        sizes.append(harness.resident_mb())
    return sizes[1] - sizes[0]


def scores_of_a_turn() -> int:
    """Return the number of default scores of one turn that have a value."""
    with setups("default") as made:
        setup = made["default"]
        assert setup.ours is not None
        setup.ours.engine.keep_turns(kept := deque())
        scenario.turn(setup.tracer)
        setup.finish()
        return sum(score.status == "ok" for score in kept[0].scores)


# --- floors: lower bounds for any implementation ----------------------------------------------------------------------------


def insert_and_pop() -> None:
    """Add and remove a dictionary entry for each span of a turn."""
    spans: dict[int, int] = {}
    for span_id in range(6):
        spans.setdefault(span_id, span_id)
    for span_id in range(6):
        spans.pop(span_id)


def parse_contents() -> None:
    for text in scenario.CONTENTS:
        orjson.loads(text)


def make_events() -> None:
    """Create as many events as a turn has scores."""
    for _ in range(20):
        Event("gen_ai.evaluation.result", {"gen_ai.evaluation.name": "code_x", "gen_ai.evaluation.score.value": 1.0}, 1)


# --- the children --------------------------------------------------------------------------------------------------


def turns_on_the_thread() -> dict[str, float]:
    """Return the agent thread's µs per turn by setup, and the 99th percentile of ``end()`` in milliseconds."""
    with setups(
        "without", "noop", "least", "collect", "default", "notable", "no span events", "dead outlets", "dead judge"
    ) as made:
        found = best_of_alternating(made, scenario.turn, TURNS_PER_BLOCK, time.thread_time)
        floors = {"insert": insert_and_pop, "parse": parse_contents, "events": make_events}
        return {
            **found, "p99": p99_of_root_end(made["default"]), "scores": float(scores_of_a_turn()),
            **{name: harness.per_call(work, 2_000) for name, work in floors.items()},
        }  # fmt: skip


def plain_traces() -> dict[str, float]:
    """Return the agent thread's µs for a trace without GenAI spans, by setup."""
    with setups("without", "noop", "least", "default") as made:
        return best_of_alternating(made, scenario.application_trace, TRACES_PER_BLOCK, time.thread_time)


def all_threads() -> dict[str, float]:
    """Return the µs of all threads for one turn until everything is delivered, by setup."""
    kinds = (
        "without",
        "ready events",
        "no span events",
        "events only",
        "notable",
        "default",
        "own outlet",
        "own outlet, empty",
        "log events",
    )
    with setups(*kinds, spans=EncodingExporter) as made:
        return best_of_alternating(made, scenario.turn, TURNS_PER_BLOCK, time.process_time, finish_inside=True)


def queue() -> dict[str, float]:
    """Return the jobs per second through SQLite."""
    return {"rate": queue_rate()}


CHILDREN: dict[str, Callable[[], dict[str, float]]] = {
    "turn": turns_on_the_thread,
    "trace": plain_traces,
    "all": all_threads,
    "memory default": lambda: {"MB": memory_growth("default")},
    "memory dead outlets": lambda: {"MB": memory_growth("dead outlets")},
    "memory without": lambda: {"MB": memory_growth("without")},
    "queue": queue,
}


# --- the table -----------------------------------------------------------------------------------------------------


class Figures:
    """Results of this checkout and of the other checkout."""

    def __init__(self, found: Runs) -> None:
        self._found = found

    def __call__(self, child: str, key: str) -> float:
        return self._found.best(child, key)

    def row(
        self, what: str, child: str, key: str, base: str, unit: str, bound: float | None = None, *, added: bool = True
    ) -> Row:
        """Return a row for a setup. The ratio is a multiple of ``base``, for the added time or (with ``added=False``) for all of it."""
        now, least, before = self(child, key), self(child, base), self._found.before(child, key)
        old_least = self._found.before(child, base)
        over = least if added else 0.0
        ratio = (now - over) / least
        row = Row(what, f"{now - over:{'+' if added else ''}.0f} µs", f"{ratio:.2f} {unit}")
        if bound is not None:
            row.bound, row.over = f"≤ {bound:g} {unit}", ratio / bound
        if before is None or old_least is None:
            return row
        return row.compared(now - over, before - (old_least if added else 0.0), "{:+.0f} µs" if added else "{:.0f} µs")

    def over_default(self, what: str, key: str) -> Row:
        """Return a row for a setup with failing outlets or a failing judge, relative to the time that the default metrics add."""
        least = self("turn", "without")
        ratio = (self("turn", key) - least) / (self("turn", "default") - least)
        row = self.row(what, "turn", key, "without", "F")
        row.ratio, row.bound, row.over = f"{ratio:.2f} × default", "≤ 1.15 × default", ratio / 1.15
        return row

    def memory(self, what: str, kind: str, bound: float | None = 5.0) -> Row:
        """Return a row for the memory that turns add."""
        grown = self(f"memory {kind}", "MB")
        row = Row(what, f"{grown:+.1f} MB")
        if bound is not None:
            row.bound, row.over = f"≤ {bound:g} MB", grown / bound
        return row.compared(grown, self._found.before(f"memory {kind}", "MB"), "{:+.1f} MB")


def rows(found: Runs) -> list[Row]:
    made = Figures(found)
    f, t, a = made("turn", "without"), made("trace", "without"), made("all", "without")
    scores, p99 = made("turn", "scores"), made("turn", "p99")
    return [
        Row("F: one turn with only the SDK, a batch processor, and an exporter that does nothing", f"{f:.0f} µs", "1.00 F"),
        made.row("no metrics", "turn", "collect", "without", "F", 0.25),
        made.row("default metrics with span events", "turn", "default", "without", "F", 0.25),
        made.row("default metrics, span events `notable`", "turn", "notable", "without", "F"),
        made.row("default metrics, span events off", "turn", "no span events", "without", "F"),
        made.over_default("default metrics, all other outlets down", "dead outlets"),
        made.over_default("default metrics, and a judged metric whose judge is down", "dead judge"),
        Row("99th percentile of the root span's `end()`, wall-clock time", f"{p99:.2f} ms", "", "≤ 1 ms", p99),
        Row("T: a trace of 50 spans without GenAI, only the SDK", f"{t:.0f} µs", "1.00 T"),
        made.row("the same trace with otel-agenteval", "trace", "default", "without", "T", 0.15),
        Row("A: one turn, all threads, spans encoded as OTLP", f"{a:.0f} µs", "1.00 A"),
        made.row("default metrics, Prometheus, no span events", "all", "no span events", "without", "A", added=False),
        made.row("default metrics, span events `all`, no Prometheus", "all", "events only", "without", "A", added=False),
        made.row("default metrics, span events `notable`, Prometheus", "all", "notable", "without", "A", added=False),
        made.row("default metrics, span events `all`, Prometheus (default)", "all", "default", "without", "A", 3.4, added=False),
        made.row("default metrics, OTLP outlet instead of span events, Prometheus", "all", "own outlet", "without", "A", 2.4, added=False),
        made.row("default metrics, span events, log events of a LoggerProvider, Prometheus", "all", "log events", "without", "A", added=False),
        Row("number of scores of the turn", f"{scores:.0f}", "", "≥ 18", 18 / scores if scores else 99.0),
        made.memory("memory: 10,000 more turns after 2,000 turns", "default"),
        made.memory("memory: the same, all other outlets down", "dead outlets"),
        made.memory("memory: the same, only the SDK", "without", None),
        queue_row(found),
        made.row("lower bound: a span processor that does nothing", "turn", "noop", "without", "F"),
        made.row("lower bound: a span processor that only detects the end of turns", "turn", "least", "without", "F"),
        made.row("lower bound: 22 prepared events on the root span, encoded as OTLP", "all", "ready events", "without", "A", added=False),
        made.row("lower bound: scores of as many metrics that do nothing, OTLP outlet", "all", "own outlet, empty", "without", "A", added=False),
        _floor("lower bound: a dictionary entry per span", made("turn", "insert"), f),
        _floor("lower bound: parsing every JSON text of the turn once", made("turn", "parse"), f),
        _floor("lower bound: 20 span events", made("turn", "events"), f),
        made.row("lower bound: a span processor that does nothing, T", "trace", "noop", "without", "T"),
        made.row("lower bound: a span processor that only detects the end of the trace, T", "trace", "least", "without", "T"),
    ]  # fmt: skip


def _floor(what: str, us: float, f: float) -> Row:
    return Row(what, f"{us:+.0f} µs", f"{us / f:.2f} F")


def queue_rate(jobs: int = 6_000, batch: int = 100) -> float:
    """Return the jobs per second through an SQLite file. Jobs with a turn of 4 kB are added, claimed and acknowledged in batches."""
    payload = os.urandom(4_096)
    best = 0.0
    with tempfile.TemporaryDirectory() as folder:
        queue = SqliteQueue(str(Path(folder, "queue.db")), 1 << 30)
        for round_ in range(3):
            start = time.perf_counter()
            for first in range(0, jobs, batch):
                queue.put_many([Job(f"{round_} {n}", payload) for n in range(first, first + batch)])
                queue.ack_many([job.id for job in queue.claim(batch, 60.0)])
            best = max(best, jobs / (time.perf_counter() - start))
        queue.close()
    return best


def queue_row(found: Runs) -> Row:
    rate = max(outcome["rate"] for outcome in found.outcomes[harness.AFTER, "queue"])
    what = "judge jobs added to, claimed from, and acknowledged in an SQLite queue, in batches of 100"
    return Row(what, f"{rate:.0f} /s", "", "≥ 3000 /s", 3_000 / rate)


def main() -> int:
    """Measure and print. Return 1 with ``--check`` if a limit is exceeded."""
    options = harness.parser(__doc__)
    options.add_argument("--rounds", type=int, help="processes of each checkout (default: 1, or 2 with --against)")
    args = options.parse_args()
    logging.disable(logging.CRITICAL)  # failing outlets log errors
    if args.child:
        threading.excepthook = lambda _: None
        print(json.dumps(CHILDREN[json.loads(args.child)["what"]]()))
        sys.stdout.flush()
        os._exit(0)  # a failing outlet can delay the exit
    setups = {what: {"what": what} for what in CHILDREN}
    found = harness.alternate(
        __file__, setups, args.against, args.rounds or (2 if args.against else 1), shared=("memory without",)
    )
    return harness.report(rows(found), args, "results")


if __name__ == "__main__":
    sys.exit(main())
