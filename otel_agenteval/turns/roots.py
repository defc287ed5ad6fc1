"""Choose which spans of a trace make one turn.

The *local root* is a span without a parent, or with a parent in another process. The turn root is the topmost agent
or workflow span below it. An OpenInference chain counts if a model or an agent works below it. Without such a span,
the local root is the turn root if it has model calls below it. A model call alone is its own root. ``create_agent``
and similar spans aren't turns. Agent runs in sequence are one turn if the application passes tool results from each
run to the next, or if a graph without a parent contains them.

Model and tool spans beside a run belong to it if they started within its time, and within no other run's.

An *orphan* is a span whose parent isn't remote and was never received. It joins the turn that was running when it
started, or the trace's only turn. If no turn fits and it contains a model call or an agent, it is a turn of its own.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterable, Sequence
from operator import attrgetter
from typing import Any, Generic, TypeVar

from ..core.turn import CloseReason, Message
from ..dialects.content import decode
from ..dialects.generic.kinds import is_graph
from ..dialects.reader import read, review_roles, role_in
from ..dialects.step import AGENT, CHAIN, INNER, LLM, ROOT_ROLES, TOOL, UNKNOWN, WORKFLOW
from ..spans.record import ERROR, LogPart, SpanRecord
from .items import are_items
from .logged import add_answers, add_prompt, calls_in, take_logged, turns_by_prompts
from .state import PendingSpans

_CLOCK_STEP_NS = 2_000_000
"""Tolerance for OpenTelemetry JS, which starts spans at whole milliseconds but ends them exactly."""
_MOST_NODES = 32
"""Maximum number of runs that one graph has."""
_T = TypeVar("_T")
_START = attrgetter("record.start_ns")
_TURN_MARKS = (LLM, AGENT, WORKFLOW)
_LLM, _AGENT, _WORKFLOW = 1, 2, 4
_MARKS = {LLM: _LLM, AGENT: _AGENT, WORKFLOW: _WORKFLOW}
_NOT_ADOPTED = ROOT_ROLES | {UNKNOWN}
_STOPPED_FOR_TOOLS = frozenset(("tool-calls", "tool_calls", "tool_call", "tool_use"))


class SpanGroup:
    __slots__ = (
        "__weakref__", "ancestor", "complete", "members", "pending", "reader", "reason", "recordings", "root", "root_seen", "size", "until_ns",
    )  # fmt: skip

    def __init__(self, root: SpanRecord, members: list[SpanRecord], root_seen: bool = True) -> None:
        self.root = root
        self.members = members
        """All spans of the turn, including its root."""
        self.root_seen = root_seen
        self.ancestor: SpanRecord | None = None
        """A span above this turn, possibly shared with other turns. Only its user and conversation are used."""
        self.reason: CloseReason = "recorded_file"
        self.complete = True
        """True if every parent was seen, up to a local root, and no span is known to be missing or open."""
        self.size = 0
        self.pending: tuple[PendingSpans, ...] = ()
        """Accounts of the spans that were in no turn before."""
        self.reader: Any = None
        """The reader of the spans, kept so that they are read only once."""
        self.until_ns: int | None = None
        """The end of a turn in several traces."""
        self.recordings: list[Any] = []
        """Entries by which :class:`~.duplicates.Duplicates` remembers its parts."""

    @classmethod
    def joined(cls, groups: Sequence[SpanGroup]) -> SpanGroup:
        """Return the parts of one turn as one group with the root of the first part. The caller sets the reader."""
        whole = cls(groups[0].root, [record for group in groups for record in group.members])
        whole.root_seen, whole.complete = all(group.root_seen for group in groups), all(group.complete for group in groups)
        whole.reason = groups[-1].reason
        whole.size = sum(group.size for group in groups)
        whole.pending = tuple(spans for group in groups for spans in group.pending)
        whole.recordings = [recording for group in groups for recording in group.recordings]
        return whole

    @property
    def all_seen(self) -> bool:
        """True if the turn is complete and its root was seen, for any close reason."""
        return self.complete and self.root_seen


class _Node:
    """A span in the tree of its trace, with a summary of its subtree."""

    __slots__ = ("children", "holds", "record", "role", "roots", "up")

    def __init__(self, record: SpanRecord) -> None:
        self.record = record
        self.role: str | None = record.dialects.role  # set for all spans of the trace before
        self.children: list[_Node] = []
        self.up: _Node | None = None
        self.holds = _MARKS.get(self.role, 0) if self.role is not None else 0
        """Bits of :data:`_MARKS` for the roles in its subtree, including its own."""
        self.roots = 0
        """Number of topmost agents and workflows in its subtree."""

    @property
    def is_root(self) -> bool:
        return self.role in (AGENT, WORKFLOW) or (self.role == CHAIN and self.holds != 0)


def split(
    records: Iterable[SpanRecord], known_roots: frozenset[int] = frozenset(), alone: bool = True, loose: Iterable[LogPart] = ()
) -> list[SpanGroup]:
    """Return the turns in the spans of one trace, by start time. ``known_roots`` are roots although their parents aren't among
    the records. ``alone`` is True if these are the trace's only turns. ``loose`` are log records without a span here.
    """
    unique: dict[int, SpanRecord] = {}
    for record in records:
        unique.setdefault(record.span_id, record)  # a span that was sent twice is one span
    logged = take_logged(unique.values(), loose)
    groups = _groups(unique, known_roots, alone)
    if not logged:
        return groups
    roots = [group.root for group in groups] or [record for record in unique.values() if record.parent_id not in unique]
    root = roots[0] if len(roots) == 1 else None  # of the only turn or, without a turn, the only local root
    models = [record for record in unique.values() if record.dialects.role == LLM]
    for record in unique.values():
        record.dialects = None  # the calls may be what shows that these spans are a model's work
    turns = turns_by_prompts(logged, unique, models)
    calls = calls_in(logged, [*unique.values()], turns or [root] if root is not None else turns)
    unique.update((call.span_id, call) for call in calls)
    if not turns and root is not None and (groups or calls):
        add_prompt(logged, root)
        turns = [root]
    add_answers(logged, unique, turns)
    return _groups(unique, known_roots, alone)


def _groups(unique: dict[int, SpanRecord], known_roots: frozenset[int], alone: bool) -> list[SpanGroup]:
    review_roles(unique.values())
    nodes = {span_id: _Node(record) for span_id, record in unique.items()}
    local_roots, orphans, leaks = _link(nodes, known_roots)
    local_roots = _adopt_parentless(local_roots)
    reached = _annotate([*local_roots, *orphans, *leaks])
    if leaks:
        local_roots += _split_leaks(leaks)
        reached = _annotate([*local_roots, *orphans])
    tops = [*local_roots, *_served_roots(nodes, local_roots, reached)]
    groups = [group for top in tops for group in _groups_under(top)]
    if orphans:
        groups = _join_rootless(groups + _place_orphans(orphans, groups, alone))
    groups.sort(key=lambda group: (group.root.start_ns, group.root.end_ns, group.root.span_id))
    return groups


def _served_roots(nodes: dict[int, _Node], local_roots: list[_Node], reached: list[_Node]) -> list[_Node]:
    """Return work that another process did for a caller: a turn of that process and a step of the caller's turn."""
    found = [node for node in reached if node.record.remote_parent and node.holds]
    own = set(map(id, local_roots)) if found else ()
    # A context that is carried within one process also seems to be remote.
    found = [
        node for node in found
        if id(node) not in own
        and (caller := nodes.get(node.record.parent_id)) is not None and caller.record.resource != node.record.resource
    ]  # fmt: skip
    if len(found) < 2:
        return found
    wanted = set(map(id, found))
    return [node for node in nodes.values() if id(node) in wanted]


def _link(nodes: dict[int, _Node], known_roots: frozenset[int]) -> tuple[list[_Node], list[_Node], list[_Node]]:
    """Attach each span to its parent. Returns spans without a parent, spans whose parent is missing, and spans that may have the
    wrong parent (see :func:`_may_be_leak`).
    """
    local_roots, orphans, leaks = [], [], []
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
            local_roots.append(node)
        else:
            orphans.append(node)
    return local_roots, orphans, leaks


def _annotate(local_roots: Iterable[_Node]) -> list[_Node]:
    """Return all nodes below ``local_roots``, with summaries of their subtrees. Cycles in broken telemetry aren't among them."""
    order: list[_Node] = []
    for top in local_roots:
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
    return order


def _split_leaks(leaks: list[_Node]) -> list[_Node]:
    """Return the requests below ended requests that are themselves roots. The others are attached to their parents."""
    local_roots = []
    highest: dict[int, _Node] = {}
    waiting = set(map(id, leaks))
    for leak in sorted(leaks, key=lambda node: node.record.start_ns):
        waiting.discard(id(leak))
        parent = leak.up
        assert parent is not None
        ancestor = _topmost(parent, waiting, highest)
        if leak.holds and ancestor.holds and (leak.record.server or _starts_after(leak, ancestor)):
            leak.up = None
            local_roots.append(leak)
        else:
            parent.children.append(leak)
            at: _Node | None = parent
            while at is not None and at.holds | leak.holds != at.holds:
                at.holds |= leak.holds
                at = None if id(at) in waiting else at.up
    return local_roots


def _topmost(node: _Node, waiting: set[int], highest: dict[int, _Node]) -> _Node:
    """Return the topmost ancestor of a span. ``highest`` caches results, so that no path is walked twice."""
    path = []
    seen = set()
    while True:
        known = highest.get(id(node))
        if known is not None and known is not node:
            ancestor: _Node | None = known
        else:
            ancestor = None if id(node) in waiting else node.up
        if ancestor is None or id(ancestor) in seen:  # broken telemetry can hold a cycle
            break
        path.append(node)
        seen.add(id(node))
        node = ancestor
    for passed in path:
        highest[id(passed)] = node
    return node


def _groups_under(top: _Node, root_seen: bool = True) -> list[SpanGroup]:
    roots = _topmost_roots(top)
    if not roots and top.holds & _LLM:
        roots = [top]
    if len(roots) > 1 and top.role is None and _is_graph(top, roots):
        roots = [top]
    loops = (_split_items(roots[0]) or [roots]) if len(roots) == 1 else _split_loops(roots)
    groups = [_group_of(loop, top, root_seen) for loop in loops]
    if loops != [[top]]:
        _add_spans_beside(loops, groups)
    for group in groups:
        if group.root is not top.record:  # the request's span often has a session id that the agent's span lacks
            group.ancestor = top.record
    return groups


def _group_of(loop: list[_Node], top: _Node, root_seen: bool) -> SpanGroup:
    """Return the group of a loop's runs. Its root is the span around them if that span contains no other run."""
    if len(loop) > 1:
        around = loop[0].up if loop[0] is not top else None
        while around is not None and around is not top and around.roots < len(loop):
            around = around.up
        if around is not None and around.roots == len(loop):
            return SpanGroup(around.record, _records_below(around), root_seen)
    return SpanGroup(loop[0].record, [record for run in loop for record in _records_below(run)], root_seen)


def _split_items(root: _Node) -> list[list[_Node]]:
    """Return the calls of each item that a span handles, or an empty list if they are one turn."""
    if root.role not in (None, CHAIN, WORKFLOW):
        return []
    found = sorted((child for child in root.children if child.holds & _LLM), key=_START)
    if len(found) < 2 or len({child.record.name for child in found}) > 1:  # steps of one job have names of their own
        return []
    calls = [call for child in found for call in _calls_in(child)]
    return [[child] for child in found] if len(calls) == len(found) and are_items(root.record, calls) else []


def _calls_in(node: _Node) -> list[SpanRecord]:
    """Return the outermost model calls in a span."""
    found, open_nodes = [], [node]
    while open_nodes:
        at = open_nodes.pop()
        if at.role == LLM:
            found.append(at.record)
        else:
            open_nodes += (child for child in at.children if child.holds & _LLM)
    return found


def _split_loops(roots: list[_Node]) -> list[list[_Node]]:
    found: list[list[_Node]] = []
    latest: dict[int, list[_Node]] = {}
    for node in sorted(roots, key=_START):
        beside = latest.get(node.record.parent_id) if node.record.parent_id else None
        if beside is not None and _is_continued(beside[-1].record, node.record):
            loop = beside
        elif found and _is_next(found[-1][-1], node):
            loop = found[-1]
        else:
            loop = []
            found.append(loop)
        loop.append(node)
        latest[node.record.parent_id] = loop
    return found


def _is_next(first: _Node, second: _Node) -> bool:
    """Return True if a run answers the tool calls that another one requested, or tries its prompt again after an error."""
    if second.record.start_ns + _CLOCK_STEP_NS < first.record.end_ns or not first.holds & second.holds & _LLM:
        return False
    before, after = max(_calls_in(first), key=attrgetter("end_ns")), min(_calls_in(second), key=attrgetter("start_ns"))
    if first.record.status == ERROR and first.record.name == second.record.name:
        asked = _prompt_of(before)
        return bool(asked) and asked == _prompt_of(after)
    step = read(before)
    made = step.output_value if step.output_messages is None else step.output_messages
    asks = {call.call_id for message in decode(made, "assistant").messages for call in message.tool_calls} - {None}
    return bool(asks) and not asks.isdisjoint(result.call_id for message in _prompt_of(after) for result in message.tool_results)


def _prompt_of(record: SpanRecord) -> list[Message]:
    step = read(record)
    return decode(step.input_value if step.input_messages is None else step.input_messages, "user").messages


def _is_graph(top: _Node, runs: list[_Node]) -> bool:
    """Return True if a span without a parent is a graph whose runs are one turn: none answers a new user message."""
    record = top.record
    if record.parent_id or record.server or len(runs) > _MOST_NODES or not is_graph(record.name):
        return False
    known: list[str] = []
    for run in sorted(runs, key=lambda node: node.record.start_ns):
        step = read(run.record)
        asked = _text_in(step.input_value if step.input_messages is None else step.input_messages, "user")
        if asked and known and not any(text in asked or asked in text for text in known):
            return False
        made = step.output_value if step.output_messages is None else step.output_messages
        known += filter(None, (asked, _text_in(made if step.final_result is None else step.final_result, "assistant")))
    return True


def _text_in(raw: Any, role: str) -> str | None:
    messages = reversed(decode(raw, role).messages)
    return next((message.content for message in messages if message.role == role and message.content), None)


def _add_spans_beside(loops: list[list[_Node]], groups: list[SpanGroup]) -> None:
    """Add the spans next to a run that started within its time, and within no other run's."""
    beside: dict[int, tuple[_Node, list[tuple[_Node, SpanGroup]]]] = {}
    for loop, group in zip(loops, groups, strict=True):
        for run in loop:
            if run.up is not None and run.up.record is not group.root and len(run.up.children) > 1:
                beside.setdefault(id(run.up), (run.up, []))[1].append((run, group))
    for parent, runs in beside.values():
        others = [child for child in parent.children if not child.roots and (child.role is not None or child.holds)]
        if others:
            times = Times((run.record.start_ns, run.record.end_ns, group) for run, group in runs)
            for child in sorted(others, key=_START):
                owner = times.only_at(child.record.start_ns)
                if owner is not None:
                    owner.members += _records_below(child)


def _adopt_parentless(local_roots: list[_Node]) -> list[_Node]:
    """Attach model and tool spans without a parent to the request or run of their process in whose time they started."""
    if len(local_roots) < 2:
        return local_roots
    hosts = [node for node in local_roots if node.role is None or node.role in ROOT_ROLES]
    if not hosts or len(hosts) == len(local_roots):
        return local_roots
    running: dict[Hashable, Times[_Node]] = {}
    for host in hosts:
        running.setdefault(_process(host), Times()).add(host.record.start_ns, host.record.end_ns, host)
    found: list[_Node] = []
    for node in sorted(local_roots, key=_START):
        times = None if node.role is None or node.role in _NOT_ADOPTED else running.get(_process(node))
        node.up = None if times is None else times.only_at(node.record.start_ns)
        (found if node.up is None else node.up.children).append(node)
    return found


def _process(node: _Node) -> Hashable:
    resource = node.record.resource_attributes
    return node.record.parent_id, str(resource.get("service.name")), str(resource.get("service.instance.id"))


class Times(Generic[_T]):
    """Periods, to find the only one that contains a moment. Call :meth:`only_at` by time."""

    def __init__(self, periods: Iterable[tuple[int, int, _T]] = ()) -> None:
        self._of: list[tuple[int, _T]] = []
        """End and owner of each period."""
        self._begins: list[tuple[int, int]] = []
        """Start and number of the periods that begin later than all moments so far."""
        self._running: dict[int, _T] = {}
        self._ends: list[tuple[int, int]] = []
        for start, end, owner in periods:
            self.add(start, end, owner)

    def add(self, start: int, end: int, owner: _T) -> None:
        heapq.heappush(self._begins, (start, len(self._of)))
        self._of.append((end, owner))

    def only_at(self, time_ns: int) -> _T | None:
        """Return the owner of the period that contains a moment, if there is exactly one."""
        while self._begins and self._begins[0][0] <= time_ns:
            number = heapq.heappop(self._begins)[1]
            end, self._running[number] = self._of[number]
            heapq.heappush(self._ends, (end, number))
        while self._ends and self._ends[0][0] < time_ns:
            del self._running[heapq.heappop(self._ends)[1]]
        return next(iter(self._running.values())) if len(self._running) == 1 else None


def _starts_after(node: _Node, other: _Node) -> bool:
    return 0 < other.record.end_ns < node.record.start_ns - _CLOCK_STEP_NS


def _is_continued(first: SpanRecord, second: SpanRecord) -> bool:
    return second.start_ns + _CLOCK_STEP_NS >= first.end_ns and _stopped_for_tools(first) and _ends_with_results(second)


def _stopped_for_tools(record: SpanRecord) -> bool:
    return read(record).finish_reason in _STOPPED_FOR_TOOLS


def _ends_with_results(record: SpanRecord) -> bool:
    """Return True if a prompt doesn't end with a user message."""
    messages = _prompt_of(record)
    return not messages or messages[-1].role != "user" or bool(messages[-1].tool_results)


def _may_be_leak(node: _Node, parent: _Node) -> bool:
    """Return True if a request started below a request that had ended: the application may have forgotten to detach a context.
    Some frameworks end the span of an agent or a message while its work continues, so only spans of the application count.
    """
    return node.role is None and parent.role is None and _starts_after(node, parent)


def _topmost_roots(top: _Node) -> list[_Node]:
    """Return the topmost agents, but none that a tool runs if a model call before it is in no agent: the tool's loop has none."""
    found: list[_Node] = []
    in_tools: list[_Node] = []
    stack, calls = [(top, False)], []
    while stack:
        node, in_tool = stack.pop()
        if node.is_root:
            (in_tools if in_tool else found).append(node)
        elif node.roots:
            stack += [(child, in_tool or node.role == TOOL) for child in node.children]
        elif node.holds & _LLM and not in_tool:
            calls.append(node.record.start_ns)
    loop = not found and calls and in_tools and min(calls) < min(map(_START, in_tools))
    return [] if loop else found + in_tools


def _records_below(top: _Node) -> list[SpanRecord]:
    found, stack = [], [top]
    while stack:
        node = stack.pop()
        found.append(node.record)
        stack.extend(node.children)
    return found


# --- spans whose parents are missing


def _place_orphans(orphans: list[_Node], groups: list[SpanGroup], alone: bool) -> list[SpanGroup]:
    """Add each orphan to the turn that it belongs to, and return turns of the other orphans."""
    found: list[SpanGroup] = []
    turns = _OrphanTurns(groups, alone)
    for orphan in sorted(orphans, key=lambda node: (not node.holds, node.record.start_ns)):
        turn = turns.of(orphan)
        if turn is not None:
            turn.members.extend(_records_below(orphan))
            turn.complete = False
        else:
            more = _groups_under(orphan, root_seen=orphan.role in (AGENT, WORKFLOW))
            if not more and orphan.role == INNER and read(orphan.record).input_messages is not None:
                # an agent's first step with its input: nothing else remains of some failed runs
                more = [SpanGroup(orphan.record, _records_below(orphan), root_seen=False)]
            for group in more:
                group.complete = False
            found += more
            turns.add(more)
    return found


class _OrphanTurns:
    """The turns to which orphans may belong. Call :meth:`of` by start time: first for all with a model call or an agent."""

    def __init__(self, groups: list[SpanGroup], alone: bool) -> None:
        self._alone = alone
        self._groups: list[SpanGroup] = []
        self._of_parent: dict[int, SpanGroup] = {}
        """First turn without its root, by the id of the missing parent."""
        self._own = True
        """True if all orphans so far contained a model call or an agent."""
        self._times: Times[SpanGroup] = Times()
        self._first_stop: int | None = None
        """End of the first model call in the only turn that stopped for tool calls."""
        self._checked = 0
        self.add(groups)

    def add(self, groups: Iterable[SpanGroup]) -> None:
        for group in groups:
            if group.root_seen:
                self._times.add(group.root.start_ns, group.root.end_ns, group)
            else:
                self._of_parent.setdefault(group.root.parent_id, group)
            self._groups.append(group)

    def of(self, orphan: _Node) -> SpanGroup | None:
        record, holds = orphan.record, bool(orphan.holds)
        if self._own and not holds:  # the second pass starts again with the earliest orphan
            self._own = False
            self._times = Times((group.root.start_ns, group.root.end_ns, group) for group in self._groups if group.root_seen)
        running = self._times.only_at(record.start_ns)
        # Of two runs that miss the same parent, neither is part of the other, although their times overlap.
        beside = orphan.role in (AGENT, WORKFLOW) and running is not None and record.parent_id == running.root.parent_id != 0
        if running is not None and not beside:
            return running
        if orphan.role not in _TURN_MARKS and record.parent_id in self._of_parent:
            return self._of_parent[record.parent_id]  # work of a turn without its root between its model calls
        if self._alone and len(self._groups) == 1 and (not holds or self._is_continued_by(orphan)):
            return self._groups[0]
        return None

    def _is_continued_by(self, orphan: _Node) -> bool:
        """Return True if a model call without its parent continues the only turn, which had stopped for tool calls."""
        if orphan.role != LLM:
            return False
        members = self._groups[0].members
        for record in members[self._checked :]:
            if role_in(record) == LLM and _stopped_for_tools(record):
                self._first_stop = record.end_ns if self._first_stop is None else min(self._first_stop, record.end_ns)
        self._checked = len(members)
        record = orphan.record
        return (
            self._first_stop is not None and record.start_ns + _CLOCK_STEP_NS >= self._first_stop and _ends_with_results(record)
        )


def _join_rootless(groups: list[SpanGroup]) -> list[SpanGroup]:
    """Join spans that miss the same parent into one turn, whose root is late or lost."""
    joined: dict[int, SpanGroup] = {}
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
