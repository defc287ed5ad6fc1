"""Measure the CPU time of each module on the three main paths, for docs/internals/profiling.md.

    python benchmarks/where.py            prints the tables
    python benchmarks/where.py --write    also writes them to docs/internals/profiling.md

A signal after each millisecond of CPU time (or each tick of the system's clock) records the innermost function of the package on the
measured thread. The sample's weight is the thread's CPU time since the last signal. Unlike instrumentation, this doesn't slow down small
functions. Garbage collections are counted separately. Each path has a separate process.
"""

from __future__ import annotations

import gc
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import harness
from harness import Runs

if TYPE_CHECKING:
    from typing_extensions import Self

PAGE = harness.ROOT / "docs" / "internals" / "profiling.md"
INTERVAL = 0.001
PACKAGE = "/otel_agenteval/"
GC, OUTSIDE = "garbage collection", "outside"
STAGES: dict[str, dict[str, str]] = {
    "agent": {
        "instrumentation/span_processor": "the processor's `on_start` and `_on_ending`",
        "instrumentation/": "the rest of the instrumentation",
        "turns/": "open turns: assigning spans and closing turns",
        "spans/": "span records",
        "dialects/": "reading spans",
        "metrics/": "metrics",
        "evaluation/": "calling the metrics",
        "outlets/span_events": "making span events",
        "outlets/": "other outlets",
        "engine/": "queueing the turn for the worker",
        "core/": "shared code: scores, clocks, JSON",
        "": "other modules",
    },
    "sidecar": {
        "server/": "receiving the request",
        "spans/": "protobuf: splitting by trace, decoding attributes on first use",
        "turns/reading/": "reading a turn's fields: calls, tools, messages, usage",
        "turns/": "assembling turns",
        "dialects/": "dialects: parsing spans",
        "detectors/redaction/": "redaction",
        "evaluation/redaction": "redaction",
        "detectors/injection/": "metrics: injection markers",
        "detectors/refusal/": "metrics: refusal",
        "detectors/numbers/": "metrics: ungrounded numbers",
        "detectors/": "metrics: other detectors",
        "metrics/lib/": "metrics: shared helpers",
        "metrics/": "metrics: all other modules",
        "evaluation/": "calling the metrics",
        "outlets/accounting": "converting scores to measurements",
        "outlets/": "outlets",
        "engine/": "engine: queue, pipeline, counters",
        "core/": "shared code: scores, clocks, JSON",
        "": "other modules",
    },
    "score": {
        "outlets/otlp/": "log records: creating, serializing, queueing, sending",
        "outlets/log_events": "log records: creating, serializing, queueing, sending",
        "outlets/prometheus": "Prometheus",
        "outlets/accounting": "converting scores to measurements",
        "core/telemetry": "updating counters and histograms",
        "outlets/": "other outlets and shared code",
        "detectors/redaction/": "redaction",
        "evaluation/redaction": "redaction",
    },
}
"""Stage by prefix of the module name, for each path. The first matching prefix counts. Modules without a stage aren't part of a score."""
OTHER_THREADS = "other threads: connection, requests, metrics"


class Sampler:
    """CPU seconds of the main thread by the package's innermost running module."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = 0.0
        self._in_gc = 0.0
        self._gc_started = 0.0
        gc.callbacks.append(self._collected)

    def _collected(self, phase: str, _: Any) -> None:
        if phase == "start":
            self._gc_started = time.thread_time()
        else:
            self._in_gc += time.thread_time() - self._gc_started

    def _tick(self, _: int, frame: Any) -> None:
        now = time.thread_time()
        weight, self._last = now - self._last, now
        collecting, self._in_gc = min(self._in_gc, weight), 0.0
        where = ""
        while frame is not None:
            if frame.f_code.co_name == "force_flush":  # the benchmark waits between turns
                return
            if not where and PACKAGE in frame.f_code.co_filename:
                where = frame.f_code.co_filename.rpartition(PACKAGE)[2]
            frame = frame.f_back
        where = where or OUTSIDE
        self.seconds[where] = self.seconds.get(where, 0.0) + weight - collecting
        self.seconds[GC] = self.seconds.get(GC, 0.0) + collecting

    def __enter__(self) -> Self:
        self._last, self._in_gc = time.thread_time(), 0.0
        signal.signal(signal.SIGPROF, self._tick)
        signal.setitimer(signal.ITIMER_PROF, INTERVAL, INTERVAL)
        return self

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0.0)


# --- the children


def agent() -> dict[str, Any]:
    """Return the agent thread's µs per turn, by module. After each twenty turns, everything is delivered."""
    import scenario
    from opentelemetry.sdk.trace import TracerProvider

    import otel_agenteval

    provider = TracerProvider()
    provider.add_span_processor(otel_agenteval.AgentEvalSpanProcessor({}))
    tracer = provider.get_tracer("benchmark")
    for number in range(600):
        scenario.turn(tracer)
        if number % 20 == 0:
            provider.force_flush()
    turns = 5_000
    with Sampler() as sampler:
        for number in range(turns):
            scenario.turn(tracer)
            if number % 20 == 0:
                provider.force_flush()
    return {"by": {where: seconds / turns * 1e6 for where, seconds in sampler.seconds.items()}}


def sidecar(*, outlets: bool = False, metrics: bool = True) -> dict[str, Any]:
    """Return the sidecar's µs per span or per score, by module."""
    import receiving
    from sink import sink

    receiving.tune()
    dice = random.Random(5)
    bodies = [receiving.request(number * receiving.TURNS, dice) for number in range(16)]
    with sink("grpc") as endpoint:
        otlp = {"endpoint": endpoint, "metrics_interval": "5s", "queue_bytes": "256MiB"}
        config: dict[str, Any] = {"outlets": {"otlp": otlp}} if outlets else {} if metrics else {"inline": {"metrics": []}}
        taking = receiving.Sidecar(config, prometheus=outlets)
        from collections import deque

        taking.engine.keep_turns(kept := deque())
        for body in bodies[:3]:
            taking.take(body)
        assert taking.engine.outlets.flush(30)
        kept.clear()
        everything, own = time.process_time(), time.thread_time()
        with Sampler() as sampler:
            for body in bodies[3:]:
                taking.take(body)
            assert taking.engine.outlets.flush(30)
        everything, own = time.process_time() - everything, time.thread_time() - own
    spans = (len(bodies) - 3) * receiving.TURNS * receiving.SPANS
    scores = sum(score.status != "skipped" for scored in kept for score in scored.scores)
    count = scores if outlets else spans
    return {
        "by": {where: seconds / count * 1e6 for where, seconds in sampler.seconds.items()},
        "others": (everything - own) / count * 1e6, "scores": scores / spans,
    }  # fmt: skip


CHILDREN: dict[str, Callable[[], dict[str, Any]]] = {
    "agent": agent,
    "sidecar": sidecar,
    "assembled": lambda: sidecar(metrics=False),
    "score": lambda: sidecar(outlets=True),
}
PATHS = {"agent": "µs per turn", "sidecar": "µs per span", "score": "µs per score"}
"""Paths that have a table."""


# --- the tables


def stages(path: str, found: Runs) -> dict[str, float]:
    """Return the µs of each stage of a path, most expensive first, as the mean of some runs."""
    names = STAGES["sidecar" if path == "assembled" else path]
    added: dict[str, float] = {}
    outcomes = found.outcomes[harness.AFTER, path]
    for outcome in outcomes:
        for where, us in outcome["by"].items():
            if where in (GC, OUTSIDE):
                stage = {GC: GC, OUTSIDE: "the SDK and the application" if path == "agent" else "the benchmark"}[where]
                stage = "" if path == "score" or stage == "the benchmark" else stage
            else:
                stage = next((said for start, said in names.items() if where.startswith(start)), "")
            if stage:
                added[stage] = added.get(stage, 0.0) + us / len(outcomes)
        if path == "score":
            added[OTHER_THREADS] = added.get(OTHER_THREADS, 0.0) + outcome["others"] / len(outcomes)
    return dict(sorted(added.items(), key=lambda pair: -pair[1]))


def table(path: str, found: Runs, unit: str) -> str:
    """Return one path's stages as a Markdown table."""
    parts = stages(path, found)
    whole = sum(parts.values())
    lines = [
        ("Step", unit, "Share"),
        *((stage, f"{us:.1f}", f"{us / whole:.0%}") for stage, us in parts.items() if us >= whole / 200),
    ]
    lines.append(("**all**", f"**{whole:.1f}**", ""))
    return harness.plain_table(lines)


def main() -> int:
    options = harness.parser(__doc__, against=False)
    options.add_argument("--rounds", type=int, default=2, help="runs of each path")
    args = options.parse_args()
    harness.answer_as_child(args, CHILDREN)
    found = harness.alternate(__file__, {path: {"what": path} for path in PATHS}, None, args.rounds)
    for path, unit in PATHS.items():
        text = table(path, found, unit)
        print(f"{path}\n{text}\n")
        if args.write:
            harness.write(text, f"where-{path}", Path(PAGE))
    return 0


if __name__ == "__main__":
    sys.exit(main())
