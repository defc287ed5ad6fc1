"""Compose turns from closed spans.

The :class:`Composer` attaches log records to closed spans, and splits the spans into one :class:`~.roots.SpanGroup` per turn. If
a turn has several traces, the composer joins their groups. When late spans arrive, the composer revises the turn.
:meth:`Composer.read` builds a turn from its group.
"""

from __future__ import annotations

import math
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from ..core.feedback import LOGFIRE_SCOPE
from ..core.semconv import SCOPE
from ..core.tenancy import trace_id_of
from ..dialects.generic.events import kind_of_part
from ..dialects.reader import role_in, unread_trace
from ..dialects.step import AGENT, LLM, WORKFLOW
from ..evaluation.scored_turn import Root, ScoredTurn
from ..spans.record import MAX_VALUE_CHARS, LogPart, SpanRecord, clean, cleaned, cut_long_values, join_logs
from ..spans.sdk import from_sdk, start_of
from ..spans.wire import LazyAttributes, WireSpan
from .duplicates import Duplicates
from .logged import calls_of_turn
from .lost_tools import LostTools, is_tool_alone, lone_tool_in
from .readings import Readings
from .relations import calls_of, has_no_steps, is_lost_call, join_duplicates, order, together
from .revisions import Earlier, Revisions, stands_alone
from .roots import SpanGroup, split
from .separation import separate
from .state import Closed, PendingSpans
from .stitching import Stitcher, reader_of

SCORED = "scored"
_NO_PART_OF_A_TURN = frozenset((SCOPE, LOGFIRE_SCOPE))
"""Instrumentation scopes of otel-agenteval and Logfire's user feedback. Spans with these scopes never belong to a turn."""
_HELD_BYTES = 32 * 1024 * 1024
"""Maximum total bytes of all turns that wait for another trace."""
REVISABLE_BYTES = 8 * 2**20
"""Maximum total bytes of evaluated turns to keep in memory, so that late OTLP spans can revise these turns."""
_REVISABLE_SECONDS = 120.0


class SpanCounts:
    """Thread-safe counts of closed spans. Each span is counted once, either as scored or by the reason why it wasn't scored."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self._lock = threading.Lock()
        self.scored = 0
        self.left_out: Counter[str] = Counter()

    def count(self, outcome: str, spans: int) -> None:
        with self._lock:
            if outcome == SCORED:
                self.scored += spans
            else:
                self.left_out[outcome] += spans


class Composer:
    """Thread-safe composer of turns from closed spans.

    Args:
        patience: seconds that a turn waits for another trace that might continue the turn.
        revisable_bytes: maximum total bytes of evaluated turns to keep in memory, so that late spans can revise these turns.
        max_age: maximum seconds that a turn waits for other traces after its first trace arrived.
        open_spans: function that returns one list of known spans per open trace.
        queued: function that returns closed spans that might not be composed yet.
    """

    def __init__(
        self,
        patience: float,
        now: Callable[[], float] = time.monotonic,
        revisable_bytes: int = REVISABLE_BYTES,
        max_age: float = math.inf,
        open_spans: Callable[[], Iterable[Iterable[Any]]] = tuple,
        queued: Callable[[], Iterable[Closed]] = tuple,
    ) -> None:
        self.spans = SpanCounts()
        self.readings = Readings()
        self.notes: deque[SpanRecord] = deque()
        """Spans with user feedback. The caller removes each span, and adds its feedback to the parent span's turn."""
        self._tenant_labels: Mapping[str, Mapping[str, str]] = {}
        self._now = now
        self._holding = threading.Lock()
        self._open_spans = open_spans
        self._queued = queued
        self._lost_tools = LostTools(patience, self._running)
        self._patience = patience
        self._calls: dict[int, tuple[float, list[SpanGroup]]] = {}
        """Maps an open agent run's trace ID to (first arrival time, model calls in other traces that the run might have made)."""
        self._parts = Duplicates(Stitcher(patience, _HELD_BYTES, max_age), revisable_bytes)
        self._revisions = Revisions(revisable_bytes, _REVISABLE_SECONDS, now)

    def set_tenant_labels(self, labels: Mapping[str, Mapping[str, str]]) -> None:
        self._tenant_labels = labels

    # --- closed spans → groups

    def compose(self, closed: Closed) -> list[SpanGroup]:
        """Return the turns that can be evaluated now. Hold turns that another trace might continue."""
        found: list[SpanGroup] = []
        for group in self._groups(closed):
            with self._holding:
                now = self._now()
                if is_tool_alone(group):
                    self._count_lost_tools(self._lost_tools.add(group, now))
                elif closed.beside is not None and self._patience > 0 and is_lost_call(group):
                    self._calls.setdefault(closed.beside, (now, []))[1].append(group)
                else:
                    found += self._add(group, now)
        return found

    def _add(self, group: SpanGroup, now: float) -> list[SpanGroup]:
        _, waiting = self._calls.pop(group.root.trace_id, (0.0, []))
        own_calls = calls_of(group, waiting, concurrent=False) if waiting and has_no_steps(group) else []
        parts = [together([group, *own_calls]) if own_calls else group, *(call for call in waiting if call not in own_calls)]
        return [self._lost_tools.joined(whole) for part in parts for whole in self._parts.add(part, now)]

    def _groups(self, closed: Closed) -> list[SpanGroup]:
        records, loose = self._records(closed)
        pending = closed.pending = PendingSpans(len(records), self.spans.count)
        if closed.late:
            return self._revised(closed, records, pending)
        groups = self._groups_in_trace(closed, records, loose)
        whole = not closed.remainder and not closed.continued  # otherwise, an earlier turn had spans of this trace
        if not groups and whole:
            groups = lone_tool_in(records)
        if closed.references and groups and groups[0].root.references is None:
            groups[0].root.references = closed.references
        self._account(groups, records, pending, "not_in_a_turn")
        if not groups and records:
            if whole:
                self.readings.note_unread(unread_trace(records))
            self._revisions.remember_unmatched(closed.trace_id, records, closed.size)
        ancestor = _record_of_open(closed.ancestor) if closed.ancestor is not None and groups else None
        found = []
        for group in groups:
            # If span starts were seen, the assembler decides if spans are missing. A sampler dropped parents that it never saw.
            group.reason, group.complete = closed.reason, closed.complete and (group.complete or closed.root is not None)
            group.size = closed.size if len(groups) == 1 else closed.size * len(group.members) // len(records)
            group.ancestor = group.ancestor or ancestor
            found += separate(group)
        return found

    def _records(self, closed: Closed) -> tuple[list[SpanRecord], list[LogPart]]:
        """Return the closed spans that can belong to a turn, and calls, prompts, and answers in log records without a span."""
        records = [record_of(span) for span in closed.spans]
        others = [record for record in records if record.scope in _NO_PART_OF_A_TURN]
        if others:
            records = [record for record in records if record.scope not in _NO_PART_OF_A_TURN]
            self.notes.extend(record for record in others if record.scope == LOGFIRE_SCOPE)
            self.spans.count("own", len(others))
        if closed.size > MAX_VALUE_CHARS:
            for record in records:
                if not isinstance(record.attributes, LazyAttributes):  # lazy attributes are cut when they are parsed
                    cut_long_values(record)
        return records, [] if closed.late or not closed.logs else _attach_logs(records, closed.logs, closed.root is None)

    def _groups_in_trace(self, closed: Closed, records: list[SpanRecord], loose: Sequence[LogPart]) -> list[SpanGroup]:
        """Return one span group for each turn in a trace. If an only turn's root is still open, add the root to ``records``."""
        if closed.sole:
            root_id = closed.root.context.span_id
            root = next((record for record in records if record.span_id == root_id), None)
            if root is None:  # closed before its root ended
                root = from_sdk(closed.root)
                root.attributes = dict(root.attributes)  # the agent may still change them
                records.append(root)
            return [SpanGroup(root, records + calls_of_turn(root, records, loose))]
        groups = split(records, _known_roots(closed), loose=loose)
        if closed.remainder:
            groups = [group for group in groups if role_in(group.root) is not None]
        return [group for group in groups if stands_alone(group)] if closed.continued else groups

    def _account(self, groups: Sequence[SpanGroup], records: Sequence[SpanRecord], pending: PendingSpans, reason: str) -> None:
        for group in groups:
            group.pending = (pending,)
        taken = {id(member) for group in groups for member in group.members}
        pending.spans = len(taken.intersection(map(id, records)))
        if pending.spans < len(records):
            self.spans.count(reason, len(records) - pending.spans)

    def _revised(self, closed: Closed, late: list[SpanRecord], pending: PendingSpans) -> list[SpanGroup]:
        logs, trace_id = closed.logs or {}, closed.trace_id
        with self._holding:  # turns that wait for another trace
            waiting = self._parts.forget_traces({trace_id})
        held = [member for group in waiting if group.root.trace_id == trace_id for member in group.members]
        loose = _attach_logs([*held, *late, *self._revisions.records(trace_id, logs)], logs) if logs else []
        found = self._revisions.revised(trace_id, [*held, *late], logs, loose)
        self._account(found, late, pending, "late")
        taken = {member.span_id for group in found for member in group.members}
        unchanged = [group for group in waiting if group.root.trace_id != trace_id or group.root.span_id not in taken]
        for group in found:
            group.reason, group.size = closed.reason, closed.size + 512 * len(group.members)
            group.pending += tuple(spans for one in waiting if one not in unchanged for spans in one.pending)
        return join_duplicates(sorted((part for group in [*unchanged, *found] for part in separate(group)), key=order))

    # --- parts of turns that wait for their continuation

    @property
    def waiting(self) -> int:
        return len(self._parts) + len(self._lost_tools) + sum(len(calls) for _, calls in self._calls.values())

    def waiting_traces(self) -> set[int]:
        with self._holding:
            return self._parts.traces() | self._lost_tools.traces()

    def due(self, *, everything: bool = False) -> list[SpanGroup]:
        with self._holding:
            return self._released(self._now(), everything)

    def _released(self, now: float, everything: bool) -> list[SpanGroup]:
        until = math.inf if everything else now - self._patience
        overdue = [self._calls.pop(run) for run, (since, _) in [*self._calls.items()] if since <= until]
        found = [whole for _, calls in overdue for call in calls for whole in self._add(call, now)]
        found += map(self._lost_tools.joined, self._parts.release_all(now) if everything else self._parts.due(now))
        for group, is_turn in self._lost_tools.due(now, everything=everything):
            if is_turn:
                found.append(group)
            else:
                self._count_lost_tools([group])
        return found

    def _running(self, time_ns: int) -> Iterator[SpanRecord]:
        """Yield one span per unreleased trace whose turn might have been running at this time."""
        yield from _spans_before(self._open_spans(), time_ns)
        yield from self._parts.running(time_ns)
        for closed in self._queued():
            for record in map(record_of, closed.spans) if closed.pending is None else ():
                if record.start_ns < time_ns <= record.end_ns and role_in(record) in (LLM, AGENT, WORKFLOW):
                    yield record
                    break

    def _count_lost_tools(self, tools: Iterable[SpanGroup]) -> None:
        for tool in tools:
            self.readings.note_unread(unread_trace(tool.members))
            count_group(tool, "not_in_a_turn")

    # --- groups → turns

    def read(self, group: SpanGroup) -> ScoredTurn:
        earlier = self._revisions.before(group)
        turn = reader_of(group).turn(group.reason, group.all_seen, earlier.revision + 1, earlier.turn_id)
        record = group.root
        root = Root(
            trace_id_of(record.trace_id), record.span_id, record.sampled, record.trace_state,
            record.resource_attributes, turn.tenant, self._tenant_labels.get(turn.tenant or "", {}),
        )  # fmt: skip
        return ScoredTurn(
            turn, root, (), earlier.turn_id, earlier.turn_id is None, size=group.size, counted_as=earlier.first_id or turn.turn_id,
            absorbs=earlier.also,
        )  # fmt: skip

    def keep(self, group: SpanGroup, scored: ScoredTurn) -> None:
        turn = scored.turn
        self.readings.note(turn, reader_of(group))
        self._revisions.remember(group, Earlier(turn.turn_id, turn.revision, scored.first_id, tuple(scored.absorbs)))
        count_group(group, SCORED)

    def turn_of(self, trace_id: int, span_id: int) -> str | None:
        found = self._revisions.holding(trace_id, span_id)
        return None if found is None else found[1].turn_id

    def read_again(self, trace_id: int, span_id: int) -> tuple[SpanGroup, ScoredTurn] | None:
        """Rebuild the turn that contains a span. Return (its spans, turn without scores), or None if no remembered turn has it."""
        found = self._revisions.holding(trace_id, span_id)
        if found is None:
            return None
        group, earlier = found
        scored = self.read(group)
        scored.turn.revision, scored.turn.turn_id = earlier.revision, earlier.turn_id or scored.turn.turn_id
        scored.new, scored.supersedes = False, None
        group.reader = None
        return group, scored

    # --- what is not evaluated

    def count_closed(self, closed: Closed, outcome: str) -> None:
        if closed.pending is None:
            closed.pending = PendingSpans(len(closed.spans), self.spans.count)
        closed.pending.settle(outcome)

    def roots(self, closed: Closed) -> list[tuple[SpanRecord, bool]]:
        """Return (root span, True if the turn is complete) for each turn in the closed spans. Omit revisions of earlier turns."""
        if closed.sole:
            return [(record_of(closed.root), closed.complete)]
        records = [record for record in map(record_of, closed.spans) if record.scope not in _NO_PART_OF_A_TURN]
        groups = split(records, _known_roots(closed))
        if closed.late or closed.continued:  # revised turns were counted before
            groups = [group for group in groups if stands_alone(group) and not self._revisions.before(group).revision]
        return [
            (group.root, group.all_seen and closed.complete)
            for group in groups
            if not closed.remainder or role_in(group.root) is not None
        ]

    def forget_traces(self, trace_ids: set[int]) -> None:
        with self._holding:
            for group in (*self._parts.forget_traces(trace_ids), *self._lost_tools.forget_traces(trace_ids)):
                count_group(group, "moved")
        self._revisions.forget_traces(trace_ids)

    def after_fork_in_child(self) -> None:
        self._holding = threading.Lock()
        self._parts.forget()
        self._lost_tools.forget()
        self._calls.clear()
        self._revisions.forget()
        self.spans.reset()
        self.notes.clear()
        self.readings.reset()


def count_group(group: SpanGroup, outcome: str) -> None:
    for spans in group.pending:
        spans.settle(outcome)
    group.pending = ()  # later outcomes don't count, and remembered groups should be small


def record_of(span: Any) -> SpanRecord:
    kind = span.__class__
    if kind is SpanRecord:
        return cast("SpanRecord", span)
    return span.record() if kind is WireSpan else from_sdk(span)


def _known_roots(closed: Closed) -> frozenset[int]:
    return frozenset((closed.root.context.span_id,)) if closed.cut_off else frozenset()


def _spans_before(traces: Iterable[Iterable[Any]], before_ns: int) -> Iterator[SpanRecord]:
    for spans in traces:
        for span in spans:
            record = record_of(span) if span.__class__ in (SpanRecord, WireSpan) or span.end_time else _record_of_open(span)
            if record.start_ns < before_ns:
                yield record
                break


def _record_of_open(span: Any) -> SpanRecord:
    trace_id, span_id, parent_id, scope, attributes = start_of(span)
    record = SpanRecord(span.name, trace_id, span_id, parent_id, attributes=dict(attributes), scope=scope, resource=span.resource)
    record.start_ns = span.start_time or 0
    clean(record)
    return record


def _attach_logs(records: Iterable[SpanRecord], logs: dict[int, list[LogPart]], all_seen: bool = True) -> list[LogPart]:
    others = {span_id for span_id in logs if all_seen or not span_id}
    in_process = False
    for record in records:
        parts = logs.get(record.span_id)
        in_process = record.trace_state is not None
        if parts:
            others.discard(record.span_id)
            join_logs(record, [cleaned(part) for part in parts] if in_process else parts)
    loose = [part for span_id in others for part in logs.pop(span_id) if kind_of_part(part) is not None]
    return [cleaned(part) for part in loose] if in_process else loose
