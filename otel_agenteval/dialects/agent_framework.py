"""Microsoft Agent Framework: the convention's attributes, around them workflows whose spans say what they are by name only."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..spans.record import SpanRecord
from .step import AGENT, CHAIN, EMBEDDING, INNER, LLM, SETUP, TOOL, WORKFLOW, Step, as_text

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
    """The role that the first word of the span's name says: the attributes come after the start, or never."""
    word = name.partition(" ")[0]
    if SCOPES.match(scope):
        return _NAMES.get(word, INNER)  # applications get the framework's own tracer for spans around their runs
    role = _WORKFLOWS.get(word)
    # Under a scope name of the application's choice a workflow counts only when it holds an agent or a model call.
    return CHAIN if role == WORKFLOW else role


def read(record: SpanRecord, step: Step) -> None:
    """Fill the fields that this dialect has and no dialect before it had."""
    if step.framework is None:
        step.framework = "agent_framework"
    role = step.role
    if role == LLM:
        if step.model == "unknown":  # written where the client did not know
            step.model = None
    elif role == TOOL:
        if step.tool_call_id == "unknown":
            step.tool_call_id = None
    elif role == WORKFLOW and step.workflow is None:
        step.workflow = as_text(record.attributes.get("workflow.name"))
