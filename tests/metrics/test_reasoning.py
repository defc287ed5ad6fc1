"""Judges of captured reasoning: their material, and scores from their replies."""

from __future__ import annotations

from typing import Any

import pytest

import otel_agenteval as oa
from tests.support.judges import ScriptedModels

NAMES = ("llm_reasoning_coherence", "llm_reasoning_groundedness", "llm_reasoning_efficiency")
FACTS: dict[str, Any] = {
    "input": "How warm is it?",
    "output": "It is 21 degrees.",
    "reasoning": "The sensor says 21, so it is 21.",
}


def turn(**changes: Any) -> oa.Turn:
    return oa.Turn.from_dict({**FACTS, **changes})


@pytest.mark.parametrize("name", NAMES)
def test_the_value_is_the_judges_score(models: ScriptedModels, name: str) -> None:
    score = models.score(name, turn(), {"score": "0.5 ", "reason": "so"})
    assert (score.status, score.value, score.passed, score.explanation) == ("ok", 0.5, None, "so")
    assert score.detail == {"reason": "so"}
    assert FACTS["reasoning"] in models.asked[0]
    assert (FACTS["output"] in models.asked[0]) is (name == "llm_reasoning_coherence")
    assert models.score(name, turn(), {"score": 0.4}, threshold=0.5).passed is False
    assert models.score(name, turn(), {}).error_type == "invalid_reply"
    for reasoning in (None, " \n"):
        assert models.score(name, turn(reasoning=reasoning)).detail == {"reason": "missing:reasoning"}


@pytest.mark.parametrize(
    ("name", "changes", "reason"),
    [
        ("llm_reasoning_coherence", {"output": None}, "missing:output"),
        ("llm_reasoning_efficiency", {"input": "", "output": None}, "missing:input"),
        ("llm_reasoning_efficiency", {"output": None}, "missing:output"),
    ],
)
def test_nobody_is_asked_where_something_is_missing(models: ScriptedModels, name: str, changes: Any, reason: str) -> None:
    score = models.score(name, turn(**changes))
    assert (score.status, score.detail["reason"]) == ("skipped", reason)


def test_groundedness_is_judged_with_all_that_the_agent_knew(models: ScriptedModels) -> None:
    calls = [
        {"name": "sensor", "arguments": {"room": "attic"}, "result": {"celsius": 21}},
        {"name": "forecast", "error": {"type": "Timeout", "message": "took too long"}},
    ]
    models.score("llm_reasoning_groundedness", turn(tool_calls=calls, context=["Attics are warm."]), {"score": 1})
    told = ("sensor", "attic", '{"celsius":21}', "forecast", "took too long", "Attics are warm.", FACTS["input"])
    assert [part for part in told if part not in models.asked[0]] == []


def test_groundedness_is_judged_with_what_there_is(models: ScriptedModels) -> None:
    bare = oa.Turn(reasoning="because")
    assert models.score("llm_reasoning_groundedness", bare, {"score": 0.2}).value == 0.2
    assert "(unknown)" in models.asked[0]
    models.score("llm_reasoning_groundedness", oa.Turn(reasoning="because", tool_calls=[]), {"score": 0.2})
    assert "(none were made)" in models.asked[0]


def test_groundedness_shows_the_beginning_of_each_result(models: ScriptedModels) -> None:
    calls = [{"name": "a", "result": "x" * 299 + "yz"}, {"name": "b", "result": "v" * 300}]
    models.score("llm_reasoning_groundedness", turn(tool_calls=calls), {"score": 1})
    assert "x" * 299 + "y…" in models.asked[0]
    assert "v" * 300 + "…" not in models.asked[0]
    models.score("llm_reasoning_groundedness", turn(tool_calls=calls), {"score": 1}, max_result_chars=5)
    assert "xxxxx…" in models.asked[0]
    assert "xxxxxx" not in models.asked[0]


def test_efficiency_shows_the_beginning_of_the_reasoning_and_both_lengths(models: ScriptedModels) -> None:
    long = turn(reasoning="r" * 801, output="o" * 37)
    models.score("llm_reasoning_efficiency", long, {"score": 1})
    assert "r" * 800 in models.asked[0]
    assert "r" * 801 not in models.asked[0]
    assert '{"reasoning":801,"answer":37}' in models.asked[0]
    assert FACTS["input"] in models.asked[0]
    models.score("llm_reasoning_efficiency", long, {"score": 1}, max_chars=10)
    assert "r" * 11 not in models.asked[0]
