"""Parser for Claude Code and the Claude Agent SDK: ``claude_code.*`` spans and log events.

Spans contain prompts and tool data only if the user enabled content capture. The answer is in a log event or, with detailed
tracing, in the model call's span. Input token counts don't include tokens that are read from or written to the cache.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..core.turn import ErrorInfo
from ..spans.record import SpanRecord
from .attributes import as_float, as_int, as_text
from .step import AGENT, LLM, SETUP, TOOL, Step

MARKS: frozenset[str] = frozenset()
SCOPES = re.compile(r"com\.anthropic\.claude_code\b")
_ROLES = {
    "claude_code.interaction": AGENT, "claude_code.llm_request": LLM, "claude_code.tool": TOOL,
    "claude_code.tool.execution": TOOL, "claude_code.tool.blocked_on_user": TOOL,
}  # fmt: skip
_PHASE = "claude_code.tool."
_HELD_BACK = "<REDACTED>"


def role_of(attributes: Mapping[str, Any], scope: str, name: str) -> str | None:
    """Return the role for a span's name. Tools that run subagents are agents, and calls that only create titles are ``SETUP``."""
    role = _ROLES.get(name)
    if role == TOOL and "subagent_type" in attributes:
        return AGENT
    return SETUP if role == LLM and attributes.get("llm_request.context") == "standalone" else role


def read(record: SpanRecord, step: Step) -> None:
    get = record.attributes.get
    step.framework = "claude-code"
    if step.role == AGENT:
        step.agent, step.input_value = as_text(get("subagent_type")), as_text(get("user_prompt"))
    elif step.role == LLM:
        _read_request(get, step)
    elif step.role == TOOL:
        _read_tool(record, step)
    for log in record.logs or ():
        _read_log(log.name.removeprefix("claude_code."), log.attributes, step)
    if get("success") is False and step.error is None:
        step.error = ErrorInfo(as_text(get("error.type")) or "error", as_text(get("error")))


def _read_log(event: str, fields: Mapping[str, Any], step: Step) -> None:
    if event == "tool_result" and "tool_input" in fields:
        if (call_id := as_text(fields.get("tool_use_id"))) is not None:
            step.tool_inputs = {**(step.tool_inputs or {}), call_id: fields["tool_input"]}
    elif step.role == AGENT and event == "assistant_response":
        answer = as_text(fields.get("response"))
        if answer is not None and answer != _HELD_BACK:
            step.final_result = answer
    elif step.role == AGENT and event == "api_request" and (cost := as_float(fields.get("cost_usd"))) is not None:
        step.cost_usd = cost + (step.cost_usd or 0.0)


def _read_request(get: Any, step: Step) -> None:
    step.model = as_text(get("gen_ai.response.model")) or as_text(get("model")) or step.model
    if (uncached := as_int(get("input_tokens"))) is not None:
        step.cached_tokens = as_int(get("cache_read_tokens"))
        step.input_tokens = uncached + (step.cached_tokens or 0) + (as_int(get("cache_creation_tokens")) or 0)
    step.output_tokens = as_int(get("output_tokens"))
    first = as_int(get("ttft_ms"))
    step.time_to_first_token_s = first / 1000 if first is not None else None
    if step.finish_reason is None:
        step.finish_reason = as_text(get("stop_reason"))
    answer = as_text(get("response.model_output"))
    if answer is not None and answer != _HELD_BACK:
        step.output_messages = {"role": "assistant", "content": answer}
    step.tool_definitions = get("tools")
    step.agent = as_text(get("agent_id"))


def _read_tool(record: SpanRecord, step: Step) -> None:
    get = record.attributes.get
    step.tool_call_id = as_text(get("tool_use_id")) or step.tool_call_id
    if record.name.startswith(_PHASE):
        step.tool_name = ""  # a phase of the enclosing call
        step.permission_denied = get("decision") == "reject"
        return
    step.tool_name = as_text(get("tool_name"))
    step.tool_arguments = _without_heading(get("tool_input"))
    if step.tool_arguments is None:
        command, path = as_text(get("full_command")), as_text(get("file_path"))
        known = {"command": command} if command else {"file_path": path} if path else None
        if known is not None and step.tool_call_id is not None:  # an event may contain more arguments
            step.tool_inputs = {step.tool_call_id: known}
    step.tool_result = _without_heading(get("new_context"))
    if step.tool_result is None:
        output = next((event.attributes for event in record.events if event.name == "tool.output"), None)
        if output is not None:
            step.tool_result = next((output[key] for key in ("output", "content", "result") if output.get(key) is not None), None)


def _without_heading(value: Any) -> str | None:
    """Remove a heading such as ``[TOOL RESULT: name]`` from a text. Return None if the text wasn't captured."""
    text = as_text(value)
    if text is None or text == _HELD_BACK:
        return None
    if text.startswith("[TOOL "):
        heading, line, following = text.partition("\n")
        return following if line and heading.endswith("]") else text
    return text
