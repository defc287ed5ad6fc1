"""Find the turn of each tool whose spans are in a separate trace, because the context wasn't propagated.

The tool belongs to the only turn that was running in the same process when the tool started. If several turns or no turn were
running, the tool's spans are counted as ``not_in_a_turn``.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator

from ..dialects.reader import is_lost_tool, role_in
from ..dialects.step import AGENT, LLM, WORKFLOW
from ..spans.record import SpanRecord
from .relations import order, process_of, together
from .roots import SpanGroup, Times

_MOST_TOOLS = 256
_MOST_TURNS = 32
_MOST_PROCESSES = 256


def is_tool_alone(group: SpanGroup) -> bool:
    return is_lost_tool(group.root) and not any(role_in(record) in (LLM, AGENT, WORKFLOW) for record in group.members)


def lone_tool_in(records: list[SpanRecord]) -> list[SpanGroup]:
    tops = [record for record in records if not record.parent_id]
    return [SpanGroup(tops[0], records)] if len(tops) == 1 and is_lost_tool(tops[0]) else []


def _end_of(turn: SpanGroup) -> int:
    return max(record.end_ns for record in turn.members)


def with_tools(turns: list[SpanGroup], tools: Iterable[SpanGroup]) -> tuple[list[SpanGroup], list[SpanGroup]]:
    """Join each tool with the only turn that was running in its process when it started. Return (all turns, unjoined tools)."""
    running: dict[Hashable, Times[int]] = {}
    for place, turn in enumerate(turns):
        running.setdefault(process_of(turn.root), Times()).add(turn.root.start_ns, _end_of(turn), place)
    parts: dict[int, list[SpanGroup]] = {}
    left: list[SpanGroup] = []
    for tool in sorted(tools, key=order):
        times = running.get(process_of(tool.root))
        owner = None if times is None else times.only_at(tool.root.start_ns)
        (left if owner is None else parts.setdefault(owner, [])).append(tool)
    return [together([turn, *parts[place]]) if place in parts else turn for place, turn in enumerate(turns)], left


class _ReleasedTurn:
    __slots__ = ("end_ns", "group", "root", "start_ns")

    def __init__(self, group: SpanGroup) -> None:
        self.root = group.root.trace_id, group.root.span_id
        self.start_ns, self.end_ns = group.root.start_ns, _end_of(group)
        self.group = weakref.ref(group)


class LostTools:
    """Tools in separate traces that wait for their turn. A tool waits up to ``patience`` seconds, or longer if an open turn might
    have called it. ``running(time_ns)`` returns one span per unreleased trace that might have called it. Not thread-safe.
    """

    def __init__(self, patience: float, running: Callable[[int], Iterable[SpanRecord]]) -> None:
        self._patience = patience
        self._running = running
        self.forget()

    def forget(self) -> None:
        self._tools: deque[tuple[float, SpanGroup]] = deque()
        self._turns: OrderedDict[Hashable, deque[_ReleasedTurn]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._tools)

    def traces(self) -> set[int]:
        return {tool.root.trace_id for _, tool in self._tools}

    def forget_traces(self, trace_ids: set[int]) -> list[SpanGroup]:
        dropped = [tool for _, tool in self._tools if tool.root.trace_id in trace_ids]
        self._tools = deque(entry for entry in self._tools if entry[1].root.trace_id not in trace_ids)
        return dropped

    def add(self, tool: SpanGroup, now: float) -> list[SpanGroup]:
        """Hold a tool. If more than 256 tools are held, remove the oldest tool, and return its spans without a turn."""
        self._tools.append((now, tool))
        return [self._tools.popleft()[1]] if len(self._tools) > _MOST_TOOLS else []

    def joined(self, turn: SpanGroup) -> SpanGroup:
        """Remember a released turn. Return this turn joined with its tools that arrived earlier."""
        process = process_of(turn.root)
        turns = self._turns.setdefault(process, deque(maxlen=_MOST_TURNS))
        self._turns.move_to_end(process)
        if turn.until_ns is not None or any(one.root[0] == turn.root.trace_id for one in turns):
            # includes roots of turns that were released before
            inside = {(record.trace_id, record.span_id) for record in turn.members}
            turns = self._turns[process] = deque((one for one in turns if one.root not in inside), maxlen=_MOST_TURNS)
        turns.append(_ReleasedTurn(turn))
        if len(self._turns) > _MOST_PROCESSES:
            self._turns.popitem(last=False)
        return self._join(turn, [tool for _, tool in self._tools if self._owner_of(tool) is turn]) if self._tools else turn

    def due(self, now: float, *, everything: bool = False) -> Iterator[tuple[SpanGroup, bool]]:
        """Remove tools that have waited long enough. Yield ``(turn with its tools, True)``, or ``(tool, False)`` without a turn."""
        found: dict[int, tuple[SpanGroup, list[SpanGroup]]] = {}
        for since, tool in [*self._tools]:
            if now - since < self._patience and not everything:
                break
            owner = self._owner_of(tool, everything)
            if owner is None and not everything and any(self._unreleased_traces_at(tool)):
                continue
            self._tools.remove((since, tool))
            if owner is None:
                yield tool, False
            else:
                found.setdefault(id(owner), (owner, []))[1].append(tool)
        for turn, tools in found.values():
            yield self._join(turn, tools), True

    def _join(self, turn: SpanGroup, tools: list[SpanGroup]) -> SpanGroup:
        if not tools:
            return turn
        ids = set(map(id, tools))
        self._tools = deque(entry for entry in self._tools if id(entry[1]) not in ids)
        whole = together([turn, *tools])
        remembered = [one for one in self._turns.get(process_of(turn.root), ()) if one.group() is turn]
        for one in (*whole.recordings, *remembered):
            one.group = weakref.ref(whole)
        return whole

    def _owner_of(self, tool: SpanGroup, at_end: bool = False) -> SpanGroup | None:
        at = tool.root.start_ns
        owners = [one for one in self._turns.get(process_of(tool.root), ()) if one.start_ns <= at <= one.end_ns]
        if len(owners) != 1 or (not at_end and any(trace != owners[0].root[0] for trace in self._unreleased_traces_at(tool))):
            return None
        return owners[0].group()

    def _unreleased_traces_at(self, tool: SpanGroup) -> Iterator[int]:
        process = process_of(tool.root)
        return (span.trace_id for span in self._running(tool.root.start_ns) if process_of(span) == process)
