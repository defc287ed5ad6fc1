"""Measure coverage of the true mean, gain from proxies, and cost of fleet estimates, for benchmarks/README.md.

    python benchmarks/estimates.py            prints the tables
    python benchmarks/estimates.py --write    also writes them to benchmarks/README.md

Each fleet with a known mean (``tests/support/simulated.py``) is sampled 2,000 times.
"""

from __future__ import annotations

import argparse
import sys
import time

import harness

sys.path[:0] = [str(harness.ROOT)] if str(harness.ROOT) not in sys.path else []

from otel_agenteval.core.clock import SYSTEM_CLOCK  # noqa: E402 - found only now
from otel_agenteval.statistics.estimates import Estimates  # noqa: E402 - the same
from tests.support.simulated import FLEETS, Fleet, coverage, ever_missed  # noqa: E402 - the same

SERIES = 10_000


def coverages(runs: int) -> str:
    """Return a table with a row for each fleet."""
    lines = [
        ["Fleet", "Interval contains the mean, without proxies", "With proxies", "Narrower by", "Error of the simple average"]
    ]
    for fleet in FLEETS:
        found = coverage(fleet, runs)
        lines.append(
            [
                fleet.name,
                f"{found.plain:.1%}",
                f"{found.predicted:.1%}",
                f"{max(0.0, found.narrower):.0%}",
                f"{found.naive_bias:+.1f} standard errors",
            ]
        )
    return harness.plain_table(lines)


def looks(runs: int) -> str:
    """Return how often an interval misses the mean in at least one of thirty checks."""
    once, always = ever_missed(Fleet("scores", 400, None, 0.1, correlation=0.7), runs)
    lines = [
        ["Window, read thirty times", "Interval misses the mean at least once"],
        ["window `1h`: a 95 % interval", f"{once:.0%}"],
    ]
    return harness.plain_table([*lines, ["window `start`: a confidence sequence", f"{always:.1%}"]])


def costs() -> str:
    """Return a table of the cost of a turn, a score and a scrape, with one series and with many."""
    lines = [["Series", "Per turn", "Per score", "Per scrape"]]
    for series in (1, 100, SERIES):
        estimates = Estimates(3_600.0, SYSTEM_CLOCK)
        started = time.process_time()
        for number in range(SERIES):
            estimates.add_proxies("m", f"a{number % series}", f"t{number}", (0.5, 0.0, 0.3))
        seen = time.process_time() - started
        started = time.process_time()
        for number in range(SERIES):
            estimates.add("m", f"a{number % series}", f"t{number}", f"t{number}", float(number % 3 > 0), 0.2)
        added = time.process_time() - started
        started = time.process_time()
        estimates.read()
        lines.append(
            [
                f"{series:,}",
                f"{seen / SERIES * 1e6:.0f} µs",
                f"{added / SERIES * 1e6:.0f} µs",
                f"{(time.process_time() - started) * 1e3:.1f} ms",
            ]
        )
    return harness.plain_table(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2_000, help="number of samples of each fleet")
    parser.add_argument("--write", action="store_true", help="write the tables into benchmarks/README.md")
    args = parser.parse_args()
    for name, made in (("coverage", coverages(args.runs)), ("looks", looks(max(50, args.runs // 4))), ("estimate-cost", costs())):
        print(f"\n{made}")
        if args.write:
            harness.write(made, name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
