"""Files of ours that can quote people and agents: readable for their owner only."""

from __future__ import annotations

import os


def private(path: str, flags: int) -> int:
    """An ``opener`` that creates files with mode 0600. A file that exists keeps its mode."""
    return os.open(path, flags, 0o600)
