"""``code_turn_autonomy`` measures how autonomously the agent acted in a turn, from 1 to 10."""

from __future__ import annotations

from typing import Annotated

from annotated_types import Ge, Gt

from ...core.turn import Turn
from ..registry import Result, metric

_STOP_SIGNAL = {"completed": 1.0, "requested_credentials": 0.5, "asked_clarification": 0.2, "awaiting_confirmation": 0.2}
_UNKNOWN_STOP = 0.5

Weight = Annotated[float, Ge(0)]


@metric(
    unit="{level}",
    direction="neutral",
    needs=("llm_calls", "tool_calls", "stop_kind", "duration"),
    groups=("quality",),
    aliases=("hpd:TurnAutonomyEvaluator",),
)
def code_turn_autonomy(
    turn: Turn,
    *,
    max_iterations: Annotated[int, Ge(1)] = 10,
    max_duration_s: Annotated[float, Gt(0)] = 600,
    weights: tuple[Weight, Weight, Weight, Weight] = (0.25, 0.25, 0.25, 0.25),
) -> Result:
    """Autonomy of the agent, from 1 (requests help immediately) to 10 (completes many steps alone).

    The value is ``1 + 9 * (w1 * iterations + w2 * denied + w3 * stop + w4 * duration)``, rounded to one decimal. Each of the four signals is a number from 0 to 1:

    - iterations: number of model calls divided by ``max_iterations``, at most 1.
    - denied: share of the tool calls that were denied permission. Denials *raise* the value, because they show that the agent
      attempted an action without permission.
    - stop: 1 if the turn's ``stop_kind`` is ``completed``, 0.5 for ``requested_credentials`` and ``unknown``, and 0.2 for
      ``asked_clarification`` and ``awaiting_confirmation``.
    - duration: seconds divided by ``max_duration_s``, at most 1.

    Parameters:
        max_iterations: Number of model calls at which ``iterations`` reaches 1.
        max_duration_s: Number of seconds at which ``duration`` reaches 1.
        weights: Weights of the four signals, in the order of the formula. The weights aren't normalized, so they should add up to 1.

    Detail: the four signals, as ``iterations``, ``denied_rate``, ``stop``, and ``duration``.
    """
    calls = turn.tool_calls
    iterations = min(1.0, (turn.llm_call_count or 0) / max_iterations)
    denied = len([call for call in calls if call.state == "declined"]) / len(calls) if calls else 0.0
    stop = _STOP_SIGNAL.get(turn.stop_kind or "", _UNKNOWN_STOP)
    duration = min(1.0, (turn.duration_s or 0.0) / max_duration_s)
    w1, w2, w3, w4 = weights
    value = 1 + 9 * (w1 * iterations + w2 * denied + w3 * stop + w4 * duration)
    # Scale before rounding, because a tie such as 4.45 isn't exact in binary.
    return Result(
        round(value * 10) / 10, detail={"iterations": iterations, "denied_rate": denied, "stop": stop, "duration": duration}
    )
