"""Split the spans of a trace into turns.

A *local root* is a span without a parent in its process. A turn's root is usually the topmost agent or workflow span, at or below
the local root. A chain span that contains a model call or an agent can also be the root. Without such a span, a local root with
model calls below it is the turn's root. A model call without a parent is its own root. ``create_agent`` and similar spans don't
start a turn. Successive agent runs are one turn if each run receives the previous run's tool results, or retries the previous run
after an error. Agent runs below an agent graph's root span are usually one turn, unless a later run answers a new user message.

Model and tool spans next to an agent run belong to the run's turn if they started during this run and no other run. If there is
only one run, and this run lacks model calls and an output, spans that started after the run also belong to the run's turn.

An *orphan* is a span whose parent in the same process was never received. The orphan joins the turn that was running when the
orphan started, or the trace's only turn. If no turn fits, an orphan that contains a model call or an agent is a separate turn.
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
from ..dialects.step import AGENT, CHAIN, INNER, LLM, ROOT_ROLES, SETUP, TOOL, UNKNOWN, WORKFLOW
from ..spans.record import ERROR, LogPart, SpanRecord
from .items import are_items
from .logged import add_answers, add_prompt, calls_in, take_logged, turns_by_prompts
from .state import PendingSpans

_CLOCK_STEP_NS = 2_000_000
"""Nanoseconds of tolerance for OpenTelemetry JS, which rounds start times to milliseconds but not end times."""
_NEVER = 2**64
_MOST_LAYERS = 32
"""Maximum number of spans between a model call and the server span of the gateway or model server that serves this call."""
_MOST_RUNS = 32
"""Maximum number of agent runs in an agent graph. A span with more agent runs below it isn't treated as a graph."""
_Owner = TypeVar("_Owner")
_START = attrgetter("record.start_ns")
_TURN_ROLES = (LLM, AGENT, WORKFLOW)
_LLM, _AGENT, _WORKFLOW = 1, 2, 4
_MARK_OF_ROLE = {LLM: _LLM, AGENT: _AGENT, WORKFLOW: _WORKFLOW}
_NOT_ADOPTED = ROOT_ROLES | {UNKNOWN}
_STOPPED_FOR_TOOLS = frozenset(("tool-calls", "tool_calls", "tool_call", "tool_use"))


class SpanGroup:
    __slots__ = (
        "__weakref__", "ancestor", "complete", "members", "pending", "reader", "reason", "recordings", "root", "root_seen", "size", "until_ns",
    )  # fmt: skip

    def __init__(self, root: SpanRecord, members: list[SpanRecord], root_seen: bool = True) -> None:
        self.root = root
        self.members = members
        self.root_seen = root_seen
        self.ancestor: SpanRecord | None = None
        """A span above this turn, which can also be above other turns. Only this span's user ID and conversation ID are read."""
        self.reason: CloseReason = "recorded_file"
        self.complete = True
        """True unless a span is known to be missing or still open."""
        self.size = 0
        self.pending: tuple[PendingSpans, ...] = ()
        """Spans that aren't counted yet, either as scored or by the reason why they weren't scored."""
        self.reader: Any = None
        """Cached :class:`~.reading.turn.TurnReader`."""
        self.until_ns: int | None = None
        """End time in nanoseconds if the turn can have spans in several traces. Otherwise, None."""
        self.recordings: list[Any] = []
        """Entries in :class:`~.duplicates.Duplicates` for this group, and for groups that were joined into this group."""

    @classmethod
    def joined(cls, groups: Sequence[SpanGroup]) -> SpanGroup:
        """Join the groups of one turn. The result has the first group's root. The caller must set the result's ``reader``."""
        whole = cls(groups[0].root, [record for group in groups for record in group.members])
        whole.root_seen, whole.complete = all(group.root_seen for group in groups), all(group.complete for group in groups)
        whole.reason = groups[-1].reason
        whole.size = sum(group.size for group in groups)
        whole.pending = tuple(spans for group in groups for spans in group.pending)
        whole.recordings = [recording for group in groups for recording in group.recordings]
        return whole

    @property
    def all_seen(self) -> bool:
        return self.complete and self.root_seen


class _Node:
    __slots__ = ("children", "marks", "parent", "record", "role", "root_count")

    def __init__(self, record: SpanRecord) -> None:
        self.record = record
        self.role: str | None = record.dialects.role  # dialects already set the roles
        self.children: list[_Node] = []
        self.parent: _Node | None = None
        self.marks = _MARK_OF_ROLE.get(self.role, 0) if self.role is not None else 0
        """Bit mask (see :data:`_MARK_OF_ROLE`) of the roles that this span and all spans below it have."""
        self.root_count = 0
        """Number of topmost turn roots (:attr:`is_root`) at or below this span."""

    @property
    def is_root(self) -> bool:
        return self.role in (AGENT, WORKFLOW) or (self.role == CHAIN and self.marks != 0)


def split(
    records: Iterable[SpanRecord], known_roots: frozenset[int] = frozenset(), alone: bool = True, loose: Iterable[LogPart] = ()
) -> list[SpanGroup]:
    """Return the turns in one trace's spans, sorted by start time. ``known_roots`` contains IDs of roots whose parents might be
    missing. Pass ``alone=False`` if the trace has other turns. ``loose`` contains log records whose spans aren't in ``records``.
    """
    spans: dict[int, SpanRecord] = {}
    for record in records:
        spans.setdefault(record.span_id, record)  # a span that was sent twice is one span
    logged = take_logged(spans.values(), loose)
    groups = _groups(spans, known_roots, alone)
    if not logged:
        return groups
    roots = [group.root for group in groups] or [record for record in spans.values() if record.parent_id not in spans]
    only_root = roots[0] if len(roots) == 1 else None  # root of the only turn, or the only local root
    models = [record for record in spans.values() if record.dialects.role == LLM]
    for record in spans.values():
        record.dialects = None  # logged calls may change roles
    turn_roots = turns_by_prompts(logged, spans, models)
    calls = calls_in(logged, [*spans.values()], turn_roots or [only_root] if only_root is not None else turn_roots)
    spans.update((call.span_id, call) for call in calls)
    if not turn_roots and only_root is not None and (groups or calls):
        add_prompt(logged, only_root)
        turn_roots = [only_root]
    add_answers(logged, spans, turn_roots)
    return _groups(spans, known_roots, alone)


def _groups(spans: dict[int, SpanRecord], known_roots: frozenset[int], alone: bool) -> list[SpanGroup]:
    review_roles(spans.values())
    nodes = {span_id: _Node(record) for span_id, record in spans.items()}
    local_roots, orphans, leaks = _link(nodes, known_roots)
    local_roots = _adopt_parentless(local_roots)
    reached = _nodes_below([*local_roots, *orphans, *leaks])
    if leaks:
        local_roots += _split_leaks(leaks)
        reached = _nodes_below([*local_roots, *orphans])
    tops = [*local_roots, *_roots_of_served_requests(nodes, local_roots, reached)]
    groups = [group for top in tops for group in _groups_under(top)]
    top = tops[0].record if len(tops) == 1 and not groups else None
    if orphans and top is not None and all(top.start_ns <= orphan.record.start_ns <= top.end_ns for orphan in orphans):
        tops[0].children += orphans  # the request's spans between them are missing
        _nodes_below(tops)
        groups, orphans = _groups_under(tops[0]), []
        for group in groups:
            group.complete = False
    if orphans:
        groups = _join_rootless(groups + _place_orphans(orphans, groups, alone))
    groups.sort(key=lambda group: (group.root.start_ns, group.root.end_ns, group.root.span_id))
    return groups


def _roots_of_served_requests(nodes: dict[int, _Node], local_roots: list[_Node], reached: list[_Node]) -> list[_Node]:
    """Return the root spans of requests that one process sent to another. Each request is a turn of the serving process, and its
    spans are also part of the caller's turn. Exception: If a model server only serves a model call, the request isn't a turn.
    """
    remote = [node for node in reached if node.record.remote_parent and node.marks]
    local_ids = set(map(id, local_roots)) if remote else ()
    served: dict[int, _Node] = {}
    for node in remote:
        caller = nodes.get(node.record.parent_id)
        # a context that the application itself transferred seems to be remote
        is_call = node.marks == _LLM and _is_in_model_call(caller)
        if id(node) not in local_ids and not is_call and caller is not None and caller.record.resource != node.record.resource:
            served[id(node)] = node
    return [*served.values()] if len(served) < 2 else [node for node in nodes.values() if id(node) in served]


def _is_in_model_call(node: _Node | None) -> bool:
    for _ in range(_MOST_LAYERS):
        if node is None or node.role is not None:
            break
        node = node.parent
    return node is not None and node.role == LLM


def _link(nodes: dict[int, _Node], known_roots: frozenset[int]) -> tuple[list[_Node], list[_Node], list[_Node]]:
    """Attach each span to its parent. Return (local roots, orphans, leaks). *Leaks* are application spans and runs that started
    after their parent ended. A leak's parent might be wrong, because the application can still use an ended request's context.
    """
    local_roots, orphans, leaks = [], [], []
    for node in nodes.values():
        record = node.record
        parent = nodes.get(record.parent_id) if record.parent_id and record.parent_id != record.span_id else None
        if parent is not None:
            node.parent = parent
            # Some frameworks end an agent's span while its work continues, so only the application's spans and runs can be leaks.
            may_leak = parent.role is None if node.role is None else node.role in ROOT_ROLES and parent.role in (CHAIN, LLM)
            if may_leak and _starts_after(node, parent):
                leaks.append(node)
            else:
                parent.children.append(node)
        elif record.parent_id == 0 or record.remote_parent or record.span_id in known_roots:
            local_roots.append(node)
        else:
            orphans.append(node)
    return local_roots, orphans, leaks


def _nodes_below(local_roots: Iterable[_Node]) -> list[_Node]:
    """Return ``local_roots`` and all nodes below them, parents first. Also update each node's ``marks`` and ``root_count``."""
    parents_first: list[_Node] = []
    for top in local_roots:
        index = len(parents_first)
        parents_first.append(top)
        while index < len(parents_first):
            parents_first += parents_first[index].children
            index += 1
    for node in reversed(parents_first):
        marks = _MARK_OF_ROLE.get(node.role, 0) if node.role is not None else 0
        root_count = 0
        for child in node.children:
            marks |= child.marks
            root_count += child.root_count
        node.marks = marks
        node.root_count = 1 if node.is_root else root_count
    return parents_first


def _split_leaks(leaks: list[_Node]) -> list[_Node]:
    """Return leaks (see :func:`_link`) that are separate requests. Attach the other leaks to their parents."""
    local_roots = []
    topmost: dict[int, _Node] = {}
    undecided = set(map(id, leaks))
    for leak in sorted(leaks, key=lambda node: node.record.start_ns):
        undecided.discard(id(leak))
        parent = leak.parent
        assert parent is not None
        ancestor = _topmost_ancestor(parent, undecided, topmost)
        is_alike = leak.role is None or (leak.role, leak.record.name) == (ancestor.role, ancestor.record.name)
        if leak.marks and ancestor.marks and is_alike and (leak.record.server or _starts_after(leak, ancestor)):
            leak.parent = None
            local_roots.append(leak)
        else:
            parent.children.append(leak)
            above: _Node | None = parent
            while above is not None and above.marks | leak.marks != above.marks:
                above.marks |= leak.marks
                above = None if id(above) in undecided else above.parent
    return local_roots


def _topmost_ancestor(node: _Node, undecided: set[int], topmost: dict[int, _Node]) -> _Node:
    """Return a span's topmost ancestor, or the span itself. Don't go above spans in ``undecided``. ``topmost`` is a cache."""
    path: dict[int, _Node] = {}
    while True:
        cached = topmost.get(id(node))
        if cached is not None and cached is not node:
            ancestor: _Node | None = cached
        else:
            ancestor = None if id(node) in undecided else node.parent
        if ancestor is None or id(ancestor) in path:  # broken telemetry can have cycles
            break
        path[id(node)] = node
        node = ancestor
    topmost.update(dict.fromkeys(path, node))
    return node


def _groups_under(top: _Node, root_seen: bool = True) -> list[SpanGroup]:
    roots = _topmost_roots(top)
    if (not roots and top.marks & _LLM and top.role != SETUP) or (len(roots) > 1 and top.role is None and _is_graph(top, roots)):
        roots = [top]
    loops = (_split_items(roots[0]) or [roots]) if len(roots) == 1 else _loops_of(roots)
    groups = [_group_of(loop, top, root_seen) for loop in loops]
    if loops != [[top]]:
        _add_spans_beside(loops, groups)
    for group in groups:
        if group.root is not top.record:  # often only the request's span has a session id
            group.ancestor = top.record
    return groups


def _group_of(loop: list[_Node], top: _Node, root_seen: bool) -> SpanGroup:
    """Return the group for a turn's agent runs. The root is a span with exactly these runs below it, or otherwise the first run."""
    if len(loop) > 1:
        above = loop[0].parent if loop[0] is not top else None
        while above is not None and above is not top and above.root_count < len(loop):
            above = above.parent
        if above is not None and above.root_count == len(loop):
            return SpanGroup(above.record, _records_below(above), root_seen)
    return SpanGroup(loop[0].record, [record for run in loop for record in _records_below(run)], root_seen)


def _split_items(root: _Node) -> list[list[_Node]]:
    """Return one list of spans per independent item below ``root``, or ``[]`` if ``root`` is a single turn."""
    if root.role not in (None, CHAIN, WORKFLOW):
        return []
    items = sorted((child for child in root.children if child.marks & _LLM), key=_START)
    if len(items) < 2 or len({item.record.name for item in items}) > 1:  # steps of one job have different names
        return []
    calls = [call for item in items for call in _calls_in(item)]
    return [[item] for item in items] if len(calls) == len(items) and are_items(root.record, calls) else []


def _calls_in(node: _Node) -> list[SpanRecord]:
    calls, stack = [], [node]
    while stack:
        node = stack.pop()
        if node.role == LLM:
            calls.append(node.record)
        else:
            stack += (child for child in node.children if child.marks & _LLM)
    return calls


def _loops_of(roots: list[_Node]) -> list[list[_Node]]:
    """Group agent runs by turn. A run joins the previous run's turn to process that run's tool results, or to retry that run."""
    loops: list[list[_Node]] = []
    latest_by_parent: dict[int, list[_Node]] = {}
    for run in sorted(roots, key=_START):
        beside = latest_by_parent.get(run.record.parent_id) if run.record.parent_id else None
        if beside is not None and _answers_tool_calls(beside[-1].record, run.record):
            loop = beside
        elif loops and _continues_loop(loops[-1][-1], run):
            loop = loops[-1]
        else:
            loop = []
            loops.append(loop)
        loop.append(run)
        latest_by_parent[run.record.parent_id] = loop
    return loops


def _continues_loop(first: _Node, second: _Node) -> bool:
    """Return True if the ``second`` run receives results of the ``first`` run's tool calls, or retries the failed first run."""
    if second.record.start_ns + _CLOCK_STEP_NS < first.record.end_ns or not first.marks & second.marks & _LLM:
        return False
    last_call, next_call = max(_calls_in(first), key=attrgetter("end_ns")), min(_calls_in(second), key=attrgetter("start_ns"))
    if first.record.status == ERROR and first.record.name == second.record.name:
        prompt = _prompt_of(last_call)
        return bool(prompt) and prompt == _prompt_of(next_call)
    step = read(last_call)
    answers = decode(step.output_value if step.output_messages is None else step.output_messages, "assistant").messages
    requested = {call.call_id for message in answers for call in message.tool_calls} - {None}
    results = (result.call_id for message in _prompt_of(next_call) for result in message.tool_results) if requested else ()
    return not requested.isdisjoint(results)


def _prompt_of(record: SpanRecord) -> list[Message]:
    step = read(record)
    return decode(step.input_value if step.input_messages is None else step.input_messages, "user").messages


def _is_graph(top: _Node, runs: list[_Node]) -> bool:
    """Return True if a parentless span is an agent graph in which no later run answers a new user message."""
    record = top.record
    if record.parent_id or record.server or len(runs) > _MOST_RUNS or not is_graph(record.name):
        return False
    earlier_texts: list[str] = []
    for run in sorted(runs, key=lambda node: node.record.start_ns):
        step = read(run.record)
        question = _last_text(step.input_value if step.input_messages is None else step.input_messages, "user")
        if question and earlier_texts and not any(text in question or question in text for text in earlier_texts):
            return False
        output = step.output_value if step.output_messages is None else step.output_messages
        answer = _last_text(output if step.final_result is None else step.final_result, "assistant")
        earlier_texts += filter(None, (question, answer))
    return True


def _last_text(raw: Any, role: str) -> str | None:
    messages = reversed(decode(raw, role).messages)
    return next((message.content for message in messages if message.role == role and message.content), None)


def _add_spans_beside(loops: list[list[_Node]], groups: list[SpanGroup]) -> None:
    """Add spans next to an agent run to the run's turn if they started during this run and no other run. If the only run lacks
    model calls and an output, also add later spans. The run's span probably ended early because the run returned a generator.
    """
    beside: dict[int, tuple[_Node, list[tuple[_Node, SpanGroup]]]] = {}
    for loop, group in zip(loops, groups, strict=True):
        for run in loop:
            if run.parent is not None and run.parent.record is not group.root and len(run.parent.children) > 1:
                beside.setdefault(id(run.parent), (run.parent, []))[1].append((run, group))
    for parent, runs in beside.values():
        own = {id(run) for run, _ in runs}
        step = read(runs[0][0].record)
        has_output = (step.output_messages, step.output_value, step.final_result) != (None, None, None)
        returns_early = len(runs) == 1 and not runs[0][0].marks & _LLM and not has_output
        times = Times((run.record.start_ns, _NEVER if returns_early else run.record.end_ns, group) for run, group in runs)
        for child in sorted(parent.children, key=_START):
            is_step = not child.root_count and (child.role is not None or child.marks)
            if is_step and id(child) not in own and (owner := times.only_at(child.record.start_ns)) is not None:
                owner.members += _records_below(child)


def _adopt_parentless(local_roots: list[_Node]) -> list[_Node]:
    """Attach local roots such as tools to the only request or run in their process when they started. Return the others."""
    if len(local_roots) < 2:
        return local_roots
    hosts = [node for node in local_roots if node.role is None or node.role in ROOT_ROLES]
    if not hosts or len(hosts) == len(local_roots):
        return local_roots
    running: dict[Hashable, Times[_Node]] = {}
    for host in hosts:
        running.setdefault(_process_key(host), Times()).add(host.record.start_ns, host.record.end_ns, host)
    kept: list[_Node] = []
    for node in sorted(local_roots, key=_START):
        times = None if node.role is None or node.role in _NOT_ADOPTED else running.get(_process_key(node))
        node.parent = None if times is None else times.only_at(node.record.start_ns)
        (kept if node.parent is None else node.parent.children).append(node)
    return kept


def _process_key(node: _Node) -> Hashable:
    resource = node.record.resource_attributes
    return node.record.parent_id, str(resource.get("service.name")), str(resource.get("service.instance.id"))


class Times(Generic[_Owner]):
    """Time periods with owners, such as turns. Callers must call :meth:`only_at` with increasing times."""

    def __init__(self, periods: Iterable[tuple[int, int, _Owner]] = ()) -> None:
        self._periods: list[tuple[int, _Owner]] = []
        """All periods as (end, owner). A period's index in this list is its number."""
        self._starts: list[tuple[int, int]] = []
        """Heap of (start, period number) for periods that begin after the latest requested time."""
        self._running: dict[int, _Owner] = {}
        self._ends: list[tuple[int, int]] = []
        """Heap of (end, period number) for running periods."""
        for start, end, owner in periods:
            self.add(start, end, owner)

    def add(self, start: int, end: int, owner: _Owner) -> None:
        heapq.heappush(self._starts, (start, len(self._periods)))
        self._periods.append((end, owner))

    def only_at(self, time_ns: int) -> _Owner | None:
        """Return the owner of the only period that contains ``time_ns``, or None if several periods or no period contain it."""
        while self._starts and self._starts[0][0] <= time_ns:
            _, number = heapq.heappop(self._starts)
            end, self._running[number] = self._periods[number]
            heapq.heappush(self._ends, (end, number))
        while self._ends and self._ends[0][0] < time_ns:
            del self._running[heapq.heappop(self._ends)[1]]
        return next(iter(self._running.values())) if len(self._running) == 1 else None


def _starts_after(node: _Node, other: _Node) -> bool:
    return 0 < other.record.end_ns < node.record.start_ns - _CLOCK_STEP_NS


def _answers_tool_calls(first: SpanRecord, second: SpanRecord) -> bool:
    return second.start_ns + _CLOCK_STEP_NS >= first.end_ns and _stopped_for_tools(first) and _ends_with_results(second)


def _stopped_for_tools(record: SpanRecord) -> bool:
    return read(record).finish_reason in _STOPPED_FOR_TOOLS


def _ends_with_results(record: SpanRecord) -> bool:
    """Return True if the prompt doesn't end with a new user message, or if the prompt wasn't captured."""
    messages = _prompt_of(record)
    return not messages or messages[-1].role != "user" or bool(messages[-1].tool_results)


def _topmost_roots(top: _Node) -> list[_Node]:
    """Return the topmost turn roots. If all roots are inside tools, and a model call outside tools began earlier, return ``[]``."""
    outside_tools: list[_Node] = []
    in_tools: list[_Node] = []
    stack, call_starts = [(top, False)], []
    while stack:
        node, in_tool = stack.pop()
        if node.is_root:
            (in_tools if in_tool else outside_tools).append(node)
        elif node.root_count:
            stack += [(child, in_tool or node.role == TOOL) for child in node.children]
        elif node.marks & _LLM and not in_tool:
            call_starts.append(node.record.start_ns)
    is_loop = not outside_tools and call_starts and in_tools and min(call_starts) < min(map(_START, in_tools))
    return [] if is_loop else outside_tools + in_tools


def _records_below(top: _Node) -> list[SpanRecord]:
    records, stack = [], [top]
    while stack:
        node = stack.pop()
        records.append(node.record)
        stack.extend(node.children)
    return records


# --- spans whose parents are missing


def _place_orphans(orphans: list[_Node], groups: list[SpanGroup], alone: bool) -> list[SpanGroup]:
    """Add orphans to existing turns. Build new turns from the remaining orphans, and return the new turns."""
    new_turns: list[SpanGroup] = []
    turns = _OrphanTurns(groups, alone)
    for orphan in sorted(orphans, key=lambda node: (not node.marks, node.record.start_ns)):
        turn = turns.turn_of(orphan)
        if turn is not None:
            turn.members.extend(_records_below(orphan))
            turn.complete = False
        else:
            own_turns = _groups_under(orphan, root_seen=orphan.role in (AGENT, WORKFLOW))
            if not own_turns and orphan.role == INNER and read(orphan.record).input_messages is not None:
                # some failed runs have only an agent's first step, with its input
                own_turns = [SpanGroup(orphan.record, _records_below(orphan), root_seen=False)]
            for group in own_turns:
                group.complete = False
            new_turns += own_turns
            turns.add(own_turns)
    return new_turns


class _OrphanTurns:
    """Turns that orphans can join. Call :meth:`turn_of` by start time, first for orphans with model calls or agents."""

    def __init__(self, groups: list[SpanGroup], alone: bool) -> None:
        self._alone = alone
        self._groups: list[SpanGroup] = []
        self._rootless: dict[int, SpanGroup] = {}
        """Maps a missing parent's ID to the first turn below this parent whose root is missing."""
        self._is_first_pass = True
        self._times: Times[SpanGroup] = Times()
        self._first_stop: int | None = None
        """End time of the first model call that requested tools, used only if there is exactly one turn."""
        self._checked = 0
        """Number of the turn's spans that have already been searched for ``_first_stop``."""
        self.add(groups)

    def add(self, groups: Iterable[SpanGroup]) -> None:
        for group in groups:
            if group.root_seen:
                self._times.add(group.root.start_ns, group.root.end_ns, group)
            else:
                self._rootless.setdefault(group.root.parent_id, group)
            self._groups.append(group)

    def turn_of(self, orphan: _Node) -> SpanGroup | None:
        record, has_marks = orphan.record, bool(orphan.marks)
        if self._is_first_pass and not has_marks:  # the second pass begins with the earliest orphan
            self._is_first_pass = False
            self._times = Times((group.root.start_ns, group.root.end_ns, group) for group in self._groups if group.root_seen)
        running = self._times.only_at(record.start_ns)
        # Two runs with the same missing parent are separate, even if they overlap.
        is_beside = orphan.role in (AGENT, WORKFLOW) and running is not None and record.parent_id == running.root.parent_id != 0
        if running is not None and not is_beside:
            return running
        if orphan.role not in _TURN_ROLES and record.parent_id in self._rootless:
            return self._rootless[record.parent_id]  # work of a rootless turn between its model calls
        if self._alone and len(self._groups) == 1 and (not has_marks or self._is_continued_by(orphan)):
            return self._groups[0]
        return None

    def _is_continued_by(self, orphan: _Node) -> bool:
        """Return True if ``orphan`` is a model call that continues the only turn after this turn requested tools."""
        if orphan.role != LLM:
            return False
        members = self._groups[0].members
        for record in members[self._checked :]:
            if role_in(record) == LLM and _stopped_for_tools(record):
                self._first_stop = record.end_ns if self._first_stop is None else min(self._first_stop, record.end_ns)
        self._checked = len(members)
        if self._first_stop is None or orphan.record.start_ns + _CLOCK_STEP_NS < self._first_stop:
            return False
        return _ends_with_results(orphan.record)


def _join_rootless(groups: list[SpanGroup]) -> list[SpanGroup]:
    """Join groups whose turn root is missing if their topmost spans have the same missing parent."""
    rootless: dict[int, SpanGroup] = {}
    joined = []
    for group in groups:
        if group.root_seen:
            joined.append(group)
        elif group.root.parent_id in rootless:
            first = rootless[group.root.parent_id]
            first.members.extend(group.members)
            if group.root.start_ns < first.root.start_ns:
                first.root = group.root
        else:
            rootless[group.root.parent_id] = group
            joined.append(group)
    return joined
