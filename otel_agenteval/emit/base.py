"""What every outlet gets and must do.

A score is made once; outlets are renderings of it. All of them run on the worker, except the span event, which can only
be written while the root is ending (see ``span_events.py``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..model import Turn
from ..score import Score


@dataclass(slots=True)
class Root:
    """The span that scores are about: enough of it to point at it long after it ended."""

    trace_id: int
    span_id: int
    sampled: bool = True
    """Whether the trace is exported: exemplars must not point at traces that nobody keeps."""
    trace_state: Any = None
    """The SDK's TraceState, where there is one."""
    resource: Mapping[str, Any] = field(default_factory=dict)
    """Resource attributes of the service that made the root."""


@dataclass(slots=True)
class ScoredTurn:
    """One evaluated turn on its way out."""

    turn: Turn
    root: Root
    scores: Sequence[Score]
    supersedes: str | None = None
    """The turn id whose scores these replace (revisions)."""
    new: bool = True
    """False for a revision: counters must not count the turn or its scores twice."""
    size: int = 0
    """Bytes it is taken to hold in a queue."""
    seconds: float = 0.0
    """Time that its metrics took."""


class Outlet(Protocol):
    """A place that scores leave through."""

    name: str
    """As in the counter ``agenteval.emit.errors{outlet}``."""

    def emit(self, batch: Sequence[ScoredTurn]) -> None:
        """Render a batch. May do I/O; may raise (the pipeline counts it, and the other outlets still run)."""

    def flush(self, timeout: float) -> bool:
        """Hand over what is buffered, within ``timeout`` seconds; False when that was not all."""

    def close(self) -> None:
        """Release what the outlet holds. Safe to call twice."""
