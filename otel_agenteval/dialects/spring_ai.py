"""Parser for Spring AI, whose spans are Micrometer observations with Spring Boot's scope.

Spans have ``spring.ai.*`` and the GenAI convention's attributes. Content is in Spring AI's log records (``log-prompt``,
``log-completion``). Milestone releases, and a filter that vendors recommend, write content to ``gen_ai.prompt`` and
``gen_ai.completion``. Texts are quoted, but quotes inside texts aren't escaped. Only the chat client's log records contain roles.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..core.turn import Document
from ..core.wellformed import Later
from ..spans.record import SpanRecord
from .attributes import as_int, as_text, first_text
from .step import AGENT, INNER, LLM, RETRIEVAL, TOOL, Step

MARKS = frozenset((
    "spring.ai.kind", "spring.ai.chat.client.stream", "spring.ai.chat.client.conversation.id", "spring.ai.advisor.name",
    "spring.ai.tool.definition.name", "spring.ai.model.request.tool.names",
))  # fmt: skip
SCOPES = re.compile(r"org\.springframework\.ai\b")
"""Scope of Spring AI's log records. Spring AI's spans have Spring Boot's scope instead."""
HOSTS = re.compile(r"org\.springframework\.boot\b")
"""Scopes of spans whose GenAI attributes are from Spring AI."""

_KINDS = {"chat_client": AGENT, "advisor": INNER, "tool_call": TOOL}
_NONE = "none"
"""Micrometer's placeholder for a missing value."""
_JSON = re.compile(r"""\s*(?:["{\[\d-]|true\b|false\b|null\b)""")
_ENTRY = re.compile(r'(?:^\[|", )"(system|user|assistant|tool)":"')
_RAG = re.compile(r"(?<!\n)\n+Context information is below, surrounded by -{3,}")


def role_of(attributes: Mapping[str, Any], scope: str, name: str) -> str | None:
    """Return the role that a span's kind indicates, or None. Of the vector store requests, only queries are retrievals."""
    kind = attributes.get("spring.ai.kind")
    if kind.__class__ is not str:
        return None
    if kind == "vector_store":
        return RETRIEVAL if attributes.get("db.operation.name") == "query" or name.endswith(" query") else INNER
    return _KINDS.get(kind)


def read(record: SpanRecord, step: Step) -> None:
    get = record.attributes.get
    step.framework = "spring_ai"
    if step.role == LLM:
        _read_call(get, step)
    elif step.role == TOOL:
        step.tool_name = as_text(get("spring.ai.tool.definition.name"))
        step.tool_call_id = as_text(get("spring.ai.tool.call.id"))
        step.tool_arguments, step.tool_result = get("spring.ai.tool.call.arguments"), get("spring.ai.tool.call.result")
        # A tool's result is JSON, but an exception's message is plain text.
        result = step.tool_result
        step.tool_failed = result.__class__ is str and result != "" and _JSON.match(result) is None
    elif step.role == AGENT:
        step.conversation_id = as_text(get("spring.ai.chat.client.conversation.id"))
        if (asked := get("spring.ai.chat.client.user.text")) is not None:
            step.input_messages, step.system = {"role": "user", "content": asked}, get("spring.ai.chat.client.system.text")
    elif step.role == RETRIEVAL:
        step.query = get("db.vector.query.content")
        found = get("db.vector.query.response.documents")
        step.documents = [Document(content=text) for text in _texts(found)] if found.__class__ is str else None
    if record.logs:
        _read_logs(record, step)


def _read_call(get: Any, step: Step) -> None:
    model = as_text(get("gen_ai.response.model"))
    step.model = as_text(get("gen_ai.request.model")) if model is None or model == _NONE else model
    reason = first_text(get("gen_ai.response.finish_reasons"))
    step.finish_reason = reason.lower() if reason else None
    input_tokens, output_tokens = as_int(get("gen_ai.usage.input_tokens")), as_int(get("gen_ai.usage.output_tokens"))
    step.totals = (input_tokens, output_tokens) if input_tokens is not None and output_tokens is not None else None
    asked, answered = get("gen_ai.prompt"), get("gen_ai.completion")
    if asked.__class__ is str:
        step.input_messages = Later(_prompt, asked)
    if answered.__class__ is str:
        step.output_messages = Later(_completion, answered)


def _read_logs(record: SpanRecord, step: Step) -> None:
    """Read content from log records that have a title on the first line and texts on the next lines."""
    for log in record.logs:
        body = log.body
        if body.__class__ is not str:
            continue
        title, _, texts = body.partition(":\n")
        if title == "Chat Client Prompt Content":
            step.input_messages = Later(_entries, texts)
        elif title == "Chat Model Prompt Content":
            step.input_messages = Later(_prompt, texts)
        elif title in ("Chat Client Completion", "Chat Model Completion"):
            step.output_messages = Later(_completion, texts)
        elif title == "Vector Store Query Response":
            step.documents = [Document(content=text) for text in _texts(texts)]


def _texts(raw: str) -> list[str]:
    """Split ``["…", "…"]`` into texts. Often, ``raw`` isn't valid JSON, because quotes inside the texts aren't escaped."""
    return raw[2:-2].split('", "') if raw[:2] == '["' and raw[-2:] == '"]' and len(raw) > 3 else []


def _prompt(raw: str) -> list[dict[str, Any]]:
    """Return the last text as the user's message, and other texts as system messages. Spring AI omits the roles."""
    texts = [text for text in _texts(raw) if text not in ("", "null")]
    if not texts:
        return []
    *context, asked = texts
    if (found := _RAG.search(asked)) is not None:  # documents that an advisor added
        context.append(asked[found.start() :].strip())
        asked = asked[: found.start()]
    return [*({"role": "system", "content": text} for text in context), {"role": "user", "content": asked}]


def _entries(raw: str) -> list[dict[str, Any]]:
    """Return the messages that the chat client received, before advisors changed them. The user's message comes last."""
    found = list(_ENTRY.finditer(raw))
    ends = [*(match.start() for match in found[1:]), len(raw) - 2]
    messages = [{"role": match[1], "content": raw[match.end() : end]} for match, end in zip(found, ends, strict=True)]
    return sorted(messages, key=lambda message: message["role"] == "user")


def _completion(raw: str) -> Any:
    texts = _texts(raw)
    return {"role": "assistant", "content": texts[0]} if texts else None
