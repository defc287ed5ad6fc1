"""Read span events and log records. Most contain one message, but command-line agents' log records can describe whole calls.

Examples: The event ``gen_ai.user.message`` is a user message, ``fw.response`` is an answer, and a log record with a tool's name and
result is a call.
"""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterable, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

from ...spans.record import ERROR, LogPart, SpanRecord
from ..attributes import as_float, as_text
from ..content import HIDDEN
from ..payloads import says_failed
from ..step import LLM, TOOL
from .facts import COUNTS
from .interest import SPREAD_ARGUMENTS, holds_json, is_content_of_event
from .keys import IN, LIKELY, OUT, last_word, meaning_of, word_set, words_of
from .shapes import is_message
from .values import opened

_ABOUT_SPANS = word_set("exception evaluation evaluator score scores feedback annotation guardrail token")
_TOOL_WORDS = frozenset(("tool", "function"))
_ANSWER_WORDS = word_set("choice completion response output generation chunk delta")
_CONTENT_KEYS = ("content", "text", "body", "message", "parts")
_MESSAGE_KEYS = frozenset(("tool_calls", *_CONTENT_KEYS))
_KEPT_KEYS = frozenset(("tool_calls", "id", "name", "finish_reason", "tool_call_id"))
_FIELDS_OF_CALL = COUNTS | word_set("tool_name tool_call_id model")
_SCALARS = frozenset((str, int, float, bool))


class Event(NamedTuple):
    label: Any  # name of the event
    values: dict[str, Any]  # its attributes and the fields of its body, without its own properties such as its level
    is_of_tool: bool  # True if the name is about a tool call, so the values belong to the tool
    role: str | None  # author's role, if the name indicates a message: gen_ai.choice → assistant
    direction: str | None  # direction of this message: gen_ai.choice → OUT


def is_about_span(name: str) -> bool:
    """Return True if an event, such as an exception or a score, only describes its span."""
    return name == "exception" or not _ABOUT_SPANS.isdisjoint(words_of(name))


def event_of(name: str, attributes: Mapping[str, Any], body: Any) -> Event:
    label = attributes.get("event.name") or name
    words = frozenset(words_of(str(label)))
    values = {key: value for key, value in attributes.items() if key != "event.name" and is_content_of_event(key)}
    if isinstance(body, dict):
        values.update(body)
    elif isinstance(body, (list, tuple)):
        values["body"] = body
    elif (
        body.__class__ is str
        and body not in ("", label)
        # next to a token count, tool name, or prompt length, the body's text is only a description
        and not any(meaning_of(key).field in _FIELDS_OF_CALL or words_of(key)[:1] == ("prompt",) for key in values)
    ):
        values.setdefault("content", body)
    return Event(label, values, not _TOOL_WORDS.isdisjoint(words), *_author_in(words))


def _author_in(words: frozenset[str]) -> tuple[str | None, str | None]:
    """Return a message's role and direction based on words in its event's name: ``choice`` → ``("assistant", OUT)``."""
    if words & _ANSWER_WORDS:
        return "assistant", OUT
    role = next((role for role in ("system", "user", "assistant", "tool") if role in words), None)
    if role is None and words & {"prompt", "input", "request"}:
        role = "user"
    return role, None if role is None else IN


def message_in(event: Event) -> Mapping[str, Any] | None:
    """Return the message in an event, or None if neither the event's values nor its name indicate a message."""
    values = event.values
    if is_message(values):
        return values
    if event.role is None or _MESSAGE_KEYS.isdisjoint(values):
        return None
    message = opened(values.get("message"))
    if isinstance(message, dict):
        return {"role": event.role, "finish_reason": values.get("finish_reason"), **message}
    content = _content_in(values)
    if isinstance(content, dict) and is_message(content):
        return {"role": event.role, **content}
    return {"role": event.role, **{key: value for key, value in values.items() if key in _KEPT_KEYS}, "content": content}


def _content_in(values: Mapping[str, Any]) -> Any:
    content = next((values[key] for key in _CONTENT_KEYS if values.get(key) is not None), None)
    content = opened(content) if holds_json(content) else content
    if isinstance(content, dict) and len(content) == 1:  # a program's only field: {"question": "…"}
        ((key, text),) = content.items()
        return text if text.__class__ is str and meaning_of(key).text else content
    return content


def is_property(key: str, value: Any) -> bool:
    """Return True if an attribute, such as a version, is neither content nor a step field."""
    meaning = meaning_of(key)
    if meaning.text or meaning.direction or meaning.field or holds_json(value):
        return False
    return value.__class__ in _SCALARS and not any(map(str.isdecimal, key.split(".")))


# --- log records of whole calls, and of a user's prompt or an agent's answer

PROMPT = "prompt"
"""Kind of a log record that contains the user's words."""
ANSWER = "answer"
"""Kind of a log record that contains the agent's answer."""
_ANSWERS = frozenset(("response", "answer", "reply", "completion"))
_TOOLS = frozenset(("tool_name", "tool_call_id"))
_MOST_KEYS, _LONGEST_KEY = 128, 64


class LoggedCall(SpanRecord):
    """Model or tool call that has no span, only a log record. The call becomes a child of the span that wrote the record."""

    __slots__ = ("role",)

    role: str

    @property
    def shown_id(self) -> int:
        """ID of the span that wrote the record."""
        return self.parent_id

    @property
    def duration_s(self) -> float | None:
        return super().duration_s or None


@lru_cache(4_096)
def kind_of(keys: frozenset[str]) -> str | None:
    """Return the kind of a log record with these attributes: ``LLM``, ``TOOL``, ``PROMPT``, ``ANSWER``, or None."""
    meanings = {key: meaning_of(key) for key in keys if is_content_of_event(key)}
    fields = {meaning.field for meaning in meanings.values() if meaning.strength >= LIKELY}
    if not _TOOLS.isdisjoint(fields) and any(
        meaning.content and (meaning.direction == OUT or not SPREAD_ARGUMENTS.isdisjoint(words_of(key)))
        for key, meaning in meanings.items()
    ):
        return TOOL
    if {"model", "output_tokens"} <= fields:
        return LLM
    texts = {last_word(key) for key, meaning in meanings.items() if meaning.text}
    return PROMPT if PROMPT in texts else ANSWER if texts & _ANSWERS else None


def is_call(attributes: Iterable[str]) -> bool:
    """Return True if a log record with these attributes describes a call, prompt, or answer."""
    return _kind_of(attributes) is not None


def _kind_of(attributes: Iterable[str]) -> str | None:
    return kind_of(frozenset(key for key in islice(attributes, _MOST_KEYS) if len(key) <= _LONGEST_KEY))


def kind_of_part(part: LogPart) -> str | None:
    kind = _kind_of(values_in(part))
    return None if kind in (PROMPT, ANSWER) and not text_in(part, (PROMPT,) if kind == PROMPT else _ANSWERS) else kind


def values_in(part: LogPart) -> Mapping[str, Any]:
    """Return a log record's attributes. If the body is an object but not a message, add the body's fields."""
    body = part.body
    return {**part.attributes, **body} if isinstance(body, dict) and not is_message(body) else part.attributes


def tool_in(part: LogPart) -> str | None:
    fields = {meaning_of(key).field: value for key, value in values_in(part).items() if is_content_of_event(key)}
    return as_text(fields.get("tool_name", fields.get("tool_call_id")))


def describes(part: LogPart, writer: SpanRecord) -> bool:
    """Return True if a log record's tool name or call ID is the name of ``writer``, the span that wrote the record."""
    return writer.name == tool_in(part)


def text_in(part: LogPart, names: Container[str]) -> str | None:
    found = (value for key, value in values_in(part).items() if last_word(key) in names)
    return next((value for value in found if value.__class__ is str and value and value not in HIDDEN), None)


def call_of(part: LogPart, kind: str, writer: SpanRecord) -> LoggedCall:
    """Convert a log record to a model or tool call below the span that wrote the record."""
    values = values_in(part)
    seed = f"{writer.trace_id} {part.time_ns} {part.name} {values}"  # the same for records that are sent twice
    lasted_ns = int(min(1e6 * (as_float(values.get("duration_ms")) or 0.0), part.time_ns))
    call = LoggedCall(
        part.name, writer.trace_id, int.from_bytes(hashlib.blake2b(seed.encode(errors="replace"), digest_size=8).digest(), "big"), writer.span_id,
        start_ns=part.time_ns - lasted_ns, end_ns=part.time_ns,
        attributes=dict(values), scope=writer.scope, resource=writer.resource,
    )  # fmt: skip
    call.role = kind
    message = as_text(values.get("error.message")) or as_text(values.get("error"))
    if message is not None or str(values.get("success")).lower() == "false" or says_failed(values):
        call.status, call.status_message = ERROR, message
    return call
