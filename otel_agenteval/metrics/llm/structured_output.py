"""``llm_semantic_field_equality`` uses a judge to compare a field of the output with the ground truth."""

from __future__ import annotations

from ...core import jsonio
from ...core.turn import Turn
from ..lib.documents import as_text, object_of, too_long
from ..lib.replies import scored
from ..lib.values import truth_of
from ..prompts import SCORE, Prompts
from ..registry import Asks, Result, metric, skip

_PROMPTS = Prompts("structured_output")


@metric(needs=("output", "ground_truth"), version="2", aliases=("hpd:SemanticFieldEqualityEvaluator",))
def llm_semantic_field_equality(turn: Turn, judge: Asks, *, field: str) -> Result:
    """Similarity in meaning between a field of the output's JSON and the ground truth, from 0 to 1.

    One judge call returns the value. If the output isn't a JSON object or lacks the field, the value is 0 and no judge is called.

    Parameters:
        field: Name of a top-level field.

    Detail: ``reason``.

    Source: ``SemanticFieldEqualityEvaluator`` in HPD-Agent, which calls the judge even if the field is missing.
    """
    if too_long(output := turn.output or ""):
        return skip("too_long")
    document = object_of(output)
    if document is None or field not in document:
        return Result(0.0, explanation="the output isn't a JSON object" if document is None else "the output lacks the field")
    material = {"value": as_text(document[field]), "ground_truth": jsonio.text_of(truth_of(turn))}
    return scored(judge.ask("field_equality", _PROMPTS["same_meaning"], material, SCORE, criteria={"field": field}))
