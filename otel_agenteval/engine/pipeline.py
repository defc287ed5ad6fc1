"""The one chain: spans → turn → scores → outlets.

    closed = assembler.end(span)         # turns/assembler.py: is this the moment?
    turn   = build_turn(spans)           # turns/reading/turn.py: what happened
    scores = [metric.evaluate(turn)]     # registry.py, metrics/*: what it is worth
    outlet.emit(turn, scores)            # emit/*: where it is said

On the agent's thread only the first runs: an ending root gets a list of events that knows its turn, and the turn is the
worker's. If an exporter reads the root's events before the worker came, that thread evaluates; in any case once.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from ..core.score import GATED, SHED, Score
from ..core.semconv import AGENT_NAME, SCOPE
from ..core.telemetry import Telemetry
from ..core.tenancy import trace_id_of, turn_id_in
from ..core.threads import is_meant_for_host
from ..core.turn import Turn
from ..dialects.reader import role_in
from ..evaluation.load_shedding import Shedding
from ..evaluation.references import ReferenceSources, excluded_by, note_sources
from ..evaluation.scored_turn import Root, ScoredTurn
from ..metrics.bound_metric import BoundMetric
from ..outlets.accounting import account_lost
from ..outlets.base import Verdict
from ..outlets.fan_out import FanOut
from ..outlets.span_events import SpanEventOutlet
from ..spans.record import MAX_VALUE_CHARS, LogPart, SpanRecord, cut_long_values, join_logs
from ..spans.sdk import from_sdk, start_of
from ..spans.wire import LazyAttributes, WireSpan
from ..turns.conversations import SIGNALS, Conversations, Ended, conversation_of
from ..turns.revisions import Earlier, PastTurns, stands_alone
from ..turns.roots import Group, split
from ..turns.state import Closed, Portion
from ..turns.stitching import Stitcher, may_go_on, reader_of, separate

if TYPE_CHECKING:
    from ..judging.dispatcher import Dispatcher

_log = logging.getLogger("otel_agenteval")

INLINE_MAX_BYTES = 1024 * 1024
"""A turn that holds more is the worker's alone, without span events: a synchronous exporter would keep the agent waiting for it."""
_SIZE_WITHOUT_CONTENT = 8 * 1024
_SCORED = "scored"
_RING = 1_000
_HELD_BYTES = 32 * 1024 * 1024
_PAST_BYTES = 8 * 1024 * 1024
_PAST_SECONDS = 120.0
"""How much and how long closed turns are kept for what comes late."""
_PATIENCE = 5.0
"""Seconds that a reader of events waits for another thread that is evaluating."""
_OUR_METRICS = "otel_agenteval."
_WARM_UP = {
    "turn_id": "warm-up", "duration_s": 1.0, "input": "a@b.example", "output": "See https://a.example, 17 of 4111 1111 1111 1111.",
    "system": "You are an assistant that answers in one sentence and never more than that.",
    "tool_calls": [{"name": "t", "arguments": {"q": "x"}, "result": "17"}] * 3,
    "tool_definitions": [{"name": "t", "parameters": {"type": "object", "properties": {"q": {"type": "string"}}}}],
    "llm_calls": [{"model": "m", "finish_reason": "stop"}], "usage": {"input_tokens": 1, "output_tokens": 1}, "cost_usd": 0.1,
}  # fmt: skip


class _Work:
    """A turn on its way to the worker: scored so far, with what the inline budget left over."""

    __slots__ = ("pending", "scored")

    def __init__(self, scored: ScoredTurn, pending: Sequence[BoundMetric]) -> None:
        self.scored = scored
        self.pending = pending


class PendingTurn:
    """What the end of a root closed, not evaluated yet: by the worker, or by who reads the root's events before it."""

    __slots__ = (
        "_closed",
        "_done",
        "_evaluating_in",
        "_events",
        "_groups",
        "_lock",
        "_lost",
        "_pipeline",
        "_scored",
        "_span",
        "size",
    )

    def __init__(self, pipeline: Pipeline, closed: Closed, span: Any) -> None:
        self._pipeline = pipeline
        self._closed: Closed | None = closed
        self._lost: Closed | None = closed
        """What is counted when no scores come of it."""
        self._span = span
        self._groups: deque[Group] = deque()
        """Those of its turns that are not evaluated yet."""
        self._events: Sequence[Any] = ()
        self._scored: list[ScoredTurn] = []
        self._done = False
        self._evaluating_in: int | None = None
        self._lock = threading.Lock()
        self.size = closed.size

    def events(self) -> Sequence[Any] | None:
        """The events of the root, or None while they cannot be had. Raises nothing into the exporter that asks, but what ends its thread."""
        if self._evaluating_in != threading.get_ident():  # else the evaluation itself reads the span's own events
            self._evaluate()
        return self._events if self._done else None

    def take(self) -> list[ScoredTurn]:
        """The scored turns, for the worker: once. None if another thread does not come to an end with them."""
        self._evaluate()
        if not self._done:
            self.lose("stuck")
        scored, self._scored = self._scored, []
        return scored

    def lose(self, reason: str) -> None:
        """Nobody will take them: count that, unless it was."""
        closed, self._lost = self._lost, None
        if closed is not None:
            self._pipeline.lose(closed, reason)

    def _evaluate(self) -> None:
        # A forked child can inherit a lock that nobody will release: it goes on without these scores.
        if self._done or not self._lock.acquire(timeout=_PATIENCE):
            return
        interrupted = False
        try:
            if self._done:  # by who had the lock
                return
            self._evaluating_in = threading.get_ident()
            closed, self._closed = self._closed, None
            if closed is not None:
                self._groups.extend(self._pipeline.groups(closed))
            while self._groups:
                scored, events = self._pipeline.score_deferred(self._groups[0], self._span)
                self._groups.popleft()
                self._scored.append(scored)
                self._events = events or self._events
            if self._lost is None:  # counted meanwhile
                self._scored = []
            self._lost = None
        except BaseException as error:
            interrupted = is_meant_for_host(error)
            if interrupted:  # the worker has this in its queue, and goes on with it
                raise
            self._pipeline.outlets.count_error("span_events", type(error).__name__)
            self._scored = []
            self.lose("fault")
        finally:
            self._evaluating_in = None
            if not interrupted:
                self._span, self._done = None, True
            self._lock.release()


@dataclass(slots=True)
class ConversationMetrics:
    """The store of conversations, and what is evaluated when one of them ends."""

    store: Conversations
    metrics: Sequence[BoundMetric]
    judged: bool = False
    """Whether judges are asked about whole ones too."""
    history: bool = False
    """Whether a judged metric of turns looks at what was said before."""


class Pipeline:
    """Evaluates closed turns and sends their scores out.

    Args:
        metrics: what to evaluate on every turn, in this order.
        outlets: where scores leave on the worker.
        telemetry: gets the counts and observations of turns and scores.
        span_events: the outlet that writes on the ending root.
        budget: seconds that one turn may take where it must be evaluated on the agent's thread; past it the rest runs on the worker.
        references: what turns are compared with.
        conversations: where turns are held by conversation, for the metrics over whole ones.
        patience: seconds that a part of a turn waits for the trace in which it goes on.
        now: monotonic seconds.
        judging: takes the turns whose scores are made, for the metrics that ask somebody.
        shedding: what is left out while the worker cannot follow.
        fill: how full the worker's queue is, 0 to 1.
    """

    def __init__(
        self,
        metrics: Sequence[BoundMetric],
        outlets: FanOut,
        telemetry: Telemetry,
        span_events: SpanEventOutlet,
        budget: float,
        references: ReferenceSources | None = None,
        conversations: ConversationMetrics | None = None,
        patience: float = 0.0,
        now: Callable[[], float] = time.monotonic,
        judging: Dispatcher | None = None,
        shedding: Shedding | None = None,
        fill: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._choose(metrics)
        self.outlets = outlets
        self.span_events = span_events
        self._telemetry = telemetry
        self._budget = budget
        self.spans_scored = 0
        """Spans of turns that were evaluated. Each span is counted once: here, or in :attr:`spans_left_out`."""
        self.evaluations = 0
        """How often metrics were evaluated on something: a sign of life."""
        self.spans_left_out: Counter[str] = Counter()
        """Spans that no score came of, by reason."""
        self._counting = threading.Lock()
        self.ending = False
        """Whether no further turn is evaluated: the time is up."""
        self._references = references
        self._conversations = conversations
        self._now = now
        self._judging = judging
        self._fill = fill
        self.shedding = shedding or Shedding(now)
        self._holding = threading.Lock()
        self._stitcher = Stitcher(patience, _HELD_BYTES)
        self._past = PastTurns(_PAST_BYTES, _PAST_SECONDS, now)
        self._remembering = threading.Lock()
        self._recent: OrderedDict[str, Sequence[Score] | str] = OrderedDict()
        """The scores of recent turns; of one that was lost, why."""
        self.tenant_labels: Mapping[str, Mapping[str, str]] = {}
        """What scores carry beside their tenant, by its name."""
        self.kept: deque[ScoredTurn] | None = None
        """For callers that want the turns themselves (the demo, tests): what was scored lately."""

    @property
    def conversations(self) -> Conversations | None:
        """The conversations that are held; None when no metric asks for whole ones."""
        return self._conversations.store if self._conversations is not None else None

    def _choose(self, metrics: Sequence[BoundMetric]) -> None:
        self.metrics = [metric for metric in metrics if not metric.metric.heavy]
        """Evaluated when a turn closes, also where an exporter or the agent waits for it."""
        self.heavy = [metric for metric in metrics if metric.metric.heavy]
        """Evaluated after them, on the worker alone."""

    def reload(
        self, metrics: Sequence[BoundMetric], whole: Sequence[BoundMetric], budget: float, references: ReferenceSources
    ) -> None:
        """Evaluate other metrics, with other references, from the next turn (and the next end of a conversation) on."""
        self._budget = budget
        self._references = references
        self._choose(metrics)
        if self._conversations is not None:
            self._conversations.metrics = whole
        self.warm_up()

    def warm_up(self) -> None:
        """Evaluate a made-up turn, so that the first real one does not pay for imports and first compilations.

        Only by metrics of ours: what others do with a turn that never was, and how long it takes them, nobody knows.
        """
        turn = Turn.from_dict(_WARM_UP)
        for metric in (*self.metrics, *self.heavy):
            if metric.metric.fn.__module__.startswith(_OUR_METRICS):
                metric.evaluate(turn)

    # --- on the agent's thread, while the root is ending

    def defer(self, closed: Closed, span: Any) -> PendingTurn | None:
        """Promise the scores of what this ending root closed; None where they must be made at once."""
        pending = PendingTurn(self, closed, span)
        return pending if self.span_events.defer(span, pending.events) else None

    def score_deferred(self, group: Group, span: Any) -> tuple[ScoredTurn, Sequence[Any]]:
        """Keep the promise of :meth:`defer` for one of the turns: its scores, and the events if the span is its root."""
        scored, _ = self._score(group, None)
        if group.root.span_id != span.context.span_id:
            self.span_events.root_already_ended(scored.scores)
        elif self.span_events.mode != "off":
            return scored, self.span_events.events_of(span, scored.scores, group.root.end_ns)
        return scored, ()

    def score_inline(self, closed: Closed, span: Any, still_ending: bool, hand_over: Callable[[Any, int], None]) -> None:
        """Evaluate what the end of this root closed, write the span events, and hand each turn over for the worker.

        ``still_ending`` says that the SDK is inside ``_on_ending``; without it the span has just ended. If the host's thread is
        interrupted meanwhile, the worker evaluates what is left.
        """
        waiting = deque(self.groups(closed))
        try:
            while waiting:
                work = self._scored_inline(waiting[0], span, still_ending)
                waiting.popleft()
                hand_over(work, work.scored.size)
        finally:
            for group in waiting:
                hand_over(group, group.size)

    def _scored_inline(self, group: Group, span: Any, still_ending: bool) -> _Work:
        scored, pending = self._score(group, self._budget)
        if group.root.context is None or group.root.context.span_id != span.context.span_id:
            self.span_events.root_already_ended(scored.scores)
        elif still_ending:
            self.span_events.while_ending(span, scored.scores, group.root.end_ns)
        else:
            self.span_events.after_end(span, scored.scores, group.root.end_ns)
        if not (
            pending or self.heavy or self.kept is not None or self._conversations or self._judging or self.outlets.keeps_content
        ):  # else what waits for the worker would hold the content of every turn
            scored.turn = scored.turn.without_content()
            scored.size = _SIZE_WITHOUT_CONTENT
        return _Work(scored, pending)

    # --- parts of turns that wait for the rest

    @property
    def waiting(self) -> int:
        """Parts of turns that wait for the trace in which they go on."""
        return len(self._stitcher)

    def waiting_traces(self) -> set[int]:
        """The traces of these parts."""
        with self._holding:
            return self._stitcher.traces()

    def due(self) -> list[Group]:
        """Turns whose rest did not come in time, to be handled as they are."""
        with self._holding:
            return self._stitcher.due(self._now())

    def stop_waiting(self) -> list[Group]:
        """All that wait; from now on nothing does."""
        with self._holding:
            self._stitcher.patience = 0.0
            return self._stitcher.release_all()

    def after_fork_in_child(self) -> None:
        """The parent owns what waits and what may be revised; the child gets locks of its own."""
        self._holding = threading.Lock()
        self._remembering = threading.Lock()
        self._stitcher.forget()
        self._past.forget()
        if self._judging is not None:
            self._judging.after_fork_in_child()
        if self._conversations is not None:
            self._conversations.store.forget()

    # --- on the worker

    def handle(self, batch: list[Any]) -> Sequence[Any]:
        """Evaluate what was closed elsewhere, finish what the budget cut, and render everything; returns what was not begun at our end.

        Takes out of the batch what it has begun with.
        """
        done: list[ScoredTurn] = []
        verdicts: list[Verdict] = []
        self.shedding.look(self._fill())
        rest: list[Any] = []
        interrupt: BaseException | None = None
        while batch:
            item = batch.pop(0)
            if self.ending:
                rest.append(item)
                continue
            try:
                if item.__class__ is Closed:
                    batch[:0] = self.groups(item)
                elif item.__class__ is not Verdict:
                    done.extend(self._scored(item))
                else:
                    verdicts.append(item)
            except BaseException as error:  # one turn is lost, the others are not
                if is_meant_for_host(error):  # whose thread this is: what it did so far leaves, the rest waits for the next
                    batch.insert(0, item)
                    interrupt = error
                    break
                self.outlets.count_error("pipeline", type(error).__name__)
                self.lose(item, "fault")
        if verdicts and self._judging is not None:
            verdicts = self._judging.confirm(verdicts)
        for scored in done if self.heavy else ():
            more, _, seconds = self._evaluate(scored.turn, self.heavy, None, scored.sources, self.shedding.leaves_out("heavy"))
            scored.scores = [*scored.scores, *more]
            scored.seconds += seconds
        ended = self._record(done)
        self.emit([*done, *self._judge(done), *(verdict.scored for verdict in verdicts)])
        if verdicts and self._judging is not None:
            if self._judging.lasting:
                self.outlets.catch_up()
            with self._judging.at_once():
                for verdict in verdicts:
                    verdict.settle()
        if ended:
            self.end_conversations(ended)
        if interrupt is not None:
            raise interrupt
        return rest

    def _record(self, done: Sequence[ScoredTurn]) -> list[Ended]:
        """Put turns into their conversations, all of them before any is judged: what each looks back on follows from their times alone.

        Returns the conversations that had to make room.
        """
        if self._conversations is None:
            return []
        store = self._conversations.store
        return [
            ended
            for scored in done
            for ended in store.add(scored.turn, scored.size, scored.root, (scored.first_id, *scored.absorbs))
        ]

    def _scored(self, item: Any) -> list[ScoredTurn]:
        """What comes of one item of the worker's queue."""
        if item.__class__ is PendingTurn:
            taken: list[ScoredTurn] = item.take()
            return taken
        if item.__class__ is _Work:
            if item.pending:
                more, _, seconds = self._evaluate(item.scored.turn, item.pending, None)
                item.scored.scores = [*item.scored.scores, *more]
                item.scored.seconds += seconds
            return [item.scored]
        if item.__class__ is Ended:
            self.end_conversations([item])
            return []
        scored, _ = self._score(item, None)
        self.span_events.root_already_ended(scored.scores)
        return [scored]

    def lose(self, item: Any, reason: str) -> None:
        """Account for what will not be evaluated: every metric of its turns is dropped. Safe from any thread, never raises."""
        try:
            self._settle(item, reason)
            if item.__class__ is PendingTurn:
                item.lose(reason)
            elif item.__class__ is Verdict:
                return  # its job comes back from the queue, or was counted there
            elif item.__class__ is Ended:
                metrics = self._conversations.metrics if self._conversations is not None else ()
                judged = self._judging.metrics.names(conversation=True) if self._judging is not None else ()
                names = [*(metric.name for metric in metrics), *judged]
                account_lost(self._telemetry, names if item.supersedes is None else (), item.turn.agent or "", reason)
                self._remember(item.turn.turn_id or "", reason)
            elif item.__class__ is _Work:
                turn = item.scored.turn
                if item.scored.new:
                    self._account_lost(turn.agent, turn.service, turn.close_reason, turn.complete, reason)
                self._remember(turn.turn_id, reason)
            else:
                lost = [(item.root, item.all_seen)] if item.__class__ is Group else self._roots(item)
                for root, complete in lost:
                    record = _record_of(root)
                    agent = record.attributes.get(AGENT_NAME)
                    self._account_lost(agent, record.resource_attributes.get("service.name"), item.reason, complete, reason)
                    self._remember(turn_id_in(record.trace_id, record.span_id), reason)
        except Exception as error:
            self.outlets.count_error("pipeline", type(error).__name__)

    def leave(self, item: Any, reason: str) -> set[int]:
        """What the next process evaluates, from what it finds on disk: its spans are counted, its metrics are not. Its traces."""
        self._settle(item, reason)
        if item.__class__ is Closed:
            return {item.trace_id}
        if item.__class__ is Group:
            return {record.trace_id for record in item.members}
        return {item.scored.root.trace_key} if item.__class__ is _Work else set()

    def _settle(self, item: Any, reason: str) -> None:
        """Say what became of the spans in something that waits."""
        if item.__class__ is Closed:
            if item.portion is None:
                item.portion = Portion(len(item.spans), self._count_spans)
            item.portion.settle(reason)
        elif item.__class__ is Group:
            for portion in item.portions:
                portion.settle(reason)

    def _count_spans(self, outcome: str, spans: int) -> None:
        with self._counting:
            if outcome == _SCORED:
                self.spans_scored += spans
            else:
                self.spans_left_out[outcome] += spans

    def _account_lost(self, agent: Any, service: Any, close_reason: Any, complete: bool, reason: str) -> None:
        judged = self._judging.metrics.names(conversation=False) if self._judging is not None else ()
        names = [metric.name for metric in (*self.metrics, *self.heavy)]
        turn = str(service or ""), str(close_reason or ""), complete
        account_lost(self._telemetry, [*names, *judged], str(agent or ""), reason, turn)

    def _roots(self, closed: Closed) -> list[tuple[Any, bool]]:
        """The roots of the turns in what was closed, each with whether all of the turn was seen."""
        if closed.sole:
            return [(closed.root, closed.complete)]
        records = [_record_of(span) for span in closed.spans]
        own = frozenset((closed.root.context.span_id,)) if closed.cut_off else frozenset()
        groups = split([record for record in records if record.scope != SCOPE], own)
        if closed.late or closed.continued:  # what revises a turn was counted with it
            groups = [group for group in groups if stands_alone(group) and not self._past.before(group).revision]
        return [
            (group.root, group.all_seen and closed.complete)
            for group in groups
            if not closed.leftover or role_in(group.root) is not None
        ]

    def end_conversations(self, ended: Iterable[Ended]) -> None:
        """Evaluate conversations that are over, and send the scores out."""
        metrics = self._conversations.metrics if self._conversations is not None else ()
        if self._conversations is None or not (metrics or self._conversations.judged):
            return
        done, late = [], []
        for one in ended:
            if one.reason == "signals":  # nothing else was said: only what looks at signals can change
                reading = [metric for metric in metrics if "session" in metric.metric.reads]
                scores, _, seconds = self._evaluate(one.turn, reading, None)
                if scores:
                    late.append(ScoredTurn(one.turn, one.last, scores, one.supersedes, False, conversation=True, seconds=seconds))
                continue
            scores, _, seconds = self._evaluate(one.turn, metrics, None)
            done.append(
                ScoredTurn(one.turn, one.last, scores, one.supersedes, one.supersedes is None, conversation=True, seconds=seconds)
            )
        self.emit([*done, *late, *self._judge(done)])

    def _judge(self, done: Sequence[ScoredTurn]) -> list[ScoredTurn]:
        """Offer turns to the judges; the scores that could be made without asking."""
        if self._judging is None:
            return []
        if self._conversations is not None and self._conversations.history:
            for scored in done:
                if scored.turn.conversation_id and not scored.conversation and not scored.turn.history:
                    vars(scored.turn)["history"] = self._conversations.store.before(scored.turn)
        with self._judging.at_once():
            return [answered for scored in done for answered in self._judging.plan(scored)]

    def emit(self, done: Sequence[ScoredTurn]) -> None:
        """Remember what became of scored turns, and send them through every outlet."""
        if not done:
            return
        for scored in done:
            self.outlets.redact(scored)
            if scored.judged is None:
                self._remember(scored.turn.turn_id, scored.scores)
            elif self._judging is not None:
                self._judging.note(scored)
            if self._conversations is not None and not scored.conversation:
                self._conversations.store.note(conversation_of(scored.turn), scored.turn.turn_id, _signals(scored.scores))
        self.outlets.emit(done)
        if self.kept is not None:
            self.kept.extend(done)

    def forget_traces(self, trace_ids: set[int]) -> None:
        """Drop what waits, and what may be revised, of some traces: somebody else evaluates them."""
        with self._holding:
            for group in self._stitcher.forget_traces(trace_ids):
                self._settle(group, "moved")
        self._past.forget_traces(trace_ids)

    def why(self, turn_id: str) -> dict[str, str] | None:
        """For each metric what became of it on a recent turn; None when the turn is not remembered."""
        found = self._recent.get(turn_id)
        judged = self._judging.outcomes.of(turn_id) if self._judging is not None else {}
        if isinstance(found, str):
            asked = self._judging.metrics.names(conversation=False) if self._judging is not None else ()
            return dict.fromkeys([*(metric.name for metric in (*self.metrics, *self.heavy)), *asked], f"dropped: {found}")
        return {**{score.metric: _outcome(score) for score in found or ()}, **judged} if found is not None or judged else None

    # --- the steps

    def groups(self, closed: Closed) -> list[Group]:
        """The turns in what was closed that are complete; a part of one that goes on elsewhere waits for its rest."""
        return [whole for group in self._groups(closed) for whole in self._stitched(group)]

    def _groups(self, closed: Closed) -> list[Group]:
        records = [_record_of(span) for span in closed.spans]
        records = [record for record in records if record.scope != SCOPE]  # spans of ours that began inside a turn
        portion = closed.portion = Portion(len(records), self._count_spans)
        if len(records) < len(closed.spans):
            self._count_spans("own", len(closed.spans) - len(records))
        if closed.size > MAX_VALUE_CHARS:
            for record in records:
                if not isinstance(record.attributes, LazyAttributes):  # those are read when asked for, and were cut already
                    cut_long_values(record)
        if closed.logs:
            _attach_logs(records, closed.logs)
        if closed.late:
            return self._revised(closed, records, portion)
        if closed.sole:
            root_id = closed.root.context.span_id
            root = next((record for record in records if record.span_id == root_id), None)
            if root is None:  # closed before its root ended
                root = from_sdk(closed.root)
                records.append(root)
            groups = [Group(root, records)]
        else:
            groups = split(records, frozenset((closed.root.context.span_id,)) if closed.cut_off else frozenset())
            if closed.leftover:
                groups = [group for group in groups if role_in(group.root) is not None]
            if closed.continued:
                groups = [group for group in groups if stands_alone(group)]
        if closed.references and groups and groups[0].root.references is None:
            groups[0].root.references = closed.references
        self._tell_apart(groups, records, portion, "not_in_a_turn")
        if not groups and records:
            self._past.keep_rest(closed.trace_id, records, closed.size)
        above = _so_far(closed.above) if closed.above is not None and groups else None
        found = []
        for group in groups:
            # Where starts were seen, it is known what is missing: a parent that a sampler dropped is no part of what there is.
            group.reason, group.complete = closed.reason, closed.complete and (group.complete or closed.root is not None)
            group.size = closed.size if len(groups) == 1 else closed.size * len(group.members) // len(records)
            group.above = group.above or above
            found += separate(group)
        return found

    def _tell_apart(self, groups: Sequence[Group], records: Sequence[SpanRecord], portion: Portion, reason: str) -> None:
        """Of new spans, those that are in a turn share its fate; the others are counted."""
        for group in groups:
            group.portions = (portion,)
        taken = {id(member) for group in groups for member in group.members}
        portion.spans = sum(id(record) in taken for record in records)
        if portion.spans < len(records):
            self._count_spans(reason, len(records) - portion.spans)

    def _revised(self, closed: Closed, late: list[SpanRecord], portion: Portion) -> list[Group]:
        """The turns that what came late changes."""
        if closed.logs:
            _attach_logs(self._past.records(closed.trace_id, closed.logs), closed.logs)
        found = self._past.revised(closed.trace_id, late, closed.logs or ())
        self._tell_apart(found, late, portion, "late")
        for group in found:
            group.reason, group.size = closed.reason, closed.size + 512 * len(group.members)
        return [part for group in found for part in separate(group)]

    def _stitched(self, group: Group) -> list[Group]:
        if not may_go_on(group):
            return [group]
        with self._holding:
            return self._stitcher.offer(group, self._now())

    def _score(self, group: Group, budget: float | None) -> tuple[ScoredTurn, Sequence[BoundMetric]]:
        earlier = self._past.before(group)
        turn = reader_of(group).turn(group.reason, group.all_seen, earlier.revision + 1, earlier.turn_id)
        sources = self._references.attach(turn, group.root.attributes) if self._references is not None else {}
        scores, pending, seconds = self._evaluate(turn, self.metrics, budget, sources)
        first_id = earlier.first_id or turn.turn_id
        self._past.keep(group, Earlier(turn.turn_id, turn.revision, first_id, earlier.also))
        record = group.root
        trace_state = record.context.trace_state if record.context is not None else None
        labels = self.tenant_labels.get(turn.tenant or "", {})
        root = Root(
            trace_id_of(record.trace_id),
            record.span_id,
            record.sampled,
            trace_state,
            record.resource_attributes,
            turn.tenant,
            labels,
        )
        revises = earlier.turn_id is not None
        for portion in group.portions:
            portion.settle(_SCORED)
        scored = ScoredTurn(
            turn, root, scores, earlier.turn_id, not revises, size=group.size, seconds=seconds, sources=sources,
            counted_as=first_id, absorbs=earlier.also,
        )  # fmt: skip
        self.outlets.redact(scored)
        if self._judging is not None and self._judging.metrics.wants_events:
            scored.events = {event.name for member in group.members for event in member.events}
        return scored, pending

    def _evaluate(
        self,
        turn: Turn,
        metrics: Sequence[BoundMetric],
        budget: float | None,
        sources: Mapping[str, str] | None = None,
        shed: bool = False,
    ) -> tuple[list[Score], Sequence[BoundMetric], float]:
        """The scores, the metrics that the budget left over, and the seconds it took."""
        self.evaluations += 1
        scores: list[Score] = []
        about = (turn.turn_id, b"%d" % turn.revision)
        clock = time.perf_counter
        start = clock()
        start_cpu = time.thread_time() if budget is not None else 0.0  # a system call, which some machines make expensive
        deadline = start + budget if budget is not None else float("inf")
        for index, metric in enumerate(metrics):
            excluded = None if metric.when is None else excluded_by(metric.when, turn)
            if excluded is not None or shed:
                scores.append(metric.left_out(GATED, f"when.{excluded}") if excluded is not None else metric.left_out(SHED))
                continue
            score = metric.evaluate(turn)
            if sources:
                note_sources(metric, score, sources)
            if score.status != "skipped":
                score.about = about
            scores.append(score)
            if budget is not None and clock() > deadline:
                spent = time.thread_time() - start_cpu
                if spent > budget:
                    return scores, metrics[index + 1 :], clock() - start
                deadline = clock() + budget - spent  # the thread was waiting for its turn, not working
        return scores, (), clock() - start

    def _remember(self, turn_id: str, became: Sequence[Score] | str) -> None:
        with self._remembering:
            self._recent[turn_id] = became
            if len(self._recent) > _RING:
                self._recent.popitem(last=False)


def _record_of(span: Any) -> SpanRecord:
    kind = span.__class__
    if kind is SpanRecord:
        return cast("SpanRecord", span)
    return span.record() if kind is WireSpan else from_sdk(span)


def _so_far(span: Any) -> SpanRecord:
    """What an application's span says by now; it may be open, so nothing of it is kept that others write to."""
    trace_id, span_id, parent_id, scope, attributes = start_of(span)
    return SpanRecord(span.name, trace_id, span_id, parent_id, attributes=dict(attributes), scope=scope, resource=span.resource)


def _attach_logs(records: Iterable[SpanRecord], logs: dict[int, list[LogPart]]) -> None:
    for record in records:
        parts = logs.get(record.span_id)
        if parts:
            join_logs(record, parts)


def _signals(scores: Iterable[Score]) -> dict[str, float]:
    """What scores say of their turn's conversation."""
    found = {}
    for score in scores:
        name = SIGNALS.get(score.metric)
        if name is not None and score.status == "ok" and score.value is not None:
            found[name] = score.value
    return found


def _outcome(score: Score) -> str:
    if score.status == "error":
        return f"error: {score.error_type}"
    if score.status == "skipped":
        reason = score.detail.get("reason", "")
        if reason == GATED:
            return f"gated: {score.detail.get('by', '')}"
        return f"dropped: {SHED}" if reason == SHED else f"skipped: {reason}"
    return "scored"
