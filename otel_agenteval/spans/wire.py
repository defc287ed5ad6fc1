"""Received spans. Spans from protobuf requests stay serialized until they are read.

This module doesn't import protobuf, so processes without a receiver don't load protobuf.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from .record import SpanRecord

OVERHEAD = 512
"""Estimated bytes that a span takes in memory, in addition to its serialized form."""


class Vocabulary(NamedTuple):
    """Names that identify GenAI spans and log records. The dialects define the names that :mod:`.split` receives."""

    keys: frozenset[str]
    """Attributes that identify GenAI spans. A span without these attributes is a GenAI span only if its scope is a GenAI scope."""
    is_scope: Callable[[str], bool]
    """Function that returns True if a scope's spans are GenAI spans."""
    log_names: tuple[str, ...]
    """Prefixes of log record names. In any scope, a record with one of these prefixes is about a GenAI span."""
    log_texts: tuple[bytes, ...]
    """Byte sequences that suggest that a log record contains messages in an unknown format."""
    is_call: Callable[[Iterable[str]], bool]
    """Function that returns True if a log record's attributes describe a model or tool call, or contain a prompt or answer."""


class Origin(NamedTuple):
    """Data that all spans with the same scope and resource share."""

    scope: str
    resource: dict[str, Any]
    read: Callable[[WireSpan], SpanRecord]
    base: int = 0
    """Number to add to a trace ID to get its trace key (:mod:`otel_agenteval.core.tenancy`)."""
    genai_keys: frozenset[str] | None = None
    """Attributes of GenAI spans. A span without any of these attributes is an application's own span.

    If None, all attributes are parsed immediately.
    """


def _unread(span: WireSpan) -> SpanRecord:
    raise AssertionError("the span was already read")


_NOWHERE = Origin("", {}, _unread)


class WireSpan:
    """Received span. A span from a protobuf request stays serialized until :meth:`record` parses it."""

    __slots__ = ("_record", "id", "origin", "raw", "size")

    def __init__(self, raw: bytes, span_id: bytes, origin: Origin, size: int) -> None:
        self.raw = raw
        self.id = span_id
        self.origin = origin
        self.size = size
        self._record: SpanRecord | None = None

    @classmethod
    def of(cls, record: SpanRecord, size: int) -> WireSpan:
        span = cls(b"", record.span_id.to_bytes(8, "big"), _NOWHERE, size)
        span._record = record
        return span

    def record(self) -> SpanRecord:
        """Return the span's record. The first call parses the span.

        If protobuf rejects the span even after a repair, the record lacks attributes and is marked as truncated.
        """
        if (record := self._record) is None:
            record = self._record = self.origin.read(self)
        return record


class Part:
    __slots__ = ("local_root", "size", "spans")

    def __init__(self) -> None:
        self.spans: list[WireSpan] = []
        self.size = 0
        self.local_root = False
        """True if one of the spans doesn't have a local parent."""

    def add(self, span: WireSpan) -> None:
        record = span.record()
        self.spans.append(span)
        self.size += span.size
        self.local_root = self.local_root or record.parent_id == 0 or record.remote_parent


class Unread:
    __slots__ = ("read",)

    def __init__(self, read: Callable[[], Any]) -> None:
        self.read = read


class LazyAttributes(Mapping[str, Any]):
    """A span's attributes. :class:`Unread` values in ``found`` are parsed on first use."""

    __slots__ = ("_found",)

    def __init__(self, found: dict[str, Any]) -> None:
        self._found = found

    def __getitem__(self, key: str) -> Any:
        value = self._found[key]
        if value.__class__ is Unread:
            value = self._found[key] = value.read()
        return value

    def __contains__(self, key: object) -> bool:
        return key in self._found

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def __repr__(self) -> str:
        return f"LazyAttributes({list(self._found)})"
