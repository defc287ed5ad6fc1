"""Judges of answers in general: by coherence and language, and by rubrics and criteria of your own. Each call costs."""

from __future__ import annotations

from typing import Any

from ...core.turn import Turn
from ..lib.g_eval import Criteria, g_eval
from ..lib.prompts import SCORE
from ..lib.replies import as_boolean, boolean, number_within, reason_of
from ..lib.values import Words
from ..prompts import quality_judges as prompts
from ..registry import EPSILON, Asks, Result, metric, skip

_RUBRIC = {"criteria": "rubric", "value": "rubric"}
"""How other catalogues spell ``rubric``."""


def _material(turn: Turn) -> dict[str, Any]:
    """The answer, and the question where it is known."""
    asked = {"question": turn.input} if turn.input else {}
    return {**asked, "answer": turn.output or ""}


@metric(
    version="2",
    needs=("input", "output"),
    threshold=0.7,
    aliases=("agenteval:llm_coherence", "agenteval:CoherenceMetric"),
)
def llm_coherence(turn: Turn, judge: Asks) -> Result:
    """Whether the answer hangs together: its thoughts follow from each other, and it does not contradict itself.

    One question to the judge; the value is its score of 0..100, divided by 100; a score outside is an error. This
    is not the similarity of question and answer, which is ``embed_coherence``.

    Skipped with ``missing:input`` or ``missing:output`` when either is unknown, and with ``empty_output`` when the answer has
    no text.

    Detail: ``has_logical_flow``, ``has_contradictions`` (null where the judge did not say), ``contradictions``,
    ``structure_quality`` and ``reasoning``.

    Source: AgentEval CoherenceMetric.
    """
    if not (turn.output or "").strip():
        return skip("empty_output")
    reply = judge.ask(
        "score",
        prompts.COHERENT,
        _material(turn),
        '{"reasoning": "<why, in one to three sentences>", "contradictions": [<statements of the answer that contradict each other>], '
        '"hasContradictions": <true or false>, "hasLogicalFlow": <true or false>, '
        '"structureQuality": "<excellent, good, fair or poor>", "score": <0 to 100>}',
    )
    detail: dict[str, Any] = {
        "has_logical_flow": as_boolean(reply.get("hasLogicalFlow")),
        "has_contradictions": as_boolean(reply.get("hasContradictions")),
        "contradictions": reply.get("contradictions"),
        "structure_quality": reply.get("structureQuality"),
        "reasoning": reason_of(reply, "reasoning"),
    }
    value = number_within(reply, 0, 100) / 100
    return Result(value, detail=detail, explanation=detail["reasoning"])


@metric(
    version="2",
    needs=("output",),
    threshold=0.7,
    aliases=("agenteval:llm_fluency", "agenteval:FluencyMetric"),
)
def llm_fluency(turn: Turn, judge: Asks) -> Result:
    """Whether the answer is well written: grammar, readability and natural language.

    One question to the judge; the value is its score of 0..100, divided by 100; a score outside is an error.

    Skipped with ``missing:output`` when the answer is unknown, and with ``empty_output`` when it has no text.

    Detail: ``grammar_errors``, ``awkward_phrases``, ``readability_level``, ``overall_quality`` and ``reasoning``.

    Source: AgentEval FluencyMetric.
    """
    if not (turn.output or "").strip():
        return skip("empty_output")
    reply = judge.ask(
        "score",
        prompts.FLUENT,
        {"text": turn.output or ""},
        '{"reasoning": "<why, in one to three sentences>", "grammarErrors": [<errors>], '
        '"awkwardPhrases": [<phrases that sound unnatural>], "readabilityLevel": "<easy, moderate or difficult>", '
        '"overallQuality": "<excellent, good, fair or poor>", "score": <0 to 100>}',
    )
    detail: dict[str, Any] = {
        "grammar_errors": reply.get("grammarErrors"),
        "awkward_phrases": reply.get("awkwardPhrases"),
        "readability_level": reply.get("readabilityLevel"),
        "overall_quality": reply.get("overallQuality"),
        "reasoning": reason_of(reply, "reasoning"),
    }
    value = number_within(reply, 0, 100) / 100
    return Result(value, detail=detail, explanation=detail["reasoning"])


@metric(version="2", needs=("output",), aliases=("trusys:llm-rubric",), spellings=_RUBRIC)
def llm_rubric(turn: Turn, judge: Asks, *, rubric: Words, threshold: float | None = None) -> Result:
    """How well the answer meets a rubric of your own, as a score and a verdict.

    One question to the judge, which gives a verdict and a score of 0..1; the value is the score. One outside is an
    error. Passes when the verdict is a pass and, if there is a threshold, the score reaches it. A reply without a
    verdict passes from a score of 0.5 on; one without a score has 1 for a pass and 0 for none; one without either is an
    error. The question is shown where it is known. An empty answer is judged like any other.

    Skipped with ``missing:output`` when the answer is unknown.

    Parameters:
        rubric: required; what a good answer is like, in your words.
        threshold: the score that is needed beside the judge's verdict, 0..1; none by default.

    Detail: ``pass`` (the verdict), ``score`` and ``reason``.

    Source: Trusys llm-rubric.
    """
    reply = judge.ask(
        "score",
        prompts.RUBRIC,
        _material(turn),
        '{"reason": "<why, in one to three sentences>", "score": <0 to 1>, "pass": <true or false>}',
        criteria={"rubric": rubric},
    )
    detail: dict[str, Any] = {}
    verdict = boolean(reply, "pass") if reply.get("pass") is not None else None
    if verdict is None or reply.get("score") is not None:
        score = number_within(reply, 0, 1)
    else:
        score = 1.0 if verdict else 0.0
    if verdict is None:
        verdict = score >= 0.5 - EPSILON
    detail |= {"pass": verdict, "score": score, "reason": reason_of(reply)}
    passed = verdict and (threshold is None or score >= threshold - EPSILON)
    return Result(score, passed=passed, detail=detail, explanation=detail["reason"])


@metric(version="2", needs=("input", "output"), threshold=0.7, aliases=("trusys:g-eval",), spellings={"value": "criteria"})
def llm_g_eval(turn: Turn, judge: Asks, *, criteria: Criteria, steps: list[str] | None = None) -> Result:
    """How well the answer meets criteria of your own, evaluated step by step (G-Eval).

    Two questions for each criterion: first the judge derives evaluation steps from it (not asked when ``steps`` are given),
    then it follows them and gives a score of 0..10. The value is the score divided by 10; of several criteria it is the mean.

    An error when there are no steps, when a score is outside of 0..10 or when it has no reason; an error in one criterion is
    one of the whole metric. Skipped with ``missing:input`` or ``missing:output`` when either is unknown.

    Parameters:
        criteria: required; one text, or several, which are evaluated one by one.
        steps: evaluation steps for all criteria; by default the judge derives them.

    Detail: ``steps``, ``score`` (0..10), ``reason``; with several criteria ``criteria``, a list of these with ``criterion``, and
    ``reason``.

    Source: Trusys g-eval.
    """
    return g_eval(judge, criteria, steps, "an answer to a question", _material(turn))


@metric(version="2", needs=("output",), boolean=True, aliases=("hpd:AspectCriticEvaluator",), spellings=_RUBRIC)
def llm_aspect_critic(turn: Turn, judge: Asks, *, rubric: Words) -> Result:
    """Whether the answer has one property: a yes or no by a rubric of your own.

    One question to the judge, which says true or false (also yes, 1, pass and no, 0, fail, in any case); anything else is an
    error. The question is shown where it is known. An empty answer is judged like any other.

    Skipped with ``missing:output`` when the answer is unknown.

    Parameters:
        rubric: required; the property, in your words.

    Detail: ``verdict``, ``reason``.

    Source: HPD-Agent AspectCriticEvaluator.
    """
    reply = judge.ask(
        "verdict",
        prompts.ASPECT,
        _material(turn),
        '{"reason": "<why, in one or two sentences>", "verdict": <true or false>}',
        criteria={"rubric": rubric},
    )
    verdict = boolean(reply, "verdict")
    reason = reason_of(reply)
    return Result(verdict, detail={"verdict": verdict, "reason": reason}, explanation=reason)


@metric(version="2", needs=("output",), threshold=0.5, aliases=("hpd:CustomJudgeEvaluator",), spellings=_RUBRIC)
def llm_custom_judge(turn: Turn, judge: Asks, *, rubric: Words) -> Result:
    """How well the answer meets a rubric of your own, as a score alone.

    One question to the judge; the value is its score of 0..1; a score outside is an error. Passes from the threshold
    on (default 0.5). The question is shown where it is known. An empty answer is judged like any other.

    Skipped with ``missing:output`` when the answer is unknown.

    Parameters:
        rubric: required; what a good answer is like, in your words.

    Detail: ``score`` and ``reason``.

    Source: HPD-Agent CustomJudgeEvaluator.
    """
    reply = judge.ask(
        "score",
        prompts.CUSTOM,
        _material(turn),
        SCORE,
        criteria={"rubric": rubric},
    )
    detail: dict[str, Any] = {"reason": reason_of(reply)}
    detail["score"] = number_within(reply, 0, 1)
    return Result(detail["score"], detail=detail, explanation=detail["reason"])
