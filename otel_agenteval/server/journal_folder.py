"""The folder of a service's journal: which processes it is for, and which of them has what.

::

    lock                    of the service, whatever its number of processes
    7/processes             the endpoints that the Collector routes to: a JSON list
    7/0/NAME.requests       a segment of process 0
    7/0/NAME.share          which traces of it are of process 0, if not all

The journal belongs to the service. When its processes are others than at the last start, every segment that is left is given to each process that
has traces in it: as a hard link, and with the share that is its own. That is done in a new folder beside the last one, which takes its place at once or
not at all. No segment is opened for that but to look at its version, so a request that a process cannot survive is read by the process that it belongs to.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import logging
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from ..core.errors import ConfigError
from ..core.files import another_version, private
from .poison import forget_strikes
from .routing import Share, shares_of
from .wal import HEADER_BYTES, SHARE, SUFFIX, VERSION, share_of, version_of

_log = logging.getLogger("otel_agenteval")

ALONE = ("",)
"""The endpoints of a service with one process."""
_PROCESSES = "processes"
_UNFINISHED = ".part"
LOCK_GRACE = 5.0
"""Seconds that a process may take for its end, beyond the time in which it delivers."""
_LOCK_EVERY = 0.1


class JournalFolder:
    """The journal's folder while a service has it: from :meth:`acquire` on, and as long as a process has :attr:`lock` open.

    Args:
        path: made if need be.
    """

    def __init__(self, path: str) -> None:
        self.path = Path(path)
        self.lock = -1
        """The descriptor that holds the lock. A child that inherits it holds the same lock."""

    async def acquire(self, within: float, ended: Callable[[], bool] = lambda: False) -> bool:
        """Wait until no other service has the folder. False if ours has ended first.

        Args:
            within: seconds to wait: processes whose parent was killed need a while to notice, and a service that stops may take its time.
            ended: whether to wait no longer.

        Raises:
            ConfigError: the folder cannot be used, or another service still has it.
        """
        with _usable(self.path):
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock = os.open(self.path / "lock", os.O_CREAT | os.O_RDWR, 0o600)
        loop = asyncio.get_running_loop()
        began = loop.time()
        told = False
        try:
            while not ended():
                with contextlib.suppress(BlockingIOError):
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    self.lock, lock = lock, -1
                    return True
                if loop.time() - began >= within:
                    raise ConfigError(
                        f"serve.journal: {self.path}: another process still uses it after {within:g} s; stop that process"
                        f" (`fuser {self.path / 'lock'}` prints its id), or set another folder"
                    )
                if not told:
                    _log.warning("serve.journal: %s: another process uses it; waiting up to %g s for its end", self.path, within)
                    told = True
                await asyncio.sleep(_LOCK_EVERY)
        finally:
            if lock >= 0:
                os.close(lock)
        return False

    def release(self) -> None:
        """Let others have it. Safe to call twice."""
        lock, self.lock = self.lock, -1
        if lock >= 0:
            os.close(lock)

    def part(self, number: int) -> Path:
        """Return the folder of one process's segments, as they were last shared out."""
        with _usable(self.path):
            return self.path / str(max(self._rounds())) / str(number)

    def share_out(self, endpoints: Sequence[str]) -> None:
        """Give every segment to the processes that the Collector sends its traces to. Changes nothing if they are those of the last time.

        Args:
            endpoints: of the processes, in their order, without duplicates.

        Raises:
            ConfigError: the folder cannot be used, or holds a segment of another version.
        """
        with _usable(self.path):
            segments = list(self.path.rglob(f"*{SUFFIX}"))
            for path in segments:
                self._refuse_another_version(path)
            if not segments:
                forget_strikes(self.path)
            for path in self.path.glob(f"*{_UNFINISHED}"):
                shutil.rmtree(path)
            rounds = self._rounds()
            last = self.path / str(rounds[-1]) if rounds else None
            if last is None or (last / _PROCESSES).read_text(encoding="utf-8") != json.dumps(list(endpoints)):
                self._new_round(last, endpoints)
            for number in self._rounds()[:-1]:
                shutil.rmtree(self.path / str(number))

    def _refuse_another_version(self, path: Path) -> None:
        with path.open("rb") as file:
            found = version_of(file.read(HEADER_BYTES))
        if found is None:  # damaged, or without a request; the first version had no header
            found = VERSION if path.parent.parent.parent == self.path else 1
        if found != VERSION:
            fault = another_version(found, VERSION, "run the version of otel-agenteval that wrote it until its journal is empty")
            raise ConfigError(f"serve.journal: {path}: segment {fault}, or set another folder")

    def _rounds(self) -> list[int]:
        return sorted(int(path.name) for path in self.path.iterdir() if path.name.isdigit())

    def _new_round(self, last: Path | None, endpoints: Sequence[str]) -> None:
        number = 1 + (int(last.name) if last is not None else 0)
        folder = self.path / f"{number}{_UNFINISHED}"
        parts = [(folder / str(index), share) for index, share in enumerate(shares_of(endpoints))]
        for part, _ in parts:
            part.mkdir(parents=True, mode=0o700)
        for path, share in _segments_in(last):
            for part, of_process in parts:
                _give(path, Share(share.bits & of_process.bits), part)
        _write(folder / _PROCESSES, json.dumps(list(endpoints)).encode())
        for changed in (*(part for part, _ in parts), folder):
            _sync(changed)
        folder.rename(self.path / str(number))
        _sync(self.path)


def _segments_in(last: Path | None) -> Iterable[tuple[Path, Share]]:
    """Each segment once, with what is left of it: all of those shares that a process still has."""
    found: dict[str, tuple[Path, Share]] = {}
    for path in last.glob(f"*/*{SUFFIX}") if last is not None else ():
        share = share_of(path)
        if path.name in found:
            share = Share(share.bits | found[path.name][1].bits)
        found[path.name] = path, share
    return found.values()


def _give(path: Path, share: Share, part: Path) -> None:
    """Let a process have its share of a segment."""
    if not share.bits:
        return
    if not share.is_everything:
        _write((part / path.name).with_suffix(SHARE), share.to_bytes())
    try:
        os.link(path, part / path.name)
    except OSError:  # a file system without hard links; what else is wrong shows with the copy
        _write(part / path.name, path.read_bytes())


@contextlib.contextmanager
def _usable(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ConfigError(f"serve.journal: {path}: cannot be used: {error.strerror}") from None


def _write(path: Path, data: bytes) -> None:
    with open(path, "xb", opener=private) as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    """Make the names in a folder survive a power failure."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
