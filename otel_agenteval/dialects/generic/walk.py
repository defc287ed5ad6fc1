"""Collect a span's data in one walk over its attributes, events, and log records.

A value's name determines its meaning: ``fw.llm.input_tokens: 12`` fills ``input_tokens``, and ``fw.prompt: "Hi"`` is input. Objects
and lists with certain keys are messages, tool calls, or documents. The walk enters other objects and lists.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ...spans.record import SpanRecord
from ..attributes import as_float
from ..step import RETRIEVAL
from . import events
from .facts import COUNTS, IN_LISTED_OBJECT, KIND, MESSAGES, SETTERS, TELLING, TOP, Content, Facts, count_in
from .interest import SPREAD_ARGUMENTS, SPREAD_RESULTS, holds_json
from .keys import BY_FORM, EXACT, IN, LEVELS_PER_STEP, LIKELY, OUT, STEP, SURE, Meaning, last_word, meaning_of, word_set, words_of
from .shapes import are_documents, are_messages, are_requests, are_tools, is_definition, is_message, is_telling, pieces_in, plain
from .values import Branch, opened, paths_of, tree_of

_MAX_DEPTH, _MAX_VALUES, _MAX_ITEMS, _MAX_TEXT = 10, 4_000, 200, 1_000_000
_SCALARS = frozenset((str, int, float, bool))


@dataclass(frozen=True, slots=True)
class Nesting:
    """A value's position in a span: its depth, and properties of enclosing objects. All values in one object share a position."""

    depth: int  # objects and lists around the value, except dotted names: 1 for x in fw.input.a: {"x": 1}
    direction: str | None  # direction of the nearest name that shows a direction
    in_input: bool  # True inside the value of an attribute with an input's name
    is_attribute: bool  # True for the value of one attribute, or of several with one prefix

    def inside(self, are_attributes: bool) -> Nesting:
        """Return the position for values inside an object or list. Set ``are_attributes`` for objects built from dotted names."""
        return _place(self.depth if are_attributes else self.depth + 1, self.direction, self.in_input, are_attributes)


_place = lru_cache(None)(Nesting)  # there are few different positions
_ATTRIBUTE = _place(TOP, None, False, True)
_METADATA = _place(IN_LISTED_OBJECT, OUT, False, False)  # metadata of an answer at any depth. Its tokens are the span's


def facts_of(record: SpanRecord) -> Facts:
    """Collect the data in a span's attributes, then in its events, then in its log records."""
    facts = Facts(record)
    walk = _Walk(facts)
    for group in record.dialects.shape.groups:
        value = group.value_in(record.attributes)
        if not group.is_dotted or (value is not None and value != ""):
            walk.read(group.path, value, _ATTRIBUTE)
    for event in record.events:
        walk.read_event(event.name, event.attributes, None)
    for log in record.logs:
        walk.read_event(log.name, log.attributes, log.body)
    facts.complete_tokens()
    return facts


class _Walk:
    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._values_read = 0

    def read(self, path: str, raw: Any, around: Nesting) -> None:
        """Read a value and the values inside it. ``around`` is the position that the enclosing object's values share."""
        self._values_read += 1
        depth = around.depth
        if depth > _MAX_DEPTH or self._values_read > _MAX_VALUES or (raw.__class__ is str and len(raw) > _MAX_TEXT):
            return
        meaning = meaning_of(path)
        direction, in_input = around.direction, around.in_input
        if depth == TOP or direction != IN:  # an earlier answer in an input is input too
            direction = meaning.direction or direction
        whole = value = raw  # the whole stays JSON text
        if raw.__class__ is str and (raw[-1:] in _LAST_CHARACTERS or holds_json(raw)) and meaning.field != "error_message":
            value = opened(raw)
        if value.__class__ is dict and len(value) == 2 and "value" in value and value.get("type").__class__ is str:
            whole = value = opened(value["value"])  # the "Hi" of {"type": "text", "value": "Hi"}
        if around.is_attribute:
            in_input = meaning.direction == IN and meaning.content
            if direction is not None and meaning.content and not _is_empty(whole):
                self._facts.whole_values.append(Content(whole, path, direction))
        if value.__class__ in _SCALARS and not (meaning.read_scalars or (depth == TOP and meaning.content)):
            return
        is_same = direction is around.direction and in_input is around.in_input
        place = around if is_same else _place(depth, direction, in_input, around.is_attribute)
        if isinstance(value, dict):
            self._read_object(path, value, place)
        elif isinstance(value, (list, tuple)):
            self._read_list(path, value, meaning, place)
        else:
            self._read_scalar(path, value, meaning, place)

    def _read_object(self, path: str, value: Mapping[str, Any], place: Nesting) -> None:
        if is_message(value):
            self._add_messages([value], path, place.direction)
            return
        facts = self._facts
        if place.direction == IN and "tools" in value and value.get("name") == facts.name:  # an agent's description
            facts.agents.add(facts.name)
        if path.endswith("cost_details") and "total" not in value and {*map(type, value.values())} <= {int, float}:
            facts.set("cost_usd", as_float(sum(value.values())), LIKELY)
        are_attributes = value.__class__ is Branch or (place.depth == TOP and path in _ENVELOPES)
        if are_attributes:
            self._read_spread(path, value)
        inside = place.inside(are_attributes)
        for key, inner in value.items():
            if inner is not None and inner != "":
                self.read(path if key == "" else f"{path}.{key}", inner, inside)

    def _read_spread(self, path: str, value: Mapping[str, Any]) -> None:
        """Read a tool's arguments or result if its fields are separate attributes: ``inputs.city``, ``result.temperature``."""
        last = last_word(path)
        if last in SPREAD_ARGUMENTS and _KEYS_OF_INPUT.isdisjoint(value):
            self._facts.spread_arguments = plain(value)
        elif last in SPREAD_RESULTS and _KEYS_OF_RESULT.isdisjoint(value):
            self._facts.spread_result = plain(value)

    def _read_list(self, path: str, raw: list[Any] | tuple[Any, ...], meaning: Meaning, place: Nesting) -> None:
        """Read a list of texts, messages, tool calls, tool definitions, or documents. Enter the items of any other list."""
        if not raw:
            return
        facts, direction = self._facts, place.direction
        items = [opened(one) if one.__class__ is str and (one[:1] in ("{", "[") or one[-1:] == ")") else one for one in raw]
        if direction == OUT:
            self._read_usage_of_run(items)
        if all(item.__class__ is str for item in items):
            self._read_texts(path, items, meaning, place)
            return
        have_one_key = all(isinstance(item, dict) and len(item) == 1 for item in items)  # [{"message": {"role": …}}]
        unwrapped = plain(items) if have_one_key else items
        if are_messages(unwrapped):
            self._add_messages(unwrapped, path, direction)
        elif direction != IN and _are_calls(path, unwrapped):
            self._add_messages([{"role": "assistant", "tool_calls": plain(unwrapped)}], path, OUT)
        elif are_tools(unwrapped):
            facts.definitions = plain(unwrapped) if facts.definitions is None else facts.definitions
            facts.evidence |= KIND
        elif direction != IN and are_documents(unwrapped, RETRIEVAL in (facts.kind, facts.name_role)):
            facts.documents = unwrapped if facts.documents is None else facts.documents
        else:
            self._read_items(path, items, place)

    def _read_items(self, path: str, items: list[Any], place: Nesting) -> None:
        if place.direction != IN and (pieces := pieces_in(items)):
            self._add_messages(pieces, path, OUT)
        inside = place.inside(False)
        for item in items[:_MAX_ITEMS]:
            if isinstance(item, (dict, list)):
                self.read(path, item, inside)

    def _read_usage_of_run(self, items: list[Any]) -> None:
        """Add up the token counts of all model messages after the last user message. If only one message has counts, do nothing."""
        usages = []
        for item in reversed(items):
            message = item.get("kwargs", item) if isinstance(item, dict) else None
            if not isinstance(message, dict) or not any(message.get(key) for key in _FIELDS_OF_RUN):
                break
            if isinstance(usage := message.get("usage_metadata"), dict):
                usages.append(usage)
        if len(usages) > 1:
            for field in ("input_tokens", "output_tokens"):
                self._facts.set(field, sum(count_in(usage.get(field)) or 0 for usage in usages), EXACT)

    def _read_texts(self, path: str, texts: list[str], meaning: Meaning, place: Nesting) -> None:
        are_chunks = any(text[:1].isspace() or text[-1:].isspace() for text in texts)  # ["It ", "rains."]
        self._read_scalar(path, "".join(texts) if are_chunks else texts[0], meaning, place)
        if meaning.text and len(texts) > 1 and place.direction is not None:
            self._facts.texts.append(Content(texts, path, place.direction))

    def _read_scalar(self, path: str, value: Any, meaning: Meaning, place: Nesting) -> None:
        is_text = value.__class__ is str
        if value is None or value == "" or (is_text and value in _EMPTY_TEXTS):
            return
        if meaning.field is not None:
            self._read_field(meaning.field, value, meaning.strength, place)
        if is_text:
            self._read_text(path, value, meaning, place)

    def _read_field(self, field: str, value: Any, strength: float, place: Nesting) -> None:
        depth = place.depth
        is_answers = place.direction == OUT
        if field == "agent" or (field == "name" and is_answers and depth > 1):  # an answer's author
            self._facts.agents.add(str(value))
        if place.in_input and depth > TOP and field in COUNTS:  # tokens of an earlier call
            return
        strength -= depth / LEVELS_PER_STEP
        if field == "model" and is_answers:  # prefer the model that answered to the requested model
            strength += STEP
        if field in SETTERS:
            SETTERS[field](self._facts, field, value, strength, depth)

    def _read_text(self, path: str, text: str, meaning: Meaning, place: Nesting) -> None:
        facts, direction = self._facts, place.direction
        if direction != IN and path.endswith("id") and _RESPONSE_ID.fullmatch(text):
            facts.set("response_id", text, BY_FORM)
        is_content = meaning.text or (place.depth == TOP and meaning.direction is not None and meaning.content)
        if meaning.system and facts.system is None and meaning.is_system(text):  # a second prompt is content
            facts.system = text
        elif is_content and _REPR.match(text) is None:
            facts.texts.append(Content(text, path, direction))

    def _add_messages(self, messages: list[Any], path: str, direction: str | None) -> None:
        facts = self._facts
        documents = _documents_in(messages) if direction != IN else None
        if documents is not None:
            facts.documents, facts.kind, facts.kind_strength = documents, RETRIEVAL, LIKELY
            return
        objects = [message for message in messages if isinstance(message, dict)]
        facts.evidence |= MESSAGES | (TELLING if any(map(is_telling, objects)) else 0)
        if facts.definitions is None:  # definitions may be messages with the role "tool"
            contents = [message.get("content") for message in objects if message.get("role") == "tool"]
            facts.definitions = [content for content in contents if isinstance(content, dict) and is_definition(content)] or None
        facts.messages.append(Content(messages, path, direction))
        if direction != IN and isinstance(messages[-1], dict):
            self._read_answer(messages[-1], path, 0)

    def _read_answer(self, message: Mapping[str, Any], path: str, wrappers: int) -> None:
        """Read an answer's finish reason, author, and metadata. Up to three wrappers can enclose the answer."""
        for key, inner in message.items():
            if key in _FINISH_KEYS and inner.__class__ is str and inner:
                self._facts.set("finish_reason", inner, SURE)
            elif key == "name" and inner.__class__ is str:
                self._facts.agents.add(inner)
            elif key in _METADATA_KEYS and isinstance(inner, dict):
                self.read(f"{path}.{key}", inner, _METADATA)
            elif key in ("message", "kwargs", "data") and isinstance(inner, dict) and wrappers < 3:
                self._read_answer(inner, path, wrappers + 1)

    def read_event(self, name: str, attributes: Mapping[str, Any], body: Any) -> None:
        """Read an event or log record as a message, or its values like attributes. Skip exceptions, scores, and similar events."""
        if events.is_about_span(name):
            return
        event = events.event_of(name, attributes, opened(body))
        message = events.message_in(event)
        old_count = len(self._facts.messages)
        if message is not None:
            self._add_messages([message], str(event.label), event.direction)
        elif self._facts.is_of_tool() or not event.is_of_tool:  # ignore values of another span's tool
            self._read_values(event)
        self._facts.event_messages += self._facts.messages[old_count:]

    def _read_values(self, event: events.Event) -> None:
        place = _place(TOP, event.direction, False, True)
        content = {key: value for key, value in event.values.items() if not events.is_property(key, value)}
        for key, value in tree_of(content, paths_of(content)).items():
            meaning = meaning_of(key)
            if meaning.field not in ("name", "kind"):  # these fields are about the event's subject, not the span
                self.read(key if meaning.direction or meaning.field else f"{event.label}.{key}", value, place)


_ENVELOPES = frozenset(("data", "payload"))
"""Names of attributes whose value is an object. The object's fields are read as if they were separate attributes."""
_KEYS_OF_INPUT = word_set("value mime_type args kwargs arguments parameters params input messages raw json") | {""}
_KEYS_OF_RESULT = _KEYS_OF_INPUT | word_set("content text type role output result is_error isError count length message")
"""Keys of a complete input or result. If an object has one of these keys, its other keys aren't arguments or result fields."""
_FIELDS_OF_RUN = ("usage_metadata", "response_metadata", "tool_call_id")  # a user's message lacks them
_CALL_WORDS = frozenset(("calls", "tools", "call", "requests"))
_RESPONSE_ID = re.compile(r"(?:chatcmpl|resp|msg|gen|cmpl|req)[-_][\w-]{4,}")  # chatcmpl-9aXk, msg_01Ab
_FINISH_KEYS = frozenset(("finish_reason", "finishReason", "stop_reason", "stopReason"))
_METADATA_KEYS = word_set("meta usage response_metadata usage_metadata metadata token_usage models_usage custom raw")
_EMPTY_TEXTS = frozenset(('""', "None", "null", "undefined", "()", "{}", "[]"))  # programs write these if a value is missing
_LAST_CHARACTERS = frozenset(('"', ")", "'", "}"))  # of JSON text and of a repr
_REPR = re.compile(r"[A-Za-z_][\w.]*(?:\[[\w., ]+\])?\(\w+=|<[\w.]+(?: object at |:)")  # Message(role=…, <app.Stream object at …


def _is_empty(whole: Any) -> bool:
    return whole.__class__ is Branch or (whole.__class__ is str and (whole in _EMPTY_TEXTS or _REPR.match(whole) is not None))


def _are_calls(path: str, items: list[Any]) -> bool:
    return are_requests(items) and (not _CALL_WORDS.isdisjoint(words_of(path)) or all("id" in item for item in items))


def _documents_in(messages: list[Any]) -> list[Any] | None:
    """Return the documents in a message such as ``[{"content": {"results": [{"id": 1, "text": "…"}]}}]``, or None."""
    content = messages[0].get("content") if len(messages) == 1 and isinstance(messages[0], dict) else None
    results = next(iter(content.values())) if isinstance(content, dict) and len(content) == 1 else None
    return results if isinstance(results, list) and are_documents(results) else None
