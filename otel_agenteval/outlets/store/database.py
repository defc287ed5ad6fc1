"""Choice between the databases of a score store by its path."""

from __future__ import annotations

import os
from typing import Any

from . import postgres, sqlite


def backend_of(path: str | os.PathLike[str]) -> Any:
    """Return the module of a database, with ``open_reader`` and ``open_writer``."""
    return postgres if postgres.is_address(os.fspath(path)) else sqlite
