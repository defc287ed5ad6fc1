"""Infer the role of a span in an unknown format, and fill its step."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from ...core.wellformed import Later
from ...spans.record import ERROR, SpanRecord
from ..attributes import seconds_until
from ..content import decode
from ..otel_genai import documents
from ..step import (
    AGENT,
    CHAIN,
    CONVERSATION_NAMES,
    EMBEDDING,
    GUARDRAIL,
    HANDOFF,
    INNER,
    LLM,
    RERANK,
    RETRIEVAL,
    ROOT_ROLES,
    TOOL,
    Step,
)
from .events import kind_of_part
from .facts import Content, Facts, model_in, provider_in, without_provider
from .keys import GUESS, IN, OUT, SURE, meaning_of, words_of
from .kinds import OF_MODELS
from .shapes import are_messages, plain
from .values import opened, transcript
from .walk import facts_of

_INPUT_NAMES = ("arguments", "args", "kwargs", "params", "input", "inputs", "parameters", "request", "query")
_OUTPUT_NAMES = (
    "result", "results", "output", "outputs", "response", "return", "returned", "observation", "answer", "content", "value",
)  # fmt: skip
_ARGUMENT_HOLDERS = (
    "input_str", "tool_kwargs", "tool_input", "tool_args", "toolInput", "arguments", "args", "kwargs", "input", "inputs",
    "parameters",
)  # fmt: skip
_SURE_HOLDERS = frozenset(_ARGUMENT_HOLDERS[:5])
_METHOD = re.compile(r"\.(__call__|acall|call|run|arun|_run|invoke|ainvoke|execute|forward|aforward|tool)$")
"""Pattern for a method after a tool's name: ``Search.__call__``."""
_MODEL_FIELDS = (
    "provider", "input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens", "reasoning_tokens", "finish_reason",
    "response_id", "model", "cost_usd",
)  # fmt: skip
_STORES = ("db.", "messaging.", "aws.s3.")
"""Attribute prefixes for requests to databases, message brokers, and object stores, which contain other programs' data."""
_content_of_step = attrgetter(
    "input_messages", "output_messages", "tool_arguments", "tool_result", "input_value", "output_value", "documents"
)
_CONTENT_TYPES = (str, tuple, list, dict)
_NOT_CAPTURED = ("<not specified>", "HIDDEN:")
"""Placeholders for content that wasn't captured."""
_BEGINNING = 80


def role_of(facts: Facts) -> str | None:
    fields = facts.fields
    has_usage = "output_tokens" in fields or ("input_tokens" in fields and (facts.failed or has_answer(facts)))
    has_content = bool(facts.messages or facts.texts or facts.whole_values or (facts.failed and facts.spread_arguments))
    has_evidence = has_content or has_usage or "model" in fields or facts.calls_model
    if facts.kind is not None and (facts.kind_strength > 1 or facts.kind == AGENT or has_evidence):
        return _role_of_kind(facts, has_evidence)
    has_output_messages = any(content.direction == OUT for content in facts.messages)
    if not has_usage and (role := _role_without_usage(facts, has_output_messages)) is not None:
        return role
    name_role = facts.name_role
    if name_role == AGENT and (has_content or has_usage or "agent" in fields):
        return AGENT
    if name_role in (CHAIN, INNER) and has_content and not facts.shows_model_at_top:
        return name_role
    if _is_model_call(facts, has_usage, has_output_messages):
        return LLM
    if not has_content:
        return None
    if "agent" in fields and name_role != INNER:
        return AGENT
    return name_role if name_role in (CHAIN, INNER, RETRIEVAL) else CHAIN


def is_other_work(record: SpanRecord, facts: Facts, role: str | None) -> bool:
    """Return True if a guessed role is unlikely: for a data store request, or a server span without a model's input or outcome."""
    if facts.kind_strength > 1 or role not in (LLM, *ROOT_ROLES):
        return False
    if any(key.startswith(_STORES) for key in record.attributes):
        return True
    has_input = any(content.direction == IN for content in (*facts.messages, *facts.texts, *facts.whole_values))
    return record.server and role == LLM and not (has_input and (facts.failed or has_answer(facts)))


def _role_of_kind(facts: Facts, has_evidence: bool) -> str | None:
    if facts.kind == LLM:
        if not has_evidence:
            return LLM if facts.failed and facts.kind_strength >= 4 else None
        return EMBEDDING if facts.name_role == EMBEDDING else LLM
    if facts.kind in (CHAIN, INNER) and facts.whole_values and not facts.messages and facts.strength_of("tool_name") >= SURE:
        return TOOL
    if facts.kind == CHAIN and facts.name in facts.agents:
        return AGENT  # an agent's graph: LangChain writes the agent's name to spans and answers
    return GUARDRAIL if facts.kind == CHAIN and facts.name_role == GUARDRAIL else facts.kind


def _role_without_usage(facts: Facts, has_output_messages: bool) -> str | None:
    """Infer a role for a span without token counts from its name, tool, or documents. Return None if these don't show a role."""
    if facts.name_role == TOOL and (facts.messages or facts.texts or facts.whole_values):
        return TOOL  # even if its result resembles an answer
    if has_output_messages:
        return None
    if facts.name_role in (EMBEDDING, RERANK, GUARDRAIL, HANDOFF):
        return facts.name_role
    if facts.fields.get("tool_name"):
        return TOOL
    return RETRIEVAL if facts.documents is not None else None


def _is_model_call(facts: Facts, has_usage: bool, has_output_messages: bool) -> bool:
    has_model = "model" in facts.fields
    if has_usage and (has_model or facts.messages):
        return True
    has_whole_dialog = any(content.direction is None and _ends_with_answer(content) for content in facts.messages)
    has_failed = facts.failed and (facts.messages or not OF_MODELS.isdisjoint(words_of(facts.name)))
    if has_model and (has_output_messages or has_whole_dialog or has_failed or "finish_reason" in facts.fields):
        return True
    text_directions = {content.direction for content in facts.texts}
    return facts.name_role == LLM and (has_model or bool(facts.messages) or text_directions >= {IN, OUT})


def returns_prompt(facts: Facts) -> bool:
    """Return True if a span seems to prepare the next agent's prompt, because it has tool definitions and output messages."""
    return facts.definitions is not None and any(content.direction == OUT for content in facts.messages)


def _ends_with_answer(content: Content) -> bool:
    return bool(content.value) and _start_of_answer(plain(content.value[-1:])) == 0


def has_answer(facts: Facts) -> bool:
    """Return True if a span has output text, or messages (other than its input) that end with a model's message."""
    answered = any(content.direction != IN and _ends_with_answer(content) for content in facts.messages)
    return answered or any(content.direction == OUT for content in facts.texts)


def read(record: SpanRecord, step: Step, facts: Facts) -> bool:
    """Fill the step with inferred data. Return True if content (such as messages or a tool result) was added."""
    old_content = _content_of_step(step)
    _fill(record, step, facts)
    return any(new is not old for new, old in zip(_content_of_step(step), old_content, strict=True))


def complete(record: SpanRecord, step: Step) -> bool:
    """Fill content that the dialects didn't find, using any attribute. Return True if any content was filled."""
    old_content = _content_of_step(step)
    facts = facts_of(record)
    if step.role == TOOL:
        _read_tool(record, step, facts)
    elif step.role == LLM:
        _read_llm(step, facts)
    else:
        _read_run(step, facts)
    return old_content != _content_of_step(step)


def lacks_content(record: SpanRecord, step: Step) -> bool:
    """Return True if the step's input or output seems to be in an attribute or log record that wasn't read."""
    role = step.role
    if role == LLM:
        lacks_input, lacks_output = step.input_messages is None, step.output_messages is None
    elif role == TOOL:
        lacks_input, lacks_output = step.tool_arguments is None and step.tool_inputs is None, step.tool_result is None
    elif role in ROOT_ROLES:
        lacks_input = step.input_messages is None and step.input_value is None
        lacks_output = step.output_messages is None and step.output_value is None and step.final_result is None
    else:
        return False
    lacks_output &= record.status != ERROR
    if not (lacks_input or lacks_output):
        return False
    attributes = record.attributes
    content = record.dialects.shape.content
    if not content and not record.logs:
        return False
    if lacks_input and role != TOOL and any(kind_of_part(part) is not None for part in record.logs):
        return True
    for key, direction in content:
        value = attributes[key]
        is_lacking = (lacks_input if direction == IN else lacks_output) and (role == TOOL or "tool" not in key)
        if is_lacking and value and value.__class__ in _CONTENT_TYPES:
            is_placeholder = value.__class__ is str and any(mark in value[:_BEGINNING] for mark in _NOT_CAPTURED)
            if not is_placeholder:
                return True
    return False


def _fill(record: SpanRecord, step: Step, facts: Facts) -> None:
    fields = facts.fields
    role = step.role
    if step.conversation_id is None:
        step.conversation_id = fields.get("conversation_id")
    if step.user_id is None:
        step.user_id = fields.get("user_id")
    if role is None:
        return
    if "failed" in fields:
        step.tool_failed = True
    if step.agent is None:
        step.agent = _agent(facts, record) if role == AGENT else fields.get("agent")
    if role == HANDOFF and step.handoff_to is None:
        step.handoff_to = fields.get("handoff_to")
    if role == TOOL:
        _read_tool(record, step, facts)
        return
    step.function = facts.function
    _fill_usage(record, step, facts)
    if role == RETRIEVAL:
        _read_retrieval(step, facts)
    elif role == LLM:
        _read_llm(step, facts)
    elif role != EMBEDDING:
        _read_run(step, facts)
    if step.system is None:
        step.system = facts.system
    if step.tool_definitions is None:
        step.tool_definitions = facts.definitions


def _fill_usage(record: SpanRecord, step: Step, facts: Facts) -> None:
    fields = facts.fields
    if step.model is not None:
        step.provider = step.provider or provider_in(step.model)
        step.model = without_provider(step.model)
    for field in _MODEL_FIELDS:
        if getattr(step, field) is None and field in fields:
            setattr(step, field, fields[field])
    if step.time_to_first_token_s is None and "first_token_at" in fields:
        step.time_to_first_token_s = seconds_until(fields["first_token_at"], record.start_ns)
    if step.provider is None and step.role == LLM:
        step.provider = provider_in(fields.get("name")) or provider_in(record.name)
    if step.role == LLM and step.model is None:
        step.model = model_in(fields.get("name")) or model_in(facts.name_without_role) or model_in(record.name)


def _agent(facts: Facts, record: SpanRecord) -> str | None:
    name = facts.fields.get("agent") or facts.name_without_role or facts.fields.get("name")
    if name is None:
        name = record.name if facts.kind == AGENT or record.name in facts.agents else None
    return None if not name or name[0] == "_" or name.lower() in ("unknown", "agent", "run") or model_in(name) else name


# --- model calls


def _read_llm(step: Step, facts: Facts) -> None:
    inputs, outputs = _messages_in(step.input_messages), _messages_in(step.output_messages)
    if inputs is None or _have_only_roles(inputs):
        inputs = _messages_of_direction(facts, IN) or inputs
    if outputs is None or _have_only_roles(outputs):
        outputs = _messages_of_direction(facts, OUT) or outputs
    dialog = _messages_of_direction(facts, None) if inputs is None or outputs is None else None
    if dialog:
        start = _start_of_answer(dialog) if outputs is None else len(dialog)
        inputs = (dialog[:start] or None) if inputs is None else inputs
        outputs = (dialog[start:] or None) if outputs is None else outputs
    step.input_messages = _messages_in(_likeliest_text(facts, IN)) if inputs is None else inputs
    if outputs is None:
        outputs = _answer_after(step)
    step.output_messages = _messages_in(_likeliest_text(facts, OUT)) if outputs is None else outputs


def _messages_of_direction(facts: Facts, direction: str | None) -> list[Any] | None:
    contents = [content for content in facts.messages if content.direction == direction]
    return _richest(contents, facts.event_messages) if contents else None


def _messages_in(raw: Any) -> Any:
    """Parse text with messages, such as ``user: Hi`` or ``[HumanMessage(content='Hi')]``. Return None for empty or null text."""
    if raw.__class__ is not str:
        return raw
    if raw in ("", "None", "null"):
        return None
    if raw[:3] == '[{"' and raw[-1] != "]":  # truncated: the decoder sets the flag
        return raw
    value = opened(raw) if raw[:1] == "[" or raw.endswith(")") else raw
    return plain(value) if isinstance(value, list) and are_messages(value) else transcript(raw) or raw


def _have_only_roles(messages: Any) -> bool:
    """Return True if all messages lack content, as in ``[{"role": "user"}]``. Other attributes then contain the content."""
    if not isinstance(messages, list) or not messages:
        return False
    filled = ("content", "parts", "tool_calls", "message")
    return all(isinstance(message, dict) and not any(map(message.get, filled)) for message in messages)


def _richest_later(contents: list[Content], events: list[Content]) -> Any:
    return Later(plain, contents[0].value) if len(contents) == 1 and not events else _richest(contents, events)


def _richest(contents: list[Content], events: list[Content]) -> list[Any]:
    """Return the message list with the most content. The messages from all events form one list."""
    event_ids = {id(event.value) for event in events}
    event_messages = [message for content in contents if id(content.value) in event_ids for message in plain(content.value)]
    lists = [plain(content.value) for content in contents if id(content.value) not in event_ids]
    if not event_messages and len(lists) == 1:
        return list(lists[0])
    best = max(lists, key=_richness) if lists else []
    return event_messages if _richness(event_messages) > _richness(best) else best


def _richness(raw_messages: Any) -> tuple[int, int]:
    messages = decode(raw_messages, "user").messages if raw_messages else []
    filled = sum(bool(message.content or message.tool_calls or message.tool_results) for message in messages)
    return filled, sum(len(message.tool_calls) + len(message.tool_results) for message in messages)


def _start_of_answer(messages: list[Any]) -> int:
    last = messages[-1] if messages else None
    is_answer = isinstance(last, dict) and _role_in(last) in ("assistant", "ai", "model")
    return len(messages) - 1 if is_answer else len(messages)


def _role_in(message: Mapping[str, Any]) -> Any:
    inner = message.get("message")
    return message.get("role") or (inner.get("role") if isinstance(inner, dict) else None)


def _answer_after(step: Step) -> Any:
    """Remove and return a model's answer that follows other messages in the step's input, or return None."""
    messages = step.input_messages
    if not isinstance(messages, list) or len(messages) < 2:
        return None
    start = _start_of_answer(messages)
    if start == len(messages):
        return None
    step.input_messages = messages[:start]
    return messages[start:]


def _likeliest_text(facts: Facts, direction: str) -> str | None:
    texts = [content for content in facts.texts if content.direction == direction and content.value.__class__ is str]
    if not texts:
        return None
    names = _INPUT_NAMES if direction == IN else _OUTPUT_NAMES
    likeliest: str = max(texts, key=lambda content: _rank(content.path, names)).value
    return likeliest


# --- tools, documents, runs


def _rank(path: str, names: Iterable[str]) -> float:
    words = words_of(path)
    return max((1 / (1 + place) for place, name in enumerate(names) if name in words[-2:]), default=0.0) - len(words) / 1000


def _likeliest_whole(facts: Facts, direction: str, names: tuple[str, ...]) -> Content | None:
    wholes = [content for content in facts.whole_values if content.direction == direction]
    if direction == IN:
        wholes = [content for content in wholes if content.value.__class__ not in (bool, int, float)]
    return max(wholes, key=lambda content: _rank(content.path, names)) if wholes else None


def _read_tool(record: SpanRecord, step: Step, facts: Facts) -> None:
    fields = facts.fields
    inputs, outputs = _likeliest_whole(facts, IN, _INPUT_NAMES), _likeliest_whole(facts, OUT, _OUTPUT_NAMES)
    if "own_name" in fields:
        step.tool_name = fields["own_name"]
    if step.tool_name is None:
        step.tool_name = _METHOD.sub("", _tool_name(facts) or record.name) or None
    if step.tool_call_id is None:
        step.tool_call_id = fields.get("tool_call_id")
    if step.tool_arguments is None:
        step.tool_arguments = facts.spread_arguments
        if inputs is not None and not step.tool_arguments:
            step.tool_arguments = _arguments(_in_record(inputs.value, step, _ARGUMENT_HOLDERS))
    if step.tool_result is None:
        step.tool_result = facts.spread_result
        if outputs is not None and not step.tool_result:
            step.tool_result = _unwrapped(_in_record(outputs.value, step, _OUTPUT_NAMES))
    for content in facts.event_messages:  # some instrumentations write both as messages
        if content.direction == OUT or "result" in words_of(content.path):
            step.tool_result = _first_message(content) if step.tool_result is None else step.tool_result
        elif content.direction == IN and step.tool_arguments is None:
            step.tool_arguments = _first_message(content)


def _tool_name(facts: Facts) -> str | None:
    name = facts.fields.get("name")
    entity = name if facts.strength_of("name") > GUESS else None  # entity.name
    return facts.fields.get("tool_name") or entity or (facts.name_without_role if facts.name_role == TOOL else None) or name


def _in_record(raw: Any, step: Step, names: Iterable[str]) -> Any:
    """If ``raw`` is an object that describes the tool call, return its first value under ``names``. Otherwise, return ``raw``."""
    call_id = step.tool_call_id
    if call_id is None:
        return raw
    value = opened(raw) if raw.__class__ is str and call_id in raw else raw
    request = value.get("request", value) if isinstance(value, dict) else None
    if not isinstance(request, dict) or call_id not in request.values() or step.tool_name not in request.values():
        return raw
    found = next((value[name] for name in names if name in value), raw)
    parts = found.get("responseParts") if isinstance(found, dict) else None
    first = parts[0] if isinstance(parts, list) and parts else None
    return first["functionResponse"] if isinstance(first, dict) and "functionResponse" in first else found  # Gemini CLI


def _unwrapped(raw: Any) -> Any:
    """Unwrap a tool's input or output: ``[{"role": "tool", "content": "sunny"}]`` → ``"sunny"``. Return other values unchanged."""
    value = opened(raw) if raw.__class__ is str and raw.startswith(("[{", '{"output"')) else raw
    if isinstance(value, dict) and value.keys() == {"type", "value"}:
        return _unwrapped(value["value"])
    if isinstance(value, dict) and value.keys() == {"output"}:
        return value["output"]
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict):
        message = value[0]
        if message.get("role") in ("tool", "unknown") and message.keys() == {"role", "content"}:
            return message["content"]
    return raw


def _arguments(raw: Any) -> Any:
    """Unwrap a tool's arguments: ``{"kwargs": {"city": "Rome"}}`` becomes ``{"city": "Rome"}``. Return other values unchanged."""
    raw = _unwrapped(raw)
    value = opened(raw)
    if isinstance(value, (list, tuple)) and (joined := _joined_objects(value)) is not None:
        value = raw = joined
    for _ in range(3):
        if not isinstance(value, dict):
            break
        holders = (key for key in _ARGUMENT_HOLDERS if key in value and (len(value) == 1 or key in _SURE_HOLDERS))
        inner = next((opened(value[key]) for key in holders), None)
        if not isinstance(inner, dict):
            break
        value = raw = inner
    return raw


def _joined_objects(texts: Sequence[Any]) -> dict[str, Any] | None:
    objects = [opened(text) for text in texts if text.__class__ is str and text[:1] == "{"]
    joined = {key: value for item in objects if isinstance(item, dict) for key, value in item.items()}
    return joined if joined and len(objects) == len(texts) and len(joined) == sum(map(len, objects)) else None


def _first_message(content: Content) -> Any:
    message = plain(content.value[0]) if content.value else None
    return message.get("content") if isinstance(message, dict) else message


def _read_retrieval(step: Step, facts: Facts) -> None:
    if step.query is None:
        step.query = _likeliest_text(facts, IN) or _question_in(facts)
    if step.documents is None and facts.documents is not None:
        step.documents = documents(plain(facts.documents))


def _question_in(facts: Facts) -> str | None:
    inputs = _messages_of_direction(facts, IN)
    if inputs:
        return next((message.content for message in reversed(decode(inputs, "user").messages) if message.role == "user"), None)
    whole = _likeliest_whole(facts, IN, _INPUT_NAMES)
    return _first_text(whole.value) if whole is not None else None


def _first_text(value: Any) -> str | None:
    value = opened(value)
    if isinstance(value, dict):
        value = [*value.values()]
    if isinstance(value, list):
        return next(filter(None, map(_first_text, value)), None)
    return value if isinstance(value, str) else None


def _read_run(step: Step, facts: Facts) -> None:
    inputs = [content for content in facts.messages if content.direction != OUT]
    outputs = [content for content in facts.messages if content.direction == OUT]
    if step.input_messages is None and inputs:
        step.input_messages = _richest_later(inputs, facts.event_messages)
        if not outputs and step.output_messages is None and all(content.direction is None for content in inputs):
            _split_run(step)
    if step.output_messages is None and outputs:
        step.output_messages = _richest_later(outputs, facts.event_messages)
    if step.input_value is None:
        step.input_value = _text_or_whole(facts, IN, _INPUT_NAMES)
    if step.output_value is None:
        step.output_value = _text_or_whole(facts, OUT, _OUTPUT_NAMES)
    if inputs and step.input_value.__class__ is str and _is_template_around(step.input_value, _question_in(facts) or ""):
        step.input_messages = None


def _is_template_around(words: str, prompt: str) -> bool:
    """Return True if the prompt contains the user's words on separate lines, or after a label: ``Task: {words}``."""
    return words != prompt and any(f"{start}{words}\n" in f"\n{prompt}\n" for start in ("\n", ": "))


def _split_run(step: Step) -> None:
    raw = step.input_messages
    messages = raw.reader(raw.raw) if raw.__class__ is Later else raw
    roles = [(_role_in(message) or message.get("type")) if isinstance(message, dict) else None for message in messages]
    start = next((index for index in range(len(roles), 0, -1) if roles[index - 1] in ("user", "human")), 0)
    if 0 < start < len(messages):
        step.input_messages, step.output_messages = messages[:start], messages[start:]


def _text_or_whole(facts: Facts, direction: str, names: tuple[str, ...]) -> Any:
    if (text := _likeliest_text(facts, direction)) is not None:
        return text
    if (whole := _likeliest_whole(facts, direction, names)) is None:
        return None
    value = opened(whole.value) if whole.value.__class__ is str and len(whole.value) < 100 else whole.value
    only_describes = isinstance(value, dict) and value and all(key.endswith("_type") for key in value)  # {"output_type": "str"}
    return None if only_describes else whole.value


# --- conversations

_LONGEST_ID = 300


def conversation_in(steps: Iterable[Step]) -> str | None:
    """Return the most certain conversation ID in the steps' attributes or metadata, or None."""
    surest_strength, surest_id = 1, ""
    for step in steps:
        for key in step.conversation_keys:
            strength, conversation_id = _conversation_at(key, step.record.attributes[key])
            if conversation_id and strength > surest_strength:
                surest_strength, surest_id = strength, conversation_id
    return surest_id or None


def _conversation_at(key: str, value: Any) -> tuple[int, str]:
    """Return (confidence, conversation ID) for an attribute. The ID is ``""`` if the attribute doesn't contain one."""
    meaning = meaning_of(key)
    if meaning.field == "conversation_id":
        value = str(value) if value.__class__ in (str, int) else ""
        return meaning.strength, value if len(value) <= _LONGEST_ID and value[:1] not in "[{<" else ""
    if value.__class__ is str and "_id" not in value and "Id" not in value:  # all names contain one of them
        return 2, ""
    value = opened(value)
    names = (name for name in CONVERSATION_NAMES if isinstance(value, dict) and value.get(name).__class__ is str)
    return 2, next((value[name] for name in names if 0 < len(value[name]) <= _LONGEST_ID), "")
