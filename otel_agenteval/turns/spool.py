"""Recordings that are larger than memory, or than one core: spans are read and written down by trace, and what belongs together is looked
at together.

A trace falls into one of :data:`SLOTS` by its id. Nearly every turn lies within one trace. What does not has to meet: model calls that are
traces of their own and may go on in another trace, what another instrumentation saw of them, and conversations where they are wanted. So
all traces are surveyed, and those that have to meet are moved into one slot.

::

    lines ─ keep ─► spans by slot ─ survey ─► which have to meet ─ move ─► turns of each slot ─ merge ─► in their order

Everything but the merging can run in several processes. The folder holds what people and agents said, and only its owner can read it.
"""

from __future__ import annotations

import functools
import heapq
import math
import os
import pickle
import stat
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from ..core.processes import Processes
from ..core.turn import Turn
from ..dialects.reader import read, role_in
from ..dialects.step import AGENT, LLM
from ..spans.otlp import OtlpLog
from ..spans.record import SpanRecord
from .readings import warn_unread
from .recordings import Faults, Reading, Report, items_in, read_items, read_lines, to_stderr, traces_of, turn_of, wholes_of
from .roots import Group
from .stitching import is_bare_call, may_go_on, reader_of, separate
from .twins import order

SLOTS = 256
_MEETING = SLOTS
"""The slot of what may go on in another trace."""
BATCH_BYTES = 4 * 2**20
"""Of lines that one process reads at a time."""
_SMALL_BYTES = 16 * 2**20
"""Recordings up to here are read into memory, and up to four times as much by one process: others would take longer to start."""
_PACKED = 10
"""How many times its size a packed file holds, about."""
_MOST_FAULTS = 10
"""Of a batch, which are reported one by one."""

Item = SpanRecord | OtlpLog
Key = tuple[Any, ...]
"""Sorts what is made of the turns."""


class Place(NamedTuple):
    """Where some items of a slot are."""

    file: str
    offset: int
    length: int


class Slot(NamedTuple):
    """Traces that are looked at together."""

    number: int
    places: Sequence[Place]
    without: frozenset[int] = frozenset()
    """Traces that were moved to another slot."""

    def items(self) -> Iterator[Item]:
        """Spans and log records, in the order in which they were read."""
        for file, offset, length in self.places:
            with Path(file).open("rb") as stream:
                stream.seek(offset)
                found: list[Item] = pickle.loads(stream.read(length))  # noqa: S301 - written by this program, and nobody else can
            yield from (item for item in found if item.trace_id not in self.without) if self.without else found


class Work(Protocol):
    """What is made of turns that are looked at together; picklable where there are several processes."""

    def __call__(self, turns: Iterable[tuple[Key, Turn]]) -> Iterator[tuple[Key, Any]]:
        """Results, each with what it is sorted by, in that order. A turn comes with the key of its place among all turns."""


class _Batch(NamedTuple):
    number: int
    path: str
    lines: Sequence[tuple[int, bytes]]


class _Kept(NamedTuple):
    """What a batch held."""

    path: str
    places: Mapping[int, Place]
    spans: int
    logs: int
    bad: int
    faults: Sequence[tuple[int, str]]


def results(
    paths: Sequence[str | Path],
    work: Work,
    *,
    jobs: int = 1,
    alone: bool = False,
    meet: bool = False,
    seen: Reading,
    say: Report = to_stderr,
) -> Iterator[Any]:
    """What is made of the turns in recorded traces, in its order.

    Args:
        paths: files, as :func:`~.recordings.load_turns` takes them.
        work: makes it.
        jobs: processes for it.
        alone: whether the work is to be done in this process nevertheless, and only the reading in others.
        meet: whether all turns of a conversation have to be looked at together.
        seen: filled with counts of what was read.
        say: called with one line per thing that could not be read.
    """
    size = _bytes_of(paths)
    if size <= _SMALL_BYTES:
        groups = wholes_of(read_items(paths, seen, say), warn_unread)
        seen.turns = len(groups)
        yield from (result for _, result in work((order(group), turn_of(group)) for group in groups))
        return
    with (
        tempfile.TemporaryDirectory(prefix="otel-agenteval-") as name,
        Processes(jobs if size > 4 * _SMALL_BYTES else 1) as processes,
    ):
        folder, here = Path(name), Processes(1)
        slots = _kept(paths, folder, processes, seen, say)
        small = sum(place.length for slot in slots for place in slot.places) <= _SMALL_BYTES
        slots = _moved(slots, folder, here if small else processes, meet)
        done = list((here if small or alone else processes).map(functools.partial(_done, work, folder), slots))
        seen.turns = sum(one.turns for one in done)
        for scope in dict.fromkeys(scope for one in done for scope in one.unread):
            warn_unread(scope)
        with _Files([one.file for one in done]) as files:
            yield from (result for _, result in heapq.merge(*files, key=lambda one: one[0]))


def _bytes_of(paths: Iterable[str | Path]) -> float:
    """About the size of all recordings together, unpacked; infinite where nobody knows, as of standard input."""
    total = 0.0
    for path in map(Path, paths):
        try:
            found = path.stat()
        except OSError:  # reading says more about it
            return math.inf
        packed = path.suffix in (".gz", ".zst", ".zstd")
        total += found.st_size * (_PACKED if packed else 1) if stat.S_ISREG(found.st_mode) else math.inf
    return total


# --- spans by slot


def _kept(paths: Iterable[str | Path], folder: Path, processes: Processes, seen: Reading, say: Report) -> list[Slot]:
    found: dict[int, list[Place]] = defaultdict(list)
    noted: dict[str, list[tuple[int | None, str]]] = defaultdict(list)
    untold: Counter[str] = Counter()

    def note(path: str, number: int | None, why: str) -> None:
        noted[path].append((number, why))

    for kept in processes.map(functools.partial(_keep, folder), _batches(read_lines(paths, seen, note))):
        seen.spans += kept.spans
        seen.logs += kept.logs
        seen.bad += kept.bad
        noted[kept.path] += kept.faults
        untold[kept.path] += kept.bad - len(kept.faults)
        for slot, place in kept.places.items():
            found[slot].append(place)
    faults = Faults(say)
    for path in dict.fromkeys(
        map(str, paths)
    ):  # lines are read ahead, so what is wrong with a file comes before what is wrong with its lines
        for number, why in sorted(noted[path], key=lambda fault: fault[0] or 0):
            faults(path, number, why)
        faults.more(path, untold[path])
    faults.end()
    return [Slot(number, places) for number, places in sorted(found.items())]


def _batches(lines: Iterable[tuple[str, int, bytes]]) -> Iterator[_Batch]:
    number, size, path = 0, 0, ""
    held: list[tuple[int, bytes]] = []
    for file, place, line in lines:
        if held and (file != path or size + len(line) > BATCH_BYTES):
            yield _Batch(number, path, held)
            number, size, held = number + 1, 0, []
        path = file
        held.append((place, line))
        size += len(line)
    if held:
        yield _Batch(number, path, held)


def _keep(folder: Path, batch: _Batch) -> _Kept:
    """Write the items of a batch down by slot."""
    seen = Reading()
    faults: list[tuple[int, str]] = []
    by_slot: dict[int, list[Item]] = defaultdict(list)
    for number, line in batch.lines:
        for item in items_in(line, seen, lambda why, number=number: faults.append((number, why))):  # type: ignore[misc]
            by_slot[item.trace_id % SLOTS].append(item)
    places = _write(folder / f"spans-{batch.number:08d}", by_slot)
    return _Kept(batch.path, places, seen.spans, seen.logs, seen.bad, faults[:_MOST_FAULTS])


def _write(file: Path, by_slot: Mapping[int, Sequence[Item]]) -> dict[int, Place]:
    places = {}
    with open(file, "xb", opener=_private) as stream:
        for slot, items in sorted(by_slot.items()):
            offset = stream.tell()
            pickle.dump(items, stream, pickle.HIGHEST_PROTOCOL)
            places[slot] = Place(str(file), offset, stream.tell() - offset)
    return places


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


# --- what has to meet


class _Surveyed(NamedTuple):
    """What ties the traces of a slot to others."""

    open: frozenset[int]
    """Traces of which a part may go on in another one."""
    responses: frozenset[str]
    """Of their bare model calls."""
    failed: frozenset[str | None]
    """Models that failed them."""
    conversations: Mapping[str, Sequence[int]]
    """The traces of each."""


def _moved(slots: list[Slot], folder: Path, processes: Processes, meet: bool) -> list[Slot]:
    """The slots, with everything that has to meet in one of them."""
    surveys = list(processes.map(functools.partial(_survey, meet), slots))
    homes = dict.fromkeys((trace for survey in surveys for trace in survey.open), _MEETING)
    responses = frozenset().union(*(survey.responses for survey in surveys))
    failed = frozenset().union(*(survey.failed for survey in surveys))
    if responses or failed:
        for twins in processes.map(functools.partial(_twins, responses, failed), slots):
            homes.update(dict.fromkeys(twins, _MEETING))
    together: dict[str, list[int]] = defaultdict(list)
    for survey in surveys:
        for conversation, traces in survey.conversations.items():
            together[conversation] += traces
    homes.update(_together(together.values(), homes))
    if not homes:
        return slots
    moved: dict[int, list[Place]] = defaultdict(list)
    left = []
    moves = ((slot, {trace: home for trace, home in homes.items() if trace % SLOTS == slot.number}) for slot in slots)
    for slot, places in processes.map(functools.partial(_move, folder), moves):
        left.append(slot)
        for number, place in places.items():
            moved[number].append(place)
    known = {slot.number: slot for slot in left}
    for number, more in moved.items():
        slot = known.get(number, Slot(number, ()))
        known[number] = slot._replace(places=(*slot.places, *more))
    return [slot for _, slot in sorted(known.items())]


def _survey(meet: bool, slot: Slot) -> _Surveyed:
    traces: set[int] = set()
    responses: set[str] = set()
    failed: set[str | None] = set()
    conversations: dict[str, list[int]] = defaultdict(list)
    for group in _parts(slot):
        trace = group.root.trace_id
        if not meet and role_in(group.root) != LLM and read(group.root).thread is None:  # it ends where its trace does
            continue
        if may_go_on(group):
            traces.add(trace)
        if is_bare_call(group):
            call = reader_of(group).llm[0]
            if call.response_id is not None:
                responses.add(call.response_id)
            elif call.error is not None:
                failed.add(call.model)
        conversation = reader_of(group).conversation_id() if meet else None
        if conversation is not None:
            conversations[conversation].append(trace)
    return _Surveyed(frozenset(traces), frozenset(responses), frozenset(failed), conversations)


def _twins(responses: frozenset[str], failed: frozenset[str | None], slot: Slot) -> set[int]:
    """Traces that hold a model call which may be a trace of its own, too."""
    return {
        group.root.trace_id
        for group in _parts(slot)
        for call in reader_of(group).llm
        if call.response_id in responses or (call.error is not None and call.model in failed)
    }


def _parts(slot: Slot) -> Iterator[Group]:
    for groups in traces_of(slot.items(), lambda scope: None):
        for group in groups:
            roles = [role_in(record) for record in group.members]
            yield from separate(group) if roles.count(AGENT) > 1 and roles.count(LLM) > 1 else (group,)


def _together(conversations: Iterable[Sequence[int]], homes: Mapping[int, int]) -> dict[int, int]:
    """The slots of traces that share conversations, directly or by others."""
    first: dict[int, int] = {}

    def top(trace: int) -> int:
        while first.setdefault(trace, trace) != trace:
            first[trace] = trace = first[first[trace]]
        return trace

    for traces in conversations:
        for trace in traces[1:]:
            first[top(trace)] = top(traces[0])
    meeting = {top(trace) for trace in [*first] if trace in homes}
    return {
        trace: _MEETING if top(trace) in meeting else top(trace) % SLOTS
        for trace in [*first]
        if top(trace) in meeting or top(trace) % SLOTS != trace % SLOTS
    }


def _move(folder: Path, moves: tuple[Slot, Mapping[int, int]]) -> tuple[Slot, dict[int, Place]]:
    """Write traces down in their new slots."""
    slot, homes = moves
    if not homes:
        return slot, {}
    by_slot: dict[int, list[Item]] = defaultdict(list)
    for item in slot.items():
        if item.trace_id in homes:
            by_slot[homes[item.trace_id]].append(item)
    return slot._replace(without=frozenset(homes)), _write(folder / f"moved-{slot.number}", by_slot)


# --- turns


class _Done(NamedTuple):
    """The work on a slot."""

    file: str
    """Of its results."""
    turns: int
    unread: Sequence[str]
    """Scopes whose spans should have made a turn."""


def _done(work: Work, folder: Path, slot: Slot) -> _Done:
    unread: list[str] = []
    groups = wholes_of(slot.items(), unread.append)
    file = folder / f"results-{slot.number}"
    with open(file, "xb", opener=_private) as stream:
        for result in work((order(group), turn_of(group)) for group in groups):
            pickle.dump(result, stream, pickle.HIGHEST_PROTOCOL)
    return _Done(str(file), len(groups), unread)


class _Files:
    """Reads the results of all slots, one after the other from each."""

    def __init__(self, files: Sequence[str]) -> None:
        self._streams = [Path(file).open("rb") for file in files]  # noqa: SIM115 - closed at the exit

    def __enter__(self) -> list[Iterator[tuple[Key, Any]]]:
        return [self._read(stream) for stream in self._streams]

    def __exit__(self, *_: object) -> None:
        for stream in self._streams:
            stream.close()

    @staticmethod
    def _read(stream: Any) -> Iterator[tuple[Key, Any]]:
        while True:
            try:
                yield pickle.load(stream)  # noqa: S301 - as above
            except EOFError:
                return
