"""Wrapper for an outlet whose provider the application may set up after otel-agenteval."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..evaluation.scored_turn import Root, ScoredTurn
from .base import Outlet

if TYPE_CHECKING:
    from ..statistics.changes import Change

_log = logging.getLogger("otel_agenteval")


class LateOutlet(Outlet):
    """Outlet that looks for its provider with each batch until ``make`` returns the outlet.

    ``missing`` is logged once, if ``is_missed`` returns True for a batch that can't be emitted.
    """

    flushed_at_exit = False

    def __init__(
        self,
        name: str,
        make: Callable[[], Outlet | None],
        missing: str,
        is_missed: Callable[[Sequence[ScoredTurn]], bool] = lambda batch: True,
    ) -> None:
        self.name = name
        self._make = make
        self._missing = missing
        self._is_missed = is_missed
        self._logged = False
        self._outlet: Outlet | None = None

    @property
    def trouble(self) -> str:
        return self._outlet.trouble if self._outlet is not None else ""

    def emit(self, batch: Sequence[ScoredTurn]) -> None:
        if self._outlet is None:
            self._outlet = self._make()
        if self._outlet is not None:
            self._outlet.emit(batch)
        elif not self._logged and self._is_missed(batch):
            self._logged = True
            _log.info("%s", self._missing)

    def announce(self, change: Change, root: Root) -> None:
        if self._outlet is None:
            self._outlet = self._make()
        if self._outlet is not None:
            self._outlet.announce(change, root)

    def flush(self, timeout: float) -> bool:
        return self._outlet.flush(timeout) if self._outlet is not None else True

    def close(self) -> None:
        if self._outlet is not None:
            self._outlet.close()

    def after_fork_in_child(self) -> None:
        """Drop the wrapped outlet, so that the child creates one with its own instance id."""
        self._outlet = None
