"""What every turn has anyway that may go with what a judge would say of it: fleet estimates are narrower for it, and no less true where it says nothing."""

from __future__ import annotations

import math

from ..evaluation.scored_turn import ScoredTurn

_LONG = math.log1p(20_000)
"""Characters of an answer past which longer ones are as long."""


def proxies_of(scored: ScoredTurn) -> tuple[float, float, float]:
    """The share of its computed verdicts that are good, whether its answer is a refusal, and how long the answer is, from 0 to 1; 0 for what is unknown."""
    verdicts = [score.passed for score in scored.scores if score.passed is not None and score.status == "ok"]
    refused = next((score.value for score in scored.scores if score.metric == "code_refusal" and score.value is not None), 0.0)
    return (
        sum(verdicts) / len(verdicts) if verdicts else 0.0,
        float(refused),
        min(1.0, math.log1p(len(scored.turn.output or "")) / _LONG),
    )
