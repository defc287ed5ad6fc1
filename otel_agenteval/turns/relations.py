"""Join a process's traces that belong to the same turn.

A turn has several traces if the context wasn't propagated, or if two instrumentations recorded one model call.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterable
from typing import Protocol

from ..core.tenancy import number_in
from ..dialects.reader import role_in
from ..dialects.step import AGENT, LLM, TOOL, WORKFLOW
from ..spans.record import SpanRecord
from .reading.call_spans import is_next_call
from .roots import SpanGroup
from .separation import separate
from .stitching import Stitcher, is_bare_call, reader_of, steps_of


class Timed(Protocol):
    start_ns: int
    end_ns: int
    scope: str


def order(group: SpanGroup) -> tuple[int, int, int, int]:
    """Return a sort key for turns by start time. The order doesn't depend on the order of the input files."""
    root = group.root
    return root.start_ns, root.end_ns, root.span_id, root.trace_id


def end_of(group: SpanGroup) -> int:
    return group.root.end_ns if group.until_ns is None else group.until_ns


def process_of(record: SpanRecord) -> Hashable:
    get = record.resource_attributes.get
    return number_in(record.trace_id), str(get("service.name")), str(get("service.instance.id")), str(get("process.pid"))


def has_no_steps(group: SpanGroup) -> bool:
    """Return True if the root is an agent or workflow, and the group contains neither model calls nor tools."""
    return steps_of(group).root.role in (AGENT, WORKFLOW) and not any(role_in(one) in (LLM, TOOL) for one in group.members)


def is_lost_call(group: SpanGroup) -> bool:
    return group.root.parent_id == 0 and role_in(group.root) == LLM


def calls_of(run: SpanGroup, calls: Iterable[SpanGroup], *, concurrent: bool) -> list[SpanGroup]:
    """Return the model calls in other traces that an agent run made. These are calls during the run for which :func:`agree` doesn't
    return False. If another run is ``concurrent``, return only calls for which :func:`agree` returns True. If no call
    qualifies, return the first call for which it returns None, or nothing if the run has a user ID or a conversation ID.
    """
    found = [
        (call, agrees)
        for call in calls
        if run.root.start_ns <= call.root.start_ns
        and call.root.end_ns <= run.root.end_ns
        and (agrees := agree(run, call)) is not False
    ]
    if not concurrent:
        return [call for call, _ in found]
    turn = steps_of(run)  # never assign another run's call to this run's user
    unknown = [] if turn.user_id() or turn.conversation_id() else [call for call, _ in found[:1]]
    return [call for call, agrees in found if agrees] or unknown


def agree(run: SpanGroup, call: SpanGroup) -> bool | None:
    """Return True if a run and a call have equal inputs or equal outputs, False if not, or None if texts are missing."""
    of_run, of_call = reader_of(run), reader_of(call)
    pairs = ((of_run.input(), of_call.input()), (of_run.output(), of_call.output()))
    same = [one.strip() == other.strip() for one, other in pairs if one is not None and other is not None]
    return any(same) if same else None


def delegates_of(outer: SpanGroup, others: Iterable[SpanGroup]) -> list[SpanGroup]:
    """Return turns that tools of ``outer`` started: the turn's input is a tool's argument, and its output is this tool's result."""
    during = [
        other for other in others
        if other.root.parent_id == 0 and other.root.trace_id != outer.root.trace_id
        and outer.root.start_ns < other.root.start_ns and end_of(other) < end_of(outer)
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
    """Return True if the turn starts with a new prompt, or False if it has no call, or its first call continues an earlier call."""
    turn = steps_of(group)
    if LLM not in turn.of_role:
        return False
    prompt = turn.inputs(turn.llm[0])
    return not prompt or prompt[-1].role in ("system", "user")


def is_recorded_within(inner: Timed, outer: Timed) -> bool:
    return outer.scope != inner.scope and outer.start_ns <= inner.start_ns and inner.end_ns <= outer.end_ns


def is_next_to(one: SpanGroup, other: SpanGroup) -> bool:
    """Return True if no model call is in both groups. Calls with equal response IDs can differ, so also compare times and texts."""
    first, last = steps_of(one), steps_of(other)
    pairs = [((first, a), (last, b)) for a in first.llm for b in last.llm if a.response_id == b.response_id]
    in_order = (sorted(pair, key=lambda call: call[1].record.start_ns) for pair in pairs)
    return all(is_next_call(*earlier, *later) for earlier, later in in_order)


def together(groups: list[SpanGroup]) -> SpanGroup:
    """Join span groups. The result has the earliest group's root. Drop groups whose root is in an equal or larger group."""
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
    whole.until_ns = max(map(end_of, groups))
    whole.reader = reader_of(first).extended([reader_of(group) for group in others], whole.until_ns)
    return whole


# --- parts of turns in recorded files

_MOST_DELEGATES = 256
"""Maximum number of a process's earlier turns that are compared with a turn's tool calls."""
_MOST_REPEATED = 32
"""Maximum number of earlier groups that are compared with a model call because they have the same response ID."""


def stitch(groups: Iterable[SpanGroup]) -> list[SpanGroup]:
    """Return the turns in recorded span groups, sorted by start time. One turn's groups can be far apart in the recording."""
    parts = join_duplicates([part for group in groups for part in separate(group)])
    if len(parts) == 1 and steps_of(parts[0]).root.thread is None:
        return parts
    stitcher = Stitcher(float("inf"))
    found = [whole for part in parts for whole in stitcher.add(part, 0.0)]
    found += stitcher.release_all()
    return sorted(_with_delegates(_with_calls(found)), key=order)


def join_duplicates(groups: list[SpanGroup]) -> list[SpanGroup]:
    """Join span groups that contain two instrumentations' recordings of the same model call."""
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


class _RecordedCalls:
    def __init__(self) -> None:
        self._answered: dict[str, list[tuple[int, SpanGroup]]] = {}
        self._failed: dict[str | None, list[tuple[int, SpanRecord]]] = {}
        """Failed calls by model, as (group index, span). These calls lack response IDs, so their times identify duplicates."""

    def place_of(self, group: SpanGroup, new: int) -> int:
        """Return the index of the earlier group that contains the single call ``group``, or ``new`` for any other group."""
        calls = steps_of(group).llm
        if not is_bare_call(group):
            for call in calls:
                if call.response_id is not None:
                    self._answered.setdefault(call.response_id, []).append((new, group))
                elif call.error is not None:
                    self._failed.setdefault(call.model, []).append((new, call.record))
            return new
        if calls[0].response_id is not None:
            answered = self._answered.setdefault(calls[0].response_id, [])
            place = next((at for at, other in answered[: -_MOST_REPEATED - 1 : -1] if not is_next_to(other, group)), new)
            if place == new:
                answered.append((new, group))
            return place
        if calls[0].error is None:
            return new
        failed = self._failed.setdefault(calls[0].model, [])
        place = next((at for at, outer in reversed(failed) if is_recorded_within(group.root, outer)), new)
        if place == new and len(group.members) == 1:
            failed.append((new, group.root))
        return place


def _with_calls(groups: list[SpanGroup]) -> list[SpanGroup]:
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
            concurrent = latest > run.root.start_ns or any(
                _start(other) < run.root.end_ns for other in of_process[place + 1 : place + 2]
            )
            latest = max(latest, run.root.end_ns)
            own_calls = calls_of(run, [call for call in during if id(call) not in taken], concurrent=concurrent)
            if own_calls:
                taken.update(map(id, own_calls))
                found[id(run)] = together([run, *own_calls])
    return [group for key, group in found.items() if key not in taken]


def _start(group: SpanGroup) -> int:
    return group.root.start_ns


def _with_delegates(groups: list[SpanGroup]) -> list[SpanGroup]:
    found: dict[Hashable, list[SpanGroup]] = {}
    for group in sorted(groups, key=end_of):  # inner runs first
        ended = found.setdefault(process_of(group.root), [])
        first = max(bisect_left(ended, group.root.start_ns, key=end_of), len(ended) - _MOST_DELEGATES)
        delegates = delegates_of(group, ended[first:])
        if delegates:
            ended[:] = [one for one in ended if one not in delegates]
        ended.append(together([group, *delegates]) if delegates else group)
    return [group for ended in found.values() for group in ended]
