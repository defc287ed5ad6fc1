"""``otel-agenteval eval``: score the turns of recorded traces."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from ..config.loader import load_config
from ..core.errors import ConfigError
from ..core.processes import jobs_of
from ..evaluation.references import ReferenceSources
from ..judging.models import Bench, Embedder, Judge, LocalEmbedder, embedder_from, judge_from
from ..metrics.bound_metric import BoundMetric, asked_in
from ..metrics.registry import resolve
from ..report import Report, Run, compare, open_outputs
from ..turns.recordings import Reading
from ..turns.spool import results as in_order
from .evaluation import Evaluation, chosen
from .exit_codes import FAILED, OK, UNUSABLE
from .messages import warn_of_missing_parameters
from .options import add_config, add_files, add_jobs, names_of
from .reading import progress, report_reading

EXIT_CODES = {
    OK: "every turn was scored; without --gate whatever the scores are",
    FAILED: "with --gate: a gate failed or could not be evaluated, or a watched metric regressed",
    UNUSABLE: "wrong use, a file cannot be read, the files hold no spans, or with --gate no turn",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to its parser."""
    add_files(parser)
    parser.add_argument(
        "--metrics", metavar="A,B", help="only these; with the parameters and policy that the configuration gives them"
    )
    add_config(parser)
    add_jobs(parser)
    parser.add_argument(
        "--format",
        action="append",
        choices=("jsonl", "table", "junit", "markdown", "html"),
        help="one JSON object per score (the default), a table per turn, JUnit XML, a summary for a pull request, or a page; repeatable",
    )
    parser.add_argument(
        "--out",
        action="append",
        default=[],
        metavar="FILE",
        help="file of the format in the same place (default: standard output)",
    )
    parser.add_argument(
        "--no-content", action="store_true", help="leave out of the reports what was asked and answered; scores can quote it"
    )
    parser.add_argument("--gate", action="store_true", help="exit with code 1 when a metric whose policy is gate fails")
    parser.add_argument(
        "--baseline",
        metavar="FILE",
        help="compare with an earlier run, as --format jsonl wrote it; with --gate no gate may regress",
    )
    parser.add_argument(
        "--fail-on-regression",
        metavar="A,B|all",
        help="with --gate and --baseline: also exit with code 1 when one of these regresses",
    )


def run(args: argparse.Namespace) -> int:
    """Score the turns, and write the reports."""
    config = load_config(args.config)
    metrics, whole = chosen(config, args.metrics)
    ReferenceSources(config)  # says what is wrong with them before anything is read
    judge, embedder = judge_from(config), embedder_from(config)
    both = [*metrics, *whole]
    _warn_of_missing_models(both, judge, embedder)
    warn_of_missing_parameters(both)
    watch = _watched(args, both)
    baseline = None if args.baseline is None else Run.read(args.baseline)
    reading, results = Reading(progress()), Run()
    inputs = [*args.files, args.config or "-"]
    with open_outputs(args.format or ["jsonl"], args.out, inputs, content=not args.no_content) as outputs:
        keeps = baseline is not None or args.gate or any(output.needs_run for output in outputs)
        work = Evaluation(
            config,
            args.metrics,
            tuple(output.rendering for output in outputs),
            with_scores=keeps or any(output.needs_scores for output in outputs),
            with_content=not args.no_content and any(output.needs_run for output in outputs),
            judge=judge,
            embedder=embedder,
        )
        for found in in_order(
            args.files, work, jobs=jobs_of(args.jobs), alone=work.asks, meet=work.looks_at_conversations, seen=reading
        ):
            for output, text in zip(outputs, found.texts, strict=True):
                output.add(text, found.scored)
            for score, parameters in found.scored if keeps else ():
                results.add(found.about, score, parameters)
        code = report_reading(reading)
        if args.gate and not reading.turns:
            code = UNUSABLE  # nothing was checked
        _close_models(judge, embedder)
        report = Report(results, None if baseline is None else compare(baseline, results, Path(args.baseline).name, watch))
        if not code:
            for output in outputs:
                output.finish(report)
    return code or _gated(args, report)


def _warn_of_missing_models(
    metrics: Sequence[BoundMetric], judge: Judge | Bench | None, embedder: Embedder | LocalEmbedder | None
) -> None:
    for kind, given, section in (("llm", judge, "judge"), ("embed", embedder, "embedder")):
        names = dict.fromkeys(metric.name for metric in asked_in(metrics) if metric.metric.kind == kind)
        if names and given is None:
            where = f"set {section}.base_url and {section}.model in the configuration"
            print(f"no {section} is configured, so these metrics are skipped ({where}): {', '.join(names)}", file=sys.stderr)


def _close_models(judge: Judge | Bench | None, embedder: Embedder | LocalEmbedder | None) -> None:
    """Print what judge and embedder used, and release their connections."""
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


def _watched(args: argparse.Namespace, metrics: Sequence[BoundMetric]) -> set[str]:
    """The metrics whose regression is a failure, besides the gates."""
    if args.fail_on_regression is None:
        if args.gate and not any(metric.policy == "gate" for metric in metrics):
            print("--gate: no metric has policy gate in the configuration, so none can fail", file=sys.stderr)
        return set()
    if not args.gate or args.baseline is None:
        raise ConfigError("--fail-on-regression needs --baseline FILE and --gate")
    names = names_of(args.fail_on_regression, "--fail-on-regression")
    watch = {name if name == "all" else resolve(name)[0].name for name in names}
    for name in sorted(watch - {"all"}):
        if name not in {metric.name for metric in metrics}:
            raise ConfigError(f"--fail-on-regression: {name} is not evaluated in this run; name it in --metrics or --config")
        if resolve(name)[0].direction == "neutral":
            raise ConfigError(f"--fail-on-regression: {name} is neutral: it can change, but not get worse")
    return watch


def _gated(args: argparse.Namespace, report: Report) -> int:
    if not args.gate or not report.failures:
        return OK
    for failure in report.failures:
        print(failure, file=sys.stderr)
    return FAILED
