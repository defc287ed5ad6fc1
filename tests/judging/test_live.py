"""Judged metrics on live turns: from the agent's spans to every outlet, with a real judge on loopback."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.core import semconv
from otel_agenteval.evaluation import redaction
from otel_agenteval.judging.queues import Job
from otel_agenteval.outlets.store.reader import StoreReader
from tests.support.clock import FakeClock
from tests.support.judges import ScriptedModels
from tests.support.rig import Rig

METRIC = "llm_relevance"
GOOD = {"score": 90, "reason": "It answers."}


def config(models: ScriptedModels | None, *metrics: Any, judge: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    asked = {} if models is None else {"base_url": models.url, "model": "scripted", "max_concurrency": 2}
    return {
        "judge": {**asked, **(judge or {})},
        "metrics": list(metrics) or [METRIC],
        "inline": {"metrics": ["code_latency"]},
        **more,
    }


def drain(rig: Rig, timeout: float = 10.0) -> bool:
    return rig.engine.drain(timeout, judges=True)


def results(rig: Rig, metric: str = METRIC) -> dict[str, float]:
    return {key[2]: value for key, value in rig.count("agenteval.results").items() if key[0] == metric}


def events(rig: Rig, metric: str = METRIC) -> list[dict[str, Any]]:
    return [dict(event.attributes) for event in rig.log_events() if event.attributes[semconv.EVALUATION_NAME] == metric]


def test_a_turn_is_judged_and_its_score_leaves_through_every_outlet(models: ScriptedModels, tmp_path: Path) -> None:
    models.play(GOOD)
    file = tmp_path / "scores.jsonl"
    prices = {"scripted": {"input": 1, "output": 1}}
    with Rig(config(models, judge={"prices": prices}, outlets={"jsonl": str(file)})) as rig:
        rig.run()
        assert drain(rig)
        [event] = events(rig)
        assert event[semconv.SCORE_VALUE] == 0.9
        assert event[semconv.SAMPLE_PROBABILITY] == 1.0
        assert event[semconv.JUDGE_MODEL] == "scripted"
        assert event[semconv.METRIC_KIND] == "llm"
        [inline] = events(rig, "code_latency")
        assert event[semconv.TURN_ID] == inline[semconv.TURN_ID]
        assert semconv.SAMPLE_PROBABILITY not in inline
        assert METRIC not in rig.score_events("invoke_agent bot")
        assert results(rig) == {"pass": 1}
        assert rig.count("agenteval.turns").popitem()[1] == 1
        assert rig.count("agenteval.judge.requests") == {("ok",): 1}
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        [line] = [line for line in lines if line["metric"] == METRIC]
        assert (line["value"], line["sample_probability"], line["judge_model"]) == (0.9, 1.0, "scripted")
        assert line["result_id"] == event[semconv.RESULT_ID]
        why = rig.engine.why(event[semconv.TURN_ID])
        assert why == {"code_latency": "scored", METRIC: "scored"}
        assert rig.engine.judging is not None
        assert (rig.engine.judging.queue.depth, rig.engine.judging.queue.bytes) == (0, 0)


def test_what_the_judge_was_asked_is_kept_with_the_content_of_turns_word_by_word(models: ScriptedModels, tmp_path: Path) -> None:
    models.play("No object.", GOOD)
    path = tmp_path / "scores.db"
    with Rig(config(models, outlets={"store": {"path": str(path), "content": True}})) as rig:
        rig.run()
        assert drain(rig)
        [event] = events(rig)
    with StoreReader(path) as reader:
        first, second = reader.questions(event[semconv.RESULT_ID])
    assert [first["question"], second["question"]] == models.asked
    assert (first["reply"], json.loads(second["reply"])) == ("No object.", GOOD)
    assert {first["model"], second["model"]} == {"scripted"}


def test_without_a_judge_the_metric_is_skipped_and_says_so() -> None:
    with Rig(config(None)) as rig:
        rig.run()
        [turn] = rig.turns()
        assert results(rig) == {"skipped": 1}
        assert events(rig) == []
        assert (rig.engine.why(turn.turn_id) or {})[METRIC] == "skipped: no_judge"


def test_flush_does_not_wait_for_judges(models: ScriptedModels) -> None:
    models.play(GOOD)
    with Rig(config(models, judge={"budget": {"calls_per_hour": 1}}), clock=FakeClock()) as rig:
        rig.run()
        rig.run()
        assert rig.engine.flush(10)
        assert len(events(rig, "code_latency")) == 2
        assert not drain(rig, 0.3)


def test_turns_that_are_not_sampled_are_counted(models: ScriptedModels) -> None:
    models.play()
    with Rig(config(models, {METRIC: {}, "sample": {"rate": 0}})) as rig:
        rig.run()
        assert drain(rig)
        [turn] = rig.turns()
        assert results(rig) == {"sampled_out": 1}
        assert (rig.engine.why(turn.turn_id) or {})[METRIC] == "sampled out (p=0)"
        assert models.requests == []


def test_a_turn_that_the_condition_names_is_judged_with_probability_one(models: ScriptedModels) -> None:
    models.play(GOOD)
    with Rig(
        config(models, {METRIC: {}, "sample": {"rate": 0, "always_if": "agent == 'vip' and score.code_latency >= 0"}})
    ) as rig:
        rig.run("bot")
        rig.run("vip")
        assert drain(rig)
        assert [event[semconv.SAMPLE_PROBABILITY] for event in events(rig)] == [1.0]
        assert results(rig) == {"sampled_out": 1, "pass": 1}


def test_what_can_be_said_without_asking_is_not_queued(models: ScriptedModels) -> None:
    models.play()
    with Rig(config(models)) as rig:
        with rig.agent():
            rig.tool()
        assert drain(rig)
        assert models.requests == []
        assert results(rig) == {"skipped": 1}


def test_a_judge_that_fails_is_asked_again_later_and_then_answers(models: ScriptedModels) -> None:
    models.play(500, 500, 500, GOOD)
    clock = FakeClock()
    with Rig(config(models, judge={"deadline": "20s"}), clock=clock) as rig:
        judging = rig.engine.judging
        assert judging is not None
        judging.may_start = False  # the test does what its threads would
        rig.run()
        [turn] = rig.turns()
        assert judging.step()
        assert (rig.engine.why(turn.turn_id) or {})[METRIC] == "waiting: http_500"
        assert not judging.step()
        clock.advance(10)
        assert judging.step()
        assert events(rig)[0][semconv.SCORE_VALUE] == 0.9
        assert results(rig) == {"pass": 1}
        assert rig.count("agenteval.judge.requests") == {("error",): 1, ("ok",): 1}


def test_after_all_attempts_the_score_is_an_error(models: ScriptedModels) -> None:
    models.play(401)
    with Rig(config(models)) as rig:
        rig.run()
        assert drain(rig)
        [event] = events(rig)
        assert event[semconv.ERROR_TYPE] == "http_401"
        assert semconv.SCORE_VALUE not in event
        assert results(rig) == {"error": 1}
        assert rig.engine.judging is not None
        [(_, reason)] = rig.engine.judging.queue.dead_letters()
        assert reason == "http_401"


def test_past_the_budget_jobs_wait_for_the_next_hour(models: ScriptedModels) -> None:
    models.play(GOOD, GOOD)
    clock = FakeClock()
    with Rig(config(models, judge={"budget": {"calls_per_hour": 1}, "max_concurrency": 1}), clock=clock) as rig:
        rig.run()
        rig.run()
        assert not drain(rig, 1.0)
        assert results(rig) == {"pass": 1}
        assert rig.count("agenteval.judge.requests")[("gated",)] >= 1
        assert rig.engine.telemetry.read("agenteval.budget.remaining.calls").values == {("", "hour"): 0}
        clock.advance(3661)  # what was spent is counted by minutes
        assert drain(rig)
        assert results(rig) == {"pass": 2}


def test_what_shutdown_leaves_behind_is_counted(models: ScriptedModels) -> None:
    models.play(*[GOOD] * 5)
    limited = config(models, judge={"budget": {"calls_per_hour": 1}}, exit_timeout="5s")
    with Rig(limited, clock=FakeClock()) as rig:
        for _ in range(5):
            rig.run()
        rig.engine.shutdown()
        assert results(rig) == {"pass": 1, "dropped": 4}


def test_a_full_queue_drops_and_counts(models: ScriptedModels) -> None:
    models.play()
    with Rig(config(models, judge={"queue": {"max_bytes": 100}})) as rig:
        rig.run()
        assert drain(rig)
        [turn] = rig.turns()
        assert results(rig) == {"dropped": 1}
        assert (rig.engine.why(turn.turn_id) or {})[METRIC] == "dropped: queue_full"


@pytest.mark.parametrize("rate", [0.0, 0.3, 1.0])
def test_every_turn_is_accounted_for(models: ScriptedModels, rate: float) -> None:
    models.play(*[GOOD, 400] * 20)
    with Rig(config(models, {METRIC: {}, "sample": {"rate": rate}})) as rig:
        for _ in range(20):
            rig.run()
        assert drain(rig, 20.0)
        assert sum(results(rig).values()) == 20


def test_dollars_are_bounded_and_reported(models: ScriptedModels, monkeypatch: pytest.MonkeyPatch) -> None:
    models.play(GOOD, GOOD)
    answer = models.answer

    def with_usage(path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        status, found = answer(path, body)
        return status, {**found, "usage": {"prompt_tokens": 1_000_000, "completion_tokens": 0}}

    monkeypatch.setattr(models, "answer", with_usage)
    priced = {"prices": {"scripted": {"input": 2, "output": 0}}, "budget": {"usd_per_hour": 1.5}, "max_concurrency": 1}
    clock = FakeClock()
    with Rig(config(models, judge=priced), clock=clock) as rig:
        telemetry = rig.engine.telemetry
        assert telemetry.read("agenteval.budget.remaining.usd").values == {("", "hour"): 1.5}
        rig.run()
        assert drain(rig)
        assert events(rig)[0][semconv.JUDGE_COST] == 2.0
        assert rig.count("agenteval.judge.cost.usd") == {(): 2.0}
        assert telemetry.read("agenteval.budget.remaining.usd").values == {("", "hour"): 0.0}
        rig.run()
        assert not drain(rig, 0.3)
        clock.advance(3661)  # what was spent is counted by minutes
        assert drain(rig)
        assert results(rig) == {"pass": 2}


def test_a_model_without_a_price_is_not_asked_where_dollars_are_bounded(models: ScriptedModels) -> None:
    models.play(GOOD)
    with Rig(config(models, judge={"budget": {"usd_per_hour": 1}})) as rig:
        rig.run()
        assert drain(rig)
        assert results(rig) == {"error": 1}
        assert events(rig)[0][semconv.ERROR_TYPE] == "unpriced"
        assert models.requests == []


def test_a_whole_conversation_is_judged_when_it_ends(models: ScriptedModels) -> None:
    models.play(GOOD)
    given = {"conversation": {"metrics": [METRIC]}, **config(models)}
    given["metrics"] = []
    with Rig(given) as rig:
        for text in ("one", "two"):
            rig.run(says=text, attributes={"gen_ai.conversation.id": "c-1"})
        rig.turns()
        assert rig.engine.end_conversation("c-1")
        assert drain(rig)
        [event] = events(rig)
        assert event[semconv.CONVERSATION_ID] == "c-1"
        assert results(rig) == {"pass": 1}
        assert sum(rig.count("agenteval.turns").values()) == 2


def test_a_queue_whose_file_cannot_be_used_costs_only_judged_scores(models: ScriptedModels, tmp_path: Path) -> None:
    models.play()
    stored = {"queue": {"backend": "sqlite", "path": str(tmp_path / "missing" / "queue.db")}}
    with Rig(config(models, judge=stored)) as rig:
        rig.run()
        assert not drain(rig, 0.2)
        [turn] = rig.turns()
        assert (rig.engine.why(turn.turn_id) or {}) == {"code_latency": "scored", METRIC: "waiting"}
        assert results(rig) == {}
        assert rig.engine.failures["judge_queue"] >= 1
    assert results(rig) == {"dropped": 1}, "the process has ended before the file could be used"


def test_references_reach_the_judged_score_which_names_their_source(models: ScriptedModels) -> None:
    @oa.metric(needs=("ground_truth",))
    def llm_same(turn: oa.Turn, judge: Any) -> float:
        """Whether the answer says what is true."""
        if turn.output == turn.ground_truth:
            return 1.0
        found = judge.ask(
            "same", "Compare.", {"answer": turn.output, "truth": turn.references["ground_truth"]}, '{"score": 0-100}'
        )
        return float(found["score"]) / 100

    models.play({"score": 40})
    with Rig(config(models, {"llm_same": {}, "sample": {"rate": 1}}, references={"given": [{"ground_truth": "Paris."}]})) as rig:
        rig.run()
        rig.run(says="Lyon.")
        assert drain(rig)
        judged = [scored for scored in rig.scored() if scored.judged is not None]
        assert [scored.scores[0].value for scored in judged] == [1.0, 0.4]
        assert [scored.scores[0].detail["reference_from"] for scored in judged] == [{"ground_truth": "config"}] * 2
        assert [event[semconv.SAMPLE_PROBABILITY] for event in events(rig, "llm_same")] == [1.0, 1.0]
        assert len(models.requests) == 1


def test_a_job_that_never_ends_is_given_up(models: ScriptedModels) -> None:
    models.play()
    clock = FakeClock()
    with Rig(config(models, judge={"attempts": 2}), clock=clock) as rig:
        judging = rig.engine.judging
        assert judging is not None
        judging.may_start = False
        rig.run()
        rig.turns()
        for _ in range(2):  # the process that claims it dies
            assert judging.queue.claim(1, 1.0)
            clock.advance(2)
        assert judging.step()
        assert events(rig)[0][semconv.ERROR_TYPE] == "attempts_exhausted"
        assert models.requests == []


def test_a_job_that_cannot_be_read_is_dropped_after_all_attempts(models: ScriptedModels) -> None:
    models.play()
    clock = FakeClock()
    with Rig(config(models, judge={"attempts": 2}), clock=clock) as rig:
        judging = rig.engine.judging
        assert judging is not None
        judging.may_start = False
        rig.run()
        rig.turns()
        [job] = judging.queue.claim(1, 60.0)
        judging.queue.ack(job.id)
        judging.queue.put_many([Job("other", job.payload.partition(b"\n")[0] + b'\n{"turn_id": ')])
        for _ in range(2):
            assert judging.step()
            clock.advance(10)
        assert judging.queue.depth == 0
        assert judging.queue.dead_letters() == [("other", "JSONDecodeError")]
        assert results(rig) == {"dropped": 1}


def test_what_a_stored_queue_holds_of_a_metric_that_is_gone_is_dropped(models: ScriptedModels, tmp_path: Path) -> None:
    models.play()
    stored = {"queue": {"backend": "sqlite", "path": str(tmp_path / "queue.db")}}
    with Rig(config(models, judge=stored, exit_timeout="1ms")) as rig:
        assert rig.engine.judging is not None
        rig.engine.judging.may_start = False
        rig.run()
        rig.turns()
        assert rig.engine.judging.queue.depth == 1
    with Rig(config(models, "llm_coherence", judge=stored)) as rig:
        assert drain(rig)
        assert results(rig) == {"dropped": 1}


def test_nothing_of_it_runs_on_the_agent_s_thread(models: ScriptedModels, monkeypatch: pytest.MonkeyPatch) -> None:
    models.play(GOOD)
    with Rig(config(models)) as rig:
        judging = rig.engine.judging
        assert judging is not None
        seen: set[str] = set()

        def noting(real: Any) -> Any:
            def noted(*args: Any) -> Any:
                seen.add(threading.current_thread().name)
                return real(*args)

            return noted

        for owner, name in ((judging.queue, "put_many"), (judging.queue, "claim"), (judging, "plan"), (judging, "_do")):
            monkeypatch.setattr(owner, name, noting(getattr(owner, name)))
        rig.run()
        assert drain(rig)
        assert seen == {"otel-agenteval", "otel-agenteval-judge"}


@pytest.mark.parametrize("incomplete", ["skip", "judge"])
def test_a_turn_that_was_cut_off_is_judged_only_if_that_is_wanted(models: ScriptedModels, incomplete: str) -> None:
    models.play(*[GOOD] * 5)
    with Rig(config(models, judge={"incomplete": incomplete}, turn={"max_spans": 3})) as rig:
        rig.run()
        with rig.agent("bot"):
            for _ in range(4):
                rig.chat("How far is it?", "Far.")
        assert drain(rig)
        cut = next(event for event in events(rig, "code_latency") if not event[semconv.TURN_COMPLETE])
        why = rig.engine.why(cut[semconv.TURN_ID])
        assert why is not None
        if incomplete == "skip":
            assert len(models.requests) == results(rig)["pass"] == 1
            assert results(rig)["skipped"] >= 1
            assert why[METRIC] == "skipped: incomplete_turn"
        else:
            assert len(models.requests) == results(rig)["pass"] > 1
            assert why[METRIC] == "scored"


def test_content_leaves_with_the_scores_only_where_that_is_wanted_and_redacted(models: ScriptedModels) -> None:
    models.play(GOOD, GOOD)
    for wanted in (False, True):
        with Rig(config(models, privacy={"export_content": wanted})) as rig:
            rig.run(user="I am jo@example.org, how far is it?", says="Far. " * 2_000)
            assert drain(rig)
            for metric in (METRIC, "code_latency"):
                [event] = events(rig, metric)
                assert event.get(semconv.TURN_INPUT) == ("I am [EMAIL_1], how far is it?" if wanted else None)
                assert len(event.get(semconv.TURN_OUTPUT, "")) == (4_096 if wanted else 0)


def test_content_that_cannot_be_redacted_stays_here_and_its_scores_leave(
    models: ScriptedModels, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: Any) -> dict[str, str]:
        raise ValueError("redaction failed")

    monkeypatch.setattr(redaction, "exported", failing)
    models.play(GOOD)
    with Rig(config(models, privacy={"export_content": True})) as rig:
        rig.run()
        assert drain(rig)
        for metric in (METRIC, "code_latency"):
            [event] = events(rig, metric)
            assert semconv.TURN_INPUT not in event
        assert len(models.requests) == 1
