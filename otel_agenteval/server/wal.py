"""Requests on disk until their turns are delivered: what was acknowledged survives ``kill -9``, a power failure and a stop.

Requests are appended to a segment file, and acknowledged when the disk confirms that it has them; those that come while it is
busy are written together. A segment is deleted when every turn in it was delivered: none of its traces is held any more, and what
was closed has left through all outlets. At the start, its requests are received as if they had just come: result ids are the
same as the first time.

A segment begins with 9 bytes that say its version. Then follow requests:

    4 bytes CRC-32 of what follows · 4 bytes length of the rest · 1 byte what it is · rest

The rest is the body; where the fifth bit of that byte is set, before it 1 byte length of the tenant's name · name. Which process has
which segments says :mod:`.journal_folder`.
"""

from __future__ import annotations

import logging
import os
import struct
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from ..core.clock import SYSTEM_CLOCK, Clock
from ..core.errors import ConfigError
from ..spans.otlp import Signal
from .responses import Refusal
from .routing import EVERYTHING, Share

_log = logging.getLogger("otel_agenteval")

_HEAD = struct.Struct("<IIB")
VERSION = 3
HEADER_BYTES = _HEAD.size
_MAGIC, _NO_LENGTH = 0x4A564541, 0xFFFFFFFF
_HEADER = _HEAD.pack(_MAGIC, _NO_LENGTH, VERSION)
"""Begins a segment: "AEVJ", a length that no request has, and the version."""
_SEGMENT_BYTES = 16 << 20
_MAX_PENDING = 32 << 20
"""Bytes that wait for a disk that is busy, beside the one request that may always."""
_COMMIT_WITHIN = 4.0
"""Seconds that a request waits for the disk before its sender is asked to retry."""
_STUCK_AFTER = 1.0
"""Seconds of one write after which no more is taken on until it ends."""
SUFFIX = ".requests"
SHARE = ".share"
"""Of the file beside a segment of which only some traces are this process's."""
_OF_A_TENANT = 0x10
_KINDS: tuple[tuple[Signal, bool], ...] = (("traces", False), ("logs", False), ("traces", True), ("logs", True))


class Record(NamedTuple):
    """One request that an earlier process left in the journal."""

    id: str
    """``segment:offset``: the same at every start, in whatever process."""
    signal: Signal
    body: bytes
    is_json: bool
    tenant: str | None = None
    """That sent it, where there are tenants."""
    share: Share = EVERYTHING
    """The traces in it that are this process's."""


class _Segment:
    def __init__(self, path: Path, since: float) -> None:
        self.path = path
        self.since = since
        """When its first request came, in monotonic seconds; when we started, for one of an earlier process."""
        self.size = 0
        self.traces: set[int] = set()
        """Traces in it that may still wait for something."""
        self.ungiven = 0
        """Requests in it that the engine does not have yet."""
        self.file: int | None = None

    def close(self) -> None:
        file, self.file = self.file, None
        if file is not None:
            os.close(file)


class Entry:
    """One request in the journal."""

    def __init__(self, journal: Journal, data: bytes) -> None:
        self._journal = journal
        self.done = threading.Event()
        self.data = data
        self.segment: _Segment | None = None
        """Where it was written; None while it waits, and if it could not be."""
        self.withdrawn = False
        """Whether its request does not wait for it any more."""

    def wait(self) -> None:
        """Until it is on disk.

        Raises:
            Refusal: it could not be written.
        """
        if not self.done.wait(_COMMIT_WITHIN):
            self._journal.withdraw(self)
        if self.segment is None:
            raise Refusal("overloaded", _UNWRITABLE)

    def holds(self, traces: set[int]) -> None:
        """Note the traces that are in it, which the engine has by now. Must be called once it was written, else its segment is kept for ever."""
        if self.segment is not None:
            self._journal.note_given(self.segment, traces)


_UNWRITABLE = "the journal cannot be written"


class Journal:
    """Segment files in a folder that no other process uses.

    Args:
        folder: made if need be.
        max_bytes: of all segments; past it the journal is :attr:`full`.
        clock: injected by tests.

    Raises:
        ConfigError: the folder cannot be used.
    """

    def __init__(self, folder: str | Path, max_bytes: int, clock: Clock = SYSTEM_CLOCK) -> None:
        self._folder = Path(folder)
        self._max_bytes = max_bytes
        self._now = clock.monotonic
        self._time_ns = clock.time_ns
        self._lock = threading.Lock()
        self._more = threading.Condition(self._lock)
        self._pending: list[Entry] = []
        self._pending_bytes = 0
        self._writing_since: float | None = None
        self._closing = False
        self._stop_replaying = False
        self.failing = False
        """Whether the last write failed."""
        self.broken = 0
        """Places at which reading a segment had to stop."""
        self.replayed = 0
        """Requests that were there at the start."""
        self.failures = 0
        """Writes that failed."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise ConfigError(f"serve.journal: {self._folder}: cannot be used: {error.strerror}") from None
        self._segments: list[_Segment] = []
        for path in sorted(self._folder.glob(f"*{SUFFIX}")):
            segment = _Segment(path, self._now())
            segment.size = path.stat().st_size
            segment.ungiven = 1  # until it was replayed
            self._segments.append(segment)
        self._last_name = self._segments[-1].path.name if self._segments else ""
        self._current: _Segment | None = None
        self._thread = threading.Thread(target=self._run, name="otel-agenteval-journal", daemon=True)
        self._thread.start()

    @property
    def size(self) -> int:
        """Bytes in all segments."""
        with self._lock:
            return sum(segment.size for segment in self._segments)

    @property
    def age(self) -> float:
        """Seconds since the oldest request came that is kept; 0 when none is."""
        with self._lock:
            return max((self._now() - segment.since for segment in self._segments), default=0.0)

    @property
    def full(self) -> bool:
        """Whether it holds all that it may."""
        return self.size >= self._max_bytes

    @property
    def trouble(self) -> str:
        """Why nothing can be kept at the moment; empty when all is well."""
        since = self._writing_since
        if since is not None and self._now() - since > _STUCK_AFTER:
            return "the journal's disk does not answer"
        if self.failing:
            return _UNWRITABLE
        return "the journal is full" if self.full else ""

    # --- writing

    def append(self, signal: Signal, body: bytes, is_json: bool, tenant: str | None = None) -> Entry:
        """Queue a request to be written, with the tenant that sent it if there is one.

        Raises:
            Refusal: too much waits for the disk.
        """
        kind = _KINDS.index((signal, is_json))
        if tenant is not None:
            name = tenant.encode()
            kind |= _OF_A_TENANT
            body = bytes((len(name),)) + name + body
        checked = zlib.crc32(body, zlib.crc32(struct.pack("<IB", len(body), kind)))
        entry = Entry(self, _HEAD.pack(checked, len(body), kind) + body)
        with self._lock:
            if self._pending and self._pending_bytes + len(entry.data) > _MAX_PENDING:
                raise Refusal("overloaded", "the journal's disk is behind")
            self._pending.append(entry)
            self._pending_bytes += len(entry.data)
            self._more.notify()
        return entry

    def withdraw(self, entry: Entry) -> None:
        """Drop an entry whose request does not wait any more, unless it was written meanwhile: its sender sends it again."""
        with self._lock:
            if entry.segment is not None:
                return
            entry.withdrawn = True
            if entry in self._pending:
                self._pending.remove(entry)
                self._pending_bytes -= len(entry.data)

    def note_given(self, segment: _Segment, traces: set[int]) -> None:
        """The engine has one more request of a segment, with these traces."""
        with self._lock:
            segment.traces |= traces
            segment.ungiven -= 1

    def probe(self) -> None:
        """While writing fails, and no request is accepted for that reason: test whether it works again. May block as the disk does."""
        if not self.failing:
            return
        path = self._folder / "probe"
        try:
            file = os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
            try:
                _write_all(file, b"\0" * 4096)
                os.fdatasync(file)
            finally:
                os.close(file)
                path.unlink(missing_ok=True)
        except OSError:
            return
        self.failing = False
        _log.warning("the journal can be written again")

    def _run(self) -> None:
        while True:
            with self._lock:
                while not self._pending and not self._closing:
                    self._more.wait()
                batch, self._pending, self._pending_bytes = self._pending, [], 0
            if not batch:
                return
            self._writing_since = self._now()
            while batch:
                batch = batch[self._write(batch) :]
            self._writing_since = None

    def _write(self, batch: list[Entry]) -> int:
        """Write as much of a batch as one segment takes, with one wait for the disk; how many entries that were."""
        try:
            segment = self._open_segment()
        except BaseException as error:
            self._fail(error)
            self._release(batch)
            return len(batch)
        header = b"" if segment.size else _HEADER
        size, count = segment.size + len(header), 0
        while count < len(batch) and (count == 0 or size + len(batch[count].data) <= _SEGMENT_BYTES):
            size += len(batch[count].data)
            count += 1
        try:
            assert segment.file is not None
            _write_all(segment.file, b"".join([header, *[entry.data for entry in batch[:count]]]))
            os.fdatasync(segment.file)
        except BaseException as error:
            self._fail(error)
            self._take_back(segment)
        else:
            self.failing = False
            with self._lock:
                segment.size = size
                for entry in batch[:count]:
                    if not entry.withdrawn:
                        entry.segment = segment
                        segment.ungiven += 1
        with self._lock:
            segment.ungiven -= 1
        self._release(batch[:count])
        return count

    @staticmethod
    def _release(entries: list[Entry]) -> None:
        """Wake the requests that wait."""
        for entry in entries:
            entry.data = b""
            entry.done.set()

    def _open_segment(self) -> _Segment:
        """The segment to write to, which is not deleted meanwhile: the current one, or a new one when that is long enough."""
        with self._lock:
            segment = self._current
            if segment is not None and segment.size < _SEGMENT_BYTES:
                segment.ungiven += 1
                return segment
        segment = _Segment(self._folder / self._next_name(), self._now())
        segment.file = os.open(segment.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        try:
            folder = os.open(self._folder, os.O_RDONLY)
            try:
                os.fsync(folder)  # the file's name too must survive
            finally:
                os.close(folder)
        except OSError:
            self._delete(segment)
            raise
        segment.ungiven = 1
        with self._lock:
            before, self._current = self._current, segment
            self._segments.append(segment)
        if before is not None:
            before.close()
        return segment

    def _next_name(self) -> str:
        """Return a name that no other segment of the service has or had, and that sorts behind those before it."""
        last = int(self._last_name.partition("-")[0] or 0)
        self._last_name = f"{max(self._time_ns(), last + 1):020d}-{os.getpid()}{SUFFIX}"
        return self._last_name

    def _fail(self, error: BaseException) -> None:
        """A write failed."""
        self.failures += 1
        self.failing = True
        if self.failures == 1:
            reason = error.strerror if isinstance(error, OSError) else type(error).__name__
            _log.warning("%s: %s (counted from now on)", _UNWRITABLE, reason)

    def _take_back(self, segment: _Segment) -> None:
        """Remove what was half written, and a segment that holds nothing else."""
        with self._lock:
            self._current = None
            empty = segment.size == 0
            if empty:
                self._segments.remove(segment)
        if empty:
            self._delete(segment)
            return
        with suppress(OSError):  # reading stops at what is broken, which is the end
            os.ftruncate(segment.file or -1, segment.size)
        segment.close()

    # --- reading, at the start

    def replay(self, *rounds: Callable[[Record], set[int]]) -> None:
        """Give every request that is there to each of ``rounds``, one by one; they return the traces that they took.

        Requests that are not read when replaying is stopped stay for the next start.
        """
        with self._lock:
            found = [segment for segment in self._segments if segment.file is None]
        for take in rounds:
            for segment in found:
                for record in self._read(segment.path):
                    if self._stop_replaying:
                        return
                    taken = take(record)
                    segment.traces |= taken
                    self.replayed += take is rounds[0] and (bool(taken) or record.share is EVERYTHING)
        with self._lock:
            for segment in found:
                segment.ungiven = 0

    def stop_replaying(self) -> None:
        """Leave the remainder for the next start."""
        self._stop_replaying = True

    def _read(self, path: Path) -> Iterator[Record]:
        share = share_of(path)
        with path.open("rb") as file:
            header = file.read(HEADER_BYTES)
            if version_of(header) is None:
                self.broken += bool(header)  # a new segment is empty until its first requests are on disk
                return
            at = file.tell()
            while head := file.read(_HEAD.size):
                if len(head) == _HEAD.size:
                    checked, length, kind = _HEAD.unpack(head)
                    body = file.read(length) if length <= self._max_bytes else b""
                    if len(body) == length and zlib.crc32(body, zlib.crc32(struct.pack("<IB", length, kind))) == checked:
                        tenant = None
                        if kind & _OF_A_TENANT:
                            tenant, body = body[1 : 1 + body[0]].decode(), body[1 + body[0] :]
                        signal, is_json = _KINDS[kind & ~_OF_A_TENANT]
                        yield Record(f"{path.stem}:{at}", signal, body, is_json, tenant, share)
                        at = file.tell()
                        continue
                self.broken += 1  # the end of what was written when the process died
                return

    # --- deleting

    def collect(self, held: Callable[[set[int]], set[int]], deliver: Callable[[], bool]) -> None:
        """Delete the segments that are not needed any more.

        Args:
            held: of some traces, those that wait for something.
            deliver: deliver everything that was closed; whether that succeeded.
        """
        with self._lock:
            current = self._current
            segments = [segment for segment in self._segments if not segment.ungiven]
        done = [segment for segment in segments if not held(segment.traces)]
        if not done or not deliver():
            return
        with self._lock:  # on its way out of the queue, a part of a turn may have begun to wait for its other parts
            done = [segment for segment in done if not segment.ungiven and not held(segment.traces)]
            if current is not None and current in done and self._current is current:
                self._current = None  # it is written to no more
            for segment in done:
                self._segments.remove(segment)
        for segment in done:
            self._delete(segment)

    def close(self, delivered: bool, left: Iterable[int] = ()) -> None:
        """End writing, and delete the segments in which every turn was delivered; the others stay for the next start.

        Args:
            delivered: whether all that was evaluated left through every outlet.
            left: the traces that were not evaluated.
        """
        with self._lock:
            self._closing = True
            self._more.notify()
        self._thread.join(_COMMIT_WITHIN)
        left = set(left)
        kept: list[_Segment] = []
        for segment in self._segments:
            if delivered and not segment.ungiven and segment.traces.isdisjoint(left):
                self._delete(segment)
                continue
            kept.append(segment)
            if not self._thread.is_alive():  # else the disk still has it
                segment.close()
        self._segments[:] = kept

    def _delete(self, segment: _Segment) -> None:
        segment.close()
        try:
            segment.path.unlink()
            segment.path.with_suffix(SHARE).unlink(missing_ok=True)
        except OSError as error:
            _log.warning("%s cannot be deleted: %s", segment.path, error.strerror)

    def status(self) -> dict[str, Any]:
        """For the ledger."""
        return {
            "bytes": self.size, "segments": len(self._segments), "replayed": self.replayed, "broken": self.broken,
            "failures": self.failures, "oldest_s": round(self.age, 3),
        }  # fmt: skip


def version_of(head: bytes) -> int | None:
    """Return the version that a segment's first bytes state; None for damaged ones, or none."""
    if len(head) < HEADER_BYTES:
        return None
    magic, length, version = _HEAD.unpack(head)
    return int(version) if (magic, length) == (_MAGIC, _NO_LENGTH) else None


def share_of(segment: Path) -> Share:
    """Return which traces of a segment are of the process that has it."""
    try:
        return Share(int.from_bytes(segment.with_suffix(SHARE).read_bytes(), "little"))
    except FileNotFoundError:
        return EVERYTHING


def _write_all(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]
