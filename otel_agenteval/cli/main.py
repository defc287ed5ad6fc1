"""The command line: ``otel-agenteval``."""

from __future__ import annotations

import argparse
import importlib
import io
import logging
import os
import sys
from collections.abc import Iterable, Sequence
from types import ModuleType

from .. import __version__
from ..core.errors import AgentEvalError
from .exit_codes import BAD_USE

COMMANDS = {
    "turns": "print the turns of recorded traces, one JSON object (form turn.v1) per line",
    "eval": "score the turns of recorded traces",
    "worker": "the engine beyond one machine: spans from Kafka, judge jobs from Redis",
    "backfill": "score traces that were stored: Parquet, OTLP/JSON, ClickHouse",
    "why": "say for each metric what became of it on a turn, and by what",
    "export": "write the scores of a store: JSON lines, CSV or Parquet",
    "metrics": "list the metrics",
    "explain": "print a metric's documentation",
    "check-config": "validate a configuration and print what is in effect",
    "demo": "a scripted agent, its turns and scores, and /metrics; no network, no key",
    "judge": "check the configured judge",
    "serve": "the sidecar: take OTLP from Collectors and SDKs, score its turns, serve /metrics",
}
"""Each is a module of this package, with an underscore for a hyphen; only the one that is run is imported."""

_log = logging.getLogger("otel_agenteval")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the return value is the exit status (0 well, 1 a gate failed, 2 wrong use or nothing to read)."""
    given = sys.argv[1:] if argv is None else list(argv)
    args = build_parser(given[:1]).parse_args(given)
    command = module_of(args.command)
    if isinstance(sys.stdout, io.TextIOWrapper):  # agents write what a terminal's or file's encoding may not have
        sys.stdout.reconfigure(errors="backslashreplace")
    if hasattr(args, "log_format"):
        from ..server import logformat

        logformat.set_up(args.log_format, args.log_level)
    try:
        status: int = command.run(args)
        sys.stdout.flush()
    except AgentEvalError as error:
        if getattr(args, "log_format", None) == "json":
            _log.error("%s", error)
        else:
            print(f"otel-agenteval: {error}", file=sys.stderr)
        return BAD_USE
    except BrokenPipeError:  # the reader of our output went away, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130
    return status


def module_of(command: str) -> ModuleType:
    """The module of a command."""
    return importlib.import_module(f".{command.replace('-', '_')}", __package__)


def build_parser(commands: Iterable[str] = COMMANDS) -> argparse.ArgumentParser:
    """The parser of the command line, with the arguments of these commands and the names of all."""
    parser = argparse.ArgumentParser(prog="otel-agenteval", description="Scores for agent turns, from OpenTelemetry traces.")
    parser.add_argument("--version", action="version", version=f"otel-agenteval {__version__}")
    parsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, summary in COMMANDS.items():
        command = parsers.add_parser(name, help=summary)
        if name in commands:
            module_of(name).add_arguments(command)
    return parser
