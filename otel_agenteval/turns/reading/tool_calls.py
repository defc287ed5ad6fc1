"""Read the tool calls of a turn.

A tool call has a span, or it appears only in messages. In messages, a model requests the tool, and then a later prompt contains
the result, or the run ends. Hand-offs (``transfer_to_x``) and frameworks' output tools aren't tool calls. If no tool was called,
the list of calls is empty. If calls might not have been recorded, the list is None.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ...core import jsonio
from ...core.turn import ErrorInfo, Message, ToolCall, ToolRequest, ToolState
from ...dialects.content import HIDDEN, ProviderRun, provider_runs
from ...dialects.payloads import arguments_of, says_failed, unquoted, unwrap_result
from ...dialects.react import INTERPRETER, calls_in_code, printed
from ...dialects.step import AGENT, CHAIN, HANDOFF, LLM, ROOT_ROLES, ROOTS, TOOL, Step
from ...spans.record import ERROR
from .handoffs import as_tool_name
from .llm_calls import TurnCalls, asks_for_tools, rules_out_tools
from .requests import (
    OUTPUT_TOOLS,
    OrderedResults,
    Requested,
    RequestMatcher,
    add_results_by_id,
    pairs_with_results,
    parameters_of,
    requests_read_back,
    since_user,
    tool_definitions,
    tool_requests,
    without_copies,
)
from .steps import computed_once
from .tool_spans import ToolSpan, is_no_tool, join_layers

_CODE = ("<code>", "<end_code>")
"""Delimiters around code that an agent runs. This code can call tools, but isn't a tool request itself."""
_WITH_RESULTS = frozenset((*ROOT_ROLES, LLM, TOOL))
_ANSWER_ACCEPTED = re.compile(r"Successfully validated \w+ structured output$|Returning structured response: ")
"""Matches the results of output tools whose name is the answer's type, such as ``WeatherReport``."""


class ToolCalls:
    def __init__(self, turn: TurnCalls) -> None:
        self._turn = turn
        self._tool_steps = turn.of_role.get(TOOL, [])

    @computed_once
    def calls(self) -> list[ToolCall] | None:
        """Tool calls in order, or None if some calls might not have been recorded."""
        if self.spans:
            in_spans = (self._call_of_span(*matched) for matched in self._matched)
            calls = self._with_lost_spans([call for call in in_spans if call is not None])
        else:
            calls = self._calls_in_messages()
        if not calls and not self._none_was_called():
            return self._calls_of_runs() or None
        return max(self._calls_of_runs(), calls, key=len) if not self.spans and self._stopped_for_tools() else calls

    @computed_once
    def spans(self) -> list[ToolSpan]:
        """One span per tool call, in order of start time."""
        turn = self._turn
        tools = [*map(ToolSpan.of_tool, self._tool_steps)]
        functions = [step for step in turn.of_role.get(CHAIN, ()) if step.function and step is not turn.root]
        if functions:  # functions with the name of a defined or requested tool are tools
            requested = {request.name for request, _ in self._requested}
            names = {definition["name"] for definition in self.definitions} | requested
            names.difference_update(step.tool_name for step in self._tool_steps)
            read_back = {request.name for request, _ in self._read_back} - requested
            tools += [
                ToolSpan.of_function(step) for step in functions
                if step.record.name in names
                and (step.record.name not in read_back or step.input_messages is not None or step.input_value is not None)
            ]  # fmt: skip
            tools.sort(key=lambda tool: tool.step.record.start_ns)
        return join_layers(turn, tools)

    @computed_once
    def definitions(self) -> list[dict[str, Any]]:
        return tool_definitions(self._turn)

    def name_at(self, step: Step) -> str | None:
        """Return a span's tool name. If this name is only a class name, return the tool name in the model's request."""
        return self._names.get(step.record.span_id, step.tool_name)

    @computed_once
    def _names(self) -> dict[int, str | None]:
        if any(span.step.tool_unnamed for span in self.spans):
            return {span.step.record.span_id: _name_of(span, request) for span, _, request in self._matched}
        return {span.step.record.span_id: span.name for span in self.spans}

    # --- calls with spans

    @computed_once
    def _matched(self) -> list[tuple[ToolSpan, dict[str, Any] | None, ToolRequest | None]]:
        """Each call's (span, arguments, request). The request is None if unknown, or if the span has all of its values."""
        matcher: RequestMatcher | None = None
        found = []
        for span in self.spans:
            arguments, request = arguments_of(span.arguments), None
            if arguments is None or span.call_id is None or span.step.tool_unnamed:
                requests = (request for request, _ in self._requested)
                matcher = matcher or RequestMatcher(sorted(requests, key=lambda request: isinstance(request, ProviderRun)))
                name = None if span.step.tool_unnamed else span.name
                request = matcher.take(name, span.call_id, span.arguments, arguments)
            found.append((span, arguments, request))
        return found

    def _call_of_span(self, span: ToolSpan, arguments: dict[str, Any] | None, request: ToolRequest | None) -> ToolCall | None:
        """Convert a tool span to a tool call. Return None if the tool is an output tool or a hand-off."""
        step, name = span.step, _name_of(span, request)
        if request is not None and step.tool_unnamed and self._is_no_tool(name):
            return None
        call_id = requested_id = span.call_id
        if request is not None:
            requested_id = request.call_id or call_id
            call_id = call_id or requested_id
            arguments = arguments_of(request.arguments) if arguments is None else arguments
        if arguments is None and call_id is not None:
            arguments = arguments_of(self._arguments_elsewhere.get(call_id))
        result, error = unwrap_result(span.result), span.error
        result = None if result in HIDDEN else result
        if result is None and error is None and call_id is not None:  # the result may be only in the next prompt
            result = self._results.get(call_id, self._results.get(requested_id or ""))
        if result is None:  # also take a failed call's result, so that no other call gets it
            next_result = self._take_result(step, name, arguments)
            result = next_result if error is None else None
        if _accepts_answer(result):
            return None
        error = error or error_in(result) or error_by_flag(span.result)
        raised_interrupt = any(str(event.attributes.get("exception.type")).endswith("Interrupt") for event in step.record.events)
        interrupted = result is None and error is None and (raised_interrupt or step.record.status == ERROR)
        state: ToolState = "requested" if interrupted else state_of(error, result)
        return ToolCall(
            name or "", arguments, result, None if state == "requested" else error,
            step.record.duration_s if step.duration_s is None else step.duration_s, f"{step.record.shown_id:016x}", call_id,
            span.permission_denied, self._turn.agent_at(step),
            malformed=arguments is None and (_is_cut(span.arguments) or (request is not None and _is_cut(request.arguments))),
            state=state,
        )  # fmt: skip

    def _with_lost_spans(self, calls: list[ToolCall]) -> list[ToolCall]:
        """Insert tool calls that have a result but lack a span into ``calls``, in the order of their requests."""
        places = {request.call_id: place for place, (request, _) in enumerate(self._requested) if request.call_id}
        if len(places) <= len(calls):
            return calls
        in_messages = [call for call in self._calls_in_messages() if call.call_id in self._results and call.call_id in places]
        known = {call.call_id for call in calls}
        agents = {as_tool_name(run.agent) for run in self._turn.of_role.get(AGENT, ()) if run.agent}
        lost = [call for call in in_messages if call.call_id not in known and as_tool_name(call.name) not in agents]
        for call in lost[: max(0, len(in_messages) - len(calls))]:
            place = places[call.call_id or ""]
            later = (index for index, other in enumerate(calls) if places.get(other.call_id or "", -1) > place)
            calls.insert(next(later, len(calls)), call)
        return calls

    @computed_once
    def _arguments_elsewhere(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for step in self._turn.steps:
            for call_id, arguments in (step.tool_inputs or {}).items():
                found.setdefault(call_id, arguments)
        return found

    # --- calls in messages

    @computed_once
    def _requested(self) -> list[Requested]:
        return tool_requests(self._turn)

    @computed_once
    def _read_back(self) -> list[Requested]:
        return requests_read_back(self._turn, self._requested)

    def _calls_in_messages(self) -> list[ToolCall]:
        requested = self._requested
        if self._read_back:
            repeated = [request for request, _ in self._read_back if request.call_id]
            requested = without_copies(requested, repeated, self._results)
        calls: list[ToolCall] = []
        of_repeated_ids = self._results_of_repeated_ids(request.call_id for request, _ in requested)
        for request, step in requested + self._read_back:
            if not request.name or self._is_no_tool(request.name):
                continue
            known = self._results.get(request.call_id or "", getattr(request, "result", None))
            result = next(of_repeated_ids.get(request.call_id, iter(())), known)
            if result is None:
                result = self._take_result(step, request.name, arguments_of(request.arguments))
            if request.name == INTERPRETER:
                calls += self._calls_in_code(request, printed(result), step)
            elif not _accepts_answer(result) and (call := self._call_of_request(request, step, result)) is not None:
                calls.append(call)
        return calls

    def _calls_in_code(self, request: ToolRequest, output: Any, step: Step) -> list[ToolCall]:
        """Return the tool calls in code that an agent wrote. If there is only one call, the code's output is the call's result."""
        parameters = {tool["name"]: parameters_of(tool) for tool in self.definitions if tool["name"] not in OUTPUT_TOOLS}
        found = calls_in_code(request.arguments, parameters)
        result = output if len(found) == 1 else None
        return [ToolCall(call.name or "", call.arguments, result, error_in(result), agent=step.agent) for call in found]

    def _call_of_request(self, request: ToolRequest, step: Step, result: Any) -> ToolCall | None:
        error, root = error_in(result), self._turn.root
        state = state_of(error, result)
        is_open = result is None and request.call_id not in self._results and not isinstance(request, ProviderRun)
        if is_open and step in self._turn.llm[-1:]:
            if root.role == LLM:
                return None  # a model call alone: the tool runs outside this turn
            if root.error is not None and not _NOT_A_TOOL_S.search(f"{root.error.type} {root.error.message}"):
                error = root.error  # the turn ended while this tool ran
            if error is None and not self._root_answers(request):
                state = "requested"
        arguments = arguments_of(request.arguments)
        if not arguments and request.call_id:  # streamed requests may have no arguments
            arguments = arguments_of(self._repeated_arguments.get(request.call_id, request.arguments))
        return ToolCall(
            request.name or "", arguments, result, error, call_id=request.call_id, agent=step.agent,
            malformed=arguments is None and _is_cut(request.arguments), state=state,
        )  # fmt: skip

    def _root_answers(self, request: ToolRequest) -> bool:
        """Return True if the root's output contains more than the unanswered tool ``request``."""
        root, texts = self._turn.root, []
        for field in ("output_messages", "output_value"):
            decoded = self._turn.decode(root, field, "assistant")
            messages = decoded.messages if getattr(root, field) else []
            if decoded.hidden or any(message.attachments for message in messages[-1:]):
                return True
            texts += [message.content for message in messages[-1:] if not message.tool_calls]
        texts += [jsonio.text_of(root.final_result)] if root.final_result else []
        return any(text and not (request.call_id and request.call_id in text) for text in texts)

    @computed_once
    def _repeated_arguments(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for step in self._turn.llm[1:]:
            for message in self._turn.inputs(step):
                for request in message.tool_calls:
                    if request.call_id and request.arguments:
                        found.setdefault(request.call_id, request.arguments)
        return found

    def _calls_of_runs(self) -> list[ToolCall]:
        """Return tool calls with results in agent runs' outputs. Read calls without IDs only in the first output with calls."""
        turn, found = self._turn, dict[str | int, ToolCall]()
        for step in (turn.root, *(step for role in ROOTS for step in turn.of_role.get(role, ()))):
            for field in ("output_messages", "output_value"):
                if getattr(step, field) is None:
                    continue
                first = not found
                for request, response in pairs_with_results(since_user(turn.decode(step, field, "assistant").messages)):
                    if request.name and not self._is_no_tool(request.name) and (first or request.call_id):
                        call = ToolCall(
                            request.name, arguments_of(request.arguments), response.result, error_in(response.result),
                            call_id=request.call_id, agent=turn.agent_at(step),
                        )  # fmt: skip
                        found.setdefault(request.call_id or len(found), call)
        return [*found.values()]

    # --- results in messages

    @computed_once
    def _results(self) -> dict[str, Any]:
        turn, results = self._turn, dict[str, Any]()
        before: Step | None = None
        for step in turn.llm:
            # If the server keeps the history, a prompt has results without their requests.
            requested = [] if before is None else [request.call_id for request in turn.requests_of(before) if request.call_id]
            add_results_by_id(turn.inputs(step), requested, results)
            before = step
        for step in turn.steps:
            if step.role not in _WITH_RESULTS:
                continue
            # Some results are in no prompt: the last results of a run that reached its limit, and results of provider-run tools.
            # For some failed calls, only the root has the prompt.
            messages = [] if step.output_messages is None else turn.outputs(step)
            if step is turn.root and step.input_messages is not None:
                messages = messages + turn.inputs(step)
            for response in (one for message in messages for one in (*message.tool_results, *provider_runs(message))):
                if response.call_id:
                    results.setdefault(response.call_id, response.result)
        return results

    def _results_of_repeated_ids(self, ids: Iterable[str | None]) -> dict[str | None, Iterator[Any]]:
        """Map each call ID that several requests share to its results, in order. Some programs use tool names as call IDs."""
        found = {one: list[Any]() for one, count in Counter(ids).items() if one and count > 1}
        for step in self._turn.llm if found else ():
            results = [result for message in since_user(self._turn.inputs(step)) for result in message.tool_results]
            for call_id, before in found.items():
                before.extend([result.result for result in results if result.call_id == call_id][len(before) :])
        return {call_id: iter(results) for call_id, results in found.items()}

    def _take_result(self, step: Step, name: str | None, arguments: dict[str, Any] | None) -> Any:
        """Remove and return a tool's next unused result, in prompt order."""
        results = self._ordered_results.get(self._turn.loop_of(step))
        return results.take(name, arguments) if results is not None else None

    @computed_once
    def _ordered_results(self) -> dict[int, OrderedResults]:
        known = {request.call_id for request, _ in self._requested} | {step.tool_call_id for step in self._tool_steps}
        prompts: dict[int, list[list[Message]]] = {}
        for step in self._turn.llm:
            prompts.setdefault(self._turn.loop_of(step), []).append(self._turn.inputs(step))
        ids = {call_id for call_id in known if call_id}
        return {loop: OrderedResults(of_loop, ids) for loop, of_loop in prompts.items()}

    # --- turns without calls

    def _none_was_called(self) -> bool:
        """Return True if the spans prove that no tool was called. Hand-offs and output tools don't count."""
        others = [step for step in self._tool_steps if step is not self._turn.root]
        if others or HANDOFF in self._turn.of_role:
            return all(self._is_no_tool(self.name_at(step)) for step in others)
        last = self._turn.answering_call
        return last is not None and all(self._requested_none(step, step is last) for step in self._turn.llm)

    def _requested_none(self, step: Step, is_last: bool) -> bool:
        """Return True if a model call certainly didn't request a tool, judging by its error, answer, or finish reason."""
        turn = self._turn
        if (step.overwritten or step.role != LLM) and (not turn.inputs(step) or turn.overwritten_calls(step)):
            return False  # a run whose only span describes its last call
        if step.error is not None:
            return True
        answer = turn.decode(step, "output_messages", "assistant")
        requested = turn.requests_of(step)
        if requested:
            return all(self._is_no_tool(request.name) for request in requested)
        if asks_for_tools(step.finish_reason):
            return False
        if step.output_tokens == 0:
            return True
        texts = [message.content for message in answer.messages if message.content]
        if not is_last and any(mark in text for text in texts for mark in _CODE):
            return False
        is_whole = not (answer.hidden or answer.truncated)
        if is_whole and (texts or any(message.reasoning or message.attachments for message in answer.messages)):
            return True
        return rules_out_tools(step, is_last)

    def _stopped_for_tools(self) -> bool:
        """Return True if the last recorded model call requested tools, but the root has an output, so calls are missing."""
        root, last = self._turn.root, self._turn.answering_call
        if last is None or last.role != LLM or last is root or (root.output_messages is None and root.output_value is None):
            return False
        return bool(self._turn.requests_of(last))

    def _is_no_tool(self, name: str | None) -> bool:
        return is_no_tool(name) or name in self._named_after_answers

    @computed_once
    def _named_after_answers(self) -> set[str | None]:
        """Output tools whose name is the answer's type, such as ``WeatherReport``, according to spans or results."""
        steps = self._tool_steps
        return {
            *(step.tool_name for step in steps if step.gives_form or _accepts_answer(unwrap_result(step.tool_result))),
            *(request.name for request, _ in self._requested if _accepts_answer(self._results.get(request.call_id or ""))),
        }


def _name_of(span: ToolSpan, request: ToolRequest | None) -> str | None:
    return request.name if request is not None and span.step.tool_unnamed else span.name


def _accepts_answer(result: Any) -> bool:
    return result.__class__ is str and _ANSWER_ACCEPTED.match(result) is not None


def _is_cut(arguments: Any) -> bool:
    """Return True if arguments that can't be parsed begin like a JSON object, so they are truncated or malformed."""
    return isinstance(arguments, str) and arguments.lstrip()[:1] == "{"


# --- results of tools that failed or weren't approved

_FAILED_TEXT = ("error:", "error executing", "an error occurred", "traceback (most recent", "exception:", "tool error:")
_EXCEPTION = re.compile(r"(?:[a-z_]\w*\.)*([A-Z]\w*(?:Error|Exception|Timeout)): ?")
_NOT_A_TOOL_S = re.compile(
    r"max(?:imum)?[ _]?(?:number of )?(?:steps|turns|iterations|rounds|tokens)|(?:recursion|usage|request|token)s?[ _]?limit|rate[ _]?limit|"
    r"(?:error|status|code|http)\W{0,3}[45]\d\d\b|\b[45]\d\d\b \w{0,12} ?(?:request|server|error|gateway|unavailable)|statuserror|api\w{0,20}error|"
    r"server ?(?:had an ?)?error|unavailable|overloaded|too ?many ?requests|cancelled",
    re.IGNORECASE,
)
"""Matches error texts that come from a loop's limits or from a model, not from a tool."""
_LONGEST_REFUSAL = 300
"""Maximum characters of a tool result that only explains why the tool didn't run."""
_DECLINED = re.compile(
    r"\b(?:user|human|operator|reviewer)\b (?:has |have )?(?:declined|denied|rejected|refused|doesn't want|did(?:n't| not) (?:approve|allow|accept|confirm))\b|"
    r"\btool(?: call| use| execution| request)? (?:was |is |has been )?(?:denied|rejected|declined|not approved)\b",
    re.IGNORECASE,
)
_WAITS = re.compile(
    r"\btool(?: call| use| execution)? (?:is )?(?:requires?|needs?|awaits|awaiting|waiting for|pending)(?: \w+)? (?:approval|confirmation)\b",
    re.IGNORECASE,
)


def error_in(result: Any) -> ErrorInfo | None:
    """Return the error that a tool result contains (as text or in an object), or None."""
    if isinstance(result, str):
        result = unquoted(result)
    if isinstance(result, str):
        if result[:40].lower().startswith(_FAILED_TEXT):
            return ErrorInfo("tool_error", result[:200])
        exception = _EXCEPTION.match(result)
        if exception is not None:
            return ErrorInfo(exception[1], result[exception.end() :][:200])
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


def error_by_flag(raw: Any) -> ErrorInfo | None:
    """Return an error if a flag next to the result's content reports one. Pass the wrapped result, which has the flag."""
    if raw.__class__ is str:
        if raw[:1] != "{" or ("rror" not in raw[-200:] and "rror" not in raw[:200]):
            return None
        raw, _ = jsonio.loads_or_text(raw)
    if isinstance(raw, Mapping) and "content" in raw and says_failed(raw):
        return ErrorInfo("tool_error", jsonio.text_of(unwrap_result(raw))[:200])
    return None


def state_of(error: ErrorInfo | None, result: Any) -> ToolState:
    """Return ``declined`` if the call was refused, ``requested`` if approval is pending, or ``executed`` otherwise."""
    text = (error.message if error is not None and error.message else result) or ""
    if text.__class__ is not str or len(text) > _LONGEST_REFUSAL:
        return "executed"
    return "declined" if _DECLINED.search(text) else "requested" if _WAITS.search(text) else "executed"
