"""Outlet that sends scores to an OTLP endpoint.

In a sidecar, the endpoint is usually the Collector that feeds it. Exported telemetry that returns in a loop is recognized by
its scope and attributes (see :func:`otel_agenteval.spans.otlp.is_ours`), and is never evaluated.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ...config.outlets import OtlpOptions
from ...config.types import LogEvents
from ...core import semconv
from ...core.clock import SYSTEM_CLOCK, Clock
from ...core.errors import ConfigError
from ...core.files import fault_of_folder
from ...core.telemetry import Telemetry
from ...evaluation.scored_turn import Root, ScoredTurn
from ...spans.otlp import Signal
from ..base import Outlet, RecordAccount, Setup
from ..selection import log_mode
from .encoding import ScoreEncoder
from .metrics import MetricsEncoder
from .sender import Sender

if TYPE_CHECKING:
    from ...statistics.changes import Change


class OtlpOutlet(Outlet):
    """Outlet for log events, metrics and ``evaluate`` spans to one OTLP endpoint.

    The worker's thread encodes records, and the outlet's own thread sends them. A slow or unavailable receiver fills a bounded
    queue and delays nothing else. Raises ConfigError if a certificate file can't be read.

    ``mode`` overrides the option ``log_events``. For ``pauses`` and ``adopt_every``, see :class:`Sender`.
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
        self._clock = clock
        self._log_events = wanted.log_events if mode is None else mode
        self._encoder = ScoreEncoder(version)
        self._metrics = MetricsEncoder(telemetry, version, clock.time_ns())
        self.records = RecordAccount(self.name, telemetry)
        self._begun = False
        self._sender = Sender(
            wanted,
            self.records,
            telemetry,
            lambda: self._metrics.request(clock.time_ns(), instance_id()) if self._begun else b"",
            clock,
            pauses,
            adopt_every,
        )
        telemetry.watch(semconv.QUEUE_SIZE, lambda: [({"queue": "otlp"}, self._sender.spool.bytes)])
        telemetry.watch(semconv.QUEUE_CAPACITY, lambda: [({"queue": "otlp"}, self._sender.spool.max_bytes)])

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
        if self._log_events != "off":
            self._put("logs", self._encoder.change(change, root, self._clock.time_ns(), self._instance_id()), 1)

    def _put(self, signal: Signal, body: bytes, items: int) -> None:
        if items:
            self.records.add(items)
            self._sender.put(signal, body, items, must=self._keeps_all)

    @property
    def trouble(self) -> str:
        """Signals whose last request failed, with the reasons."""
        return "; ".join(f"{signal}: {reason}" for signal, reason in self._sender.trouble.copy().items())

    @property
    def full(self) -> bool:
        return self._sender.spool.full

    def flush(self, timeout: float) -> bool:
        return self._sender.flush(timeout)

    def close(self) -> None:
        """Stop sending. Waiting records stay in the spool or are counted as dropped."""
        self._sender.close()

    def start(self) -> None:
        self._sender.start()

    def begin_exit(self) -> None:
        self._sender.may_start = False  # a flush does the work

    def after_fork_in_child(self) -> None:
        self._begun = False
        self._metrics = MetricsEncoder(self._telemetry, self._version, self._clock.time_ns())
        self.records.reset()
        self._sender.after_fork_in_child()


def outlet_from(wanted: OtlpOptions, setup: Setup) -> Outlet:
    directory = None if wanted.spool is None else wanted.spool.directory
    setup.warn_of_fault(("outlets", "otlp", "spool", "directory"), directory, fault_of_folder, "scores wait in memory")
    mode = log_mode(wanted.log_events, setup.config)
    return OtlpOutlet(wanted, setup.telemetry, setup.instance_id, setup.version, mode=mode)
