"""``otel-agenteval check-config``: validate a configuration and print the effective one."""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

from ..config.loader import effective_yaml, load_what_is_right
from ..config.root import Config
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
from .scoring import warn_of_missing_parameters

EXIT_CODES = {
    OK: "the configuration is valid",
    UNUSABLE: "an argument is invalid, the file can't be read, or the configuration is invalid",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="YAML configuration")


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
    """Name the files that can't be written on this machine because their folder is missing."""
    outlets, queue, cache = config.outlets, config.judge.queue, config.judge.cache
    files = {
        "outlets.store.path": None if outlets.store is None else outlets.store.path,
        "outlets.jsonl": outlets.jsonl,
        "outlets.otlp_file": outlets.otlp_file,
        "judge.queue.path": queue.path,
        "judge.cache.path": cache.path,
    }
    for option, file in files.items():
        if file is not None and not is_address(file) and not Path(file).absolute().parent.is_dir():
            print(f"{option}: folder not found: {Path(file).absolute().parent}; create it before you start", file=sys.stderr)
