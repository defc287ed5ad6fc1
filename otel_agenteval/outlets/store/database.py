"""Choice between the databases of a score store by its path."""

from __future__ import annotations

import os
from typing import Any

from . import postgres, sqlite
from .statements import Syntax


def syntax_of(path: str | os.PathLike[str]) -> Syntax:
    """Return the SQL syntax of the database at a path."""
    return postgres.POSTGRES if postgres.is_address(os.fspath(path)) else sqlite.SQLITE


def database_at(path: str | os.PathLike[str]) -> Any:
    """Return the SQLite file or PostgreSQL database at a path, for writing.

    Both have ``transaction()``, ``connection()`` and ``close()``.
    """
    path = os.fspath(path)
    return postgres.PostgresDatabase(path) if postgres.is_address(path) else sqlite.open_writer(path)


def reader_at(path: str | os.PathLike[str]) -> Any:
    """Return a connection for reading from the database at a path.

    Raises:
        StoreError: the store doesn't exist, or has another version.
    """
    path = os.fspath(path)
    return (postgres if postgres.is_address(path) else sqlite).open_reader(path)
