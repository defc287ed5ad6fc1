"""From the spans of one turn to a :class:`~otel_agenteval.model.Turn`.

What counts, once and for all metrics:

* An *LLM call* is one request to a model. A model span inside another one (a framework's span over an SDK's), or with the
  same response id, is the same call seen twice: its facts fill the gaps of the outer one. Totals on agent spans are never added.
* A *tool call* is one execution. It has a span, or stands only in messages: requested by a model and answered in a later
  prompt. A request that nothing executed is none. Hand-offs (``transfer_to_x``) and a framework's output tool are none.
* The *input* is the last thing a user said before the turn's first model call; the *output* is what the root gave back, else
  the text of the last model call. Text that was not captured is unknown, never empty.

Everything that needs JSON is read on first use and kept.
"""

from __future__ import annotations

import datetime
from collections.abc import Container, Iterable
from functools import lru_cache
from operator import attrgetter
from typing import Any, ClassVar

from .. import jsonio
from ..dialects.content import REDACTED, Decoded, arguments_of, decode, unwrap_result
from ..dialects.reader import read
from ..dialects.step import AGENT, HANDOFF, LLM, RERANK, RETRIEVAL, TOOL, WORKFLOW, Step
from ..model import (
    AgentRun,
    CloseReason,
    Document,
    ErrorInfo,
    Handoff,
    LlmCall,
    Message,
    Retrieval,
    SpanInfo,
    ToolCall,
    ToolRequest,
    Turn,
    Usage,
)  # fmt: skip
from ..spans.record import SpanRecord

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_MERGED = (
    "model", "provider", "input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens", "cost_usd", "finish_reason",
    "response_id", "time_to_first_token_s", "input_messages", "output_messages", "system", "tool_definitions",
)  # fmt: skip
_TOOL_MERGED = ("tool_call_id", "tool_arguments", "tool_result")
_HANDOFF_PREFIXES = ("transfer_to_", "handoff_to_", "transfer_back_to_")
_OUTPUT_TOOLS = frozenset(("final_result", "final_answer"))
_FAILED_TEXT = ("error:", "error executing", "traceback (most recent call last)", "exception:", "tool error:")


_START = attrgetter("record.start_ns")
_LLM_OR_LOOP = (LLM, AGENT, TOOL, WORKFLOW)
_TOOL_OR_CALLER = (TOOL, AGENT, LLM)
_AGENTS = (AGENT,)
_LONGEST_CONSTANT = 32_768
"""Texts that every turn repeats (instructions, tool definitions) are read once, up to this length."""


def turn_id_of(root: SpanRecord) -> str:
    """``<trace id>-<root span id>``, in hex."""
    return f"{root.trace_id:032x}-{root.span_id:016x}"


def build_turn(
    root: SpanRecord, members: Iterable[SpanRecord], *, close_reason: CloseReason, complete: bool = True, revision: int = 1
) -> Turn:
    """The turn of these spans. Cheap facts are read now, content on first use."""
    return _Builder(root, members).turn(close_reason, complete, revision)


class _Builder:
    """The spans of one turn, understood, and what was read from them so far. Keeps no reference to the turn: no cycle."""

    FIELDS: ClassVar[frozenset[str]] = frozenset((
        "start", "user_id", "framework", "truncated", "error", "input", "output", "system", "messages", "reasoning", "stop_kind",
        "tool_calls", "tool_definitions", "retrievals", "context", "retrieved_ids", "agent_runs", "handoffs", "attachments", "spans",
    ))  # fmt: skip

    def __init__(self, root: SpanRecord, members: Iterable[SpanRecord]) -> None:
        steps = [read(record) for record in members]
        steps.sort(key=_START)
        self.steps = steps
        self.by_id: dict[int, Step] = {}
        self._cut = False
        """Whether content was cut before it reached us, as far as anybody has looked."""
        of_role: dict[str | None, list[Step]] = {}
        for step in steps:
            record = step.record
            self.by_id[record.span_id] = step
            self._cut |= record.truncated
            if step.role in of_role:
                of_role[step.role].append(step)
            else:
                of_role[step.role] = [step]
        self.of_role = of_role
        self.root = self.by_id.get(root.span_id) or read(root)
        self._decoded: dict[tuple[int, str], Decoded] = {}
        self.llm = self._leaf_llm_steps() if LLM in of_role else []

    def turn(self, close_reason: CloseReason, complete: bool, revision: int) -> Turn:
        root, record = self.root, self.root.record
        service = record.resource_attributes.get("service.name")
        known: dict[str, Any] = {
            "turn_id": turn_id_of(record),
            "trace_id": f"{record.trace_id:032x}",
            "conversation_id": root.conversation_id or self._first("conversation_id"),
            "service": service if isinstance(service, str) else None,
            "agent": root.agent or self._main_agent(),
            "duration_s": record.duration_s,
            "close_reason": close_reason,
            "complete": complete,
            "revision": revision,
            # Cheap, and needed by nearly every turn's metrics or outlets.
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
            self._add_references(known, references)
        return Turn.lazily(known, self)

    # --- small helpers

    def _first(self, field: str) -> Any:
        return next((value for step in self.steps if (value := getattr(step, field)) is not None), None)

    def _main_agent(self) -> str | None:
        return next((step.agent for step in self.steps if step.role == AGENT and step.agent), None)

    @staticmethod
    def _add_references(known: dict[str, Any], references: dict[str, Any]) -> None:
        known["references"] = references
        for name in ("ground_truth", "relevant_ids"):
            if name in references:
                known[name] = references[name]

    def user_id(self) -> str | None:
        return self.root.user_id or self._first("user_id")

    def framework(self) -> str | None:
        return self.root.framework or self._first("framework") or (self.root.record.scope or None)

    def _parent(self, step: Step) -> Step | None:
        parent = self.by_id.get(step.record.parent_id)
        return parent if parent is not step else None

    def _ancestors(self, step: Step) -> Iterable[Step]:
        seen = {step.record.span_id}
        at = self._parent(step)
        while at is not None and at.record.span_id not in seen:  # broken telemetry can hold a circle
            seen.add(at.record.span_id)
            yield at
            at = self._parent(at)

    def _decode(self, step: Step, field: str, role: str) -> Decoded:
        key = (step.record.span_id, field)
        found = self._decoded.get(key)
        if found is None:
            raw = getattr(step, field)
            if field == "system" and raw.__class__ is str and len(raw) < _LONGEST_CONSTANT:
                found = _decode_constant(raw, role)
            else:
                found = decode(raw, role)
            self._decoded[key] = found
            self._cut |= found.truncated
        return found

    def inputs(self, step: Step) -> list[Message]:
        """The messages before a model call."""
        return self._decode(step, "input_messages", "user").messages

    def outputs(self, step: Step) -> list[Message]:
        """What a model call answered, one message per choice."""
        return self._decode(step, "output_messages", "assistant").messages

    # --- model calls

    def _leaf_llm_steps(self) -> list[Step]:
        leaves: list[Step] = []
        by_response: dict[str, Step] = {}
        for step in self.of_role[LLM]:
            same = self._outer_llm(step) or (by_response.get(step.response_id) if step.response_id else None)
            if same is not None:
                _fill(same, step, _MERGED)
                continue
            leaves.append(step)
            if step.response_id:
                by_response[step.response_id] = step
        return leaves

    def _nearest(self, step: Step, roles: Container[str | None]) -> Step | None:
        """The closest span above with one of these roles."""
        by_id = self.by_id
        at = step
        for _ in range(len(by_id)):  # broken telemetry can hold a circle
            above = by_id.get(at.record.parent_id)
            if above is None or above is step:
                return None
            if above.role in roles:
                return above
            at = above
        return None

    def _outer_llm(self, step: Step) -> Step | None:
        found = self._nearest(step, _LLM_OR_LOOP)
        return None if found is None or found.role != LLM else self._outer_llm(found) or found

    def llm_calls(self) -> list[LlmCall]:
        return [
            LlmCall(
                f"{step.record.span_id:016x}", step.model, step.provider, step.input_tokens, step.output_tokens, step.cached_tokens,
                step.reasoning_tokens, step.cost_usd, step.finish_reason, step.response_id, step.record.duration_s,
                step.time_to_first_token_s, step.error,
            )
            for step in self.llm
        ]  # fmt: skip

    def usage(self) -> Usage | None:
        given = answered = cached = reasoning = None
        for step in self.llm:
            if step.input_tokens is not None:
                given = step.input_tokens + (given or 0)
            if step.output_tokens is not None:
                answered = step.output_tokens + (answered or 0)
            if step.cached_tokens is not None:
                cached = step.cached_tokens + (cached or 0)
            if step.reasoning_tokens is not None:
                reasoning = step.reasoning_tokens + (reasoning or 0)
        if given is None and answered is None:
            return None
        return Usage(given, answered, (given or 0) + (answered or 0), cached, reasoning)

    def cost_usd(self) -> float | None:
        costs = [step.cost_usd for step in self.llm if step.cost_usd is not None]
        return sum(costs) if costs else None

    # --- what was said

    def input(self) -> str | None:
        root = self.root
        if root.role != LLM:
            for field in ("input_messages", "input_value"):
                if getattr(root, field) is not None:
                    found = self._decode(root, field, "user")
                    text = _last_user_text(found.messages)
                    if text is not None:
                        return text
        for step in self.llm:
            text = _last_user_text(self.inputs(step))
            if text is not None:
                return text
        return None

    def output(self) -> str | None:
        root = self.root
        if root.role != LLM:
            text = self._root_output()
            if text is not None:
                return text
        last = self._answering_call()
        if last is None:
            return None
        return self._answer_text(last)

    def _root_output(self) -> str | None:
        root = self.root
        if root.final_result is not None and root.final_result not in REDACTED:
            return jsonio.text_of(root.final_result)
        if root.output_messages is not None:
            found = self._decode(root, "output_messages", "assistant")
            text = _last_assistant_text(found.messages)
            if text is not None:
                return text
        raw = root.output_value
        if raw is None or raw in REDACTED:
            return None
        found = self._decode(root, "output_value", "assistant")
        if found.hidden:
            return None
        if any(message.role != "assistant" or message.tool_calls for message in found.messages) or len(found.messages) > 1:
            return _last_assistant_text(found.messages)
        if isinstance(raw, str) and raw[:1] not in '[{"':
            return raw
        if len(found.messages) == 1 and found.messages[0].content is not None and '"content"' in jsonio.text_of(raw):
            return found.messages[0].content
        return jsonio.text_of(raw)

    def _answering_call(self) -> Step | None:
        """The model call that ended last: the one whose words went back to the user. One that failed only if all did."""
        found: Step | None = None
        for step in self.llm:
            if found is None or (found.error is not None, step.record.end_ns) > (step.error is not None, found.record.end_ns):
                found = step
        return found

    def _answer_text(self, step: Step) -> str | None:
        found = self._decode(step, "output_messages", "assistant")
        text = next((message.content for message in found.messages if message.content is not None), None)
        if text is not None:
            return text
        if found.hidden or step.output_messages is None or step.error is not None:
            return None
        if any(message.tool_calls for message in found.messages):
            return None  # it asked for a tool: whatever came back to the user was not this
        return ""

    def system(self) -> str | None:
        for step in (self.root, *self.llm):
            if step.system is not None:
                texts = [message.content for message in self._decode(step, "system", "system").messages if message.content]
                if texts:
                    return "\n".join(texts)
        for step in self.llm[:1]:
            texts = [message.content for message in self.inputs(step) if message.role == "system" and message.content]
            if texts:
                return "\n".join(texts)
        return None

    def messages(self) -> list[Message]:
        step = self._answering_call()
        if step is None:
            return []
        return [message for message in self.inputs(step) if message.role != "system"] + self.outputs(step)[:1]

    def reasoning(self) -> str | None:
        texts = [message.reasoning for step in self.llm for message in self.outputs(step) if message.reasoning]
        return "\n".join(texts) if texts else None

    def attachments(self) -> list[dict[str, Any]]:
        step = self._answering_call()
        return [item for message in self.inputs(step) for item in message.attachments] if step is not None else []

    def stop_kind(self) -> str | None:
        """``completed`` when the answering call stopped by itself; ``unknown`` when it did not say."""
        step = self._answering_call()
        if step is None:
            return None
        if self.error() is None and (step.finish_reason or "").lower() in ("stop", "end_turn", "completed", "stop_sequence"):
            return "completed"
        return "unknown"

    # --- tools

    def tool_definitions(self) -> list[dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        seen: set[str] = set()
        for step in (self.root, *self.llm):
            raw = step.tool_definitions
            if raw is None:
                continue
            if raw.__class__ is str:
                if raw in seen:
                    continue
                seen.add(raw)
                definitions, cut = _definitions_in_text(raw) if len(raw) < _LONGEST_CONSTANT else _read_definitions(raw)
                self._cut |= cut
            else:
                definitions = _definitions(raw)
            for name, definition in definitions:
                found.setdefault(name, definition)
        return list(found.values())

    def _requests(self) -> list[tuple[ToolRequest, Step]]:
        return [(call, step) for step in self.llm for message in self.outputs(step) for call in message.tool_calls]

    def tool_calls(self) -> list[ToolCall]:
        steps = self._tool_steps()
        calls = []
        requests: list[ToolRequest] | None = None
        for step in steps:
            arguments = arguments_of(step.tool_arguments)
            call_id = step.tool_call_id
            if arguments is None or call_id is None:
                if requests is None:
                    requests = [request for request, _ in self._requests()]
                request = _request_of(step, arguments, requests)
                if request is not None:
                    call_id = call_id or request.call_id
                    arguments = arguments_of(request.arguments) if arguments is None else arguments
            result = unwrap_result(step.tool_result)
            calls.append(ToolCall(
                step.tool_name or "", arguments, None if result in _REDACTED_RESULTS else result, step.error, step.record.duration_s,
                f"{step.record.span_id:016x}", call_id, step.permission_denied, step.agent or self._agent_of(step),
            ))  # fmt: skip
        if not steps:
            calls.extend(self._calls_in_messages())
        return calls

    def _tool_steps(self) -> list[Step]:
        out = []
        for step in self.of_role.get(TOOL, ()):
            if _is_handoff(step.tool_name) or step.tool_name in _OUTPUT_TOOLS:
                continue
            outer = self._nearest(step, _TOOL_OR_CALLER)
            if (
                outer is not None
                and outer.role == TOOL
                and (outer.tool_name == step.tool_name or (step.tool_call_id and outer.tool_call_id == step.tool_call_id))
            ):
                _fill(outer, step, _TOOL_MERGED)
                outer.error = outer.error or step.error
                continue
            out.append(step)
        return out

    def _agent_of(self, step: Step) -> str | None:
        found = self._nearest(step, _AGENTS)
        while found is not None and not found.agent:
            found = self._nearest(found, _AGENTS)
        return found.agent if found is not None else None

    def _calls_in_messages(self) -> list[ToolCall]:
        """Calls of a hand-written loop: requested in one answer, answered in a later prompt."""
        results: dict[str, Any] = {}
        for step in self.llm:
            for message in self.inputs(step):
                for response in message.tool_results:
                    if response.call_id:
                        results[response.call_id] = response.result
        calls = []
        last = self.llm[-1] if self.llm else None
        for request, step in self._requests():
            if not request.name or _is_handoff(request.name) or request.name in _OUTPUT_TOOLS:
                continue
            result = results.get(request.call_id or "")
            error = _error_in(result)
            if request.call_id not in results and step is last:
                if self.root.role == LLM:
                    continue  # a model call alone: whoever executes the request does it outside of this turn
                error = self.root.error  # the loop went on to the tool, and what ended it there ended the turn
            calls.append(
                ToolCall(request.name, arguments_of(request.arguments), result, error, call_id=request.call_id, agent=step.agent)
            )
        return calls

    # --- retrieval

    def _retrieval_steps(self) -> list[Step]:
        return self.of_role.get(RETRIEVAL) or self.of_role.get(RERANK) or []

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
        steps = [step for step in self._retrieval_steps() if step.documents is not None]
        return [document.id for document in self._documents() if document.id] if steps else None

    # --- agents

    def agent_runs(self) -> list[AgentRun]:
        runs = []
        for step in self.steps:
            if step.role != AGENT:
                continue
            parent = next((a for a in self._ancestors(step) if a.role == AGENT), None)
            if parent is not None and parent.agent == step.agent:
                continue  # the same run, seen by two layers
            runs.append(
                AgentRun(
                    step.agent,
                    f"{step.record.span_id:016x}",
                    parent.agent if parent else None,
                    step.record.duration_s,
                    step.error,
                )
            )
        return runs

    def handoffs(self) -> list[Handoff]:
        spans = [step for step in self.steps if step.role == HANDOFF]
        if spans:
            return [self._handoff_of(step) for step in spans]
        return [
            Handoff(step.agent or self._agent_of(step), _without_prefix(request.name), None)
            for request, step in self._requests()
            if request.name is not None and _is_handoff(request.name)
        ]

    def _handoff_of(self, step: Step) -> Handoff:
        """Spans are named ``X → Y.handoff`` or ``handoff to Y``."""
        source, arrow, target = step.record.name.removesuffix(".handoff").partition("→")
        if not arrow:
            source, target = "", source.removeprefix("handoff to ")
        return Handoff(source.strip() or self._agent_of(step), target.strip() or None, step.error is None, step.record.duration_s)

    # --- how it went

    def error(self) -> ErrorInfo | None:
        root = self.root
        if root.error is not None or root.role == LLM:
            return root.error
        if root.output_messages is not None or root.final_result is not None:
            return None
        # Some roots stay unset when the run below them failed: then the last agent, or the last model call, says so.
        inner = [step for step in self.steps if step.role == AGENT and step is not root and not self._is_nested(step)]
        if inner:
            return max(inner, key=lambda step: step.record.end_ns).error
        if self.llm and root.role != AGENT:
            return max(self.llm, key=lambda step: step.record.end_ns).error
        return None

    def _is_nested(self, step: Step) -> bool:
        return any(ancestor.role == TOOL for ancestor in self._ancestors(step))

    def start(self) -> datetime.datetime | None:
        start = self.root.record.start_ns
        return _EPOCH + datetime.timedelta(microseconds=start // 1000) if 0 < start < 253402300799 * 10**9 else None

    def truncated(self) -> bool:
        for step in self.llm:  # whether content was cut shows only when it is read
            self.inputs(step)
            self.outputs(step)
        return self._cut

    def spans(self) -> list[SpanInfo]:
        return [
            SpanInfo(
                f"{step.record.span_id:016x}", f"{step.record.parent_id:016x}" if step.record.parent_id else None, step.record.name,
                step.record.duration_s, step.record.attributes,
            )
            for step in self.steps
        ]  # fmt: skip


_REDACTED_RESULTS = REDACTED


@lru_cache(maxsize=32)
def _decode_constant(raw: str, role: str) -> Decoded:
    """As ``decode``, for texts that an agent sends with every call: its instructions. The messages are shared; nobody writes."""
    return decode(raw, role)


def _read_definitions(raw: str) -> tuple[list[tuple[str, dict[str, Any]]], bool]:
    """Tools by name, from JSON text, and whether it was cut."""
    value, cut = jsonio.loads_or_text(raw)
    return _definitions(value), cut


_definitions_in_text = lru_cache(maxsize=32)(_read_definitions)


def _definitions(raw: Any) -> list[tuple[str, dict[str, Any]]]:
    found = []
    for item in raw if isinstance(raw, (list, tuple)) else ():
        tool = jsonio.loads_or_text(item)[0] if isinstance(item, str) else item
        if isinstance(tool, dict):
            flat = {**tool, **tool["function"]} if isinstance(tool.get("function"), dict) else tool
            name = flat.get("name")
            if isinstance(name, str):
                found.append((name, {key: value for key, value in flat.items() if key != "function"}))
    return found


def _fill(target: Step, source: Step, names: Iterable[str]) -> None:
    for name in names:
        if getattr(target, name) is None:
            value = getattr(source, name)
            if value is not None:
                setattr(target, name, value)


def _last_user_text(messages: list[Message]) -> str | None:
    for message in reversed(messages):
        if message.role == "user" and message.content and not message.tool_results:
            return message.content
    return None


def _last_assistant_text(messages: list[Message]) -> str | None:
    for message in reversed(messages):
        if message.role == "assistant":
            if message.content is not None:
                return message.content
            return None if message.tool_calls else ""
    return None


def _is_handoff(name: str | None) -> bool:
    return name is not None and name.startswith(_HANDOFF_PREFIXES)


def _without_prefix(name: str) -> str:
    return next(name.removeprefix(prefix) for prefix in _HANDOFF_PREFIXES if name.startswith(prefix))


def _request_of(step: Step, arguments: dict[str, Any] | None, requests: list[ToolRequest]) -> ToolRequest | None:
    """The model's request behind a tool span: by call id, else by name and arguments, each request once."""
    for request in requests:
        if step.tool_call_id and request.call_id == step.tool_call_id:
            return request
    for request in requests:
        if request.name == step.tool_name:
            wanted = arguments_of(request.arguments)
            bare = step.tool_arguments
            if wanted == arguments or (
                arguments is None
                and wanted is not None
                and (bare is None or any(jsonio.text_of(v) == jsonio.text_of(bare) for v in wanted.values()))
            ):
                requests.remove(request)
                return request
    return None


def _error_in(result: Any) -> ErrorInfo | None:
    """Whether a tool's answer, known only as text before the model, reports a failure."""
    if isinstance(result, str):
        if result[:40].lower().startswith(_FAILED_TEXT):
            return ErrorInfo("tool_error", result[:200])
        if result[:1] != "{":
            return None
        try:
            result = jsonio.loads(result)
        except ValueError:
            return None
    if isinstance(result, dict):
        said = result.get("error")
        if said or result.get("is_error") is True or result.get("status") == "error":
            return ErrorInfo("tool_error", jsonio.text_of(said)[:200] if said else None)
    return None
