"""Parser for JetBrains Koog.

Koog writes the GenAI convention's attributes, and ``koog.*`` spans for an agent's steps. The scope name is the application's
service name. An agent's span repeats the initial prompt, but doesn't contain the user's message, the answer, or token counts.
Unless the application calls ``setVerbose(true)``, ``HIDDEN:non-empty`` replaces content.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from ..core import jsonio
from ..core.wellformed import Later
from ..spans.record import SpanRecord
from .attributes import as_text
from .content import HIDDEN
from .step import AGENT, INNER, LLM, TOOL, Step

MARKS = frozenset((
    "koog.event.id", "koog.strategy.name", "koog.node.id", "koog.node.name", "koog.node.input", "koog.subgraph.id", "koog.subgraph.name",
))  # fmt: skip
SCOPES = re.compile(r"ai\.koog\b")


def role_of(attributes: Mapping[str, Any], scope: str, name: str) -> str | None:
    """Return ``INNER`` for a span without an operation, which is an agent's step. Return None for other spans."""
    return None if "gen_ai.operation.name" in attributes else INNER


def read(record: SpanRecord, step: Step) -> None:
    """Read Koog's own attributes. The GenAI convention's dialect reads the other attributes."""
    get = record.attributes.get
    step.framework = "koog"
    if step.role == AGENT:
        step.agent = as_text(get("gen_ai.agent.name")) or as_text(get("gen_ai.agent.id"))
        step.input_messages = Later(_questions, step.input_messages)
        step.output_messages = Later(_answer, step.output_messages)
    elif step.role == LLM:
        step.input_messages, step.output_messages = Later(_messages, step.input_messages), Later(_messages, step.output_messages)
        reasons = get("gen_ai.response.finish_reasons")
        if step.finish_reason is None and reasons.__class__ is str:  # the text of a list
            step.finish_reason = reasons.strip("[]").partition(",")[0] or None
        step.system = get("system_instructions")
    elif step.role == TOOL:
        step.tool_arguments = None if step.tool_arguments in HIDDEN else step.tool_arguments
        step.tool_result = None if step.tool_result in HIDDEN else step.tool_result


def _messages(raw: Any) -> Any:
    """Convert Koog's enum names to the convention's message roles. Omit empty messages, such as a tool message if no tool ran."""
    messages = jsonio.loads_or_text(raw)[0] if raw.__class__ is str and raw[:1] == "[" else raw
    if not isinstance(messages, list):
        return messages
    return [
        {**message, "role": str(message.get("role")).lower()}
        for message in messages
        if isinstance(message, Mapping) and message.get("parts") != []
    ]


def _messages_of(raw: Any, role: str) -> Any:
    messages = _messages(raw)
    return [message for message in messages if message["role"] == role] if isinstance(messages, list) else messages


_questions = partial(_messages_of, role="user")


def _answer(raw: Any) -> Any:
    found = _messages_of(raw, "assistant")
    return found[-1:] if isinstance(found, list) else found
