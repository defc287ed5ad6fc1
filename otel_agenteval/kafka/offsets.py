"""Which messages of a partition may be forgotten.

A message may be forgotten once every turn of its spans is closed and delivered. A partition has one number for all of that, so it is
committed up to the first message of the oldest trace that is still open. The next reader begins there, and gets that trace, and all
other open ones, as a whole.

It also gets remainders of traces that were closed before: those that began before that place and went on after it. They must not be
taken for turns of their own. So a second place is committed with the first, where the earliest of *them* began. A reader begins there,
only notes which traces come until it reaches the first place, and passes these traces over from then on.
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
"""A trace that is open for more messages than these holds nothing back any more: its remainder may then be scored as a turn of its own."""


class OtherVersion(Exception):
    """A committed offset that cannot be understood."""


class Place(NamedTuple):
    """What is committed of a partition."""

    offset: int
    """The first message that is not done."""
    since: int
    """Where to begin to look, at or before ``offset``."""

    def metadata(self) -> str:
        """``since``, to be committed beside the offset."""
        return f"agenteval.v{_VERSION} from={self.since}"

    @classmethod
    def read(cls, offset: int, metadata: str | None) -> Place:
        """What was committed; an offset that another program committed has no second place.

        Raises:
            OtherVersion: another version of this program committed it.
        """
        found = _MARK.match(metadata or "")
        if found is None:
            return cls(offset, offset)
        version, since = map(int, found.groups())
        if version != _VERSION:
            raise OtherVersion(
                f"offset {another_version(version, _VERSION, 'run that version to its end')}, or name another group"
            )
        return cls(offset, min(since, offset))


@dataclass(slots=True)
class _Seen:
    first: int
    last: int


class Partition:
    """What was read of one partition since it was assigned.

    Args:
        place: where reading begins.
        end: the partition's end at that time: no message after it can belong to a trace that was closed before.
    """

    def __init__(self, place: Place, end: int) -> None:
        self.place = place
        self.begin = place.offset
        """Messages before it are looked at only."""
        self.end = end
        self.position = place.since
        """The next message."""
        self.traces: OrderedDict[int, _Seen] = OrderedDict()
        """Traces by their first message, as far as they can matter."""
        self.passed_over: set[int] = set()
        """Traces that were closed by whoever read this partition before."""

    def note(self, offset: int, trace_ids: Iterable[int]) -> None:
        """A message was read, and its spans were taken."""
        for trace_id in trace_ids:
            seen = self.traces.get(trace_id)
            if seen is None:
                self.traces[trace_id] = _Seen(offset, offset)
            else:
                seen.last = offset
        self._read(offset)

    def look(self, offset: int, trace_ids: Iterable[int]) -> None:
        """A message was read before the place where scoring begins: its traces are done."""
        self.passed_over.update(trace_ids)
        self._read(offset)

    def _read(self, offset: int) -> None:
        self.position = offset + 1
        if self.passed_over and self.position >= self.end:
            self.passed_over.clear()

    def done(self, held: Collection[int], waiting: Iterable[int] = ()) -> Place:
        """What can be committed now.

        Args:
            held: traces of which something is not closed.
            waiting: messages that are not done for other reasons.
        """
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
            # Remainders of what was passed over lie after the offset: the next reader must look as far back as this one did.
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
        """It was committed: traces that ended before it can no longer matter."""
        self.place = place
        for trace_id in [trace_id for trace_id, seen in self.traces.items() if seen.last < place.since]:
            del self.traces[trace_id]
