"""Parser for Galileo's OpenTelemetry mode.

Its tracer writes spans around model calls of other instrumentations, and its processor writes the session on every span.
A tracer's span shows its role only after it ended without error.
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
    """Return the role of a tracer's span that lacks the convention's operation."""
    if not SCOPES.match(scope) or "gen_ai.operation.name" in attributes:
        return None
    return RETRIEVAL if attributes.get("db.operation") == "search" else CHAIN


def read(record: SpanRecord, step: Step) -> None:
    """Fill the fields that no earlier dialect has filled."""
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
    """Return the content of the first message."""
    value = jsonio.loads_or_text(raw)[0] if raw.__class__ is str else None
    message = value[0] if isinstance(value, list) and value else None
    return message.get("content") if isinstance(message, Mapping) else None
