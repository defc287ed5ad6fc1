"""Which spans make one turn.

The *local root* is a span without a parent, or with one in another process. The turn root is the topmost agent or
workflow span under it (an OpenInference chain counts when a model or an agent works below it); if there is none, the
local root itself when it has LLM steps below; a lone LLM span is its own root. ``create_agent`` and its like are no turn.
Runs that an application's own loop makes one after the other, to hand a model what its tools gave, are one turn.

A span whose parent was never received and is not remote is an *orphan*: it belongs to the turn that was running when it
started, or to the trace's only turn; when it holds a model call or an agent of its own and fits nowhere, it is a turn.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import Any

from ..core.turn import CloseReason
from ..dialects.content import decode
from ..dialects.reader import read, review_roles, role_in
from ..dialects.step import AGENT, CHAIN, INNER, LLM, WORKFLOW
from ..spans.record import SpanRecord
from .state import Portion

_CLOCK_STEP_NS = 2_000_000
"""OpenTelemetry JS starts spans at whole milliseconds, but ends them exactly."""
_TURN_MARKS = (LLM, AGENT, WORKFLOW)
_STOPPED_FOR_TOOLS = frozenset(("tool-calls", "tool_calls", "tool_call", "tool_use"))


class Group:
    """The spans of one turn."""

    __slots__ = (
        "__weakref__", "above", "complete", "members", "portions", "reader", "reason", "root", "root_seen", "seen", "size", "until_ns",
    )  # fmt: skip

    def __init__(self, root: SpanRecord, members: list[SpanRecord], root_seen: bool = True) -> None:
        self.root = root
        self.members = members
        """All spans of the turn, its root included."""
        self.root_seen = root_seen
        self.above: SpanRecord | None = None
        """The span above this turn and others: it names user and conversation, and says nothing about this turn."""
        self.reason: CloseReason = "recorded_file"
        self.complete = True
        """Whether every parent that its spans name was seen, up to a local root, and nothing of it is known to be missing or open."""
        self.size = 0
        """Bytes that it is taken to hold."""
        self.portions: tuple[Portion, ...] = ()
        """The accounts of the spans in it that were in no turn before."""
        self.reader: Any = None
        """What was read of the spans on the way, so that nothing is read twice."""
        self.until_ns: int | None = None
        """The end of a turn in several traces."""
        self.seen: list[Any] = []
        """What its parts are known by, for calls that two instrumentations write."""

    @property
    def all_seen(self) -> bool:
        """Whether the turn is complete: whatever closed it, its root and all that it names were there."""
        return self.complete and self.root_seen


_LLM, _AGENT, _WORKFLOW = 1, 2, 4
_MARKS = {LLM: _LLM, AGENT: _AGENT, WORKFLOW: _WORKFLOW}


class _Node:
    """A span in the tree of its trace. Every question about what is below it is answered once, from the leaves up."""

    __slots__ = ("children", "holds", "record", "role", "roots", "up")

    def __init__(self, record: SpanRecord) -> None:
        self.record = record
        self.role: str | None = record.dialects.role  # found out for all spans of the trace before
        self.children: list[_Node] = []
        self.up: _Node | None = None
        self.holds = _MARKS.get(self.role, 0) if self.role is not None else 0
        """Which of :data:`_MARKS` are in its subtree, itself included."""
        self.roots = 0
        """How many topmost agents and workflows are in its subtree."""

    @property
    def is_root(self) -> bool:
        return self.role in (AGENT, WORKFLOW) or (self.role == CHAIN and self.holds != 0)


def split(records: Iterable[SpanRecord], known_roots: frozenset[int] = frozenset(), alone: bool = True) -> list[Group]:
    """The turns in the spans of one trace, by start time. Spans that belong to no turn are in none of them.

    Args:
        records: the spans.
        known_roots: ids of spans that are roots although their parents are not among the records.
        alone: whether the trace has no other turns than these.
    """
    unique: dict[int, SpanRecord] = {}
    for record in records:
        unique.setdefault(record.span_id, record)  # a span that was sent twice is one span
    review_roles(unique.values())
    nodes = {span_id: _Node(record) for span_id, record in unique.items()}
    tops, orphans, leaks = _linked(nodes, known_roots)
    reached = _annotated([*tops, *orphans, *leaks])
    if leaks:
        tops += _left_contexts(leaks)
        reached = _annotated([*tops, *orphans])
    # What another process did for a caller is a turn of that process, and a step of the caller's turn.
    own = set(map(id, tops))
    served = [
        node for node in nodes.values()
        if node.holds and node.record.remote_parent and id(node) in reached and id(node) not in own and _is_served(node, nodes)
    ]  # fmt: skip
    groups = [group for top in (*tops, *served) for group in _groups_under(top)]
    groups += _place_orphans(orphans, groups, alone)
    groups = _join_rootless(groups)
    groups.sort(key=lambda group: (group.root.start_ns, group.root.end_ns, group.root.span_id))
    return groups


def _linked(nodes: dict[int, _Node], known_roots: frozenset[int]) -> tuple[list[_Node], list[_Node], list[_Node]]:
    """Put each span below its parent.

    Returns spans without a parent, spans whose parent is missing, and spans that may be below their parent by mistake (see ``up``).
    """
    tops, orphans, leaks = [], [], []
    for node in nodes.values():
        record = node.record
        parent = nodes.get(record.parent_id) if record.parent_id and record.parent_id != record.span_id else None
        if parent is not None:
            node.up = parent
            if _may_be_leak(node, parent):
                leaks.append(node)
            else:
                parent.children.append(node)
        elif record.parent_id == 0 or record.remote_parent or record.span_id in known_roots:
            tops.append(node)
        else:
            orphans.append(node)
    return tops, orphans, leaks


def _annotated(tops: Iterable[_Node]) -> set[int]:
    """Fill in what every node below ``tops`` holds, and return the ids of these nodes. A cycle, in broken telemetry, is below none."""
    order: list[_Node] = []
    for top in tops:
        start = len(order)
        order.append(top)
        at = start
        while at < len(order):  # parents before their children
            order += order[at].children
            at += 1
    for node in reversed(order):
        holds = _MARKS.get(node.role, 0) if node.role is not None else 0
        roots = 0
        for child in node.children:
            holds |= child.holds
            roots += child.roots
        node.holds = holds
        node.roots = 1 if node.is_root else roots
    return set(map(id, order))


def _left_contexts(leaks: list[_Node]) -> list[_Node]:
    """Of requests below others that had ended, those that are roots of their own; the others go below their parents."""
    tops = []
    highest: dict[int, _Node] = {}
    waiting = set(map(id, leaks))
    for leak in sorted(leaks, key=lambda node: node.record.start_ns):
        waiting.discard(id(leak))
        parent = leak.up
        assert parent is not None
        above = _topmost(parent, waiting, highest)
        if leak.holds and above.holds:
            leak.up = None
            tops.append(leak)
        else:
            parent.children.append(leak)
            at: _Node | None = parent
            while at is not None and at.holds | leak.holds != at.holds:
                at.holds |= leak.holds
                at = None if id(at) in waiting else at.up
    return tops


def _topmost(node: _Node, waiting: set[int], highest: dict[int, _Node]) -> _Node:
    """The span above all of a span's ancestors. ``highest`` holds what was found before, so that no path is walked twice."""
    path = []
    seen = set()
    while True:
        known = highest.get(id(node))
        if known is not None and known is not node:
            above: _Node | None = known
        else:
            above = None if id(node) in waiting else node.up
        if above is None or id(above) in seen:  # broken telemetry can hold a cycle
            break
        path.append(node)
        seen.add(id(node))
        node = above
    for passed in path:
        highest[id(passed)] = node
    return node


def _is_served(node: _Node, nodes: dict[int, _Node]) -> bool:
    """Whether the caller is another process; a context that was carried inside of one process also looks remote."""
    record = node.record
    caller = nodes.get(record.parent_id)
    return record.remote_parent and (caller is None or caller.record.resource != record.resource)


def _groups_under(top: _Node, root_seen: bool = True) -> list[Group]:
    roots = _topmost_roots(top)
    if not roots and top.holds & _LLM:
        roots = [top]
    if len(roots) == 1:
        groups = [Group(roots[0].record, _records_below(roots[0]), root_seen)]
    else:
        groups = [_group_of(loop, top, root_seen) for loop in _loops(roots)]
    for group in groups:
        if group.root is not top.record:  # a request's span around an agent often knows the session that the agent does not
            group.above = top.record
    return groups


def _group_of(loop: list[_Node], top: _Node, root_seen: bool) -> Group:
    """One run, or a loop's runs: under the span around them where that holds nothing else."""
    if len(loop) > 1:
        around = loop[0].up if loop[0] is not top else None
        if around is not None and around.roots == len(loop):
            return Group(around.record, _records_below(around), root_seen)
    return Group(loop[0].record, [record for run in loop for record in _records_below(run)], root_seen)


def _loops(roots: list[_Node]) -> list[list[_Node]]:
    """Runs under the same span, each of which goes on where the one before it stopped for its tools."""
    found: list[list[_Node]] = []
    latest: dict[int, list[_Node]] = {}
    for node in sorted(roots, key=lambda root: root.record.start_ns):
        loop = latest.get(node.record.parent_id)
        if loop is not None and node.record.parent_id and _goes_on(loop[-1].record, node.record):
            loop.append(node)
        else:
            loop = latest[node.record.parent_id] = [node]
            found.append(loop)
    return found


def _goes_on(first: SpanRecord, second: SpanRecord) -> bool:
    return second.start_ns + _CLOCK_STEP_NS >= first.end_ns and _stopped_for_tools(first) and _brings_results(second)


def _stopped_for_tools(record: SpanRecord) -> bool:
    return read(record).finish_reason in _STOPPED_FOR_TOOLS


def _brings_results(record: SpanRecord) -> bool:
    """Whether a prompt ends in something that is not the user's."""
    step = read(record)
    given = step.input_value if step.input_messages is None else step.input_messages
    messages = decode(given, "user").messages
    return not messages or messages[-1].role != "user" or bool(messages[-1].tool_results)


def _may_be_leak(node: _Node, parent: _Node) -> bool:
    """A request below another that had ended: a context that was never left, if there is a turn on either side.

    Only an application's own spans: some frameworks end the span of an agent or of a message while its work goes on.
    """
    return node.role is None and parent.role is None and 0 < parent.record.end_ns < node.record.start_ns - _CLOCK_STEP_NS


def _topmost_roots(top: _Node) -> list[_Node]:
    found, stack = [], [top]
    while stack:
        node = stack.pop()
        if node.is_root:
            found.append(node)
        elif node.roots:
            stack.extend(node.children)
    return found


def _records_below(top: _Node) -> list[SpanRecord]:
    found, stack = [], [top]
    while stack:
        node = stack.pop()
        found.append(node.record)
        stack.extend(node.children)
    return found


# --- spans whose parents are missing


def _place_orphans(orphans: list[_Node], groups: list[Group], alone: bool) -> list[Group]:
    """Give every orphan to the turn that it belongs to. Returns the turns that the other orphans make."""
    found: list[Group] = []
    homes = _Homes(groups, alone)
    for orphan in sorted(orphans, key=lambda node: (not node.holds, node.record.start_ns)):
        home = homes.of(orphan)
        if home is not None:
            home.members.extend(_records_below(orphan))
            home.complete = False
        else:
            more = _groups_under(orphan, root_seen=orphan.role in (AGENT, WORKFLOW))
            if not more and _says_what_was_asked(orphan):
                more = [Group(orphan.record, _records_below(orphan), root_seen=False)]
            for group in more:
                group.complete = False
            found += more
            homes.add(more)
    return found


def _says_what_was_asked(orphan: _Node) -> bool:
    """Whether the first step of an agent's loop is all that is left of a run: some frameworks never send the span of one that failed."""
    return orphan.role == INNER and read(orphan.record).input_messages is not None


class _Homes:
    """The turns that orphans may belong to.

    :meth:`of` is called in the order of the orphans' starts: first for all that hold a model call or an agent, then for the others.
    """

    def __init__(self, groups: list[Group], alone: bool) -> None:
        self._alone = alone
        self._groups: list[Group] = []
        self._of_parent: dict[int, Group] = {}
        """By the missing parent of a turn without its root: the first one."""
        self._own = True
        """Whether all orphans so far held a model call or an agent."""
        self._begins: list[tuple[int, int]] = []
        """Start and number of turns that begin later than all orphans so far."""
        self._running: dict[int, Group] = {}
        self._ends: list[tuple[int, int]] = []
        self._first_stop: int | None = None
        """When the first model call of the only turn that stopped for its tools had ended."""
        self._looked_at = 0
        self.add(groups)

    def add(self, groups: Iterable[Group]) -> None:
        for group in groups:
            if group.root_seen:
                heapq.heappush(self._begins, (group.root.start_ns, len(self._groups)))
            else:
                self._of_parent.setdefault(group.root.parent_id, group)
            self._groups.append(group)

    def of(self, orphan: _Node) -> Group | None:
        record, holds = orphan.record, bool(orphan.holds)
        if self._own and not holds:  # from here on times begin anew
            self._own = False
            seen = [(group.root.start_ns, number) for number, group in enumerate(self._groups) if group.root_seen]
            self._begins, self._ends, self._running = seen, [], {}
            heapq.heapify(self._begins)
        running = self._running_at(record.start_ns)
        if running is not None and not _is_run_beside(orphan, running.root):
            return running
        if orphan.role not in _TURN_MARKS and record.parent_id in self._of_parent:
            return self._of_parent[record.parent_id]  # what a turn without its root did between its model calls
        if self._alone and len(self._groups) == 1 and (not holds or self._is_continued_by(orphan)):
            return self._groups[0]
        return None

    def _running_at(self, time_ns: int) -> Group | None:
        """The one turn whose root was running."""
        while self._begins and self._begins[0][0] <= time_ns:
            number = heapq.heappop(self._begins)[1]
            self._running[number] = self._groups[number]
            heapq.heappush(self._ends, (self._groups[number].root.end_ns, number))
        while self._ends and self._ends[0][0] < time_ns:
            del self._running[heapq.heappop(self._ends)[1]]
        return next(iter(self._running.values())) if len(self._running) == 1 else None

    def _is_continued_by(self, orphan: _Node) -> bool:
        """Whether a model call without its parent goes on where a call of the only turn stopped for its tools."""
        if orphan.role != LLM:
            return False
        members = self._groups[0].members
        for record in members[self._looked_at :]:
            if role_in(record) == LLM and _stopped_for_tools(record):
                self._first_stop = record.end_ns if self._first_stop is None else min(self._first_stop, record.end_ns)
        self._looked_at = len(members)
        record = orphan.record
        return self._first_stop is not None and record.start_ns + _CLOCK_STEP_NS >= self._first_stop and _brings_results(record)


def _is_run_beside(orphan: _Node, root: SpanRecord) -> bool:
    """Whether two runs miss the same parent: neither is the other's part, though their times overlap."""
    return orphan.role in (AGENT, WORKFLOW) and orphan.record.parent_id == root.parent_id != 0


def _join_rootless(groups: list[Group]) -> list[Group]:
    """Spans that miss the same parent are one turn: its root is still to come, or lost."""
    joined: dict[int, Group] = {}
    out = []
    for group in groups:
        if group.root_seen:
            out.append(group)
        elif group.root.parent_id in joined:
            first = joined[group.root.parent_id]
            first.members.extend(group.members)
            if group.root.start_ns < first.root.start_ns:
                first.root = group.root
        else:
            joined[group.root.parent_id] = group
            out.append(group)
    return out
