"""Detection of processes that are workers of the same program, such as a server's forks or ``multiprocessing`` children.

A common parent isn't proof, because a shell is the parent of unrelated programs. A process counts as its parent's worker in these
cases:

- It was forked and didn't execute another program. A fork keeps its parent's stack addresses. An executed program doesn't.
- ``multiprocessing`` or, if ``/proc`` can't be read, gunicorn started it.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_PROC = Path("/proc")
_STARTED_BY_MULTIPROCESSING = (b"--multiprocessing-fork", b"--billiard-fork", b"multiprocessing.forkserver")
_HIGHEST = 16


class Process(NamedTuple):
    """Process ID and start time. The start time distinguishes processes with the same ID."""

    pid: int
    started: int
    """Clock ticks from boot to the start of the process, or 0 if the system doesn't report them."""

    @property
    def name(self) -> str:
        return f"{self.pid}-{self.started}"

    @classmethod
    def named(cls, name: str) -> Process | None:
        pid, _, started = name.partition("-")
        return cls(int(pid), int(started)) if pid.isdigit() and started.isdigit() else None

    @property
    def is_alive(self) -> bool:
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except OSError:
            pass
        state, started = _state_of(self.pid)
        return state != "Z" and started in (0, self.started)


def this_process() -> Process:
    return process_of(os.getpid())


def process_of(pid: int) -> Process:
    return Process(pid, _state_of(pid)[1])


def first_of_program() -> Process:
    """Return the oldest ancestor process that runs this program, such as a worker's server. Without one, return this process."""
    found = os.getpid()
    parent = _parent_of(found)
    processes = sys.modules.get("multiprocessing.process")  # every child of multiprocessing has imported it
    known = None if processes is None else processes.parent_process()
    is_child = known is not None and known.pid == parent
    if parent and (is_child or _goes_on_with(found, parent) or _is_worker_of_gunicorn()):
        for _ in range(_HIGHEST + 1):
            found, parent = parent, _parent_of(parent)
            if not parent or not _goes_on_with(found, parent):
                break
    return process_of(found)


def has_other_workers() -> bool:
    """Return True if this process is one of several workers that a server started. Without ``/proc``, return False."""
    this, parent = os.getpid(), os.getppid()
    if first_of_program().pid == this:
        return False
    children = b" ".join(_read(path) for path in (_PROC / str(parent) / "task").glob("*/children")).split()
    return any(int(child) != this and _goes_on_with(int(child), parent) for child in children)


def listens(process: Process, port: int) -> bool:
    """Return True if ``process`` listens on the TCP port. Without ``/proc``, return False."""
    rows = [line.split() for name in ("tcp", "tcp6") for line in _read(_PROC / "net" / name).splitlines()]
    found = {f"socket:[{row[9].decode()}]" for row in rows if row[3:4] == [b"0A"] and row[1].endswith(b":%04X" % port)}
    with suppress(OSError):
        return any(str(link.readlink()) in found for link in (_PROC / str(process.pid) / "fd").iterdir())
    return False


def _is_worker_of_gunicorn() -> bool:
    """Return True in a gunicorn worker that can't read its ancestors in ``/proc``, for example after it dropped privileges."""
    return os.environ.get("SERVER_SOFTWARE", "").startswith("gunicorn/") and not _read(_PROC / str(os.getppid()) / "auxv")


def _goes_on_with(child: int, parent: int) -> bool:
    if any(sign in _read(_PROC / str(child) / "cmdline") for sign in _STARTED_BY_MULTIPROCESSING):
        return True
    addresses = _read(_PROC / str(child) / "auxv")
    if not addresses or addresses != _read(_PROC / str(parent) / "auxv"):
        return False
    are_addresses_random = _read(_PROC / "sys/kernel/randomize_va_space").strip() not in (b"", b"0")
    return are_addresses_random or _read(_PROC / str(child) / "cmdline") == _read(_PROC / str(parent) / "cmdline")


def _parent_of(pid: int) -> int:
    if pid == os.getpid():
        return os.getppid()
    fields = _fields_of(pid)
    return int(fields[1]) if fields else 0


def _state_of(pid: int) -> tuple[str, int]:
    """Return a process's state, such as ``Z`` for a zombie, and its start time in clock ticks since boot."""
    fields = _fields_of(pid)
    return (fields[0], int(fields[19])) if fields else ("", 0)


def _fields_of(pid: int) -> list[str]:
    """Return the fields after the process name in ``/proc/PID/stat``. The name itself can contain spaces and parentheses."""
    return _read(_PROC / str(pid) / "stat").rpartition(b")")[2].decode().split()


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
