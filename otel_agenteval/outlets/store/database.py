"""Choice between the databases of a score store by its path."""

from __future__ import annotations

import os
from typing import Any

from . import postgres, sqlite
from .statements import Syntax


def syntax_of(path: str | os.PathLike[str]) -> Syntax:
    return postgres.POSTGRES if postgres.is_address(os.fspath(path)) else sqlite.SQLITE


def database_at(path: str | os.PathLike[str]) -> Any:
    """Return the database for writing: ``transaction()``, ``connection()``, ``close()``."""
    path = os.fspath(path)
    return postgres.PostgresDatabase(path) if postgres.is_address(path) else sqlite.open_writer(path)


def reader_at(path: str | os.PathLike[str]) -> Any:
    """Open the database for reading. Raises StoreError if there is none of this version."""
    path = os.fspath(path)
    return (postgres if postgres.is_address(path) else sqlite).open_reader(path)
