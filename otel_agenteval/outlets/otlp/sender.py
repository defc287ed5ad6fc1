"""Sends batches to an OTLP receiver: one thread that sends, waits and tries again, and an account of what was not sent.

What a receiver refuses for the time being is sent again, not before the time that the receiver asked for, and after pauses that double
with full jitter. What it refuses for good is dropped. Each signal has pauses of its own, so that a receiver without one of them does not
hold up the other. Only a flush waits for the thread.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from typing import Protocol

from opentelemetry.context import _SUPPRESS_INSTRUMENTATION_KEY, attach, detach, set_value

from ...config.otlp import OtlpOptions
from ...core.clock import SYSTEM_CLOCK, Clock
from ...core.threads import is_meant_for_host, started
from ...spans.otlp import Signal
from .client import Client, Result
from .spool import SIGNALS, Batch, Spool

_log = logging.getLogger("otel_agenteval")

LINGER = 0.5
"""Seconds that a batch waits for others to be sent with it."""
MAX_REQUEST = 4 * 1024 * 1024
"""Bytes of one request; a larger batch is sent alone."""
_MOST_BATCHES = 512
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 30.0
_SHORTEST_PAUSE = 0.05
_JOIN = 1.0
_ADOPTION = 15.0
"""Seconds between two looks for batches that a process which died has left in a file."""


class Account(Protocol):
    """Keeps count of what becomes of records."""

    def finished(self, outcome: str, items: int) -> None:
        """So many records or spans were ``sent``, or dropped for a reason."""

    def failed(self, reason: str) -> None:
        """A request failed, whether or not it is tried again."""


class _Lane:
    """The state of one signal."""

    def __init__(self, signal: Signal) -> None:
        self.signal = signal
        self.due: float | None = None
        """When to send next, in monotonic seconds; None while nothing waits."""
        self.failures = 0
        """Attempts in a row that failed and are to be repeated."""
        self.most = _MOST_BATCHES
        """Batches in one request: fewer once a receiver refused some together."""


class Sender:
    """Sends batches in a thread that starts with the first of them.

    Args:
        wanted: how long a request may take and is tried again, and how often metrics are sent.
        make_client: makes the connection; called again in a forked child.
        make_spool: makes the store of what waits; called again in a forked child.
        account: keeps count.
        collect: gives the body of a metrics request; b"" for none.
        clock: dates batches.
        pauses: the first and the longest pause between two attempts, in seconds.
    """

    def __init__(
        self,
        wanted: OtlpOptions,
        make_client: Callable[[], Client],
        make_spool: Callable[[], Spool],
        account: Account,
        collect: Callable[[], bytes],
        clock: Clock = SYSTEM_CLOCK,
        pauses: tuple[float, float] = (_FIRST_PAUSE, _LONGEST_PAUSE),
    ) -> None:
        self._wanted = wanted
        self._make_client = make_client
        self._make_spool = make_spool
        self._account = account
        self._collect = collect
        self._clock = clock
        self._pauses = pauses
        self.may_start = True
        """False at interpreter exit, when no thread can be started any more."""
        self._reset()

    def _reset(self) -> None:
        self.spool = self._make_spool()
        self._client: Client | None = None
        self._lanes = {signal: _Lane(signal) for signal in SIGNALS}
        self.trouble: dict[str, str] = {}
        """Why the last request of a signal failed, unless that may lie in what it held."""
        self._metrics_due: float | None = None
        self._flushing = 0
        """How many callers wait in :meth:`flush`."""
        self._collecting = False
        self._wake = threading.Event()
        self._progress = threading.Condition()
        self._working = threading.Lock()
        self._thread: threading.Thread | None = None
        self._stopping = False

    def put(self, signal: Signal, body: bytes, items: int, *, must: bool = False) -> None:
        """Send a request soon. Never waits for the network. One that has no room is dropped and counted, unless it ``must`` be kept."""
        if self._stopping:
            self._account.finished("shutdown", items)
            return
        if not self.spool.put(Batch(signal, items, self._clock.time_ns() / 1e9, body), must=must):
            self._account.finished("queue_full", items)
        lane = self._lanes[signal]
        if lane.due is None:
            lane.due = time.monotonic() + LINGER
            self._wake.set()
        self.start()

    def start(self) -> None:
        """Start the thread, unless it runs. It also sends metrics, and what an earlier process left behind."""
        if self._wanted.metrics_interval and self._metrics_due is None:
            self._metrics_due = time.monotonic() + self._wanted.metrics_interval
        if (self._thread is not None and self._thread.is_alive()) or not self.may_start or self._stopping:
            return
        self._thread = started(self._run, "otel-agenteval-otlp")
        self.may_start = self._thread is not None  # else a flush does the work

    def flush(self, timeout: float) -> bool:
        """Send everything that waits, and the metrics; False when that was not done within ``timeout`` seconds.

        A receiver that is known to refuse or to be gone is not waited for, except at exit: the caller has other work. What then waits
        in a file counts as delivered, for the next process sends it.
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
        """Whether what waits was tried already, without success."""
        return any(lane.failures for lane in self._lanes.values())

    def close(self) -> None:
        """Send nothing more. What waits stays in its file, or is counted as lost. Safe to call twice."""
        if self._stopping:
            return
        self._stopping = True
        self._wake.set()
        client = self._client
        thread = self._thread
        if client is not None:
            client.close()  # ends a request that is under way
        if thread is not None and thread is not threading.current_thread():
            thread.join(_JOIN)
        lost = self.spool.close()
        if lost:
            self._account.finished("shutdown", lost)
            _log.warning("%d scores were not sent before the end", lost)

    def after_fork_in_child(self) -> None:
        """The parent sends what it has. The child gets a thread, connections and a file of its own, once it needs them."""
        _LEFT_TO_THE_PARENT.append(self._client)
        self.spool.after_fork_in_child()
        self._reset()

    # --- the thread

    def _run(self) -> None:
        token = attach(set_value(_SUPPRESS_INSTRUMENTATION_KEY, True))
        try:
            adopts = self._adopt()
            looked = time.monotonic()
            while not self._stopping:
                wait = self._step_safely()
                if adopts:
                    if time.monotonic() - looked >= _ADOPTION:
                        self._adopt()
                        looked = time.monotonic()
                    wait = min(wait, _ADOPTION)
                if wait > 0:
                    self._wake.wait(None if wait == _FOREVER else wait)
                    self._wake.clear()
        finally:
            detach(token)

    def _work_here(self, until: float) -> None:
        """The thread's work, where there is no thread any more."""
        token = attach(set_value(_SUPPRESS_INSTRUMENTATION_KEY, True))
        try:
            while not self._stopping and not self._all_sent() and time.monotonic() < until:
                wait = self._step_safely(until)
                if wait > 0:
                    time.sleep(min(wait, max(0.0, until - time.monotonic())))
        finally:
            detach(token)

    def _adopt(self) -> bool:
        """Take over what other processes left unsent; False where there are no files in which they could leave it."""
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
        except BaseException as error:  # a fault of ours must not end the thread, and lose what waits
            if is_meant_for_host(error):
                raise
            self._account.failed(type(error).__name__)
            return self._pauses[1]

    def _step(self, until: float) -> float:
        """Do what is due; seconds until something else is."""
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
                    self._send_metrics(until)
                finally:
                    self._collecting = False
                    self._notify()
            soonest = min(soonest, max(0.0, self._metrics_due - now))
        return soonest

    def _send(self, lane: _Lane, until: float) -> None:
        lane.due = None  # a batch that is put from here on makes it due again
        batches = self.spool.first(lane.signal, lane.most, MAX_REQUEST)
        if not batches:
            self._notify()
            return
        result = self._attempt(lane.signal, b"".join([batch.body for batch in batches]), until)
        if self._stopping:
            return  # they stay in their file, or are counted as lost
        items = sum(batch.items for batch in batches)
        now = time.monotonic()
        if result.kind == "retry":
            lane.failures += 1
            longest = min(self._pauses[1], self._pauses[0] * 2.0 ** min(lane.failures - 1, 30))
            jitter = max(_SHORTEST_PAUSE, random.uniform(0, longest))  # noqa: S311 - jitter, no secret
            lane.due = now + max(result.wait, jitter)
            self._give_up(batches)
            return
        lane.failures = 0
        lane.due = now
        if result.kind == "refused" and result.about_the_body and len(batches) > 1:
            lane.most = len(batches) // 2  # one of them may be the cause
            return
        lane.most = min(_MOST_BATCHES, lane.most * 2)
        self.spool.remove(batches)
        if result.kind == "refused":
            self._account.finished("refused", items)
        else:
            rejected = min(result.rejected, items)
            if rejected:
                self._account.finished("rejected", rejected)
            self._account.finished("sent", items - rejected)
        self._notify()

    def _give_up(self, batches: list[Batch]) -> None:
        """Drop what has been tried for too long."""
        oldest = self._clock.time_ns() / 1e9 - self._wanted.retry_for
        expired = [batch for batch in batches if batch.at < oldest]
        if expired:
            self.spool.remove(expired)
            self._account.finished("expired", sum(batch.items for batch in expired))
            self._notify()

    def _send_metrics(self, until: float) -> None:
        """Send the metrics, once: they are cumulative, so the next request repeats what this one says."""
        body = self._collect()
        if body:
            self._attempt("metrics", body, until)

    def _attempt(self, signal: str, body: bytes, until: float) -> Result:
        if self._client is None:
            self._client = self._make_client()
        result = self._client.send(signal, body, min(self._wanted.timeout, max(0.1, until - time.monotonic())))
        if result.kind == "sent":
            self.trouble.pop(signal, None)
        elif result.kind == "retry" or not result.about_the_body:
            self.trouble[signal] = result.reason
        if result.kind != "sent" or result.rejected:
            self._account.failed(result.reason)
        return result

    # --- for callers that wait

    def _any_waits(self) -> bool:
        return any(lane.due is not None for lane in self._lanes.values())

    def _all_sent(self) -> bool:
        """Nothing waits and nothing is under way."""
        if self._collecting or (self._metrics_due is not None and self._metrics_due <= time.monotonic()):
            return False
        return not self._any_waits() and self.spool.bytes == 0

    def _notify(self) -> None:
        with self._progress:
            self._progress.notify_all()


_FOREVER = float("inf")
_LEFT_TO_THE_PARENT: list[Client | None] = []
"""Connections that a forked child inherited: it must neither use nor close them."""
