"""What each metric takes on the benchmark's turn.

python benchmarks/metric_times.py                    the table on the terminal
python benchmarks/metric_times.py --write | --check
"""

from __future__ import annotations

import sys
import time
from collections import deque

import harness
import scenario
from opentelemetry.sdk.trace import TracerProvider

import otel_agenteval as oa
from otel_agenteval.core.errors import ConfigError
from otel_agenteval.core.turn import Turn
from otel_agenteval.metrics.bound_metric import BoundMetric
from otel_agenteval.metrics.registry import catalog

MOST_INLINE = 50.0
"""Microseconds that a metric of the default pack may take."""
CANDIDATES = [
    "search",
    1,
    0.5,
    ["search"],
    {"type": "object"},
    {"a": 1},
    "code_word_count",
    ["code_word_count"],
    [{"tool": "search"}],
]


def the_turn() -> Turn:
    """The benchmark's turn, as metrics get it, with a reference answer."""
    provider = TracerProvider(shutdown_on_exit=False)
    outlets = {"span_events": "off", "log_events": False, "prometheus": None}
    processor = oa.AgentEvalSpanProcessor({"inline": {"metrics": []}, "outlets": outlets})
    provider.add_span_processor(processor)
    processor.engine.keep_turns(kept := deque())
    scenario.turn(provider.get_tracer("bench"))
    assert processor.force_flush()
    turn = kept[0].turn
    processor.shutdown()
    turn.ground_truth = turn.output
    return turn


def bound(name: str) -> BoundMetric | None:
    """The metric with something that is allowed for each required parameter."""
    metric = oa.get_metric(name).metric
    given: dict[str, object] = {}
    for parameter in metric.parameters.values():
        for candidate in CANDIDATES if parameter.required else ():
            try:
                oa.get_metric(name, **given, **{parameter.name: candidate})
            except ConfigError:
                continue
            given[parameter.name] = candidate
            break
    return oa.get_metric(name, **given)


def times() -> list[tuple[str, float, str, bool]]:
    """(metric, microseconds, what came of it, whether it is in the default pack), the slowest first."""
    turn = the_turn()
    found = []
    for metric in catalog():
        one = bound(metric.name) if metric.kind == "code" else None
        if one is None:
            continue
        score = one.evaluate(turn)  # imports, and what a turn reads once
        found.append((metric.name, _seconds(one, turn) * 1e6, score.status, metric.inline))
    return sorted(found, key=lambda row: -row[1])


def _seconds(metric: BoundMetric, turn: Turn) -> float:
    repeat = 1
    while True:
        start = time.thread_time()
        for _ in range(repeat):
            metric.evaluate(turn)
        spent = time.thread_time() - start
        if spent > 5e-3 or repeat > 10_000:
            return spent / repeat
        repeat *= 4


def main() -> int:
    """Measure, print, and say by the exit status whether a metric of the default pack takes too long."""
    args = harness.parser(__doc__, against=False).parse_args()
    lines = [("metric", "µs", "", "default pack")]
    slow = False
    for name, us, status, inline in times():
        slow |= inline and us > harness.NOISE * MOST_INLINE
        over = " **over 50 µs**" if inline and us > MOST_INLINE else ""
        lines.append((f"`{name}`", f"{us:.1f}", status, f"{'●' if inline else ''}{over}"))
    text = harness.plain_table(lines)
    print(text)
    if args.write:
        harness.write(text, "metrics")
    return int(args.check and slow)


if __name__ == "__main__":
    sys.exit(main())
