"""Run work in forks that import packages again. Starting an interpreter for each would cost a second of CPU time."""

from __future__ import annotations

import json
import os
import re
import sys
import threading
from collections.abc import Callable
from typing import Any

re._MAXCACHE = 100_000  # type: ignore[attr-defined]  # patterns that were compiled before a fork aren't compiled again
_forking = threading.Lock()
"""Held while a fork is created, so that no other fork inherits its pipe."""


def in_fork(work: Callable[[], Any], *packages: str) -> Any:
    """Run ``work`` in a fork in which ``packages`` aren't imported yet. Return its result, which must be valid JSON.

    Raises:
        RuntimeError: If ``work`` fails.
    """
    with _forking:
        read, write = os.pipe()
        child = os.fork()
        if child:
            os.close(write)
    if child == 0:
        try:
            for name in [name for name in sys.modules if name.partition(".")[0] in packages]:
                del sys.modules[name]
            with os.fdopen(write, "w", encoding="utf-8") as answer:
                json.dump(work(), answer)
        finally:
            os._exit(0)
    with os.fdopen(read, encoding="utf-8") as answer:
        found = answer.read()
    os.waitpid(child, 0)
    if not found:
        raise RuntimeError("a fork failed")
    return json.loads(found)
