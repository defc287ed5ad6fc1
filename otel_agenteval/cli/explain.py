"""``otel-agenteval explain``: print a metric's documentation."""

from __future__ import annotations

import argparse
import json
import textwrap

from ..metrics.descriptions import type_name, value_of
from ..metrics.names import names_of
from ..metrics.registry import groups_of, resolve
from ..metrics.spellings import Unsupported, meaning_of
from . import OK, UNUSABLE
from .options import add_imports

EXIT_CODES = {OK: "the documentation was printed", UNUSABLE: "an argument is invalid, or the metric is unknown"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="name of a metric, or its name in another tool, such as `deepeval:GEval`")
    add_imports(parser)


def run(args: argparse.Namespace) -> int:
    metric, preset, spellings, note, *_ = resolve(args.name)
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
    print(f"Default:     {'on' if metric.inline else 'off; add it under metrics in the configuration'}")
    if groups := groups_of(metric):
        print(f"Groups:      {', '.join(groups)}")
    for name, value in metric.live.items():
        print(f"Configured:  {name}={value!r}, if the metric's configuration entry sets no parameters except threshold")
    if metric.heavy:
        where = "opens media on a separate thread" if metric.media else "runs on the worker thread only"
        print(f"Heavy:       {where}; its scores aren't added as span events")
    if metric.extra:
        print(f"Extra:       pip install 'otel-agenteval[{metric.extra}]'")
    for p in metric.parameters.values():
        default = "required" if p.required else f"default {json.dumps(preset.get(p.name, p.default))}"
        if p.name in preset and not p.required:
            default += f", set by {args.name}"
        print(f"Parameter:   {p.name} ({type_name(p.annotation)}), {default}")
    for theirs, spelling in spellings.items():
        if not isinstance(spelling, Unsupported):
            print(f"Spelled:     {theirs}: {meaning_of(spelling)}".replace("`", ""))
    for lead, names in (("Also called: ", [*metric.aliases]), ("Other tools: ", names_of(metric.name))):
        if names:
            print(textwrap.fill(", ".join(names), 100, initial_indent=lead, subsequent_indent=" " * 13, break_on_hyphens=False))
    return OK
