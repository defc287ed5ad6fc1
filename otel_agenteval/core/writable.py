"""Whether files can be written, as far as can be seen without writing. It is reported at the start, before the first score is lost."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

_log = logging.getLogger("otel_agenteval")


def fault_of_file(path: str | os.PathLike[str]) -> str | None:
    """Why a file cannot be written; None if it seems that it can. The file need not exist, but its folder must."""
    file = Path(path).absolute()
    if file.is_dir():
        return f"{file} is a folder"
    if file.exists():
        return _full(file) if os.access(file, os.W_OK) else f"{file} cannot be written"
    if not file.parent.is_dir():
        return f"there is no folder {file.parent}"
    if not os.access(file.parent, os.W_OK | os.X_OK):
        return f"nothing can be written into {file.parent}"
    return _full(file.parent)


def fault_of_folder(path: str | os.PathLike[str]) -> str | None:
    """Why nothing can be written into a folder; None if it seems that it can. A folder that is missing is created later, with its parents."""
    folder = Path(path).absolute()
    there = next(above for above in (folder, *folder.parents) if above.exists())
    if not there.is_dir():
        return f"{there} is not a folder"
    if not os.access(there, os.W_OK | os.X_OK):
        return f"nothing can be written into {there}"
    return _full(there)


def _full(there: Path) -> str | None:
    if not (there.is_file() or there.is_dir()):
        return None  # a device, or a pipe
    free = os.statvfs(there)
    return f"the disk of {there} is full" if free.f_blocks and not free.f_bavail else None


def warn_of_fault(where: str, path: str, fault_in: Callable[[str], str | None], consequence: str) -> None:
    """Log that a path cannot be written, if ``fault_in`` finds so.

    Args:
        where: the option that names the path.
        path: of the file or folder.
        fault_in: says why it cannot be written; None if it seems that it can.
        consequence: what that means while it lasts.
    """
    fault = None
    with suppress(OSError):
        fault = fault_in(path)
    if fault is not None:
        _log.warning("%s: %s; %s until that is mended", where, fault, consequence)
