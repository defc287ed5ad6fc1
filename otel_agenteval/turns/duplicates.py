"""Join traces that record the same model call, and join agent runs with their model calls in other traces.

This module implements the stitching rules *same response*, *same failure*, *run without steps*, and *run in another trace* for live
traces. For recorded files, see :mod:`.relations`. Response IDs and failed calls match only while their turn can be revised. If a
turn isn't evaluated yet, its duplicates join the turn. Otherwise, its duplicates are collected, and then the turn is revised.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict, deque
from collections.abc import Hashable, Iterable

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
    is_next_to,
    is_recorded_within,
    order,
    process_of,
    together,
)
from .roots import SpanGroup
from .stitching import Stitcher, is_bare_call, steps_of

_MOST_CALLS = 10_000
_MOST_FAILURES = 32
"""Maximum number of remembered failed calls per model, of calls and runs (together) per process, and of turns per process."""
_MOST_DUPLICATES = 32
"""Maximum number of duplicates that are joined into one waiting call. Programs don't have more instrumentations than this."""


class Duplicates:
    """Joiner of turns with the same calls, even if the :class:`~.stitching.Stitcher` has already released one. Not thread-safe."""

    def __init__(self, stitcher: Stitcher, max_bytes: float = float("inf")) -> None:
        self._stitcher = stitcher
        self.running = stitcher.running
        self._max_bytes = max_bytes
        self.forget()

    def forget(self) -> None:
        self._stitcher.forget()
        self._by_response_id: OrderedDict[tuple[int, str], _Recording] = OrderedDict()
        self._failed_by_model: OrderedDict[tuple[int, str | None], deque[tuple[_Recording, SpanRecord]]] = OrderedDict()
        self._waiting_duplicates: OrderedDict[_Recording, tuple[float, list[SpanGroup]]] = OrderedDict()
        """Maps each evaluated turn's recording to (arrival time of the first duplicate, duplicates)."""
        self._latest_by_process: OrderedDict[Hashable, deque[_Recording]] = OrderedDict()
        self._turns_by_process: OrderedDict[Hashable, deque[_Recording]] = OrderedDict()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._stitcher) + sum(len(groups) for _, groups in self._waiting_duplicates.values())

    def add(self, group: SpanGroup, now: float) -> list[SpanGroup]:
        """Add the spans of a turn, and return the turns that can be evaluated now."""
        return self._stitch(group, now) if self._stitcher.patience <= 0 else self._with_delegates(self._add(group, now))

    def _add(self, group: SpanGroup, now: float) -> list[SpanGroup]:
        if has_no_steps(group):
            return self._add_run(group, now)
        turn = steps_of(group)
        if not turn.llm:
            return self._stitch(group, now)
        recording = _Recording(group, is_bare_call(group))
        calls = turn.llm[:1] if recording.is_lone_call else turn.llm
        earlier = self._duplicates_of(recording, group, calls) or (self._run_of(group) if recording.is_lone_call else {})
        group.recordings = [recording]
        self._remember(recording, group, calls)
        if recording.is_lone_call:
            self._remember_latest(recording, process_of(group.root), self._latest_by_process)
        if not earlier or turn.root.thread is not None:
            return self._stitch(group, now)
        if not recording.is_lone_call:
            return self._join_earlier(group, earlier, now)
        ((other, whole),) = earlier.items()
        return self._add_duplicate(group, other, whole, now)

    def _add_run(self, run: SpanGroup, now: float) -> list[SpanGroup]:
        """If an agent run's trace lacks model calls, join the run with its calls that arrived earlier in separate traces."""
        recording = _Recording(run, is_lone_call=False)
        latest = [(other, other.group()) for other in self._latest_by_process.get(process_of(run.root), ())]
        calls = {other: whole for other, whole in latest if other.is_lone_call and whole is not None and is_lost_call(whole)}
        has_concurrent_run = any(not other.is_lone_call and _overlap(other, run.root) for other, _ in latest)
        own_calls = calls_of(run, {id(whole): whole for whole in calls.values()}.values(), concurrent=has_concurrent_run)
        run.recordings = [recording]
        self._remember_latest(recording, process_of(run.root), self._latest_by_process)
        earlier = {other: whole for other, whole in calls.items() if whole in own_calls}
        return self._join_earlier(run, earlier, now) if earlier else self._stitch(run, now)

    def _add_duplicate(self, call: SpanGroup, other: _Recording, whole: SpanGroup, now: float) -> list[SpanGroup]:
        """Join a model call with its duplicate. If the duplicate was already evaluated, keep the call for a revision."""
        if self._stitcher.holds(whole):
            if len(whole.recordings) >= _MOST_DUPLICATES:
                return self._stitch(call, now)
            return self._replace(whole, together([whole, call]), now)
        self._waiting_duplicates.setdefault(other, (now, []))[1].append(call)
        self._bytes += call.size
        released: list[SpanGroup] = []
        while self._bytes > self._max_bytes and self._waiting_duplicates:
            released += self._with_duplicates(next(iter(self._waiting_duplicates)), now)
        return released

    def _run_of(self, call: SpanGroup) -> dict[_Recording, SpanGroup]:
        """Return ``{recording: run}`` for the agent run that made ``call``, or ``{}``. Search only runs without steps."""
        latest = self._latest_by_process.get(process_of(call.root), ()) if is_lost_call(call) else ()
        runs = [recording for recording in latest if not recording.is_lone_call]
        for recording in runs:
            run = recording.group()
            if run is None:
                continue
            has_concurrent_run = any(other is not recording and _overlap(other, run.root) for other in runs)
            if not calls_of(run, [call], concurrent=has_concurrent_run):
                continue
            if agree(run, call) or not has_concurrent_run or not steps_of(run).llm:
                return {recording: run}
        return {}

    @staticmethod
    def _remember_latest(recording: _Recording, process: Hashable, latest: OrderedDict[Hashable, deque[_Recording]]) -> None:
        latest.setdefault(process, deque(maxlen=_MOST_FAILURES)).append(recording)
        latest.move_to_end(process)
        while len(latest) > _MOST_CALLS // _MOST_FAILURES:
            latest.popitem(last=False)

    def due(self, now: float) -> list[SpanGroup]:
        turns = self._update_recordings(self._stitcher.due(now))
        while self._waiting_duplicates:
            recording, (since, _) = next(iter(self._waiting_duplicates.items()))
            if since + self._stitcher.patience > now:
                break
            turns += self._with_duplicates(recording, now)
        return self._with_delegates(turns)

    def release_all(self, now: float) -> list[SpanGroup]:
        """Return all waiting turns by start time. Turns that are added later are returned immediately."""
        self._stitcher.patience = 0.0
        turns = [group for recording in list(self._waiting_duplicates) for group in self._with_duplicates(recording, now)]
        turns += self._update_recordings(self._stitcher.release_all())
        return sorted(self._with_delegates(turns), key=order)

    def _with_delegates(self, groups: list[SpanGroup]) -> list[SpanGroup]:
        """Join each turn with the agent runs that its tools started in other traces. Usually, these runs arrive before the turn."""
        turns: dict[int, SpanGroup] = {}  # by id() of their root
        for whole in groups:
            process = process_of(whole.root)
            parts = self._nested_turns(whole, process)
            whole.recordings.append(_Recording(whole, is_lone_call=False))
            self._remember_latest(whole.recordings[-1], process, self._turns_by_process)
            parts += [turns[id(whole.root)]] if id(whole.root) in turns else []
            for part in parts:
                turns.pop(id(part.root), None)
            joined = self._update_recordings([together([whole, *parts])])[0] if parts else whole
            turns[id(joined.root)] = joined
        return [*turns.values()]

    def _nested_turns(self, whole: SpanGroup, process: Hashable) -> list[SpanGroup]:
        """Return recent runs that tools of ``whole`` started. If there aren't any, return the turn whose tool started ``whole``."""
        start, end = whole.root.start_ns, end_of(whole)
        recent = self._turns_by_process.get(process, ())
        # Most turns aren't nested.
        nested = [turn for turn in recent if (start < turn.start_ns) == (turn.end_ns < end)]
        if not nested:
            return []
        inner = _groups_of(turn for turn in nested if start < turn.start_ns and turn.end_ns < end)
        outer = _groups_of(turn for turn in nested if turn.start_ns < start and end < turn.end_ns)
        unread = [group for group in inner + outer if group.reader is None]
        for group in unread:
            review_roles(group.members)  # some roles depend on other spans
        related = delegates_of(whole, inner) or [group for group in outer if delegates_of(group, [whole])][-1:]
        for group in unread:  # readers need several times the memory of their spans
            if group not in related:
                group.reader = None
        return related

    def traces(self) -> set[int]:
        waiting = {group.root.trace_id for _, groups in self._waiting_duplicates.values() for group in groups}
        return self._stitcher.traces() | waiting

    def forget_traces(self, trace_ids: set[int]) -> list[SpanGroup]:
        all_dropped = self._stitcher.forget_traces(trace_ids)
        for recording, (_, groups) in list(self._waiting_duplicates.items()):
            dropped = [group for group in groups if group.root.trace_id in trace_ids]
            all_dropped += dropped
            self._bytes -= sum(group.size for group in dropped)
            groups[:] = [group for group in groups if group.root.trace_id not in trace_ids]
            if not groups:
                del self._waiting_duplicates[recording]
        return all_dropped

    def _duplicates_of(self, recording: _Recording, group: SpanGroup, calls: list[Step]) -> dict[_Recording, SpanGroup]:
        """Map other instrumentations' earlier recordings of ``calls`` to the turns that contain these recordings."""
        tenant = number_in(recording.trace_id)
        duplicates: dict[_Recording, SpanGroup] = {}
        for call in calls:
            other = None
            if call.response_id is not None:
                other = self._by_response_id.get((tenant, call.response_id))
            elif call.error is not None:
                for failed, failed_span in reversed(self._failed_by_model.get((tenant, call.model), ())):
                    is_within = recording.is_lone_call and is_recorded_within(recording, failed_span)
                    if is_within or (failed.is_lone_call and is_recorded_within(failed, call.record)):
                        other = failed
                        break
            whole = other.group() if other is not None else None
            if other is not None and whole is not None and _are_duplicates(recording, group, other, whole):
                duplicates[other] = whole
        return duplicates

    def _remember(self, recording: _Recording, group: SpanGroup, calls: list[Step]) -> None:
        tenant = number_in(recording.trace_id)
        for call in calls:
            if call.response_id is not None:
                earlier = self._by_response_id.get((tenant, call.response_id))
                if earlier is not None and earlier.span_id == recording.span_id:  # a revision of the same turn
                    earlier.group = recording.group
                    group.recordings.append(earlier)
                elif not recording.is_lone_call or earlier is None or earlier.group() is None:
                    self._by_response_id[tenant, call.response_id] = recording
            elif call.error is not None:
                failures = self._failed_by_model.setdefault((tenant, call.model), deque(maxlen=_MOST_FAILURES))
                span = call.record
                times = SpanRecord(
                    "", span.trace_id, span.span_id, span.parent_id, start_ns=span.start_ns, end_ns=span.end_ns, scope=span.scope
                )
                failures.append((recording, times))  # without content, to save memory
        while len(self._by_response_id) > _MOST_CALLS:
            self._by_response_id.popitem(last=False)
        while len(self._failed_by_model) > _MOST_CALLS // _MOST_FAILURES:
            self._failed_by_model.popitem(last=False)

    def _join_earlier(self, group: SpanGroup, earlier: dict[_Recording, SpanGroup], now: float) -> list[SpanGroup]:
        parts: dict[int, SpanGroup] = {id(group): group}
        unrelated: list[SpanGroup] = []
        for recording, whole in earlier.items():
            _, duplicates = self._waiting_duplicates.pop(recording, (now, []))
            self._bytes -= sum(duplicate.size for duplicate in duplicates)
            parts.update((id(duplicate), duplicate) for duplicate in duplicates)
            if self._stitcher.holds(whole):
                released = self._stitcher.release_parts(whole)
                unrelated += (part for part in released if earlier.keys().isdisjoint(part.recordings))
            parts[id(whole)] = whole
        joined = self._update_recordings([together([*parts.values()])])
        return joined + [whole for part in unrelated for whole in self._stitch(part, now)]

    def _with_duplicates(self, recording: _Recording, now: float) -> list[SpanGroup]:
        """Return an evaluated turn joined with its duplicates. If the turn was forgotten, return only the duplicates."""
        _, groups = self._waiting_duplicates.pop(recording)
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
        for whole in wholes:
            for recording in whole.recordings:
                recording.group = weakref.ref(whole)
        return wholes


class _Recording:
    """A turn root's IDs, times, and instrumentation scope, with a weak reference to the span group that now contains the root."""

    __slots__ = ("end_ns", "group", "is_lone_call", "scope", "span_id", "start_ns", "trace_id")

    def __init__(self, group: SpanGroup, is_lone_call: bool) -> None:
        root = group.root
        self.trace_id, self.span_id = root.trace_id, root.span_id
        self.start_ns, self.end_ns, self.scope = root.start_ns, end_of(group), root.scope
        self.is_lone_call = is_lone_call
        """True only if the turn's root is a model call. This must be True for at least one of two duplicates."""
        self.group = weakref.ref(group)


def _groups_of(recordings: Iterable[_Recording]) -> list[SpanGroup]:
    return [*{id(group): group for recording in recordings if (group := recording.group()) is not None}.values()]


def _overlap(recording: _Recording, span: SpanRecord) -> bool:
    return recording.start_ns < span.end_ns and span.start_ns < recording.end_ns


def _are_duplicates(recording: _Recording, group: SpanGroup, other: _Recording, whole: SpanGroup) -> bool:
    """Return True if two groups can be recordings of one call, and aren't two revisions of one turn."""
    if not (recording.is_lone_call or other.is_lone_call):
        return False
    if recording.trace_id == other.trace_id and (_has_span_of(group, other) or _has_span_of(whole, recording)):
        return False
    if recording.is_lone_call and other.is_lone_call:
        return not is_next_to(whole, group)
    inner, outer = (recording, other) if recording.is_lone_call else (other, recording)
    return outer.start_ns <= inner.start_ns and not is_next_to(whole, group)


def _has_span_of(group: SpanGroup, recording: _Recording) -> bool:
    return any(member.span_id == recording.span_id for member in group.members)
