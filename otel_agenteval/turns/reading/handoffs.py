"""Read hand-offs between agents from the first available source: application events, hand-off spans, tool requests, or tool spans."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from operator import itemgetter
from typing import Any

from ...core.turn import Handoff
from ...dialects.attributes import as_text
from ...dialects.payloads import arguments_of
from ...dialects.step import AGENT, HANDOFF, INNER, TOOL, Step
from . import app_events
from .llm_calls import TurnCalls
from .requests import tool_requests

_HANDOFF_TOOL = re.compile(
    r"(?:[Tt]ransfer|[Hh]and[_-]?[Oo]ff)(?:[_-]?[Bb]ack)?(?:[_-]to(?:[_-]|$)|To(?=[A-Z]|$))|[Hh]and[_-]?[Oo]ff$"
)
_HANDOFF_NAME = re.compile(r"handoff (?:from (.+?) )?to (.+)", re.IGNORECASE)
_NO_AGENT = frozenset(("unknown", "handoff"))
_PLUGIN = "Handoff-"


@lru_cache(1024)
def is_handoff_tool(name: str | None) -> bool:
    """Return True if a tool's name is typical of a hand-off to another agent, such as ``transfer_to_billing``."""
    return name is not None and _HANDOFF_TOOL.match(name.removeprefix(_PLUGIN)) is not None


def handoffs(turn: TurnCalls) -> list[Handoff]:
    reported = app_events.handoffs(turn.steps)
    if reported:
        return reported
    found = _in_spans(turn) or _in_requests(turn) or [
        (_of_tool(turn, step, step.tool_arguments, step.tool_name or "", step.error is not None), step)
        for step in turn.of_role.get(TOOL, ())
        if is_handoff_tool(step.tool_name)
    ]  # fmt: skip
    if not found:
        return []
    runs = NamedRuns(turn.of_role.get(AGENT, ()), turn.of_role.get(INNER, ()))
    return [_completed(handoff, step.record.start_ns, runs) for handoff, step in found]


def _in_spans(turn: TurnCalls) -> list[tuple[Handoff, Step]]:
    """Return hand-offs from spans with names such as ``X → Y.handoff``, ``handoff from X to Y``, or ``handoff to Y``."""
    found = []
    for step in turn.of_role.get(HANDOFF, ()):
        if turn.nearest(step, (HANDOFF,)) is not None:
            continue
        source, target = "", step.handoff_to
        if target is None:
            name = step.record.name.removesuffix(".handoff")
            source, arrow, target = name.partition("→")
            if not arrow:
                named = _HANDOFF_NAME.fullmatch(name)
                source, target = (named[1] or "", named[2]) if named is not None else ("", name)
                target = _target_in(step.tool_arguments) or target
            source, target = source.strip(), target.strip() or None
        found.append((Handoff(source or turn.agent_at(step), target, step.error is None, step.record.duration_s), step))
    return found


def _in_requests(turn: TurnCalls) -> list[tuple[Handoff, Step]]:
    tools = [step for step in turn.of_role.get(TOOL, ()) if step.error is not None and is_handoff_tool(step.tool_name)]
    failed = {step.tool_call_id or step.tool_name for step in tools}
    return [
        (_of_tool(turn, step, request.arguments, request.name, not failed.isdisjoint((request.call_id, request.name))), step)
        for request, step in tool_requests(turn)
        if request.name is not None and is_handoff_tool(request.name)
    ]


def _of_tool(turn: TurnCalls, step: Step, arguments: Any, name: str, failed: bool) -> Handoff:
    """Return the hand-off that a tool made. ``Handoff.success`` is False if the tool failed, or None (unknown) otherwise."""
    target = _target_in(arguments)
    if target is None:
        name = name.removeprefix(_PLUGIN)
        prefix = _HANDOFF_TOOL.match(name)
        target = (name[prefix.end() :] or name) if prefix is not None else name
    return Handoff(turn.agent_at(step), target, False if failed else None)


def _target_in(arguments: Any) -> str | None:
    found = (arguments_of(arguments) or {}) if arguments is not None else {}
    return as_text(found.get("to_agent")) or as_text(found.get("agent_name"))


def _completed(handoff: Handoff, at: int, runs: NamedRuns) -> Handoff:
    source = handoff.from_
    if handoff.to is None or handoff.to.lower() in _NO_AGENT:
        handoff = replace(handoff, to=runs.first_after(at, source))
    if source is None:
        handoff = replace(handoff, from_=runs.last_before(at))
    if handoff.success is None and handoff.to is not None and runs.started(handoff.to, at, source):
        handoff = replace(handoff, success=True)
    return handoff


# --- agents before and after a hand-off


def as_tool_name(name: str) -> str:
    """Convert an agent's name to a tool name: ``Billing Agent`` → ``billing_agent``."""
    return name.strip().lower().replace(" ", "_").replace("-", "_")


class _Named:
    def __init__(self, steps: Iterable[Step]) -> None:
        self.found = [(step.record.start_ns, step.agent) for step in steps if step.agent]
        self.starts = [start for start, _ in self.found]
        self._next_other = [len(self.found)] * len(self.found)
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
    """Start times of a turn's named agents, according to their run spans and loop steps."""

    def __init__(self, *roles: Iterable[Step]) -> None:
        self._roles = [_Named(steps) for steps in roles]
        latest: dict[str, dict[str, int]] = {}
        for role in self._roles:
            for start, name in role.found:
                names = latest.setdefault(as_tool_name(name), {})
                names[name] = max(start, names.get(name, start))
        self._latest = {key: sorted(names.items(), key=itemgetter(1))[-2:] for key, names in latest.items()}
        """Maps a tool name (:func:`as_tool_name`) to (name, start time) of the two agents with this tool name that started last."""

    def first_after(self, at: int, besides: str | None) -> str | None:
        return next((name for role in self._roles if (name := role.first_after(at, besides))), None)

    def started(self, name: str, at: int, besides: str | None) -> bool:
        return any(start >= at and other != besides for other, start in self._latest.get(as_tool_name(name), ()))

    def last_before(self, at: int) -> str | None:
        found = [last for role in self._roles if (last := role.last_before(at)) is not None]
        return max(found, key=lambda last: last[0])[1] if found else None
