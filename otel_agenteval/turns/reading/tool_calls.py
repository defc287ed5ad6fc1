"""Read the tool calls of a turn.

A call has a span, or appears only in messages: a model requests it, and a later prompt contains its result, or the run
ends with it. Hand-offs (``transfer_to_x``) and a framework's output tools aren't calls. An empty list means that no tool was called. It is returned only if a call would have been visible.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from typing import Any

from ...core import jsonio
from ...core.turn import ErrorInfo, Handoff, Message, ToolCall, ToolRequest, ToolState
from ...core.wellformed import Later
from ...dialects.attributes import as_text
from ...dialects.content import REDACTED
from ...dialects.generic.words import words_of
from ...dialects.payloads import arguments_of, says_failed, unquoted, unwrap_result
from ...dialects.react import INTERPRETER, calls_in_code, printed
from ...dialects.step import AGENT, CHAIN, HANDOFF, INNER, LLM, ROOT_ROLES, TOOL, Step
from ...spans.record import ERROR, SpanRecord
from . import app_events
from .finish_reasons import asks_for_tools, rules_out_tools
from .llm_calls import CallReader, fill
from .results import OrderedResults, TakenOnce, add_results_by_id, answered, since_user
from .runs import NamedRuns, word
from .steps import LONGEST_CONSTANT, START

_TOOL_MERGED = ("tool_call_id", "tool_arguments", "tool_result")
TOOL_OR_CALLER = (TOOL, AGENT, LLM)
_AGENTS = (AGENT,)
_HANDOFF_TOOL = re.compile(
    r"(?:[Tt]ransfer|[Hh]and[_-]?[Oo]ff)(?:[_-]?[Bb]ack)?(?:[_-]to(?:[_-]|$)|To(?=[A-Z]|$))|[Hh]and[_-]?[Oo]ff$"
)
_NOWHERE = frozenset(("unknown", "handoff"))
_PLUGIN = "Handoff-"
OUTPUT_TOOLS = frozenset(("final_result", "final_answer", "set_model_response", "Handoff-complete_task"))
_RAISED = re.compile(r"(?:[a-z_]\w*\.)*([A-Z]\w*(?:Error|Exception|Timeout)): ?")
_CODE = ("<code>", "<end_code>")
"""Delimiters of code that an agent runs, which may call tools. Such code isn't a tool request of the model."""
_FORM_GIVEN = re.compile(r"Successfully validated \w+ structured output$|Returning structured response: ")
_OTHER_FAILURE = re.compile(
    r"max(?:imum)?[ _]?(?:number of )?(?:steps|turns|iterations|rounds|tokens)|(?:recursion|usage|request|token)s?[ _]?limit|rate[ _]?limit|"
    r"(?:error|status|code|http)\W{0,3}[45]\d\d\b|\b[45]\d\d\b \w{0,12} ?(?:request|server|error|gateway|unavailable)|statuserror|api\w{0,20}error|"
    r"server ?(?:had an ?)?error|unavailable|overloaded|too ?many ?requests|cancelled",
    re.IGNORECASE,
)
"""Errors that come from a loop's limits or a model, not from a tool."""
_FAILED_TEXT = ("error:", "error executing", "traceback (most recent call last)", "exception:", "tool error:")


class ToolReader(CallReader):
    _by_order: dict[int, OrderedResults] | None = None
    """Remaining results that are matched by order, by the agent's run. Each result is taken once."""

    def _take(self, root: SpanRecord, steps: list[Step]) -> None:
        super()._take(root, steps)
        self._requests_of_call: dict[int, list[ToolRequest]] = {}

    def tool_definitions(self) -> list[dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        seen: set[str] = set()
        for step in (self.root, *self.of_role.get(AGENT, ()), *self.llm):  # agent spans often have tools that model spans lack
            raw = step.tool_definitions
            if raw is None:
                continue
            if raw.__class__ is str:
                if raw in seen:
                    continue
                seen.add(raw)
                definitions, cut = _definitions_in_text(raw) if len(raw) < LONGEST_CONSTANT else _read_definitions(raw)
                self._cut |= cut
            else:
                definitions = _definitions(raw.reader(raw.raw) if raw.__class__ is Later else raw)
            for name, definition in definitions:
                if not gives_form(name):
                    found.setdefault(name, definition)
        return list(found.values())

    def _requests(self) -> list[tuple[ToolRequest, Step]]:
        """Return the tool requests of model calls or, without model calls, of runs."""
        runs = (
            ()
            if self.llm
            else [step for role in ROOT_ROLES for step in self.of_role.get(role, ()) if step.output_messages is not None]
        )
        return [(call, step) for step in (*self.llm, *runs) for call in self.requests_of(step)]

    def _requests_read_back(self) -> list[tuple[ToolRequest, Step]]:
        """Return the requests that only a later prompt contains, because an instrumentation lost streamed ones."""
        requested = self._requests()
        known = {_own_id(call.name, call.call_id) for call, _ in requested}
        alike: Counter[_CallKey] | None = None
        found = []
        for step in self.llm:
            found += [(call, step) for call in self._with_new_ids(step, known)]
            messages = self.inputs(step)
            if step is not self.llm[0] and any(call.call_id is None for message in messages for call in message.tool_calls):
                alike = Counter(_call_key(call) for call, _ in requested) if alike is None else alike
                found += [(call, step) for call in _more_than(alike, since_user(messages))]
        return found

    def _with_new_ids(self, step: Step, known: set[str]) -> Iterator[ToolRequest]:
        """Yield this turn's requests in a prompt whose ids aren't in ``known``, and add all ids to it."""
        messages = self.inputs(step)
        # Requests in the first prompt belong to earlier turns, unless one span describes many calls.
        first = len(messages) if step is self.llm[0] else 0
        if first and step.overwritten:
            first = max(
                (i for i, message in enumerate(messages) if message.role == "user" and not message.tool_results), default=0
            )
        for place, message in enumerate(messages):
            for call in message.tool_calls:
                if call.call_id and (own_id := _own_id(call.name, call.call_id)) not in known:
                    known.add(own_id)
                    if place >= first:
                        yield call

    def tool_calls(self) -> list[ToolCall] | None:
        """Return one entry per execution, by start time. Returns None if a call could have been made unseen."""
        self._by_order = None
        calls = self._with_lost_spans(self._calls_with_spans()) if self._tool_steps else self._calls_in_messages()
        if not calls and not self._none_was_called():
            calls = self._calls_of_runs()
            return calls or None
        if not self._tool_steps and self._stopped_for_tools():
            return max(self._calls_of_runs(), calls, key=len)
        return calls

    def _stopped_for_tools(self) -> bool:
        """Return True if the last recorded model call requested tools, although the run has an answer."""
        last = self._answering_call()
        answered = self.root.output_messages is not None or self.root.output_value is not None
        return answered and last is not None and last.role == LLM and last is not self.root and bool(self.requests_of(last))

    def _calls_of_runs(self) -> list[ToolCall]:
        """Return the answered calls in the conversations that runs recorded. Calls without ids count only in the first."""
        found: dict[str | int, ToolCall] = {}
        for step in (self.root, *(step for role in ROOT_ROLES for step in self.of_role.get(role, ()))):
            for field in ("output_messages", "output_value"):
                if getattr(step, field) is None:
                    continue
                first = not found
                for request, response in answered(since_user(self._decode(step, field, "assistant").messages)):
                    if request.name and not self._is_no_tool(request.name) and (first or request.call_id):
                        call = ToolCall(
                            request.name, arguments_of(request.arguments), response.result, _error_in(response.result),
                            call_id=request.call_id, agent=self._agent_at(step),
                        )  # fmt: skip
                        found.setdefault(request.call_id or len(found), call)
        return [*found.values()]

    def _calls_with_spans(self) -> list[ToolCall]:
        calls = []
        requests: _Requests | None = None
        for step in self._tool_steps:
            arguments = arguments_of(step.tool_arguments)
            request = None
            if arguments is None or step.tool_call_id is None or step.tool_unnamed:
                requests = requests or _Requests(request for request, _ in self._requests())
                request = requests.behind(step, arguments)
                if request is not None and step.tool_unnamed:
                    step.tool_name = request.name
                    if self._is_no_tool(request.name):
                        continue
            call = self._call_of(step, request, arguments)
            if call is not None:
                calls.append(call)
        return calls

    def _with_lost_spans(self, calls: list[ToolCall]) -> list[ToolCall]:
        """Return the calls with spans, and answered calls that only messages show, at their place among the requests."""
        requested = {call.call_id: place for place, (call, _) in enumerate(self._requests()) if call.call_id}
        if len(requested) <= len(calls):
            return calls
        answered = [call for call in self._calls_in_messages() if call.call_id in self._results and call.call_id in requested]
        known = {call.call_id for call in calls}
        agents = {word(run.agent) for run in self.of_role.get(AGENT, ()) if run.agent}
        lost = [call for call in answered if call.call_id not in known and word(call.name) not in agents]
        for call in lost[: max(0, len(answered) - len(calls))]:
            later = (
                place for place, one in enumerate(calls) if requested.get(one.call_id or "", -1) > requested[call.call_id or ""]
            )
            calls.insert(next(later, len(calls)), call)
        return calls

    def _call_of(self, step: Step, request: ToolRequest | None, arguments: dict[str, Any] | None) -> ToolCall | None:
        """Return the call of a tool span, or None if the tool is an output tool."""
        call_id = requested_id = step.tool_call_id
        if request is not None:
            requested_id = request.call_id or call_id
            call_id = call_id or requested_id
            arguments = arguments_of(request.arguments) if arguments is None else arguments
        if arguments is None and call_id is not None:
            arguments = arguments_of(self._separate_inputs.get(call_id))
        result, error = unwrap_result(step.tool_result), step.error
        if result in REDACTED:
            result = None
        if result is None and error is None and call_id is not None:  # only the next prompt may have the result
            result = self._results.get(call_id, self._results.get(requested_id or ""))
        if result is None:  # take a failed call's result too, so that no other call gets it
            answer = self._result_by_order(step, step.tool_name, arguments)
            result = answer if error is None else None
        if _gave_form(result):
            return None
        error = error or _error_in(result) or _flagged(step.tool_result)
        interrupted = result is None and error is None and step.record.status == ERROR
        state: ToolState = "requested" if interrupted else _state_in(error, result)
        return ToolCall(
            step.tool_name or "", arguments, result, None if state == "requested" else error,
            step.record.duration_s if step.duration_s is None else step.duration_s, f"{step.record.shown_id:016x}", call_id, step.permission_denied, self._agent_at(step),
            malformed=arguments is None and any(map(_is_cut, (step.tool_arguments, request and request.arguments))), state=state,
        )  # fmt: skip

    def _none_was_called(self) -> bool:
        """Return True if a call would have been visible: only hand-offs and output tools ran, or no model requested any."""
        others = [step for step in self.of_role.get(TOOL, ()) if step is not self.root]
        if others or HANDOFF in self.of_role:
            return all(self._is_no_tool(step.tool_name) for step in others)
        last = self._answering_call()
        return last is not None and all(self._requested_none(step, step is last) for step in self.llm)

    def _requested_none(self, step: Step, is_last: bool) -> bool:
        """Return True if a model's answer contains no tool request, by its content or finish reason."""
        if (step.overwritten or step.role != LLM) and (not self.inputs(step) or self._overwritten_calls(step)):
            return False  # the only span of a run, which describes its last call
        if step.error is not None:
            return True
        found = self._decode(step, "output_messages", "assistant")
        requested = self.requests_of(step)
        if requested:
            return all(self._is_no_tool(call.name) for call in requested)
        if asks_for_tools(step.finish_reason):
            return False
        if step.output_tokens == 0:
            return True
        texts = [message.content for message in found.messages if message.content]
        if not is_last and any(mark in text for text in texts for mark in _CODE):
            return False
        whole = not (found.hidden or found.truncated)
        if whole and (texts or any(message.reasoning or message.attachments for message in found.messages)):
            return True
        return rules_out_tools(step, is_last)

    def _is_no_tool(self, name: str | None) -> bool:
        return _is_no_tool(name) or name in self._form_tools

    @cached_property
    def _form_tools(self) -> set[str | None]:
        """A framework's output tools that are named after an answer's type. Their spans or results identify them."""
        return {
            tool.tool_name
            for tool in self.of_role.get(TOOL, ())
            if tool.gives_form or _gave_form(unwrap_result(tool.tool_result))
        } | {call.name for call, _ in self._requests() if _gave_form(self._results.get(call.call_id or ""))}

    def requests_of(self, step: Step) -> list[ToolRequest]:
        found = self._requests_of_call.get(step.record.span_id)
        if found is None:
            found = self._requests_of_call[step.record.span_id] = [
                call for message in self.outputs(step) for call in message.tool_calls
            ]
        return found

    @cached_property
    def _separate_inputs(self) -> dict[str, Any]:
        """Tool arguments that other spans than the tool's have, by call id."""
        found: dict[str, Any] = {}
        for step in self.steps:
            for call_id, given in (step.tool_inputs or {}).items():
                found.setdefault(call_id, given)
        return found

    def _functions(self) -> list[Step]:
        """Return function spans with the name of a tool that models received or requested."""
        found = [step for step in self.of_role.get(CHAIN, ()) if step.function and step is not self.root]
        if not found:
            return found
        names = {definition.get("name") for definition in self.tool_definitions()}
        requested = {request.name for request, _ in self._requests()}
        names |= requested
        names.difference_update(step.tool_name for step in self.of_role.get(TOOL, ()))
        shown = {request.name for request, _ in self._requests_read_back()} - requested
        found = [
            step for step in found
            if step.record.name in names
            and (step.record.name not in shown or step.input_messages is not None or step.input_value is not None)
        ]  # fmt: skip
        for step in found:
            step.tool_name = step.record.name
            step.tool_arguments = step.input_value if step.input_messages is None else step.input_messages
            if step.tool_arguments.__class__ is Later:
                step.tool_arguments = step.tool_arguments.reader(step.tool_arguments.raw)
            step.tool_result = step.output_value if step.output_messages is None else step.output_messages
            if step.tool_result.__class__ is Later:
                step.tool_result = step.tool_result.reader(step.tool_result.raw)
        return found

    @cached_property
    def _tool_steps(self) -> list[Step]:
        out: list[Step] = []
        merged: dict[int, Step] = {}
        by_id: dict[str | None, Step] = {}
        steps: Iterable[Step] = self.of_role.get(TOOL, ())
        layers: list[tuple[Step, Step]] = []
        functions = self._functions()
        for step in sorted([*steps, *functions], key=START) if functions else steps:
            if step is self.root or step.gives_form or _is_no_tool(step.tool_name):
                continue  # the application called the function at the root, not an agent
            outer = self._layer_around(step)
            if outer is not None:
                outer = merged[step.record.span_id] = merged.get(outer.record.span_id, outer)
            elif step.tool_call_id:
                outer = by_id.get(own_id := _own_id(step.tool_name, step.tool_call_id))
                if outer is None or not _are_one_call(outer, step):
                    outer = None
                    if step.tool_name:
                        by_id[own_id] = step
            if outer is not None:
                layers.append((outer, step))
                fill(outer, step, _TOOL_MERGED)
                outer.error = outer.error or step.error
                outer.permission_denied |= step.permission_denied
            elif step.tool_name:
                out.append(step)
        if not any(map(_has_only_name, out)):
            return out
        _rename_as_bare(out, layers)
        return _without_bare(out)

    def _layer_around(self, step: Step) -> Step | None:
        """Return the tool span around a tool span if both are layers of one call."""
        outer = self._nearest(step, TOOL_OR_CALLER)
        if outer is None or outer.role != TOOL:
            return None
        return outer if _same_tool(outer, step) or (step.tool_call_id and outer.tool_call_id == step.tool_call_id) else None

    @cached_property
    def _results(self) -> dict[str, Any]:
        results: dict[str, Any] = {}
        before: Step | None = None
        for step in self.llm:
            # If the server keeps the history, a prompt has results without their requests.
            requested = [] if before is None else [call.call_id for call in self.requests_of(before) if call.call_id]
            add_results_by_id(self.inputs(step), requested, results)
            before = step
        for step in self.steps:
            if step.role not in ROOT_ROLES:
                continue
            if step.output_messages is not None:  # no prompt has the last results of a run that stopped at its limit
                _add_results(self._decode(step, "output_messages", "assistant").messages, results)
            if step is self.root and step.input_messages is not None:  # only the run has the prompt of some failed calls
                _add_results(self._decode(step, "input_messages", "user").messages, results)
        return results

    def _result_by_order(self, step: Step, name: str | None, arguments: dict[str, Any] | None) -> Any:
        """Return a tool's result that only the order of calls and results identifies."""
        if self._by_order is None:
            known = {call.call_id for call, _ in self._requests()} | {tool.tool_call_id for tool in self.of_role.get(TOOL, ())}
            prompts: dict[int, list[list[Message]]] = {}
            for requested in self.llm:
                prompts.setdefault(self._loop_of(requested), []).append(self.inputs(requested))
            ids = {call_id for call_id in known if call_id}
            self._by_order = {loop: OrderedResults(of_loop, ids) for loop, of_loop in prompts.items()}
        found = self._by_order.get(self._loop_of(step))
        return found.take(name, arguments) if found is not None else None

    def _loop_of(self, step: Step) -> int:
        """Return the span id of the agent run that contains a span, or 0 for the whole turn."""
        agent = self._nearest(step, _AGENTS)
        return agent.record.span_id if agent is not None else 0

    def _calls_in_messages(self) -> list[ToolCall]:
        """Return the calls of a hand-written loop: an answer requests each, and a later prompt contains its result."""
        requested = self._requests()
        read_back = self._requests_read_back()
        if read_back:
            requested = _without_copies(requested, [request for request, _ in read_back if request.call_id], self._results)
        calls: list[ToolCall] = []
        repeated = self._results_of_repeated_ids(request.call_id for request, _ in requested)
        for request, step in requested + read_back:
            if not request.name or self._is_no_tool(request.name):
                continue
            result = next(repeated.get(request.call_id, iter(())), self._results.get(request.call_id or ""))
            if result is None:
                result = self._result_by_order(step, request.name, arguments_of(request.arguments))
            if request.name == INTERPRETER:
                calls += self._calls_in_code(request, printed(result), step)
            elif not _gave_form(result):
                calls += self._call_requested(request, request.name, step, result)
        return calls

    def _results_of_repeated_ids(self, ids: Iterable[str | None]) -> dict[str | None, Iterator[Any]]:
        """Return the results, in order, of each id that several requests have. Some programs use a tool's name as the id."""
        found = {one: list[Any]() for one, count in Counter(ids).items() if one and count > 1}
        for step in self.llm if found else ():
            results = [result for message in since_user(self.inputs(step)) for result in message.tool_results]
            for call_id, before in found.items():
                before.extend([result.result for result in results if result.call_id == call_id][len(before) :])
        return {call_id: iter(results) for call_id, results in found.items()}

    def _call_requested(self, request: ToolRequest, name: str, step: Step, result: Any) -> Iterator[ToolCall]:
        error, root = _error_in(result), self.root
        state = _state_in(error, result)
        if result is None and request.call_id not in self._results and step in self.llm[-1:]:
            if root.role == LLM:
                return  # a model call alone: the request is executed outside this turn
            error = _from_tool(root.error)  # the turn ended while this tool ran
            if error is None and root.output_messages is None and root.output_value is None and root.final_result is None:
                state = "requested"
        arguments = arguments_of(request.arguments)
        if not arguments and request.call_id:  # a streamed request may lack them
            arguments = arguments_of(self._repeated_arguments.get(request.call_id, request.arguments))
        malformed = arguments is None and _is_cut(request.arguments)
        yield ToolCall(
            name, arguments, result, error, call_id=request.call_id, agent=step.agent, malformed=malformed, state=state
        )

    @cached_property
    def _repeated_arguments(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for step in self.llm[1:]:
            for message in self.inputs(step):
                for call in message.tool_calls:
                    if call.call_id and call.arguments:
                        found.setdefault(call.call_id, call.arguments)
        return found

    def _calls_in_code(self, request: ToolRequest, result: Any, step: Step) -> list[ToolCall]:
        """Return the tools that an agent's code called. The output is a tool's result only if there is one call."""
        parameters = {tool["name"]: _parameters_of(tool) for tool in self.tool_definitions() if tool["name"] not in OUTPUT_TOOLS}
        found = calls_in_code(request.arguments, parameters)
        if len(found) != 1:
            result = None
        return [ToolCall(call.name or "", call.arguments, result, _error_in(result), agent=step.agent) for call in found]

    def handoffs(self) -> list[Handoff]:
        reported = app_events.handoffs(self.steps)
        if reported:
            return reported
        spans = [step for step in self.of_role.get(HANDOFF, ()) if self._nearest(step, (HANDOFF,)) is None]
        tools = [step for step in self.of_role.get(TOOL, ()) if _is_handoff(step.tool_name)]
        failed = {step.tool_call_id or step.tool_name for step in tools if step.error is not None}
        found = [(self._handoff_of(step), step) for step in spans] or [
            (
                Handoff(
                    self._agent_at(step),
                    _target_in(request.arguments) or _without_prefix(request.name),
                    None if failed.isdisjoint((request.call_id, request.name)) else False,
                ),
                step,
            )
            for request, step in self._requests()
            if request.name is not None and _is_handoff(request.name)
        ]
        if not found:  # without content, only the tool's span shows the hand-off
            found = [
                (
                    Handoff(
                        self._agent_at(step),
                        _target_in(step.tool_arguments) or _without_prefix(step.tool_name or ""),
                        None if step.error is None else False,
                    ),
                    step,
                )
                for step in tools
            ]
        if not found:
            return []
        runs = NamedRuns(self.of_role.get(AGENT, ()), self.of_role.get(INNER, ()))
        return [self._followed(handoff, step, runs) for handoff, step in found]

    def _agent_at(self, step: Step) -> str | None:
        return step.agent or self._agent_of(step)

    @staticmethod
    def _followed(handoff: Handoff, step: Step, runs: NamedRuns) -> Handoff:
        """Complete a hand-off from the agent runs around it: its source, its target, and whether the target started."""
        at, source = step.record.start_ns, handoff.from_
        if handoff.to is None or handoff.to in _NOWHERE:
            handoff = dataclasses.replace(handoff, to=runs.first_after(at, source))
        if source is None:
            handoff = dataclasses.replace(handoff, from_=runs.last_before(at))
        if handoff.success is None and handoff.to is not None and runs.started(handoff.to, at, source):
            handoff = dataclasses.replace(handoff, success=True)
        return handoff

    def _handoff_of(self, step: Step) -> Handoff:
        """Return the hand-off of a span. Most spans have only a name: ``X → Y.handoff`` or ``handoff to Y``."""
        if step.handoff_to is not None:
            return Handoff(self._agent_at(step), step.handoff_to, step.error is None, step.record.duration_s)
        source, arrow, target = step.record.name.removesuffix(".handoff").partition("→")
        if not arrow:
            source, target = "", _target_in(step.tool_arguments) or source.removeprefix("handoff to ")
        return Handoff(source.strip() or self._agent_at(step), target.strip() or None, step.error is None, step.record.duration_s)


def _add_results(messages: Iterable[Message], results: dict[str, Any]) -> None:
    for message in messages:
        for response in message.tool_results:
            if response.call_id:
                results.setdefault(response.call_id, response.result)


def _read_definitions(raw: str) -> tuple[list[tuple[str, dict[str, Any]]], bool]:
    """Return the tools by name in a JSON text, and True if the text was cut."""
    value, cut = jsonio.loads_or_text(raw)
    return _definitions(value), cut


_definitions_in_text = lru_cache(maxsize=32)(_read_definitions)


def _definitions(raw: Any) -> list[tuple[str, dict[str, Any]]]:
    found = []
    if isinstance(raw, dict):  # a request that contains the definitions
        config = raw.get("config")
        raw = raw.get("tools") or raw.get("function_tools") or (config.get("tools") if isinstance(config, dict) else None)
    for item in raw if isinstance(raw, (list, tuple)) else ():
        tool = jsonio.loads_or_text(item)[0] if isinstance(item, str) else item
        if isinstance(tool, dict) and "role" in tool:  # messages, with the definitions among them
            tool = tool.get("content") if tool["role"] == "tool" and not tool.get("tool_call_id") else None
        if not isinstance(tool, dict):
            continue
        declared = tool.get("function_declarations")
        if isinstance(declared, list):
            found += _definitions(declared)
            continue
        definition = _flattened(tool)
        name = definition.get("name")
        if isinstance(name, str):
            found.append((name, definition))
    return found


def _flattened(tool: dict[str, Any]) -> dict[str, Any]:
    """Return a copy of a tool's definition without the object around its name and parameters."""
    flat = {**tool, **tool["function"]} if isinstance(tool.get("function"), dict) else dict(tool)
    if "name" not in flat and isinstance(flat.get("data"), dict):  # a serialized object with type and data
        flat = dict(flat["data"])
    if "parameters_json_schema" in flat:
        flat["parameters"] = flat["parameters_json_schema"]
    flat.pop("function", None)
    return flat


def _parameters_of(tool: Mapping[str, Any]) -> list[str]:
    schema = tool.get("parameters")
    properties = schema.get("properties") if isinstance(schema, dict) else None
    return list(properties) if isinstance(properties, dict) else []


def _same_tool(outer: Step, inner: Step) -> bool:
    """Return True if two tool spans are layers of one call. The inner one is an MCP server's or has the same arguments. Its name
    is missing, or one name ends with the other, in any spelling.
    """
    known, name = outer.tool_name, inner.tool_name
    if known == name or not name:
        return True
    if known is None:
        return False
    shorter, longer = sorted((words_of(known), words_of(name)), key=len)
    if not shorter or longer[-len(shorter) :] != shorter:
        return False
    given = arguments_of(inner.tool_arguments)
    return "mcp.method.name" in inner.record.attributes or (given is not None and given == arguments_of(outer.tool_arguments))


def _own_id(name: str | None, call_id: str | None) -> str:
    """Return a call's id without its tool's name."""
    call_id = call_id or ""
    return call_id.removeprefix(f"{name}__") if "__" in call_id else call_id


def _are_one_call(one: Step, later: Step) -> bool:
    """Return True if two tool spans with one call id are one call. Some models use an id again for another call."""
    if not (_same_tool(one, later) or _same_tool(later, one) or (one.tool_name or "").endswith(later.tool_name or "")):
        return False
    pairs = ((one.tool_arguments, later.tool_arguments), (one.tool_result, later.tool_result))
    if any(given is not None and other is not None and given != other for given, other in pairs):
        return False
    overlap = later.record.start_ns < one.record.end_ns
    return overlap or any((given is None) != (other is None) for given, other in pairs)


def _has_only_name(step: Step) -> bool:
    return step.tool_call_id is None and step.tool_arguments is None and step.tool_result is None and step.tool_inputs is None


def _rename_as_bare(steps: list[Step], layers: list[tuple[Step, Step]]) -> None:
    """Give outer spans the name of their layer if a span with only a name has it too."""
    bare = {step.tool_name for step in steps if _has_only_name(step)}
    other_names = [(outer, layer.tool_name) for outer, layer in layers if layer.tool_name != outer.tool_name]
    for outer, name in other_names:
        if name in bare:
            outer.tool_name = name


def _without_bare(steps: list[Step]) -> list[Step]:
    """Return tool spans without those that have only the name of another one, which has content, or of their operation."""
    shown = {step.tool_name for step in steps if not _has_only_name(step)}
    return [
        step for step in steps
        if step.error is not None or not _has_only_name(step)
        or (step.tool_name not in shown and not (shown and step.tool_name == step.record.attributes.get("gen_ai.operation.name")))
    ]  # fmt: skip


def gives_form(name: str | None) -> bool:
    return name in OUTPUT_TOOLS or (name is not None and name.startswith("final_result_"))


def _gave_form(result: Any) -> bool:
    """Return True if an output tool named after its answer's type returned the result."""
    return result.__class__ is str and _FORM_GIVEN.match(result) is not None


def _from_tool(error: ErrorInfo | None) -> ErrorInfo | None:
    """Return a turn's error as the error of its last tool. Returns None if the loop or its model caused it."""
    text = f"{error.type} {error.message}" if error is not None else ""
    return None if _OTHER_FAILURE.search(text) else error


@lru_cache(1024)
def _is_handoff(name: str | None) -> bool:
    return name is not None and _HANDOFF_TOOL.match(name.removeprefix(_PLUGIN)) is not None


def _is_no_tool(name: str | None) -> bool:
    return _is_handoff(name) or gives_form(name)


def _without_prefix(name: str) -> str:
    name = name.removeprefix(_PLUGIN)
    found = _HANDOFF_TOOL.match(name)
    return name[found.end() :] or name if found is not None else name


def _is_cut(arguments: Any) -> bool:
    """Return True for arguments that begin like an object, and that :func:`arguments_of` doesn't read."""
    return isinstance(arguments, str) and arguments.lstrip()[:1] == "{"


def _target_in(arguments: Any) -> str | None:
    given = (arguments_of(arguments) or {}) if arguments is not None else {}
    return as_text(given.get("to_agent")) or as_text(given.get("agent_name"))


_CallKey = tuple[str | None, Hashable]


def _call_key(request: ToolRequest) -> _CallKey:
    """Return a key that is equal for calls of one tool with the same arguments."""
    return request.name, jsonio.frozen(arguments_of(request.arguments))


def _more_than(known: Counter[_CallKey], messages: Iterable[Message]) -> Iterable[ToolRequest]:
    """Yield calls without ids that a prompt contains more often than ``known``. Adds the calls to ``known``."""
    here: Counter[_CallKey] = Counter()
    for message in messages:
        for call in message.tool_calls:
            key = _call_key(call)
            here[key] += 1
            if call.call_id is None and here[key] > known[key]:
                known[key] += 1
                yield call


def _without_copies(
    requested: list[tuple[ToolRequest, Step]], read_back: list[ToolRequest], results: Mapping[str, Any]
) -> list[tuple[ToolRequest, Step]]:
    """Drop requests without an id, or without a result, that a later prompt repeats with a new id."""
    copies = Counter(map(_call_key, read_back))
    kept = []
    for request, step in requested:
        if (not request.call_id or request.call_id not in results) and copies[key := _call_key(request)] > 0:
            copies[key] -= 1
        else:
            kept.append((request, step))
    return kept


class _Requests:
    """Tool requests of models, which are matched to the spans of the calls. Each is matched once."""

    def __init__(self, requests: Iterable[ToolRequest]) -> None:
        self._by_id: dict[str, ToolRequest] = {}
        self._left: TakenOnce[ToolRequest] = TakenOnce()
        self._indexed: set[Callable[[ToolRequest], Iterable[Hashable]]] = set()
        for request in requests:
            if request.call_id:
                self._by_id.setdefault(request.call_id, request)
            self._left.add(request, ("name", request.name))

    def behind(self, step: Step, arguments: dict[str, Any] | None) -> ToolRequest | None:
        """Return the request for a tool span, matched by call id or by name and arguments, one of which may be missing."""
        if step.tool_call_id and step.tool_call_id in self._by_id:
            return self._by_id[step.tool_call_id]
        name, value = step.tool_name, step.tool_arguments
        if step.tool_unnamed and arguments is None:
            return None
        if arguments is None and value is None:
            return self._left.take(("name", name))
        self._index(_argument_keys)
        frozen = jsonio.frozen(arguments)
        if step.tool_unnamed:
            return self._left.take(("arguments", frozen))
        if arguments is not None:
            return self._left.take(("arguments", name, frozen))
        self._index(_value_keys)
        return self._left.take(("arguments", name, frozen), ("value", name, jsonio.text_of(value)))

    def _index(self, keys_of: Callable[[ToolRequest], Iterable[Hashable]]) -> None:
        if keys_of not in self._indexed:
            self._indexed.add(keys_of)
            self._left.index(keys_of)


def _argument_keys(request: ToolRequest) -> Iterable[Hashable]:
    frozen = jsonio.frozen(arguments_of(request.arguments))
    return ("arguments", frozen), ("arguments", request.name, frozen)


def _value_keys(request: ToolRequest) -> Iterator[Hashable]:
    """Yield keys for the text of each argument, and of the list of all arguments."""
    arguments = arguments_of(request.arguments)
    if arguments is not None:
        values = [*arguments.values()]
        for text in {*map(jsonio.text_of, values), jsonio.text_of(values)}:
            yield "value", request.name, text


def _flagged(raw: Any) -> ErrorInfo | None:
    """Return the failure that a flag on the result reports. Unwrapping the result loses the flag."""
    if raw.__class__ is str:
        if raw[:1] != "{" or ("rror" not in raw[-200:] and "rror" not in raw[:200]):
            return None
        raw, _ = jsonio.loads_or_text(raw)
    if isinstance(raw, Mapping) and "content" in raw and says_failed(raw):
        return ErrorInfo("tool_error", jsonio.text_of(unwrap_result(raw))[:200])
    return None


_SAID = 300
"""Maximum characters of a result that says only why a tool didn't run."""
_DECLINED = re.compile(
    r"\b(?:user|human|operator|reviewer)\b (?:has |have )?(?:declined|denied|rejected|refused|doesn't want|did(?:n't| not) (?:approve|allow|accept|confirm))\b|"
    r"\btool(?: call| use| execution| request)? (?:was |is |has been )?(?:denied|rejected|declined|not approved)\b",
    re.IGNORECASE,
)
_WAITS = re.compile(
    r"\btool(?: call| use| execution)? (?:is )?(?:requires?|needs?|awaits|awaiting|waiting for|pending)(?: \w+)? (?:approval|confirmation)\b",
    re.IGNORECASE,
)


def _state_in(error: ErrorInfo | None, result: Any) -> ToolState:
    """Return the state in an error or a result of a call that a person had to approve."""
    text = (error.message if error is not None and error.message else result) or ""
    if text.__class__ is not str or len(text) > _SAID:
        return "executed"
    return "declined" if _DECLINED.search(text) else "requested" if _WAITS.search(text) else "executed"


def _error_in(result: Any) -> ErrorInfo | None:
    """Return the failure that a tool's result reports as text."""
    if isinstance(result, str):
        result = unquoted(result)
    if isinstance(result, str):
        if result[:40].lower().startswith(_FAILED_TEXT):
            return ErrorInfo("tool_error", result[:200])
        raised = _RAISED.match(result)
        if raised is not None:
            return ErrorInfo(raised[1], result[raised.end() :][:200])
        if result[:1] != "{":
            return None
        try:
            result = jsonio.loads(result)
        except ValueError:
            return None
    if isinstance(result, dict):
        message = result.get("error") or result.get("error_message") or result.get("error_details")
        if message or says_failed(result):
            return ErrorInfo("tool_error", jsonio.text_of(message)[:200] if message else None)
    return None
