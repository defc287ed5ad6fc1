"""``otel-agenteval estimates``: estimate means and pass rates over all turns from sampled scores."""

from __future__ import annotations

import argparse

from ..config.loader import load_config
from ..outlets.store.reader import StoreReader, store_path
from ..report.releases import estimates_of, estimates_report
from ..report.render import render
from . import OK, UNUSABLE
from .options import add_grouping, add_report, add_store, add_turns, turns_wanted, write_report

EXIT_CODES = {
    OK: "the estimates were written",
    UNUSABLE: "an argument is invalid, or the store can't be read or has no matching score",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_grouping(parser, "agent")
    add_store(parser)
    add_turns(parser)
    add_report(parser)


def run(args: argparse.Namespace) -> int:
    with StoreReader(store_path(args.store, load_config(args.config))) as reader:
        rows = estimates_of(reader, args.by, turns_wanted(args))
    write_report(render(estimates_report(rows), args.format), args.out)
    return OK
