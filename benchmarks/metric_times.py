"""Measure the CPU time of the default metrics on a mix of real texts, and of each computed metric on the benchmark's turn.

    python benchmarks/metric_times.py                    prints the tables
    python benchmarks/metric_times.py --against TREE     also measures the mix with the package of another checkout
    python benchmarks/metric_times.py --write | --check

Each turn of the mix (``mix.py``) is evaluated *cold*, with empty caches. Then the next turn of the same conversation is
evaluated *warm*.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import harness
import mix
import scenario
from opentelemetry.sdk.trace import TracerProvider

import otel_agenteval as oa
from otel_agenteval.config.loader import load_config
from otel_agenteval.core.caches import forget
from otel_agenteval.core.errors import ConfigError
from otel_agenteval.core.turn import Turn
from otel_agenteval.evaluation.evaluator import run
from otel_agenteval.evaluation.selection import select_metrics
from otel_agenteval.metrics.bound_metric import BoundMetric
from otel_agenteval.metrics.registry import catalog

MOST_INLINE = 50.0
"""Maximum microseconds of a default metric."""
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
    """Return the benchmark's turn with a reference answer."""
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
    """Return the metric with valid values for its required parameters, or None."""
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
    """Return (metric, microseconds, result, True for a default metric), slowest first."""
    turn = the_turn()
    found = []
    for metric in catalog():
        one = bound(metric.name) if metric.kind == "code" else None
        if one is None:
            continue
        score = one.evaluate(turn)  # for imports and cached turn fields
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


# --- the default metrics on the mix

BENCHMARK = "the benchmark's turn"
EVERY = "every turn"
MOST_J = 80.0
"""Maximum time of the default metrics on written turns, as a multiple of parsing the turn's content as JSON."""
MOST_MS = 20.0
"""Maximum milliseconds of the default metrics on any turn of the mix."""
ROUNDS = 3
COLD, WARM = "cold", "warm"
FIGURES = ("median", "p95", "worst", "per kB")
PERFORMANCE = harness.ROOT / "docs" / "operate" / "performance.md"


class Pair(NamedTuple):
    """A turn and the next one of its conversation."""

    kb: tuple[float, float]
    """Kilobytes of text."""
    parse: tuple[float, float]
    """Seconds to parse the text as JSON."""
    seconds: tuple[list[float], list[float]]
    """Seconds of each metric."""


def measure() -> dict[str, float]:
    """Return the seconds of all metrics on each kind of turn, and of each metric on all turns."""
    metrics = select_metrics(load_config(env={}))
    by_kind: dict[str, list[Turn]] = {BENCHMARK: [the_turn()], **{kind: [] for kind in mix.KINDS}}
    for case in mix.cases():
        by_kind[case.kind] += case.turns()
    run(metrics, by_kind[mix.WRITTEN][0])  # for imports and tables
    gc.freeze()
    found: dict[str, float] = {}
    every: list[Pair] = []
    for kind, turns in by_kind.items():
        others = turns if kind == mix.RECORDED else by_kind[mix.WRITTEN]
        pairs = [_pair(metrics, turn, others[number % len(others)]) for number, turn in enumerate(turns, 1)]
        found |= {f"{kind} turns": len(turns), f"{kind} kB": sum(pair.kb[0] for pair in pairs) / len(turns)}
        found |= _figures(kind, pairs, slice(None))
        every += pairs
    found |= _figures(EVERY, every, slice(None))
    for number, metric in enumerate(metrics):
        found |= _figures(metric.name, every, slice(number, number + 1))
    return found


def _pair(metrics: Sequence[BoundMetric], first: Turn, other: Turn) -> Pair:
    texts = [mix.text_of(turn) for turn in (first, mix.second_turn(first, other))]
    best = ([float("inf")] * len(metrics), [float("inf")] * len(metrics))
    clock = time.thread_time
    for _ in range(ROUNDS):
        forget()
        for turn, row in zip((first.but({}), mix.second_turn(first, other)), best, strict=True):
            for number, metric in enumerate(metrics):
                start = clock()
                metric.evaluate(turn)
                row[number] = min(row[number], clock() - start)
    kb, parse = ((work(texts[0]), work(texts[1])) for work in (lambda text: len(text.encode()) / 1e3, _parsing))
    return Pair(kb, parse, best)


def _parsing(text: str) -> float:
    return harness.per_call(lambda: json.loads(text), 1, 5) / 1e6


def _figures(name: str, pairs: Sequence[Pair], metrics: slice) -> dict[str, float]:
    found = {}
    for place, state in enumerate((COLD, WARM)):
        spent = sorted(sum(pair.seconds[place][metrics]) for pair in pairs)
        per_kb = sum(spent) / sum(pair.kb[place] for pair in pairs)
        figures = (spent[len(spent) // 2], spent[int(0.95 * len(spent))], spent[-1], per_kb)
        found |= {f"{name} {state} {figure}": value for figure, value in zip(FIGURES, figures, strict=True)}
    found[f"{name} J"] = sum(sum(pair.seconds[0][metrics]) for pair in pairs) / sum(pair.parse[0] for pair in pairs)
    return found


def turns_table(found: harness.Runs) -> tuple[str, bool]:
    """Return the table of the default metrics by kind of turn, and True if a limit is exceeded by more than noise."""
    lines, missed = [], False
    for kind in (BENCHMARK, *mix.KINDS, EVERY):
        cells, worst = _cells(found, kind, 1e3), max(found.best("mix", f"{kind} {state} worst") for state in (COLD, WARM))
        j = found.best("mix", f"{kind} J")
        over, bound = worst * 1e3 / MOST_MS, f"≤ {MOST_MS:g} ms"
        if kind == mix.WRITTEN:
            over, bound = max(over, j / MOST_J), f"{bound}, ≤ {MOST_J:g} J"
        missed |= over > harness.NOISE
        size = [_number(found.best("mix", f"{kind} {what}")) for what in ("turns", "kB")] if kind != EVERY else ["", ""]
        lines.append([kind, *size, *cells[:4], _number(j), *cells[4:8], bound, "MISSED" if over > 1 else "holds", *cells[8:]])
    heads = [
        "Kind of turn",
        "Turns",
        "kB",
        "Median, ms",
        "p95",
        "Worst",
        "Per kB",
        "J",
        "Next turn: median",
        "p95",
        "Worst",
        "Per kB",
        "Limit",
        "Result",
    ]
    return harness.plain_table([heads + _BEFORE * found.has_before("mix"), *lines]), missed


def metrics_table(found: harness.Runs) -> str:
    """Return the table of each default metric on all turns, slowest first."""
    names = [metric.name for metric in select_metrics(load_config(env={}))]
    names.sort(key=lambda name: -found.best("mix", f"{name} {COLD} per kB"))
    heads = ["Metric", "Median, µs", "p95", "Worst", "Per kB", "Next turn: median", "p95", "Worst", "Per kB"]
    return harness.plain_table(
        [heads + _BEFORE * found.has_before("mix"), *([f"`{name}`", *_cells(found, name, 1e6)] for name in names)]
    )


_BEFORE = ["Before, per kB", "Next turn", "Relative to before", "Next turn"]


def _cells(found: harness.Runs, name: str, scale: float) -> list[str]:
    cells = [_number(found.best("mix", f"{name} {state} {figure}") * scale) for state in (COLD, WARM) for figure in FIGURES]
    if found.has_before("mix"):
        keys = [f"{name} {state} per kB" for state in (COLD, WARM)]
        before = [found.best("mix", key, harness.BEFORE) for key in keys]
        cells += [_number(value * scale) for value in before]
        cells += [f"{found.best('mix', key) / value:.2f} ×" for key, value in zip(keys, before, strict=True)]
    return cells


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def summary(found: harness.Runs) -> str:
    """Return the table for the user documentation."""
    lines = [("Turns", "Text", "Median", "95th percentile", "Worst", "Next turn of a conversation, median")]
    for kind in mix.KINDS:
        cells = [f"{cell} ms" for cell in _cells(found, kind, 1e3)[:5]]
        lines.append((kind, f"{_number(found.best('mix', f'{kind} kB'))} kB", *cells[:3], cells[4]))
    return harness.plain_table(lines)


# --- each metric on the benchmark's turn


def each_table() -> tuple[str, bool]:
    """Return the table of each computed metric, and True if a default metric takes too long."""
    lines, slow = [("Metric", "µs", "Status", "Default metric")], False
    for name, us, what, inline in times():
        slow |= inline and us > harness.NOISE * MOST_INLINE
        over = " **over 50 µs**" if inline and us > MOST_INLINE else ""
        lines.append((f"`{name}`", f"{us:.1f}", what, f"{'●' if inline else ''}{over}"))
    return harness.plain_table(lines), slow


def main() -> int:
    """Measure and print. Return 1 with ``--check`` if a limit is exceeded."""
    options = harness.parser(__doc__)
    options.add_argument("--rounds", type=int, help="processes of each checkout (default: 1, or 2 with --against)")
    args = options.parse_args()
    harness.answer_as_child(args, {"mix": measure})
    found = harness.alternate(__file__, {"mix": {"what": "mix"}}, args.against, args.rounds or (2 if args.against else 1))
    turns, missed = turns_table(found)
    each, slow = each_table()
    metrics = metrics_table(found)
    print(turns, metrics, each, sep="\n\n")
    if args.write:
        harness.write(turns, "mix")
        harness.write(metrics, "mix-metrics")
        harness.write(each, "metrics")
        harness.write(summary(found), "mix", PERFORMANCE)
    return int(args.check and (missed or slow))


if __name__ == "__main__":
    sys.exit(main())
