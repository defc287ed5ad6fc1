"""``otel-agenteval worker``: the engine without receivers: it reads spans from Kafka, works on judge jobs, or both."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import signal
from typing import Any

from ..config.loader import load_config
from ..config.root import Config
from ..core.errors import ConfigError
from ..kafka.consumer import Address, KafkaSource
from ..kafka.pacing import Patience
from ..server.app import Service
from ..server.main_thread import run_beside
from ..server.memory import tune
from ..server.notify import Notifier, Progress
from ..server.signals import Signals
from .exit_codes import FAILED, OK, UNUSABLE
from .options import add_config, add_logging

_log = logging.getLogger("otel_agenteval")

EXIT_CODES = {
    OK: "stopped by a signal, and everything was delivered",
    FAILED: "stopped by a signal, and something was not delivered",
    UNUSABLE: "wrong use, or the configuration has a fault",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to its parser."""
    add_logging(parser)
    parser.add_argument(
        "--spans",
        metavar="URL",
        help="kafka://BROKER:9092,BROKER:9092/TOPIC?group=NAME&logs=TOPIC: spans (OTLP protobuf or JSON) of a consumer group",
    )
    parser.add_argument("--judge", metavar="URL", help="redis://HOST:6379: work on the judge jobs of this server")
    add_config(parser)
    parser.add_argument("--metrics", metavar="HOST:PORT", help="address of /metrics; off is none")
    parser.add_argument("--insecure", action="store_true", help="serve /metrics to other machines")


def run(args: argparse.Namespace) -> int:
    """Work until SIGTERM or SIGINT."""
    if args.spans is None and args.judge is None:
        raise ConfigError("worker: --spans kafka://BROKER:9092/TOPIC or --judge redis://HOST:6379 is required, or both")
    address = None if args.spans is None else Address.read(args.spans)
    config = configured(args)
    tune()
    patience = None if address is None else Patience()
    service = Service(config, waited=patience)
    ledger = run_beside(service.engine, _work(service, address, patience, Notifier.from_environment(), args.signals))
    print(json.dumps({"ledger": ledger}, ensure_ascii=False), flush=True)
    return OK if ledger["handed_over"] else FAILED


def configured(args: argparse.Namespace) -> Config:
    """The configuration, overridden by the command line.

    Raises:
        ConfigError: jobs would be lost with the process, or there is nothing to work on.
    """
    serve: dict[str, Any] = {"grpc": None, "http": None, "journal": None, "web": None}
    if args.metrics is not None:
        serve["metrics"] = None if args.metrics == "off" else args.metrics
    if args.insecure:
        serve["insecure"] = True
    config = load_config(args.config, overrides={"serve": serve})
    queue: dict[str, Any] = {}
    if args.judge is not None:
        queue = {"backend": "redis", "url": args.judge, "path": None, "work": True}
    elif config.judge.queue.backend == "redis":
        queue = {"work": False}  # this one only reads spans; workers with --judge do the jobs
    if queue:
        config = load_config(config, overrides={"judge": {"queue": queue}})
    if args.judge is not None and config.judge.base_url is None and config.embedder.base_url is None:
        raise ConfigError(
            "worker --judge: neither a judge nor an embedder is configured; set judge.base_url and judge.model, or those of embedder"
        )
    if args.spans is not None and config.judge.base_url is not None and config.judge.queue.backend == "memory":
        raise ConfigError(
            "worker --spans: judge.queue.backend: memory is not allowed, as its jobs are lost with the process; it must be redis or sqlite"
        )
    return config


async def _work(
    service: Service, address: Address | None, patience: Patience | None, notifier: Notifier, signals: Signals
) -> dict[str, Any]:
    engine = service.engine
    config = engine.config
    source = None
    if address is not None and patience is not None:
        engine.keep_all()  # what is not delivered stays in the topic, because offsets are committed behind it
        source = KafkaSource(engine, service.receiver.feed, address, patience)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def take(number: int) -> None:
        if number == signal.SIGHUP:
            _log.warning("SIGHUP: ignored; a worker reads its configuration at its start only")
            return
        stop.set()
        service.stop_taking()

    signals.pass_to(take)
    await service.start()
    if stop.is_set():
        return await service.drain()
    where = " ".join(f"{name}={address}" for name, address in service.addresses.items())
    print(f"working: {where}", flush=True)
    engine.start_judging(config.judge.max_concurrency)
    if source is not None:
        source.start()
    notifier.ready(f"working: {where}")
    stalled = Progress(engine.progress, "the worker makes no progress")
    reporting = loop.create_task(notifier.keep_reporting(stalled, lambda: f"working: {where}"))
    await stop.wait()
    notifier.stopping(config.serve.drain_timeout)
    reporting.cancel()
    _log.info("stopping: finished turns are delivered; open turns and jobs are left to the other workers")
    if source is not None:
        await loop.run_in_executor(None, source.stop, config.serve.drain_timeout)
    return await service.drain()
