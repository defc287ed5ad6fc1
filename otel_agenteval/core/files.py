"""Files of ours that can quote people and agents: readable for their owner only."""

from __future__ import annotations

import os


def private(path: str, flags: int) -> int:
    """An ``opener``: a file that it makes has mode 0600. One that is there keeps the mode that somebody gave it."""
    return os.open(path, flags, 0o600)
