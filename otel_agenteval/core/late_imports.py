"""Imports that happen when something is used for the first time, on whatever thread that is.

A process that is forked in the middle of an import leaves its child a module that nobody finishes, and a lock that nobody releases. So a
fork waits for ours.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator

PATIENCE = 1.0
"""Seconds that anybody waits here. What is stuck for longer waits for a lock of the one who waits for it."""

_lock = threading.RLock()
_held = False


@contextlib.contextmanager
def late_imports() -> Iterator[None]:
    """Code in which modules may be imported."""
    lock = _lock
    held = lock.acquire(timeout=PATIENCE)
    try:
        yield
    finally:
        if held:
            lock.release()


def _before_fork() -> None:
    global _held
    _held = _lock.acquire(timeout=PATIENCE)


def _in_parent() -> None:
    if _held:
        _lock.release()


def _in_child() -> None:
    global _lock
    _lock = threading.RLock()


os.register_at_fork(before=_before_fork, after_in_parent=_in_parent, after_in_child=_in_child)
