"""``otel-agenteval serve``: the process around a service, its signals, and what it says."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import signal
from typing import Any

from ..config.loader import load_config
from ..config.root import Config
from ..core.errors import ConfigError
from ..server.app import Service
from ..server.memory import allow_files, tune
from ..server.notify import Notifier, Progress

_log = logging.getLogger("otel_agenteval")


def run(args: argparse.Namespace) -> int:
    """Serve until SIGTERM or SIGINT. 0 when everything was handed over, else 1.

    Raises:
        ConfigError: the configuration is wrong, or cannot be served as it is.
    """
    config = configured(args)
    if config.serve.grpc is None and config.serve.http is None:
        raise ConfigError(
            "serve.grpc and serve.http are both off: nothing could be sent here; an address for one of them is wanted"
        )
    tune()
    allow_files()
    notifier = Notifier.from_environment()
    if args.processes > 1:
        from ..server import supervisor

        given = [*(("--config", args.config) if args.config else ()), *(("--insecure",) if args.insecure else ())]
        given += ["--log-format", args.log_format, "--log-level", args.log_level]
        ledger = asyncio.run(supervisor.serve(config, args.processes, given, notifier))
    else:
        ledger = asyncio.run(_serve(config, args, notifier))
    print(json.dumps({"ledger": ledger}, ensure_ascii=False), flush=True)
    return 0 if ledger["handed_over"] else 1


def configured(args: argparse.Namespace) -> Config:
    """The configuration with what the command line says on top."""
    said = {name: getattr(args, name) for name in ("grpc", "http", "metrics", "web", "journal")}
    serve: dict[str, Any] = {name: None if value == "off" else value for name, value in said.items() if value is not None}
    if args.insecure:
        serve["insecure"] = True
    return load_config(args.config, overrides={"serve": serve} if serve else None)


async def _serve(config: Config, args: argparse.Namespace, notifier: Notifier) -> dict[str, Any]:
    service = Service(config)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def end() -> None:
        stop.set()
        service.stop_taking()

    for number in (signal.SIGTERM, signal.SIGINT):
        with contextlib.suppress(NotImplementedError):  # not on this platform
            loop.add_signal_handler(number, end)
    starting = loop.create_task(notifier.while_starting())
    await service.start()
    starting.cancel()
    with contextlib.suppress(NotImplementedError, AttributeError):
        loop.add_signal_handler(signal.SIGHUP, _reload, service, args, notifier)
    where = " ".join(f"{name}={address}" for name, address in service.addresses.items())
    print(f"listening: {where}", flush=True)
    notifier.ready(f"listening: {where}")
    stalled = Progress(service.engine.progress, "the worker makes no progress")
    telling = loop.create_task(notifier.keep_telling(stalled, lambda: service.unready() or f"listening: {where}"))
    await stop.wait()
    notifier.stopping(config.serve.drain_timeout)
    telling.cancel()
    _log.info("stopping: open turns are evaluated, and scores handed over, within %g s", config.serve.drain_timeout)
    return await service.drain()


def _reload(service: Service, args: argparse.Namespace, notifier: Notifier) -> None:
    """SIGHUP. A configuration with a fault changes nothing."""
    notifier.reloading()
    try:
        fixed = service.reload(configured(args))
    except ConfigError as error:
        service.reload_failed()
        _log.error("not reloaded, the configuration before stays in use: %s", error)
        notifier.ready("not reloaded: the configuration has a fault, the one before stays in use")
        return
    notifier.ready("reloaded")
    _log.info("reloaded%s", f"; changes that need a restart: {', '.join(fixed)}" if fixed else "")
