"""Changes of the Prometheus metrics by one scored turn."""

from __future__ import annotations

import math
import random

import pytest

from otel_agenteval.core import semconv
from otel_agenteval.core.score import Score
from otel_agenteval.core.telemetry import Telemetry
from otel_agenteval.core.turn import Usage
from otel_agenteval.evaluation.scored_turn import Root, ScoredTurn
from otel_agenteval.outlets.accounting import account, exemplar_of, observations, outcome
from tests.outlets.factories import SPAN_ID, TRACE_ID, scored_turn
from tests.support.clock import FakeClock

OF_A_TURN = ("travel", "gpt-5", "shop")
HISTOGRAMS = {item.name for item in semconv.INSTRUMENTS if item.kind == "histogram"}


def test_a_turn_adds_itself_its_time_its_cost_and_its_tokens() -> None:
    assert observations(scored_turn()) == [
        (semconv.TURNS, ("travel", "shop", "root_ended", "true"), 1),
        (semconv.TURN_DURATION, OF_A_TURN, 2.5),
        (semconv.TURN_COST, (*OF_A_TURN, "false"), 0.25),
        (semconv.TURN_TOKENS, (*OF_A_TURN, "input"), 100),
        (semconv.TURN_TOKENS, (*OF_A_TURN, "output"), 20),
    ]


@pytest.mark.parametrize("bad", [None, -1.0, math.inf, math.nan, 10**400])
def test_what_spans_do_not_know_or_cannot_mean_is_not_counted(bad: float | None) -> None:
    scored = scored_turn(turn={"usage": None})
    scored.turn.duration_s = scored.turn.cost_usd = bad
    scored.turn.usage = Usage(bad, bad)  # type: ignore[arg-type]  # tokens are whole numbers, of which 10**400 is one
    assert [name for name, _, _ in observations(scored)] == [semconv.TURNS]


def test_unknown_agent_model_and_service_are_empty_labels() -> None:
    unknown = dict.fromkeys(("agent", "service", "close_reason", "llm_calls", "usage", "cost_usd"))
    found = observations(scored_turn(Score("code_a", 1.0), turn=unknown))
    assert found == [
        (semconv.TURNS, ("", "", "", "true"), 1),
        (semconv.TURN_DURATION, ("", "", ""), 2.5),
        (semconv.RESULTS, ("code_a", "", "ok"), 1),
        (semconv.SCORE, ("code_a", "code", "", "", ""), 1.0),
    ]


@pytest.mark.parametrize(
    ("score", "expected", "observed"),
    [
        (Score("code_a", 1.0, True), "pass", True),
        (Score("code_a", 0.0, False), "fail", True),
        (Score("code_a", 0.4), "ok", True),
        (Score("code_a", 1.0, True, detail={"vacuous": True}), "vacuous", False),
        (Score("code_a", status="error", error_type="timeout"), "error", False),
        (Score("code_a", status="skipped", detail={"reason": "missing:tool_calls"}), "skipped", False),
        (Score("code_a", math.nan), "ok", False),
        (Score("code_a", 7.0, unit="furlong"), "ok", False),
        (Score.from_dict({"metric": "code_a", "value": 1.0, "passed": False, "label": ["x"]}), "fail", True),
    ],
)
def test_each_score_has_one_outcome_and_a_value_only_if_it_means_one(score: Score, expected: str, observed: bool) -> None:
    found = observations(scored_turn(score))
    assert outcome(score) == expected
    assert [labels[2] for name, labels, _ in found if name == semconv.RESULTS] == [expected]
    assert [name for name, labels, _ in found if name in HISTOGRAMS and labels[0] == "code_a"] == [semconv.SCORE] * observed


@pytest.mark.parametrize(
    ("unit", "histogram"),
    [
        ("1", "agenteval.score"),
        ("s", "agenteval.measure.duration"),
        ("{token}", "agenteval.measure.tokens"),
        ("USD", "agenteval.measure.cost.usd"),
        ("{item}", "agenteval.measure.items"),
        ("{level}", "agenteval.measure.severity"),
    ],
)
def test_the_unit_chooses_the_histogram(unit: str, histogram: str) -> None:
    found = observations(scored_turn(Score("llm_a", 3.0, kind="llm", unit=unit)))
    assert found[-1] == (histogram, ("llm_a", "llm", *OF_A_TURN), 3.0)


def test_a_revision_adds_only_superseded() -> None:
    revision = scored_turn(Score("code_a", 1.0, True), Score("code_b", status="error"), new=False)
    assert observations(revision) == [
        (semconv.RESULTS, ("code_a", "travel", "superseded"), 1),
        (semconv.RESULTS, ("code_b", "travel", "superseded"), 1),
    ]


def test_exemplars_point_at_kept_traces_only() -> None:
    assert exemplar_of(Root(TRACE_ID, SPAN_ID)) == {"trace_id": f"{TRACE_ID:032x}", "span_id": f"{SPAN_ID:016x}"}
    assert exemplar_of(Root(TRACE_ID, SPAN_ID, sampled=False)) is None
    assert exemplar_of(Root(0, 0)) is None


@pytest.mark.parametrize(
    ("reason", "counted"),
    [("missing:context", "missing:context"), ("no_code", "no_code"), ("Ada's card is 4111", "other"), (None, "other")],
)
def test_a_reason_is_counted_only_as_a_plain_word(reason: str | None, counted: str) -> None:
    scored = scored_turn(Score("m", status="skipped", detail={"reason": reason}))
    assert (semconv.SKIPPED, ("m", counted), 1) in observations(scored)


AGENTS = ("travel", "shop", "a", "b", "c", "d")


def _some_turn(dice: random.Random) -> ScoredTurn:
    scores = [
        Score(
            f"code_{dice.randrange(4)}", dice.choice((0.0, 0.5, 3.0, math.inf, None)), dice.choice((True, False, None)),
            unit=dice.choice(("1", "s", "?")), detail=dice.choice((None, {"vacuous": True})),
        )
        for _ in range(3)
    ]  # fmt: skip
    scores.append(
        Score("code_skipped", status="skipped", detail={"reason": dice.choice(("shed", "gated", "missing:input", "?!"))})
    )
    return scored_turn(*scores, turn={"agent": dice.choice(AGENTS)})


def test_what_is_planned_is_counted_as_what_is_not_while_labels_lose_their_places_and_processes_fork() -> None:
    dice = random.Random(8)
    clocks = FakeClock(), FakeClock()
    planned, plain = (Telemetry(clock, max_values=3) for clock in clocks)
    taps = [[telemetry.tap(name) for name in sorted(HISTOGRAMS)] for telemetry in (planned, plain)]
    for number in range(600):
        scored = _some_turn(dice)
        account(planned, scored)
        plain.record(observations(scored), exemplar_of(scored.root))
        for clock in clocks:
            clock.advance(40.0)
        if number % 150 == 149:
            assert planned.collect() == plain.collect()
            assert taps[0] == taps[1]
            for telemetry in (planned, plain):
                telemetry.reset()
    assert planned.collect() == plain.collect()


def test_plans_of_metrics_are_bounded() -> None:
    telemetry = Telemetry()
    for number in range(1_500):
        score = Score("code_a", 1.0, True, threshold=float(number))
        account(telemetry, scored_turn(score, turn={"agent": f"agent-{number % 500}"}))
        account(telemetry, scored_turn(score))
    assert sum(map(len, telemetry._plans.values())) < 1_000
