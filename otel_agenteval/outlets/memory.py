"""Outlet that keeps scored turns in memory, for the demo, the pytest plugin and tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ..evaluation.scored_turn import ScoredTurn
from .base import Outlet


class Kept(Protocol):
    """A list or bounded deque."""

    def extend(self, batch: Sequence[ScoredTurn], /) -> None: ...


class MemoryOutlet(Outlet):
    """Outlet that appends every scored turn to the caller's list or deque."""

    name = "memory"
    keeps_content = True

    def __init__(self, kept: Kept) -> None:
        self._kept = kept

    def emit(self, batch: Sequence[ScoredTurn]) -> None:
        self._kept.extend(batch)
