"""A queue file that another program has for itself for a while: jobs wait in memory, and the worker goes on."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from otel_agenteval.core import semconv
from otel_agenteval.core.sqlite import SqliteFile
from otel_agenteval.judging.queues import Job, SqliteQueue
from tests.support.clock import FakeClock
from tests.support.judges import ScriptedModels
from tests.support.rig import Rig


@pytest.fixture
def queue(tmp_path: Path, clock: FakeClock) -> Iterator[SqliteQueue]:
    queue = SqliteQueue(str(tmp_path / "queue.db"), 1_000_000, clock, held_bytes=10_000)
    queue.put_many([Job("before", b"x")])
    yield queue
    queue.close()


@contextmanager
def locked(path: Path) -> Iterator[None]:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield
        other.execute("ROLLBACK")


def jobs(*names: str) -> list[Job]:
    return [Job(name, b"x" * 100) for name in names]


def ids(found: list[Job]) -> list[str]:
    return [job.id for job in found]


def test_jobs_wait_in_memory_while_the_file_is_locked(queue: SqliteQueue, tmp_path: Path, clock: FakeClock) -> None:
    with locked(tmp_path / "queue.db"):
        for number in range(20):
            assert queue.put_many(jobs(f"a{number}")) == []
        assert (queue.unsent, queue.depth) == (20, 21)
        assert not queue.flush()
        with pytest.raises(sqlite3.OperationalError):
            queue.claim(1, 60.0)
    clock.advance(2)
    assert ids(queue.claim(100, 60.0)) == ["before", *(f"a{number}" for number in range(20))]
    assert (queue.unsent, queue.depth) == (0, 21)


def test_jobs_in_memory_are_bounded_and_returned(queue: SqliteQueue, tmp_path: Path) -> None:
    with locked(tmp_path / "queue.db"):
        left = [job for number in range(50) for job in queue.put_many(jobs(f"a{number}"))]
        assert 0 < queue.unsent < 50
        assert len(left) == 50 - queue.unsent


def test_job_that_is_put_twice_while_locked_is_done_once(queue: SqliteQueue, tmp_path: Path, clock: FakeClock) -> None:
    with locked(tmp_path / "queue.db"):
        queue.put_many(jobs("a", "before"))
        queue.put_many(jobs("a"))
    clock.advance(2)
    assert ids(queue.claim(100, 60.0)) == ["before", "a"]


def test_ends_of_claims_wait_while_the_file_is_locked(queue: SqliteQueue, tmp_path: Path, clock: FakeClock) -> None:
    queue.put_many(jobs("done", "dead", "again", "held"))
    claimed = {job.id: job for job in queue.claim(100, 600.0)}
    with locked(tmp_path / "queue.db"):
        assert queue.ack_many([claimed["done"], claimed["before"]]) == []
        assert queue.dead(claimed["dead"], "why")
        assert queue.retry_at(claimed["again"], clock.time_ns() / 1e9 + 5, counted=False)
    clock.advance(10)
    assert [(job.id, job.attempts) for job in queue.claim(100, 60.0)] == [("again", 1)]
    assert queue.dead_letters() == [("dead", "why")]
    assert queue.depth == 2


def test_end_of_a_claim_that_was_lost_changes_nothing(queue: SqliteQueue, tmp_path: Path, clock: FakeClock) -> None:
    (mine,) = queue.claim(1, 60.0)
    with locked(tmp_path / "queue.db"):
        assert queue.ack(mine)
    clock.advance(100)
    other = SqliteQueue(str(tmp_path / "queue.db"), 1_000_000, clock)
    assert ids(other.claim(1, 600.0)) == ["before"]
    queue.flush()
    assert queue.depth == 1
    other.close()


def test_locked_file_is_tried_once_in_a_while(
    queue: SqliteQueue, tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[Any] = []
    transaction = SqliteFile.transaction
    monkeypatch.setattr(SqliteFile, "transaction", lambda self: tried.append(self) or transaction(self))  # type: ignore[func-returns-value]
    with locked(tmp_path / "queue.db"):
        for _ in range(3):
            for number in range(20):
                queue.put_many(jobs(f"a{number}"))
                queue.ack("before")
            clock.advance(2)
    assert len(tried) == 3


def test_jobs_that_the_file_never_got_are_lost_when_it_closes(queue: SqliteQueue, tmp_path: Path) -> None:
    with locked(tmp_path / "queue.db"):
        queue.put_many(jobs("a", "b"))
        assert ids(queue.close()) == ["a", "b"]
        assert queue.close() == []


def test_child_does_not_hold_jobs_of_its_parent(queue: SqliteQueue, tmp_path: Path) -> None:
    with locked(tmp_path / "queue.db"):
        queue.put_many(jobs("a"))
        pid = os.fork()
        if pid == 0:
            os._exit(queue.unsent)
        assert os.waitpid(pid, 0)[1] == 0


def test_judge_jobs_survive_a_locked_queue(tmp_path: Path, models: ScriptedModels) -> None:
    models.play(*[{"score": 90, "reason": "It answers."}] * 31)
    path = tmp_path / "queue.db"
    judge = {"base_url": models.url, "model": "m", "queue": {"backend": "sqlite", "path": str(path)}}
    with Rig({"judge": judge, "metrics": ["llm_relevance"], "inline": {"metrics": ["code_latency"]}}) as rig:
        rig.run(says="Before.")
        assert rig.engine.drain(60, judges=True)
        with locked(path):
            for number in range(30):
                rig.run(says=f"Answer {number}.")
            assert len(rig.scored()) >= 31, "computed scores leave meanwhile"
            assert rig.engine.telemetry.read(semconv.QUEUE_HELD).values[("judge",)] == 30
        assert rig.engine.drain(60, judges=True)
        judged = [one for one in rig.scored() if one.judged is not None]
        assert len(judged) == 31
        assert rig.count("agenteval.dropped") == {}
