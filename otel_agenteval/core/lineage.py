"""Which processes are workers of one program: forks of a server, and what ``multiprocessing`` starts.

A shell that starts two programs is the parent of both, and yet they have nothing to do with each other. So a parent counts only where this
process goes on with its parent's program: it was forked and never began another (the kernel gives each program that begins stack addresses of
its own), or it was started by ``multiprocessing``, which says so.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

_PROC = Path("/proc")
_STARTED_BY_MULTIPROCESSING = (b"--multiprocessing-fork", b"--billiard-fork", b"multiprocessing.forkserver")
_HIGHEST = 16
"""Generations that are looked at."""


class Process(NamedTuple):
    """A process, told from a later one of the same number by when it began."""

    pid: int
    started: int
    """Clock ticks since the machine started; 0 where the system does not say."""

    @property
    def name(self) -> str:
        """For names of files."""
        return f"{self.pid}-{self.started}"

    @classmethod
    def named(cls, name: str) -> Process | None:
        """The process of such a name; None if it is none."""
        pid, _, started = name.partition("-")
        return cls(int(pid), int(started)) if pid.isdigit() and started.isdigit() else None

    @property
    def is_alive(self) -> bool:
        """Whether it still runs. One that another user runs does."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except OSError:
            pass
        state, started = _state_of(self.pid)
        return state != "Z" and started in (0, self.started)


def this_process() -> Process:
    """The one that asks."""
    return process_of(os.getpid())


def process_of(pid: int) -> Process:
    """A process that runs."""
    return Process(pid, _state_of(pid)[1])


def first_of_program() -> Process:
    """The process with which the program of this one began: the server of a worker, else this process itself."""
    found = os.getpid()
    parent = _parent_of(found)
    if parent and (_is_child_by_multiprocessing(parent) or _goes_on_with(found, parent) or _is_worker_of_gunicorn()):
        found = parent
        for _ in range(_HIGHEST):
            parent = _parent_of(found)
            if not parent or not _goes_on_with(found, parent):
                break
            found = parent
    return process_of(found)


def _is_child_by_multiprocessing(parent: int) -> bool:
    import multiprocessing.process as processes  # most programs have it already

    known = processes.parent_process()
    return known is not None and known.pid == parent


def _is_worker_of_gunicorn() -> bool:
    """Whether gunicorn's worker runs here, for systems without ``/proc``, and for workers that gave up their server's rights."""
    return os.environ.get("SERVER_SOFTWARE", "").startswith("gunicorn/") and not _same_program_is_known()


def _same_program_is_known() -> bool:
    return bool(_read(_PROC / str(os.getppid()) / "auxv"))


def _goes_on_with(child: int, parent: int) -> bool:
    """Whether the child goes on with the program of its parent."""
    if any(sign in _read(_PROC / str(child) / "cmdline") for sign in _STARTED_BY_MULTIPROCESSING):
        return True
    addresses = _read(_PROC / str(child) / "auxv")
    if not addresses or addresses != _read(_PROC / str(parent) / "auxv"):
        return False
    return _addresses_are_random() or _read(_PROC / str(child) / "cmdline") == _read(_PROC / str(parent) / "cmdline")


def _addresses_are_random() -> bool:
    return _read(_PROC / "sys/kernel/randomize_va_space").strip() not in (b"", b"0")


def _parent_of(pid: int) -> int:
    """The parent's number; 0 if there is none, or none that can be seen."""
    if pid == os.getpid():
        return os.getppid()
    fields = _fields_of(pid)
    return int(fields[1]) if fields else 0


def _state_of(pid: int) -> tuple[str, int]:
    """A letter for what it does, and when it began."""
    fields = _fields_of(pid)
    return (fields[0], int(fields[19])) if fields else ("", 0)


def _fields_of(pid: int) -> list[str]:
    """What the kernel says of a process, from its state on: its name before that may hold anything."""
    return _read(_PROC / str(pid) / "stat").rpartition(b")")[2].decode().split()


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
