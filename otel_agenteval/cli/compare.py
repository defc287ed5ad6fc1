"""``otel-agenteval compare``: two versions, models or prompts on live traffic."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from ..config.loader import load_config
from ..core.errors import ConfigError
from ..outlets.sqlite.store import StoreReader, Wanted, store_path
from ..report.releases import RENDERINGS, as_data, compare_groups
from .exit_codes import FAILED, OK, UNUSABLE
from .options import add_store, moment

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
    parser.add_argument(
        "--by",
        default="service.version",
        metavar="WHAT",
        help="what makes groups: service.version (the default), model, agent, service, judge_model, tenant, or an attribute that the store keeps (outlets.store.attributes)",
    )
    add_store(parser)
    for name in ("agent", "service", "metric"):
        parser.add_argument(f"--{name}", action="append", default=[], metavar="NAME", help=f"only this {name}; repeatable")
    parser.add_argument("--since", metavar="TIME", help="only turns kept since: 24h, 7d, 2026-11-20, 2026-11-20T12:00")
    parser.add_argument("--until", metavar="TIME", help="only turns kept before")
    parser.add_argument(
        "--effect", type=float, metavar="SIZE", help="the difference that matters, for the number of turns that are still needed"
    )
    parser.add_argument("--gate", action="store_true", help="exit 1 if a metric is worse")
    parser.add_argument(
        "--format", choices=("table", "json", "markdown", "html"), default="table", help="a text (the default), or one of these"
    )
    parser.add_argument("--out", metavar="FILE", help="where to (default: standard output)")


def run(args: argparse.Namespace) -> int:
    """Compare, and write.

    Raises:
        AgentEvalError: wrong use, or there is nothing to compare.
    """
    if len(args.groups) not in (0, 2):
        raise ConfigError("GROUP: name two groups, the earlier one first, or none")
    if args.effect is not None and not args.effect > 0:
        raise ConfigError(f"--effect {args.effect:g}: it must be above 0")
    wanted = Wanted(
        since=moment(args.since, "--since"), until=moment(args.until, "--until"), agents=args.agent, services=args.service,
        metrics=args.metric,
    )  # fmt: skip
    with StoreReader(store_path(args.store, load_config(args.config))) as reader:
        found = compare_groups(reader, args.by, wanted, args.groups, args.effect)
    text = json.dumps(as_data(found), indent=2) if args.format == "json" else RENDERINGS[args.format](found)
    if args.out is None:
        print(text)
    else:
        Path(args.out).write_text(f"{text}\n", encoding="utf-8")
    return FAILED if args.gate and found.worse else OK
