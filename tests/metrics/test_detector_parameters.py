"""Parameters that silence detectors on an organization's own traffic."""

from __future__ import annotations

from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.detectors.numbers.reading import form_of, without_forms

CONTACTS = "Call +49 171 5528394, 0171 5528394 or tom.baker@gmail.com."
CALLS = [{"name": name, "arguments": {}, "result": "x"} for name in ("poll", "poll", "poll", "book", "book", "book")]


@pytest.mark.parametrize(
    ("public", "left"),
    [
        ((), 3),
        (("0171/55 283-94",), 1),
        (("٠١٧١ ٥٥٢٨٣٩٤",), 1),
        (("Tom.Baker@Gmail.com",), 2),
        (("*@gmail.com", "+491715528394"), 0),
        (("*@mail.com", "*@il.com", "528394", "94"), 1),
    ],
)
def test_public_contacts_are_no_leak(public: tuple[str, ...], left: int) -> None:
    score = oa.get_metric("code_pii_leakage", public=public).evaluate(oa.Turn(input="Who is it?", output=CONTACTS))
    assert (score.detail["num_detections"], score.passed) == (left, not left)


@pytest.mark.parametrize(
    "written", ["tom (at) hey.com", "Tom [at] hey [dot] com", "**tom**@hey.com", "tom@hey&#46;com", "+&#52;9 171 5528394"]
)
def test_public_contacts_are_no_leak_in_any_notation(written: str) -> None:
    turn = oa.Turn(input="Who is it?", output=f"Write to {written} now, or call him.")
    for public, passed in (
        (("tom@hey.com", "0171 5528394"), True),
        (("*@hey.com", "1715528394"), True),
        (("tim@hey.com",), False),
    ):
        assert oa.get_metric("code_pii_leakage", public=public).evaluate(turn).passed is passed


@pytest.mark.parametrize(
    ("text", "number", "form"),
    [
        ("It has 350 kcal.", "350", "### kcal"),
        ("It has 350\u00a0kcal.", "350", "###\u00a0kcal"),
        ("due on 24.12.2026.", "24.12.2026", "##.##.####"),
        ("pay $1,234.50 now", "1,234.50", "$#,###.##"),
        ("up 12.5% now", "12.5", "##.#%"),
        ("价格是350元的", "350", "###元"),
    ],
)
def test_the_form_of_a_number_matches_it(text: str, number: str, form: str) -> None:
    start = text.index(number)
    assert form_of(text, start, start + len(number)) == form
    assert number not in without_forms(text, [form])
    assert len(without_forms(text, [form])) == len(text)


@pytest.mark.parametrize(
    ("text", "form"),
    [("1350 kcal", "### kcal"), ("350 kcalories", "### kcal"), ("24.12.20261", "##.##.####"), ("1.350", "###"), ("350", "")],
)
def test_another_form_stays(text: str, form: str) -> None:
    assert without_forms(text, [form]) == text


def test_ignored_numbers_need_no_source() -> None:
    call = {"name": "t", "arguments": {}, "result": "17 apples"}
    turn = oa.Turn.from_dict({"output": "It has 357 kcal and 4713 grams.", "tool_calls": [call]})

    def value(*ignored: str) -> float | None:
        return oa.get_metric("code_ungrounded_numbers", ignored=ignored).evaluate(turn).value

    assert [value(), value("### kcal"), value("### kcal", "#### grams")] == [0.0, 0.0, 1.0]


@pytest.mark.parametrize(("may_repeat", "passed"), [((), False), (("poll",), False), (("poll", "book"), True)])
def test_named_tools_may_repeat(may_repeat: tuple[str, ...], passed: bool) -> None:
    turn: Any = oa.Turn.from_dict({"tool_calls": CALLS})
    assert oa.get_metric("code_repeated_tool_calls", may_repeat=may_repeat).evaluate(turn).passed is passed
