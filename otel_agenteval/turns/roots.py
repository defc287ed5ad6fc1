"""Which spans make one turn.

The *local root* is a span without a parent, or with one in another process. The turn root is the topmost agent or
workflow span under it (an OpenInference chain counts when a model or an agent works below it); if there is none, the
local root itself when it has LLM steps below; a lone LLM span is its own root. ``create_agent`` and its like are no turn.
Runs that an application's own loop makes one after the other, to hand a model what its tools gave, are one turn.

A span whose parent was never received and is not remote is an *orphan*: it belongs to the turn that was running when it
started, or to the trace's only turn; when it holds a model call or an agent of its own and fits nowhere, it is a turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..dialects.content import decode
from ..dialects.reader import read, role_in
from ..dialects.step import AGENT, CHAIN, LLM, WORKFLOW
from ..model import CloseReason
from ..spans.record import SpanRecord
from .state import Portion

_CLOCK_STEP_NS = 2_000_000
"""OpenTelemetry JS starts spans at whole milliseconds, but ends them exactly."""
_TURN_MARKS = (LLM, AGENT, WORKFLOW)
_STOPPED_FOR_TOOLS = frozenset(("tool-calls", "tool_calls", "tool_call", "tool_use"))


class Group:
    """The spans of one turn."""

    __slots__ = ("above", "complete", "members", "orphans", "portions", "reader", "reason", "root", "root_seen", "size")

    def __init__(self, root: SpanRecord, members: list[SpanRecord], root_seen: bool = True) -> None:
        self.root = root
        self.members = members
        """All spans of the turn, its root included."""
        self.root_seen = root_seen
        self.orphans = 0
        self.above: SpanRecord | None = None
        """The span that this turn shares with others: it says who talks, and nothing about this turn."""
        self.reason: CloseReason = "recorded_file"
        self.complete = True
        self.size = 0
        """Bytes that it is taken to hold."""
        self.portions: tuple[Portion, ...] = ()
        """The accounts of the spans in it that were in no turn before."""
        self.reader: Any = None
        """What was read of the spans on the way, so that nothing is read twice."""


class _Node:
    __slots__ = ("children", "record", "role")

    def __init__(self, record: SpanRecord) -> None:
        self.record = record
        self.role = role_in(record)
        self.children: list[_Node] = []


def split(records: Iterable[SpanRecord], known_roots: frozenset[int] = frozenset()) -> list[Group]:
    """The turns in the spans of one trace, by start time. Spans that belong to no turn are in none of them.

    ``known_roots`` are ids of spans that are roots although their parents are not among the records.
    """
    nodes: dict[int, _Node] = {}
    for record in records:
        if record.span_id not in nodes:  # a span that was sent twice is one span
            nodes[record.span_id] = _Node(record)
    tops, orphans, leaks = [], [], []
    for node in nodes.values():
        record = node.record
        parent = nodes.get(record.parent_id) if record.parent_id and record.parent_id != record.span_id else None
        if parent is not None and _may_be_leak(node, parent):
            leaks.append((node, parent))
        elif parent is not None:
            parent.children.append(node)
        elif record.parent_id == 0 or record.remote_parent or record.span_id in known_roots:
            tops.append(node)
        else:
            orphans.append(node)
    for leak, parent in sorted(leaks, key=lambda pair: pair[0].record.start_ns):
        if _holds(leak, _TURN_MARKS) and _holds(_topmost(parent, nodes), _TURN_MARKS):
            tops.append(leak)
        else:
            parent.children.append(leak)
    # What another process did for a caller is a turn of that process, and a step of the caller's turn.
    served = [node for node in nodes.values() if _is_served(node, nodes) and node not in tops and _holds(node, _TURN_MARKS)]
    groups = [group for top in (*tops, *served) for group in _groups_under(top)]
    for orphan in sorted(orphans, key=lambda node: (not _holds(node, (LLM, AGENT, WORKFLOW)), node.record.start_ns)):
        home = _home_of(orphan, groups)
        if home is not None:
            home.members.extend(_records_below(orphan))
            home.orphans += 1
        else:
            groups.extend(_groups_under(orphan, root_seen=orphan.role in (AGENT, WORKFLOW)))
    groups = _join_rootless(groups)
    groups.sort(key=lambda group: group.root.start_ns)
    return groups


def _is_served(node: _Node, nodes: dict[int, _Node]) -> bool:
    """Whether the caller is another process; a context that was carried inside of one process also looks remote."""
    record = node.record
    caller = nodes.get(record.parent_id)
    return record.remote_parent and (caller is None or caller.record.resource != record.resource)


def _groups_under(top: _Node, root_seen: bool = True) -> list[Group]:
    roots = _topmost_roots(top)
    if not roots and _holds(top, (LLM,)):
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
        around = _find(top, loop[0].record.parent_id)
        if around is not None and len(_topmost_roots(around)) == len(loop):
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
    if second.start_ns + _CLOCK_STEP_NS < first.end_ns or read(first).finish_reason not in _STOPPED_FOR_TOOLS:
        return False
    step = read(second)
    given = step.input_value if step.input_messages is None else step.input_messages
    messages = decode(given, "user").messages
    return not messages or messages[-1].role != "user" or bool(messages[-1].tool_results)


def _may_be_leak(node: _Node, parent: _Node) -> bool:
    """A request below another that had ended: a context that was never left, if there is a turn on either side.

    Only an application's own spans: some frameworks end the span of an agent or of a message while its work goes on.
    """
    return node.role is None and parent.role is None and 0 < parent.record.end_ns < node.record.start_ns - _CLOCK_STEP_NS


def _topmost(node: _Node, nodes: dict[int, _Node]) -> _Node:
    """The span above all of a span's ancestors."""
    for _ in range(len(nodes)):  # broken telemetry can hold a circle
        above = nodes.get(node.record.parent_id)
        if above is None or node not in above.children:
            break
        node = above
    return node


def _find(top: _Node, span_id: int) -> _Node | None:
    stack = [top]
    while stack:
        node = stack.pop()
        if node.record.span_id == span_id:
            return node
        stack.extend(node.children)
    return None


def _topmost_roots(top: _Node) -> list[_Node]:
    found, stack = [], [top]
    while stack:
        node = stack.pop()
        if node.role in (AGENT, WORKFLOW) or (node.role == CHAIN and _holds(node, (LLM, AGENT, WORKFLOW))):
            found.append(node)
        else:
            stack.extend(node.children)
    return found


def _holds(top: _Node, roles: Sequence[str]) -> bool:
    stack = [top]
    while stack:
        node = stack.pop()
        if node.role in roles:
            return True
        stack.extend(node.children)
    return False


def _records_below(top: _Node) -> list[SpanRecord]:
    found, stack = [], [top]
    while stack:
        node = stack.pop()
        found.append(node.record)
        stack.extend(node.children)
    return found


def _home_of(orphan: _Node, groups: list[Group]) -> Group | None:
    start = orphan.record.start_ns
    running = [group for group in groups if group.root_seen and group.root.start_ns <= start <= group.root.end_ns]
    if len(running) == 1 and not _is_run_beside(orphan, running[0].root):
        return running[0]
    for group in groups:
        if not group.root_seen and group.root.parent_id == orphan.record.parent_id and orphan.role not in (LLM, AGENT, WORKFLOW):
            return group  # it misses the same parent: what a turn without its root did between its model calls
    if len(groups) == 1 and (not _holds(orphan, (LLM, AGENT, WORKFLOW)) or _is_continued_by(groups[0], orphan)):
        return groups[0]
    return None


def _is_run_beside(orphan: _Node, root: SpanRecord) -> bool:
    """Whether two runs miss the same parent: neither is the other's part, though their times overlap."""
    return orphan.role in (AGENT, WORKFLOW) and orphan.record.parent_id == root.parent_id != 0


def _is_continued_by(group: Group, orphan: _Node) -> bool:
    """Whether a model call whose own parent was lost goes on where one of the turn's stopped for its tools."""
    calls = [record for record in group.members if role_in(record) == LLM]
    return orphan.role == LLM and any(_goes_on(call, orphan.record) for call in calls)


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
