"""These metrics evaluate how several agents work together in a turn.

An interaction is a message from one agent to one or more other agents. If you don't provide ``interactions``, the metrics derive
them from the calls and hand-offs between agents in the turn's spans. Turns without the required data are usually skipped, but
direct calls and composite metrics often return a vacuous value.

The coordination metrics evaluate hand-offs, conflicts, messages, roles, and load. Instrumentations don't record conflicts or roles,
so you must provide [conflicts](facts.md#conflicts) and [roles](facts.md#agent-roles) yourself.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from annotated_types import Ge, Gt, Predicate

from ...core.turn import Turn
from ..lib import applies
from ..lib.agents import Interaction, Roles, interactions_of, known_agents, mean, part_of, participants, read_once, seconds
from ..lib.values import Share, fact
from ..registry import Param, Result, metric, skip, vacuous
from .multi_agent_network import (
    code_avg_path_length,
    code_bottleneck_agents,
    code_clustering_coefficient,
    code_hub_agents,
    code_network_centralization,
    code_network_density,
    code_network_fault_tolerance,
)

_message_metric = functools.partial(metric, uses=("agents", "interactions"))

FourWeights = Annotated[tuple[Share, Share, Share, Share], Predicate(any)]
FiveWeights = Annotated[tuple[Share, Share, Share, Share, Share], Predicate(any)]

_DEFAULT_AUTHORITY = 5.0
_AUTHORITY_TO_RESPOND = 5.0
_COLLECTIVE = ("collaboration", "negotiation")


@metric(
    uses=("agents", "interactions", "conflicts"),
    aliases=("agentunit:coordination_efficiency", "agentunit:CoordinationEfficiencyMetric", "agentunit:CoordinationMetrics"),
)
def code_coordination_efficiency(
    turn: Turn, *, weights: FiveWeights = (0.25, 0.20, 0.25, 0.15, 0.15), roles: Roles | None = None
) -> Result:
    """Overall coordination of the agents, as the weighted mean of five other metrics.

    The default weights are:

    - 0.25: ``code_handoff_success_rate``
    - 0.20: ``code_conflict_resolution_rate``
    - 0.25: ``code_communication_efficiency``
    - 0.15: ``code_multiagent_role_adherence``
    - 0.15: ``code_load_balance``

    If conflicts, roles, or the results of hand-offs are unknown, the corresponding metric counts as 1. Without interactions, the
    score is skipped as ``missing:interactions`` or, if no agent is known either, as ``missing:agents``.

    Parameters:
        weights: Weights of the five metrics, in the order above. The weights are divided by their sum, which must not be 0.
        roles: Roles of the agents. See ``code_multiagent_role_adherence``.

    Detail: ``handoff_success_rate``, ``conflict_resolution_rate``, ``communication_efficiency``, ``role_adherence``, and
    ``load_balance_score``.
    """
    turn = read_once(turn)
    if not turn.interactions:
        return skip("missing:interactions" if known_agents(turn) else "missing:agents")
    handoffs = code_handoff_success_rate(turn).value
    parts: dict[str, float] = {
        "handoff_success_rate": 1.0 if handoffs is None else handoffs,
        "conflict_resolution_rate": part_of(code_conflict_resolution_rate(turn)),
        "communication_efficiency": part_of(code_communication_efficiency(turn)),
        "role_adherence": part_of(code_multiagent_role_adherence(turn, roles=roles)),
        "load_balance_score": part_of(code_load_balance(turn)),
    }
    value = sum(weight * part for weight, part in zip(weights, parts.values(), strict=True)) / sum(weights)
    return Result(value, detail={**parts})


@metric(uses=("handoffs",), applies=applies.a_handoff, aliases=("agentunit:handoff_success_rate",))
def code_handoff_success_rate(turn: Turn) -> Result:
    """Share of the hand-offs that succeeded.

    Without hand-offs, the value is 1 (vacuous). Hand-offs with an unknown result don't count. If all results are unknown, the score
    is skipped as ``missing:handoffs``.

    Detail: ``handoffs`` (number of hand-offs with a known result) and ``successful`` (number of successful hand-offs).
    """
    if not (handoffs := turn.handoffs):
        return vacuous(1.0, handoffs=0, successful=0)
    known = [handoff.success for handoff in handoffs if handoff.success is not None]
    if not known:
        return skip("missing:handoffs")
    return Result(sum(known) / len(known), detail={"handoffs": len(known), "successful": sum(known)})


@metric(uses=("handoffs",), unit="s", direction="down", aliases=("agentunit:avg_handoff_time",))
def code_avg_handoff_time(turn: Turn) -> Result:
    """Mean duration of the hand-offs, in seconds.

    Hand-offs with an unknown duration don't count. If no duration is known, the score is skipped as ``missing:handoffs``.

    Detail: ``handoffs`` (number of hand-offs with a known duration).
    """
    times = [time for handoff in turn.handoffs if (time := seconds(handoff.duration_s)) is not None]
    return Result(mean(times), detail={"handoffs": len(times)}) if times else skip("missing:handoffs")


@metric(
    uses=("agents", "interactions", "conflicts"),
    unit="{item}",
    direction="down",
    applies=applies.known_conflicts,
    aliases=("agentunit:conflict_rate",),
)
def code_conflict_rate(turn: Turn) -> Result:
    """Number of conflicts between agents per 100 interactions.

    The value is ``conflicts / max(1, interactions) * 100``. Without conflicts, the value is 0. This value is vacuous if you provide
    neither ``conflicts`` nor ``interactions``.

    Detail: ``conflicts`` and ``interactions``.
    """
    conflicts, interactions = len(fact(turn, "conflicts")), len(interactions_of(turn))
    if not conflicts and not turn.interactions:
        return vacuous(0.0, conflicts=0, interactions=interactions)
    return Result(conflicts / max(1, interactions) * 100, detail={"conflicts": conflicts, "interactions": interactions})


@metric(uses=("conflicts",), applies=applies.a_conflict, aliases=("agentunit:conflict_resolution_rate",))
def code_conflict_resolution_rate(turn: Turn) -> Result:
    """Share of resolved conflicts among all conflicts between agents.

    A conflict is resolved if its field ``resolved`` is true. Without conflicts, the value is 1 (vacuous).

    Detail: ``conflicts`` and ``resolved`` (numbers of conflicts).
    """
    if not (conflicts := fact(turn, "conflicts")):
        return vacuous(1.0, conflicts=0, resolved=0)
    resolved = sum(conflict.get("resolved") is True for conflict in conflicts)
    return Result(resolved / len(conflicts), detail={"conflicts": len(conflicts), "resolved": resolved})


@metric(uses=("conflicts",), unit="s", direction="down", aliases=("agentunit:avg_resolution_time",))
def code_avg_resolution_time(turn: Turn) -> Result:
    """Mean time to resolve a conflict between agents, in seconds.

    The mean includes only resolved conflicts with a known resolution time. If there are none, the score is skipped as
    ``missing:conflicts``.

    Detail: ``resolved`` (number of conflicts in the mean).
    """
    resolved = [conflict for conflict in fact(turn, "conflicts") if conflict.get("resolved") is True]
    times = [time for conflict in resolved if (time := seconds(conflict.get("resolution_time_s"))) is not None]
    return Result(mean(times), detail={"resolved": len(times)}) if times else skip("missing:conflicts")


@_message_metric(applies=applies.an_interaction, aliases=("agentunit:communication_efficiency", "agentunit:InteractionAnalyzer"))
def code_communication_efficiency(turn: Turn, *, slow_s: Annotated[float, Gt(0)] = 5.0) -> Result:
    """Quality of agent communication: successful, fast, and evenly distributed messages.

    The value is ``0.5 * success + 0.3 * response + 0.2 * evenness``:

    - success: number of successful interactions, divided by the number with a known result. If no result is known, ``success`` is 1.
    - response: ``min(1, slow_s / mean response time)``. Only times above 0 count. If no time is above 0, ``response`` is 1.
    - evenness: mean number of messages per (sender, recipient) pair, divided by the highest number of messages for a pair. With
      fewer than two pairs, ``evenness`` is 1. A message to several agents counts once per recipient.

    If the interactions come from spans, an agent's response time is the duration of its run. Without interactions, the value is 1 (vacuous).

    Parameters:
        slow_s: Mean response time in seconds above which ``response`` decreases.

    Detail: ``success``, ``response``, and ``evenness``.
    """
    if not (found := interactions_of(turn)):
        return vacuous(1.0)
    outcomes = [each.success for each in found if each.success is not None]
    times = [each.response_s for each in found if each.response_s is not None]
    pairs = Counter((each.sender, to) for each in found if each.sender is not None for to in each.recipients)
    success = sum(outcomes) / len(outcomes) if outcomes else 1.0
    response = min(1.0, slow_s / mean(times)) if times else 1.0
    evenness = pairs.total() / len(pairs) / max(pairs.values()) if pairs else 1.0
    detail = {"success": success, "response": response, "evenness": evenness}
    return Result(0.5 * success + 0.3 * response + 0.2 * evenness, detail=detail)


@_message_metric(applies=applies.roles, aliases=("agentunit:role_adherence",))
def code_multiagent_role_adherence(turn: Turn, *, roles: Roles | None = None) -> Result:
    """Share of interactions that the sender's role allows.

    The metric ignores interactions whose sender doesn't have a role. An agent may send delegations if its role has
    ``can_delegate``, and responses if its ``authority_level`` is at least 5. All agents may send interactions of other types. A
    call to another agent is a delegation. If no sender has a role, the value is 1 (vacuous).

    Parameters:
        roles: Role of each agent: ``{agent: {can_delegate, authority_level}}``. The default is the turn's ``agents``. An omitted
            ``can_delegate`` is false, and an omitted ``authority_level`` is 5.

    Detail: ``interactions`` (number of interactions whose sender has a role) and ``adherent`` (number of these interactions that
    the role allows).
    """
    table: Mapping[str, Any] = fact(turn, "agents") if roles is None else roles
    judged: list[bool] = []
    for each in interactions_of(turn):
        if each.sender is not None and each.sender in table:
            role = table[each.sender]
            if each.kind == "delegation":
                judged.append(bool(role.get("can_delegate", False)))
            else:
                authority = role.get("authority_level", _DEFAULT_AUTHORITY)
                judged.append(each.kind != "response" or bool(authority >= _AUTHORITY_TO_RESPOND))
    if not judged:
        return vacuous(1.0, interactions=0, adherent=0)
    return Result(sum(judged) / len(judged), detail={"interactions": len(judged), "adherent": sum(judged)})


@_message_metric(applies=applies.three_agents, aliases=("agentunit:load_balance_score",))
def code_load_balance(turn: Turn, *, include_idle: bool = False) -> Result:
    """Evenness of the message distribution: 1 if all agents are equally active.

    The value is ``1 - population standard deviation / mean`` of the agents' activity, but at least 0. An agent's activity is the
    number of messages that it sent or received. A message to several agents counts once per recipient. Without messages, the value
    is 1 (vacuous).

    Parameters:
        include_idle: If true, the metric includes agents without messages, with an activity of 0.

    Detail: ``agents`` (number of agents compared) and ``messages``.
    """
    found = interactions_of(turn)
    activity: Counter[str] = Counter()
    for each in found:
        activity.update(each.recipients)
        if each.sender is not None:
            activity[each.sender] += len(each.recipients)
    counts = [activity[name] for name in participants(turn, found)] if include_idle else [n for n in activity.values() if n]
    if not any(counts):
        return vacuous(1.0, agents=len(counts), messages=0)
    average = sum(counts) / len(counts)
    deviation = math.sqrt(sum((count - average) ** 2 for count in counts) / len(counts))
    messages = sum(len(each.recipients) for each in found)
    return Result(max(0.0, 1 - deviation / average), detail={"agents": len(counts), "messages": messages})


@metric(
    uses=("agents", "interactions", "conflicts"), aliases=("agentunit:MultiAgentMetricsCalculator", "agentunit:calculate_all")
)
def code_multi_agent_summary(turn: Turn, *, roles: Roles | None = None) -> Result:
    """Value of ``code_coordination_efficiency``, with all multi-agent values in ``detail``.

    All multi-agent metrics run with your ``roles`` and otherwise with default options. The score is skipped if
    ``code_coordination_efficiency`` is skipped.

    Parameters:
        roles: Roles of the agents. See ``code_multiagent_role_adherence``.

    Detail, with AgentUnit's names (null for a skipped metric): ``coordination_efficiency``, ``handoff_success_rate``,
    ``avg_handoff_time``, ``conflict_rate``, ``conflict_resolution_rate``, ``avg_resolution_time``, ``communication_efficiency``,
    ``role_adherence``, ``load_balance_score``, ``fault_tolerance``, ``density``, ``centralization``, ``avg_path_length``,
    ``clustering_coefficient``, ``hub_agents`` and ``bottleneck_agents`` (names), ``self_organization_score``,
    ``specialization_emergence``, ``collective_decision_score``, ``adaptation_rate``, and ``swarm_intelligence_score``.
    """
    turn = read_once(turn, roles)
    coordination: Result = code_coordination_efficiency(turn)
    if coordination.skipped is not None:
        return coordination
    found: dict[str, Result] = {
        "coordination_efficiency": coordination, "handoff_success_rate": code_handoff_success_rate(turn),
        "avg_handoff_time": code_avg_handoff_time(turn), "conflict_rate": code_conflict_rate(turn),
        "conflict_resolution_rate": code_conflict_resolution_rate(turn), "avg_resolution_time": code_avg_resolution_time(turn),
        "communication_efficiency": code_communication_efficiency(turn),
        "role_adherence": code_multiagent_role_adherence(turn), "load_balance_score": code_load_balance(turn),
        "fault_tolerance": code_network_fault_tolerance(turn), "density": code_network_density(turn),
        "centralization": code_network_centralization(turn), "avg_path_length": code_avg_path_length(turn),
        "clustering_coefficient": code_clustering_coefficient(turn), "self_organization_score": code_self_organization(turn),
        "specialization_emergence": code_specialization(turn), "collective_decision_score": code_collective_decision(turn),
        "adaptation_rate": code_adaptation_rate(turn), "swarm_intelligence_score": code_swarm_intelligence(turn),
    }  # fmt: skip
    detail: dict[str, Any] = {name: result.value for name, result in found.items()}
    for name, result in (("hub_agents", code_hub_agents(turn)), ("bottleneck_agents", code_bottleneck_agents(turn))):
        detail[name] = (result.detail or {}).get(name)
    return Result(coordination.value, detail=detail)


# --- emergent behavior


@metric(uses=("agents", "interactions", "conflicts"), applies=applies.many_typed_interactions, aliases=(
        "agentunit:swarm_intelligence", "agentunit:swarm_intelligence_score", "agentunit:SwarmIntelligenceMetric",
        "agentunit:EmergentBehaviorMetrics", "agentunit:EmergentBehaviorDetector",
    ))  # fmt: skip
def code_swarm_intelligence(turn: Turn, *, weights: FourWeights = (0.30, 0.25, 0.25, 0.20)) -> Result:
    """Group behavior of the agents, as the weighted mean of four other metrics.

    The value is ``0.30 * self_organization + 0.25 * specialization + 0.25 * collective_decision + 0.20 * adaptation_rate``. Each
    variable is the value that the metric with this name (such as ``code_self_organization``) has with default options. Vacuous
    values are included. Without interactions, the score is skipped as ``missing:interactions``.

    Parameters:
        weights: Weights of the four metrics, in formula order. The weights are divided by their sum, which must not be 0.

    Detail: ``self_organization``, ``specialization``, ``collective_decision``, and ``adaptation_rate``.
    """
    turn = read_once(turn)
    if not turn.interactions:
        return skip("missing:interactions")
    parts: dict[str, float] = {
        "self_organization": part_of(code_self_organization(turn)),
        "specialization": part_of(code_specialization(turn)),
        "collective_decision": part_of(code_collective_decision(turn)),
        "adaptation_rate": part_of(code_adaptation_rate(turn)),
    }
    value = sum(weight * part for weight, part in zip(weights, parts.values(), strict=True)) / sum(weights)
    return Result(value, detail={**parts})


def _entropy(interactions: Sequence[Interaction]) -> float:
    counts = Counter((found.sender, found.kind) for found in interactions)
    return sum(count / len(interactions) * math.log2(len(interactions) / count) for count in counts.values())


def _improvement(early: float, late: float) -> float:
    return max(0.0, min(1.0, 0.5 + (early - late) / early)) if early > 0 else 0.5


@_message_metric(applies=applies.many_interactions, aliases=("agentunit:self_organization_score", "agentunit:self_organization"))
def code_self_organization(turn: Turn, *, min_interactions: Annotated[int, Ge(0)] = 10) -> Result:
    """Change in the division of labor during the turn: above 0.5 if agents specialized.

    The value is ``0.5 + (early - late) / early``, limited to 0..1. ``early`` and ``late`` are entropies (in bits) of the (sender,
    interaction type) pairs. ``early`` covers the first half of the interactions, and ``late`` the second half. If the number of
    interactions is odd, the second half is longer. If ``early`` is 0, the value is 0.5. If there are fewer than
    ``min_interactions`` interactions, the value is 0 (vacuous).

    Parameters:
        min_interactions: Minimum number of interactions.

    Detail: ``interactions``, ``early_entropy``, and ``late_entropy``.
    """
    found = interactions_of(turn)
    if not found or len(found) < min_interactions:
        return vacuous(0.0, interactions=len(found))
    half = len(found) // 2
    early, late = _entropy(found[:half]), _entropy(found[half:])
    detail = {"interactions": len(found), "early_entropy": early, "late_entropy": late}
    return Result(_improvement(early, late), detail=detail)


@_message_metric(applies=applies.typed_interactions, aliases=("agentunit:specialization_emergence", "agentunit:specialization"))
def code_specialization(turn: Turn) -> Result:
    """Specialization of the agents: 1 if every agent sends only one type of message.

    Each sender's specialization is the sum of the squared shares of its message types (Herfindahl-Hirschman index). For a sender
    with a single message, the sum is 1. The value is the mean over the senders. If an interaction doesn't have a ``message_type``,
    its ``type`` is used instead. If no sender is known, the value is 0 (vacuous).

    Detail: ``agents`` (number of senders).
    """
    sent: dict[str, Counter[str]] = {}
    for found in interactions_of(turn):
        if found.sender is not None:
            sent.setdefault(found.sender, Counter())[found.message_type] += 1
    if not sent:
        return vacuous(0.0, agents=0)
    indices = [sum((count / types.total()) ** 2 for count in types.values()) for types in sent.values()]
    return Result(mean(indices), detail={"agents": len(sent)})


@_message_metric(
    applies=applies.typed_interactions, aliases=("agentunit:collective_decision_score", "agentunit:collective_decision")
)
def code_collective_decision(turn: Turn) -> Result:
    """Share of interactions that are collaborations or negotiations.

    The metric compares each interaction's ``type`` with ``collaboration`` and ``negotiation``, ignoring case. Without interactions,
    the value is 0 (vacuous).

    Detail: ``interactions`` (number of all interactions) and ``collective`` (number of collaborations and negotiations).
    """
    if not (found := interactions_of(turn)):
        return vacuous(0.0, interactions=0, collective=0)
    collective = sum(each.kind in _COLLECTIVE for each in found)
    return Result(collective / len(found), detail={"interactions": len(found), "collective": collective})


@_message_metric(applies=applies.many_response_times, aliases=("agentunit:adaptation_rate",))
def code_adaptation_rate(turn: Turn, *, min_interactions: Annotated[int, Ge(0), Param("min")] = 5) -> Result:
    """Change in response times during the turn, from 0 to 1: above 0.5 if the agents became faster.

    The value is ``0.5 + (early - late) / early``, limited to 0..1. ``early`` is the mean response time in the first half of the
    interactions, and ``late`` is the mean in the second half. Only interactions with a response time above 0 count. If fewer than
    ``min_interactions`` interactions count, the value is 0.5 (vacuous). If the interactions come from spans, an agent's response
    time is the duration of its run.

    Parameters:
        min_interactions: Minimum number of interactions with a response time. Values below 2 count as 2. Alias: ``min``.

    Detail: ``interactions``, ``early_s``, and ``late_s``.
    """
    found = interactions_of(turn)
    times = [each.response_s for each in found if each.response_s is not None]
    if len(times) < max(min_interactions, 2):
        return vacuous(0.5, interactions=len(found))
    half = len(times) // 2
    early, late = mean(times[:half]), mean(times[half:])
    return Result(_improvement(early, late), detail={"interactions": len(found), "early_s": early, "late_s": late})
