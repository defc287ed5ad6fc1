"""Who writes to whom: the shape of the graph of agents. A broadcast is an edge to each recipient; a message to itself is not.

Its agents are those of the turn's role table (or, without one, those that ran) and all others that took part. Where the turn
was given no interactions, they are what its spans show: an agent that called an agent, and hand-offs. A measure that would
take too many steps, as shortest paths between thousands of agents do, is skipped with ``too_long``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

from annotated_types import Ge, Le

from ...core.turn import Turn
from ..lib import applies
from ..lib.agent_graph import AgentGraph, GraphTooLarge
from ..lib.agents import interactions_of, known_agents, multi_agent_metric, participants
from ..registry import Result, skip, vacuous

Share = Annotated[float, Ge(0), Le(1)]

_HUB_SHARE = 0.7
_BOTTLENECK_SHARE = 0.5


def _graph_of(turn: Turn) -> tuple[AgentGraph, int]:
    """The graph, and how many interactions it is made of."""
    found = interactions_of(turn)
    pairs = ((each.sender, to) for each in found if each.sender is not None for to in each.recipients)
    return AgentGraph(participants(turn, found), pairs), len(found)


def _measured(graph: AgentGraph, measure: Callable[[], float | None]) -> Result:
    facts = {"agents": len(graph), "edges": graph.edges}
    try:
        value = measure()
    except GraphTooLarge:
        return skip("too_long", **facts)
    return skip("missing:interactions") if value is None else Result(value, detail=facts)


@multi_agent_metric(
    applies=applies.three_agents,
    uses=("agents", "interactions"),
    aliases=("agentunit:network_fault_tolerance", "agentunit:NetworkFaultToleranceMetric", "agentunit:NetworkMetrics"),
    heavy=True,
)
def code_network_fault_tolerance(turn: Turn) -> Result:
    """How well the network of agents could do without one of them: many connections, few bottlenecks.

    ``0.6 * density + 0.4 * (1 - bottlenecks / agents)``, with the density of code_network_density and the agents of
    code_bottleneck_agents. As every agent of a fully connected network counts as a bottleneck there, such a network has 0.6.
    One agent alone is 1 and vacuous. Skipped with ``missing:interactions`` or, when no role table was given and the spans
    show no agents either, ``missing:agents``.

    Detail: ``density``, ``centralization``, ``clustering`` (null when it would take too long), ``hub_agents``,
    ``bottleneck_count``.

    Source: AgentUnit network_fault_tolerance.
    """
    graph, interactions = _graph_of(turn)
    if not interactions:
        return skip("missing:interactions")
    if not known_agents(turn):
        return skip("missing:agents")
    if len(graph) <= 1:
        return vacuous(1.0, density=1.0, centralization=0.0, clustering=0.0, hub_agents=[], bottleneck_count=0)
    bottlenecks = len(_bottlenecks(graph, "heuristic"))
    density = graph.density()
    larger = len(graph) > 2
    detail: dict[str, Any] = {
        "density": density,
        "centralization": graph.centralization() if larger else 0.0,
        "clustering": _measured(graph, graph.clustering).value if larger else 0.0,
        "hub_agents": _hubs(graph, _HUB_SHARE),
        "bottleneck_count": bottlenecks,
    }
    return Result(0.6 * density + 0.4 * (1 - bottlenecks / len(graph)), detail=detail)


@multi_agent_metric(
    applies=applies.three_agents,
    uses=("agents", "interactions"),
    direction="neutral",
    aliases=("agentunit:density", "agentunit:NetworkAnalyzer"),
)
def code_network_density(turn: Turn) -> Result:
    """Share of the ordered pairs of agents of which the first wrote to the second.

    ``edges / (agents * (agents - 1))``; an edge counts once, however many messages took it. One agent alone is 1 and
    vacuous. Skipped with ``missing:interactions`` when none are known of several agents, or no agent is.

    Detail: ``agents``, ``edges``.

    Source: AgentUnit density.
    """
    graph, interactions = _graph_of(turn)
    if len(graph) == 1:
        return vacuous(1.0, agents=1, edges=0)
    return _measured(graph, graph.density) if interactions and len(graph) else skip("missing:interactions")


def _of_three_or_more(turn: Turn, measure: Callable[[AgentGraph], float]) -> Result:
    """A measure that needs three agents: of one or two it is 0, which says nothing."""
    graph, interactions = _graph_of(turn)
    if 1 <= len(graph) <= 2:
        return vacuous(0.0, agents=len(graph), edges=graph.edges)
    return _measured(graph, lambda: measure(graph)) if interactions and len(graph) else skip("missing:interactions")


@multi_agent_metric(
    applies=applies.three_agents,
    uses=("agents", "interactions"),
    direction="neutral",
    aliases=("agentunit:centralization",),
    heavy=True,
)
def code_network_centralization(turn: Turn, *, mode: Literal["normalized", "seed"] = "normalized") -> Result:
    """How much the network is a star: 1 when one agent writes to all others and no other agent writes to any.

    Sum over the agents of how far their number of recipients is below the highest one, divided by the most that is
    possible, ``(agents - 1) ** 2`` (Freeman's out-degree centralization). One or two agents are 0 and vacuous. Skipped with
    ``missing:interactions`` when none are known of more agents, or no agent is.

    Parameters:
        mode: ``seed`` divides by ``(agents - 1) * (agents - 2)`` as AgentUnit does, which is meant for undirected graphs: a
            star of four agents has 1.5 then.

    Detail: ``agents``, ``edges``.

    Source: AgentUnit centralization.
    """
    return _of_three_or_more(turn, lambda graph: graph.centralization(as_seed=mode == "seed"))


@multi_agent_metric(
    applies=applies.three_agents,
    uses=("agents", "interactions"),
    unit="{item}",
    direction="neutral",
    aliases=("agentunit:avg_path_length",),
    heavy=True,
)
def code_avg_path_length(turn: Turn) -> Result:
    """Mean number of messages by which one agent reaches another, along the directed edges and by the shortest path.

    Mean over the ordered pairs of agents of which the first can reach the second; the others do not count. At least 1.
    Skipped with ``missing:interactions`` when no agent reaches another, with ``too_long`` when the graph is too large.

    Detail: ``agents``, ``edges``.

    Source: AgentUnit avg_path_length, which is documented there and always 0.
    """
    graph, _ = _graph_of(turn)
    return _measured(graph, graph.mean_distance)


@multi_agent_metric(
    applies=applies.three_agents,
    uses=("agents", "interactions"),
    direction="neutral",
    aliases=("agentunit:clustering_coefficient",),
    heavy=True,
)
def code_clustering_coefficient(turn: Turn) -> Result:
    """How often two agents that the same agent writes to also write to each other.

    Per agent the edges among the ``k`` agents it writes to, of the ``k * (k - 1)`` that there could be; 0 for an agent that
    writes to at most one. The value is the mean over all agents. One or two agents are 0 and vacuous. Skipped with
    ``missing:interactions`` when none are known of more agents, or no agent is, and with ``too_long`` when the graph is too
    large.

    Detail: ``agents``, ``edges``.

    Source: AgentUnit clustering_coefficient.
    """
    return _of_three_or_more(turn, AgentGraph.clustering)


def _hubs(graph: AgentGraph, share: float) -> list[str]:
    return graph.near_the_top([float(len(recipients)) for recipients in graph.out], share)


@multi_agent_metric(
    applies=applies.three_agents,
    uses=("agents", "interactions"),
    unit="{item}",
    direction="neutral",
    spellings={"threshold": "share_of_highest"},
    aliases=("agentunit:hub_agents",),
    heavy=True,
)
def code_hub_agents(turn: Turn, *, share_of_highest: Share = _HUB_SHARE) -> Result:
    """Number of agents that write to about as many others as the one that writes to most.

    Counts the agents whose number of recipients is at least ``share_of_highest`` of the highest one. Without any edge it is
    0 and vacuous. Skipped with ``missing:interactions`` when no agent is known either.

    Parameters:
        share_of_highest: of the highest number of recipients; may also be given as ``threshold``, its name in AgentUnit,
            so that the metric has no bound to pass.

    Detail: ``hub_agents``, their names: those of the role table in its order, then the others.

    Source: AgentUnit hub_agents.
    """
    graph, _ = _graph_of(turn)
    if not len(graph):
        return skip("missing:interactions")
    if not graph.edges:
        return vacuous(0.0, hub_agents=[])
    hubs = _hubs(graph, share_of_highest)
    return Result(len(hubs), detail={"hub_agents": hubs})


def _bottlenecks(graph: AgentGraph, mode: str) -> list[str]:
    if len(graph) <= 2:
        return []
    return graph.near_the_top(graph.betweenness() if mode == "betweenness" else graph.throughput(), _BOTTLENECK_SHARE)


@multi_agent_metric(
    applies=applies.three_agents,
    uses=("agents", "interactions"),
    unit="{item}",
    direction="down",
    aliases=("agentunit:bottleneck_agents",),
    heavy=True,
)
def code_bottleneck_agents(turn: Turn, *, mode: Literal["heuristic", "betweenness"] = "heuristic") -> Result:
    """Number of agents that much of the communication has to pass through.

    Counts the agents with at least half of the highest product of how many agents write to them and how many they write to;
    none when all products are 0. One or two agents, and agents without any edge, have none; that is vacuous. Skipped with
    ``missing:interactions`` when no agent is known, with ``too_long`` when the graph is too large for ``betweenness``.

    Parameters:
        mode: ``betweenness`` compares, instead of the product, the shortest paths between others that pass through the
            agent. In a network where all agents write to all others, the product finds that every agent is a
            bottleneck, and betweenness that none is.

    Detail: ``bottleneck_agents``, their names: those of the role table in its order, then the others.

    Source: AgentUnit bottleneck_agents.
    """
    graph, _ = _graph_of(turn)
    if not len(graph):
        return skip("missing:interactions")
    if len(graph) <= 2 or not graph.edges:
        return vacuous(0.0, bottleneck_agents=[])
    try:
        bottlenecks = _bottlenecks(graph, mode)
    except GraphTooLarge:
        return skip("too_long", agents=len(graph), edges=graph.edges)
    return Result(len(bottlenecks), detail={"bottleneck_agents": bottlenecks})
