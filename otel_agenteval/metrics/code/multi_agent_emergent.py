"""Whether a group of agents organizes itself over the interactions of a turn, which are read in their order.

Where the turn was given no interactions, they are what its spans show: an agent that called an agent, and hand-offs.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Annotated

from annotated_types import Ge, Le, Predicate

from ...core.turn import Turn
from ..lib import applies
from ..lib.agents import Interaction, interactions_of, mean, multi_agent_metric, part_of, read_once
from ..registry import Result, skip, vacuous

Share = Annotated[float, Ge(0), Le(1)]
FourWeights = Annotated[tuple[Share, Share, Share, Share], Predicate(any)]

_COLLECTIVE = ("collaboration", "negotiation")


@multi_agent_metric(applies=applies.many_typed_interactions,
    uses=("agents", "interactions", "conflicts"),
    aliases=(
        "agentunit:swarm_intelligence", "agentunit:swarm_intelligence_score", "agentunit:SwarmIntelligenceMetric",
        "agentunit:EmergentBehaviorMetrics", "agentunit:EmergentBehaviorDetector",
    ),
)  # fmt: skip
def code_swarm_intelligence(turn: Turn, *, weights: FourWeights = (0.30, 0.25, 0.25, 0.20)) -> Result:
    """How much the agents act as a group: organized, specialized, deciding together and getting faster.

    ``0.30 * self_organization + 0.25 * specialization + 0.25 * collective + 0.20 * adaptation``: the values of
    code_self_organization, code_specialization, code_collective_decision and code_adaptation_rate with their defaults, also
    where they are vacuous. Skipped with ``missing:interactions`` when there are none.

    Parameters:
        weights: of the four in that order, 0..1; divided by their sum, which must not be 0.

    Detail: ``self_organization``, ``specialization``, ``collective``, ``adaptation``.

    Source: AgentUnit swarm_intelligence.
    """
    turn = read_once(turn)
    if not turn.interactions:
        return skip("missing:interactions")
    parts: dict[str, float] = {
        "self_organization": part_of(code_self_organization(turn)),
        "specialization": part_of(code_specialization(turn)),
        "collective": part_of(code_collective_decision(turn)),
        "adaptation": part_of(code_adaptation_rate(turn)),
    }
    value = sum(weight * part for weight, part in zip(weights, parts.values(), strict=True)) / sum(weights)
    return Result(value, detail={**parts})


def _entropy(interactions: Sequence[Interaction]) -> float:
    """Bits of the distribution of who did what."""
    counts = Counter((found.sender, found.kind) for found in interactions)
    return sum(count / len(interactions) * math.log2(len(interactions) / count) for count in counts.values())


def _improvement(early: float, late: float) -> float:
    """0.5 when nothing changed, more when the late value is lower; 0.5 also when there was nothing to improve."""
    return max(0.0, min(1.0, 0.5 + (early - late) / early)) if early > 0 else 0.5


@multi_agent_metric(
    applies=applies.many_interactions,
    uses=("agents", "interactions"),
    aliases=("agentunit:self_organization_score", "agentunit:self_organization"),
)
def code_self_organization(turn: Turn, *, min_interactions: Annotated[int, Ge(0)] = 10) -> Result:
    """Whether it became clearer over the turn who does what: above 0.5 when it did, below when it became less clear.

    ``0.5 + (early - late) / early``, within 0..1, of the Shannon entropy (bits) of how often each agent sent each type of
    interaction, in the first half of the interactions (rounded down) and in the rest. 0.5 when the first half has no
    entropy. With fewer than ``min_interactions`` it is 0 and vacuous.

    Parameters:
        min_interactions: below this number there is too little data.

    Detail: ``interactions``, ``early_entropy``, ``late_entropy``.

    Source: AgentUnit self_organization_score.
    """
    found = interactions_of(turn)
    if not found or len(found) < min_interactions:
        return vacuous(0.0, interactions=len(found))
    half = len(found) // 2
    early, late = _entropy(found[:half]), _entropy(found[half:])
    detail = {"interactions": len(found), "early_entropy": early, "late_entropy": late}
    return Result(_improvement(early, late), detail=detail)


@multi_agent_metric(
    applies=applies.typed_interactions,
    uses=("agents", "interactions"),
    aliases=("agentunit:specialization_emergence", "agentunit:specialization"),
)
def code_specialization(turn: Turn) -> Result:
    """How much each agent sticks to one type of message: 1 when every agent sends only one.

    Mean over the sending agents of the sum of squared shares of their message types (Herfindahl-Hirschman index); an agent
    that sent a single message counts 1. An interaction without ``message_type`` counts by its ``type``. Without interactions
    whose sender is known it is 0 and vacuous.

    Detail: ``agents``, the number of those that sent something.

    Source: AgentUnit specialization_emergence.
    """
    sent: dict[str, Counter[str]] = {}
    for found in interactions_of(turn):
        if found.sender is not None:
            sent.setdefault(found.sender, Counter())[found.message_type] += 1
    if not sent:
        return vacuous(0.0, agents=0)
    indices = [sum((count / types.total()) ** 2 for count in types.values()) for types in sent.values()]
    return Result(mean(indices), detail={"agents": len(sent)})


@multi_agent_metric(
    applies=applies.typed_interactions,
    uses=("agents", "interactions"),
    aliases=("agentunit:collective_decision_score", "agentunit:collective_decision"),
)
def code_collective_decision(turn: Turn) -> Result:
    """Share of the interactions that are of type collaboration or negotiation.

    Spans show calls and hand-offs only, so a turn that was given no interactions has 0. Without any interactions it is 0
    and vacuous.

    Detail: ``interactions``, ``collective``.

    Source: AgentUnit collective_decision_score.
    """
    found = interactions_of(turn)
    if not found:
        return vacuous(0.0, interactions=0, collective=0)
    collective = sum(each.kind in _COLLECTIVE for each in found)
    return Result(collective / len(found), detail={"interactions": len(found), "collective": collective})


@multi_agent_metric(
    applies=applies.many_response_times,
    uses=("agents", "interactions"),
    spellings={"min": "min_interactions"},
    aliases=("agentunit:adaptation_rate",),
)
def code_adaptation_rate(turn: Turn, *, min_interactions: Annotated[int, Ge(0)] = 5) -> Result:
    """Whether answers came faster over the turn: above 0.5 when they did, below when they came slower.

    ``0.5 + (early - late) / early``, within 0..1, of the mean response time in the first half (rounded down) of the
    interactions that have one above 0, and in the rest. 0.5 and vacuous with fewer than ``min_interactions`` interactions or
    response times. The response time of an agent that was called is how long it ran.

    Parameters:
        min_interactions: below this number there is too little data; also accepted as ``min``.

    Detail: ``interactions``, ``early_s``, ``late_s``.

    Source: AgentUnit adaptation_rate.
    """
    found = interactions_of(turn)
    times = [each.response_s for each in found if each.response_s is not None]
    if len(times) < max(min_interactions, 2):
        return vacuous(0.5, interactions=len(found))
    half = len(times) // 2
    early, late = mean(times[:half]), mean(times[half:])
    return Result(_improvement(early, late), detail={"interactions": len(found), "early_s": early, "late_s": late})
