"""Scored turns kept in memory, for callers that want the turns themselves: the demo, the pytest plugin, tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ..evaluation.scored_turn import ScoredTurn
from .base import Outlet


class Kept(Protocol):
    """A list, or a deque with a bound."""

    def extend(self, batch: Sequence[ScoredTurn], /) -> None:
        """Keep a batch."""


class MemoryOutlet(Outlet):
    """Appends every scored turn to a list of the caller's.

    Args:
        kept: the list; a bounded deque keeps the last ones.
    """

    name = "memory"
    keeps_content = True

    def __init__(self, kept: Kept) -> None:
        self._kept = kept

    def emit(self, batch: Sequence[ScoredTurn]) -> None:
        """Keep a batch."""
        self._kept.extend(batch)
