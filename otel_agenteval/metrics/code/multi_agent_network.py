"""The network metrics evaluate a graph whose nodes are agents. An edge leads from agent A to agent B if A sent a message to B. The
nodes are the agents in the turn's role table (``agents``) or, without a table, the agents that ran or took part in a hand-off.
Other senders and recipients of messages are added as nodes. An agent's message to itself isn't an edge. If the graph is too large
to compute a metric, for example shortest paths between thousands of agents, the score is skipped as ``too_long``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any, Literal

from ...core.turn import Turn
from ..lib import applies
from ..lib.agents import Roles, interactions_of, known_agents, participants, read_once
from ..lib.values import Share
from ..registry import EPSILON, Param, Result, metric, skip, vacuous

_network_metric = functools.partial(metric, uses=("agents", "interactions"), applies=applies.three_agents)

FAMILY = "multi_agent"

_HUB_SHARE = 0.7
_BOTTLENECK_SHARE = 0.5
MOST_STEPS = 2_000_000
"""Maximum number of edges to visit per metric (one to two seconds). Graphs of up to 100 agents don't exceed this limit."""
MOST_MOVES = 250_000
"""Maximum number of edges to visit when computing the mean distance. Graphs of up to 100 agents don't exceed this limit."""
MOST_AGENTS = 10_000
"""Maximum number of agents in a graph whose distances are measured. Memory use grows with the square of the number of agents."""


class GraphTooLarge(Exception):
    """Raised if a graph is so large that a metric would take too much time or memory."""


def _check(steps: int, most: int) -> None:
    if steps > most:
        raise GraphTooLarge


class AgentGraph:
    """A directed graph with one node per agent.

    ``out[i]`` contains the indices of the agents that received messages from agent ``i``, except ``i`` itself. A method raises
    :class:`GraphTooLarge` if its result would take too much time or memory.
    """

    def __init__(self, names: Sequence[str], pairs: Iterable[tuple[str, str]]) -> None:
        self.names = list(names)
        places = {name: place for place, name in enumerate(self.names)}
        self.out: list[set[int]] = [set() for _ in self.names]
        for sender, recipient in pairs:
            if sender != recipient:
                self.out[places[sender]].add(places[recipient])
        self.edges = sum(map(len, self.out))

    def __len__(self) -> int:
        return len(self.names)

    def density(self) -> float:
        """Return the share of possible edges that exist. Requires at least two agents."""
        return self.edges / (len(self) * (len(self) - 1))

    def centralization(self, *, as_seed: bool = False) -> float:
        """Return Freeman's out-degree centralization. Requires at least three agents. ``as_seed`` selects AgentUnit's divisor."""
        n = len(self)
        degrees = [len(recipients) for recipients in self.out]
        return (n * max(degrees) - sum(degrees)) / ((n - 1) * (n - 2 if as_seed else n - 1))

    def clustering(self) -> float:
        steps, total = 0, 0.0
        for recipients in self.out:
            if (k := len(recipients)) <= 1:
                continue
            steps += sum(min(k, len(self.out[other])) + 1 for other in recipients)
            _check(steps, MOST_STEPS)
            total += sum(len(recipients & self.out[other]) for other in recipients) / (k * (k - 1))
        return total / len(self)

    def mean_distance(self) -> float | None:
        """Return the mean length of the shortest paths between agents, or None without edges."""
        if len(self) > MOST_AGENTS:
            raise GraphTooLarge
        # Search from all agents at once: bit i of reached[place] is set if a path from agent i to place was found.
        reached = [1 << place for place in range(len(self))]
        arrived = dict(enumerate(reached))
        effort = 1 + len(self) // 5_000  # operations on long integers take longer
        steps = distance = pairs = total = 0
        while arrived:
            steps += effort * sum(len(self.out[place]) for place in arrived)
            _check(steps, MOST_MOVES)
            moved: dict[int, int] = {}
            for place, starts in arrived.items():
                for after in self.out[place]:
                    moved[after] = moved.get(after, 0) | starts
            arrived = {place: new for place, starts in moved.items() if (new := starts & ~reached[place])}
            distance += 1
            for place, starts in arrived.items():
                reached[place] |= starts
                pairs += starts.bit_count()
                total += distance * starts.bit_count()
        return total / pairs if pairs else None

    def throughput(self) -> list[float]:
        senders = [0] * len(self)
        for recipients in self.out:
            for place in recipients:
                senders[place] += 1
        return [float(count * len(recipients)) for count, recipients in zip(senders, self.out, strict=True)]

    def betweenness(self) -> list[float]:
        through = [0.0] * len(self)
        steps = 0
        for start in range(len(self)):
            # Distances from the start, predecessors on shortest paths, and numbers of shortest paths.
            distance, paths = {start: 0}, {start: 1}
            before: dict[int, list[int]] = {start: []}
            order = [start]
            for place in order:  # grows during the loop
                steps += len(self.out[place]) + 1
                _check(steps, MOST_STEPS)
                for after in self.out[place]:
                    if after not in distance:
                        distance[after] = distance[place] + 1
                        before[after], paths[after] = [], 0
                        order.append(after)
                    if distance[after] == distance[place] + 1:
                        before[after].append(place)
                        paths[after] += paths[place]
            depends = dict.fromkeys(order, 0.0)
            for place in reversed(order):
                for earlier in before[place]:
                    depends[earlier] += paths[earlier] / paths[place] * (1 + depends[place])
                if place != start:
                    through[place] += depends[place]
        return through

    def near_the_top(self, values: Sequence[float], share: float) -> list[str]:
        if not any(values):
            return []
        least = share * max(values) * (1 - EPSILON)
        return [name for name, value in zip(self.names, values, strict=True) if value >= least]


def _graph_of(turn: Turn) -> tuple[AgentGraph, int]:
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


@_network_metric(
    aliases=("agentunit:network_fault_tolerance", "agentunit:NetworkFaultToleranceMetric", "agentunit:NetworkMetrics"),
    traits=("heavy",),
)
def code_network_fault_tolerance(turn: Turn, *, roles: Roles | None = None) -> Result:
    """Resilience of the agent network: higher with more connections and fewer bottlenecks.

    The value is ``0.6 * density + 0.4 * (1 - bottlenecks / agents)``, based on ``code_network_density`` and
    ``code_bottleneck_agents``. The value of a fully connected network of three or more agents is only 0.6, because
    ``code_bottleneck_agents`` counts every agent as a bottleneck. Without interactions, the score is skipped as
    ``missing:interactions``. If neither a role table nor the spans contain agents, the score is skipped as ``missing:agents``.

    Parameters:
        roles: Role table: ``{agent: {…}}``. The network includes these agents even without messages. The default is the turn's
            ``agents``.

    Detail: ``density``, ``centralization``, ``clustering`` (null if computing it would take too long), ``hub_agents``, and ``bottleneck_count``.
    """
    turn = turn if roles is None else read_once(turn, roles)
    graph, interactions = _graph_of(turn)
    if not interactions:
        return skip("missing:interactions")
    if not known_agents(turn):
        return skip("missing:agents")
    if len(graph) <= 1:
        return vacuous(1.0, density=1.0, centralization=0.0, clustering=0.0, hub_agents=[], bottleneck_count=0)
    larger = len(graph) > 2
    detail: dict[str, Any] = {
        "density": graph.density(),
        "centralization": graph.centralization() if larger else 0.0,
        "clustering": _measured(graph, graph.clustering).value if larger else 0.0,
        "hub_agents": hubs_of(graph, _HUB_SHARE),
        "bottleneck_count": len(bottlenecks_of(graph, "heuristic")),
    }
    return Result(fault_tolerance_of(graph), detail=detail)


def fault_tolerance_of(graph: AgentGraph) -> float:
    if len(graph) <= 1:
        return 1.0
    return 0.6 * graph.density() + 0.4 * (1 - len(bottlenecks_of(graph, "heuristic")) / len(graph))


@_network_metric(direction="neutral", aliases=("agentunit:density", "agentunit:NetworkAnalyzer"))
def code_network_density(turn: Turn) -> Result:
    """Share of possible sender-recipient pairs that have at least one message.

    The value is ``edges / (agents * (agents - 1))``. Several messages from one agent to another count as one edge. With a single
    agent, the value is 1 (vacuous). With more agents but no known interactions, the score is skipped as ``missing:interactions``.

    Detail: ``agents`` and ``edges``.
    """
    graph, interactions = _graph_of(turn)
    if len(graph) == 1:
        return vacuous(1.0, agents=1, edges=0)
    return _measured(graph, graph.density) if interactions and len(graph) else skip("missing:interactions")


def _of_three_or_more(turn: Turn, measure: Callable[[AgentGraph], float]) -> Result:
    graph, interactions = _graph_of(turn)
    if 1 <= len(graph) <= 2:
        return vacuous(0.0, agents=len(graph), edges=graph.edges)
    return _measured(graph, lambda: measure(graph)) if interactions and len(graph) else skip("missing:interactions")


@_network_metric(direction="neutral", aliases=("agentunit:centralization",), traits=("heavy",))
def code_network_centralization(turn: Turn, *, mode: Literal["normalized", "seed"] = "normalized") -> Result:
    """Similarity of the agent network to a star, in which only one agent sends messages.

    The value is Freeman's out-degree centralization. Each agent's number of recipients is subtracted from the highest number of
    recipients. The sum of these differences is divided by its maximum, ``(agents - 1) ** 2``. The value is 1 if one agent sends
    messages to all others, and the others send none. With one or two agents, the value is 0 (vacuous).

    Parameters:
        mode: With ``seed``, the divisor is ``(agents - 1) * (agents - 2)``, as in AgentUnit. This divisor is meant for undirected
            graphs, so a star of four agents has the value 1.5.

    Detail: ``agents`` and ``edges``.
    """
    return _of_three_or_more(turn, lambda graph: graph.centralization(as_seed=mode == "seed"))


@_network_metric(unit="{item}", direction="neutral", aliases=("agentunit:avg_path_length",), traits=("heavy",))
def code_avg_path_length(turn: Turn) -> Result:
    """Mean length of the shortest directed paths between agents.

    A path's length is its number of edges. The mean covers all ordered pairs of agents with a path from the first agent to the
    second. Without a path, the score is skipped as ``missing:interactions``.

    Detail: ``agents`` and ``edges``.

    Source: ``avg_path_length`` in AgentUnit, which always returns 0.
    """
    graph, _ = _graph_of(turn)
    return _measured(graph, graph.mean_distance)


@_network_metric(direction="neutral", aliases=("agentunit:clustering_coefficient",), traits=("heavy",))
def code_clustering_coefficient(turn: Turn) -> Result:
    """Clustering of the network: higher if an agent's recipients also message each other.

    An agent's coefficient is the number of edges among its ``k`` recipients, divided by ``k * (k - 1)``. For an agent with at most
    one recipient, the coefficient is 0. The value is the mean over all agents. With one or two agents, the value is 0 (vacuous).

    Detail: ``agents`` and ``edges``.
    """
    return _of_three_or_more(turn, AgentGraph.clustering)


def hubs_of(graph: AgentGraph, share: float) -> list[str]:
    return graph.near_the_top([float(len(recipients)) for recipients in graph.out], share)


@_network_metric(unit="{item}", direction="neutral", aliases=("agentunit:hub_agents",), traits=("heavy",))
def code_hub_agents(turn: Turn, *, share_of_highest: Annotated[Share, Param("threshold")] = _HUB_SHARE) -> Result:
    """Number of hub agents: agents whose number of recipients is close to the highest number.

    An agent is a hub if its number of recipients is at least ``share_of_highest`` times the highest number of recipients. With
    agents but no messages, the value is 0 (vacuous).

    Parameters:
        share_of_highest: Lowest number of recipients that makes an agent a hub, as a share of the highest number of recipients.
            Alias: ``threshold``, as in AgentUnit. This option isn't a passing threshold.

    Detail: ``hub_agents`` (names, in the order of the role table, followed by other agents).
    """
    graph, _ = _graph_of(turn)
    if not len(graph):
        return skip("missing:interactions")
    if not graph.edges:
        return vacuous(0.0, hub_agents=[])
    hubs = hubs_of(graph, share_of_highest)
    return Result(len(hubs), detail={"hub_agents": hubs})


def bottlenecks_of(graph: AgentGraph, mode: str) -> list[str]:
    if len(graph) <= 2:
        return []
    return graph.near_the_top(graph.betweenness() if mode == "betweenness" else graph.throughput(), _BOTTLENECK_SHARE)


@_network_metric(unit="{item}", direction="down", aliases=("agentunit:bottleneck_agents",), traits=("heavy",))
def code_bottleneck_agents(turn: Turn, *, mode: Literal["heuristic", "betweenness"] = "heuristic") -> Result:
    """Number of bottleneck agents, through which much of the communication passes.

    For each agent, the metric multiplies the number of agents that send messages to it by the number of its recipients. An agent is
    a bottleneck if this product is above 0 and at least half of the highest product. With one or two agents, or with more agents
    but no messages, the value is 0 (vacuous).

    Parameters:
        mode: With ``betweenness``, the metric instead compares how many shortest paths lead through each agent. For example, if
            every agent sends messages to all others, ``heuristic`` counts every agent, and ``betweenness`` counts none.

    Detail: ``bottleneck_agents`` (names, in the order of the role table, followed by other agents).
    """
    graph, _ = _graph_of(turn)
    if not len(graph):
        return skip("missing:interactions")
    if len(graph) <= 2 or not graph.edges:
        return vacuous(0.0, bottleneck_agents=[])
    try:
        bottlenecks = bottlenecks_of(graph, mode)
    except GraphTooLarge:
        return skip("too_long", agents=len(graph), edges=graph.edges)
    return Result(len(bottlenecks), detail={"bottleneck_agents": bottlenecks})
