"""``otel-agenteval calibrate``: how far a judge can be trusted, by labels of people."""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import ExitStack
from pathlib import Path

from ..config.loader import load_config
from ..core.errors import ConfigError
from ..core.terminal import LINES, escaped
from ..outlets.sqlite.store import StoreReader, Wanted, score_of_row, store_path
from ..report.calibration import RENDERINGS, as_data, labels_in_traces, labels_of_feedback, read_labels, to_label, trust_in
from ..report.run import About, Run
from .exit_codes import OK, UNUSABLE
from .options import add_store

EXIT_CODES = {
    OK: "what the labels say was written",
    UNUSABLE: "wrong use, a file cannot be read, or no label is about a turn with a score",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to its parser."""
    parser.add_argument(
        "labels",
        metavar="LABELS",
        nargs="?",
        help="a .jsonl, .csv or .parquet file: turn_id or case_id, label (pass or fail), and metric if it is about one; or recorded traces with users' feedback",
    )
    parser.add_argument("--feedback", action="store_true", help="instead: what users said of the turns, as the scores have it")
    parser.add_argument(
        "--scores", metavar="FILE", help="scores as JSON lines, of eval, experiment or outlets.jsonl; default: a store"
    )
    add_store(parser)
    parser.add_argument("--metric", metavar="NAME", help="only this one")
    parser.add_argument(
        "--judge-model",
        metavar="NAME",
        help="the judge's model, to see whether it prefers its own answers (default: judge.model)",
    )
    parser.add_argument(
        "--format", choices=("table", "json", "html"), default="table", help="texts (the default), one JSON list, or a page"
    )
    parser.add_argument("--out", metavar="FILE", help="where to (default: standard output)")
    parser.add_argument(
        "--suggest", type=int, metavar="N", help="also write N turns whose labels would say most, to --suggestions"
    )
    parser.add_argument("--suggestions", metavar="FILE", default="to-label.jsonl", help="where to (default: to-label.jsonl)")


def run(args: argparse.Namespace) -> int:
    """Compare, and write.

    Raises:
        ConfigError: wrong use.
    """
    if args.scores is not None and args.store is not None:
        raise ConfigError("--scores and --store: name one of them")
    if args.suggest is not None and args.suggest < 1:
        raise ConfigError(f"--suggest {args.suggest}: it must be 1 or more")
    if (args.labels is None) == (not args.feedback):
        raise ConfigError("LABELS or --feedback: name one of them")
    scores = Run.read(args.scores) if args.scores is not None else _stored(args.store)
    labels = labels_of_feedback(scores) if args.feedback else labels_in_traces(args.labels) or read_labels(args.labels)
    judge = args.judge_model if args.judge_model is not None else load_config(args.config).judge.model
    found = trust_in(scores, labels, args.metric, judge)
    text = json.dumps(as_data(found), indent=2) if args.format == "json" else RENDERINGS[args.format](found)
    with ExitStack() as stack:
        text = escaped(text, LINES) if args.out is None else text
        out = sys.stdout if args.out is None else stack.enter_context(Path(args.out).open("w", encoding="utf-8"))
        print(text, file=out)
    if args.suggest is not None:
        rows = to_label(scores, labels, args.suggest, args.metric)
        Path(args.suggestions).write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
        print(f"{args.suggestions}: {len(rows)} turns to label; write pass or fail into label", file=sys.stderr)
    return OK


def _stored(path: str | None) -> Run:
    found = Run()
    with StoreReader(store_path(path, load_config(None))) as reader:
        for row in reader.rows(Wanted()):
            found.add(About(row["turn_id"], None, row["agent"], row["model"]), score_of_row(row))
    return found
