"""Outcome of each metric on a turn: scored, skipped, sampled out, gated, dropped or error.

A running engine remembers recent turns. A store contains all turns that it keeps.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..core.errors import StoreError
from ..outlets.store.reader import LEAST_OF_ID, StoreReader, only_one

if TYPE_CHECKING:
    from ..engine.engine import Engine


def turn_meant(engine: Engine, short: str) -> str:
    """Return the full id for a turn id or its beginning, or an unknown id unchanged.

    Raises StoreError if several turn ids begin with it.
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
    """Return each metric's outcome, from the engine and its store. None if unknown."""
    live = engine.why(turn_id)
    with _store_of(engine) as reader:
        stored = reader.why(turn_id) if reader is not None else None
    return None if live is None and stored is None else {**(stored or {}), **(live or {})}


def scores_of(engine: Engine, turn_id: str) -> list[dict[str, Any]]:
    with _store_of(engine) as reader:
        return reader.scores(turn_id) if reader is not None else []


@contextmanager
def _store_of(engine: Engine) -> Iterator[StoreReader | None]:
    """Open the engine's store for reading. None if it isn't configured or doesn't exist yet."""
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
