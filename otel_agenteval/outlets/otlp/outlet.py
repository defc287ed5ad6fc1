"""Outlet that sends scores to an OTLP endpoint.

A sidecar often exports to the Collector that sends spans to the sidecar. Therefore, the sidecar can receive its own telemetry. The
sidecar recognizes this telemetry by scope and attributes (:func:`otel_agenteval.spans.otlp.is_ours`), and never evaluates it.
"""

from __future__ import annotations

import itertools
import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from ...config.outlets import OtlpOptions
from ...config.types import LogEvents
from ...core import semconv
from ...core.errors import ConfigError
from ...core.files import fault_of_folder
from ...core.pacing import backoff
from ...core.telemetry import Telemetry
from ...core.threads import is_meant_for_host, started
from ...evaluation.scored_turn import Root, ScoredTurn
from ...spans.otlp import Signal
from ..base import Outlet, RecordAccount, Setup
from ..log_events import log_mode, uninstrumented
from .client import Client, SendResult, client_for
from .encoding import MetricsEncoder, ScoreEncoder
from .spool import SIGNALS, Spool, SpooledBatch, SpoolFile

if TYPE_CHECKING:
    from ...statistics.changes import Change

_log = logging.getLogger("otel_agenteval")

LINGER = 0.5
"""Seconds that a batch waits for later batches, which are then sent in the same request."""
MAX_REQUEST = 4 * 1024 * 1024
"""Maximum bytes of a request. A batch that exceeds this limit is sent in a separate request."""
_MOST_BATCHES = 512
_JOIN = 1.0


@dataclass(slots=True)
class _Lane:
    signal: Signal
    due: float | None = None
    """Monotonic time of the next request, or None if no batch waits."""
    failures: int = 0
    most: int = _MOST_BATCHES
    """Current maximum number of batches per request. Halved if the receiver refuses a request with several batches."""


class OtlpOutlet(Outlet):
    """Outlet that sends log events, metrics, and ``evaluate`` spans to one OTLP endpoint.

    The worker thread encodes records, and the outlet's own thread sends the records. If the receiver is slow or unavailable,
    records wait in a bounded queue. Raises ConfigError if a certificate file can't be read.

    After a temporary refusal, the outlet retries with exponential backoff and jitter. If the receiver requests a longer wait, the
    outlet waits longer. Batches older than ``retry_for`` are dropped. After a permanent refusal, the request's batches are dropped.
    However, if one of several batches might be the only cause, the outlet resends the batches in smaller requests.

    Each signal has its own retry delay, so a receiver that doesn't support one signal doesn't delay the others.

    ``mode`` overrides the option ``log_events``. ``pauses`` contains the first and the longest pause between attempts, in seconds.
    Every ``adopt_every`` seconds, the outlet looks for unsent batches of processes that have ended.
    """

    name = "otlp"
    records: RecordAccount

    def __init__(
        self,
        wanted: OtlpOptions,
        telemetry: Telemetry,
        instance_id: Callable[[], str],
        version: str,
        mode: LogEvents | None = None,
        pauses: tuple[float, float] = (1.0, 30.0),
        adopt_every: float = 15.0,
    ) -> None:
        for option in ("ca_file", "cert_file", "key_file"):
            file = getattr(wanted, option)
            if file is not None and not os.access(file, os.R_OK):
                raise ConfigError(f"outlets.otlp.{option}: must be a readable PEM file, got {file!r}")
        self._wanted = wanted
        self._telemetry = telemetry
        self._instance_id = instance_id
        self._version = version
        self._log_events = wanted.log_events if mode is None else mode
        self._encoder = ScoreEncoder(version)
        self._pauses = pauses
        self._adopt_every = adopt_every
        self.records = RecordAccount(self.name, telemetry)
        self._warned_of: set[str] = set()
        self._may_start = True
        """False at interpreter exit, when new threads can't start."""
        self._reset()
        telemetry.watch(semconv.QUEUE_SIZE, lambda: [({"queue": "otlp"}, self._spool.bytes)])
        telemetry.watch(semconv.QUEUE_CAPACITY, lambda: [({"queue": "otlp"}, self._spool.max_bytes)])

    def _reset(self) -> None:
        wanted = self._wanted
        file = None if wanted.spool is None else partial(SpoolFile, wanted.spool.directory, wanted.spool.max_bytes)
        self._spool = Spool(wanted.queue_bytes, file, self._failed, self.records.add)
        self._client: Client | None = None
        self._lanes = {signal: _Lane(signal) for signal in SIGNALS}
        self._troubles: dict[str, str] = {}
        """Mapping from a failing signal to the reason, until a request succeeds. Excludes rejections of a request's content."""
        self._metrics_due: float | None = None
        self._flushing = 0
        self._collecting = False
        self._wake = threading.Event()
        self._progress = threading.Condition()
        self._working = threading.Lock()
        self._thread: threading.Thread | None = None
        self._stopping = False
        self._metrics = MetricsEncoder(self._telemetry, self._version, time.time_ns())
        self._begun = False
        """True after the first turn. Metrics aren't sent before the first turn."""

    def emit(self, batch: Sequence[ScoredTurn]) -> None:
        fault: Exception | None = None
        try:
            requests = [self._requests(batch)]
        except Exception:  # a turn can't be encoded, so encode them one by one
            requests, fault = self.render(batch, lambda scored: self._requests([scored]))
        for signal, body, items in itertools.chain.from_iterable(requests):
            self._put(signal, body, items)
        if self._wanted.metrics_interval:
            self._begun = True
            self.start()
        if fault is not None:
            raise fault

    def _requests(self, batch: Sequence[ScoredTurn]) -> list[tuple[Signal, bytes, int]]:
        now, instance_id = time.time_ns(), self._instance_id()
        found: list[tuple[Signal, bytes, int]] = []
        if self._log_events != "off":
            found.append(("logs", *self._encoder.log_records(batch, now, instance_id, self._log_events)))
        wanted = self._wanted.evaluate_spans
        if wanted != "off":
            found.append(("traces", *self._encoder.evaluate_spans(batch, now, instance_id, child=wanted == "child")))
        return found

    def announce(self, change: Change, root: Root) -> None:
        if self._log_events != "off":
            self._put("logs", self._encoder.change(change, root, time.time_ns(), self._instance_id()), 1)

    def _put(self, signal: Signal, body: bytes, items: int) -> None:
        """Queue a request. If the outlet is closed, or if the queue is full and records may be dropped, drop the request."""
        if not items:
            return
        self.records.add(items)
        if self._stopping:
            self._finish("shutdown", items)
            return
        if not self._spool.put(SpooledBatch(signal, items, time.time_ns() / 1e9, body), must=self._keeps_all):
            self._finish("queue_full", items)
        lane = self._lanes[signal]
        if lane.due is None:
            lane.due = time.monotonic() + LINGER
            self._wake.set()
        self.start()

    @property
    def trouble(self) -> str:
        return "; ".join(f"{signal}: {reason}" for signal, reason in self._troubles.copy().items())

    @property
    def full(self) -> bool:
        return self._spool.full

    def start(self) -> None:
        """Start the sending thread if it isn't running. This thread exports metrics and queued batches, including batches that
        ended processes left unsent.
        """
        if self._wanted.metrics_interval and self._metrics_due is None:
            self._metrics_due = time.monotonic() + self._wanted.metrics_interval
        if (self._thread is not None and self._thread.is_alive()) or not self._may_start or self._stopping:
            return
        self._thread = started(self._run, "otel-agenteval-otlp")
        self._may_start = self._thread is not None  # without a thread, a flush does the work

    def flush(self, timeout: float) -> bool:
        """Send all waiting batches and metrics. Return False if they weren't sent within ``timeout`` seconds.

        While the receiver is failing, only a flush at exit tries to send batches, and batches in a file count as sent.
        """
        until = time.monotonic() + timeout
        if self._metrics_due is not None:
            self._metrics_due = time.monotonic()
        thread = self._thread
        self._flushing += 1
        try:
            if not self._may_start or not self._fails():
                if thread is None or not thread.is_alive():
                    self._work_here(until)
                else:
                    self._wake.set()
                    with self._progress:
                        self._progress.wait_for(self._sent_or_kept, max(0.0, until - time.monotonic()))
            return self._sent_or_kept()
        finally:
            self._flushing -= 1

    def close(self) -> None:
        """Stop sending. Batches in the spool file stay there. The records of other batches are counted as dropped."""
        if self._stopping:
            return
        self._stopping = True
        self._wake.set()
        if self._client is not None:
            self._client.close()  # cancels a running request
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(_JOIN)
        self.lose_rest(self._spool.close(), "record")

    def begin_exit(self) -> None:
        self._may_start = False  # a flush does the work

    def after_fork_in_child(self) -> None:
        _LEFT_TO_THE_PARENT.append(self._client)
        self._spool.after_fork_in_child()
        super().after_fork_in_child()

    # --- on the outlet's thread, or in a flush

    def _fails(self) -> bool:
        return any(lane.failures for lane in self._lanes.values())

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
                if wait > 0 and not self._all_sent():
                    time.sleep(min(wait, max(0.0, until - time.monotonic())))

    def _adopt(self) -> bool:
        """Queue batches from files that ended processes left behind. If no spool file is open, return False."""
        self._spool.open()
        adopts = self._spool.adopt()
        for lane in self._lanes.values():
            if lane.due is None and self._spool.first(lane.signal, 1, 0):
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
        """Do all due work before the monotonic time ``until``. Return the seconds until more work is due."""
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
                    # cumulative, so the next request makes up for a failed one
                    body = self._metrics.request(time.time_ns(), self._instance_id()) if self._begun else b""
                    if body:
                        self._attempt("metrics", body, until)
                finally:
                    self._collecting = False
                    self._notify()
            soonest = min(soonest, max(0.0, self._metrics_due - now))
        return soonest

    def _send(self, lane: _Lane, until: float) -> None:
        lane.due = None  # a batch that arrives from here on makes the lane due again
        batches = self._spool.first(lane.signal, lane.most, MAX_REQUEST)
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
            oldest = time.time_ns() / 1e9 - self._wanted.retry_for
            expired = [batch for batch in batches if batch.at < oldest]
            if expired:
                self._spool.remove(expired)
                self._finish("expired", sum(batch.items for batch in expired))
            self._notify()
            return
        lane.failures = 0
        lane.due = now
        if result.kind == "refused" and result.about_the_body and len(batches) > 1:
            lane.most = len(batches) // 2  # one of the batches may be the cause
            return
        lane.most = min(_MOST_BATCHES, lane.most * 2)
        self._spool.remove(batches)
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
            self._troubles.pop(signal, None)
        elif result.kind == "retry" or not result.about_the_body:
            self._troubles[signal] = result.reason
        if result.kind != "sent" or result.rejected:
            self._failed(result.reason)
        return result

    def _finish(self, outcome: str, items: int) -> None:
        self.records.finish(outcome, items)
        if outcome != "sent":
            self._warn_once(outcome, f"dropped {items} records for")

    def _failed(self, reason: str) -> None:
        self._telemetry.add(semconv.EMIT_ERRORS, outlet=self.name, reason=reason)
        self._warn_once(reason, "can't send to")

    def _warn_once(self, reason: str, what: str) -> None:
        if reason not in self._warned_of:
            self._warned_of.add(reason)
            address = self._wanted.endpoint
            over_grpc = reason == "UNAVAILABLE" and self._wanted.protocol == "grpc" and not address.endswith(":4317")
            hint = ". For OTLP/HTTP (usually port 4318), set outlets.otlp.protocol: http" if over_grpc else ""
            _log.warning("outlet otlp: %s %s: %s (further failures are only counted)%s", what, address, reason, hint)

    def _all_sent(self) -> bool:
        if self._collecting or (self._metrics_due is not None and self._metrics_due <= time.monotonic()):
            return False
        return all(lane.due is None for lane in self._lanes.values()) and self._spool.bytes == 0

    def _sent_or_kept(self) -> bool:
        return self._all_sent() or (self._fails() and self._spool.outlives_us)

    def _notify(self) -> None:
        with self._progress:
            self._progress.notify_all()


def outlet_from(wanted: OtlpOptions, setup: Setup) -> Outlet:
    directory = None if wanted.spool is None else wanted.spool.directory
    setup.warn_of_fault(("outlets", "otlp", "spool", "directory"), directory, fault_of_folder, "scores wait in memory")
    return OtlpOutlet(wanted, setup.telemetry, setup.instance_id, setup.version, mode=log_mode(wanted.log_events, setup.config))


_FOREVER = float("inf")
_LEFT_TO_THE_PARENT: list[Client | None] = []
"""Connections that a forked child inherited. The child must neither use nor close these connections."""
