"""Role and step of a span of unknown format."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
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
from .facts import Content, Facts, model_in, provider_in, without_provider
from .keys import IN, OUT, SURE, meaning_of, words_of
from .kinds import OF_MODELS
from .logged import kind_of_part
from .shapes import are_messages, plain
from .values import opened, transcript

_ARGUMENTS = ("arguments", "args", "kwargs", "params", "input", "inputs", "parameters", "request", "query")
_RESULTS = (
    "result", "results", "output", "outputs", "response", "return", "returned", "observation", "answer", "content", "value",
)  # fmt: skip
_ARGUMENT_HOLDERS = (
    "input_str", "tool_kwargs", "tool_input", "tool_args", "toolInput", "arguments", "args", "kwargs", "input", "inputs",
    "parameters",
)  # fmt: skip
_SURE_HOLDERS = frozenset(_ARGUMENT_HOLDERS[:5])
_METHOD = re.compile(r"\.(__call__|acall|call|run|arun|_run|invoke|ainvoke|execute|forward|aforward|tool)$")
"""Method at the end of a tool's name, which is no part of it."""
_FILLED = (
    "provider", "input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens", "finish_reason", "response_id",
    "model", "cost_usd",
)  # fmt: skip
_STORES = ("db.", "messaging.", "aws.s3.")
"""Prefixes of attributes of requests that store or carry other programs' data."""
_content_of_step = attrgetter(
    "input_messages", "output_messages", "tool_arguments", "tool_result", "input_value", "output_value", "documents"
)
_CONTENT_TYPES = (str, tuple, list, dict)
_NOT_CAPTURED = ("<not specified>", "HIDDEN:")
"""Placeholders for content that wasn't captured."""
_BEGINNING = 80


def role_of(facts: Facts) -> str | None:
    fields = facts.fields
    usage = "output_tokens" in fields or ("input_tokens" in fields and (facts.failed or has_answer(facts)))
    has_content = bool(facts.content or facts.texts or facts.wholes)
    shown = has_content or usage or "model" in fields or facts.calls_model
    if facts.kind is not None and (facts.kind_strength > 1 or facts.kind == AGENT or shown):
        return _role_of_kind(facts, shown)
    answered = any(content.direction == OUT for content in facts.content)
    if not usage and (role := _role_without_usage(facts, answered)) is not None:
        return role
    named = facts.name_role
    if named == AGENT and (has_content or usage or "agent" in fields):
        return AGENT
    if named in (CHAIN, INNER) and has_content and not facts.near:
        return named
    if _is_call(facts, usage, answered):
        return LLM
    if not has_content:
        return None
    if "agent" in fields and named != INNER:
        return AGENT
    return named if named in (CHAIN, INNER, RETRIEVAL) else CHAIN


def is_other_work(record: SpanRecord, facts: Facts, role: str | None) -> bool:
    """Return True for a span of a store or a broker, or of a server that shows no input or no answer."""
    if facts.kind_strength > 1 or role not in (LLM, *ROOT_ROLES):
        return False
    if any(key.startswith(_STORES) for key in record.attributes):
        return True
    has_input = any(content.direction == IN for content in (*facts.content, *facts.texts, *facts.wholes))
    return record.server and role == LLM and not (has_input and (facts.failed or has_answer(facts)))


def _role_of_kind(facts: Facts, shown: bool) -> str | None:
    """Return the role of a span with a kind. ``shown`` is True if it has content, a model or token counts."""
    if facts.kind == LLM:
        if not shown:
            return LLM if facts.failed and facts.kind_strength >= 4 else None
        return EMBEDDING if facts.name_role == EMBEDDING else LLM
    if facts.kind in (CHAIN, INNER) and facts.wholes and not facts.content and facts.strength_of("tool_name") >= SURE:
        return TOOL
    if facts.kind == CHAIN and facts.name in facts.agents:
        return AGENT  # an agent's graph: LangChain writes the agent's name on its spans and answers
    if facts.kind == CHAIN and facts.name_role == GUARDRAIL:
        return GUARDRAIL
    return facts.kind


def _role_without_usage(facts: Facts, answered: bool) -> str | None:
    """Return the role of a span without token counts, as far as its name, tool or documents show it."""
    if facts.name_role == TOOL and (facts.content or facts.texts or facts.wholes):
        return TOOL  # even if its result resembles an answer
    if answered:
        return None
    if facts.name_role in (EMBEDDING, RERANK, GUARDRAIL, HANDOFF):
        return facts.name_role
    if facts.fields.get("tool_name"):
        return TOOL
    return RETRIEVAL if facts.documents is not None else None


def _is_call(facts: Facts, usage: bool, answered: bool) -> bool:
    model = "model" in facts.fields
    if usage and (model or facts.content):
        return True
    ended = any(content.direction is None and _is_answered(content) for content in facts.content)  # messages end with the model's
    failed = facts.failed and (facts.content or not OF_MODELS.isdisjoint(words_of(facts.name)))
    if model and (answered or ended or failed or "finish_reason" in facts.fields):
        return True
    directions = {content.direction for content in facts.texts}
    return facts.name_role == LLM and (model or bool(facts.content) or directions >= {IN, OUT})


def returns_prompt(facts: Facts) -> bool:
    """Return True if a span's result is the next agent's messages and tools."""
    return facts.definitions is not None and any(content.direction == OUT for content in facts.content)


def _is_answered(content: Content) -> bool:
    return _start_of_answer(plain(content.value[-1:])) == 0 and bool(content.value)


def has_answer(facts: Facts) -> bool:
    """Return True if a span contains a possible answer of a model."""
    for content in facts.content:
        if content.direction != IN and _is_answered(content):
            return True
    return any(content.direction == OUT for content in facts.texts)


def read(record: SpanRecord, step: Step, facts: Facts) -> bool:
    """Fill the fields that no dialect has filled. Return True if any of them is content."""
    before = _content_of_step(step)
    _fill(record, step, facts)
    return any(one is not other for one, other in zip(before, _content_of_step(step), strict=True))


def complete(record: SpanRecord, step: Step) -> bool:
    """Fill the content that a dialect didn't find. Return True if there is any."""
    before = _content_of_step(step)
    facts = Facts(record)
    if step.role == TOOL:
        _read_tool(record, step, facts)
    elif step.role == LLM:
        _read_llm(step, facts)
    else:
        _read_run(step, facts)
    return before != _content_of_step(step)


def lacks_content(record: SpanRecord, step: Step) -> bool:
    """Return True if a dialect found no input or output in a span that has attributes whose names show one."""
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
    return (lacks_input and role != TOOL and any(kind_of_part(part) is not None for part in record.logs)) or any(
        (lacks_input if direction == IN else lacks_output)
        and attributes[key]
        and attributes[key].__class__ in _CONTENT_TYPES
        and not (attributes[key].__class__ is str and any(mark in attributes[key][:_BEGINNING] for mark in _NOT_CAPTURED))
        for key, direction in content
        if role == TOOL or "tool" not in key
    )


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
    for field in _FILLED:
        if getattr(step, field) is None and field in fields:
            setattr(step, field, fields[field])
    if step.time_to_first_token_s is None and "first_token_at" in fields:
        step.time_to_first_token_s = seconds_until(fields["first_token_at"], record.start_ns)
    if step.provider is None and step.role == LLM:
        step.provider = provider_in(fields.get("name")) or provider_in(record.name)
    if step.role == LLM and step.model is None:
        step.model = model_in(fields.get("name")) or model_in(facts.name_left) or model_in(record.name)


def _agent(facts: Facts, record: SpanRecord) -> str | None:
    found = facts.fields.get("agent") or facts.name_left or facts.fields.get("name")
    if found is None:
        found = record.name if facts.kind == AGENT or record.name in facts.agents else None
    if not found or found[0] == "_" or found.lower() in ("unknown", "agent", "run") or model_in(found):
        return None
    return found


# --- model calls


def _read_llm(step: Step, facts: Facts) -> None:
    inputs, outputs = _messages_in(step.input_messages), _messages_in(step.output_messages)
    if inputs is None or _have_only_roles(inputs):
        inputs = _of_direction(facts, IN) or inputs
    if outputs is None or _have_only_roles(outputs):
        outputs = _of_direction(facts, OUT) or outputs
    either = _of_direction(facts, None) if inputs is None or outputs is None else None
    if either:
        split = _start_of_answer(either) if outputs is None else len(either)
        inputs = (either[:split] or None) if inputs is None else inputs
        outputs = (either[split:] or None) if outputs is None else outputs
    step.input_messages = _messages_in(_text(facts, IN)) if inputs is None else inputs
    if outputs is None:
        outputs = _answer_after(step)
    step.output_messages = _messages_in(_text(facts, OUT)) if outputs is None else outputs


def _of_direction(facts: Facts, direction: str | None) -> list[Any] | None:
    """Return the richest messages of a direction, or None without any."""
    found = [content for content in facts.content if content.direction == direction]
    return _joined(found, facts.events) if found else None


def _messages_in(raw: Any) -> Any:
    """Return the messages in a text: a transcript, or the ``repr`` of message objects."""
    if raw.__class__ is not str:
        return raw
    if raw in ("", "None", "null"):
        return None
    if raw[:3] == '[{"' and raw[-1] != "]":  # truncated: the decoder sets the flag
        return raw
    value = opened(raw) if raw[:1] == "[" or raw.endswith(")") else raw
    if isinstance(value, list) and are_messages(value):
        return plain(value)
    return transcript(raw) or raw


def _have_only_roles(messages: Any) -> bool:
    """Return True if messages have only roles. Their content is in other attributes."""
    return (
        isinstance(messages, list)
        and bool(messages)
        and all(
            isinstance(message, dict) and not any(message.get(key) for key in ("content", "parts", "tool_calls", "message"))
            for message in messages
        )
    )


def _joined_later(found: list[Content], events: list[Content]) -> Any:
    """Return the same as :func:`_joined`, but a single message list is converted only if it is used."""
    return Later(plain, found[0].value) if len(found) == 1 and not events else _joined(found, events)


def _joined(found: list[Content], events: list[Content]) -> list[Any]:
    """Return the richest of several message lists. Messages of events count as one list."""
    single = {id(event.value) for event in events}
    single_messages = [message for content in found if id(content.value) in single for message in plain(content.value)]
    whole = [plain(content.value) for content in found if id(content.value) not in single]
    if not single_messages and len(whole) == 1:
        return list(whole[0])
    best = max(whole, key=_richness) if whole else []
    return single_messages if _richness(single_messages) > _richness(best) else best


def _richness(messages: Any) -> tuple[int, int]:
    found = decode(messages, "user").messages if messages else []
    filled = sum(bool(message.content or message.tool_calls or message.tool_results) for message in found)
    return filled, sum(len(message.tool_calls) + len(message.tool_results) for message in found)


def _start_of_answer(messages: list[Any]) -> int:
    last = messages[-1] if messages else None
    answered = isinstance(last, dict) and _role_in(last) in ("assistant", "ai", "model")
    return len(messages) - 1 if answered else len(messages)


def _role_in(message: Mapping[str, Any]) -> Any:
    inner = message.get("message")
    return message.get("role") or (inner.get("role") if isinstance(inner, dict) else None)


def _answer_after(step: Step) -> Any:
    """Remove and return the answer at the end of the input, where some instrumentations write the whole conversation."""
    messages = step.input_messages
    if not isinstance(messages, list) or len(messages) < 2:
        return None
    start = _start_of_answer(messages)
    if start == len(messages):
        return None
    step.input_messages = messages[:start]
    return messages[start:]


def _text(facts: Facts, direction: str) -> str | None:
    found = [content for content in facts.texts if content.direction == direction and content.value.__class__ is str]
    if not found:
        return None
    names = _ARGUMENTS if direction == IN else _RESULTS
    text: str = max(found, key=lambda content: _rank(content.path, names)).value
    return text


# --- tools, documents, runs


def _rank(path: str, names: Iterable[str]) -> float:
    words = words_of(path)
    return max((1 / (1 + place) for place, name in enumerate(names) if name in words[-2:]), default=0.0) - len(words) / 1000


def _whole(facts: Facts, direction: str, names: tuple[str, ...]) -> Content | None:
    found = [
        content for content in facts.wholes
        if content.direction == direction and (direction == OUT or content.value.__class__ not in (bool, int, float))
    ]  # fmt: skip
    return max(found, key=lambda content: _rank(content.path, names)) if found else None


def _read_tool(record: SpanRecord, step: Step, facts: Facts) -> None:
    fields = facts.fields
    inputs, outputs = _whole(facts, IN, _ARGUMENTS), _whole(facts, OUT, _RESULTS)
    if "own_name" in fields:
        step.tool_name = fields["own_name"]
    if step.tool_name is None:
        name = (
            fields.get("tool_name") or (facts.name_left if facts.name_role == TOOL else None) or fields.get("name") or record.name
        )
        step.tool_name = _METHOD.sub("", name) or None
    if step.tool_call_id is None:
        step.tool_call_id = fields.get("tool_call_id")
    if step.tool_arguments is None:
        step.tool_arguments = facts.spread or (_arguments(inputs.value) if inputs is not None else None)
    if step.tool_result is None:
        step.tool_result = facts.spread_result or (_unwrapped(outputs.value) if outputs is not None else None)
    for content in facts.events:  # some instrumentations write both as messages
        if content.direction == OUT or "result" in words_of(content.path):
            step.tool_result = _content_of(content) if step.tool_result is None else step.tool_result
        elif content.direction == IN and step.tool_arguments is None:
            step.tool_arguments = _content_of(content)


def _unwrapped(raw: Any) -> Any:
    """Return a tool's input or output without the single message around it."""
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
    """Return a tool's arguments without the framework's wrapper."""
    raw = _unwrapped(raw)
    value = opened(raw)
    for _ in range(3):
        if not isinstance(value, dict):
            break
        key = next((key for key in _ARGUMENT_HOLDERS if key in value and (len(value) == 1 or key in _SURE_HOLDERS)), None)
        inner = opened(value[key]) if key is not None else None
        if not isinstance(inner, dict):
            break
        value = raw = inner
    return raw


def _content_of(content: Content) -> Any:
    message = plain(content.value[0]) if content.value else None
    return message.get("content") if isinstance(message, dict) else message


def _read_retrieval(step: Step, facts: Facts) -> None:
    if step.query is None:
        step.query = _text(facts, IN) or _asked(facts)
    if step.documents is None and facts.documents is not None:
        step.documents = documents(plain(facts.documents))


def _asked(facts: Facts) -> str | None:
    """Return the last user message, or the first text among the arguments."""
    inputs = _of_direction(facts, IN)
    if inputs:
        return next((message.content for message in reversed(decode(inputs, "user").messages) if message.role == "user"), None)
    whole = _whole(facts, IN, _ARGUMENTS)
    return _first_text(whole.value) if whole is not None else None


def _first_text(value: Any) -> str | None:
    value = opened(value)
    if isinstance(value, dict):
        value = [*value.values()]
    if isinstance(value, list):
        return next(filter(None, map(_first_text, value)), None)
    return value if isinstance(value, str) else None


def _read_run(step: Step, facts: Facts) -> None:
    inputs = [content for content in facts.content if content.direction != OUT]
    outputs = [content for content in facts.content if content.direction == OUT]
    if step.input_messages is None and inputs:
        step.input_messages = _joined_later(inputs, facts.events)
        if not outputs and step.output_messages is None and all(content.direction is None for content in inputs):
            _split_run(step)
    if step.output_messages is None and outputs:
        step.output_messages = _joined_later(outputs, facts.events)
    if step.input_value is None:
        step.input_value = _text_or_whole(facts, IN, _ARGUMENTS)
    if step.output_value is None:
        step.output_value = _text_or_whole(facts, OUT, _RESULTS)
    if inputs and step.input_value.__class__ is str and _is_around(step.input_value, _asked(facts) or ""):
        step.input_messages = None


def _is_around(text: str, prompt: str) -> bool:
    """Return True if a framework wrote a prompt around the user's words, each on separate lines or after a label."""
    return text != prompt and any(f"{before}{text}\n" in f"\n{prompt}\n" for before in ("\n", ": "))


def _split_run(step: Step) -> None:
    """Split a run's whole conversation after the last user message into its input and output."""
    raw = step.input_messages
    messages = raw.reader(raw.raw) if raw.__class__ is Later else raw
    users = [isinstance(one, dict) and (_role_in(one) or one.get("type")) in ("user", "human") for one in messages]
    start = len(users) - users[::-1].index(True) if True in users else 0
    if 0 < start < len(messages):
        step.input_messages, step.output_messages = messages[:start], messages[start:]


def _text_or_whole(facts: Facts, direction: str, names: tuple[str, ...]) -> Any:
    text = _text(facts, direction)
    if text is not None:
        return text
    whole = _whole(facts, direction, names)
    return None if whole is None or _only_types(whole.value) else whole.value


def _only_types(raw: Any) -> bool:
    """Return True for an object that only describes a value: ``{"output_type": "str"}``."""
    value = opened(raw) if raw.__class__ is str and len(raw) < 100 else raw
    return isinstance(value, dict) and bool(value) and all(key.endswith("_type") for key in value)


# --- conversations

_LONGEST_ID = 300


def conversation_in(steps: Iterable[Step]) -> str | None:
    """Return the surest conversation id in the attributes of spans, of any prefix or in JSON metadata."""
    best = (1, "")
    for step in steps:
        for key in step.conversation_keys:
            found = _conversation_at(key, step.record.attributes[key])
            if found[1] and found[0] > best[0]:
                best = found
    return best[1] or None


def _conversation_at(key: str, value: Any) -> tuple[int, str]:
    """Return the conversation id under a name after its strength. It is empty if the value holds none."""
    meaning = meaning_of(key)
    if meaning.field == "conversation_id":
        value = str(value) if value.__class__ in (str, int) else ""
        return meaning.strength, value if len(value) <= _LONGEST_ID and value[:1] not in "[{<" else ""
    if value.__class__ is str and "_id" not in value and "Id" not in value:  # as in all names
        return 2, ""
    value = opened(value)
    names = (name for name in CONVERSATION_NAMES if isinstance(value, dict) and value.get(name).__class__ is str)
    return 2, next((value[name] for name in names if 0 < len(value[name]) <= _LONGEST_ID), "")
