"""Many threads share one queue. Each job is claimed promptly, and only once."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from otel_agenteval.judging import factory
from otel_agenteval.judging.job import SCORE_BYTES
from otel_agenteval.judging.queues import Job, SqliteQueue
from otel_agenteval.metrics.question import Question
from tests.judging.test_live import held
from tests.support.clock import FakeClock
from tests.support.judges import SameReply
from tests.support.rig import Rig


def config(path: Path, threads: int) -> dict[str, Any]:
    queue = {"backend": "sqlite", "path": str(path / "q.db")}
    judge = {"base_url": "http://127.0.0.1:1/v1", "model": "m-1", "max_concurrency": threads, "queue": queue}
    return {"judge": judge, "metrics": ["llm_relevance"], "inline": {"metrics": []}}


@pytest.fixture(autouse=True)
def _answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(factory, "judge_from", lambda _: SameReply({"score": 90}))


def test_many_threads_claim_some_at_a_time_and_every_job_is_done_once(tmp_path: Path) -> None:
    with Rig(config(tmp_path, 48)) as rig:
        judging = rig.engine.judging
        assert judging is not None
        asked: list[int] = []
        all_there = threading.Event()
        claim = judging.queue.claim

        def counted(n: int, lease: float) -> list[Job]:
            all_there.wait(60)
            asked.append(n)
            return claim(n, lease)

        judging.queue.claim = counted  # type: ignore[method-assign]
        judging.may_start = False
        for _ in range(300):
            rig.run()
        assert rig.engine.flush(60)
        judging.may_start = True
        judging.start(300)
        all_there.set()
        assert rig.engine.drain(60, judges=True)
        assert max(asked) == 6
        assert {key[2]: value for key, value in rig.count("agenteval.results").items()} == {"pass": 300}
        assert len({event.attributes["agenteval.result.id"] for event in rig.log_events()}) == len(rig.log_events()) == 300


def test_what_was_claimed_and_not_begun_is_due_again_after_a_stop(tmp_path: Path, clock: FakeClock) -> None:
    with Rig(config(tmp_path, 32), clock=clock) as rig:
        judging = held(rig)
        for _ in range(10):
            rig.run()
        assert rig.engine.flush(60)
        judging._threads = [threading.current_thread()] * 32
        begun = judging._next()
        assert begun is not None
        assert len(judging._claimed) == 3
        judging._threads = []
    queue = SqliteQueue(str(tmp_path / "q.db"), 10**9, clock)
    left = queue.claim(100, 60)
    assert len(left) == 9
    assert {job.attempts for job in left} == {1}
    assert begun.id not in {job.id for job in left}
    queue.close()


def test_a_score_waits_for_room_and_is_not_paid_for_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    class Counting(SameReply):
        def answer(self, question: Question) -> dict[str, Any]:
            asked.append(question.stage)
            return super().answer(question)

    monkeypatch.setattr(factory, "judge_from", lambda _: Counting({"score": 90}))
    with Rig(config(tmp_path, 4)) as rig:
        judging, worker = rig.engine.judging, rig.engine.worker
        assert judging is not None
        judging.may_start = False
        for _ in range(40):
            rig.run()
        assert rig.engine.flush(60)
        worker.queue.max_bytes = 2 * SCORE_BYTES
        real, full = worker.put, threading.Event()

        def put(item: Any, size: int) -> bool:
            taken = real(item, size)
            if not taken:
                full.set()
            return taken

        monkeypatch.setattr(worker, "put", put)
        with worker._working:  # it handles nothing
            judging.may_start = True
            judging.start(40)
            assert full.wait(60)
        assert rig.engine.drain(60, judges=True)
        assert len(asked) == 40
        assert {key[2]: value for key, value in rig.count("agenteval.results").items()} == {"pass": 40}


def test_a_job_that_comes_to_no_end_is_not_held_for_ever(tmp_path: Path, clock: FakeClock) -> None:
    with Rig({**config(tmp_path, 4)}, clock=clock) as rig:
        judging = held(rig)
        rig.run()
        assert rig.engine.flush(60)
        job = judging._next()
        assert job is not None
        judging._leases.begin(job)
        judging._under_way[job.id] = job
        other = SqliteQueue(str(tmp_path / "q.db"), 10**9, clock)
        for _ in range(20):
            clock.advance(299)
            judging._leases.beat()
            assert other.claim(1, 60.0) == []
        clock.advance(299)
        judging._leases.beat()  # past ten leases of ten minutes
        clock.advance(302)
        [taken] = other.claim(1, 60.0)
        assert taken.id == job.id
        assert list(judging._leases.confirm([job])) == [job.id]
        other.close()
