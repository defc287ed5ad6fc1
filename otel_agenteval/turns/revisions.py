"""Remember recently closed turns so that late spans and log records can revise them.

Late data never changes a closed turn in place. If it matters, the turn is built again from its spans and the late
data, and evaluated as its next revision.
"""

from __future__ import annotations

import bisect
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from ..dialects.reader import role_in
from ..dialects.step import AGENT, WORKFLOW
from ..spans.record import LogPart, SpanRecord
from .roots import SpanGroup, split


class Earlier(NamedTuple):
    """The earlier evaluation of a turn."""

    turn_id: str | None = None
    revision: int = 0
    first_id: str | None = None
    """The turn id of its first revision."""
    also: tuple[str, ...] = ()
    """Current and former ids of turns that were evaluated separately and are now parts of this turn."""


_NOTHING = Earlier()
_HEADLESS = 10_000
"""Maximum number of turns without a root that are remembered after their spans were forgotten."""


class _TracePart:
    """Spans of a trace that belong together: a turn, or one span without a turn."""

    __slots__ = ("earlier", "group", "missing", "records", "size")

    def __init__(self, records: list[SpanRecord], size: int, group: SpanGroup | None = None, earlier: Earlier = _NOTHING) -> None:
        self.records = records
        self.size = size
        self.group = group
        self.earlier = earlier
        self.missing = {record.parent_id for record in records} - {record.span_id for record in records} - {0}
        """Ids of parents that aren't among these spans."""


def _is_part_of(turn: _TracePart, group: SpanGroup) -> bool:
    """Return True if a turn whose root is among the spans of ``group`` is part of it."""
    assert turn.group is not None
    root = turn.group.root
    if root.span_id == group.root.span_id:
        return True
    return not (root.remote_parent and root.resource != group.root.resource)  # work for another process is its own turn


class _RevisableTrace:
    """The remembered parts of one trace, indexed so that a late span finds its part quickly."""

    __slots__ = ("_by_end", "_headless", "_of_root", "_of_span", "_parts", "_without_parent", "kept_at", "size")

    def __init__(self, now: float) -> None:
        self.kept_at = now
        self.size = 0
        self._parts: dict[int, _TracePart] = {}
        self._of_span: dict[int, _TracePart] = {}
        self._of_root: dict[int, _TracePart] = {}
        self._without_parent: dict[int, dict[int, _TracePart]] = {}
        """Parts by the id of each parent that isn't among their own spans."""
        self._headless: dict[int, dict[int, _TracePart]] = {}
        """Turns whose root was never seen and spans without a turn, by the same ids."""
        self._by_end: list[tuple[int, int]] = []
        """End of the root and id of the part, for each turn."""

    @property
    def turns(self) -> int:
        return len(self._of_root)

    def add(self, part: _TracePart) -> None:
        self.remove_absorbed(part)
        self._parts[id(part)] = part
        self.size += part.size
        for record in part.records:
            self._of_span[record.span_id] = part
        for index, parent_id in self._entries(part):
            index.setdefault(parent_id, {})[id(part)] = part
        if part.group is not None:
            self._of_root[part.group.root.span_id] = part
            bisect.insort(self._by_end, (part.group.root.end_ns, id(part)))

    def remove_absorbed(self, part: _TracePart) -> None:
        for old in {id(old): old for old in self._absorbed(part)}.values():
            self._remove(old)

    def _remove(self, part: _TracePart) -> None:
        del self._parts[id(part)]
        self.size -= part.size
        for record in part.records:
            if self._of_span.get(record.span_id) is part:
                del self._of_span[record.span_id]
        for index, parent_id in self._entries(part):
            named = index[parent_id]
            del named[id(part)]
            if not named:
                del index[parent_id]
        if part.group is not None:
            del self._of_root[part.group.root.span_id]
            del self._by_end[bisect.bisect_left(self._by_end, (part.group.root.end_ns, id(part)))]

    def _absorbed(self, part: _TracePart) -> Iterator[_TracePart]:
        """Yield the parts that a part replaces: spans without a turn, and turns whose roots are among its spans."""
        if part.group is not None and part.group.root.span_id in self._of_root:
            yield self._of_root[part.group.root.span_id]
        for record in part.records:
            alone = self._of_span.get(record.span_id)
            if alone is not None and alone.group is None:
                yield alone
            inner = self._of_root.get(record.span_id)
            if inner is not None and part.group is not None and _is_part_of(inner, part.group):
                yield inner

    def _entries(self, part: _TracePart) -> Iterator[tuple[dict[int, dict[int, _TracePart]], int]]:
        for parent_id in part.missing:
            yield self._without_parent, parent_id
            if part.group is None or (not part.group.root_seen and part.group.root.parent_id == parent_id):
                yield self._headless, parent_id

    def earlier(self, group: SpanGroup) -> list[Earlier]:
        """Return the earlier evaluations under the turn's own root, then the evaluations of turns that are now parts of it."""
        own = self._of_root.get(group.root.span_id)
        found = {id(own): own} if own is not None else {}
        for record in group.members:
            inner = self._of_root.get(record.span_id)
            headless = [part for part in self._headless.get(record.span_id, {}).values() if part.group is not None]
            for part in (*([inner] if inner is not None and _is_part_of(inner, group) else ()), *headless):
                found.setdefault(id(part), part)
        return [part.earlier for part in found.values()]

    def missing_roots(self) -> list[int]:
        return [span_id for span_id, parts in self._headless.items() if any(part.group is not None for part in parts.values())]

    def with_span(self, span_id: int) -> _TracePart | None:
        return self._of_span.get(span_id)

    def _parts_below(self, span_id: int) -> Iterable[_TracePart]:
        return self._without_parent.get(span_id, {}).values()

    def affected(self, late: list[SpanRecord], with_logs: Iterable[int], loose: bool = False) -> list[_TracePart]:
        """Return the parts above and below late spans, late logs of the given spans, or ``loose`` logs of the only turn. A late
        span whose parent is missing may also belong to a turn that was running at that time.
        """
        found = [part for span_id in with_logs if (part := self._of_span.get(span_id)) is not None]
        if loose and self.turns < 2:
            found += self._parts.values()
        ids = {record.span_id for record in late}
        orphan_starts = []
        for record in late:
            parent, own = self._of_span.get(record.parent_id), self._of_span.get(record.span_id)
            found += [part for part in (parent, own, *self._parts_below(record.span_id)) if part is not None]
            if parent is None and record.parent_id and record.parent_id not in ids and not record.remote_parent:
                orphan_starts.append(record.start_ns)
                found += self._headless.get(record.parent_id, {}).values()
        if orphan_starts:
            first, last = min(orphan_starts), max(orphan_starts)
            ended_later = bisect.bisect_left(self._by_end, (first, 0)) if self.turns > 1 else 0
            for part in (self._parts[key] for _, key in self._by_end[ended_later:]):
                # the only turn, or a turn that was running then
                if self.turns == 1 or (part.group is not None and part.records and part.group.root.start_ns <= last):
                    found.append(part)
        return self._connected(found)

    def _connected(self, to_do: list[_TracePart]) -> list[_TracePart]:
        """Return the parts with all parts above them, and those below spans without a turn."""
        found: dict[int, _TracePart] = {}
        while to_do:
            part = to_do.pop()
            if id(part) in found:
                continue
            found[id(part)] = part
            to_do += [ancestor for parent_id in part.missing if (ancestor := self._of_span.get(parent_id)) is not None]
            if part.group is None or not part.group.root_seen:
                to_do += [below for record in part.records for below in self._parts_below(record.span_id)]
        return list(found.values())


class _SingleTurn:
    """A trace with one turn whose root was seen, the usual case. It is indexed only when late data arrives."""

    __slots__ = ("earlier", "group", "kept_at")

    def __init__(self, now: float, group: SpanGroup, earlier: Earlier) -> None:
        self.kept_at = now
        self.group = group
        self.earlier = earlier

    @property
    def size(self) -> int:
        return self.group.size

    def as_trace(self) -> _RevisableTrace:
        trace = _RevisableTrace(self.kept_at)
        trace.add(_part_of(self.group, self.earlier))
        return trace

    @staticmethod
    def missing_roots() -> list[int]:
        return []


def _part_of(group: SpanGroup, earlier: Earlier) -> _TracePart:
    return _TracePart(group.members, group.size, group, earlier)


def _traces_of(group: SpanGroup) -> list[int]:
    first = group.root.trace_id
    if group.until_ns is None:
        return [first]
    return [first, *sorted({record.trace_id for record in group.members} - {first})]


def stands_alone(group: SpanGroup) -> bool:
    """Return True if a group is a turn whatever else its trace has: it has its local root, or an agent as its root."""
    root = group.root
    return group.root_seen and (root.parent_id == 0 or root.remote_parent or role_in(root) in (AGENT, WORKFLOW))


def _lost_spans(found: Iterable[SpanGroup], before: Iterable[SpanGroup]) -> set[int]:
    """Return the spans of earlier turns that aren't in the turns with their roots anymore, and these roots."""
    had = {group.root.span_id: {record.span_id for record in group.members} for group in before}
    lost: set[int] = set()
    for group in found:
        members = {record.span_id for record in group.members}
        for root_id in had.keys() & members:
            if not had[root_id] <= members:
                lost |= {root_id, *(had[root_id] - members)}
    return lost


class Revisions:
    """A bounded memory of closed turns. Thread-safe. Beyond ``max_bytes``, the oldest trace is forgotten. After ``max_age``
    seconds, no late data is expected.
    """

    def __init__(self, max_bytes: int, max_age: float, now: Callable[[], float]) -> None:
        self._max_bytes = max_bytes
        self._max_age = max_age
        self._now = now
        self.forget()

    def forget(self) -> None:
        """Drop everything, and create a new lock. A forked child may have inherited a held one."""
        self._lock = threading.Lock()
        self._traces: OrderedDict[int, _RevisableTrace | _SingleTurn] = OrderedDict()
        self._bytes = 0
        self._headless: OrderedDict[tuple[int, int], None] = OrderedDict()
        """Trace id and missing span id of turns that were evaluated without their root and forgotten since."""

    def forget_traces(self, trace_ids: Iterable[int]) -> None:
        with self._lock:
            for trace_id in trace_ids:
                trace = self._traces.pop(trace_id, None)
                if trace is not None:
                    self._bytes -= trace.size

    def remember(self, group: SpanGroup, as_what: Earlier) -> None:
        group.reader = None  # the reader uses several times the memory of the spans, and is hardly ever needed again
        for record in group.members:
            record.dialects = None
        trace_id = group.root.trace_id
        if group.root_seen and group.until_ns is None:
            with self._lock:
                if trace_id not in self._traces:
                    self._traces[trace_id] = _SingleTurn(self._now(), group, as_what)
                    self._bytes += group.size
                    self._shrink()
                    return
        part = _part_of(group, as_what)
        self._add_parts(trace_id, [part])
        if group.until_ns is not None:
            self._remove_absorbed_turns(part)

    def _trace_of(self, trace_id: int) -> _RevisableTrace | None:
        trace = self._traces.get(trace_id)
        if isinstance(trace, _SingleTurn):
            trace = self._traces[trace_id] = trace.as_trace()
        return trace

    def _remove_absorbed_turns(self, part: _TracePart) -> None:
        """Forget turns that were evaluated separately and are now part of a turn in another trace."""
        assert part.group is not None
        with self._lock:
            for trace_id in _traces_of(part.group)[1:]:
                trace = self._trace_of(trace_id)
                if trace is not None:
                    self._bytes -= trace.size
                    trace.remove_absorbed(part)
                    self._bytes += trace.size

    def remember_unmatched(self, trace_id: int, records: list[SpanRecord], size: int) -> None:
        """Remember spans without a turn, because a late span may add them to one."""
        self._add_parts(trace_id, [_TracePart([record], size // len(records)) for record in records])

    def _add_parts(self, trace_id: int, parts: list[_TracePart]) -> None:
        with self._lock:
            trace = self._trace_of(trace_id)
            if trace is None:
                trace = self._traces[trace_id] = _RevisableTrace(self._now())
            self._bytes -= trace.size
            for part in parts:
                trace.add(part)
            self._bytes += trace.size
            self._shrink()

    def _shrink(self) -> None:
        oldest = self._now() - self._max_age
        while self._traces and (self._bytes > self._max_bytes or next(iter(self._traces.values())).kept_at < oldest):
            trace_id, trace = self._traces.popitem(last=False)
            self._bytes -= trace.size
            self._headless.update(((trace_id, span_id), None) for span_id in trace.missing_roots())
            while len(self._headless) > _HEADLESS:
                self._headless.popitem(last=False)

    def before(self, group: SpanGroup) -> Earlier:
        """Return the earlier evaluation of this turn. If several turns became one, ``also`` has the others."""
        with self._lock:
            traces = [self._trace_of(trace_id) for trace_id in _traces_of(group)]
            found = [earlier for trace in traces if trace is not None for earlier in trace.earlier(group)]
        if not found:
            return _NOTHING
        others = {known for one in found[1:] for known in (one.turn_id, one.first_id) if known is not None}
        others.update(known for one in found for known in one.also)
        return found[0]._replace(also=tuple(sorted(others - {found[0].turn_id, found[0].first_id})))

    def revised(
        self, trace_id: int, late: Iterable[SpanRecord], affected: Iterable[int], loose: Sequence[LogPart] = ()
    ) -> list[SpanGroup]:
        """Return the turns that late spans, late logs of ``affected`` spans or ``loose`` logs change. If the trace is forgotten,
        only groups that stand alone are returned.
        """
        late = list(late)
        with self._lock:
            trace = self._trace_of(trace_id)
            if trace is None:
                parts, turns = None, 0
            else:  # don't forget the trace while it is being revised
                trace.kept_at = self._now()
                self._traces.move_to_end(trace_id)
                parts, turns = trace.affected(late, affected, bool(loose)), trace.turns
        if parts is None:  # a late root isn't a new turn if its turn was counted and forgotten
            alone = [group for group in split(late) if stands_alone(group)]
            with self._lock:
                return [group for group in alone if not any((trace_id, one.span_id) in self._headless for one in group.members)]
        known = [record for part in parts for record in part.records]
        groups = [part.group for part in parts if part.group is not None]
        roots = {group.root.span_id: group.ancestor for group in groups if group.root_seen}
        ids = {record.span_id for record in known}
        changed = {record.span_id for record in late if record.span_id not in ids} | set(affected)
        found = split(known + late, frozenset(roots), turns <= len(groups), loose)
        for group in found:
            group.ancestor = group.ancestor or roots.get(group.root.span_id)
        if len(found) > 1:
            changed |= _lost_spans(found, groups)
        return [group for group in found if loose or any(record.span_id in changed for record in group.members)]

    def holding(self, trace_id: int, span_id: int) -> tuple[SpanGroup, Earlier] | None:
        """Return the remembered turn that contains a span, and its evaluation."""
        with self._lock:
            trace = self._trace_of(trace_id)
            part = None if trace is None else trace.with_span(span_id)
            return None if part is None or part.group is None else (part.group, part.earlier)

    def records(self, trace_id: int, span_ids: Iterable[int]) -> list[SpanRecord]:
        with self._lock:
            trace = self._trace_of(trace_id)
            if trace is None:
                return []
            wanted = set(span_ids)
            parts = {id(part): part for span_id in wanted if (part := trace.with_span(span_id)) is not None}
            return [record for part in parts.values() for record in part.records if record.span_id in wanted]
