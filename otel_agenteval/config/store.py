"""Section ``outlets.store``: turns and scores kept in an SQLite file, or in PostgreSQL."""

from __future__ import annotations

import os
from typing import Annotated, Any

from .section import Section
from .types import Before, Duration, FilePath, Kind, Size, Switch, name_list


class StoreOptions(Section):
    """Turns and scores kept in an SQLite file or in PostgreSQL: ``{path: scores.db}``, or only the path."""

    path: FilePath
    """The file, whose folder must exist and which processes of one machine may share; or the address of a PostgreSQL database, ``postgresql://user:${env:PASSWORD}@host/database``, for any number of machines (extra ``[postgres]``)."""
    max_age: Duration = 30 * 86400.0
    """Seconds after which a turn is deleted, with its scores."""
    max_bytes: Size = 2**30
    """Size of the file at which the oldest turns are deleted; PostgreSQL goes by age alone."""
    queue_bytes: Size = 64 * 2**20
    """Bytes of memory for what waits while the store cannot be written. Beyond it the oldest is dropped and counted; with a journal nothing is, and senders wait."""
    content: Switch = False
    """Whether each turn is kept with its messages, redacted as ``privacy.redact`` says."""

    attributes: Annotated[tuple[str, ...], Before(name_list("attributes")), Kind("list of attributes")] = ()
    """Names of span or resource attributes that are kept with each turn, for ``compare --by``: ``gen_ai.prompt.version``."""

    @classmethod
    def _read(cls, value: Any) -> Any:
        if isinstance(value, (str, os.PathLike)):
            return {"path": value}
        return value
