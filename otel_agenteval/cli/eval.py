"""``otel-agenteval eval``: score the turns of recorded traces."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..core.processes import jobs_of
from ..evaluation.case_metrics import CaseMetrics
from ..evaluation.references import ReferenceSources
from ..judging.budgeted import CommandBudget
from ..judging.models import embedder_from, judge_from
from ..report import Run, compare, open_outputs
from ..turns.recordings import Reading
from ..turns.spool import results as in_order
from .evaluation import Evaluation, chosen
from .exit_codes import FAILED, OK, UNUSABLE
from .options import add_files, add_jobs, scored_config
from .reading import progress, report_reading
from .scoring import (
    add_scoring,
    close_models,
    gated,
    reported,
    warn_of_missing_models,
    warn_of_missing_parameters,
    warn_of_new_budget,
    warn_of_unread_columns,
    watched,
)

EXIT_CODES = {
    OK: "every turn was scored; without --gate, also if metrics failed",
    FAILED: "with --gate: a gate failed or wasn't evaluated, or a watched metric regressed",
    UNUSABLE: "an argument is invalid, a file can't be read, or the files have no turn",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_files(parser)
    add_scoring(parser, "jsonl")
    add_jobs(parser)


def run(args: argparse.Namespace) -> int:
    """Score the turns, and write the reports."""
    config = scored_config(args)
    metrics, whole = chosen(config, args.metrics)
    references = ReferenceSources(config)
    cases = CaseMetrics(config, metrics, references.cases)
    both = [*cases.by_name, *whole]
    warn_of_unread_columns(references.columns, cases, both)
    judge, embedder, budget = judge_from(config), embedder_from(config), CommandBudget(config)
    warn_of_missing_models(both, judge, embedder)
    warn_of_missing_parameters(both)
    warn_of_new_budget(budget)
    watch = watched(args, both)
    baseline = None if args.baseline is None else Run.read(args.baseline, scale=config.scale)
    reading, results = Reading(progress()), Run(config.scale)
    inputs = [*args.files, args.config or "-"]
    with open_outputs(args.format or ["jsonl"], args.out, inputs, content=not args.no_content, scale=config.scale) as outputs:
        keeps = baseline is not None or args.gate or any(output.needs_run for output in outputs)
        work = Evaluation(
            config,
            args.metrics,
            tuple(output.rendering for output in outputs),
            with_scores=keeps or any(output.needs_scores for output in outputs),
            with_content=not args.no_content and any(output.needs_run for output in outputs),
            with_facts=baseline is not None,
            judge=budget.judge(judge),
            embedder=budget.embedder(embedder),
            cases=cases,
        )
        for found in in_order(
            args.files, work, jobs=jobs_of(args.jobs), alone=work.asks, meet=work.looks_at_conversations, seen=reading
        ):
            for output, text in zip(outputs, found.texts, strict=True):
                output.add(text, found.scored)
            for score, parameters in found.scored if keeps else ():
                results.add(found.about, score, parameters)
            if found.facts:
                results.note_facts(found.about.turn_id, found.facts)
        code = report_reading(reading)
        if not reading.turns:
            code = UNUSABLE  # nothing was scored
        close_models(judge, embedder, budget)
        comparison = None if baseline is None else compare(baseline, results, Path(args.baseline).name, watch)
        report = reported(args, results, both, comparison)
        if not code:
            for output in outputs:
                output.finish(report)
    return code or gated(args, report)
