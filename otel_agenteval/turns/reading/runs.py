"""Find the agents that worked before and after a span, and the tool request that started a run, by start times."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter

from ...dialects.step import Step
from .steps import END


def as_tool_name(name: str) -> str:
    """Return an agent's name in the form of a tool name. For example, ``Billing Agent`` becomes ``billing_agent``."""
    return name.strip().lower().replace(" ", "_").replace("-", "_")


class _Named:
    """Steps of one role with the names of their agents, by start time."""

    def __init__(self, steps: Iterable[Step]) -> None:
        self.found = [(step.record.start_ns, step.agent) for step in steps if step.agent]
        self.starts = [start for start, _ in self.found]
        self._next_other = [len(self.found)] * len(self.found)
        """For each place, the place of the next step with another name."""
        for place in range(len(self.found) - 2, -1, -1):
            same = self.found[place][1] == self.found[place + 1][1]
            self._next_other[place] = self._next_other[place + 1] if same else place + 1

    def first_after(self, at: int, besides: str | None) -> str | None:
        place = bisect_left(self.starts, at)
        if place < len(self.found) and self.found[place][1] == besides:
            place = self._next_other[place]
        return self.found[place][1] if place < len(self.found) else None

    def last_before(self, at: int) -> tuple[int, str] | None:
        place = bisect_right(self.starts, at)
        return self.found[bisect_left(self.starts, self.starts[place - 1])] if place else None


class NamedRuns:
    """The agents of a turn and the times at which they worked, from their runs and loops by start time."""

    def __init__(self, *roles: Iterable[Step]) -> None:
        self._roles = [_Named(steps) for steps in roles]
        latest: dict[str, dict[str, int]] = {}
        for role in self._roles:
            for start, name in role.found:
                names = latest.setdefault(as_tool_name(name), {})
                names[name] = max(start, names.get(name, start))
        self._latest = {key: sorted(names.items(), key=itemgetter(1))[-2:] for key, names in latest.items()}
        """The two names with the latest starts, with these starts, by :func:`as_tool_name`. One of the names may be excluded."""

    def first_after(self, at: int, besides: str | None) -> str | None:
        """Return the first agent, other than ``besides``, that started at or after a time."""
        return next((name for role in self._roles if (name := role.first_after(at, besides))), None)

    def started(self, name: str, at: int, besides: str | None) -> bool:
        """Return True if the named agent, other than ``besides``, started at or after a time."""
        return any(start >= at and other != besides for other, start in self._latest.get(as_tool_name(name), ()))

    def last_before(self, at: int) -> str | None:
        found = [last for role in self._roles if (last := role.last_before(at)) is not None]
        return max(found, key=lambda last: last[0])[1] if found else None


class RequestedRuns:
    """Agents without a tool span, and the tool requests that started them. ``agents`` has all runs by start time."""

    def __init__(
        self, calls: Mapping[int, Sequence[Step]], agents: Iterable[Step], names_of: Callable[[Step], list[str]]
    ) -> None:
        self._calls = {span_id: sorted(own, key=END) for span_id, own in calls.items()}
        self._ends = {span_id: [call.record.end_ns for call in own] for span_id, own in self._calls.items()}
        self._starts: dict[int, list[int]] = {}
        """Start times of the runs, by the parent's span id."""
        for agent in agents:
            self._starts.setdefault(agent.record.parent_id, []).append(agent.record.start_ns)
        self._names: dict[int, list[str]] = {}
        self._names_of = names_of

    def name_of(self, step: Step, caller: Step) -> str | None:
        """Return the tool name that the caller requested for a run. Runs after its last model call take its requests in order."""
        ends = self._ends.get(caller.record.span_id, [])
        place = bisect_right(ends, step.record.start_ns)
        if not place:
            return None
        end = ends[place - 1]
        call = self._calls[caller.record.span_id][bisect_left(ends, end)]
        names = self._names.get(call.record.span_id)
        if names is None:
            names = self._names[call.record.span_id] = self._names_of(call)
        starts = self._starts[step.record.parent_id]
        place = bisect_right(starts, step.record.start_ns) - bisect_left(starts, end)
        return names[place - 1] if place <= len(names) else None
