"""Join two traces of one model call that was recorded by two instrumentations, and a run with its calls in other traces.

This implements the rules *same response*, *same failure*, *run without steps* and *run in another trace*.
:func:`join_duplicates` joins such traces in a file. :class:`Duplicates` joins them as traces arrive: it remembers the responses and failures of recent turns for as long
as they can be revised. A duplicate of a waiting part joins that part. A duplicate of an evaluated turn waits for
further ones, and then the turn is revised once.
"""

from __future__ import annotations

import weakref
from bisect import bisect_left, bisect_right
from collections import OrderedDict, deque
from collections.abc import Hashable, Iterable
from itertools import islice

from ..core.tenancy import number_in
from ..dialects.reader import review_roles, role_in
from ..dialects.step import AGENT, LLM, TOOL, WORKFLOW, Step
from ..spans.record import SpanRecord
from .roots import SpanGroup
from .separation import separate
from .stitching import Stitcher, is_bare_call, reader_of, steps_of

_MOST_CALLS = 10_000
_MOST_FAILURES = 32
"""Maximum number of remembered failed calls of each model."""
_MOST_DUPLICATES = 32
"""Maximum number of traces of one call that are joined while it waits. One program doesn't have more instrumentations."""
_MOST_DELEGATES = 256
"""Maximum number of turns in a file that ended before a turn and are compared with its tool calls."""


def stitch(groups: Iterable[SpanGroup]) -> list[SpanGroup]:
    """Return the turns of recorded groups by :func:`order`. Parts of a turn are joined, however far apart they are."""
    parts = join_duplicates([part for group in groups for part in separate(group)])
    if len(parts) == 1 and steps_of(parts[0]).root.thread is None:
        return parts
    stitcher = Stitcher(float("inf"))
    found = [whole for part in parts for whole in stitcher.add(part, 0.0)]
    found += stitcher.release_all()
    return sorted(_with_delegates(_with_calls(found)), key=order)


def order(group: SpanGroup) -> tuple[int, int, int, int]:
    """Return the sort key of a turn, which doesn't depend on where its spans were read."""
    root = group.root
    return root.start_ns, root.end_ns, root.span_id, root.trace_id


def join_duplicates(groups: list[SpanGroup]) -> list[SpanGroup]:
    """Join groups that two instrumentations recorded of the same model call."""
    if len(groups) < 2 or not any(map(is_bare_call, groups)):
        return groups
    found: list[list[SpanGroup]] = []
    calls = _RecordedCalls()
    for group in sorted(groups, key=order):
        place = calls.place_of(group, len(found))
        if place == len(found):
            found.append([group])
        else:
            found[place].append(group)
    return [together(parts) if len(parts) > 1 else parts[0] for parts in found]


def _with_calls(groups: list[SpanGroup]) -> list[SpanGroup]:
    """Join runs without steps with the calls of their processes that are in other traces, because the context was lost."""
    runs: dict[Hashable, list[SpanGroup]] = {}
    for group in filter(has_no_steps, sorted(groups, key=order)):
        runs.setdefault(process_of(group.root), []).append(group)
    if not runs:
        return groups
    found = {id(group): group for group in groups}
    calls: dict[Hashable, list[SpanGroup]] = {}
    for group in sorted(groups, key=order):
        if is_lost_call(group):
            calls.setdefault(process_of(group.root), []).append(group)
    taken: set[int] = set()
    for process, of_process in runs.items():
        left, latest = calls.get(process, []), 0
        for place, run in enumerate(of_process):
            first = bisect_left(left, run.root.start_ns, key=_start)
            during = left[first : bisect_right(left, run.root.end_ns, key=_start)]
            beside = latest > run.root.start_ns or any(
                _start(other) < run.root.end_ns for other in of_process[place + 1 : place + 2]
            )
            latest = max(latest, run.root.end_ns)
            own_calls = calls_of(run, [call for call in during if id(call) not in taken], beside=beside)
            if own_calls:
                taken.update(map(id, own_calls))
                found[id(run)] = together([run, *own_calls])
    return [group for key, group in found.items() if key not in taken]


def _start(group: SpanGroup) -> int:
    return group.root.start_ns


def _with_delegates(groups: list[SpanGroup]) -> list[SpanGroup]:
    """Join turns with the runs of their tools that are in other traces, because the context was lost."""
    found: dict[Hashable, list[SpanGroup]] = {}
    for group in sorted(groups, key=_end):  # inner runs first
        ended = found.setdefault(process_of(group.root), [])
        delegates = delegates_of(
            group, ended[max(bisect_left(ended, group.root.start_ns, key=_end), len(ended) - _MOST_DELEGATES) :]
        )
        if delegates:
            ended[:] = [one for one in ended if one not in delegates]
        ended.append(together([group, *delegates]) if delegates else group)
    return [group for ended in found.values() for group in ended]


def _groups_of(recordings: Iterable[_Recording]) -> list[SpanGroup]:
    return [*{id(group): group for one in recordings if (group := one.group()) is not None}.values()]


def _end(group: SpanGroup) -> int:
    return group.root.end_ns if group.until_ns is None else group.until_ns


def delegates_of(outer: SpanGroup, others: Iterable[SpanGroup]) -> list[SpanGroup]:
    """Return the turns in a turn's time whose input is an argument of a tool call in it, and whose output is that call's result."""
    during = [
        other for other in others
        if other.root.parent_id == 0 and other.root.trace_id != outer.root.trace_id
        and outer.root.start_ns < other.root.start_ns and _end(other) < _end(outer)
    ]  # fmt: skip
    if not during or LLM not in steps_of(outer).of_role:
        return []
    calls = [call for call in reader_of(outer).tool_calls() or () if isinstance(call.result, str)]
    found = []
    for other in sorted(during, key=order) if calls else ():
        asked, said = reader_of(other).input(), (reader_of(other).output() or "").strip()
        for place, call in enumerate(calls):
            if said == call.result.strip() and asked and asked in (call.arguments or {}).values() and _begins_a_run(other):
                del calls[place]  # each call runs one agent
                found.append(other)
                break
    return found


def _begins_a_run(group: SpanGroup) -> bool:
    """Return True if the first model call of a turn has a span, and doesn't continue another one."""
    turn = steps_of(group)
    if LLM not in turn.of_role:
        return False
    prompt = turn.inputs(turn.llm[0])
    return not prompt or prompt[-1].role in ("system", "user")


def has_no_steps(group: SpanGroup) -> bool:
    """Return True for a run without its own model call or tool."""
    return steps_of(group).root.role in (AGENT, WORKFLOW) and not any(role_in(one) in (LLM, TOOL) for one in group.members)


def calls_of(run: SpanGroup, calls: Iterable[SpanGroup], *, beside: bool) -> list[SpanGroup]:
    """Return the calls of a run without steps by its texts, if any are known. With a run ``beside`` it, one without texts at most."""
    found = [
        (call, agrees)
        for call in calls
        if run.root.start_ns <= call.root.start_ns
        and call.root.end_ns <= run.root.end_ns
        and (agrees := _agrees(run, call)) is not False
    ]
    if not beside:
        return [call for call, _ in found]
    turn = steps_of(run)  # the call of another run must not get this one's user
    unknown = [] if turn.user_id() or turn.conversation_id() else [call for call, _ in found[:1]]
    return [call for call, agrees in found if agrees] or unknown


def is_lost_call(group: SpanGroup) -> bool:
    """Return True for a model call that is the root of its trace."""
    return group.root.parent_id == 0 and role_in(group.root) == LLM


def process_of(record: SpanRecord) -> Hashable:
    """Return what identifies the process of a span, with its tenant."""
    get = record.resource_attributes.get
    return number_in(record.trace_id), str(get("service.name")), str(get("service.instance.id")), str(get("process.pid"))


def _overlap(one: _Recording, other: SpanRecord) -> bool:
    return one.start_ns < other.end_ns and other.start_ns < one.end_ns


def _agrees(run: SpanGroup, call: SpanGroup) -> bool | None:
    """Return True if a run and a call have the same question or answer, and None if neither is known of both."""
    of_run, of_call = reader_of(run), reader_of(call)
    pairs = ((of_run.input(), of_call.input()), (of_run.output(), of_call.output()))
    same = [one.strip() == other.strip() for one, other in pairs if one is not None and other is not None]
    return any(same) if same else None


class _RecordedCalls:
    def __init__(self) -> None:
        self._answered: dict[str, int] = {}
        self._failed: dict[str | None, list[tuple[int, SpanRecord]]] = {}
        """Failed calls by model. They have no response id, so their times decide which of them are duplicates."""

    def place_of(self, group: SpanGroup, new: int) -> int:
        """Return the place of the group that contains the same call, or ``new``."""
        calls = steps_of(group).llm
        if not is_bare_call(group):
            for call in calls:
                if call.response_id is not None:
                    self._answered[call.response_id] = new
                elif call.error is not None:
                    self._failed.setdefault(call.model, []).append((new, call.record))
            return new
        if calls[0].response_id is not None:
            return self._answered.setdefault(calls[0].response_id, new)
        if calls[0].error is None:
            return new
        failed = self._failed.setdefault(calls[0].model, [])
        place = next((at for at, outer in reversed(failed) if _is_within(group.root, outer)), new)
        if place == new and len(group.members) == 1:
            failed.append((new, group.root))
        return place


def _is_within(inner: SpanRecord | _Recording, outer: SpanRecord | _Recording) -> bool:
    return outer.scope != inner.scope and outer.start_ns <= inner.start_ns and inner.end_ns <= outer.end_ns


def together(groups: list[SpanGroup]) -> SpanGroup:
    """Return the first of some groups, extended by the spans of the others. Earlier versions of a part are left out."""
    seen: set[tuple[int, int]] = set()
    latest = []
    for group in sorted(groups, key=lambda group: -len(group.members)):
        if (group.root.trace_id, group.root.span_id) not in seen:
            seen.update((record.trace_id, record.span_id) for record in group.members)
            latest.append(group)
    first, *others = sorted(latest, key=order)
    whole = SpanGroup.joined([first, *others])
    whole.pending = tuple(spans for group in groups for spans in group.pending)
    whole.recordings = [recording for group in groups for recording in group.recordings]
    whole.reason, whole.ancestor = groups[-1].reason, first.ancestor
    whole.until_ns = max(group.root.end_ns if group.until_ns is None else group.until_ns for group in groups)
    whole.reader = reader_of(first).extended([reader_of(group) for group in others], whole.until_ns)
    return whole


class _Recording:
    """A recorded part that is remembered by its calls, with the group that contains it now. Its root is an outline."""

    __slots__ = ("alone", "end_ns", "group", "scope", "span_id", "start_ns", "trace_id")

    def __init__(self, group: SpanGroup, alone: bool) -> None:
        root = group.root
        self.trace_id, self.span_id = root.trace_id, root.span_id
        self.start_ns, self.end_ns, self.scope = root.start_ns, _end(group), root.scope
        self.alone = alone
        """True if it is a model call in a trace of its own. Only such calls have duplicates."""
        self.group = weakref.ref(group)


def _without_content(record: SpanRecord) -> SpanRecord:
    """Return a copy of a span without its content, because thousands are remembered."""
    return SpanRecord(
        "", record.trace_id, record.span_id, record.parent_id, start_ns=record.start_ns, end_ns=record.end_ns, scope=record.scope
    )


class _WaitingDuplicates:
    __slots__ = ("groups", "since")

    def __init__(self, since: float) -> None:
        self.groups: list[SpanGroup] = []
        self.since = since


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
        turn = steps_of(group)
        if self._stitcher.patience > 0 and has_no_steps(group):
            return self._with_its_calls(group, now)
        if self._stitcher.patience <= 0 or not turn.llm:
            return self._stitch(group, now)
        recording = _Recording(group, is_bare_call(group))
        calls = turn.llm[:1] if recording.alone else turn.llm
        duplicates = self._duplicates_of(recording, group, calls) or (self._run_of(group) if recording.alone else {})
        group.recordings = [recording]
        self._remember(recording, group, calls)
        if recording.alone:
            self._remember_latest(recording, process_of(group.root), self._latest)
        if not duplicates or turn.root.thread is not None:
            return self._stitch(group, now)
        if not recording.alone:
            return self._with_calls_of(group, duplicates, now)
        ((beside, other),) = duplicates.items()
        if self._stitcher.holds(other):
            if len(other.recordings) >= _MOST_DUPLICATES:
                return self._stitch(group, now)
            return self._replace(other, together([other, group]), now)
        waiting = self._waiting.setdefault(beside, _WaitingDuplicates(now))
        waiting.groups.append(group)
        self._bytes += group.size
        found: list[SpanGroup] = []
        while self._bytes > self._max_bytes and self._waiting:
            found += self._with_duplicates(next(iter(self._waiting)), now)
        return found

    def _with_its_calls(self, run: SpanGroup, now: float) -> list[SpanGroup]:
        """Join a run without steps with its calls, which arrived earlier in separate traces."""
        recording = _Recording(run, alone=False)
        latest = [(one, one.group()) for one in self._latest.get(process_of(run.root), ())]
        calls = [(one, whole) for one, whole in latest if one.alone and whole is not None and is_lost_call(whole)]
        beside = any(not one.alone and _overlap(one, run.root) for one, _ in latest)
        wanted = calls_of(run, {id(whole): whole for _, whole in calls}.values(), beside=beside)
        run.recordings = [recording]
        self._remember_latest(recording, process_of(run.root), self._latest)
        found = {one: whole for one, whole in calls if whole in wanted}
        return self._with_calls_of(run, found, now) if found else self._stitch(run, now)

    def _run_of(self, call: SpanGroup) -> dict[_Recording, SpanGroup]:
        """Return the run without steps of its own that arrived before its call, or an empty dictionary."""
        runs = [one for one in self._latest.get(process_of(call.root), ()) if not one.alone] if is_lost_call(call) else []
        for one in runs:
            run = one.group()
            if run is None:
                continue
            beside = any(other is not one and _overlap(other, run.root) for other in runs)
            if calls_of(run, [call], beside=beside) and (_agrees(run, call) or not (beside and steps_of(run).llm)):
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
        start, end = whole.root.start_ns, _end(whole)
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
                    if (recording.alone and _is_within(recording, record)) or (other.alone and _is_within(other, call.record))
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

    def _with_calls_of(self, group: SpanGroup, duplicates: dict[_Recording, SpanGroup], now: float) -> list[SpanGroup]:
        """Join a turn with its calls that arrived earlier, each in a separate trace."""
        parts: dict[int, SpanGroup] = {id(group): group}
        others: list[SpanGroup] = []
        for recording, whole in duplicates.items():
            waiting = self._waiting.pop(recording, None)
            if waiting is not None:
                self._bytes -= sum(one.size for one in waiting.groups)
                parts.update((id(one), one) for one in waiting.groups)
            if self._stitcher.holds(whole):
                others += (
                    part for part in self._stitcher.release_parts(whole) if not any(one in duplicates for one in part.recordings)
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
