"""These metrics judge the answer's coherence and fluency, or apply your own rubrics and criteria.

If the judge returns a value outside the allowed range, the metric returns an error.
"""

from __future__ import annotations

from typing import Annotated, Any

from ...core.turn import Turn
from ..lib.replies import Criteria, as_boolean, boolean, g_eval, judged_true, number_within, reason_of, scored
from ..lib.values import Words
from ..prompts import SCORE, Prompts
from ..registry import EPSILON, Asks, Param, Result, metric, skip

_PROMPTS = Prompts("quality_judges")

Rubric = Annotated[Words, Param("criteria", "value")]


def _material(turn: Turn) -> dict[str, Any]:
    asked = {"question": turn.input} if turn.input else {}
    return {**asked, "answer": turn.output or ""}


@metric(needs=("input", "output"), threshold=0.7, version="2", aliases=("agenteval:llm_coherence", "agenteval:CoherenceMetric"))
def llm_coherence(turn: Turn, judge: Asks) -> Result:
    """Rate how well the answer's statements follow from each other without contradictions.

    A single judge call returns a rating from 0 to 100. The value is this rating divided by 100. If the answer is blank, the score
    is skipped as ``empty_output``. To measure the similarity between question and answer instead, use ``embed_coherence``.

    Detail: ``has_logical_flow``, ``has_contradictions``, ``contradictions``, ``structure_quality``, and ``reasoning``.
    """
    if not (turn.output or "").strip():
        return skip("empty_output")
    reply = judge.ask(
        "score",
        _PROMPTS["coherent"],
        _material(turn),
        '{"reasoning": "<why, in one to three sentences>", "contradictions": [<statements of the answer that contradict each other>], '
        '"hasContradictions": <true or false>, "hasLogicalFlow": <true or false>, '
        '"structureQuality": "<excellent, good, fair or poor>", "score": <0 to 100>}',
    )
    result = scored(reply, top=100, why="reasoning", contradictions="contradictions", structure_quality="structureQuality")
    result.detail = {
        "has_logical_flow": as_boolean(reply.get("hasLogicalFlow")),
        "has_contradictions": as_boolean(reply.get("hasContradictions")),
        **(result.detail or {}),
    }
    return result


@metric(needs=("output",), threshold=0.7, version="2", aliases=("agenteval:llm_fluency", "agenteval:FluencyMetric"))
def llm_fluency(turn: Turn, judge: Asks) -> Result:
    """Fluency of the answer: grammar, readability, and natural language.

    A single judge call returns a rating from 0 to 100. The value is this rating divided by 100. If the answer is blank, the score
    is skipped as ``empty_output``.

    Detail: ``grammar_errors``, ``awkward_phrases``, ``readability_level``, ``overall_quality``, and ``reasoning``.
    """
    if not (turn.output or "").strip():
        return skip("empty_output")
    reply = judge.ask(
        "score",
        _PROMPTS["fluent"],
        {"text": turn.output or ""},
        '{"reasoning": "<why, in one to three sentences>", "grammarErrors": [<errors>], '
        '"awkwardPhrases": [<phrases that sound unnatural>], "readabilityLevel": "<easy, moderate or difficult>", '
        '"overallQuality": "<excellent, good, fair or poor>", "score": <0 to 100>}',
    )
    keys = {"grammar_errors": "grammarErrors", "awkward_phrases": "awkwardPhrases", "readability_level": "readabilityLevel"}
    return scored(reply, top=100, why="reasoning", **keys, overall_quality="overallQuality")


@metric(needs=("output",), version="2", aliases=("trusys:llm-rubric",))
def llm_rubric(turn: Turn, judge: Asks, *, rubric: Rubric, threshold: float | None = None) -> Result:
    """Rate how well the answer meets your rubric, with a score and a verdict.

    A single judge call returns a verdict and a score from 0 to 1. The metric's value is this score. The metric passes if the
    verdict is a pass. If you set ``threshold``, the score must also reach the threshold.

    - If the judge returns only a score, 0.5 or more is a pass.
    - If the judge returns only a verdict, the score is 1 for a pass and 0 for a fail.
    - If the judge returns neither, the result is an error.

    The judge reads the question if it is known. Blank answers are also judged.

    Parameters:
        rubric: Description of a good answer.
        threshold: Lowest passing score, 0..1, in addition to the judge's verdict.

    Detail: ``pass`` (the verdict), ``score``, and ``reason``.
    """
    form = '{"reason": "<why, in one to three sentences>", "score": <0 to 1>, "pass": <true or false>}'
    reply = judge.ask("score", _PROMPTS["rubric"], _material(turn), form, criteria={"rubric": rubric})
    verdict = boolean(reply, "pass") if reply.get("pass") is not None else None
    score = number_within(reply, 0, 1) if verdict is None or reply.get("score") is not None else float(verdict)
    if verdict is None:
        verdict = score >= 0.5 - EPSILON
    passed = verdict and (threshold is None or score >= threshold - EPSILON)
    reason = reason_of(reply)
    return Result(score, passed=passed, detail={"pass": verdict, "score": score, "reason": reason}, explanation=reason)


@metric(needs=("input", "output"), threshold=0.7, version="2", aliases=("trusys:g-eval",))
def llm_g_eval(turn: Turn, judge: Asks, *, criteria: Criteria, steps: list[str] | None = None) -> Result:
    """Use evaluation steps (G-Eval) to rate how well the answer meets your criteria.

    The metric makes two judge calls for each criterion. The first call derives evaluation steps. The second call follows the steps
    and returns a score from 0 to 10. The value is the mean of these scores, divided by 10. If you set ``steps``, the first call is
    omitted. If a reply contains no steps or no reason, the metric's score is an error.

    Parameters:
        criteria: One criterion, or a list of criteria that are evaluated separately.
        steps: Evaluation steps for all criteria. By default, the judge derives them.

    Detail: ``steps``, ``score`` (0..10), and ``reason``. With several criteria, the detail contains ``reason`` and ``criteria``, a
    list of ``{criterion, steps, score, reason}``.
    """
    return g_eval(judge, criteria, steps, "an answer to a question", _material(turn))


@metric(needs=("output",), boolean=True, version="2", aliases=("hpd:AspectCriticEvaluator",))
def llm_aspect_critic(turn: Turn, judge: Asks, *, rubric: Rubric) -> Result:
    """Check that the answer has the property that your rubric describes.

    A single judge call returns true or false. The judge reads the question if it is known. Blank answers are also judged.

    Parameters:
        rubric: Description of the property.

    Detail: ``verdict`` and ``reason``.
    """
    form = '{"reason": "<why, in one or two sentences>", "verdict": <true or false>}'
    reply = judge.ask("verdict", _PROMPTS["aspect"], _material(turn), form, criteria={"rubric": rubric})
    return judged_true(reply, "verdict")


@metric(needs=("output",), threshold=0.5, version="2", aliases=("hpd:CustomJudgeEvaluator",))
def llm_custom_judge(turn: Turn, judge: Asks, *, rubric: Rubric) -> Result:
    """Rate how well the answer meets your rubric, from 0 to 1.

    A single judge call returns the value. The judge reads the question if it is known. Blank answers are also judged.

    Parameters:
        rubric: Description of a good answer.

    Detail: ``score`` and ``reason``.
    """
    result = scored(judge.ask("score", _PROMPTS["custom"], _material(turn), SCORE, criteria={"rubric": rubric}))
    result.detail = {**(result.detail or {}), "score": result.value}
    return result
