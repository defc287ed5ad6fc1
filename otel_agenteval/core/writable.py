"""Checks at startup whether files can be written, without writing to them."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path

_log = logging.getLogger("otel_agenteval")


def fault_of_file(path: str | os.PathLike[str]) -> str | None:
    """Return the visible reason why a file, which may be new in an existing folder, can't be written, or None."""
    file = Path(path).absolute()
    try:
        if file.is_dir():
            return f"{file} is a folder, not a file"
        if file.exists():
            return _full(file) if os.access(file, os.W_OK) else f"{file} isn't writable"
        if not file.parent.is_dir():
            return f"folder {file.parent} doesn't exist"
        return _full(file.parent) if os.access(file.parent, os.W_OK | os.X_OK) else f"folder {file.parent} isn't writable"
    except OSError as error:
        return f"{file} can't be read: {error.strerror}"


def fault_of_folder(path: str | os.PathLike[str]) -> str | None:
    """Return the visible reason why a folder, which may be created, can't be written to, or None."""
    folder = Path(path).absolute()
    try:
        there = next(above for above in (folder, *folder.parents) if above.exists())
        if not there.is_dir():
            return f"{there} isn't a folder"
        return _full(there) if os.access(there, os.W_OK | os.X_OK) else f"folder {there} isn't writable"
    except OSError as error:
        return f"{folder} can't be read: {error.strerror}"


def _full(there: Path) -> str | None:
    if not (there.is_file() or there.is_dir()):
        return None  # a device, or a pipe
    free = os.statvfs(there)
    return f"the disk of {there} is full" if free.f_blocks and not free.f_bavail else None


def warn_of_fault(where: str, path: str, fault_in: Callable[[str], str | None], consequence: str) -> None:
    """Log a warning with option and lasting consequence if ``fault_in``, such as :func:`fault_of_file`, finds a reason."""
    fault = fault_in(path)
    if fault is not None:
        _log.warning("%s: %s; %s until this is fixed", where, fault, consequence)
