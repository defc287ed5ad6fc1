"""Parser for Haystack's own spans (``haystack.*`` tags) and OpenInference's Haystack spans.

Haystack's own spans are recognized by name and component type. They contain messages only if content tracing is on.
OpenInference writes messages as the ``repr`` of Python objects, and only this ``repr`` contains call IDs and tool results.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Any

from ..core import jsonio, literals
from ..core.wellformed import Later, plain
from ..spans.record import SpanRecord
from .attributes import as_int, as_text, first_int
from .dspy import ASKED
from .otel_genai import documents
from .payloads import object_in
from .step import AGENT, CHAIN, EMBEDDING, INNER, LLM, RERANK, RETRIEVAL, TOOL, Step

MARKS = frozenset((
    "haystack.component.type", "haystack.component.name", "haystack.pipeline.max_runs_per_component", "haystack.agent.max_steps",
    "haystack.agent.step", "haystack.agent.step.llm.input", "haystack.agent.step.llm.output", "haystack.tool.name",
))  # fmt: skip
SCOPES = re.compile(r"haystack$|haystack_integrations\b|openinference\.instrumentation\.haystack")

_SPANS = {
    "haystack.pipeline.run": CHAIN, "haystack.async_pipeline.run": CHAIN, "haystack.agent.run": AGENT, "haystack.agent.step": INNER,
    "haystack.agent.step.llm": LLM, "haystack.agent.step.tool": TOOL, "haystack.chat_generator.run": LLM, "haystack.agent.hook": INNER,
    "haystack.agent.hook.human_in_the_loop.strategy": INNER,
    "Agent.run": AGENT, "Agent.run_async": AGENT, "PromptBuilder.run": INNER, "PromptBuilder.run_async": INNER,
}  # fmt: skip
_TYPES = (("Generator", LLM), ("Embedder", EMBEDDING), ("Ranker", RERANK), ("Retriever", RETRIEVAL), ("WebSearch", RETRIEVAL))
_LONGEST_REPR = 200_000


def role_of(attributes: Mapping[str, Any], scope: str, name: str) -> str | None:
    role = _SPANS.get(name)
    if role == TOOL and "haystack.tool.name" not in attributes:
        return INNER  # one span for all tools of a step. The messages contain the calls
    if role is not None or name != "haystack.component.run":
        return role
    kind = attributes.get("haystack.component.type")
    if kind.__class__ is not str:
        return None
    if kind == "Agent":
        return AGENT
    return next((role for word, role in _TYPES if word in kind), CHAIN)


def read(record: SpanRecord, step: Step) -> None:
    get = record.attributes.get
    if not record.name.startswith("haystack."):
        _read_openinference(get, step)
        return
    step.framework = "haystack"
    raw_input, raw_output = _content(get)
    if step.role == LLM:
        step.input_messages = (
            Later(_messages_in, raw_input) if raw_input.__class__ is str and raw_input.startswith("{'") else raw_input
        )
        step.tool_definitions = raw_input
        if raw_output is not None:
            _read_replies(raw_output, step)
    elif step.role == TOOL:
        step.tool_name = as_text(get("haystack.tool.name"))
        step.tool_arguments, step.tool_result = raw_input, raw_output
        step.tool_failed = get("haystack.tool.error") is True
    elif step.role in (RETRIEVAL, RERANK):
        arguments = _object(raw_input)
        step.query = arguments.get("query")
        found = _object(raw_output).get("documents")
        step.documents = documents(found) if isinstance(found, list) else None
    elif step.role in (AGENT, CHAIN):
        if record.name == "haystack.component.run" and step.role == AGENT:
            step.agent = as_text(get("haystack.component.name"))
        _read_run(raw_input, raw_output, step)
        step.tool_definitions = get("haystack.agent.tools")


_CONTENT = ("haystack.component", "haystack.agent.step.llm", "haystack.agent.step.tool", "haystack.agent")


def _content(get: Any) -> tuple[Any, Any]:
    raw_input, raw_output = get("haystack.pipeline.input_data"), get("haystack.pipeline.output_data")
    for prefix in _CONTENT if raw_input is None else ():
        raw_input, raw_output = get(f"{prefix}.input"), get(f"{prefix}.output")
        if raw_input is not None or raw_output is not None:
            break
    return raw_input, raw_output


def _object(raw: Any) -> dict[str, Any]:
    """Parse an object from JSON, or from ``str(dict)``, which Haystack writes as a fallback. Return ``{}`` for other values."""
    if raw.__class__ is not str or raw[:1] != "{":
        return {}
    value = _python(raw) if raw.startswith("{'") else jsonio.loads_or_text(raw)[0]
    return value if isinstance(value, dict) else {}


def _read_run(raw_input: Any, raw_output: Any, step: Step) -> None:
    if raw_input.__class__ is str and raw_input[:1] == "{":
        step.input_messages = Later(_asked, raw_input)
    if raw_output.__class__ is str and raw_output[:1] == "{" and raw_output != "{}":  # it is empty before the run
        step.output_messages = Later(_answered, raw_output)


def _read_replies(raw: Any, step: Step) -> None:
    output = _object(raw)
    replies = output.get("replies")
    step.output_messages = replies if isinstance(replies, list) else None
    meta = output.get("meta") or [reply.get("meta") for reply in replies or () if isinstance(reply, dict)]
    facts = meta[0] if isinstance(meta, list) and meta else None
    if not isinstance(facts, dict):
        return
    step.model = as_text(facts.get("model"))
    step.finish_reason = as_text(facts.get("finish_reason"))
    usage = facts.get("usage")
    if isinstance(usage, dict):
        step.input_tokens = first_int(usage, ("prompt_tokens", "input_tokens"))
        step.output_tokens = first_int(usage, ("completion_tokens", "output_tokens"))
        step.cached_tokens = as_int(object_in(usage.get("prompt_tokens_details")).get("cached_tokens"))
        step.reasoning_tokens = as_int(object_in(usage.get("completion_tokens_details")).get("reasoning_tokens"))


# --- the user's words and the answer, read on first use ---------------------------------------------------------------


def _asked(raw: Any) -> Any:
    """Return the user's words from the inputs of an agent or a pipeline's components, or None."""
    inputs = _object(raw)
    if isinstance(inputs.get("data"), dict):
        inputs = inputs["data"]
    leaves: dict[str, Any] = {}
    _gather(inputs, leaves, 0)
    for name in (*ASKED[:2], "messages", *ASKED[2:]):
        found = leaves.get(name)
        if found:
            return [_plain(item) for item in found] if isinstance(found, list) else {"role": "user", "content": found}
    texts = [value for name, value in leaves.items() if isinstance(value, str) and name not in _NO_WORDS]
    return {"role": "user", "content": texts[0]} if texts else None


_NO_WORDS = frozenset(("system_prompt", "template", "user_prompt"))


def _gather(values: Mapping[str, Any], leaves: dict[str, Any], depth: int) -> None:
    for name, value in values.items():
        if isinstance(value, dict):
            if depth < 2:
                _gather(value, leaves, depth + 1)
        elif value and (isinstance(value, str) or (name == "messages" and isinstance(value, list))):
            leaves.setdefault(name, value)


def _answered(raw: Any) -> Any:
    """Return the answer of an agent, or of the last component that has one. Otherwise, return the output's only text, or None."""
    output = _object(raw)
    for values in (output, *(value for value in reversed(output.values()) if isinstance(value, dict))):
        for name in ("answers", "replies", "messages"):
            found = values.get(name)
            if isinstance(found, list) and found:
                return [_plain(item) for item in (found if name == "messages" else found[:1])]
    texts = [text for value in output.values() if isinstance(value, dict) for text in value.values() if isinstance(text, str)]
    return texts if len(texts) == 1 else None


def _plain(item: Any) -> Any:
    if isinstance(item, str):
        if item.startswith("ChatMessage("):
            end = item.rfind(", _name=")  # the rest may contain any object
            return _python(f"{item[:end]})" if end > 0 else item)
        data = _ANSWER.match(item)
        return {"role": "assistant", "content": _python(data[1])} if data else item
    inner = item.get("init_parameters") if isinstance(item, dict) else None
    if isinstance(inner, dict):  # a serialized answer
        item = inner
    return {"role": "assistant", "content": item["data"]} if isinstance(item, dict) and "data" in item else item


# --- the text of Python objects -----------------------------------------------------------------------------------------

_ANSWER = re.compile(r"""(?:Generated|Extracted)Answer\(.*?\bdata=('(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")""")
_ROLE = re.compile(r"<ChatRole\.\w+: ('\w+')>")
_OBJECT = re.compile(r"<(?:[^<>'\"]|<[^<>'\"]*>)* at 0x[0-9a-fA-F]+>+")
_PARTS = {"ToolCall": "tool_call", "ToolCallResult": "tool_call_result", "ReasoningContent": "reasoning"}


def _python(text: str) -> Any:
    """Parse the ``repr`` of Python objects without running code. Return None for other text."""
    if len(text) > _LONGEST_REPR:
        return None
    try:
        return plain(_value_of(literals.python_tree(_OBJECT.sub("None", _ROLE.sub(r"\1", text))).body))
    except (ValueError, RecursionError):
        return None


def _value_of(node: ast.AST) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, (ast.List, ast.Tuple)):
        return [_value_of(item) for item in node.elts]
    if isinstance(node, ast.Dict):
        return {
            str(_value_of(key)): _value_of(value) for key, value in zip(node.keys, node.values, strict=True) if key is not None
        }
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return _object_of(node.func.id, {word.arg: _value_of(word.value) for word in node.keywords if word.arg})
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        number = _value_of(node.operand)
        return -number if isinstance(number, (int, float)) else None
    return None


def _object_of(name: str, values: dict[str, Any]) -> dict[str, Any]:
    if name == "ChatMessage":
        return {"role": values.get("_role"), "content": values.get("_content")}
    if name == "ToolCallResult" and isinstance(values.get("origin"), dict):
        values["origin"] = values["origin"].get("tool_call")
    return {_PARTS[name]: values} if name in _PARTS else values


# --- OpenInference's spans ----------------------------------------------------------------------------------------------


def _read_openinference(get: Any, step: Step) -> None:
    raw_input, raw_output = get("input.value"), get("output.value")
    if step.role == LLM:
        if raw_input.__class__ is str and '"ChatMessage(' in raw_input:
            step.input_messages = Later(_messages_in, raw_input)
        if raw_output.__class__ is str and '"ChatMessage(' in raw_output:
            step.output_messages = Later(_messages_in, raw_output)
    elif step.role in (AGENT, CHAIN):
        _read_run(raw_input, raw_output, step)


def _messages_in(raw: Any) -> Any:
    value = _object(raw)
    items = value.get("messages") or value.get("replies")
    return [_plain(item) for item in items] if isinstance(items, list) else value.get("prompt")
