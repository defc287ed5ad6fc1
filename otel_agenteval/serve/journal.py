"""Requests on disk until their turns are handed over: what was acknowledged survives ``kill -9`` and a power failure.

Requests are appended to a segment file, and acknowledged when the disk says that it has them; those that come while it is
busy are written together. A segment is deleted when none of its traces is held any more and everything that was closed has
left. At the start, what is there is handed over as if it had just come: result ids are the same as the first time.

    4 bytes CRC-32 of what follows · 4 bytes length of the body · 1 byte what it is · body
"""

from __future__ import annotations

import fcntl
import logging
import os
import struct
import threading
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ..errors import ConfigError
from ..spans.otlp import Signal
from .answers import Refusal

_log = logging.getLogger("otel_agenteval")

_HEAD = struct.Struct("<IIB")
_SEGMENT_BYTES = 16 << 20
_COMMIT_WITHIN = 4.0
"""Seconds that a request waits for the disk, before its sender is asked to send it again."""
_SUFFIX = ".requests"
_KINDS: tuple[tuple[Signal, bool], ...] = (("traces", False), ("logs", False), ("traces", True), ("logs", True))


class _Segment:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0
        self.traces: set[int] = set()
        """Traces in it that may still be held by somebody."""
        self.unsettled = 0
        """Requests in it whose traces are not known yet."""
        self.file: int | None = None


class Entry:
    """One request in the journal."""

    def __init__(self, journal: Journal, segment: _Segment) -> None:
        self._journal = journal
        self._segment = segment
        self._done = threading.Event()
        self._failed = False

    def holds(self, traces: set[int]) -> None:
        """Say whose spans are in it. Must be called once, else its segment is kept for ever."""
        self._journal.settle(self._segment, traces)

    def wait(self) -> None:
        """Until it is on disk.

        Raises:
            Refusal: it could not be written.
        """
        if not self._done.wait(_COMMIT_WITHIN) or self._failed:
            raise Refusal("overloaded", "the journal cannot be written")

    def committed(self, failed: bool) -> None:
        """It is on disk, or never will be."""
        self._failed = failed
        self._done.set()


class Journal:
    """Segment files in a folder that one process owns.

    Args:
        folder: made if need be.
        max_bytes: of all segments; past it the journal is :attr:`full`.

    Raises:
        ConfigError: the folder cannot be used, or another process has it.
    """

    def __init__(self, folder: str | Path, max_bytes: int) -> None:
        self._folder = Path(folder)
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._more = threading.Condition(self._lock)
        self._pending: list[tuple[Entry, _Segment, bytes]] = []
        self._closing = False
        self.broken = 0
        """Places at which reading a segment had to stop."""
        self.replayed = 0
        """Requests that were there at the start."""
        self.failures = 0
        """Writes that failed."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._owner = os.open(self._folder / "lock", os.O_CREAT | os.O_RDWR, 0o600)
        except OSError as error:
            raise ConfigError(f"serve.journal: {self._folder}: cannot be used: {error.strerror}") from None
        try:
            fcntl.flock(self._owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._owner)
            raise ConfigError(f"serve.journal: {self._folder}: another process has it") from None
        self._segments: list[_Segment] = []
        for path in sorted(self._folder.glob(f"*{_SUFFIX}")):
            segment = _Segment(path)
            segment.size = path.stat().st_size
            segment.unsettled = 1  # until it was replayed
            self._segments.append(segment)
        self._number = 1 + max((int(segment.path.stem) for segment in self._segments if segment.path.stem.isdigit()), default=0)
        self._current: _Segment | None = None
        self._thread = threading.Thread(target=self._run, name="otel-agenteval-journal", daemon=True)
        self._thread.start()

    @property
    def size(self) -> int:
        """Bytes in all segments."""
        return sum(segment.size for segment in self._segments)

    @property
    def full(self) -> bool:
        """Whether it holds all that it may."""
        return self.size >= self._max_bytes

    # --- writing

    def append(self, signal: Signal, body: bytes, is_json: bool) -> Entry:
        """Put a request in line to be written.

        Raises:
            Refusal: no segment can be made.
        """
        kind = _KINDS.index((signal, is_json))
        checked = zlib.crc32(body, zlib.crc32(struct.pack("<IB", len(body), kind)))
        data = _HEAD.pack(checked, len(body), kind) + body
        with self._lock:
            segment = self._current
            if segment is None or segment.size >= _SEGMENT_BYTES:
                segment = self._current = self._new_segment()
            segment.size += len(data)
            segment.unsettled += 1
            entry = Entry(self, segment)
            self._pending.append((entry, segment, data))
            self._more.notify()
        return entry

    def settle(self, segment: _Segment, traces: set[int]) -> None:
        """The traces of one more request of a segment are known."""
        with self._lock:
            segment.traces |= traces
            segment.unsettled -= 1

    def _new_segment(self) -> _Segment:
        segment = _Segment(self._folder / f"{self._number:016d}{_SUFFIX}")
        self._number += 1
        try:
            segment.file = os.open(segment.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            folder = os.open(self._folder, os.O_RDONLY)
            try:
                os.fsync(folder)  # the file's name too must survive
            finally:
                os.close(folder)
        except OSError:
            self.failures += 1
            raise Refusal("overloaded", "the journal cannot be written") from None
        self._segments.append(segment)
        return segment

    def _run(self) -> None:
        while True:
            with self._lock:
                while not self._pending and not self._closing:
                    self._more.wait()
                batch, self._pending = self._pending, []
            if not batch:
                return
            self._write(batch)

    def _write(self, batch: list[tuple[Entry, _Segment, bytes]]) -> None:
        """All that waits, with one wait for the disk per segment."""
        by_segment: dict[_Segment, list[tuple[Entry, bytes]]] = {}
        for entry, segment, data in batch:
            by_segment.setdefault(segment, []).append((entry, data))
        for segment, items in by_segment.items():
            failed = False
            try:
                assert segment.file is not None
                _write_all(segment.file, b"".join(data for _, data in items))
                os.fdatasync(segment.file)
            except OSError as error:
                failed = True
                self.failures += 1
                if self.failures == 1:
                    _log.warning("the journal cannot be written: %s (counted from now on)", error.strerror)
                with self._lock:
                    if self._current is segment:  # what was half written must be the end of it
                        self._current = None
            for entry, _ in items:
                entry.committed(failed)

    # --- reading, at the start

    def replay(self, take: Callable[[Signal, bytes, bool], set[int]]) -> None:
        """Hand every request that is there to ``take``, which returns the traces that it is about."""
        for segment in [segment for segment in self._segments if segment.file is None]:
            for signal, body, is_json in self._read(segment.path):
                segment.traces |= take(signal, body, is_json)
                self.replayed += 1
            segment.unsettled = 0

    def _read(self, path: Path) -> Iterator[tuple[Signal, bytes, bool]]:
        with path.open("rb") as file:
            while head := file.read(_HEAD.size):
                if len(head) == _HEAD.size:
                    checked, length, kind = _HEAD.unpack(head)
                    body = file.read(length) if length <= self._max_bytes else b""
                    if len(body) == length and zlib.crc32(body, zlib.crc32(struct.pack("<IB", length, kind))) == checked:
                        signal, is_json = _KINDS[kind]
                        yield signal, body, is_json
                        continue
                self.broken += 1  # the end of what was written when the process died
                return

    # --- deleting

    def collect(self, held: Callable[[set[int]], set[int]], hand_over: Callable[[], bool]) -> None:
        """Delete the segments that nobody needs.

        Args:
            held: of some traces, those that wait for something.
            hand_over: make everything that was closed leave; whether it did.
        """
        with self._lock:
            current = self._current
            segments = [segment for segment in self._segments if not segment.unsettled]
        done = [segment for segment in segments if not held(segment.traces)]
        if not done or not hand_over():
            return
        with self._lock:  # on its way out of the queue, a part of a turn may have begun to wait for the rest
            done = [segment for segment in done if not segment.unsettled and not held(segment.traces)]
            if current is not None and current in done and self._current is current:
                self._current = None  # it is written to no more
            for segment in done:
                self._segments.remove(segment)
        for segment in done:
            self._delete(segment)

    def close(self, handed_over: bool) -> None:
        """End writing. The segments go when all was handed over; else they stay for the next start."""
        with self._lock:
            self._closing = True
            self._more.notify()
        self._thread.join(_COMMIT_WITHIN)
        for segment in self._segments:
            if handed_over:
                self._delete(segment)
            elif segment.file is not None:
                os.close(segment.file)
        if handed_over:
            self._segments.clear()
        os.close(self._owner)

    def _delete(self, segment: _Segment) -> None:
        if segment.file is not None:
            os.close(segment.file)
        try:
            segment.path.unlink()
        except OSError as error:
            _log.warning("%s cannot be deleted: %s", segment.path, error.strerror)

    def status(self) -> dict[str, Any]:
        """For the ledger."""
        return {
            "bytes": self.size, "segments": len(self._segments), "replayed": self.replayed, "broken": self.broken,
            "failures": self.failures,
        }  # fmt: skip


def _write_all(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]
