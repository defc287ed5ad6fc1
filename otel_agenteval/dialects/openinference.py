"""Parser for OpenInference: ``openinference.span.kind``, and flattened messages (``llm.input_messages.0.message.content``)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from ..core import jsonio
from ..core.turn import Document
from ..core.wellformed import Later
from ..spans.record import SpanRecord
from .attributes import as_float, as_int, as_text, text_under
from .content import HIDDEN
from .otel_genai import document, documents
from .payloads import literal, object_in
from .step import AGENT, CHAIN, EMBEDDING, GUARDRAIL, HANDOFF, INNER, LLM, RERANK, RETRIEVAL, SETUP, TOOL, UNKNOWN, WORKFLOW, Step

KINDS = {
    "AGENT": AGENT, "CHAIN": CHAIN, "LLM": LLM, "TOOL": TOOL, "RETRIEVER": RETRIEVAL, "EMBEDDING": EMBEDDING, "RERANKER": RERANK,
    "GUARDRAIL": GUARDRAIL, "EVALUATOR": SETUP, "PROMPT": CHAIN, "DECISION": CHAIN, "UNKNOWN": CHAIN,
}  # fmt: skip
MARKS = frozenset(("openinference.span.kind",))
SCOPES = re.compile(r"openinference\b")
_LANGCHAIN = ("openinference.instrumentation.langchain", "@arizeai/openinference-instrumentation-langchain")
_CALL_PARTS = ("llm.input_messages.", "llm.output_messages.", "llm.token_count.")
"""Attribute prefixes of model calls. A span without a kind is a model call if its attributes use at least two of these prefixes."""
_SPEECH = ("stt", "tts")
"""Words in a span's name or ``service.type`` that identify speech services."""
_MAX_INDEX = 2_000
_MAX_PATH = 16


def role_of(attributes: Mapping[str, Any], scope: str, name: str) -> str | None:
    if (kind := attributes.get("openinference.span.kind")) is None:  # the SDK may have dropped the oldest attributes
        parts = [prefix for prefix in _CALL_PARTS if any(key.startswith(prefix) for key in attributes)]
        return LLM if len(parts) > 1 else None
    role = KINDS.get(kind.upper(), CHAIN) if kind.__class__ is str else UNKNOWN
    if role == CHAIN and scope in _LANGCHAIN and _langgraph_agent(attributes.get) == name:
        return AGENT  # the kind is AGENT only if the graph's name contains "agent"
    if role == AGENT and scope.endswith(".openai_agents") and "graph.node.id" not in attributes:
        return WORKFLOW  # the span of a whole run, named after the workflow
    if role == TOOL and name == "execute_tool (merged)":
        return INNER  # ADK repeats the results of parallel tools
    if role == LLM and (name.rpartition(".")[2] in _SPEECH or attributes.get("service.type") in _SPEECH):
        return INNER  # Pipecat's speech services
    return HANDOFF if role == TOOL and name.startswith("handoff to ") else role


def read(record: SpanRecord, step: Step) -> None:
    attributes = record.attributes
    get = attributes.get
    role = step.role
    if role == WORKFLOW and step.workflow is None:
        step.workflow = record.name or None
    if step.framework is None and "openinference.span.kind" in attributes:
        scope = record.scope.removeprefix("openinference.instrumentation.")
        step.framework = scope.removeprefix("@arizeai/openinference-instrumentation-") or None
    if step.conversation_id is None:
        step.conversation_id = as_text(get("session.id"))
    if step.user_id is None:
        step.user_id = as_text(get("user.id"))
    if step.agent is None:
        step.agent = as_text(get("agent.name")) or as_text(get("gen_ai.agent.name")) or _unstated_agent(record, role)
    if step.input_value is None:
        step.input_value = get("input.value")
    if step.output_value is None:
        step.output_value = _output(get("output.value"))
    if role == LLM:
        _read_llm(attributes, step, is_whole=record.scope in _WHOLE_REQUESTS)
    elif role == TOOL:
        _read_tool(record, step)
    elif role in (RETRIEVAL, RERANK):
        _read_retrieval(attributes, step)
    elif role == EMBEDDING and step.model is None:
        step.model = as_text(get("embedding.model_name"))
    elif role == AGENT:
        _read_counts(get, step)


def _unstated_agent(record: SpanRecord, role: str | None) -> str | None:
    """Return the agent's name from LangChain's metadata or the span's name. Return None if neither contains it."""
    name = record.name
    if role in (AGENT, LLM, TOOL):
        agent = _langgraph_agent(record.attributes.get)
        if agent is not None or role != AGENT or name.endswith("Agent.run") or name.startswith("ai."):
            return agent  # a name such as "MyAgent.run" is a class and its method, and "ai.…" is an operation of the AI SDK
        return name.removeprefix("invoke_agent ").removesuffix(".run") or None
    if role != CHAIN or record.scope not in _LANGCHAIN or name == "LangGraph":
        return None
    metadata = record.attributes.get("metadata")
    if metadata.__class__ is not str or '"ls_integration": "langgraph"' not in metadata or '"langgraph_node"' in metadata:
        return None  # other chains and graph nodes
    return name


_LANGGRAPH_AGENT = re.compile(r'"lc_agent_name": ?"((?:[^"\\]|\\.)+)"')


def _langgraph_agent(get: Any) -> str | None:
    """Return the agent's name from LangChain's metadata, or None. LangChain's spans in an agent's run have this metadata."""
    metadata = get("metadata")
    found = _LANGGRAPH_AGENT.search(metadata) if metadata.__class__ is str else None
    if found is None:
        return None
    try:
        return str(jsonio.loads(f'"{found[1]}"'))
    except ValueError:  # not JSON
        return found[1]


def _read_counts(get: Any, step: Step) -> None:
    for field, key in _COUNTS:
        if getattr(step, field) is None and (value := as_int(get(key))) is not None:
            setattr(step, field, value)
    if step.cost_usd is None:
        step.cost_usd = as_float(get("llm.cost.total"))


def _read_llm(attributes: dict[str, Any], step: Step, *, is_whole: bool) -> None:
    get = attributes.get
    if step.model is None:
        step.model = text_under(attributes, ("llm.response.model_name", "llm.model_name", "llm.request.model_name"))
        parameters = get("llm.invocation_parameters")
        if step.model is None and parameters.__class__ is str and '"model"' in parameters:
            step.model = as_text(object_in(parameters).get("model"))
    if step.provider is None:
        step.provider = as_text(get("llm.provider")) or as_text(get("llm.system"))
    _read_counts(get, step)
    if step.finish_reason is None:
        step.finish_reason = as_text(get("llm.finish_reason"))
    if step.input_messages is None:
        step.input_messages = _later(attributes, "llm.input_messages.", inputs_of)
    if step.output_messages is None:
        step.output_messages = _later(attributes, "llm.output_messages.", _outputs)
        if step.output_messages is None:  # some streamed answers are only in the span's output
            step.output_messages = _output(get("output.value")) or None
    if step.logprobs is None:
        step.logprobs = get("output.value")
    if step.tool_definitions is None:
        step.tool_definitions = _later(attributes, "llm.tools.", _tools)
    if is_whole:
        _read_request(attributes, step)


def _output(value: Any) -> Any:
    """Return an output value. For a smolagents stream, return the final answer. For most other ``repr`` texts, return None."""
    if value.__class__ is not str:
        return value
    if _OBJECTS.match(value):
        _, found, answer = value.rpartition("FinalAnswerStep(output=")
        return literal(answer[:-1]) if found else None
    return None if value[:1] == "<" and value[-1:] == ">" and " object at 0x" in value else value


_OBJECTS = re.compile(r"[A-Z]\w*\(\w+=")
"""Pattern for the start of an object's ``repr`` in a streamed run's output."""
_COUNTS = (
    ("input_tokens", "llm.token_count.prompt"),
    ("output_tokens", "llm.token_count.completion"),
    ("reasoning_tokens", "llm.token_count.completion_details.reasoning"),
)
_WHOLE_REQUESTS = frozenset(("@arizeai/openinference-instrumentation-anthropic", "openinference.instrumentation.bedrock"))
"""Scopes whose ``llm.input_messages.*`` attributes are incomplete. Only the raw request contains all content."""


def _read_request(attributes: dict[str, Any], step: Step) -> None:
    """Read instructions and tool results from the raw request. Flattened messages contain only the last result."""
    request = attributes.get("input.value")
    if request.__class__ is not str or request[:1] not in ("{", "["):
        return
    if '"tool_result"' in request or '"toolResult"' in request:
        step.input_messages = request if request[0] == "{" else Later(_whole_messages, attributes)
    if step.system is None and '"system":' in request:
        step.system = request


def _whole_messages(attributes: dict[str, Any]) -> list[Any]:
    flattened = messages_of(attributes, "llm.input_messages.")
    sent, cut = jsonio.loads_or_text(attributes["input.value"])
    return flattened if cut or not isinstance(sent, list) else [*(one for one in flattened if one.get("role") == "system"), *sent]


def _read_tool(record: SpanRecord, step: Step) -> None:
    get = record.attributes.get
    if step.tool_name is None:
        step.tool_name = as_text(get("tool.name")) or record.name or None
    if step.tool_call_id is None:
        step.tool_call_id = as_text(get("tool.id")) or as_text(get("tool_call.id"))
    if step.tool_arguments is None:
        arguments = get("input.value")
        step.tool_arguments = get("tool_call.function.arguments") if arguments is None else arguments
        if step.tool_arguments in HIDDEN and record.scope.endswith(".agno"):  # also in the tool's parameters
            step.tool_arguments = get("tool.parameters")
    if step.tool_result is None:
        step.tool_result = get("output.value")


def _read_retrieval(attributes: dict[str, Any], step: Step) -> None:
    is_search = step.role == RETRIEVAL
    if step.query is None:
        step.query = _query(attributes.get("input.value")) if is_search else attributes.get("reranker.query")
    if step.documents is None:
        step.documents = _documents(attributes, "retrieval.documents" if is_search else "reranker.output_documents")


def _query(raw: Any) -> Any:
    if raw.__class__ is str and raw.startswith(('{"query":', '{"query_embedding":')):
        value, _ = jsonio.loads_or_text(raw)
        return value.get("query") if isinstance(value, dict) else raw
    return raw


def _documents(attributes: dict[str, Any], prefix: str) -> list[Document] | None:
    if (items := objects_under(attributes, f"{prefix}.")) is not None:
        return [document(item["document"]) for item in items if isinstance(item.get("document"), dict)]
    output = attributes.get(prefix) or attributes.get("output.value")
    if output.__class__ is str and output[:1] in "[{" and output not in HIDDEN:
        found = documents(output)
        return found if found and any(item.id or item.content for item in found) else None
    return None


def _later(attributes: dict[str, Any], prefix: str, reader: Callable[[dict[str, Any]], Any]) -> Any:
    """Return a value that ``reader`` builds from attributes on first use, or None if no attribute starts with ``prefix``."""
    return Later(reader, attributes) if any(key.startswith(prefix) for key in attributes) else None


def _tools(attributes: dict[str, Any]) -> list[Any]:
    found = [item.get("tool") for item in objects_under(attributes, "llm.tools.") or ()]
    return [tool["json_schema"] for tool in found if isinstance(tool, dict) and "json_schema" in tool]


def inputs_of(attributes: dict[str, Any]) -> list[dict[str, Any]]:
    found = messages_of(attributes, "llm.input_messages.")
    request = attributes.get("input.value")
    if request.__class__ is str and request[:1] == "{" and any(mark in request for mark in _MEDIA_MARKS):
        _add_media(found, jsonio.loads_or_text(request)[0])
    return found


_MEDIA_MARKS = (
    '"input_audio"', '"file"', '"input_file"', '"document"', '"inline_data"', '"inlineData"', '"file_data"', '"fileData"',
)  # fmt: skip


def _add_media(messages: list[dict[str, Any]], request: Any) -> None:
    """Add audio, video, and documents from the raw request. Flattened messages contain only images."""
    values = map(request.get, ("messages", "input", "contents")) if isinstance(request, dict) else ()
    whole_messages = next((value for value in values if isinstance(value, list)), ())
    users = [one for one in whole_messages if isinstance(one, dict) and one.get("role") == "user"]
    asked = [one for one in messages if one.get("role") == "user"]
    for message, sent in zip(reversed(asked), reversed(users), strict=False):
        parts = sent.get("content") or sent.get("parts")
        more = [part for part in parts if isinstance(part, dict) and _is_other_media(part)] if isinstance(parts, list) else []
        if more:
            message["content"] = [*(part for part in _parts(message.get("content")) if not _is_other_media(part)), *more]


def _parts(content: Any) -> list[Any]:
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}] if content else []


def _is_other_media(part: Mapping[str, Any]) -> bool:
    if part.get("type") in ("input_audio", "file", "input_file", "document"):
        return True
    values = map(part.get, ("inline_data", "inlineData", "file_data", "fileData"))
    inner = next((value for value in values if isinstance(value, dict)), None)
    return inner is not None and not str(inner.get("mime_type") or inner.get("mimeType")).startswith("image/")


def messages_of(attributes: dict[str, Any], prefix: str) -> list[dict[str, Any]]:
    items = objects_under(attributes, prefix) or ()
    return [_message(item["message"]) for item in items if isinstance(item.get("message"), dict)]


def _outputs(attributes: dict[str, Any]) -> Any:
    """Return the model's answers. Refusals are read from the raw response, because flattened messages don't contain refusals."""
    messages = messages_of(attributes, "llm.output_messages.")
    response = attributes.get("output.value")
    has_content = any(one.get("content") or one.get("tool_calls") for one in messages)
    return response if not has_content and response.__class__ is str and '"refusal":' in response else messages


def _message(flat: dict[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = {key: flat[key] for key in ("role", "name", "tool_call_id", "finish_reason") if key in flat}
    if out.get("role") == "user" and "tool_call_id" in out:  # Anthropic's form of a tool result
        out["role"] = "tool"
    parts = flat.get("contents")
    if isinstance(parts, list):
        out["content"] = [
            _part(item["message_content"], item.get("message"))
            for item in parts
            if isinstance(item, dict) and isinstance(item.get("message_content"), dict) and "tool_call" not in item
        ]
    else:
        out["content"] = flat.get("content")
    calls = flat.get("tool_calls")
    if isinstance(calls, (list, dict)):  # agentgateway writes a call without an index and without "tool_call"
        out["tool_calls"] = [
            item.get("tool_call", item) for item in (calls if isinstance(calls, list) else [calls]) if isinstance(item, dict)
        ]
    elif "function_call_name" in flat:
        out["tool_calls"] = [{"name": flat["function_call_name"], "arguments": flat.get("function_call_arguments_json")}]
    return out


def _part(flat: dict[str, Any], beside: Any) -> dict[str, Any]:
    if isinstance(beside, dict) and "tool_call_id" in beside:  # BeeAI: one of several tool results in a message
        return {"type": "tool_result", "tool_use_id": beside["tool_call_id"], "content": flat.get("text")}
    image = flat.get("image")
    if isinstance(image, dict):
        inner = image.get("image")
        return {"type": "image", "uri": inner.get("url") if isinstance(inner, dict) else None}
    return {"type": "text", "text": None, **flat}


def objects_under(attributes: Mapping[str, Any], prefix: str) -> list[dict[str, Any]] | None:
    """Return the list of objects in attributes such as ``prefix.0.a``, or None if the attributes don't form a list."""
    items = unflatten(attributes, prefix)
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else None


def unflatten(attributes: Mapping[str, Any], prefix: str) -> Any:
    """Nest attributes such as ``prefix.0.a.b`` into lists and dicts. Skip missing indexes. Return None if no attribute matches."""
    root: dict[str, Any] = {}
    start = len(prefix)
    for key, value in attributes.items():
        if key.startswith(prefix):
            at = root
            *path, last = key[start:].split(".")
            if len(path) > _MAX_PATH:
                continue
            for name in path:
                inner = at.setdefault(name, {})
                if not isinstance(inner, dict):
                    inner = at[name] = {}
                at = inner
            if not isinstance(at.get(last), dict):
                at[last] = value
    return _lists(root) if root else None


def _lists(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    places = [key for key in value if key.isdecimal() and len(key) <= 6]
    if places:  # other keys are invalid
        return [_lists(value[key]) for key in sorted(places, key=int)[:_MAX_INDEX]]
    return {key: _lists(inner) for key, inner in value.items()}
