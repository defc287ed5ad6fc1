"""Remember recently closed turns so that late spans and log records can revise them.

Late data never changes a closed turn in place. If it matters, the turn is built again from its spans and the late
data, and evaluated as its next revision.

Terms:

- A *part* of a trace is a closed turn, or one span without a turn.
- A parent is *missing* if it isn't among the spans of its part.
- A turn is *rootless* if its root was never seen. One of its missing parents is its root.
- A new part *absorbs* older ones: the earlier revision of its turn, turns whose roots are now among its spans, and spans
  without a turn that it now contains.
- A log record is *loose* if its span is unknown.

Example: A trace closes without its root 1. The model calls 2 and 3 below it are two rootless turns, which are evaluated
and remembered. Then the late span 1 arrives, an agent. ``revised`` finds both parts, because they miss the parent 1,
and builds one turn from the spans 1, 2 and 3. ``before`` returns the evaluation of 2, and that of 3 in ``also``. After
the new turn is evaluated, ``remember`` adds it, and it absorbs the two.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence

from ..dialects.reader import role_in
from ..dialects.step import AGENT, WORKFLOW
from ..spans.record import LogPart, SpanRecord
from .revisable_trace import NOT_EVALUATED, Earlier, RevisableTrace, SingleTurn, TracePart
from .roots import SpanGroup, split

_MOST_MISSING_ROOTS = 10_000


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
        self._traces: OrderedDict[int, RevisableTrace | SingleTurn] = OrderedDict()
        self._bytes = 0
        self._missing_roots: OrderedDict[tuple[int, int], None] = OrderedDict()
        """Trace ids and span ids of the roots of rootless turns that were evaluated and forgotten."""

    def forget_traces(self, trace_ids: Iterable[int]) -> None:
        with self._lock:
            for trace_id in trace_ids:
                trace = self._traces.pop(trace_id, None)
                if trace is not None:
                    self._bytes -= trace.size

    # --- closed turns

    def remember(self, group: SpanGroup, evaluation: Earlier) -> None:
        """Remember an evaluated turn. It replaces the parts that it absorbs, also in the other traces of a turn."""
        group.reader = None  # the reader uses several times the memory of the spans, and is hardly ever needed again
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
        part = TracePart.of_turn(group, evaluation)
        self._add_parts(trace_id, [part])
        with self._lock:
            for other_id in _traces_of(group)[1:]:
                trace = self._trace_of(other_id)
                if trace is not None:
                    self._bytes -= trace.size
                    trace.remove_absorbed(part)
                    self._bytes += trace.size

    def remember_unmatched(self, trace_id: int, records: list[SpanRecord], size: int) -> None:
        """Remember spans without a turn, because a late span may add them to one."""
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
            trace = self._traces[trace_id] = trace.as_trace()
        return trace

    # --- late data

    def revised(
        self, trace_id: int, late: Iterable[SpanRecord], with_logs: Iterable[int], loose: Sequence[LogPart] = ()
    ) -> list[SpanGroup]:
        """Return the turns that late spans, late logs of the spans ``with_logs`` or ``loose`` logs change. If the trace is
        forgotten, only groups that stand alone are returned.
        """
        late = list(late)
        with self._lock:
            trace = self._trace_of(trace_id)
            if trace is not None:
                trace.kept_at = self._now()  # don't forget the trace while it is being revised
                self._traces.move_to_end(trace_id)
                parts, turns = trace.affected(late, with_logs, loose=bool(loose)), trace.turns
        if trace is None:
            return self._new_turns(trace_id, late)
        known = [record for part in parts for record in part.records]
        before = [part.group for part in parts if part.group is not None]
        after = _rebuilt(before, known + late, turns <= len(before), loose)
        if loose:
            return after
        changed = ({record.span_id for record in late} - {record.span_id for record in known}).union(with_logs)
        if len(after) > 1:
            changed |= _moved_spans(before, after)
        return [group for group in after if any(record.span_id in changed for record in group.members)]

    def _new_turns(self, trace_id: int, late: list[SpanRecord]) -> list[SpanGroup]:
        """Return the turns in late spans of a forgotten trace. A late root isn't a new turn if its rootless turn was evaluated."""
        groups = [group for group in split(late) if stands_alone(group)]
        with self._lock:
            return [group for group in groups if not any((trace_id, one.span_id) in self._missing_roots for one in group.members)]

    # --- earlier evaluations

    def before(self, group: SpanGroup) -> Earlier:
        """Return the earlier evaluation of this turn. If several turns became one, ``also`` has the others."""
        with self._lock:
            traces = [self._trace_of(trace_id) for trace_id in _traces_of(group)]
            found = [earlier for trace in traces if trace is not None for earlier in trace.earlier(group)]
        if not found:
            return NOT_EVALUATED
        first = found[0]
        ids = {known for one in found for known in (one.turn_id, one.first_id, *one.also) if known is not None}
        return first._replace(also=tuple(sorted(ids - {first.turn_id, first.first_id})))

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
            parts = dict.fromkeys(part for span_id in wanted if (part := trace.with_span(span_id)) is not None)
            return [record for part in parts for record in part.records if record.span_id in wanted]


def stands_alone(group: SpanGroup) -> bool:
    """Return True if a group is a turn whatever else its trace has: it has its local root, or an agent as its root."""
    root = group.root
    return group.root_seen and (root.parent_id == 0 or root.remote_parent or role_in(root) in (AGENT, WORKFLOW))


def _traces_of(group: SpanGroup) -> list[int]:
    """Return the ids of the turn's traces, that of its root first."""
    first = group.root.trace_id
    if group.until_ns is None:  # a turn in one trace
        return [first]
    return [first, *sorted({record.trace_id for record in group.members} - {first})]


def _rebuilt(before: list[SpanGroup], records: list[SpanRecord], alone: bool, loose: Sequence[LogPart]) -> list[SpanGroup]:
    """Build turns from the spans of earlier turns and late spans. Earlier roots stay roots and keep their ancestors."""
    ancestors = {group.root.span_id: group.ancestor for group in before if group.root_seen}
    after = split(records, frozenset(ancestors), alone, loose)
    for group in after:
        group.ancestor = group.ancestor or ancestors.get(group.root.span_id)
    return after


def _moved_spans(before: Iterable[SpanGroup], after: Iterable[SpanGroup]) -> set[int]:
    """Return the spans of earlier turns that aren't in the turns with their roots anymore, and these roots."""
    had = {group.root.span_id: {record.span_id for record in group.members} for group in before}
    moved: set[int] = set()
    for group in after:
        members = {record.span_id for record in group.members}
        for root_id in had.keys() & members:
            if not had[root_id] <= members:
                moved |= {root_id, *(had[root_id] - members)}
    return moved
