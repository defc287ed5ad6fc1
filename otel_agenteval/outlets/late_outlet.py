"""An outlet for a provider that the application may set up only after us."""

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
    """An outlet whose provider may be set up only after us: looked for with each batch until it is there.

    Args:
        name: of the outlet.
        make: the outlet, or None while its provider leads nowhere.
        missing: logged once, when a batch had nowhere to go.
        is_missed: whether the outlet would have sent anything of a batch.
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
        """That of the outlet, if it was made."""
        return self._outlet.trouble if self._outlet is not None else ""

    def emit(self, batch: Sequence[ScoredTurn]) -> None:
        """Pass the batch on, if there is an outlet by now."""
        if self._outlet is None:
            self._outlet = self._make()
        if self._outlet is not None:
            self._outlet.emit(batch)
        elif not self._logged and self._is_missed(batch):
            self._logged = True
            _log.info("%s", self._missing)

    def announce(self, change: Change, root: Root) -> None:
        """Pass it on, if there is an outlet by now."""
        if self._outlet is None:
            self._outlet = self._make()
        if self._outlet is not None:
            self._outlet.announce(change, root)

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
