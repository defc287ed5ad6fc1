"""Parcels on their way to an OTLP receiver: one thread that sends, waits and tries again, and an account of what was not sent.

What a receiver refuses for the time being is tried again, with pauses that double and full jitter, and not before the receiver
said; what it refuses for good is dropped. Each signal goes its own way, so that a receiver without one of them does not hold up the
other. Nobody waits for the thread, except who asks for a flush.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from typing import Protocol

from opentelemetry.context import _SUPPRESS_INSTRUMENTATION_KEY, attach, detach, set_value

from ...core.clock import SYSTEM_CLOCK, Clock
from ...core.threads import OwnThread, is_meant_for_host
from ...spans.otlp import Signal
from .client import Answer, Courier
from .spool import SIGNALS, Outbox, Parcel

_log = logging.getLogger("otel_agenteval")

LINGER = 0.5
"""Seconds that a parcel waits for others to go with it."""
MAX_REQUEST = 4 * 1024 * 1024
"""Bytes of one request; what is larger by itself goes alone."""
_MOST_PARCELS = 512
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 30.0
_SHORTEST_PAUSE = 0.05
_JOIN = 1.0
_ADOPTION = 15.0
"""Seconds between two looks for what processes that died have left in files."""


class Account(Protocol):
    """Keeps count of what becomes of records."""

    def settled(self, outcome: str, items: int) -> None:
        """So many records or spans were ``sent``, or dropped for a reason."""

    def failed(self, reason: str) -> None:
        """A request did not go well."""


class _Lane:
    """One signal's way."""

    def __init__(self, signal: Signal) -> None:
        self.signal = signal
        self.due: float | None = None
        """When to send next, in monotonic seconds; None while nothing waits."""
        self.failures = 0
        """Attempts in a row that are to be repeated."""
        self.most = _MOST_PARCELS
        """Parcels in one request: fewer once a receiver refused some together."""


class Delivery:
    """Sends parcels in a thread that starts with the first of them.

    Args:
        courier: makes the connection; again in a forked child.
        outbox: makes the store of what waits; again in a forked child.
        account: keeps count.
        timeout: seconds that one request may take.
        retry_for: seconds after which a parcel that a receiver keeps refusing for the time being is given up.
        collect: gives the body of a metrics request, whenever ``interval`` seconds have passed; b"" for none.
        interval: 0 collects never.
        clock: dates parcels.
        pauses: the first and the longest pause between two attempts, in seconds.
    """

    def __init__(
        self,
        courier: Callable[[], Courier],
        outbox: Callable[[], Outbox],
        account: Account,
        *,
        timeout: float,
        retry_for: float,
        collect: Callable[[], bytes],
        interval: float,
        clock: Clock = SYSTEM_CLOCK,
        pauses: tuple[float, float] = (_FIRST_PAUSE, _LONGEST_PAUSE),
    ) -> None:
        self._make_courier = courier
        self._make_outbox = outbox
        self._account = account
        self._timeout = timeout
        self._retry_for = retry_for
        self._collect = collect
        self._interval = interval
        self._clock = clock
        self._pauses = pauses
        self.may_start = True
        """False at interpreter exit, when no thread can be started any more."""
        self._reset()

    def _reset(self) -> None:
        self.outbox = self._make_outbox()
        self._courier: Courier | None = None
        self._lanes = {signal: _Lane(signal) for signal in SIGNALS}
        self._metrics_due: float | None = None
        self._hurry = 0
        """How many wait for a flush."""
        self._collecting = False
        self._wake = threading.Event()
        self._progress = threading.Condition()
        self._working = threading.Lock()
        self._thread: threading.Thread | None = None
        self._stopping = False

    def put(self, signal: Signal, body: bytes, items: int, *, must: bool = False) -> None:
        """Send a request some time soon. Never blocks for the network; what there is no room for is counted, unless it ``must`` be kept."""
        if self._stopping:
            self._account.settled("shutdown", items)
            return
        if not self.outbox.put(Parcel(signal, items, self._clock.time_ns() / 1e9, body), must=must):
            self._account.settled("queue_full", items)
        lane = self._lanes[signal]
        if lane.due is None:
            lane.due = time.monotonic() + LINGER
            self._wake.set()
        self.start()

    def start(self) -> None:
        """Have the thread, which also sends metrics and what an earlier process left behind."""
        if self._interval and self._metrics_due is None:
            self._metrics_due = time.monotonic() + self._interval
        if (self._thread is not None and self._thread.is_alive()) or not self.may_start or self._stopping:
            return
        thread = OwnThread(self._run, "otel-agenteval-otlp")
        try:
            thread.start()
        except RuntimeError:  # the interpreter is going down: a flush does the work
            self.may_start = False
            return
        self._thread = thread

    def flush(self, timeout: float) -> bool:
        """Send everything that waits, and the metrics; False when that was not done within ``timeout`` seconds.

        A receiver that is known to refuse or to be gone is not waited for, except at our end: the caller has other work. What then
        waits in a file counts as handed over.
        """
        until = time.monotonic() + timeout
        if self._metrics_due is not None:
            self._metrics_due = time.monotonic()
        thread = self._thread
        self._hurry += 1
        try:
            if not self.may_start or not self._fails():
                if thread is None or not thread.is_alive():
                    self._work_here(until)
                else:
                    self._wake.set()
                    with self._progress:
                        self._progress.wait_for(self._all_sent, max(0.0, until - time.monotonic()))
            return self._all_sent() or (self._fails() and self.outbox.outlives_us)
        finally:
            self._hurry -= 1

    def _fails(self) -> bool:
        """Whether what waits was tried already, without success."""
        return any(lane.failures for lane in self._lanes.values())

    def close(self) -> None:
        """Send nothing more. What waits stays in its file, or is counted as lost. Safe to call twice."""
        if self._stopping:
            return
        self._stopping = True
        self._wake.set()
        courier = self._courier
        thread = self._thread
        if courier is not None:
            courier.close()  # ends a request that is under way
        if thread is not None and thread is not threading.current_thread():
            thread.join(_JOIN)
        lost = self.outbox.close()
        if lost:
            self._account.settled("shutdown", lost)
            _log.warning("%d scores were not sent before the end", lost)

    def after_fork_in_child(self) -> None:
        """The parent sends what it has; the child has a thread, connections and a file of its own, once it needs them."""
        _LEFT_TO_THE_PARENT.append(self._courier)
        self.outbox.after_fork_in_child()
        self._reset()

    # --- the thread

    def _run(self) -> None:
        token = attach(set_value(_SUPPRESS_INSTRUMENTATION_KEY, True))
        try:
            adopts = self._look_for_leftovers()
            looked = time.monotonic()
            while not self._stopping:
                wait = self._step_safely()
                if adopts:
                    if time.monotonic() - looked >= _ADOPTION:
                        self._look_for_leftovers()
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

    def _look_for_leftovers(self) -> bool:
        """What other processes could not send; whether they leave it where we find it."""
        self.outbox.open()
        adopts = self.outbox.adopt()
        for lane in self._lanes.values():
            if lane.due is None and self.outbox.first(lane.signal, 1, 0):
                lane.due = time.monotonic()
        return adopts

    def _step_safely(self, until: float = float("inf")) -> float:
        try:
            with self._working:
                return self._step(until)
        except BaseException as error:  # a fault of ours: what waits is not lost with the thread
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
            if lane.due > now and (lane.failures or not self._hurry):
                soonest = min(soonest, lane.due - now)
                continue
            self._send(lane, until)
            soonest = 0.0
        if self._metrics_due is not None:
            if self._metrics_due <= now:
                self._metrics_due, self._collecting = now + self._interval, True
                try:
                    self._send_metrics(until)
                finally:
                    self._collecting = False
                    self._tell()
            soonest = min(soonest, max(0.0, self._metrics_due - now))
        return soonest

    def _send(self, lane: _Lane, until: float) -> None:
        lane.due = None  # a parcel that is put from here on makes it due again
        parcels = self.outbox.first(lane.signal, lane.most, MAX_REQUEST)
        if not parcels:
            self._tell()
            return
        answer = self._attempt(lane.signal, b"".join([parcel.body for parcel in parcels]), until)
        if self._stopping:
            return  # they stay in their file, or are counted as lost
        items = sum(parcel.items for parcel in parcels)
        now = time.monotonic()
        if answer.kind == "again":
            lane.failures += 1
            longest = min(self._pauses[1], self._pauses[0] * 2.0 ** min(lane.failures - 1, 30))
            jitter = max(_SHORTEST_PAUSE, random.uniform(0, longest))  # noqa: S311 - jitter, no secret
            lane.due = now + max(answer.wait, jitter)
            self._give_up(parcels)
            return
        lane.failures = 0
        lane.due = now
        if answer.kind == "refused" and answer.about_the_body and len(parcels) > 1:
            lane.most = len(parcels) // 2  # one of them may be what it does not like
            return
        lane.most = min(_MOST_PARCELS, lane.most * 2)
        self.outbox.remove(parcels)
        if answer.kind == "refused":
            self._account.settled("refused", items)
        else:
            rejected = min(answer.rejected, items)
            if rejected:
                self._account.settled("rejected", rejected)
            self._account.settled("sent", items - rejected)
        self._tell()

    def _give_up(self, parcels: list[Parcel]) -> None:
        """Drop what was tried for too long."""
        oldest = self._clock.time_ns() / 1e9 - self._retry_for
        expired = [parcel for parcel in parcels if parcel.at < oldest]
        if expired:
            self.outbox.remove(expired)
            self._account.settled("expired", sum(parcel.items for parcel in expired))
            self._tell()

    def _send_metrics(self, until: float) -> None:
        """Once: they are cumulative, so the next ones say it all."""
        body = self._collect()
        if body:
            self._attempt("metrics", body, until)

    def _attempt(self, signal: str, body: bytes, until: float) -> Answer:
        if self._courier is None:
            self._courier = self._make_courier()
        answer = self._courier.send(signal, body, min(self._timeout, max(0.1, until - time.monotonic())))
        if answer.kind != "sent" or answer.rejected:
            self._account.failed(answer.reason)
        return answer

    # --- who waits for it

    def _any_waits(self) -> bool:
        return any(lane.due is not None for lane in self._lanes.values())

    def _all_sent(self) -> bool:
        """Nothing waits and nothing is under way."""
        if self._collecting or (self._metrics_due is not None and self._metrics_due <= time.monotonic()):
            return False
        return not self._any_waits() and self.outbox.bytes == 0

    def _tell(self) -> None:
        with self._progress:
            self._progress.notify_all()


_FOREVER = float("inf")
_LEFT_TO_THE_PARENT: list[Courier | None] = []
"""Connections that a forked child inherited: it must neither use nor close them."""
