"""``otel-agenteval judge``: test the configured judge with ``probe``, ``bench``, and ``drift``."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from ..config.loader import load_config
from ..config.root import Config
from ..config.types import finite_number, seconds
from ..core.display import escaped
from ..core.errors import ConfigError, refusal
from ..core.telemetry import Telemetry
from ..core.version import __version__
from ..evaluation.scored_turn import Root
from ..judging.judge_bench.drift import ALL, Anchors, Drift, anchors_of, drifts, own_cases, read_anchors, write_anchors
from ..judging.judge_bench.run import BenchCase, BenchRun, CaseOutcome, CostEstimate, chosen, estimate
from ..judging.judge_bench.run import run as judge_cases
from ..judging.judge_bench.summary import BenchSummary, JudgeMeasures, summarized
from ..judging.models import Judge, JudgeGroup, judge_from
from ..judging.models.probe import METRIC, Attempt, Probe, probe
from ..outlets.base import Setup
from ..outlets.fan_out import FanOut, outlets_from
from ..report.formatting import percent
from ..report.render import Table, TabularReport, aligned, markdown_table, render
from ..statistics.change import Found
from ..statistics.changes import Change
from ..statistics.intervals import wilson
from . import FAILED, INTERRUPTED, OK, UNUSABLE, as_text
from .options import add_config, add_report, names_of, write_report

EXIT_CODES = {
    OK: "probe: at most --max-rate of the attempts succeeded; bench: the agreement was at least --min-agreement; drift: no drift was found",
    FAILED: "probe: more than --max-rate of the attempts succeeded; bench: the agreement was below --min-agreement, or the run stopped at --max-usd; drift: the judge drifted",
    UNUSABLE: "an argument is invalid, no judge is configured, or the judge doesn't work; bench: the estimate is above --max-usd, or you didn't confirm the start",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    with_interruption = {**EXIT_CODES, INTERRUPTED: "Control+C interrupted the command; the report contains the finished cases"}
    for name, purpose, codes, add, run_command in (
        ("probe", "test the judge with more than sixty prompt injections, and report how many succeed", EXIT_CODES, _add_probe_arguments, _run_probe),
        ("bench", "measure the judge's agreement, kappa, bias, and cost on labeled cases", with_interruption, _add_bench_arguments, _run_bench),
        ("drift", "detect changes in the judge by judging the same cases again", EXIT_CODES, _add_drift_arguments, _run_drift),
    ):  # fmt: skip
        about, epilog = f"{purpose[0].upper()}{purpose[1:]}.", as_text(codes)
        command = commands.add_parser(
            name, help=purpose, description=about, epilog=epilog, formatter_class=parser.formatter_class
        )
        add(command)
        command.set_defaults(run_command=run_command)


def run(args: argparse.Namespace) -> int:
    code: int = args.run_command(args)
    return code


def configured_judge(config: Config) -> Judge | JudgeGroup:
    """Return the configured judge, or raise ConfigError."""
    judge = judge_from(config)
    if judge is None:
        raise ConfigError("no judge is configured. Set judge.base_url and judge.model")
    return judge


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a positive whole number, got {text}")
    return int(text)


def _amount(text: str) -> float:
    amount = finite_number(text)
    if not amount:
        raise argparse.ArgumentTypeError(f"must be an amount above 0, got {text}")
    return amount


def _share(text: str) -> float:
    number = finite_number(text)
    if number is None or number > 1:
        raise argparse.ArgumentTypeError(f"must be a share from 0 to 1, got {text}")
    return number


def _reasons_in(outcomes: Iterable[CaseOutcome]) -> str:
    """If scores are missing, return the most common reason in parentheses. Otherwise, return an empty string."""
    found = Counter(outcome.explanation or outcome.error_type for outcome in outcomes if outcome.value is None)
    return f" ({found.most_common(1)[0][0]})" if found else ""


# --- probe


def _add_probe_arguments(probe: argparse.ArgumentParser) -> None:
    add_config(probe)
    probe.add_argument(
        "--max-rate", type=_share, default=0.0, metavar="SHARE",
        help="maximum share of successful injections; above this share, exit with code 1 (default: %(default)g)",
    )  # fmt: skip
    probe.add_argument("--metric", default=METRIC, metavar="NAME", help="metric whose prompts are tested (default: %(default)s)")
    probe.add_argument("--json", action="store_true", help="print one JSON object with each attempt")


def _run_probe(args: argparse.Namespace) -> int:
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
        print(f"{found.model}: no attempt has a score ({errors})", file=sys.stderr)
        return
    low, high = wilson(found.succeeded, found.tried)
    print(
        f"{found.model}: {found.succeeded} of {found.tried} attempts succeeded, {found.rate:.1%} (95 % interval {low:.1%} to {high:.1%})"
    )
    if errors:
        print(f"without a score: {errors}")


# --- bench


def _add_bench_arguments(bench: argparse.ArgumentParser) -> None:
    add_config(bench)
    bench.add_argument("--families", metavar="NAMES", help="run only these metric families, separated by commas (default: all)")
    bench.add_argument("--metrics", metavar="NAMES", help="run only these metrics, separated by commas (default: all)")
    bench.add_argument(
        "--limit", type=_count, metavar="N",
        help="maximum number of cases, spread evenly over metric families and quality levels",
    )  # fmt: skip
    bench.add_argument(
        "--repeat", type=_count, default=1, metavar="K",
        help="judge each case K times, to measure how often it returns the same level",
    )  # fmt: skip
    bench.add_argument(
        "--max-usd", type=_amount, metavar="USD",
        help="maximum cost in US dollars; the run doesn't start if the estimated cost is higher, and stops at this cost",
    )  # fmt: skip
    bench.add_argument("--yes", action="store_true", help="skip the confirmation (default with --max-usd or without a terminal)")
    add_report(bench, ("table", "json", "markdown"))
    bench.add_argument(
        "--min-agreement", type=_share, default=0.0, metavar="SHARE",
        help="minimum agreement; below this agreement, exit with code 1 (default: %(default)g)",
    )  # fmt: skip


def _run_bench(args: argparse.Namespace) -> int:
    """Run the configured judge on labeled cases and print the report, unless the estimated cost exceeds ``--max-usd``."""
    families, metrics = (
        [] if text is None else names_of(text, option)
        for text, option in ((args.families, "--families"), (args.metrics, "--metrics"))
    )
    cases = chosen(families, metrics, args.limit)
    config = load_config(args.config)
    judge = configured_judge(config)
    try:
        plan = estimate(cases, judge, repeat=args.repeat, prices=config.judge.prices)
        _check_money(plan, args.max_usd)
        cost = "at an unknown price" if plan.cost_usd is None else f"about ${plan.cost_usd:.2f}"
        calls = f"about {plan.questions:,} judge calls, {plan.input_tokens + plan.output_tokens:,} tokens, {cost}"
        print(f"{judge.model}: {len(cases)} cases, {calls}", file=sys.stderr)
        if not (args.yes or args.max_usd is not None or not sys.stdin.isatty()):
            print("Start? [y/N] ", end="", file=sys.stderr, flush=True)
            if sys.stdin.readline().strip().lower() not in ("y", "yes"):
                return UNUSABLE
        found = judge_cases(
            judge, cases, repeat=args.repeat, threads=config.judge.max_concurrency, max_usd=args.max_usd,
            report=_print_progress, abandoned=judge.close,
        )  # fmt: skip
        if sys.stderr.isatty():
            print(file=sys.stderr)
    finally:
        judge.close()
    summary = summarized(judge.model, found)
    if summary.total.agreement is None:
        print(f"{judge.model}: no case got a score{_reasons_in(found.outcomes)}", file=sys.stderr)
    write_report(_reported(summary, args.format), args.out)
    if summary.run.stopped == "interrupted":
        return INTERRUPTED
    if summary.total.agreement is None:
        return UNUSABLE
    return FAILED if summary.run.stopped is not None or summary.total.agreement < args.min_agreement else OK


def _check_money(plan: CostEstimate, most: float | None) -> None:
    if most is None:
        return
    if plan.cost_usd is None:
        raise ConfigError("--max-usd: the price of the model is unknown. Set judge.prices in the configuration")
    if plan.cost_usd > most:
        raise ConfigError(f"--max-usd: the estimate of ${plan.cost_usd:.2f} is above ${most:g}. Use fewer cases with --limit")


def _print_progress(outcome: CaseOutcome, run: BenchRun) -> None:
    if sys.stderr.isatty():
        print(f"\r{len(run.outcomes)} of {run.planned}  {outcome.case.metric:<48}", end="", file=sys.stderr, flush=True)


_HEAD = (
    "family", "cases", "agreement", "verdicts", "kappa", "95 %", "error", "leaning", "rank", "alarms", "misses", "unread", "refused", "failed",
    "trust",
)  # fmt: skip


def _reported(summary: BenchSummary, form: str) -> str:
    if form == "json":
        return json.dumps(summary.to_dict(), ensure_ascii=False)
    rows = [_HEAD, *(_row(name, each) for name, each in {**summary.families, "total": summary.total}.items())]
    total, bench = summary.total, summary.run
    cost = "cost unknown" if total.cost_usd is None else f"${total.cost_usd:.4f}"
    done = f"{len(bench.outcomes)} of {bench.planned} evaluations, {total.questions:,} judge calls"
    done += f", {total.input_tokens:,} + {total.output_tokens:,} tokens, {cost}, {bench.seconds:.0f} s"
    if total.stability is not None:
        done += f", {_percent(total.stability)} of the cases got the same level in all repeats"
    done += {"interrupted": "; interrupted", "budget": "; stopped by --max-usd", None: ""}[bench.stopped]
    markdown = form == "markdown"
    table = markdown_table(rows) if markdown else aligned(rows)
    bullet = "- " if markdown else "  "
    parts = [
        f"{'# ' if markdown else ''}{summary.model}: {done}",
        table,
        _listed("Bias", (each.sentence for each in summary.biases.values()), bullet),
        _listed(
            "Agreement by language",
            [", ".join(f"{tag} {_percent(each.agreement)}" for tag, each in summary.languages.items())],
            bullet,
        ),
        _listed("Trust", summary.verdict, bullet),
    ]
    return "\n\n".join(parts)


def _row(name: str, each: JudgeMeasures) -> tuple[str, ...]:
    interval = "–" if each.kappa_interval is None else f"{each.kappa_interval[0]:.2f} to {each.kappa_interval[1]:.2f}"
    return (
        name, str(each.cases), _percent(each.agreement), _percent(each.verdict_agreement), _number_of(each.kappa), interval,
        _number_of(each.mean_error), _number_of(each.leaning, "+"), _number_of(each.rank_correlation), _percent(each.false_alarms),
        _percent(each.misses), str(each.unreadable), str(each.refused), str(each.failed), each.trust,
    )  # fmt: skip


def _number_of(value: float | None, sign: str = "") -> str:
    return "–" if value is None else format(value, f"{sign}.2f")


def _percent(share: float | None) -> str:
    return percent(share, 0).replace(" ", "")


def _listed(title: str, sentences: Iterable[str], bullet: str) -> str:
    return "\n".join([f"{title}:", *([""] if bullet == "- " else []), *(f"{bullet}{sentence}" for sentence in sentences)])


# --- drift


def _add_drift_arguments(drift: argparse.ArgumentParser) -> None:
    drift.add_argument(
        "anchors", metavar="ANCHORS",
        help="file to which the first run writes its scores; later runs are compared with these scores",
    )  # fmt: skip
    add_config(drift)
    drift.add_argument(
        "--cases", metavar="FILE",
        help="your own cases: JSON Lines with a `metric` and a `turn` in the format turn.v1 (default: the cases of `judge bench`)",
    )  # fmt: skip
    drift.add_argument(
        "--metrics", metavar="NAMES", help="without --cases: judge only these metrics, separated by commas (default: all)"
    )
    drift.add_argument("--limit", type=int, default=60, metavar="N", help="maximum number of cases (default: %(default)s)")
    drift.add_argument(
        "--least", type=float, default=0.03, metavar="SIZE",
        help="smallest change to report in a metric family's mean, on a scale from 0 to 1 (default: %(default)g)",
    )  # fmt: skip
    drift.add_argument(
        "--every", metavar="TIME",
        help="keep running, and judge the cases again at this interval, for example 24h",
    )  # fmt: skip
    drift.add_argument("--json", action="store_true", help="print one JSON object")


def _run_drift(args: argparse.Namespace) -> int:
    if args.limit < 1:
        raise ConfigError(refusal("--limit", str(args.limit), "must be a positive whole number"))
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
                f"{path}: contains scores of other cases. Use a different file, or the same --cases and --metrics as in the first run"
            )
        found = judge_cases(judge, asked, threads=config.judge.max_concurrency)
        now = anchors_of(judge.model, found.outcomes)
    failed = len(asked) - len(now.values)
    if before is None:
        if not now.values:
            print(f"{judge.model}: no case got a score{_reasons_in(found.outcomes)}", file=sys.stderr)
            return UNUSABLE, None
        write_anchors(path, now)
        print(f"{path}: scores of {len(now.values)} cases by {now.model} written{_without(failed)}", file=sys.stderr)
        return OK, now
    rows = drifts(before, found.outcomes, args.least)
    report = _drift_report(before, now, rows, failed)
    print(json.dumps(report.data) if args.json else render(report, "table"), flush=True)
    if not rows:
        return UNUSABLE, before
    drifted = [row for row in rows if row.drifted]
    if drifted:
        _announce(config, drifted[-1], now.model)
    return (FAILED if drifted else OK), before


def _without(failed: int) -> str:
    return f", {failed} without a score" if failed else ""


def _announce(config: Config, drift: Drift, model: str) -> None:
    """Report judge drift as a score change through the configured outlets."""
    low, high = drift.interval
    found = Found("anchors", drift.before, drift.after, (low, high), time.time(), float(drift.anchors), (), None, None)
    name = "judge" if drift.family == ALL else f"judge:{drift.family}"
    change = Change(name, model, "changed", found, time.time())
    quiet = {"prometheus": None, "otlp_metrics": False, "jsonl": None, "otlp_file": None, "console": "off"}
    config = load_config(config, overrides={"outlets": quiet})  # these outlets can't report a drift
    setup = Setup(config, Telemetry(), lambda: "judge-drift", __version__)
    outlets = FanOut(outlets_from(setup), setup.telemetry)
    try:
        outlets.announce(change, Root(0, 0, sampled=False))
        outlets.flush(10.0)
    finally:
        outlets.close()


def _drift_report(before: Anchors, now: Anchors, rows: Sequence[Drift], failed: int) -> TabularReport:
    heads = ("", "cases", "before", "now", "difference, 95 % interval", "p", "changed level", "")
    cells = [
        (
            row.family, str(row.anchors), f"{row.before:.3f}", f"{row.after:.3f}",
            f"{row.difference:+.3f} ({row.interval[0]:+.3f} … {row.interval[1]:+.3f})", f"{row.p:.3f}", str(row.flipped),
            "DRIFTED" if row.drifted else "",
        )
        for row in rows
    ]  # fmt: skip
    title = [f"{now.model}: compared with the scores of {before.made}{_without(failed)}"]
    for what, was, is_now in (("model", before.model, now.model), ("prompt version", before.version, now.version)):
        if was != is_now:
            title.append(f"{what}: {was} before, {is_now} now")
    data = {
        "model": now.model, "model_before": before.model, "made": before.made, "without_a_score": failed,
        "families": [
            {
                "family": row.family, "anchors": row.anchors, "before": row.before, "after": row.after, "difference": row.difference,
                "interval": list(row.interval), "p": row.p, "at_another_level": row.flipped, "drifted": row.drifted,
            }
            for row in rows
        ],
    }  # fmt: skip
    table = Table("\n".join(title), heads, cells) if rows else Table("", heads, (), f"{now.model}: no case got a score")
    return TabularReport("Judge drift", [table], data)
