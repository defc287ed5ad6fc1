"""``otel-agenteval worker``: read spans from Kafka, run judge jobs, or both."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import signal
import sys
from typing import Any

from ..config.loader import load_config
from ..config.root import Config
from ..core.errors import ConfigError
from ..core.processes import cores
from ..kafka.consumer import Address, KafkaSource, Patience
from ..server.admin import Check
from ..server.app import Service
from ..server.notify import Notifier, Progress
from ..server.process import print_line, run_beside, tune
from . import FAILED, OK, UNUSABLE
from .options import add_config, add_logging, check_address, number_of_processes

_log = logging.getLogger("otel_agenteval")

EXIT_CODES = {
    OK: "a signal stopped the worker; all scores were delivered, and other workers continue open turns and waiting jobs",
    FAILED: "a signal stopped the worker; some scores weren't delivered",
    UNUSABLE: "an argument or the configuration is invalid, or the address of /metrics can't be used",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_logging(parser)
    parser.add_argument(
        "--spans", metavar="URL",
        help="Kafka topic with spans in OTLP protobuf or JSON: kafka://BROKER:9092,BROKER:9092/TOPIC?group=NAME&logs=TOPIC",
    )  # fmt: skip
    parser.add_argument("--judge", metavar="URL", help="Redis server with judge jobs: redis://HOST:6379")
    add_config(parser)
    parser.add_argument(
        "--metrics", metavar="HOST:PORT",
        help="address of /metrics (default: serve.metrics in the configuration); `off` disables it",
    )  # fmt: skip
    parser.add_argument("--insecure", action="store_true", help="accept requests to /metrics from other machines")
    parser.add_argument(
        "--processes", type=number_of_processes, metavar="N",
        help="number of processes for --judge; the processes share the judge's and the embedder's limits, and one /metrics page "
        "(default: one for every 50 of judge.max_concurrency, up to the number of cores)",
    )  # fmt: skip
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)  # set by the parent of several processes


def run(args: argparse.Namespace) -> int:
    if args.spans is None and args.judge is None:
        raise ConfigError(
            "--spans, --judge: at least one of them is required. Examples: --spans kafka://BROKER:9092/TOPIC, --judge redis://HOST:6379"
        )
    config = configured(args)
    count = _processes(args, config)
    notifier = Notifier.from_environment()
    tune()
    if args.child is None and count > 1:
        from ..server import supervisor

        given = ["--judge", args.judge, "--processes", str(count), "--metrics", "127.0.0.1:0"]
        given += ["--log-format", args.log_format, "--log-level", args.log_level]
        given += ["--config", args.config] if args.config else []
        command = lambda number: [sys.executable, "-m", "otel_agenteval", "worker", "--child", str(number), *given]  # noqa: E731
        _log.info("starting %d judge processes, which share judge.max_concurrency (%d)", count, config.judge.max_concurrency)
        ledger = asyncio.run(supervisor.supervise(config, count, command, args.signals, notifier))
    else:
        if args.child is not None:
            config = share_of(config, args.child, count)
        address = None if args.spans is None else Address.read(args.spans)
        patience = None if address is None else Patience()
        service = Service(config, waited=patience)
        ledger = run_beside(service.engine, _work(service, address, patience, notifier, args))
    print_line(json.dumps({"ledger": ledger}, ensure_ascii=False))
    return OK if ledger["handed_over"] else FAILED


def _processes(args: argparse.Namespace, config: Config) -> int:
    if args.spans is not None:
        if args.processes is not None:
            raise ConfigError(
                "--processes: can't be combined with --spans. Start more workers instead, up to the topic's partitions"
            )
        return 1
    if args.processes is None:
        return processes_for(config, cores())
    count: int = args.processes
    share_of(config, 0, count)
    return count


def configured(args: argparse.Namespace) -> Config:
    """Load the configuration with the command line's settings. If the judge or its queue can't be used, raise ConfigError."""
    check_address("--metrics", args.metrics)
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
        queue = {"work": False}  # workers with --judge run the jobs
    if queue:
        config = load_config(config, overrides={"judge": {"queue": queue}})
    if args.judge is not None and config.judge.base_url is None and config.embedder.base_url is None:
        raise ConfigError(
            "--judge: no judge and no embedder is configured. Set judge.base_url and judge.model, or embedder.base_url and embedder.model"
        )
    if args.spans is not None and config.judge.base_url is not None and config.judge.queue.backend == "memory":
        raise ConfigError(
            "judge.queue.backend: must be redis or sqlite for --spans, got memory. Jobs in memory are lost when the process ends"
        )
    return config


async def _work(
    service: Service, address: Address | None, patience: Patience | None, notifier: Notifier, args: argparse.Namespace
) -> dict[str, Any]:
    engine = service.engine
    config = engine.config
    source: KafkaSource | None = None
    if address is not None and patience is not None:
        engine.keep_all()  # offsets are committed after delivery, so undelivered data stays in the topic
        source = KafkaSource(engine, service.receiver.feed, address, patience)
        service.more_checks.append(lambda: Check("kafka", source.trouble))
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def handle_signal(number: int) -> None:
        if number == signal.SIGHUP:
            _log.warning("SIGHUP: ignored. To change the configuration, restart the worker")
            return
        stop.set()
        service.stop_taking()

    def parent_ended() -> None:
        """Stop when standard input closes. Only the parent process keeps this pipe open, so the parent ended."""
        loop.remove_reader(0)
        _log.error("the parent process ended, so this process ends, too")
        handle_signal(signal.SIGTERM)

    args.signals.pass_to(handle_signal)
    if args.child is not None:
        loop.add_reader(0, parent_ended)
    await service.start()
    if stop.is_set():
        return await service.drain()
    where = " ".join(f"{name}={address}" for name, address in service.addresses.items())
    print_line(f"working: {where}")
    engine.start_judging(config.judge.max_concurrency)
    if source is not None:
        source.start()
    notifier.ready(f"working: {where}")
    stalled = Progress(engine.progress, "the worker makes no progress")
    reporting = loop.create_task(notifier.keep_reporting(stalled, lambda: f"working: {where}"))
    await stop.wait()
    notifier.stopping(config.serve.drain_timeout)
    reporting.cancel()
    _log.info("stopping: delivering finished turns; other workers continue open turns and jobs")
    if source is not None:
        await loop.run_in_executor(None, source.stop, config.serve.drain_timeout)
    return await service.drain()


# --- division of the limits of judge and embedder among the processes of one worker


_LIMITS = ("max_concurrency", "requests_per_minute", "tokens_per_minute")
_CALLS_PER_PROCESS = 50
"""Number of concurrent judge calls that one process can handle at nearly full speed, even if the model replies within 50 ms."""


def processes_for(config: Config, cores: int) -> int:
    """Return the default number of processes: one per 50 concurrent judge calls, limited by ``cores`` and the lowest limit."""
    return max(1, min(cores, config.judge.max_concurrency // _CALLS_PER_PROCESS, *_limits_of(config).values()))


def share_of(config: Config, number: int, count: int) -> Config:
    """Return process ``number``'s configuration, with its share of each limit. If a limit is below ``count``, raise ConfigError."""
    for path, limit in _limits_of(config).items():
        if limit < count:
            name = ".".join(path)
            raise ConfigError(f"--processes: must be at most {limit}, got {count}. Each process needs a share of {name}")
        share: Any = limit * (number + 1) // count - limit * number // count
        for key in reversed(path):
            share = {key: share}
        config = load_config(config, overrides=share)
    return config


def _limits_of(config: Config) -> dict[tuple[str, ...], int]:
    services: dict[tuple[str, ...], Any] = {("judge",): config.judge, ("embedder",): config.embedder}
    services |= {("judge", "servers", name): server for name, server in config.judge.servers.items()}
    return {
        (*path, name): limit
        for path, service in services.items()
        if service.base_url is not None
        for name in _LIMITS
        if (limit := getattr(service, name, None)) is not None
    }
