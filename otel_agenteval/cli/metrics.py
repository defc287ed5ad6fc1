"""``otel-agenteval metrics``: list the metrics."""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from collections.abc import Callable

from ..core.errors import ConfigError, meant
from ..metrics.descriptions import described, headline
from ..metrics.names import names_of
from ..metrics.registry import Metric, catalog
from ..outlets.turn_text import columns
from . import OK, UNUSABLE
from .options import add_imports

EXIT_CODES = {OK: "the metrics that match all filters were listed", UNUSABLE: "an argument is invalid"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON list, with parameters and aliases")
    parser.add_argument("--family", metavar="NAME", help="only metrics of this family")
    parser.add_argument("--kind", choices=("code", "embed", "llm"), help="only computed, embedding-based, or judged metrics")
    parser.add_argument("--need", metavar="FIELD", help="only metrics that need this field of the turn, for example `tool_calls`")
    add_imports(parser)
    parser.add_argument(
        "--seed", metavar="NAME", help="only metrics that you can also call by their name in this tool, such as `deepeval`"
    )


def run(args: argparse.Namespace) -> int:
    found = list(catalog())
    choices: dict[str, tuple[str | None, Callable[[Metric], set[str]]]] = {
        "family": (args.family, lambda metric: {metric.family}),
        "need": (args.need, lambda metric: set(metric.needs)),
        "seed": (
            args.seed,
            lambda metric: {name.split(":")[0] for name in (*metric.aliases, *names_of(metric.name)) if ":" in name},
        ),
    }
    for name, (wanted, values_of) in choices.items():
        if wanted is not None:
            known = set().union(*(values_of(metric) for metric in catalog()))
            if wanted not in known:
                raise ConfigError(
                    f"--{name}: unknown value {wanted!r}{meant(wanted, known)} (allowed: {', '.join(sorted(known))})"
                )
            found = [metric for metric in found if wanted in values_of(metric)]
    found = [metric for metric in found if args.kind in (None, metric.kind)]
    if args.json:
        print(json.dumps([described(metric) for metric in found], indent=1, default=str))
        return OK
    if not found:
        print("no metric matches all filters", file=sys.stderr)
        return OK
    width = columns(sys.stdout)
    family = None
    for metric in sorted(found, key=lambda m: (m.family, m.name)):
        if metric.family != family:
            print(metric.family if family is None else f"\n{metric.family}")
            family = metric.family
        lead = f"  {'*' if metric.inline else ' '} {metric.name:<28} "
        print(textwrap.fill(headline(metric), width, initial_indent=lead, subsequent_indent=" " * len(lead)))
    print("\n* default metric.  For details: otel-agenteval explain NAME")
    return OK
