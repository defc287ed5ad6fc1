"""Parser for Langtrace: ``langtrace.*``, ``langchain.inputs``, and ``langchain.outputs``.

Each LangChain span contains one Python method's arguments and result as JSON text. Model calls have up to four nested spans.
Langtrace omits empty values. A decorated function's span has only a name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..core import jsonio
from ..core.wellformed import Later
from ..spans.record import SpanRecord
from .attributes import as_int, as_text
from .otel_genai import documents
from .payloads import first_argument, parsed
from .step import CHAIN, EMBEDDING, INNER, LLM, RERANK, RETRIEVAL, SETUP, TOOL, Step

MARKS = frozenset(
    ("langtrace.service.type", "langtrace.service.name", "langtrace.sdk.name", "langchain.task.name", "llm.responses")
)
SCOPES = re.compile(r"langtrace")
_TASKS = {
    "chatmodel": LLM, "language_model": LLM, "generate": LLM, "retriever": RETRIEVAL, "tool": TOOL, "runnable": CHAIN,
    "runnablepassthrough": INNER, "prompt": INNER, "stroutputparser": INNER, "jsonoutputparser": INNER, "listoutputparser": INNER,
    "xmloutputparser": INNER, "load_pdf": INNER, "vector_store": INNER, "split_text": INNER,
}  # fmt: skip
_METHODS = re.compile(r"(invoke|ainvoke|generate|agenerate|generate_prompt|agenerate_prompt|predict|stream|astream)$")
_FINISH = re.compile(r'"finish_reason": "(\w+)"')
_MODEL = re.compile(r'"model_name": "([^"]+)"')


def role_of(attributes: Mapping[str, Any], scope: str, name: str) -> str | None:
    task = attributes.get("langchain.task.name")
    if task.__class__ is str:
        role = _TASKS.get(task, CHAIN)
        return role if role != LLM or _METHODS.search(name) else INNER
    if "langgraph.task.name" in attributes:
        return SETUP  # building the graph's nodes and edges
    if (kind := attributes.get("langtrace.service.type")) is None:
        return CHAIN if scope.endswith("with_root_span") else None
    if kind == "llm":
        operation = attributes.get("gen_ai.operation.name")
        if operation in ("embed", "embeddings", "embedding") or "embed" in name:
            return EMBEDDING
        return RERANK if operation == "rerank" else LLM
    if kind == "framework":
        return None if "gen_ai.operation.name" in attributes else CHAIN
    return RETRIEVAL if kind == "vectordb" else None


def read(record: SpanRecord, step: Step) -> None:
    attributes = record.attributes
    get = attributes.get
    step.conversation_id = step.conversation_id or as_text(get("session_id")) or as_text(get("session.id"))
    step.user_id = step.user_id or as_text(get("user_id"))
    raw_input, raw_output = get("langchain.inputs"), get("langchain.outputs")
    if step.role == LLM:
        _read_langchain(raw_input, raw_output, step)
        _read_call(get, step)
    elif step.role == RETRIEVAL and raw_input is not None:
        step.query = first_argument(raw_input)
        step.documents = documents(raw_output) if raw_output.__class__ is str and raw_output[:1] == "[" else None
    elif step.role == TOOL:
        step.tool_arguments, step.tool_result = raw_input, raw_output
    elif step.role == CHAIN:
        step.function = record.scope.endswith("with_root_span")
        if raw_input.__class__ is str and not _CLASS_NAMES.fullmatch(raw_input):
            step.input_value = Later(_first, raw_input)
        if raw_output.__class__ is str and raw_output != "{}" and not _CLASS_NAMES.fullmatch(raw_output):
            step.output_value = raw_output


_CLASS_NAMES = re.compile(r'\{\s*"\w+": "\w+"\s*\}')
"""Pattern for an input or output that contains only a value's class name."""


def _first(raw: str) -> Any:
    value = jsonio.loads_or_text(raw)[0]
    return {"kwargs": value} if isinstance(value, Mapping) and "messages" not in value else value


def _read_langchain(raw_input: Any, raw_output: Any, step: Step) -> None:
    if raw_input is not None:
        step.input_messages = raw_input
    if raw_output.__class__ is str:
        if any(key in raw_output for key in ('"content"', '"text"', '"tool_calls"')):  # otherwise, another span has the answer
            step.output_messages = Later(_answer, raw_output)
        if (reason := _FINISH.search(raw_output)) is not None:
            step.finish_reason = reason[1]
        if (model := _MODEL.search(raw_output)) is not None:
            step.model = model[1]


def _answer(raw: str) -> Any:
    """Add a role and empty content to a message if Langtrace omitted them. Return other values, such as generations, unchanged."""
    value = jsonio.loads_or_text(raw)[0]
    if isinstance(value, Mapping) and "generations" not in value:
        return [{"role": "assistant", "content": None, **value}]
    return value


def _tools(raw: Any) -> Any:
    """Parse tool definitions from JSON text, which some versions wrap in a list."""
    value = parsed(raw)
    if isinstance(value, (list, tuple)) and len(value) == 1 and isinstance(value[0], str):
        return jsonio.loads_or_text(value[0])[0]
    return value


def _read_call(get: Any, step: Step) -> None:
    """Read attributes that Langtrace before 3.0 wrote in addition to the convention's attributes."""
    if step.tool_definitions is None and (tools := get("gen_ai.request.tools")) is not None:
        step.tool_definitions = Later(_tools, tools)
    counts = get("llm.token.counts")
    if counts.__class__ is str:
        found = jsonio.loads_or_text(counts)[0]
        if isinstance(found, Mapping):
            step.input_tokens = as_int(found.get("input_tokens"))
            step.output_tokens = as_int(found.get("output_tokens"))
    if step.model is None:
        step.model = as_text(get("llm.model"))
    if step.input_messages is None:
        step.input_messages = get("llm.prompts")
    if step.output_messages is None:
        step.output_messages = get("llm.responses")
