"""The command line: ``otel-agenteval``.

A command is a module of this package with a table ``EXIT_CODES`` and two functions, ``add_arguments`` and ``run``. Its name and what
it is for stand in :data:`COMMANDS`, so that the list of commands imports none of them, and a command imports no other.
"""

from __future__ import annotations

import argparse
import importlib
import io
import logging
import os
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, cast

from .. import __version__
from ..core.errors import AgentEvalError, nearest
from ..core.terminal import LINES, escaped
from .exit_codes import FAILED, INTERRUPTED, OK, UNUSABLE, as_text

COMMANDS = {
    "demo": "run a scripted agent and show its turns, their scores and /metrics; needs no network and no key",
    "eval": "score the turns of recorded traces",
    "experiment": "run a task over a data set, and score the turns that it makes",
    "compare": "compare two versions, models or prompts on live traffic",
    "estimates": "say what the scores of a store mean for all turns, judged or not",
    "calibrate": "find out how far a judge can be trusted, by labels of people",
    "turns": "print the turns of recorded traces, one JSON object (form turn.v1) per line",
    "record": "run a program and keep its spans in a file that eval and turns read; needs no Collector",
    "doctor": "find out why no score comes: what is installed, what a program sends, what a sidecar received",
    "metrics": "list the metrics",
    "explain": "print the documentation of a metric",
    "check-config": "validate a configuration and print what is in effect",
    "serve": "run the sidecar: receive OTLP from Collectors and SDKs, score turns, serve /metrics",
    "worker": "run the engine beyond one machine: spans from Kafka, judge jobs from Redis",
    "backfill": "score stored traces: Parquet, OTLP/JSON, ClickHouse",
    "why": "print the outcome of each metric on a turn, and its reason",
    "ui": "look at turns, their scores and why, in a browser",
    "export": "write the scores of a store as JSON lines, CSV or Parquet",
    "judge": "check the configured judge",
    "completion": "print the script that completes this command line in a shell",
}
"""What each command is for. Its module has the same name, with an underscore for a hyphen."""

_log = logging.getLogger("otel_agenteval")


class Command(Protocol):
    """What the module of a command has."""

    EXIT_CODES: Mapping[int, str]

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the arguments of the command to its parser."""

    def run(self, args: argparse.Namespace) -> int:
        """Do it, and return the exit code."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; without a command print the help."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    if arguments[:1] not in (["serve"], ["worker"]):
        return _run(_parsed(arguments))
    from ..server.signals import Signals

    with Signals() as signals:  # before anything slow: SIGHUP would end a process that is still importing
        args = _parsed(arguments)
        args.signals = signals
        return _run(args)


def _run(args: argparse.Namespace) -> int:
    if isinstance(sys.stdout, io.TextIOWrapper):  # agents write what a terminal's or file's encoding may not have
        sys.stdout.reconfigure(errors="backslashreplace")
    if hasattr(args, "log_format"):
        from ..server import logformat

        logformat.set_up(args.log_format, args.log_level)
    try:
        code = command_named(args.command).run(args)
        sys.stdout.flush()
    except AgentEvalError as error:
        if getattr(args, "log_format", None) == "json":
            _log.error("%s", error)
        else:
            print(f"otel-agenteval: {escaped(str(error), LINES)}", file=sys.stderr)
        return UNUSABLE
    except BrokenPipeError:  # the reader of our output went away, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except KeyboardInterrupt:
        return INTERRUPTED
    return code


def _parsed(arguments: list[str]) -> argparse.Namespace:
    parser = build_parser(arguments[:1])
    if not arguments:
        parser.print_help(sys.stderr)
        parser.exit(UNUSABLE)
    name = arguments[0]
    if not name.startswith("-") and name not in COMMANDS:
        close = nearest(name, COMMANDS, 1)[0]
        parser.error(f"there is no command {name!r}; did you mean {close!r}? `otel-agenteval --help` lists the commands")
    return parser.parse_args(arguments)


def command_named(name: str) -> Command:
    """The module of a command."""
    return cast("Command", importlib.import_module(f".{name.replace('-', '_')}", __package__))


def build_parser(commands: Iterable[str] = COMMANDS) -> argparse.ArgumentParser:
    """The parser of the command line.

    Args:
        commands: those whose arguments are wanted. Of the others only the names are known, and their modules are not imported.
    """
    codes = {
        OK: "success",
        FAILED: "the result is bad; the help of a command says when",
        UNUSABLE: "wrong use, or something that the command needs cannot be read",
        INTERRUPTED: "interrupted",
    }
    parser = argparse.ArgumentParser(
        prog="otel-agenteval",
        description="Scores for agent turns, from OpenTelemetry traces. `otel-agenteval COMMAND --help` says more about a command.",
        epilog=as_text(codes),
        formatter_class=HelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"otel-agenteval {__version__}")
    parsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, purpose in COMMANDS.items():
        about = f"{purpose[0].upper()}{purpose[1:]}."
        command = parsers.add_parser(name, help=purpose, description=about, formatter_class=HelpFormatter)
        if name in commands:
            module = command_named(name)
            command.epilog = as_text(module.EXIT_CODES)
            module.add_arguments(command)
    return parser


class HelpFormatter(argparse.HelpFormatter):
    """Wraps each line of a description by itself, so that a table of exit codes stays one."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        lines = text.splitlines()
        return "\n".join(textwrap.fill(line, width, subsequent_indent=" " * 7 if line.startswith(" ") else "") for line in lines)
