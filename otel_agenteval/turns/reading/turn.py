"""Build a :class:`~otel_agenteval.core.turn.Turn` from the spans of one turn.

:mod:`.steps` builds the span tree, and :mod:`.llm_calls` finds the model calls. Tool calls (:mod:`.tool_calls`), texts and errors
(:mod:`.messages`), and agents (:mod:`.agents`) require parsing JSON, so they are read on first use.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from typing import Any, ClassVar

from ...core import jsonio
from ...core.tenancy import tenant_of, trace_id_of, turn_id_in
from ...core.turn import AgentRun, CloseReason, Document, Handoff, Reading, Retrieval, SpanInfo, ToolCall, Turn
from ...core.wellformed import bounded_name, well_formed
from ...dialects.content import HIDDEN
from ...dialects.generic.events import LoggedCall
from ...dialects.step import RERANK, RETRIEVAL, Step
from ...spans.record import SpanRecord
from . import app_events
from .agents import agent_runs, main_agent
from .handoffs import handoffs
from .llm_calls import TurnCalls, ends_by_itself
from .messages import MessageReader


def _may_be_skewed(span: SpanRecord, root: SpanRecord) -> bool:
    return 0 < root.end_ns < span.start_ns and span.resource_attributes != root.resource_attributes


_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


def build_turn(
    root: SpanRecord, members: Iterable[SpanRecord], *, close_reason: CloseReason, complete: bool = True, revision: int = 1
) -> Turn:
    """Build a turn from its spans. Most content is parsed on first use."""
    return TurnReader(TurnCalls(root, members)).turn(close_reason, complete, revision)


class TurnReader(MessageReader):
    FIELDS: ClassVar[frozenset[str]] = frozenset((
        "start", "user_id", "framework", "reading", "truncated", "error", "input", "output", "system", "instructions_lost_at", "messages", "reasoning",
        "stop_kind", "tool_calls", "tool_definitions", "retrievals", "context", "retrieved_ids", "agent_runs", "handoffs", "attachments", "spans",
        "interactions", "conflicts", "logprobs",
    ))  # fmt: skip

    def turn(self, close_reason: CloseReason, complete: bool, revision: int = 1, supersedes: str | None = None) -> Turn:
        """Build the turn. If ``revision`` is above 1, the turn replaces the turn with the ID ``supersedes``."""
        root, record = self.root, self.root.record
        resource = record.resource_attributes
        # A root that returns a stream ends before its model call. Another host's clock can be ahead.
        ends = [
            record.end_ns,
            self.calls.until_ns or 0,
            *(one.record.end_ns for one in self.calls.steps if one.role is not None and not _may_be_skewed(one.record, record)),
        ]
        known: dict[str, Any] = {
            "turn_id": turn_id_in(record.trace_id, record.span_id),
            "tenant": tenant_of(record.trace_id),
            "trace_id": f"{trace_id_of(record.trace_id):032x}",
            "conversation_id": self.calls.conversation_id(),
            "service": _name_in(resource.get("service.name")),
            "service_version": _name_in(resource.get("service.version")),
            "agent": root.agent or main_agent(self.calls),
            "duration_s": (max(ends) - record.start_ns) / 1e9 if max(ends) >= record.start_ns > 0 else None,
            "close_reason": close_reason,
            "complete": complete,
            "revision": revision,
            "supersedes": supersedes,
            # Cheap to read, and nearly every turn's metrics or outlets need them.
            "llm_calls": self.calls.llm_calls(),
            "usage": self.calls.usage(),
            "cost_usd": self.calls.cost_usd(),
        }
        if RETRIEVAL not in self.calls.of_role and RERANK not in self.calls.of_role:
            known.update(retrievals=[], context=[], retrieved_ids=None)
        references = record.references
        if references is None:
            references = next((step.record.references for step in self.calls.steps if step.record.references), None)
        if references:
            known["references"] = references
            known.update((name, references[name]) for name in ("ground_truth", "relevant_ids") if name in references)
        return Turn.lazily(known, self)

    def extended(self, others: Iterable[TurnReader], until_ns: int) -> TurnReader:
        """Return a reader of this turn joined with its spans in other traces, without reading spans again."""
        return TurnReader(self.calls.extended([other.calls for other in others], until_ns))

    def inferred_scope(self) -> str | None:
        """Return the instrumentation scope of the first span whose role or content was inferred, or None."""
        return next((step.record.scope for step in self.calls.steps if step.inferred), None)

    def reading(self) -> Reading | None:
        """Return None if input and output are unknown, ``inferred`` if a role or content was inferred, or ``exact`` otherwise."""
        if self.output() is None and self.input() is None:
            return None
        return "exact" if self.inferred_scope() is None else "inferred"

    def user_id(self) -> str | None:
        return self.calls.user_id()

    def framework(self) -> str | None:
        return self.root.framework or self.calls.first("framework") or (self.root.record.scope or None)

    def stop_kind(self) -> str | None:
        """Return ``agent.stop_kind`` or, if unset, None without model calls, ``completed`` after a normal end, or ``unknown``."""
        reported = app_events.stop_kind(self.root, self.calls.steps)
        if reported is not None:
            return reported
        step = self.calls.answering_call
        if step is None:
            return None
        reason = step.finish_reason or next((one.finish_reason for one in reversed(self.calls.outputs(step))), None)
        return "completed" if self.error() is None and ends_by_itself(reason) else "unknown"

    def _retrieval_steps(self) -> list[Step]:
        steps = self.calls.of_role.get(RETRIEVAL) or self.calls.of_role.get(RERANK) or []
        outermost = [step for step in steps if self.calls.nearest(step, (step.role,)) is None]
        return outermost or steps  # an outer retriever selects from the documents of inner retrievers

    def retrievals(self) -> list[Retrieval]:
        return [
            Retrieval(None if step.query is None or step.query in HIDDEN else jsonio.text_of(step.query), step.documents or [])
            for step in self._retrieval_steps()
        ]

    def _documents(self) -> list[Document]:
        return [document for step in self._retrieval_steps() for document in step.documents or ()]

    def context(self) -> list[str]:
        return [document.content for document in self._documents() if document.content]

    def retrieved_ids(self) -> list[str] | None:
        found = self._documents()
        ids = [document.id for document in found if document.id]
        if found:
            return ids or None
        return ids if any(step.documents is not None for step in self._retrieval_steps()) else None

    def agent_runs(self) -> list[AgentRun]:
        return agent_runs(self.calls, self.tools)

    def tool_calls(self) -> list[ToolCall] | None:
        return self.tools.calls

    def tool_definitions(self) -> list[dict[str, Any]]:
        return self.tools.definitions

    def handoffs(self) -> list[Handoff]:
        return handoffs(self.calls)

    def interactions(self) -> list[dict[str, Any]]:
        return app_events.facts_in(self.calls.steps, "agent.interaction")

    def conflicts(self) -> list[dict[str, Any]]:
        return app_events.facts_in(self.calls.steps, "agent.conflict")

    def start(self) -> datetime.datetime | None:
        start = self.root.record.start_ns
        return _EPOCH + datetime.timedelta(microseconds=start // 1000) if 0 < start < 253402300799 * 10**9 else None

    def truncated(self) -> bool:
        self.input()
        for step in self.calls.llm:  # reading content finds truncation
            self.calls.inputs(step)
            self.calls.outputs(step)
        return self.calls.cut

    def spans(self) -> list[SpanInfo]:
        start = self.root.record.start_ns
        return [
            SpanInfo(
                f"{step.record.span_id:016x}", f"{step.record.parent_id:016x}" if step.record.parent_id else None, step.record.name,
                step.record.duration_s,
                # lists, as in OTLP, because the SDK stores tuples
                {key: list(value) if value.__class__ is tuple else value for key, value in step.record.attributes.items()},
                (step.record.start_ns - start) / 1e9 if start > 0 and step.record.start_ns > 0 else None, step.inferred or None,
                step.error is not None or None,
            )
            for step in self.calls.steps
            if not isinstance(step.record, LoggedCall)
        ]  # fmt: skip


def _name_in(value: Any) -> str | None:
    return bounded_name(well_formed(value)) if isinstance(value, str) else None
