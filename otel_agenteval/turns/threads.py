"""Join a thread's traces if each message in the thread is a separate trace, as in some agent teams.

A message from outside the thread starts a turn. Later messages join it until, for example, a pause or the next outside message.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..core.tenancy import number_in
from ..dialects.step import AGENT, Step
from .reading.llm_calls import TurnCalls
from .reading.turn import TurnReader
from .roots import SpanGroup

_Key = tuple[int, str]


class Threads:
    """Store of messages that wait for later messages in their conversation thread. Not thread-safe."""

    def __init__(self) -> None:
        self._held: dict[_Key, list[tuple[float, SpanGroup]]] = {}
        self._count = 0
        self.size = 0

    def __len__(self) -> int:
        return self._count

    def add(self, group: SpanGroup, thread: str, now: float) -> None:
        self._held.setdefault((number_in(group.root.trace_id), thread), []).append((now, group))
        self._count += 1
        self.size += group.size

    def due(self, before: float, oldest: float) -> list[SpanGroup]:
        found = []
        for key, held in list(self._held.items()):
            if min(added for added, _ in held) > before:
                continue
            rest = []
            for part in _turns(held):
                if max(added for added, _ in part) <= before or min(added for added, _ in part) <= oldest:
                    found.append(_joined(self._dropped([group for _, group in part])))
                else:
                    rest += part
            if rest:
                self._held[key] = rest
            else:
                del self._held[key]
        return found

    def traces(self) -> set[int]:
        return {group.root.trace_id for held in self._held.values() for _, group in held}

    def forget_traces(self, trace_ids: set[int]) -> list[SpanGroup]:
        found = []
        for key, held in list(self._held.items()):
            found += [group for _, group in held if group.root.trace_id in trace_ids]
            rest = [one for one in held if one[1].root.trace_id not in trace_ids]
            if rest:
                self._held[key] = rest
            else:
                del self._held[key]
        return self._dropped(found)

    def _dropped(self, groups: list[SpanGroup]) -> list[SpanGroup]:
        self._count -= len(groups)
        self.size -= sum(group.size for group in groups)
        return groups

    def forget(self) -> None:
        self._held.clear()
        self._count = self.size = 0


def _turns(held: Iterable[tuple[float, SpanGroup]]) -> list[list[tuple[float, SpanGroup]]]:
    parts: list[list[tuple[float, SpanGroup]]] = []
    for one in sorted(held, key=lambda entry: entry[1].root.start_ns):
        if not parts or _root(one[1]).begins or not _root(parts[-1][0][1]).begins:
            parts.append([one])
        else:
            parts[-1].append(one)
    return parts


def _root(group: SpanGroup) -> Step:
    reader: TurnReader = group.reader
    return reader.root


def _joined(groups: list[SpanGroup]) -> SpanGroup:
    first = groups[0]
    whole = SpanGroup.joined(groups)
    whole.root_seen, whole.ancestor = first.root_seen, first.ancestor
    turn = TurnCalls(first.root, whole.members)
    whole.reader = TurnReader(turn)
    if whole.ancestor is not None:
        turn.share(whole.ancestor)
    turn.until_ns = whole.until_ns = max(record.end_ns for record in whole.members)
    agents = [step for step in turn.steps if step.role == AGENT and step is not turn.root]
    if turn.root.error is None and agents:
        turn.root.error = max(agents, key=lambda step: step.record.end_ns).error
    if turn.root.error is None:
        answers = [step.final_result for step in turn.steps if step.final_result is not None]
        turn.root.final_result = answers[-1] if answers else None
    return whole
