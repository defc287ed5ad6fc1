"""What a judge says of a field of the output, which should be a JSON object."""

from __future__ import annotations

from typing import Any

from ...core import jsonio
from ...core.turn import Turn
from ..lib.json_output import object_of, too_long, written
from ..lib.prompts import SCORE
from ..lib.references import truth_of
from ..lib.replies import number_within, reason_of
from ..prompts import structured_output as prompts
from ..registry import Asks, Result, metric, skip


@metric(version="2", needs=("output", "ground_truth"), aliases=("hpd:SemanticFieldEqualityEvaluator",))
def llm_semantic_field_equality(turn: Turn, judge: Asks, *, field: str) -> Result:
    """How close in meaning a field of the output, a JSON object, is to the ground truth.

    One question to the judge; the value is its score of 0..1. An output that is not a JSON object is 0, as is one without the
    field, and the judge is not asked. An output over 1 MiB is skipped with ``too_long``.

    Parameters:
        field: required; name of a top-level field.

    Detail: ``reason``.

    Source: HPD SemanticFieldEqualityEvaluator, which asks the judge even where there is no field.
    """
    output = turn.output or ""
    if too_long(output):
        return skip("too_long")
    document = object_of(output)
    if document is None or field not in document:
        return Result(0.0, explanation="the output is no JSON object" if document is None else "the output lacks the field")
    reply = judge.ask(
        "field_equality",
        prompts.SAME_MEANING,
        {"value": written(document[field]), "ground_truth": jsonio.text_of(truth_of(turn))},
        SCORE,
        criteria={"field": field},
    )
    detail: dict[str, Any] = {"reason": reason_of(reply)}
    value = number_within(reply, 0, 1)
    return Result(value, detail=detail, explanation=detail["reason"])
