"""``otel-agenteval experiment``: run a task on each case in a dataset, and score the task's turns."""

from __future__ import annotations

import argparse
import importlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..core.display import LINES, escaped
from ..core.errors import ConfigError, refusal
from ..evaluation.case_metrics import CaseMetrics
from ..evaluation.datasets import cases_in, rows_in
from ..evaluation.references import ReferenceSources
from ..instrumentation.case_script import COLUMNS, cases_with_turns, columns_of
from ..instrumentation.experiment import evaluate, recorded_answer
from ..report import Run, formats_of, open_outputs
from ..report.experiment import Interrupted
from ..turns.recordings import ANSWER_KEYS
from . import FAILED, INTERRUPTED, OK, UNUSABLE
from .options import scored_config
from .scoring import Evaluation, add_scoring, chosen, close_models, gated, open_models, reported, warn_of_unread_columns, watched

EXIT_CODES = {
    OK: "the turns were scored; failed metrics and errors change the exit code only with --gate",
    FAILED: "the task failed for a case; with --gate: a gate failed, regressed, or has no verdict, or there is neither a gate nor --fail-on-regression; with --fail-on-regression: one of these metrics regressed",
    UNUSABLE: "an argument is invalid, the task can't be imported, or the dataset can't be read",
    INTERRUPTED: "Control+C or SIGTERM stopped the run; the reports contain the finished repetitions",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "task", metavar="MODULE:FUNCTION", type=_name_of_task,
        help="task: a sync or async function that receives a case's input, such as app:answer; or `recorded`, to score the dataset's recorded answers",
    )  # fmt: skip
    parser.add_argument(
        "dataset", metavar="DATASET",
        help=".jsonl, .json, .yaml, .csv, .tsv, or .parquet file with the column `input`, `turns`, or `user`; optional columns: case_id, `metrics`, and reference data such as ground_truth",
    )  # fmt: skip
    parser.add_argument(
        "--columns", metavar="NAME=COLUMN,…", action="append",
        help="read NAME from the dataset's column COLUMN, for example input=question,output=answer; repeatable",
    )  # fmt: skip
    parser.add_argument(
        "--repetitions", type=int, default=1, metavar="N",
        help="number of runs of each case, to measure how much the answers vary (default: 1)",
    )  # fmt: skip
    parser.add_argument(
        "--concurrency", type=int, default=8, metavar="N", help="maximum number of concurrent calls of the task (default: 8)"
    )
    parser.add_argument(
        "--timeout", type=float, metavar="SECONDS",
        help="maximum seconds for the task in each repetition of a case, and separately for scoring the repetition (default: no limit)",
    )  # fmt: skip
    add_scoring(parser, "table")


def run(args: argparse.Namespace) -> int:
    config = scored_config(args)
    metrics, whole = chosen(config, args.metrics)
    dataset = _renamed(args.dataset, args.columns) if args.columns else args.dataset
    task = _task(args.task)
    if not (cases := list(cases_in(dataset, recorded=task is recorded_answer))):
        raise ConfigError(f"{args.dataset}: no rows")
    evaluated = [*metrics, *whole]
    if whole and all(case.input is not None for case in cases):
        evaluated = metrics
        names_of_whole = ", ".join(metric.name for metric in whole)
        print(f"conversation metrics aren't evaluated, because each case is one turn: {names_of_whole}", file=sys.stderr)
    asked: list[Any] = [*metrics, *(metric.name for metric in evaluated[len(metrics) :])]
    of_cases = CaseMetrics(config, metrics, cases_with_turns(cases))
    evaluated = [*of_cases.by_name, *evaluated[len(metrics) :]]
    columns = set().union(*map(columns_of, cases), ReferenceSources(config).columns - {*COLUMNS})
    if task is recorded_answer and "output" not in columns:
        raise ConfigError(_no_answers(args.dataset))
    warn_of_unread_columns(columns - {"output"}, of_cases, evaluated)
    judge, embedder, budget = open_models(config, evaluated, has_columns=True)
    watch = watched(args, evaluated)
    formats = formats_of(args.format, args.out, "table")
    baseline = None if args.baseline is None else Run.read(args.baseline, scale=config.scale)
    inputs = [args.dataset, args.config or "-", (args.gate and args.baseline) or "-"]
    with open_outputs(formats, args.out, inputs, content=not args.no_content, scale=config.scale) as outputs:
        interrupted = False
        try:
            with _interrupted_by_sigterm():
                found = evaluate(
                    task, dataset, asked, repetitions=args.repetitions, concurrency=args.concurrency, timeout=args.timeout,
                    config=config, judge=budget.judge(judge), embedder=budget.embedder(embedder),
                )  # fmt: skip
        except Interrupted as stopped:
            found, interrupted = stopped.experiment, True
        work = Evaluation(
            config, args.metrics, tuple(output.rendering for output in outputs), with_scores=True, with_content=not args.no_content,
            with_facts=baseline is not None, cases=of_cases,
        )  # fmt: skip
        results = Run(config.scale)
        for turn, scores in found.scored:
            work.render(turn, scores).add_to(outputs, results)
        close_models(judge, embedder, budget)
        report = reported(args, results, [*of_cases.by_name, *whole], baseline, watch)
        for output in outputs:
            output.finish(report)
    print(escaped(str(found), LINES), file=sys.stderr)
    if interrupted:
        print(f"interrupted: the reports contain {len(found.trials)} of {len(cases) * args.repetitions} trials", file=sys.stderr)
        return INTERRUPTED
    return gated(args, report, formats) or (FAILED if any(trial.error for trial in found.trials) else OK)


@contextmanager
def _interrupted_by_sigterm() -> Iterator[None]:
    """Handle SIGTERM like Ctrl+C, because CI systems cancel jobs with SIGTERM."""
    is_main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGTERM, signal.default_int_handler) if is_main else None
    try:
        yield
    finally:
        if is_main:
            signal.signal(signal.SIGTERM, before or signal.SIG_DFL)


def _renamed(dataset: str, given: Sequence[str]) -> list[dict[str, Any]]:
    rows = list(rows_in(dataset, "dataset"))
    known = dict.fromkeys(column for _, row in rows for column in row)
    pairs = (pair for text in given for pair in ([text] if text.partition("=")[2] in known else text.split(",")))
    names = dict(pair.partition("=")[::2] for pair in pairs)
    for name, column in names.items():
        if not name or (column not in known and rows):
            fault = f"column {column!r} not found" if name and column else "must be NAME=COLUMN"
            raise ConfigError(f"--columns: {name}={column}: {fault}. Columns in the dataset: {', '.join(known) or 'none'}")
    new = {column: name for name, column in names.items()}
    return [_Row(place, {new.get(column, column): value for column, value in row.items()}) for place, row in rows]


class _Row(dict[str, Any]):
    def __init__(self, place: str, row: dict[str, Any]) -> None:
        super().__init__(row)
        self.place = place


def _no_answers(dataset: str) -> str:
    known = dict.fromkeys(column for _, row in rows_in(dataset, "dataset") for column in row)
    answers = next((name for name in ANSWER_KEYS if name in known), "COLUMN")
    return f"{dataset}: must have a column output, got {', '.join(known)}. Name the column of the answers: --columns output={answers}"


def _name_of_task(name: str) -> str:
    if Path(name).is_file():
        raise argparse.ArgumentTypeError(f"got a file. To score recorded answers: otel-agenteval experiment recorded {name}")
    return name


def _task(name: str) -> Callable[..., Any]:
    if name == "recorded":
        return recorded_answer
    module, colon, attribute = name.partition(":")
    if not colon or not module or not attribute:
        raise ConfigError(refusal("task", repr(name), "must be MODULE:FUNCTION. Example: app:answer"))
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found: Any = importlib.import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, SystemExit) as error:
        raise ConfigError(f"task: {name}: {error}. Modules are imported from the current folder and the Python path") from None
    if not callable(found):
        raise ConfigError(f"task: {name}: must be a function, got {type(found).__name__}")
    return found  # type: ignore[no-any-return]
