"""Tool calls: one execution is one call.

A call has a span, or appears only in messages: requested by a model and answered in a later prompt. A request that was never
executed is no call. Neither are hand-offs (``transfer_to_x``) and a framework's output tool. That no tool was called is a fact only
where a call would have been seen.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter, OrderedDict, deque
from collections.abc import Hashable, Iterable, Mapping
from functools import lru_cache
from typing import Any

from ...core import jsonio
from ...core.later import Later
from ...core.turn import ErrorInfo, Handoff, Message, ToolCall, ToolRequest
from ...dialects.content import REDACTED, arguments_of, says_failed, unwrap_result
from ...dialects.spoken import INTERPRETER, calls_in_code, printed
from ...dialects.step import AGENT, CHAIN, HANDOFF, INNER, LLM, ROOT_ROLES, TOOL, Step, as_text
from ...spans.record import SpanRecord
from . import app_events
from .finish_reasons import asks_for_tools, rules_out_tools
from .llm_calls import CallReader, fill
from .results import OrderedResults, first_left, since_user
from .runs import NamedRuns
from .steps import LONGEST_CONSTANT, START

_TOOL_MERGED = ("tool_call_id", "tool_arguments", "tool_result")
TOOL_OR_CALLER = (TOOL, AGENT, LLM)
_AGENTS = (AGENT,)
_HANDOFF_PREFIXES = ("transfer_to_", "handoff_to_", "transfer_back_to_")
_NOWHERE = frozenset(("unknown", "handoff"))
_PLUGIN = "Handoff-"
"""What may stand before them."""
OUTPUT_TOOLS = frozenset(("final_result", "final_answer", "set_model_response", "Handoff-complete_task"))
_RAISED = re.compile(r"(?:[a-z_]\w*\.)*([A-Z]\w*(?:Error|Exception|Timeout)): ?")
"""How a raised exception begins when it is written as a text."""
_CODE = ("<code>", "<end_code>")
"""Around code that an agent runs, which may call tools; that is no request of the model."""
_FORM_GIVEN = re.compile(r"Successfully validated \w+ structured output$|Returning structured response: ")
_NOT_A_TOOL_S = re.compile(
    r"max(?:imum)?[ _]?(?:number of )?(?:steps|turns|iterations|rounds|tokens)|(?:recursion|usage|request|token)s?[ _]?limit|rate[ _]?limit|"
    r"error code: \d{3}|statuserror|api(?:connection|timeout)?error|internalservererror|overloaded|cancelled",
    re.IGNORECASE,
)
"""What a loop's own limits and a model's failures are called."""
_FAILED_TEXT = ("error:", "error executing", "traceback (most recent call last)", "exception:", "tool error:")


class ToolReader(CallReader):
    """What the tools did, and which agent left the turn to which."""

    _by_order: dict[int, OrderedResults] | None = None
    """What is left to be found by order, by the agent's run. Each result is taken once."""
    _tools: list[Step] | None = None

    def _take(self, root: SpanRecord, steps: list[Step]) -> None:
        super()._take(root, steps)
        self._asked: dict[int, list[ToolRequest]] = {}
        """What each model call asked tools for, by its span."""
        self._tools = None

    _forms: set[str | None] | None = None

    def tool_definitions(self) -> list[dict[str, Any]]:
        """The tools that models were given."""
        found: dict[str, dict[str, Any]] = {}
        seen: set[str] = set()
        for step in (self.root, *self.of_role.get(AGENT, ()), *self.llm):  # an agent's own: those of its models are often unseen
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
        """What models asked tools for; where no model call was written, what runs say of them."""
        runs = (
            ()
            if self.llm
            else [step for role in ROOT_ROLES for step in self.of_role.get(role, ()) if step.output_messages is not None]
        )
        return [(call, step) for step in (*self.llm, *runs) for call in self.outputs_asked(step)]

    def _requests_read_back(self) -> list[tuple[ToolRequest, Step]]:
        """Requests that only a later prompt shows: some instrumentations lose them when the answer is streamed."""
        asked = self._requests()
        known = {call.call_id for call, _ in asked}
        alike: Counter[tuple[str | None, Hashable]] | None = None
        found = []
        for step in self.llm:
            messages = self.inputs(step)
            # What the first prompt holds was asked for in earlier turns, unless its span is the last call's of many.
            old = len(messages) if step is self.llm[0] else 0
            if old and step.overwritten:
                old = max(
                    (i for i, message in enumerate(messages) if message.role == "user" and not message.tool_results), default=0
                )
            for place, message in enumerate(messages):
                for call in message.tool_calls:
                    if call.call_id and call.call_id not in known:
                        known.add(call.call_id)
                        if place >= old:
                            found.append((call, step))
            if step is not self.llm[0] and any(call.call_id is None for message in messages for call in message.tool_calls):
                alike = Counter(_what(call) for call, _ in asked) if alike is None else alike
                found += [(call, step) for call in _more_than(alike, since_user(messages))]
        return found

    def tool_calls(self) -> list[ToolCall] | None:
        """One entry per execution, by start time. None where no call is seen, and one could have been made unseen."""
        self._by_order = None
        steps = self._tool_steps()
        calls = []
        requests: _Requests | None = None
        inputs: dict[str, Any] | None = None
        results: dict[str, Any] | None = None
        for step in steps:
            arguments = arguments_of(step.tool_arguments)
            call_id = asked_as = step.tool_call_id
            if arguments is None or call_id is None or step.tool_unnamed:
                if requests is None:
                    requests = _Requests(request for request, _ in self._requests())
                request = requests.behind(step, arguments)
                if request is not None:
                    step.tool_name = request.name if step.tool_unnamed else step.tool_name
                    asked_as = request.call_id or call_id
                    call_id = call_id or asked_as
                    arguments = arguments_of(request.arguments) if arguments is None else arguments
            if arguments is None and call_id is not None:
                inputs = self._inputs_apart() if inputs is None else inputs
                arguments = arguments_of(inputs.get(call_id))
            result, error = unwrap_result(step.tool_result), step.error
            if result in REDACTED:
                result = None
            if result is None and error is None and call_id is not None:  # some write it for the model only
                results = self._results_in_messages() if results is None else results
                result = results.get(call_id, results.get(asked_as or ""))
            if result is None:  # a failed call has an answer too, which no other may get
                answer = self._result_by_order(step, step.tool_name, arguments)
                result = answer if error is None else None
            if _gave_form(result):
                continue
            error = error or _error_in(result) or _flagged(step.tool_result)
            calls.append(ToolCall(
                step.tool_name or "", arguments, result, error, step.record.duration_s,
                f"{step.record.span_id:016x}", call_id, step.permission_denied, step.agent or self._agent_of(step),
            ))  # fmt: skip
        if not steps:
            calls.extend(self._calls_in_messages())
        return calls if calls or self._none_was_called() else None

    def _none_was_called(self) -> bool:
        """Whether a tool call would have been seen: by the spans of what is no call, else by what every model call that answered shows."""
        others = [step for step in self.of_role.get(TOOL, ()) if step is not self.root]
        if others or HANDOFF in self.of_role:
            return all(self._is_no_tool(step.tool_name) for step in others)
        last = self._answering_call()
        return last is not None and all(self._asked_for_none(step, step is last) for step in self.llm)

    def _asked_for_none(self, step: Step, is_last: bool) -> bool:
        """Whether a model's answer is known to hold no request for a tool, by its content, else by why it ended."""
        if (step.overwritten or step.role != LLM) and (not self.inputs(step) or self._overwritten_calls(step)):
            return False  # the only span of a run, which speaks of its last call
        if step.error is not None:
            return True
        found = self._decode(step, "output_messages", "assistant")
        asked = self.outputs_asked(step)
        if asked:
            return all(self._is_no_tool(call.name) for call in asked)
        if asks_for_tools(step.finish_reason):
            return False
        if step.output_tokens == 0:
            return True
        said = [message.content for message in found.messages if message.content]
        if not is_last and any(mark in text for text in said for mark in _CODE):
            return False
        whole = not (found.hidden or found.truncated)
        if whole and (said or any(message.reasoning or message.attachments for message in found.messages)):
            return True
        return rules_out_tools(step, is_last)

    def _is_no_tool(self, name: str | None) -> bool:
        """Whether a call of that name only moves the turn on, or gives the answer its form."""
        return _is_no_tool(name) or name in self._form_tools()

    def _form_tools(self) -> set[str | None]:
        """A framework's own tools that are named after the form of an answer: by what they say of themselves."""
        if self._forms is None:
            results = self._results_in_messages()
            self._forms = {
                tool.tool_name
                for tool in self.of_role.get(TOOL, ())
                if tool.gives_form or _gave_form(unwrap_result(tool.tool_result))
            } | {call.name for call, _ in self._requests() if _gave_form(results.get(call.call_id or ""))}
        return self._forms

    def outputs_asked(self, step: Step) -> list[ToolRequest]:
        """The tools that a model's answer asks for, as far as it was captured."""
        found = self._asked.get(step.record.span_id)
        if found is None:
            found = self._asked[step.record.span_id] = [call for message in self.outputs(step) for call in message.tool_calls]
        return found

    def _inputs_apart(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for step in self.steps:
            for call_id, given in (step.tool_inputs or {}).items():
                found.setdefault(call_id, given)
        return found

    def _functions(self) -> list[Step]:
        """Functions of the application that have the name of a tool that models were offered, or asked for."""
        found = [step for step in self.of_role.get(CHAIN, ()) if step.function and step is not self.root]
        if not found:
            return found
        names = {definition.get("name") for definition in self.tool_definitions()}
        asked = {request.name for request, _ in self._requests()}
        names |= asked
        names.difference_update(step.tool_name for step in self.of_role.get(TOOL, ()))
        shown = {request.name for request, _ in self._requests_read_back()} - asked
        found = [step for step in found if step.record.name in names and (step.record.name not in shown or _has_content(step))]
        for step in found:
            step.tool_name = step.record.name
            step.tool_arguments = step.input_value if step.input_messages is None else step.input_messages
            if step.tool_arguments.__class__ is Later:
                step.tool_arguments = step.tool_arguments.reader(step.tool_arguments.raw)
            step.tool_result = step.output_value if step.output_messages is None else step.output_messages
            if step.tool_result.__class__ is Later:
                step.tool_result = step.tool_result.reader(step.tool_result.raw)
        return found

    def _tool_steps(self) -> list[Step]:
        """The steps that are a tool's execution each."""
        if self._tools is None:
            self._tools = self._find_tool_steps()
        return self._tools

    def _find_tool_steps(self) -> list[Step]:
        out: list[Step] = []
        merged: dict[int, Step] = {}
        steps: Iterable[Step] = self.of_role.get(TOOL, ())
        functions = self._functions()
        for step in sorted([*steps, *functions], key=START) if functions else steps:
            if step is self.root or step.gives_form or _is_no_tool(step.tool_name):
                continue  # a function at the root was called by the application, not by an agent
            outer = self._nearest(step, TOOL_OR_CALLER)
            if (
                outer is not None
                and outer.role == TOOL
                and (_same_tool(outer, step) or (step.tool_call_id and outer.tool_call_id == step.tool_call_id))
            ):
                outer = merged[step.record.span_id] = merged.get(outer.record.span_id, outer)
                fill(outer, step, _TOOL_MERGED)
                outer.error = outer.error or step.error
                outer.permission_denied |= step.permission_denied
                continue
            if step.tool_name:
                out.append(step)
        return out

    def _results_in_messages(self) -> dict[str, Any]:
        """What tools returned, by call id, as later prompts hold it."""
        results: dict[str, Any] = {}
        before: Step | None = None
        for step in self.llm:
            asked: OrderedDict[str, None] = OrderedDict()
            if before is not None:  # where the server keeps the history, a prompt brings results without their requests
                asked.update((call.call_id, None) for said in self.outputs(before) for call in said.tool_calls if call.call_id)
            before, answered = step, True
            for message in self.inputs(step):
                if message.tool_calls:
                    if answered:
                        asked.clear()
                    asked.update((call.call_id, None) for call in message.tool_calls if call.call_id)
                    answered = False
                for response in message.tool_results:
                    answered = True
                    if response.call_id:
                        results[response.call_id] = response.result
                    if response.call_id is not None and response.call_id in asked:
                        del asked[response.call_id]
                    elif asked:  # two ids for one call (an item's and the call's): answers come in the order of the requests
                        results.setdefault(asked.popitem(last=False)[0], response.result)
        for step in self.steps:
            if step.role not in ROOT_ROLES:
                continue
            if step.output_messages is not None:  # a run that stopped at its limit sent the last results to no model
                _add_results(self._decode(step, "output_messages", "assistant").messages, results)
            if step is self.root and step.input_messages is not None:  # a call that failed left its prompt to the run around it
                _add_results(self._decode(step, "input_messages", "user").messages, results)
        return results

    def _result_by_order(self, step: Step, name: str | None, arguments: dict[str, Any] | None) -> Any:
        """What a tool returned, where nothing but the order of calls and answers says whose answer it is."""
        if self._by_order is None:
            known = {call.call_id for call, _ in self._requests()} | {tool.tool_call_id for tool in self.of_role.get(TOOL, ())}
            prompts: dict[int, list[list[Message]]] = {}
            for asked in self.llm:
                prompts.setdefault(self._loop_of(asked), []).append(self.inputs(asked))
            ids = {call_id for call_id in known if call_id}
            self._by_order = {loop: OrderedResults(of_loop, ids) for loop, of_loop in prompts.items()}
        found = self._by_order.get(self._loop_of(step))
        return found.take(name, arguments) if found is not None else None

    def _loop_of(self, step: Step) -> int:
        """The agent's run that a span is part of; 0 is the whole turn."""
        agent = self._nearest(step, _AGENTS)
        return agent.record.span_id if agent is not None else 0

    def _calls_in_messages(self) -> list[ToolCall]:
        """Calls of a hand-written loop: requested in one answer, answered in a later prompt."""
        results = self._results_in_messages()
        calls = []
        last = self.llm[-1] if self.llm else None
        repeated: dict[str, Any] | None = None
        asked = self._requests()
        read_back = self._requests_read_back()
        if read_back:
            asked = _without_copies(asked, [request for request, _ in read_back if request.call_id])
        for request, step in asked + read_back:
            if not request.name or self._is_no_tool(request.name):
                continue
            result = results.get(request.call_id or "")
            if result is None:
                result = self._result_by_order(step, request.name, arguments_of(request.arguments))
            if request.name == INTERPRETER:
                calls += self._calls_in_code(request, printed(result), step)
                continue
            if _gave_form(result):
                continue
            error = _error_in(result)
            if result is None and request.call_id not in results and step is last:
                if self.root.role == LLM:
                    continue  # a model call alone: the request is executed outside of this turn
                error = _from_tool(self.root.error)  # the loop went on to the tool, and what ended it there ended the turn
            arguments = arguments_of(request.arguments)
            if not arguments and request.call_id:  # a streamed request lost them
                repeated = self._repeated_arguments() if repeated is None else repeated
                arguments = arguments_of(repeated.get(request.call_id, request.arguments))
            calls.append(ToolCall(request.name, arguments, result, error, call_id=request.call_id, agent=step.agent))
        return calls

    def _repeated_arguments(self) -> dict[str, Any]:
        """What later prompts say that tools were given, by call id."""
        found: dict[str, Any] = {}
        for step in self.llm[1:]:
            for message in self.inputs(step):
                for call in message.tool_calls:
                    if call.call_id and call.arguments:
                        found.setdefault(call.call_id, call.arguments)
        return found

    def _calls_in_code(self, request: ToolRequest, result: Any, step: Step) -> list[ToolCall]:
        """Tools that a code agent's code called. What it wrote out is one tool's result only where it called no other."""
        parameters = {tool["name"]: _parameters_of(tool) for tool in self.tool_definitions() if tool["name"] not in OUTPUT_TOOLS}
        found = calls_in_code(request.arguments, parameters)
        if len(found) != 1:
            result = None
        return [ToolCall(call.name or "", call.arguments, result, _error_in(result), agent=step.agent) for call in found]

    def handoffs(self) -> list[Handoff]:
        """Where one agent left the turn to another."""
        said = app_events.handoffs(self.steps)
        if said:
            return said
        spans = [step for step in self.of_role.get(HANDOFF, ()) if self._nearest(step, (HANDOFF,)) is None]
        found = [(self._handoff_of(step), step) for step in spans] or [
            (Handoff(self._agent_at(step), _target_in(request.arguments) or _without_prefix(request.name), None), step)
            for request, step in self._requests()
            if request.name is not None and _is_handoff(request.name)
        ]
        if not found:  # without content the tool's span is all that shows it
            found = [
                (Handoff(self._agent_at(step), _target_in(step.tool_arguments) or _without_prefix(step.tool_name), None), step)
                for step in self.of_role.get(TOOL, ())
                if step.tool_name is not None and _is_handoff(step.tool_name)
            ]
        if not found:
            return []
        runs = NamedRuns(self.of_role.get(AGENT, ()), self.of_role.get(INNER, ()))
        return [self._followed(handoff, step, runs) for handoff, step in found]

    def _agent_at(self, step: Step) -> str | None:
        return step.agent or self._agent_of(step)

    @staticmethod
    def _followed(handoff: Handoff, step: Step, runs: NamedRuns) -> Handoff:
        """A hand-off with what the agents' runs around it say: where it went, that it came there, and who was at work before."""
        at, source = step.record.start_ns, handoff.from_
        if handoff.to is None or handoff.to in _NOWHERE:
            handoff = dataclasses.replace(handoff, to=runs.first_after(at, source))
        if source is None:
            handoff = dataclasses.replace(handoff, from_=runs.last_before(at))
        if handoff.success is None and handoff.to is not None and runs.came(handoff.to, at, source):
            handoff = dataclasses.replace(handoff, success=True)
        return handoff

    def _handoff_of(self, step: Step) -> Handoff:
        """Most spans only have a name: ``X → Y.handoff`` or ``handoff to Y``."""
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


def _has_content(step: Step) -> bool:
    return step.input_messages is not None or step.input_value is not None


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


def _parameters_of(tool: Mapping[str, Any]) -> list[str]:
    schema = tool.get("parameters")
    properties = schema.get("properties") if isinstance(schema, dict) else None
    return list(properties) if isinstance(properties, dict) else []


def _same_tool(outer: Step, inner: Step) -> bool:
    """Two layers of one call: the same name, a nameless phase, or a server's name for what its client knows by a longer one."""
    known, name = outer.tool_name, inner.tool_name
    if known == name or not name:
        return True
    return (
        known is not None
        and "mcp.method.name" in inner.record.attributes
        and known.endswith((f"_{name}", f".{name}", f"/{name}"))
    )


def gives_form(name: str | None) -> bool:
    """Whether a tool is a framework's own, by which a model gives its answer a form."""
    return name in OUTPUT_TOOLS or (name is not None and name.startswith("final_result_"))


def _gave_form(result: Any) -> bool:
    """Whether such a tool, which is named after the form, says that it has done so."""
    return result.__class__ is str and _FORM_GIVEN.match(result) is not None


def _from_tool(error: ErrorInfo | None) -> ErrorInfo | None:
    """A turn's error as that of its last tool; None where the loop or its model says that it was its own."""
    said = f"{error.type} {error.message}" if error is not None else ""
    return None if _NOT_A_TOOL_S.search(said) else error


def _is_handoff(name: str | None) -> bool:
    return name is not None and (name == "handoff" or name.removeprefix(_PLUGIN).startswith(_HANDOFF_PREFIXES))


def _is_no_tool(name: str | None) -> bool:
    """Whether a call of that name only moves the turn on: to another agent, or to its answer."""
    return _is_handoff(name) or gives_form(name)


def _without_prefix(name: str) -> str:
    name = name.removeprefix(_PLUGIN)
    return next((name.removeprefix(prefix) for prefix in _HANDOFF_PREFIXES if name.startswith(prefix)), name)


def _target_in(arguments: Any) -> str | None:
    """The agent that a hand-off's arguments name."""
    given = (arguments_of(arguments) or {}) if arguments is not None else {}
    return as_text(given.get("to_agent")) or as_text(given.get("agent_name"))


def _what(request: ToolRequest) -> tuple[str | None, Hashable]:
    """Equal for calls of a tool with the same arguments, and for no others."""
    return request.name, jsonio.frozen(arguments_of(request.arguments))


def _more_than(known: Counter[tuple[str | None, Hashable]], messages: Iterable[Message]) -> Iterable[ToolRequest]:
    """Calls without ids that a prompt holds more often than is ``known``, which grows by them."""
    here: Counter[tuple[str | None, Hashable]] = Counter()
    for message in messages:
        for call in message.tool_calls:
            what = _what(call)
            here[what] += 1
            if call.call_id is None and here[what] > known[what]:
                known[what] += 1
                yield call


def _without_copies(asked: list[tuple[ToolRequest, Step]], read_back: list[ToolRequest]) -> list[tuple[ToolRequest, Step]]:
    """Requests without those that were written without their id, and that a later prompt repeats with it."""
    copies = Counter(map(_what, read_back))
    kept = []
    for request, step in asked:
        if request.call_id is None and copies[what := _what(request)] > 0:
            copies[what] -= 1
        else:
            kept.append((request, step))
    return kept


class _Requests:
    """What models asked tools for, to be found again behind the spans of the calls: each request once."""

    def __init__(self, requests: Iterable[ToolRequest]) -> None:
        self._by_id: dict[str, ToolRequest] = {}
        self._open: dict[str | None, dict[int, ToolRequest]] = {}
        """By name, then by place: those that no call was found for."""
        for place, request in enumerate(requests):
            if request.call_id:
                self._by_id.setdefault(request.call_id, request)
            self._open.setdefault(request.name, {})[place] = request
        self._alike: dict[str | None, _Alike] = {}
        self._of_arguments: dict[Hashable, deque[tuple[int, str | None]]] | None = None
        """Places and names of all."""

    def behind(self, step: Step, arguments: dict[str, Any] | None) -> ToolRequest | None:
        """The request behind a tool's span: by call id, else the first one with its name and arguments."""
        if step.tool_call_id and step.tool_call_id in self._by_id:
            return self._by_id[step.tool_call_id]
        if step.tool_unnamed:
            return self._of_any_name(arguments)
        named = self._open.get(step.tool_name)
        if not named:
            return None
        alike = self._alike.get(step.tool_name)
        if alike is None:
            alike = self._alike[step.tool_name] = _Alike(named)
        place = alike.first(named, arguments, step.tool_arguments)
        return named.pop(place) if place is not None else None

    def _of_any_name(self, arguments: dict[str, Any] | None) -> ToolRequest | None:
        """The first request with these arguments, whatever the tool."""
        if arguments is None:
            return None
        if self._of_arguments is None:
            self._of_arguments = {}
            entries = [(place, name, request) for name, named in self._open.items() for place, request in named.items()]
            for place, name, request in sorted(entries, key=lambda entry: entry[0]):
                self._of_arguments.setdefault(jsonio.frozen(arguments_of(request.arguments)), deque()).append((place, name))
        places = self._of_arguments.get(jsonio.frozen(arguments), deque())
        while places:
            place, name = places.popleft()
            if place in self._open[name]:
                return self._open[name].pop(place)
        return None


class _Alike:
    """Requests for one tool, by what they hand to it."""

    def __init__(self, requests: Mapping[int, ToolRequest]) -> None:
        self._arguments = {place: arguments_of(request.arguments) for place, request in requests.items()}
        self._places: dict[Hashable, deque[int]] = {}
        for place, wanted in self._arguments.items():
            self._places.setdefault(jsonio.frozen(wanted), deque()).append(place)
        self._in_order = deque(self._arguments)
        self._of_value: dict[str, deque[int]] | None = None

    def first(self, requests: Mapping[int, ToolRequest], arguments: dict[str, Any] | None, bare: Any) -> int | None:
        """The first of the ``requests`` that are left with these arguments, or, where the span has only a ``bare`` value, with that."""
        if arguments is None and bare is None:
            return first_left(self._in_order, requests)
        found = first_left(self._places.get(jsonio.frozen(arguments), deque()), requests)
        if arguments is not None:
            return found
        holding = self._holding(bare)
        place = first_left(holding, requests)
        return place if found is None or (place is not None and place < found) else found

    def _holding(self, bare: Any) -> deque[int]:
        """Requests that hand over a value, among others or in a list of all of them."""
        if self._of_value is None:
            self._of_value = {}
            for place, wanted in self._arguments.items():
                values = [*(wanted or {}).values()]
                for text in {*map(jsonio.text_of, values), jsonio.text_of(values)} if wanted is not None else ():
                    self._of_value.setdefault(text, deque()).append(place)
        return self._of_value.get(jsonio.text_of(bare), deque())


def _flagged(raw: Any) -> ErrorInfo | None:
    """The failure that a result's own mark says; taking the result out of its wrapping loses the mark."""
    if raw.__class__ is str:
        if raw[:1] != "{" or ("rror" not in raw[-200:] and "rror" not in raw[:200]):
            return None
        raw, _ = jsonio.loads_or_text(raw)
    if isinstance(raw, Mapping) and "content" in raw and says_failed(raw):
        return ErrorInfo("tool_error", jsonio.text_of(unwrap_result(raw))[:200])
    return None


def _error_in(result: Any) -> ErrorInfo | None:
    """Whether a tool's answer, known only as text before the model, reports a failure."""
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
        said = result.get("error") or result.get("error_message") or result.get("error_details")
        if said or says_failed(result):
            return ErrorInfo("tool_error", jsonio.text_of(said)[:200] if said else None)
    return None
