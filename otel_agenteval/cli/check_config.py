"""``otel-agenteval check-config``: validate a configuration and print the options in effect."""

from __future__ import annotations

import argparse
import os
import sys
import textwrap
from pathlib import Path

from ..config.loader import RESERVED_ENV, effective_yaml, load_valid_part
from ..core.errors import ConfigError, Faults
from ..engine.selected import selected
from ..evaluation.references import ReferenceSources
from ..evaluation.selection import media_rules
from ..judging.models import embedder_from, judge_from
from ..judging.sampling import rules_of
from ..outlets.turn_text import number_of
from . import OK, UNUSABLE
from .diagnosis import GOOD, configuration_findings, option_findings
from .options import add_imports
from .serve import check_receivers

EXIT_CODES = {
    OK: "the configuration is valid",
    UNUSABLE: "an argument is invalid, the file can't be read, or the configuration is invalid",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", nargs="?", metavar="FILE", help="YAML configuration file (default: the file in OTEL_AGENTEVAL_CONFIG_FILE)"
    )
    parser.add_argument("--config", metavar="FILE", help="same as FILE")
    add_imports(parser)


def run(args: argparse.Namespace) -> int:
    file = args.file or args.config or os.environ.get(RESERVED_ENV[1])
    if not file:
        raise ConfigError("FILE: required, because OTEL_AGENTEVAL_CONFIG_FILE isn't set")
    if not Path(file).exists():
        raise ConfigError(f"{file}: file not found")
    faults = Faults()
    config = load_valid_part(file, faults)
    with faults:
        found = selected(config)
        for of_one_kind in (found.of_turns, found.of_conversations):
            with faults:
                rules_of(config, of_one_kind)
    for make in (judge_from, embedder_from, ReferenceSources, media_rules):  # each of these checks its section
        with faults:
            make(config)
    if "serve" in config.options_given:
        from ..core.files import fault_of_folder
        from ..server.app import check_start

        with faults:
            check_receivers(config)
            check_start(config)
        with faults:
            if config.serve.journal is not None and (fault := fault_of_folder(config.serve.journal)) is not None:
                raise ConfigError(f"{config.where(('serve', 'journal'))}: {fault}")
    faults.check()
    for level, text, advice in (*option_findings(config), *configuration_findings(config, found)):
        if level != GOOD:
            print(f"{text}; {advice}" if advice else text, file=sys.stderr)
    print(effective_yaml(config), end="")
    for start, of, metrics in (("valid; ", "turn", found.of_turns), ("", "conversation", found.of_conversations)):
        if metrics or of == "turn":
            text = f"{start}{number_of(len(metrics), 'metric')} on each {of}: {', '.join(metric.name for metric in metrics)}"
            print(textwrap.fill(text, 100, initial_indent="# ", subsequent_indent="#   "))
    return OK
