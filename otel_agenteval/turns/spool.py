"""Read recordings that don't fit into memory, in one or more processes.

Spans are written to temporary files, and sorted into :data:`SLOTS` slots by trace ID. A process reads one slot at a time, with all
spans of the slot's traces. Some traces must be read together: model calls in separate traces, other recordings of these calls, and
(with ``meet=True``) all traces of a conversation. A survey finds these traces, and then they are moved into the same slot.

::

    lines ─ keep ─► spans by slot ─ survey ─► traces to join ─ move ─► turns of each slot ─ merge ─► turns in order

Every step except the merge can run in several processes. The temporary folder contains users' and agents' texts, so only the
folder's owner can read it.
"""

from __future__ import annotations

import contextlib
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
from typing import IO, Any, NamedTuple, Protocol

from ..core.processes import Processes
from ..core.turn import Turn
from ..dialects.reader import read, role_in
from ..dialects.step import AGENT, INNER, LLM
from ..spans.otlp import OtlpLog
from ..spans.record import SpanRecord
from .readings import Readings
from .recordings import (
    Reading,
    RecordingErrors,
    Report,
    items_in,
    read_items,
    read_lines,
    read_turns,
    to_stderr,
    traces_of,
    wholes_of,
)
from .relations import order
from .roots import SpanGroup
from .separation import separate
from .stitching import is_bare_call, may_go_on, steps_of

SLOTS = 256
_JOINED = SLOTS
"""ID of the extra slot, which contains traces that might be parts of one turn."""
BATCH_BYTES = 4 * 2**20
"""Maximum total bytes of lines per batch, unless one line is longer. A process reads one batch at a time."""
SMALL_BYTES = 16 * 2**20
"""Maximum bytes of recordings that are read without temporary files. Up to four times this size, one process is fastest."""
_PACKED = 10
_MOST_FAULTS = 10

Item = SpanRecord | OtlpLog
Key = tuple[Any, ...]


class SlotPlace(NamedTuple):
    file: str
    offset: int
    length: int


class Slot(NamedTuple):
    number: int
    places: Sequence[SlotPlace]
    without: frozenset[int] = frozenset()

    def items(self) -> Iterator[Item]:
        for file, offset, length in self.places:
            with Path(file).open("rb") as stream:
                stream.seek(offset)
                found: list[Item] = pickle.loads(stream.read(length))  # noqa: S301 - only this program can write the file
            yield from (item for item in found if item.trace_id not in self.without) if self.without else found


class TurnWork(Protocol):
    """Function that computes results from turns. If several processes call the function, it must be picklable."""

    def __call__(self, turns: Iterable[tuple[Key, Turn]]) -> Iterator[tuple[Key, Any]]:
        """Yield (sort key, result) pairs in sorted order. ``turns`` yields (sort key, turn) pairs."""


class _Batch(NamedTuple):
    number: int
    path: str
    lines: Sequence[tuple[int, bytes]]


class _WrittenBatch(NamedTuple):
    path: str
    places: Mapping[int, SlotPlace]
    spans: int
    logs: int
    bad: int
    scopes: Counter[str]
    faults: Sequence[tuple[int, str]]


def results(
    paths: Sequence[str | Path],
    work: TurnWork,
    *,
    jobs: int = 1,
    alone: bool = False,
    meet: bool = False,
    seen: Reading,
    report: Report = to_stderr,
) -> Iterator[Any]:
    """Yield the results of ``work`` for all turns in recorded traces, by start time. ``jobs`` is the maximum number of
    processes. If ``alone`` is True, only this process calls ``work``. If ``meet`` is True, all turns of a conversation are read
    together. Counts in ``seen`` are updated. ``report`` is called with texts about input lines and spans that can't be read.
    """
    size = _bytes_of(paths)
    if size <= SMALL_BYTES:
        readings = Readings(math.inf)
        groups = wholes_of(read_items(paths, seen, report), readings.note_unread)
        seen.turns = len(groups)
        yield from (result for _, result in work((order(group), turn) for group, turn in read_turns(groups, readings)))
        readings.finish()
        return
    with (
        tempfile.TemporaryDirectory(prefix="otel-agenteval-") as name,
        Processes(jobs if size > 4 * SMALL_BYTES else 1) as processes,
    ):
        folder, here = Path(name), Processes(1)
        slots = _write_slots(paths, folder, processes, seen, report)
        small = sum(place.length for slot in slots for place in slot.places) <= SMALL_BYTES
        slots = moved_together(slots, folder, here if small else processes, meet)
        done = list((here if small or alone else processes).map(functools.partial(_write_results, work, folder), slots))
        seen.turns = sum(one.turns for one in done)
        readings = Readings(math.inf)
        for one in done:
            readings.add(one.readings)
        readings.finish()
        with contextlib.ExitStack() as streams:
            files = [_results_in(streams.enter_context(Path(one.file).open("rb"))) for one in done]
            yield from (result for _, result in heapq.merge(*files, key=lambda one: one[0]))


def _bytes_of(paths: Iterable[str | Path]) -> float:
    """Return the approximate size of all files after decompression, or infinity if a size is unknown (standard input)."""
    total = 0.0
    for path in map(Path, paths):
        try:
            found = path.stat()
        except OSError:  # reported later, in detail
            return math.inf
        packed = path.suffix in (".gz", ".zst", ".zstd")
        total += found.st_size * (_PACKED if packed else 1) if stat.S_ISREG(found.st_mode) else math.inf
    return total


# --- spans by slot


def _write_slots(paths: Iterable[str | Path], folder: Path, processes: Processes, seen: Reading, report: Report) -> list[Slot]:
    found: dict[int, list[SlotPlace]] = defaultdict(list)
    errors: dict[str, list[tuple[int | None, str]]] = defaultdict(list)
    unreported: Counter[str] = Counter()
    readable: set[str] = set()

    def note(path: str, number: int | None, why: str) -> None:
        errors[path].append((number, why))

    for kept in processes.map(functools.partial(_write_batch, folder), _batches(read_lines(paths, seen, note))):
        seen.spans += kept.spans
        seen.logs += kept.logs
        seen.bad += kept.bad
        seen.scopes += kept.scopes
        errors[kept.path] += kept.faults
        unreported[kept.path] += kept.bad - len(kept.faults)
        if kept.spans or kept.logs:
            readable.add(kept.path)
        for slot, place in kept.places.items():
            found[slot].append(place)
    faults = RecordingErrors(report)
    for path in dict.fromkeys(map(str, paths)):
        if path in readable:
            faults.readable(path)
        # Lines are read ahead, so errors can be out of order.
        for number, why in sorted(errors[path], key=lambda fault: fault[0] or 0):
            faults(path, number, why)
        faults.more(path, unreported[path])
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


def _write_batch(folder: Path, batch: _Batch) -> _WrittenBatch:
    seen = Reading()
    faults: list[tuple[int, str]] = []
    by_slot: dict[int, list[Item]] = defaultdict(list)
    for number, line in batch.lines:
        for item in items_in(line, seen, lambda why, number=number: faults.append((number, why))):  # type: ignore[misc]
            by_slot[item.trace_id % SLOTS].append(item)
    places = _write(folder / f"spans-{batch.number:08d}", by_slot)
    return _WrittenBatch(batch.path, places, seen.spans, seen.logs, seen.bad, seen.scopes, faults[:_MOST_FAULTS])


def _write(file: Path, by_slot: Mapping[int, Sequence[Item]]) -> dict[int, SlotPlace]:
    places = {}
    with open(file, "xb", opener=_private) as stream:
        for slot, items in sorted(by_slot.items()):
            offset = stream.tell()
            pickle.dump(items, stream, pickle.HIGHEST_PROTOCOL)
            places[slot] = SlotPlace(str(file), offset, stream.tell() - offset)
    return places


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


# --- traces that must be read together


class _Survey(NamedTuple):
    open: frozenset[int]
    """IDs of traces that another trace might continue."""
    responses: frozenset[str]
    failed: frozenset[str | None]
    conversations: Mapping[str, Sequence[int]]


def moved_together(slots: list[Slot], folder: Path, processes: Processes, meet: bool) -> list[Slot]:
    """Move traces that must be read together into the same slot, and return the new slots."""
    surveys = list(processes.map(functools.partial(_survey, meet), slots))
    targets = dict.fromkeys((trace for survey in surveys for trace in survey.open), _JOINED)
    responses = frozenset().union(*(survey.responses for survey in surveys))
    failed = frozenset().union(*(survey.failed for survey in surveys))
    if responses or failed:
        for duplicates in processes.map(functools.partial(_traces_with_duplicates, responses, failed), slots):
            targets.update(dict.fromkeys(duplicates, _JOINED))
    together: dict[str, list[int]] = defaultdict(list)
    for survey in surveys:
        for conversation, traces in survey.conversations.items():
            together[conversation] += traces
    targets.update(_slots_of_conversations(together.values(), targets))
    if not targets:
        return slots
    moved: dict[int, list[SlotPlace]] = defaultdict(list)
    known: dict[int, Slot] = {}
    moves = ((slot, {trace: target for trace, target in targets.items() if trace % SLOTS == slot.number}) for slot in slots)
    for slot, places in processes.map(functools.partial(_move_traces, folder), moves):
        known[slot.number] = slot
        for number, place in places.items():
            moved[number].append(place)
    for number, more in moved.items():
        slot = known.get(number, Slot(number, ()))
        known[number] = slot._replace(places=(*slot.places, *more))
    return [slot for _, slot in sorted(known.items())]


def _survey(meet: bool, slot: Slot) -> _Survey:
    traces: set[int] = set()
    responses: set[str] = set()
    failed: set[str | None] = set()
    conversations: dict[str, list[int]] = defaultdict(list)
    for group in _groups_in(slot):
        trace = group.root.trace_id
        if not meet and role_in(group.root) not in (None, INNER, LLM) and read(group.root).thread is None:  # a turn in one trace
            continue
        if may_go_on(group):
            traces.add(trace)
        if is_bare_call(group):
            call = steps_of(group).llm[0]
            if call.response_id is not None:
                responses.add(call.response_id)
            elif call.error is not None:
                failed.add(call.model)
        conversation = steps_of(group).conversation_id() if meet else None
        if conversation is not None:
            conversations[conversation].append(trace)
    return _Survey(frozenset(traces), frozenset(responses), frozenset(failed), conversations)


def _traces_with_duplicates(responses: frozenset[str], failed: frozenset[str | None], slot: Slot) -> set[int]:
    return {
        group.root.trace_id
        for group in _groups_in(slot)
        for call in steps_of(group).llm
        if call.response_id in responses or (call.error is not None and call.model in failed)
    }


def _groups_in(slot: Slot) -> Iterator[SpanGroup]:
    for groups in traces_of(slot.items()):
        for group in groups:
            roles = [role_in(record) for record in group.members]
            yield from separate(group) if roles.count(AGENT) > 1 and roles.count(LLM) > 1 else (group,)


def _slots_of_conversations(conversations: Iterable[Sequence[int]], targets: Mapping[int, int]) -> dict[int, int]:
    """Map traces to new slot numbers, so that traces with a conversation in common (even indirectly) share a slot."""
    first: dict[int, int] = {}

    def first_of(trace: int) -> int:
        while first.setdefault(trace, trace) != trace:
            first[trace] = trace = first[first[trace]]
        return trace

    for traces in conversations:
        for trace in traces[1:]:
            first[first_of(trace)] = first_of(traces[0])
    meeting = {first_of(trace) for trace in [*first] if trace in targets}
    return {
        trace: _JOINED if first_of(trace) in meeting else first_of(trace) % SLOTS
        for trace in [*first]
        if first_of(trace) in meeting or first_of(trace) % SLOTS != trace % SLOTS
    }


def _move_traces(folder: Path, moves: tuple[Slot, Mapping[int, int]]) -> tuple[Slot, dict[int, SlotPlace]]:
    slot, targets = moves
    if not targets:
        return slot, {}
    by_slot: dict[int, list[Item]] = defaultdict(list)
    for item in slot.items():
        if item.trace_id in targets:
            by_slot[targets[item.trace_id]].append(item)
    return slot._replace(without=frozenset(targets)), _write(folder / f"moved-{slot.number}", by_slot)


# --- turns


class _SlotResults(NamedTuple):
    file: str
    turns: int
    readings: Readings


def _write_results(work: TurnWork, folder: Path, slot: Slot) -> _SlotResults:
    readings = Readings(math.inf)
    groups = wholes_of(slot.items(), readings.note_unread)
    file = folder / f"results-{slot.number}"
    with open(file, "xb", opener=_private) as stream:
        for result in work((order(group), turn) for group, turn in read_turns(groups, readings)):
            pickle.dump(result, stream, pickle.HIGHEST_PROTOCOL)
    return _SlotResults(str(file), len(groups), readings)


def _results_in(stream: IO[bytes]) -> Iterator[tuple[Key, Any]]:
    while True:
        try:
            yield pickle.load(stream)  # noqa: S301 - as above
        except EOFError:
            return
