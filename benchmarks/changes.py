"""Measure false alarms, delays and costs of change detection, for benchmarks/README.md.

    python benchmarks/changes.py            prints the tables
    python benchmarks/changes.py --write    also writes them to benchmarks/README.md and the guide

Simulated series have known means (``tests/support/changing.py``).
"""

from __future__ import annotations

import argparse
import math
import sys
import time

import harness
import numpy as np

sys.path[:0] = [str(harness.ROOT)] if str(harness.ROOT) not in sys.path else []

from otel_agenteval.statistics.change import Series  # noqa: E402 - found only now
from tests.support.changing import KINDS, OPTIONS, delays, false_alarms, power  # noqa: E402 - the same

_SCORES = 400_000


def without_cause(series: int) -> str:
    """Return a table of false alarms, with a row for each kind of series."""
    random = np.random.default_rng(20_261_123)
    lines = [["Series", "Scores", "Reports", "False alarms"]]
    for kind in KINDS:
        alarms, scores = false_alarms(kind, series, random)
        lines.append([kind.name, f"{scores:,}", str(alarms), f"1 in {scores // alarms:,}" if alarms else "none"])
    return harness.plain_table(lines)


def with_cause(series: int) -> str:
    """Return a table of delays, with a row for each kind and size of change."""
    random = np.random.default_rng(20_261_124)
    lines = [["Series", "Change of the mean", "Scores until the report, median", "90th percentile", "Not reported"]]
    for kind in KINDS:
        for change in kind.changes:
            found, missed = delays(kind, change, series, random)
            at, late = (f"{int(np.quantile(found, share)):,}" if found else "–" for share in (0.5, 0.9))
            size = f"{change:.0%} slower" if not kind.bounded else f"{change:.2f} worse"
            lines.append([kind.name, size, at, late, f"{missed / series:.0%}"])
    return harness.plain_table(lines)


def drops(series: int) -> str:
    """Return a table by pass rate and drop: turns until the drop is reported in 50 % and in 80 % of the series."""
    random = np.random.default_rng(20_261_129)
    lines = [
        [
            "Pass rate",
            "With a new version: 50 %",
            "With a new version: 80 %",
            "Without a version: 50 %",
            "Without a version: 80 %",
        ]
    ]
    for rate in (0.95, 0.9):
        for drop in (0.05, 0.1, 0.15):
            line = [f"{100 * rate:.0f} → {100 * (rate - drop):.0f} %"]
            for released in (True, False):
                found = sorted(math.inf if one is None else one for one in power(rate, drop, series, random, released=released))
                at = (found[math.ceil(share * series) - 1] for share in (0.5, 0.8))
                line += [f"{one:,}" if math.isfinite(one) else "> 6,000" for one in at]
            lines.append(line)
    return harness.plain_table(lines)


def costs() -> str:
    """Return a table of the CPU time per score, with one series, many series, and a version."""
    values = (np.random.default_rng(1).random(_SCORES) >= 0.05).astype(float).tolist()
    lines = [["Series", "Per score", "Per score with a version"]]
    for count in (1, 100, 10_000):
        line = [f"{count:,}"]
        for version in (None, "1"):
            many = [Series(OPTIONS) for _ in range(count)]
            started = time.process_time()
            for place, value in enumerate(values):
                many[place % count].add(value, 0.0, 1.0, version)
            line.append(f"{(time.process_time() - started) / _SCORES * 1e6:.1f} µs")
        lines.append(line)
    return harness.plain_table(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--series", type=int, default=400, help="number of simulated series of each kind")
    parser.add_argument("--write", action="store_true", help="write the tables into benchmarks/README.md")
    args = parser.parse_args()
    for name, table, page in (
        ("false-alarms", without_cause(args.series), harness.README),
        ("delays", with_cause(max(20, args.series // 4)), harness.README),
        ("change-cost", costs(), harness.README),
        ("power", drops(args.series), harness.ROOT / "docs/guides/detect-regressions.md"),
    ):
        print(f"{table}\n")
        if args.write:
            harness.write(table, name, page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
