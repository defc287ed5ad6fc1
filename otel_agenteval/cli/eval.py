"""``otel-agenteval eval``: score the turns of recorded traces."""

from __future__ import annotations

import argparse
import sys

from ..core.display import LINES, escaped
from ..core.processes import jobs_of
from ..evaluation.case_metrics import CaseMetrics
from ..evaluation.references import ReferenceSources
from ..report import Run, formats_of, open_outputs
from ..report.formatting import errors_in
from ..turns.recordings import Reading
from ..turns.spool import results as in_order
from . import FAILED, OK, UNUSABLE
from .options import add_files, add_jobs, progress, report_reading, scored_config
from .scoring import Evaluation, add_scoring, chosen, close_models, gated, open_models, reported, warn_of_unread_columns, watched

EXIT_CODES = {
    OK: "the turns were scored; failed metrics and errors change the exit code only with --gate",
    FAILED: "with --gate: a gate failed, regressed, or has no verdict, or there is neither a gate nor --fail-on-regression; with --fail-on-regression: one of these metrics regressed",
    UNUSABLE: "an argument is invalid, a file isn't found, or the files don't contain a turn",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_files(parser)
    add_scoring(parser, "jsonl")
    add_jobs(parser)


def run(args: argparse.Namespace) -> int:
    config = scored_config(args)
    metrics, whole = chosen(config, args.metrics)
    references = ReferenceSources(config)
    cases = CaseMetrics(config, metrics, references.cases)
    both = [*cases.by_name, *whole]
    warn_of_unread_columns(references.columns, cases, both)
    judge, embedder, budget = open_models(config, both)
    watch = watched(args, both)
    formats = formats_of(args.format, args.out, "jsonl")
    baseline = None if args.baseline is None else Run.read(args.baseline, scale=config.scale)
    reading, results = Reading(progress()), Run(config.scale)
    inputs = [*args.files, args.config or "-", (args.gate and args.baseline) or "-"]
    with open_outputs(formats, args.out, inputs, content=not args.no_content, scale=config.scale) as outputs:
        keeps = baseline is not None or args.gate or any(output.needs_run for output in outputs)
        work = Evaluation(
            config, args.metrics, tuple(output.rendering for output in outputs),
            with_scores=keeps or any(output.needs_scores for output in outputs),
            with_content=not args.no_content and any(output.needs_run for output in outputs),
            with_facts=baseline is not None, judge=budget.judge(judge), embedder=budget.embedder(embedder), cases=cases,
        )  # fmt: skip
        for found in in_order(
            args.files, work, jobs=jobs_of(args.jobs), alone=work.asks, meet=work.looks_at_conversations, seen=reading
        ):
            found.add_to(outputs, results, only_errors=not keeps)
        code = report_reading(reading)
        if not reading.turns:
            code = UNUSABLE  # nothing was scored
        close_models(judge, embedder, budget)
        print(escaped("".join(f"{line}\n" for line in errors_in(results)), LINES), end="", file=sys.stderr)
        report = reported(args, results, both, baseline, watch)
        if not code:
            for output in outputs:
                output.finish(report)
    return code or gated(args, report, formats)
