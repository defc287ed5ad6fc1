"""Files of ours: readable for their owner only, as they can quote people and agents; and each of one version."""

from __future__ import annotations

import os


def private(path: str, flags: int) -> int:
    """An ``opener`` that creates files with mode 0600. A file that exists keeps its mode."""
    return os.open(path, flags, 0o600)


def another_version(found: int, known: int, if_older: str) -> str:
    """Return the rest of a sentence that refuses a file of another version, with what to do.

    Args:
        found: version of the file.
        known: the one that is read.
        if_older: what to do about an older one.
    """
    age, fix = ("a newer", "upgrade otel-agenteval") if found > known else ("an older", if_older)
    return f"of {age} version, got {found}, this program reads {known}; {fix}"
