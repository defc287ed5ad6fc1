"""Options that several commands share, parsers for option values, and messages about recorded traces."""

from __future__ import annotations

import argparse
import datetime
import importlib
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from ..config.loader import load_config, variable_of
from ..config.metrics import Preset
from ..config.root import Config
from ..config.types import seconds, split_address
from ..core.display import LINES, escaped
from ..core.errors import ConfigError, refusal
from ..core.wellformed import for_document
from ..server import logformat
from . import OK, UNUSABLE

if TYPE_CHECKING:
    from ..outlets.store.reader import StoreReader, Wanted
    from ..turns.recordings import Reading

SINCE = "only turns stored since this time; TIME is a duration before now, such as 24h or 7d, or a date or time in UTC, such as 2026-11-20 or 2026-11-20T12:00"

Arguments = argparse._ActionsContainer
"""Parser or argument group to which options are added."""


def add_files(parser: argparse.ArgumentParser, *, needed: bool = True) -> None:
    parser.add_argument(
        "files", nargs="+" if needed else "*", metavar="FILE",
        help="recorded traces: OTLP/JSON lines, or an export from a console exporter or a tracing backend, such as Jaeger, Tempo, or Langfuse; files can be compressed (.gz, or .zst with the extra `[zstd]`); `-` reads standard input",
    )  # fmt: skip


def add_jobs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--jobs", metavar="N", help="number of processes for large files (default: one per core)")


def number_of_processes(text: str) -> int:
    if text.isdecimal() and 1 <= int(text) <= 256:
        return int(text)
    raise argparse.ArgumentTypeError(f"must be an integer from 1 to 256, got {text!r}")


def add_config(parser: Arguments) -> None:
    parser.add_argument(
        "--config", metavar="FILE", help="YAML configuration file (default: the file in OTEL_AGENTEVAL_CONFIG_FILE)"
    )
    add_imports(parser)


def add_scored_config(parser: Arguments) -> None:
    """Add configuration options for a command that scores turns. :func:`scored_config` reads these options."""
    add_config(parser)
    parser.add_argument(
        "--preset", choices=get_args(Preset), help="also run this evaluation tool's default metrics, with the tool's thresholds"
    )


def scored_config(args: argparse.Namespace) -> Config:
    return load_config(args.config, overrides=None if args.preset is None else {"preset": args.preset})


def add_imports(parser: Arguments) -> None:
    parser.add_argument(
        "--import", action="append", default=[], dest="imports", metavar="MODULE",
        help="Python module with your own metrics, installed or in the current folder; repeatable",
    )  # fmt: skip


def apply_imports(args: argparse.Namespace) -> None:
    """Import the ``--import`` modules, and add them to the configuration of this process and its child processes."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)  # at the end, so that installed modules take precedence
    for name in args.imports:
        try:
            importlib.import_module(name)
        except Exception as error:
            where = "The module must be in the current folder or on the Python path"
            raise ConfigError(f"--import: {name}: {type(error).__name__}: {error}. {where}") from None
    if args.imports:
        variable = variable_of(("imports",))
        os.environ[variable] = ",".join([*filter(None, [os.environ.get(variable)]), *args.imports])


def add_program(parser: argparse.ArgumentParser, purpose: str) -> None:
    parser.add_argument("program", nargs=argparse.REMAINDER, metavar="-- PROGRAM", help=purpose)


def program_of(args: argparse.Namespace) -> list[str]:
    program: list[str] = args.program
    return program[1:] if program[:1] == ["--"] else program


def add_logging(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--log-format", choices=logformat.FORMATS, default=logformat.DEFAULT_FORMAT,
        help="format of the log on standard error: text (default) or one JSON object per line",
    )  # fmt: skip
    parser.add_argument(
        "--log-level", choices=logformat.LEVELS, default=logformat.DEFAULT_LEVEL, help="lowest log level (default: %(default)s)"
    )


def add_store(parser: Arguments) -> None:
    parser.add_argument(
        "--store", metavar="FILE",
        help="score store: SQLite file or PostgreSQL address (default: outlets.store in the configuration)",
    )  # fmt: skip
    add_config(parser)


def add_grouping(parser: Arguments, default: str) -> None:
    parser.add_argument(
        "--by", default=default, metavar="KEY",
        help="group turns by KEY: `agent`, `service`, `service.version`, `model`, `judge_model`, `tenant`, or an attribute that outlets.store.attributes lists (default: %(default)s)",
    )  # fmt: skip


def add_turns(parser: Arguments) -> None:
    for name, of in (("agent", "stored turns of this"), ("service", "stored turns of this"), ("metric", "this")):
        parser.add_argument(f"--{name}", action="append", default=[], metavar="NAME", help=f"only {of} {name}; repeatable")
    parser.add_argument("--since", metavar="TIME", help=SINCE)
    parser.add_argument("--until", metavar="TIME", help="only turns stored before this time, in the formats of --since")


def turns_wanted(args: argparse.Namespace) -> Wanted:
    from ..outlets.store.reader import Wanted  # only some commands read a store

    return Wanted(
        since=moment(args.since, "--since"), until=moment(args.until, "--until"), agents=args.agent, services=args.service,
        metrics=args.metric,
    )  # fmt: skip


def metrics_wanted(args: argparse.Namespace, reader: StoreReader) -> list[str]:
    """Return the metric names in ``--metric``. If a name is neither in the store nor a known metric, raise ConfigError."""
    from ..metrics.registry import resolve

    try:  # custom metrics can exist only in the store
        return [name if ":" not in name and reader.has_metric(name) else resolve(name)[0].name for name in args.metric]
    except ConfigError as error:
        raise ConfigError(f"--metric: {error}") from None


def add_turn_sources(parser: argparse.ArgumentParser) -> None:
    """Add arguments that select recorded traces or a score store, filter stored turns, and configure the report."""
    add_files(parser, needed=False)
    add_store(parser)
    add_turns(parser)
    add_jobs(parser)
    add_report(parser)


def config_of_sources(args: argparse.Namespace) -> Config:
    """Load the configuration. If there are files and store options, or neither files nor a store, raise ConfigError."""
    if args.files and (args.store or args.since or args.until or args.agent or args.service):
        raise ConfigError("FILE: can't be combined with --store, --since, --until, --agent, or --service")
    config = load_config(args.config)
    if not args.files and args.store is None and config.outlets.store is None:
        raise ConfigError("FILE, --store: one of them is required: a file with recorded traces, or a score store")
    return config


def add_report(parser: Arguments, forms: Sequence[str] = ("table", "json", "markdown", "html")) -> None:
    parser.add_argument("--format", choices=forms, default="table", help="format of the report (default: table)")
    parser.add_argument("--out", metavar="FILE", help="file for the report (default: standard output)")


def write_report(text: str, out: str | None, option: str = "--out") -> None:
    if out is None:
        print(escaped(text, LINES))
        return
    try:
        Path(out).write_text(f"{for_document(text)}\n", encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{option}: {out}: can't be written: {error.strerror}") from None


def names_of(text: str, option: str) -> list[str]:
    """Parse a comma-separated list of names. If the list is empty, raise ConfigError."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise ConfigError(refusal(option, repr(text), "must be one or more names, separated by commas"))
    return names


def moment(text: str | None, option: str) -> float | None:
    """Return the Unix time of an ISO date or time (default: UTC), or of a duration before now, such as ``24h``."""
    if text is None:
        return None
    try:
        return time.time() - seconds(text)
    except ValueError:
        pass
    try:
        found = datetime.datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
    except ValueError:
        raise ConfigError(
            refusal(
                option, repr(text), "must be a duration before now or a date. Examples: 24h, 7d, 2026-11-20, 2026-11-20T12:00"
            )
        ) from None
    return (found if found.tzinfo is not None else found.replace(tzinfo=datetime.timezone.utc)).timestamp()


_PORTS = {"--grpc": "14317", "--http": "14318", "--metrics": "19464", "--web": "19465"}


def check_address(option: str, text: str | None) -> None:
    """Raise ConfigError unless the value of an address option is HOST:PORT, ``off``, or None."""
    if text is None or text == "off":
        return
    try:
        split_address(text)
    except ValueError:
        scheme, separator, rest = text.rpartition("://")
        port, is_ipv6 = rest.rstrip("/").rpartition(":")[2], not separator and text.count(":") > 1
        port = port if port.isdecimal() and int(port) < 65536 and not is_ipv6 else _PORTS[option]
        form = f", without {scheme}://" if separator else ", with brackets around an IPv6 address" if is_ipv6 else ""
        problem = f"must be HOST:PORT{form}. Example: {'[::1]' if is_ipv6 else '127.0.0.1'}:{port}"
        raise ConfigError(refusal(option, repr(text), problem)) from None


# --- reading of recorded traces


def progress() -> Any:
    """Return a function that prints the reading progress, or None if standard error isn't a terminal."""
    if not sys.stderr.isatty():
        return None

    def show(reading: Reading) -> None:
        print(f"\rread {reading.lines:,} lines, {reading.spans:,} spans …", end="", file=sys.stderr, flush=True)

    return show


def scopes_text(scopes: Counter[str]) -> str:
    return ", ".join(f"{scope or 'a tracer without a name'} {count:,}" for scope, count in scopes.most_common(6))


def report_reading(reading: Reading) -> int:
    """Print the number of unreadable lines and the reason for missing turns. Return the exit code."""
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    if not reading.spans and not reading.logs:
        if not reading.bad:  # otherwise, the reasons are already printed
            print(
                "no spans or log records found. Record some: otel-agenteval record -- python app.py",
                file=sys.stderr,
            )
        return UNUSABLE
    if reading.bad:
        print(f"{reading.bad:,} of {reading.lines:,} lines or records can't be read", file=sys.stderr)
    if not reading.turns:
        from ..dialects.capture import advice_without_turn

        advice = advice_without_turn([*reading.scopes])
        line = f"no turns: no span is an agent or a model call (spans read: {scopes_text(reading.scopes)}); {advice}"
        print(escaped(line), file=sys.stderr)
    return OK
