"""``serve --processes N``: one process per core, each on ports of its own, and one ``/metrics`` for all.

A Collector that routes by trace id (``load_balancing``) gives each process whole traces; one port for all would not. So the parent
receives no spans: it starts the others, restarts those that die, and merges their metrics. It merges the text that they serve, with a
label for each process, and so keeps the exemplars.
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
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from ..config.root import Config
from ..config.types import split_address
from ..core.errors import ConfigError
from .admin import Metrics, Page
from .guard import Guard
from .health import Check, Readiness, checks_in
from .http_server import HttpServer
from .journal_folder import LOCK_GRACE, JournalFolder
from .notify import Listener, Notifier
from .signals import Signals, held_back

_log = logging.getLogger("otel_agenteval")

STEP = 10
"""From one process's ports to the next one's."""
LABEL = "process"
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0
_LIVED_LONG = 60.0
_SCRAPE = 2.0
_LOOK_EVERY = 1.0
"""Seconds between two looks at whether the processes are ready."""
_PORTS_WITHIN = 5.0
"""Seconds that processes whose parent was killed may take to close their ports."""
_PORTS_EVERY = 0.1
_BAD_USE = 2
_OPENMETRICS = "application/openmetrics-text; version=1.0.0"


def addresses_of(config: Config, number: int) -> dict[str, str | None]:
    """Where one of the processes listens; its ``/metrics`` is for the parent alone."""
    options = config.serve
    found: dict[str, str | None] = {"metrics": "127.0.0.1:0"}
    for name in ("grpc", "http", "web"):
        address = getattr(options, name)
        host, colon, port = (address or "").rpartition(":")
        found[name] = None if address is None else f"{host}{colon}{int(port) + STEP * number if int(port) else 0}"
    return found


def endpoints(listening: Sequence[Mapping[str, str]]) -> str:
    """The static resolver's list for the Collector's ``load_balancing`` exporter."""
    return "[" + ", ".join(one["grpc"] for one in listening if "grpc" in one) + "]"


class Child:
    """One of the processes: started again whenever it dies.

    Args:
        number: which one.
        command: how it is started.
        env: of its process, where that is not ours.
        journal: whose lock it holds too, for as long as it lives.
    """

    def __init__(
        self, number: int, command: Sequence[str], env: Mapping[str, str] | None = None, journal: JournalFolder | None = None
    ) -> None:
        self.number = number
        self._journal = journal
        self.listening: dict[str, str] = {}
        self.ledger: dict[str, Any] | None = None
        self.restarts = 0
        self.unready = "starting"
        """Why it took no requests when it was last asked; empty when it did."""
        self.checks: list[Check] = []
        """What it reported then."""
        self.ready = asyncio.Event()
        self.refused = False
        """Whether it never listened, and ended because its configuration cannot be used: an address that is taken, for example."""
        self.process: asyncio.subprocess.Process | None = None
        self._command = command
        self._env = env
        self._stop = asyncio.Event()
        self._alive_at: float | None = None
        """When it last reported, since it was ready; in seconds of ``time.monotonic``."""

    async def run(self) -> None:
        """Until it is stopped."""
        pause = _FIRST_PAUSE
        while not self._stop.is_set():
            started = time.monotonic()
            pipe = asyncio.subprocess.PIPE  # its standard input tells it of our end, by whatever means
            locks = () if self._journal is None else (self._journal.lock,)
            with held_back():
                self.process = await asyncio.create_subprocess_exec(
                    *self._command, stdin=pipe, stdout=pipe, env=self._env, pass_fds=locks
                )
            assert self.process.stdout is not None
            async for line in self.process.stdout:
                self._hear(line.decode("utf-8", "replace").strip())
            status = await self.process.wait()
            self.listening = {}
            self._alive_at = None
            if self._stop.is_set():
                return
            if status == _BAD_USE and not self.ready.is_set():
                self.refused = True
                return
            self.restarts += 1
            pause = _FIRST_PAUSE if time.monotonic() - started > _LIVED_LONG else min(_LONGEST_PAUSE, pause * 2)
            _log.error("process %d ended with status %d; it is started again in %g s", self.number, status, pause)
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._stop.wait(), pause)

    def _hear(self, line: str) -> None:
        if line.startswith("listening: "):
            self.listening = dict(part.split("=", 1) for part in line.removeprefix("listening: ").split())
            self.ready.set()
        elif line.startswith('{"ledger"'):
            self.ledger = json.loads(line)["ledger"]

    def alive(self, now: float) -> None:
        """It has reported."""
        self._alive_at = now

    def end_if_silent(self, now: float, longest: float) -> None:
        """Kill a process that was ready and has not reported for too long; :meth:`run` then starts it again."""
        if self._alive_at is not None and now - self._alive_at > longest and not self._stop.is_set():
            self._alive_at = None
            _log.error("process %d makes no progress; it is killed", self.number)
            self.signal(signal.SIGKILL, ending=False)

    def signal(self, number: signal.Signals, *, ending: bool = True) -> None:
        """Pass a signal on."""
        if ending and number != getattr(signal, "SIGHUP", None):
            self._stop.set()
        if self.process is not None and self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(number)


class Merged:
    """A Prometheus collector of the metrics of all processes: each sample as it is, with the number of its process."""

    def __init__(self, children: Sequence[Child]) -> None:
        self._children = children
        self._pool = ThreadPoolExecutor(max(1, len(children)), "agenteval-scrape")

    def describe(self) -> list[Metric]:
        """Nothing: the families are known when they are scraped."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Every family once, with the samples of all processes."""
        families: dict[str, Metric] = {}
        pages = list(self._pool.map(_scraped, self._children))
        for child, page in zip(self._children, pages, strict=True):
            for family in page:
                merged = families.get(family.name)
                if merged is None:
                    merged = families[family.name] = Metric(family.name, family.documentation, family.type, family.unit)
                merged.samples += [_with(sample, str(child.number)) for sample in family.samples]
        yield from families.values()
        up = Metric("agenteval_processes", "Whether each process answers.", "gauge")
        restarts = Metric("agenteval_process_restarts", "How often a process was started again.", "counter")
        for child, page in zip(self._children, pages, strict=True):
            labels = {LABEL: str(child.number)}
            up.samples.append(Sample("agenteval_processes", labels, float(bool(page))))
            restarts.samples.append(Sample("agenteval_process_restarts_total", labels, float(child.restarts)))
        yield up
        yield restarts

    def close(self) -> None:
        """Scrape no more."""
        self._pool.shutdown(wait=False)


def unready(children: Sequence[Child], stopping: bool) -> str:
    """Why no more should be sent to the processes at the moment; empty when all take it."""
    if stopping:
        return "shutting down"
    return "; ".join(f"process {child.number}: {child.unready}" for child in children if child.unready)


async def _poll_readiness(children: Sequence[Child]) -> None:
    """Ask each process again and again whether it is ready, so that a probe of all of them is answered at once."""
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(len(children), "agenteval-ready") as pool:
        while True:
            found = await asyncio.gather(*(loop.run_in_executor(pool, _readiness, child) for child in children))
            for child, (reason, checks) in zip(children, found, strict=True):
                child.unready, child.checks = reason, checks
            await asyncio.sleep(_LOOK_EVERY)


def _readiness(child: Child) -> tuple[str, list[Check]]:
    """Why a process takes no requests, and all that it checks."""
    address, name = child.listening.get("metrics"), f"process {child.number}"
    if address is None:
        return "starting", [Check(name, "starting", required=True)]
    request = urllib.request.Request(f"http://{address}/readyz?verbose", headers={"Accept": "application/json"})
    try:
        try:
            with urllib.request.urlopen(request, timeout=_SCRAPE) as answer:  # noqa: S310 - http, as above
                report = json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                report = json.load(error)
        return str(report["reason"]), checks_in(report, f"{name}: ")
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = f"does not answer: {type(error).__name__}"
        return reason, [Check(name, reason, required=True)]


def _scraped(child: Child) -> list[Metric]:
    address = child.listening.get("metrics")
    if address is None:
        return []
    request = urllib.request.Request(f"http://{address}/metrics", headers={"Accept": _OPENMETRICS})
    try:
        with urllib.request.urlopen(request, timeout=_SCRAPE) as response:  # noqa: S310 - as above
            return list(text_string_to_metric_families(response.read().decode()))  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        _log.warning("process %d cannot be measured: %s", child.number, type(error).__name__)
        return []


def _with(sample: Sample, number: str) -> Sample:
    return sample._replace(labels={**sample.labels, LABEL: number})


def command_of(config: Config, number: int, arguments: Sequence[str]) -> list[str]:
    """How a process is started: as we were, on ports of its own."""
    addresses = [part for name, address in addresses_of(config, number).items() for part in (f"--{name}", address or "off")]
    kept = [] if config.serve.journal is None else ["--journal", config.serve.journal]
    return [sys.executable, "-m", "otel_agenteval", "serve", "--child", str(number), *arguments, *addresses, *kept]


def routed_to(config: Config, count: int) -> list[str]:
    """Return the address of each process by which a Collector chooses it, or a name of its own if that is not known beforehand."""
    found = []
    for number in range(count):
        addresses = addresses_of(config, number)
        address = addresses["grpc"] or addresses["http"] or ":0"
        found.append(f"process-{number}" if address.endswith(":0") else address)
    return found


async def _all_ready(children: Sequence[Child]) -> bool:
    for child in children:
        await child.ready.wait()
    return True


class _Faults:
    """Takes the place of an engine in the parent, where faults are only logged."""

    @staticmethod
    def failed(where: str, error: BaseException) -> None:
        """Log it."""
        _log.warning("%s failed: %s", where, type(error).__name__)


class _Supervision:
    """Listens to what the processes report, and reports to the service manager for all of them.

    Args:
        notifier: reports to the service manager.
        count: how many processes there are.
    """

    def __init__(self, notifier: Notifier, count: int) -> None:
        self._notifier = notifier
        self.is_up = False
        """Whether every process listened. Until then each of them remembers a reload."""
        self.children: list[Child] = []
        self._listeners = [Listener(functools.partial(self._hear, number)) for number in range(count)] if notifier.enabled else []
        self._reloading: set[int] = set()

    def environment(self, number: int) -> dict[str, str] | None:
        """The environment of a process, so that it reports to us; None for our own."""
        if not self._listeners:
            return None
        variables = {"NOTIFY_SOCKET": self._listeners[number].address}
        if self._notifier.watchdog is not None:
            variables["WATCHDOG_USEC"] = str(int(self._notifier.watchdog * 1e6))
        return {**os.environ, **variables}

    def _hear(self, number: int, message: Mapping[str, str]) -> None:
        child = self.children[number]
        if "READY" in message or "WATCHDOG" in message:
            child.alive(time.monotonic())
        if "READY" in message and number in self._reloading:
            self._reloading.discard(number)
            if not self._reloading:
                self._notifier.ready("reloaded")

    def reload(self) -> None:
        """All of them read their configuration again."""
        self._notifier.reloading()
        self._reloading = {child.number for child in self.children if child.listening} if self._listeners else set()
        if not self._reloading:
            self._notifier.ready("reloaded")

    def stopping(self, within: float) -> None:
        """All of them are to end, within so many seconds."""
        self._notifier.stopping(within)

    async def watch(self, status: str) -> None:
        """Report that we are alive. A process that hangs is killed, and :meth:`Child.run` starts it again."""

        def stalled() -> str:
            if self._notifier.watchdog is not None:
                for child in self.children:
                    child.end_if_silent(time.monotonic(), self._notifier.watchdog)
            return ""

        await self._notifier.keep_reporting(stalled, lambda: status)

    def close(self) -> None:
        """Stop listening."""
        for listener in self._listeners:
            listener.close()


class _MetricsPage:
    """``/metrics`` of all processes together, and whether they are ready, at the address that is configured.

    Args:
        config: says where.
        children: the processes.
        stop: set once they are to end.
    """

    def __init__(self, config: Config, children: Sequence[Child], stop: asyncio.Event) -> None:
        self._options = config.serve
        self._children = children
        self._stop = stop
        self._merged = Merged(children)
        registry = CollectorRegistry()
        registry.register(self._merged)
        self._metrics = Metrics(registry)
        self._server: HttpServer | None = None
        self._polling: asyncio.Task[None] | None = None

    async def start(self) -> str | None:
        """Listen; the address, None where none is configured.

        Raises:
            ConfigError: the address cannot be used.
        """
        options = self._options
        if options.metrics is None:
            return None
        guard = Guard(options.metrics, options.allowed_hosts, options.allowed_origins)
        readiness = Readiness(
            lambda: unready(self._children, self._stop.is_set()),
            lambda: [check for child in self._children for check in child.checks],
        )
        page = Page(guard, _Faults, self._metrics.get, readiness)
        self._server = HttpServer(page, options.max_connections, options.client_connections)
        self._polling = asyncio.create_task(_poll_readiness(self._children))
        await self._server.start("serve.metrics", options.metrics, None)
        return self._server.address

    async def close(self) -> None:
        """Serve no more."""
        if self._server is not None:
            await self._server.stop(0.5)
        if self._polling is not None:
            self._polling.cancel()
        self._metrics.close()
        self._merged.close()


async def serve(
    config: Config, count: int, arguments: Sequence[str], signals: Signals, notifier: Notifier | None = None
) -> dict[str, Any]:
    """Run ``count`` processes until SIGTERM or SIGINT; their ledgers.

    Args:
        config: as for one process; ``serve`` has the first one's addresses.
        count: how many.
        arguments: of the command line, for each of them: configuration and the like.
        signals: are passed on to each of them.
        notifier: reports to the service manager, for all.

    Raises:
        ConfigError: one of them cannot start with what it was given. The others are stopped then.
    """
    notifier = notifier or Notifier()
    supervision = _Supervision(notifier, count)
    journal = None if config.serve.journal is None else JournalFolder(config.serve.journal)
    children = [
        Child(number, command_of(config, number, arguments), supervision.environment(number), journal) for number in range(count)
    ]
    supervision.children = children
    running: list[asyncio.Task[None]] = []
    stop = asyncio.Event()
    _pass_signals_on(signals, supervision, stop, config.serve.drain_timeout)
    page = _MetricsPage(config, children, stop)
    reporting = asyncio.create_task(notifier.while_starting())
    try:
        address = await page.start()
        await _make_way(config, count, journal, stop)
        if not stop.is_set():
            running += [asyncio.create_task(child.run()) for child in children]
            await _start_all(children, running, stop)
        if not stop.is_set():
            supervision.is_up = True
            if address is not None:
                print(f"listening: metrics={address}", flush=True)
            print(f"AGENTEVAL_ENDPOINTS='{endpoints([child.listening for child in children])}'", flush=True)
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


def _pass_signals_on(signals: Signals, supervision: _Supervision, stop: asyncio.Event, drain_timeout: float) -> None:
    """Every process gets the signals that we get; ``stop`` is set by those that end us."""

    def pass_on(number: int) -> None:
        if number != signal.SIGHUP:
            supervision.stopping(drain_timeout)
            stop.set()
        elif supervision.is_up:
            supervision.reload()
        for child in supervision.children:
            child.signal(signal.Signals(number))

    signals.pass_to(pass_on)


async def _make_way(config: Config, count: int, journal: JournalFolder | None, stop: asyncio.Event) -> None:
    """Wait for the end of processes whose parent was killed, and share out what they left in the journal.

    Raises:
        ConfigError: another service has the journal, or it cannot be used.
    """
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
    """Return True if another process listens on a port."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        socket.create_server((host, port), family=family).close()
    except OSError as error:
        return error.errno == errno.EADDRINUSE
    return False


async def _start_all(children: Sequence[Child], running: Sequence[asyncio.Task[None]], stop: asyncio.Event) -> None:
    """Until every process listens, or we are to stop.

    Raises:
        ConfigError: a process cannot start with what it was given.
    """
    started = [asyncio.ensure_future(_all_ready(children)), asyncio.ensure_future(stop.wait())]
    await asyncio.wait([*started, *running], return_when=asyncio.FIRST_COMPLETED)
    refused = [child.number for child in children if child.refused]
    if refused:
        raise ConfigError(f"process {refused[0]} of {len(children)} cannot start; its own message above says why")
