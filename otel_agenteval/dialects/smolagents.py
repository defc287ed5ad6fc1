"""Parser for smolagents under OpenInference.

Tool arguments are written as Python binds them, and streamed runs as the ``repr`` of their objects.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..core import jsonio, python_text
from ..core.later import Later
from ..spans.record import SpanRecord
from .step import AGENT, LLM, TOOL, Step

MARKS = frozenset(("smolagents.max_steps",))
SCOPES = re.compile(r"openinference\.instrumentation\.smolagents")
_STREAMED = re.compile(r"(ChatMessage\w*|ToolCall|ToolOutput|ActionStep|ActionOutput|PlanningStep|FinalAnswerStep)\(")
_UNNAMED = frozenset(("ToolCallingAgent", "CodeAgent", "MultiStepAgent"))
"""Framework classes that are written for agents without a name."""
_LAST_CHUNK = "FinalAnswerStep(output="
_BEFORE_TASK = "New task:\n"


def role_of(attributes: Mapping[str, Any], scope: str, name: str) -> str | None:
    """Return None, because OpenInference's dialect reads the role."""
    return None


def read(record: SpanRecord, step: Step) -> None:
    """Correct the facts that OpenInference's dialect reads from this framework's spans."""
    if step.role == AGENT:
        _read_run(record, step)
    elif step.role == TOOL:
        _name_positional(record.attributes, step)
    elif step.role == LLM and step.input_messages.__class__ is Later:
        step.input_messages = Later(_task_messages, step.input_messages)


def _read_run(record: SpanRecord, step: Step) -> None:
    name = record.name.removesuffix(".run")
    if step.agent is None or step.agent == record.name:
        step.agent = name if name and name not in _UNNAMED else None
    # ``smolagents.task`` is set before the run starts, so it still contains the previous run's task.
    given = record.attributes.get("input.value")
    if given.__class__ is str and given[:1] == "{" and step.input_messages is None:
        step.input_messages = Later(_task, given)
    answered = step.output_value
    if answered.__class__ is str and _STREAMED.match(answered):
        step.output_value = None
        if _LAST_CHUNK in answered:
            step.output_messages = Later(_last_chunk, answered)
    if any(event.name == "exception" for event in record.events):  # a streamed run always ends with status OK
        step.tool_failed = True


def _task_messages(given: Later) -> Any:
    messages = given.reader(given.raw)
    for message in messages:
        if isinstance(message, dict) and message.get("role") == "user":
            _strip_lead(message)
    return messages


def _task(raw: Any) -> Any:
    value, _ = jsonio.loads_or_text(raw)
    task = value.get("task") if isinstance(value, dict) else None
    return {"role": "user", "content": task} if isinstance(task, str) else None


def _last_chunk(raw: Any) -> Any:
    """Return the answer from the last object in the ``repr`` of a streamed run's objects."""
    text = raw[raw.rindex(_LAST_CHUNK) + len(_LAST_CHUNK) :].removesuffix(")")
    try:
        value = python_text.literal(text)
    except ValueError:
        value = text
    return {"role": "assistant", "content": jsonio.text_of(value)}


def _name_positional(attributes: Mapping[str, Any], step: Step) -> None:
    """Name positional tool arguments by the tool's parameters.

    Code that an agent wrote can pass them.
    """
    raw = step.tool_arguments
    if raw.__class__ is not str or not raw.startswith('{"args": [') or raw.startswith('{"args": []'):
        return
    call, _ = jsonio.loads_or_text(raw)
    parameters = attributes.get("tool.parameters")
    names, _ = jsonio.loads_or_text(parameters) if isinstance(parameters, str) else (None, False)
    if not isinstance(call, dict) or not isinstance(names, dict) or not isinstance(call.get("args"), list):
        return
    named = call.get("kwargs")
    step.tool_arguments = {**dict(zip(names, call["args"], strict=False)), **(named if isinstance(named, dict) else {})}


def _strip_lead(message: dict[str, Any]) -> None:
    content = message.get("content")
    if isinstance(content, list) and content and isinstance(content[0], dict):
        text = content[0].get("text")
        if isinstance(text, str):
            content[0]["text"] = text.removeprefix(_BEFORE_TASK)
    elif isinstance(content, str):
        message["content"] = content.removeprefix(_BEFORE_TASK)
