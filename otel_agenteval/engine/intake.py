"""Receive spans, log records, and user feedback, and queue closed turns for the worker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, islice
from typing import Any

from ..core import forks, semconv
from ..core.feedback import Feedback, in_annotation, in_record
from ..core.telemetry import Telemetry
from ..core.tenancy import turn_id_in
from ..dialects.reader import role_in
from ..spans.record import LogPart
from ..spans.wire import Part
from ..turns.assembler import Assembler
from ..turns.composer import record_of
from ..turns.conversations import Ended
from ..turns.late_data import EarlyLogs
from ..turns.roots import SpanGroup
from ..turns.state import Closed
from .ending_root import EndingRoots
from .feedback import TurnFeedback
from .hints import Hints
from .pipeline import Pipeline
from .work import ClosedSpans, EndedConversation, GivenFeedback, GroupedSpans, WorkItem
from .worker import Worker

_SHARE_OF_QUEUE = 0.5
"""Share of the worker's queue that turns can fill when they close at their deadline. If this share is full, the turns stay open."""
_MOST_READ = 10_000
"""Maximum number of spans in memory to search for an agent or model span."""


class Intake:
    def __init__(
        self,
        assembler: Assembler,
        early_logs: EarlyLogs,
        roots: EndingRoots,
        pipeline: Pipeline,
        worker: Worker,
        hints: Hints,
        telemetry: Telemetry,
    ) -> None:
        self._assembler = assembler
        self.early_logs = early_logs
        self._roots = roots
        self._pipeline = pipeline
        self._composer = pipeline.composer
        self._worker = worker
        self._hints = hints
        self._is_ending = False
        self._telemetry = telemetry
        self._keeps_all = False
        self._reset()
        forks.in_child(self._reset)

    def _reset(self) -> None:
        self.late_log_records = 0
        """Number of log records that weren't joined to a span, for example because its trace is unknown."""

    def keep_all(self) -> None:
        """Don't drop received data if the worker's queue is full. The caller must check the queue before it receives data."""
        self._keeps_all = True

    def span_started(
        self,
        trace_id: int,
        span_id: int,
        parent_id: int,
        role: str | None,
        span: Any,
        references: dict[str, Any] | None,
        carried_id: int,
    ) -> None:
        """Record the start of a span. For the parameters, see :meth:`Assembler.start`."""
        with self._assembler.lock:
            self._assembler.start(trace_id, span_id, parent_id, role, span, references, carried_id)
        if self._worker.idle:
            self._worker.wake()

    def span_ended(
        self, trace_id: int, span_id: int, span: Any, attributes: dict[str, Any], local_root: bool
    ) -> Sequence[Closed]:
        """Record the end of a span, and return the turns that then close. Callers must pass these turns to :meth:`root_closed`."""
        with self._assembler.lock:
            return self._assembler.end(trace_id, span_id, span, attributes, local_root)

    def root_closed(self, closed: Sequence[Closed], span: Any, *, still_ending: bool) -> None:
        """Queue the turns in ``closed`` for the worker. If ``span`` is a turn's root, add the scores if possible."""
        waiting = list(closed)
        try:
            while waiting:
                self._roots.close(waiting.pop(0), span, still_ending, self.put)
        finally:
            if waiting:  # the application's thread was interrupted
                self.take(waiting)

    def receive_spans(self, parts: Iterable[tuple[int, Part]]) -> None:
        """Receive one request's ended spans. ``parts`` has one entry per trace, with all of the request's spans in this trace."""
        assembler, early = self._assembler, self.early_logs
        closed: list[Closed] = []
        with assembler.lock:
            for trace_id, part in parts:
                closed += assembler.add_received(trace_id, part.spans, part.size, part.local_root)
                if early and trace_id in early:
                    for span_id, log, size in early.pop(trace_id):
                        assembler.add_log(trace_id, span_id, log, size)
        self.take(closed)
        if self._worker.idle:
            self._worker.wake()

    def receive_log(self, trace_id: int, span_id: int, part: LogPart, size: int = 0, *, early: bool = False) -> None:
        """Receive a log record that contains a span's content, such as messages.

        If the trace is unknown, for example before its first span, the record waits (if ``early`` is True) or counts as late.
        """
        with self._assembler.lock:
            if not self._assembler.add_log(trace_id, span_id, part, size):
                self.late_log_records += self.early_logs.add(trace_id, span_id, part, size) if early else 1
                if not early:
                    return
        if self._worker.idle:
            self._worker.wake()

    def receive_feedback(self, given: TurnFeedback) -> bool:
        return self.put(GivenFeedback(given))

    def receive_annotation(self, trace_id: int, parent_id: int, span_id: int, attributes: Mapping[str, Any]) -> None:
        """Receive user feedback from an annotation span. ``parent_id`` is the ID of a span in the rated turn."""
        self._receive_read(in_annotation(attributes, turn_id_in(trace_id, span_id)), trace_id, parent_id)

    def receive_feedback_record(self, trace_id: int, span_id: int, part: LogPart) -> None:
        seed = f"{turn_id_in(trace_id, span_id)} {part.time_ns}"
        self._receive_read(in_record(part.name, part.attributes, part.body, seed), trace_id, span_id)

    def _receive_read(self, found: Feedback | None, trace_id: int, span_id: int) -> None:
        if found is None:
            self._pipeline.feedback.count("unreadable")
        else:
            self.receive_feedback(TurnFeedback(found, trace_id, span_id))

    def release_feedback(self, *, everything: bool = True) -> None:
        """Queue feedback that is due or, if no more turns will arrive (``everything``), all feedback that waits for its turn."""
        for given in self._pipeline.feedback.due(everything=everything):
            self.put(GivenFeedback(given, last=True), must=True)

    def count_drop(self, reason: str, spans: int) -> None:
        with self._assembler.lock:
            self._assembler.received += spans
        self._composer.spans.count(reason, spans)

    def take(self, closed: Iterable[Closed], *, must: bool = False) -> None:
        for item in closed:
            if item.spans or item.sole or item.late:
                self.put(ClosedSpans(item), must=must)

    def take_groups(self, groups: Iterable[SpanGroup], *, must: bool = False) -> None:
        for group in groups:
            self.put(GroupedSpans(group), must=must)

    def take_ended(self, ended: Iterable[Ended]) -> None:
        for one in ended:
            self.put(EndedConversation(one))

    def put(self, item: WorkItem, *, must: bool = False) -> bool:
        """Queue an item. If the worker has stopped, or the queue is full without ``must`` or :meth:`keep_all`, drop it and return False."""
        taken = self._worker.put(item, item.size, must=must or self._keeps_all)
        if not taken:
            self._pipeline.outcomes.drop(item, "queue_full")
        return taken

    def close_all(self, reason: Any) -> None:
        self._is_ending = True  # a tick on another thread would miss these turns
        with self._assembler.lock:
            closed = self._assembler.close_all(reason)
        self._hints.check_spans(self._assembler.received, lambda: self._may_hold_turn(closed))
        self.take_groups(self._composer.due(everything=True), must=True)
        self.take(closed, must=True)

    def _may_hold_turn(self, closed: Iterable[Closed]) -> bool:
        queue, held = self._worker.queue, chain.from_iterable((*(one.spans for one in closed), *self._assembler.open_spans()))
        if queue.has_handled(queue.accepted) and not self._composer.waiting_traces():
            return any(role_in(record_of(span)) is not None for span in islice(held, _MOST_READ))
        return True

    def tick(self) -> bool:
        """Close turns whose deadline has passed. Return True if any data is still waiting."""
        assembler = self._assembler
        with assembler.lock:
            closed = assembler.tick(self._worker.queue.max_bytes * _SHARE_OF_QUEUE - self._worker.queue.bytes)
            self.late_log_records += self.early_logs.expire()
        self._hints.check_spans(assembler.received, lambda: self._may_hold_turn(closed) or self._is_ending)
        self.take(closed)
        self.take_groups(self._composer.due())
        store = self._pipeline.conversations
        if store is not None:
            self.take_ended(store.due())
        self._pipeline.statistics.tick()
        self.release_feedback(everything=False)
        if self._pipeline.judging is not None:
            self._pipeline.judging.start()
        for _ in range(len(assembler.late.ages)):
            self._telemetry.observe(semconv.LATE_SPAN_AGE, assembler.late.ages.popleft())
        return self.waits

    def forget_traces(self, trace_ids: set[int]) -> None:
        """Drop these traces' data, including queued turns, because another process evaluates the traces."""

        def forget() -> None:
            with self._assembler.lock:
                self._assembler.forget_traces(trace_ids)
                for trace_id in trace_ids:
                    self.early_logs.pop(trace_id)
            self._composer.forget_traces(trace_ids)

        def unwanted(item: WorkItem) -> bool:
            found = isinstance(item, (ClosedSpans, GroupedSpans)) and item.trace_key in trace_ids
            if found:
                self._pipeline.outcomes.hand_over(item, "moved")
            return found

        self._worker.discard(unwanted, forget)

    @property
    def waits(self) -> bool:
        return (
            self._assembler.waiting
            or bool(self.early_logs)
            or self._composer.waiting > 0
            or bool(self._pipeline.conversations)
            or len(self._pipeline.feedback) > 0
        )

    def held(self, trace_ids: set[int]) -> set[int]:
        """Return those of ``trace_ids`` that have waiting data outside the worker's queue, such as an open turn or feedback."""
        with self._assembler.lock:
            found = self._assembler.held(trace_ids)
            found |= {trace_id for trace_id in trace_ids if trace_id in self.early_logs}
        return found | (trace_ids & self._composer.waiting_traces()) | self._pipeline.feedback.held(trace_ids)
