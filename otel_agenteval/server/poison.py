"""Records of traces and requests that crashed the process, so that restarts don't retry them forever.

While a trace is scored or a request is read from the journal, a file contains the name of the trace or request. The file survives
``kill -9``. At startup, each name in the file of a crashed process gets one strike. A name with one strike is retried once, after
all other work. A name with two strikes is *poisoned*, and the replay skips it. A trace that the watchdog stopped is poisoned
immediately.

Each line of ``poison.txt`` is one strike: the name of a trace or request. Each process holds a lock on its file ``in-hand-…``,
which contains the process's current work.
"""

from __future__ import annotations

import fcntl
import logging
import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..core.tenancy import trace_name

_log = logging.getLogger("otel_agenteval")

_LIST = "poison.txt"
_IN_HAND = "in-hand-"
_SLOT = 256
_TURN, _REQUEST = 0, _SLOT
_POISONED = 2


class PoisonList:
    """Strikes of all processes in a service, and a record of this process's current work."""

    def __init__(self, folder: Path) -> None:
        collect_strikes(folder)
        self._list = folder / _LIST
        self._strikes = Counter(self._list.read_text(encoding="utf-8").split("\n")[:-1] if self._list.exists() else ())
        for name in self.poisoned:
            _log.warning("%s: skipped, because this trace or request crashed the process or exceeded its time limit", name)
        self._file, new = tempfile.mkstemp(dir=folder)
        fcntl.flock(self._file, fcntl.LOCK_EX)
        self._own = Path(new).rename(folder / f"{_IN_HAND}{Path(new).name}")  # other processes read it only from now on
        self._write(0, bytes(2 * _SLOT))

    @property
    def poisoned(self) -> list[str]:
        return [name for name, strikes in self._strikes.items() if strikes >= _POISONED]

    @property
    def has_suspects(self) -> bool:
        return 1 in self._strikes.values()

    def is_poisoned(self, name: str) -> bool:
        return self._strikes[_cut(name)] >= _POISONED

    def is_suspect(self, name: str) -> bool:
        """Return True if ``name`` has one strike. Its trace or request is retried once, after all other work."""
        return self._strikes[_cut(name)] == 1

    @contextmanager
    def reading(self, request: str) -> Iterator[None]:
        self._write_name(_REQUEST, request)
        try:
            yield
        finally:
            self._write(_REQUEST, b"\0")

    # --- the turn that is being scored, see ``engine/watchdog.py``

    def begin(self, trace_key: int) -> None:
        self._write_name(_TURN, trace_name(trace_key))

    def end(self) -> None:
        self._write(_TURN, b"\0")

    def set_aside(self, trace_key: int) -> None:
        name = _cut(trace_name(trace_key))
        self._strikes[name] += _POISONED
        _append(self._list, [name] * _POISONED)

    def close(self) -> None:
        file, self._file = self._file, -1
        self._own.unlink(missing_ok=True)
        os.close(file)

    def _write_name(self, slot: int, name: str) -> None:
        self._write(slot, name.encode()[: _SLOT - 1] + b"\0")

    def _write(self, at: int, data: bytes) -> None:
        with suppress(OSError):  # on a full disk, the name isn't recorded; with a memory map, the process would end
            os.pwrite(self._file, data, at)


def forget_strikes(folder: Path) -> None:
    (folder / _LIST).unlink(missing_ok=True)


def collect_strikes(folder: Path) -> None:
    for path in folder.glob(f"{_IN_HAND}*"):
        with path.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:  # its process is alive
                continue
            content = file.read(2 * _SLOT)
            names = [content[slot : slot + _SLOT].partition(b"\0")[0].decode("utf-8", "replace") for slot in (_TURN, _REQUEST)]
            _append(folder / _LIST, [name for name in names if name])
            path.unlink(missing_ok=True)


def _cut(name: str) -> str:
    return name.encode()[: _SLOT - 1].decode("utf-8", "replace")


def _append(path: Path, names: list[str]) -> None:
    """Append the names of traces or requests, one per line. If writing fails, log a warning and drop the strikes."""
    if not names:
        return
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write("".join(f"{name}\n" for name in names))
    except OSError as error:
        _log.warning("%s: can't write the file: %s", path, error.strerror)
