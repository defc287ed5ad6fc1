"""The directed graph of who wrote to whom, and the few measures of it that metrics need. Every walk has a limit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..registry import EPSILON

MOST_STEPS = 2_000_000
"""Edges that one measure looks at: a second or two. A hundred agents stay below it, however they are wired."""
MOST_MOVES = 250_000
"""The same for distances, where each edge is looked at for many agents at once and costs more. A hundred agents stay below it, too."""
MOST_AGENTS = 10_000
"""Agents between which distances are measured: there are as many sets of so many bits."""


class GraphTooLarge(Exception):
    """A measure would need more than :data:`MOST_STEPS` steps, or has more than :data:`MOST_AGENTS` agents."""


class AgentGraph:
    """Agents by place, and for each the places of those it wrote to. Agents that write to themselves have no edge for it."""

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
        """Edges of all that there could be; for two agents or more."""
        return self.edges / (len(self) * (len(self) - 1))

    def centralization(self, *, as_seed: bool = False) -> float:
        """How far the agents' out-degrees stay behind the highest, of the most that is possible; for three agents or more."""
        n = len(self)
        degrees = [len(recipients) for recipients in self.out]
        behind = n * max(degrees) - sum(degrees)
        return behind / ((n - 1) * (n - 2 if as_seed else n - 1))

    def clustering(self) -> float:
        """Mean over the agents of the share of pairs they wrote to, of which one wrote to the other.

        Raises:
            GraphTooLarge: there are too many pairs to look at.
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
        """Mean length of the shortest paths between all ordered pairs that have one; None when there is no edge.

        Raises:
            GraphTooLarge: there are too many paths.
        """
        known = self._distances_in_forest()
        if known is not None:
            return known[1] / known[0] if known[0] else None
        if len(self) > MOST_AGENTS:
            raise GraphTooLarge
        # All agents start at once: bit i of a number says that agent i has reached the place whose number it is.
        reached = [1 << place for place in range(len(self))]
        arrived = dict(enumerate(reached))
        effort = 1 + len(self) // 5_000  # long numbers take longer
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
        """How many pairs have a path, and the lengths of all of them together; None if an agent hears from two, or of itself.

        Agents that call agents are mostly a tree, in which this takes one walk.
        """
        heard = [place for recipients in self.out for place in recipients]
        roots = set(range(len(self))).difference(heard)
        order = [*roots]
        for place in order:  # grows while it is walked
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
        """Per agent how many it hears from times how many it writes to."""
        heard = [0] * len(self)
        for recipients in self.out:
            for place in recipients:
                heard[place] += 1
        return [float(incoming * len(recipients)) for incoming, recipients in zip(heard, self.out, strict=True)]

    def betweenness(self) -> list[float]:
        """Per agent the share of the shortest paths between two others that pass through it, summed over those pairs.

        Raises:
            GraphTooLarge: there are too many paths.
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
        """Places by distance, for each those before it on shortest paths, and how many such paths there are."""
        distance, paths = {start: 0}, {start: 1}
        before: dict[int, list[int]] = {start: []}
        order = [start]
        for place in order:  # grows while it is walked
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
        """Names of the agents with at least ``share`` of the highest value, in order; none when that is 0."""
        bound = share * max(values, default=0.0)
        if not any(values):
            return []
        return [name for name, value in zip(self.names, values, strict=True) if value >= bound * (1 - EPSILON)]


def _check(steps: int, most: int) -> None:
    if steps > most:
        raise GraphTooLarge
