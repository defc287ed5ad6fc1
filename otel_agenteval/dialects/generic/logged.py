"""Recognize log records of whole model or tool calls and of the user's prompt, which command-line agents write."""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterable, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any

from ...spans.record import ERROR, LogPart, SpanRecord
from ..attributes import as_float, as_text
from ..content import REDACTED
from ..payloads import says_failed
from ..step import LLM, TOOL
from .facts import Facts
from .interest import SPREAD_ARGUMENTS, is_content_of_event
from .keys import LIKELY, OUT, last_word, meaning_of, words_of
from .shapes import is_message

PROMPT = "prompt"
"""Kind of a record with the user's words."""
ANSWER = "answer"
"""Kind of a record with the agent's answer."""
_ANSWERS = frozenset(("response", "answer", "reply", "completion"))
_TOOLS = frozenset(("tool_name", "tool_call_id"))
_MOST_KEYS, _LONGEST_KEY = 128, 64


class LoggedCall(SpanRecord):
    """A model or tool call that only a log record describes, as a span below the one that wrote the record."""

    __slots__ = ("role",)

    role: str

    @property
    def shown_id(self) -> int:
        """Id of the span below which the record was written."""
        return self.parent_id

    @property
    def duration_s(self) -> float | None:
        """Seconds, or None if the record doesn't state them."""
        return super().duration_s or None


@lru_cache(4_096)
def kind_of(keys: frozenset[str]) -> str | None:
    """Return ``LLM``, ``TOOL``, ``PROMPT`` or ``ANSWER`` for a log record with these attributes, or None for other records."""
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
    """Return True if a log record with these attributes describes a call or holds the user's prompt."""
    return _kind_of(attributes) is not None


def _kind_of(attributes: Iterable[str]) -> str | None:
    return kind_of(frozenset(key for key in islice(attributes, _MOST_KEYS) if len(key) <= _LONGEST_KEY))


def kind_of_part(part: LogPart) -> str | None:
    kind = _kind_of(values_in(part))
    return None if kind in (PROMPT, ANSWER) and not text_in(part, (PROMPT,) if kind == PROMPT else _ANSWERS) else kind


def values_in(part: LogPart) -> Mapping[str, Any]:
    """Return a record's attributes and the fields of its body, unless it is a message."""
    body = part.body
    return {**part.attributes, **body} if isinstance(body, dict) and not is_message(body) else part.attributes


def tool_in(part: LogPart) -> str | None:
    """Return a tool's name or, without one, the id of its call."""
    fields = {meaning_of(key).field: value for key, value in values_in(part).items() if is_content_of_event(key)}
    return as_text(fields.get("tool_name", fields.get("tool_call_id")))


def describes(part: LogPart, writer: SpanRecord) -> bool:
    """Return True if a record describes the span that wrote it, which has the tool's name."""
    return writer.name == tool_in(part)


def text_in(part: LogPart, names: Container[str]) -> str | None:
    """Return the first text under an attribute whose last word is one of these names."""
    found = (value for key, value in values_in(part).items() if last_word(key) in names)
    return next((value for value in found if value.__class__ is str and value and value not in REDACTED), None)


def call_of(part: LogPart, kind: str, writer: SpanRecord) -> LoggedCall:
    """Return the call that a record describes, below the span that wrote it."""
    values = values_in(part)
    seed = f"{writer.trace_id} {part.time_ns} {part.name} {values}"  # a record that was sent twice is one call
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


def facts_with(record: SpanRecord, role: str) -> Facts:
    """Return the facts of a span whose role is certain."""
    facts = Facts(record)
    facts.kind, facts.kind_strength = role, 4
    return facts
