"""Judged metrics on live turns, from the agent's spans to every outlet, with a real judge on loopback."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.trace import TraceState

from otel_agenteval.core import semconv
from otel_agenteval.core.score import Score
from otel_agenteval.evaluation import redaction
from otel_agenteval.evaluation.scored_turn import Root
from otel_agenteval.judging.dispatcher import Dispatcher
from otel_agenteval.judging.job import VERSION, Decision, Gathering, InnerOutcome, NewerPayload, Payload, Waiting
from otel_agenteval.judging.queues import Job
from otel_agenteval.judging.sampling import Chance
from otel_agenteval.judging.session import warned
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


def held(rig: Rig) -> Dispatcher:
    """Return the rig's judging without its threads. The test runs their work with ``step``."""
    judging = rig.engine.judging
    assert judging is not None
    judging.may_start = False
    return judging


def drain(rig: Rig, timeout: float = 60.0) -> bool:
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


def test_judge_call_that_a_gateway_traces_is_not_judged(models: ScriptedModels) -> None:
    """Report: a gateway's spans of judge calls became turns, which were judged again, until the budget was spent."""
    models.play(GOOD)
    with Rig(config(models)) as rig:
        rig.run("vip")
        assert drain(rig)
        [call] = models.requests
        assert {context[-3:] for context in models.trace_contexts if context} == {"-00"}, "sampled by the gateway"
        system, question = (message["content"] for message in call["messages"])
        rig.run("gateway", user=f"{system}\n\n{question}")
        assert drain(rig)
        assert len(models.requests) == 1
        rig.run("gateway", user=f"What does this mean: {system}")
        models.unused.append(GOOD)
        assert drain(rig)
        assert len(models.requests) == 2


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
        judging = held(rig)
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


@pytest.mark.parametrize(
    ("status", "judge", "found"),
    [
        (401, {}, ["http_401", "check judge.base_url, judge.model, and judge.api_key"]),
        (404, {}, ["http_404", "path or model not found"]),
        (500, {"budget": {"usd_per_hour": 1}}, ["unpriced", "set judge.prices, or limit calls"]),
        (422, {}, None),
    ],
)
def test_lasting_judge_error_is_logged_once(
    status: int, judge: dict[str, Any], found: list[str] | None, models: ScriptedModels, caplog: pytest.LogCaptureFixture
) -> None:
    warned.clear()
    models.play(*[status] * 4)
    with Rig(config(models, METRIC, "llm_task_completion", judge=judge)) as rig:
        for _ in range(2):
            rig.run()
            assert drain(rig)
    lines = [line for line in caplog.messages if line.startswith("judge scripted")]
    assert len(lines) == (found is not None)
    assert all(text in lines[0] for text in (*(found or ()), models.url) if found)


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


def test_a_job_that_never_ends_is_given_up(models: ScriptedModels) -> None:
    models.play()
    clock = FakeClock()
    with Rig(config(models, judge={"attempts": 2}), clock=clock) as rig:
        judging = held(rig)
        rig.run()
        rig.turns()
        for _ in range(2):  # the process that claims it dies
            assert judging.queue.claim(1, 1.0)
            clock.advance(2)
        assert judging.step()
        assert events(rig)[0][semconv.ERROR_TYPE] == "attempts_exhausted"
        assert models.requests == []


def test_what_a_stored_queue_holds_of_a_metric_that_is_gone_is_dropped(models: ScriptedModels, tmp_path: Path) -> None:
    models.play()
    stored = {"queue": {"backend": "sqlite", "path": str(tmp_path / "queue.db")}}
    with Rig(config(models, judge=stored, exit_timeout="1ms")) as rig:
        judging = held(rig)
        rig.run()
        rig.turns()
        assert judging.queue.depth == 1
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

        for owner, name in ((judging.queue, "put_many"), (judging.queue, "claim"), (judging, "plan"), (judging, "_end")):
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


# --- payloads: one codec, which says its version


ROOT = Root(0xA1, 0xB1, False, TraceState([("ot", "th:8")]), {"service.name": "shop"}, "blue", {"team": "sales"})
PLAIN = Payload("turn llm_x 0 1", "llm_x", "t-1", 1, "bot", 5.0, 0.25, Chance(0.5, "rate"), Root(1, 2), b'{"turn_id":"t-1"}')
FULL = replace(
    PLAIN, revision=2, conversation=True, new=False, supersedes="t-0", counted_as="t", absorbs=("t-3",), root=ROOT,
    sources={"ground_truth": "dataset"}, decided=Decision("embed_x", 0.24),
    then=(Waiting("turn llm_y 0 1", "llm_y", Chance(0.1, "rate"), (Waiting("turn llm_z 0 1", "llm_z", Chance(1.0, "rule")),)),),
)  # fmt: skip
GATHERING = replace(
    PLAIN, gathering=Gathering(
        (Waiting("turn code_mean 0 1", "code_mean", Chance(0.5, "rate")),),
        {"turn llm_y 0 1": InnerOutcome(Score("llm_y", 0.5, detail={"reason": "a"}), Chance(0.5, "rate"), 0.01)},
        (Waiting("inner turn llm_z 0 1", "llm_z", Chance(1.0, "rule"), (), Decision("embed_x", None)),),
    ),
)  # fmt: skip


@pytest.mark.parametrize("payload", [PLAIN, FULL, GATHERING], ids=["plain", "full", "with composites"])
def test_a_payload_is_read_as_it_was_written(payload: Payload) -> None:
    read = Payload.decode(payload.encode())
    assert (read.root.trace_state or TraceState()).to_header() == (payload.root.trace_state or TraceState()).to_header()
    assert replace(read, root=payload.root) == payload
    assert replace(read.root, trace_state=None) == replace(payload.root, trace_state=None)


def test_a_payload_of_a_later_version_is_not_guessed_at() -> None:
    later = PLAIN.encode().replace(b'"v":1', b'"v":%d' % (VERSION + 1))
    with pytest.raises(NewerPayload):
        Payload.decode(later)


def stored(models: ScriptedModels, path: Path) -> dict[str, Any]:
    server = {"base_url": models.url, "model": "scripted", "queue": {"backend": "sqlite", "path": str(path)}}
    return {"judge": {**server, "attempts": 2}, "inline": {"metrics": []}, "metrics": ["llm_relevance"]}


def test_a_job_of_a_later_version_stays_for_a_process_that_can_read_it(models: ScriptedModels, tmp_path: Path) -> None:
    models.play()
    clock = FakeClock()
    with Rig(stored(models, tmp_path / "jobs.db"), clock=clock) as rig:
        judging = held(rig)
        judging.queue.put_many([Job("later", b'{"v":99,"form":"another"}\n')])
        for _ in range(5):
            assert judging.step()
            assert not judging.step()
            clock.advance(301)
        assert judging.queue.depth == 1
        assert judging.queue.dead_letters() == []
        assert rig.engine.failures == {}


def test_a_payload_that_is_none_ends_as_a_dead_letter(models: ScriptedModels, tmp_path: Path) -> None:
    models.play()
    clock = FakeClock()
    with Rig(stored(models, tmp_path / "jobs.db"), clock=clock) as rig:
        judging = held(rig)
        judging.queue.put_many([Job("broken", b"\xff\n{}")])
        while judging.queue.depth:
            judging.step()
            clock.advance(301)
        assert [name for name, _ in judging.queue.dead_letters()] == ["broken"]
        assert rig.engine.failures == {"judging": 2}
