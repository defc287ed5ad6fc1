"""Measure startup: importing the package, the first ``instrument()``, and the first turn, in a program that already uses the SDK.

    python benchmarks/startup.py                    prints the table
    python benchmarks/startup.py --against TREE     compares with the package of another checkout
    python benchmarks/startup.py --write | --check

Each figure is the CPU time of all threads of a separate process, best of some runs. Each step includes the steps before. The base program
imports the SDK and sets up a tracer provider with a batch processor.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from typing import Any

import harness
from harness import Row, Runs

ROUNDS = 9
STEPS = {
    "program": "the program without otel-agenteval: the SDK, a provider, and a batch processor",
    "import": "`import otel_agenteval`",
    "instrument": "the same, and `instrument()` with the default metrics",
    "warm": "the same, and the warm-up thread has finished",
    "turn": "the same, and the first turn is scored",
    "cli": "`otel-agenteval --version`",
}
BOUND, OF_BEFORE = 3.3, 0.4
"""Maximum time that ``instrument()`` adds, as a multiple of the base program and of the other checkout's time."""


def run(what: dict[str, Any]) -> dict[str, float]:
    """Run a program up to its step."""
    step = what["step"]
    if step == "cli":
        import contextlib
        import io

        from otel_agenteval.cli.main import main

        with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
            main(["--version"])
        return _figures()
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter

    own = 0.0
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(SpanExporter()))
    trace.set_tracer_provider(provider)
    if step != "program":
        import otel_agenteval
    if step in ("instrument", "warm", "turn"):
        start = time.thread_time()
        handle = otel_agenteval.instrument()
        own = time.thread_time() - start
        if step == "warm":
            handle.processor.engine.warm_up._thread.join()
        else:
            wait_until_idle()  # exit before the warm-up begins
    if step == "turn":
        import scenario

        scenario.turn(provider.get_tracer("benchmark"))
        provider.force_flush()
        wait_until_idle()
    return _figures(own)


def wait_until_idle() -> None:
    """Wait until all threads are idle, because work on the worker's thread is also startup time."""
    spent, quiet = time.process_time(), 0
    while quiet < 3:
        time.sleep(0.05)
        now = time.process_time()
        quiet = quiet + 1 if now - spent < 0.005 else 0
        spent = now


def _figures(own: float = 0.0) -> dict[str, float]:
    spent = time.process_time() * 1e3
    return {
        "ms": spent,
        "own": own * 1e3,
        "modules": len(sys.modules),
        "objects": len(gc.get_objects()),
        "rss": harness.resident_mb(),
    }


def rows(found: Runs) -> list[Row]:
    program = found.best("program", "ms")
    made = [Row(STEPS["program"], f"{program:.0f} ms", "1.00 ×")]
    for step in ("import", "instrument", "warm", "turn"):
        added = found.best(step, "ms") - program
        more = found.best(step, "modules") - found.best("program", "modules")
        memory = found.best(step, "rss") - found.best("program", "rss")
        row = Row(f"{STEPS[step]} ({more:.0f} modules, {memory:+.0f} MB)", f"{added:+.0f} ms", f"{added / program:.2f} ×")
        before = found.before(step, "ms")
        row.compared(added, None if before is None else before - program, "{:+.0f} ms")
        if step == "instrument":
            row.bound, row.over = f"≤ {BOUND} ×", added / program / BOUND
            if before is not None:
                row.bound, row.over = f"≤ {OF_BEFORE} × before", added / (before - program) / OF_BEFORE
        made.append(row)
        if step == "instrument":
            own = found.best(step, "own")
            waits = Row(
                "part of this time for which the caller of `instrument()` waits", f"{own:.0f} ms", f"{own / program:.2f} ×"
            )
            made.append(waits.compared(own, found.before(step, "own"), "{:.0f} ms"))
    cli = found.best("cli", "ms")
    made.append(
        Row(STEPS["cli"], f"{cli:.0f} ms", f"{cli / program:.2f} ×").compared(cli, found.before("cli", "ms"), "{:.0f} ms")
    )
    return made


def main() -> int:
    """Measure and print. Return 1 with ``--check`` if a limit is exceeded."""
    options = harness.parser(__doc__)
    options.add_argument("--rounds", type=int, default=ROUNDS, help="runs of each step")
    args = options.parse_args()
    if args.child:
        print(json.dumps(run(json.loads(args.child))))
        sys.stdout.flush()
        os._exit(0)
    found = harness.alternate(__file__, {step: {"step": step} for step in STEPS}, args.against, args.rounds, shared=("program",))
    return harness.report(rows(found), args, "startup")


if __name__ == "__main__":
    sys.exit(main())
