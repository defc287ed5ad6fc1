"""Section ``queue``: between the agent's threads and our worker."""

from __future__ import annotations

from .section import Section
from .types import Size


class QueueOptions(Section):
    """The queue between the agent's threads and our worker."""

    max_bytes: Size = 64 * 2**20
    """Bytes that may wait; what does not fit is dropped and counted."""
