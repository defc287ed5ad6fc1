"""Imports on first use, made safe for processes that fork.

If a process forks in the middle of an import, the child inherits a half-loaded module and a lock that no thread releases. A
fork therefore waits until these imports finish.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from .forks import Step, at_fork

PATIENCE = 1.0
"""Seconds that an import or a fork waits for the lock. A longer wait is a deadlock: the holder waits for a lock of the waiter."""

_lock = threading.RLock()
_held = False


@contextlib.contextmanager
def late_imports() -> Iterator[None]:
    """Delay forks until the enclosed imports are done."""
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


at_fork(Step.FILES, before=_before_fork, in_parent=_in_parent, in_child=_in_child)
