"""Checks at startup whether files can be written, without writing to them."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from functools import wraps
from pathlib import Path

_log = logging.getLogger("otel_agenteval")


def _told(fault_in: Callable[[Path], str | None]) -> Callable[[str | os.PathLike[str]], str | None]:
    """Return the check with an error of the operating system as its reason, such as a loop of links or an unreadable folder."""

    @wraps(fault_in)
    def told(path: str | os.PathLike[str]) -> str | None:
        try:
            return fault_in(Path(path).absolute())
        except OSError as error:
            return f"{path} can't be read: {error.strerror}"

    return told


@_told
def fault_of_file(file: Path) -> str | None:
    """Return the visible reason why a file, which may be new in an existing folder, can't be written, or None."""
    if file.is_dir():
        return f"{file} is a folder, not a file"
    if file.exists():
        return _full(file) if os.access(file, os.W_OK) else f"{file} isn't writable"
    if not file.parent.is_dir():
        return f"folder {file.parent} doesn't exist"
    if not os.access(file.parent, os.W_OK | os.X_OK):
        return f"folder {file.parent} isn't writable"
    return _full(file.parent)


@_told
def fault_of_folder(folder: Path) -> str | None:
    """Return the visible reason why a folder, which may be created, can't be written to, or None."""
    there = next(above for above in (folder, *folder.parents) if above.exists())
    if not there.is_dir():
        return f"{there} isn't a folder"
    if not os.access(there, os.W_OK | os.X_OK):
        return f"folder {there} isn't writable"
    return _full(there)


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
