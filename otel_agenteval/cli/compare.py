"""``otel-agenteval compare``: two versions, models or prompts on live traffic."""

from __future__ import annotations

import argparse
import json

from ..config.loader import load_config
from ..core.errors import ConfigError
from ..outlets.sqlite.store import StoreReader, store_path
from ..report.releases import RENDERINGS, as_data, compare_groups
from .exit_codes import FAILED, OK, UNUSABLE
from .options import add_grouping, add_report, add_store, add_turns, turns_wanted, write_report

EXIT_CODES = {
    OK: "the comparison was written",
    FAILED: "with --gate: a metric is worse",
    UNUSABLE: "wrong use, the store cannot be read, or there are no two groups in it",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to its parser."""
    parser.add_argument(
        "groups", nargs="*", metavar="GROUP", help="the two to compare, the earlier one first (default: the two that came last)"
    )
    add_grouping(parser, "service.version")
    add_store(parser)
    add_turns(parser)
    parser.add_argument(
        "--effect", type=float, metavar="SIZE", help="the difference that matters, for the number of turns that are still needed"
    )
    parser.add_argument("--gate", action="store_true", help="exit 1 if a metric is worse")
    add_report(parser)


def run(args: argparse.Namespace) -> int:
    """Compare, and write.

    Raises:
        AgentEvalError: wrong use, or there is nothing to compare.
    """
    if len(args.groups) not in (0, 2):
        raise ConfigError("GROUP: name two groups, the earlier one first, or none")
    if args.effect is not None and not args.effect > 0:
        raise ConfigError(f"--effect {args.effect:g}: it must be above 0")
    with StoreReader(store_path(args.store, load_config(args.config))) as reader:
        found = compare_groups(reader, args.by, turns_wanted(args), args.groups, args.effect)
    write_report(json.dumps(as_data(found), indent=2) if args.format == "json" else RENDERINGS[args.format](found), args.out)
    return FAILED if args.gate and found.worse else OK
