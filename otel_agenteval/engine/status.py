"""What may be asked of a running engine: how full it is, how far it has got, and where its spans have gone.

Receivers of spans read it here, and reach nothing behind it. Reading changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .engine import Engine


class OpenTurns(NamedTuple):
    """What open turns hold, and the bounds beyond which some of them are evicted."""

    turns: int
    most_turns: int
    bytes: int
    most_bytes: int

    def fill(self, size: int = 0, turns: int = 0) -> float:
        """How near eviction is with so many more bytes and turns: the fuller of the two bounds; above 1 some are evicted."""
        return max((self.bytes + size) / self.most_bytes, (self.turns + turns) / self.most_turns)


class TenantTurns(NamedTuple):
    """The open turns of one tenant."""

    open: int
    new: int
    """How many of the given traces would open a turn."""
    next_close: float
    """Seconds until one of the open turns is expected to close."""


class SpanAccount(NamedTuple):
    """Where the spans have gone: received = scored + not used + still held."""

    received: int
    scored: int
    unused: dict[str, int]
    """Spans without a score, by reason."""
    open_turns: int

    @property
    def held(self) -> int:
        """Spans of turns that are open, or wait to be evaluated."""
        return self.received - self.scored - sum(self.unused.values())


class Checkpoint(NamedTuple):
    """How far everything had come at a moment."""

    mark: int
    """Once the worker has handled so many turns, all that were closed then are evaluated."""
    held: set[int]
    """Traces that were not closed."""


class Status:
    """Answers questions about one engine. Thread-safe.

    Args:
        engine: the engine that they are about.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @property
    def open_turns(self) -> OpenTurns:
        """What open turns hold."""
        assembler = self._engine.assembler
        return OpenTurns(assembler.open_turns, assembler.max_open, assembler.bytes, assembler.max_bytes)

    def is_open(self, trace_id: int) -> bool:
        """Whether spans of a trace wait for the end of their turn."""
        return trace_id in self._engine.assembler.traces

    def turns_of(self, tenant: int, trace_ids: Iterable[int] = ()) -> TenantTurns:
        """The turns of a tenant, by its number; and how many more spans of some traces would open."""
        assembler = self._engine.assembler
        with self._engine.assembler.lock:
            new = sum(not assembler.knows(trace_id) for trace_id in trace_ids)
            return TenantTurns(assembler.open_turns_of(tenant), new, assembler.next_close_of(tenant))

    @property
    def waiting_turns(self) -> int:
        """Closed turns that are not evaluated yet."""
        return self._engine.worker.waiting

    def queue_fill(self, added: int = 0) -> float:
        """The share of the queue of closed turns that is taken, with so many more bytes."""
        worker = self._engine.worker
        return (worker.bytes + added) / worker.max_bytes

    def checkpoint(self, trace_ids: set[int]) -> Checkpoint:
        """How far everything has come, for some traces."""
        return Checkpoint(*self._engine.worker.mark(lambda: self._engine.held(trace_ids)))

    def has_passed(self, checkpoint: Checkpoint) -> bool:
        """Whether everything that was closed at a checkpoint is evaluated."""
        return self._engine.worker.has_handled(checkpoint.mark)

    def spans(self) -> SpanAccount:
        """Where the spans have gone, all numbers of one moment."""
        engine = self._engine
        with engine.assembler.lock:
            return SpanAccount(engine.spans_received, engine.spans_scored, engine.unused_spans(), engine.assembler.open_turns)
