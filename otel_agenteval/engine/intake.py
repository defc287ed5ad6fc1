"""What comes in, and how it gets into the worker's queue: the way in of :class:`~.engine.Engine`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..core import semconv
from ..core.feedback import Feedback, in_annotation, in_record
from ..core.tenancy import turn_id_in
from ..spans.record import LogPart
from ..spans.wire import Part
from ..turns.assembler import Assembler
from ..turns.conversations import Ended
from ..turns.early_logs import EarlyLogs
from ..turns.roots import Group
from ..turns.state import Closed
from .ending_root import close_root
from .feedback import Given, GivenFeedback
from .pipeline import Pipeline
from .work import ClosedSpans, EndedConversation, GroupedSpans, WorkItem
from .worker import Worker

if TYPE_CHECKING:
    from ..core.telemetry import Telemetry

_SHARE_OF_QUEUE = 0.5
"""Share of the worker's queue for turns that only waited for their deadline: they can wait for room too."""


class Intake:
    """Receives spans, log records and losses, and gives the worker what is closed."""

    telemetry: Telemetry
    assembler: Assembler
    early_logs: EarlyLogs
    pipeline: Pipeline
    worker: Worker
    late_log_records: int
    """Log records whose span did not come in time."""
    _keeps_all: bool
    """Whether what was received is never dropped for lack of room in the worker's queue."""

    # --- the way in: spans of this process

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
        """A span started that needs a look: see :meth:`Assembler.start`."""
        with self.assembler.lock:
            self.assembler.start(trace_id, span_id, parent_id, role, span, references, carried_id)
        if self.worker.idle:
            self.worker.wake()

    def span_ended(
        self, trace_id: int, span_id: int, span: Any, attributes: dict[str, Any], local_root: bool
    ) -> Sequence[Closed]:
        """A span ended that needs a look: see :meth:`Assembler.end`. What it closed belongs into :meth:`root_closed`."""
        with self.assembler.lock:
            self.assembler.received += 1
            return self.assembler.end(trace_id, span_id, span, attributes, local_root)

    def root_closed(self, closed: Sequence[Closed], span: Any, *, still_ending: bool) -> None:
        """The end of a span closed something. If the span is a root it gets its scores: see :mod:`.ending_root`."""
        waiting = list(closed)
        try:
            while waiting:
                close_root(self.pipeline, waiting.pop(0), span, still_ending, self._put)
        finally:
            if waiting:  # the host's thread was interrupted
                self.take(waiting)

    # --- the way in: spans that come after their end, and log records

    def receive_spans(self, parts: Iterable[tuple[int, Part]]) -> None:
        """Spans that came after their end: by trace key, those of one trace in one batch."""
        assembler, early = self.assembler, self.early_logs
        closed: list[Closed] = []
        with assembler.lock:
            for trace_id, part in parts:
                assembler.received += len(part.spans)
                closed += assembler.add_received(trace_id, part.spans, part.size, part.local_root)
                if early and trace_id in early:
                    for span_id, log, size in early.pop(trace_id):
                        assembler.add_log(trace_id, span_id, log, size)
        self.take(closed)
        if self.worker.idle:
            self.worker.wake()

    def receive_log(self, trace_id: int, span_id: int, part: LogPart, size: int = 0, *, early: bool = False) -> None:
        """Content of a span, from a log record. If its span is not known, the record is late; where logs can be ``early``, it waits."""
        with self.assembler.lock:
            if not self.assembler.add_log(trace_id, span_id, part, size):
                self.late_log_records += self.early_logs.add(trace_id, span_id, part, size) if early else 1
                if not early:
                    return
        if self.worker.idle:
            self.worker.wake()

    def receive_feedback(self, given: Given) -> bool:
        """What a user said of a turn: see :mod:`.feedback`. False when there is no room for it."""
        item = GivenFeedback(self.pipeline, given)
        taken = self.worker.put(item, item.size, must=self._keeps_all)
        if not taken:
            item.lose("queue_full")
        return taken

    def receive_annotation(self, trace_id: int, parent_id: int, span_id: int, attributes: Mapping[str, Any]) -> None:
        """The same, in a span that was made for it below a span of the turn."""
        self._receive_read(in_annotation(attributes, turn_id_in(trace_id, span_id)), trace_id, parent_id)

    def receive_feedback_record(self, trace_id: int, span_id: int, part: LogPart) -> None:
        """The same, in a log record."""
        seed = f"{turn_id_in(trace_id, span_id)} {part.time_ns}"
        self._receive_read(in_record(part.name, part.attributes, part.body, seed), trace_id, span_id)

    def _receive_read(self, found: Feedback | None, trace_id: int, span_id: int) -> None:
        if found is None:
            self.pipeline.feedback.count("unreadable")
        else:
            self.receive_feedback(Given(found, trace_id, span_id))

    def release_feedback(self) -> None:
        """Feedback waits no longer: no further turn will come."""
        for given in self.pipeline.feedback.due(everything=True):
            self._put(GivenFeedback(self.pipeline, given, last=True), must=True)

    def count_drop(self, reason: str, spans: int) -> None:
        """Count spans that were received and are not used, by the reason why."""
        with self.assembler.lock:
            self.assembler.received += spans
        self.pipeline.composer.spans.count(reason, spans)

    # --- closing turns away from the agent's thread

    def take(self, closed: Iterable[Closed], *, must: bool = False) -> None:
        """Give closed turns to the worker, which evaluates them. What does not fit its queue is counted, unless it ``must`` be taken."""
        for item in closed:
            if item.spans or item.sole or item.late:
                self._put(ClosedSpans(self.pipeline, item), must=must)

    def take_groups(self, groups: Iterable[Group], *, must: bool = False) -> None:
        """The same, for groups that waited for their continuation."""
        for group in groups:
            self._put(GroupedSpans(self.pipeline, group), must=must)

    def take_ended(self, ended: Iterable[Ended]) -> None:
        """The same, for conversations that are over."""
        for one in ended:
            self._put(EndedConversation(self.pipeline, one))

    def _put(self, item: WorkItem, *, must: bool = False) -> None:
        if not self.worker.put(item, item.size, must=must or self._keeps_all):
            item.lose("queue_full")

    def tick(self) -> bool:
        """Close what has waited long enough; whether anything still waits."""
        assembler = self.assembler
        with assembler.lock:
            closed = assembler.tick(self.worker.max_bytes * _SHARE_OF_QUEUE - self.worker.bytes)
            self.late_log_records += self.early_logs.expire()
            waiting = assembler.waiting or bool(self.early_logs)
        self.take(closed)
        self.pipeline.hints.look_at_spans(assembler.received)
        self.take_groups(self.pipeline.composer.due())
        store = self.pipeline.conversations
        if store is not None:
            self.take_ended(store.due())
        self.pipeline.fleet.tick()
        feedback = self.pipeline.feedback
        for given in feedback.due():
            self._put(GivenFeedback(self.pipeline, given, last=True), must=True)
        if self.pipeline.judging is not None:
            self.pipeline.judging.start()
        for _ in range(len(assembler.late_ages)):
            self.telemetry.observe(semconv.LATE_SPAN_AGE, assembler.late_ages.popleft())
        return waiting or self.pipeline.composer.waiting > 0 or bool(store) or len(feedback) > 0

    def forget_traces(self, trace_ids: set[int]) -> None:
        """Drop all that is known of some traces, also what waits to be evaluated: another process evaluates them."""

        def forget() -> None:
            with self.assembler.lock:
                self.assembler.forget_traces(trace_ids)
                for trace_id in trace_ids:
                    self.early_logs.pop(trace_id)
            self.pipeline.composer.forget_traces(trace_ids)

        def unwanted(item: WorkItem) -> bool:
            found = item.is_of(trace_ids)
            if found:
                item.leave("moved")
            return found

        self.worker.discard(unwanted, forget)

    # --- what is held

    @property
    def spans_received(self) -> int:
        """Spans received, whatever their outcome."""
        return self.assembler.received

    @property
    def waits(self) -> bool:
        """Whether anything may become due as time passes."""
        return (
            self.assembler.waiting
            or bool(self.early_logs)
            or self.pipeline.composer.waiting > 0
            or bool(self.pipeline.conversations)
            or len(self.pipeline.feedback) > 0
        )

    def held(self, trace_ids: set[int]) -> set[int]:
        """Those of some traces of which something is not evaluated yet, except what is in the worker's queue."""
        with self.assembler.lock:
            found = self.assembler.held(trace_ids)
            found |= {trace_id for trace_id in trace_ids if trace_id in self.early_logs}
        return found | (trace_ids & self.pipeline.composer.waiting_traces()) | self.pipeline.feedback.held(trace_ids)
