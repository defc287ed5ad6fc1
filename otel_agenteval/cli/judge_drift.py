"""``otel-agenteval judge drift``: detect whether the configured judge changed since a first run."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from ..config.loader import load_config
from ..config.root import Config
from ..config.types import seconds
from ..core.errors import ConfigError, refusal
from ..core.telemetry import Telemetry
from ..core.version import __version__
from ..evaluation.scored_turn import Root
from ..judging.judge_bench.cases import BenchCase, chosen
from ..judging.judge_bench.drift import ALL, Anchors, Drift, anchors_of, drifts, own_cases, read_anchors, write_anchors
from ..judging.judge_bench.run import run
from ..outlets.base import Setup
from ..outlets.fan_out import FanOut, outlets_from
from ..report.render import aligned
from ..statistics.change import Found
from ..statistics.changes import Change
from . import FAILED, OK, UNUSABLE
from .judge_bench import configured_judge, reasons_in
from .options import add_config, names_of

_CASES = 60
_DELIVER = 10.0


def add_drift_arguments(drift: argparse.ArgumentParser) -> None:
    drift.add_argument(
        "anchors",
        metavar="ANCHORS",
        help="file with the first run's scores, which later runs are compared with; created if missing",
    )
    add_config(drift)
    drift.add_argument(
        "--cases",
        metavar="FILE",
        help="your own cases: JSON lines with the fields metric and turn, in the format turn.v1 (default: the cases of judge bench)",
    )
    drift.add_argument("--metrics", metavar="NAMES", help="use only these metrics of judge bench, separated by commas")
    drift.add_argument("--limit", type=int, default=_CASES, metavar="N", help="maximum number of cases (default: %(default)s)")
    drift.add_argument(
        "--least", type=float, default=0.03, metavar="SIZE", help="smallest change of the mean to report (default: %(default)g)"
    )
    drift.add_argument(
        "--every", metavar="TIME",
        help="repeat at this interval, for example 24h, and export each detected drift through the configured outlets",
    )  # fmt: skip
    drift.add_argument("--json", action="store_true", help="print one JSON object")


def run_drift(args: argparse.Namespace) -> int:
    """Judge the cases, and print how the scores differ from the first run."""
    if args.limit < 1:
        raise ConfigError(refusal("--limit", str(args.limit), "must be a whole number from 1"))
    every = None
    if args.every is not None:
        try:
            every = seconds(args.every)
        except ValueError:
            every = 0.0
        if not every > 0:
            raise ConfigError(refusal("--every", repr(args.every), "must be a duration above 0. Example: 24h"))
    config = load_config(args.config)
    metrics = [] if args.metrics is None else names_of(args.metrics, "--metrics")
    cases = own_cases(args.cases) if args.cases is not None else chosen((), metrics, args.limit)
    path = Path(args.anchors)
    before = read_anchors(path) if path.exists() else None
    while True:
        code, before = _judge_again(args, config, cases[: args.limit], path, before)
        if every is None:
            return code
        time.sleep(every)


def _judge_again(
    args: argparse.Namespace, config: Config, cases: Sequence[BenchCase], path: Path, before: Anchors | None
) -> tuple[int, Anchors | None]:
    with contextlib.closing(configured_judge(config)) as judge:
        asked = cases if before is None else [case for case in cases if case.id in before.values]
        if not asked:
            raise ConfigError(
                f"{path}: contains scores of other cases. Use a different file, or the --cases and --metrics of the first run"
            )
        found = run(judge, asked, threads=config.judge.max_concurrency)
        now = anchors_of(judge.model, found.outcomes)
    failed = len(asked) - len(now.values)
    if before is None:
        if not now.values:
            print(f"{judge.model}: no case got a score{reasons_in(found.outcomes)}", file=sys.stderr)
            return UNUSABLE, None
        write_anchors(path, now)
        print(f"{path}: scores of {len(now.values)} cases by {now.model} written{_without(failed)}", file=sys.stderr)
        return OK, now
    rows = drifts(before, found.outcomes, args.least)
    print(json.dumps(_as_data(before, now, rows, failed)) if args.json else _as_text(before, now, rows, failed), flush=True)
    if not rows:
        return UNUSABLE, before
    drifted = [row for row in rows if row.drifted]
    if drifted:
        _announce(config, drifted[-1], now.model)
    return (FAILED if drifted else OK), before


def _without(failed: int) -> str:
    return f", {failed} without a score" if failed else ""


def _announce(config: Config, drift: Drift, model: str) -> None:
    """Send a drift through the configured outlets, as a change of scores."""
    low, high = drift.interval
    found = Found("anchors", drift.before, drift.after, (low, high), time.time(), float(drift.anchors), (), None, None)
    name = "judge" if drift.family == ALL else f"judge:{drift.family}"
    change = Change(name, model, "changed", found, time.time())
    quiet = {"prometheus": None, "otlp_metrics": False, "jsonl": None, "otlp_file": None, "console": "off"}
    config = load_config(config, overrides={"outlets": quiet})  # these outlets only show scores
    setup = Setup(config, Telemetry(), lambda: "judge-drift", __version__)
    outlets = FanOut(outlets_from(setup), setup.telemetry)
    try:
        outlets.announce(change, Root(0, 0, sampled=False))
        outlets.flush(_DELIVER)
    finally:
        outlets.close()


_HEADS = ("", "cases", "before", "now", "difference, 95 % interval", "p", "changed level", "")


def _as_text(before: Anchors, now: Anchors, rows: Sequence[Drift], failed: int) -> str:
    if not rows:
        return f"{now.model}: no case got a score"
    cells = [
        (
            row.family, str(row.anchors), f"{row.before:.3f}", f"{row.after:.3f}",
            f"{row.difference:+.3f} ({row.interval[0]:+.3f} … {row.interval[1]:+.3f})", f"{row.p:.3f}", str(row.flipped),
            "DRIFTED" if row.drifted else "",
        )
        for row in rows
    ]  # fmt: skip
    changed = [
        f"{what}: {was} before, {now_is} now"
        for what, was, now_is in (("model", before.model, now.model), ("prompt version", before.version, now.version))
        if was != now_is
    ]
    head = f"{now.model}: compared with the scores of {before.made}{_without(failed)}"
    return "\n".join([head, *changed, aligned([_HEADS, *cells])])


def _as_data(before: Anchors, now: Anchors, rows: Sequence[Drift], failed: int) -> dict[str, object]:
    return {
        "model": now.model, "model_before": before.model, "made": before.made, "without_a_score": failed,
        "families": [
            {
                "family": row.family, "anchors": row.anchors, "before": row.before, "after": row.after, "difference": row.difference,
                "interval": list(row.interval), "p": row.p, "at_another_level": row.flipped, "drifted": row.drifted,
            }
            for row in rows
        ],
    }  # fmt: skip
