"""Options and messages of commands that score turns: metrics, reports, gates and models."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from ..config.root import Config
from ..core.display import LINES, escaped
from ..core.errors import ConfigError
from ..evaluation.case_metrics import EXPECTED_VALUE, CaseMetrics
from ..evaluation.references import unread_columns
from ..judging.models import Embedder, InProcessEmbedder, Judge, JudgeGroup, embedder_from, judge_from
from ..judging.session import CommandBudget
from ..metrics.bound_metric import BoundMetric, asked_in
from ..metrics.registry import resolve
from ..report import Report, Run, compare, unevaluated_gates
from ..report.differences import causes_of
from ..report.table import render_comparison
from . import FAILED, OK
from .options import add_scored_config, names_of


def add_scoring(parser: argparse.ArgumentParser, default: str) -> None:
    parser.add_argument(
        "--metrics", metavar="A,B", help="run only these metrics, with their configured parameters; @NAME runs a configured group"
    )
    add_scored_config(parser)
    parser.add_argument(
        "--format", action="append", choices=("jsonl", "table", "junit", "markdown", "html"),
        help=f"format of the report: one JSON object per score, a table per turn, JUnit XML, a Markdown summary for a pull request, or an HTML page; repeatable (default: {default})",
    )  # fmt: skip
    parser.add_argument(
        "--out", action="append", default=[], metavar="FILE",
        help="output file; the first --out belongs to the first --format, and so on (default: standard output)",
    )  # fmt: skip
    parser.add_argument(
        "--no-content", action="store_true", help="omit inputs and outputs from the reports; explanations can still quote them"
    )
    parser.add_argument(
        "--gate",
        action="store_true",
        help="exit with code 1 if a metric with policy: gate fails on a turn, or has no verdict in the whole run",
    )
    parser.add_argument(
        "--allow-unevaluated",
        action="store_true",
        help="with --gate: also pass if a gate has no verdict, or if there are no gates",
    )
    parser.add_argument(
        "--baseline", metavar="FILE",
        help="scores of an earlier run to compare with, written by --format jsonl; with --gate, a gate that regresses fails",
    )  # fmt: skip
    parser.add_argument(
        "--fail-on-regression", metavar="A,B|all", help="with --gate and --baseline: also fail if one of these metrics regresses"
    )


def open_models(
    config: Config, metrics: Sequence[BoundMetric]
) -> tuple[Judge | JudgeGroup | None, Embedder | InProcessEmbedder | None, CommandBudget]:
    """Return judge, embedder and budget. Print the metrics that lack a model or a required parameter."""
    judge, embedder, budget = judge_from(config), embedder_from(config), CommandBudget(config)
    for kind, given, section in (("llm", judge, "judge"), ("embed", embedder, "embedder")):
        names = dict.fromkeys(metric.name for metric in asked_in(metrics) if metric.metric.kind == kind)
        if names and given is None:
            where = f"Set {section}.base_url and {section}.model in the configuration"
            print(f"no {section} is configured, so these metrics are skipped: {', '.join(names)}. {where}", file=sys.stderr)
    for metric in metrics:
        if metric.missing is not None:
            what = f"the required parameter {metric.missing!r} is missing, so each score is an error"
            print(f"{metric.name}: {what}", file=sys.stderr)
    warn_of_new_budget(budget)
    return judge, embedder, budget


def warn_of_unread_columns(columns: set[str], cases: CaseMetrics, metrics: Sequence[BoundMetric]) -> None:
    """Print the columns of a data set that no metric reads."""
    for column, similar in unread_columns(columns.difference(EXPECTED_VALUE if cases.reads_value else ()), metrics).items():
        hint = "" if similar is None else f". Did you mean {similar!r}?"
        print(f"no metric reads the column {column!r} of the data set{hint}", file=sys.stderr)


def warn_of_new_budget(budget: CommandBudget) -> None:
    """Print a note if the budget ignores the spending of other runs."""
    if budget.is_limited and not budget.lasts:
        how = "To share it with other processes and runs, set judge.queue to {backend: sqlite, path: FILE}"
        print(f"judge.budget counts only this run. {how}", file=sys.stderr)


def close_models(judge: Judge | JudgeGroup | None, embedder: Embedder | InProcessEmbedder | None, budget: CommandBudget) -> None:
    """Print the usage of judge and embedder, and close their connections."""
    budget.close()
    for model in (judge, embedder):
        if model is None:
            continue
        model.close()
        total = model.total()
        if total.requests:
            cost = "cost unknown" if total.unpriced == total.requests - total.failed else f"{total.cost_usd:.4g} USD"
            unpriced = f" (and {total.unpriced} requests of unknown cost)" if total.unpriced and "USD" in cost else ""
            counts = f"{total.requests:,} requests, {total.failed:,} without an answer, {total.input_tokens + total.output_tokens:,} tokens"
            print(f"{model.model}: {counts}, {cost}{unpriced}", file=sys.stderr)


def watched(args: argparse.Namespace, metrics: Sequence[BoundMetric]) -> set[str]:
    """Return the metrics whose regression is a failure, besides the gates. Raises ConfigError if one can't regress."""
    if args.allow_unevaluated and not args.gate:
        raise ConfigError("--allow-unevaluated: requires --gate")
    if args.fail_on_regression is None:
        return set()
    if not args.gate or args.baseline is None:
        raise ConfigError("--fail-on-regression: requires --baseline FILE and --gate")
    names = names_of(args.fail_on_regression, "--fail-on-regression")
    watch = {name if name == "all" or "." in name else resolve(name)[0].name for name in names}
    for name in sorted(watch - {"all"}):
        directions = {metric.name: metric._facts.direction for metric in metrics}
        if name not in directions:
            raise ConfigError(
                f"--fail-on-regression: {name} isn't evaluated in this run. Add it to --metrics or the configuration"
            )
        if directions[name] == "neutral":
            raise ConfigError(f"--fail-on-regression: {name} is neutral and can't get worse. Choose a metric with a direction")
    return watch


def reported(args: argparse.Namespace, run: Run, metrics: Sequence[BoundMetric], baseline: Run | None, watch: set[str]) -> Report:
    """Return the report on a run of these metrics, in which gates without a verdict fail unless they may."""
    comparison = None
    if baseline is not None:
        comparison = compare(baseline, run, Path(args.baseline).name, watch)
        comparison.causes = causes_of(comparison, run)
    unevaluated = [] if args.allow_unevaluated else unevaluated_gates(metrics, run)
    has_gate = args.fail_on_regression is not None or any(metric.policy == "gate" for metric in metrics)
    if args.gate and not args.allow_unevaluated and not has_gate:
        unevaluated.append("--gate: no metric has policy: gate in the configuration, so nothing can fail")
    return Report(run, comparison, unevaluated)


_WITH_COMPARISON = frozenset(("table", "markdown", "html"))


def gated(args: argparse.Namespace, report: Report, formats: Sequence[str]) -> int:
    """Print the failed gates, and the comparison if no report has it. Return the exit code."""
    if report.comparison is not None and _WITH_COMPARISON.isdisjoint(formats):
        print(escaped(render_comparison(report.comparison), LINES), end="", file=sys.stderr)
    if not args.gate or not report.failures:
        return OK
    for failure in report.failures:
        print(escaped(failure), file=sys.stderr)
    if report.unevaluated:
        print("to pass anyway, set --allow-unevaluated", file=sys.stderr)
    return FAILED
