"""Proxies for judge scores, available on every turn.

They narrow fleet estimates without biasing them.
"""

from __future__ import annotations

import math

from ..evaluation.scored_turn import ScoredTurn

_LONG = math.log1p(20_000)
"""Answer length in characters above which the length proxy is 1."""


def proxies_of(scored: ScoredTurn) -> tuple[float, float, float]:
    """Return the proxies of a turn, each from 0 to 1, or 0 if unknown.

    They are the share of computed verdicts that pass, whether the answer is a refusal, and the answer's length.
    """
    verdicts = [score.passed for score in scored.scores if score.passed is not None and score.status == "ok"]
    refused = next((score.value for score in scored.scores if score.metric == "code_refusal" and score.value is not None), 0.0)
    return (
        sum(verdicts) / len(verdicts) if verdicts else 0.0,
        float(refused),
        min(1.0, math.log1p(len(scored.turn.output or "")) / _LONG),
    )
