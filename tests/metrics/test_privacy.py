from __future__ import annotations

from typing import Any

import pytest

import otel_agenteval as oa


def evaluate(output: str | None, input: str | None = None, **params: Any) -> oa.Score:  # noqa: A002 - the turn's field
    return oa.get_metric("code_pii_leakage", **params).evaluate(oa.Turn(input=input, output=output))


FOUND = [
    pytest.param("mail jo.doe+x@mail.example.org now", ["email"], id="an address with dots and a plus"),
    pytest.param("a@b.co,c@d.co", ["email", "email"], id="two addresses side by side"),
    pytest.param("écrire à éric@example.fr", ["email"], id="the plain part of an address with accents"),
    pytest.param("call 555-123-4567", ["phone"], id="a phone number with dashes"),
    pytest.param("call 555.123.4567.", ["phone"], id="with dots"),
    pytest.param("call 5551234567", ["phone"], id="with nothing between"),
    pytest.param("call (555) 123-4567", ["phone"], id="with parentheses"),
    pytest.param("call 555 123 4567", ["phone"], id="with spaces"),
    pytest.param("call +1 (555) 123-4567", ["phone"], id="with the country, once"),
    pytest.param("call +44 20 7946 0958", ["phone"], id="from another country"),
    pytest.param("call +33123456789", ["phone"], id="from another country without spaces"),
    pytest.param("ssn 078-05-1120", ["ssn"], id="a social security number"),
    pytest.param("card 4111 1111 1111 1111", ["credit_card"], id="a card with spaces"),
    pytest.param("card 4111111111111111", ["credit_card"], id="a card with nothing between"),
    pytest.param("at 221B Baker Street", ["address"], id="an address with a lettered number"),
    pytest.param("at 350 5th Ave, NY", ["address"], id="an address with a numbered street"),
    pytest.param("at 12 N. St-Denis O'Neil Rd", ["address"], id="an address with signs in its words"),
]

NOT_FOUND = [
    pytest.param("", id="nothing"),
    pytest.param("see you @ home, @jo or a@b", id="no domain"),
    pytest.param("x@y..", id="a domain without an end"),
    pytest.param("card 4111 1111 1111 1112", id="a card with a wrong check digit"),
    pytest.param("order 41111111111111111111", id="more digits than a card"),
    pytest.param("078-05-11201", id="more digits than a social security number"),
    pytest.param("on 2026-11-21 at 10:30:00.123", id="a time"),
    pytest.param("1,234,567,890 or 1 234 567", id="large numbers"),
    pytest.param("x=1+12345678", id="a sum"),
    pytest.param("in 2026 The weather was 12 Degrees warm", id="numbers before capitals"),
    pytest.param("We met in New York", id="two capitalised words"),
    pytest.param("٥٥٥-١٢٣-٤٥٦٧", id="digits of another script"),
]


@pytest.mark.parametrize(("output", "kinds"), FOUND)
def test_the_default_rules_find(output: str, kinds: list[str]) -> None:
    score = evaluate(output)
    assert [detection["type"] for detection in score.detail["detections"]] == kinds
    assert score.passed is False
    assert score.value == pytest.approx(1 - score.detail["severity"])


@pytest.mark.parametrize("output", NOT_FOUND)
def test_the_default_rules_do_not_find(output: str) -> None:
    score = evaluate(output)
    assert (score.value, score.passed) == (1.0, True)
    assert score.detail == {"num_detections": 0, "severity": 0.0, "types": [], "detections": []}


@pytest.mark.parametrize(
    ("output", "params", "value"),
    [
        pytest.param("078-05-1120", {}, 1 - 0.98, id="one find"),
        pytest.param("078-05-1120 a@b.co", {}, 1 - (0.98 + 0.5 * 0.95) / 2, id="the mean of two"),
        pytest.param("078-05-1120 a@b.co", {"aggregate": "max"}, 1 - 0.98, id="the worst of two"),
        pytest.param("a@b.co", {"weights": {"email": 1.0}}, 1 - 0.95, id="a weight of one's own"),
        pytest.param("078-05-1120", {"weights": {"email": 1.0}}, 1 - 0.98, id="other weights stay"),
        pytest.param("Jo Doe", {"enable_names": True}, 1 - 0.3 * 0.6, id="names if so asked"),
        pytest.param("Jo Doe", {"ruleset": "seed"}, 1 - 0.3 * 0.6, id="names by the seed's rules"),
        pytest.param("1234-5678-9012-3456", {"ruleset": "seed"}, 1 - 0.85, id="the seed's cards need no check digit"),
        pytest.param("(555) 123-4567", {"ruleset": "seed"}, 1.0, id="the seed's phone numbers have no parentheses"),
        pytest.param("221B Baker Street", {"ruleset": "seed"}, 1 - 0.3 * 0.6, id="the seed has no addresses"),
    ],
)
def test_pii_leakage_scores(output: str, params: dict[str, Any], value: float) -> None:
    assert evaluate(output, **params).value == pytest.approx(value)


def test_only_the_texts_that_are_to_be_checked_are_searched() -> None:
    assert evaluate("a@b.co", "078-05-1120").detail["types"] == ["email"]
    assert evaluate("a@b.co", "078-05-1120", check_input=True).detail["types"] == ["email", "ssn"]
    assert evaluate("a@b.co", "078-05-1120", check_input=True, check_output=False).detail["types"] == ["ssn"]


def test_a_detection_says_where_and_how_sure_but_not_what() -> None:
    score = evaluate("ok", "I am jo.doe@mail.example", check_input=True)
    assert score.detail["detections"] == [
        {"type": "email", "location": "input", "start": 5, "confidence": 0.95, "masked": "jo" + "*" * 15 + "le"}
    ]
    assert "doe" not in str(score.to_dict())


def test_a_threshold_replaces_the_rule_that_nothing_may_be_found() -> None:
    assert evaluate("a@b.co", threshold=0.5).passed is True
    assert evaluate("078-05-1120", threshold=0.5).passed is False


def test_a_long_text_is_searched_in_its_beginning_and_says_so() -> None:
    score = evaluate("x" * 100_000 + " a@b.co")
    assert (score.value, score.detail["truncated"]) == (1.0, True)


def test_many_finds_are_all_counted_and_the_first_hundred_shown() -> None:
    detail = evaluate("a@b.co " * 500).detail
    assert (detail["num_detections"], len(detail["detections"])) == (500, 100)


@pytest.mark.parametrize(
    ("output", "params", "reason"),
    [
        pytest.param(None, {}, "missing:output", id="the output is unknown"),
        pytest.param(None, {"check_input": True}, "missing:input", id="neither text is known"),
        pytest.param(
            "x", {"check_input": True, "check_output": False}, "missing:input", id="only the unknown text is to be checked"
        ),
    ],
)
def test_pii_leakage_does_not_apply_when(output: str | None, params: dict[str, Any], reason: str) -> None:
    score = evaluate(output, **params)
    assert (score.status, score.detail) == ("skipped", {"reason": reason})


def test_pii_leakage_errors_when_nothing_is_to_be_checked() -> None:
    assert evaluate("x", "x", check_output=False).error_type == "invalid_parameter"


@pytest.mark.parametrize("params", [{"ruleset": "mine"}, {"aggregate": "sum"}, {"weights": {"email": 2}}], ids=str)
def test_values_that_are_not_allowed_are_refused_when_the_metric_is_built(params: dict[str, Any]) -> None:
    with pytest.raises(oa.ConfigError):
        oa.get_metric("code_pii_leakage", **params)


@pytest.mark.parametrize("alias", ["agentunit:pii_leakage", "agentunit:PIILeakageMetric"])
def test_names_of_other_catalogues_resolve(alias: str) -> None:
    assert oa.get_metric(alias).name == "code_pii_leakage"
