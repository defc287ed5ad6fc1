"""A span that stays the bytes that it came as until it is read.

This module knows nothing of protobuf, so that a process that never receives spans need not load it; :mod:`.split` makes these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from .record import SpanRecord

OVERHEAD = 512
"""Bytes that a span takes beside those that it came as."""


class Vocabulary(NamedTuple):
    """What distinguishes GenAI spans and log records from all others. The dialects define it for those that split requests."""

    keys: frozenset[str]
    """Attributes of which a GenAI span has at least one, unless its scope is a GenAI instrumentation's."""
    is_scope: Callable[[str], bool]
    """Whether an instrumentation scope writes GenAI spans."""
    log_names: tuple[str, ...]
    """Beginnings of the names of log records that say something about a GenAI span, whatever scope they are of."""
    log_texts: tuple[bytes, ...]
    """What log records hold, as bytes, that may be messages of an unknown spelling."""


class Origin(NamedTuple):
    """What spans of one scope and resource have in common."""

    scope: str
    resource: dict[str, Any]
    read: Callable[[WireSpan], SpanRecord]
    """What makes a record of one."""
    base: int = 0
    """What makes their trace ids trace keys, see :mod:`otel_agenteval.core.tenancy`."""
    genai_keys: frozenset[str] | None = None
    """A span that has none of these attributes is an application's own. None: every span of this scope is read as a whole."""


def _unread(span: WireSpan) -> SpanRecord:
    raise AssertionError("a span that was read already")


_NOWHERE = Origin("", {}, _unread)


class WireSpan:
    """A span as it came; :meth:`record` reads it."""

    __slots__ = ("_record", "id", "origin", "raw", "size")

    def __init__(self, raw: bytes, span_id: bytes, origin: Origin, size: int) -> None:
        self.raw = raw
        self.id = span_id
        self.origin = origin
        self.size = size
        """Bytes that it is taken to hold."""
        self._record: SpanRecord | None = None

    @classmethod
    def of(cls, record: SpanRecord, size: int) -> WireSpan:
        """A span that came in a form which is read as a whole."""
        span = cls(b"", record.span_id.to_bytes(8, "big"), _NOWHERE, size)
        span._record = record
        return span

    def record(self) -> SpanRecord:
        """The span, read once. One that protobuf refuses is known by its ids alone, and marked as truncated."""
        record = self._record
        if record is None:
            record = self._record = self.origin.read(self)
        return record


class Part:
    """The spans of one trace in one request."""

    __slots__ = ("local_root", "size", "spans")

    def __init__(self) -> None:
        self.spans: list[WireSpan] = []
        self.size = 0
        """Bytes that they are taken to hold."""
        self.local_root = False
        """Whether a span without a parent in its process is among them."""

    def add(self, span: WireSpan) -> None:
        """One more of them, which was read already."""
        record = span.record()
        self.spans.append(span)
        self.size += span.size
        self.local_root = self.local_root or record.parent_id == 0 or record.remote_parent


class Unread:
    """A value that nobody has asked for yet."""

    __slots__ = ("read",)

    def __init__(self, read: Callable[[], Any]) -> None:
        self.read = read


class LazyAttributes(Mapping[str, Any]):
    """Attributes of a span, some of which are read when they are used.

    Args:
        found: all of them, with :class:`Unread` for the value of some.
    """

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
