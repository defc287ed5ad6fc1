"""Imports on first use. The error for a missing optional package names the extra to install.

If a process forks during an import, the child inherits a half-loaded module and a lock that is never released. Therefore,
:func:`late_imports` delays forks.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import sys
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from .errors import MissingExtra
from .forks import Step, at_fork

PATIENCE = 1.0
"""Maximum seconds that an import or a fork waits for the lock. The limit prevents deadlocks."""

_lock = threading.RLock()
_held = False


@contextlib.contextmanager
def late_imports() -> Iterator[None]:
    """Delay forks until the enclosed imports are done, for at most :data:`PATIENCE` seconds."""
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


def _in_child() -> None:
    global _lock
    _lock = threading.RLock()


at_fork(Step.FILES, before=_before_fork, in_parent=lambda: _lock.release() if _held else None, in_child=_in_child)

_EXTRA_PROBES = {
    "audio": "jiwer", "bedrock": "botocore", "code": "pydantic_monty", "cost": "genai_prices", "media": "av", "ocr": "rapidocr", "structured": "jsonschema_rs", "sustainability": "ecologits",
    "text": "re2",
}  # fmt: skip


def extra_installed(extra: str) -> bool:
    return installed(_EXTRA_PROBES[extra])


def installed(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def version_of(module: str) -> str:
    """Return an installed package's version, or raise a ModuleNotFoundError. Avoid the slow ``importlib.metadata`` if possible."""
    spec = importlib.util.find_spec(module)
    found = [*Path(spec.origin).parents[1].glob(f"{module}-*.dist-info")] if spec is not None and spec.origin else []
    if len(found) == 1:
        return found[0].stem.removeprefix(f"{module}-")
    return str(importlib.import_module("importlib.metadata").version(module))


def entry_points(group: str) -> Iterable[Any]:
    """Return a group's entry points. The slow ``importlib.metadata`` is used only if a package might define the group."""
    if not _may_be_defined(group.encode()):
        return ()
    found: Iterable[Any] = importlib.import_module("importlib.metadata").entry_points(group=group)
    return found


def _may_be_defined(group: bytes) -> bool:
    for finder in sys.meta_path:
        is_standard = str(getattr(finder, "__module__", "")).startswith(("importlib", "_frozen_importlib"))
        if hasattr(finder, "find_distributions") and not is_standard:
            return True
    for folder in sys.path:
        try:
            names = os.listdir(folder or ".")  # noqa: PTH208 - many times faster
        except NotADirectoryError:  # an archive
            return True
        except OSError:
            continue
        for name in names:
            if name.lower().endswith("-info"):
                with contextlib.suppress(OSError):
                    if group in Path(folder, name, "entry_points.txt").read_bytes():
                        return True
    return False


def require(module: str, *, feature: str, extra: str) -> Any:
    try:
        with late_imports():
            return importlib.import_module(module)
    except ImportError:
        raise MissingExtra(feature, extra) from None
