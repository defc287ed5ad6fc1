"""Galileo's OpenTelemetry mode: spans of its tracer around others' model calls; its processor puts the session on every span.

A tracer's span says what it is only once it has ended well.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..core import jsonio
from ..spans.record import SpanRecord
from .otel_genai import documents
from .step import CHAIN, RETRIEVAL, Step, as_text

MARKS = frozenset(("galileo.session.id",))
SCOPES = re.compile(r"galileo-tracer$")


def role_of(attributes: Mapping[str, Any], scope: str, name: str) -> str | None:
    """The role of a span of its tracer, as far as the convention's attributes do not say it."""
    if not SCOPES.match(scope) or "gen_ai.operation.name" in attributes:
        return None
    return RETRIEVAL if attributes.get("db.operation") == "search" else CHAIN


def read(record: SpanRecord, step: Step) -> None:
    """Fill the fields that this dialect has and no dialect before it had."""
    get = record.attributes.get
    if step.conversation_id is None:
        step.conversation_id = as_text(get("galileo.session.id"))
    if step.role == RETRIEVAL:
        if step.query is None:
            step.query = _content(get("gen_ai.input.messages"))
        if step.documents is None:
            found = _content(get("gen_ai.output.messages"))
            step.documents = documents(found) if isinstance(found, Mapping) else None


def _content(raw: Any) -> Any:
    """The content of the only message."""
    value = jsonio.loads_or_text(raw)[0] if raw.__class__ is str else None
    message = value[0] if isinstance(value, list) and value else None
    return message.get("content") if isinstance(message, Mapping) else None
