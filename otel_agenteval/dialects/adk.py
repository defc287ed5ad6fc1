"""Parser for Google's Agent Development Kit (ADK).

ADK writes the GenAI convention's attributes and ``gcp.vertex.agent.*``, in two span layouts. In the older layout, the root span
``invocation`` has no operation name, a ``call_llm`` span encloses each model call, and ``gcp.vertex.agent.*`` contains
requests and responses as JSON. The newer layout follows the convention. In both layouts, models called through LiteLLM have names
such as ``provider/model``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..core import jsonio
from ..core.turn import ErrorInfo
from ..spans.record import SpanRecord
from .attributes import as_text
from .step import AGENT, INNER, LLM, TOOL, WORKFLOW, Step

MARKS = frozenset((
    "gcp.vertex.agent.invocation_id", "gcp.vertex.agent.event_id", "gcp.vertex.agent.session_id", "gcp.vertex.agent.llm_request",
    "gcp.vertex.agent.llm_response", "gcp.vertex.agent.tool_call_args", "gcp.vertex.agent.tool_response",
))  # fmt: skip
SCOPES = re.compile(r"gcp\.vertex\.agent\b|google[._-]adk\b|openinference\.instrumentation\.google_adk\b")

_PLACEHOLDERS = ("N/A", "<not specified>", "<not serializable>")
_NOTHING = (None, "", "{}", *_PLACEHOLDERS)
_NOT_SPECIFIED = ('{"result": "<not specified>"}', '{"result":"<not specified>"}')
_RESPONSE_MODEL = re.compile(r'\{\s*"model_version"\s*:\s*"([^"\\]{1,200})"')
_AGENT_RUN = re.compile(r"agent_run \[(.*)\]$")
_COLLECTIONS = frozenset(("endpoints", "locations", "models", "projects", "publishers", "tunedModels"))
"""First segments of Google's resource names (``models/…``). Any other first segment of a model name is a LiteLLM provider."""
_LONGEST_FAILURE = 16_384
_EXECUTE, _MERGED = "execute_tool ", "execute_tool (merged)"


def role_of(attributes: Mapping[str, Any], scope: str, name: str) -> str | None:
    if name == "call_llm":
        return LLM
    if name == "invocation":
        return WORKFLOW
    if name.startswith("invoke_node") or name in ("send_data", _MERGED):
        return INNER
    if name.startswith(_EXECUTE):
        return TOOL
    return AGENT if name.startswith(("invoke_agent ", "agent_run [")) else None


def read(record: SpanRecord, step: Step) -> None:
    get = record.attributes.get
    step.framework = "google-adk"
    if step.conversation_id is None:
        step.conversation_id = as_text(get("gcp.vertex.agent.session_id"))
    role = step.role
    if role == LLM:
        step.overwritten = record.name.startswith("invoke_agent ")  # OpenInference writes all calls to the agent's span
        _read_llm(get, step)
    elif role == TOOL:
        _read_tool(record, step)
    elif role == AGENT and step.agent is None:
        named = _AGENT_RUN.match(record.name)
        step.agent = named[1] if named else None


def _read_llm(get: Any, step: Step) -> None:
    request = get("gcp.vertex.agent.llm_request")
    if request not in _NOTHING:
        if step.input_messages is None:
            step.input_messages = request
        if step.tool_definitions is None:
            step.tool_definitions = request
    response = get("gcp.vertex.agent.llm_response")
    if response.__class__ is str and response not in _NOTHING:
        if step.output_messages is None:
            step.output_messages = response
        if (found := _RESPONSE_MODEL.match(response)) is not None:
            step.model = found[1]
    if step.provider == "gcp.vertex.agent":  # the framework's name, not the model's provider
        step.provider = None
    requested = as_text(get("gen_ai.request.model")) or step.model or ""
    provider, slash, _ = requested.partition("/")
    if slash and provider not in _COLLECTIONS:
        step.provider = provider
        if step.model is not None:
            step.model = step.model.removeprefix(f"{provider}/") or step.model


def _read_tool(record: SpanRecord, step: Step) -> None:
    get = record.attributes.get
    if not record.attributes and record.name.startswith(_EXECUTE):  # ADK for JS writes no attributes if a tool raises
        step.tool_failed = True
    if step.tool_call_id == "<not specified>":
        step.tool_call_id = None
    arguments, result = get("gcp.vertex.agent.tool_call_args"), get("gcp.vertex.agent.tool_response")
    if arguments == "{}" and result == "{}":  # content capture is off
        arguments = result = None
    if step.tool_arguments is None and arguments not in _PLACEHOLDERS:
        step.tool_arguments = arguments
    if step.tool_result is None and result not in _PLACEHOLDERS:
        step.tool_result = result
    if step.tool_result in _NOT_SPECIFIED:
        step.tool_result = None
    step.error = _reported_failure(step.tool_result) or step.error


def _reported_failure(result: Any) -> ErrorInfo | None:
    """Return the error in a tool's result, such as ``{"error_message": "…"}``, or None."""
    if result.__class__ is not str or '"error' not in result[:1_000] or len(result) > _LONGEST_FAILURE:
        return None
    value, _ = jsonio.loads_or_text(result)
    inner = value.get("response", value) if isinstance(value, Mapping) else None  # some spans contain the whole response
    if not isinstance(inner, Mapping):
        return None
    message = next((inner[key] for key in ("error_message", "error_details", "error") if inner.get(key)), None)
    if message is None:
        return None
    return ErrorInfo(as_text(inner.get("error_type")) or "tool_error", jsonio.text_of(message)[:500])
