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
from ..dialects.content import REDACTED, Decoded, Later, arguments_of, decode, unwrap_result
from ..dialects.reader import read
from ..dialects.step import AGENT, HANDOFF, INNER, LLM, RERANK, RETRIEVAL, ROOT_ROLES, TOOL, WORKFLOW, Step, as_text
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
from .question import question_in

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_MERGED = (
    "model", "provider", "input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens", "cost_usd", "finish_reason",
    "response_id", "time_to_first_token_s", "input_messages", "output_messages", "system", "tool_definitions",
)  # fmt: skip
_SDK_SCOPES = ("com.anthropic.",)
"""Spans that a provider's SDK writes itself: closest to the wire."""
_TOOL_MERGED = ("tool_call_id", "tool_arguments", "tool_result")
_HANDOFF_PREFIXES = ("transfer_to_", "handoff_to_", "transfer_back_to_")
_PLUGIN = "Handoff-"
"""What may stand before them."""
_OUTPUT_TOOLS = frozenset(("final_result", "final_answer", "set_model_response", "Handoff-complete_task"))
_ANSWER_KEYS = frozenset(("answer", "content", "final_output", "message", "output", "reply", "response", "result", "text"))
_FAILED_TEXT = ("error:", "error executing", "traceback (most recent call last)", "exception:", "tool error:")


_START = attrgetter("record.start_ns")
_END = attrgetter("record.end_ns")
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
    return TurnReader(root, members).turn(close_reason, complete, revision)


class TurnReader:
    """The spans of one turn, understood, and what was read from them so far. Keeps no reference to the turn: no cycle."""

    FIELDS: ClassVar[frozenset[str]] = frozenset((
        "start", "user_id", "framework", "truncated", "error", "input", "output", "system", "messages", "reasoning", "stop_kind",
        "tool_calls", "tool_definitions", "retrievals", "context", "retrieved_ids", "agent_runs", "handoffs", "attachments", "spans",
    ))  # fmt: skip

    def __init__(self, root: SpanRecord, members: Iterable[SpanRecord]) -> None:
        self._take(root, [read(record) for record in members])

    def _take(self, root: SpanRecord, steps: list[Step]) -> None:
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
        for step in of_role.get(INNER, ()):  # some agents are named only in the steps of their loop
            if step.agent:
                above = self.by_id.get(step.record.parent_id)
                if above is not None and above.role == AGENT and above.agent is None:
                    above.agent = step.agent
        self.of_role = of_role
        self.root = self.by_id.get(root.span_id) or read(root)
        self._decoded: dict[tuple[int, str], Decoded] = {}
        self.above: Step | None = None
        """A span that this turn shares with others, which says who talks."""
        self.until_ns: int | None = None
        """When a turn ended that is more than its root's span."""
        self.llm = self._leaf_llm_steps() if LLM in of_role else [self.root] if self.root.calls_model else []

    def share(self, above: SpanRecord) -> None:
        """The turn stands below ``above`` beside others: that span says who talks."""
        self.above = read(above)

    def extended(self, others: Iterable[TurnReader], until_ns: int) -> TurnReader:
        """A turn that went on in other traces and ended at ``until_ns``. Nothing is read again."""
        readers = [self, *others]
        whole = TurnReader.__new__(TurnReader)
        whole._take(self.root.record, [step for reader in readers for step in reader.steps])
        for reader in readers:
            whole._decoded.update(reader._decoded)
        whole.until_ns = until_ns
        return whole

    def conversation_id(self) -> str | None:
        """The id of the conversation that the turn is part of."""
        found: str | None = self.root.conversation_id or self._first("conversation_id")
        return found or (self.above.conversation_id if self.above is not None else None)

    def turn(self, close_reason: CloseReason, complete: bool, revision: int = 1, supersedes: str | None = None) -> Turn:
        """The turn. ``revision`` above 1 says that it stands for a turn that was evaluated before (``supersedes``)."""
        root, record = self.root, self.root.record
        service = record.resource_attributes.get("service.name")
        known: dict[str, Any] = {
            "turn_id": turn_id_of(record),
            "trace_id": f"{record.trace_id:032x}",
            "conversation_id": self.conversation_id(),
            "service": service if isinstance(service, str) else None,
            "agent": root.agent or self._main_agent(),
            "duration_s": record.duration_s if self.until_ns is None else (self.until_ns - record.start_ns) / 1e9,
            "close_reason": close_reason,
            "complete": complete,
            "revision": revision,
            "supersedes": supersedes,
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
        return next((step.agent for role in (AGENT, INNER) for step in self.of_role.get(role, ()) if step.agent), None)

    @staticmethod
    def _add_references(known: dict[str, Any], references: dict[str, Any]) -> None:
        known["references"] = references
        for name in ("ground_truth", "relevant_ids"):
            if name in references:
                known[name] = references[name]

    def user_id(self) -> str | None:
        """Who asked."""
        return self.root.user_id or self._first("user_id") or (self.above.user_id if self.above is not None else None)

    def framework(self) -> str | None:
        """Which instrumentation wrote the spans."""
        return self.root.framework or self._first("framework") or (self.root.record.scope or None)

    def _parent(self, step: Step) -> Step | None:
        parent = self.by_id.get(step.record.parent_id)
        return parent if parent is not step else None

    def ancestors(self, step: Step) -> Iterable[Step]:
        """The spans above one, from the closest on."""
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
        steps = self.of_role[LLM]
        twins = _twins(steps) if any(step.record.scope != steps[0].record.scope for step in steps) else {}
        for step in steps:
            same = (
                self._outer_llm(step)
                or (by_response.get(step.response_id) if step.response_id else None)
                or twins.get(step.record.span_id)
                or (self._sent_by_sibling(step, leaves) if step.apart else None)
            )
            if same is not None:
                _fill_call(same, step)
                continue
            leaves.append(step)
            if step.response_id:
                by_response[step.response_id] = step
        for step in leaves:
            if step.deferred and step.error is None and step.output_messages is None and step.output_tokens is None:
                reader = self._parent(step)  # the span had ended well before its stream failed under whoever read it
                step.error = reader.error if reader is not None and reader.role == INNER else None
        return leaves

    def _sent_by_sibling(self, step: Step, leaves: list[Step]) -> Step | None:
        """The call below the span that sent the request, when the SDK writes spans of its own."""
        record = step.record
        for leaf in reversed(leaves):
            sender = self._parent(leaf)
            if sender is not None and sender.record.scope == record.scope and sender.record.parent_id == record.parent_id:
                return leaf
        return None

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
        """One entry per request to a model."""
        calls = [
            LlmCall(
                f"{step.record.span_id:016x}", step.model, step.provider, step.input_tokens, step.output_tokens, step.cached_tokens,
                step.reasoning_tokens, step.cost_usd, step.finish_reason, step.response_id,
                step.record.duration_s if step.duration_s is None else step.duration_s,
                step.time_to_first_token_s, step.error,
            )
            for step in self.llm
        ]  # fmt: skip
        for index in range(len(calls) - 1, -1, -1):
            if self.llm[index].overwritten:
                calls[index:index] = self._overwritten_calls(self.llm[index])
        return calls

    def _overwritten_calls(self, step: Step) -> list[LlmCall]:
        """The calls before the last one of a run: each asked for tools, as the last one's prompt still holds."""
        earlier = []
        for message in reversed(self.inputs(step)):
            if message.role == "system" or (message.role == "user" and not message.tool_results):
                break
            if message.tool_calls:
                earlier.append(LlmCall(f"{step.record.span_id:016x}", step.model, step.provider))
        return earlier

    def usage(self) -> Usage | None:
        """Tokens of the model calls, added up."""
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
        if given is None and answered is None:  # some write only what a whole run used
            given, answered = self.root.input_tokens, self.root.output_tokens
            if given is None and answered is None:
                return None
        return Usage(given, answered, (given or 0) + (answered or 0), cached, reasoning)

    def cost_usd(self) -> float | None:
        """What the model calls cost, as far as spans say so."""
        costs = [step.cost_usd for step in self.llm if step.cost_usd is not None]
        return sum(costs) if costs else self.root.cost_usd

    # --- what was said

    def input(self) -> str | None:
        """What the user said."""
        root = self.root
        if root.role != LLM:
            for field in ("input_messages", "input_value"):
                if getattr(root, field) is not None:
                    found = self._decode(root, field, "user")
                    text = _last_user_text(found.messages)
                    if text is not None:
                        return self._among(found.messages) or text if field == "input_value" and len(found.messages) > 1 else text
        for step in self.llm:
            text = _last_user_text(self.inputs(step))
            if text is not None:
                return question_in(text)
        return None

    def _among(self, values: list[Message]) -> str | None:
        """The one of several values (a function's arguments) that the first model call got as the user's words."""
        asked = _last_user_text(self.inputs(self.llm[0])) if self.llm else None
        return asked if any(message.content == asked for message in values) else None

    def output(self) -> str | None:
        """What the user got; None when that is not known."""
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
        return self._answer_among(raw) or jsonio.text_of(raw)

    def _answer_among(self, raw: Any) -> str | None:
        """The answer in what a function gave back: JSON text, or an object that holds what the model said last (or only that)."""
        value = jsonio.loads_or_text(raw)[0] if isinstance(raw, str) else raw
        if isinstance(value, str):
            return value
        if not isinstance(value, dict):
            return None
        last = self._answering_call()
        said = self._answer_text(last) if last is not None else None
        if said and said in value.values():
            return said
        only = next(iter(value.items())) if len(value) == 1 else ("", None)
        return only[1] if only[0] in _ANSWER_KEYS and isinstance(only[1], str) else None

    def _answering_call(self) -> Step | None:
        """The model call that ended last: the one whose words went back to the user. One that failed only if all did."""
        found: Step | None = None
        for step in self.llm:
            if found is None or (found.error is not None, step.record.end_ns) > (step.error is not None, found.record.end_ns):
                found = step
        while found is not None and not found.overwritten:  # one that holds what its answer led to ended last, but answered first
            later = [step for step in self.llm if step.record.start_ns > found.record.start_ns and step.error is None]
            inner = [step for step in later if found in self.ancestors(step)]
            if not inner:
                break
            found = max(inner, key=_END)
        return found

    def _answer_text(self, step: Step) -> str | None:
        found = self._decode(step, "output_messages", "assistant")
        text = next((message.content for message in found.messages if message.content is not None), None)
        if text is not None:
            return text
        if found.hidden or step.output_messages is None or step.error is not None:
            return None
        asked = [call for message in found.messages for call in message.tool_calls]
        if asked:  # for a tool: whatever came back to the user was not this, unless that tool only gives the answer its form
            return self._given_form(asked[-1]) if asked[-1].name in _OUTPUT_TOOLS else None
        return ""

    def _given_form(self, request: ToolRequest) -> str | None:
        """The answer that a model gave as an output tool's arguments, as the framework wrote them if it ran that tool."""
        steps = self.of_role.get(TOOL, ())
        written = (step.tool_arguments for step in steps if step.tool_name == request.name and step.tool_arguments)
        given = next(written, request.arguments)
        return jsonio.text_of(given) if given is not None else None

    def system(self) -> str | None:
        """The instructions."""
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
        """The conversation before the answering call, and its answer."""
        step = self._answering_call()
        if step is None:
            return []
        return [message for message in self.inputs(step) if message.role != "system"] + self.outputs(step)[:1]

    def reasoning(self) -> str | None:
        """What models thought aloud."""
        texts = [message.reasoning for step in self.llm for message in self.outputs(step) if message.reasoning]
        return "\n".join(texts) if texts else None

    def attachments(self) -> list[dict[str, Any]]:
        """Media in the answering call's prompt."""
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
        """The tools that models were offered."""
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
                definitions = _definitions(raw.reader(raw.raw) if raw.__class__ is Later else raw)
            for name, definition in definitions:
                found.setdefault(name, definition)
        return list(found.values())

    def _requests(self) -> list[tuple[ToolRequest, Step]]:
        return [(call, step) for step in self.llm for message in self.outputs(step) for call in message.tool_calls]

    def _requests_read_back(self) -> list[tuple[ToolRequest, Step]]:
        """Requests that only a later prompt shows: some instrumentations lose them when the answer is streamed."""
        known = {call.call_id for call, _ in self._requests()}
        found = []
        for step in self.llm:
            for message in self.inputs(step):
                for call in message.tool_calls:
                    if call.call_id and call.call_id not in known:
                        known.add(call.call_id)
                        if step is not self.llm[0]:  # what the first prompt holds was asked for in earlier turns
                            found.append((call, step))
        return found

    def tool_calls(self) -> list[ToolCall]:
        """One entry per execution, by start time."""
        steps = self._tool_steps()
        calls = []
        requests: list[ToolRequest] | None = None
        inputs: dict[str, Any] | None = None
        results: dict[str, Any] | None = None
        for step in steps:
            arguments = arguments_of(step.tool_arguments)
            call_id = asked_as = step.tool_call_id
            if arguments is None or call_id is None:
                if requests is None:
                    requests = [request for request, _ in self._requests()]
                request = _request_of(step, arguments, requests)
                if request is not None:
                    asked_as = request.call_id or call_id
                    call_id = call_id or asked_as
                    arguments = arguments_of(request.arguments) if arguments is None else arguments
            if arguments is None and call_id is not None:
                inputs = self._inputs_apart() if inputs is None else inputs
                arguments = arguments_of(inputs.get(call_id))
            result, error = unwrap_result(step.tool_result), step.error
            if result in _REDACTED_RESULTS:
                result = None
            if result is None and error is None and call_id is not None:  # some write it for the model only
                results = self._results_in_messages() if results is None else results
                result = results.get(call_id, results.get(asked_as or ""))
            error = error or _error_in(result)
            calls.append(ToolCall(
                step.tool_name or "", arguments, result, error, step.record.duration_s,
                f"{step.record.span_id:016x}", call_id, step.permission_denied, step.agent or self._agent_of(step),
            ))  # fmt: skip
        if not steps:
            calls.extend(self._calls_in_messages())
        return calls

    def _inputs_apart(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for step in self.steps:
            if step.tool_inputs is not None:
                found = {**step.tool_inputs, **found}
        return found

    def _tool_steps(self) -> list[Step]:
        out: list[Step] = []
        merged: dict[int, Step] = {}
        for step in self.of_role.get(TOOL, ()):
            if step is self.root or _is_handoff(step.tool_name) or step.tool_name in _OUTPUT_TOOLS:
                continue  # a function at the root was called by the application, not by an agent
            outer = self._nearest(step, _TOOL_OR_CALLER)
            if (
                outer is not None
                and outer.role == TOOL
                and (_same_tool(outer, step) or (step.tool_call_id and outer.tool_call_id == step.tool_call_id))
            ):
                outer = merged[step.record.span_id] = merged.get(outer.record.span_id, outer)
                _fill(outer, step, _TOOL_MERGED)
                outer.error = outer.error or step.error
                outer.permission_denied |= step.permission_denied
                continue
            if step.tool_name:
                out.append(step)
        return out

    def _agent_of(self, step: Step) -> str | None:
        found = self._nearest(step, _AGENTS)
        while found is not None and not found.agent:
            found = self._nearest(found, _AGENTS)
        return found.agent if found is not None else None

    def _results_in_messages(self) -> dict[str, Any]:
        """What tools returned, by call id, as later prompts hold it."""
        results: dict[str, Any] = {}
        for step in self.llm:
            asked: list[str] = []
            answered = False
            for message in self.inputs(step):
                if message.tool_calls:
                    asked = [*([] if answered else asked), *(call.call_id for call in message.tool_calls if call.call_id)]
                    answered = False
                for response in message.tool_results:
                    answered = True
                    if response.call_id:
                        results[response.call_id] = response.result
                    if response.call_id in asked:
                        asked.remove(response.call_id)
                    elif asked:  # two ids for one call (an item's and the call's): answers come in the order of the requests
                        results.setdefault(asked.pop(0), response.result)
        for step in self.steps:  # a run that stopped at its limit sent the last results to no model
            if step.output_messages is not None and step.role in ROOT_ROLES:
                for message in self._decode(step, "output_messages", "assistant").messages:
                    for response in message.tool_results:
                        if response.call_id:
                            results.setdefault(response.call_id, response.result)
        return results

    def _calls_in_messages(self) -> list[ToolCall]:
        """Calls of a hand-written loop: requested in one answer, answered in a later prompt."""
        results = self._results_in_messages()
        calls = []
        last = self.llm[-1] if self.llm else None
        for request, step in self._requests() + self._requests_read_back():
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
        steps = self.of_role.get(RETRIEVAL) or self.of_role.get(RERANK) or []
        outermost = [step for step in steps if self._nearest(step, (step.role,)) is None]
        return outermost or steps  # a retriever that asks others gives back what it chose of theirs

    def retrievals(self) -> list[Retrieval]:
        """Queries and what they found."""
        found = []
        for step in self._retrieval_steps():
            query = jsonio.text_of(step.query) if step.query is not None and step.query not in REDACTED else None
            found.append(Retrieval(query, step.documents or []))
        return found

    def _documents(self) -> list[Document]:
        return [document for step in self._retrieval_steps() for document in step.documents or ()]

    def context(self) -> list[str]:
        """Texts of the documents that were found."""
        return [document.content for document in self._documents() if document.content]

    def retrieved_ids(self) -> list[str] | None:
        """Ids of the documents that were found; None when nothing was looked up, or no document says its id."""
        found = self._documents()
        ids = [document.id for document in found if document.id]
        if found:
            return ids or None
        return ids if any(step.documents is not None for step in self._retrieval_steps()) else None

    # --- agents

    def agent_runs(self) -> list[AgentRun]:
        """One entry per agent that ran."""
        runs = []
        at_work: dict[int, str] = {}
        for step in self.steps:
            if step.role != AGENT and (step.role != INNER or not step.agent):
                continue
            if step.role == INNER and step.agent:  # a step of an agent's loop, where the agent has no span of its own
                if at_work.get(step.record.parent_id) == step.agent:
                    continue
                at_work[step.record.parent_id] = step.agent
            parent = next((a for a in self.ancestors(step) if a.role == AGENT), None)
            if parent is not None and (parent.agent == step.agent if step.agent else self._parent(step) is parent):
                continue  # the same run, seen by two layers
            caller = None if step.agent else self._nearest(step, _TOOL_OR_CALLER)
            runs.append(
                AgentRun(
                    step.agent or (caller.tool_name if caller is not None and caller.role == TOOL else None),
                    f"{step.record.span_id:016x}",
                    self._agent_of(step) if parent else None,
                    step.record.duration_s,
                    step.error,
                )
            )
        return runs

    def handoffs(self) -> list[Handoff]:
        """Where one agent left the turn to another."""
        spans = [step for step in self.of_role.get(HANDOFF, ()) if self._nearest(step, (HANDOFF,)) is None]
        if spans:
            return [self._handoff_of(step) for step in spans]
        return [
            Handoff(step.agent or self._agent_of(step), _target_in(request.arguments) or _without_prefix(request.name), None)
            for request, step in self._requests()
            if request.name is not None and _is_handoff(request.name)
        ]

    def _handoff_of(self, step: Step) -> Handoff:
        """Most spans only have a name: ``X → Y.handoff`` or ``handoff to Y``."""
        if step.handoff_to is not None:
            return Handoff(step.agent or self._agent_of(step), step.handoff_to, step.error is None, step.record.duration_s)
        source, arrow, target = step.record.name.removesuffix(".handoff").partition("→")
        if not arrow:
            source, target = "", _target_in(step.tool_arguments) or source.removeprefix("handoff to ")
        return Handoff(source.strip() or self._agent_of(step), target.strip() or None, step.error is None, step.record.duration_s)

    # --- how it went

    def error(self) -> ErrorInfo | None:
        """Why the turn failed; None when it did not."""
        root = self.root
        if root.error is not None and root.role != LLM:
            return root.error
        if root.output_messages is not None or root.final_result is not None:
            return None if root.role != LLM else self._last_call_error()
        beside = self._beside_root()
        if beside and root.role != INNER:  # the span around them was never seen: how the last of them ended
            return max(beside, key=_END).error
        # Some roots stay unset when the run below them failed: then the last agent says so, or its last model call alone.
        inner = [step for step in self.steps if step.role == AGENT and step is not root and not self.is_nested(step)]
        if inner:
            last = max(inner, key=_END)
            if last.error is not None or last.output_messages is not None or last.output_value is not None:
                return last.error
        return None if root.output_value is not None and root.role != INNER else self._last_call_error()

    def _beside_root(self) -> list[Step]:
        around = self.root.record.parent_id
        if not around or around in self.by_id or self.root.role == LLM:
            return []
        beside = [step for step in self.steps if step.record.parent_id == around]
        return beside if len(beside) > 1 else []

    def _last_call_error(self) -> ErrorInfo | None:
        return max(self.llm, key=_END).error if self.llm else self.root.error

    def is_nested(self, step: Step) -> bool:
        """Whether a tool call is what this span served."""
        return any(ancestor.role == TOOL for ancestor in self.ancestors(step))

    def start(self) -> datetime.datetime | None:
        """When the root began, UTC."""
        start = self.root.record.start_ns
        return _EPOCH + datetime.timedelta(microseconds=start // 1000) if 0 < start < 253402300799 * 10**9 else None

    def truncated(self) -> bool:
        """Whether content was cut before it reached us."""
        for step in self.llm:  # whether content was cut shows only when it is read
            self.inputs(step)
            self.outputs(step)
        return self._cut

    def spans(self) -> list[SpanInfo]:
        """The spans themselves."""
        return [
            SpanInfo(
                f"{step.record.span_id:016x}", f"{step.record.parent_id:016x}" if step.record.parent_id else None, step.record.name,
                step.record.duration_s, _with_lists(step.record.attributes),
            )
            for step in self.steps
        ]  # fmt: skip


_REDACTED_RESULTS = REDACTED


def _with_lists(attributes: dict[str, Any]) -> dict[str, Any]:
    """As they come over OTLP: the SDK keeps sequences as tuples."""
    return {key: list(value) if value.__class__ is tuple else value for key, value in attributes.items()}


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
    if isinstance(raw, dict):  # a request that holds them
        config = raw.get("config")
        raw = raw.get("tools") or raw.get("function_tools") or (config.get("tools") if isinstance(config, dict) else None)
    for item in raw if isinstance(raw, (list, tuple)) else ():
        tool = jsonio.loads_or_text(item)[0] if isinstance(item, str) else item
        if isinstance(tool, dict) and "role" in tool:  # messages, with the definitions among them
            tool = tool.get("content") if tool["role"] == "tool" and not tool.get("tool_call_id") else None
        if isinstance(tool, dict) and isinstance(tool.get("function_declarations"), list):
            found.extend(_definitions(tool["function_declarations"]))
        elif isinstance(tool, dict):
            flat = {**tool, **tool["function"]} if isinstance(tool.get("function"), dict) else tool
            if "name" not in flat and isinstance(flat.get("data"), dict):  # a serialised object: its type, and its data
                flat = flat["data"]
            name = flat.get("name")
            if "parameters_json_schema" in flat:
                flat = {**flat, "parameters": flat["parameters_json_schema"]}
            if isinstance(name, str):
                found.append((name, {key: value for key, value in flat.items() if key != "function"}))
    return found


def _fill(target: Step, source: Step, names: Iterable[str]) -> None:
    for name in names:
        if getattr(target, name) is None:
            value = getattr(source, name)
            if value is not None:
                setattr(target, name, value)


def _fill_call(target: Step, source: Step) -> None:
    """The same model call seen twice: what the first does not say, and the provider's own count where its SDK wrote one."""
    _fill(target, source, _MERGED)
    if target.record.name == "call_llm" and target.duration_s is None:  # ADK's, which goes on while the tools run
        target.duration_s = source.record.duration_s
    if source.record.scope.startswith(_SDK_SCOPES) and source.input_tokens is not None and source.output_tokens is not None:
        target.input_tokens, target.output_tokens = source.input_tokens, source.output_tokens
        if source.cached_tokens is not None:
            target.cached_tokens = source.cached_tokens


def _same_tool(outer: Step, inner: Step) -> bool:
    """Two layers of one call: the same name, a nameless phase, or a server's name for what its client knows by a longer one."""
    known, name = outer.tool_name, inner.tool_name
    if known == name or not name:
        return True
    return known is not None and "mcp.method.name" in inner.record.attributes and known.endswith((f"_{name}", f".{name}", f"/{name}"))


def _twins(steps: list[Step]) -> dict[int, Step]:
    """Model spans that lie beside, not under, another layer's span of the same call, which made none current while it ran.

    Both have the same parent, one runs within the time of the other, and nothing that both say about the call differs.
    """
    found: dict[int, Step] = {}
    taken: set[tuple[int, str]] = set()
    running: dict[int, list[Step]] = {}
    for step in steps:
        record = step.record
        beside = [o for o in running.get(record.parent_id, ()) if o.deferred or o.record.end_ns >= record.start_ns]
        for outer in reversed(beside):
            pair = (outer.record.span_id, record.scope)
            if (
                outer.record.scope != record.scope
                and (outer.deferred or outer.record.end_ns >= record.end_ns)
                and pair not in taken
                and _same_call(outer, step)
            ):
                found[record.span_id] = outer
                taken.add(pair)
                break
        else:
            beside.append(step)
        running[record.parent_id] = beside
    return found


def _same_call(one: Step, other: Step) -> bool:
    if one.response_id and other.response_id:
        return one.response_id == other.response_id
    if one.output_tokens is not None and other.output_tokens is not None and one.output_tokens != other.output_tokens:
        return False
    first, second = one.model or "", other.model or ""  # what was asked for is often the head of what answered
    return bool(first and second) and (first.startswith(second) or second.startswith(first))


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
    return name is not None and (name == "handoff" or name.removeprefix(_PLUGIN).startswith(_HANDOFF_PREFIXES))


def _without_prefix(name: str) -> str:
    name = name.removeprefix(_PLUGIN)
    return next((name.removeprefix(prefix) for prefix in _HANDOFF_PREFIXES if name.startswith(prefix)), name)


def _target_in(arguments: Any) -> str | None:
    """The agent that a hand-off's arguments name."""
    given = (arguments_of(arguments) or {}) if arguments is not None else {}
    return as_text(given.get("to_agent")) or as_text(given.get("agent_name"))


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
                and (bare is None or bare == [*wanted.values()] or any(jsonio.text_of(v) == jsonio.text_of(bare) for v in wanted.values()))
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
        said = result.get("error") or result.get("error_message") or result.get("error_details")
        if said or result.get("is_error") is True or result.get("status") == "error":
            return ErrorInfo("tool_error", jsonio.text_of(said)[:200] if said else None)
    return None
