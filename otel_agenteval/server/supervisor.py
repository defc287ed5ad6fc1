"""``serve`` and ``worker`` with ``--processes N``: several processes with one ``/metrics`` endpoint.

With ``serve``, each process has its own ports. A Collector that routes by trace ID (``load_balancing``) can then send each trace to
one process. The parent doesn't receive spans. The parent starts the processes, restarts processes that die, and merges their
metrics. Their samples get a label for the process, and exemplars are kept.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import functools
import json
import logging
import os
import signal
import socket
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from ..config.root import Config
from ..config.types import split_address
from ..core.errors import ConfigError
from ..core.pacing import backoff
from .admin import Check, GetHandler, Metrics, Readiness, checks_in
from .auth import Guard, check_exposure
from .http_server import HttpServer
from .journal_folder import LOCK_GRACE, JournalFolder
from .notify import Listener, Notifier
from .process import Signals, held_back, print_line

_log = logging.getLogger("otel_agenteval")

STEP = 10
LABEL = "process"
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0
_LIVED_LONG = 60.0
_SCRAPE = 2.0
_POLL_EVERY = 1.0
_PORTS_WITHIN = 5.0
_PORTS_EVERY = 0.1
_BAD_USE = 2
_OPENMETRICS = "application/openmetrics-text; version=1.0.0"


def addresses_of(config: Config, number: int) -> dict[str, str | None]:
    """Return the addresses on which process ``number`` listens. Only the parent scrapes the process's ``/metrics``."""
    options = config.serve
    found: dict[str, str | None] = {"metrics": "127.0.0.1:0"}
    for name in ("grpc", "http", "web"):
        address = getattr(options, name)
        host, colon, port = (address or "").rpartition(":")
        found[name] = None if address is None else f"{host}{colon}{int(port) + STEP * number if int(port) else 0}"
    return found


class Child:
    def __init__(
        self, number: int, command: Sequence[str], env: Mapping[str, str] | None = None, journal: JournalFolder | None = None
    ) -> None:
        self.number = number
        self._journal = journal
        self.listening: dict[str, str] = {}
        self.ledger: dict[str, Any] | None = None
        self.restarts = 0
        self.unready = "starting"
        self.checks: list[Check] = []
        self.ready = asyncio.Event()
        self.refused = False
        """True if the process exited before it listened, because its configuration is unusable."""
        self.process: asyncio.subprocess.Process | None = None
        self._command = command
        self._env = env
        self._stop = asyncio.Event()
        self.alive_at: float | None = None
        """Monotonic time of the process's last READY or WATCHDOG report, or None without a report."""

    async def run(self) -> None:
        failures = 0
        while not self._stop.is_set():
            started = time.monotonic()
            pipe = asyncio.subprocess.PIPE  # the end of its standard input means that the parent has died
            locks = () if self._journal is None else (self._journal.lock,)
            with held_back():
                self.process = await asyncio.create_subprocess_exec(
                    *self._command, stdin=pipe, stdout=pipe, env=self._env, pass_fds=locks
                )
            assert self.process.stdout is not None
            async for line in self.process.stdout:
                self._handle_report(line.decode("utf-8", "replace").strip())
            status = await self.process.wait()
            self.listening = {}
            self.alive_at = None
            if self._stop.is_set():
                return
            if status == _BAD_USE and not self.ready.is_set():
                self.refused = True
                return
            self.restarts += 1
            failures = 1 if time.monotonic() - started > _LIVED_LONG else failures + 1
            pause = backoff(failures, _FIRST_PAUSE, _LONGEST_PAUSE)
            _log.error("process %d ended with status %d; restarting it in %.1f s", self.number, status, pause)
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._stop.wait(), pause)

    def _handle_report(self, line: str) -> None:
        what, _, addresses = line.partition(": ")
        if what in ("listening", "working"):
            self.listening = dict(part.split("=", 1) for part in addresses.split())
            self.ready.set()
        elif line.startswith('{"ledger"'):
            self.ledger = json.loads(line)["ledger"]

    def poll_readiness(self) -> None:
        name = f"process {self.number}"
        try:
            try:
                answer = self._get("/readyz?verbose", "application/json")
            except urllib.error.HTTPError as error:
                with error:
                    answer = error.read()
            if answer is None:
                self.unready, self.checks = "starting", [Check(name, "starting", required=True)]
                return
            report = json.loads(answer)
            self.unready, self.checks = str(report["reason"]), checks_in(report, f"{name}: ")
        except (OSError, ValueError, KeyError, TypeError) as error:
            reason = f"doesn't answer: {type(error).__name__}"
            self.unready, self.checks = reason, [Check(name, reason, required=True)]

    def scrape(self) -> list[Metric]:
        try:
            page = self._get("/metrics", _OPENMETRICS)
            return [] if page is None else list(text_string_to_metric_families(page.decode()))  # type: ignore[no-untyped-call]
        except (OSError, ValueError) as error:
            _log.warning("process %d can't be scraped: %s", self.number, type(error).__name__)
            return []

    def _get(self, path: str, accept: str) -> bytes | None:
        address = self.listening.get("metrics")
        if address is None:
            return None
        request = urllib.request.Request(f"http://{address}{path}", headers={"Accept": accept})
        with urllib.request.urlopen(request, timeout=_SCRAPE) as answer:  # noqa: S310 - http, as above
            return bytes(answer.read())

    def end_if_silent(self, now: float, longest: float) -> None:
        if self.alive_at is not None and now - self.alive_at > longest and not self._stop.is_set():
            self.alive_at = None
            _log.error("process %d makes no progress; killing and restarting it", self.number)
            self.signal(signal.SIGKILL, ending=False)

    def signal(self, number: signal.Signals, *, ending: bool = True) -> None:
        """Send a signal. If the signal is SIGHUP or ``ending`` is False, :meth:`run` restarts the process when it ends."""
        if ending and number != signal.SIGHUP:
            self._stop.set()
        if self.process is not None and self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(number)


def command_of(config: Config, number: int, arguments: Sequence[str]) -> list[str]:
    addresses = [part for name, address in addresses_of(config, number).items() for part in (f"--{name}", address or "off")]
    kept = [] if config.serve.journal is None else ["--journal", config.serve.journal]
    return [sys.executable, "-m", "otel_agenteval", "serve", "--child", str(number), *arguments, *addresses, *kept]


def routed_to(config: Config, count: int) -> list[str]:
    """Return one entry per process: the address to which a Collector routes, or a unique name if the port isn't fixed."""
    found = []
    for number in range(count):
        addresses = addresses_of(config, number)
        address = addresses["grpc"] or addresses["http"] or ":0"
        found.append(f"process-{number}" if address.endswith(":0") else address)
    return found


def _count_fault(where: str, error: BaseException) -> None:
    _log.warning("%s failed: %s", where, type(error).__name__)


class _Supervision:
    """Receiver of the child processes' reports. Sends one report for all children to the service manager."""

    def __init__(self, notifier: Notifier, count: int, start: Callable[[int, dict[str, str] | None], Child]) -> None:
        self._notifier = notifier
        self.is_up = False
        """True when all processes have started to listen. Until then, reloads aren't reported to the service manager."""
        self._listeners = (
            [Listener(functools.partial(self._handle_report, number)) for number in range(count)] if notifier.enabled else []
        )
        self._reloading: set[int] = set()
        self.children = [start(number, self._environment(number)) for number in range(count)]

    def _environment(self, number: int) -> dict[str, str] | None:
        if not self._listeners:
            return None
        variables = {"NOTIFY_SOCKET": self._listeners[number].address}
        if self._notifier.watchdog is not None:
            variables["WATCHDOG_USEC"] = str(int(self._notifier.watchdog * 1e6))
        return {**os.environ, **variables}

    def _handle_report(self, number: int, message: Mapping[str, str]) -> None:
        child = self.children[number]
        if "READY" in message or "WATCHDOG" in message:
            child.alive_at = time.monotonic()
        if "READY" in message and number in self._reloading:
            self._reloading.discard(number)
            if not self._reloading:
                self._notifier.ready("reloaded")

    def reload(self) -> None:
        self._notifier.reloading()
        self._reloading = {child.number for child in self.children if child.listening} if self._listeners else set()
        if not self._reloading:
            self._notifier.ready("reloaded")

    async def watch(self, status: str) -> None:

        def stalled() -> str:
            if self._notifier.watchdog is not None:
                for child in self.children:
                    child.end_if_silent(time.monotonic(), self._notifier.watchdog)
            return ""

        await self._notifier.keep_reporting(stalled, lambda: status)

    def close(self) -> None:
        for listener in self._listeners:
            listener.close()


class _MetricsPage:
    """Endpoints for the merged metrics and the readiness of all processes. Metrics are merged at each scrape."""

    def __init__(self, config: Config, children: Sequence[Child], stop: asyncio.Event) -> None:
        self._options = config.serve
        self._children = children
        self._stop = stop
        self._pool = ThreadPoolExecutor(max(1, len(children)), "agenteval-scrape")
        registry = CollectorRegistry()
        registry.register(self)
        self._metrics = Metrics(registry)
        self._server: HttpServer | None = None
        self._polling: asyncio.Task[None] | None = None

    async def start(self) -> str | None:
        options = self._options
        if options.metrics is None:
            return None
        guard = Guard(options.metrics, options.allowed_hosts, options.allowed_origins)
        readiness = Readiness(self._unready, lambda: [check for child in self._children for check in child.checks])
        page = GetHandler(guard, _count_fault, self._metrics.get, readiness)
        self._server = HttpServer(page, options.max_connections, options.client_connections)
        self._polling = asyncio.create_task(self._poll_readiness())
        await self._server.start("serve.metrics", options.metrics, None)
        return self._server.address

    async def close(self) -> None:
        if self._server is not None:
            await self._server.stop(0.5)
        if self._polling is not None:
            self._polling.cancel()
        self._metrics.close()
        self._pool.shutdown(wait=False)

    async def _poll_readiness(self) -> None:
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(len(self._children), "agenteval-ready") as pool:
            while True:
                await asyncio.gather(*(loop.run_in_executor(pool, child.poll_readiness) for child in self._children))
                await asyncio.sleep(_POLL_EVERY)

    def _unready(self) -> str:
        if self._stop.is_set():
            return "shutting down"
        return "; ".join(f"process {child.number}: {child.unready}" for child in self._children if child.unready)

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        families: dict[str, Metric] = {}
        up = Metric("agenteval_processes", "1 if the process answers scrapes, otherwise 0.", "gauge")
        restarts = Metric("agenteval_process_restarts", "Restarts of the process.", "counter")
        for child, page in zip(self._children, list(self._pool.map(Child.scrape, self._children)), strict=True):
            labels = {LABEL: str(child.number)}
            for family in page:
                merged = families.get(family.name)
                if merged is None:
                    merged = families[family.name] = Metric(family.name, family.documentation, family.type, family.unit)
                merged.samples += [sample._replace(labels={**sample.labels, **labels}) for sample in family.samples]
            up.samples.append(Sample("agenteval_processes", labels, float(bool(page))))
            restarts.samples.append(Sample("agenteval_process_restarts_total", labels, float(child.restarts)))
        if (scrapes := families.get("agenteval_serve_scrapes")) is not None:  # the parent scrapes the processes
            counts = self._metrics.scrapes.items()
            scrapes.samples = [Sample(f"{scrapes.name}_total", {"client": client}, float(count)) for client, count in counts]
        yield from (*families.values(), up, restarts)


async def supervise(
    config: Config, count: int, command: Callable[[int], Sequence[str]], signals: Signals, notifier: Notifier
) -> dict[str, Any]:
    """Run processes until SIGTERM or SIGINT arrives, and return their final counts. Without an OTLP address, the processes are workers."""
    check_exposure(config.serve)
    receives = config.serve.grpc is not None or config.serve.http is not None
    journal = None if config.serve.journal is None else JournalFolder(config.serve.journal)
    supervision = _Supervision(notifier, count, lambda number, env: Child(number, command(number), env, journal))
    children = supervision.children
    running: list[asyncio.Task[None]] = []
    stop = asyncio.Event()

    def pass_on(number: int) -> None:
        if number == signal.SIGHUP and not receives:
            _log.warning("SIGHUP: ignored. To change the configuration, restart the worker")
            return
        if number != signal.SIGHUP:
            notifier.stopping(config.serve.drain_timeout)
            stop.set()
        elif supervision.is_up:
            supervision.reload()
        for child in children:
            child.signal(signal.Signals(number))

    signals.pass_to(pass_on)
    page = _MetricsPage(config, children, stop)
    reporting = asyncio.create_task(notifier.while_starting())
    try:
        address = await page.start()
        await _wait_for_orphans(config, count, journal, stop)
        if not stop.is_set():
            running += [asyncio.create_task(child.run()) for child in children]
            await _start_all(children, running, stop)
        if not stop.is_set():
            supervision.is_up = True
            _print_addresses(address, children, receives)
            reporting.cancel()
            notifier.ready(f"{count} processes")
            reporting = asyncio.create_task(supervision.watch(f"{count} processes"))
        await stop.wait()
        reporting.cancel()
        await asyncio.gather(*running)
    finally:
        reporting.cancel()
        for child in children:
            child.signal(signal.SIGTERM)
        await asyncio.gather(*running, return_exceptions=True)
        await page.close()
        supervision.close()
        if journal is not None:
            journal.release()
    ledgers = [child.ledger or {"handed_over": not running} for child in children]
    return {"processes": ledgers, "handed_over": all(ledger["handed_over"] for ledger in ledgers)}


def _print_addresses(metrics: str | None, children: Sequence[Child], receives: bool) -> None:
    if metrics is not None:
        print_line(f"{'listening' if receives else 'working'}: metrics={metrics}")
    if receives:
        for child in children:
            where = " ".join(f"{name}={address}" for name, address in child.listening.items() if name != "metrics")
            print_line(f"process {child.number}: {where}")
        routes = ", ".join(child.listening["grpc"] for child in children if "grpc" in child.listening)
        print_line(f"AGENTEVAL_ENDPOINTS='[{routes}]'")  # for the Collector's load_balancing exporter


async def _wait_for_orphans(config: Config, count: int, journal: JournalFolder | None, stop: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    if journal is not None:
        if not await journal.acquire(config.serve.drain_timeout + LOCK_GRACE, stop.is_set):
            return
        await loop.run_in_executor(None, journal.share_out, routed_to(config, count))
    until = loop.time() + _PORTS_WITHIN
    wanted = [split_address(address) for number in range(count) for address in addresses_of(config, number).values() if address]
    while not stop.is_set() and loop.time() < until and any(_is_taken(host, port) for host, port in wanted):
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(stop.wait(), _PORTS_EVERY)


def _is_taken(host: str, port: int) -> bool:
    try:
        socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()
    except OSError as error:
        return error.errno == errno.EADDRINUSE
    return False


async def _start_all(children: Sequence[Child], running: Sequence[asyncio.Task[None]], stop: asyncio.Event) -> None:

    async def all_ready() -> None:
        for child in children:
            await child.ready.wait()

    started = [asyncio.create_task(all_ready()), asyncio.create_task(stop.wait())]
    await asyncio.wait([*started, *running], return_when=asyncio.FIRST_COMPLETED)
    refused = [child.number for child in children if child.refused]
    if refused:
        raise ConfigError(f"process {refused[0]} of {len(children)} can't start. See the error above")
