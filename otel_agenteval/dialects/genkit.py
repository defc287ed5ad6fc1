"""Parser for Genkit (JS, Go, Python): ``genkit:*`` attributes with JSON values.

A ``generate`` run contains the model request, the requested tools, and the next ``generate`` run with their results. Only
the outermost run is the agent's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..core import jsonio
from ..core.later import Later
from ..core.turn import Document, ErrorInfo
from ..spans.record import SpanRecord
from .content import object_in
from .otel_genai import document
from .step import (
    AGENT,
    CHAIN,
    CONVERSATION_NAMES,
    EMBEDDING,
    GUARDRAIL,
    INNER,
    LLM,
    RERANK,
    RETRIEVAL,
    TOOL,
    Step,
    as_int,
    as_text,
)

MARKS = frozenset(("genkit:type", "genkit:metadata:subtype", "genkit:path", "genkit:name", "genkit:state"))
SCOPES = re.compile(r"genkit\b")

_ACTIONS = {
    "flow": CHAIN, "agent": AGENT, "prompt": AGENT, "executable-prompt": AGENT, "model": LLM, "background-model": LLM, "tool": TOOL,
    "tool.v2": TOOL, "retriever": RETRIEVAL, "reranker": RERANK, "embedder": EMBEDDING, "evaluator": GUARDRAIL,
}  # fmt: skip
_TYPES = {"flow": CHAIN, "flowStep": INNER, "dotprompt": AGENT, "helper": AGENT, "promptTemplate": INNER, "evaluator": GUARDRAIL}
"""Roles by type. A flow may be unrelated to models: it is a turn only if a model works below it."""
_ABOVE = re.compile(r"\{([^{}]*)\}/\{[^{}]*\}$")
_GOES_ON = re.compile(r"generate,|runTurn-|send,t:helper|.*?(?:,t:(?:dotprompt|agent)|,s:agent)", re.DOTALL)
"""Parents in the path of a ``generate`` span that make it part of another run or of an agent's run."""
_LONGEST_CALL = 50_000


def role_of(attributes: Mapping[str, Any], scope: str, name: str) -> str | None:
    """Return the role from subtype and type.

    A span without a known one is an application's step.
    """
    kind, subtype = attributes.get("genkit:type"), attributes.get("genkit:metadata:subtype")
    role = _ACTIONS.get(subtype) if subtype.__class__ is str else None
    if role is None and kind.__class__ is str:
        role = _TYPES.get(kind)
        if role is None and kind == "util":
            path = attributes.get("genkit:path")
            above = _ABOVE.search(path) if path.__class__ is str else None
            role = INNER if name == "resolve" or (above is not None and _GOES_ON.match(above[1])) else AGENT
    return role or (CHAIN if kind is not None else None)


def read(record: SpanRecord, step: Step) -> None:
    """Fill the fields that no earlier dialect has filled."""
    get = record.attributes.get
    step.framework = "genkit"
    role, given, gave = step.role, get("genkit:input"), get("genkit:output")
    if step.conversation_id is None:
        step.conversation_id = as_text(get("genkit:sessionId")) or as_text(get("genkit:metadata:agent:sessionId"))
        step.conversation_id = step.conversation_id or _conversation(get("genkit:metadata:context"))
    name = as_text(get("genkit:name")) or record.name
    if role == LLM:
        _read_call(name, given, gave, step)
    elif role == TOOL:
        step.tool_name = name.rpartition("/")[2] or name
        step.tool_arguments = given
        step.tool_result = _result(gave) if get("genkit:metadata:subtype") == "tool.v2" else gave
    elif role == AGENT:
        _read_run(record, name, given, gave, step)
    elif role == CHAIN:
        step.input_value, step.output_value = given, gave
        step.conversation_id = step.conversation_id or _conversation(given)
        step.workflow = name if get("genkit:metadata:subtype") == "flow" or get("genkit:type") == "flow" else None
    elif role in (RETRIEVAL, RERANK):
        value = jsonio.loads_or_text(given)[0] if given.__class__ is str else given
        query = value.get("query") if isinstance(value, Mapping) else value
        step.query = _text(query.get("content")) if isinstance(query, Mapping) else query
        step.documents = _documents(gave)
    elif role == EMBEDDING:
        step.model = step.model or name.partition("/")[2] or name
    if get("genkit:state") == "error":
        step.tool_failed = True  # set for every role


def _conversation(raw: Any) -> str | None:
    """Return the session id that an application passes to a flow or sets as context, or None."""
    if (
        raw.__class__ is not str
        or raw[:1] != "{"
        or len(raw) > _LONGEST_CALL
        or not any(key in raw for key in CONVERSATION_NAMES)
    ):
        return None
    value = object_in(raw)
    return next((text for key in CONVERSATION_NAMES if (text := as_text(value.get(key)))), None)


def _read_call(name: str, given: Any, gave: Any, step: Step) -> None:
    provider, slash, model = name.partition("/")
    if step.model is None:
        step.model, step.provider = (model, provider) if slash else (name, None)
    if given is not None:
        step.input_messages = Later(_messages_in, given)
        step.tool_definitions = Later(_tools_in, given)
    response = object_in(gave)
    usage = response.get("usage")
    if isinstance(usage, Mapping):
        step.input_tokens, step.output_tokens = as_int(usage.get("inputTokens")), as_int(usage.get("outputTokens"))
        step.cached_tokens, step.reasoning_tokens = as_int(usage.get("cachedContentTokens")), as_int(usage.get("thoughtsTokens"))
    answer = _answer(response)
    if answer is not None:
        step.output_messages = Later(_message, answer)
        step.finish_reason = as_text(response.get("finishReason")) or as_text(_choice(response).get("finishReason"))
    wire: Mapping[str, Any] = next((response[key] for key in ("raw", "custom") if isinstance(response.get(key), Mapping)), {})
    step.model = as_text(wire.get("model")) or as_text(wire.get("modelVersion")) or step.model
    step.response_id = as_text(wire.get("id")) or as_text(wire.get("responseId"))


def _read_run(record: SpanRecord, name: str, given: Any, gave: Any, step: Step) -> None:
    kind, subtype = record.attributes.get("genkit:type"), record.attributes.get("genkit:metadata:subtype")
    if subtype == "agent":
        _read_agent(name, gave, step)
        return
    if kind in ("util", "helper"):
        if given is not None:
            step.input_messages = Later(_messages_in, given)
    else:
        step.agent = name.rpartition("/")[2] or name
    if subtype != "prompt" and gave is not None:  # a prompt template has no answer
        step.output_messages = Later(_answer_in, gave)


def _read_agent(name: str, gave: Any, step: Step) -> None:
    step.agent = name
    if gave.__class__ is not str:
        return
    result = object_in(gave)
    if step.conversation_id is None:
        step.conversation_id = as_text(result.get("sessionId"))
    if isinstance(result.get("message"), Mapping):
        step.output_messages = Later(_message, result["message"])
    error = result.get("error")
    if result.get("finishReason") == "failed" and isinstance(error, Mapping):  # the span itself ends without error
        step.error = ErrorInfo(as_text(error.get("status")) or "error", as_text(error.get("message")))


def _choice(response: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the first candidate of an older plugin's response, which is the answer."""
    candidates = response.get("candidates")
    first = candidates[0] if isinstance(candidates, list) and candidates else None
    return first if isinstance(first, Mapping) else {}


def _answer(response: Mapping[str, Any]) -> Any:
    return response.get("message") or _choice(response).get("message")


def _answer_in(raw: Any) -> Any:
    value = jsonio.loads_or_text(raw)[0] if raw.__class__ is str else raw
    answer = _answer(value) if isinstance(value, Mapping) else value
    return _message(answer) if isinstance(answer, Mapping) else answer


def _messages_in(raw: Any) -> list[Any]:
    """Return a request's messages, followed by the prompt of a chat's turn."""
    value = jsonio.loads_or_text(raw)[0] if raw.__class__ is str and raw[:1] in '{["' else raw
    if not isinstance(value, Mapping):
        return [{"role": "user", "content": value}]
    messages = value.get("messages")
    found: list[Any] = []
    for item in messages if isinstance(messages, list) else ():
        if isinstance(item, Mapping):
            found += _with_context(item)
    prompt = value.get("prompt")
    if prompt:
        found.append(_message({"role": "user", "content": prompt if isinstance(prompt, list) else [{"text": prompt}]}))
    return found


def _with_context(value: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a message, after the context documents that the framework added to it."""
    content = value.get("content")
    if isinstance(content, list) and any(map(_is_context, content)):
        added = [part for part in content if _is_context(part)]
        own = [part for part in content if not _is_context(part)]
        return [_message({"role": "system", "content": added}), _message({**value, "content": own})]
    return [_message(value)]


def _is_context(part: Any) -> bool:
    about = part.get("metadata") if isinstance(part, Mapping) else None
    return isinstance(about, Mapping) and about.get("purpose") == "context"


def _message(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message in the convention's form, with the pieces of a streamed text joined."""
    parts: list[dict[str, Any]] = []
    content = value.get("content")
    for part in content if isinstance(content, list) else [{"text": content}] if content.__class__ is str else ():
        if not isinstance(part, Mapping):
            continue
        if part.get("text").__class__ is str:
            if parts and parts[-1]["type"] == "text":
                parts[-1]["content"] += part["text"]
            else:
                parts.append({"type": "text", "content": part["text"]})
        else:
            parts.append(_part(part))
    return {"role": value.get("role"), "parts": parts}


def _part(part: Mapping[str, Any]) -> dict[str, Any]:
    request, response, media = part.get("toolRequest"), part.get("toolResponse"), part.get("media")
    if isinstance(request, Mapping):
        return {"type": "tool_call", "id": request.get("ref"), "name": request.get("name"), "arguments": request.get("input")}
    if isinstance(response, Mapping):
        result = response.get("output")
        return {"type": "tool_call_response", "id": response.get("ref"), "name": response.get("name"), "response": result}
    if isinstance(media, Mapping):
        return {"type": "uri", "uri": media.get("url"), "mime_type": media.get("contentType")}
    if "reasoning" in part:
        return {"type": "reasoning", "content": part["reasoning"]}
    if part.get("data") is not None:
        return {"type": "text", "content": jsonio.text_of(part["data"])}
    return {"type": "custom"}


def _tools_in(raw: Any) -> list[Any]:
    tools = object_in(raw).get("tools")
    return [
        {**tool, "parameters": tool.get("inputSchema")}
        for tool in (tools if isinstance(tools, list) else ())
        if isinstance(tool, Mapping)
    ]


def _result(raw: Any) -> Any:
    """Return the output of a tool that can also return media."""
    value = object_in(raw)
    return value["output"] if "output" in value and not value.keys() - {"output", "content", "metadata"} else raw


def _documents(raw: Any) -> list[Document] | None:
    items = object_in(raw).get("documents")
    if not isinstance(items, list):
        return None
    return [document({**item, "content": _text(item.get("content"))}) for item in items if isinstance(item, Mapping)]


def _text(content: Any) -> Any:
    """Return a document's text, joined from its parts."""
    if not isinstance(content, list):
        return content
    return "".join(part["text"] for part in content if isinstance(part, Mapping) and part.get("text").__class__ is str)
