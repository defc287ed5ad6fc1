"""Join the parts of turns in a file, however far apart they are."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterable

from ..spans.record import SpanRecord
from .relations import calls_of, delegates_of, end_of, has_no_steps, is_lost_call, is_recorded_within, order, process_of, together
from .roots import SpanGroup
from .separation import separate
from .stitching import Stitcher, is_bare_call, steps_of

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
        place = next((at for at, outer in reversed(failed) if is_recorded_within(group.root, outer)), new)
        if place == new and len(group.members) == 1:
            failed.append((new, group.root))
        return place


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
    for group in sorted(groups, key=end_of):  # inner runs first
        ended = found.setdefault(process_of(group.root), [])
        delegates = delegates_of(
            group, ended[max(bisect_left(ended, group.root.start_ns, key=end_of), len(ended) - _MOST_DELEGATES) :]
        )
        if delegates:
            ended[:] = [one for one in ended if one not in delegates]
        ended.append(together([group, *delegates]) if delegates else group)
    return [group for ended in found.values() for group in ended]
