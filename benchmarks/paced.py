"""Measure the overhead in an agent that makes some turns per second, with pauses, cold caches and garbage collections.

    python benchmarks/paced.py                    prints the table
    python benchmarks/paced.py --against TREE     compares with the package of another checkout
    python benchmarks/paced.py --write | --check

Each setup runs in a separate process. At the same time, a process with only the SDK runs on another core. Setups alternate, and results
are medians. F is the CPU time of the agent's thread per turn at the same pace, with only the SDK and an exporter that does nothing.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import queue
import statistics
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import harness
from harness import Row, Runs

WARM_UP = 600
"""Number of turns before the measurement, for imports, caches and data that is kept about past turns."""
SECONDS = {100: 5.0, 10: 8.0}
ROUNDS = {100: 5, 10: 3}
EMPTY = [f"code_nothing_{number}" for number in range(18)]
"""Metrics that return 1 immediately, so that only the cost around a metric is measured."""
SETUPS: dict[str, dict[str, Any] | None] = {
    "the SDK alone": None,
    "no metrics": {"inline": {"metrics": []}},
    "default metrics": {},
    "default metrics, span events `notable`": {"outlets": {"span_events": "notable"}},
    "default metrics, span events off": {"outlets": {"span_events": "off"}},
    "lower bound: as many metrics, which do nothing": {"inline": {"metrics": EMPTY}},
    "lower bound: a processor that detects the end of turns, and a thread as busy as the worker": {"least": True},
}
SDK, COLLECTION, DEFAULT, NOTABLE, OFF, FLOOR, LEAST = SETUPS
WORKER_SECONDS = 600e-6
"""Warm CPU time of our worker per turn with the default metrics. The thread of the simplest processor uses the same time."""
MOST_THREAD, MOST_THREADS, MOST_GROWN = 0.25, 3.0, 5.0
"""Limits of the default metrics at 100 turns/s: F on the agent's thread, × the SDK's CPU time in all threads, MB (profiling.md)."""


# --- the child


def run(what: dict[str, Any]) -> dict[str, float]:
    """Run an agent at its pace with one setup."""
    return measured(lambda provider: _set_up(provider, what["config"]), what["rate"], what["seconds"])


def _set_up(provider: Any, config: dict[str, Any] | None) -> Any:
    import scenario

    if config == SETUPS[LEAST]:
        provider.add_span_processor(_least())
    elif config is not None:
        import otel_agenteval

        define_empty()
        provider.add_span_processor(otel_agenteval.AgentEvalSpanProcessor(config))
    return scenario.turn


def measured(set_up: Callable[[Any], Callable[[Any], object]], rate: float, seconds: float) -> dict[str, float]:
    """Measure an agent at its pace. ``set_up`` receives the tracer provider, and returns a function that makes one turn."""
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

    class NullExporter(SpanExporter):
        def export(self, spans: Any) -> SpanExportResult:
            return SpanExportResult.SUCCESS

    logging.disable(logging.CRITICAL)
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(NullExporter()))
    turn = set_up(provider)
    flush = provider.force_flush
    tracer = provider.get_tracer("benchmark")
    turn(tracer)
    flush()
    start = time.process_time()
    started = harness.resident_mb()
    for number in range(WARM_UP):
        turn(tracer)
        if number % 20 == 0:
            flush()
    flush()
    collector = harness.GarbageCollector()
    at_pace(lambda: turn(tracer), rate, 0.5)
    collector.reset()
    everything = time.process_time()
    turns, own = at_pace(lambda: turn(tracer), rate, seconds)
    everything = time.process_time() - everything
    in_gc = sum(collector.seconds.values())
    here = collector.seconds.get(threading.get_ident(), 0.0)
    return {
        "thread_rest": (own - here) / turns * 1e6, "thread_gc": here / turns * 1e6,
        "all_rest": (everything - in_gc) / turns * 1e6, "all_gc": in_gc / turns * 1e6,
        "objects": len(gc.get_objects()), "start": start, "started": started, "grown": harness.resident_mb() - started,
    }  # fmt: skip


def _least() -> Any:
    """Return the simplest processor, with a thread that works as long per turn as our worker. It processes the spans' texts in Python."""
    import bench

    turns: queue.SimpleQueue[list[Any]] = queue.SimpleQueue()

    def work() -> None:
        while True:
            spans = turns.get()
            until = time.thread_time() + WORKER_SECONDS
            texts = [value for span in spans for value in span.attributes.values() if isinstance(value, str)]
            while time.thread_time() < until:
                for text in texts:
                    Counter(text.lower().split())

    class Handing(bench.LeastProcessor):
        def over(self, spans: list[Any]) -> None:
            turns.put(spans)

    threading.Thread(target=work, daemon=True).start()
    return Handing()


def define_empty() -> list[str]:
    """Define metrics that return 1 immediately, and return their names."""
    import otel_agenteval

    def nothing(turn: Any) -> float:
        return 1.0

    for name in EMPTY:
        nothing.__name__ = nothing.__qualname__ = name
        otel_agenteval.metric(unit="1")(nothing)
    return EMPTY


def at_pace(work: Any, rate: float, seconds: float) -> tuple[int, float]:
    """Call ``work`` at a steady rate. Return the number of calls, and their CPU seconds on this thread."""
    turns = max(1, int(rate * seconds))
    due = time.perf_counter()
    spent = 0.0
    for _ in range(turns):
        due += 1.0 / rate
        pause = due - time.perf_counter()
        if pause > 0:
            time.sleep(pause)
        start = time.thread_time()
        work()
        spent += time.thread_time() - start
    return turns, spent


# --- the table


class Figures:
    """Medians of the rounds of one setup. Garbage collections use means, because they can run on any thread."""

    def __init__(self, outcomes: Sequence[Mapping[str, Any]]) -> None:
        def middle(key: str) -> float:
            return statistics.median(float(outcome[key]) for outcome in outcomes)

        self.thread_gc = statistics.mean(outcome["thread_gc"] for outcome in outcomes)
        self.all_gc = statistics.mean(outcome["all_gc"] for outcome in outcomes)
        self.thread = middle("thread_rest") + self.thread_gc
        self.all = middle("all_rest") + self.all_gc
        self.objects = middle("objects")
        self.start = middle("start")
        self.started = middle("started")
        self.grown = middle("grown")


def rows_at(rate: int, found: Runs) -> list[Row]:
    """Return the rows of one pace."""
    sdk = Figures([outcome for beside in found.beside.values() for outcome in beside])
    rows = [
        Row(f"**{rate} turns per second.** F: only the SDK, agent's thread", f"{sdk.thread:.0f} µs", "1.00 F"),
        Row(f"all threads; {sdk.objects:,.0f} objects for the garbage collector", f"{sdk.all:.0f} µs", "1.00 ×"),
    ]
    for name in list(SETUPS)[1:]:
        if (harness.AFTER, name) in found.outcomes:
            rows += _rows_of(name, *_compared(found, name, harness.AFTER), bounded=name == DEFAULT and rate == 100)
            if found.has_before(name):
                for row, old in zip(
                    rows[-4:], _rows_of(name, *_compared(found, name, harness.BEFORE), bounded=False), strict=True
                ):
                    row.before = f"{old.value} ({old.ratio})" if old.ratio else old.value
    return rows


def _compared(found: Runs, name: str, tree: str) -> tuple[Figures, Figures]:
    return Figures(found.beside[tree, name]), Figures(found.outcomes[tree, name])


def _rows_of(name: str, sdk: Figures, now: Figures, *, bounded: bool) -> list[Row]:
    own, grown, started = now.thread - sdk.thread, now.grown - sdk.grown, now.started - sdk.started
    of_gc = max(0.0, now.thread_gc - sdk.thread_gc)
    thread = Row(
        f"{name}: agent's thread ({of_gc:.0f} µs of it garbage collection)", f"{own:+.0f} µs", f"{own / sdk.thread:.2f} F"
    )
    threads = Row(
        f"{name}: all threads ({now.all_gc:.0f} µs garbage collection)", f"{now.all:.0f} µs", f"{now.all / sdk.all:.2f} ×"
    )
    start = Row(f"{name}: additional memory after the first turn; {now.objects:,.0f} objects", f"{started:+.1f} MB")
    plateau = Row(f"{name}: additional memory from later turns", f"{grown:+.1f} MB")
    if bounded:
        thread.bound, thread.over = f"≤ {MOST_THREAD} F", own / sdk.thread / MOST_THREAD
        threads.bound, threads.over = f"≤ {MOST_THREADS} ×", now.all / sdk.all / MOST_THREADS
        plateau.bound, plateau.over = f"≤ {MOST_GROWN:g} MB", grown / MOST_GROWN
    return [thread, threads, start, plateau]


def measure(rate: int, options: Any) -> list[Row]:
    """Measure all setups at one pace."""
    chosen = SETUPS if rate == 100 else {name: SETUPS[name] for name in (SDK, DEFAULT)}
    if options.only:
        chosen = {name: config for name, config in chosen.items() if name == SDK or options.only in name}
    setups = {
        name: {"config": config, "rate": rate, "seconds": options.seconds or SECONDS[rate]} for name, config in chosen.items()
    }
    found = harness.alternate(__file__, setups, options.against, options.rounds or ROUNDS[rate], beside=SDK)
    return rows_at(rate, found)


def main() -> int:
    """Measure and print. Return 1 with ``--check`` if a limit is exceeded."""
    parser = harness.parser(__doc__)
    parser.add_argument("--rate", type=int, action="append", choices=tuple(SECONDS), help="turns a second (default: both)")
    parser.add_argument("--rounds", type=int, help="rounds of each setup")
    parser.add_argument("--seconds", type=float, help="duration of each round")
    parser.add_argument("--only", metavar="TEXT", help="only setups whose name contains TEXT, and the SDK")
    options = parser.parse_args()
    if options.child:
        print(json.dumps(run(json.loads(options.child))))
        sys.stdout.flush()
        os._exit(0)  # don't wait for outlet threads
    rows = [row for rate in options.rate or SECONDS for row in measure(rate, options)]
    return harness.report(rows, options, "paced")


if __name__ == "__main__":
    sys.exit(main())
