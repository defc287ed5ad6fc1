"""Waiting jobs keep earlier results, don't wait for jobs that fail on a server, and don't overload servers."""

from __future__ import annotations

import itertools
import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from otel_agenteval.config.loader import load_config
from otel_agenteval.core import semconv
from otel_agenteval.core.pacing import CircuitBreaker
from otel_agenteval.judging import factory
from otel_agenteval.judging.models import judge_from
from tests.judging.test_live import held
from tests.models.wire import Request, Response, Server, said
from tests.support.clock import FakeClock
from tests.support.judges import ScriptedModels
from tests.support.rig import Rig
from tests.support.servers import until

GOOD = {"score": 90, "reason": "It answers."}
METRIC = "llm_relevance"


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    """Return a clock that the judge's sleeping and the test move."""
    clock = FakeClock()
    monkeypatch.setattr(factory, "judge_from", lambda config: judge_from(config, clock=clock, sleep=clock.advance))
    return clock


def given(server: Server, *metrics: Any, **judge: Any) -> dict[str, Any]:
    return {
        "judge": {"base_url": server.url, "model": "m", "max_concurrency": 1, **judge},
        "metrics": list(metrics) or [METRIC], "inline": {"metrics": []},
    }  # fmt: skip


def rig_of(server: Server, clock: FakeClock, *metrics: Any, **judge: Any) -> Rig:
    rig = Rig(given(server, *metrics, **judge), clock=clock)
    held(rig)
    return rig


def work(rig: Rig) -> None:
    """Do all due jobs, and their follow-up jobs."""
    judging = held(rig)
    rig.turns()
    for _ in range(100):
        worked = judging.step()
        assert rig.engine.flush(60)
        if not worked:
            return


def outcomes(rig: Rig) -> dict[str, float]:
    found: dict[str, float] = {}
    for key, value in rig.count(semconv.RESULTS).items():
        found[key[2]] = found.get(key[2], 0) + value
    return found


def test_a_question_that_a_server_always_fails_on_holds_no_other_up(server: Server, clock: FakeClock) -> None:
    server.answering = lambda request: (
        Response({"error": "CUDA error"}, 500) if "poison" in request.text else Response(said("openai", json.dumps(GOOD)))
    )
    with rig_of(server, clock) as rig:
        rig.run(says="poison")
        for _ in range(20):  # nobody else is there: it opens the breaker, and then tries again and again
            work(rig)
            clock.advance(5)
        judging = held(rig)
        assert judging.runner.breakers.of("llm").until > 0
        rig.run(says="good")
        for _ in range(700):
            work(rig)
            if outcomes(rig).get("pass"):
                break
            clock.advance(0.5)
        assert outcomes(rig) == {"pass": 1}
        for _ in range(40):
            clock.advance(31)
            rig.run(says="good")
            work(rig)
        assert outcomes(rig).get("error") == 1
        (scored,) = [one for one in rig.scored() if one.judged and one.scores[0].status == "error"]
        assert scored.scores[0].error_type == "http_500"


def test_a_server_that_wants_to_be_left_alone_for_long_is(server: Server, clock: FakeClock) -> None:
    server.answering = lambda _: Response({}, 429, {"Retry-After": "1800"})
    with rig_of(server, clock, attempts=2) as rig:
        for number in range(5):
            rig.run(says=f"{number}")
        started = clock.monotonic()
        for _ in range(100):
            work(rig)
            clock.advance(15)
        assert clock.monotonic() - started < 1_800
        assert len(server.requests) == 1
        waiting = {(rig.engine.why(turn.turn_id) or {})[METRIC] for turn in rig.turns()}
        assert waiting == {"waiting: http_429", "waiting: rate_limited"}
        server.answering = lambda _: Response(said("openai", json.dumps(GOOD)))
        for _ in range(60):
            work(rig)
            clock.advance(15)
        assert outcomes(rig) == {"pass": 5}


def test_a_server_that_is_down_holds_up_its_own_jobs_only(server: Server, clock: FakeClock) -> None:
    other = Server()
    other.answering = lambda _: Response({}, 503)
    server.answering = lambda _: Response(said("openai", json.dumps(GOOD)))
    more: dict[str, Any] = {
        "servers": {"big": {"base_url": other.url}},
        "choose": [{"metric": "llm_coherence", "model": "big/x"}],
    }
    with rig_of(server, clock, METRIC, "llm_coherence", **more) as rig:
        for _ in range(10):
            rig.run()
            work(rig)
            clock.advance(5)
        done = {key[0]: value for key, value in rig.count(semconv.RESULTS).items()}
        assert done == {METRIC: 10}
        assert len(other.requests) < 10
        other.answering = server.answering
        for _ in range(20):
            clock.advance(31)
            work(rig)
        assert {key[0]: value for key, value in rig.count(semconv.RESULTS).items()} == {METRIC: 10, "llm_coherence": 10}
    other.close()


def test_a_budget_that_cannot_be_read_stops_questions_and_loses_no_job(server: Server, clock: FakeClock, tmp_path: Path) -> None:
    file = str(tmp_path / "queue.db")
    server.answering = lambda _: Response(said("openai", json.dumps(GOOD)))
    queue = {"backend": "sqlite", "path": file}
    with rig_of(server, clock, queue=queue, budget={"calls_per_hour": 100}) as rig:
        rig.run()
        work(rig)
        assert outcomes(rig) == {"pass": 1}
        _change(file, "ALTER TABLE spent RENAME TO away")
        rig.run()
        for _ in range(5):
            work(rig)
            clock.advance(16)
        assert (outcomes(rig), len(server.requests)) == ({"pass": 1}, 1)
        assert rig.engine.failures["judge_budget"] == 5
        _change(file, "ALTER TABLE away RENAME TO spent")
        work(rig)
        assert (outcomes(rig), len(server.requests)) == ({"pass": 2}, 2)


def test_waiting_jobs_use_a_raised_budget(server: Server, clock: FakeClock, tmp_path: Path) -> None:
    """A daily limit is used up at once. After a restart with a higher limit, waiting jobs don't wait until the next day."""
    server.answering = lambda _: Response(said("openai", json.dumps(GOOD)))
    queue = {"backend": "sqlite", "path": str(tmp_path / "queue.db")}
    with rig_of(server, clock, queue=queue, budget={"calls_per_day": 2, "soft": 1.0}) as rig:
        for _ in range(4):
            rig.run()
        work(rig)
        clock.advance(3_600)
        work(rig)
        assert outcomes(rig) == {"pass": 2}
    with rig_of(server, clock, queue=queue, budget={"calls_per_day": 20, "soft": 1.0}) as rig:
        clock.advance(600)
        work(rig)
        assert outcomes(rig) == {"pass": 2}
        assert len(server.requests) == 4


@pytest.mark.parametrize("what", ["missing", "other"])
def test_a_file_that_cannot_be_used_is_reported_at_the_start_with_its_place(
    what: str, server: Server, clock: FakeClock, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server.answering = lambda _: Response(said("openai", json.dumps(GOOD)))
    file = tmp_path / "missing" / "queue.db" if what == "missing" else tmp_path / "queue.db"
    if what == "other":
        file.write_text("something else, and longer than a few bytes")
    queue = {"backend": "sqlite", "path": str(file)}
    with rig_of(server, clock, queue=queue, cache={"path": str(file)}) as rig:
        logged = [record.getMessage() for record in caplog.records]
        assert any(line.startswith("judge.queue.path: ") and str(file.parent) in line for line in logged), logged
        assert any(line.startswith("judge.cache.path: ") for line in logged), logged
        rig.run()
        rig.turns()
        assert outcomes(rig) == {}  # the job waits
        assert rig.engine.failures["judge_queue"] >= 1
        if what == "missing":
            file.parent.mkdir()
        else:
            file.unlink()
        clock.advance(2)
        rig.run()
        work(rig)
        assert outcomes(rig) == {"pass": 2}  # mended without a restart


def test_a_job_whose_end_the_queue_could_not_note_is_not_paid_for_twice(server: Server, clock: FakeClock, tmp_path: Path) -> None:
    file = str(tmp_path / "queue.db")
    server.answering = lambda _: Response(said("openai", json.dumps(GOOD)))
    with rig_of(server, clock, queue={"backend": "sqlite", "path": file, "lease": "60s"}) as rig:
        rig.run()
        rig.turns()
        _change(file, "CREATE TRIGGER full BEFORE DELETE ON jobs BEGIN SELECT RAISE(FAIL, 'database or disk is full'); END")
        with pytest.raises(sqlite3.OperationalError, match=r"judge\.queue\.path"):
            work(rig)
        assert outcomes(rig) == {"pass": 1}
        assert rig.engine.failures["judge_queue"] >= 1
        _change(file, "DROP TRIGGER full")
        clock.advance(61)
        work(rig)
        judging = held(rig)
        assert (outcomes(rig), len(server.requests), judging.queue.depth) == ({"pass": 1}, 1, 0)


@pytest.mark.parametrize("backend", ["memory", "sqlite"])
def test_a_job_that_outlasts_its_lease_is_not_done_twice_at_once(
    backend: str, server: Server, clock: FakeClock, tmp_path: Path
) -> None:
    asked, release = threading.Event(), threading.Event()

    def answer(_: Request) -> Response:
        asked.set()
        return Response(said("openai", json.dumps(GOOD)), wait=release)

    server.answering = answer
    queue = {"lease": "60s", **({"backend": "sqlite", "path": str(tmp_path / "queue.db")} if backend == "sqlite" else {})}
    with rig_of(server, clock, queue=queue, timeout="10m", deadline="20m") as rig:
        judging = held(rig)
        rig.run()
        rig.turns()
        slow = threading.Thread(target=judging.step)
        slow.start()
        assert asked.wait(60)
        clock.advance(61)
        assert judging.step()  # claimed, and left to who does it
        release.set()
        slow.join(60)
        work(rig)
        assert (outcomes(rig), len(server.requests), judging.queue.depth) == ({"pass": 1}, 1, 0)


@pytest.mark.parametrize("restart", [False, True])
def test_a_cascade_of_two_levels_goes_on_after_a_reload_or_a_restart(
    restart: bool, server: Server, clock: FakeClock, tmp_path: Path
) -> None:
    server.answering = lambda _: Response(said("openai", json.dumps({"score": 30, "reason": "No."})))
    names = [METRIC, "llm_coherence", "llm_fluency"]
    metrics: list[Any] = [
        METRIC,
        *(
            {name: {}, "sample": {"rate": 0, "cascade": {"after": first, "judge_if": f"score.{first} < 0.5"}}}
            for first, name in itertools.pairwise(names)
        ),
    ]
    queue = {"backend": "sqlite", "path": str(tmp_path / "queue.db")}
    rig = rig_of(server, clock, *metrics, queue=queue)
    rig.run()
    rig.turns()
    judging = held(rig)
    assert judging.step()  # the first level
    assert rig.engine.flush(60)
    if restart:
        with rig:
            pass
        rig = rig_of(server, clock, *metrics, queue=queue)
    else:
        rig.engine.reload(load_config(given(server, METRIC, queue=queue), env={}))
    with rig:
        work(rig)
        found = {scored.scores[0].metric: scored for scored in rig.scored() if scored.judged}
        assert {"llm_coherence", "llm_fluency"} <= found.keys()
        assert found["llm_fluency"].scores[0].detail["decided_by"] == {"metric": "llm_coherence", "value": 0.3}
        rig.run()
        work(rig)
        assert len(server.requests) == (6 if restart else 4)  # after the reload one metric is left


def _change(file: str, statement: str) -> None:
    with closing(sqlite3.connect(file)) as db:
        db.execute(statement)
        db.commit()


# --- one outage


def test_the_longer_an_outage_lasts_the_longer_are_its_pauses() -> None:
    clock = FakeClock()
    outage = CircuitBreaker(clock)
    outage.leave(False, None, down=True)
    pauses = []
    for _ in range(24):
        wait, _ = outage.enter()
        assert wait
        pauses.append(round(wait))
        clock.advance(wait + 0.001)
        assert outage.enter() == (0.0, True)
        outage.leave(True, False)
    assert pauses[0] == 30
    assert pauses == sorted(pauses)
    assert pauses[-1] == 300


def test_a_dead_judge_does_not_hold_up_the_embedder(models: ScriptedModels) -> None:
    models.play(vectors={"What is the capital of France?": [1.0, 0.0], "Paris.": [1.0, 0.0]})
    server = {"base_url": models.url, "model": "m"}
    metrics = {"metrics": [METRIC, "embed_coherence"], "inline": {"metrics": []}}
    with Rig({"judge": {**server, "deadline": "1s"}, "embedder": server, **metrics}) as rig:
        judging = rig.engine.judging
        assert judging is not None
        judging.runner.breakers.of("llm").leave(False, None, down=True)
        for _ in range(3):
            rig.run()
        until(
            lambda: {key[0]: n for key, n in rig.count(semconv.RESULTS).items()} == {"embed_coherence": 3}, "the embedder works"
        )
        why = rig.engine.why(rig.turns()[0].turn_id) or {}
        assert why[METRIC] == "waiting: circuit_open"


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        (Response({"error": "CUDA error"}, 500), "failed 5 times in a row: rejected with status 500"),
        (Response({"error": {"code": "insufficient_quota"}}, 429), "judge: rejected with status 429 (the account has no credit)"),
    ],
)
def test_an_outage_and_the_jobs_that_it_costs_are_logged_once(
    response: Response, reason: str, server: Server, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    server.answering = lambda _: response
    with rig_of(server, clock) as rig:
        for number in range(3):
            rig.run(says=f"{number}")
        for _ in range(20):
            work(rig)
            clock.advance(5)
    logged = [record.getMessage() for record in caplog.records if record.name == "otel_agenteval"]
    assert [reason in line for line in logged] == [True, False]
    assert logged[1].startswith("3 waiting judge jobs dropped")
