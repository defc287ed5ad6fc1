"""Sidecar process: startup, reload, and shutdown."""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, ProcessCollector

from ..config.loader import load_config
from ..config.root import Config
from ..config.types import split_address
from ..core import semconv
from ..core.clock import SYSTEM_CLOCK, Clock
from ..core.errors import ConfigError
from ..core.files import fault_of_folder, make_private, warn_of_fault
from ..core.threads import mark_as_ours
from ..dialects.capture import advice_on
from ..engine.builder import engine_from
from ..engine.engine import BEHIND_OTLP
from ..evaluation.selection import select_metrics
from ..judging.budget import bounds_of
from ..outlets.prometheus import PrometheusOutlet
from ..page.api import Api, Options, Reader
from .admin import Check, GetHandler, Metrics, Readiness, api, delivery
from .auth import Guard, check_exposure, is_token
from .certificates import Validity, checked_validities, tls_context
from .grpc import GrpcServer
from .http import OtlpHandler
from .http_server import BackgroundServer, Head, HttpServer, SocketListener
from .journal_folder import ALONE, LOCK_GRACE, JournalFolder
from .poison import PoisonList
from .receiver import Receiver
from .wal import Journal
from .web import Web, credentials_in

_log = logging.getLogger("otel_agenteval")

_THREADS = 4
_MAINTENANCE = 1.0
_DELIVER_WITHIN = 4.0
"""Maximum seconds to wait for outlets. If delivery takes longer, no journal segment is deleted. The wait can delay a shutdown."""
_AT_START = (
    "grpc", "http", "metrics", "web", "insecure", "tls", "allowed_hosts", "allowed_origins", "max_body", "max_inflight", "max_connections",
    "client_connections", "journal", "journal_bytes", "page",
)  # fmt: skip
_REMAINING = {"usd": semconv.BUDGET_REMAINING, "calls": semconv.BUDGET_CALLS}
_SHOWN = (
    *_REMAINING.values(), semconv.QUEUE_SIZE, semconv.QUEUE_CAPACITY, semconv.LOAD_LEVEL, semconv.JUDGE_REQUESTS,
)  # fmt: skip
_LOSSES = ("queue_full", "shutdown", "fault", "stuck", "too_long", "poisoned", "error")
_GRACE = 3.0
_CHECK_EVERY = 15.0


class Service:
    """Sidecar process with an engine, listeners, and a journal.

    If a parent process started this process, ``number`` is this process's index, and the parent locks the journal.
    """

    def __init__(
        self, config: Config, *, clock: Clock = SYSTEM_CLOCK, waited: Callable[[], float] | None = None, number: int | None = None
    ) -> None:
        self.options = config.serve
        self._number = number
        check_start(config)
        self.registry = CollectorRegistry()
        self.engine = engine_from(as_sidecar(config), decision_delay=BEHIND_OTLP, clock=clock, waited=waited)
        self.engine.outlets.add(PrometheusOutlet(self.engine.telemetry, registry=self.registry))
        ProcessCollector(registry=self.registry)
        if self.options.journal is not None:
            warn_of_fault(config.where(("serve", "journal")), self.options.journal, fault_of_folder, "no request is accepted")
            self.engine.keep_all()
        self.journal: Journal | None = None
        self._folder: JournalFolder | None = None
        self.engine.intake.keep_all()
        self.receiver = Receiver(self.engine, self.options, clock)
        self._maintenance: list[asyncio.Task[None]] = []
        self.more_checks: list[Callable[[], Check]] = []
        self._readiness = Readiness(self.unready, self.checks)
        self._threads = ThreadPoolExecutor(_THREADS, "agenteval-receiver", mark_as_ours)
        self._servers: dict[str, SocketListener] = {}
        self._metrics = Metrics(self.registry)
        self._web: Web | None = None
        self._tls_contexts: dict[str, ssl.SSLContext | None] = {}
        self._valid: dict[str, Validity] = {}
        self._reloaded = (True, clock.time_ns())
        """True if the last load of the configuration was valid, and the Unix time of the last valid load in nanoseconds."""
        self._clock = clock
        self._delivered = False
        self._is_open = False
        self._watch()

    def _watch(self) -> None:
        telemetry = self.engine.telemetry
        watch = telemetry.watch
        outcomes, names = self.receiver.outcomes, ("transport", "signal", "outcome")
        watch(semconv.SERVE_REQUESTS, lambda: [(dict(zip(names, key, strict=True)), n) for key, n in outcomes.copy().items()])
        watch(semconv.SERVE_SCRAPES, lambda: [({"client": client}, n) for client, n in self._metrics.scrapes.copy().items()])
        watch(semconv.SERVE_BYTES, lambda: [({}, self.receiver.bytes_received)])
        in_flight = self.receiver.in_flight
        watch(semconv.QUEUE_SIZE, lambda: [({"queue": "requests"}, in_flight.used)])
        watch(semconv.QUEUE_CAPACITY, lambda: [({"queue": "requests"}, in_flight.limit)])
        watch(semconv.SERVE_RUNNING, lambda: [({}, self.receiver.running)])
        watch(semconv.SERVE_CONNECTIONS, lambda: [({"listener": n}, s.connections) for n, s in self._servers.copy().items()])
        watch(
            semconv.SERVE_CONNECTIONS_REFUSED,
            lambda: [
                ({"listener": n, "reason": why}, k) for n, s in self._servers.copy().items() for why, k in s.refused.items()
            ],
        )
        self.receiver.tenants.watch(telemetry, lambda number: self.engine.status.turns_of(number).open)
        watch(semconv.CERTIFICATE_EXPIRY, lambda: [({"file": option}, valid.end) for option, valid in self._valid.items()])
        watch(semconv.RELOAD_OK, lambda: [({}, self._reloaded[0])])
        watch(semconv.RELOAD_TIME, lambda: [({}, self._reloaded[1] / 1e9)])
        listeners = {"grpc": self.options.grpc, "http": self.options.http}
        telemetry.expect(semconv.SERVE_REQUESTS, transport=[name for name, address in listeners.items() if address is not None])

    @property
    def addresses(self) -> dict[str, str]:
        return {name: server.address for name, server in self._servers.items()}

    async def start(self) -> None:
        try:
            await self._open()
        except BaseException:
            await self.drain()
            raise

    def stop_taking(self) -> None:
        """Refuse further requests, so that senders use another server. Stop replaying the journal."""
        self.receiver.stopping = True
        if self.journal is not None:
            self.journal.stops_replaying = True

    async def _open(self) -> None:
        options = self.options
        limits = options.max_connections, options.client_connections
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._fault)
        if self.receiver.stopping:
            return
        self.engine.start()
        self._maintenance.append(loop.create_task(self._check_outlets()))
        self._valid = checked_validities(options.tls)
        if options.metrics is not None:
            page = GetHandler(self._guard(options.metrics), self.engine.failed, self._metrics.get, self._readiness)
            background = BackgroundServer(page, *limits, self._fault)
            await background.start("serve.metrics", options.metrics)
            self._servers["metrics"] = background
        if options.journal is not None:
            await self._open_journal(options.journal)
            if self.receiver.stopping:
                return
        if options.web is not None:
            self._web = self._page(options.web)
            await self._listen("web", options.web, HttpServer(self._web, *limits))
        if options.grpc is not None:
            await self._listen("grpc", options.grpc, GrpcServer(self.receiver, self._threads), "h2")
        if options.http is not None:  # last, so that everything is open once a sender gets a response here
            self._is_open = True
            handler = OtlpHandler(self.receiver, self._threads, self._guard(options.http), self._readiness)
            await self._listen("http", options.http, HttpServer(handler, *limits))
        self._is_open = True
        if self.journal is not None:
            rounds = [self.receiver.replay]
            if self.receiver.poison is not None and self.receiver.poison.has_suspects:
                rounds.append(partial(self.receiver.replay, last=True))
            await loop.run_in_executor(None, self.journal.replay, *rounds)
            if self.receiver.stopping:
                return
            self.receiver.replaying = False
            self._maintenance.append(loop.create_task(self._maintain_journal(self.journal)))

    async def _open_journal(self, path: str) -> None:
        """Open the journal. Wait while another process uses the journal, such as an earlier sidecar that is still stopping."""
        folder = JournalFolder(path)
        if self._number is None:
            self._folder = folder
            if not await folder.acquire(self.options.drain_timeout + LOCK_GRACE, lambda: self.receiver.stopping):
                return
            self.engine.reopen_statistics()
            await asyncio.get_running_loop().run_in_executor(None, folder.share_out, ALONE)
        poison = PoisonList(folder.path)
        self.engine.keep_in_hand(poison)
        journal = self.journal = Journal(folder.part(self._number or 0), self.options.journal_bytes)
        self.receiver.journal, self.receiver.poison = journal, poison
        watch = self.engine.telemetry.watch
        watch(semconv.QUEUE_SIZE, lambda: [({"queue": "journal"}, journal.size)])
        watch(semconv.QUEUE_CAPACITY, lambda: [({"queue": "journal"}, self.options.journal_bytes)])
        watch(semconv.JOURNAL_SIZE, lambda: [({}, journal.size)])
        watch(semconv.JOURNAL_AGE, lambda: [({}, journal.age)])
        watch(semconv.JOURNAL_FAILURES, lambda: [({}, journal.failures)])
        watch(semconv.JOURNAL_REPLAYED, lambda: [({}, journal.replayed)])

    def _page(self, address: str) -> Web:
        store, page = self.engine.config.outlets.store, self.options.page

        def parameters(metric: str) -> Mapping[str, Any]:
            return next((bound.params for bound in select_metrics(self.engine.config) if bound.name == metric), {})

        found: Api | None = None
        if store is not None:
            shown = Options(page.content, page.trace_url, page.labels)
            found = Api(store.path, shown, self.page_status, self.engine.why, parameters, self._clock)
        guard = self._guard(address, serves_page=True)
        return Web(guard, self._reader, found, self.engine.failed, api(self.engine, self.ledger, page.content))

    def page_status(self) -> dict[str, Any]:
        """Return the status for the web UI, such as data counts (ledger), queue sizes, remaining budgets, and unread traces."""
        more = {}
        for name in _SHOWN:
            if (family := self.engine.telemetry.read(name)) is not None:
                for labels, value in family.values.items():
                    more[" ".join((name.removeprefix("agenteval."), *filter(None, map(str, labels))))] = value
        unread = self.engine.telemetry.read(semconv.UNREAD_TRACES)
        missing = [
            {"scope": scope, "missing": part, "traces": traces, "fix": advice_on(part, [scope])}
            for (scope, part), traces in (unread.values.items() if unread is not None else ())
        ]
        return {**self.ledger(), "more": more, "budgets": list(self._budgets()), "unread_traces": missing}

    def _budgets(self) -> Iterator[dict[str, Any]]:
        for bound in bounds_of(self.engine.config.judge.budget):
            account, unit = bound.counter.account, bound.counter.unit
            family = self.engine.telemetry.read(_REMAINING[unit])
            remaining = family.values.get((account, bound.window)) if family is not None else None
            if remaining is not None:
                found = {"unit": unit, "window": bound.window, "limit": bound.limit, "remaining": remaining}
                yield {"metric": account or None, **found}

    def _reader(self, head: Head) -> Reader:
        name, token = credentials_in(head.headers.get("authorization")) or ("someone", None)
        if self.options.page.read_token is not None and is_token(token, (self.options.page.read_token,)):
            return Reader("read", None, name)
        if self.receiver.tenants and is_token(token, self.options.token or ()):  # the operator's token
            return Reader("label", None, name)
        tenant = self.receiver.authorize(f"Bearer {token}" if token is not None else None)
        return Reader("label", tenant.name if tenant is not None else None, name)

    async def _maintain_journal(self, journal: Journal) -> None:
        loop, engine = asyncio.get_running_loop(), self.engine
        collect = partial(journal.collect, engine.intake.held, lambda: not engine.unsent_jobs and engine.flush(_DELIVER_WITHIN))
        while True:
            await asyncio.sleep(_MAINTENANCE)
            for work in (journal.probe, collect):
                try:
                    await loop.run_in_executor(None, work)
                except Exception as error:
                    self.engine.failed("journal", error)

    async def _check_outlets(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await loop.run_in_executor(None, self.engine.outlets.check)
            if (judging := self.engine.judging) is not None and judging.queue.unsent:  # there may be no judge threads
                await loop.run_in_executor(None, judging.queue.flush)
            await asyncio.sleep(_CHECK_EVERY)

    def reload(self, config: Config) -> list[str]:
        """Apply a new configuration, and return the changed options that need a restart. If it's invalid, raise an error."""
        self.reload_failed()  # until the reload succeeds
        found, before = config.serve, self.options
        fixed = [f"serve.{name}" for name in _AT_START if getattr(found, name) != getattr(before, name)]
        kept = found.replaced(**{name: getattr(before, name) for name in _AT_START})
        check_start(config)
        check_exposure(kept)  # with the addresses in use
        contexts = {protocol: tls_context(found.tls, protocol, config.where) for protocol in self._tls_contexts or ("http/1.1",)}
        fixed = [*self.engine.reload(as_sidecar(config)), *fixed]
        if found.tls == before.tls:
            self._tls_contexts = contexts
        self.options = kept
        self.receiver.set_options(kept)
        self._reloaded = (True, self._clock.time_ns())
        self._valid = checked_validities(kept.tls)
        return fixed

    def _renew(self, protocol: str, connection: ssl.SSLObject, *_: object) -> None:
        context = self._tls_contexts[protocol]
        assert context is not None
        connection.context = context

    def reload_failed(self) -> None:
        self._reloaded = (False, self._reloaded[1])

    async def _listen(self, name: str, address: str, server: SocketListener, protocol: str = "http/1.1") -> None:
        context = tls_context(self.options.tls, protocol, self.engine.config.where)
        if context is not None:
            self._tls_contexts.setdefault(protocol, context)
            context.sni_callback = partial(self._renew, protocol)
        await server.start(f"serve.{name}", address, context)
        self._servers[name] = server

    def _guard(self, address: str, *, serves_page: bool = False) -> Guard:
        return Guard(address, self.options.allowed_hosts, self.options.allowed_origins, serves_page=serves_page)

    def _fault(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        self.engine.failed("loop", error if isinstance(error, Exception) else RuntimeError(context.get("message", "")))

    async def drain(self, *, watched: bool = True) -> dict[str, Any]:
        """Evaluate open turns, deliver scores, and return final counts. If ``watched``, keep serving metrics and the web UI."""
        until = time.monotonic() + self.options.drain_timeout
        self.stop_taking()
        grace = min(_GRACE, self.options.drain_timeout / 4)
        receiving = ("grpc", "http")
        await asyncio.gather(*(server.stop(grace) for name, server in self._servers.items() if name in receiving or not watched))
        for task in self._maintenance:
            task.cancel()
        await asyncio.get_running_loop().run_in_executor(None, self._end_engine, until)
        for name, server in self._servers.items():
            if name not in receiving and watched:  # these show the progress until the end
                await server.stop(0.5)
        self._metrics.close()
        if self._web is not None:
            self._web.close()
        return self.ledger()

    def _end_engine(self, until: float) -> None:
        self._threads.shutdown(wait=True)
        engine = self.engine
        done = engine.shutdown(max(0.1, until - time.monotonic()))
        kept = False
        if self.journal is not None:
            self.journal.close(engine.delivered, engine.left_behind or ())
            kept = self.journal.size > 0
        if self.receiver.poison is not None:
            self.receiver.poison.close()
        if self._folder is not None:
            self._folder.release()
        unused = engine.status.unused_spans()
        records = engine.outlets.records()
        for name, account in records.items():
            if account.waiting:
                _log.warning("outlet %s: scores kept until the next start: %d", name, account.waiting)
        left = any(account.failed or account.waiting for account in records.values())
        self._delivered = done and not kept and not left and not any(unused.get(reason) for reason in _LOSSES)

    def unready(self) -> str:
        found = (one for one in delivery(self.engine, self.options.ready_outlets) if one.required and one.reason)
        return self._refusal_reason() or next((f"{check.name}: {check.reason}" for check in found), "")

    def checks(self) -> list[Check]:
        found = [Check("requests", self._refusal_reason(), required=True), *delivery(self.engine, self.options.ready_outlets)]
        if self.receiver.last_outcome == "unauthenticated":
            found.append(Check("authentication", "the last request had no valid token"))
        if not self._reloaded[0]:
            found.append(Check("configuration", "the last reload failed; the log contains the reason"))
        now = self._clock.time_ns() / 1e9
        found += [Check(f"certificate {option}", "expired") for option, valid in self._valid.items() if valid.end <= now]
        return [*found, *(check() for check in self.more_checks)]

    def _refusal_reason(self) -> str:
        if self.receiver.stopping:
            return "shutting down"
        if self.receiver.replaying:
            return "starting: replaying the journal" if self.journal is not None else "starting: waiting for the journal"
        if not self._is_open:
            return "starting"
        if self.journal is not None and (trouble := self.journal.trouble):
            return trouble
        if self.receiver.overloaded():
            return "overloaded: evaluation is behind"
        return "overloaded: open turns are close to their limit" if self.receiver.arriving.is_full else ""

    def ledger(self) -> dict[str, Any]:
        """Return counts of all data received since startup, by outcome.

        For spans: received = scored + not used + held (waiting for a score). For outlet records: made = delivered + waiting +
        failed.
        """
        engine = self.engine
        spans = engine.status.spans()
        responses: dict[str, int] = {}
        for (_, _, outcome), count in sorted(self.receiver.outcomes.copy().items()):
            responses[outcome] = responses.get(outcome, 0) + count
        read = engine.telemetry.read
        errors = read(semconv.EMIT_ERRORS)
        return {
            "requests": responses,
            "spans": {"received": spans.received, "scored": spans.scored, "held": spans.held, "not_used": spans.unused},
            "turns": {"open": spans.open_turns, "waiting": engine.status.waiting_turns, "closed": _by(read(semconv.TURNS), "close_reason")},
            "results": _by(read(semconv.RESULTS), "outcome"),
            "outlets": {name: account.to_dict() for name, account in engine.outlets.records().items()},
            "outlet_errors": {f"{outlet}: {reason}": int(count) for (outlet, reason), count in errors.values.items() if count},
            "faults": dict(engine.failures),
            "handed_over": self._delivered,
            **({"journal": self.journal.status()} if self.journal is not None else {}),
        }  # fmt: skip


def _by(family: Any, attribute: str) -> dict[str, int]:
    found: dict[str, int] = {}
    if family is not None:
        at = family.instrument.attributes.index(attribute)
        for labels, value in family.values.items():
            if value:
                found[labels[at]] = found.get(labels[at], 0) + int(value)
    return dict(sorted(found.items()))


def check_start(config: Config) -> None:
    """Raise ConfigError if addresses, TLS files, or required outlets prevent the start. Don't open ports or write files."""
    options, taken = config.serve, dict[tuple[str, int], str]()
    for name in ("grpc", "http", "metrics", "web"):
        host, port = split_address(getattr(options, name) or "off:0")
        for (other_host, other_port), other in taken.items():
            if port and port == other_port and (host == other_host or {host, other_host} & {"0.0.0.0", "::"}):  # noqa: S104
                raise ConfigError(f"{config.where(('serve', name))}: {port} is also the port of serve.{other}. Set another port")
        taken[host, port] = name
    check_exposure(options)
    tls_context(options.tls, where=config.where)
    outlets = config.outlets
    off = {name for name in outlets.to_dict() if getattr(outlets, name) in (None, False, "off")} - {"prometheus"}
    if "log_events" not in outlets.options_given:
        off.add("log_events")
    if missing := next((name for name in options.ready_outlets if name in off), None):
        where, on = config.where(("serve", "ready_outlets")), sorted({*outlets.to_dict()} - off - {"span_events"})
        raise ConfigError(f"{where}: must be enabled outlets, got {missing}. Enabled: {', '.join(on)}")


# --- defaults of the sidecar


def as_sidecar(config: Config) -> Config:
    """Return the configuration with the sidecar's defaults.

    A sidecar serves its own ``/metrics``, doesn't export log events, and detects changes in scores. Statistics and judge jobs are
    stored in files. With a journal, undelivered OTLP records are stored in a spool. Explicit options take precedence, except that
    ``outlets.prometheus`` is always off.
    """
    more: dict[str, Any] = {"outlets": {"prometheus": None}}
    if "log_events" not in config.outlets.options_given:  # a sidecar has no application that configures OpenTelemetry logging
        more["outlets"]["log_events"] = "off"
    more["statistics"] = statistics = dict[str, Any]()
    if config.statistics.changes.detect == "auto":
        statistics["changes"] = {"detect": True}
    if config.statistics.state == "auto":
        try:
            statistics["state"] = str(state_folder() / "statistics.json")
        except ConfigError:  # statistics work without a state file
            statistics["state"] = None
    judged = any(service.model is not None for service in (config.judge, config.embedder))
    if judged and "backend" not in config.judge.queue.options_given:
        more["judge"] = {"queue": {"backend": "sqlite", "path": str(state_folder() / "queue.db")}}
    otlp = config.outlets.otlp
    if otlp is not None and config.serve.journal is not None and "spool" not in otlp.options_given:
        # without a spool, the journal would keep the requests of every undelivered score
        more["outlets"]["otlp"] = {"spool": {"directory": str(Path(config.serve.journal) / "spool")}}
    return load_config(config, overrides=more)


def state_folder() -> Path:
    """Create and return the folder ``otel-agenteval`` in ``$XDG_STATE_HOME`` or ``~/.local/state``. Raises ConfigError."""
    folder = Path(os.environ.get("XDG_STATE_HOME", "").strip() or "~/.local/state", "otel-agenteval")
    try:
        make_private(folder := folder.expanduser())  # a RuntimeError if the user has no home
    except (OSError, RuntimeError) as error:
        raise ConfigError(f"{folder}: can't create folder: {getattr(error, 'strerror', error)}. Set judge.queue.path") from None
    return folder
