"""``otel-agenteval check-config``: validate a configuration and print the effective one."""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..config.loader import effective_yaml, load_what_is_right
from ..config.root import Config
from ..config.section import Section, kind_of, options_of
from ..config.types import FILE
from ..core.errors import ConfigError
from ..core.faults import Faults
from ..engine.selected import selected
from ..evaluation.references import ReferenceSources
from ..evaluation.selection import media_rules
from ..judging.models import embedder_from, judge_from
from ..judging.sampling import rules_of
from ..metrics.bound_metric import BoundMetric
from ..outlets.store.postgres import is_address
from .exit_codes import OK, UNUSABLE
from .options import add_imports
from .scoring import warn_of_missing_parameters

EXIT_CODES = {
    OK: "the configuration is valid",
    UNUSABLE: "an argument is invalid, the file can't be read, or the configuration is invalid",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="YAML configuration")
    add_imports(parser)


def run(args: argparse.Namespace) -> int:
    """Print the effective configuration, with all defaults.

    Raises:
        ConfigError: the configuration is invalid, or the file can't be read.
    """
    if not Path(args.file).exists():
        raise ConfigError(f"{args.file}: file not found")
    faults = Faults()
    config = load_what_is_right(args.file, faults)
    metrics: Sequence[BoundMetric] = ()
    with faults:
        found = selected(config)
        metrics = found.of_turns
        for of_one_kind in (found.of_turns, found.of_conversations):
            with faults:
                rules_of(config, of_one_kind)
    for make in (judge_from, embedder_from, ReferenceSources, media_rules):  # each checks its own section
        with faults:
            make(config)
    faults.check()
    warn_of_missing_parameters(metrics)
    _warn_of_missing_folders(config)
    print(effective_yaml(config), end="")
    names = ", ".join(metric.name for metric in metrics)
    print(
        textwrap.fill(f"valid; {len(metrics)} metrics on every turn: {names}", 100, initial_indent="# ", subsequent_indent="#   ")
    )
    return OK


def _warn_of_missing_folders(config: Config) -> None:
    """Name the files of outlets, queue and cache that can't be written on this machine because their folder is missing."""
    for option, file in (*_files_of(config.outlets, "outlets"), *_files_of(config.judge, "judge")):
        if not is_address(file) and not Path(file).absolute().parent.is_dir():
            print(f"{option}: folder not found: {Path(file).absolute().parent}; create it before you start", file=sys.stderr)


def _files_of(section: Section, path: str) -> Iterator[tuple[str, str]]:
    """Yield the path and the value of each option that names a file."""
    for name, option in options_of(type(section)).items():
        value = getattr(section, name)
        if isinstance(value, Section):
            yield from _files_of(value, f"{path}.{name}")
        elif isinstance(value, str) and kind_of(option.metadata, option.annotation) is FILE:
            yield f"{path}.{name}", value
