"""``otel-agenteval judge bench``: measure the configured judge on labeled cases."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable

from ..config.loader import load_config
from ..config.root import Config
from ..config.types import finite_number
from ..core.errors import ConfigError
from ..judging.judge_bench.cases import chosen
from ..judging.judge_bench.run import BenchRun, CaseOutcome, CostEstimate, estimate, run
from ..judging.judge_bench.summary import BenchSummary, JudgeMeasures, summarized
from ..judging.models import Judge, JudgeGroup, judge_from
from ..report.render import aligned, markdown_table
from . import FAILED, INTERRUPTED, OK, UNUSABLE
from .options import add_config, names_of, write_report

FORMATS = ("table", "json", "markdown")


def add_bench_arguments(bench: argparse.ArgumentParser) -> None:
    add_config(bench)
    bench.add_argument("--families", metavar="NAMES", help="run only these metric families, separated by commas (default: all)")
    bench.add_argument("--metrics", metavar="NAMES", help="run only these metrics, separated by commas (default: all)")
    bench.add_argument(
        "--limit", type=_count, metavar="N", help="maximum number of cases, spread evenly over families and levels"
    )
    bench.add_argument(
        "--repeat", type=_count, default=1, metavar="K", help="judge each case K times, to measure how stable the verdicts are"
    )
    bench.add_argument(
        "--max-usd",
        type=_amount,
        metavar="USD",
        help="maximum cost in US dollars; the run doesn't start if the estimate is higher, and stops when the limit is reached",
    )
    bench.add_argument("--yes", action="store_true", help="start without confirmation")
    bench.add_argument("--format", choices=FORMATS, default="table", help="format of the report (default: %(default)s)")
    bench.add_argument("--out", metavar="FILE", help="file for the report (default: standard output)")
    bench.add_argument(
        "--min-agreement", type=share, default=0.0, metavar="SHARE",
        help="minimum agreement; below it, exit with code 1 (default: %(default)g)",
    )  # fmt: skip


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1, got {text}")
    return int(text)


def _amount(text: str) -> float:
    amount = finite_number(text)
    if not amount:
        raise argparse.ArgumentTypeError(f"must be an amount above 0, got {text}")
    return amount


def share(text: str) -> float:
    number = finite_number(text)
    if number is None or number > 1:
        raise argparse.ArgumentTypeError(f"must be a share from 0 to 1, got {text}")
    return number


def configured_judge(config: Config) -> Judge | JudgeGroup:
    """Return the judge, or raise ConfigError."""
    judge = judge_from(config)
    if judge is None:
        raise ConfigError("no judge is configured. Set judge.base_url and judge.model")
    return judge


def run_bench(args: argparse.Namespace) -> int:
    """Run the configured judge on the labeled cases if the estimate isn't above ``--max-usd``, and print the report."""
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
        found = run(
            judge, cases, repeat=args.repeat, threads=config.judge.max_concurrency, max_usd=args.max_usd,
            report=_print_progress, abandoned=judge.close,
        )  # fmt: skip
        if sys.stderr.isatty():
            print(file=sys.stderr)
    finally:
        judge.close()
    summary = summarized(judge.model, found)
    if summary.total.agreement is None:
        print(f"{judge.model}: no case got a score{reasons_in(found.outcomes)}", file=sys.stderr)
    write_report(_reported(summary, args.format), args.out)
    if summary.run.stopped == "interrupted":
        return INTERRUPTED
    if summary.total.agreement is None:
        return UNUSABLE
    return FAILED if summary.run.stopped is not None or summary.total.agreement < args.min_agreement else OK


def reasons_in(outcomes: Iterable[CaseOutcome]) -> str:
    """Return the most common reason for missing scores, in parentheses, or an empty text."""
    found = Counter(outcome.explanation or outcome.error_type for outcome in outcomes if outcome.value is None)
    return f" ({found.most_common(1)[0][0]})" if found else ""


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


# --- the report

_HEAD = (
    "family", "cases", "agreement", "verdicts", "kappa", "95 %", "error", "leaning", "rank", "alarms", "misses", "unread", "refused", "failed",
    "trust",
)  # fmt: skip


def _reported(summary: BenchSummary, form: str) -> str:
    if form == "json":
        return json.dumps(summary.to_dict(), ensure_ascii=False)
    rows = [_HEAD, *(_row(name, each) for name, each in {**summary.families, "total": summary.total}.items())]
    markdown = form == "markdown"
    table = markdown_table(rows) if markdown else aligned(rows)
    bullet = "- " if markdown else "  "
    parts = [
        f"{'# ' if markdown else ''}{summary.model}: {_took(summary)}",
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


def _took(summary: BenchSummary) -> str:
    total, run = summary.total, summary.run
    cost = "cost unknown" if total.cost_usd is None else f"${total.cost_usd:.4f}"
    stability = "" if total.stability is None else f", {_percent(total.stability)} of the cases got the same level in all repeats"
    stopped = {"interrupted": "; interrupted", "budget": "; stopped by --max-usd", None: ""}[run.stopped]
    tokens = f"{total.input_tokens:,} + {total.output_tokens:,} tokens"
    return f"{len(run.outcomes)} of {run.planned} evaluations, {total.questions:,} judge calls, {tokens}, {cost}, {run.seconds:.0f} s{stability}{stopped}"


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
    return "–" if share is None else f"{share:.0%}"


def _listed(title: str, sentences: Iterable[str], bullet: str) -> str:
    return "\n".join([f"{title}:", *([""] if bullet == "- " else []), *(f"{bullet}{sentence}" for sentence in sentences)])
