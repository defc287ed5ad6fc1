"""``otel-agenteval backfill``: score stored traces."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from ..backfill.batch import Scorer, ScoringTotals
from ..backfill.run import Bar, Output, buckets_for, run_on_daft
from ..backfill.run import run as backfill
from ..backfill.sources import Parquet, Source, source_of
from ..core.errors import ConfigError, refusal
from ..core.processes import jobs_of
from ..outlets.turn_text import number_of
from ..server.process import tune
from . import OK, UNUSABLE
from .options import add_jobs, add_logging, add_scored_config, scored_config
from .scoring import warn_of_new_budget

EXIT_CODES = {
    OK: "this run or an earlier run scored the turns, or --dry-run printed its estimate; metric errors don't change the exit code",
    UNUSABLE: "an argument is invalid, or the source can't be read or has no spans",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_logging(parser)
    parser.add_argument(
        "source", metavar="SOURCE",
        help="Parquet or OTLP/JSON file, folder of such files, or clickhouse://user:password@host:8123/database?table=otel_traces",
    )  # fmt: skip
    parser.add_argument(
        "--out", metavar="DIR", required=True, help="folder for the results; use the same folder to continue an interrupted run"
    )
    parser.add_argument("--metrics", metavar="A,B", help="run only these metrics, with their configured parameters")
    add_scored_config(parser)
    parser.add_argument("--dry-run", action="store_true", help="only estimate the number and cost of judge calls")
    parser.add_argument(
        "--buckets", type=int, metavar="N",
        help="number of parts to split the traces into; each process scores one part at a time (default: based on the size of the source)",
    )  # fmt: skip
    parser.add_argument("--shard", metavar="K/N", help="score only shard K of N, counted from 0, for example in a Kubernetes Job")
    add_jobs(parser)
    parser.add_argument(
        "--engine", choices=("local", "daft"), default="local", help="run on this machine (local, the default) or with Daft"
    )
    parser.add_argument("--ray", metavar="ADDRESS", help="Ray cluster for --engine daft; `auto` uses the cluster on this machine")
    parser.add_argument("--progress", action="store_true", help="show progress even without a terminal")


def run(args: argparse.Namespace) -> int:
    tune()
    shard = _shard(args.shard)
    source = source_of(args.source, shard=shard)
    names = None if args.metrics is None else [name.strip() for name in args.metrics.split(",") if name.strip()]
    _check(args, source, shard)
    scorer = Scorer(scored_config(args), names, dry=args.dry_run)
    if scorer.by_conversation and (shard[1] > 1 or args.engine == "daft"):
        scorer.close()
        raise ConfigError(
            "--shard, --engine: not allowed with conversation metrics, which need all turns of a conversation in one process. Remove these "
            "options, or choose other metrics with --metrics"
        )
    jobs = jobs_of(args.jobs)
    folder = Path(args.out) / f"shard-{shard[0]:05d}-of-{shard[1]:05d}" if shard[1] > 1 else Path(args.out)
    existed, was_there = (folder / "manifest.json").exists(), folder.is_dir()
    if not args.dry_run:
        warn_of_new_budget(scorer.budget)
    output = Output(folder, args.buckets or buckets_for(source, jobs))
    bar = Bar(args.progress)
    try:
        if existed and not output.missing(scorer.keys, source.fingerprint()):
            print("nothing to do: an earlier run evaluated all metrics on these spans")
            return OK
        if args.engine == "daft" and not args.dry_run:
            account = run_on_daft(source, output, scorer, ray=args.ray)  # type: ignore[arg-type]  # checked above
        else:
            account = backfill(source, output, scorer, shards=shard[1], jobs=jobs, progress=bar)
    finally:
        bar.end()
        scorer.close()
        if args.dry_run and not existed:  # remove the folder, even after a failure
            for name in ("parts", "done", "spans"):
                shutil.rmtree(folder / name, ignore_errors=True)
            (folder / "manifest.json").unlink()
            if not was_there:
                folder.rmdir()
    _print_account(account, scorer, dry=args.dry_run)
    if account.spans:
        return OK
    print("no spans found in the source", file=sys.stderr)
    return UNUSABLE


def _check(args: argparse.Namespace, source: Source, shard: tuple[int, int]) -> None:
    if args.engine == "daft" and not isinstance(source, Parquet):
        raise ConfigError("--engine: daft reads only Parquet files. Use --engine local")
    if args.engine == "daft" and shard != (0, 1):
        raise ConfigError("--engine: daft distributes the files itself. Remove --shard")
    if args.ray is not None and args.engine != "daft":
        raise ConfigError("--ray: requires --engine daft")
    if args.buckets is not None and args.buckets < 1:
        raise ConfigError(refusal("--buckets", str(args.buckets), "must be a positive whole number"))


def _shard(text: str | None) -> tuple[int, int]:
    if text is None:
        return 0, 1
    k, slash, n = text.partition("/")
    if not (slash and k.isdecimal() and n.isdecimal() and int(k) < int(n)):
        raise ConfigError(refusal("--shard", repr(text), "must be K/N with K from 0 to N - 1. Example: 0/8"))
    return int(k), int(n)


def _print_account(account: ScoringTotals, scorer: Scorer, *, dry: bool) -> None:
    at_least = "at least " if dry else ""
    lines = [f"{number_of(account.spans, 'span')}, {number_of(account.turns, 'turn')}"]
    if dry:
        lines.append(
            f"{number_of(len(scorer.metrics), 'metric')} on each turn{f', {len(scorer.whole)} on each conversation' if scorer.whole else ''}"
        )
    else:
        scores = number_of(account.scores, "score")
        lines.append(f"{scores}, {account.errors:,} of them errors; {account.known:,} already existed")
    if account.model_calls or any(metric.asks for metric in (*scorer.metrics, *scorer.whole)):
        cost = f"{account.cost_usd:,.4g} USD"
        if account.unpriced:
            of_unknown = f"{number_of(account.unpriced, 'call')} of unknown price"
            cost = f"{cost}, and {of_unknown}" if account.cost_usd else of_unknown
        calls = number_of(account.model_calls, "call")
        lines.append(f"{at_least}{calls} to the judge and the embedder, {account.tokens:,} tokens, {cost}")
        lines += [f"  {name}: {count:,}" for name, count in sorted(account.metrics.items())]
    if account.bad:
        lines.append(f"{number_of(account.bad, 'row')} had no span")
    print("\n".join(lines))
