"""``otel-agenteval check-config``: validate a configuration, and print what is in effect."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Sequence
from pathlib import Path

from ..config.loader import load_what_is_right
from ..config.writing import effective_yaml
from ..core.errors import ConfigError
from ..core.faults import Faults
from ..engine.selected import selected
from ..evaluation.references import ReferenceSources
from ..evaluation.selection import media_rules
from ..judging.models import embedder_from, judge_from
from ..judging.sampling import rules_of
from ..metrics.bound_metric import BoundMetric
from .exit_codes import OK, UNUSABLE
from .messages import warn_of_missing_parameters

EXIT_CODES = {
    OK: "the configuration is valid",
    UNUSABLE: "wrong use, the file cannot be read, or the configuration has a fault",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to its parser."""
    parser.add_argument("file", metavar="FILE")


def run(args: argparse.Namespace) -> int:
    """Validate it.

    Raises:
        ConfigError: it has a fault, or is not there.
    """
    if not Path(args.file).exists():
        raise ConfigError(f"{args.file}: no such file")
    faults = Faults()
    config = load_what_is_right(args.file, faults)
    metrics: Sequence[BoundMetric] = ()
    with faults:
        found = selected(config)
        metrics = found.of_turns
        for of_one_kind in (found.of_turns, found.of_conversations):
            with faults:
                rules_of(config, of_one_kind)
    for make in (judge_from, embedder_from, ReferenceSources, media_rules):  # they refuse what is missing
        with faults:
            make(config)
    faults.check()
    warn_of_missing_parameters(metrics)
    print(effective_yaml(config), end="")
    names = ", ".join(metric.name for metric in metrics)
    print(
        textwrap.fill(f"valid; {len(metrics)} metrics on every turn: {names}", 100, initial_indent="# ", subsequent_indent="#   ")
    )
    return OK
