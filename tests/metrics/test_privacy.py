from __future__ import annotations

import uuid
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.metrics.code.privacy import EpsilonLedger


def evaluate(output: str | None, input: str | None = None, **params: Any) -> oa.Score:  # noqa: A002 - the turn's field
    params.setdefault("ruleset", "default")
    return oa.get_metric("code_pii_leakage", **params).evaluate(oa.Turn(input=input, output=output))


FOUND = [
    pytest.param("mail jo.doe+x@mail.example.org now", ["email"], id="an address with dots and a plus"),
    pytest.param("écrire à éric@example.fr", ["email"], id="the plain part of an address with accents"),
    pytest.param("call 555-123-4567", ["phone"], id="a phone number with dashes"),
    pytest.param("call (555) 123-4567", ["phone"], id="with parentheses"),
    pytest.param("call +1 (555) 123-4567", ["phone"], id="with the country, once"),
    pytest.param("call +44 20 7946 0958", ["phone"], id="from another country"),
    pytest.param("call +33123456789", ["phone"], id="from another country without spaces"),
    pytest.param("ssn 078-05-1120", ["ssn"], id="a social security number"),
    pytest.param("card 4111 1111 1111 1111", ["credit_card"], id="a card with spaces"),
    pytest.param("at 221B Baker Street", ["address"], id="an address with a lettered number"),
    pytest.param("at 12 N. St-Denis O'Neil Rd", ["address"], id="an address with signs in its words"),
]

NOT_FOUND = [
    pytest.param("", id="nothing"),
    pytest.param("x@y..", id="a domain without an end"),
    pytest.param("card 4111 1111 1111 1112", id="a card with a wrong check digit"),
    pytest.param("order 41111111111111111111", id="more digits than a card"),
    pytest.param("on 2026-11-21 at 10:30:00.123", id="a time"),
    pytest.param("x=1+12345678", id="a sum"),
    pytest.param("in 2026 The weather was 12 Degrees warm", id="numbers before capitals"),
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
        pytest.param("Jo Doe", {"enable_names": True}, 1 - 0.3 * 0.6, id="names if so asked"),
        pytest.param("Jo Doe", {"ruleset": "seed"}, 1 - 0.3 * 0.6, id="names by the seed's rules"),
        pytest.param("1234-5678-9012-3456", {"ruleset": "seed"}, 1 - 0.85, id="the seed's cards need no check digit"),
        pytest.param("(555) 123-4567", {"ruleset": "seed"}, 1.0, id="the seed's phone numbers have no parentheses"),
    ],
)
def test_pii_leakage_scores(output: str, params: dict[str, Any], value: float) -> None:
    assert evaluate(output, **params).value == pytest.approx(value)


INPUT_ALONE = {"check_input": True, "check_output": False}


def test_only_the_texts_that_are_to_be_checked_are_searched() -> None:
    assert evaluate("a@b.co", "078-05-1120").detail["types"] == ["email"]
    assert evaluate("a@b.co", "078-05-1120", check_input=True).detail["types"] == ["email", "ssn"]
    assert evaluate("a@b.co", "078-05-1120", **INPUT_ALONE).detail["types"] == ["ssn"]


def test_a_detection_says_where_and_how_sure_but_not_what() -> None:
    score = evaluate("ok", "I am jo.doe@mail.example", check_input=True)
    assert score.detail["detections"] == [
        {"type": "email", "location": "input", "start": 5, "end": 24, "confidence": 0.95, "masked": "jo" + "*" * 15 + "le"}
    ]
    assert "doe" not in str(score.to_dict())


def test_a_long_text_is_searched_in_its_beginning_and_says_so() -> None:
    score = evaluate("x" * 100_000 + " a@b.co")
    assert (score.value, score.detail["truncated"]) == (1.0, True)
    detail = evaluate("a@b.co " * 500).detail
    assert (detail["num_detections"], len(detail["detections"])) == (500, 100)


def test_pii_leakage_needs_a_text_to_check() -> None:
    for output, params, missing in ((None, {}, "output"), (None, {"check_input": True}, "input"), ("x", INPUT_ALONE, "input")):
        assert evaluate(output, **params).detail == {"reason": f"missing:{missing}"}
    assert evaluate("x", "x", check_output=False).error_type == "invalid_parameter"


# --- privacy budget


def budget(turn: dict[str, Any], **params: Any) -> oa.Score:
    return oa.get_metric("code_privacy_budget", **params).evaluate(oa.Turn.from_dict(turn))


BUDGETS = [
    pytest.param([0.1, 0.2], 0, {"total_budget": 0.3}, (0.3, 0.0, False, True), id="all of it is not too much"),
    pytest.param([8.0], 3.0, {}, (11.0, 0.0, True, True), id="too much is spent"),
    pytest.param([0.0], 8.0, {}, (8.0, 0.2, False, True), id="the warning begins at its threshold"),
    pytest.param([], 7.9, {}, (7.9, 0.21, False, False), id="no epsilon leaves it as it was"),
    pytest.param([1.0], 0.0, {"warn_threshold": 0.05}, (1.0, 0.9, False, True), id="a warning of one's own"),
]


@pytest.mark.parametrize(("epsilon", "before", "params", "found"), BUDGETS)
def test_privacy_budget_scores(epsilon: Any, before: float, params: dict[str, Any], found: tuple[Any, ...]) -> None:
    spent, value, exceeded, warning = found
    score = budget({"privacy": {"epsilon": epsilon, "spent_before": before}}, **params)
    total = params.get("total_budget", 10.0)
    assert (score.value, score.passed) == (pytest.approx(value), not exceeded)
    assert score.detail == {
        "epsilon_used": pytest.approx(spent - before),
        "total_spent": pytest.approx(spent),
        "remaining": pytest.approx(total - spent),
        "utilization": pytest.approx(spent / total),
        "budget_exceeded": exceeded,
        "warning": warning,
    }


def test_a_budget_of_nothing_is_used_up_and_nothing_spent_is_vacuous() -> None:
    for total in (0, -1):
        used_up = budget({"privacy": {"epsilon": [0.5]}}, total_budget=total)
        assert (used_up.value, used_up.passed, used_up.detail["utilization"]) == (0.0, False, 1.0)
    assert (budget({}).value, budget({}).passed, budget({}).vacuous) == (1.0, True, True)
    assert budget({"privacy": {"epsilon": [1]}}).vacuous is False


@pytest.mark.parametrize(
    "privacy",
    [{"epsilon": [-1]}, {"epsilon": "1"}, {"epsilon": [True]}, {"epsilon": [float("inf")]}, {"epsilon": {}}, {"spent_before": -1},
     {"epsilon": [1.7e308] * 2}, {"spent_before": float("nan")}],
    ids=str,
)  # fmt: skip
def test_what_is_no_amount_of_epsilon_is_an_error(privacy: dict[str, Any]) -> None:
    assert oa.get_metric("code_privacy_budget").evaluate(oa.Turn(privacy=privacy)).error_type == "invalid_privacy"


def test_epsilon_can_stand_on_spans_where_other_values_are_ignored() -> None:
    values = [0.5, 1, "x", -1, True, None]
    spans = [{"id": str(index), "attributes": {"privacy.epsilon": value}} for index, value in enumerate(values)]
    assert budget({"spans": spans}).detail["epsilon_used"] == 1.5
    assert budget({"spans": spans, "privacy": {"epsilon": [2]}}).detail["epsilon_used"] == 2.0


def spent(epsilon: float, **known: Any) -> float:
    """Return the total spending in the turn's scope, including the turn."""
    return budget({"privacy": {"epsilon": [epsilon]}, **known}).detail["total_spent"]


def anybody() -> str:
    return uuid.uuid4().hex


@pytest.mark.parametrize(
    ("one", "scope"),
    [
        pytest.param(lambda name: {"user_id": name}, "user", id="a user"),
        pytest.param(lambda name: {"metadata": {"tenant_id": name}}, "tenant", id="a tenant"),
        pytest.param(lambda name: {"metadata": {"tenant": name}}, "tenant", id="a tenant by its other name"),
        pytest.param(lambda name: {"conversation_id": name}, "conversation", id="a conversation"),
    ],
)
def test_spending_adds_up_for(one: Any, scope: str) -> None:
    this, that = anybody(), anybody()
    assert [spent(1, turn_id=str(turn), **one(this)) for turn in range(3)] == [1, 2, 3]
    assert spent(1, turn_id="1", **one(that)) == 1
    turn = {"privacy": {"epsilon": [1]}, "turn_id": "4", **one(this)}
    assert budget(turn, scope=scope).detail["total_spent"] == 4
    other = {"user": "conversation", "tenant": "user", "conversation": "tenant"}[scope]
    assert budget(turn, scope=other).detail["total_spent"] == 1


def test_the_user_s_budget_comes_before_the_conversation_s() -> None:
    user = anybody()
    assert spent(1, turn_id="1", user_id=user, conversation_id=anybody()) == 1
    assert spent(1, turn_id="2", user_id=user, conversation_id=anybody()) == 2


def test_a_threshold_replaces_the_rule_of_what_passes() -> None:
    assert [evaluate(output, threshold=0.5).passed for output in ("a@b.co", "078-05-1120")] == [True, False]
    turn = {"privacy": {"epsilon": [6.0]}}
    assert (budget(turn).passed, budget(turn, threshold=0.5).passed) == (True, False)
    leaking = {"email": "jo@x.org"}
    assert [minimised("jo@x.org", leaking, threshold=threshold).passed for threshold in (0.8, 0.9)] == [True, False]


def test_a_turn_is_charged_once_and_sees_the_same_past_again() -> None:
    user = anybody()
    assert [spent(1, turn_id=turn, user_id=user) for turn in ("1", "2", "1", "2", "3")] == [1, 2, 1, 2, 3]


def test_a_revision_replaces_what_the_turn_was_charged() -> None:
    user = anybody()
    assert spent(1, turn_id="1", user_id=user) == 1
    assert spent(5, turn_id="1", user_id=user) == 5
    assert spent(2, turn_id="1b", supersedes="1", user_id=user) == 2
    assert spent(1, turn_id="2", user_id=user) == 3


def test_turns_without_an_id_are_told_apart_by_themselves() -> None:
    user = anybody()
    metric = oa.get_metric("code_privacy_budget")
    turns = [oa.Turn(user_id=user, privacy={"epsilon": [1]}) for _ in range(2)]
    assert [metric.evaluate(turn).detail["total_spent"] for turn in (*turns, *turns)] == [1, 2, 1, 2]


def test_a_turn_that_knows_its_past_neither_reads_nor_writes_the_state() -> None:
    user = anybody()
    assert spent(1, turn_id="1", user_id=user) == 1
    known = {"turn_id": "2", "user_id": user, "privacy": {"epsilon": [5], "spent_before": 0}}
    assert budget(known).detail["total_spent"] == 5
    assert spent(1, turn_id="3", user_id=user) == 2


def test_the_ledger_forgets_the_longest_unused() -> None:
    ledger = EpsilonLedger(most_scopes=2, most_turns=3)
    for turn, scope in enumerate("aabca"):
        ledger.charge(scope, oa.Turn(turn_id=str(turn)), 1.0)
    assert ledger.charge("c", oa.Turn(turn_id="x"), 1.0) == 1.0
    assert ledger.charge("b", oa.Turn(turn_id="y"), 1.0) == 0.0
    assert len(ledger) == 2 + 3


# --- data minimisation and consent


def minimised(output: str | None, metadata: dict[str, Any], **params: Any) -> oa.Score:
    return oa.get_metric("code_data_minimization", **params).evaluate(oa.Turn(output=output, metadata=metadata))


MINIMISATION = [
    pytest.param("Hi JO@X.org", {"email": "jo@x.org"}, {}, 1 - 1 / 9, ["email"], id="a leak whatever the case"),
    pytest.param("jo@x.org", {"email": "jo@x.org"}, {"denominator": "present"}, 0.0, ["email"], id="the only one present"),
    pytest.param("no 42", {"user_id": 42}, {}, 1 - 1 / 9, ["user_id"], id="a number"),
    pytest.param('{"A":1}', {"address": {"a": 1}}, {}, 1 - 1 / 9, ["address"], id="an object as compact JSON"),
    pytest.param("x y", {"email": "", "phone": None, "token": " "}, {}, 1.0, [], id="values that are nothing"),
    pytest.param("Zed", {"name": "zed", "email": "zed"}, {"keys": ["name"]}, 0.0, ["name"], id="keys of one's own"),
    pytest.param("Zed", {"name": "zed"}, {"keys": []}, 1.0, [], id="no keys"),
]


@pytest.mark.parametrize(("output", "metadata", "params", "value", "leaked"), MINIMISATION)
def test_data_minimization_scores(output: str, metadata: Any, params: Any, value: float, leaked: list[str]) -> None:
    score = minimised(output, metadata, **params)
    assert (score.value, score.passed) == (pytest.approx(value), not leaked)
    assert (score.detail["leaked_keys"], score.detail["num_leakages"]) == (leaked, len(leaked))
    assert "x.org" not in str(score.to_dict())


def test_data_minimization_is_vacuous_without_data_and_needs_an_output() -> None:
    assert minimised("x", {}).vacuous is True
    assert minimised("x", {"email": " "}).vacuous is True
    assert minimised("x", {"email": "y"}).vacuous is False
    assert minimised(None, {"email": "y"}).detail == {"reason": "missing:output"}


def consented(output: str | None, metadata: dict[str, Any], **params: Any) -> oa.Score:
    return oa.get_metric("code_consent_compliance", **params).evaluate(oa.Turn(output=output, metadata=metadata))


CONSENT = [
    pytest.param("Your Location?", {"location": False}, {}, ["location"], id="the name of a refused kind, whatever the case"),
    pytest.param("b a", {"a": False, "b": False, "c": False}, {}, ["a", "b"], id="in the order of the consent"),
    pytest.param("a b c d", {"a": "yes", "b": "TRUE", "c": 1, "d": "1"}, {}, [], id="words and numbers of consent"),
    pytest.param("a b c d", {"a": "no", "b": None, "c": 0, "d": []}, {}, ["a", "b", "c", "d"], id="everything else is none"),
    pytest.param("a", {"": False, " ": False}, {}, [], id="kinds without a name"),
    pytest.param("email", {"email": False}, {"match": "value"}, [], id="the name is not the value"),
    pytest.param("to a@b.co", {"Email": False}, {"match": "value"}, ["Email"], id="the value is found by its shape"),
    pytest.param("in Bern", {"city": False}, {"match": "value"}, ["city"], id="the value is found by the metadata"),
]


@pytest.mark.parametrize(("output", "consent", "params", "violations"), CONSENT)
def test_consent_compliance_scores(output: str, consent: Any, params: dict[str, Any], violations: list[str]) -> None:
    score = consented(output, {"consent": consent, "city": "BERN"}, **params)
    assert (score.passed, score.value) == (not violations, float(not violations))
    assert score.detail == {"violations": violations, "num_violations": len(violations)}


def test_configured_consent_wins() -> None:
    assert consented("x", {"consent": {"x": True}}, consent={"x": False}).passed is False
    assert consented("x", {"consent": {"x": False}}, consent={}).vacuous is True


@pytest.mark.parametrize(("output", "consent"), [(None, {"x": False}), ("", {"x": False}), ("x", None), ("x", {})])
def test_consent_compliance_is_vacuous_without_consent_or_output(output: str | None, consent: Any) -> None:
    score = consented(output, {"consent": consent})
    assert (score.value, score.vacuous, score.detail["num_violations"]) == (1.0, True, 0)
    assert consented("x", {"consent": "all"}).error_type == "invalid_consent"
