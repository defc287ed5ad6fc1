"""Parser for CrewAI's spans from OpenInference and OpenLLMetry. A CrewAI agent's ``role`` is used as the agent's name.

A crew's inputs (``{"question": "Why?"}``) and tasks (``[{"description": "Answer {question}"}]``) contain the user's words. In
OpenLLMetry, outputs are the ``repr`` of ``TaskOutput(…)``. CrewAI's product telemetry (``crewai.telemetry``) isn't part of a turn.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..core import jsonio
from ..core.forms import PLACE, filled_in
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
"""CrewAI's own tools for delegation. The agent that gets the work has spans below the tool's span."""
_INPUTS_OF_USER = (
    "question", "query", "user_query", "user_question", "input", "user_input", "user_message", "customer_message", "message",
    "user_request", "customer_request", "request", "prompt", "text", "task", "topic",
)  # fmt: skip
"""Usual names of crew inputs that contain the user's words, most likely name first. Developers can choose other names."""
# Parts of "TaskOutput(description='Answer Why?', …, messages=[{'role': 'user', 'content': '[…]'}])"
_TASK_TEXT = re.compile(r"""TaskOutput\(description=('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""", re.DOTALL)
_MESSAGES = ", messages=["
_STRING_OR_BRACKET = re.compile(r"""'(?:[^'\\]|\\.)*(?:'|\\?\Z)|"(?:[^"\\]|\\.)*(?:"|\\?\Z)|[\[\]]""", re.DOTALL)
_TOOL_CALL = re.compile(
    r"""ToolCall\(function=Function\(arguments=('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"), name='([^']*)'\), id='([^']*)'""", re.DOTALL
)
_TOKENS = re.compile(r"\b(prompt_tokens|completion_tokens)=(\d+)")
_LONGEST_TEMPLATE = 10_000


def role_of(attributes: Mapping[str, Any], scope: str, name: str) -> str | None:
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
            has_finished = "crew_tasks" in record.attributes or "crewai.crew.result" in record.attributes
            step.input_messages = _user_words(tasks, get("crew_inputs") or get("input.value"), outputs, has_finished)
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
        _read_tool_calls(get("gen_ai.output.messages"), step)


def _read_tool_calls(raw: Any, step: Step) -> None:
    """Read tool calls from a client library's ``repr``: ``ToolCall(function=Function(arguments='{}', name='f'), id='c1')``."""
    if raw.__class__ is str and "ToolCall(function=Function(arguments=" in raw:
        messages, _ = jsonio.loads_or_text(raw)
        tool_calls = [
            {"id": call_id, "name": name, "arguments": literal_in(arguments)}
            for text in _texts_in(messages)
            for arguments, name, call_id in _TOOL_CALL.findall(text)
        ]
        if tool_calls:
            step.output_messages = [{"role": "assistant", "content": None, "tool_calls": tool_calls}]


def _texts_in(messages: Any) -> Iterator[str]:
    for message in messages if isinstance(messages, list) else ():
        parts = message.get("parts") if isinstance(message, Mapping) else None
        for part in parts if isinstance(parts, list) else ():
            if isinstance(part, Mapping) and isinstance(part.get("content"), str):
                yield part["content"]


def _read_usage(raw: Any, step: Step) -> None:
    if raw.__class__ is str:
        tokens = dict(_TOKENS.findall(raw))
        step.input_tokens, step.output_tokens = as_int(tokens.get("prompt_tokens")), as_int(tokens.get("completion_tokens"))


def _read_output(raw: Any, step: Step) -> None:
    """Read the output of a crew, a task, or an agent. Skip a flow's output, because the flow's methods can return any value."""
    if step.output_messages is None and raw.__class__ is str and '"raw":' in raw and '"pydantic":' in raw:
        step.output_messages = raw


def _loaded(raw: Any) -> Any:
    return jsonio.loads_or_text(raw)[0] if raw.__class__ is str and raw[:1] in ("{", "[") else None


def _user_words(tasks: Any, raw_inputs: Any, outputs: Any, has_finished: bool) -> str | None:
    """Return the user's words or None. Sources, in order: a crew input such as ``question``, a single crew input, the main task."""
    index, template = _main_task(tasks)
    has_places = template is not None and PLACE.search(template) is not None
    inputs = _loaded(raw_inputs)
    if not isinstance(inputs, Mapping):
        if raw_inputs is None and template is not None and not has_places:  # already filled in, maybe by an earlier run
            return _task_text(outputs, index) or (template if has_finished else None)
        inputs = {}
        if template is not None and has_places and len(template) <= _LONGEST_TEMPLATE:
            # OpenLLMetry writes no inputs: "Answer {question}" and "Answer Why?" → {"question": "Why?"}
            task_text = _task_text(outputs, index)
            inputs = (filled_in(template, task_text) if task_text is not None else None) or {}
    only_input = inputs.values() if len(inputs) == 1 else ()
    for candidate in (*map(inputs.get, _INPUTS_OF_USER), *only_input):
        if (words := as_text(candidate)) is not None:
            return words
    if template is None or (has_places and not inputs):
        return None
    return PLACE.sub(lambda place: str(inputs.get(place[1], place[0])), template)


def _main_task(raw_tasks: Any) -> tuple[int, str | None]:
    """Return the index and text of the main task: the first task with a placeholder such as ``{question}``, or the first task."""
    tasks = _loaded(raw_tasks)
    texts = [as_text(task.get("description")) for task in tasks if isinstance(task, Mapping)] if isinstance(tasks, list) else []
    index = next((index for index, text in enumerate(texts) if text is not None and PLACE.search(text)), 0)
    return index, texts[index] if texts else None


def _task_text(outputs: Any, index: int) -> str | None:
    quoted_texts = _TASK_TEXT.findall(outputs) if outputs.__class__ is str else []
    return as_text(literal_in(quoted_texts[index])) if index < len(quoted_texts) else None


def _messages_of_tasks(outputs: str) -> list[Any]:
    """Return the messages in the ``repr`` of a crew's task outputs. Skip calls that delegate work to another agent."""
    all_messages: list[Any] = []
    position = outputs.find(_MESSAGES)
    while position >= 0:
        start = position + len(_MESSAGES) - 1
        end = _end_of_list(outputs, start)
        messages = literal_in(outputs[start:end])
        all_messages += messages if isinstance(messages, list) else []
        position = outputs.find(_MESSAGES, max(end, start + 1))
    return [_without_delegation(message) for message in all_messages if isinstance(message, dict)]


def _end_of_list(text: str, start: int) -> int:
    """Return the index after the list that begins at ``start``. If the text is truncated, return the text's length."""
    depth = 0
    for token in _STRING_OR_BRACKET.finditer(text, start):
        if token[0] == "[":
            depth += 1
        elif token[0] == "]":
            depth -= 1
            if depth == 0:
                return token.end()
    return len(text)


def _without_delegation(message: dict[str, Any]) -> dict[str, Any]:
    tool_calls = message.get("tool_calls")
    if not isinstance(tool_calls, list):
        return message
    names = [as_text(object_in(object_in(call).get("function")).get("name")) for call in tool_calls]
    return {**message, "tool_calls": [call for call, name in zip(tool_calls, names, strict=True) if name not in _DELEGATING]}
