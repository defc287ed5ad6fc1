"""What is taken, how it is read, and where it goes: everything that both transports have in common.

Acknowledged means: it is in the assembler (and, with a journal, on disk). Nothing is evaluated before the answer.
"""

from __future__ import annotations

import hashlib
import threading
from collections import Counter, OrderedDict
from contextlib import nullcontext
from typing import NamedTuple

from ..config.serve import ServeOptions
from ..core import jsonio, semconv
from ..core.clock import SYSTEM_CLOCK, Clock
from ..core.errors import NotASpan, NotOtlp
from ..core.tenancy import base_of
from ..dialects.reader import GENAI
from ..engine.engine import Engine
from ..spans.otlp import OtlpLog, Signal, from_json
from ..spans.record import SpanRecord, cut_long_values
from ..spans.split import count_records, split_logs, split_spans
from ..spans.wire import OVERHEAD, Part, WireSpan
from .admission import COPIES, LEAST, TURNS_FULL, UNBOUNDED, Arriving, Budget, Share
from .auth import Tenant, Tenants, TokenBucket, bearer_in, is_token
from .inflate import inflate
from .refusal_log import RefusalLog
from .responses import Accepted, Refusal, Refused
from .wal import Journal

FULL = 0.75
"""Share of the worker's queue from which senders are asked to come again."""
_MAX_CLIENTS = 10_000
_SPANS_AT_ONCE = 256
"""Spans that are handed to the assembler under one hold of its lock."""
_LOG_SIZE = 1_024
_LARGE = 512 << 10
"""Bytes of a body from which its records are counted before they are read: smaller ones cannot become much."""
_LEAST_SPAN = 32
"""Bytes of a span at least, with its ids and times."""


class Request(NamedTuple):
    """One export request, as a transport got it."""

    signal: Signal
    body: bytes
    encoding: str
    """As ``Content-Encoding`` names it."""
    json: bool
    share: Share = UNBOUNDED
    """What it holds of the bytes under way; its body is in it already."""
    tenant: Tenant | None = None
    """Whose it is, where there are tenants."""


class Receiver:
    """Admits, reads and hands over.

    Args:
        engine: whose assembler gets the spans.
        options: limits.
        journal: keeps requests on disk, if there is one.
        clock: injected by tests.
    """

    def __init__(
        self, engine: Engine, options: ServeOptions, journal: Journal | None = None, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self.engine = engine
        self.journal = journal
        self._clock = clock
        self.stopping = False
        """Whether senders are to go elsewhere."""
        self.replaying = False
        """Whether the journal is being handed over, and nothing else is taken."""
        self.running = 0
        """Requests that were admitted and not answered yet."""
        self._bytes = 0
        self._lock = threading.Lock()
        self.outcomes: Counter[tuple[str, str, str]] = Counter()
        """Answers by transport, signal and outcome."""
        self.bytes_received = 0
        """Of bodies, as they came."""
        self._refusals = RefusalLog(clock)
        self._clients: OrderedDict[str, TokenBucket] = OrderedDict()
        self.tenants = Tenants((), clock.monotonic)
        self._arriving = Arriving(engine.assembler, clock.monotonic)
        self.in_flight = Budget(options.max_inflight or max(LEAST, 4 * options.max_body))
        """What requests hold that are not answered yet."""
        self.set_options(options)

    def set_options(self, options: ServeOptions) -> None:
        """Other limits from now on."""
        self.options = options
        self._sampled_below = int(options.sample_rate * 2**64)
        self._clients.clear()
        self.tenants.set_options(options.tenants)
        self.engine.pipeline.composer.tenant_labels = self.tenants.labels

    # --- admission: before a body is read

    def authorize(self, authorization: str | None) -> Tenant | None:
        """Who sends: the tenant, where there are some.

        Raises:
            Refusal: the token is missing or wrong.
        """
        token = bearer_in(authorization)
        if self.tenants:
            tenant = self.tenants.by_token(token or "")
            if tenant is not None:
                return tenant
        elif self.options.token is None or is_token(token, self.options.token):
            return None
        raise Refusal("unauthenticated", "a valid bearer token is required")

    def authorize_reader(self, authorization: str | None) -> Tenant | None:
        """Who asks what became of turns: a tenant, which may know of its own only, or somebody who may know of all.

        Raises:
            Refusal: the token is missing or wrong.
        """
        if self.tenants and self.options.token is not None and is_token(bearer_in(authorization), self.options.token):
            return None
        return self.authorize(authorization)

    def admit(self, client: str, tenant: Tenant | None = None) -> None:
        """Take on one request of a client; :meth:`release` ends it.

        Raises:
            Refusal: there is no room for it at the moment, or the tenant has sent too much.
        """
        try:
            self._admit(client, tenant)
        except Refusal as refusal:
            if tenant is not None:
                tenant.refuse(refusal.reason)
            raise

    def _admit(self, client: str, tenant: Tenant | None) -> None:
        if tenant is not None:
            tenant.admit()
        if self.stopping:
            raise Refusal("stopping", "shutting down")
        if self.replaying:
            raise Refusal("overloaded", "starting: the journal is being read")
        if self.running >= self.options.max_requests:
            raise Refusal("overloaded", "too many requests at once (serve.max_requests)")
        if self.journal is not None and (trouble := self.journal.trouble):
            raise Refusal("overloaded", trouble)
        if self.overloaded():
            raise Refusal("overloaded", "evaluation is behind: the queue of turns is nearly full")
        if self.turns_full:
            raise Refusal("overloaded", TURNS_FULL)
        rate = self.options.client_rate
        if rate is not None:
            wait = self._bucket(client, rate).wait(self._clock.monotonic())
            if wait > 0:
                raise Refusal("throttled", "this client sends faster than it may (serve.client_rate)", max(0.1, min(wait, 10.0)))
        self.running += 1

    def release(self, client: str, size: int) -> None:
        """A request was answered, after ``size`` bytes of it had come."""
        self.running -= 1
        self.bytes_received += size
        rate = self.options.client_rate
        if rate is not None:
            self._bucket(client, rate).take(size)

    def overloaded(self, replaying: bool = False) -> bool:
        """Whether more is coming in than can be evaluated, or than the journal may hold (but for what is ``replaying``)."""
        worker = self.engine.worker
        if worker.bytes + self._bytes > worker.max_bytes * FULL:
            return True
        return not replaying and self.journal is not None and self.journal.full

    @property
    def turns_full(self) -> bool:
        """Whether open turns leave no room for more spans, whosever they are."""
        return self._arriving.is_full

    def _bucket(self, client: str, rate: int) -> TokenBucket:
        bucket = self._clients.get(client)
        if bucket is None:
            bucket = self._clients[client] = TokenBucket(rate, self._clock.monotonic())
            if len(self._clients) > _MAX_CLIENTS:
                self._clients.popitem(last=False)
        return bucket

    def count(self, transport: str, signal: str, outcome: str) -> None:
        """Count an answer."""
        self.outcomes[transport, signal, outcome] += 1

    def refused(self, transport: str, signal: str, refusal: Refused) -> None:
        """Count a refusal, and log it now and then."""
        self.count(transport, signal, refusal.kind)
        self._refusals.note(transport, signal, refusal)

    # --- the work: on a thread of its own

    def take(self, request: Request) -> Accepted:
        """Unpack a request, tell its spans apart, and hand them over. Blocks until the journal has it.

        Raises:
            Refusal: it is not what it should be, or cannot be kept.
        """
        try:
            return self._take(request)
        except Refusal as refusal:
            if request.tenant is not None:
                request.tenant.refuse(refusal.reason)
            raise

    def _take(self, request: Request) -> Accepted:
        body = inflate(request.body, request.encoding, self.options.max_body, request.share)
        if request.tenant is not None:
            request.tenant.take_bytes(len(body))
        self._make_room(body, request)
        with self._lock:
            self._bytes += len(body)
        try:
            return self._keep(request.signal, body, request.json, request.tenant)
        finally:
            with self._lock:
                self._bytes -= len(body)

    @staticmethod
    def _make_room(body: bytes, request: Request) -> None:
        """Charge what reading a body takes, before it is read.

        Raises:
            Refusal: there is no room for it.
        """
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

    def replay(self, signal: Signal, body: bytes, is_json: bool, tenant: str | None = None) -> set[int]:
        """Hand over what the journal kept, of a tenant where it says so; the traces in it. What cannot be read was refused the first time too."""
        while self.overloaded(replaying=True) and not self.stopping:
            self.engine.worker.drain(1.0)
        try:
            return self._feed(signal, body, is_json, tenant)[1]
        except Refusal:
            return set()

    def held(self, trace_ids: set[int]) -> set[int]:
        """Those of some traces of which something waits for something."""
        return self.engine.held(trace_ids)

    def feed(self, signal: Signal, body: bytes, is_json: bool) -> set[int]:
        """Tell a request's spans apart and hand them over, past admission and journal; the traces in it.

        Raises:
            Refusal: it is not what it should be.
        """
        return self._feed(signal, body, is_json)[1]

    def forget_traces(self, trace_ids: set[int]) -> None:
        """Drop all that waits of some traces: somebody else evaluates them."""
        self.engine.forget_traces(trace_ids)

    def _keep(self, signal: Signal, body: bytes, is_json: bool, tenant: Tenant | None) -> Accepted:
        owner = tenant.name if tenant is not None else None
        if tenant is not None and signal == "traces":
            self._admit_turns(body, is_json, tenant)
        # In the journal first: a turn that closes at once must find its request there, and what cannot be kept is not evaluated.
        if self.journal is None or not body:
            return self._feed(signal, body, is_json, owner, tenant, bounded=True)[0]
        entry = self.journal.append(signal, body, is_json, owner)
        entry.wait()
        traces: set[int] = set()
        try:
            accepted, traces = self._feed(signal, body, is_json, owner, tenant, bounded=True)
        finally:
            entry.holds(traces)
        return accepted

    def _feed(
        self,
        signal: Signal,
        body: bytes,
        is_json: bool,
        owner: str | None = None,
        sender: Tenant | None = None,
        bounded: bool = False,
    ) -> tuple[Accepted, set[int]]:
        base = base_of(owner)
        try:
            if signal == "traces":
                parts, invalid = self._parts(body, is_json, base)
                if sender is not None:
                    sender.take_spans(invalid + sum(len(part.spans) for part in parts.values()))
                with self._arriving.room(self._sampled(parts), base) if bounded else nullcontext():
                    return self._spans(parts, invalid, base)
            return self._logs(*(_logs_in(body) if is_json else split_logs(body, GENAI)), base)
        except NotOtlp as error:
            raise Refusal("bad_data", str(error)) from None

    def _parts(self, body: bytes, is_json: bool, base: int) -> tuple[dict[bytes, Part], int]:
        """The spans of a request by trace id, and how many had no valid ids."""
        return _spans_in(body, base) if is_json else split_spans(body, semconv.SCOPE, base, GENAI)

    def _admit_turns(self, body: bytes, is_json: bool, tenant: Tenant) -> None:
        """Refuse a request that opens more turns than its tenant may have. Those that go on may go on.

        Raises:
            Refusal: too many of its turns are open.
        """
        most = tenant.options.quotas.open_turns
        assembler, lock = self.engine.assembler, self.engine.assembler.lock
        if most is None or assembler.open_turns_of(tenant.number) + len(body) // _LEAST_SPAN <= most:
            return
        try:
            parts, _ = self._parts(body, is_json, tenant.base)
        except NotOtlp:
            return  # it is refused for that
        with lock:
            new = sum(not assembler.knows(tenant.base + int.from_bytes(trace_id, "big")) for trace_id in parts)
            tenant.admit_turns(new, assembler.open_turns_of(tenant.number), lambda: assembler.next_close_of(tenant.number))

    def _is_left_out(self, trace_id: bytes) -> bool:
        """Whether a trace is not in the sample. Any process decides alike."""
        if self.options.sample_rate >= 1.0:
            return False
        digest = hashlib.blake2b(trace_id, digest_size=8, key=b"agenteval.serve").digest()
        return int.from_bytes(digest, "big") >= self._sampled_below

    def _sampled(self, parts: dict[bytes, Part]) -> dict[bytes, Part]:
        if self.options.sample_rate >= 1.0:
            return parts
        return {key: part for key, part in parts.items() if not self._is_left_out(key)}

    def _spans(self, parts: dict[bytes, Part], invalid: int, base: int = 0) -> tuple[Accepted, set[int]]:
        engine = self.engine
        traces: set[int] = set()
        pending: list[tuple[int, Part]] = []
        waiting = 0
        for key, part in parts.items():
            if self._is_left_out(key):
                engine.count_drop("sampled_out", len(part.spans))
                continue
            trace_id = base + int.from_bytes(key, "big")
            traces.add(trace_id)
            pending.append((trace_id, part))
            waiting += len(part.spans)
            if waiting >= _SPANS_AT_ONCE:
                engine.receive_spans(pending)
                pending, waiting = [], 0
        if pending:
            engine.receive_spans(pending)
        if invalid:
            engine.count_drop("invalid", invalid)
        return _accepted(invalid, "spans without valid ids"), traces

    def _logs(self, found: list[tuple[OtlpLog, int]], invalid: int, base: int = 0) -> tuple[Accepted, set[int]]:
        traces: set[int] = set()
        for log, size in found:
            if log.part.name == semconv.EVENT or not log.trace_id or not log.span_id:  # a score of ours that came round
                continue
            if self._is_left_out(log.trace_id.to_bytes(16, "big")):
                continue
            log.trace_id += base
            traces.add(log.trace_id)
            self.engine.receive_log(log.trace_id, log.span_id, log.part, size, early=True)
        return _accepted(invalid, "log records that cannot be read"), traces


# --- OTLP/JSON


def _json_items(body: bytes, signal: Signal) -> list[SpanRecord | OtlpLog | NotASpan]:
    if not body.strip():
        return []
    try:
        message = jsonio.loads_lenient(body)
    except (ValueError, RecursionError):
        raise Refusal("bad_data", "the body is not JSON") from None
    if message == {}:
        return []
    try:
        items = list(from_json(message))
    except NotASpan:
        raise Refusal("bad_data", f"the body is no OTLP/JSON request of {signal}") from None
    if any(isinstance(item, SpanRecord if signal == "logs" else OtlpLog) for item in items):
        raise Refusal("bad_data", f"the body is no OTLP/JSON request of {signal}")
    return items


def _spans_in(body: bytes, base: int) -> tuple[dict[bytes, Part], int]:
    """As :func:`split_spans`, of OTLP/JSON."""
    items = _json_items(body, "traces")
    parts: dict[bytes, Part] = {}
    invalid = 0
    for span in items:
        if not isinstance(span, SpanRecord):
            invalid += 1
            continue
        if span.scope == semconv.SCOPE:
            continue
        part = parts.setdefault(span.trace_id.to_bytes(16, "big"), Part())
        span.trace_id += base
        size = cut_long_values(span)
        part.add(WireSpan.of(span, size))
    return parts, invalid


def _logs_in(body: bytes) -> tuple[list[tuple[OtlpLog, int]], int]:
    """As :func:`split_logs`, of OTLP/JSON."""
    items = _json_items(body, "logs")
    logs = [item for item in items if isinstance(item, OtlpLog)]
    wanted = [
        (log, _LOG_SIZE + len(str(log.part.body)))
        for log in logs
        if log.part.name.startswith(GENAI.log_names) or GENAI.is_scope(log.scope)
    ]
    return wanted, len(items) - len(logs)


def _accepted(invalid: int, what: str) -> Accepted:
    return Accepted(invalid, f"{invalid} {what} were left out") if invalid else Accepted()
