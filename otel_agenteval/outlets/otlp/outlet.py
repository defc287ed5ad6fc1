"""Scores sent to an OTLP endpoint by connections of our own: what a sidecar does, typically back to the Collector that feeds it.

What comes back to us in a circle is recognised by its scope and attributes (see :func:`otel_agenteval.spans.otlp.is_ours`), and is
never evaluated.
"""

from __future__ import annotations

import itertools
import logging
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ...config.otlp import OtlpOptions
from ...core import semconv
from ...core.clock import SYSTEM_CLOCK, Clock
from ...core.errors import ConfigError
from ...core.telemetry import Telemetry
from ...core.writable import fault_of_folder
from ...evaluation.scored_turn import Root, ScoredTurn
from ...spans.otlp import Signal
from ..base import Outlet, RecordAccount, Setup
from ..selection import LogEvents, log_mode
from .client import client_for
from .encoding import ScoreEncoder
from .metrics import MetricsEncoder
from .sender import Sender
from .spool import Spool, SpoolFile

if TYPE_CHECKING:
    from ...statistics.changes import Change

_log = logging.getLogger("otel_agenteval")


class OtlpOutlet(Outlet):
    """Log events, metrics and ``evaluate`` spans for one OTLP endpoint.

    Records are rendered in the worker's thread and sent in a thread of the outlet's own: a receiver that is slow or gone fills a
    bounded queue, and delays nothing else. What becomes of each record is counted in ``agenteval.emit.records{outlet="otlp"}``,
    requests that fail in ``agenteval.emit.errors``.

    Args:
        wanted: where to, and what.
        telemetry: the engine's accumulators: gets the counts, and is what the metrics are made from.
        instance_id: tells the engines of a fleet apart; asked again in a forked child.
        version: of this package, for the scope.
        clock: dates the records.
        mode: which scores leave as log events, see :func:`~otel_agenteval.outlets.selection.scores_to_log`; None means as ``wanted`` says.
        pauses: the first and the longest pause between two attempts, in seconds; tests shorten them.

    Raises:
        ConfigError: a certificate's file cannot be read.
    """

    name = "otlp"
    records: RecordAccount

    def __init__(
        self,
        wanted: OtlpOptions,
        telemetry: Telemetry,
        instance_id: Callable[[], str],
        version: str,
        clock: Clock = SYSTEM_CLOCK,
        mode: LogEvents | None = None,
        pauses: tuple[float, float] = (1.0, 30.0),
    ) -> None:
        for option in ("ca_file", "cert_file", "key_file"):
            file = getattr(wanted, option)
            if file is not None and not os.access(file, os.R_OK):
                raise ConfigError(f"outlets.otlp.{option}: {file!r} cannot be read; it must be a PEM file")
        self._wanted = wanted
        self._telemetry = telemetry
        self._instance_id = instance_id
        self._version = version
        self._clock = clock
        self._log_events = wanted.log_events if mode is None else mode
        self._encoder = ScoreEncoder(version)
        self._metrics = MetricsEncoder(telemetry, version, clock.time_ns())
        self.records = RecordAccount(self.name, telemetry)
        self._keeps_all = False
        self._warned_of: set[str] = set()
        self._begun = False
        """Whether metrics are sent: from the first turn on."""
        spool = wanted.spool
        self._sender = Sender(
            wanted,
            lambda: client_for(wanted),
            lambda: Spool(
                wanted.queue_bytes,
                None if spool is None else lambda: SpoolFile(spool.directory, spool.max_bytes),
                self.failed,
                self.records.add,
            ),
            self,
            self._collected,
            clock,
            pauses,
        )
        telemetry.watch(semconv.QUEUE_SIZE, lambda: [({"queue": "otlp"}, self._sender.spool.bytes)])
        telemetry.watch(semconv.QUEUE_CAPACITY, lambda: [({"queue": "otlp"}, self._sender.spool.max_bytes)])

    # --- what the pipeline calls

    def emit(self, batch: Sequence[ScoredTurn]) -> None:
        """Render a batch and leave it to the sending thread."""
        fault: Exception | None = None
        try:
            requests = [self._requests(batch)]
        except Exception:  # one turn is the cause
            requests, fault = self.render(batch, lambda scored: self._requests([scored]))
        for signal, body, items in itertools.chain.from_iterable(requests):
            self._put(signal, body, items)
        if self._wanted.metrics_interval:
            self._begun = True
            self._sender.start()
        if fault is not None:
            raise fault

    def _requests(self, batch: Sequence[ScoredTurn]) -> list[tuple[Signal, bytes, int]]:
        now, instance_id = self._clock.time_ns(), self._instance_id()
        found: list[tuple[Signal, bytes, int]] = []
        if self._log_events != "off":
            found.append(("logs", *self._encoder.log_records(batch, now, instance_id, self._log_events)))
        wanted = self._wanted.evaluate_spans
        if wanted != "off":
            found.append(("traces", *self._encoder.evaluate_spans(batch, now, instance_id, child=wanted == "child")))
        return found

    def announce(self, change: Change, root: Root) -> None:
        """A log record about a change, under the Resource of the turn that showed it."""
        if self._log_events != "off":
            self._put("logs", self._encoder.change(change, root, self._clock.time_ns(), self._instance_id()), 1)

    def _put(self, signal: Signal, body: bytes, items: int) -> None:
        if items:
            self.records.add(items)
            self._sender.put(signal, body, items, must=self._keeps_all)

    @property
    def trouble(self) -> str:
        """The signals whose last request failed, and why."""
        return "; ".join(f"{signal}: {reason}" for signal, reason in self._sender.trouble.copy().items())

    @property
    def full(self) -> bool:
        """Whether as much waits as may."""
        return self._sender.spool.full

    def keep_all(self) -> None:
        """Drop nothing for lack of room: the worker asks for :attr:`full` first."""
        self._keeps_all = True

    def flush(self, timeout: float) -> bool:
        """Send everything that waits; False when that was not done within ``timeout`` seconds. See :meth:`Sender.flush`."""
        return self._sender.flush(timeout)

    def close(self) -> None:
        """Send nothing more; what waits stays in the spool, or is counted as lost."""
        self._sender.close()

    def start(self) -> None:
        """Start sending, also what an earlier process left in the spool."""
        self._sender.start()

    def begin_exit(self) -> None:
        """Start no thread any more, and wait for the receiver when flushed: it is the last time."""
        self._sender.may_start = False

    def after_fork_in_child(self) -> None:
        """What waits is the parent's; the child is an instance of its own."""
        self._begun = False
        self._metrics = MetricsEncoder(self._telemetry, self._version, self._clock.time_ns())
        self.records.reset()
        self._sender.after_fork_in_child()

    # --- the account

    def finished(self, outcome: str, items: int) -> None:
        """Count records or spans that were sent, or are not going to be."""
        self.records.finish(outcome, items)
        if outcome != "sent":
            self._warn_once(outcome, f"{items} records were not sent")

    def failed(self, reason: str) -> None:
        """Count a request that failed."""
        self._telemetry.add(semconv.EMIT_ERRORS, outlet=self.name, reason=reason)
        self._warn_once(reason, "a request failed")

    def _warn_once(self, reason: str, what: str) -> None:
        if reason not in self._warned_of:
            self._warned_of.add(reason)
            _log.warning("outlet otlp: %s: %s (counted from now on)", what, reason)

    # --- metrics

    def _collected(self) -> bytes:
        return self._metrics.request(self._clock.time_ns(), self._instance_id()) if self._begun else b""


def outlet_from(wanted: OtlpOptions, setup: Setup) -> Outlet:
    """The endpoint that is configured."""
    directory = None if wanted.spool is None else wanted.spool.directory
    setup.warn_of_fault(("outlets", "otlp", "spool", "directory"), directory, fault_of_folder, "scores wait in memory")
    mode = log_mode(wanted.log_events, setup.config)
    return OtlpOutlet(wanted, setup.telemetry, setup.instance_id, setup.version, mode=mode)
