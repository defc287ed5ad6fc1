"""Helpers for the package's own files: permissions, paths, format versions, and checks whether a file can be written."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any


def private(path: str, flags: int) -> int:
    """Open a file. Pass this function as ``opener`` to ``open``. A new file gets mode 0600, because it can contain user text."""
    return os.open(path, flags, 0o600)


def fixed(path: str | os.PathLike[str]) -> Path:
    """Return an absolute path, which stays valid after ``chdir``. If the current folder was deleted, the path stays relative."""
    try:
        return Path(path).absolute()
    except OSError:
        return Path(path)


def is_at(path: str | os.PathLike[str], opened: int | os.stat_result) -> bool:
    """Return True if ``path`` still refers to the open file. Log rotation or cleanup can rename or remove an open file."""
    try:
        return os.path.samestat(Path(path).stat(), opened if isinstance(opened, os.stat_result) else os.fstat(opened))
    except OSError:
        return False


def make_private(folder: Path) -> None:
    """Create a folder and its missing parents, which only the owner can access. Existing folders keep their permissions."""
    for new in (*reversed([above for above in folder.parents if not above.exists()]), folder):
        new.mkdir(mode=0o700, exist_ok=True)


def another_version(found: int, known: int, if_older: str) -> str:
    age, fix = ("a newer", "upgrade otel-agenteval") if found > known else ("an older", if_older)
    return f"has {age} version: must be {known}, got {found}; {fix}"


def load_yaml(path: Path) -> Any:
    import yaml  # imported on first use, to import the package quickly

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the C loader is 100 times faster, but not in every build of PyYAML
    return yaml.load(path.read_bytes(), Loader=loader)  # noqa: S506 - both loaders are safe


_log = logging.getLogger("otel_agenteval")


def fault_of_file(path: str | os.PathLike[str]) -> str | None:
    """Return the reason why a file can't be written, or None. A missing file is allowed, but its folder must exist."""
    file = fixed(path)
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
    folder = fixed(path)
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
    """Log a warning if ``fault_in(path)`` returns a fault. ``where`` is the option's name."""
    fault = fault_in(path)
    if fault is not None:
        _log.warning("%s: %s; %s until this is fixed", where, fault, consequence)
