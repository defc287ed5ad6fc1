"""Score by G-Eval: a judge writes evaluation steps for a criterion and scores by them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from annotated_types import MinLen

from ...core.errors import MetricError
from ..prompts import TEN, Prompts
from ..registry import Asks, Param, Result
from .replies import invalid, number_within, reason_of, texts
from .values import Words

_PROMPTS = Prompts("g_eval")
Criteria = Annotated[Words | Annotated[list[Words], MinLen(1)], Param("value")]


def g_eval(
    judge: Asks,
    criteria: str | Sequence[str],
    steps: Sequence[str] | None,
    what: str,
    material: Mapping[str, Any],
    media: Sequence[str] = (),
) -> Result:
    """Score each criterion from 0 to 10 and return the mean, divided by 10.

    ``what`` names the evaluated text in the task. If ``steps`` is None, a judge call writes evaluation steps for each criterion.
    """
    given = None if steps is None else [step.strip() for step in steps if step.strip()]
    if given == []:
        raise MetricError("invalid_parameter", "steps: must contain at least one step that isn't blank")
    wanted = [criteria] if isinstance(criteria, str) else list(criteria)
    found = [_judged(judge, criterion, given, what, material, media) for criterion in wanted]
    value = sum(one["score"] for one in found) / (10 * len(found))
    if len(found) == 1:
        return Result(value, detail=found[0], explanation=found[0]["reason"])
    reasons = "\n".join(one["reason"] for one in found)
    criteria_found = [{"criterion": criterion, **one} for criterion, one in zip(wanted, found, strict=True)]
    return Result(value, detail={"criteria": criteria_found, "reason": reasons}, explanation=reasons)


def _judged(
    judge: Asks, criterion: str, steps: list[str] | None, what: str, material: Mapping[str, Any], media: Sequence[str]
) -> dict[str, Any]:
    if steps is None:
        reply = judge.ask(
            "steps", _PROMPTS["steps"].replace("{what}", what), {}, '{"steps": ["<step>", ...]}', criteria={"criteria": criterion}
        )
        steps = texts(reply, "steps")
        if not steps:
            raise invalid("steps", "at least one step")
    reply = judge.ask(
        "score",
        _PROMPTS["score"].replace("{what}", what),
        material,
        TEN,
        criteria={"criteria": criterion, "evaluation_steps": steps},
        media=media,
    )
    score, reason = number_within(reply, 0, 10), reason_of(reply)
    if reason is None or not reason.strip():
        raise invalid("reason", "a text")
    return {"steps": steps, "score": score, "reason": reason}
