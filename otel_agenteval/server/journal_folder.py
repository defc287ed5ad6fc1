"""Journal folder of a service: assignment of segments (files) to processes, and removal of traces.

The service locks the file ``lock``. A folder such as ``7`` belongs to one set of processes. ``7/processes`` lists the endpoints to
which the Collector routes. ``7/0/NAME.requests`` is a segment of process 0. If other processes own some of the segment's traces,
``7/0/NAME.share`` defines which traces belong to process 0.
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
from typing import Any

from ..core import jsonio
from ..core.errors import ConfigError
from ..core.files import another_version, make_private, private
from .poison import forget_strikes
from .routing import Share, shares_of
from .wal import HEADER_BYTES, SHARE, SUFFIX, VERSION, Record, records_in, segment_of, share_of, sync_folder, version_of

_log = logging.getLogger("otel_agenteval")

ALONE = ("",)
_PROCESSES = "processes"
_UNFINISHED = ".part"
LOCK_GRACE = 5.0
"""Seconds to wait for a process to end, in addition to ``serve.drain_timeout``."""
_LOCK_EVERY = 0.1


class JournalFolder:
    def __init__(self, path: str) -> None:
        self.path = Path(path)
        self.lock = -1
        """File descriptor of the lock, or -1 without a lock. A child process that inherits the descriptor also holds the lock."""

    async def acquire(self, within: float, ended: Callable[[], bool] = lambda: False) -> bool:
        """Wait until no other service uses the folder, and lock the folder. If ``ended`` returns True first, return False.

        An earlier service, or processes whose parent was killed, can take a while to stop. If the folder can't be used, or if
        another service still uses the folder after ``within`` seconds, raise ConfigError.
        """
        with _usable(self.path):
            make_private(self.path)
            lock = os.open(self.path / "lock", os.O_CREAT | os.O_RDWR, 0o600)
        loop = asyncio.get_running_loop()
        began = loop.time()
        warned = False
        try:
            while not ended():
                with contextlib.suppress(BlockingIOError):
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    self.lock, lock = lock, -1
                    return True
                if loop.time() - began >= within:
                    raise ConfigError(
                        f"serve.journal: {self.path}: {f'still in use after {within:g} s' if within else 'in use'} by another process. Stop that process"
                        f" (`fuser {self.path / 'lock'}` prints its process ID), or set another folder"
                    )
                if not warned:
                    _log.warning(
                        "serve.journal: %s: in use by another process; waiting up to %g s until it ends", self.path, within
                    )
                    warned = True
                await asyncio.sleep(_LOCK_EVERY)
        finally:
            if lock >= 0:
                os.close(lock)
        return False

    def release(self) -> None:
        lock, self.lock = self.lock, -1
        if lock >= 0:
            os.close(lock)

    def part(self, number: int) -> Path:
        with _usable(self.path):
            return self.path / str(max(self._rounds())) / str(number)

    def share_out(self, endpoints: Sequence[str]) -> None:
        """If ``endpoints`` changed since the last start, assign each segment to all processes that might own some of its traces.

        If the folder can't be used, or if a segment's format version isn't supported, raise ConfigError.
        """
        with _usable(self.path):
            segments = list(self.path.rglob(f"*{SUFFIX}"))
            for path in segments:
                with path.open("rb") as file:
                    found = version_of(file.read(HEADER_BYTES))
                if found not in (None, VERSION):  # a damaged or empty segment has no version
                    fix = "run the otel-agenteval version that wrote this segment until the journal is empty"
                    fault = another_version(found, VERSION, fix)
                    raise ConfigError(f"serve.journal: {path}: segment {fault}, or set another folder")
            if not segments:
                forget_strikes(self.path)
            for path in self.path.glob(f"*{_UNFINISHED}"):
                shutil.rmtree(path)
            rounds = self._rounds()
            last = self.path / str(rounds[-1]) if rounds else None
            names = last / _PROCESSES if last is not None else None  # missing if somebody removed it
            if names is None or not names.exists() or names.read_text(encoding="utf-8") != json.dumps(list(endpoints)):
                self._new_round(last, endpoints)
            for number in self._rounds()[:-1]:
                shutil.rmtree(self.path / str(number))

    def _rounds(self) -> list[int]:
        return sorted(int(path.name) for path in self.path.iterdir() if path.name.isdigit())

    def _new_round(self, last: Path | None, endpoints: Sequence[str]) -> None:
        number = 1 + (int(last.name) if last is not None else 0)
        folder = self.path / f"{number}{_UNFINISHED}"
        parts = [(folder / str(index), share) for index, share in enumerate(shares_of(endpoints))]
        for part, _ in parts:
            make_private(part)
        for path, share in _segments_in(last):
            for part, of_process in parts:
                _link_into(path, Share(share.bits & of_process.bits), part)
        _write(folder / _PROCESSES, json.dumps(list(endpoints)).encode())
        for changed in (*(part for part, _ in parts), folder):
            sync_folder(changed)
        folder.rename(self.path / str(number))
        sync_folder(self.path)


def _segments_in(last: Path | None) -> Iterable[tuple[Path, Share]]:
    found: dict[str, tuple[Path, Share]] = {}
    for path in last.glob(f"*/*{SUFFIX}") if last is not None else ():
        share = share_of(path)
        if path.name in found:
            share = Share(share.bits | found[path.name][1].bits)
        found[path.name] = path, share
    return found.values()


def _link_into(path: Path, share: Share, part: Path) -> None:
    if not share.bits:
        return
    if not share.is_everything:
        _write((part / path.name).with_suffix(SHARE), share.bytes)
    try:
        os.link(path, part / path.name)
    except OSError:  # a file system without hard links; any other error occurs again during the copy
        _write(part / path.name, path.read_bytes())


@contextlib.contextmanager
def _usable(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ConfigError(f"serve.journal: {path}: can't use the folder: {error.strerror}") from None


def _write(path: Path, data: bytes, mode: str = "xb") -> None:
    with open(path, mode, opener=private) as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


_MOST = 1 << 30


def forget_in_journal(folder: str, is_meant: Callable[[str, Any], bool], tenant: str | None = None) -> int:
    """Remove all traces with an attribute for which ``is_meant(key, value)`` is True. Return the number of removed traces.

    ``tenant`` limits the removal to a tenant's requests. If the folder is in use or can't be used, raise ConfigError.
    """
    journal = JournalFolder(folder)
    asyncio.run(journal.acquire(0.0))
    try:
        segments = sorted(journal.path.rglob(f"*{SUFFIX}"))
        traces = {
            trace
            for path in segments
            for record in _records(path)
            if tenant in (None, record.tenant)
            for trace, attributes in _items(record)
            if any(is_meant(key, value) for key, value in attributes)
        }
        for path in segments if traces else ():
            records = list(_records(path))
            left = [record._replace(body=_without(record, traces, tenant)) for record in records]
            if left != records:
                partial = path.with_suffix(".partial")
                _write(partial, segment_of(left), "wb")
                partial.replace(path)
        return len(traces)
    finally:
        journal.release()


def _records(path: Path) -> Iterator[Record]:
    return (record for record in records_in(path, _MOST) if record is not None)


def _message(record: Record) -> Any:
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    return (ExportTraceServiceRequest if record.signal == "traces" else ExportLogsServiceRequest).FromString(record.body)


_PROTO = {"traces": ("resource_spans", "scope_spans", "spans"), "logs": ("resource_logs", "scope_logs", "log_records")}
_JSON = {"traces": ("resourceSpans", "scopeSpans", "spans"), "logs": ("resourceLogs", "scopeLogs", "logRecords")}


def _items(record: Record) -> Iterator[tuple[str, list[tuple[str, Any]]]]:
    if record.is_json:
        groups, scopes, items = _JSON[record.signal]
        for group in jsonio.loads(record.body).get(groups) or ():
            shared = _json_pairs(group.get("resource") or {})
            for item in (item for scope in group.get(scopes) or () for item in scope.get(items) or ()):
                yield str(item.get("traceId", "")).lower(), [*shared, *_json_pairs(item)]
        return
    groups, scopes, items = _PROTO[record.signal]
    for group in getattr(_message(record), groups):
        shared = _proto_pairs(group.resource)
        for item in (item for scope in getattr(group, scopes) for item in getattr(scope, items)):
            yield item.trace_id.hex(), [*shared, *_proto_pairs(item)]


def _json_pairs(item: Any) -> list[tuple[str, Any]]:
    return [(pair.get("key", ""), next(iter((pair.get("value") or {}).values()), None)) for pair in item.get("attributes") or ()]


def _proto_pairs(item: Any) -> list[tuple[str, Any]]:
    return [(pair.key, pair.value.string_value or pair.value.int_value) for pair in item.attributes]


def _without(record: Record, traces: set[str], tenant: str | None) -> bytes:
    if tenant not in (None, record.tenant) or not any(trace in traces for trace, _ in _items(record)):
        return record.body
    if record.is_json:
        found = jsonio.loads(record.body)
        groups, scopes, items = _JSON[record.signal]
        for scope in (scope for group in found[groups] for scope in group.get(scopes) or ()):
            scope[items] = [one for one in scope.get(items) or () if str(one.get("traceId", "")).lower() not in traces]
        return jsonio.dumps(found).encode()
    message = _message(record)
    groups, scopes, items = _PROTO[record.signal]
    for scope in (scope for group in getattr(message, groups) for scope in getattr(group, scopes)):
        kept = [one for one in getattr(scope, items) if one.trace_id.hex() not in traces]
        del getattr(scope, items)[:]
        getattr(scope, items).extend(kept)
    return bytes(message.SerializeToString())
