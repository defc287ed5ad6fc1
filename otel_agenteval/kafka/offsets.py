"""Compute which offsets a consumer can commit without losing or splitting a turn.

A message is done when all turns that contain its spans are closed and their scores are delivered. Kafka stores one committed offset
per partition. The worker commits the offset of the oldest open trace's first message, so the next reader gets open traces in full.

Messages after the committed offset can also contain spans of closed traces. These spans must not become turns again. Therefore, the
commit's metadata contains a second, lower offset, at which the oldest of these closed traces begins. The next reader collects the
trace IDs between the two offsets, and later skips spans with these IDs.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from ..core.files import another_version

_VERSION = 1
_MARK = re.compile(r"agenteval\.v(\d+) from=(\d+)")
MAX_REPLAY = 1_000_000
"""Maximum number of messages for which an open trace delays the commit. After that, its new spans might become a separate turn."""


class OtherVersion(Exception): ...


class Place(NamedTuple):
    offset: int
    since: int
    """Offset (at most ``offset``) from which the next reader collects trace IDs."""

    def metadata(self) -> str:
        return f"agenteval.v{_VERSION} from={self.since}"

    @classmethod
    def read(cls, offset: int, metadata: str | None) -> Place:
        """Create a place from a committed offset and its metadata. Raises OtherVersion if the metadata has another format version."""
        found = _MARK.match(metadata or "")
        if found is None:
            return cls(offset, offset)
        version, since = map(int, found.groups())
        if version != _VERSION:
            raise OtherVersion(
                f"offset {another_version(version, _VERSION, 'run that version until it has scored all turns')}, or set another group"
            )
        return cls(offset, min(since, offset))


@dataclass(slots=True)
class _Seen:
    first: int
    last: int


class Partition:
    """Progress of reading a partition. Spans of traces that an earlier reader closed are skipped in messages before ``end``."""

    def __init__(self, place: Place, end: int) -> None:
        self.place = place
        self.begin = place.offset
        """Offset of the first message to score. Earlier messages only provide trace IDs."""
        self.end = end
        self.position = place.since
        self.traces: OrderedDict[int, _Seen] = OrderedDict()
        self.passed_over: set[int] = set()

    def note(self, offset: int, trace_ids: Iterable[int]) -> None:
        for trace_id in trace_ids:
            seen = self.traces.get(trace_id)
            if seen is None:
                self.traces[trace_id] = _Seen(offset, offset)
            else:
                seen.last = offset
        self._advance(offset)

    def skip(self, offset: int, trace_ids: Iterable[int]) -> None:
        self.passed_over.update(trace_ids)
        self._advance(offset)

    def _advance(self, offset: int) -> None:
        self.position = offset + 1
        if self.passed_over and self.position >= self.end:
            self.passed_over.clear()

    def done(self, held: Collection[int], waiting: Iterable[int] = ()) -> Place:
        """Return the place to commit: at most the lowest ``waiting`` offset or ``held`` trace's start (see :data:`MAX_REPLAY`)."""
        if self.position < self.begin:
            return self.place
        floor = self.position - MAX_REPLAY
        offset = min(waiting, default=self.position)
        for trace_id, seen in self.traces.items():  # in the order of their first messages
            if seen.first >= offset:
                break
            if trace_id in held and seen.first >= floor:
                offset = seen.first
                break
        if self.passed_over or (offset < self.end and self.place.since < self.begin):
            # Spans of skipped traces follow after the offset, so the next reader must look back as far as this one did.
            return Place(max(offset, self.place.offset), self.place.since)
        since = offset
        for trace_id, seen in self.traces.items():
            if seen.first >= offset:
                break
            if seen.last >= offset and trace_id not in held:
                since = seen.first
                break
        return Place(offset, since)

    def commit(self, place: Place) -> None:
        self.place = place
        for trace_id in [trace_id for trace_id, seen in self.traces.items() if seen.last < place.since]:
            del self.traces[trace_id]
