"""Journal that keeps requests on disk until the scores of their turns are delivered.

Acknowledged requests survive ``kill -9``, a power failure, and a restart. Requests are appended to a segment file, and acknowledged
after the disk confirms the write. Requests that arrive during a write are written together. A segment is deleted when the engine no
longer holds its traces, and no outlet still holds the traces' scores in memory. At startup, requests in leftover segments are processed
like new requests, and produce the same result IDs as before.

A segment starts with a 9-byte header that contains the version. Each request then consists of a CRC-32 checksum of the fields
that follow (4 bytes), the body's length (4 bytes), the kind (1 byte), and the body.

If bit 0x10 of a request's kind is set, the body starts with the length (1 byte) of the tenant's name, then the name.
:mod:`.journal_folder` assigns segments to processes.
"""

from __future__ import annotations

import logging
import os
import struct
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ..core.clock import SYSTEM_CLOCK, Clock
from ..core.errors import ConfigError
from ..core.files import is_at, make_private
from ..spans.otlp import Signal
from .responses import Refusal
from .routing import EVERYTHING, Share

_log = logging.getLogger("otel_agenteval")

_HEAD = struct.Struct("<IIB")
VERSION = 3
HEADER_BYTES = _HEAD.size
_MAGIC, _NO_LENGTH = 0x4A564541, 0xFFFFFFFF
_HEADER = _HEAD.pack(_MAGIC, _NO_LENGTH, VERSION)
"""Header of a segment: ``AEVJ``, a length that is invalid for requests, and the version."""
_SEGMENT_BYTES = 16 << 20
_MAX_PENDING = 32 << 20
_COMMIT_WITHIN = 4.0
_STUCK_AFTER = 1.0
SUFFIX = ".requests"
SHARE = ".share"
"""Suffix of an extra file for a segment. The file exists if the process owns only some of the segment's traces."""
_OF_A_TENANT = 0x10
_KINDS: tuple[tuple[Signal, bool], ...] = (("traces", False), ("logs", False), ("traces", True), ("logs", True))


class Record(NamedTuple):
    id: str
    """ID in the form ``segment:offset``, which is the same at each start and in each process."""
    signal: Signal
    body: bytes
    is_json: bool
    tenant: str | None = None
    share: Share = EVERYTHING


@dataclass(slots=True, eq=False)
class _Segment:
    path: Path
    since: float
    """Monotonic time when the segment was created. For a leftover segment, the startup time."""
    size: int = 0
    unreceived: int = 0
    file: int | None = None
    traces: set[int] = field(default_factory=set)

    def close(self) -> None:
        file, self.file = self.file, None
        if file is not None:
            os.close(file)


@dataclass(slots=True, eq=False)
class Entry:
    journal: Journal
    data: bytes
    done: threading.Event = field(default_factory=threading.Event)
    segment: _Segment | None = None
    withdrawn: bool = False

    def wait(self) -> None:
        if not self.done.wait(_COMMIT_WITHIN):
            self.journal.withdraw(self)
        if self.segment is None:
            raise Refusal("overloaded", _UNWRITABLE)

    def holds(self, traces: set[int]) -> None:
        """Record that the engine received this entry's ``traces``. After their scores are delivered, the segment can be deleted."""
        if self.segment is not None:
            with self.journal.lock:
                self.segment.traces |= traces
                self.segment.unreceived -= 1


_UNWRITABLE = "the journal can't be written"


class Journal:
    """Segment files of one process, :attr:`full` at ``max_bytes``. Raises ConfigError if the folder can't be used."""

    def __init__(self, folder: str | Path, max_bytes: int, clock: Clock = SYSTEM_CLOCK) -> None:
        self._folder = Path(folder)
        self._max_bytes = max_bytes
        self._now = clock.monotonic
        self._time_ns = clock.time_ns
        self.lock = threading.Lock()
        self._more = threading.Condition(self.lock)
        self._pending: list[Entry] = []
        self._pending_bytes = 0
        self._writing_since: float | None = None
        self._closing = False
        self.stops_replaying = False
        self.failing = False
        self.broken = 0
        self.replayed = 0
        self.failures = 0
        try:
            make_private(self._folder)
        except OSError as error:
            raise ConfigError(f"serve.journal: {self._folder}: can't use the folder: {error.strerror}") from None
        self._segments: list[_Segment] = []
        for path in sorted(self._folder.glob(f"*{SUFFIX}")):
            self._segments.append(_Segment(path, self._now(), path.stat().st_size, unreceived=1))  # until it is replayed
        self._last_name = self._segments[-1].path.name if self._segments else ""
        self._current: _Segment | None = None
        self._thread = threading.Thread(target=self._run, name="otel-agenteval-journal", daemon=True)
        self._thread.start()

    @property
    def size(self) -> int:
        with self.lock:
            return sum(segment.size for segment in self._segments)

    @property
    def age(self) -> float:
        """Age of the oldest segment in seconds, or 0 without segments. The age of leftover segments is counted from startup."""
        with self.lock:
            return max((self._now() - segment.since for segment in self._segments), default=0.0)

    @property
    def full(self) -> bool:
        return self.size >= self._max_bytes

    @property
    def trouble(self) -> str:
        since = self._writing_since
        if since is not None and self._now() - since > _STUCK_AFTER:
            return "the journal's disk doesn't respond"
        if self.failing:
            return _UNWRITABLE
        return "the journal is full" if self.full else ""

    def append(self, signal: Signal, body: bytes, is_json: bool, tenant: str | None = None) -> Entry:
        entry = Entry(self, _encoded(signal, body, is_json, tenant))
        with self.lock:
            if self._pending and self._pending_bytes + len(entry.data) > _MAX_PENDING:
                raise Refusal("overloaded", "the journal's disk is too slow")
            self._pending.append(entry)
            self._pending_bytes += len(entry.data)
            self._more.notify()
        return entry

    def withdraw(self, entry: Entry) -> None:
        """Drop an entry that isn't written yet, because the response tells the sender to retry the request."""
        with self.lock:
            if entry.segment is not None:
                return
            entry.withdrawn = True
            if entry in self._pending:
                self._pending.remove(entry)
                self._pending_bytes -= len(entry.data)

    def probe(self) -> None:
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
            with self.lock:
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
        """Write and sync as many entries as fit into one segment (at least one). Return the number of entries that were written or failed."""
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
            self._undo(segment)
        else:
            self.failing = False
            with self.lock:
                segment.size = size
                for entry in batch[:count]:
                    if not entry.withdrawn:
                        entry.segment = segment
                        segment.unreceived += 1
        with self.lock:
            segment.unreceived -= 1
        self._release(batch[:count])
        return count

    @staticmethod
    def _release(entries: list[Entry]) -> None:
        for entry in entries:
            entry.data = b""
            entry.done.set()

    def _open_segment(self) -> _Segment:
        """Return the current segment, protected against deletion. If the segment is full or its file was removed, replace it."""
        with self.lock:
            segment = self._current
            if segment is not None and segment.size < _SEGMENT_BYTES and is_at(segment.path, segment.file or -1):
                segment.unreceived += 1
                return segment
        if segment is not None and segment.size < _SEGMENT_BYTES:
            _log.warning("%s was removed; the journal continues in a new file", segment.path)
            make_private(self._folder)
        after = int(self._last_name.partition("-")[0] or 0) + 1  # so that the name sorts after all earlier ones
        self._last_name = f"{max(self._time_ns(), after):020d}-{os.getpid()}{SUFFIX}"
        segment = _Segment(self._folder / self._last_name, self._now())
        segment.file = os.open(segment.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        try:
            sync_folder(self._folder)
        except OSError:
            self._delete(segment)
            raise
        segment.unreceived = 1
        with self.lock:
            before, self._current = self._current, segment
            self._segments.append(segment)
        if before is not None:
            before.close()
        return segment

    def _fail(self, error: BaseException) -> None:
        self.failures += 1
        self.failing = True
        if self.failures == 1:
            reason = error.strerror if isinstance(error, OSError) else type(error).__name__
            _log.warning("%s: %s (further failures are only counted)", _UNWRITABLE, reason)

    def _undo(self, segment: _Segment) -> None:
        with self.lock:
            self._current = None
            empty = segment.size == 0
            if empty:
                self._segments.remove(segment)
        if empty:
            self._delete(segment)
            return
        with suppress(OSError):  # reading stops at the partial write, which is at the end
            os.ftruncate(segment.file or -1, segment.size)
        segment.close()

    # --- reading, at the start

    def replay(self, *rounds: Callable[[Record], set[int]]) -> None:
        """Pass all leftover requests to each function in ``rounds``, one round after another.

        Each function returns the traces that it accepted.
        """
        with self.lock:
            found = [segment for segment in self._segments if segment.file is None]
        for receive in rounds:
            for segment in found:
                for record in self._read(segment.path, reports=receive is rounds[0]):
                    if self.stops_replaying:
                        return
                    accepted = receive(record)
                    segment.traces |= accepted
                    self.replayed += receive is rounds[0] and (bool(accepted) or record.share is EVERYTHING)
        with self.lock:
            for segment in found:
                segment.unreceived = 0

    def _read(self, path: Path, *, reports: bool) -> Iterator[Record]:
        for record in records_in(path, self._max_bytes):
            if record is not None:
                yield record
            elif reports:
                self.broken += 1
                _log.warning("%s: incomplete or damaged request; this request and the rest of the file are skipped", path)

    def collect(self, held: Callable[[set[int]], set[int]], deliver: Callable[[], bool]) -> None:
        """Delete segments whose scores are delivered.

        ``held`` returns the traces that aren't completely evaluated. ``deliver`` returns True if all scores were delivered.
        """
        with self.lock:
            current = self._current
            segments = [segment for segment in self._segments if not segment.unreceived]
        done = [segment for segment in segments if not held(segment.traces)]
        if not done or not deliver():
            return
        with self.lock:  # since the first check, a part of a turn may have started to wait for its other parts
            done = [segment for segment in done if not segment.unreceived and not held(segment.traces)]
            if current is not None and current in done and self._current is current:
                self._current = None  # no further writes
            for segment in done:
                self._segments.remove(segment)
        for segment in done:
            self._delete(segment)

    def close(self, delivered: bool, left: Iterable[int] = ()) -> None:
        """Stop writing. If ``delivered``, delete segments whose requests were processed and whose traces aren't in ``left``."""
        with self.lock:
            self._closing = True
            self._more.notify()
        self._thread.join(_COMMIT_WITHIN)
        left = set(left)
        kept: list[_Segment] = []
        for segment in self._segments:
            if delivered and not segment.unreceived and segment.traces.isdisjoint(left):
                self._delete(segment)
                continue
            kept.append(segment)
            if not self._thread.is_alive():  # a live thread still writes to it
                segment.close()
        self._segments[:] = kept

    def _delete(self, segment: _Segment) -> None:
        segment.close()
        try:
            segment.path.unlink(missing_ok=True)
            segment.path.with_suffix(SHARE).unlink(missing_ok=True)
        except OSError as error:
            _log.warning("%s can't be deleted: %s", segment.path, error.strerror)

    def status(self) -> dict[str, Any]:
        return {
            "bytes": self.size, "segments": len(self._segments), "replayed": self.replayed, "broken": self.broken,
            "failures": self.failures, "oldest_s": round(self.age, 3),
        }  # fmt: skip


def records_in(path: Path, max_bytes: int) -> Iterator[Record | None]:
    """Yield a segment's requests. At the first unreadable request, such as an incomplete write, yield None and stop."""
    share = share_of(path)
    with path.open("rb") as file:
        header = file.read(HEADER_BYTES)
        if version_of(header) is None:
            yield from [None] if header else ()  # a new segment is empty until its first requests are on disk
            return
        at = file.tell()
        while head := file.read(_HEAD.size):
            if len(head) == _HEAD.size:
                checked, length, kind = _HEAD.unpack(head)
                body = file.read(length) if length <= max_bytes else b""
                if len(body) == length and zlib.crc32(body, zlib.crc32(struct.pack("<IB", length, kind))) == checked:
                    tenant = None
                    if kind & _OF_A_TENANT:
                        tenant, body = body[1 : 1 + body[0]].decode(), body[1 + body[0] :]
                    signal, is_json = _KINDS[kind & ~_OF_A_TENANT]
                    yield Record(f"{path.stem}:{at}", signal, body, is_json, tenant, share)
                    at = file.tell()
                    continue
            yield None
            return


def segment_of(records: Iterable[Record]) -> bytes:
    return b"".join([_HEADER, *(_encoded(one.signal, one.body, one.is_json, one.tenant) for one in records)])


def _encoded(signal: Signal, body: bytes, is_json: bool, tenant: str | None) -> bytes:
    kind = _KINDS.index((signal, is_json))
    if tenant is not None:
        name = tenant.encode()
        kind |= _OF_A_TENANT
        body = bytes((len(name),)) + name + body
    checked = zlib.crc32(body, zlib.crc32(struct.pack("<IB", len(body), kind)))
    return _HEAD.pack(checked, len(body), kind) + body


def version_of(head: bytes) -> int | None:
    if len(head) < HEADER_BYTES:
        return None
    magic, length, version = _HEAD.unpack(head)
    return int(version) if (magic, length) == (_MAGIC, _NO_LENGTH) else None


def share_of(segment: Path) -> Share:
    try:
        return Share(int.from_bytes(segment.with_suffix(SHARE).read_bytes(), "little"))
    except FileNotFoundError:
        return EVERYTHING


def sync_folder(folder: Path) -> None:
    """Sync a folder to disk, so that its files' names survive a power failure."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_all(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]
