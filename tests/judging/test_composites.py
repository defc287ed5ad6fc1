"""Live composites of judged scores are created when each inner metric has an outcome, in any process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.cli.main import main
from otel_agenteval.config.loader import load_config
from otel_agenteval.core import semconv
from otel_agenteval.core.score import Score
from otel_agenteval.evaluation.scored_turn import Root, ScoredTurn
from otel_agenteval.evaluation.selection import select_metrics
from otel_agenteval.judging.job import InnerOutcome, key_of
from otel_agenteval.judging.outcomes import result_of
from otel_agenteval.judging.sampling import Chance
from tests.judging.test_live import held
from tests.support.clock import FakeClock
from tests.support.judges import ScriptedModels
from tests.support.recordings import unpack
from tests.support.rig import Rig

MEAN, GATE, POLICY, ALL_PASS = "code_composite_mean", "code_threshold_gate", "code_safety_policy", "code_policy_must_always_pass"
ONE, TWO, SEVERE, BAD = "llm_made_one", "llm_made_two", "llm_made_severe", "llm_made_bad"


@pytest.fixture(autouse=True)
def _judged_metrics(_process: None) -> None:
    """Register metrics with one judge call each, whose values the test sets."""

    @oa.metric(needs=("output",), threshold=0.5)
    def llm_made_one(turn: oa.Turn, judge: Any) -> float:
        """What the judge says."""
        return float(judge.ask("one", "How good is one?", {"output": turn.output}, '{"score": 0 to 1}')["score"])

    @oa.metric(needs=("output",), threshold=0.5)
    def llm_made_two(turn: oa.Turn, judge: Any, *, tone: str = "warm") -> float:
        """What the judge says."""
        return float(judge.ask("two", f"How {tone} is two?", {"output": turn.output}, '{"score": 0 to 1}')["score"])

    @oa.metric(needs=("output",), unit="{level}", direction="down")
    def llm_made_severe(turn: oa.Turn, judge: Any) -> float:
        """How severe the judge says it is."""
        return float(judge.ask("severe", "How severe?", {"output": turn.output}, '{"score": 0 to 7}')["score"])

    @oa.metric(needs=("output",), unit="{level}", direction="down")
    def llm_made_bad(turn: oa.Turn, judge: Any) -> float:
        """How bad the judge says it is."""
        return float(judge.ask("bad", "How bad?", {"output": turn.output}, '{"score": 0 to 7}')["score"])


def config(models: ScriptedModels, *metrics: Any, **more: Any) -> dict[str, Any]:
    judge = {"base_url": models.url, "model": "scripted", "max_concurrency": 1, **more.pop("judge", {})}
    return {"judge": judge, "metrics": list(metrics), "inline": {"metrics": ["code_empty_answer"]}, **more}


def drain(rig: Rig) -> None:
    assert rig.engine.drain(60, judges=True)
    assert rig.engine.failures == {}


def left(rig: Rig) -> dict[str, tuple[float | None, float]]:
    """Return the value and probability of each exported judged score, and check that none occurs twice."""
    found = [
        (score.metric, score.value, scored.judged.probability)
        for scored in rig.scored()
        if scored.judged
        for score in scored.scores
    ]
    assert len({name for name, *_ in found}) == len(found), found
    return {name: (value, probability) for name, value, probability in found}


def why(rig: Rig) -> dict[str, str]:
    turn_id = rig.scored()[0].turn.turn_id
    return rig.engine.why(turn_id) or {}


def test_a_composite_waits_for_judged_scores_and_counts_them(models: ScriptedModels) -> None:
    models.play({"score": 0.01}, {"score": 0.456})
    with Rig(config(models, ONE, {MEAN: {"metrics": [ONE, TWO, {"code_contains": {"value": "is"}}]}})) as rig:
        rig.run()
        drain(rig)
        turn = rig.scored()[0].turn
        there = 1.0 if "is" in (turn.output or "") else 0.0
        assert left(rig) == {ONE: (0.01, 1.0), MEAN: (pytest.approx((0.01 + 0.456 + there) / 3), 1.0)}
        assert len(models.requests) == 2, "each inner metric is asked once, also the one that is configured itself"
        results = {key[0]: key[2] for key in rig.count("agenteval.results")}
        assert results[MEAN] == "ok"
        assert TWO not in results
        assert why(rig) == {"code_empty_answer": "scored", ONE: "scored", MEAN: "scored"}
        [event] = [dict(e.attributes) for e in rig.log_events() if e.attributes[semconv.EVALUATION_NAME] == MEAN]
        assert event[semconv.SAMPLE_PROBABILITY] == 1.0
        assert event[semconv.METRIC_KIND] == "code"


@pytest.mark.parametrize("both", [True, False], ids=["with its severity", "alone"])
def test_verdict_of_a_severity_makes_no_second_call(models: ScriptedModels, both: bool) -> None:
    severity, verdict = "llm_content_harm", "llm_content_harm_passed"
    models.play({"score": 6, "reason": "a threat", "recommended_action": "block"})
    with Rig(config(models, *([severity] if both else []), verdict)) as rig:
        rig.run()
        drain(rig)
        assert left(rig) == {**({severity: (6.0, 1.0)} if both else {}), verdict: (0.0, 1.0)}
        assert len(models.requests) == 1
        assert why(rig)[verdict] == "scored"
        [event] = [dict(e.attributes) for e in rig.log_events() if e.attributes[semconv.EVALUATION_NAME] == verdict]
        assert event[semconv.METRIC_KIND] == "llm"
        assert event[semconv.EXPLANATION] == "a threat"


def test_a_composite_of_composites_and_gates_over_them(models: ScriptedModels) -> None:
    models.play({"score": 0.2}, {"score": 0.6})
    inner = {MEAN: {"metrics": [ONE, {"code_not": {"metric": TWO}}]}}
    with Rig(config(models, {GATE: {"metric": inner, "threshold": 0.9}, "policy": "gate"}, inner)) as rig:
        rig.run()
        drain(rig)
        assert left(rig) == {GATE: (0.0, 1.0), MEAN: (pytest.approx(0.3), 1.0)}
        [gate] = [score for scored in rig.scored() for score in scored.scores if score.metric == GATE]
        assert (gate.passed, gate.policy) == (False, "gate")
        assert len(models.requests) == 2


@pytest.mark.parametrize(
    ("sample", "own"),
    [({"rate": 0}, None), ({"rate": 1}, {"rate": 0})],
)
def test_an_inner_metric_that_was_not_drawn_is_missing(models: ScriptedModels, sample: Any, own: Any) -> None:
    models.play(*[{"score": 0.5}] * 2)
    composite = {MEAN: {"metrics": [ONE, TWO]}, **({} if own is None else {"sample": own})}
    with Rig(config(models, {ONE: {}, "sample": sample}, composite)) as rig:
        rig.run()
        drain(rig)
        assert MEAN not in left(rig)
        text = why(rig)[MEAN]
        assert text == ("sampled out (p=0)" if own else f"skipped: missing {ONE} (sampled out (p=0))")
        assert len(models.requests) == (1 if own else 0), "what only the composite needs is not asked for in vain"
        outcomes = {key[2]: count for key, count in rig.count("agenteval.results").items() if key[0] == MEAN}
        assert outcomes == {"sampled_out" if own else "skipped": 1}


def test_one_severe_rating_blocks_whatever_became_of_the_others(models: ScriptedModels) -> None:
    models.play({"score": 6})
    ratings = [{SEVERE: {}}, {BAD: {}, "sample": {"rate": 0}}]
    with Rig(config(models, *ratings, {POLICY: {}, "policy": "gate"}, {ALL_PASS: {"metrics": [POLICY]}})) as rig:
        rig.run()
        drain(rig)
        assert left(rig)[POLICY] == (0.0, 1.0)
        [blocked] = [score for scored in rig.scored() for score in scored.scores if score.metric == POLICY]
        assert (blocked.label, blocked.detail["decided_by"]) == ("block", "threshold")
        assert list(blocked.detail["missing"]) == [BAD]


@pytest.mark.parametrize(
    ("severe", "bad", "value", "probability"),
    [(6, 6, 0.0, 0.7), (6, 1, 0.0, 0.7), (1, 6, 0.0, 0.4), (1, 1, 1.0, 0.4)],
    ids=["both block", "one blocks", "the rarer one blocks", "none blocks"],
)
def test_the_probability_of_a_policy_is_that_of_what_decided_it(
    severe: float, bad: float, value: float, probability: float
) -> None:
    policy = oa.get_metric(POLICY, metrics=[SEVERE, BAD])
    found = {
        key_of(metric, conversation=False): InnerOutcome(Score(metric.name, level, direction="down"), Chance(rate, "rate"))
        for metric, level, rate in zip(policy.inner, (severe, bad), (0.7, 0.4), strict=True)
    }
    made = result_of(policy, Chance(1.0, "rate"), found, conversation=False)
    assert made is not None
    assert (made.score.value, made.chance.probability) == (value, probability)
    own = result_of(policy, Chance(0.1, "rate"), found, conversation=False)
    assert own is not None
    assert own.chance.probability == 0.1, "its own sample bounds it too"
    del found[key_of(policy.inner[1], conversation=False)]
    assert result_of(policy, Chance(1.0, "rate"), found, conversation=False) is None, "it waits"


def test_a_policy_without_metrics_is_about_those_beside_it() -> None:
    found = {
        metric.name: [one.name for one in metric.inner]
        for metric in select_metrics(load_config({
            "inline": {"metrics": []},
            "metrics": [
                SEVERE, BAD, {ONE: {}, "policy": "gate"}, TWO, {"code_latency": {}, "policy": "gate"}, "llm_turn_risk", "llm_content_harm", POLICY, ALL_PASS,
            ],
        }))
    }  # fmt: skip
    assert found[POLICY] == [SEVERE, BAD, "llm_content_harm"], "the scale of the risk is another"
    assert found[ALL_PASS] == [ONE, "code_latency"]


def test_an_inner_error_is_what_the_composite_says_of_errors(models: ScriptedModels) -> None:
    models.play(401, {"score": 0.4})
    with Rig(config(models, {MEAN: {"metrics": [ONE, TWO]}}, {ALL_PASS: {"metrics": [ONE, TWO]}})) as rig:
        rig.run()
        drain(rig)
        assert left(rig) == {MEAN: (0.4, 1.0), ALL_PASS: (2.0, 1.0)}


def test_an_inner_metric_after_another_one_in_a_cascade(models: ScriptedModels) -> None:
    models.play({"score": 0.1}, {"score": 0.3}, {"score": 0.9})
    cascade = {"rate": 0, "cascade": {"after": ONE, "judge_if": f"score.{ONE} < 0.5"}}
    with Rig(config(models, ONE, {TWO: {}, "sample": cascade}, {MEAN: {"metrics": [ONE, TWO]}})) as rig:
        rig.run()
        drain(rig)
        assert left(rig) == {ONE: (0.1, 1.0), TWO: (0.3, 1.0), MEAN: (pytest.approx(0.2), 1.0)}
    with Rig(config(models, ONE, {TWO: {}, "sample": cascade}, {MEAN: {"metrics": [ONE, TWO]}})) as rig:
        rig.run()
        drain(rig)
        assert left(rig) == {ONE: (0.9, 1.0)}
        assert why(rig)[MEAN] == f"skipped: missing {TWO} (sampled out (p=0) after {ONE}: 0.9)"


def test_a_job_that_cannot_be_done_leaves_the_others_and_says_what_is_missing(models: ScriptedModels) -> None:
    models.play({"score": 0.4})
    clock = FakeClock()
    with Rig(config(models, ONE, TWO, {MEAN: {"metrics": [ONE, TWO]}}, judge={"queue": {"max_age": "60s"}}), clock=clock) as rig:
        judging = held(rig)
        rig.run()
        assert why(rig)[MEAN] == f"waiting for {ONE}, {TWO}"
        clock.advance(120)
        assert judging.step()
        assert why(rig)[ONE] == "dropped: too_old"
        assert judging.step()
        rig.scored()
        assert why(rig)[TWO] == "dropped: too_old"
        assert why(rig)[MEAN] == f"skipped: missing {ONE} (dropped: too_old), {TWO} (dropped: too_old)"
        assert judging.queue.depth == 0
        outcomes = {(key[0], key[2]): count for key, count in rig.count("agenteval.results").items()}
        assert outcomes == {("code_empty_answer", "pass"): 1, (ONE, "dropped"): 1, (TWO, "dropped"): 1, (MEAN, "skipped"): 1}


@pytest.mark.parametrize("reason", ["queue_full", "shutdown"])
def test_what_is_dropped_takes_its_composites_along(models: ScriptedModels, reason: str) -> None:
    models.play()
    wanted = config(models, ONE, TWO, {MEAN: {"metrics": [ONE, TWO]}})
    if reason == "queue_full":
        wanted["judge"]["queue"] = {"max_bytes": 100}
    with Rig(wanted) as rig:
        held(rig)
        rig.run()
        turn = rig.turn()
        if reason == "shutdown":
            rig.engine.shutdown()
        said = rig.engine.why(turn.turn_id) or {}
        assert (said[ONE], said[TWO]) == (f"dropped: {reason}", f"dropped: {reason}")
        assert said[MEAN] == f"skipped: missing {ONE} (dropped: {reason}), {TWO} (dropped: {reason})"
        outcomes = {(key[0], key[2]): count for key, count in rig.count("agenteval.results").items()}
        assert {key: count for key, count in outcomes.items() if key[0] != "code_empty_answer"} == {
            (ONE, "dropped"): 1, (TWO, "dropped"): 1, (MEAN, "skipped"): 1,
        }  # fmt: skip


def test_what_a_composite_alone_had_asked_is_its_cost(models: ScriptedModels, monkeypatch: Any) -> None:
    models.play({"score": 0.2}, {"score": 0.4})
    answer = models.answer

    def counted(path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        status, reply = answer(path, body)
        return status, {**reply, "usage": {"prompt_tokens": 10, "completion_tokens": 5}}

    monkeypatch.setattr(models, "answer", counted)
    prices = {"scripted": {"input": 1, "output": 1}}
    with Rig(config(models, ONE, {MEAN: {"metrics": [ONE, TWO]}}, judge={"prices": prices})) as rig:
        rig.run()
        drain(rig)
        costs = {score.metric: scored.judged.cost_usd for scored in rig.scored() if scored.judged for score in scored.scores}
        spent = rig.count("agenteval.judge.cost.usd")
        assert costs[ONE]
        assert costs[MEAN]
        assert sum(filter(None, costs.values())) == pytest.approx(sum(spent.values()))


def test_a_composite_of_conversations(models: ScriptedModels) -> None:
    models.play({"score": 0.2}, {"score": 0.4})
    whole = [{MEAN: {"metrics": [ONE, TWO]}}]
    with Rig(config(models, conversation={"metrics": whole})) as rig:
        rig.run(attributes={"gen_ai.conversation.id": "c1"})
        rig.run(attributes={"gen_ai.conversation.id": "c1"})
        rig.scored()
        assert rig.engine.end_conversation("c1")
        drain(rig)
        assert left(rig) == {MEAN: (pytest.approx(0.3), 1.0)}
        assert {scored.turn.turn_id for scored in rig.scored() if scored.judged} == {"conversation-c1"}


@pytest.mark.parametrize("killed_after", [0, 1, 2])
def test_a_kill_loses_no_composite(models: ScriptedModels, tmp_path: Path, killed_after: int) -> None:
    """If a process is killed, the next process finds all needed data in the queue's file."""
    wanted = config(models, ONE, {MEAN: {"metrics": [ONE, TWO, {TWO: {"tone": "cold"}}]}})
    wanted["judge"]["queue"] = {"backend": "sqlite", "path": str(tmp_path / "jobs.db"), "lease": "5s"}
    models.play({"score": 0.1}, {"score": 0.2}, {"score": 0.6})
    clock = FakeClock()
    first = Rig(wanted, clock=clock)
    held(first)
    first.run()
    first.scored()
    for _ in range(killed_after):
        assert first.engine.judging.step()
        first.scored()
    before = left(first)
    first.engine.judging.queue.close()  # nothing else of it goes on
    clock.advance(60)
    with Rig(wanted, clock=clock) as rig:
        assert rig.engine.judging is not None
        rig.engine.intake.tick()
        drain(rig)
        found = {score.metric: score.value for scored in rig.kept for score in scored.scores if scored.judged}
        assert {**{name: value for name, (value, _) in before.items()}, **found} == {ONE: 0.1, MEAN: pytest.approx(0.3)}
        assert len(models.requests) == 3
        assert rig.engine.judging.queue.depth == 0


def test_a_revision_has_a_composite_of_its_own(models: ScriptedModels) -> None:
    models.play({"score": 0.1}, {"score": 0.3}, {"score": 0.7}, {"score": 0.9})
    with Rig(config(models, ONE, {MEAN: {"metrics": [ONE, TWO]}})) as rig:
        judging = rig.engine.judging
        assert judging is not None
        first = oa.Turn(turn_id="t-1", input="a", output="b")
        again = oa.Turn(turn_id="t-1", input="a", output="c", revision=2, supersedes="t-1")
        judging.may_start = False
        for scored in (ScoredTurn(first, Root(1, 2), []), ScoredTurn(again, Root(1, 2), [], "t-1", False)):
            assert judging.plan(scored) == []
            while judging.step():
                rig.scored()
        found = [
            (scored.turn.revision, scored.supersedes, score.value, score.result_id)
            for scored in rig.scored() for score in scored.scores if score.metric == MEAN
        ]  # fmt: skip
        assert [one[:3] for one in found] == [(1, None, pytest.approx(0.2)), (2, "t-1", pytest.approx(0.8))]
        assert found[0][3] != found[1][3]
        outcomes = {key[2]: count for key, count in rig.count("agenteval.results").items() if key[0] == MEAN}
        assert outcomes == {"ok": 1, "superseded": 1}


def test_eval_makes_them_too_and_asks_once(models: ScriptedModels, tmp_path: Path, capsys: Any) -> None:
    wanted = config(models, ONE, {ALL_PASS: {"metrics": [ONE, TWO]}, "policy": "gate"}, {MEAN: {"metrics": [ONE, TWO]}}, {ONE: {"threshold": 0.1}, "name": "nobody", "when": {"agent": "nobody"}},
                    {GATE: {"metric": {ONE: {"threshold": 0.1}}, "threshold": 0.5}})  # fmt: skip
    (tmp_path / "c.yaml").write_text(json.dumps(wanted), encoding="utf-8")
    models.play({"score": 0.01}, {"score": 0.456})
    assert (
        main(["eval", str(unpack("pydantic_ai-native_v6/s1.jsonl", tmp_path)), "--config", str(tmp_path / "c.yaml"), "--gate"])
        == 1
    )
    rows = {row["metric"]: row for row in map(json.loads, capsys.readouterr().out.splitlines())}
    assert (rows[ONE]["value"], rows[MEAN]["value"], rows[ALL_PASS]["value"]) == (0.01, pytest.approx(0.233), 2.0)
    assert (rows[GATE]["status"], rows[GATE]["detail"]["missing"]) == ("skipped", {f"{ONE}.nobody": "gated: when.agent"})
    assert TWO not in rows
    assert len(models.requests) == 2


def test_a_composite_in_a_cascade_or_a_condition_is_refused(models: ScriptedModels) -> None:
    cascade = {"rate": 0, "cascade": {"after": ONE, "judge_if": f"score.{ONE} < 0.5"}}
    with pytest.raises(oa.ConfigError, match="waits for its inner metrics"):
        Rig(config(models, ONE, {MEAN: {"metrics": [TWO]}, "sample": cascade}))
    with pytest.raises(oa.ConfigError, match=MEAN):
        Rig(config(models, {ONE: {}, "sample": {"rate": 0, "always_if": f"score.{MEAN} < 1"}}, {MEAN: {"metrics": [TWO]}}))
    with pytest.raises(oa.ConfigError, match="is evaluated on every turn"):
        Rig(config(models, {MEAN: {"metrics": ["code_empty_answer"]}, "sample": {"rate": 0.5}}))
