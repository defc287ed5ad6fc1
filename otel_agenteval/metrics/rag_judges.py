"""Judges of answers from retrieved material: what was found, and what was made of it. A model is asked; each call costs."""

from __future__ import annotations

from typing import Any

from ..model import Turn
from ..registry import Asks, Result, metric
from ._replies import as_boolean, clamped, reason_of


@metric(
    needs=("input", "output"),
    threshold=0.7,
    aliases=("agenteval:llm_relevance", "agenteval:RelevanceMetric"),
)
def llm_relevance(turn: Turn, judge: Asks) -> Result:
    """Whether the answer addresses the question and stays on its topic.

    One question to the judge; the value is its score of 0..100, divided by 100. An empty answer is 0 without asking.

    Detail: ``addresses_question``, ``stays_on_topic``, ``irrelevant_parts``, and ``clamped`` if the score was outside.

    Source: AgentEval RelevanceMetric.
    """
    if not (turn.output or "").strip():
        return Result(0.0, explanation="the answer is empty")
    reply = judge.ask(
        "relevance",
        "Judge how relevant the answer is to the question: does it address what was asked, and does it stay on the topic? "
        "100 is fully relevant, 0 has nothing to do with the question.",
        {"question": turn.input or "", "answer": turn.output or ""},
        '{"score": <0 to 100>, "addressesQuestion": <true or false>, "staysOnTopic": <true or false>, '
        '"irrelevantParts": [<parts of the answer that do not belong>], "reasoning": "<why>"}',
    )
    detail: dict[str, Any] = {
        "addresses_question": as_boolean(reply.get("addressesQuestion")),
        "stays_on_topic": as_boolean(reply.get("staysOnTopic")),
        "irrelevant_parts": reply.get("irrelevantParts"),
        "reasoning": reason_of(reply, "reasoning"),
    }
    value = clamped(reply, 0, 100, detail=detail) / 100
    return Result(value, detail=detail, explanation=detail["reasoning"])
