"""Helpers for the package's own files, which may contain content and have a format version."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any


def private(path: str, flags: int) -> int:
    """Open a file, for use as an ``opener``. New files get mode 0600, because they have content. Others keep their mode."""
    return os.open(path, flags, 0o600)


def is_at(path: str | os.PathLike[str], opened: int | os.stat_result) -> bool:
    """Return True if an open file still has this path. Programs that rotate or clean up files rename or remove it."""
    try:
        return os.path.samestat(Path(path).stat(), opened if isinstance(opened, os.stat_result) else os.fstat(opened))
    except OSError:
        return False


def make_private(folder: Path) -> None:
    """Create a folder with its missing parents, all of them for their owner alone."""
    for new in (*reversed([above for above in folder.parents if not above.exists()]), folder):
        new.mkdir(mode=0o700, exist_ok=True)


def another_version(found: int, known: int, if_older: str) -> str:
    """Return the end of an error message for a file of another format version. ``if_older`` is the fix for an older one."""
    age, fix = ("a newer", "upgrade otel-agenteval") if found > known else ("an older", if_older)
    return f"of {age} version, got {found}, this program reads {known}; {fix}"


def load_yaml(path: Path) -> Any:
    import yaml  # imported on first use, because importing the package imports only the standard library

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the C loader is 100 times faster, but not in every build of PyYAML
    return yaml.load(path.read_bytes(), Loader=loader)  # noqa: S506 - both loaders are safe
