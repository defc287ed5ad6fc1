"""Entry point of the command line ``otel-agenteval``.

Each command is a module in this folder, with a table ``EXIT_CODES`` and the functions ``add_arguments`` and ``run``.
:data:`COMMANDS` contains each command's name and purpose, so ``--help`` doesn't import the modules.
"""

from __future__ import annotations

import argparse
import codecs
import errno
import importlib
import io
import json
import logging
import os
import sys
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ..core.display import LINES, escaped
from ..core.errors import AgentEvalError, meant, refusal
from ..core.version import __version__
from . import FAILED, INTERRUPTED, OK, UNUSABLE, as_text

COMMANDS = {
    "demo": "run a scripted agent and print its turns and scores, without network or API key",
    "eval": "score the turns of recorded traces",
    "experiment": "run a task on each case of a dataset, and score its turns",
    "compare": "compare the stored scores of two versions, models, or other groups of turns",
    "differences": "find properties that are more frequent in failed turns than in passed turns",
    "failure-modes": "group failed turns by their first fault, with rates and trends",
    "estimates": "estimate the mean scores and pass rates of all turns from the scores of sampled turns",
    "calibrate": "compare a judge's scores with human labels",
    "detectors": "count the alarms of the default metrics on your traffic, and suggest settings that avoid false alarms",
    "turns": "print the turns of recorded traces as JSON Lines (turn.v1), or the latest turns of a store",
    "record": "run a program, and write its spans to a file that `eval` and `turns` can read",
    "doctor": "find the reason for missing scores: check packages, a program's spans, or a sidecar",
    "metrics": "list the metrics",
    "explain": "print the documentation of a metric",
    "check-config": "validate a configuration, and print the options in effect (`serve` and `worker` have some other defaults)",
    "serve": "run the sidecar: receive OTLP from Collectors and SDKs, score turns, and serve /metrics",
    "worker": "score spans from Kafka, or run judge jobs from Redis, on any number of machines",
    "backfill": "score stored traces in Parquet, OTLP/JSON, or ClickHouse",
    "why": "print each metric's result for a turn, with the reason and the evidence",
    "ui": "show turns and scores in a browser",
    "export": "write the scores of a store as JSON Lines, CSV, or Parquet",
    "forget": "delete the data of a conversation or a user from the store, the journal, and the judge queue, and clear the judge cache",
    "judge": "test the configured judge for prompt injection, agreement with labels, and drift",
}
"""Mapping from command to purpose. A command's module has the command's name, with underscores instead of hyphens."""

EXAMPLES = {
    "demo": "--once", "eval": "traces.jsonl --gate", "experiment": "app:answer cases.jsonl --gate",
    "compare": "--store scores.db --gate", "differences": "--store scores.db --metric code_tool_success",
    "failure-modes": "--store scores.db --since 24h", "estimates": "--store scores.db --by service.version",
    "calibrate": "labels.jsonl --store scores.db", "detectors": "traces.jsonl", "turns": "traces.jsonl --conversations",
    "record": "-o traces.jsonl -- python app.py", "doctor": "-- python app.py", "metrics": "--family rag_judges",
    "explain": "code_tool_success", "check-config": "agenteval.yaml", "serve": "--config agenteval.yaml --journal journal/",
    "worker": "--spans kafka://localhost:9092/otlp_spans", "backfill": "exports/ --out scored/",
    "why": "4d7bd59c --store scores.db", "ui": "scores.db", "export": "--store scores.db --format csv --out scores.csv",
    "forget": "--user 4711 --config agenteval.yaml", "judge": "probe --config agenteval.yaml",
}  # fmt: skip

_log = logging.getLogger("otel_agenteval")


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code. For help or an invalid command line, print a text and raise SystemExit."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # the shell closed it, for example with `>&-`
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - open until the end
    arguments = sys.argv[1:] if argv is None else list(argv)
    if arguments[:1] not in (["serve"], ["worker"]):
        return _run(_parsed(arguments))
    from ..server.process import Signals

    with Signals() as signals:  # first, because SIGHUP would end a process that is still importing modules
        args = _parsed(arguments)
        args.signals = signals
        return _run(args)


def _escaped(error: UnicodeError) -> tuple[str, int]:
    r"""Escape characters that the encoding lacks, in JSON syntax. (``backslashreplace`` writes ``\xe4``, which isn't JSON.)"""
    assert isinstance(error, UnicodeEncodeError)
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end


_JSON_ESCAPES = "otel-agenteval"
codecs.register_error(_JSON_ESCAPES, _escaped)


def _run(args: argparse.Namespace) -> int:
    if isinstance(sys.stdout, io.TextIOWrapper):  # some encodings of terminals and files lack characters of the output
        sys.stdout.reconfigure(errors=_JSON_ESCAPES)
    if hasattr(args, "log_format"):
        from ..server import logformat

        logformat.set_up(args.log_format, args.log_level)
    try:
        if hasattr(args, "imports"):
            from .options import apply_imports

            apply_imports(args)
        code: int = command_named(args.command).run(args)
        sys.stdout.flush()
    except AgentEvalError as error:
        if getattr(args, "log_format", None) == "json":
            _log.error("%s", error)
        else:
            print(f"otel-agenteval: {escaped(str(error), LINES)}", file=sys.stderr)
        return UNUSABLE
    except OSError as error:
        if error.errno not in (errno.EPIPE, errno.ENOSPC, errno.EDQUOT):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # otherwise, Python writes again at exit
        if error.errno == errno.EPIPE:  # the reader closed the pipe, as `head` does
            return OK
        print(f"otel-agenteval: can't write the output: {error.strerror}", file=sys.stderr)
        return UNUSABLE
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
        parser.error(f"unknown command {name!r}{meant(name, COMMANDS) or ';'} `otel-agenteval --help` lists the commands")
    args, unknown = parser.parse_known_args(arguments)
    if unknown:
        hint = f"`otel-agenteval {name} --help` lists the"
        option = next((argument.partition("=")[0] for argument in unknown if argument.startswith("--")), None)
        if option is None:
            parser.error(f"{name}: unexpected argument {unknown[0]!r}; {hint} arguments")
        parser.error(f"{name}: unknown option {option}{meant(option, _options_of(parser, name)) or ';'} {hint} options")
    return args


def _options_of(parser: argparse.ArgumentParser, command: str) -> list[str]:
    found: list[str] = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            below = action.choices.values() if command not in action.choices else [action.choices[command]]
            found += [option for inner in below for option in _options_of(inner, command)]
        else:
            found += [option for option in action.option_strings if option.startswith("--")]
    return found


def command_named(name: str) -> Any:
    """Import a command's module, which contains ``EXIT_CODES``, ``add_arguments``, and ``run``."""
    return importlib.import_module(f".{name.replace('-', '_')}", __package__)


def build_parser(commands: Iterable[str] = COMMANDS) -> argparse.ArgumentParser:
    """Return the command-line parser. Only the modules of ``commands`` are imported."""
    codes = {
        OK: "success",
        FAILED: "the command ran, and its result is bad, such as a failed gate",
        UNUSABLE: "the command can't run, for example because an argument is invalid or an input can't be read",
        INTERRUPTED: "Control+C interrupted the command",
    }
    parser = CommandParser(
        prog="otel-agenteval",
        description="Evaluate AI agent turns from OpenTelemetry traces. For the options of a command, run `otel-agenteval COMMAND --help`.",
        epilog=as_text(codes),
        formatter_class=HelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"otel-agenteval {__version__}")
    parsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, purpose in COMMANDS.items():
        about = f"{purpose[0].upper()}{purpose[1:]}."
        command = parsers.add_parser(name, help=purpose, description=about, formatter_class=HelpFormatter, allow_abbrev=False)
        if name in commands:
            module = command_named(name)
            command.epilog = f"{as_text(module.EXIT_CODES)}\n\nexample:\n  otel-agenteval {name} {EXAMPLES[name]}"
            module.add_arguments(command)
    return parser


class CommandParser(argparse.ArgumentParser):
    """Parser that reports an invalid choice in one line, with similar valid choices. Also used for subcommands."""

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            names, name = [str(choice) for choice in action.choices], "/".join(action.option_strings) or str(action.metavar)
            rule = f"must be one of {', '.join(names)}{meant(str(value), names)}"
            self.exit(UNUSABLE, f"otel-agenteval: {refusal(name, repr(value), rule)}\n")


class HelpFormatter(argparse.HelpFormatter):
    """Formatter that wraps each line of a description separately, which preserves the table of exit codes."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n".join(
            textwrap.fill(line, width, subsequent_indent=" " * 7 if line.startswith(" ") else "", break_on_hyphens=False)
            for line in text.splitlines()
        )
