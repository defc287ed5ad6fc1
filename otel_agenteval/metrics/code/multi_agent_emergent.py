"""These metrics evaluate turns with several agents: self-organization, coordination and network.

If the turn lacks ``interactions``, the metrics derive them from its spans: agents that call agents, and hand-offs. If a metric
doesn't apply to a turn, its score is skipped. You get the vacuous value that is described for such a turn only if you call the
metric directly or if another metric combines it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Annotated

from annotated_types import Ge, Predicate

from ...core.turn import Turn
from ..lib import applies
from ..lib.agents import Interaction, interactions_of, mean, part_of, read_once
from ..lib.values import Share
from ..registry import Param, Result, metric, skip, vacuous

FAMILY = "multi_agent"

FourWeights = Annotated[tuple[Share, Share, Share, Share], Predicate(any)]

_COLLECTIVE = ("collaboration", "negotiation")


@metric(uses=("agents", "interactions", "conflicts"), applies=applies.many_typed_interactions, aliases=(
        "agentunit:swarm_intelligence", "agentunit:swarm_intelligence_score", "agentunit:SwarmIntelligenceMetric",
        "agentunit:EmergentBehaviorMetrics", "agentunit:EmergentBehaviorDetector",
    ))  # fmt: skip
def code_swarm_intelligence(turn: Turn, *, weights: FourWeights = (0.30, 0.25, 0.25, 0.20)) -> Result:
    """Group behavior: self-organization, specialization, joint decisions and adaptation.

    The value is ``0.30 * self_organization + 0.25 * specialization + 0.25 * collective_decision + 0.20 * adaptation_rate``. The
    parts are the values of ``code_self_organization``, ``code_specialization``, ``code_collective_decision`` and
    ``code_adaptation_rate`` with their defaults, including vacuous values. Without interactions, the metric is skipped as
    ``missing:interactions``.

    Parameters:
        weights: Weights of the four parts (each 0..1), in the order of the formula. They are divided by their sum, which must not
            be 0.

    Detail: ``self_organization``, ``specialization``, ``collective_decision`` and ``adaptation_rate``.

    Source: AgentUnit swarm_intelligence.
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
    """Return the entropy in bits of the pairs of agent and type."""
    counts = Counter((found.sender, found.kind) for found in interactions)
    return sum(count / len(interactions) * math.log2(len(interactions) / count) for count in counts.values())


def _improvement(early: float, late: float) -> float:
    """Return the relative improvement: 0.5 for no change, more if the late value is lower."""
    return max(0.0, min(1.0, 0.5 + (early - late) / early)) if early > 0 else 0.5


@metric(
    uses=("agents", "interactions"),
    applies=applies.many_interactions,
    aliases=("agentunit:self_organization_score", "agentunit:self_organization"),
)
def code_self_organization(turn: Turn, *, min_interactions: Annotated[int, Ge(0)] = 10) -> Result:
    """Change in the division of labor during the turn: above 0.5 if it became clearer.

    The value is ``0.5 + (early - late) / early``, limited to 0..1. ``early`` is the Shannon entropy (in bits) of the pairs of
    agent and interaction type in the first half of the interactions (rounded down). ``late`` is the entropy in the second half.
    If ``early`` is 0, the value is 0.5. If there are fewer than ``min_interactions`` interactions, the value is 0 (vacuous).

    Parameters:
        min_interactions: Minimum number of interactions.

    Detail: ``interactions``, ``early_entropy`` and ``late_entropy``.

    Source: AgentUnit self_organization_score.
    """
    found = interactions_of(turn)
    if not found or len(found) < min_interactions:
        return vacuous(0.0, interactions=len(found))
    half = len(found) // 2
    early, late = _entropy(found[:half]), _entropy(found[half:])
    detail = {"interactions": len(found), "early_entropy": early, "late_entropy": late}
    return Result(_improvement(early, late), detail=detail)


@metric(
    uses=("agents", "interactions"),
    applies=applies.typed_interactions,
    aliases=("agentunit:specialization_emergence", "agentunit:specialization"),
)
def code_specialization(turn: Turn) -> Result:
    """Specialization of agents: 1 if every agent sends only one type of message.

    Each sender's specialization is the sum of the squared shares of its message types (Herfindahl-Hirschman index). The value is
    the mean over the senders. A sender with a single message counts as 1. If an interaction has no ``message_type``, its ``type``
    counts. If no sender is known, the value is 0 (vacuous).

    Detail: ``agents`` (number of senders).

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


@metric(
    uses=("agents", "interactions"),
    applies=applies.typed_interactions,
    aliases=("agentunit:collective_decision_score", "agentunit:collective_decision"),
)
def code_collective_decision(turn: Turn) -> Result:
    """Share of the interactions that are a collaboration or a negotiation.

    The metric compares the ``type`` of each interaction. Spans only contain calls and hand-offs, so a turn without
    ``interactions`` is skipped. In a direct call without interactions, the value is 0 (vacuous).

    Detail: ``interactions`` and ``collective`` (collaborations and negotiations).

    Source: AgentUnit collective_decision_score.
    """
    found = interactions_of(turn)
    if not found:
        return vacuous(0.0, interactions=0, collective=0)
    collective = sum(each.kind in _COLLECTIVE for each in found)
    return Result(collective / len(found), detail={"interactions": len(found), "collective": collective})


@metric(uses=("agents", "interactions"), applies=applies.many_response_times, aliases=("agentunit:adaptation_rate",))
def code_adaptation_rate(turn: Turn, *, min_interactions: Annotated[int, Ge(0), Param("min")] = 5) -> Result:
    """Change of response times during the turn: above 0.5 if the agents became faster.

    The value is ``0.5 + (early - late) / early``, limited to 0..1. ``early`` is the mean response time in the first half of the
    interactions (rounded down), and ``late`` in the second half. Only interactions with a response time above 0 count. If there
    are fewer than ``min_interactions`` of them, the value is 0.5 (vacuous). The response time of a called agent is its run time.

    Parameters:
        min_interactions: Minimum number of interactions. Also accepted as ``min``.

    Detail: ``interactions``, ``early_s`` and ``late_s``.

    Source: AgentUnit adaptation_rate.
    """
    found = interactions_of(turn)
    times = [each.response_s for each in found if each.response_s is not None]
    if len(times) < max(min_interactions, 2):
        return vacuous(0.5, interactions=len(found))
    half = len(times) // 2
    early, late = mean(times[:half]), mean(times[half:])
    return Result(_improvement(early, late), detail={"interactions": len(found), "early_s": early, "late_s": late})
