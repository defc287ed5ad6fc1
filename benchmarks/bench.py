"""What collecting and scoring adds to an agent's own time.

    python benchmarks/bench.py            one run, the table on the terminal
    python benchmarks/bench.py --write    the table also into benchmarks/README.md
    python benchmarks/bench.py --check    exit status 1 when a bound is missed by more than a quarter

Everything is a ratio within one run: F is the CPU time that the agent's thread spends on one turn under the OpenTelemetry SDK
alone, and what we add is a multiple of it. README.md beside this file says how each row is measured.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import logging
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import judges
import metric_times
import orjson
import reading
import scenario
from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor, LogRecordExporter, LogRecordExportResult
from opentelemetry.sdk.trace import Event, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import Tracer

from otel_agenteval.instrumentation.span_processor import AgentEvalSpanProcessor
from otel_agenteval.judging.queues import Job, SqliteQueue

ROUNDS = 7
TURNS_PER_BLOCK = 250
TRACES_PER_BLOCK = 60
NOISE = 1.25
"""How far over its bound a row may be before ``--check`` calls it missed."""
README = Path(__file__).with_name("README.md")


# --- what is compared ----------------------------------------------------------------------------------------------


class NullExporter(SpanExporter):
    """Takes spans and does nothing."""

    def export(self, spans: Sequence[Any]) -> SpanExportResult:  # noqa: D102
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:  # noqa: D102
        pass


class EncodingExporter(NullExporter):
    """Makes the bytes that OTLP would send, and sends them nowhere."""

    def export(self, spans: Sequence[Any]) -> SpanExportResult:  # noqa: D102
        encode_spans(spans).SerializeToString()
        return SpanExportResult.SUCCESS


class EncodingLogExporter(LogRecordExporter):
    """The same for log records."""

    def export(self, batch: Sequence[Any]) -> LogRecordExportResult:  # noqa: D102
        encode_logs(batch).SerializeToString()
        return LogRecordExportResult.SUCCESS

    def shutdown(self) -> None:  # noqa: D102
        pass

    def force_flush(self, timeout_millis: int = 10_000) -> bool:  # noqa: D102
        return True


class DeadLogExporter(EncodingLogExporter):
    """Hangs for a while, then fails."""

    def export(self, batch: Sequence[Any]) -> LogRecordExportResult:  # noqa: D102
        time.sleep(0.05)
        raise ConnectionError("nothing listens there")


class NoopProcessor(SpanProcessor):
    """What a second span processor costs before it does anything."""


class LeastProcessor(SpanProcessor):
    """The least that knows when a turn is over and what it holds: each span's turn, open spans, sizes, a list; no root, no roles."""

    def __init__(self) -> None:
        self._turns: dict[int, list[Any]] = {}
        self._lock = threading.Lock()

    def on_start(self, span: Any, parent_context: Any = None) -> None:  # noqa: D102
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
                del self._turns[own[0]]


class ReadyEventsProcessor(SpanProcessor):
    """Puts as many events as there are scores on the root, without evaluating anything: what is left is their encoding."""

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
    """A tracer provider with its processors, set up one way."""

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
            elif kind == "dead judge":
                config["judge"] = {"base_url": f"http://127.0.0.1:{self._taken_port(listening=False)}/v1", "model": "none"}
                config["metrics"] = ["llm_relevance"]
            elif kind == "dead outlets":
                config["outlets"] = {
                    "log_events": "all",
                    "jsonl": self._unwritable_path(),
                    "prometheus": {"port": self._taken_port()},
                }
                logs = self._logs(DeadLogExporter())
            elif kind == "log events":
                config["outlets"] = {"log_events": "all"}
                logs = self._logs(EncodingLogExporter())
            self.ours = AgentEvalSpanProcessor(config, logger_provider=logs)
            self.provider.add_span_processor(self.ours)
        self.tracer: Tracer = self.provider.get_tracer("benchmark")

    def _logs(self, exporter: LogRecordExporter) -> LoggerProvider:
        provider = LoggerProvider()
        provider.add_log_record_processor(BatchLogRecordProcessor(exporter))
        self._cleanup.callback(provider.shutdown)
        self.log_provider = provider
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
        """Let everything that waits be delivered, so that no block pays for the one before it."""
        if self.ours is not None:
            self.ours.force_flush()
        self.provider.force_flush()

    def close(self) -> None:
        """Stop all threads."""
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
    """Microseconds of one ``work`` under each setup: blocks alternate between the setups, and each one's best block counts."""
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
    """One setup of each kind, closed afterwards."""
    made = {kind: Setup(kind, spans) for kind in kinds}
    try:
        yield made
    finally:
        for setup in made.values():
            setup.close()


def microseconds(work: Callable[[], object], repeat: int = 2_000) -> float:
    """CPU time of one call: the best of seven blocks."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.thread_time()
        for _ in range(repeat):
            work()
        best = min(best, time.thread_time() - start)
    return best / repeat * 1e6


def p99_of_root_end(setup: Setup, turns: int = 3_000) -> float:
    """Milliseconds of wall-clock time that the slowest hundredth of ``root.end()`` calls reach."""
    taken = []
    for count in range(turns):
        taken.append(scenario.turn(setup.tracer))
        if count % TURNS_PER_BLOCK == 0:
            setup.finish()
    return sorted(taken)[int(turns * 0.99)] * 1e3


def resident_bytes() -> int:
    """Memory of this process that is in RAM."""
    import psutil

    return int(psutil.Process().memory_info().rss)


def memory_growth(kind: str) -> float:
    """MB that 20,000 turns add after 2,000, in a process of its own."""
    found = subprocess.run([sys.executable, __file__, "--memory-of", kind], check=True, capture_output=True, text=True)
    return float(found.stdout)


def print_memory_growth(kind: str) -> None:
    """The child's side of :func:`memory_growth`."""
    setup = Setup(kind)
    sizes = []
    for turns in (2_000, 20_000):
        for count in range(turns):
            scenario.turn(setup.tracer)
            if count % 500 == 0:
                setup.finish()
        setup.finish()
        gc.collect()
        sizes.append(resident_bytes())
    print((sizes[1] - sizes[0]) / 1e6)
    sys.stdout.flush()
    os._exit(0)  # a dead outlet may not let go


def scores_of_a_turn() -> int:
    """Scores of one turn in the default pack that say something."""
    with setups("default") as made:
        setup = made["default"]
        assert setup.ours is not None
        setup.ours.engine.keep_turns(kept := deque())
        scenario.turn(setup.tracer)
        setup.finish()
        return sum(score.status == "ok" for score in kept[0].scores)


# --- floors: what no implementation could go below ----------------------------------------------------------------------------


def insert_and_pop() -> None:
    """A dictionary entry for each of a turn's spans."""
    spans: dict[int, int] = {}
    for span_id in range(6):
        spans.setdefault(span_id, span_id)
    for span_id in range(6):
        spans.pop(span_id)


def parse_contents() -> None:
    """Every JSON text of a turn."""
    for text in scenario.CONTENTS:
        orjson.loads(text)


def make_events() -> None:
    """As many events as a turn has scores."""
    for _ in range(20):
        Event("gen_ai.evaluation.result", {"gen_ai.evaluation.name": "code_x", "gen_ai.evaluation.score.value": 1.0}, 1)


# --- the table -----------------------------------------------------------------------------------------------------


@dataclass
class Row:
    """One line of the table."""

    what: str
    value: str
    ratio: str = ""
    bound: str = ""
    over: float | None = None
    """Measured by bound: 1.0 is exactly at the bound. None: there is no bound."""

    @property
    def verdict(self) -> str:
        """Whether the bound holds."""
        return "" if self.over is None else "holds" if self.over <= 1 else "MISSED"


def _added(what: str, us: float, unit: float, bound: float | None = None, unit_name: str = "F", note: str = "") -> Row:
    ratio = us / unit
    limit = "" if bound is None else f"≤ {bound:g} {unit_name}{note}"
    return Row(what, f"{us:+.0f} µs", f"{ratio:.2f} {unit_name}", limit, None if bound is None else ratio / bound)


def measure() -> list[Row]:
    """The whole table."""
    rows = []
    with setups("without", "noop", "least", "collect", "default", "no span events", "dead outlets", "dead judge") as made:
        found = best_of_alternating(made, scenario.turn, TURNS_PER_BLOCK, time.thread_time)
        f = found["without"]
        tail = p99_of_root_end(made["default"])
    rows.append(Row("F: one turn under the SDK, a batch processor and an exporter that does nothing", f"{f:.0f} µs", "1.00 F"))
    rows.append(_added("collection alone (`inline: {metrics: []}`)", found["collect"] - f, f, 0.15))
    rows.append(_added("default pack with its span events", found["default"] - f, f, 0.6, note=" (stretch 0.35)"))
    rows.append(_added("default pack, span events off", found["no span events"] - f, f))
    over_default = (found["dead outlets"] - f) / (found["default"] - f)
    rows.append(Row("default pack, every other outlet dead", f"{found['dead outlets'] - f:+.0f} µs", f"{over_default:.2f} × default", "≤ 1.15 × default", over_default / 1.15))  # fmt: skip
    over_default = (found["dead judge"] - f) / (found["default"] - f)
    rows.append(Row("default pack and a judged metric whose judge is dead", f"{found['dead judge'] - f:+.0f} µs", f"{over_default:.2f} × default", "≤ 1.15 × default", over_default / 1.15))  # fmt: skip
    rows.append(Row("99th percentile of the root's `end()`, wall clock", f"{tail:.2f} ms", "", "≤ 1 ms", tail))

    with setups("without", "noop", "least", "default") as made:
        plain = best_of_alternating(made, scenario.application_trace, TRACES_PER_BLOCK, time.thread_time)
    t = plain["without"]
    rows.append(Row("T: a trace of 50 spans without GenAI", f"{t:.0f} µs", "1.00 T"))
    rows.append(_added("the same trace with us", plain["default"] - t, t, 0.15, "T"))

    with setups("without", "ready events", "default", "log events", spans=EncodingExporter) as made:
        everything = best_of_alternating(made, scenario.turn, TURNS_PER_BLOCK, time.process_time, finish_inside=True)
    a = everything["without"]
    rows.append(Row("A: one turn, all threads, spans encoded as OTLP", f"{a:.0f} µs", "1.00 A"))
    for what, kind, bound in (
        ("the same with us: span events, Prometheus", "default", 1.5),
        ("the same with log events too, encoded as OTLP", "log events", None),
    ):
        ratio = everything[kind] / a
        rows.append(
            Row(
                what,
                f"{everything[kind]:.0f} µs",
                f"{ratio:.2f} A",
                f"≤ {bound:g} A" if bound else "",
                ratio / bound if bound else None,
            )
        )

    scores = scores_of_a_turn()
    rows.append(Row("scores of the turn", str(scores), "", "≥ 18", 18 / scores if scores else 99.0))
    for what, kind in (
        ("memory: 20,000 turns more after 2,000", "default"),
        ("the same, every other outlet dead", "dead outlets"),
    ):
        grown = memory_growth(kind)
        rows.append(Row(what, f"{grown:+.1f} MB", "", "≤ 5 MB", grown / 5))
    rows.append(Row("memory of the SDK alone, likewise", f"{memory_growth('without'):+.1f} MB"))

    rows.append(queue_row())
    rows += reading_rows()
    rows += concurrency_rows()
    rows.append(import_row())
    rows.append(_added("floor: a span processor that does nothing", found["noop"] - f, f))
    rows.append(_added("floor: the least that knows when a turn is over, and nothing of its root", found["least"] - f, f))
    ready = everything["ready events"]
    rows.append(Row("floor: 22 ready events on the root, encoded as OTLP", f"{ready:.0f} µs", f"{ready / a:.2f} A"))
    for what, work in (
        ("floor: a dictionary entry per span", insert_and_pop),
        ("floor: parsing every JSON text of the turn once", parse_contents),
        ("floor: 20 span events", make_events),
    ):
        rows.append(_added(what, microseconds(work), f))
    rows.append(
        _added("floor: a span processor that does nothing, on the trace without GenAI", plain["noop"] - t, t, unit_name="T")
    )
    rows.append(
        _added("floor: the least that knows when it is over, on the trace without GenAI", plain["least"] - t, t, unit_name="T")
    )
    return rows


def queue_row(jobs: int = 6_000, batch: int = 100) -> Row:
    """Jobs per second through an SQLite file, each with a turn of 4 kB: put, claimed and acknowledged in batches."""
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
    return Row(
        "judge jobs through an SQLite queue: put, claimed and acknowledged, in batches of 100",
        f"{best:.0f} /s",
        "",
        "≥ 3000 /s",
        3_000 / best,
    )


def concurrency_rows() -> list[Row]:
    """Judges that wait for a slow model."""
    rows = []
    ideal = judges.AT_ONCE / judges.SECONDS
    for backend, where in (("memory", "in memory"), ("sqlite", "in SQLite")):
        rate = judges.jobs_per_second(backend, judges.JOBS, judges.AT_ONCE)
        what = f"{judges.AT_ONCE} judges at once, a model of {judges.SECONDS * 1e3:.0f} ms, queue {where}"
        rows.append(Row(what, f"{rate:.0f} jobs/s", f"{rate / ideal:.2f} × ideal", "≥ 0.8 × ideal", 0.8 * ideal / rate))
    for at_once in (8, 50, judges.AT_ONCE):
        rate = judges.jobs_per_second("memory", 60 * at_once, at_once, http=True)
        share = rate * judges.SECONDS / at_once
        rows.append(
            Row(f"{at_once} judges at once, asked over HTTP, a model of 50 ms", f"{rate:.0f} jobs/s", f"{share:.2f} × ideal")
        )
    return rows


def import_row() -> Row:
    """Importing the package, beside what it depends on."""
    base = min(_import_ms("import opentelemetry.sdk.trace, pydantic") for _ in range(3))
    ours = min(
        _import_ms("import opentelemetry.sdk.trace, pydantic, otel_agenteval; otel_agenteval.instrument") for _ in range(3)
    )
    return Row("importing `otel_agenteval.instrument`, over the SDK and pydantic", f"{ours - base:+.0f} ms", f"{ours / base:.2f} ×", "≤ 250 ms", (ours - base) / 250)  # fmt: skip


def _import_ms(statement: str) -> float:
    program = f"import time; start = time.process_time(); exec({statement!r}); print((time.process_time() - start) * 1e3)"
    return float(subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout)


def reading_rows() -> list[Row]:
    """Recorded spans: what each stage costs next to parsing their lines, and what is held while a million spans come."""
    cost = reading.cost_per_span()
    parse = cost[reading.STAGES[0]]
    rows = [Row("P: one recorded span of the corpus, `json.loads` of its share of the line", f"{parse:.1f} µs", "1.00 P")]
    for stage, bound in zip(reading.STAGES[1:], (None, 1.0, None), strict=True):
        ratio = cost[stage] / parse
        limit = f"≤ {bound:g} P" if bound else ""
        rows.append(
            Row(f"the same span: {stage}", f"{cost[stage]:.1f} µs", f"{ratio:.2f} P", limit, ratio / bound if bound else None)
        )
    allowed = (reading.FLOOD_BYTES + reading.QUEUE_BYTES + reading.PAST_BYTES) / 1e6
    curve = reading.flood_curve()
    shown = " → ".join(f"{size:.0f}" for _, size in curve)
    rows.append(Row(f"memory in MB per 100,000 spans of turns that never close, {allowed:.0f} MB allowed by configuration", shown, f"{curve[-1][1] / allowed:.2f} × allowed", "≤ 1.25 × allowed", curve[-1][1] / allowed / 1.25))  # fmt: skip
    return rows


def table(rows: Sequence[Row]) -> str:
    """The rows as a Markdown table."""
    cells = [
        ("", "measured", "relative", "bound", ""),
        *((row.what, row.value, row.ratio, row.bound, row.verdict) for row in rows),
    ]
    widths = [max(len(line[column]) for line in cells) for column in range(5)]
    lines = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in cells]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def write(text: str, name: str = "results") -> None:
    """Put a table between its marks of README.md."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    before, _, rest = README.read_text().partition(begin)
    _, _, after = rest.partition(end)
    README.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}")


def main() -> int:
    """Measure, print, and say by the exit status whether the bounds hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--write", action="store_true", help="put the table into README.md")
    parser.add_argument("--check", action="store_true", help="exit with status 1 when a bound is missed by more than a quarter")
    parser.add_argument("--memory-of", help=argparse.SUPPRESS)
    args = parser.parse_args()
    logging.disable(logging.CRITICAL)  # dead outlets say so
    threading.excepthook = lambda _: None
    if args.memory_of:
        print_memory_growth(args.memory_of)
    rows = measure()
    text = table(rows)
    print(text)
    per_metric = metric_times.table()
    print(per_metric)
    if args.write:
        write(text)
        write(per_metric, "metrics")
    return int(args.check and any(row.over is not None and row.over > NOISE for row in rows))


if __name__ == "__main__":
    sys.exit(main())
