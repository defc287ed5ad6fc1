"""Options that several commands have, each written once."""

from __future__ import annotations

import argparse
import datetime
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ..config.types import seconds
from ..core.errors import ConfigError
from ..core.terminal import LINES, escaped
from ..server import logformat

if TYPE_CHECKING:
    from ..outlets.sqlite.store import Wanted


class Arguments(Protocol):
    """A parser, or a group of its arguments."""

    def add_argument(self, *names: Any, **options: Any) -> Any:
        """As of both."""


def add_files(parser: argparse.ArgumentParser, *, needed: bool = True) -> None:
    """Add the files of recorded traces."""
    parser.add_argument(
        "files",
        nargs="+" if needed else "*",
        metavar="FILE",
        help="OTLP/JSON lines, traces and logs, or what Jaeger, Zipkin, Tempo, Phoenix, Langfuse, Logfire or ConsoleSpanExporter writes; - is standard input; .gz and .zst are unpacked",
    )


def add_jobs(parser: argparse.ArgumentParser) -> None:
    """Add the number of processes."""
    parser.add_argument("--jobs", metavar="N", help="processes for large files (default: all cores)")


def add_config(parser: Arguments) -> None:
    """Add the file of the configuration."""
    parser.add_argument(
        "--config", metavar="FILE", help="YAML configuration (default: OTEL_AGENTEVAL_CONFIG_FILE and environment)"
    )


def add_program(parser: argparse.ArgumentParser, purpose: str) -> None:
    """Add a program with its arguments, after ``--``."""
    parser.add_argument("program", nargs=argparse.REMAINDER, metavar="-- PROGRAM", help=purpose)


def program_of(args: argparse.Namespace) -> list[str]:
    """The program with its arguments; empty if none was named."""
    program: list[str] = args.program
    return program[1:] if program[:1] == ["--"] else program


def add_logging(parser: argparse.ArgumentParser) -> None:
    """Add the options for the log of a command that runs for long."""
    parser.add_argument(
        "--log-format",
        choices=logformat.FORMATS,
        default=logformat.DEFAULT_FORMAT,
        help="format of the log on standard error: text (the default), or one JSON object a line",
    )
    parser.add_argument(
        "--log-level",
        choices=logformat.LEVELS,
        default=logformat.DEFAULT_LEVEL,
        help="the lowest level that is logged (default %(default)s)",
    )


def add_store(parser: Arguments) -> None:
    """Add the store, and the configuration that names it."""
    parser.add_argument("--store", metavar="FILE", help="the store (default: outlets.store of the configuration)")
    add_config(parser)


def add_grouping(parser: Arguments, default: str) -> None:
    """Add what makes groups of a store's turns."""
    parser.add_argument(
        "--by",
        default=default,
        metavar="WHAT",
        help="what makes groups: agent, service, service.version, model, judge_model, tenant, or an attribute that the store keeps (outlets.store.attributes); default %(default)s",
    )


def add_turns(parser: Arguments) -> None:
    """Add which turns of a store are wanted."""
    for name in ("agent", "service", "metric"):
        parser.add_argument(f"--{name}", action="append", default=[], metavar="NAME", help=f"only this {name}; repeatable")
    parser.add_argument("--since", metavar="TIME", help="only turns kept since: 24h, 7d, 2026-11-20, 2026-11-20T12:00")
    parser.add_argument("--until", metavar="TIME", help="only turns kept before")


def turns_wanted(args: argparse.Namespace) -> Wanted:
    """Which turns are wanted.

    Raises:
        ConfigError: a time is none.
    """
    from ..outlets.sqlite.store import Wanted  # the other commands read no store

    return Wanted(
        since=moment(args.since, "--since"), until=moment(args.until, "--until"), agents=args.agent, services=args.service,
        metrics=args.metric,
    )  # fmt: skip


def add_report(parser: Arguments) -> None:
    """Add the form of a report, and where it goes."""
    parser.add_argument(
        "--format", choices=("table", "json", "markdown", "html"), default="table", help="a text (the default), or one of these"
    )
    parser.add_argument("--out", metavar="FILE", help="where to (default: standard output)")


def write_report(text: str, out: str | None) -> None:
    """Write a report.

    Raises:
        ConfigError: the file cannot be written.
    """
    if out is None:
        print(escaped(text, LINES))
        return
    try:
        Path(out).write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"--out: {out} cannot be written: {error.strerror}") from None


def names_of(text: str, option: str) -> list[str]:
    """The names in a list that is separated by commas.

    Raises:
        ConfigError: there are none.
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise ConfigError(f"{option}: at least one name is required")
    return names


def moment(text: str | None, option: str) -> float | None:
    """Seconds since the Unix epoch, from an ISO date or time (UTC by default) or from a duration before now: ``24h``.

    Raises:
        ConfigError: it is neither.
    """
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
            f"{option}: {text!r} is not allowed; it must be how long ago (24h, 7d) or a date (2026-11-20, 2026-11-20T12:00)"
        ) from None
    return (found if found.tzinfo is not None else found.replace(tzinfo=datetime.timezone.utc)).timestamp()
