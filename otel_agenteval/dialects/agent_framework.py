"""Parser for Microsoft Agent Framework, which writes the GenAI convention's attributes. Workflow spans are recognized by name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..spans.record import SpanRecord
from .attributes import as_text
from .step import AGENT, CHAIN, EMBEDDING, INNER, LLM, SETUP, TOOL, WORKFLOW, Step

MARKS = frozenset(("workflow.id", "executor.id"))
SCOPES = re.compile(
    r"agent_framework\b|(Experimental\.)?Microsoft\.(Agents|Extensions)\.AI\b|github\.com/microsoft/agent-framework"
)
_WORKFLOWS = {
    "workflow.run": WORKFLOW, "workflow_invoke": WORKFLOW, "workflow.build": SETUP, "workflow.session": INNER,
    "executor.process": INNER, "edge_group.process": INNER, "message.send": INNER,
}  # fmt: skip
_NAMES = {
    **_WORKFLOWS, "invoke_agent": AGENT, "create_agent": SETUP, "chat": LLM, "execute_tool": TOOL, "embeddings": EMBEDDING,
}  # fmt: skip


def role_of(attributes: Mapping[str, Any], scope: str, name: str) -> str | None:
    word = name.partition(" ")[0]
    if SCOPES.match(scope):
        return _NAMES.get(word, INNER)  # applications also use the framework's tracer
    role = _WORKFLOWS.get(word)
    # In an application's scope, a workflow needs an agent or a model call.
    return CHAIN if role == WORKFLOW else role


def read(record: SpanRecord, step: Step) -> None:
    if step.framework is None:
        step.framework = "agent_framework"
    role = step.role
    if role == LLM:
        if step.model == "unknown":  # the client's placeholder
            step.model = None
    elif role == TOOL:
        if step.tool_call_id == "unknown":
            step.tool_call_id = None
    elif role == WORKFLOW and step.workflow is None:
        step.workflow = as_text(record.attributes.get("workflow.name"))
