"""Parser for LlamaIndex, whose spans mostly have names such as ``Class.method``.

Three instrumentations use such names: OpenInference (with a kind), OpenLLMetry (``Class.task``, ``Class.workflow``), and
LlamaIndex's OpenTelemetry package. LlamaIndex's package writes most data to span events, many of which are named after
its event classes. If a value isn't JSON, the package truncates its ``repr`` to 200 characters. The parser ignores truncated answers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..core import jsonio
from ..spans.record import SpanRecord
from .attributes import as_int, as_text
from .otel_genai import documents
from .payloads import literal_in, parsed
from .step import AGENT, CHAIN, EMBEDDING, HANDOFF, INNER, LLM, RERANK, RETRIEVAL, TOOL, WORKFLOW, Step

MARKS = frozenset(("llamaindex.run_id", "llamaindex.step.input_event"))
SCOPES = re.compile(
    r"openinference\.instrumentation\.llama_index|opentelemetry\.instrumentation\.llamaindex|llamaindex\.opentelemetry"
)

_CALLS = frozenset((
    "chat", "achat", "stream_chat", "astream_chat", "complete", "acomplete", "stream_complete", "astream_complete",
    "predict", "apredict", "stream", "astream", "structured_predict", "astructured_predict", "stream_structured_predict",
    "astream_structured_predict", "chat_with_tools", "achat_with_tools", "stream_chat_with_tools", "astream_chat_with_tools",
    "predict_and_call", "apredict_and_call",
))  # fmt: skip
_METHODS = {
    **dict.fromkeys(("retrieve", "aretrieve"), RETRIEVAL),
    **dict.fromkeys(("query", "aquery"), CHAIN),
    **dict.fromkeys(("call", "acall"), TOOL),
    "call_tool": TOOL,
}  # fmt: skip
_TOOL_CALL = re.compile(r"ToolCall(?:Result)?\(tool_name=(?:'([^']*)'|\"([^\"]*)\")")
_TOOL_ID = re.compile(r"\btool_id='([^']*)'")
_TOOL_NAME = re.compile(r'"tool_name": ?"((?:[^"\\]|\\.)*)"')
_AGENT_NAME = re.compile(r"""current_agent_name\\?"?(?:=|: )\\?['"]([^'"\\]*)\\?['"]""")
_ANSWER = re.compile(
    r"""StopEvent\(result=AgentOutput\(response=ChatMessage\(role=[^,]*, additional_kwargs=\{[^{}]*\}, """
    r"""blocks=\[TextBlock\(block_type='text', text=('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\)\]"""
)
_REPR = re.compile(r"[A-Z]\w*\(")
_UNREAD = "[REDACTED]"


def role_of(attributes: Mapping[str, Any], scope: str, name: str) -> str | None:
    component, _, method = name.partition(".")
    if (kind := attributes.get("openinference.span.kind")) is not None:
        return _role_of_kind(kind, component, method, attributes)
    if scope.startswith("opentelemetry."):
        return _role_of_entity(component, method, attributes)
    return _role_of_method(component, method, attributes) if scope.startswith("llamaindex.") else None


def _role_of_kind(kind: Any, component: str, method: str, attributes: Mapping[str, Any]) -> str | None:
    if method in _STEPS:
        return INNER
    if kind == "CHAIN":
        return _role_of_run(component) if method == "run" else None
    if kind == "TOOL":
        return HANDOFF if attributes.get("tool.name") == "handoff" else None
    return INNER if method.startswith("_") and kind in ("LLM", "RETRIEVER", "EMBEDDING") else None


def _role_of_run(component: str) -> str | None:
    return AGENT if component.endswith("Agent") else WORKFLOW if component == "AgentWorkflow" else None


_STEPS = frozenset((
    "init_run", "setup_agent", "run_agent_step", "parse_agent_output", "call_tool", "aggregate_tool_results",
    "write_response_to_history", "awrite_response_to_history",
))  # fmt: skip


def _role_of_entity(component: str, kind: str, attributes: Mapping[str, Any]) -> str | None:
    if (tool := attributes.get("tool.name")) is not None:
        return HANDOFF if tool == "handoff" else TOOL
    if "gen_ai.operation.name" in attributes:
        return None
    if kind == "workflow":
        return _role_of_run(component)
    raw_input = attributes.get("traceloop.entity.input")
    if component.endswith("Tool"):
        return TOOL if "traceloop.entity.output" in attributes else INNER
    if component.endswith("Retriever"):  # the private method has a bundle instead of a query
        return INNER if raw_input.__class__ is str and '"query_bundle":' in raw_input[:20] else RETRIEVAL
    if "erank" in component:
        return RERANK
    return INNER if component in ("BaseWorkflowAgent", "AgentWorkflow") else None


def _role_of_method(component: str, method: str, attributes: Mapping[str, Any]) -> str:
    if method in _CALLS:
        return CHAIN if component.endswith(("Engine", "Agent", "Program")) else LLM
    if method == "run":
        return _role_of_run(component) or CHAIN
    role = _METHODS.get(method)
    if role == TOOL:
        summary = attributes.get("llamaindex.step.input_summary")
        return HANDOFF if summary.__class__ is str and summary.startswith("ToolCall(tool_name='handoff'") else TOOL
    if role is not None:
        return role
    if "embedding" in method and not method.startswith("_"):
        return EMBEDDING
    return RERANK if method == "postprocess_nodes" and "erank" in component else INNER


def read(record: SpanRecord, step: Step) -> None:
    get = record.attributes.get
    role = step.role
    step.framework = "llama_index"
    if record.events and record.scope.startswith("llamaindex."):
        _read_events(record, step)
    if role == INNER:  # the agent's name is in the event that the step received or returned
        keys = ("input.value", "llamaindex.step.input_summary", "traceloop.entity.output", "output.value")
        texts = (*map(get, keys), *(event.attributes.get("output") for event in record.events))
        step.agent = next(filter(None, map(_name_in, texts)), None)
        if record.scope.startswith("opentelemetry."):
            _read_event(get("traceloop.entity.output"), step)
    elif role == LLM:
        step.deferred = "stream" in record.name
    elif role in (TOOL, HANDOFF):
        _read_tool(get, step)
    elif role in (AGENT, WORKFLOW, CHAIN):
        _read_output(get("output.value"), step)
        if step.input_value is None:
            step.input_value = get("traceloop.entity.input")
        _read_output(get("traceloop.entity.output"), step)
    elif role == RETRIEVAL and step.documents is None and (output := get("traceloop.entity.output")) is not None:
        step.documents = documents(output) or None
        step.query = _query(get("traceloop.entity.input"))
    step.conversation_id = as_text(get("llamaindex.session_id")) or as_text(get("llamaindex.conversation_id"))
    step.user_id = as_text(get("llamaindex.user_id"))


def _read_event(raw: Any, step: Step) -> None:
    """Read an agent's input or result from the event object that a workflow step returned."""
    if raw.__class__ is not str:
        return
    if raw.startswith('{"input": [') and '"current_agent_name"' in raw:
        step.input_messages = raw
    elif raw.startswith('{"result": {"response": '):
        step.output_messages = raw


def _name_in(text: Any) -> str | None:
    if text.__class__ is not str:
        return None
    found = _AGENT_NAME.match(text, max(text.rfind("current_agent_name"), 0))
    return found[1] or None if found is not None else None


def _read_output(raw: Any, step: Step) -> None:
    """Read a root's output, which is a response object, or the (often truncated) ``repr`` of a workflow's last event."""
    if raw.__class__ is not str or step.output_messages is not None:
        return
    if raw[:1] == "{" and '"response":' in raw:
        if '"response": ""' in raw or '"response": null' in raw:
            step.output_value = _UNREAD  # still streaming
        else:
            step.output_messages = raw
    elif raw[:1] == "{" and "<generator object>" in raw:
        step.output_value = _UNREAD
    elif _REPR.match(raw):
        if (answer := _ANSWER.match(raw)) is not None:
            step.final_result = literal_in(answer[1])
        if step.final_result is None:
            step.output_value = _UNREAD


def _query(raw: Any) -> Any:
    if raw.__class__ is not str:
        return None
    value, _ = jsonio.loads_or_text(raw)
    for _ in range(2):
        if isinstance(value, Mapping):
            value = value.get("str_or_query_bundle") or value.get("query_bundle") or value.get("query_str")
    return as_text(value)


def _read_tool(get: Any, step: Step) -> None:
    summary = get("llamaindex.step.input_summary")
    if summary.__class__ is str and (name := _TOOL_CALL.match(summary)) is not None:
        step.tool_name = name[1] or name[2]
        call_id = _TOOL_ID.search(summary)
        step.tool_call_id = call_id[1] if call_id is not None else None
        start = summary.find("tool_kwargs=")
        if call_id is not None and start >= 0:
            step.tool_arguments = summary[start + 12 : call_id.start()].rstrip(", ")
    output = get("traceloop.entity.output")
    if output.__class__ is str:
        step.tool_failed = '"is_error": true' in output
        if step.tool_name is None:
            named = _TOOL_NAME.search(output)
            step.tool_name = named[1] if named is not None else None
        step.tool_result = output
    if step.tool_name is None:
        step.tool_name = as_text(get("tool.name"))
    if step.tool_arguments is None:
        step.tool_arguments = get("tool.arguments") or get("traceloop.entity.input") or get("input.value")


def _read_events(record: SpanRecord, step: Step) -> None:
    for event in record.events:
        name, get = event.name, event.attributes.get
        if name in ("LLMChatStartEvent", "LLMCompletionStartEvent"):
            _read_chat_start(get, step)
        elif name in ("LLMChatEndEvent", "LLMCompletionEndEvent"):
            _read_chat_end(get, step)
        elif name == "LLMPredictEndEvent":
            step.output_messages = get("output")
        elif name == "QueryStartEvent":
            step.input_value = get("query") or get("query.query_str")
        elif name == "QueryEndEvent":
            step.final_result = as_text(get("response.response"))
        elif name in ("RetrievalStartEvent", "RetrievalEndEvent"):
            step.query = get("str_or_query_bundle.query_str") or get("str_or_query_bundle")
            if get("nodes") is not None:
                step.documents = documents(get("nodes"))
        elif name == "workflow.output":
            _read_output(get("output"), step)
        elif name == "EmbeddingStartEvent":
            step.model = as_text(get("model_dict.model_name"))


def _read_chat_start(get: Any, step: Step) -> None:
    step.input_messages = get("messages")
    if step.input_messages is None:
        step.input_messages = get("prompt")
    step.tool_definitions = get("additional_kwargs.tools")
    step.model = step.model or as_text(get("model_dict.model_name")) or as_text(get("model_dict.model"))


def _read_chat_end(get: Any, step: Step) -> None:
    if step.input_messages is None:
        step.input_messages = get("messages")
    blocks = get("response.message.blocks")
    text = get("response.text")
    if blocks is not None:
        calls = get("response.message.additional_kwargs.tool_calls")
        step.output_messages = [{"role": "assistant", "content": parsed(blocks), "tool_calls": parsed(calls)}]
    elif text is not None:
        step.output_messages = text
    step.model = as_text(get("response.raw.model")) or step.model
    step.response_id = as_text(get("response.raw.id"))
    choices = get("response.raw.choices")
    reason = _FINISH.search(choices) if choices.__class__ is str else None
    step.finish_reason = reason[1] if reason is not None else as_text(get("response.raw.stop_reason"))
    for field, keys in _COUNTS:
        for key in keys:
            if (value := as_int(get(key))) is not None:
                setattr(step, field, value)
                break


_USAGE = "response.raw.usage."
_COUNTS = (
    ("input_tokens", (f"{_USAGE}prompt_tokens", f"{_USAGE}input_tokens", "response.additional_kwargs.prompt_tokens")),
    ("output_tokens", (f"{_USAGE}completion_tokens", f"{_USAGE}output_tokens", "response.additional_kwargs.completion_tokens")),
    ("cached_tokens", (f"{_USAGE}prompt_tokens_details.cached_tokens", f"{_USAGE}input_tokens_details.cached_tokens")),
    (
        "reasoning_tokens",
        (f"{_USAGE}completion_tokens_details.reasoning_tokens", f"{_USAGE}output_tokens_details.reasoning_tokens"),
    ),
)
_FINISH = re.compile(r'"finish_reason": ?"([a-z_]+)"')
