"""What an agent pays that makes some turns a second, with pauses between them: cold caches, and a garbage collector that runs anyway.

    python benchmarks/paced.py                    the table on the terminal
    python benchmarks/paced.py --against TREE     beside the package of another checkout
    python benchmarks/paced.py --write | --check

Each setup has a process of its own, with a process of the SDK alone at the same time on another core; setups alternate, and medians of the rounds count. F is the CPU time that the agent's thread spends on
one turn under the SDK with a batch processor whose exporter does nothing, at the same pace.
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
"""Turns before the pace begins, with everything delivered after each twenty: imports, caches, and what is kept of past turns."""
SECONDS = {100: 5.0, 10: 8.0}
ROUNDS = {100: 5, 10: 3}
EMPTY = [f"code_nothing_{number}" for number in range(18)]
"""Metrics that return 1 at once: what is left is everything around a metric."""
SETUPS: dict[str, dict[str, Any] | None] = {
    "the SDK alone": None,
    "collection alone (`inline: {metrics: []}`)": {"inline": {"metrics": []}},
    "default pack": {},
    "default pack, span events `notable`": {"outlets": {"span_events": "notable"}},
    "default pack, span events off": {"outlets": {"span_events": "off"}},
    "floor: as many metrics as the default pack has, which do nothing": {"inline": {"metrics": EMPTY}},
    "floor: the least that knows when a turn is over, and a thread that takes as long as our worker": {"least": True},
}
SDK, COLLECTION, DEFAULT, NOTABLE, OFF, FLOOR, LEAST = SETUPS
WORKER_SECONDS = 600e-6
"""CPU time of our worker for one turn with the default pack, warm: what the thread beside the least processor takes too."""
MOST_THREAD, MOST_THREADS, MOST_GROWN = 0.25, 3.0, 5.0
"""Of the default pack at 100 turns a second: F on the agent's thread, × in all threads, MB. Where they come from: docs/internals/profiling.md."""


# --- the child


def run(what: dict[str, Any]) -> dict[str, float]:
    """An agent at its pace under one setup."""
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
    """Measure an agent at its pace. ``set_up`` gets the tracer provider, and returns what makes one turn."""
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
    """What no processor can do without, and for each turn as much work on another thread as our worker has: the texts of its spans, gone through in Python."""
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
    """The names of metrics that return 1 at once, now defined."""
    import otel_agenteval

    def nothing(turn: Any) -> float:
        """Nothing."""
        return 1.0

    for name in EMPTY:
        nothing.__name__ = nothing.__qualname__ = name
        otel_agenteval.metric(unit="1")(nothing)
    return EMPTY


def at_pace(work: Any, rate: float, seconds: float) -> tuple[int, float]:
    """Do it at a steady rate: how often, and the CPU seconds of this thread inside the work."""
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
    """One setup, or what ran beside it: medians of its rounds. Garbage collections fall on whichever thread allocates next, so that of them the mean counts."""

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
    """The lines of one pace."""
    sdk = Figures([outcome for beside in found.beside.values() for outcome in beside])
    rows = [
        Row(f"**{rate} turns a second.** F: the SDK alone, agent's thread", f"{sdk.thread:.0f} µs", "1.00 F"),
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
    start = Row(f"{name}: memory above the SDK's after the first turn; {now.objects:,.0f} objects", f"{started:+.1f} MB")
    plateau = Row(f"{name}: what later turns add to it, above the SDK's", f"{grown:+.1f} MB")
    if bounded:
        thread.bound, thread.over = f"≤ {MOST_THREAD} F", own / sdk.thread / MOST_THREAD
        threads.bound, threads.over = f"≤ {MOST_THREADS} ×", now.all / sdk.all / MOST_THREADS
        plateau.bound, plateau.over = f"≤ {MOST_GROWN:g} MB", grown / MOST_GROWN
    return [thread, threads, start, plateau]


def measure(rate: int, options: Any) -> list[Row]:
    """Everything at one pace."""
    chosen = SETUPS if rate == 100 else {name: SETUPS[name] for name in (SDK, DEFAULT)}
    if options.only:
        chosen = {name: config for name, config in chosen.items() if name == SDK or options.only in name}
    setups = {
        name: {"config": config, "rate": rate, "seconds": options.seconds or SECONDS[rate]} for name, config in chosen.items()
    }
    found = harness.alternate(__file__, setups, options.against, options.rounds or ROUNDS[rate], beside=SDK)
    return rows_at(rate, found)


def main() -> int:
    """Measure, print, and say by the exit status whether the bounds hold."""
    parser = harness.parser(__doc__)
    parser.add_argument("--rate", type=int, action="append", choices=tuple(SECONDS), help="turns a second (default: both)")
    parser.add_argument("--rounds", type=int, help="of each setup")
    parser.add_argument("--seconds", type=float, help="of each round")
    parser.add_argument("--only", metavar="TEXT", help="only setups with this in their names, beside the SDK")
    options = parser.parse_args()
    if options.child:
        print(json.dumps(run(json.loads(options.child))))
        sys.stdout.flush()
        os._exit(0)  # threads of outlets need not end
    rows = [row for rate in options.rate or SECONDS for row in measure(rate, options)]
    return harness.report(rows, options, "paced")


if __name__ == "__main__":
    sys.exit(main())
