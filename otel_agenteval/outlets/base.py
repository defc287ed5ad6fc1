"""What every outlet gets and must do.

A score is made once; outlets are renderings of it. All of them run on the worker, except the span event, which can only
be written while the root is ending (see ``span_events.py``).
"""
# ruff: noqa: B027 - what an outlet may leave out does nothing

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.semconv import EMIT_RECORDS
from ..core.telemetry import Telemetry
from ..evaluation.scored_turn import ScoredTurn
from ..judging.queues import Job

_log = logging.getLogger("otel_agenteval")


@dataclass(frozen=True, slots=True)
class Verdict:
    """A judged score on its way to the worker."""

    scored: ScoredTurn
    job: Job
    """What it comes of. It may be sent out as long as nobody else has claimed that."""
    settle: Callable[[], None]
    """To be called once it was sent out."""
    keep: Callable[[], None]
    """To be called when it is not sent out: what was paid for is remembered."""


class RecordAccount:
    """What became of an outlet's records: ``made`` = ``delivered`` + ``waiting`` + what ``failed`` by reason. Thread-safe.

    Args:
        outlet: whose.
        telemetry: counts them as ``agenteval.emit.records{outlet, outcome}``; None where nobody asks.
    """

    def __init__(self, outlet: str, telemetry: Telemetry | None = None) -> None:
        self._outlet = outlet
        self._telemetry = telemetry
        self.reset()

    def reset(self) -> None:
        """Begin anew: in a forked child, what the parent made is the parent's."""
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
        """So many were made."""
        with self._lock:
            self.made += records

    def settle(self, outcome: str, records: int) -> None:
        """So many were ``sent``, or never will be, for a reason."""
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
    """A place that scores leave through. All that an outlet may do is here, with defaults that do nothing.

    Outlets inherit from it; a new one needs no more than ``name`` and :meth:`emit`. Every method is called by the worker unless it says otherwise. What one of them raises is counted, and the other outlets still run.
    """

    name: str
    """As in the counter ``agenteval.emit.errors{outlet}``."""
    keeps_content: bool = False
    """Whether :meth:`emit` reads what was said in a turn; else turns may come without it."""
    flushed_at_exit: bool = True
    """Whether the engine flushes it at interpreter exit. An outlet that writes to a provider of the application must not be: the
    provider has an exit of its own, and may be gone already."""
    records: RecordAccount | None = None
    """The account of its records, of an outlet that keeps what it cannot deliver yet."""

    @property
    def full(self) -> bool:
        """Whether it holds as many undelivered records as it may."""
        return False

    def start(self) -> None:
        """Begin at once what else begins with the first turn, as sending what an earlier process left behind. Called by servers."""

    @abstractmethod
    def emit(self, batch: Sequence[ScoredTurn]) -> None:
        """Render a batch. May do I/O, and may raise."""

    def note_outcome(self, turn_id: str, metric: str, outcome: str) -> None:
        """A judged metric gave no score, or none yet: why. Called on any thread; must neither wait nor raise."""

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


class LateOutlet(Outlet):
    """An outlet whose provider may be set up only after us: looked for with each batch until it is there.

    Args:
        name: of the outlet.
        make: the outlet, or None while its provider leads nowhere.
        missing: said once when a batch had nowhere to go.
    """

    flushed_at_exit = False

    def __init__(self, name: str, make: Callable[[], Outlet | None], missing: str) -> None:
        self.name = name
        self._make = make
        self._missing = missing
        self._said = False
        self._outlet: Outlet | None = None

    def emit(self, batch: Sequence[ScoredTurn]) -> None:
        """Pass the batch on, if there is somebody to take it."""
        if self._outlet is None:
            self._outlet = self._make()
        if self._outlet is not None:
            self._outlet.emit(batch)
        elif not self._said:
            self._said = True
            _log.info("%s", self._missing)

    def flush(self, timeout: float) -> bool:
        """Flush the outlet, if it was made."""
        return self._outlet.flush(timeout) if self._outlet is not None else True

    def close(self) -> None:
        """Close the outlet, if it was made."""
        if self._outlet is not None:
            self._outlet.close()

    def after_fork_in_child(self) -> None:
        """Make it anew in the child, which has an id of its own."""
        self._outlet = None
