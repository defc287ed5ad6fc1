"""What every outlet gets and may do.

A score is computed once; outlets render it. All of them run on the worker, except span events, which can only be written while the root
is ending (see :mod:`.span_events`).
"""
# ruff: noqa: B027 - what an outlet may leave out does nothing

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from ..config.keypath import KeyPath
from ..core.errors import StoreError, Unusable
from ..core.semconv import EMIT_RECORDS
from ..core.telemetry import Telemetry
from ..core.writable import warn_of_fault
from ..evaluation.scored_turn import Root, ScoredTurn

if TYPE_CHECKING:
    from ..config.root import Config
    from ..statistics.changes import Change


T = TypeVar("T")


def told_of(error: BaseException) -> str:
    """Return what may be shown of a fault: its name, and why, unless that could hold content."""
    why = ""
    if isinstance(error, OSError) and error.filename:
        why = f"{error.filename}: {error.strerror}"
    elif isinstance(error, Unusable):
        why = error.reason
    elif isinstance(error, StoreError) or any(kind.__module__ == "sqlite3" for kind in type(error).__mro__):
        why = str(error)
    return f"{type(error).__name__}: {why}" if why else type(error).__name__


class RecordAccount:
    """What became of an outlet's records: ``made`` = ``delivered`` + ``waiting`` + what ``failed`` by reason. Thread-safe.

    Args:
        outlet: whose.
        telemetry: counts them as ``agenteval.emit.records{outlet, outcome}``; None counts nowhere else.
    """

    def __init__(self, outlet: str, telemetry: Telemetry | None = None) -> None:
        self._outlet = outlet
        self._telemetry = telemetry
        self.reset()

    def reset(self) -> None:
        """Start from zero: in a forked child, what the parent made is the parent's."""
        self._lock = threading.Lock()
        self.made = 0
        """Records that were rendered here, or found where an earlier process had left them."""
        self.delivered = 0
        self.failed: Counter[str] = Counter()

    @property
    def waiting(self) -> int:
        """Records that are still to be delivered."""
        return self.made - self.delivered - sum(self.failed.values())

    def add(self, records: int) -> None:
        """Count records that were made."""
        with self._lock:
            self.made += records

    def finish(self, outcome: str, records: int) -> None:
        """Count records that were ``sent``, or that never will be, with the reason as ``outcome``."""
        if not records:
            return
        with self._lock:
            if outcome == "sent":
                self.delivered += records
            else:
                self.failed[outcome] += records
        if self._telemetry is not None:
            self._telemetry.add(EMIT_RECORDS, records, outlet=self._outlet, outcome=outcome)

    def to_dict(self) -> dict[str, Any]:
        """For the ledger."""
        return {"made": self.made, "delivered": self.delivered, "waiting": self.waiting, "failed": dict(self.failed)}


class Outlet(ABC):
    """A place through which scores leave. All that an outlet may do is declared here, with defaults that do nothing.

    A new outlet inherits from this class and defines ``name`` and :meth:`emit`; everything else is optional. The worker calls every method,
    unless it says otherwise. A failure is counted, and the other outlets still run.
    """

    name: str
    """As in the counter ``agenteval.emit.errors{outlet}``."""
    keeps_content: bool = False
    """Whether :meth:`emit` reads what was said in a turn; else turns may come without it."""
    keeps_spans: bool = False
    """Whether :meth:`emit` reads the spans of a turn (:attr:`ScoredTurn.spans`); else turns come without them."""
    flushed_at_exit: bool = True
    """Whether the engine flushes it at interpreter exit. An outlet that writes to a provider of the application must not be: the
    provider has an exit of its own, and may be gone already."""
    records: RecordAccount | None = None
    """The account of its records, of an outlet that keeps what it cannot deliver yet."""

    _trouble: str = ""

    @property
    def trouble(self) -> str:
        """Why it delivers nothing at the moment, as far as it knows; empty when it does. Says nothing of any content."""
        return self._trouble

    def check(self) -> None:
        """Deliver what waits, or find out whether something could be delivered. May do I/O, and may raise. Called by servers, on any thread."""

    @property
    def full(self) -> bool:
        """Whether it holds as many undelivered records as it may."""
        return False

    def start(self) -> None:
        """Begin at once what else begins with the first turn, as sending what an earlier process left behind. Called by servers."""

    @abstractmethod
    def emit(self, batch: Sequence[ScoredTurn]) -> None:
        """Render a batch. May do I/O, and may raise."""

    def render(self, batch: Iterable[ScoredTurn], make: Callable[[ScoredTurn], T]) -> tuple[list[T], Exception | None]:
        """Make something of each turn. A turn of which it cannot be made is left out and counted, and the others are not.

        Returns:
            What was made, and the first fault, which :meth:`emit` raises once the rest is delivered.
        """
        found: list[T] = []
        fault: Exception | None = None
        for scored in batch:
            try:
                found.append(make(scored))
            except Exception as error:
                fault = fault or error
                if self.records is not None:
                    lost = sum(score.status != "skipped" for score in scored.scores)
                    self.records.add(lost)
                    self.records.finish("fault", lost)
        return found, fault

    def note_outcome(self, turn_id: str, metric: str, outcome: str) -> None:
        """A judged metric gave no score, or none yet: why. Called on any thread; must neither wait nor raise."""

    def announce(self, change: Change, root: Root) -> None:
        """The scores of a metric have changed; ``root`` is that of the turn which showed it. May raise."""

    def keep_all(self) -> None:
        """From now on drop nothing for lack of room: the worker emits nothing while an outlet is :attr:`full`."""

    def flush(self, timeout: float) -> bool:
        """Deliver what is buffered, within ``timeout`` seconds; False when that was not all."""
        return True

    def begin_exit(self) -> None:
        """This is the end: start no thread any more; what is flushed now is flushed for the last time. Called by who ends the engine."""

    def close(self) -> None:
        """Release what the outlet holds. Safe to call twice. Called by who ends the engine."""

    def after_fork_in_child(self) -> None:
        """Forget what is the parent's (threads, connections, undelivered records), and get what the child needs of its own."""


@dataclass(frozen=True, slots=True)
class Setup:
    """What outlets are made from. Each outlet's module has a function ``outlet_from(wanted, setup)``, see :mod:`.factory`."""

    config: Config
    telemetry: Telemetry
    """The engine's accumulators."""
    instance_id: Callable[[], str]
    """Tells the engines of a fleet apart; asked again in a forked child."""
    version: str
    """Of this package, for the scope of what is sent."""
    logger_provider: Any = None
    """Where log events go; None = the global one, looked up when the first score leaves."""
    meter_provider: Any = None
    """Where OTLP metrics go; None = the global one."""

    def warn_of_fault(self, where: KeyPath, path: str | None, fault_in: Callable[[str], str | None], consequence: str) -> None:
        """Warn of a configured path that cannot be written. Nothing else comes of it: the disk may be mended before the first score."""
        if path is not None:
            warn_of_fault(self.config.where(where), path, fault_in, consequence)
