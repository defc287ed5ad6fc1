"""``otel-agenteval export``: write a store's scores for other programs."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from ..config.loader import load_config
from ..core.errors import ConfigError, refusal
from ..outlets.store.export import write_file, write_text
from ..outlets.store.reader import StoreReader, store_path
from ..outlets.turn_text import number_of
from . import OK, UNUSABLE
from .options import add_store, add_turns, metrics_wanted, turns_wanted

EXIT_CODES = {
    OK: "the matching scores were written",
    UNUSABLE: "an argument is invalid, the store can't be read, or the file can't be written",
}
_KINDS = {"": "jsonl", ".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".parquet": "parquet"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_store(parser)
    parser.add_argument("--out", metavar="FILE", help="output file; its extension sets the format (default: standard output)")
    parser.add_argument("--format", choices=("jsonl", "csv", "parquet"), help="format (default: from the extension, or jsonl)")
    add_turns(parser)
    parser.add_argument("--revisions", action="store_true", help="include scores of superseded revisions")


def run(args: argparse.Namespace) -> int:
    """Write the scores. The output file appears only when it is complete."""
    config = load_config(args.config)
    args.out = None if args.out == "-" else args.out
    kind = args.format or _KINDS.get(Path(args.out or "").suffix.lower())
    if kind is None:
        raise ConfigError(refusal("--out", repr(args.out), "must end with .jsonl, .ndjson, .csv or .parquet. Or pass --format"))
    if kind == "parquet" and args.out is None:
        raise ConfigError("--format: parquet can't be written to standard output. Pass --out FILE")
    wanted = turns_wanted(args)
    with StoreReader(store_path(args.store, config)) as reader:
        wanted = replace(wanted, metrics=metrics_wanted(args, reader), revisions=args.revisions)
        if args.out is None:
            count = write_text(reader.rows(wanted), kind, sys.stdout)
        else:
            count = write_file(reader.rows(wanted), kind, Path(args.out))
    print(f"{number_of(count, 'score')} exported", file=sys.stderr)
    return OK
