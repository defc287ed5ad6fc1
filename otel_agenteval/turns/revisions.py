"""Remember recently evaluated turns, so that late spans and log records can revise these turns.

Late data never changes an evaluated turn. Instead, a new revision of this turn is built from its old spans and the late data. The
new revision is then evaluated.

Terms:

- A *part* of a trace is either a closed turn or one span without a turn.
- A span's parent is *missing* if the span's part doesn't contain the parent.
- A turn is *rootless* if its root never arrived. One of the turn's missing parents is treated as its root.
- A new part *absorbs* older parts: its turn's earlier revision, and other turns and single spans that the new part now contains.
- A log record is *loose* if the span that wrote it is unknown.

Example: A trace closes without its root span 1. The model calls 2 and 3 below span 1 form a rootless turn, which is evaluated and
remembered. Then span 1, an agent, arrives late. ``revised`` finds the turn, because its parent 1 was missing, and builds a new turn
from the spans 1, 2, and 3. ``before`` returns the old turn's evaluation. After the new turn is evaluated, ``remember`` adds this
turn as a part that absorbs the old part.
"""

from __future__ import annotations

import bisect
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..dialects.reader import role_in
from ..dialects.step import AGENT, WORKFLOW
from ..spans.record import LogPart, SpanRecord, is_more_complete, join_logs
from .roots import SpanGroup, split


class Earlier(NamedTuple):
    turn_id: str | None = None
    revision: int = 0
    first_id: str | None = None
    also: tuple[str, ...] = ()
    """IDs of turns that were evaluated separately, before this turn absorbed them."""


NOT_EVALUATED = Earlier()


class TracePart:
    __slots__ = ("earlier", "group", "missing", "records", "size")

    def __init__(
        self, records: list[SpanRecord], size: int, group: SpanGroup | None = None, earlier: Earlier = NOT_EVALUATED
    ) -> None:
        self.records = records
        self.size = size
        self.group = group
        self.earlier = earlier
        self.missing = {record.parent_id for record in records} - {record.span_id for record in records} - {0}
        """IDs of parent spans that ``records`` doesn't contain."""

    def lacks_root(self, span_id: int) -> bool:
        """Return True if the span with the ID ``span_id``, which this part lacks, might be the part's root."""
        return self.group is None or (not self.group.root_seen and self.group.root.parent_id == span_id)


class RevisableTrace:
    """Turns and single spans of one trace, with indexes to find the parts that a late span affects."""

    __slots__ = ("_below", "_by_end", "_of_root", "_of_span", "_parts", "kept_at", "size")

    def __init__(self, now: float) -> None:
        self.kept_at = now
        self.size = 0
        self._parts: dict[TracePart, None] = {}
        self._of_span: dict[int, TracePart] = {}
        self._of_root: dict[int, TracePart] = {}
        self._below: dict[int, dict[TracePart, None]] = {}
        """Maps a missing parent's ID to the parts (turns or single spans) below this parent."""
        self._by_end: list[tuple[int, int, TracePart]] = []
        """Turns as (root's end time, ``id()`` of the part, part), sorted by end time."""

    @property
    def turns(self) -> int:
        return len(self._of_root)

    def add(self, part: TracePart) -> None:
        self.remove_absorbed(part)
        self._parts[part] = None
        self.size += part.size
        for record in part.records:
            self._of_span[record.span_id] = part
        for parent_id in part.missing:
            self._below.setdefault(parent_id, {})[part] = None
        if part.group is not None:
            self._of_root[part.group.root.span_id] = part
            bisect.insort(self._by_end, (part.group.root.end_ns, id(part), part))

    def remove_absorbed(self, part: TracePart) -> None:
        for old in dict.fromkeys(self._absorbed(part)):
            del self._parts[old]
            self.size -= old.size
            for record in old.records:
                if self._of_span.get(record.span_id) is old:
                    del self._of_span[record.span_id]
            for parent_id in old.missing:
                siblings = self._below[parent_id]
                del siblings[old]
                if not siblings:
                    del self._below[parent_id]
            if old.group is not None:
                root = old.group.root
                del self._of_root[root.span_id]
                del self._by_end[bisect.bisect_left(self._by_end, (root.end_ns, id(old)))]

    def _absorbed(self, part: TracePart) -> Iterator[TracePart]:
        if part.group is not None and part.group.root.span_id in self._of_root:
            yield self._of_root[part.group.root.span_id]
        for record in part.records:
            known = self._of_span.get(record.span_id)
            if known is not None and known.group is None:
                yield known
            inner = self._of_root.get(record.span_id)
            if inner is not None and part.group is not None and _is_part_of(inner, part.group):
                yield inner

    def with_span(self, span_id: int) -> TracePart | None:
        return self._of_span.get(span_id)

    def earlier(self, group: SpanGroup) -> list[Earlier]:
        """Return this turn's earlier evaluation, if any, followed by the evaluations of turns that this turn absorbs."""
        own = self._of_root.get(group.root.span_id)
        found = {} if own is None else {own: None}
        for record in group.members:
            inner = self._of_root.get(record.span_id)
            if inner is not None and _is_part_of(inner, group):
                found[inner] = None
            found.update((part, None) for part in self._rootless_below(record.span_id) if part.group is not None)
        return [part.earlier for part in found]

    def missing_roots(self) -> list[int]:
        return [
            span_id
            for span_id, parts in self._below.items()
            if any(part.group is not None and part.lacks_root(span_id) for part in parts)
        ]

    def _rootless_below(self, span_id: int) -> Iterator[TracePart]:
        return (part for part in self._below.get(span_id, ()) if part.lacks_root(span_id))

    def affected(self, late: list[SpanRecord], with_logs: Iterable[int], *, loose: bool) -> list[TracePart]:
        """Return the trace's parts that late data might change, and all parts connected to those parts.

        Late data consists of spans (``late``), new log records of known spans (IDs in ``with_logs``), and, if ``loose`` is True,
        log records of unknown spans. Log records of unknown spans affect only traces with at most one turn.
        """
        found = [part for span_id in with_logs if (part := self._of_span.get(span_id)) is not None]
        if loose and self.turns < 2:
            found += self._parts
        late_ids = {record.span_id for record in late}
        orphans = []
        for record in late:
            parent, own = self._of_span.get(record.parent_id), self._of_span.get(record.span_id)
            found += [part for part in (parent, own) if part is not None]
            found += self._below.get(record.span_id, ())
            if parent is None and record.parent_id and record.parent_id not in late_ids and not record.remote_parent:
                orphans.append(record)
                found += self._rootless_below(record.parent_id)  # its siblings
        if orphans:
            found += self._running_with(orphans)
        return self._connected(found)

    def _running_with(self, orphans: list[SpanRecord]) -> list[TracePart]:
        """Return the trace's only turn. If there are several, return turns that ran between the orphans' first and last start."""
        if self.turns == 1:
            return [part for _, _, part in self._by_end]
        starts = [record.start_ns for record in orphans]
        first, last = min(starts), max(starts)
        later = self._by_end[bisect.bisect_left(self._by_end, (first, 0)) :]  # parts that ended after the first start
        return [part for _, _, part in later if part.records and part.group is not None and part.group.root.start_ns <= last]

    def _connected(self, to_do: list[TracePart]) -> list[TracePart]:
        found: dict[TracePart, None] = {}
        while to_do:
            part = to_do.pop()
            if part in found:
                continue
            found[part] = None
            to_do += [above for parent_id in part.missing if (above := self._of_span.get(parent_id)) is not None]
            if part.group is None or not part.group.root_seen:
                to_do += [below for record in part.records for below in self._below.get(record.span_id, ())]
        return list(found)


def _is_part_of(turn: TracePart, group: SpanGroup) -> bool:
    """Return True if a group with a turn's root contains the turn. A request to another process stays a separate turn."""
    assert turn.group is not None
    root = turn.group.root
    return root.span_id == group.root.span_id or not root.remote_parent or root.resource == group.root.resource


@dataclass(slots=True)
class SingleTurn:
    """Trace with one turn whose root is known (the usual case). To save time, spans are indexed only when needed."""

    kept_at: float
    group: SpanGroup
    earlier: Earlier

    @property
    def size(self) -> int:
        return self.group.size

    @staticmethod
    def missing_roots() -> list[int]:
        return []


_MOST_MISSING_ROOTS = 10_000


class Revisions:
    """Thread-safe store of evaluated turns. Additions drop traces older than ``max_age``, and the oldest above ``max_bytes``."""

    def __init__(self, max_bytes: int, max_age: float, now: Callable[[], float]) -> None:
        self._max_bytes = max_bytes
        self._max_age = max_age
        self._now = now
        self.forget()

    def forget(self) -> None:
        """Drop all turns and replace the lock, which might be held forever in a forked child process."""
        self._lock = threading.Lock()
        self._traces: OrderedDict[int, RevisableTrace | SingleTurn] = OrderedDict()
        self._bytes = 0
        self._missing_roots: OrderedDict[tuple[int, int], None] = OrderedDict()
        """Roots that never arrived, as (trace ID, span ID) keys. Their rootless turns were evaluated and then forgotten."""

    def forget_traces(self, trace_ids: Iterable[int]) -> None:
        with self._lock:
            for trace_id in trace_ids:
                trace = self._traces.pop(trace_id, None)
                if trace is not None:
                    self._bytes -= trace.size

    # --- closed turns

    def remember(self, group: SpanGroup, evaluation: Earlier) -> None:
        """Remember an evaluated turn. The turn replaces its earlier revision, and turns that it now contains."""
        group.reader = None  # readers need several times the memory of their spans, and are rarely needed again
        for record in group.members:
            record.dialects = None
        trace_id = group.root.trace_id
        if group.root_seen and group.until_ns is None:
            with self._lock:
                if trace_id not in self._traces:
                    self._traces[trace_id] = SingleTurn(self._now(), group, evaluation)
                    self._bytes += group.size
                    self._shrink()
                    return
        part = TracePart(group.members, group.size, group, evaluation)
        self._add_parts(trace_id, [part])
        with self._lock:
            for other_id in _traces_of(group)[1:]:
                trace = self._trace_of(other_id)
                if trace is not None:
                    self._bytes -= trace.size
                    trace.remove_absorbed(part)
                    self._bytes += trace.size

    def remember_unmatched(self, trace_id: int, records: list[SpanRecord], size: int) -> None:
        """Remember spans that don't belong to a turn, because late spans can make these spans part of a turn."""
        self._add_parts(trace_id, [TracePart([record], size // len(records)) for record in records])

    def _add_parts(self, trace_id: int, parts: list[TracePart]) -> None:
        with self._lock:
            trace = self._trace_of(trace_id)
            if trace is None:
                trace = self._traces[trace_id] = RevisableTrace(self._now())
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
            self._missing_roots.update(((trace_id, span_id), None) for span_id in trace.missing_roots())
            while len(self._missing_roots) > _MOST_MISSING_ROOTS:
                self._missing_roots.popitem(last=False)

    def _trace_of(self, trace_id: int) -> RevisableTrace | None:
        trace = self._traces.get(trace_id)
        if isinstance(trace, SingleTurn):
            indexed = RevisableTrace(trace.kept_at)
            indexed.add(TracePart(trace.group.members, trace.size, trace.group, trace.earlier))
            trace = self._traces[trace_id] = indexed
        return trace

    # --- late data

    def revised(
        self, trace_id: int, late: Iterable[SpanRecord], with_logs: Iterable[int], loose: Sequence[LogPart] = ()
    ) -> list[SpanGroup]:
        """Return the turns that late spans or log records change. ``with_logs`` contains IDs of known spans that have new logs.

        ``loose`` contains log records of unknown spans. If the trace was forgotten, return only turns that consist of late spans.
        """
        late = list(late)
        with self._lock:
            trace = self._trace_of(trace_id)
            if trace is not None:
                trace.kept_at = self._now()  # don't forget the trace while it is being revised
                self._traces.move_to_end(trace_id)
                parts, turns = trace.affected(late, with_logs, loose=bool(loose)), trace.turns
        if trace is None:  # if a rootless turn was evaluated, its late root isn't a new turn
            alone = [group for group in split(late) if stands_alone(group)]
            with self._lock:
                return [
                    group for group in alone if not any((trace_id, one.span_id) in self._missing_roots for one in group.members)
                ]
        known = {record.span_id: record for part in parts for record in part.records}
        new: dict[int, SpanRecord] = {}
        for record in late:
            if (earlier := new.get(record.span_id) or known.get(record.span_id)) is None:
                new[record.span_id] = record
            elif is_more_complete(record, earlier):  # the earlier copy was sent before the span ended
                join_logs(record, earlier.logs)
                new[record.span_id] = record
        before = [part.group for part in parts if part.group is not None]
        after = _rebuilt(before, (known | new).values(), turns <= len(before), loose)
        if loose:
            return after
        changed = new.keys() | with_logs
        if len(after) > 1:
            changed |= _moved_spans(before, after)
        return [group for group in after if any(record.span_id in changed for record in group.members)]

    # --- earlier evaluations

    def before(self, group: SpanGroup) -> Earlier:
        """Return a turn's earlier evaluation or :data:`NOT_EVALUATED`. ``Earlier.also`` lists turns that the turn absorbs."""
        with self._lock:
            traces = [self._trace_of(trace_id) for trace_id in _traces_of(group)]
            found = [earlier for trace in traces if trace is not None for earlier in trace.earlier(group)]
        if not found:
            return NOT_EVALUATED
        first = found[0]
        ids = {known for one in found for known in (one.turn_id, one.first_id, *one.also) if known is not None}
        return first._replace(also=tuple(sorted(ids - {first.turn_id, first.first_id})))

    def holding(self, trace_id: int, span_id: int) -> tuple[SpanGroup, Earlier] | None:
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
            parts = dict.fromkeys(part for span_id in wanted if (part := trace.with_span(span_id)) is not None)
            return [record for part in parts for record in part.records if record.span_id in wanted]


def stands_alone(group: SpanGroup) -> bool:
    """Return True if the group is a turn even without its trace's other spans: its root is a local root, agent, or workflow."""
    root = group.root
    return group.root_seen and (root.parent_id == 0 or root.remote_parent or role_in(root) in (AGENT, WORKFLOW))


def _traces_of(group: SpanGroup) -> list[int]:
    first = group.root.trace_id
    if group.until_ns is None:  # a turn in one trace
        return [first]
    return [first, *sorted({record.trace_id for record in group.members} - {first})]


def _rebuilt(before: list[SpanGroup], records: Iterable[SpanRecord], alone: bool, loose: Sequence[LogPart]) -> list[SpanGroup]:
    ancestors = {group.root.span_id: group.ancestor for group in before if group.root_seen}
    after = split(records, frozenset(ancestors), alone, loose)
    for group in after:
        group.ancestor = group.ancestor or ancestors.get(group.root.span_id)
    return after


def _moved_spans(before: Iterable[SpanGroup], after: Iterable[SpanGroup]) -> set[int]:
    had = {group.root.span_id: {record.span_id for record in group.members} for group in before}
    moved: set[int] = set()
    for group in after:
        members = {record.span_id for record in group.members}
        for root_id in had.keys() & members:
            if not had[root_id] <= members:
                moved |= {root_id, *(had[root_id] - members)}
    return moved
