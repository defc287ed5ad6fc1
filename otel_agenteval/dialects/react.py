"""Parse tool calls and results that frameworks write as text in messages.

smolagents writes tool calls after the model's text and ``Calling tools:``. Other frameworks write tool calls after ``Tool calls:``.
Like ReAct agents, smolagents writes results after ``Observation:``. smolagents appends errors to the preceding message.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..core import literals
from ..core.turn import Message, ToolRequest, ToolResponse

_CALLS = re.compile(r"(?:^|\n)(?:Calling tools:\n|Tool calls: )(?=\[)")
_OBSERVED = "Observation:"
_TASK = "New task:\n"
_RETRY = "If you have retried several times, try a completely different approach."
_FAILED = "\nError:\n"
_ADVICE = "\nNow let's retry: take care not to repeat previous errors!"
_TOOL = re.compile(r"Error executing tool '([^']+)'")
_LONGEST = 100_000


def read_assistant(message: Message) -> None:
    """Move tool calls from the end of a model's text to the message's ``tool_calls``."""
    text = message.content or ""
    marker = None if message.tool_calls else next(reversed([*_CALLS.finditer(text)]), None)
    if marker is None or len(text) - marker.end() > _LONGEST:
        return
    try:
        found = literals.python_literal(text[marker.end() :])
    except ValueError:
        return
    requests = [_request(call) for call in found if isinstance(call, Mapping)]
    if requests and all(request.name for request in requests):
        message.tool_calls = requests
        message.content = text[: marker.start()].rstrip("\n") or None


def _request(call: Mapping[str, Any]) -> ToolRequest:
    function = call.get("function")
    fields = function if isinstance(function, Mapping) else call
    name, call_id = fields.get("name"), call.get("id")
    return ToolRequest(
        call_id if isinstance(call_id, str) else None,
        name if isinstance(name, str) else None,
        fields.get("arguments", fields.get("args")),
    )


def read_user(message: Message, before: list[Message]) -> Message:
    """Split a user message into tool results, errors, and user text. Return the last message, and add the others to ``before``."""
    text, failures = _without_failures(message.content or "")
    if not failures:
        return _observed_or_asked(message, text, before)
    if text:
        before.append(_observed_or_asked(Message(message.role, text, name=message.name), text, before))
    found = [_failed(failure) for failure in failures]
    before += found[:-1]
    return found[-1]


def _observed_or_asked(message: Message, text: str, before: list[Message]) -> Message:
    if text.startswith(_OBSERVED) and before and before[-1].role == "assistant":
        return Message("tool", text, tool_results=_observations(text[len(_OBSERVED) :].strip(), before[-1]))
    if text.startswith(_TASK):
        message.content = text[len(_TASK) :]
    return message


def _failed(failure: str) -> Message:
    if (named := _TOOL.match(failure)) is None:  # the framework couldn't parse the model's text
        return Message("system", failure)
    return Message("tool", failure, tool_results=[ToolResponse(None, named[1], failure)])


def _without_failures(text: str) -> tuple[str, list[str]]:
    failures: list[str] = []
    end, advice = len(text), text.find(_ADVICE)
    while 0 <= advice < end and text.endswith((_RETRY, f"{_RETRY}\n"), 0, end):
        at = text.rfind(_FAILED, 0, end)
        start = at + len(_FAILED)
        if at < 0:
            if not text.startswith(_FAILED[1:]):
                break
            at, start = 0, len(_FAILED) - 1
        failures.append(text[start:end].partition(_ADVICE)[0])
        end = at
    return text[:end], failures[::-1]


def _observations(text: str, asked: Message) -> list[ToolResponse]:
    """Return one result per call, or one without calls. A result is the whole text or, if there is one line per call, a line."""
    calls = asked.tool_calls
    lines = text.split("\n")
    if len(calls) < 2:
        return [ToolResponse(calls[0].call_id if calls else None, None, text)]
    parts = lines if len(lines) == len(calls) else [text] * len(calls)
    return [ToolResponse(call.call_id, call.name, part) for call, part in zip(calls, parts, strict=True)]


INTERPRETER = "python_interpreter"
"""Tool that runs a code agent's code. Calls to this tool don't count as tool calls, but the code can call other tools."""
_LOGGED = "Execution logs:\n"
_LAST = "\nLast output from code snippet:\n"


def calls_in_code(code: Any, parameters: Mapping[str, Sequence[str]]) -> list[ToolRequest]:
    """Return the tool calls in code that an agent wrote, in order. ``parameters`` maps each tool to its parameter names."""
    if not isinstance(code, str) or len(code) > _LONGEST:
        return []
    try:
        tree = literals.python_tree(code, "exec")
    except ValueError:
        return []
    calls = [
        (node, node.func.id)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in parameters
    ]
    calls.sort(key=lambda found: (found[0].end_lineno or 0, found[0].end_col_offset or 0))
    return [ToolRequest(None, name, _literal_arguments(call, parameters[name])) for call, name in calls]


def _literal_arguments(call: ast.Call, names: Sequence[str]) -> dict[str, Any] | None:
    arguments = dict(zip(names, call.args, strict=False))
    arguments |= {word.arg: word.value for word in call.keywords if word.arg is not None}
    try:
        return {name: literals.python_literal(value) for name, value in arguments.items()}
    except ValueError:
        return None


def printed(observation: Any) -> Any:
    """Return the text that an agent's code printed, or its last value if there is none. Return other observations unchanged."""
    if not isinstance(observation, str) or not observation.startswith(_LOGGED):
        return observation
    logs, _, last = observation[len(_LOGGED) :].partition(_LAST)
    return logs.strip() or last.strip()
