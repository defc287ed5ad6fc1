"""Track open turns and close each one when its spans are complete.

The assembler receives spans in two ways. The span processor reports spans when they start and when they end. The turn of such spans
closes when the root and all spans below it have ended, but no later than ``decision_delay`` after the root's end. *Loose* spans are
reported only after their end, for example if they arrived over OTLP or started before the processor was added. Their turn closes
``decision_delay`` after the local root arrives. If no local root arrives, the turn closes after ``idle_timeout`` without new spans.

A *candidate* is a span that might be a turn's root. Usually, it is a local root, or the topmost agent, workflow, chain, or GenAI
span of unknown role below the application's spans. Other spans are usually assigned to the nearest candidate above, even if their
direct parent has ended. If the candidate turns out not to be a turn's root, its spans move to another candidate.

The assembler does no I/O. Callers must hold :attr:`Assembler.lock` for most methods, and evaluate the returned :class:`Closed`
spans after they release the lock. :mod:`.open_traces` stores open traces. :mod:`.late_data` stores data that arrives after its turn
closed.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from ..core.turn import CloseReason
from ..dialects.generic.interest import PLAIN_KEYS, is_plain
from ..dialects.reader import ROLE_KEYS
from ..dialects.step import AGENT, LLM, ROOT_ROLES, TOOL, WORKFLOW
from ..spans.record import LogPart, is_more_complete
from ..spans.wire import WireSpan
from .late_data import LateData
from .open_traces import OpenTraces
from .state import CANDIDATE_ROLES, Candidate, Closed, HeldBytes, OpenTrace, Role, TurnLimits, size_of

_TURN_ROLES = frozenset((AGENT, WORKFLOW))
_MAX_PLAIN_SPANS = 256
"""Maximum number of application spans (not GenAI spans) to keep below a possible turn root until a GenAI span arrives."""
_MAX_PLAIN_TRACES = 2_048
_PER_TICK = 3_000
_MOST_BESIDE = 32


class Assembler:
    """Tracker of open turns. The function ``role`` returns a span's current role, before or after its end. Callers must hold
    :attr:`lock`, unless they call :meth:`start_below`, :meth:`ending`, or :meth:`open_spans`, which acquire the lock.
    """

    def __init__(self, limits: TurnLimits, role: Role, now: Callable[[], float]) -> None:
        self._role = role
        self._now = now
        self.lock = threading.Lock()
        """Lock that is held only briefly, never during evaluation or I/O."""
        self._held = HeldBytes(limits.total_bytes)
        self.late = LateData(limits, self._held, role, now)
        self._open = OpenTraces(self._held)
        self.set_limits(limits)
        self._traces = self._open.by_id
        self._plain_traces: OrderedDict[int, None] = OrderedDict()
        """IDs of traces that ended without GenAI spans. A later span in such a trace isn't an orphan if its parent is unknown."""
        self.plain_scopes: dict[str, bool] = {}
        """False for scopes of otel-agenteval and GenAI instrumentations, True for other known scopes. Callers add entries."""
        self.received = 0
        self.orphan_parents = 0
        self.pruned_spans = 0
        self.duplicates = 0
        self.moved = 0
        """Number of spans that were dropped because another process evaluates their traces."""

    def set_limits(self, limits: TurnLimits) -> None:
        """Replace the limits. This method doesn't change deadlines that are already set."""
        self.limits = limits
        self.late.limits = limits
        self._max_spans = limits.max_spans
        self._max_bytes = limits.max_bytes
        self._held.limit = limits.total_bytes

    # --- spans of this process

    def start_below(self, span: Any, roles_matter: bool) -> bool:
        """Record the start of a span below an open candidate (fast path of :meth:`start`).

        If this method returns False, it didn't record the span. The caller must then determine the span's role and call
        :meth:`start`. Pass ``roles_matter=False`` if the roles of spans below an agent aren't needed. To save the application's
        time, this method and :meth:`ending` read private fields of SDK spans (see :func:`~..spans.sdk.has_known_fields`).
        """
        parent = span._parent
        if parent is None:
            return False
        with self.lock:
            trace = self._traces.get(parent[0])
            candidate = trace.candidate_of.get(parent[1]) if trace is not None else None
            if trace is None or candidate is None or candidate.merged_into is not None:
                return False
            if (roles_matter or not candidate.collects_all) and not (
                self.plain_scopes.get(span._instrumentation_scope._name) and ROLE_KEYS.isdisjoint(span._attributes._dict)
            ):
                return False
            span_id = span._context[1]
            trace.candidate_of[span_id] = candidate
            candidate.open += 1
            if parent[1] in candidate.tools:
                candidate.tools.add(span_id)
            if candidate.span_ids is not None:
                candidate.span_ids.add(span_id)
            return True

    def ending(self, span: Any) -> Sequence[Closed] | None:
        """Record a span's end, and return the turns that close. Return None if the caller must call :meth:`end` instead."""
        context = span._context
        span_id = context[1]
        attributes = span._attributes._dict
        with self.lock:
            try:
                trace = self._traces[context[0]]
                candidate = trace.candidate_of[span_id]
            except KeyError:
                return None
            self.received += 1
            if candidate.open > 1 and not candidate.closed and candidate.span_id != span_id:
                spans, held = candidate.spans, self._held
                if candidate.genai:
                    size = 512
                    for value in attributes.values():
                        if value.__class__ is str:
                            size += len(value)
                    if (
                        candidate.size + size <= self._max_bytes
                        and len(spans) < self._max_spans
                        and held.used + size <= held.limit
                    ):
                        candidate.size += size
                        held.used += size
                        candidate.open -= 1
                        spans.append(span)
                        return ()
                elif len(spans) < _MAX_PLAIN_SPANS and ROLE_KEYS.isdisjoint(attributes) and PLAIN_KEYS.issuperset(attributes):
                    candidate.open -= 1
                    spans.append(span)
                    return ()
            return self._ended(trace, candidate, span_id, span, attributes)

    def start(
        self,
        trace_id: int,
        span_id: int,
        parent_id: int,
        role: str | None,
        span: Any,
        references: dict[str, Any] | None = None,
        carried_id: int = 0,
    ) -> None:
        """Record the start of a span. ``parent_id`` is the local parent's ID, and ``carried_id`` is the remote parent's ID.

        An ID is 0 if this parent doesn't exist. If the application sends itself a context, ``carried_id`` can be a local ID.
        """
        trace = self._traces.get(trace_id)
        closed = self.late.roles_in(trace_id)
        if carried_id and (carried_id in closed or (trace is not None and carried_id in trace.candidate_of)):
            parent_id = carried_id
        parent = trace.candidate_of.get(parent_id) if trace is not None and parent_id else None
        stale_context = False
        if parent is None and parent_id:
            self.orphan_parents += 1
            if self.late.has_closed(trace_id):
                self.late.note(trace_id)
            # The application didn't detach the context of an ended request.
            stale_context = role is None and closed.get(parent_id) == ""
            if parent_id in closed and not stale_context:
                self.late.add_started(trace_id, span_id)
                return
            parent = self._only_candidate(trace)
        elif not parent_id and role is not None and role not in CANDIDATE_ROLES:
            parent = self._only_candidate(trace)
        if trace is None or parent is None:
            candidate = self._new_outermost(trace, trace_id, span, role, span_id)
            if parent_id:
                candidate.orphan = not self.late.has_closed(trace_id) and trace_id not in self._plain_traces
                candidate.stale_context = stale_context
        else:
            candidate = self._started_below(trace, parent.current, span, role, span_id, parent_id)
        if references is not None and candidate.references is None:
            candidate.references = references

    @staticmethod
    def _only_candidate(trace: OpenTrace | None) -> Candidate | None:
        for running in (trace.agents, trace.outermost) if trace is not None else ():
            if len(running) == 1:
                return next(iter(running))
        return None

    def _new_outermost(self, trace: OpenTrace | None, trace_id: int, span: Any, role: str | None, span_id: int) -> Candidate:
        now = self._now()
        if trace is None:
            trace = self._traces[trace_id] = OpenTrace(trace_id, now)
        candidate = self._new_candidate(trace, span, role, span_id, None)
        candidate.started = now
        self._open.outermost[candidate] = trace
        trace.outermost[candidate] = None
        return candidate

    def _started_below(
        self, trace: OpenTrace, candidate: Candidate, span: Any, role: str | None, span_id: int, parent_id: int
    ) -> Candidate:
        beside = None
        if role is not None and role not in _TURN_ROLES and len(trace.agents) == 1:
            run = next(iter(trace.agents))
            if run.parent is candidate and run.parent_id == parent_id and not run.ended:
                beside = run
        if beside is not None and role not in CANDIDATE_ROLES:
            candidate = beside
        candidate.open += 1
        in_tool = not candidate.collects_all and (role == TOOL or parent_id in candidate.tools)
        if in_tool:
            candidate.tools = candidate.tools or set()
            candidate.tools.add(span_id)
        if role is not None:
            candidate.genai = True
            if (
                role in CANDIDATE_ROLES
                and candidate.role not in CANDIDATE_ROLES
                # If the application itself called a model before, an agent inside a tool isn't a turn.
                and not (in_tool and any(self._role(ended) == LLM for ended in candidate.spans))
            ):
                candidate = self._new_candidate(trace, span, role, span_id, candidate)
                candidate.parent_id, candidate.beside = parent_id, beside
                return candidate
        trace.candidate_of[span_id] = candidate
        if candidate.span_ids is not None:
            candidate.span_ids.add(span_id)
        return candidate

    def _new_candidate(self, trace: OpenTrace, span: Any, role: str | None, span_id: int, parent: Candidate | None) -> Candidate:
        candidate = Candidate(span, role, span_id, parent)
        if trace.candidate_of and not trace.had_several:
            trace.had_several = True
            for known_id, other in trace.candidate_of.items():
                known = other if other.merged_into is None else other.merged_into
                if known.span_ids is None:
                    known.span_ids = set()
                known.span_ids.add(known_id)
        if trace.had_several:
            candidate.span_ids = {span_id}
        if trace.unfinished == 0 and not trace.outermost:
            trace.outermost, trace.agents = {}, {}
        trace.candidate_of[span_id] = candidate
        trace.unfinished += 1
        if role in _TURN_ROLES:
            trace.agents[candidate] = None
        if parent is not None:
            if parent.children is None:
                parent.children = {}
            parent.children[candidate] = None
        return candidate

    def end(
        self, trace_id: int, span_id: int, span: Any, attributes: dict[str, Any], local_root: bool = False
    ) -> Sequence[Closed]:
        """Record the end of a span, and return the turns that close as a result. :meth:`add` explains ``local_root``."""
        self.received += 1
        trace = self._traces.get(trace_id)
        candidate = trace.candidate_of.get(span_id) if trace is not None else None
        if trace is not None and candidate is not None:
            return self._ended(trace, candidate, span_id, span, attributes)
        closed = self.late.roles_in(trace_id)
        if span_id in closed:
            # None: the span was counted as late at its start
            self.late.hold(trace_id, span, size_of(attributes), noted=closed[span_id] is None)
            return ()
        return () if self._role(span) is None else self.add(trace_id, span, size_of(attributes), local_root)

    def _ended(
        self, trace: OpenTrace, candidate: Candidate, span_id: int, span: Any, attributes: dict[str, Any]
    ) -> Sequence[Closed]:
        is_own = candidate.span_id == span_id
        if is_own:
            candidate.ended = True
        candidate = candidate.current
        candidate.open -= 1
        if not candidate.closed:
            self._collect(trace, candidate, span_id, span, attributes)
        elif not is_own:
            self.late.hold(trace.trace_id, span, size_of(attributes))
        if candidate.open == 0:
            if trace.unfinished == 1 and candidate.role in _TURN_ROLES and not (candidate.closed or trace.loose):
                self._traces.pop(trace.trace_id, None)  # the usual case
                if candidate.deadline:
                    self._open.waiting.pop(trace.trace_id, None)
                return (self._close(trace, candidate, "root_ended", complete=True),)
            return self._complete(trace, candidate)
        if candidate.closed:
            return ()
        if is_own:
            candidate.span = span
            self._open.set_deadline(trace, candidate, self._now() + self.limits.decision_delay)
            self._open.wait(trace, candidate)
        if len(candidate.spans) > self._max_spans:
            return self._force(trace, candidate, "span_limit")
        if candidate.size > self._max_bytes:
            return self._force(trace, candidate, "byte_limit")
        return self._evict() if self._held.used > self._held.limit else ()

    def _collect(self, trace: OpenTrace, candidate: Candidate, span_id: int, span: Any, attributes: dict[str, Any]) -> None:
        if candidate.genai or not (ROLE_KEYS.isdisjoint(attributes) and is_plain(attributes)):
            candidate.genai = True
            size = size_of(attributes)
            candidate.size += size
            self._held.used += size
            candidate.spans.append(span)
        elif len(candidate.spans) < _MAX_PLAIN_SPANS:
            candidate.spans.append(span)
        else:
            self.pruned_spans += 1
            candidate.pruned = True
            if candidate.span_id != span_id:
                del trace.candidate_of[span_id]
                if candidate.span_ids is not None:
                    candidate.span_ids.discard(span_id)

    # --- spans that arrive after their end, and log records

    def add(self, trace_id: int, span: Any, size: int, local_root: bool) -> list[Closed]:
        """Add a span whose start wasn't reported, and return closed turns. Set ``local_root`` if the span lacks a local parent."""
        trace = self._traces.get(trace_id)
        if trace is None:
            if self.late.receives(trace_id):
                self.late.hold(trace_id, span, size, local_root)
                return []
            trace = self._traces[trace_id] = OpenTrace(trace_id, self._now())
            trace.continued = self.late.has_closed(trace_id)
        return self._added(trace, [span], size, local_root)

    def add_received(self, trace_id: int, spans: Sequence[WireSpan], size: int, local_root: bool) -> list[Closed]:
        """Add one trace's received spans. If a span arrives twice, keep the more complete copy."""
        self.received += len(spans)
        trace = self._traces.get(trace_id)
        if trace is None:
            if self.late.receives(trace_id):
                for span in spans:
                    self.late.hold(trace_id, span, span.size, local_root)
                return []
            trace = self._open.open_received(trace_id, self._now())
            trace.continued = self.late.has_closed(trace_id)
        ids = {span.id for span in spans}
        known = trace.received_ids
        if len(ids) == len(spans) and (known is None or known.isdisjoint(ids)):
            if known is None:
                trace.received_ids = ids
            else:
                known |= ids
        else:
            if known is None:
                known = trace.received_ids = set()
            count = len(spans)
            spans = self._without_copies(trace, spans, known)
            self.duplicates += count - len(spans)
            known.update(span.id for span in spans)
            size = sum(span.size for span in spans)
        return self._added(trace, spans, size, local_root)

    def _without_copies(self, trace: OpenTrace, spans: Sequence[WireSpan], known: Collection[bytes]) -> list[WireSpan]:
        """Return the ``spans`` that the trace doesn't contain yet. Replace copies in ``trace.loose`` that are less complete."""
        places = {span.id: place for place, span in enumerate(trace.loose)}
        new: dict[bytes, WireSpan] = {}
        for span in spans:
            place = places.get(span.id)
            earlier = new.get(span.id) if place is None else trace.loose[place]
            if earlier is None:
                if span.id not in known:
                    new[span.id] = span
            elif earlier.raw != span.raw and is_more_complete(span.record(), earlier.record()):
                if place is None:
                    new[span.id] = span
                else:
                    trace.loose[place] = span
                    self._open.grow(trace, span.size - earlier.size)
        return list(new.values())

    def _added(self, trace: OpenTrace, spans: Sequence[Any], size: int, local_root: bool) -> list[Closed]:
        trace.last_seen = self._now()
        trace.loose += spans
        self._open.grow(trace, size)
        if local_root and not trace.root_seen:
            trace.root_seen = True
            if trace.unfinished == 0:
                self._open.wait(trace)
        if trace.unfinished == 0:
            self._await_loose(trace)
        if len(trace.loose) > self._max_spans:
            return self._close_loose(trace, "span_limit")
        return self._close_loose(trace, "byte_limit") if trace.loose_size > self._max_bytes else self._evict()

    def _await_loose(self, trace: OpenTrace) -> None:
        limits = self.limits
        delay = limits.decision_delay if trace.root_seen else limits.idle_timeout
        self._open.set_deadline(trace, None, min(trace.last_seen + delay, trace.first_seen + limits.max_duration))

    def add_log(self, trace_id: int, span_id: int, part: LogPart, size: int = 0) -> bool:
        """Keep a span's log record. Return False if that isn't possible, for example because the trace is unknown."""
        trace = self._traces.get(trace_id)
        if trace is not None and span_id not in self.late.roles_in(trace_id):
            if trace.logs is None:
                trace.logs = {}
            logs: dict[int, list[LogPart]] | None = trace.logs
        else:
            logs = self.late.logs_of(trace_id)
        if logs is None:
            return False
        parts = logs.setdefault(span_id, [])
        if len(parts) >= self.limits.max_spans:
            return False
        parts.append(part)
        if size and trace is not None and trace.unfinished == 0:
            self._open.grow(trace, size)
        return True

    # --- deadlines, limits and shutdown

    def tick(self, room: float = math.inf) -> list[Closed]:
        """Close turns and late data that are due, and turns above a limit. Stop after about ``room`` bytes of loose spans."""
        now = self._now()
        closed = self._evict() + self.late.close_due()
        for trace, oldest in self._open.overdue(now - self.limits.max_duration, _PER_TICK):
            closed += self._force(trace, oldest, "delay" if oldest.ended else "max_duration")
        if room > 0:
            for trace, candidate in self._open.due(now, _PER_TICK):
                if candidate is not None:
                    closed += self._force(trace, candidate, "delay")
                elif trace.loose:
                    size = trace.loose_size
                    done = self._close_due(trace, now)
                    closed += done
                    room -= size if done else 0
                if room <= 0:
                    break
        if len(closed) > 1:  # if a turn has several traces, they are joined by start time
            closed.sort(key=_start_of_first)
        return closed

    def _close_due(self, trace: OpenTrace, now: float) -> list[Closed]:
        if trace.root_seen:
            return self._close_loose(trace, "delay")
        end = trace.first_seen + self.limits.max_duration
        deadline = min(trace.last_seen + self.limits.idle_timeout, end)
        if deadline > now:
            self._open.replace_deadline(trace, None, deadline)
            return []
        return self._close_loose(trace, "max_duration" if now >= end else "idle")

    def held(self, trace_ids: Iterable[int]) -> set[int]:
        return {trace_id for trace_id in trace_ids if trace_id in self._traces or trace_id in self.late}

    def close_all(self, reason: CloseReason) -> list[Closed]:
        closed: list[Closed] = []
        for trace in list(self._traces.values()):
            closed += self._close_trace(trace, reason)
        while self.late:
            closed += self.late.close_oldest()
        return closed

    def open_spans(self) -> list[list[Any]]:
        """Return one list per open trace. Each list contains the trace's loose spans and its topmost possible turn roots."""
        with self.lock:
            return [[*trace.loose, *(top.span for top in trace.outermost)] for trace in self._traces.values()]

    def forget_traces(self, trace_ids: Iterable[int]) -> None:
        """Drop traces that another process evaluates. Add the number of these traces' received spans to :attr:`moved`."""
        for trace_id in trace_ids:
            trace = self._traces.pop(trace_id, None)
            if trace is not None:
                self.moved += len(self._open.take_loose(trace)[0])
                self._open.waiting.pop(trace_id, None)
            self.moved += self.late.forget_trace(trace_id)

    def forget(self) -> None:
        """Drop all turns in a forked child process, because the parent process evaluates these turns."""
        self.lock = threading.Lock()
        self.late.forget_all(self._traces)
        self._open.clear()
        self._held.used = 0
        self.received = self.orphan_parents = self.pruned_spans = self.duplicates = self.moved = 0

    def is_open(self, trace_id: int) -> bool:
        return trace_id in self._traces

    def knows(self, trace_id: int) -> bool:
        return trace_id in self._traces or self.late.has_closed(trace_id)

    def open_turns_of(self, tenant: int) -> int:
        share = self._open.shares.get(tenant)
        return len(share.traces) if share is not None else 0

    def next_close_of(self, tenant: int) -> float:
        """Return the seconds until the deadline of the tenant's oldest open trace, or 0 if it has passed or no trace is open."""
        share = self._open.shares.get(tenant)
        oldest = next(iter(share.traces.values()), None) if share is not None else None
        return 0.0 if oldest is None else max(0.0, oldest.deadline - self._now())

    @property
    def open_turns(self) -> int:
        return len(self._traces)

    @property
    def waiting(self) -> bool:
        return bool(self._traces or self.late)

    @property
    def late_spans(self) -> int:
        return self.late.count

    @property
    def bytes(self) -> int:
        return self._held.used

    @property
    def max_bytes(self) -> int:
        """Maximum bytes of all open turns and late data together. The limit per turn is ``TurnLimits.max_bytes``."""
        return self._held.limit

    # --- closing

    def _is_root(self, candidate: Candidate) -> bool:
        """Return True if a candidate is a turn's root, or False if its spans belong to another candidate."""
        if candidate.parent is None:
            return True
        if candidate.role not in _TURN_ROLES and not (
            candidate.role in ROOT_ROLES and any(self._role(span) in (LLM, AGENT, WORKFLOW) for span in candidate.spans)
        ):
            return False
        return self._role(candidate.parent.span) not in CANDIDATE_ROLES  # later attributes can make the parent an agent

    def _complete(self, trace: OpenTrace, candidate: Candidate) -> list[Closed]:
        """Close a candidate whose spans ended. If it isn't a turn's root, move its spans, or drop them if they lack GenAI data."""
        if candidate.closed:
            return self._leave(trace, candidate)
        closed: list[Closed] = []
        if candidate.role not in _TURN_ROLES:  # agents and workflows keep the role from their start
            candidate.role = self._role(candidate.span) if candidate.genai else None
        if not candidate.genai and candidate.role is None:  # an application's own trace without GenAI spans
            self._held.used -= candidate.size
            self._drop_spans(trace, candidate)
            self._plain_traces[trace.trace_id] = None
            if len(self._plain_traces) > _MAX_PLAIN_TRACES:
                self._plain_traces.popitem(last=False)
        elif candidate.orphan and candidate.role not in _TURN_ROLES:
            # The local root started before this processor was added, so wait for the root's end.
            trace.loose += candidate.spans
            trace.loose_size += candidate.size
            self._drop_spans(trace, candidate)
        elif self._is_root(candidate):
            closed.append(self._close(trace, candidate, "root_ended", complete=True))
        else:
            self._merge(trace, candidate)
        return closed + self._leave(trace, candidate)

    def _mark_closed(self, trace: OpenTrace, candidate: Candidate) -> None:
        candidate.closed = True
        self._open.outermost.pop(candidate, None)
        trace.outermost.pop(candidate, None)
        trace.agents.pop(candidate, None)

    def _drop_spans(self, trace: OpenTrace, candidate: Candidate) -> None:
        self._mark_closed(trace, candidate)
        candidate.spans = []
        candidate.span = None

    def _merge(self, trace: OpenTrace, candidate: Candidate) -> None:
        beside = candidate.beside
        ancestor = candidate.parent if beside is None or beside.closed else beside
        assert ancestor is not None
        self._mark_closed(trace, candidate)
        if candidate.span_ids and ancestor.span_ids is not None:
            ancestor.span_ids |= candidate.span_ids
        ancestor.spans.extend(candidate.spans)
        ancestor.pruned = ancestor.pruned or candidate.pruned
        ancestor.size += candidate.size
        ancestor.references = ancestor.references or candidate.references
        candidate.spans = []
        candidate.merged_into = ancestor

    def _close(self, trace: OpenTrace, candidate: Candidate, reason: CloseReason, complete: bool) -> Closed:
        self._mark_closed(trace, candidate)
        spans, root = candidate.spans, candidate.span
        candidate.spans = []
        candidate.span = None  # a pending deadline must not keep the turn's content in memory
        self._held.used -= candidate.size
        alone = trace.unfinished == 1
        if alone and trace.loose:  # the trace's only open turn gets the loose spans
            spans.extend(self._open.take_loose(trace)[0])
        ancestor = candidate.parent
        if ancestor is not None:
            ancestor.closed_turns += 1
        roles: dict[int, str | None]  # by span id; all spans of the trace if no other candidate is unfinished
        if alone and candidate.span_ids is not None:
            roles = {span_id: other.role or "" for span_id, other in trace.candidate_of.items()}
        else:
            roles = dict.fromkeys(trace.candidate_of if candidate.span_ids is None else candidate.span_ids, candidate.role or "")
        self.late.remember(trace.trace_id, reason, roles)
        beside = self._only_run_without_steps() if candidate.role == LLM and ancestor is None else None
        return Closed(
            trace.trace_id, spans, reason, complete and not candidate.pruned, root, candidate.role in _TURN_ROLES,
            candidate.closed_turns > 0, trace.logs, candidate.references, candidate.size,
            ancestor=ancestor.span if ancestor is not None else None, cut_off=candidate.stale_context or ancestor is not None, beside=beside,
        )  # fmt: skip

    def _only_run_without_steps(self) -> int | None:
        """Return the trace ID of the only open run without spans below it, or None. If too many turns are open, don't search."""
        if len(self._open.outermost) > _MOST_BESIDE:  # checking them all would delay the agent's thread
            return None
        runs = [top for top in self._open.outermost if top.role in _TURN_ROLES and top.open == 1 and not top.spans]
        return self._open.outermost[runs[0]].trace_id if len(runs) == 1 else None

    def _leave(self, trace: OpenTrace, candidate: Candidate) -> list[Closed]:
        """Remove a finished candidate from its trace. The removal can complete the next candidate above, or the whole trace."""
        trace.unfinished -= 1
        if candidate.parent is not None:
            if candidate.parent.children is not None:
                candidate.parent.children.pop(candidate, None)
            if candidate.merged_into is None:
                self._drop_ids(trace, candidate)
            ancestor = candidate.parent.current
            ancestor.open -= 1
            return self._complete(trace, ancestor) if ancestor.open == 0 else []
        self._open.outermost.pop(candidate, None)
        if trace.unfinished > 0:
            self._drop_ids(trace, candidate)
        elif trace.loose and candidate.orphan:
            trace.last_seen = self._now()
            self._drop_ids(trace, candidate)
            self._await_loose(trace)
            if trace.root_seen:
                self._open.wait(trace)
        elif trace.loose:
            return self._close_loose(trace, "root_ended")
        else:
            self._drop_trace(trace)
        return []

    @staticmethod
    def _drop_ids(trace: OpenTrace, candidate: Candidate) -> None:
        if candidate.span_ids is None:  # the trace has only this candidate
            trace.candidate_of = {}
            return
        for span_id in candidate.span_ids:
            trace.candidate_of.pop(span_id, None)
        candidate.span_ids = None

    def _evict(self) -> list[Closed]:
        """Close turns until ``max_open`` and ``total_bytes`` are met. Turns whose root has ended close first. At the byte
        limit, late data is next. Then the oldest turns close. If there are tenants, turns of the largest tenant close.
        """
        closed: list[Closed] = []
        while (crowded := len(self._traces) > self.limits.max_open) or (
            self._held.used > self._held.limit and (self._traces or self.late)
        ):
            candidate: Candidate | None = None
            if self._open.shares:
                trace, waits = self._open.next_of_largest_tenant(crowded)
            else:
                waits = bool(self._open.waiting)
                trace, candidate = self._open.waiting.popitem(last=False)[1] if waits else (None, None)
            if not waits and self.late and not crowded:
                closed += self.late.close_oldest()
            elif candidate is None or trace is None:
                closed += self._close_trace(trace or next(iter(self._traces.values())), "evicted")
            elif not candidate.closed:
                closed += self._force(trace, candidate, "evicted")
        return closed

    def _force(self, trace: OpenTrace, candidate: Candidate, reason: CloseReason) -> list[Closed]:
        """Close a candidate although its span or spans below it are open. When spans below it end, they usually count as late."""
        candidate.role = self._role(candidate.span)
        closed = [self._close(trace, candidate, reason, complete=False)]
        below = candidate.children or {}
        for inner in below:
            if not inner.closed:  # open candidates below an application's span close with it
                closed[0].spans.extend(inner.spans)
                self._held.used -= inner.size
                inner.spans = []
                self._mark_closed(trace, inner)
        if candidate.parent is None:
            trace.unfinished -= 1 + len(below)
            if trace.unfinished > 0:
                for done in (candidate, *below):
                    self._drop_ids(trace, done)
            else:
                self._drop_trace(trace)
                if trace.loose:
                    closed += self._close_loose(trace, reason)
        return closed

    def _drop_trace(self, trace: OpenTrace) -> None:
        self._traces.pop(trace.trace_id, None)
        self._open.waiting.pop(trace.trace_id, None)
        trace.candidate_of = {}
        if not trace.loose:
            self._open.take_loose(trace)

    def _close_trace(self, trace: OpenTrace, reason: CloseReason) -> list[Closed]:
        closed: list[Closed] = []
        for candidate in list(trace.outermost):
            closed += self._force(trace, candidate, reason)
        self._drop_trace(trace)
        if trace.loose:
            closed += self._close_loose(trace, reason)
        return closed

    def _close_loose(self, trace: OpenTrace, reason: CloseReason) -> list[Closed]:
        spans, size = self._open.take_loose(trace)
        trace.deadline = 0.0
        if trace.unfinished == 0:
            self._drop_trace(trace)
        self.late.remember_received(trace.trace_id, reason)
        # The composer decides later which of these turns are complete.
        complete = trace.root_seen and not trace.continued
        return [Closed(trace.trace_id, spans, reason, complete, logs=trace.logs, size=size, continued=trace.continued)]


def _start_of_first(closed: Closed) -> int:
    span = closed.spans[0] if closed.spans else None
    found: int | None = getattr(span, "start_ns", None) or getattr(span, "start_time", None)
    return found or 0
