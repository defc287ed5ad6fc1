"""Parser for OpenLIT, which writes the GenAI convention's attributes and some older attributes.

A decorated function has ``function.args`` and ``function.kwargs`` as a Python ``repr``, and its result in the message attributes.
Before version 1.36, prompts were ``role: text`` lines, tool calls were separate from the answer, and LangChain's calls had two
spans, with token counts estimated from texts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..core.wellformed import Later
from ..spans.record import SpanRecord
from .attributes import as_text
from .generic.values import opened, python_value
from .otel_genai import OPERATIONS
from .step import AGENT, CHAIN, INNER, LLM, TOOL, Step

MARKS = frozenset((
    "function.args", "gen_ai.application_name", "gen_ai.sdk.version", "openlit.agent.version_hash", "gen_ai.tool.args",
    "gen_ai.response.tool_calls", "gen_ai.workflow.input",
))  # fmt: skip
SCOPES = re.compile(r"openlit\b")
_LINE = re.compile(r"^(system|user|assistant|tool|developer|function|human|ai|model): ?", re.MULTILINE)
_WITHOUT_START = re.compile(r"openlit\.(?:otel\.tracing$|instrumentation\.)")
_NODES = frozenset(("model", "tools", "agent", "__start__", "model_request", "call_model"))
"""Names of the graph nodes in a LangChain agent's loop."""


def role_of(attributes: Mapping[str, Any], scope: str, name: str) -> str | None:
    """Return the role of a function, a graph or its node, or a failed call without attributes. Return None for other spans."""
    if "function.args" in attributes or scope == "openlit":
        return CHAIN
    if _WITHOUT_START.match(scope) and "gen_ai.operation.name" not in attributes:
        return OPERATIONS.get(name.partition(" ")[0])
    if scope == "openlit.instrumentation.langgraph" and attributes.get("gen_ai.operation.name") == "invoke_agent":
        agent = attributes.get("gen_ai.agent.name")
        return INNER if agent.__class__ is str and (agent in _NODES or "." in agent) else AGENT
    return None


def read(record: SpanRecord, step: Step) -> None:
    attributes = record.attributes
    get = attributes.get
    role = step.role
    if role == CHAIN and record.scope == "openlit":
        step.function = True
    if "function.args" in attributes:
        step.input_messages = Later(_call, (get("function.args"), get("function.kwargs")))
        raw_output = get("gen_ai.output.messages")
        raw_output = get("gen_ai.completion") if raw_output is None else raw_output
        step.output_messages = [] if raw_output is None or raw_output == "None" else raw_output
    elif role == LLM:
        _read_call(record, step)
    elif role == AGENT:
        if step.input_messages is None and "gen_ai.input.messages" not in attributes:
            step.input_messages = get("gen_ai.workflow.input")
        if step.output_messages is None and "gen_ai.output.messages" not in attributes and "gen_ai.workflow.output" in attributes:
            step.output_messages = Later(_state, get("gen_ai.workflow.output"))
    elif role == TOOL and step.tool_arguments is None:
        step.tool_arguments = get("gen_ai.tool.call.arguments", get("gen_ai.tool.args"))
    elif role == INNER and record.scope == "openlit.instrumentation.langgraph":
        step.agent = ""  # a node, although it has an agent's name


def _call(args_and_kwargs: tuple[Any, Any]) -> Any:
    args, kwargs = (python_value(value) if isinstance(value, str) else value for value in args_and_kwargs)
    return {"args": args if isinstance(args, list) else [], "kwargs": kwargs if isinstance(kwargs, Mapping) else {}}


def _state(raw: Any) -> Any:
    """Return the messages in a graph's state, which is a Python ``repr``. Return the parsed state if it has no messages."""
    value = opened(raw)
    found = value.get("messages") if isinstance(value, Mapping) else None
    return [opened(item) for item in found] if isinstance(found, list) else value


def _read_call(record: SpanRecord, step: Step) -> None:
    get = record.attributes.get
    if "gen_ai.operation.name" not in record.attributes:
        step.model = record.name.partition(" ")[2] or None
    step.guesses_tokens = get("gen_ai.system") == "langchain" and record.scope == "openlit.otel.tracing"
    prompt = answer = None
    for event in record.events:
        if event.name == "gen_ai.content.prompt":
            prompt = event.attributes.get("gen_ai.prompt")
        elif event.name == "gen_ai.content.completion":
            answer = event.attributes.get("gen_ai.completion")
    if prompt is None:
        prompt = as_text(get("gen_ai.content.prompt"))
    if answer is None:
        answer = as_text(get("gen_ai.content.completion"))
    calls = get("gen_ai.response.tool_calls")
    if step.input_messages is None and prompt is not None:
        step.input_messages = Later(_prompt, prompt)
    if step.output_messages is None and (answer or calls not in (None, "None")):
        step.output_messages = Later(_answer, (answer, calls))


def _prompt(raw: Any) -> Any:
    """Convert ``role: text`` lines to messages. A text can have several lines. Only parse other values."""
    value = opened(raw.removeprefix("messages=") if isinstance(raw, str) else raw)
    if not isinstance(value, str) or _LINE.match(value) is None:
        return value
    parts = _LINE.split(value)[1:]
    return [{"role": role, "content": text.removesuffix("\n")} for role, text in zip(parts[::2], parts[1::2], strict=True)]


def _answer(text_and_calls: tuple[Any, Any]) -> Any:
    text, calls = text_and_calls
    found = opened(calls) if isinstance(calls, str) and calls != "None" else calls
    found = [found] if isinstance(found, Mapping) else found
    content = None if text in ("", "None", None) and found else text
    return [{"role": "assistant", "content": content, "tool_calls": found if isinstance(found, list) else []}]
