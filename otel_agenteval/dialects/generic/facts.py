"""All facts in one span of unknown format. One walk over attributes, events and log records finds them.

The name of each value shows what it means: ``fw.llm.input_tokens: 12`` fills the field ``input_tokens``, and ``fw.prompt: "Hi"`` is
content of the input. Objects and lists are messages, tool calls or documents by their shape, or else are walked too.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ...spans.record import ERROR, SpanRecord
from ..attributes import as_float, as_text
from ..content import decode
from ..step import AGENT, CHAIN, EMBEDDING, LLM, RETRIEVAL, TOOL
from . import kinds
from .interest import FAILED, SPREAD, SPREAD_ARGUMENTS, SPREAD_RESULTS, holds_json, is_content_of_event
from .keys import EXACT, GUESS, IN, LIKELY, OUT, SURE, SYSTEM, SYSTEM_IF_LONG, Meaning, last_word, meaning_of, word_set, words_of
from .shapes import (
    are_documents,
    are_messages,
    are_requests,
    are_tools,
    is_definition,
    is_message,
    is_telling,
    may_be_message,
    pieces_in,
    plain,
)
from .values import Branch, Path, branches_of, opened, paths_of, tree_of

_MAX_DEPTH, _MAX_VALUES, _MAX_ITEMS, _MAX_TEXT, _MAX_NAME = 10, 4_000, 200, 1_000_000, 300
_DERIVED, _BY_VALUE = 0, 0.5  # confidence below GUESS: in a derived value, and in one recognized by its form, not its name
_STEP, _LEVELS_PER_STEP = 1, 20  # the distance from GUESS to LIKELY, and the levels of nesting that reduce confidence as much
_SHORT_INSTRUCTIONS = 20  # characters up to which agent.instructions isn't a system prompt: "default"
_DEPTH_IN_MESSAGE = 2  # of a message's metadata, wherever the message is
_COUNTS = frozenset(("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens", "total_tokens"))
_CALL_FIELDS = _COUNTS | {"tool_name", "tool_call_id", "model"}
_NAME_FIELDS = word_set("agent tool_name name provider conversation_id user_id tool_call_id response_id finish_reason")
_RESPONSE_ID = re.compile(r"(?:chatcmpl|resp|msg|gen|cmpl|req)[-_][\w-]{4,}")  # chatcmpl-9aXk, msg_01Ab
_MODEL_NAME = re.compile(
    r"(?:[\w.-]{1,60}[/:]){0,6}(?:gpt|o[1345](?=-|$)|chatgpt|claude|gemini|gemma|llama|mistral|mixtral|ministral|codestral|magistral|qwen|deepseek|grok|(?:command|phi|nova|titan|yi|palm|granite|falcon|sonar)(?![a-z_])|"
    r"jamba|kimi|glm|text-embedding|davinci|minimax|nemotron|gpt-oss|openchat|vicuna|anthropic\.|amazon\.|meta\.)[\w.:@/-]*",
    re.IGNORECASE,
)
"""A known model's name, with or without providers: ``gpt-4o``, ``aws/anthropic.claude-3``, but not ``my-gpt`` or ``philosopher``."""
_PROVIDERS = word_set("""
    openai azure azure_openai anthropic google gemini vertex_ai vertexai googleai google_genai mistral mistralai bedrock groq ollama
    cohere litellm deepseek xai together_ai fireworks_ai perplexity openrouter compat-oai google-genai openai-compatible aws models
""")
_CHAT_MODEL = frozenset(("chat", "model"))
_TELLING_KINDS = frozenset((LLM, RETRIEVAL, EMBEDDING))
MODEL, USAGE, KIND, TELLING, MESSAGES = 1, 2, 4, 8, 16
"""Bits for evidence of a model's work: a known model's name, token counts, a span kind, LLM-only messages, any messages."""
_CALL_WORDS = frozenset(("calls", "tools", "call", "requests"))
_EMPTY_TEXTS = frozenset(('""', "None", "null", "undefined", "()", "{}", "[]"))  # programs write them if there is no value
_MESSAGE_KEYS = frozenset(("content", "message", "tool_calls", "text", "body", "parts"))
_TOOL_WORDS = frozenset(("tool", "function"))
"""Words in the names of tool call events. Their values belong to the tool, not to the span with the event."""
_ABOUT_SPANS = word_set("exception evaluation evaluator score scores feedback annotation guardrail token")
_TYPED_VALUE = frozenset(("type", "value"))
_SCALARS = frozenset((str, int, float, bool))
_LAST_CHARACTERS = frozenset(('"', ")", "'", "}"))  # of JSON text and of a repr
_NOT_ARGUMENTS = word_set("value mime_type args kwargs arguments parameters params input messages raw json") | {""}
"""Names below ``inputs`` that aren't an argument's."""
_NOT_RESULTS = _NOT_ARGUMENTS | word_set("content text type role output result is_error isError count length message")
_FINISH_KEYS = frozenset(("finish_reason", "finishReason", "stop_reason", "stopReason"))
_METADATA_KEYS = word_set("meta usage response_metadata usage_metadata metadata token_usage models_usage custom raw")
_RUN_FIELDS = ("usage_metadata", "response_metadata", "tool_call_id")  # a user's message lacks them
_ENVELOPES = frozenset(("data", "payload"))  # attributes whose objects hold what other instrumentations write as attributes
_REPR = re.compile(r"[A-Za-z_][\w.]*(?:\[[\w., ]+\])?\(\w+=|<[\w.]+(?: object at |:)")  # Message(role=…, <app.Stream object at …


def is_repr(value: Any) -> bool:
    """Return True if a text is the ``repr`` of a Python object, which isn't content."""
    return value.__class__ is str and _REPR.match(value) is not None


class Content(NamedTuple):
    value: Any
    path: str
    direction: str | None  # None if no name shows it, as for a whole conversation


class NamePlace(NamedTuple):
    """An attribute to read, or several ones that make an object or a list: ``messages.0.role`` and ``messages.0.content``."""

    path: str
    nested: bool  # True if the name starts with the name of an object
    name: str  # the attribute's name, or the last part of the path if there are several
    parts: tuple[tuple[str, Path], ...]  # several attributes, with their paths from here; empty for one

    def value_in(self, attributes: Mapping[str, Any]) -> Any:
        return tree_of(attributes, self.parts)[self.name] if self.parts else attributes[self.name]


def places_of(names: Iterable[str]) -> tuple[NamePlace, ...]:
    """Return the attributes to read, and the objects that mean more as a whole than their attributes one by one."""
    paths = paths_of(names)
    tree = branches_of({name: (name, path) for name, path in paths}, paths)
    return tuple(place for key, node in tree.items() for place in _places_in(key, 1, node))


def _places_in(path: str, depth: int, node: Any) -> Iterator[NamePlace]:
    if node.__class__ is not Branch:
        yield NamePlace(path, depth > 1, node[0], ())
    elif not _has_meaning_as_whole(path, node):
        for key, inner in node.items():
            yield from _places_in(f"{path}.{key}" if key else path, depth + 1, inner)
    else:
        parts = tuple((name, full_path[depth - 1 :]) for name, full_path in _leaves(node))
        first_key = parts[0][1][0]
        yield NamePlace(path, depth > 1, first_key, parts)


def _leaves(node: Branch) -> Iterator[tuple[str, Path]]:
    for inner in node.values():
        if inner.__class__ is Branch:
            yield from _leaves(inner)
        else:
            yield inner


def _has_meaning_as_whole(path: str, node: Branch) -> bool:
    """Return True if the attributes below a name can mean something as a whole."""
    is_object = may_be_message(node) or "tools" in node or path.endswith("cost_details") or last_word(path) in SPREAD
    return is_object or any(map(str.isdecimal, node))  # or a list: messages.0, messages.1


class Facts:
    """A span's inferred facts. Each of its ``fields`` has the surest value. Three lists keep content in the span's order. For
    ``fw.output: '{"reply": "Sunny", "chat": [{"role": …}]}'``, ``messages`` has the value of ``chat``, ``texts`` has "Sunny", and
    ``whole_values`` has the whole JSON text.
    """

    def __init__(self, record: SpanRecord) -> None:
        self.name = record.name
        self.name_role, self.name_without_role = kinds.role_of_name(record.name)  # "execute_tool search" → TOOL, "search"
        self.failed = record.status == ERROR
        self.fields: dict[str, Any] = {}  # of the step: model, input_tokens, …
        self._strengths: dict[str, float] = {}  # the confidence in each of the fields
        # content
        self.messages: list[Content] = []  # lists of messages, at any depth
        self.event_messages: list[Content] = []  # those of the messages that are from events and log records
        self.texts: list[Content] = []  # plain texts under names of content, at any depth
        self.whole_values: list[Content] = []  # unparsed attributes with names of inputs or outputs, for steps without messages
        self.spread_arguments: dict[str, Any] | None = None  # a function's arguments, if each is an attribute: inputs.city
        self.spread_result: dict[str, Any] | None = None  # a function's result, if each field is an attribute: result.temperature
        self.documents: list[Any] | None = None
        self.definitions: list[Any] | None = None
        self.system: Any = None
        # the role
        self.kind: str | None = None  # the role from a kind attribute
        self.kind_strength = 0
        self.calls_model = False  # True if a surely stated kind names a model (llm, chat_model): enough without content
        self.function = False  # True if the kind is only a function's, whose decorator doesn't state its role
        self.agents: set[str] = set()  # names of agents, and of the authors of answers
        self.evidence = 0  # bits, from MODEL to MESSAGES
        self.shows_model_at_top = False  # True if a top-level attribute names a model or counts tokens
        if self.name_role == AGENT and kinds.agent_in(record.name):
            self.kind, self.kind_strength = AGENT, LIKELY
        self._values_read = 0
        self._read(record)

    def strength_of(self, field: str) -> float:
        """Return the confidence in a field, as in :attr:`.keys.Meaning.strength`."""
        return self._strengths.get(field, 0.0)

    def has_dialog(self) -> bool:
        """Return True if messages of a user and of a model are among messages that only models have."""
        return bool(self.evidence & TELLING) and any(
            {"user", "assistant"} <= {message.role for message in decode(plain(content.value), "user").messages}
            for content in self.messages
        )

    def set_role_of_events(self, stem: str) -> str | None:
        """Return the role that the stem of events hints at, and count it as evidence. The rest of the stem names the span."""
        role, self.name_without_role = kinds.role_of_stem(stem)
        self.evidence |= KIND
        return role

    # --- the walk

    def _read(self, record: SpanRecord) -> None:
        attributes = record.attributes
        for place in record.dialects.shape.places:
            value = place.value_in(attributes)
            if not place.nested or (value is not None and value != ""):
                self._walk(place.path, value, 0, None, attribute=True)
        for event in record.events:
            if not _is_no_content(event.name):
                self._read_event(event.name, event.attributes, None)
        for log in record.logs:
            if not _is_no_content(log.name):
                self._read_event(log.name, log.attributes, log.body)
        self._complete_tokens()

    def _walk(self, path: str, raw: Any, depth: int, outer: str | None, attribute: bool = False, in_input: bool = False) -> None:
        """Read a value and the values inside. ``outer`` is the direction of the value around it. ``attribute`` is true for an
        attribute's value at any level of a dotted name, and ``in_input`` is true inside the value of an input's attribute.
        """
        self._values_read += 1
        if depth > _MAX_DEPTH or self._values_read > _MAX_VALUES:
            return
        meaning = meaning_of(path)
        is_inside_input = depth > 0 and outer == IN  # an earlier answer in an input is input
        direction = outer if is_inside_input else meaning.direction or outer
        whole = value = raw  # the whole stays JSON text
        if raw.__class__ is str:
            if len(raw) > _MAX_TEXT:
                return
            if meaning.field != "error_message" and _may_be_opened(raw):
                value = opened(raw)
        if value.__class__ is dict and _is_typed_value(value):
            whole = value = opened(value["value"])
        if attribute:
            in_input = meaning.direction == IN and meaning.content
            if direction is not None and meaning.content and not _is_empty(whole):
                self.whole_values.append(Content(whole, path, direction))
        if isinstance(value, dict):
            self._walk_object(path, value, depth, direction, in_input)
        elif isinstance(value, (list, tuple)):
            self._walk_list(path, list(value), depth, meaning, direction, in_input)
        elif meaning.read_scalars or (depth == 0 and meaning.content) or value.__class__ not in _SCALARS:
            self._read_scalar(path, value, meaning, direction, depth, in_input)

    def _walk_object(self, path: str, value: Mapping[str, Any], depth: int, direction: str | None, in_input: bool) -> None:
        if is_message(value):
            self._add_messages([value], path, direction)
            return
        if direction == IN and "tools" in value and value.get("name") == self.name:  # an agent's description
            self.agents.add(self.name)
        if path.endswith("cost_details") and "total" not in value and {*map(type, value.values())} <= {int, float}:
            self._read_field("cost_usd", sum(value.values()), LIKELY, depth)
        keys_are_attributes = value.__class__ is Branch or (depth == 0 and path in _ENVELOPES)
        if keys_are_attributes:
            last = last_word(path)
            if last in SPREAD_ARGUMENTS and _NOT_ARGUMENTS.isdisjoint(value):
                self.spread_arguments = plain(value)
            elif last in SPREAD_RESULTS and _NOT_RESULTS.isdisjoint(value):
                self.spread_result = plain(value)
        inner_depth = depth if keys_are_attributes else depth + 1
        for key, inner in value.items():
            if inner is not None and inner != "":
                inner_path = path if key == "" else f"{path}.{key}"
                self._walk(inner_path, inner, inner_depth, direction, attribute=keys_are_attributes, in_input=in_input)

    def _walk_list(self, path: str, raw: list[Any], depth: int, meaning: Meaning, direction: str | None, in_input: bool) -> None:
        """Read a list by the first shape that its items have: texts, messages, tool calls, tools or documents."""
        if not raw:
            return
        items = [_opened_item(item) for item in raw]
        if direction == OUT:
            self._read_usage_of_run(items)
        if all(item.__class__ is str for item in items):
            self._add_text(path, items, depth, meaning, direction, in_input)
            return
        have_one_key = all(isinstance(item, dict) and len(item) == 1 for item in items)  # [{"message": {"role": …}}]
        unwrapped = plain(items) if have_one_key else items
        if are_messages(unwrapped):
            self._add_messages(unwrapped, path, direction)
        elif _are_calls(path, unwrapped, direction):
            self._add_messages([{"role": "assistant", "tool_calls": plain(unwrapped)}], path, OUT)
        elif are_tools(unwrapped):
            self.definitions = self.definitions or plain(unwrapped)
        elif are_documents(unwrapped) and direction != IN:
            self.documents = unwrapped if self.documents is None else self.documents
        else:  # chunks of a streamed answer, or values to walk
            if direction != IN and (pieces := pieces_in(items)):
                self._add_messages(pieces, path, OUT)
            for item in items[:_MAX_ITEMS]:
                if isinstance(item, (dict, list)):
                    self._walk(path, item, depth + 1, direction, in_input=in_input)

    def _read_usage_of_run(self, items: list[Any]) -> None:
        """Add the tokens of the model's messages at the end of a run's history."""
        usages = []
        for item in reversed(items):
            message = item.get("kwargs", item) if isinstance(item, dict) else None
            if not isinstance(message, dict) or not any(message.get(key) for key in _RUN_FIELDS):
                break
            if isinstance(usage := message.get("usage_metadata"), dict):
                usages.append(usage)
        if len(usages) > 1:
            for field in ("input_tokens", "output_tokens"):
                self._set(field, sum(_count(usage.get(field)) or 0 for usage in usages), EXACT)

    def _add_text(self, path: str, items: list[str], depth: int, meaning: Meaning, direction: str | None, in_input: bool) -> None:
        are_chunks = any(text[:1].isspace() or text[-1:].isspace() for text in items)  # ["It ", "rains."]
        self._read_scalar(path, "".join(items) if are_chunks else items[0], meaning, direction, depth, in_input)
        if meaning.text and len(items) > 1 and direction is not None:
            self.texts.append(Content(items, path, direction))

    # --- found values

    def _add_messages(self, messages: list[Any], path: str, direction: str | None) -> None:
        if direction != IN and self._read_search_result(messages):
            return
        self.evidence |= MESSAGES
        if any(is_telling(message) for message in messages if isinstance(message, dict)):
            self.evidence |= TELLING
        if self.definitions is None:  # definitions may be messages with the role "tool"
            by_tools = [message for message in messages if isinstance(message, dict) and message.get("role") == "tool"]
            contents = [message.get("content") for message in by_tools]
            self.definitions = [content for content in contents if isinstance(content, dict) and is_definition(content)] or None
        self.messages.append(Content(messages, path, direction))
        last = messages[-1]
        if direction != IN and isinstance(last, dict):
            self._read_message(last, path, 0)

    def _read_search_result(self, messages: list[Any]) -> bool:
        """Read the documents in a retrieval's only message, and return True: ``[{"content": {"results": [{"id": 1, "text": …}]}}]``."""
        content = messages[0].get("content") if len(messages) == 1 and isinstance(messages[0], dict) else None
        results = next(iter(content.values())) if isinstance(content, dict) and len(content) == 1 else None
        if not isinstance(results, list) or not are_documents(results):
            return False
        self.documents, self.kind, self.kind_strength = results, RETRIEVAL, LIKELY
        return True

    def _read_message(self, message: Mapping[str, Any], path: str, depth: int) -> None:
        for key, inner in message.items():
            if key in _FINISH_KEYS and inner.__class__ is str and inner:
                self._set("finish_reason", inner, SURE)
            elif key == "name" and inner.__class__ is str:
                self.agents.add(inner)
            elif key in _METADATA_KEYS and isinstance(inner, dict):
                self._walk(f"{path}.{key}", inner, _DEPTH_IN_MESSAGE, OUT)  # not in_input: an answer's own token counts
            elif key in ("message", "kwargs", "data") and isinstance(inner, dict) and depth < 3:
                self._read_message(inner, path, depth + 1)

    def _read_scalar(self, path: str, value: Any, meaning: Meaning, direction: str | None, depth: int, in_input: bool) -> None:
        if value is None or value == "" or (value.__class__ is str and value in _EMPTY_TEXTS):
            return
        field = meaning.field
        if field == "agent" or (field == "name" and direction == OUT and depth > 1):  # an answer's author
            self.agents.add(str(value))
        counts_earlier_call = in_input and depth > 0 and field in _COUNTS
        if field is not None and not counts_earlier_call:
            strength = meaning.strength - depth / _LEVELS_PER_STEP
            if field == "model" and direction == OUT:  # the model that answered is surer than the requested one
                strength += _STEP
            self._read_field(field, value, strength, depth)
        if value.__class__ is not str:
            return
        if direction != IN and path.endswith("id") and _RESPONSE_ID.fullmatch(value):
            self._set("response_id", value, _BY_VALUE)
        is_system = meaning.system == SYSTEM or (meaning.system == SYSTEM_IF_LONG and len(value) > _SHORT_INSTRUCTIONS)
        is_content = meaning.text or (depth == 0 and meaning.direction is not None and meaning.content)
        if is_system and self.system is None:  # a second one is content
            self.system = value
        elif is_content and not is_repr(value):
            self.texts.append(Content(value, path, direction))

    def _read_field(self, field: str, value: Any, strength: float, depth: int) -> None:
        if field == "kind":
            if depth == 0 and value.__class__ is str:
                self._set_kind(value, strength)
        elif field in _COUNTS:
            count = _count(value)
            if count is not None:
                self._set(field, count, strength)
                self.shows_model_at_top |= depth == 0
                if "input_tokens" in self.fields and "output_tokens" in self.fields:
                    self.evidence |= USAGE
        elif field == "model":
            if value.__class__ is str and _is_model_like(value):
                self._set_model(value, strength, depth)
        elif field in ("outcome", "failure"):
            if depth == 0 and _is_failure(field, str(value).strip().lower()):
                self._set("failed", value, GUESS)
            elif depth == 2 and field == "failure" and value.__class__ is str:  # result: [{"error": "No such city"}]
                self._set("error_message", value, GUESS)
        elif field == "error_message":
            self._set(field, as_text(value), GUESS)
        elif field == "cost_usd":
            self._set(field, as_float(value), strength)
        elif field == "first_token_at":
            self._set(field, value, strength)
        elif field in _NAME_FIELDS:
            self._set_name(field, value, strength)

    def _set_model(self, value: str, strength: float, depth: int) -> None:
        is_known = _MODEL_NAME.fullmatch(value) is not None
        if is_known:
            self.evidence |= MODEL
            self.shows_model_at_top |= depth == 0
            strength += _STEP
        self._set("provider", provider_in(value), _DERIVED)
        self._set("model", without_provider(value), strength)

    def _set_name(self, field: str, value: Any, strength: float) -> None:
        if field == "finish_reason" and str(value).lower() in FAILED:
            self._set("failed", value, GUESS)
        if value.__class__ is str and 0 < len(value) <= _MAX_NAME and "\n" not in value and value[:1] not in "{[<":
            self._set(field, value, strength)
        elif field == "conversation_id" and value.__class__ is int:
            self._set(field, str(value), strength)

    def _complete_tokens(self) -> None:
        """Derive missing output tokens from the total. Add reasoning and cached tokens that the total includes, but the counts exclude."""
        fields = self.fields
        if "output_tokens" not in fields and fields.get("total_tokens", 0) > fields.get("input_tokens", math.inf):
            self._set("output_tokens", fields["total_tokens"] - fields["input_tokens"], _DERIVED)
            self.evidence |= USAGE
        elif {"input_tokens", "output_tokens", "total_tokens"} <= fields.keys():
            uncounted = fields["total_tokens"] - fields["input_tokens"] - fields["output_tokens"]
            reasoning = fields.get("reasoning_tokens") or 0
            if 0 < reasoning <= uncounted:
                fields["output_tokens"] += reasoning
                uncounted -= reasoning
            if uncounted > 0 and fields.get("cached_tokens"):
                fields["input_tokens"] += uncounted

    def _set_kind(self, value: str, strength: float) -> None:
        """Set the role of a kind, unless an equally sure one is known. A chain can be anything, so any other role replaces it."""
        role = kinds.role_of_kind(value)
        if role is None and strength >= EXACT and value.lower() in kinds.FUNCTIONS:
            role, self.function = CHAIN, True
        if role is None:
            return
        level = max(math.ceil(strength), LIKELY if role in _TELLING_KINDS else GUESS)
        replaces_kind = role != CHAIN and (self.kind == CHAIN or level > self.kind_strength)
        if self.kind is None or replaces_kind:
            self.kind, self.kind_strength = role, level
            words = frozenset(words_of(value))
            self.calls_model = role == LLM and strength >= SURE and ("llm" in words or words >= _CHAT_MODEL)
            self.evidence |= KIND if level >= LIKELY else 0

    def _set(self, field: str, value: Any, strength: float) -> None:
        """Set a field, unless it has a value that is as sure. The first of equally sure values stays."""
        if value is not None and strength > self._strengths.get(field, -math.inf):
            self._strengths[field] = strength
            self.fields[field] = value

    # --- events and log records

    def _read_event(self, name: str, attributes: Mapping[str, Any], body: Any) -> None:
        """Read an event as one message if it has the form or the name of one, or else as attributes of the span."""
        label = attributes.get("event.name") or name
        values = _values_of_event(label, attributes, opened(body))
        words = words_of(str(label))
        role, direction = _author_of_event(words)
        is_of_tool = not _TOOL_WORDS.isdisjoint(words)
        is_span_of_tool = TOOL in (self.name_role, self.kind) or "tool_name" in self.fields
        old_count = len(self.messages)
        if is_message(values):
            self._add_messages([values], str(label), direction)
        elif role is not None and not _MESSAGE_KEYS.isdisjoint(values):
            self._add_messages([_as_message(values, role)], str(label), direction)
        elif is_span_of_tool or not is_of_tool:
            self._walk_event(label, values, direction)
        self.event_messages += self.messages[old_count:]

    def _walk_event(self, label: Any, values: Mapping[str, Any], direction: str | None) -> None:
        content = {key: value for key, value in values.items() if not _is_property(key, value)}
        for key, value in tree_of(content, paths_of(content)).items():
            meaning = meaning_of(key)
            if meaning.field not in ("name", "kind"):  # of the event's subject, not the span
                path = key if meaning.direction or meaning.field else f"{label}.{key}"
                self._walk(path, value, 0, direction, attribute=True)


def _values_of_event(label: Any, attributes: Mapping[str, Any], body: Any) -> dict[str, Any]:
    """Return the content of an event or a log record: attributes and the body's fields, or the body as ``body`` or ``content``."""
    values = {key: value for key, value in attributes.items() if key != "event.name" and is_content_of_event(key)}
    if isinstance(body, dict):
        values.update(body)
    elif isinstance(body, (list, tuple)):
        values["body"] = body
    elif body.__class__ is str and body and body != label and not any(map(_states_fact, values)):
        values.setdefault("content", body)
    return values


def _may_be_opened(text: str) -> bool:
    return text[-1:] in _LAST_CHARACTERS or holds_json(text)


def _is_typed_value(value: Mapping[str, Any]) -> bool:
    """Return True for an object such as ``{"type": "text", "value": "Hi"}``."""
    return len(value) == 2 and value.keys() == _TYPED_VALUE and value["type"].__class__ is str


def _is_empty(whole: Any) -> bool:
    return whole.__class__ is Branch or (whole.__class__ is str and (whole in _EMPTY_TEXTS or is_repr(whole)))


def _is_property(key: str, value: Any) -> bool:
    """Return True for a plain attribute of an event whose name shows neither content nor a fact, such as a version."""
    meaning = meaning_of(key)
    if meaning.text or meaning.direction or meaning.field or holds_json(value):
        return False
    return value.__class__ in _SCALARS and not any(map(str.isdecimal, key.split(".")))


def _states_fact(key: str) -> bool:
    """Return True for an attribute of an event whose body only describes it: a token count, a tool's name, a prompt's length."""
    meaning = meaning_of(key)
    return meaning.field in _CALL_FIELDS or words_of(key)[:1] == ("prompt",)


def _is_no_content(event: str) -> bool:
    """Return True if an event describes the span, without content: an exception, a score."""
    return event == "exception" or not _ABOUT_SPANS.isdisjoint(words_of(event))


def _as_message(values: Mapping[str, Any], role: str) -> dict[str, Any]:
    inner = opened(values.get("message"))
    if isinstance(inner, dict):
        return {"role": role, "finish_reason": values.get("finish_reason"), **inner}
    content = next((values[key] for key in ("content", "text", "body", "message", "parts") if values.get(key) is not None), None)
    content = opened(content) if holds_json(content) else content
    if isinstance(content, dict) and len(content) == 1:  # a program's only field: {"question": "…"}
        ((key, text),) = content.items()
        content = text if text.__class__ is str and meaning_of(key).text else content
    if isinstance(content, dict) and is_message(content):
        return {"role": role, **content}
    return {
        "role": role,
        **{key: value for key, value in values.items() if key in ("tool_calls", "id", "name", "finish_reason", "tool_call_id")},
        "content": content,
    }


def _author_of_event(words: Iterable[str]) -> tuple[str | None, str | None]:
    """Return the role and direction of the message that an event's name announces: ``gen_ai.choice`` → assistant, OUT."""
    words = set(words)
    if words & {"choice", "completion", "response", "output", "generation", "chunk", "delta"}:
        return "assistant", OUT
    for role in ("system", "user", "assistant", "tool"):
        if role in words:
            return role, IN
    return ("user", IN) if words & {"prompt", "input", "request"} else (None, None)


def _are_calls(path: str, items: list[Any], direction: str | None) -> bool:
    if direction == IN or not are_requests(items):
        return False
    return not _CALL_WORDS.isdisjoint(words_of(path)) or all("id" in item for item in items)


def _opened_item(value: Any) -> Any:
    """Return an item of a list, parsed if its text is an object or a list."""
    return opened(value) if value.__class__ is str and (value[:1] in ("{", "[") or value[-1:] == ")") else value


def _is_failure(field: str, text: str) -> bool:
    return text in FAILED if field == "outcome" else text not in ("", "false", "none", "null", "0", "{}", "[]")


def _count(value: Any) -> int | None:
    """Return ``12``, ``12.0`` or ``"12"`` as an integer, or None."""
    if value.__class__ is int:
        return int(value) if 0 <= value < 2**40 else None
    if value.__class__ is float:
        return int(value) if value >= 0 and value == value // 1 else None
    return int(value) if value.__class__ is str and value.isdecimal() and len(value) < 12 else None


def _is_model_like(value: str) -> bool:
    is_name = 0 < len(value) <= 200 and "\n" not in value and value.count(" ") < 3
    return is_name and value.lower() not in ("unknown", "none", "default", "model")


def model_in(name: str | None) -> str | None:
    """Return the model if a name is a known model's, or None."""
    return without_provider(name) if name is not None and _MODEL_NAME.fullmatch(name) else None


def provider_in(model: str | None) -> str | None:
    """Return the provider before a model's name, as in ``openai/gpt-4o``, or None."""
    head, slash, _ = (model or "").partition("/")
    return head if slash and head != "models" and head.lower() in _PROVIDERS else None


def without_provider(model: str) -> str:
    """Return the model's own name of ``openai/gpt-4o``, ``models/gemini-2.5-flash`` or ``googleai/gemini…``."""
    head, slash, tail = model.partition("/")
    while slash and head.lower() in _PROVIDERS and tail:
        model = tail
        head, slash, tail = model.partition("/")
    head, colon, tail = model.partition(":")
    return tail if colon and head.lower() in _PROVIDERS and tail else model
