"""Sender of batches to an OTLP receiver: one thread that sends and retries.

A request that the receiver refuses temporarily is retried, not before the time that the receiver requested, and after pauses that
double with jitter. A request that it refuses permanently is dropped. Each signal has separate pauses, so a receiver that
doesn't support one of them doesn't delay the other. Only a flush waits for the thread.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from ...config.outlets import OtlpOptions
from ...core import semconv
from ...core.clock import Clock
from ...core.pacing import backoff
from ...core.telemetry import Telemetry
from ...core.threads import is_meant_for_host, started
from ...spans.otlp import Signal
from ..base import RecordAccount
from ..log_events import uninstrumented
from .client import Client, SendResult, client_for
from .spool import SIGNALS, Spool, SpooledBatch, SpoolFile

_log = logging.getLogger("otel_agenteval")

LINGER = 0.5
"""Seconds that a batch waits so that others can be sent with it."""
MAX_REQUEST = 4 * 1024 * 1024
"""Bytes of one request. A larger batch is sent alone."""
_MOST_BATCHES = 512
_JOIN = 1.0


@dataclass(slots=True)
class _Lane:
    signal: Signal
    due: float | None = None
    """Monotonic time of the next request. None if nothing waits."""
    failures: int = 0
    """Failed attempts in a row that will be retried."""
    most: int = _MOST_BATCHES
    """Largest number of batches in one request. Reduced after the receiver refused several together."""


class Sender:
    """Sender of batches on a thread that starts with the first of them.

    ``collect`` returns the body of a metrics request, or b"" to send none. ``pauses`` are the first and the longest one between
    attempts, and ``adopt_every`` the one between checks for batches that a dead process left in a file, in seconds.
    """

    def __init__(
        self,
        wanted: OtlpOptions,
        records: RecordAccount,
        telemetry: Telemetry,
        collect: Callable[[], bytes],
        clock: Clock,
        pauses: tuple[float, float],
        adopt_every: float,
    ) -> None:
        self._wanted = wanted
        self._records = records
        self._telemetry = telemetry
        self._collect = collect
        self._clock = clock
        self._pauses = pauses
        self._adopt_every = adopt_every
        self._warned_of: set[str] = set()
        self.may_start = True
        """False at interpreter exit, when no thread can be started."""
        self._reset()

    def _reset(self) -> None:
        wanted = self._wanted
        file = None if wanted.spool is None else partial(SpoolFile, wanted.spool.directory, wanted.spool.max_bytes)
        self.spool = Spool(wanted.queue_bytes, file, self._failed, self._records.add)
        self._client: Client | None = None
        self._lanes = {signal: _Lane(signal) for signal in SIGNALS}
        self.trouble: dict[str, str] = {}
        """Why the last request of each signal failed, unless its content may be the cause."""
        self._metrics_due: float | None = None
        self._flushing = 0
        """Number of callers that wait in :meth:`flush`."""
        self._collecting = False
        self._wake = threading.Event()
        self._progress = threading.Condition()
        self._working = threading.Lock()
        self._thread: threading.Thread | None = None
        self._stopping = False

    def put(self, signal: Signal, body: bytes, items: int, *, must: bool = False) -> None:
        """Queue a request. If it doesn't fit, it is dropped, unless it ``must`` be kept."""
        if self._stopping:
            self._finish("shutdown", items)
            return
        if not self.spool.put(SpooledBatch(signal, items, self._clock.time_ns() / 1e9, body), must=must):
            self._finish("queue_full", items)
        lane = self._lanes[signal]
        if lane.due is None:
            lane.due = time.monotonic() + LINGER
            self._wake.set()
        self.start()

    def start(self) -> None:
        """Start the thread if it isn't running. It also sends metrics and leftover batches."""
        if self._wanted.metrics_interval and self._metrics_due is None:
            self._metrics_due = time.monotonic() + self._wanted.metrics_interval
        if (self._thread is not None and self._thread.is_alive()) or not self.may_start or self._stopping:
            return
        self._thread = started(self._run, "otel-agenteval-otlp")
        self.may_start = self._thread is not None  # without a thread, a flush does the work

    def flush(self, timeout: float) -> bool:
        """Send all waiting batches and metrics. Return False if ``timeout`` seconds don't suffice.

        Except at exit, it doesn't wait for a receiver that is known to fail. Batches that then wait in a file count as delivered,
        because the next process sends them.
        """
        until = time.monotonic() + timeout
        if self._metrics_due is not None:
            self._metrics_due = time.monotonic()
        thread = self._thread
        self._flushing += 1
        try:
            if not self.may_start or not self._fails():
                if thread is None or not thread.is_alive():
                    self._work_here(until)
                else:
                    self._wake.set()
                    with self._progress:
                        self._progress.wait_for(self._all_sent, max(0.0, until - time.monotonic()))
            return self._all_sent() or (self._fails() and self.spool.outlives_us)
        finally:
            self._flushing -= 1

    def _fails(self) -> bool:
        return any(lane.failures for lane in self._lanes.values())

    def close(self) -> None:
        """Stop sending. Waiting batches stay in their file, or are counted as dropped."""
        if self._stopping:
            return
        self._stopping = True
        self._wake.set()
        if self._client is not None:
            self._client.close()  # cancels a running request
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(_JOIN)
        lost = self.spool.close()
        if lost:
            self._finish("shutdown", lost)
            _log.warning("outlet otlp: %d scores were not sent before shutdown and are dropped", lost)

    def after_fork_in_child(self) -> None:
        _LEFT_TO_THE_PARENT.append(self._client)
        self.spool.after_fork_in_child()
        self._reset()

    def _run(self) -> None:
        with uninstrumented():
            adopts = self._adopt()
            adopted_at = time.monotonic()
            while not self._stopping:
                wait = self._step_safely()
                if adopts:
                    if time.monotonic() - adopted_at >= self._adopt_every:
                        self._adopt()
                        adopted_at = time.monotonic()
                    wait = min(wait, self._adopt_every)
                if wait > 0:
                    self._wake.wait(None if wait == _FOREVER else wait)
                    self._wake.clear()

    def _work_here(self, until: float) -> None:
        with uninstrumented():
            while not self._stopping and not self._all_sent() and time.monotonic() < until:
                wait = self._step_safely(until)
                if wait > 0:
                    time.sleep(min(wait, max(0.0, until - time.monotonic())))

    def _adopt(self) -> bool:
        """Take over batches that other processes left. Return False without spool files."""
        self.spool.open()
        adopts = self.spool.adopt()
        for lane in self._lanes.values():
            if lane.due is None and self.spool.first(lane.signal, 1, 0):
                lane.due = time.monotonic()
        return adopts

    def _step_safely(self, until: float = float("inf")) -> float:
        try:
            with self._working:
                return self._step(until)
        except BaseException as error:  # an internal error must not end the thread and drop waiting batches
            if is_meant_for_host(error):
                raise
            self._failed(type(error).__name__)
            return self._pauses[1]

    def _step(self, until: float) -> float:
        """Do all due work. Return the seconds until the next work is due."""
        now = time.monotonic()
        soonest = _FOREVER
        for lane in self._lanes.values():
            if lane.due is None:
                continue
            if lane.due > now and (lane.failures or not self._flushing):
                soonest = min(soonest, lane.due - now)
                continue
            self._send(lane, until)
            soonest = 0.0
        if self._metrics_due is not None:
            if self._metrics_due <= now:
                self._metrics_due, self._collecting = now + self._wanted.metrics_interval, True
                try:
                    body = self._collect()  # cumulative, so the next request makes up for a failed one
                    if body:
                        self._attempt("metrics", body, until)
                finally:
                    self._collecting = False
                    self._notify()
            soonest = min(soonest, max(0.0, self._metrics_due - now))
        return soonest

    def _send(self, lane: _Lane, until: float) -> None:
        lane.due = None  # a batch that arrives from here on makes it due again
        batches = self.spool.first(lane.signal, lane.most, MAX_REQUEST)
        if not batches:
            self._notify()
            return
        result = self._attempt(lane.signal, b"".join([batch.body for batch in batches]), until)
        if self._stopping:
            return  # the batches stay in their file, or are counted as dropped
        items = sum(batch.items for batch in batches)
        now = time.monotonic()
        if result.kind == "retry":
            lane.failures += 1
            lane.due = now + max(result.wait, backoff(lane.failures, *self._pauses))
            oldest = self._clock.time_ns() / 1e9 - self._wanted.retry_for
            expired = [batch for batch in batches if batch.at < oldest]
            if expired:
                self.spool.remove(expired)
                self._finish("expired", sum(batch.items for batch in expired))
                self._notify()
            return
        lane.failures = 0
        lane.due = now
        if result.kind == "refused" and result.about_the_body and len(batches) > 1:
            lane.most = len(batches) // 2  # one of them may be the cause
            return
        lane.most = min(_MOST_BATCHES, lane.most * 2)
        self.spool.remove(batches)
        if result.kind == "refused":
            self._finish("refused", items)
        else:
            rejected = min(result.rejected, items)
            if rejected:
                self._finish("rejected", rejected)
            self._finish("sent", items - rejected)
        self._notify()

    def _attempt(self, signal: str, body: bytes, until: float) -> SendResult:
        if self._client is None:
            self._client = client_for(self._wanted)
        result = self._client.send(signal, body, min(self._wanted.timeout, max(0.1, until - time.monotonic())))
        if result.kind == "sent":
            self.trouble.pop(signal, None)
        elif result.kind == "retry" or not result.about_the_body:
            self.trouble[signal] = result.reason
        if result.kind != "sent" or result.rejected:
            self._failed(result.reason)
        return result

    def _finish(self, outcome: str, items: int) -> None:
        """Count records or spans that were ``sent``, or dropped for the reason ``outcome``."""
        self._records.finish(outcome, items)
        if outcome != "sent":
            self._warn_once(outcome, f"{items} records were dropped for")

    def _failed(self, reason: str) -> None:
        self._telemetry.add(semconv.EMIT_ERRORS, outlet="otlp", reason=reason)
        self._warn_once(reason, "can't send to")

    def _warn_once(self, reason: str, what: str) -> None:
        if reason not in self._warned_of:
            self._warned_of.add(reason)
            _log.warning("outlet otlp: %s %s: %s (further failures are only counted)", what, self._wanted.endpoint, reason)

    def _all_sent(self) -> bool:
        if self._collecting or (self._metrics_due is not None and self._metrics_due <= time.monotonic()):
            return False
        return all(lane.due is None for lane in self._lanes.values()) and self.spool.bytes == 0

    def _notify(self) -> None:
        with self._progress:
            self._progress.notify_all()


_FOREVER = float("inf")
_LEFT_TO_THE_PARENT: list[Client | None] = []
"""Connections inherited by a forked child, which must neither use nor close them."""
