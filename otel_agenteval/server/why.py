"""Why a turn has the scores that it has: for each metric scored, skipped, sampled out, gated, dropped, error, and by what.

A running engine remembers its last turns; a store has all that it keeps.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..core.errors import StoreError
from ..outlets.sqlite.store import LEAST_OF_ID, StoreReader, only_one

if TYPE_CHECKING:
    from ..engine.engine import Engine


def turn_meant(engine: Engine, short: str) -> str:
    """The id of the turn that an id, or the beginning of one, means; what was given if no turn is known.

    Raises:
        StoreError: several turns begin so.
    """
    if engine.why(short) is not None:
        return short
    found = dict.fromkeys(engine.known_turns(short) if len(short) >= LEAST_OF_ID else ())
    with _store_of(engine) as reader:
        stored = reader.find(short) if reader is not None else None
    if stored is not None:
        found[stored] = None
    return only_one(short, [*found]) or short


def what_became_of(engine: Engine, turn_id: str) -> dict[str, str] | None:
    """What an engine knows of a turn: what it remembers, and what its store has. None for an unknown turn."""
    live = engine.why(turn_id)
    with _store_of(engine) as reader:
        stored = reader.why(turn_id) if reader is not None else None
    return None if live is None and stored is None else {**(stored or {}), **(live or {})}


def scores_of(engine: Engine, turn_id: str) -> list[dict[str, Any]]:
    """The scores of a turn with their values, of an engine that has a store."""
    with _store_of(engine) as reader:
        return reader.scores(turn_id) if reader is not None else []


@contextmanager
def _store_of(engine: Engine) -> Iterator[StoreReader | None]:
    """The engine's store; None if it has none, or nothing was written yet."""
    options = engine.config.outlets.store
    try:
        reader = StoreReader(options.path) if options is not None else None
    except StoreError:
        reader = None
    try:
        yield reader
    finally:
        if reader is not None:
            reader.close()
