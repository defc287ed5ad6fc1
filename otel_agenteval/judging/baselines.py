"""How a turn compares with those before it: it calls a new tool, or is slower or more expensive than nearly all of them.

Bounded, and of this process only. What is not known yet is None, so that it meets no condition.
"""

from __future__ import annotations

import bisect
import math
from collections import OrderedDict, deque
from typing import Any

from ..core.tenancy import qualified
from ..core.turn import Turn

COMPARISONS = frozenset(("new_tool", "slow", "expensive"))
"""What :meth:`History.compare` gives."""
_AGENTS = 1_000
_TOOLS = 10_000
_TURNS = 200
_LEAST = 20
_SHARE = 0.95


class _Amounts:
    """The last amounts of one kind, also in order of size."""

    __slots__ = ("_last", "_sorted")

    def __init__(self) -> None:
        self._last: deque[float] = deque()
        self._sorted: list[float] = []

    def exceeds(self, amount: float | None) -> bool | None:
        """Whether it is more than 95 of 100 of them; None while there are too few to tell."""
        if amount is None or len(self._sorted) < _LEAST:
            return None
        return amount > self._sorted[math.ceil(len(self._sorted) * _SHARE) - 1]

    def add(self, amount: float | None) -> None:
        if amount is None or not math.isfinite(amount):
            return
        if len(self._last) == _TURNS:
            del self._sorted[bisect.bisect_left(self._sorted, self._last.popleft())]
        self._last.append(amount)
        bisect.insort(self._sorted, amount)


class History:
    """The turns so far, by agent. Used by one thread."""

    def __init__(self) -> None:
        self._amounts: OrderedDict[str, tuple[_Amounts, _Amounts]] = OrderedDict()
        self._tools: set[tuple[str, str]] = set()

    def compare(self, turn: Turn, *, learn: bool = True) -> dict[str, Any]:
        """``new_tool``, ``slow`` and ``expensive`` of a turn; then, with ``learn``, later turns are compared with it too.

        ``slow`` and ``expensive`` are more than in 95 of 100 of the agent's last 200 turns, known from the 21st on. ``new_tool`` is the
        first call of a tool by the agent; once ten thousand tools are known, it stays unknown.
        """
        agent = qualified(turn.tenant, turn.agent or "")
        durations, costs = self._amounts.pop(agent) if agent in self._amounts else (_Amounts(), _Amounts())
        self._amounts[agent] = (durations, costs)
        if len(self._amounts) > _AGENTS:
            self._amounts.popitem(last=False)
        called = {(agent, call.name) for call in turn.tool_calls or ()}
        new = None if len(self._tools) >= _TOOLS or turn.tool_calls is None else not called <= self._tools
        found = {"new_tool": new, "slow": durations.exceeds(turn.duration_s), "expensive": costs.exceeds(turn.cost_usd)}
        if learn:
            durations.add(turn.duration_s)
            costs.add(turn.cost_usd)
            if len(self._tools) < _TOOLS:
                self._tools |= called
        return found
