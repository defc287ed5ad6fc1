"""Many threads and one queue: jobs are claimed some at a time, none of them is kept back, and none is asked twice."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from otel_agenteval.judging import dispatcher, factory
from otel_agenteval.judging.job import SCORE_BYTES
from otel_agenteval.judging.queues import Job, SqliteQueue
from otel_agenteval.metrics.question import Question
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
            all_there.wait(30)
            asked.append(n)
            return claim(n, lease)

        judging.queue.claim = counted  # type: ignore[method-assign]
        judging.may_start = False
        for _ in range(300):
            rig.run()
        assert rig.engine.flush(30)
        judging.may_start = True
        judging.start(300)
        all_there.set()
        assert rig.engine.drain(60, judges=True)
        assert max(asked) == 6
        assert {key[2]: value for key, value in rig.count("agenteval.results").items()} == {"pass": 300}
        assert len({event.attributes["agenteval.result.id"] for event in rig.log_events()}) == len(rig.log_events()) == 300


def test_what_was_claimed_and_not_begun_is_due_again_after_a_stop(tmp_path: Path, clock: FakeClock) -> None:
    with Rig(config(tmp_path, 32), clock=clock) as rig:
        judging = rig.engine.judging
        assert judging is not None
        judging.may_start = False
        for _ in range(10):
            rig.run()
        assert rig.engine.flush(30)
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
        assert rig.engine.flush(30)
        worker.max_bytes = 2 * SCORE_BYTES
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
            assert full.wait(30)
        assert rig.engine.drain(60, judges=True)
        assert len(asked) == 40
        assert {key[2]: value for key, value in rig.count("agenteval.results").items()} == {"pass": 40}


def test_a_job_that_was_given_back_is_free_before_its_thread_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread may claim it in that moment: it does it, and does not leave it to one that is at it no more."""
    with Rig(config(tmp_path, 4)) as rig:
        judging = rig.engine.judging
        assert judging is not None
        judging.may_start = False
        rig.run()
        assert rig.engine.flush(30)
        do, give_back = judging._do, judging.queue.retry_at
        began: list[int] = []

        def do_later(job: Job) -> None:
            began.append(job.attempts)
            if len(began) == 1:
                judging._give_back(job, judging._now())
            else:
                do(job)

        def give_back_and_step(job: Job | str, at: float, *, counted: bool = True) -> bool:
            given = give_back(job, at, counted=counted)
            assert judging.step()
            return given

        monkeypatch.setattr(judging, "_do", do_later)
        monkeypatch.setattr(judging.queue, "retry_at", give_back_and_step)
        assert judging.step()
        assert rig.engine.flush(30)
        assert (began, judging.queue.depth, judging._under_way, judging._leases._held) == ([1, 1], 0, {}, {})


def test_a_job_that_comes_to_no_end_is_not_held_for_ever(tmp_path: Path, clock: FakeClock) -> None:
    with Rig({**config(tmp_path, 4)}, clock=clock) as rig:
        judging = rig.engine.judging
        assert judging is not None
        judging.may_start = False
        rig.run()
        assert rig.engine.flush(30)
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


class _Waits(SameReply):
    """Answers once it is let, and says how many ask."""

    def __init__(self) -> None:
        super().__init__({"score": 90})
        self.asked = threading.Semaphore(0)
        self.let = threading.Event()

    def answer(self, question: Question) -> dict[str, Any]:
        self.asked.release()
        self.let.wait(30)
        return super().answer(question)


def test_one_thread_that_waits_looks_for_jobs_of_others_and_hands_that_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = _Waits()
    monkeypatch.setattr(factory, "judge_from", lambda _: judge)
    monkeypatch.setattr(dispatcher, "_POLL", 0.005)
    with Rig(config(tmp_path, 4)) as rig:
        judging = rig.engine.judging
        assert judging is not None
        queue, jobs, looked = judging.queue, [], []
        enough = threading.Event()
        put, claim = queue.put_many, queue.claim

        def kept(some: Sequence[Job]) -> list[Job]:
            jobs.extend(some)
            return []

        def counted(n: int, lease: float) -> list[Job]:
            looked.append(threading.get_ident())
            if len(looked) >= 60:
                enough.set()
            return claim(n, lease)

        queue.is_shared = True
        queue.put_many, queue.claim = kept, counted  # type: ignore[method-assign]
        judging.may_start = False
        for _ in range(3):
            rig.run()
        assert rig.engine.flush(30)
        judging.may_start = True
        judging.start(4)
        assert enough.wait(30)
        assert len(set(looked[-30:])) == 1
        for job in jobs:  # as another process puts them in: nobody here is told
            put([job])
            assert judge.asked.acquire(timeout=30)
        judge.let.set()
        assert rig.engine.drain(60, judges=True)
        assert {key[2]: value for key, value in rig.count("agenteval.results").items()} == {"pass": 3}
