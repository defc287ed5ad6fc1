"""Numbers that follow from what was given, and numbers that do not: rule by rule."""

from __future__ import annotations

from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.metrics.lib.numbers.words import claims_in_words, values_of_words

NAME = "code_ungrounded_numbers"


def passed(turn: dict[str, Any], **params: Any) -> bool | None:
    return oa.get_metric(NAME, **params).evaluate(oa.Turn.from_dict(turn)).passed


def said(output: str, result: Any, **more: Any) -> dict[str, Any]:
    return {"output": output, "tool_calls": [{"name": "t", "arguments": {}, "result": result}], **more}


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("twenty-three cats", [23]),
        ("dreiundzwanzig Tage", [23]),
        ("zweihundertfünfzig Euro", [250]),
        ("quatre-vingt-dix-neuf euros", [99]),
        ("soixante et onze ans", [71]),
        ("treinta y cinco días", [35]),
        ("quarenta e dois euros", [42]),
        ("centoventi posti", [120]),
        ("vijfentachtig kilometer", [85]),
        ("dwadzieścia jeden dni", [21]),
        ("двадцати одного дня", [21]),
        ("yirmi dört ay", [24]),
        ("on iki ay", [12]),
        ("three hundred and twelve people", [312]),
        ("two thousand five hundred people", [2500]),
    ],
)
def test_words_are_read(text: str, values: list[float]) -> None:
    assert [value for _, _, value in values_of_words(text)] == values


@pytest.mark.parametrize("text", ["once upon a time", "a hundred reasons", "they seize it", "Twelve\n", "a dozen eggs"])
def test_words_that_state_nothing(text: str) -> None:
    assert list(claims_in_words(text)) == []


@pytest.mark.parametrize(
    ("turn", "wanted"),
    [
        pytest.param({"input": "How high is it?", "output": "It is 331 metres."}, None, id="a question alone"),
        pytest.param(
            {"input": "a", "system": "Be brief.", "output": "It is 331 metres."}, None, id="instructions without a number"
        ),
        pytest.param(
            {"input": "a", "system": "It is 324 m.", "output": "It is 331 metres."}, False, id="instructions with numbers"
        ),
        pytest.param(said("It lasts 95 minutes.", {"duration_s": 5700}), True, id="seconds as minutes"),
        pytest.param(said("It lasts 96 minutes.", {"duration_s": 5700}), False, id="seconds as other minutes"),
        pytest.param(said("On 27 November.", {"ordered": "2026-11-22", "days": 5}), True, id="days later"),
        pytest.param(said("On 28 November.", {"ordered": "2026-11-22", "days": 5}), False, id="other days later"),
        pytest.param(said("At 16:00 in New York.", {"at": "2026-12-01T21:00:00Z"}), True, id="a named zone"),
        pytest.param(said("At 17:00 in Lisbon.", {"at": "2026-12-01T21:00:00Z"}), False, id="not of the named zone"),
        pytest.param(said("All 14 are done.", [{"n": "x"}] * 14), True, id="a count"),
        pytest.param(said("All 15 are done.", [{"n": "x"}] * 14), False, id="another count"),
        pytest.param(said("Together 41.7 kg.", [{"kg": 20.5}, {"kg": 21.2}]), True, id="a total"),
        pytest.param(said("Together 41.9 kg.", [{"kg": 20.5}, {"kg": 21.2}]), False, id="another total"),
        pytest.param(said("Set `max=64`, it runs on port 443.", "ok"), True, id="code and constants"),
        pytest.param(said("About 4.7 trillion.", "4.7 billion"), False, id="another magnitude"),
    ],
)
def test_rules(turn: dict[str, Any], wanted: bool | None) -> None:
    assert passed(turn) is wanted


def test_counts_are_derived() -> None:
    assert passed(said("All 14 are done.", [{"n": "x"}] * 14), derived=False) is False
