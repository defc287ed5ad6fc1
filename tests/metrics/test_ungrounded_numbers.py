"""Rules for numbers that are derived from given numbers, and for numbers that aren't."""

from __future__ import annotations

from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.detectors.numbers.words import claims_in_words, values_of_words

NAME = "code_ungrounded_numbers"


def passed(turn: dict[str, Any], **params: Any) -> bool | None:
    value = oa.get_metric(NAME, **params).evaluate(oa.Turn.from_dict(turn)).value
    return None if value is None else value == 1.0


def said(output: str, result: Any, **more: Any) -> dict[str, Any]:
    return {"output": output, "tool_calls": [{"name": "t", "arguments": {}, "result": result}], **more}


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("twenty-three cats", [23]),
        ("quatre-vingt-dix-neuf euros", [99]),
        ("soixante et onze ans", [71]),
        ("dwadzieścia jeden dni", [21]),
        ("yirmi dört ay", [24]),
        ("two thousand five hundred people", [2500]),
        ("一共三百八十七元", [387]),
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
        pytest.param(said("On 27 November.", {"ordered": "2026-11-22", "days": 5}), True, id="days later"),
        pytest.param(said("All 14 are done.", [{"n": "x"}] * 14), True, id="a count"),
        pytest.param(said("All 15 are done.", [{"n": "x"}] * 14), False, id="another count"),
        pytest.param(said("Together 41.7 kg.", [{"kg": 20.5}, {"kg": 21.2}]), True, id="a total"),
        pytest.param(said("Set `max=64`, it runs on port 443.", "ok"), True, id="code and constants"),
        pytest.param(said("About 4.7 trillion.", "4.7 billion"), False, id="another magnitude"),
    ],
)
def test_rules(turn: dict[str, Any], wanted: bool | None) -> None:
    assert passed(turn) is wanted


@pytest.mark.parametrize(
    "output",
    [
        "You could pay in parts, e.g. 45 a month.",
        "You could pay in parts (E.g., 45 a month).",
        "Man kann in Raten zahlen, z. B. 45 im Monat.",
        "Man kann in Raten zahlen, z.\u00a0B. 45 im Monat.",
        "On peut payer en plusieurs fois, p. ex. 45 par mois.",
        "Je kunt in delen betalen, bijv. 45 per maand.",
        "Można płacić w ratach, np. 45 na miesiąc.",
    ],
)
def test_numbers_after_an_abbreviated_for_example_need_no_source(output: str) -> None:
    assert passed(said(output, "3 parts")) is True
    assert passed(said(f"{output} It costs 67 in total.", "3 parts")) is False


def test_counts_are_derived() -> None:
    assert passed(said("All 14 are done.", [{"n": "x"}] * 14), derived=False) is False


_SHOPS = [{"shop": "A", "sold": 720}, {"shop": "B", "sold": 480}, {"shop": "C", "sold": 300}]


@pytest.mark.parametrize(
    ("turn", "wanted"),
    [
        pytest.param(said("Con el descuento son 56 €.", "Zapatos 80 €, rebaja del 30 %."), True, id="a discount in prose"),
        pytest.param(said("300.00 net and 57.00 of tax.", {"gross": 357, "vat": 19}), True, id="tax taken out"),
        pytest.param(said("A has 48 %, B 32 % and C 20 %.", _SHOPS), True, id="shares of a total"),
        pytest.param(said("A has 57 % of all.", _SHOPS), False, id="another share"),
        pytest.param(said("That is 15 % less.", {"y2024": 1320, "y2025": 1122}), True, id="a change"),
        pytest.param(said("80 on average.", "a: 78\nb: 85\nc: 91\nd: 66"), True, id="an average of lines"),
        pytest.param(said("A pace of 5:30 per km.", {"km": 12, "time_s": 3960}), True, id="a pace"),
        pytest.param(said("On 15 January.", {"start": "2027-01-14T10:20:00"}), False, id="a date is no sum"),
        pytest.param(
            said("She is 36 years old.", {"born": "1990-02-01"}, start="2026-11-22T10:00:00Z"), True, id="an age on that day"
        ),
        pytest.param(
            said("She is 36 years old.", {"born": "1990-02-01"}, start="2024-11-22T10:00:00Z"), False, id="an age of later"
        ),
        pytest.param(said("On 23–25 November.", {"sent": "2026-11-20", "takes": "3-5 days"}), True, id="a range of days"),
        pytest.param(said("On 27–29 November.", {"sent": "2026-11-20", "takes": "3-5 days"}), False, id="another range"),
        pytest.param(said("Bis zum 30. April.", {"ab": "2026-01-31", "frist_monate": 3}), True, id="the end of a month"),
        pytest.param(said("The rows have 3-3. Row 40 is last.", "3-3 seats, rows to 40"), True, id="a pair before a period"),
        pytest.param(said("Seats 12A and 12B.", "seats: 12A, 12B"), True, id="seats"),
        pytest.param(said("It ran 6.5 minutes.", "[10:02:41] start\n[10:09:11] end"), True, id="between seconds"),
        pytest.param(said("$1.30 per 100 g.", [{"g": 250, "price": 3.25}]), True, id="for a hundred"),
    ],
)
def test_results_of_what_people_ask_for(turn: dict[str, Any], wanted: bool) -> None:
    assert passed(turn) is wanted


def test_days_beyond_the_calendar_are_no_error() -> None:
    given = {"first": "0001-01-02", "last": "9999-12-30", "takes": "5 days", "at_most": "2 years"}
    assert passed(said("It ends on 3 March 2027.", given)) is False


def called(output: str, *calls: tuple[dict[str, Any], Any]) -> dict[str, Any]:
    return {"output": output, "tool_calls": [{"name": "t", "arguments": given, "result": result} for given, result in calls]}


_TODAY = "2026-11-26T09:00:00Z"
QUERIED = {"from": "2026-11-09", "to": "2026-11-15"}


@pytest.mark.parametrize(
    ("turn", "wanted"),
    [
        pytest.param(said("Today is 26 November, it closes tomorrow.", "closes soon, 3 left", start=_TODAY), True, id="today"),
        pytest.param(said("Am Freitag, 28.11.2026.", {"am": "2026-11-27"}, start=_TODAY), False, id="a weekday of another date"),
        pytest.param(said("49 días hasta el 14 de enero de 2027.", "2027-01-14", start=_TODAY), True, id="days until a date"),
        pytest.param(said("In total 1,903.", {"rows": [["a", 1240], ["b", 615], ["c", 48]]}), True, id="the total of arrays"),
        pytest.param(said("Spent £98.50.", [{"amount": -61.2}, {"amount": -37.3}]), True, id="negative amounts"),
        pytest.param(said("a | 80 | +42\nb | 90 | −28\nall | 170 | +14", "a 80 +42\nb 90 -28"), True, id="signs"),
        pytest.param(said("3 × 84 = 252, plus 63 that makes 315.", {"adult": 84, "child": 63}), True, id="two steps"),
        pytest.param(said("3 × 84 = 252, plus 63 that makes 325.", {"adult": 84, "child": 63}), False, id="two wrong steps"),
        pytest.param(said("About €24.9m.", {"revenue": 24900000}), True, id="millions"),
        pytest.param(said("It needs 0.25 GiB.", "memory: 256Mi"), True, id="Kubernetes"),
        pytest.param(said("From 17 to 18 February.", "17-18 February"), True, id="a range of days in a month"),
        pytest.param(said("On 17 November.", "88121,2026-11-17,84500"), True, id="a date in a row"),
        pytest.param(said("Back after 14 seconds.", "stopped at 10:02"), False, id="seconds from nowhere"),
        pytest.param(said("It leaves at 07:42.", {"dep": "06:42"}), False, id="an hour later"),
        pytest.param(said("Shares: 38.9 %.", [["x", 5128.5], ["y", 3984], ["z", 4071]]), True, id="a share of arrays"),
        pytest.param(said("Your card ends in 4417.", "card VI ****4417"), True, id="the end of a card"),
        pytest.param(said("On flight NQ 581.", "NQ581"), True, id="a name with a space"),
        pytest.param(called("From 9 to 15 November: 52 calls.", (QUERIED, {"n": 52})), True, id="a range that the agent queried"),
    ],
)
def test_numbers_of_production_turns(turn: dict[str, Any], wanted: bool) -> None:
    assert passed(turn) is wanted


def test_finding_shows_the_nearest_given_number() -> None:
    turn = oa.Turn.from_dict(
        said("Use `a 9` first. It costs €164.20.", {"fees": {"small": 38.5, "large": 146.2}}, system="Say 17.")
    )
    (finding,) = oa.get_metric(NAME).evaluate(turn).detail["findings"]
    assert turn.output is not None
    assert turn.output[finding["start"] : finding["end"]] == "164.20"
    assert (finding["compared_with"], finding["nearest"], finding["severity"]) == ("tool_calls[0].result", "146.2", "info")


@pytest.mark.parametrize("result", ["[[4820, 5105], [129, 41715.83]]", [[4820, 5105], [129, 41715.83]]], ids=["text", "JSON"])
def test_result_in_a_message_is_no_second_source(result: Any) -> None:
    turn = said("It costs 41715.88.", result)
    turn["tool_calls"][0]["call_id"] = "c1"
    turn["messages"] = [
        {"role": "user", "content": "How much?"},
        {"role": "tool", "tool_results": [{"call_id": "c1", "result": [[4820, 5105], [129, 41715.83]]}]},
    ]
    (finding,) = oa.get_metric(NAME).evaluate(oa.Turn.from_dict(turn)).detail["findings"]
    assert finding["compared_with"] == "tool_calls[0].result"
