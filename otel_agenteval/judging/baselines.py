"""Comparisons of a turn with earlier turns of its agent: new tool, slow, expensive.

The history is bounded and belongs to this process. A comparison without enough history is None and meets no condition.
"""

from __future__ import annotations

import bisect
import math
from collections import OrderedDict, deque
from typing import Any

from ..core.tenancy import qualified
from ..core.turn import Turn

COMPARISONS = frozenset(("new_tool", "slow", "expensive"))
_AGENTS = 1_000
_TOOLS = 10_000
_TURNS = 200
_LEAST = 20
_SHARE = 0.95


class _Amounts:
    __slots__ = ("_last", "_sorted")

    def __init__(self) -> None:
        self._last: deque[float] = deque()
        self._sorted: list[float] = []

    def exceeds(self, amount: float | None) -> bool | None:
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
    """Earlier turns by agent. Only one thread may use it."""

    def __init__(self) -> None:
        self._amounts: OrderedDict[str, tuple[_Amounts, _Amounts]] = OrderedDict()
        self._tools: set[tuple[str, str]] = set()

    def compare(self, turn: Turn, *, learn: bool = True) -> dict[str, Any]:
        """Return ``slow`` and ``expensive`` (above 95 % of the agent's last 200 turns, None for the first 20), and ``new_tool``
        (the agent's first call, None after 10,000 tools). With ``learn``, the turn joins the history.
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
