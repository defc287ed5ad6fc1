"""LangChain and LangGraph under OpenLLMetry: which of its ``invoke_agent`` spans are agents, and which graphs or chains of steps.

The instrumentation calls every topmost runnable an agent. LangChain's own agents are graphs with a node for the model and one for
the tools, and name themselves in the metadata of each span below them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..core import jsonio
from ..spans.record import SpanRecord
from .step import AGENT, LLM, TOOL, WORKFLOW, Step, as_text

_NODES = "gen_ai.workflow.nodes"
_OF_AGENT = "traceloop.association.properties.lc_agent_name"
_INTEGRATION = "traceloop.association.properties.ls_integration"
MARKS = frozenset((_NODES, _OF_AGENT, _INTEGRATION))
SCOPES = re.compile(r"opentelemetry\.instrumentation\.langchain\b")
_LOOP = frozenset(("model", "agent", "tools"))
"""Nodes of an agent's loop; a graph of several agents or steps has nodes of its own names."""


def role_of(attributes: Mapping[str, Any], scope: str, name: str) -> str | None:
    """An agent's run, or a graph's or a chain's; None for all other spans."""
    if attributes.get("gen_ai.operation.name") != "invoke_agent":
        return None
    nodes = attributes.get(_NODES)
    if nodes is not None:
        found, _ = jsonio.loads_or_text(nodes) if nodes.__class__ is str else (nodes, False)
        known = isinstance(found, (list, tuple)) and bool(found) and not any(as_text(node) in _LOOP for node in found)
        return WORKFLOW if known else AGENT
    if attributes.get("traceloop.span.kind") != "workflow":
        return None
    agent = _OF_AGENT in attributes or attributes.get(_INTEGRATION) == "langchain_create_agent"
    return AGENT if agent else WORKFLOW


def read(record: SpanRecord, step: Step) -> None:
    """Name agents as their metadata do, and graphs as workflows: the convention's attribute names both alike."""
    get = record.attributes.get
    if step.role == WORKFLOW:
        step.workflow = as_text(get("gen_ai.agent.name"))
    elif step.role in (LLM, TOOL):
        step.agent = as_text(get(_OF_AGENT))
