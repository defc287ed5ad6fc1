"""What each metric takes on the benchmark's turn.

python benchmarks/metric_times.py                    the table on the terminal
python benchmarks/metric_times.py --write | --check
"""

from __future__ import annotations

import json
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import harness
import scenario
from opentelemetry.sdk.trace import TracerProvider

import otel_agenteval as oa
from otel_agenteval.config.loader import load_config
from otel_agenteval.core.errors import ConfigError
from otel_agenteval.core.turn import Turn
from otel_agenteval.evaluation.evaluator import run
from otel_agenteval.evaluation.selection import select_metrics
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


# --- the pack ------------------------------------------------------------------------------------------------------

MOST_OF_PACK = 3.7
"""The default pack on the turn, in what parsing the turn's JSON texts takes: as much as before its detectors read what people really write."""
SHORT, LONG = 25_000, 100_000
MOST_GROWTH = 5.0
"""A text that is four times as long may take so many times as long."""
LONG_TEXTS: dict[str, Callable[[int], dict[str, Any]]] = {
    "an answer in prose": lambda size: {"output": _repeated(scenario.ANSWER + scenario.WISHES, size)},
    "an answer of nothing but numbers": lambda size: {"output": _repeated("142.50 1001 18 2024 7,300 ", size), "input": "Which?"},
    "a tool's result with a trigger word in every sentence": lambda size: {
        "output": scenario.ANSWER,
        "tool_calls": [{"name": "search", "result": _repeated("The user asked the tool which model it was. ", size)}],
    },
    "a tool's result of one word": lambda size: {"output": "Yes.", "tool_calls": [{"name": "search", "result": _repeated("ignore ", size)}]},
}  # fmt: skip


def _repeated(text: str, size: int) -> str:
    return (text * (size // len(text) + 1))[:size]


def pack_rows() -> list[harness.Row]:
    """What the default pack takes on the turn, and on long texts. Each evaluation is of a turn that nobody has looked at before."""
    metrics = select_metrics(load_config(env={}))
    turn = the_turn()
    run(metrics, turn)  # imports, tables, and what a turn reads once
    known = {name: value for name, value in vars(turn).items() if name != "_shared"}
    parse = _best(lambda: None, lambda _: [json.loads(text) for text in scenario.CONTENTS])
    pack = _best(lambda: _turn_with(known), lambda fresh: run(metrics, fresh))
    rows = [
        harness.Row("J: `json.loads` of every JSON text of the turn", f"{parse * 1e6:.0f} µs", "1.00 J"),
        harness.Row(
            f"the default pack, {len(metrics)} metrics",
            f"{pack * 1e6:.0f} µs",
            f"{pack / parse:.2f} J",
            f"≤ {MOST_OF_PACK:g} J",
            pack / parse / MOST_OF_PACK,
        ),
    ]
    for what, made in LONG_TEXTS.items():
        short, long = (
            _best(partial(_made_turn, made, size), lambda fresh: run(metrics, fresh), rounds=5) for size in (SHORT, LONG)
        )
        growth = long / short
        row = harness.Row(f"{what}, {LONG // 1000} kB", f"{long * 1e3:.1f} ms", f"{growth:.1f} × {SHORT // 1000} kB")
        row.bound, row.over = f"≤ {MOST_GROWTH:g} ×", growth / MOST_GROWTH
        rows.append(row)
    return rows


def _made_turn(made: Callable[[int], Mapping[str, Any]], size: int) -> Turn:
    return Turn.from_dict(made(size))


def _turn_with(known: Mapping[str, Any]) -> Turn:
    turn = Turn()
    vars(turn).update(known)
    return turn


def _best(prepare: Callable[[], Any], work: Callable[[Any], object], rounds: int = 400) -> float:
    best = float("inf")
    for _ in range(rounds):
        prepared = prepare()
        start = time.thread_time()
        work(prepared)
        best = min(best, time.thread_time() - start)
    return best


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
    rows = pack_rows()
    print(harness.table(rows))
    if args.write:
        harness.write(text, "metrics")
        harness.write(harness.table(rows), "pack")
    slow |= any(row.over is not None and row.over > harness.NOISE for row in rows)
    return int(args.check and slow)


if __name__ == "__main__":
    sys.exit(main())
