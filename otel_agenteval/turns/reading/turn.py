"""Build a :class:`~otel_agenteval.core.turn.Turn` from the spans of one turn.

Each subject has its own module and a class that inherits from the one before: span order and tree (:mod:`.steps`),
model calls (:mod:`.llm_calls`), tool calls (:mod:`.tool_calls`) and messages (:mod:`.messages`). This module adds
agents, documents, errors and the turn itself. Everything that requires parsing JSON is read on first use and cached.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from ...core import jsonio
from ...core.tenancy import tenant_of, trace_id_of, turn_id_in
from ...core.turn import AgentRun, CloseReason, Document, ErrorInfo, Reading, Retrieval, SpanInfo, Turn
from ...core.wellformed import bounded_name, well_formed
from ...dialects.content import REDACTED
from ...dialects.generic.kinds import is_agent
from ...dialects.generic.logged import LoggedCall
from ...dialects.reader import error_of, raised
from ...dialects.step import AGENT, INNER, LLM, RERANK, RETRIEVAL, TOOL, Step
from ...spans.record import SpanRecord
from . import app_events
from .finish_reasons import ends_by_itself
from .messages import MessageReader, last_assistant_text, last_user_text
from .runs import RequestedRuns
from .steps import END
from .tool_calls import TOOL_OR_CALLER

_AGENT_ONLY = (AGENT,)
_AGENT_OR_TOOL = (AGENT, TOOL)
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


def turn_id_of(root: SpanRecord) -> str:
    """Return ``<trace id>-<root span id>`` in hex. If the turn has a tenant, its name and a colon come first."""
    return turn_id_in(root.trace_id, root.span_id)


def build_turn(
    root: SpanRecord, members: Iterable[SpanRecord], *, close_reason: CloseReason, complete: bool = True, revision: int = 1
) -> Turn:
    """Return the turn of these spans. Facts that are cheap to read are read now, content on first use."""
    return TurnReader(root, members).turn(close_reason, complete, revision)


class TurnReader(MessageReader):
    FIELDS: ClassVar[frozenset[str]] = frozenset((
        "start", "user_id", "framework", "reading", "truncated", "error", "input", "output", "system", "instructions_lost_at", "messages", "reasoning",
        "stop_kind",        "tool_calls", "tool_definitions", "retrievals", "context", "retrieved_ids", "agent_runs", "handoffs", "attachments", "spans",
        "interactions", "conflicts", "logprobs",
    ))  # fmt: skip
    _requested: RequestedRuns | None = None

    def turn(self, close_reason: CloseReason, complete: bool, revision: int = 1, supersedes: str | None = None) -> Turn:
        """Return the turn. A ``revision`` above 1 replaces the turn that was evaluated before (``supersedes``)."""
        root, record = self.root, self.root.record
        resource = record.resource_attributes
        known: dict[str, Any] = {
            "turn_id": turn_id_of(record),
            "tenant": tenant_of(record.trace_id),
            "trace_id": f"{trace_id_of(record.trace_id):032x}",
            "conversation_id": self.conversation_id(),
            "service": _name_in(resource.get("service.name")),
            "service_version": _name_in(resource.get("service.version")),
            "agent": root.agent or self._main_agent(),
            "duration_s": (max(record.end_ns, self.until_ns or 0, self._last_end_ns()) - record.start_ns) / 1e9,
            "close_reason": close_reason,
            "complete": complete,
            "revision": revision,
            "supersedes": supersedes,
            # Cheap to read, and nearly every turn's metrics or outlets need them.
            "llm_calls": self.llm_calls(),
            "usage": self.usage(),
            "cost_usd": self.cost_usd(),
        }
        if RETRIEVAL not in self.of_role and RERANK not in self.of_role:
            known.update(retrievals=[], context=[], retrieved_ids=None)
        references = record.references
        if references is None:
            references = next((step.record.references for step in self.steps if step.record.references), None)
        if references:
            known["references"] = references
            known.update((name, references[name]) for name in ("ground_truth", "relevant_ids") if name in references)
        return Turn.lazily(known, self)

    def _last_end_ns(self) -> int:
        """Return the end of the last step. A root that returns a stream ends before its model call."""
        return max((step.record.end_ns for step in self.steps if step.role is not None), default=0)

    def extended(self, others: Iterable[TurnReader], until_ns: int) -> TurnReader:
        """Return a reader that also contains the parts in other traces. Nothing is read again."""
        readers = [self, *others]
        whole = TurnReader.__new__(TurnReader)
        whole._take(self.root.record, [step for reader in readers for step in reader.steps])
        for reader in readers:
            whole._decoded.update(reader._decoded)
        whole.until_ns = until_ns
        return whole

    def inferred_scope(self) -> str | None:
        """Return the scope of the first span that was recognized by its shape, or None if dialects recognized all."""
        return next((step.record.scope for step in self.steps if step.inferred), None)

    def reading(self) -> Reading | None:
        """Return how the turn was read, or None without input and output."""
        if self.output() is None and self.input() is None:
            return None
        return "exact" if self.inferred_scope() is None else "inferred"

    def _main_agent(self) -> str | None:
        steps = (step for role in (AGENT, INNER) for step in self.of_role.get(role, ()))
        return next((step.agent for step in steps if step.agent and not self.is_nested(step)), None)

    def user_id(self) -> str | None:
        return self.root.user_id or self._first("user_id") or (self.ancestor.user_id if self.ancestor is not None else None)

    def framework(self) -> str | None:
        return self.root.framework or self._first("framework") or (self.root.record.scope or None)

    def stop_kind(self) -> str | None:
        """Return the application's ``agent.stop_kind``, or ``completed`` if the answering call stopped by itself, or ``unknown``."""
        reported = app_events.stop_kind(self.root, self.steps)
        if reported is not None:
            return reported
        step = self._answering_call()
        if step is None:
            return None
        if self.error() is None and ends_by_itself(step.finish_reason):
            return "completed"
        return "unknown"

    def _retrieval_steps(self) -> list[Step]:
        steps = self.of_role.get(RETRIEVAL) or self.of_role.get(RERANK) or []
        outermost = [step for step in steps if self._nearest(step, (step.role,)) is None]
        return outermost or steps  # an outer retriever selects from the documents of the inner ones

    def retrievals(self) -> list[Retrieval]:
        found = []
        for step in self._retrieval_steps():
            query = jsonio.text_of(step.query) if step.query is not None and step.query not in REDACTED else None
            found.append(Retrieval(query, step.documents or []))
        return found

    def _documents(self) -> list[Document]:
        return [document for step in self._retrieval_steps() for document in step.documents or ()]

    def context(self) -> list[str]:
        return [document.content for document in self._documents() if document.content]

    def retrieved_ids(self) -> list[str] | None:
        """Return the ids of the retrieved documents, or None if they are unknown."""
        found = self._documents()
        ids = [document.id for document in found if document.id]
        if found:
            return ids or None
        return ids if any(step.documents is not None for step in self._retrieval_steps()) else None

    def agent_runs(self) -> list[AgentRun]:
        runs = []
        at_work: dict[int, str] = {}
        hidden = self._agents_in_tools()
        named = {None, *(step.agent for step in self.of_role.get(AGENT, ()))}
        for step in self.steps:
            if id(step) in hidden:
                name, within = self._agent_of(step) or self._main_agent(), hidden[id(step)]
                own = step.tool_name if within == name or within in named else within
                runs.append(AgentRun(own, f"{step.record.span_id:016x}", name, step.record.duration_s, step.error))
                continue
            if step.role != AGENT and (step.role != INNER or not step.agent):
                continue
            if step.role == INNER and step.agent:  # a loop step of an agent without a span of its own
                if at_work.get(step.record.parent_id) == step.agent:
                    continue
                at_work[step.record.parent_id] = step.agent
            parent = self._nearest(step, _AGENT_ONLY)
            if parent is not None and self._is_same_run(parent, step):
                continue
            runs.append(
                AgentRun(
                    self._name_of_run(step),
                    f"{step.record.span_id:016x}",
                    self._agent_of(step) if parent else None,
                    step.record.duration_s,
                    step.error,
                )
            )
        return [*runs, *self._agents_in_messages()]

    def _agents_in_messages(self) -> Iterator[AgentRun]:
        """Yield an agent for each tool without a span whose argument is the user message of other model calls."""
        if len(self.llm) < 3 or self._tool_steps:
            return
        asked = {last_user_text(self.inputs(step)) for step in self.llm}
        if len(asked) > 1:
            for call in self.tool_calls() or ():
                if any(isinstance(value, str) and value in asked for value in (call.arguments or {}).values()):
                    yield AgentRun(call.name, None, self._main_agent())

    def _is_same_run(self, parent: Step, step: Step) -> bool:
        if step.agent_is_class:
            return self._parent(step) is parent and parent.agent == step.agent
        if step.agent:
            return parent.agent == step.agent
        return self._parent(step) is parent and self._requested_name(step, parent) is None

    def _name_of_run(self, step: Step) -> str | None:
        """Return the agent's own name or, if unset, the name of the tool that runs it."""
        if step.agent and not step.agent_is_class:
            return step.agent
        caller = self._nearest(step, TOOL_OR_CALLER)
        if caller is None:
            return step.agent
        if caller.role == TOOL:
            return caller.tool_name or step.agent
        return step.agent or self._requested_name(step, caller)

    def _requested_name(self, step: Step, caller: Step) -> str | None:
        """Return the tool name that an agent's caller requested in its last model call before the run."""
        if caller.role != AGENT:
            return None
        if self._requested is None:
            calls: dict[int, list[Step]] = {}
            for call in self.llm:
                ancestor = self._nearest(call, _AGENT_ONLY)
                if ancestor is not None:
                    calls.setdefault(ancestor.record.span_id, []).append(call)
            self._requested = RequestedRuns(
                calls, self.of_role[AGENT], lambda call: [request.name for request in self.requests_of(call) if request.name]
            )
        return self._requested.name_of(step, caller)

    def _agents_in_tools(self) -> dict[int, str | None]:
        """Return the tools that called a model, which makes them agents without an agent span, and the agent that a call names."""
        if len(self.llm) < 2 or not self._tool_steps:
            return {}
        tools = set(map(id, self._tool_steps))
        by_role = all(tool.role == TOOL for tool in self._tool_steps)  # the role alone identifies tool runs
        found: dict[int, str | None] = {}
        for step in self.llm:
            if by_role:
                ancestor = self._nearest(step, _AGENT_OR_TOOL)
            else:
                ancestor = self.tree.nearest(step, "agent or run of a tool", lambda at: at.role == AGENT or id(at) in tools)
            if ancestor is not None and id(ancestor) in tools:
                found[id(ancestor)] = found.get(id(ancestor)) or step.agent or self._agent_around(step, ancestor)
        return found

    def _agent_around(self, step: Step, tool: Step) -> str | None:
        """Return the name of the span between a tool and its model call if it is an agent's, such as ``billing_agent``."""
        around = self.tree.nearest(step, "name of an agent", lambda at: is_agent(at.record.name))
        return around.record.name if around is not None and self.tree.is_ancestor(tool, around) else None

    def interactions(self) -> list[dict[str, Any]]:
        return app_events.interactions(self.steps)

    def conflicts(self) -> list[dict[str, Any]]:
        return app_events.conflicts(self.steps)

    def error(self) -> ErrorInfo | None:
        root = self.root
        if root.error is not None and root.role != LLM:
            return None if self._went_on_after(root.error) else root.error
        instead = self._error_as_answer() if root.role != LLM else None
        if instead is not None:
            return self._last_call_error() or ErrorInfo("error", instead or None)
        if root.output_messages is not None or root.final_result is not None:
            failed = self._last_call_error()
            if failed is None or root.role == LLM or self._root_output() is None or self._answers_with(failed):
                return failed
            return None
        beside = self._beside_root()
        if beside and root.role != INNER:  # the span around them was never seen, so the last of them decides
            return max(beside, key=END).error
        # Some roots have no status if the run below them failed. Then the last agent decides, or its last model call.
        inner = [step for step in self.steps if step.role == AGENT and step is not root and not self.is_nested(step)]
        if inner:
            last = max(inner, key=END)
            if last.error is not None or last.output_messages is not None or last.output_value is not None:
                return last.error
        if root.output_value is not None and root.role != INNER:
            return None
        failed = self._last_call_error()
        if failed is None and raised(root.record, root) and self._answer_call() is None:
            return error_of(root.record, root)
        return failed

    def _answer_call(self) -> Step | None:
        """Return the answering call if it, or the root, has an answer. Without content, the finish reason shows that."""
        call = self._answering_call()
        if call is None or call.error is not None:
            return None
        made = self.outputs(call)
        if not made and ends_by_itself(call.finish_reason):
            return call
        return call if (self._root_output() or last_assistant_text(made)) is not None else None

    def _went_on_after(self, error: ErrorInfo) -> bool:
        """Return True if an error only repeats a tool's, and a model answered afterwards."""
        call = self._answer_call()
        return call is not None and any(
            tool.error is not None and tool.error.message == error.message and tool.record.end_ns <= call.record.start_ns
            for tool in self.of_role.get(TOOL, ())
        )

    def _beside_root(self) -> list[Step]:
        around = self.root.record.parent_id
        if not around or around in self.by_id or self.root.role == LLM:
            return []
        beside = [step for step in self.steps if step.record.parent_id == around]
        return beside if len(beside) > 1 else []

    def start(self) -> datetime.datetime | None:
        start = self.root.record.start_ns
        return _EPOCH + datetime.timedelta(microseconds=start // 1000) if 0 < start < 253402300799 * 10**9 else None

    def truncated(self) -> bool:
        for step in self.llm:  # cuts are found when content is read
            self.inputs(step)
            self.outputs(step)
        return self._cut

    def spans(self) -> list[SpanInfo]:
        start = self.root.record.start_ns
        return [
            SpanInfo(
                f"{step.record.span_id:016x}", f"{step.record.parent_id:016x}" if step.record.parent_id else None, step.record.name,
                step.record.duration_s, _with_lists(step.record.attributes), _seconds_after(start, step.record.start_ns),
                step.inferred or None,
            )
            for step in self.steps
            if not isinstance(step.record, LoggedCall)
        ]  # fmt: skip


def _name_in(value: Any) -> str | None:
    return bounded_name(well_formed(value)) if isinstance(value, str) else None


def _seconds_after(start: int, then: int) -> float | None:
    return (then - start) / 1e9 if start > 0 and then > 0 else None


def _with_lists(attributes: dict[str, Any]) -> dict[str, Any]:
    """Return attributes with lists, as in OTLP. The SDK keeps sequences as tuples."""
    return {key: list(value) if value.__class__ is tuple else value for key, value in attributes.items()}
