"""Parser for CrewAI. The request is in the crew's inputs and tasks.

Roles name the agents. OpenInference and OpenLLMetry write the spans. This dialect parses their CrewAI
attributes. CrewAI's anonymous product telemetry (scope ``crewai.telemetry``) isn't part of any turn.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..core import jsonio
from ..core.forms import PLACE, filled_in, places
from ..core.wellformed import Later
from ..spans.record import SpanRecord
from .attributes import as_int, as_text
from .payloads import literal_in, object_in
from .step import AGENT, CHAIN, INNER, LLM, WORKFLOW, Step

MARKS = frozenset(("crewai.crew.tasks", "crewai.task.description", "crewai.agent.role"))
SCOPES = re.compile(r"(openinference|opentelemetry)\.instrumentation\.crewai(\.|$)")

_DELEGATING = frozenset(
    ("Delegate work to coworker", "Ask question to coworker", "delegate_work_to_coworker", "ask_question_to_coworker")
)
"""CrewAI's own tools that delegate. Another agent of the crew works below their spans."""
_QUESTIONS = (
    "question", "query", "user_query", "user_question", "input", "user_input", "user_message", "customer_message", "message",
    "user_request", "customer_request", "request", "prompt", "text", "task", "topic",
)  # fmt: skip
"""Names of crew inputs that contain the user's words, in order of priority. Developers choose input names freely."""
_FILLED = re.compile(r"""TaskOutput\(description=('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""", re.DOTALL)
_MESSAGES = ", messages=["
_BRACKETS = re.compile(r"""'(?:[^'\\]|\\.)*(?:'|\\?\Z)|"(?:[^"\\]|\\.)*(?:"|\\?\Z)|[\[\]]""", re.DOTALL)
_CALLS = re.compile(
    r"""ToolCall\(function=Function\(arguments=('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"), name='([^']*)'\), id='([^']*)'""", re.DOTALL
)
_USED = re.compile(r"\b(prompt_tokens|completion_tokens)=(\d+)")
_LONGEST_TEMPLATE = 10_000


def role_of(attributes: Mapping[str, Any], scope: str, name: str) -> str | None:
    """Return INNER for a task, WORKFLOW for a crew and AGENT for a delegation."""
    if attributes.get("traceloop.span.kind") == "task":
        return INNER
    if name == "crewai.workflow":
        return WORKFLOW
    return AGENT if as_text(attributes.get("tool.name")) in _DELEGATING else None


def read(record: SpanRecord, step: Step) -> None:
    get = record.attributes.get
    step.framework = "crewai"
    role = step.role
    if role == AGENT:
        step.agent = as_text(get("graph.node.id")) or as_text(get("crewai.agent.role"))
        if step.agent is None and as_text(get("tool.name")) in _DELEGATING:
            step.agent = as_text(object_in(get("input.value")).get("coworker"))
        _read_output(get("output.value"), step)
    elif role in (CHAIN, WORKFLOW):
        tasks = get("crew_tasks") or get("crewai.crew.tasks")
        if tasks is not None and step.input_messages is None:
            outputs = get("crewai.crew.tasks_output")
            finished = "crew_tasks" in record.attributes or "crewai.crew.result" in record.attributes
            step.input_messages = _user_words(tasks, get("crew_inputs") or get("input.value"), outputs, finished)
            if outputs.__class__ is str and "messages=[" in outputs:
                step.output_messages = Later(_messages_of_tasks, outputs)
            step.workflow = as_text(get("crewai.crew.name"))
            _read_usage(get("crewai.crew.token_usage"), step)
        if step.final_result is None:
            step.final_result = get("crewai.crew.result")
        _read_output(get("output.value"), step)
    elif role == INNER:
        if step.input_messages is None:  # the task with its inputs, even if the run failed
            step.input_messages = get("crewai.task.description")
    elif role == LLM:
        model = as_text(get("gen_ai.request.model"))
        provider = get("gen_ai.provider.name")
        if model is not None and provider.__class__ is str and model.startswith(f"{provider}/"):
            step.model = model[len(provider) + 1 :]  # LiteLLM writes ``provider/model``
        _read_calls(get("gen_ai.output.messages"), step)


def _read_calls(raw: Any, step: Step) -> None:
    """Fill tool requests from the ``str`` of the client's objects, written in place of a text."""
    if raw.__class__ is str and "ToolCall(function=Function(arguments=" in raw:
        value, _ = jsonio.loads_or_text(raw)
        calls = [
            {"id": call_id, "name": name, "arguments": literal_in(arguments)}
            for text in _texts_in(value)
            for arguments, name, call_id in _CALLS.findall(text)
        ]
        if calls:
            step.output_messages = [{"role": "assistant", "content": None, "tool_calls": calls}]


def _texts_in(messages: Any) -> list[str]:
    found = [message.get("parts") for message in messages if isinstance(message, Mapping)] if isinstance(messages, list) else []
    parts = [part for inner in found if isinstance(inner, list) for part in inner if isinstance(part, Mapping)]
    return [part["content"] for part in parts if isinstance(part.get("content"), str)]


def _read_usage(raw: Any, step: Step) -> None:
    """Fill the whole run's token counts from ``name=number`` pairs."""
    if raw.__class__ is str:
        used = dict(_USED.findall(raw))
        step.input_tokens, step.output_tokens = as_int(used.get("prompt_tokens")), as_int(used.get("completion_tokens"))


def _read_output(raw: Any, step: Step) -> None:
    """Fill the output of a crew, a task or an agent. A flow's method can return anything."""
    if step.output_messages is None and raw.__class__ is str and '"raw":' in raw and '"pydantic":' in raw:
        step.output_messages = raw


def _loaded(raw: Any) -> Any:
    return jsonio.loads_or_text(raw)[0] if raw.__class__ is str and raw[:1] in ("{", "[") else None


def _user_words(tasks: Any, inputs: Any, outputs: Any, finished: bool) -> str | None:
    """Return the user's words: a known input, the only input, or the first task's text."""
    index, template = _task_of(tasks)
    values = _loaded(inputs)
    if not isinstance(values, Mapping):
        if inputs is None and template is not None and not PLACE.search(template):  # a second run keeps old inputs
            return _task_text(outputs, index) or (template if finished else None)
        values = {}
        if template is not None and places(template) and len(template) <= _LONGEST_TEMPLATE:
            # OpenLLMetry doesn't write inputs: they are the difference between a task's template and its filled-in text.
            text = _task_text(outputs, index)
            values = (filled_in(template, text) if text is not None else None) or {}
    for name in _QUESTIONS:
        text = as_text(values.get(name))
        if text is not None:
            return text
    if len(values) == 1:
        text = as_text(next(iter(values.values())))
        if text is not None:
            return text
    if template is None:
        return None
    filled = PLACE.sub(lambda field: str(values.get(field[1], field[0])), template)
    return filled if values or not PLACE.search(template) else None


def _task_of(tasks: Any) -> tuple[int, str | None]:
    """Return index and text of the first task with a placeholder, or of the first task."""
    found = _loaded(tasks)
    texts = [as_text(task.get("description")) for task in found if isinstance(task, Mapping)] if isinstance(found, list) else []
    index = next((index for index, text in enumerate(texts) if text is not None and PLACE.search(text)), 0)
    return index, texts[index] if texts else None


def _task_text(outputs: Any, index: int) -> str | None:
    """Return the filled-in text of a task that ran."""
    found = _FILLED.findall(outputs) if outputs.__class__ is str else []
    return as_text(literal_in(found[index])) if index < len(found) else None


def _messages_of_tasks(outputs: str) -> list[Any]:
    """Return the messages of tasks from their objects' text, without delegations, which are runs of other agents."""
    found: list[Any] = []
    at = outputs.find(_MESSAGES)
    while at >= 0:
        start = at + len(_MESSAGES) - 1
        end = _end_of_list(outputs, start)
        messages = literal_in(outputs[start:end])
        found += messages if isinstance(messages, list) else []
        at = outputs.find(_MESSAGES, max(end, start + 1))
    return [_without_delegation(message) for message in found if isinstance(message, dict)]


def _end_of_list(text: str, start: int) -> int:
    """Return the end of the list that begins at ``start``. Brackets inside texts don't count."""
    depth = 0
    for token in _BRACKETS.finditer(text, start):
        if token[0] == "[":
            depth += 1
        elif token[0] == "]":
            depth -= 1
            if depth == 0:
                return token.end()
    return len(text)


def _without_delegation(message: dict[str, Any]) -> dict[str, Any]:
    calls = message.get("tool_calls")
    if not isinstance(calls, list):
        return message
    kept = [call for call in calls if as_text(object_in(object_in(call).get("function")).get("name")) not in _DELEGATING]
    return {**message, "tool_calls": kept}
