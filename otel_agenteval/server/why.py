"""Why a turn has the scores that it has: for each metric scored, skipped, sampled out, gated, dropped, error, and by what.

A running engine remembers its last turns; a store has all that it keeps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.errors import StoreError
from ..outlets.sqlite.store import StoreReader

if TYPE_CHECKING:
    from ..engine.engine import Engine


def what_became_of(engine: Engine, turn_id: str) -> dict[str, str] | None:
    """What an engine knows of a turn: what it remembers, and what its store has. None for an unknown turn."""
    live = engine.why(turn_id)
    store = engine.config.outlets.store
    stored = None
    if store is not None:
        try:
            with StoreReader(store.path) as reader:
                stored = reader.why(turn_id)
        except StoreError:  # nothing was written yet
            stored = None
    return None if live is None and stored is None else {**(stored or {}), **(live or {})}
