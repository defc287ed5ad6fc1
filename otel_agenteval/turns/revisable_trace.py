"""The remembered spans of one trace whose turns have closed. See :mod:`.revisions` for the terms and an example."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ..spans.record import SpanRecord
from .roots import SpanGroup


class Earlier(NamedTuple):
    """The earlier evaluation of a turn."""

    turn_id: str | None = None
    revision: int = 0
    first_id: str | None = None
    """The turn id of its first revision."""
    also: tuple[str, ...] = ()
    """Current and former ids of turns that were evaluated separately and are now parts of this turn."""


NOT_EVALUATED = Earlier()


class TracePart:
    """A turn, or one span without a turn."""

    __slots__ = ("earlier", "group", "missing", "records", "size")

    def __init__(
        self, records: list[SpanRecord], size: int, group: SpanGroup | None = None, earlier: Earlier = NOT_EVALUATED
    ) -> None:
        self.records = records
        self.size = size
        self.group = group
        self.earlier = earlier
        self.missing = {record.parent_id for record in records} - {record.span_id for record in records} - {0}
        """Ids of parents that aren't among these spans."""

    @classmethod
    def of_turn(cls, group: SpanGroup, earlier: Earlier) -> TracePart:
        return cls(group.members, group.size, group, earlier)

    def lacks_root(self, span_id: int) -> bool:
        """Return True if a missing parent can be the root of the part: a span without a turn, or a rootless turn."""
        return self.group is None or (not self.group.root_seen and self.group.root.parent_id == span_id)


class RevisableTrace:
    """The parts of one trace, indexed so that a late span finds its part quickly."""

    __slots__ = ("_below", "_by_end", "_of_root", "_of_span", "_parts", "kept_at", "size")

    def __init__(self, now: float) -> None:
        self.kept_at = now
        self.size = 0
        self._parts: dict[TracePart, None] = {}
        """All parts, in the order of their arrival."""
        self._of_span: dict[int, TracePart] = {}
        self._of_root: dict[int, TracePart] = {}
        """Turns by the ids of their roots."""
        self._below: dict[int, dict[TracePart, None]] = {}
        """Parts by the ids of their missing parents."""
        self._by_end: list[tuple[int, int, TracePart]] = []
        """Turns by the end of their root. The second item, the part's id, makes the order unique."""

    @property
    def turns(self) -> int:
        return len(self._of_root)

    def add(self, part: TracePart) -> None:
        self.remove_absorbed(part)
        self._parts[part] = None
        self.size += part.size
        for record in part.records:
            self._of_span[record.span_id] = part
        for parent_id in part.missing:
            self._below.setdefault(parent_id, {})[part] = None
        if part.group is not None:
            self._of_root[part.group.root.span_id] = part
            bisect.insort(self._by_end, (part.group.root.end_ns, id(part), part))

    def remove_absorbed(self, part: TracePart) -> None:
        for old in dict.fromkeys(self._absorbed(part)):
            self._remove(old)

    def _absorbed(self, part: TracePart) -> Iterator[TracePart]:
        if part.group is not None and part.group.root.span_id in self._of_root:
            yield self._of_root[part.group.root.span_id]
        for record in part.records:
            known = self._of_span.get(record.span_id)
            if known is not None and known.group is None:
                yield known
            inner = self._of_root.get(record.span_id)
            if inner is not None and part.group is not None and _is_part_of(inner, part.group):
                yield inner

    def _remove(self, part: TracePart) -> None:
        del self._parts[part]
        self.size -= part.size
        for record in part.records:
            if self._of_span.get(record.span_id) is part:
                del self._of_span[record.span_id]
        for parent_id in part.missing:
            siblings = self._below[parent_id]
            del siblings[part]
            if not siblings:
                del self._below[parent_id]
        if part.group is not None:
            del self._of_root[part.group.root.span_id]
            del self._by_end[bisect.bisect_left(self._by_end, (part.group.root.end_ns, id(part)))]

    def with_span(self, span_id: int) -> TracePart | None:
        return self._of_span.get(span_id)

    def earlier(self, group: SpanGroup) -> list[Earlier]:
        """Return the earlier evaluations under the turn's own root, then the evaluations of turns that are now parts of it."""
        own = self._of_root.get(group.root.span_id)
        found = {} if own is None else {own: None}
        for record in group.members:
            inner = self._of_root.get(record.span_id)
            if inner is not None and _is_part_of(inner, group):
                found[inner] = None
            found.update((part, None) for part in self._rootless_below(record.span_id) if part.group is not None)
        return [part.earlier for part in found]

    def missing_roots(self) -> list[int]:
        """Return the missing parents of turns whose root was never seen."""
        return [
            span_id
            for span_id, parts in self._below.items()
            if any(part.group is not None and part.lacks_root(span_id) for part in parts)
        ]

    def _rootless_below(self, span_id: int) -> Iterator[TracePart]:
        return (part for part in self._below.get(span_id, ()) if part.lacks_root(span_id))

    def affected(self, late: list[SpanRecord], with_logs: Iterable[int], *, loose: bool) -> list[TracePart]:
        """Return the parts that late spans, late logs of the spans ``with_logs`` or loose logs (in a trace with one turn) may
        change, and the parts connected to them.
        """
        found = [part for span_id in with_logs if (part := self._of_span.get(span_id)) is not None]
        if loose and self.turns < 2:
            found += self._parts
        late_ids = {record.span_id for record in late}
        orphans = []
        for record in late:
            parent, own = self._of_span.get(record.parent_id), self._of_span.get(record.span_id)
            found += [part for part in (parent, own) if part is not None]
            found += self._below.get(record.span_id, ())
            if parent is None and record.parent_id and record.parent_id not in late_ids and not record.remote_parent:
                orphans.append(record)
                found += self._rootless_below(record.parent_id)  # its siblings
        if orphans:
            found += self._running_with(orphans)
        return self._connected(found)

    def _running_with(self, orphans: list[SpanRecord]) -> list[TracePart]:
        """Return the turns that orphans may belong to: the only turn, or the turns that were running when they started."""
        if self.turns == 1:
            return [part for _, _, part in self._by_end]
        starts = [record.start_ns for record in orphans]
        ended_later = self._by_end[bisect.bisect_left(self._by_end, (min(starts), 0)) :]
        return [
            part
            for _, _, part in ended_later
            if part.records and part.group is not None and part.group.root.start_ns <= max(starts)
        ]

    def _connected(self, to_do: list[TracePart]) -> list[TracePart]:
        """Return the parts with all parts above them, and those below spans without a turn and rootless turns."""
        found: dict[TracePart, None] = {}
        while to_do:
            part = to_do.pop()
            if part in found:
                continue
            found[part] = None
            to_do += [above for parent_id in part.missing if (above := self._of_span.get(parent_id)) is not None]
            if part.group is None or not part.group.root_seen:
                to_do += [below for record in part.records for below in self._below.get(record.span_id, ())]
        return list(found)


def _is_part_of(turn: TracePart, group: SpanGroup) -> bool:
    """Return True if a turn whose root is among the spans of ``group`` is part of it. Work for another process is its own turn."""
    assert turn.group is not None
    root = turn.group.root
    return root.span_id == group.root.span_id or not root.remote_parent or root.resource == group.root.resource


class SingleTurn:
    """A trace with one turn whose root was seen, the usual case. It is indexed only when late data arrives."""

    __slots__ = ("earlier", "group", "kept_at")

    def __init__(self, now: float, group: SpanGroup, earlier: Earlier) -> None:
        self.kept_at = now
        self.group = group
        self.earlier = earlier

    @property
    def size(self) -> int:
        return self.group.size

    def as_trace(self) -> RevisableTrace:
        trace = RevisableTrace(self.kept_at)
        trace.add(TracePart.of_turn(self.group, self.earlier))
        return trace

    @staticmethod
    def missing_roots() -> list[int]:
        return []
