"""Parser for AutoGen's runtime, which writes one span per message, with the message as JSON text.

Each message is a separate trace. If agents form a team, the team's ID in the messages' addresses connects these traces.
Agents and tools also have spans in the GenAI convention's format.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..core.wellformed import Later
from ..spans.record import SpanRecord
from .attributes import as_int, as_text
from .payloads import object_in
from .step import AGENT, INNER, LLM, SETUP, WORKFLOW, Step

MARKS: frozenset[str] = frozenset()
SCOPES = re.compile(r"autogen( |-core\b)")
_TEAM = re.compile(r"_([0-9a-f-]{36})(?:\.\(|/)\1")
"""Pattern for a team's ID. A message's address contains the ID twice: after the agent's name, and as the agent instance's key."""
_USED = '"models_usage":{'


def role_of(attributes: Mapping[str, Any], scope: str, name: str) -> str | None:
    """Return the role of a message's span based on the recipient and content, ``SETUP`` for an agent's creation, or None."""
    if not scope.startswith("autogen "):
        return SETUP if name.startswith("create_agent") and scope == "autogen-core" else None
    message = attributes.get("message")
    if message.__class__ is not str:
        return None
    if name.startswith("autogen ack"):
        return WORKFLOW if message[:1] == "{" and _TEAM.search(str(attributes.get("sender_agent_type"))) is None else None
    if _TEAM.search(str(attributes.get("messaging.destination"))) is None:
        return AGENT if attributes.get("recipient_agent_class") not in (None, "ClosureAgent") else INNER
    if not str(attributes.get("recipient_agent_class")).endswith("Manager"):
        return INNER  # agents of the team also have their own spans
    return LLM if message.startswith('{"message":') and _USED in message else WORKFLOW


def read(record: SpanRecord, step: Step) -> None:
    if SCOPES.match(record.scope) is None:
        return
    step.framework = step.framework or "autogen"
    get = record.attributes.get
    address = as_text(get("messaging.destination")) or as_text(get("gen_ai.agent.id")) or ""
    if (team := _TEAM.search(address)) is not None:
        step.thread = team[1]
        step.conversation_id = step.conversation_id or team[1]
    message = get("message")
    if message.__class__ is not str or message[:1] != "{":
        return
    if team is None:
        _read_own_message(record, step, message)
    elif step.role == LLM:
        _read_model_call(step, message)
    elif step.role == WORKFLOW:  # a message of the team
        if message.startswith('{"messages":'):
            step.begins = True
            step.input_messages = Later(_task, message)
        elif message.startswith('{"response":'):
            value = object_in(object_in(message).get("response"))
            step.final_result = as_text(object_in(value.get("chat_message")).get("content"))
        elif message.startswith('{"message":') and '"ToolCallExecutionEvent"' in message:
            step.output_messages = Later(_spoken_message, message)


def _read_model_call(step: Step, text: str) -> None:
    """Read a model call's token counts and answer from an agent's message to its team."""
    step.secondhand = True
    message = object_in(object_in(text).get("message"))
    usage = object_in(message.get("models_usage"))
    input_tokens, output_tokens = as_int(usage.get("prompt_tokens")), as_int(usage.get("completion_tokens"))
    if input_tokens or output_tokens:  # 0 for streamed answers
        step.input_tokens, step.output_tokens = input_tokens, output_tokens
    step.output_messages = Later(_spoken_message, text)
    step.agent = step.agent or as_text(message.get("source"))


def _read_own_message(record: SpanRecord, step: Step, text: str) -> None:
    """Read a message whose type the application defines. The answer is in a separate trace with only the sender's address."""
    get = record.attributes.get
    step.thread = "core"
    if record.name.startswith("autogen ack"):
        step.final_result = _only_text(text)
        return
    if step.role != AGENT:
        return
    step.agent = as_text(get("recipient_agent_type"))
    context = object_in(str(get("message_context")))
    step.begins = context.get("sender") in (None, "None")
    _, _, key = str(get("messaging.destination")).partition(".(")
    if key.endswith(")-A") and key != "default)-A":
        step.conversation_id = key.removesuffix(")-A")
    step.input_messages = _only_text(text)


def _only_text(text: str) -> str | None:
    value = object_in(text)
    content = value.get("content")
    texts = [item for item in value.values() if item.__class__ is str]
    return content if content.__class__ is str else texts[0] if len(texts) == 1 else None


def _task(text: str) -> list[dict[str, Any]]:
    messages = object_in(text).get("messages")
    return [
        {"role": "user" if message.get("source") == "user" else "assistant", "content": message.get("content")}
        for message in (messages if isinstance(messages, list) else ())
        if isinstance(message, Mapping)
    ]


def _spoken_message(text: str) -> list[dict[str, Any]]:
    message = object_in(object_in(text).get("message"))
    content = message.get("content")
    if not isinstance(content, list):
        return [{"role": "assistant", "content": content}]
    if message.get("type") == "ToolCallExecutionEvent":
        return [
            {
                "role": "tool", "tool_call_id": item.get("call_id"), "name": item.get("name"),
                "content": {"error": item.get("content")} if item.get("is_error") is True else item.get("content"),
            }
            for item in content
            if isinstance(item, Mapping)
        ]  # fmt: skip
    return [{"role": "assistant", "content": None, "tool_calls": [item for item in content if isinstance(item, Mapping)]}]
