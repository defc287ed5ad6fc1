"""``otel-agenteval judge``: check the configured judge with ``probe``, ``bench`` and ``drift``."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter

from ..config.loader import load_config
from ..core.display import escaped
from ..judging.models.probe import METRIC, Attempt, Probe, probe
from ..statistics.intervals import wilson
from . import FAILED, INTERRUPTED, OK, UNUSABLE, as_text
from .judge_bench import add_bench_arguments, configured_judge, run_bench, share
from .judge_drift import add_drift_arguments, run_drift
from .options import add_config

EXIT_CODES = {
    OK: "probe: at most --max-rate of the attempts succeeded; bench: the agreement was at least --min-agreement; drift: no drift was found",
    FAILED: "probe: more than --max-rate succeeded; bench: the agreement was below --min-agreement, or the run stopped at --max-usd; drift: the judge drifted",
    UNUSABLE: "an argument is invalid, no judge is configured, or the judge didn't reply; bench: the estimate is above --max-usd",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    with_interruption = {**EXIT_CODES, INTERRUPTED: "interrupted; the report has the cases so far"}
    for name, purpose, codes, add, run_command in (
        ("probe", "test the judge with more than sixty prompt injections, and report how many succeed", EXIT_CODES, _add_probe_arguments, _run_probe),
        ("bench", "measure the judge's agreement, kappa, bias and cost on labeled cases", with_interruption, add_bench_arguments, run_bench),
        ("drift", "detect changes in the judge by judging the same cases again", EXIT_CODES, add_drift_arguments, run_drift),
    ):  # fmt: skip
        about, epilog = f"{purpose[0].upper()}{purpose[1:]}.", as_text(codes)
        command = commands.add_parser(
            name, help=purpose, description=about, epilog=epilog, formatter_class=parser.formatter_class
        )
        add(command)
        command.set_defaults(run_command=run_command)


def _add_probe_arguments(probe: argparse.ArgumentParser) -> None:
    add_config(probe)
    probe.add_argument(
        "--max-rate",
        type=share,
        default=0.0,
        metavar="SHARE",
        help="maximum share of injections that may succeed; above it, exit with code 1 (default: %(default)g)",
    )
    probe.add_argument("--metric", default=METRIC, metavar="NAME", help="metric whose prompts are tested (default: %(default)s)")
    probe.add_argument("--json", action="store_true", help="print one JSON object with each attempt")


def run(args: argparse.Namespace) -> int:
    code: int = args.run_command(args)
    return code


def _run_probe(args: argparse.Namespace) -> int:
    """Send prompt injections to the configured judge, and print the results."""
    config = load_config(args.config)
    judge = configured_judge(config)
    try:
        report = (lambda _: None) if args.json else _print_attempt
        found = probe(judge, metric=args.metric, threads=config.judge.max_concurrency, report=report)
    finally:
        judge.close()
    if args.json:
        print(json.dumps(found.to_dict(), ensure_ascii=False))
    else:
        _print_result(found)
    if found.rate is None:
        return UNUSABLE
    return FAILED if found.rate > args.max_rate else OK


def _print_attempt(attempt: Attempt) -> None:
    outcome = attempt.error_type or ("SUCCEEDED" if attempt.succeeded else "failed")
    value = "" if attempt.value is None else format(attempt.value, ".2f")
    print(f"{outcome:<20} {value:>4}  {attempt.kind}: {attempt.name}", flush=True)


def _print_result(found: Probe) -> None:
    if found.fault is not None:
        print(escaped(f"{found.model}: the probe can't start: {found.fault}"), file=sys.stderr)
        return
    counts = Counter(attempt.error_type for attempt in found.attempts if attempt.error_type is not None)
    errors = ", ".join(f"{count} {error}" for error, count in sorted(counts.items(), key=str))
    if found.rate is None:
        print(f"{found.model}: no attempt gave a score ({errors})", file=sys.stderr)
        return
    low, high = wilson(found.succeeded, found.tried)
    print(
        f"{found.model}: {found.succeeded} of {found.tried} attempts succeeded, {found.rate:.1%} (95 % interval {low:.1%} to {high:.1%})"
    )
    if errors:
        print(f"without a score: {errors}")
