"""``otel-agenteval experiment``: run a task over a data set, and score the turns that it makes."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..config.loader import load_config
from ..core.errors import ConfigError
from ..core.terminal import LINES, escaped
from ..evaluation.references import ReferenceSources
from ..instrumentation.experiment import evaluate
from ..judging.models import embedder_from, judge_from
from ..report import Report, Run, compare, open_outputs
from .evaluation import Evaluation, chosen
from .exit_codes import FAILED, OK, UNUSABLE
from .messages import warn_of_missing_parameters
from .scoring import add_scoring, close_models, gated, warn_of_missing_models, watched

EXIT_CODES = {
    OK: "every turn was scored; without --gate whatever the scores are",
    FAILED: "the task raised for a case; with --gate: a gate failed or could not be evaluated, or a watched metric regressed",
    UNUSABLE: "wrong use, the task cannot be imported, or the data set cannot be read",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to its parser."""
    parser.add_argument(
        "task", metavar="MODULE:FUNCTION", help="called with the input of each case; a coroutine function is awaited"
    )
    parser.add_argument(
        "dataset", metavar="DATASET", help="a .jsonl, .csv or .parquet file: input, case_id, and references such as ground_truth"
    )
    parser.add_argument(
        "--repetitions", type=int, default=1, metavar="N", help="of each case, for how much answers vary (default: 1)"
    )
    parser.add_argument("--concurrency", type=int, default=8, metavar="N", help="calls at the same time (default: 8)")
    add_scoring(parser)


def run(args: argparse.Namespace) -> int:
    """Run the task, score its turns, and write the reports.

    Raises:
        ConfigError: wrong use.
    """
    config = load_config(args.config)
    metrics, whole = chosen(config, args.metrics)
    if whole:
        print(f"not evaluated, because a case is one turn: {', '.join(metric.name for metric in whole)}", file=sys.stderr)
    ReferenceSources(config)
    judge, embedder = judge_from(config), embedder_from(config)
    warn_of_missing_models(metrics, judge, embedder)
    warn_of_missing_parameters(metrics)
    watch = watched(args, metrics)
    baseline = None if args.baseline is None else Run.read(args.baseline)
    task = _task(args.task)
    with open_outputs(
        args.format or ["table"], args.out, [args.dataset, args.config or "-"], content=not args.no_content
    ) as outputs:
        names = [metric.name for metric in metrics]
        found = evaluate(
            task, args.dataset, names, repetitions=args.repetitions, concurrency=args.concurrency, config=config, judge=judge, embedder=embedder
        )  # fmt: skip
        renderings = tuple(output.rendering for output in outputs)
        work = Evaluation(config, args.metrics, renderings, with_scores=True, with_content=not args.no_content)
        results = Run()
        for shown in (work.shown(turn, scores) for turn, scores in found.scored):
            for output, text in zip(outputs, shown.texts, strict=True):
                output.add(text, shown.scored)
            for score, parameters in shown.scored:
                results.add(shown.about, score, parameters)
        close_models(judge, embedder)
        report = Report(results, None if baseline is None else compare(baseline, results, Path(args.baseline).name, watch))
        for output in outputs:
            output.finish(report)
    print(escaped(str(found), LINES), file=sys.stderr)
    raised = any(trial.error for trial in found.trials)
    return gated(args, report) or (FAILED if raised else OK)


def _task(name: str) -> Callable[[Any], Any]:
    """The function that a name stands for.

    Raises:
        ConfigError: there is none.
    """
    module, colon, attribute = name.partition(":")
    if not colon or not module or not attribute:
        raise ConfigError(f"{name}: it must be MODULE:FUNCTION, as in app:answer")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found: Any = importlib.import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"{name}: {error}") from None
    if not callable(found):
        raise ConfigError(f"{name}: it is no function, but {type(found).__name__}")
    return found  # type: ignore[no-any-return]
