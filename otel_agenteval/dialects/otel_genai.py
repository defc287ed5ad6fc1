"""Parser for OpenTelemetry's GenAI semantic conventions (*the convention*) since 1.28.

Content is in attributes (JSON text or structured values), span events, or log records. Events and log records have names such as
``gen_ai.choice``, ``gen_ai.client.inference.operation.details``, or ``gen_ai.user.message``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from ..core import jsonio
from ..core.semconv import EVENT as EVALUATION
from ..core.turn import Document
from ..core.wellformed import Later
from ..spans.record import SpanRecord
from .attributes import as_float, as_int, as_text, first_text
from .generic.keys import words_of
from .generic.kinds import OF_MODELS, role_of_kind
from .payloads import object_in
from .step import AGENT, CHAIN, EMBEDDING, HANDOFF, INNER, LLM, MEMORY, RERANK, RETRIEVAL, SETUP, TOOL, WORKFLOW, Step

OPERATIONS = {
    "chat": LLM, "generate_content": LLM, "text_completion": LLM, "completion": LLM, "embeddings": EMBEDDING, "embedding": EMBEDDING,
    "retrieval": RETRIEVAL, "rerank": RERANK, "vector_db_retrieve": RETRIEVAL, "execute_tool": TOOL, "invoke_agent": AGENT, "create_agent": SETUP,
    "invoke_workflow": WORKFLOW, "invoke_swarm": WORKFLOW, "invoke_graph": WORKFLOW, "agent_handoff": HANDOFF, "handoff": HANDOFF,
    **dict.fromkeys(("plan", "execute_task", "execute_event_loop_cycle", "fetch_response", "agent_step"), INNER),
    **dict.fromkeys(("create_memory_store", "delete_memory_store", "create_memory", "update_memory"), MEMORY),
    **dict.fromkeys(("upsert_memory", "search_memory", "delete_memory"), MEMORY),
}  # fmt: skip

_SPEECH = frozenset(("tts", "stt", "asr"))
_OF_SPEECH = _SPEECH | {"node", "request", "service", "stream", "inference", "run"}
_TEXTS = ("gen_ai.prompt", "gen_ai.completion", "output", "gen_ai.output.messages")
_OF_CALLS = (*_TEXTS[:3], "gen_ai.usage.", "gen_ai.response.", "llm.usage.")
_STRUCTURES = "IMPORTANT: This StructuredOutputTool"
"""Start of a Strands tool's description if the tool only structures the answer."""
MARKS = frozenset(("gen_ai.operation.name", "gen_ai.tool.name", "gen_ai.request.model", "gen_ai.response.model"))
SCOPES = re.compile(
    r"opentelemetry\.(instrumentation\.genai\.|util\.genai|instrumentation\.(openai|vertexai|google_genai))|com\.anthropic\.|strands\b|logfire(\.|$)"
)
"""Scopes of instrumentations whose attributes are mostly from the convention."""

_MESSAGE_EVENTS = {
    "gen_ai.system.message": "system", "gen_ai.user.message": "user", "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool", "gen_ai.choice": "assistant",
}  # fmt: skip
WHOLE = frozenset((
    "gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.system", "gen_ai.conversation.id", "gen_ai.output.type", "gen_ai.data_source.id",
    "gen_ai.request.model", "gen_ai.response.model", "gen_ai.response.id", "gen_ai.response.finish_reasons",
    "gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.system_instructions", "gen_ai.tool.definitions",
    "gen_ai.agent.id", "gen_ai.agent.call.id", "gen_ai.agent.name", "gen_ai.agent.description", "gen_ai.agent.version", "gen_ai.workflow.name",
    "gen_ai.tool.name", "gen_ai.tool.type", "gen_ai.tool.description", "gen_ai.tool.call.id", "gen_ai.tool.call.arguments", "gen_ai.tool.call.result",
    "gen_ai.retrieval.query.text", "gen_ai.retrieval.documents", "gen_ai.retrieval.top_k", "operation.cost",
    "gen_ai.client.operation.time_to_first_chunk", "final_result", "model_request_parameters", "model_name", "agent_name", "tools",
))  # fmt: skip
"""Attributes from the latest convention and from pydantic-ai. If a span has only these attributes, nothing is inferred."""
WHOLE_PREFIXES = (
    "gen_ai.request.", "gen_ai.usage.", "gen_ai.aggregated_usage.", "gen_ai.response.time", "gen_ai.server.", "logfire.", "pydantic_ai.",
    "baggage_conflict.",
)  # fmt: skip
EVENTS = frozenset((*_MESSAGE_EVENTS, "gen_ai.client.inference.operation.details", "exception", EVALUATION))
"""Names of span events and log records from which nothing needs to be inferred."""
_MERGED = "(merged tools)"
"""Tool name of a span in which ADK and trpc-agent-go repeat the results of parallel tools."""
_DETAILS = "gen_ai.client.inference.operation.details"


@lru_cache(256)
def _role_of_operation(operation: str) -> str | None:
    """Return the role of an operation that isn't in the convention, such as ``LlmCall``, or None."""
    return LLM if not OF_MODELS.isdisjoint(words_of(operation)) else role_of_kind(operation)


def role_of(attributes: Mapping[str, Any], scope: str, name: str) -> str | None:
    if (operation := attributes.get("gen_ai.operation.name")) is None:
        return _role_without_operation(attributes, name)
    role = OPERATIONS.get(operation) if operation.__class__ is str else None
    if role is not None:
        if role == AGENT and "gen_ai.agent.name" not in attributes and scope.endswith(".openai_agents"):
            return WORKFLOW  # a whole run, with the workflow's name
        return INNER if role == TOOL and attributes.get("gen_ai.tool.name") == _MERGED else role
    has_model = "gen_ai.request.model" in attributes or "gen_ai.response.model" in attributes
    role = _role_of_operation(operation) if operation.__class__ is str else None
    if "tool.function_name" in attributes and operation.__class__ is str and "tool" in operation:
        return TOOL  # Pipecat's span of a call or a result, with the operation ``llm_tool_call``
    if role is not None and (role != LLM or has_model):
        return role
    return LLM if has_model and "gen_ai.usage.output_tokens" in attributes else CHAIN


def _role_without_operation(attributes: Mapping[str, Any], name: str) -> str | None:
    if "gen_ai.tool.name" in attributes:
        return TOOL
    if "gen_ai.request.model" in attributes or "gen_ai.response.model" in attributes:
        # OpenLLMetry writes an agent's model on the agent's span, and LiteLLM a request's model on the proxy's server span.
        if "traceloop.span.kind" in attributes:
            return None
        if "http.route" in attributes and not any(key.startswith(_OF_CALLS) for key in attributes):
            return AGENT if "gen_ai.agent.name" in attributes else None
        is_of_speech = _OF_SPEECH.issuperset(words := words_of(name)) and not _SPEECH.isdisjoint(words)
        if is_of_speech and not any(key.startswith(_TEXTS) for key in attributes):
            return INNER  # LiveKit writes the model of a speech service on the service's span
        if name.endswith(("embedding", "embeddings")):
            return EMBEDDING
        return LLM if attributes.get("llm.request.type") not in ("embedding", "rerank") else None
    return None


def read(record: SpanRecord, step: Step) -> None:
    get = record.attributes.get
    role = step.role
    if step.agent is None and step.workflow is None and (agent := get("gen_ai.agent.name")) is not None:
        step.agent = as_text(agent)
    if step.conversation_id is None and (conversation := get("gen_ai.conversation.id")) is not None:
        step.conversation_id = as_text(conversation)
    if role in (LLM, EMBEDDING):
        _read_inference(get, step)
    elif role == TOOL:
        _read_tool(get, step)
    elif role == RETRIEVAL:
        _read_retrieval(get, step)
    elif role in (AGENT, WORKFLOW, HANDOFF):
        _read_run(get, step)
    if role != TOOL:
        _read_content(get, step)
    if record.events:
        _read_events(record.events, step)
    if record.logs:
        _read_events(record.logs, step)


# The next functions run on the agent's thread. Because most attributes are missing, reading a default is cheaper than a branch,
# and missing values cause no further calls.


def _read_inference(get: Any, step: Step) -> None:
    if step.model is None:
        model = get("gen_ai.response.model")
        step.model = model if model.__class__ is str and model else as_text(get("gen_ai.request.model"))
    if step.provider is None:
        provider = get("gen_ai.provider.name")
        step.provider = provider if provider.__class__ is str and provider else as_text(get("gen_ai.system"))
    _read_usage(get, step)
    if step.service_tier is None:
        step.service_tier = as_text(get("openai.response.service_tier", get("gen_ai.openai.response.service_tier")))
    if step.response_id is None:
        step.response_id = as_text(get("gen_ai.response.id"))
    if step.finish_reason is None:
        step.finish_reason = first_text(get("gen_ai.response.finish_reasons")) or as_text(
            get("gen_ai.response.finish_reason", get("anthropic.message.stop_reason"))
        )
    if step.time_to_first_token_s is None:
        seconds = get("gen_ai.response.time_to_first_chunk", get("gen_ai.client.operation.time_to_first_chunk"))
        step.time_to_first_token_s = _server_time_to_first_token(get, step) if seconds is None else as_float(seconds)
    if step.cost_usd is None:
        cost = get("gen_ai.usage.cost", get("operation.cost", get("gen_ai.usage.total_cost")))
        if cost is not None:
            step.cost_usd = as_float(cost)


def _read_usage(get: Any, step: Step) -> None:
    if step.input_tokens is None:
        tokens = get("gen_ai.usage.input_tokens", get("gen_ai.usage.prompt_tokens", get("gen_ai.response.input_tokens")))
        if tokens is not None:
            step.input_tokens = tokens if tokens.__class__ is int and tokens >= 0 else as_int(tokens)
    if step.output_tokens is None:
        tokens = get("gen_ai.usage.output_tokens", get("gen_ai.usage.completion_tokens", get("gen_ai.response.output_tokens")))
        if tokens is not None:
            step.output_tokens = tokens if tokens.__class__ is int and tokens >= 0 else as_int(tokens)
    if step.reasoning_tokens is None:
        tokens = get("gen_ai.usage.reasoning.output_tokens", get("gen_ai.usage.reasoning_tokens"))
        if tokens is not None:
            step.reasoning_tokens = as_int(tokens)


def _server_time_to_first_token(get: Any, step: Step) -> float | None:
    if (seconds := get("gen_ai.server.time_to_first_token")) is None:
        return None
    number = as_float(seconds)
    if number is not None and step.record.scope.startswith("strands"):  # in milliseconds
        return number / 1000 or None
    return number


def _read_run(get: Any, step: Step) -> None:
    if step.role != HANDOFF:
        _read_usage(get, step)
    if step.role == AGENT:  # pydantic-ai's result, history and totals
        if step.input_tokens is None:
            step.input_tokens = as_int(get("gen_ai.aggregated_usage.input_tokens"))
        if step.output_tokens is None:
            step.output_tokens = as_int(get("gen_ai.aggregated_usage.output_tokens"))
        if step.final_result is None:
            step.final_result = get("final_result")
        if step.input_value is None:
            step.input_value = get("pydantic_ai.all_messages")
    elif step.role == WORKFLOW:
        if step.workflow is None:
            step.workflow = as_text(get("gen_ai.workflow.name"))
    else:
        step.handoff_to = step.handoff_to or as_text(get("gen_ai.handoff.to_agent"))
        step.agent = as_text(get("gen_ai.handoff.from_agent")) or step.agent


def _read_tool(get: Any, step: Step) -> None:
    if step.tool_name is None:
        step.tool_name = as_text(get("gen_ai.tool.name"))
    if step.tool_call_id is None:
        step.tool_call_id = as_text(get("gen_ai.tool.call.id"))
    if step.tool_arguments is None:
        step.tool_arguments = get("gen_ai.tool.call.arguments")
    if step.tool_result is None:
        step.tool_result = get("gen_ai.tool.call.result")
    description = get("gen_ai.tool.description")
    if description.__class__ is str and description.startswith(_STRUCTURES):
        step.gives_form = True
    if get("gen_ai.task.status") == "failure":
        step.tool_failed = True


def _read_retrieval(get: Any, step: Step) -> None:
    if step.query is None:
        step.query = get("gen_ai.retrieval.query.text")
    if step.documents is None and (raw := get("gen_ai.retrieval.documents")) is not None:
        step.documents = documents(raw)


def _read_content(get: Any, step: Step) -> None:
    if step.input_messages is None:
        step.input_messages = get("gen_ai.input.messages", get("gen_ai.agent.invocation_input"))
        if step.input_messages is None:
            asked = _unless_empty(get("gen_ai.prompt"))
            plain = step.role == LLM and asked.__class__ is str and "\n" in asked
            step.input_messages = Later(_without_roles, asked) if plain else asked
    if step.output_messages is None:
        step.output_messages = get("gen_ai.output.messages", get("gen_ai.agent.invocation_output"))
        if step.output_messages is None:
            step.output_messages = _unless_empty(get("gen_ai.completion"))
    said = step.input_messages
    step.texts_only |= step.role == LLM and said.__class__ is str and said[:1] not in ("[", "{")
    if step.system is None:
        step.system = get("gen_ai.system_instructions")
    if step.tool_definitions is None:
        step.tool_definitions = get("gen_ai.tool.definitions")
        if step.tool_definitions is None:
            step.tool_definitions = get("model_request_parameters")  # pydantic-ai before version 3 of its format


_NOTHING = frozenset(("", "{}", "[]", "null", "None", '[""]', '{"output":null}'))


def _unless_empty(raw: Any) -> Any:
    """Return None for a placeholder such as ``{}``, which means that content is missing. Return other values unchanged."""
    return None if raw.__class__ is str and raw in _NOTHING else raw


_INSTRUCTED = re.compile(r"You(?:'re| are| answer| help) [^\n]{1,400}[.!]\n+(?=\S)")


def _without_roles(prompt: str) -> Any:
    """Split a prompt whose first line is like ``You are ….`` into a system and a user message. Return other prompts unchanged."""
    if (found := _INSTRUCTED.match(prompt)) is None:
        return prompt
    return [{"role": "system", "content": found[0].strip()}, {"role": "user", "content": prompt[found.end() :]}]


def _read_events(parts: Iterable[Any], step: Step) -> None:
    inputs: list[Any] = []
    outputs: list[Any] = []
    counted: list[tuple[int | None, int | None]] = []
    for part in parts:
        if (role := _MESSAGE_EVENTS.get(part.name)) is None:
            _read_details(part, step, counted)
        elif step.role == TOOL:
            _tool_event(part.name, _fields_of(part), step)
        else:
            (outputs if part.name == "gen_ai.choice" else inputs).append(_message_in(part, role, step))
    if counted and step.counted is None:
        step.counted = counted
    if inputs and step.input_messages is None:
        step.input_messages = inputs
    if outputs and step.output_messages is None:
        step.output_messages = outputs
        if step.finish_reason is None and isinstance(outputs[-1], Mapping):
            step.finish_reason = as_text(outputs[-1].get("finish_reason"))
    elif inputs and step.output_messages is None and "error.type" in step.record.attributes:
        step.output_messages = []  # a failed call has no answer, so the assistant's messages are from earlier calls


def _read_details(part: Any, step: Step, counted: list[tuple[int | None, int | None]]) -> None:
    """Read messages from an event that has a call's input, output, or both. Append the call's token counts to ``counted``."""
    if part.name == _DETAILS:
        body = getattr(part, "body", None)
        get = {**(body if isinstance(body, Mapping) else {}), **part.attributes}.get
        _read_content(get, step)
        tokens = as_int(get("gen_ai.usage.input_tokens")), as_int(get("gen_ai.usage.output_tokens"))
        if tokens != (None, None):
            counted.append(tokens)
    elif (body := getattr(part, "body", None)).__class__ is dict and ("input" in body or "output" in body):
        _read_both(body, step)
    elif part.name == "gen_ai.content.prompt" and step.input_messages is None:
        step.input_messages = part.attributes.get("gen_ai.prompt")
    elif part.name == "gen_ai.content.completion" and step.output_messages is None:
        step.output_messages = _unless_empty(part.attributes.get("gen_ai.completion"))


def _read_both(body: Mapping[str, Any], step: Step) -> None:
    """Read a log record that AWS's OpenTelemetry distribution writes with all messages of a span."""
    inputs, outputs = (_messages_of(body.get(name), role) for name, role in (("input", "user"), ("output", "assistant")))
    if step.role == TOOL:
        step.tool_arguments = inputs[-1]["content"] if inputs and step.tool_arguments is None else step.tool_arguments
        step.tool_result = outputs[-1]["content"] if outputs and step.tool_result is None else step.tool_result
        return
    if step.role != LLM:
        inputs, outputs = ([] if _is_call_of_function(side) else side for side in (inputs, outputs))
    if inputs and step.input_messages is None:
        step.input_messages = inputs
    if outputs and step.output_messages is None:
        step.output_messages = outputs
        step.finish_reason = step.finish_reason or as_text(outputs[-1].get("finish_reason"))


def _messages_of(side: Any, role: str) -> list[dict[str, Any]]:
    """Return a log record's input or output messages. A message's content can be an object that contains the actual message."""
    messages = side.get("messages") if isinstance(side, Mapping) else None
    found = []
    for message in messages if isinstance(messages, (list, tuple)) else ():
        if isinstance(message, Mapping):
            content = message.get("content")
            fields = (
                content if isinstance(content, Mapping) and not content.keys().isdisjoint(("content", "message")) else message
            )
            found.append(_event_message(fields, message.get("role") or role))
    return found


def _is_call_of_function(messages: list[dict[str, Any]]) -> bool:
    """Return True if the only message is an object's JSON text, such as a function's arguments."""
    content = messages[0].get("content") if len(messages) == 1 else None
    return content.__class__ is str and content.startswith('{"')


def _fields_of(part: Any) -> Mapping[str, Any]:
    body = getattr(part, "body", None)
    return body if isinstance(body, Mapping) else {"content": body, **part.attributes}


def _message_in(part: Any, role: str, step: Step) -> Any:
    body = getattr(part, "body", None)
    if body.__class__ is str and body[:1] == "{" and '"role"' in body:
        return body  # a logging handler wrote the whole message as JSON text
    whole = part.attributes.get("gen_ai.event.content")
    if whole.__class__ is not str or whole[:1] != "{":
        return _event_message(_fields_of(part), role)
    if part.name == "gen_ai.choice" and step.finish_reason is None:
        step.finish_reason = as_text(object_in(whole).get("finish_reason"))
    return Later(_whole_event, (whole, role))


def _whole_event(event: tuple[str, str]) -> Mapping[str, Any]:
    """Return the message in an Azure event's JSON text. If content wasn't captured, the message has a part without text."""
    fields = object_in(event[0])
    if not fields.keys() & {"content", "tool_calls", "message"}:
        return {"role": event[1], "content": [{"type": "text"}], "finish_reason": fields.get("finish_reason")}
    return fields if "role" in fields else _event_message(fields, event[1])


_OF_MESSAGES = frozenset(("content", "tool_calls", "parts"))
_MAY_STAND_IN_MESSAGES = _OF_MESSAGES | {
    "role", "finish_reason", "refusal", "reasoning_content", "thought", "name", "id", "index",
}  # fmt: skip


def _event_message(fields: Mapping[str, Any], role: str) -> dict[str, Any]:
    inner = fields.get("message")
    reason = fields.get("finish_reason")
    whole = fields.get("content")
    if isinstance(whole, Mapping) and "parts" in whole:  # a complete message
        return {"role": role, **whole, "finish_reason": reason or ("" if role == "assistant" else None)}
    if inner.__class__ is str and inner[:1] == "{":  # JSON text of the convention's object
        said = object_in(inner)
        inner = said if said.keys() & _OF_MESSAGES and said.keys() <= _MAY_STAND_IN_MESSAGES else inner
    if isinstance(inner, Mapping):
        return {"role": role, "finish_reason": reason, **inner}
    content = inner if inner is not None else fields.get("content")
    message: dict[str, Any] = {"role": role, "content": content, "finish_reason": reason}
    for key in ("id", "name", "tool_calls"):
        if fields.get(key):
            message[key] = fields[key]
    return message


def _tool_event(name: str, fields: Mapping[str, Any], step: Step) -> None:
    if name == "gen_ai.tool.message" and step.tool_arguments is None:
        step.tool_arguments = fields.get("content")
    elif name == "gen_ai.choice" and step.tool_result is None:
        step.tool_result = fields.get("message")
    if step.tool_call_id is None:
        step.tool_call_id = as_text(fields.get("id"))


def documents(raw: Any) -> list[Document]:
    """Parse retrieved documents, in order. Some instrumentations write only the documents' IDs and scores."""
    if isinstance(raw, str):
        raw, _ = jsonio.loads_or_text(raw)
    if isinstance(raw, Mapping):
        raw = raw.get("documents", [raw])
    found = []
    for entry in raw if isinstance(raw, (list, tuple)) else ():
        item = jsonio.loads_or_text(entry)[0] if isinstance(entry, str) and entry[:9] == '{"node": ' else entry  # nested JSON
        if isinstance(item, str):
            found.append(Document(content=item))
        elif isinstance(item, Mapping):
            found.append(document(item))
    return found


def document(item: Mapping[str, Any]) -> Document:
    """Convert an object from any known framework to a document. The object's metadata can contain the ID and score."""
    node = item.get("node", item.get("document"))
    if isinstance(node, Mapping):  # LlamaIndex writes the score next to the node
        item = {"id": node.get("id_"), **node, "score": item.get("score", node.get("score"))}
    metadata = item.get("metadata")
    if isinstance(metadata, str):
        metadata, _ = jsonio.loads_or_text(metadata)
    more = metadata if isinstance(metadata, Mapping) else {}
    ids = (item.get("id"), item.get("document_id"), more.get("id"), more.get("doc_id"), more.get("doc_uri"))
    identity = next((value for value in ids if value not in (None, "")), None)
    content = next((item[key] for key in ("content", "page_content", "text") if item.get(key) is not None), None)
    if isinstance(content, list) and all(isinstance(part, Mapping) and isinstance(part.get("text"), str) for part in content):
        content = "".join(part["text"] for part in content)
    scores = (holder.get(key) for key in ("score", "relevance_score") for holder in (item, more))
    return Document(
        id=str(identity) if identity is not None else None,
        content=jsonio.text_of(content) if content is not None else None,
        score=as_float(next((value for value in scores if value is not None), None)),
    )
