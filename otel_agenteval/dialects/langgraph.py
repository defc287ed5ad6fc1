"""Parser for LangChain and LangGraph under OpenLLMetry.

OpenLLMetry calls every topmost runnable an agent. This dialect separates agents from graphs and chains of steps. LangChain's
own agents are graphs with a model node and a tools node. The metadata of each span below them contains their name.
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
"""Nodes of an agent's loop. A graph of several agents or steps has other node names."""


def role_of(attributes: Mapping[str, Any], scope: str, name: str) -> str | None:
    """Return AGENT or WORKFLOW for an ``invoke_agent`` span, or None for all others."""
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
    """Name agents by their metadata, and graphs as workflows.

    The convention names both as agents.
    """
    get = record.attributes.get
    if step.role == WORKFLOW:
        step.workflow = as_text(get("gen_ai.agent.name"))
    elif step.role in (LLM, TOOL):
        step.agent = as_text(get(_OF_AGENT))
