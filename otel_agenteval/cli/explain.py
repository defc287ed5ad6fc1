"""``otel-agenteval explain``: a metric's documentation."""

from __future__ import annotations

import argparse
import json
import textwrap

from ..metrics.descriptions import type_name, value_of
from ..metrics.other_tools import names_of
from ..metrics.registry import Metric, groups_of, meaning_of
from ..metrics.spellings import Refused, Spellings, written
from .exit_codes import OK, UNUSABLE

EXIT_CODES = {
    OK: "the documentation was printed",
    UNUSABLE: "wrong use, or there is no such metric",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to its parser."""
    parser.add_argument(
        "name", metavar="NAME", help="canonical name, or a name in another catalogue or tool (trusys:icontains, deepeval:GEval)"
    )


def run(args: argparse.Namespace) -> int:
    """Print it."""
    metric, preset, spellings, note = meaning_of(args.name)
    print(f"{metric.name}  ({metric.family})\n")
    print(metric.doc.replace("``", "`"))
    if note:
        print(f"\nAs {args.name}: {note.replace('`', '')}")
    print(f"\nValue:       {value_of(metric)}")
    print(f"Needs:       {', '.join(metric.needs) or 'nothing'}")
    if metric.applies_to:
        print(f"Applies to:  {metric.applies_to.replace('``', '`')}")
    for name, facts in (("Uses", metric.uses), ("References", metric.references)):
        if facts:
            print(f"{name + ':':<13}{', '.join(facts)}")
    print(f"Default:     {'in the inline pack' if metric.inline else 'off; configure it under metrics'}")
    if groups := groups_of(metric):
        print(f"Groups:      {', '.join(groups)}")
    for name, value in metric.live.items():
        print(f"Configured:  {name}={value!r}, where an entry of the configuration has no parameters of its own")
    if metric.heavy:
        where = "opens media, on a thread beside the worker" if metric.media else "runs on the worker alone"
        print(f"Heavy:       {where}, so it has no span event")
    if metric.extra:
        print(f"Extra:       pip install 'otel-agenteval[{metric.extra}]'")
    for p in metric.parameters.values():
        default = "required" if p.required else f"default {json.dumps(preset.get(p.name, p.default))}"
        if p.name in preset and not p.required:
            default += f", which {args.name} sets"
        print(f"Parameter:   {p.name} ({type_name(p.annotation)}), {default}")
    _print_names(metric, spellings)
    return OK


def _print_names(metric: Metric, spellings: Spellings) -> None:
    """What parameters are called under the name that was asked for, and what the metric is called elsewhere."""
    for theirs, spelling in spellings.items():
        if not isinstance(spelling, Refused):
            print(f"Spelled:     {theirs}: {written(spelling)}".replace("`", ""))
    for lead, names in (("Also called: ", [*metric.aliases]), ("Other tools: ", names_of(metric.name))):
        if names:
            print(textwrap.fill(", ".join(names), 100, initial_indent=lead, subsequent_indent=" " * 13, break_on_hyphens=False))
