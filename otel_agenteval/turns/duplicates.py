"""Join two traces of one model call that was recorded by two instrumentations, and a run with its calls in other traces.

This implements the rules *same response*, *same failure*, *run without steps* and *run in another trace* for traces as they arrive. For a file,
see :mod:`.relations`. Responses and failures of recent turns are remembered for as long as the turns can be revised. A duplicate of a waiting
part joins that part. A duplicate of an evaluated turn waits for further ones, and then the turn is revised once.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict, deque
from collections.abc import Hashable, Iterable
from itertools import islice

from ..core.tenancy import number_in
from ..dialects.reader import review_roles
from ..dialects.step import Step
from ..spans.record import SpanRecord
from .relations import (
    agree,
    calls_of,
    delegates_of,
    end_of,
    has_no_steps,
    is_lost_call,
    is_recorded_within,
    order,
    process_of,
    together,
)
from .roots import SpanGroup
from .stitching import Stitcher, is_bare_call, steps_of

_MOST_CALLS = 10_000
_MOST_FAILURES = 32
"""Maximum number of remembered failed calls of each model."""
_MOST_DUPLICATES = 32
"""Maximum number of traces of one call that are joined while it waits. One program doesn't have more instrumentations."""


class Duplicates:
    """Joins duplicates before and after a :class:`~.stitching.Stitcher`. Not thread-safe."""

    def __init__(self, stitcher: Stitcher, max_bytes: float = float("inf")) -> None:
        self._stitcher = stitcher
        self._max_bytes = max_bytes
        self.forget()

    def forget(self) -> None:
        self._stitcher.forget()
        self._answered: OrderedDict[tuple[int, str], _Recording] = OrderedDict()
        self._failed: OrderedDict[tuple[int, str | None], deque[tuple[_Recording, SpanRecord]]] = OrderedDict()
        self._waiting: OrderedDict[_Recording, _WaitingDuplicates] = OrderedDict()
        self._latest: OrderedDict[Hashable, deque[_Recording]] = OrderedDict()
        """Latest calls in traces of their own, and runs without steps, by process."""
        self._recent: OrderedDict[Hashable, deque[_Recording]] = OrderedDict()
        """Latest turns by process."""
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._stitcher) + sum(len(waiting.groups) for waiting in self._waiting.values())

    def add(self, group: SpanGroup, now: float) -> list[SpanGroup]:
        """Add a turn, and return the turns that can be evaluated. The list is empty until then."""
        found = self._add(group, now)
        return self._with_delegates(found) if self._stitcher.patience > 0 else found

    def _add(self, group: SpanGroup, now: float) -> list[SpanGroup]:
        if self._stitcher.patience <= 0:
            return self._stitch(group, now)
        if has_no_steps(group):
            return self._add_run(group, now)
        turn = steps_of(group)
        if not turn.llm:
            return self._stitch(group, now)
        recording = _Recording(group, is_bare_call(group))
        calls = turn.llm[:1] if recording.alone else turn.llm
        recorded = self._duplicates_of(recording, group, calls) or (self._run_of(group) if recording.alone else {})
        group.recordings = [recording]
        self._remember(recording, group, calls)
        if recording.alone:
            self._remember_latest(recording, process_of(group.root), self._latest)
        if not recorded or turn.root.thread is not None:
            return self._stitch(group, now)
        if not recording.alone:
            return self._join_recorded(group, recorded, now)
        ((other, whole),) = recorded.items()
        return self._add_duplicate(group, other, whole, now)

    def _add_run(self, run: SpanGroup, now: float) -> list[SpanGroup]:
        """Join a run without steps with its calls, which arrived earlier in separate traces."""
        recording = _Recording(run, alone=False)
        latest = [(one, one.group()) for one in self._latest.get(process_of(run.root), ())]
        calls = [(one, whole) for one, whole in latest if one.alone and whole is not None and is_lost_call(whole)]
        beside = any(not one.alone and _overlap(one, run.root) for one, _ in latest)
        own_calls = calls_of(run, {id(whole): whole for _, whole in calls}.values(), beside=beside)
        run.recordings = [recording]
        self._remember_latest(recording, process_of(run.root), self._latest)
        recorded = {one: whole for one, whole in calls if whole in own_calls}
        return self._join_recorded(run, recorded, now) if recorded else self._stitch(run, now)

    def _add_duplicate(self, call: SpanGroup, other: _Recording, whole: SpanGroup, now: float) -> list[SpanGroup]:
        """Join a call with the waiting part that has its other recording, or let it wait for further ones of an evaluated turn."""
        if self._stitcher.holds(whole):
            if len(whole.recordings) >= _MOST_DUPLICATES:
                return self._stitch(call, now)
            return self._replace(whole, together([whole, call]), now)
        waiting = self._waiting.setdefault(other, _WaitingDuplicates(now))
        waiting.groups.append(call)
        self._bytes += call.size
        found: list[SpanGroup] = []
        while self._bytes > self._max_bytes and self._waiting:
            found += self._with_duplicates(next(iter(self._waiting)), now)
        return found

    def _run_of(self, call: SpanGroup) -> dict[_Recording, SpanGroup]:
        """Return the run without steps of its own that arrived before its call, or an empty dictionary."""
        runs = [one for one in self._latest.get(process_of(call.root), ()) if not one.alone] if is_lost_call(call) else []
        for one in runs:
            run = one.group()
            if run is None:
                continue
            beside = any(other is not one and _overlap(other, run.root) for other in runs)
            if calls_of(run, [call], beside=beside) and (agree(run, call) or not (beside and steps_of(run).llm)):
                return {one: run}
        return {}

    @staticmethod
    def _remember_latest(recording: _Recording, process: Hashable, latest: OrderedDict[Hashable, deque[_Recording]]) -> None:
        latest.setdefault(process, deque(maxlen=_MOST_FAILURES)).append(recording)
        latest.move_to_end(process)
        while len(latest) > _MOST_CALLS // _MOST_FAILURES:
            latest.popitem(last=False)

    def due(self, now: float) -> list[SpanGroup]:
        """Return turns whose continuation or further duplicates didn't arrive in time."""
        found = self._update_recordings(self._stitcher.due(now))
        while self._waiting:
            recording, waiting = next(iter(self._waiting.items()))
            if waiting.since + self._stitcher.patience > now:
                break
            found += self._with_duplicates(recording, now)
        return self._with_delegates(found)

    def release_all(self, now: float) -> list[SpanGroup]:
        """Return everything that waits, by start time, and stop holding turns from now on."""
        self._stitcher.stop_holding()
        found = [group for recording in list(self._waiting) for group in self._with_duplicates(recording, now)]
        found += self._update_recordings(self._stitcher.release_all())
        return sorted(self._with_delegates(found), key=order)

    def _with_delegates(self, groups: list[SpanGroup]) -> list[SpanGroup]:
        """Join turns with the runs of their tools, which are in other traces and usually arrive before them."""
        found: dict[int, SpanGroup] = {}
        for whole in groups:
            process = process_of(whole.root)
            parts = self._nested_turns(whole, process)
            whole.recordings.append(_Recording(whole, alone=False))
            self._remember_latest(whole.recordings[-1], process, self._recent)
            parts += [found[id(whole.root)]] if id(whole.root) in found else []
            for part in parts:
                found.pop(id(part.root), None)
            joined = self._update_recordings([together([whole, *parts])])[0] if parts else whole
            found[id(joined.root)] = joined
        return [*found.values()]

    def _nested_turns(self, whole: SpanGroup, process: Hashable) -> list[SpanGroup]:
        """Return the recent runs of a turn's tools, or else the recent turn whose tool ran this one."""
        start, end = whole.root.start_ns, end_of(whole)
        # Most turns neither contain another one nor lie within one.
        nested = [one for one in self._recent.get(process, ()) if (start < one.start_ns) == (one.end_ns < end)]
        if not nested:
            return []
        inner = _groups_of(one for one in nested if start < one.start_ns and one.end_ns < end)
        outer = _groups_of(one for one in nested if one.start_ns < start and end < one.end_ns)
        unread = [other for other in inner + outer if other.reader is None]
        for other in unread:
            review_roles(other.members)  # roles that depend on other spans
        found = delegates_of(whole, inner) or [other for other in outer if delegates_of(other, [whole])][-1:]
        for other in unread:  # a reader uses several times the memory of the spans
            if other not in found:
                other.reader = None
        return found

    def traces(self) -> set[int]:
        waiting = {group.root.trace_id for waiting in self._waiting.values() for group in waiting.groups}
        return self._stitcher.traces() | waiting

    def forget_traces(self, trace_ids: set[int]) -> list[SpanGroup]:
        found = self._stitcher.forget_traces(trace_ids)
        for recording, waiting in list(self._waiting.items()):
            dropped = [group for group in waiting.groups if group.root.trace_id in trace_ids]
            found += dropped
            self._bytes -= sum(group.size for group in dropped)
            waiting.groups = [group for group in waiting.groups if group.root.trace_id not in trace_ids]
            if not waiting.groups:
                del self._waiting[recording]
        return found

    def _duplicates_of(self, recording: _Recording, group: SpanGroup, calls: list[Step]) -> dict[_Recording, SpanGroup]:
        """Return the remembered groups in which another instrumentation recorded the same calls."""
        tenant = number_in(recording.trace_id)
        found: dict[_Recording, SpanGroup] = {}
        for call in calls:
            others: Iterable[_Recording] = ()
            if call.response_id is not None:
                known = self._answered.get((tenant, call.response_id))
                others = (known,) if known is not None else ()
            elif call.error is not None:
                # One of the two is alone in its trace and lies within the other.
                failed = reversed(self._failed.get((tenant, call.model), ()))
                nested = (
                    other for other, record in failed
                    if (recording.alone and is_recorded_within(recording, record)) or (other.alone and is_recorded_within(other, call.record))
                )  # fmt: skip
                others = islice(nested, 1)
            for other in others:
                whole = other.group()
                if whole is not None and _are_duplicates(recording, group, other, whole):
                    found[other] = whole
        return found

    def _remember(self, recording: _Recording, group: SpanGroup, calls: list[Step]) -> None:
        tenant = number_in(recording.trace_id)
        for call in calls:
            if call.response_id is not None:
                known = self._answered.get((tenant, call.response_id))
                if known is not None and known.span_id == recording.span_id:  # a revision of the same turn
                    known.group = recording.group
                    group.recordings.append(known)
                elif not recording.alone or known is None or known.group() is None:
                    self._answered[tenant, call.response_id] = recording
            elif call.error is not None:
                self._failed.setdefault((tenant, call.model), deque(maxlen=_MOST_FAILURES)).append(
                    (recording, _without_content(call.record))
                )
        while len(self._answered) > _MOST_CALLS:
            self._answered.popitem(last=False)
        while len(self._failed) > _MOST_CALLS // _MOST_FAILURES:
            self._failed.popitem(last=False)

    def _join_recorded(self, group: SpanGroup, recorded: dict[_Recording, SpanGroup], now: float) -> list[SpanGroup]:
        """Join a turn with other recordings of it, or its calls, that arrived earlier in separate traces."""
        parts: dict[int, SpanGroup] = {id(group): group}
        others: list[SpanGroup] = []
        for recording, whole in recorded.items():
            waiting = self._waiting.pop(recording, None)
            if waiting is not None:
                self._bytes -= sum(one.size for one in waiting.groups)
                parts.update((id(one), one) for one in waiting.groups)
            if self._stitcher.holds(whole):
                others += (
                    part for part in self._stitcher.release_parts(whole) if not any(one in recorded for one in part.recordings)
                )
            parts[id(whole)] = whole
        found = self._update_recordings([together([*parts.values()])])
        return found + [whole for other in others for whole in self._stitch(other, now)]

    def _with_duplicates(self, recording: _Recording, now: float) -> list[SpanGroup]:
        """Return an evaluated turn joined with its duplicates. Returns only the duplicates if the turn was forgotten."""
        groups = self._waiting.pop(recording).groups
        self._bytes -= sum(group.size for group in groups)
        evaluated = recording.group()
        if evaluated is None:
            return self._update_recordings(groups)
        whole = together([evaluated, *groups])
        return self._replace(evaluated, whole, now) if self._stitcher.holds(evaluated) else self._update_recordings([whole])

    def _replace(self, held: SpanGroup, whole: SpanGroup, now: float) -> list[SpanGroup]:
        self._update_recordings([whole])
        return self._update_recordings(self._stitcher.replace(held, whole, now))

    def _stitch(self, group: SpanGroup, now: float) -> list[SpanGroup]:
        return self._update_recordings(self._stitcher.add(group, now))

    @staticmethod
    def _update_recordings(wholes: list[SpanGroup]) -> list[SpanGroup]:
        """Record which group contains each part from now on."""
        for whole in wholes:
            for recording in whole.recordings:
                recording.group = weakref.ref(whole)
        return wholes


class _Recording:
    """A recorded part that is remembered by its calls, with the group that contains it now. Its root is an outline."""

    __slots__ = ("alone", "end_ns", "group", "scope", "span_id", "start_ns", "trace_id")

    def __init__(self, group: SpanGroup, alone: bool) -> None:
        root = group.root
        self.trace_id, self.span_id = root.trace_id, root.span_id
        self.start_ns, self.end_ns, self.scope = root.start_ns, end_of(group), root.scope
        self.alone = alone
        """True if it is a model call in a trace of its own. Only such calls have duplicates."""
        self.group = weakref.ref(group)


class _WaitingDuplicates:
    __slots__ = ("groups", "since")

    def __init__(self, since: float) -> None:
        self.groups: list[SpanGroup] = []
        self.since = since


def _groups_of(recordings: Iterable[_Recording]) -> list[SpanGroup]:
    return [*{id(group): group for one in recordings if (group := one.group()) is not None}.values()]


def _overlap(one: _Recording, other: SpanRecord) -> bool:
    return one.start_ns < other.end_ns and other.start_ns < one.end_ns


def _without_content(record: SpanRecord) -> SpanRecord:
    """Return a copy of a span without its content, because thousands are remembered."""
    return SpanRecord(
        "", record.trace_id, record.span_id, record.parent_id, start_ns=record.start_ns, end_ns=record.end_ns, scope=record.scope
    )


def _are_duplicates(recording: _Recording, group: SpanGroup, other: _Recording, whole: SpanGroup) -> bool:
    """Return True if two instrumentations recorded the two groups, and they aren't one turn before and after late data arrived."""
    if not (recording.alone or other.alone):
        return False
    if recording.trace_id == other.trace_id and (_contains(group, other) or _contains(whole, recording)):
        return False
    if recording.alone and other.alone:
        return True
    inner, outer = (recording, other) if recording.alone else (other, recording)
    return outer.start_ns <= inner.start_ns


def _contains(group: SpanGroup, recording: _Recording) -> bool:
    return any(member.span_id == recording.span_id for member in group.members)
