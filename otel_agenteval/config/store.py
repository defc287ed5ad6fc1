"""Section ``outlets.store``: the score store, an SQLite file or PostgreSQL."""

from __future__ import annotations

import os
from typing import Annotated, Any

from .section import Section
from .types import Before, Duration, FilePath, Kind, Size, Switch, name_list


class StoreOptions(Section):
    """The score store, an SQLite file or PostgreSQL: ``{path: scores.db}``, or only the path."""

    path: FilePath
    """SQLite file in an existing folder, which processes of one machine can share. Or, for any number of machines, a PostgreSQL database: ``postgresql://user:${env:PASSWORD}@host/database`` (extra ``[postgres]``)."""
    max_age: Duration = 30 * 86400.0
    """Seconds after which a turn and its scores are deleted."""
    max_bytes: Size = 2**30
    """Maximum size of the file. Beyond it, the oldest turns are deleted. PostgreSQL ignores this option."""
    queue_bytes: Size = 64 * 2**20
    """Maximum memory of turns that wait while the store can't be written. Beyond it, the oldest are dropped and counted. With a journal, senders wait instead."""
    content: Switch = False
    """Store the messages of each turn, redacted by ``privacy.redact``."""
    causes: Switch = True
    """Store facts of each turn and the step that broke it, for ``differences`` and ``failure-modes``."""

    attributes: Annotated[tuple[str, ...], Before(name_list("attributes")), Kind("list of attributes")] = ()
    """Span or resource attributes to store with each turn, for ``compare --by``: ``gen_ai.prompt.version``."""

    @classmethod
    def _read(cls, value: Any) -> Any:
        if isinstance(value, (str, os.PathLike)):
            return {"path": value}
        return value
