"""Which agents took part in a turn and what passed between them: read once, the same for every multi-agent metric.

What counts:

* An *interaction* is one message from an agent to another one or several, as the turn was given it. Where the turn was given
  none, it is what the spans show: an agent that called an agent (also through a tool of that agent's name), or a hand-off.
  A hand-off to an agent whose run is already there as a call by the same agent is that call, not a second interaction.
* An *agent* is one that the turn's role table names, or where there is no table, one that ran; and any other that took part.
* Nothing else is made up: a run whose caller is unknown is an agent, and no interaction.
"""

from __future__ import annotations

import functools
import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...core.errors import MetricError
from ...core.turn import Turn
from ..registry import Result, metric

multi_agent_metric = functools.partial(metric, family="multi_agent")
"""Registers a metric of this family, which is spread over several modules."""


@dataclass(frozen=True, slots=True)
class Interaction:
    """One message between agents."""

    sender: str | None
    recipients: tuple[str, ...]
    kind: str
    """``request``, ``response``, ``delegation``, ``collaboration``, …, in lower case."""
    message_type: str
    success: bool | None
    """None when it is unknown."""
    response_s: float | None
    """Seconds until it was answered; None when unknown or 0."""


def interactions_of(turn: Turn) -> list[Interaction]:
    """In time order: as given, else as the spans show them."""
    given: list[Any] = turn.interactions
    if given and isinstance(given[0], Interaction):
        return given
    return [_given(entry) for entry in given] if given else _from_spans(turn)


def read_once(turn: Turn) -> Turn:
    """What multi-agent metrics see of the turn, with its interactions read: for one that asks many others for their values."""
    return Turn(
        interactions=interactions_of(turn), agents=turn.agents, agent_runs=turn.agent_runs, handoffs=turn.handoffs,
        conflicts=turn.conflicts,
    )  # fmt: skip


def part_of(result: Result) -> float:
    """The value of a metric that another one is computed from.

    Raises:
        MetricError: it has none.
    """
    if result.value is None:
        raise MetricError("missing_part", f"one of the metrics that this one is computed from has no value ({result.skipped})")
    return result.value


def known_agents(turn: Turn) -> list[str]:
    """The agents of the role table, in its order; where there is none, those that ran or took part in a hand-off."""
    if turn.agents:
        return list(turn.agents)
    names = [run.name for run in turn.agent_runs]
    names += [name for handoff in turn.handoffs for name in (handoff.from_, handoff.to)]
    return list(dict.fromkeys(name for name in names if name))


def participants(turn: Turn, interactions: Sequence[Interaction]) -> list[str]:
    """The known agents, then all others that took part, in order of appearance."""
    taking_part = (name for found in interactions for name in (found.sender, *found.recipients))
    return list(dict.fromkeys([*known_agents(turn), *(name for name in taking_part if name is not None)]))


def seconds(value: Any) -> float | None:
    """A time span, or None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < math.inf:
        return None
    return float(value)


def mean(values: Sequence[float]) -> float:
    """Of at least one value; divided first, so that no sum overflows."""
    return sum(value / len(values) for value in values)


def _given(entry: Mapping[str, Any]) -> Interaction:
    to = entry.get("to")
    recipients = map(_name, to if isinstance(to, (list, tuple)) else [to])
    kind = _word(entry.get("type")) or "request"
    success = entry.get("success")
    return Interaction(
        sender=_name(entry.get("from")),
        recipients=tuple(name for name in recipients if name is not None),
        kind=kind,
        message_type=_word(entry.get("message_type")) or kind,
        success=success if isinstance(success, bool) else None,
        response_s=seconds(entry.get("response_time_s")) or None,
    )


def _name(value: Any) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) and value else None


def _word(value: Any) -> str:
    return value.strip().lower() if isinstance(value, str) else ""


def _seen(sender: str, recipient: str, kind: str, success: bool | None, duration_s: float | None) -> Interaction:
    return Interaction(sender, (recipient,), kind, kind, success, seconds(duration_s) or None)


def _from_spans(turn: Turn) -> list[Interaction]:
    found = _calls(turn)
    calls: dict[tuple[str | None, tuple[str, ...]], deque[int]] = {}
    for place, call in enumerate(found):
        calls.setdefault((call.sender, call.recipients), deque()).append(place)
    for handoff in turn.handoffs:
        if not handoff.from_ or not handoff.to or handoff.from_ == handoff.to:
            continue
        same = calls.get((handoff.from_, (handoff.to,)))
        if same:
            place = same.popleft()
            success = found[place].success if handoff.success is None else handoff.success
            found[place] = replace(found[place], kind="handoff", message_type="handoff", success=success)
        else:
            found.append(_seen(handoff.from_, handoff.to, "handoff", handoff.success, None))
    return found


def _calls(turn: Turn) -> list[Interaction]:
    """Agents that were called by agents. A tool call of an agent's name and that agent's run are one call."""
    runs = [run for run in turn.agent_runs if run.name]
    names = {_folded(name): name for name in (*turn.agents, *(run.name or "" for run in runs))}
    through_tools: dict[str, deque[Interaction]] = {}
    for tool in turn.tool_calls or ():
        called = names.get(_folded(tool.name))
        if called is not None and tool.agent and tool.agent != called:
            call = _seen(tool.agent, called, "delegation", tool.error is None, tool.duration_s)
            through_tools.setdefault(called, deque()).append(call)
    found = []
    for run in runs:
        waiting = through_tools.get(run.name or "")
        if waiting and run.parent in (None, waiting[0].sender):
            caller = waiting.popleft().sender
        else:
            caller = run.parent
        if caller and run.name and caller != run.name:
            found.append(_seen(caller, run.name, "delegation", run.error is None, run.duration_s))
    return found + [call for calls in through_tools.values() for call in calls]


def _folded(name: str) -> str:
    """``Billing Agent`` as the name of the tool that a model is given: ``billing_agent``."""
    return name.strip().lower().replace(" ", "_").replace("-", "_")
