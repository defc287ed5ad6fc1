"""Section ``queue``: the queue between your agent's threads and the worker thread."""

from __future__ import annotations

from .section import Section
from .types import Size


class QueueOptions(Section):
    """The queue between your agent's threads and the worker thread."""

    max_bytes: Size = 64 * 2**20
    """Maximum bytes of waiting turns. Turns beyond it are dropped and counted."""
