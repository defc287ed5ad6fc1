"""``otel-agenteval serve``: run the sidecar until a signal arrives."""

from __future__ import annotations

import argparse
import asyncio
import functools
import json
import logging
import os
import signal
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..core.errors import ConfigError
from . import FAILED, OK, UNUSABLE
from .options import add_config, add_logging, check_address, number_of_processes

if TYPE_CHECKING:  # the command's help doesn't import the server
    from ..config.root import Config
    from ..server.app import Service
    from ..server.notify import Notifier

_log = logging.getLogger("otel_agenteval")

EXIT_CODES = {
    OK: "a signal stopped the sidecar; all turns were scored and all scores delivered, except for judge jobs that still waited",
    FAILED: "a signal stopped the sidecar; some data was lost, or waits in the journal or the OTLP spool for the next start",
    UNUSABLE: "an argument or the configuration is invalid, or an address or the journal can't be used",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_logging(parser)
    add_config(parser)
    for name, what in (
        ("grpc", "OTLP/gRPC (default: 127.0.0.1:14317)"),
        ("http", "OTLP/HTTP, /healthz, and /readyz (default: 127.0.0.1:14318)"),
        ("metrics", "/metrics, /healthz, and /readyz (default: 127.0.0.1:19464)"),
        ("web", "the web UI and its API (default: 127.0.0.1:19465)"),
    ):
        parser.add_argument(f"--{name}", metavar="HOST:PORT", help=f"address of {what}; `off` disables it")
    parser.add_argument(
        "--processes", type=number_of_processes, default=1, metavar="N",
        help="number of processes (default: 1); each process uses ports that are 10 higher than the previous process's ports; a Collector must route spans to the processes by trace ID; one /metrics page covers all processes",
    )  # fmt: skip
    parser.add_argument(
        "--journal", metavar="DIR", help="folder that stores received requests until the scores of their turns are delivered"
    )
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)  # set by the parent of several processes
    parser.add_argument(
        "--insecure", action="store_true", help="let other machines connect without a token or client certificate"
    )


def run(args: argparse.Namespace) -> int:
    from ..server.app import Service, check_start
    from ..server.notify import Notifier
    from ..server.process import allow_files, print_line, run_beside, tune

    config = configured(args)
    tune()
    allow_files()
    notifier = Notifier.from_environment()
    if args.processes > 1:
        from ..server import supervisor

        check_start(config)
        given = [*(("--config", args.config) if args.config else ()), *(("--insecure",) if args.insecure else ())]
        given += ["--log-format", args.log_format, "--log-level", args.log_level]
        command = functools.partial(supervisor.command_of, config, arguments=given)
        ledger = asyncio.run(supervisor.supervise(config, args.processes, command, args.signals, notifier))
    else:
        service = Service(config, number=args.child)
        ledger = run_beside(service.engine, _serve(service, args, notifier))
    print_line(json.dumps({"ledger": ledger}, ensure_ascii=False))
    return OK if ledger["handed_over"] else FAILED


def configured(args: argparse.Namespace) -> Config:
    from ..config.loader import load_config

    given = {name: getattr(args, name) for name in ("grpc", "http", "metrics", "web", "journal")}
    for name in ("grpc", "http", "metrics", "web"):
        check_address(f"--{name}", given[name])
    serve: dict[str, Any] = {name: None if value == "off" else value for name, value in given.items() if value is not None}
    if args.insecure:
        serve["insecure"] = True
    config = load_config(args.config, overrides={"serve": serve} if serve else None)
    check_receivers(config)
    return config


def check_receivers(config: Config) -> None:
    if config.serve.grpc is None and config.serve.http is None:
        raise ConfigError("serve.grpc, serve.http: both are off, so no data can arrive. Set an address for one of them")


async def _serve(service: Service, args: argparse.Namespace, notifier: Notifier) -> dict[str, Any]:
    from ..server.notify import Progress
    from ..server.process import print_line

    running = _Running(service, args, notifier)
    loop = asyncio.get_running_loop()
    args.signals.pass_to(running.handle)
    if args.child is not None:
        loop.add_reader(0, running.parent_ended)
    starting = loop.create_task(notifier.while_starting())
    await service.start()
    starting.cancel()
    if not running.stop.is_set():
        where = " ".join(f"{name}={address}" for name, address in service.addresses.items())
        print_line(f"listening: {where}")
        notifier.ready(f"listening: {where}")
        running.started()
        stalled = Progress(service.engine.progress, "the worker makes no progress")
        reporting = loop.create_task(notifier.keep_reporting(stalled, lambda: service.unready() or f"listening: {where}"))
        await running.stop.wait()
        reporting.cancel()
    within = service.options.drain_timeout
    notifier.stopping(within)
    _log.info("stopping: evaluating open turns and delivering scores, for up to %g s", within)
    return await service.drain(watched=not running.orphaned)


@dataclass(slots=True)
class _Running:
    service: Service
    args: argparse.Namespace
    notifier: Notifier
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    orphaned: bool = False
    is_up: bool = False
    reload_later: bool = False

    def handle(self, number: int) -> None:
        """Reload the configuration on SIGHUP, and end on other signals. An invalid configuration is ignored."""
        if number != signal.SIGHUP:
            self._end()
            return
        if not self.is_up:
            self.reload_later = True
            _log.info("SIGHUP: the sidecar reloads its configuration after the start")
            return
        self.notifier.reloading()
        try:
            fixed = self.service.reload(configured(self.args))
        except Exception as error:
            self.service.reload_failed()
            reason = error if isinstance(error, ConfigError) else type(error).__name__
            _log.error("SIGHUP: the configuration was not reloaded: %s", reason)
            self.notifier.ready("not reloaded: see the log for the reason")
            return
        self.notifier.ready("reloaded")
        _log.info("configuration reloaded%s", f". To apply changes of {', '.join(fixed)}, restart the sidecar" if fixed else "")

    def started(self) -> None:
        self.is_up = True
        if self.reload_later:
            self.handle(signal.SIGHUP)

    def parent_ended(self) -> None:
        """Stop when standard input closes, because the parent ended. With a journal, the next start continues open turns."""
        asyncio.get_running_loop().remove_reader(0)
        if self.stop.is_set():
            return
        if self.service.options.journal is not None:
            _log.error("the parent process ended, so this process ends, too. The next start delivers the remaining data")
            os._exit(FAILED)
        _log.error("the parent process ended, so this process ends, too")
        self.orphaned = True
        self._end()

    def _end(self) -> None:
        self.stop.set()
        self.service.stop_taking()
