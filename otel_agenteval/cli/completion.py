"""``otel-agenteval completion``: print a script that completes commands, options, files and metric names in a shell.

The package shtab makes the script from the parser. The script is static: pressing the tab key starts no Python.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from ..core.extras import require
from ..metrics.registry import catalog
from .exit_codes import OK, UNUSABLE

SHELLS = ("bash", "zsh", "tcsh")
EXIT_CODES = {
    OK: "the script was printed",
    UNUSABLE: "the shell is unknown, or the extra [completion] isn't installed",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help='bash: put eval "$(otel-agenteval completion bash)" into ~/.bashrc')


def run(args: argparse.Namespace) -> int:
    """Print the script.

    Raises:
        MissingExtra: shtab is not installed.
    """
    from .main import build_parser

    shtab = require("shtab", feature="shell completion", extra="completion")
    parser = build_parser()
    for command, action in _actions_of(parser):
        _complete(command, action, shtab)
    print(shtab.complete(parser, shell=args.shell))
    return OK


def _actions_of(parser: argparse.ArgumentParser, command: str = "") -> Iterator[tuple[str, Any]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                yield from _actions_of(inner, name)
        else:
            yield command, action


def _complete(command: str, action: Any, shtab: Any) -> None:
    """Add the values of an argument that the parser doesn't list. The placeholder of the argument identifies files and folders."""
    if action.metavar in ("FILE", "SOURCE"):
        action.complete = shtab.FILE
    elif action.metavar == "DIR":
        action.complete = shtab.DIRECTORY
    elif (command, action.dest) in (("explain", "name"), ("export", "metric")):
        action.choices = [metric.name for metric in catalog()]
    elif (command, action.dest) == ("metrics", "family"):
        action.choices = sorted({metric.family for metric in catalog()})
