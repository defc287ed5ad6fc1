"""Which spans make one turn.

The *local root* is a span without a parent, or with one in another process. The turn root is the topmost agent or
workflow span under it (an OpenInference chain counts when a model or an agent works below it); if there is none, the
local root itself when it has LLM steps below; a lone LLM span is its own root. ``create_agent`` and its like are no turn.

A span whose parent was never received and is not remote is an *orphan*: it belongs to the turn that was running when it
started, or to the trace's only turn; when it holds a model call or an agent of its own and fits nowhere, it is a turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..dialects.reader import role_of
from ..dialects.step import AGENT, CHAIN, LLM, WORKFLOW
from ..spans.record import SpanRecord


class Group:
    """The spans of one turn."""

    __slots__ = ("members", "orphans", "root", "root_seen")

    def __init__(self, root: SpanRecord, members: list[SpanRecord], root_seen: bool = True) -> None:
        self.root = root
        self.members = members
        """All spans of the turn, its root included."""
        self.root_seen = root_seen
        self.orphans = 0


class _Node:
    __slots__ = ("children", "record", "role")

    def __init__(self, record: SpanRecord) -> None:
        self.record = record
        self.role = role_of(record.attributes, record.scope, record.name)
        self.children: list[_Node] = []


def split(records: Iterable[SpanRecord]) -> list[Group]:
    """The turns in the spans of one trace, by start time. Spans that belong to no turn are in none of them."""
    nodes: dict[int, _Node] = {}
    for record in records:
        if record.span_id not in nodes:  # a span that was sent twice is one span
            nodes[record.span_id] = _Node(record)
    tops, orphans = [], []
    for node in nodes.values():
        record = node.record
        parent = nodes.get(record.parent_id) if record.parent_id and record.parent_id != record.span_id else None
        if parent is not None:
            parent.children.append(node)
        elif record.parent_id == 0 or record.remote_parent:
            tops.append(node)
        else:
            orphans.append(node)
    groups = [group for top in tops for group in _groups_under(top)]
    for orphan in sorted(orphans, key=lambda node: node.record.start_ns):
        home = _home_of(orphan, groups)
        if home is not None:
            home.members.extend(_records_below(orphan))
            home.orphans += 1
        else:
            groups.extend(_groups_under(orphan, root_seen=orphan.role in (AGENT, WORKFLOW)))
    groups = _join_rootless(groups)
    groups.sort(key=lambda group: group.root.start_ns)
    return groups


def _groups_under(top: _Node, root_seen: bool = True) -> list[Group]:
    roots = _topmost_roots(top)
    if not roots and _holds(top, (LLM,)):
        roots = [top]
    return [Group(root.record, _records_below(root), root_seen) for root in roots]


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
    if len(running) == 1:
        return running[0]
    if len(groups) == 1 and not _holds(orphan, (LLM, AGENT, WORKFLOW)):
        return groups[0]
    return None


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
