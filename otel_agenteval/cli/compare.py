"""``otel-agenteval compare``: compare two versions, models, or prompts on live traffic."""

from __future__ import annotations

import argparse

from ..config.loader import load_config
from ..core.errors import ConfigError, refusal
from ..outlets.store.reader import StoreReader, store_path
from ..report.releases import compare_groups, releases_report
from ..report.render import render
from . import FAILED, OK, UNUSABLE
from .options import add_grouping, add_report, add_store, add_turns, turns_wanted, write_report

EXIT_CODES = {
    OK: "the comparison was written",
    FAILED: "with --gate: a metric got worse",
    UNUSABLE: "an argument is invalid, or the store can't be read or has fewer than two groups",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "groups", nargs="*", metavar="GROUP",
        help="two values of KEY to compare, such as two versions; the older one must be first (default: the latest two)",
    )  # fmt: skip
    add_grouping(parser, "service.version")
    add_store(parser)
    add_turns(parser)
    parser.add_argument(
        "--effect", type=float, metavar="SIZE",
        help="smallest difference of means that matters to you; the report shows how many more turns you need to detect this difference",
    )  # fmt: skip
    parser.add_argument("--gate", action="store_true", help="exit with code 1 if a metric got worse")
    add_report(parser)


def run(args: argparse.Namespace) -> int:
    if len(args.groups) not in (0, 2):
        raise ConfigError(refusal("GROUP", repr(" ".join(args.groups)), "must be given twice (older group first) or not at all"))
    if args.effect is not None and not args.effect > 0:
        raise ConfigError(refusal("--effect", f"{args.effect:g}", "must be a number above 0. Example: 0.05"))
    with StoreReader(store_path(args.store, load_config(args.config))) as reader:
        found = compare_groups(reader, args.by, turns_wanted(args), args.groups, args.effect)
    write_report(render(releases_report(found), args.format), args.out)
    return FAILED if args.gate and found.worse else OK
