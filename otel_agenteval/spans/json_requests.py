"""OTLP/JSON requests in the form of :mod:`.split`, parsed completely, because JSON can't be parsed in parts."""

from __future__ import annotations

from ..core import jsonio
from ..core.errors import NotASpan, NotOtlp
from ..core.feedback import is_feedback
from .otlp import OtlpLog, Signal, from_json
from .record import SpanRecord, cut_long_values
from .wire import Part, Vocabulary, WireSpan

_LOG_SIZE = 1_024
"""Estimated bytes of a log record without its body."""


def json_spans(body: bytes, drop_scope: str = "", base: int = 0) -> tuple[dict[bytes, Part], int]:
    """Return spans by trace id, and how many are invalid, as :func:`.split.split_spans` does. Raises :class:`NotOtlp`."""
    parts: dict[bytes, Part] = {}
    invalid = 0
    for span in _items(body, "traces"):
        if not isinstance(span, SpanRecord):
            invalid += 1
            continue
        if span.scope == drop_scope and drop_scope:
            continue
        part = parts.setdefault(span.trace_id.to_bytes(16, "big"), Part())
        span.trace_id += base
        size = cut_long_values(span)
        part.spans.append(WireSpan.of(span, size))
        part.size += size
        part.local_root = part.local_root or span.parent_id == 0 or span.remote_parent
    return parts, invalid


def json_logs(body: bytes, vocabulary: Vocabulary) -> tuple[list[tuple[OtlpLog, int]], int]:
    """Return log records with their sizes, as :func:`.split.split_logs` does. Raises :class:`NotOtlp`."""
    items = _items(body, "logs")
    logs = [item for item in items if isinstance(item, OtlpLog)]
    wanted = [
        (log, _LOG_SIZE + len(str(log.part.body)))
        for log in logs
        if log.part.name.startswith(vocabulary.log_names)
        or is_feedback(log.part.name)
        or vocabulary.is_scope(log.scope)
        or vocabulary.is_call(log.part.attributes)
        or _may_hold_messages(log, vocabulary)
    ]
    return wanted, len(items) - len(logs)


def _may_hold_messages(log: OtlpLog, vocabulary: Vocabulary) -> bool:
    whole = f"{log.part.body} {log.part.attributes}".replace("'", '"').encode(errors="replace")
    return any(text in whole for text in vocabulary.log_texts)


def _items(body: bytes, signal: Signal) -> list[SpanRecord | OtlpLog | NotASpan]:
    if not body.strip():
        return []
    try:
        message = jsonio.loads_lenient(body)
    except (ValueError, RecursionError):
        raise NotOtlp("the body isn't JSON") from None
    if message == {}:
        return []
    try:
        items = list(from_json(message))
    except NotASpan:
        raise NotOtlp(f"the body isn't an OTLP/JSON {signal} request") from None
    if any(isinstance(item, SpanRecord if signal == "logs" else OtlpLog) for item in items):
        raise NotOtlp(f"the body isn't an OTLP/JSON {signal} request")
    return items
