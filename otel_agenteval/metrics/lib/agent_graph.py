"""Measure the directed graph of messages between agents.

Every computation has a step limit, so that a large graph can't block the worker.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..registry import EPSILON

MOST_STEPS = 2_000_000
"""Edges that one measure may visit, which takes one to two seconds. No graph of 100 agents exceeds this limit."""
MOST_MOVES = 250_000
"""Edges that a distance measure may visit. The limit is lower because each visit moves many agents at once and costs more.

No graph of 100 agents exceeds this limit.
"""
MOST_AGENTS = 10_000
"""Agents in the largest graph whose distances are measured. Memory grows with the square of this number."""


class GraphTooLarge(Exception):
    """A graph that exceeds the step limit or :data:`MOST_AGENTS`."""


class AgentGraph:
    """A directed graph with one node per agent.

    ``out[i]`` is the set of agents that agent ``i`` wrote to, by index. Messages that an agent sends to itself are ignored.
    """

    __slots__ = ("edges", "names", "out")

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
        """Return the number of edges divided by the number of possible edges.

        Requires at least two agents.
        """
        return self.edges / (len(self) * (len(self) - 1))

    def centralization(self, *, as_seed: bool = False) -> float:
        """Return how strongly the out-degrees concentrate on one agent.

        The value is the sum of the differences to the highest out-degree, divided by the largest possible sum. Requires at least
        three agents.
        """
        n = len(self)
        degrees = [len(recipients) for recipients in self.out]
        behind = n * max(degrees) - sum(degrees)
        return behind / ((n - 1) * (n - 2 if as_seed else n - 1))

    def clustering(self) -> float:
        """Return the mean local clustering coefficient of the agents.

        An agent's coefficient is the share of its ordered pairs of recipients in which the first wrote to the second.

        Raises:
            GraphTooLarge: If the graph has too many pairs.
        """
        steps, total = 0, 0.0
        for recipients in self.out:
            k = len(recipients)
            if k <= 1:
                continue
            steps += sum(min(k, len(self.out[other])) + 1 for other in recipients)
            _check(steps, MOST_STEPS)
            total += sum(len(recipients & self.out[other]) for other in recipients) / (k * (k - 1))
        return total / len(self)

    def mean_distance(self) -> float | None:
        """Return the mean length of the shortest paths between connected pairs.

        Pairs are ordered. Returns None if the graph has no edge.

        Raises:
            GraphTooLarge: If the graph has too many paths.
        """
        known = self._distances_in_forest()
        if known is not None:
            return known[1] / known[0] if known[0] else None
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

    def _distances_in_forest(self) -> tuple[int, int] | None:
        """Return the number of connected pairs and their total distance, if the graph is a forest.

        Returns None if an agent has two senders or the graph has a cycle. Most graphs of calls are trees, which need only one
        pass.
        """
        heard = [place for recipients in self.out for place in recipients]
        roots = set(range(len(self))).difference(heard)
        order = [*roots]
        for place in order:  # grows during the loop
            order += self.out[place]
            if len(order) > len(self):
                return None
        if len(set(heard)) < len(heard) or len(order) < len(self):
            return None
        below, distance = [0] * len(self), [0] * len(self)
        for place in reversed(order):
            for after in self.out[place]:
                below[place] += below[after] + 1
                distance[place] += distance[after] + below[after] + 1
        return sum(below), sum(distance)

    def throughput(self) -> list[float]:
        """Return the number of senders times the number of recipients of each agent."""
        heard = [0] * len(self)
        for recipients in self.out:
            for place in recipients:
                heard[place] += 1
        return [float(incoming * len(recipients)) for incoming, recipients in zip(heard, self.out, strict=True)]

    def betweenness(self) -> list[float]:
        """Return the betweenness centrality of each agent.

        For each pair of other agents, the agent gets the share of their shortest paths that pass through it. The shares are
        summed.

        Raises:
            GraphTooLarge: If the graph has too many paths.
        """
        through = [0.0] * len(self)
        steps = 0
        for start in range(len(self)):
            order, before, paths = self._shortest_paths(start, MOST_STEPS - steps)
            steps += sum(len(self.out[place]) + 1 for place in order)
            _check(steps, MOST_STEPS)
            depends = dict.fromkeys(order, 0.0)
            for place in reversed(order):
                for earlier in before[place]:
                    depends[earlier] += paths[earlier] / paths[place] * (1 + depends[place])
                if place != start:
                    through[place] += depends[place]
        return through

    def _shortest_paths(self, start: int, steps: int) -> tuple[list[int], dict[int, list[int]], dict[int, int]]:
        """Return the agents by distance from ``start``, their predecessors, and their path counts.

        Predecessors are the agents before them on shortest paths.
        """
        distance, paths = {start: 0}, {start: 1}
        before: dict[int, list[int]] = {start: []}
        order = [start]
        for place in order:  # grows during the loop
            steps -= len(self.out[place])
            if steps < 0:
                raise GraphTooLarge
            for after in self.out[place]:
                if after not in distance:
                    distance[after] = distance[place] + 1
                    before[after], paths[after] = [], 0
                    order.append(after)
                if distance[after] == distance[place] + 1:
                    before[after].append(place)
                    paths[after] += paths[place]
        return order, before, paths

    def near_the_top(self, values: Sequence[float], share: float) -> list[str]:
        """Return the names of the agents whose value is at least ``share`` of the highest value.

        Returns an empty list if all values are 0.
        """
        bound = share * max(values, default=0.0)
        if not any(values):
            return []
        return [name for name, value in zip(self.names, values, strict=True) if value >= bound * (1 - EPSILON)]


def _check(steps: int, most: int) -> None:
    if steps > most:
        raise GraphTooLarge
