"""Status of a running engine: fill levels, progress and counts of spans.

Reading changes nothing.

Receivers of spans use only this class to read an engine's state.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .engine import Engine


class OpenTurns(NamedTuple):
    """Number and size of open turns, and the limits beyond which turns are evicted."""

    turns: int
    most_turns: int
    bytes: int
    most_bytes: int

    def fill(self, size: int = 0, turns: int = 0) -> float:
        """Return the fill level with ``size`` more bytes and ``turns`` more turns.

        The fuller of both limits counts. Above 1, turns are evicted.
        """
        return max((self.bytes + size) / self.most_bytes, (self.turns + turns) / self.most_turns)


class TenantTurns(NamedTuple):
    """Open turns of one tenant."""

    open: int
    new: int
    """Number of given traces that would open a turn."""
    next_close: float
    """Seconds until an open turn is expected to close."""


class SpanAccount(NamedTuple):
    """Counts of spans: received = scored + unused + held."""

    received: int
    scored: int
    unused: dict[str, int]
    """Spans without a score, by reason."""
    open_turns: int

    @property
    def held(self) -> int:
        """Spans of turns that are open or wait for evaluation."""
        return self.received - self.scored - sum(self.unused.values())


class Checkpoint(NamedTuple):
    """Progress of an engine at one moment."""

    mark: int
    """Number of handled items from which all turns closed until then are evaluated."""
    held: set[int]
    """Traces that weren't closed."""


class Status:
    """Status of one engine. Thread-safe.

    Args:
        engine: the engine.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @property
    def open_turns(self) -> OpenTurns:
        """Number and size of open turns."""
        assembler = self._engine.assembler
        return OpenTurns(assembler.open_turns, assembler.max_open, assembler.bytes, assembler.max_bytes)

    def is_open(self, trace_id: int) -> bool:
        """Return True if spans of the trace wait for the end of their turn."""
        return self._engine.assembler.is_open(trace_id)

    def turns_of(self, tenant: int, trace_ids: Iterable[int] = ()) -> TenantTurns:
        """Return a tenant's open turns, and how many more the given traces would open."""
        assembler = self._engine.assembler
        with self._engine.assembler.lock:
            new = sum(not assembler.knows(trace_id) for trace_id in trace_ids)
            return TenantTurns(assembler.open_turns_of(tenant), new, assembler.next_close_of(tenant))

    @property
    def waiting_turns(self) -> int:
        """Number of closed turns that wait for evaluation."""
        return self._engine.worker.waiting

    def queue_fill(self, added: int = 0) -> float:
        """Return the fill level of the worker's queue with ``added`` more bytes."""
        worker = self._engine.worker
        return (worker.bytes + added) / worker.max_bytes

    def checkpoint(self, trace_ids: set[int]) -> Checkpoint:
        """Return the current progress on some traces."""
        return Checkpoint(*self._engine.worker.mark(lambda: self._engine.held(trace_ids)))

    def has_passed(self, checkpoint: Checkpoint) -> bool:
        """Return True if all turns closed at the checkpoint are evaluated."""
        return self._engine.worker.has_handled(checkpoint.mark)

    def spans(self) -> SpanAccount:
        """Return the counts of spans, all at one moment."""
        engine = self._engine
        with engine.assembler.lock:
            return SpanAccount(engine.spans_received, engine.spans_scored, engine.unused_spans(), engine.assembler.open_turns)
