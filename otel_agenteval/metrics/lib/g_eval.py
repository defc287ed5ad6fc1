"""Score by G-Eval: a judge writes evaluation steps for a criterion and scores by them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from annotated_types import MinLen

from ...core.errors import MetricError
from ..registry import Asks, Result
from .prompts import MISSING, PARTIAL, TEN, task
from .replies import invalid, number_within, reason_of, texts
from .values import Words

Criteria = Words | Annotated[list[Words], MinLen(1)]


def steps_task(what: str) -> str:
    """Return the task of the first judge call, which writes the evaluation steps."""
    return task(
        f"Work out how to evaluate {what} by the criteria. Do not evaluate anything yet.",
        steps="Write three or four short steps that a careful reader follows one after another to a score of 0 to 10. Each says what to look "
        "at and what to compare it with; the last says how the findings become the score.",
        counts="that the steps cover every requirement of the criteria, and add none.",
        good='criteria "answers everything": "List the parts of the question; check that each has an answer." is a step.',
        bad='"Think about the quality." says nothing that can be followed.',
    )


def score_task(what: str) -> str:
    """Return the task of the second judge call, which scores by the steps."""
    return task(
        f"Evaluate {what} by the criteria, following the evaluation steps in their order.",
        scale={
            10: "The criteria are met in every respect.",
            7.5: "All that matters is met; something small is missing.",
            5: "Met in part: about half of what matters.",
            2.5: "Little of it is met.",
            0: "Not met, or the opposite of them.",
        },
        ignore="qualities that the criteria do not speak of.",
        cases=(MISSING, PARTIAL, "What is empty, or declines, is judged by the criteria like anything else."),
    )


def g_eval(
    judge: Asks,
    criteria: str | Sequence[str],
    steps: Sequence[str] | None,
    what: str,
    material: Mapping[str, Any],
    media: Sequence[str] = (),
) -> Result:
    """Score each criterion from 0 to 10 and return the mean, divided by 10.

    Args:
        judge: The judge that is called.
        criteria: One or more criteria.
        steps: Evaluation steps for all criteria. If None, a judge call writes them for each criterion.
        what: Name of the evaluated text in the task.
        material: The texts to evaluate, by name.
        media: Images that belong to the material.
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
            "steps",
            steps_task(what),
            {},
            '{"steps": ["<step>", ...]}',
            criteria={"criteria": criterion},
        )
        steps = texts(reply, "steps")
        if not steps:
            raise invalid("steps", "at least one step")
    reply = judge.ask(
        "score",
        score_task(what),
        material,
        TEN,
        criteria={"criteria": criterion, "evaluation_steps": steps},
        media=media,
    )
    return {"steps": steps, "score": number_within(reply, 0, 10), "reason": _reason(reply)}


def _reason(reply: Mapping[str, Any]) -> str:
    reason = reason_of(reply)
    if reason is None or not reason.strip():
        raise invalid("reason", "a text")
    return reason
