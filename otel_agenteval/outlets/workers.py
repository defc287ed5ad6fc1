"""Sharing of metrics between a server's worker processes, so that each worker can export the counts of all workers.

Each worker writes its counts to a file, at most once a second and at each flush. A scrape reads the other workers' files. One file
contains the total counts of all ended workers, so that counters never decrease. Gauges of ended workers are dropped.

The files are in a private folder that all processes of the program share (see :mod:`..core.lineage`). A single-process program
doesn't write files. If ``PROMETHEUS_MULTIPROC_DIR`` is set, every process writes its files to that folder, and also writes the
counts there in the format of ``prometheus_client``. All processes that use the folder count as one program.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ..core.forks import Step, at_fork
from ..core.lineage import Process, first_of_program, listens, this_process
from ..core.semconv import ESTIMATES, INSTRUMENTS, Instrument, prometheus_name
from ..core.telemetry import Distribution, Exemplar, Family, Labels, TelemetryGroup, merged

_log = logging.getLogger("otel_agenteval")

_FORMAT = 1
_PAUSE = 1.0
_GATHERING = 0.05
"""Seconds that a worker waits before writing a file, so that the file includes counts that follow shortly."""
_AT_LEAST_EVERY = 15.0
"""Seconds between checks of values that change without events, such as queue sizes."""
_OLD = 7 * 86_400.0
"""Maximum age in seconds of a folder from another machine. Older folders are removed."""
_OURS = "agenteval"
"""Marker in the names of ``prometheus_client`` files that otel-agenteval writes."""
_BY_NAME = {instrument.name: instrument for instrument in INSTRUMENTS}
_NOT_SHARED = (
    "outlets.prometheus: can't add the metrics of several worker processes: %s. A scrape returns the metrics of one worker only; "
    "set PROMETHEUS_MULTIPROC_DIR to a folder that all workers can write to, or export metrics over OTLP (outlets.otlp)"
)


def shared_folder() -> str | None:
    """Return the folder for the multi-process mode of ``prometheus_client``, or None if this mode is off."""
    return os.environ.get("PROMETHEUS_MULTIPROC_DIR") or os.environ.get("PROMETHEUS_MULTIPROC_DIR".lower()) or None


def is_of_workers(path: Path) -> bool:
    return f"_{_OURS}-" in path.name


class Workers:
    """Reader for metrics of the program's other processes, and writer for this process's metrics."""

    def __init__(self, view: str, group: TelemetryGroup, on_fault: Callable[[], None]) -> None:
        self.view = view
        self._group = group
        self._on_fault = on_fault
        self._closed = False
        self._reset()
        _all.add(self)

    def _reset(self) -> None:
        self._this = this_process()
        self._folder: Path | None = None
        self._first: Process | None = None
        self._faulty = False
        self._counted = False
        self._many = False
        self._checked_at = 0.0
        self._written = ""
        self._attempt: Callable[[], bool] | None = None
        self._thread: threading.Thread | None = None
        self._changed, self._stop = threading.Event(), threading.Event()
        self._writing, self._reading = threading.Lock(), threading.Lock()
        self._known: dict[str, tuple[tuple[int, int, int], Snapshot]] = {}
        self._names_read: set[str] = set()
        self._others: list[Snapshot] = []

    def mark_changed(self) -> None:
        """Record that counts changed. In a single-process program, this call costs almost nothing."""
        self._counted = True
        if self._is_one_of_many():
            self._start_thread()
            self._changed.set()

    def write(self) -> None:
        if self._counted and self._is_one_of_many():
            self._write(live=True)

    def keep_trying(self, attempt: Callable[[], bool]) -> bool:
        """Call ``attempt`` on another thread once a second until it returns True. In a single-process program, return False."""
        if not self._is_one_of_many():
            return False
        self._attempt = attempt
        self._start_thread()
        return True

    def close(self) -> None:
        """Write the final counts, marked as counts of an ended process."""
        if self._closed:
            return
        self._closed = True
        self._stop.set()
        self._changed.set()
        if self._counted and self._is_one_of_many():
            self._write(live=False)

    def after_fork_in_child(self, attempt: Callable[[], bool] | None) -> None:
        """Reset the state in a forked child. After the child's first count, call ``attempt`` every second until it returns True."""
        self._reset()
        self._attempt = attempt

    def after_fork_in_parent(self) -> None:
        """Write this process's counts for its new child. A separate thread writes them, so that a fork never waits for files."""
        if self._counted and not self._closed and self._folder is None:
            self._start_thread()
            self._changed.set()

    def others(self, name: str) -> Sequence[Snapshot]:
        """Return the other processes' counts. A repeated ``name`` indicates a new scrape, so the files are read again."""
        with self._reading:
            if name in self._names_read or not self._names_read:
                self._names_read.clear()
                self._checked_at = 0.0  # each scrape checks again, however recent the last check was
                self._others = self._read_others()
            self._names_read.add(name)
            return self._others

    def has_holder(self) -> bool:
        """Return True if another running process of the program listens on the metrics port that ``view`` names."""
        with suppress(OSError):
            folder = self._folder_to_use()
            holder = Process.named((folder / f"{self.view}.held").read_text()) if folder is not None else None
            if holder is not None and holder != self._this and holder.is_alive:
                return True
        first = first_of_program()  # it may have opened the port before it had children
        return first != self._this and listens(first, int(self.view.removeprefix("port-")))

    def hold(self) -> None:
        """Record that this process listens on the metrics port that ``view`` names. Only one process can listen on the port."""
        with suppress(OSError):
            if self._is_one_of_many() and (folder := self._folder_to_use()) is not None:
                _replace(folder / f"{self.view}.held", self._this.name)

    def _is_one_of_many(self) -> bool:
        """Return True if this process shares metrics. Until it does, look for a child process's folder at most once a second."""
        if self._faulty:
            return False
        if not self._many:
            if self._first is None:
                self._first = first_of_program()
            self._many = shared_folder() is not None or _has_forked or self._first != self._this
            now = time.monotonic()
            if not self._many and (not self._checked_at or now - self._checked_at >= _PAUSE):
                self._checked_at = now
                self._many = _folder_of(self._this).is_dir()  # a child process has created the folder
        return self._many

    def _folder_to_use(self) -> Path | None:
        """Return the program's folder. If the folder doesn't exist, create it. On failure, log a warning and return None."""
        if self._folder is None and not self._faulty:
            try:
                shared = shared_folder()
                if shared is not None:
                    folder = Path(shared) / "otel-agenteval"
                    folder.mkdir(parents=True, exist_ok=True)
                else:
                    self._first = self._first or first_of_program()
                    folder = _folder_of(self._first)
                    _make_private(folder.parent)
                    folder.mkdir(0o700, exist_ok=True)
                    _remove_left_behind(folder)
                self._folder = folder
            except OSError as error:
                self._fail(error)
        return self._folder

    def _fail(self, error: OSError) -> None:
        if not self._faulty:
            self._faulty = True
            _log.warning(_NOT_SHARED, error)
            self._on_fault()

    def _start_thread(self) -> None:
        if self._thread is None and not self._closed:
            self._thread = threading.Thread(target=self._run, name="otel-agenteval-workers", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        changed, stop = self._changed, self._stop
        while not stop.is_set() and not self._faulty:
            happened = changed.wait(_PAUSE if self._attempt is not None else _AT_LEAST_EVERY)
            changed.clear()
            if self._attempt is not None and not stop.is_set() and self._attempt():
                self._attempt = None
            if happened:
                stop.wait(_GATHERING)
            if self._counted and not stop.is_set():
                self._write(live=True)
            if happened:
                stop.wait(_PAUSE)

    def _write(self, *, live: bool) -> None:
        with self._writing:
            folder = self._folder_to_use()
            if folder is None:
                return
            families = [self._group.read(instrument.name) for instrument in INSTRUMENTS if live or instrument.kind != "gauge"]
            present = [family for family in families if family is not None]
            data = {family.instrument.name: _as_data(family) for family in present}
            text = json.dumps({"format": _FORMAT, "live": live, "families": data})
            if text == self._written:
                return
            try:
                _replace(folder / f"{self.view}.{self._this.name}.json", text)
                if shared_folder() is not None:
                    _write_multiprocess_files(folder.parent, self._this, present)
            except OSError as error:
                self._fail(error)
            else:
                self._written = text

    def _read_others(self) -> list[Snapshot]:
        if not self._is_one_of_many() or (folder := self._folder_to_use()) is None:
            return []
        found: list[Snapshot] = []
        ended: list[str] = []
        try:
            with _locked(folder, self.view, shared=True):
                sum_of_ended = self._snapshot(folder / f"{self.view}.gone.json")
                if sum_of_ended is not None:
                    found.append(sum_of_ended)
                for path in folder.glob(f"{self.view}.*-*.json"):
                    name = path.name.removeprefix(f"{self.view}.").removesuffix(".json")
                    process = Process.named(name)
                    if process is None or process == self._this or (sum_of_ended is not None and name in sum_of_ended.members):
                        continue
                    snapshot = self._snapshot(path)
                    if snapshot is None:
                        continue
                    alive = process.is_alive
                    if not alive:
                        ended.append(name)
                    found.append(snapshot if alive else snapshot.without_gauges())
            if ended:
                self._sum_ended(folder, ended)
        except OSError as error:
            self._fail(error)
        return found

    def _snapshot(self, path: Path) -> Snapshot | None:
        """Return the counts in a file, cached until the file changes. For an unreadable file or another format, return None."""
        try:
            state = path.stat()
            version = (state.st_mtime_ns, state.st_size, state.st_ino)
            known = self._known.get(path.name)
            if known is None or known[0] != version:
                data = json.loads(path.read_text())
                if data["format"] != _FORMAT:
                    return None
                known = self._known[path.name] = (version, Snapshot(data))
        except (OSError, ValueError, KeyError, TypeError):
            self._known.pop(path.name, None)
            return None
        return known[1]

    def _sum_ended(self, folder: Path, names: Sequence[str]) -> None:
        """Add ended processes' counts to the file with the sums, unless another process has already added these counts."""
        with _locked(folder, self.view, shared=False):
            path = folder / f"{self.view}.gone.json"
            before = self._snapshot(path)
            counted = set() if before is None else set(before.members)
            snapshots = [] if before is None else [before]
            members = sorted(counted)
            for name in names:
                if name not in counted and (snapshot := self._snapshot(folder / f"{self.view}.{name}.json")) is not None:
                    snapshots.append(snapshot.without_gauges())
                    members.append(name)
            if len(members) > len(counted):
                instruments = sorted({name for snapshot in snapshots for name in snapshot.names})
                families = {name: _as_data(merged(name, snapshots)) for name in instruments}
                _replace(path, json.dumps({"format": _FORMAT, "live": False, "of": members, "families": families}))
            for name in names:  # already in the sum, so a file that can't be deleted is recognized by its name
                (folder / f"{self.view}.{name}.json").unlink(missing_ok=True)
                self._known.pop(f"{self.view}.{name}.json", None)


class Snapshot:
    """Counts from a file: one process's latest counts, or the sums over all ended processes."""

    def __init__(self, data: dict[str, Any]) -> None:
        self._families: dict[str, Any] = data["families"]
        self._live: bool = data["live"]
        self.members: frozenset[str] = frozenset(data.get("of", ()))
        """Names of the ended processes whose counts are included."""

    @property
    def names(self) -> list[str]:
        return [name for name in self._families if name in _BY_NAME]

    def without_gauges(self) -> Snapshot:
        """Return a copy without gauges. After a process has ended, its gauges no longer apply."""
        if not self._live:
            return self
        families = {name: data for name, data in self._families.items() if name in _BY_NAME and _BY_NAME[name].kind != "gauge"}
        return Snapshot({"families": families, "live": False, "of": self.members})

    def read(self, name: str) -> Family:
        return _from_data(_BY_NAME[name], self._families.get(name))


def _as_data(family: Family) -> list[Any]:
    cells = [
        [
            labels,
            one.counts,
            one.sum,
            one.least,
            one.most,
            [kept and [dict(kept.labels), kept.value, kept.time_s] for kept in one.exemplars],
        ]
        for labels, one in family.distributions.items()
    ]
    values = [[labels, value] for labels, value in family.values.items() if value or family.instrument.kind == "gauge"]
    return [values, cells]


def _from_data(instrument: Instrument, data: Any) -> Family:
    values: dict[Labels, float] = {tuple(labels): value for labels, value in data[0]} if data else {}
    distributions: dict[Labels, Distribution] = {}
    for labels, counts, total, least, most, exemplars in data[1] if data else ():
        if len(counts) == len(instrument.buckets) + 1:  # otherwise another version wrote it
            kept = tuple([None if one is None else Exemplar(*one) for one in exemplars])
            distributions[tuple(labels)] = Distribution(tuple(counts), total, kept, least, most)
    return Family(instrument, values, distributions)


def _write_multiprocess_files(folder: Path, process: Process, families: Sequence[Family]) -> None:
    """Write a process's metrics for ``MultiProcessCollector``. Remove ended processes' gauges. Can raise OSError.

    The file format doesn't support exemplars. Estimates aren't written, because estimates from several processes can't be added.
    """
    from prometheus_client.mmap_dict import MmapedDict

    by_file: dict[str, list[Family]] = {}
    for family in families:
        if family.instrument.name not in ESTIMATES:
            instrument = family.instrument
            name = instrument.kind if instrument.kind != "gauge" else f"gauge_live{instrument.over}"
            by_file.setdefault(name, []).append(family)
    for kind, some in by_file.items():
        path = folder / f"{kind}_{_OURS}-{process.name}.db"
        beside = path.with_suffix(f".{os.getpid()}.new")
        with suppress(FileNotFoundError):
            beside.unlink()
        samples = [sample for family in some for sample in _multiprocess_samples(family)]
        # allocated first, because writing to the memory map of a sparse file on a full disk ends the process
        beside.write_bytes(bytes(8 + sum(len(key.encode()) + 28 for key, _ in samples)))
        values = MmapedDict(str(beside))  # type: ignore[no-untyped-call]
        for key, value in samples:
            values.write_value(key, value, 0.0)  # type: ignore[no-untyped-call]
        values.close()  # type: ignore[no-untyped-call]
        beside.replace(path)
    for path in folder.glob(f"gauge_*_{_OURS}-*.db"):
        writer = Process.named(path.stem.rpartition(f"{_OURS}-")[2])
        is_over = (
            path.name.partition(f"_{_OURS}")[0] not in by_file
            if writer == process
            else writer is not None and not writer.is_alive
        )
        if is_over:
            path.unlink(missing_ok=True)


def _multiprocess_samples(family: Family) -> Iterator[tuple[str, float]]:
    from prometheus_client.mmap_dict import mmap_key
    from prometheus_client.utils import floatToGoString

    instrument = family.instrument
    whole = prometheus_name(instrument)
    name = whole.removesuffix("_total")

    def key(sample: str, labels: Labels, *more: tuple[str, str]) -> str:
        named = (*zip(instrument.attributes, labels, strict=True), *more)
        return mmap_key(name, sample, [one for one, _ in named], [value for _, value in named], instrument.description)

    for labels, value in family.values.items():
        yield key(whole, labels), value
    for labels, found in family.distributions.items():
        yield key(f"{name}_sum", labels), found.sum
        for bound, count in zip((*instrument.buckets, float("inf")), found.counts, strict=True):
            yield key(f"{name}_bucket", labels, ("le", str(floatToGoString(bound)))), count  # type: ignore[no-untyped-call]


def _folder_of(first: Process) -> Path:
    import tempfile

    return Path(tempfile.gettempdir()) / f"otel-agenteval-{os.getuid()}" / f"{_machine()}.{first.name}"


def _machine() -> str:
    """Return a name for this machine or container. Needed because several machines can share a temporary folder."""
    try:
        return f"{Path('/proc/sys/kernel/random/boot_id').read_text()[:8]}-{Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:
        return "here"


def _make_private(folder: Path) -> None:
    """Create a folder that only this user can write to. If an existing folder isn't private, raise PermissionError."""
    folder.mkdir(0o700, exist_ok=True)
    found = folder.lstat()
    if found.st_uid != os.getuid() or found.st_mode & 0o022 or folder.is_symlink():
        raise PermissionError(f"{folder}: must be a folder that only this user can write to")


def _remove_left_behind(mine: Path) -> None:
    import shutil

    for folder in mine.parent.iterdir():
        machine, _, name = folder.name.partition(".")
        first = Process.named(name)
        if folder == mine or first is None:
            continue
        with suppress(OSError):
            if machine != _machine():
                is_over = time.time() - folder.stat().st_mtime > _OLD
            else:
                members = [Process.named(path.name.split(".")[1]) for path in folder.glob("*.*-*.json")]
                is_over = not any(one is not None and one.is_alive for one in (first, *members))
            if is_over:
                shutil.rmtree(folder, ignore_errors=True)


def _replace(path: Path, text: str) -> None:
    beside = path.with_name(f".{path.name}.{threading.get_ident()}")
    beside.write_text(text)
    beside.replace(path)


@contextmanager
def _locked(folder: Path, view: str, *, shared: bool) -> Iterator[None]:
    """Lock the files of a registry or port (``view``): shared for reading, or exclusive for adding ended processes' counts."""
    with (folder / f"{view}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        yield


_all: weakref.WeakSet[Workers] = weakref.WeakSet()
_has_forked = False
"""True if this process has forked, or if it is a fork of a process that used otel-agenteval."""


def _after_fork(in_parent: bool) -> None:
    global _has_forked
    _has_forked = True
    for one in list(_all) if in_parent else ():
        one.after_fork_in_parent()


at_fork(Step.OUTLETS, in_parent=lambda: _after_fork(True), in_child=lambda: _after_fork(False))
