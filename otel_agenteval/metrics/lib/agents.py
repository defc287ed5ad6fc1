"""Read a turn's agents and the interactions between them, for all multi-agent metrics.

* An *interaction* is one message from an agent to one or more others. Interactions that the application provides take precedence.
* If none are provided, interactions are the hand-offs, and the calls between agents, in the spans. A call to a tool with an agent's
  name counts as a call to this agent. A call and a hand-off between the same two agents are one interaction.
* The *agents* are the names in the turn's role table. Without a table, the agents that ran or took part in a hand-off are used. In
  both cases, senders and recipients of interactions are added.
* An agent whose caller is unknown counts as an agent, but its run isn't an interaction.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from ...core.errors import MetricError
from ...core.fact_forms import READERS
from ...core.turn import Turn
from ..registry import Result
from .values import fact


@dataclass(frozen=True, slots=True)
class Interaction:
    sender: str | None
    recipients: tuple[str, ...]
    kind: str
    """Type of interaction in lower case: ``request``, ``response``, ``delegation``, ``collaboration``, …"""
    message_type: str
    success: bool | None
    response_s: float | None
    """Seconds until the response. None if unknown or 0."""


def interactions_of(turn: Turn) -> list[Interaction]:
    given: list[Any] = turn.interactions
    if given and isinstance(given[0], Interaction):
        return given
    if not given:
        return _from_spans(turn)
    found = []
    for entry in fact(turn, "interactions"):
        kind = entry.get("type", "").strip().lower() or "request"
        found.append(
            Interaction(
                sender=entry.get("from") or None,
                recipients=tuple(filter(None, entry.get("to", ()))),
                kind=kind,
                message_type=entry.get("message_type", "").strip().lower() or kind,
                success=entry.get("success"),
                response_s=seconds(entry.get("response_time_s")) or None,
            )
        )
    return found


class _ParsedRoles:
    @staticmethod
    def __get_pydantic_core_schema__(source: Any, handler: Any) -> Any:
        from pydantic_core.core_schema import no_info_plain_validator_function

        return no_info_plain_validator_function(lambda given: READERS["agents"](given, "roles"))


Roles = Annotated[dict[str, dict[str, Any]], _ParsedRoles]
"""Role table: maps each agent's name to its properties, such as ``role``."""


def read_once(turn: Turn, roles: Roles | None = None) -> Turn:
    """Return a turn with only multi-agent data, parsed once for several metrics. ``roles``, if given, replaces ``agents``."""
    return Turn(
        interactions=interactions_of(turn), agents=turn.agents if roles is None else roles, agent_runs=turn.agent_runs, handoffs=turn.handoffs,
        conflicts=turn.conflicts,
    )  # fmt: skip


def part_of(result: Result) -> float:
    if result.value is None:
        raise MetricError("missing_part", f"an inner metric was skipped: {result.skipped}")
    return result.value


def known_agents(turn: Turn) -> list[str]:
    if turn.agents:
        return list(turn.agents)
    names = [run.name for run in turn.agent_runs]
    names += [name for handoff in turn.handoffs for name in (handoff.from_, handoff.to)]
    return list(dict.fromkeys(name for name in names if name))


def participants(turn: Turn, interactions: Sequence[Interaction]) -> list[str]:
    taking_part = (name for found in interactions for name in (found.sender, *found.recipients))
    return list(dict.fromkeys([*known_agents(turn), *(name for name in taking_part if name is not None)]))


def seconds(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < math.inf:
        return None
    return float(value)


def mean(values: Sequence[float]) -> float:
    return sum(value / len(values) for value in values)


def _observed(sender: str, recipient: str, kind: str, success: bool | None, duration_s: float | None) -> Interaction:
    return Interaction(sender, (recipient,), kind, kind, success, seconds(duration_s) or None)


def _from_spans(turn: Turn) -> list[Interaction]:
    found = _agent_calls(turn)
    calls: dict[tuple[str | None, tuple[str, ...]], deque[int]] = {}
    for place, call in enumerate(found):
        calls.setdefault((call.sender, call.recipients), deque()).append(place)
    for handoff in turn.handoffs:
        if not handoff.from_ or not handoff.to or handoff.from_ == handoff.to:
            continue
        if same := calls.get((handoff.from_, (handoff.to,))):
            place = same.popleft()
            success = found[place].success if handoff.success is None else handoff.success
            found[place] = replace(found[place], kind="handoff", message_type="handoff", success=success)
        else:
            found.append(_observed(handoff.from_, handoff.to, "handoff", handoff.success, None))
    return found


def _agent_calls(turn: Turn) -> list[Interaction]:
    """Return calls between agents. A tool call and the agent run that it started count once."""
    runs = [run for run in turn.agent_runs if run.name]
    names = {_folded(name): name for name in (*turn.agents, *(run.name or "" for run in runs))}
    through_tools: dict[str, deque[Interaction]] = {}
    for tool in turn.tool_calls or ():
        called = names.get(_folded(tool.name))
        if called is not None and tool.agent and tool.agent != called:
            call = _observed(tool.agent, called, "delegation", tool.error is None, tool.duration_s)
            through_tools.setdefault(called, deque()).append(call)
    found = []
    for run in runs:
        waiting = through_tools.get(run.name or "")
        caller = waiting.popleft().sender if waiting and run.parent in (None, waiting[0].sender) else run.parent
        if caller and run.name and caller != run.name:
            found.append(_observed(caller, run.name, "delegation", run.error is None, run.duration_s))
    return found + [call for calls in through_tools.values() for call in calls]


def _folded(name: str) -> str:
    """Convert an agent's name to the format of tool names: ``Billing Agent`` → ``billing_agent``."""
    return name.strip().lower().replace(" ", "_").replace("-", "_")
