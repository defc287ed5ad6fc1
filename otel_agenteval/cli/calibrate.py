"""``otel-agenteval calibrate``: compare a judge's scores with human labels."""

from __future__ import annotations

import argparse
import json
import sys

from ..config.loader import load_config
from ..core.errors import ConfigError, refusal
from ..outlets.store.reader import EXPORTED, StoreReader, Wanted, score_of_row, store_path
from ..outlets.turn_text import number_of
from ..report.calibration import as_report, for_run, labels_in_traces, labels_of_feedback, read_labels, to_label, trust_in
from ..report.render import render
from ..report.run import About, Run
from . import OK, UNUSABLE
from .options import add_report, add_store, write_report

EXIT_CODES = {
    OK: "the report was written",
    UNUSABLE: "an argument is invalid, an input can't be read, or no labeled turn has a verdict",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "labels", metavar="LABELS", nargs="?",
        help="OTLP/JSON traces that contain user feedback, or a .jsonl, .csv, or .parquet file with labels. Its columns are `label` (pass or fail, yes or no, 1 or 0), optionally `metric`, and an ID: turn_id, case_id, or, for scores of `experiment`, `input`",
    )  # fmt: skip
    parser.add_argument("--feedback", action="store_true", help="use user feedback as labels, instead of LABELS")
    parser.add_argument(
        "--scores", metavar="FILE",
        help="read scores from a JSON Lines file of `eval`, `experiment`, or outlets.jsonl, instead of a store",
    )  # fmt: skip
    add_store(parser)
    parser.add_argument("--metric", metavar="NAME", help="compare only this metric")
    parser.add_argument(
        "--judge-model", metavar="NAME",
        help="name of the judge's model, to detect whether the judge prefers this model's answers (default: judge.model in the configuration)",
    )  # fmt: skip
    add_report(parser, ("table", "json", "html"))
    parser.add_argument(
        "--suggest", type=int, metavar="N", help="also select N turns to label next, and write them to the file in --suggestions"
    )
    parser.add_argument(
        "--suggestions", metavar="FILE", default="to-label.jsonl", help="file for the selected turns (default: to-label.jsonl)"
    )


def run(args: argparse.Namespace) -> int:
    if args.scores is not None and args.store is not None:
        raise ConfigError("--scores, --store: only one of them is allowed")
    if args.suggest is not None and args.suggest < 1:
        raise ConfigError(refusal("--suggest", str(args.suggest), "must be a positive whole number"))
    if (args.labels is None) == (not args.feedback):
        raise ConfigError("LABELS, --feedback: exactly one of them is required")
    config = load_config(args.config)
    if args.scores is not None:
        scores = Run.read(args.scores)
    else:
        scores = Run()
        with StoreReader(store_path(args.store, config)) as reader:
            for row in reader.rows(Wanted(), (*EXPORTED, "case_key")):
                case = row["case_key"] if not (row["case_key"] or "#").startswith("#") else None  # "#": a hash of the input
                scores.add(About(row["turn_id"], case, row["agent"], row["model"]), score_of_row(row))
    labels = labels_of_feedback(scores) if args.feedback else labels_in_traces(args.labels) or read_labels(args.labels)
    labels = for_run(labels, scores)
    found = trust_in(scores, labels, args.metric, args.judge_model if args.judge_model is not None else config.judge.model)
    write_report(render(as_report(found), args.format), args.out)
    if args.suggest is not None:
        rows = to_label(scores, labels, args.suggest, args.metric)
        write_report("\n".join(json.dumps(row, ensure_ascii=False) for row in rows), args.suggestions, "--suggestions")
        count = number_of(len(rows), "turn")
        print(f'{args.suggestions}: {count} to label; set "label" to pass or fail in each line', file=sys.stderr)
    return OK
