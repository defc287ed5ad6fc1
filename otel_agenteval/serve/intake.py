"""What is taken, how it is read, and where it goes: everything that both transports have in common.

Acknowledged means: it is in the assembler (and, with a journal, on disk). Nothing is evaluated before the answer.
"""

from __future__ import annotations

import hashlib
import hmac
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from .. import jsonio, names
from ..clock import SYSTEM_CLOCK, Clock
from ..config import ServeOptions
from ..dialects.reader import is_genai_scope
from ..engine import Engine
from ..spans.otlp import NotASpan, OtlpLog, Signal, from_json
from ..spans.record import LogPart, SpanRecord, cut_long_values
from ..spans.split import LOG_PREFIXES, NotOtlp, count_records, split_logs, split_spans
from ..spans.wire import OVERHEAD, Part, WireSpan
from ..turns.state import Closed
from .admission import COPIES, LEAST, UNBOUNDED, Budget, Share
from .answers import Accepted, Refusal, Refused
from .inflate import inflate
from .journal import Journal
from .refusal_log import RefusalLog

FULL = 0.75
"""Share of the worker's queue from which senders are asked to come again."""
_MAX_CLIENTS = 10_000
_EARLY_BYTES = 32 * 2**20
_SPANS_AT_ONCE = 256
"""Spans that are handed to the assembler under one hold of its lock."""
_LOG_SIZE = 1_024
_LARGE = 512 << 10
"""Bytes of a body from which its records are counted before they are read: smaller ones cannot become much."""


class Request(NamedTuple):
    """One export request, as a transport got it."""

    signal: Signal
    body: bytes
    encoding: str
    """As ``Content-Encoding`` names it."""
    json: bool
    share: Share = UNBOUNDED
    """What it holds of the bytes under way; its body is in it already."""


class Intake:
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
        self._clients: OrderedDict[str, _Bucket] = OrderedDict()
        self.in_flight = Budget(options.max_inflight or max(LEAST, 4 * options.max_body))
        """What requests hold that are not answered yet."""
        self._early = _EarlyLogs(_EARLY_BYTES, engine.config.turn.idle_timeout, clock.monotonic)
        self.set_options(options)

    def set_options(self, options: ServeOptions) -> None:
        """Other limits from now on."""
        self.options = options
        self._sampled_below = int(options.sample_rate * 2**64)
        self._clients.clear()

    # --- admission: before a body is read

    def authorize(self, authorization: str | None) -> None:
        """Check who sends.

        Raises:
            Refusal: the token is missing or wrong.
        """
        token = self.options.token
        if token is None:
            return
        kind, _, given = (authorization or "").partition(" ")
        if kind.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), token.encode()):
            raise Refusal("unauthenticated", "a valid bearer token is required")

    def admit(self, client: str) -> None:
        """Take on one request of a client; :meth:`release` ends it.

        Raises:
            Refusal: there is no room for it at the moment.
        """
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

    def _bucket(self, client: str, rate: int) -> _Bucket:
        bucket = self._clients.get(client)
        if bucket is None:
            bucket = self._clients[client] = _Bucket(rate, self._clock.monotonic())
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
        body = inflate(request.body, request.encoding, self.options.max_body, request.share)
        self._make_room(body, request)
        with self._lock:
            self._bytes += len(body)
        try:
            return self._keep(request.signal, body, request.json)
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

    def replay(self, signal: Signal, body: bytes, is_json: bool) -> set[int]:
        """Hand over what the journal kept; the traces in it. What cannot be read was refused the first time too."""
        while self.overloaded(replaying=True) and not self.stopping:
            self.engine.worker.drain(1.0)
        try:
            return self._feed(signal, body, is_json)[1]
        except Refusal:
            return set()

    def held(self, trace_ids: set[int]) -> set[int]:
        """Those of some traces of which something waits for something."""
        return self.engine.held(trace_ids) | {trace_id for trace_id in trace_ids if trace_id in self._early}

    def feed(self, signal: Signal, body: bytes, is_json: bool) -> set[int]:
        """Tell a request's spans apart and hand them over, past admission and journal; the traces in it.

        Raises:
            Refusal: it is not what it should be.
        """
        return self._feed(signal, body, is_json)[1]

    def forget_traces(self, trace_ids: set[int]) -> None:
        """Drop all that waits of some traces: somebody else evaluates them."""
        with self.engine.lock:
            for trace_id in trace_ids:
                if trace_id in self._early:
                    self._early.pop(trace_id)
        self.engine.forget_traces(trace_ids)

    def _keep(self, signal: Signal, body: bytes, is_json: bool) -> Accepted:
        # In the journal first: a turn that closes at once must find its request there, and what cannot be kept is not evaluated.
        if self.journal is None or not body:
            return self._feed(signal, body, is_json)[0]
        entry = self.journal.append(signal, body, is_json)
        entry.wait()
        traces: set[int] = set()
        try:
            accepted, traces = self._feed(signal, body, is_json)
        finally:
            entry.holds(traces)
        return accepted

    def _feed(self, signal: Signal, body: bytes, is_json: bool) -> tuple[Accepted, set[int]]:
        try:
            if is_json:
                return self._json(body, signal)
            return self._spans(*split_spans(body, names.SCOPE)) if signal == "traces" else self._logs(*split_logs(body))
        except NotOtlp as error:
            raise Refusal("bad_data", str(error)) from None

    def _is_left_out(self, trace_id: bytes) -> bool:
        """Whether a trace is not in the sample. Any process decides alike."""
        if self.options.sample_rate >= 1.0:
            return False
        digest = hashlib.blake2b(trace_id, digest_size=8, key=b"agenteval.serve").digest()
        return int.from_bytes(digest, "big") >= self._sampled_below

    def _spans(self, parts: dict[bytes, Part], invalid: int) -> tuple[Accepted, set[int]]:
        engine = self.engine
        traces: set[int] = set()
        pending: list[tuple[int, Part]] = []
        waiting = 0
        for key, part in parts.items():
            if self._is_left_out(key):
                self._count_received(len(part.spans), "sampled_out", len(part.spans))
                continue
            trace_id = int.from_bytes(key, "big")
            traces.add(trace_id)
            pending.append((trace_id, part))
            waiting += len(part.spans)
            if waiting >= _SPANS_AT_ONCE:
                self._hand_over(pending, waiting)
                pending, waiting = [], 0
        if pending:
            self._hand_over(pending, waiting)
        if invalid:
            self._count_received(invalid, "invalid", invalid)
        if engine.worker.idle:
            engine.worker.wake()
        return _accepted(invalid, "spans without valid ids"), traces

    def _hand_over(self, pending: list[tuple[int, Part]], spans: int) -> None:
        engine = self.engine
        assembler, early = engine.assembler, self._early
        closed: list[Closed] = []
        with engine.lock:
            engine.spans_received += spans
            for trace_id, part in pending:
                closed += assembler.add_received(trace_id, part.spans, part.size, part.local_root)
                if early and trace_id in early:
                    for span_id, log, size in early.pop(trace_id):
                        assembler.add_log(trace_id, span_id, log, size)
        engine.take(closed)

    def _count_received(self, spans: int, reason: str, dropped: int) -> None:
        engine = self.engine
        with engine.lock:
            engine.spans_received += spans
            engine.pipeline.spans_left_out[reason] += dropped

    def _logs(self, found: list[tuple[OtlpLog, int]], invalid: int) -> tuple[Accepted, set[int]]:
        traces: set[int] = set()
        for log, size in found:
            if log.part.name == names.EVENT or not log.trace_id or not log.span_id:  # a score of ours that came round
                continue
            if self._is_left_out(log.trace_id.to_bytes(16, "big")):
                continue
            traces.add(log.trace_id)
            self._log(log, size)
        return _accepted(invalid, "log records that cannot be read"), traces

    def _log(self, log: OtlpLog, size: int) -> None:
        engine = self.engine
        with engine.lock:
            kept = engine.assembler.add_log(log.trace_id, log.span_id, log.part, size)
            if not kept:  # log records leave their process before the span that they belong to has ended
                lost = self._early.add(log.trace_id, log.span_id, log.part, size)
                if lost:
                    engine.late_log_records += lost

    # --- OTLP/JSON

    def _json(self, body: bytes, signal: Signal) -> tuple[Accepted, set[int]]:
        if not body.strip():
            return Accepted(), set()
        try:
            message = jsonio.loads_lenient(body)
        except (ValueError, RecursionError):
            raise Refusal("bad_data", "the body is not JSON") from None
        if message == {}:
            return Accepted(), set()
        try:
            items = list(from_json(message))
        except NotASpan:
            raise Refusal("bad_data", f"the body is no OTLP/JSON request of {signal}") from None
        spans = [item for item in items if isinstance(item, SpanRecord)]
        logs = [item for item in items if isinstance(item, OtlpLog)]
        if spans if signal == "logs" else logs:
            raise Refusal("bad_data", f"the body is no OTLP/JSON request of {signal}")
        invalid = len(items) - len(spans) - len(logs)
        parts: dict[bytes, Part] = {}
        for span in spans:
            if span.scope == names.SCOPE:
                continue
            part = parts.setdefault(span.trace_id.to_bytes(16, "big"), Part())
            size = cut_long_values(span)
            part.spans.append(WireSpan.of(span, size))
            part.size += size
            part.local_root = part.local_root or span.parent_id == 0 or span.remote_parent
        if signal == "traces":
            return self._spans(parts, invalid)
        wanted = [
            (log, _LOG_SIZE + len(str(log.part.body)))
            for log in logs
            if log.part.name.startswith(LOG_PREFIXES) or is_genai_scope(log.scope)
        ]
        return self._logs(wanted, invalid)


def _accepted(invalid: int, what: str) -> Accepted:
    return Accepted(invalid, f"{invalid} {what} were left out") if invalid else Accepted()


class _Bucket:
    """How much a client may send: a second's worth at once, then as fast as its rate."""

    def __init__(self, rate: int, now: float) -> None:
        self._rate = rate
        self._left = float(rate)
        self._at = now

    def wait(self, now: float) -> float:
        """Seconds until it may send again; 0 if it may."""
        self._left = min(float(self._rate), self._left + (now - self._at) * self._rate)
        self._at = now
        return 0.0 if self._left > 0 else -self._left / self._rate

    def take(self, size: int) -> None:
        """It sent something: that may be more than it had left, and then it waits."""
        self._left -= size


class _EarlyLogs:
    """Log records whose trace is not known yet, by trace; the oldest go when there are too many."""

    def __init__(self, max_bytes: int, max_age: float, now: Callable[[], float]) -> None:
        self._max_bytes = max_bytes
        self._max_age = max_age
        self._now = now
        self._traces: OrderedDict[int, tuple[float, list[tuple[int, LogPart, int]]]] = OrderedDict()
        self._bytes = 0

    def __bool__(self) -> bool:
        return bool(self._traces)

    def __contains__(self, trace_id: int) -> bool:
        return trace_id in self._traces

    def add(self, trace_id: int, span_id: int, part: LogPart, size: int) -> int:
        """Keep a record; how many others had to go for it."""
        now = self._now()
        self._traces.setdefault(trace_id, (now, []))[1].append((span_id, part, size))
        self._bytes += size
        lost = 0
        while self._bytes > self._max_bytes or (self._traces and next(iter(self._traces.values()))[0] < now - self._max_age):
            lost += len(self.pop(next(iter(self._traces))))
        return lost

    def pop(self, trace_id: int) -> list[tuple[int, LogPart, int]]:
        """The records of a trace, which are no longer kept here."""
        found = self._traces.pop(trace_id)[1]
        self._bytes -= sum(size for _, _, size in found)
        return found
