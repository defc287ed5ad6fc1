"""Admission and processing of OTLP requests over gRPC and HTTP.

An acknowledged request is in the engine and, if a journal is configured, on disk. Responses don't wait for the evaluation of turns.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import Counter, OrderedDict
from concurrent.futures import Executor
from contextvars import copy_context
from typing import NamedTuple

from ..config.serve import ServeOptions
from ..core import jsonio
from ..core.clock import SYSTEM_CLOCK, Clock
from ..core.errors import NotOtlp
from ..core.pacing import TokenBucket
from ..core.tenancy import base_of, trace_name
from ..engine.engine import Engine
from ..spans.otlp import Signal
from ..spans.split import count_records
from ..spans.wire import OVERHEAD
from .admission import COPIES, LEAST, TURNS_FULL, UNBOUNDED, Arriving, Budget, MemoryShare, inflate
from .auth import Tenant, Tenants, bearer_in, is_token
from .feed import Batch, Feed
from .logformat import caller
from .poison import PoisonList
from .responses import FAULT, Accepted, Refusal, Refused
from .wal import Journal, Record

_log = logging.getLogger("otel_agenteval")

FULL = 0.75
ANSWER_WITHIN = 4.5
"""Maximum seconds until a response is sent. A Collector retries after 5 seconds without a response."""
_TOO_LATE = Refusal("overloaded", "processing took too long; retry the request (repeated spans count only once)").answer
_MAX_CLIENTS = 10_000
_LARGE = 512 << 10
"""Body size in bytes. Above this size, records of protobuf bodies are counted before parsing, to reserve memory."""
LOG_EVERY = 10.0


class ExportRequest(NamedTuple):
    signal: Signal
    body: bytes
    encoding: str
    json: bool
    share: MemoryShare = UNBOUNDED
    tenant: Tenant | None = None


class Receiver:
    def __init__(self, engine: Engine, options: ServeOptions, clock: Clock = SYSTEM_CLOCK) -> None:
        self.engine = engine
        self.feed = Feed(engine, options)
        self.journal: Journal | None = None
        self.poison: PoisonList | None = None
        """Names of requests and traces to skip, or None without an open journal."""
        self._clock = clock
        self.stopping = False
        self.replaying = options.journal is not None
        """True until the journal has been replayed. Until then, other requests are refused."""
        self.running = 0
        self._bytes = 0
        self._lock = threading.Lock()
        self.outcomes: Counter[tuple[str, str, str]] = Counter()
        self.last_outcome = ""
        self.bytes_received = 0
        self._log_refusals = RefusalLog(clock)
        self._clients: OrderedDict[str, TokenBucket] = OrderedDict()
        self.tenants = Tenants((), clock.monotonic)
        self.arriving = Arriving(engine.status, clock.monotonic)
        self.in_flight = Budget(options.max_inflight or max(LEAST, 4 * options.max_body))
        self.set_options(options)

    def set_options(self, options: ServeOptions) -> None:
        self.options = options
        self.feed.set_options(options)
        self._clients.clear()
        self.tenants.set_options(options.tenants)
        self.engine.set_tenant_labels(self.tenants.labels)

    # --- admission: before a body is read

    def authorize(self, authorization: str | None) -> Tenant | None:
        """Return the tenant that sent a request, or None without configured tenants. If a required token is missing or wrong, raise a Refusal."""
        token = bearer_in(authorization)
        if self.tenants:
            tenant = self.tenants.by_token(token or "")
            if tenant is not None:
                return tenant
        elif self.options.token is None or is_token(token, self.options.token):
            return None
        raise Refusal("unauthenticated", "a valid bearer token is required")

    def admit(self, client: str, tenant: Tenant | None = None) -> None:
        """Admit a request, or raise a Refusal. Call :meth:`release` when the request ends."""
        try:
            if tenant is not None:
                tenant.admit()
            if self.stopping:
                raise Refusal("stopping", "shutting down")
            if self.replaying:
                raise Refusal("overloaded", "starting: replaying the journal")
            if self.running >= self.options.max_requests:
                raise Refusal("overloaded", "too many concurrent requests (serve.max_requests)")
            if self.journal is not None and (trouble := self.journal.trouble):
                raise Refusal("overloaded", trouble)
            if self.overloaded():
                raise Refusal("overloaded", "evaluation is behind, and the queue of turns is nearly full")
            if self.arriving.is_full:
                raise Refusal("overloaded", TURNS_FULL)
            rate = self.options.client_rate
            wait = 0.0 if rate is None else self._bucket(client, rate).wait()
            if wait > 0:
                raise Refusal("throttled", "this client exceeds the allowed rate (serve.client_rate)", max(0.1, min(wait, 10.0)))
        except Refusal as refusal:
            if tenant is not None:
                tenant.refuse(refusal.reason)
            raise
        self.running += 1

    def release(self, client: str, size: int) -> None:
        self.running -= 1
        self.bytes_received += size
        rate = self.options.client_rate
        if rate is not None:
            self._bucket(client, rate).take(size)

    def overloaded(self, replaying: bool = False) -> bool:
        if self.engine.status.queue_fill(self._bytes) > FULL:
            return True
        return not replaying and self.journal is not None and self.journal.full

    def _bucket(self, client: str, rate: int) -> TokenBucket:
        bucket = self._clients.get(client)
        if bucket is None:
            bucket = self._clients[client] = TokenBucket(rate, self._clock.monotonic)
            if len(self._clients) > _MAX_CLIENTS:
                self._clients.popitem(last=False)
        return bucket

    def count(self, transport: str, signal: str, outcome: str) -> None:
        self.outcomes[transport, signal, outcome] += 1
        self.last_outcome = outcome

    def refused(self, transport: str, signal: str, refusal: Refused) -> None:
        self.count(transport, signal, refusal.kind)
        self._log_refusals(transport, signal, refusal)

    # --- processing: on a separate thread

    async def answer(self, request: ExportRequest, transport: str, threads: Executor) -> Accepted | Refused:
        """Process a request on a separate thread. If processing takes over 4.5 seconds, the response tells the sender to retry.

        The request's memory is released when the thread finishes.
        """
        work = asyncio.get_running_loop().run_in_executor(threads, copy_context().run, self._process, request, transport)
        request.share.keep_until(work)
        done, _ = await asyncio.wait((work,), timeout=ANSWER_WITHIN)
        return work.result() if done else _TOO_LATE

    def _process(self, request: ExportRequest, transport: str) -> Accepted | Refused:
        """Return the response. Never raise errors, because a future would keep the exception and the request in memory."""
        try:
            return self.process(request)
        except Refusal as refusal:
            if request.tenant is not None:
                request.tenant.refuse(refusal.reason)
            return refusal.answer
        except BaseException as error:  # SystemExit must not reach the event loop either
            self.engine.failed(transport, error)
            return FAULT

    def process(self, request: ExportRequest) -> Accepted:
        body = inflate(request.body, request.encoding, self.options.max_body, request.share)
        if request.tenant is not None:
            request.tenant.charge(size=len(body))
        self._make_room(body, request)
        with self._lock:
            self._bytes += len(body)
        try:
            batch = self._read(body, request)
            entry = None
            if self.journal is not None and body:
                # The journal comes first. A turn that closes immediately must find its request there, and unsaved requests aren't evaluated.
                tenant = None if request.tenant is None else request.tenant.name
                entry = self.journal.append(request.signal, body, request.json, tenant)
                entry.wait()
            traces: set[int] = set()
            try:
                with self.arriving.room(batch.parts):
                    self.feed.pass_on(batch)
                if entry is not None:
                    traces = batch.traces
            finally:
                if entry is not None:
                    entry.holds(traces)
        finally:
            with self._lock:
                self._bytes -= len(body)
        if not batch.invalid:
            return Accepted()
        what = "spans without valid IDs" if request.signal == "traces" else "unreadable log records"
        return Accepted(batch.invalid, f"dropped {batch.invalid} {what}")

    def _read(self, body: bytes, request: ExportRequest) -> Batch:
        tenant = request.tenant
        try:
            batch = self.feed.read(request.signal, body, request.json, 0 if tenant is None else tenant.base)
        except NotOtlp as error:
            raise Refusal("bad_data", str(error)) from None
        if tenant is not None:
            if tenant.options.quotas.open_turns is not None:
                tenant.admit_turns(self.engine.status.turns_of(tenant.number, [key for key, _ in batch.parts]))
            tenant.charge(spans=batch.spans)
        return batch

    @staticmethod
    def _make_room(body: bytes, request: ExportRequest) -> None:
        share = request.share
        if request.json:
            share.grow(jsonio.weight(body))
            return
        share.grow((COPIES - 1) * len(body))
        room = share.room
        if room is not None and len(body) > _LARGE:
            try:
                share.grow(OVERHEAD * count_records(body, room // OVERHEAD))
            except NotOtlp as error:
                raise Refusal("bad_data", str(error)) from None

    def replay(self, record: Record, *, last: bool = False) -> set[int]:
        """Process a request from the journal, drop its poisoned traces, and return its other traces.

        Skip invalid and poisoned requests. If ``last``, process only traces and requests that crashed a process once. Otherwise, skip these.
        """
        poison = self.poison
        assert poison is not None
        if poison.is_poisoned(record.id) or (poison.is_suspect(record.id) and not last):
            return set()
        while self.overloaded(replaying=True) and not self.stopping:
            self.engine.evaluate_closed(1.0)
        with poison.reading(record.id):
            try:
                batch = self.feed.read(record.signal, record.body, record.is_json, base_of(record.tenant))
            except NotOtlp:
                return set()
        batch.keep(record.share)
        names = {key: trace_name(key) for key in batch.traces}
        poisoned = {key for key, name in names.items() if poison.is_poisoned(name)}
        suspects = {key for key, name in names.items() if poison.is_suspect(name) or poison.is_suspect(record.id)}
        self.feed.pass_on(batch, poisoned | (names.keys() - suspects if last else suspects))
        if not last:
            self.engine.intake.count_drop("poisoned", sum(len(part.spans) for key, part in batch.parts if key in poisoned))
        return names.keys() - poisoned


class RefusalLog:
    """Log of refusals, with the sender but no content. Logs at most one refusal per kind and transport every 10 seconds."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._next: dict[tuple[str, str], float] = {}
        self._suppressed: Counter[tuple[str, str]] = Counter()

    def __call__(self, transport: str, signal: str, refusal: Refused) -> None:
        key, now = (transport, refusal.kind), self._clock.monotonic()
        with self._lock:
            if now < self._next.get(key, now):
                self._suppressed[key] += 1
                return
            self._next[key] = now + LOG_EVERY
            suppressed = self._suppressed.pop(key, 0)
        request = caller.get()
        _log.log(
            logging.INFO if refusal.kind == "stopping" else logging.WARNING,
            "refused %s %s from %s: %s: %s%s",
            transport, signal, request.client if request is not None else "?", refusal.kind, refusal.message,
            f" ({suppressed} more since the last line of this kind)" if suppressed else "",
        )  # fmt: skip
