"""Base class of all outlets.

Outlets receive scores on the worker thread or, if their calls can block (``may_hang``), on a separate thread. Only
:mod:`.span_events` runs earlier, because an ended span can't be changed.
"""
# ruff: noqa: B027 - optional methods do nothing

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, MutableSequence, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from ..config.types import KeyPath
from ..core.clock import SYSTEM_CLOCK, Clock
from ..core.errors import MissingExtra, StoreError, Unusable
from ..core.files import warn_of_fault
from ..core.semconv import EMIT_RECORDS
from ..core.telemetry import Telemetry
from ..evaluation.scored_turn import Root, ScoredTurn

if TYPE_CHECKING:
    from ..config.root import Config
    from ..statistics.changes import Change

_log = logging.getLogger("otel_agenteval")
T = TypeVar("T")


def loggable(error: BaseException) -> str:
    """Return an error's type and, if the error's text can't contain turn content, the text. Used in log messages."""
    why = ""
    if isinstance(error, OSError) and error.filename:
        why = f"{error.filename}: {error.strerror}"
    elif isinstance(error, Unusable):
        why = error.reason
    elif isinstance(error, (StoreError, MissingExtra)) or any(kind.__module__ == "sqlite3" for kind in type(error).__mro__):
        why = str(error)
    return f"{type(error).__name__}: {why}" if why else type(error).__name__


class RecordAccount:
    """Thread-safe record counts of an outlet. ``made`` is the sum of ``delivered``, ``waiting``, and ``failed``."""

    def __init__(self, outlet: str, telemetry: Telemetry | None = None) -> None:
        self._outlet = outlet
        self._telemetry = telemetry
        self.reset()

    def reset(self) -> None:
        """Set all counts to zero. Called in a forked child, because the parent delivers the inherited records."""
        self._lock = threading.Lock()
        self.made = 0
        """Number of records that this process rendered, failed to render, or took over from an earlier process."""
        self.delivered = 0
        self.failed: Counter[str] = Counter()

    @property
    def waiting(self) -> int:
        return self.made - self.delivered - sum(self.failed.values())

    def add(self, records: int) -> None:
        with self._lock:
            self.made += records

    def finish(self, outcome: str, records: int) -> None:
        """Count ``records`` records as finished. ``outcome`` is ``sent`` or the reason why the records were dropped."""
        if not records:
            return
        with self._lock:
            if outcome == "sent":
                self.delivered += records
            else:
                self.failed[outcome] += records
        if self._telemetry is not None:
            self._telemetry.add(EMIT_RECORDS, records, outlet=self._outlet, outcome=outcome)

    def lose(self, reason: str, batch: Iterable[ScoredTurn]) -> None:
        """Count the batch's scores, except skipped scores, as records that failed for ``reason`` before they were rendered."""
        lost = sum(score.status != "skipped" for scored in batch for score in scored.scores)
        self.add(lost)
        self.finish(reason, lost)

    def to_dict(self) -> dict[str, Any]:
        return {"made": self.made, "delivered": self.delivered, "waiting": self.waiting, "failed": dict(self.failed)}


class Outlet(ABC):
    """Base class for outlets, which export scores. By default, optional methods do nothing.

    To add an outlet, inherit from this class and define ``name`` and :meth:`emit`. The worker thread calls :meth:`emit` or, if
    ``may_hang`` is true, usually a separate thread. Other threads can call the other methods. If an outlet fails, the failure is
    counted and other outlets continue.
    """

    name: str
    """Outlet name, which is the value of the label ``outlet`` in the counters ``agenteval.emit.*``."""
    keeps_content: bool = False
    """True if :meth:`emit` reads turn content. If False, :meth:`emit` can receive turns without content."""
    keeps_spans: bool = False
    """True if :meth:`emit` reads :attr:`ScoredTurn.spans`. If False, :meth:`emit` receives turns without spans."""
    may_hang: bool = False
    """True if calls can block on a server, a pipe, or a file system."""
    flushed_at_exit: bool = True
    """True if the engine flushes the outlet at interpreter exit.

    Set this to False if the outlet uses the application's provider, which might already be shut down at exit.
    """
    records: RecordAccount | None = None
    """Record counts of the outlet, or None if the outlet doesn't keep undelivered records."""

    _trouble: str = ""
    _keeps_all: bool = False
    _bytes: int = 0
    _max_waiting: float = float("inf")

    @property
    def trouble(self) -> str:
        """Reason why deliveries fail, without turn content. Empty if deliveries succeed."""
        return self._trouble

    def check(self) -> None:
        """Deliver waiting records, or test the destination. Can do I/O and raise errors. Called on any thread."""

    @property
    def full(self) -> bool:
        """True if the outlet holds the maximum amount of undelivered records."""
        return self._bytes >= self._max_waiting

    def start(self) -> None:
        """Start background work before the first turn, for example to send an earlier process's leftover records."""

    def warm_up(self) -> Iterator[None]:
        """Prepare for the first turn, for example by imports. Runs on the warm-up thread, and yields every few milliseconds."""
        return iter(())

    @abstractmethod
    def emit(self, batch: Sequence[ScoredTurn]) -> None:
        """Export a batch of scored turns. Can do I/O and raise errors. After an error, the worker doesn't retry the batch."""

    def render(self, batch: Iterable[ScoredTurn], make: Callable[[ScoredTurn], T]) -> tuple[list[T], Exception | None]:
        """Apply ``make`` to each turn. Return all results, and the first error or None. The calling :meth:`emit` first exports the
        results, then raises the error.
        """
        found: list[T] = []
        fault: Exception | None = None
        for scored in batch:
            try:
                found.append(make(scored))
            except Exception as error:
                fault = fault or error
                if self.records is not None:
                    self.records.lose("fault", [scored])
        return found, fault

    def record_outcome(self, turn_id: str, metric: str, outcome: str) -> None:
        """Record a judged metric's ``outcome``, such as ``waiting``. Called on any thread. Must not wait or raise errors."""

    def announce(self, change: Change, root: Root) -> None:
        """Report a detected change in scores. ``root`` is the root span of the turn that revealed the change. Can raise errors."""

    def keep_all(self) -> None:
        """Accept scores even above the size limit. While any outlet is :attr:`full`, the worker doesn't call :meth:`emit`."""
        self._keeps_all = True

    def flush(self, timeout: float) -> bool:
        """Deliver waiting records within ``timeout`` seconds. Return False if some records are still waiting."""
        return True

    def lose_rest(self, count: int, what: str) -> None:
        """Count and log ``count`` records that weren't delivered before shutdown. ``what`` names one record, such as ``score``."""
        if count and self.records is not None:
            self.records.finish("shutdown", count)
            number, was = (f"1 {what}", "was") if count == 1 else (f"{count:,} {what}s", "were")
            rest = ". The journal or Kafka topic keeps the turns for the next start" if self._keeps_all else f" and {was} dropped"
            _log.warning("outlet %s: %s %s not delivered before shutdown%s", self.name, number, was, rest)

    def begin_exit(self) -> None:
        """Prepare for interpreter exit. From now on, don't start threads, and treat the next flush as the last flush."""

    def close(self) -> None:
        """Release all resources. Safe to call twice."""

    def _reset(self) -> None:
        """Set the initial state, without threads, connections, or records. Called for a new outlet and in a forked child."""

    def after_fork_in_child(self) -> None:
        """In a forked child, discard the parent's threads, connections, undelivered records, and counts."""
        self._reset()
        if self.records is not None:
            self.records.reset()


class MemoryOutlet(Outlet):
    name = "memory"
    keeps_content = True

    def __init__(self, kept: MutableSequence[ScoredTurn]) -> None:
        self._kept = kept

    def emit(self, batch: Sequence[ScoredTurn]) -> None:
        self._kept.extend(batch)


@dataclass(frozen=True, slots=True)
class Setup:
    """Arguments that all ``outlet_from`` functions share. These functions create outlets (see :func:`.fan_out.outlets_from`)."""

    config: Config
    telemetry: Telemetry
    instance_id: Callable[[], str]
    """Function that returns the ID of this engine within a fleet. Called again in a forked child."""
    version: str
    logger_provider: Any = None
    """LoggerProvider for log events. None selects the global provider."""
    meter_provider: Any = None
    """MeterProvider for OTLP metrics. None selects the global provider."""
    clock: Clock = SYSTEM_CLOCK

    def warn_of_fault(self, where: KeyPath, path: str | None, fault_in: Callable[[str], str | None], consequence: str) -> None:
        """Log a warning if ``fault_in`` finds a problem with ``path``. Don't raise an error, because problems can be temporary."""
        if path is not None:
            warn_of_fault(self.config.where(where), path, fault_in, consequence)
