"""Requirements of every queue, tested on each."""

from __future__ import annotations

import os
import random
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from otel_agenteval.core import semconv
from otel_agenteval.core.sqlite import SqliteFile
from otel_agenteval.judging.queues import Job, JobQueue, MemoryQueue, SqliteQueue
from otel_agenteval.judging.queues.redis import RedisQueue
from tests.support.clock import FakeClock
from tests.support.judges import ScriptedModels
from tests.support.redis_server import RedisServer
from tests.support.rig import Rig

ROOM = 10_000


@pytest.fixture(scope="module")
def redis_server(tmp_path_factory: Any) -> Iterator[RedisServer]:
    """Return a Redis server for all tests of this module."""
    server = RedisServer(tmp_path_factory.mktemp("redis"))
    yield server
    server.stop()


@pytest.fixture(params=["memory", "sqlite", "redis"])
def make(request: Any, tmp_path: Path, clock: FakeClock) -> Iterator[Callable[..., JobQueue]]:
    """Return a function that creates queues with a limit. Queues in the same file or server share their jobs."""
    made: list[JobQueue] = []

    def queue(max_bytes: int = ROOM) -> JobQueue:
        if request.param == "memory":
            return MemoryQueue(max_bytes, clock)
        if request.param == "sqlite":
            made.append(SqliteQueue(str(tmp_path / "queue.db"), max_bytes, clock))
        else:
            made.append(RedisQueue(request.getfixturevalue("redis_server").url, max_bytes, clock, name=str(tmp_path)))
        return made[-1]

    yield queue
    for one in made:
        one.close()


@pytest.fixture
def queue(make: Any) -> JobQueue:
    found: JobQueue = make()
    return found


def job(name: str, priority: int = 0, size: int = 744) -> Job:
    return Job(name, b"x" * size, priority)


def now(clock: FakeClock) -> float:
    return clock.time_ns() / 1e9


def claimed(queue: JobQueue, n: int = 100, lease: float = 60.0) -> list[str]:
    return [job.id for job in queue.claim(n, lease)]


def test_jobs_are_claimed_by_priority_then_in_order(queue: JobQueue) -> None:
    assert queue.put_many([job("a"), job("b", 2), job("c"), job("d", 1), job("e", 2)]) == []
    assert claimed(queue, 3) == ["b", "e", "d"]
    assert claimed(queue) == ["a", "c"]
    assert claimed(queue) == []


def test_depth_and_bytes_hold_claimed_jobs_until_they_are_acknowledged(queue: JobQueue) -> None:
    queue.put_many([job("a"), job("b")])
    assert (queue.depth, queue.bytes) == (2, 2_000)
    claimed(queue)
    assert (queue.depth, queue.bytes) == (2, 2_000)
    queue.ack("a")
    queue.dead("b", "http_401")
    assert (queue.depth, queue.bytes) == (0, 0)
    assert queue.dead_letters() == [("b", "http_401")]


def test_what_was_put_comes_back_as_it_was(queue: JobQueue) -> None:
    queue.put_many([Job("a", b'{"x": "\xc3\xa9"}', 3)])
    [found] = queue.claim(1, 60.0)
    assert (found.payload, found.priority, found.attempts) == (b'{"x": "\xc3\xa9"}', 3, 1)


def test_an_id_is_taken_in_once_also_after_it_is_done(queue: JobQueue) -> None:
    assert queue.put_many([job("a"), job("a")]) == []
    assert queue.put_many([job("a")]) == []
    assert claimed(queue) == ["a"]
    queue.ack("a")
    assert queue.put_many([job("a")]) == []
    assert queue.depth == 0


def test_a_lease_that_ends_gives_the_job_back(queue: JobQueue, clock: FakeClock) -> None:
    queue.put_many([job("a")])
    assert claimed(queue, lease=60.0) == ["a"]
    clock.advance(59)
    assert claimed(queue) == []
    clock.advance(2)
    [again] = queue.claim(1, 60.0)
    assert (again.id, again.attempts) == ("a", 2)


def test_a_job_that_is_given_back_waits_until_it_is_due(queue: JobQueue, clock: FakeClock) -> None:
    queue.put_many([job("a")])
    claimed(queue)
    queue.retry_at("a", now(clock) + 10)
    assert claimed(queue) == []
    clock.advance(11)
    [again] = queue.claim(1, 60.0)
    assert again.attempts == 2


def test_an_attempt_that_does_not_count_is_not_counted(queue: JobQueue, clock: FakeClock) -> None:
    queue.put_many([job("a")])
    claimed(queue)
    queue.retry_at("a", now(clock), counted=False)
    [again] = queue.claim(1, 60.0)
    assert again.attempts == 1


def test_only_a_claimed_job_is_given_back(queue: JobQueue, clock: FakeClock) -> None:
    queue.put_many([job("a")])
    queue.retry_at("a", now(clock) + 100)
    queue.retry_at("unknown", now(clock))
    assert claimed(queue) == ["a"]


# --- leases have owners


def test_the_loser_of_a_lease_changes_nothing_and_learns_of_it(queue: JobQueue, clock: FakeClock) -> None:
    queue.put_many([job("a"), job("b")])
    [late, _] = queue.claim(2, 1.0)
    clock.advance(2)
    [owner] = queue.claim(1, 60.0)
    assert owner.id == late.id == "a"
    assert queue.ack(late) is False
    assert queue.ack_many([late, "unknown"]) == ["a", "unknown"]
    assert queue.dead(late, "timeout") is False
    assert queue.retry_at(late, now(clock), counted=False) is False
    assert queue.extend([late, "unknown"], 60.0) == ["a", "unknown"]
    assert (queue.depth, queue.dead_letters(), claimed(queue)) == (2, [], ["b"])
    assert queue.extend([owner], 60.0) == []
    assert queue.ack(owner) is True
    assert queue.ack(owner) is False
    assert queue.depth == 1


def test_a_job_that_was_given_back_has_no_holder(queue: JobQueue, clock: FakeClock) -> None:
    queue.put_many([job("a")])
    [first] = queue.claim(1, 60.0)
    assert queue.retry_at(first, now(clock) + 10)
    assert not queue.retry_at(first, now(clock))
    assert queue.extend([first], 60.0) == ["a"]
    assert not queue.ack(first)
    clock.advance(11)
    assert claimed(queue) == ["a"]


def test_a_lease_that_is_extended_keeps_the_job(queue: JobQueue, clock: FakeClock) -> None:
    queue.put_many([job("a")])
    [held] = queue.claim(1, 60.0)
    for _ in range(5):
        clock.advance(40)
        assert queue.extend([held], 60.0) == []
        assert claimed(queue) == []
    clock.advance(61)
    assert [one.attempts for one in queue.claim(1, 60.0)] == [2]


def test_a_lease_that_ended_is_still_its_owner_s_until_another_one_is_granted(make: Any, clock: FakeClock) -> None:
    queue = make(1_000)
    queue.put_many([job("a")])
    [held] = queue.claim(1, 1.0)
    clock.advance(2)
    assert [left.id for left in queue.put_many([job("b")])] == ["b"]  # the queue has noticed the end
    assert queue.extend([held], 60.0) == []
    assert [left.id for left in queue.put_many([job("c", 5)])] == ["c"]  # it is claimed: it makes no room
    assert claimed(queue) == []
    clock.advance(61)
    assert [left.id for left in queue.put_many([job("d")])] == ["d"]
    assert queue.retry_at(held, now(clock) + 10)
    assert claimed(queue) == []
    clock.advance(11)
    [again] = queue.claim(1, 1.0)
    clock.advance(2)
    assert [left.id for left in queue.put_many([job("e", 5)])] == ["a"]  # it was thrown out: there is nothing to acknowledge
    assert not queue.ack(again)
    assert claimed(queue) == ["e"]


def test_what_does_not_fit_is_returned(make: Any) -> None:
    queue = make(2_500)
    assert [left.id for left in queue.put_many([job("a"), job("b"), job("c")])] == ["c"]
    assert queue.bytes == 2_000
    assert queue.put_many([job("small", size=100)]) == []


def test_a_more_important_job_takes_the_place_of_the_least_important_oldest(make: Any) -> None:
    queue = make(3_000)
    queue.put_many([job("a", 1), job("b"), job("c")])
    assert [left.id for left in queue.put_many([job("d", 2)])] == ["b"]
    assert [left.id for left in queue.put_many([job("e", 2)])] == ["c"]
    assert [left.id for left in queue.put_many([job("f", 1)])] == ["f"]
    assert claimed(queue) == ["d", "e", "a"]


def test_nothing_makes_room_for_a_job_that_cannot_fit_anyway_or_while_it_is_claimed(make: Any) -> None:
    queue = make(2_000)
    queue.put_many([job("a"), job("b")])
    assert [left.id for left in queue.put_many([job("huge", 5, 5_000)])] == ["huge"]
    assert claimed(queue) == ["a", "b"]
    assert [left.id for left in queue.put_many([job("c", 5)])] == ["c"]


def test_a_job_that_waits_for_its_retry_makes_room_too(make: Any, clock: FakeClock) -> None:
    queue = make(1_000)
    queue.put_many([job("a")])
    claimed(queue)
    queue.retry_at("a", now(clock) + 100)
    assert [left.id for left in queue.put_many([job("b", 1)])] == ["a"]
    assert claimed(queue) == ["b"]


def test_closing_returns_what_is_lost(queue: JobQueue) -> None:
    queue.put_many([job("a"), job("b")])
    claimed(queue, 1)
    lost = {left.id for left in queue.close()}
    assert lost == ({"a", "b"} if isinstance(queue, MemoryQueue) else set())
    assert queue.depth == 0
    assert queue.close() == []


def test_threads_share_a_queue_and_each_job_is_claimed_once(make: Any) -> None:
    queue = make(10_000_000)
    found: list[str] = []

    def work() -> None:
        while jobs := queue.claim(3, 60.0):
            for one in jobs:
                found.append(one.id)
                queue.ack(one.id)

    queue.put_many([job(str(i), i % 3) for i in range(300)])
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == sorted(str(i) for i in range(300))
    assert (queue.depth, queue.bytes) == (0, 0)


@pytest.mark.parametrize("other", ["sqlite", "redis"])
def test_any_sequence_of_calls_does_the_same_in_every_queue(other: str, tmp_path: Path, clock: FakeClock, request: Any) -> None:
    chosen = random.Random(5)
    memory = MemoryQueue(5_000, clock)
    stored: JobQueue = SqliteQueue(str(tmp_path / "queue.db"), 5_000, clock)
    if other == "redis":
        stored = RedisQueue(request.getfixturevalue("redis_server").url, 5_000, clock, name=str(tmp_path))
    out: list[str] = []
    for i in range(300):
        call = chosen.choice(("put", "put", "claim", "ack", "retry", "dead", "advance"))
        if call == "put":
            jobs = [job(f"{i}", chosen.randrange(3), chosen.randrange(1_500))]
            assert memory.put_many(jobs) == stored.put_many(jobs)
        elif call == "claim":
            n = chosen.randrange(1, 3)
            taken = memory.claim(n, 50.0)
            assert taken == stored.claim(n, 50.0)
            out += [one.id for one in taken]
        elif call == "advance":
            clock.advance(chosen.randrange(20))
        elif out:
            one = out.pop(chosen.randrange(len(out)))
            at, counted = now(clock) + chosen.randrange(30), chosen.random() < 0.5
            for queue in (memory, stored):
                if call == "ack":
                    queue.ack(one)
                elif call == "dead":
                    queue.dead(one, "x")
                else:
                    queue.retry_at(one, at, counted=counted)
        assert (memory.depth, memory.bytes) == (stored.depth, stored.bytes), i
    assert memory.dead_letters() == stored.dead_letters()
    stored.close()


def test_a_file_is_for_its_owner_only_and_outlives_its_queue(tmp_path: Path, clock: FakeClock) -> None:
    file = tmp_path / "queue.db"
    first = SqliteQueue(str(file), ROOM, clock)
    first.put_many([job("a")])
    assert file.stat().st_mode & 0o077 == 0
    first.close()
    assert claimed(SqliteQueue(str(file), ROOM, clock)) == ["a"]


# --- a file that another program has for itself for a while


@pytest.fixture
def filed(tmp_path: Path, clock: FakeClock) -> Iterator[SqliteQueue]:
    filed = SqliteQueue(str(tmp_path / "queue.db"), 1_000_000, clock, held_bytes=10_000)
    filed.put_many([Job("before", b"x")])
    yield filed
    filed.close()


@contextmanager
def locked(path: Path) -> Iterator[None]:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield
        other.execute("ROLLBACK")


def some(*names: str) -> list[Job]:
    return [Job(name, b"x" * 100) for name in names]


def ids(found: list[Job]) -> list[str]:
    return [job.id for job in found]


def test_jobs_wait_in_memory_while_the_file_is_locked(filed: SqliteQueue, tmp_path: Path, clock: FakeClock) -> None:
    with locked(tmp_path / "queue.db"):
        for number in range(20):
            assert filed.put_many(some(f"a{number}")) == []
        assert (filed.unsent, filed.depth) == (20, 21)
        assert not filed.flush()
        with pytest.raises(sqlite3.OperationalError):
            filed.claim(1, 60.0)
    clock.advance(2)
    assert ids(filed.claim(100, 60.0)) == ["before", *(f"a{number}" for number in range(20))]
    assert (filed.unsent, filed.depth) == (0, 21)


def test_jobs_in_memory_are_bounded_and_returned(filed: SqliteQueue, tmp_path: Path) -> None:
    with locked(tmp_path / "queue.db"):
        left = [job for number in range(50) for job in filed.put_many(some(f"a{number}"))]
        assert 0 < filed.unsent < 50
        assert len(left) == 50 - filed.unsent


def test_job_that_is_put_twice_while_locked_is_done_once(filed: SqliteQueue, tmp_path: Path, clock: FakeClock) -> None:
    with locked(tmp_path / "queue.db"):
        filed.put_many(some("a", "before"))
        filed.put_many(some("a"))
    clock.advance(2)
    assert ids(filed.claim(100, 60.0)) == ["before", "a"]


def test_ends_of_claims_wait_while_the_file_is_locked(filed: SqliteQueue, tmp_path: Path, clock: FakeClock) -> None:
    filed.put_many(some("done", "dead", "again", "held"))
    claimed = {job.id: job for job in filed.claim(100, 600.0)}
    with locked(tmp_path / "queue.db"):
        assert filed.ack_many([claimed["done"], claimed["before"]]) == []
        assert filed.dead(claimed["dead"], "why")
        assert filed.retry_at(claimed["again"], clock.time_ns() / 1e9 + 5, counted=False)
    clock.advance(10)
    assert [(job.id, job.attempts) for job in filed.claim(100, 60.0)] == [("again", 1)]
    assert filed.dead_letters() == [("dead", "why")]
    assert filed.depth == 2


def test_end_of_a_claim_that_was_lost_changes_nothing(filed: SqliteQueue, tmp_path: Path, clock: FakeClock) -> None:
    (mine,) = filed.claim(1, 60.0)
    with locked(tmp_path / "queue.db"):
        assert filed.ack(mine)
    clock.advance(100)
    other = SqliteQueue(str(tmp_path / "queue.db"), 1_000_000, clock)
    assert ids(other.claim(1, 600.0)) == ["before"]
    filed.flush()
    assert filed.depth == 1
    other.close()


def test_locked_file_is_tried_once_in_a_while(
    filed: SqliteQueue, tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[Any] = []
    transaction = SqliteFile.transaction
    monkeypatch.setattr(SqliteFile, "transaction", lambda self: tried.append(self) or transaction(self))  # type: ignore[func-returns-value]
    with locked(tmp_path / "queue.db"):
        for _ in range(3):
            for number in range(20):
                filed.put_many(some(f"a{number}"))
                filed.ack("before")
            clock.advance(2)
    assert len(tried) == 3


def test_jobs_that_the_file_never_got_are_lost_when_it_closes(filed: SqliteQueue, tmp_path: Path) -> None:
    with locked(tmp_path / "queue.db"):
        filed.put_many(some("a", "b"))
        assert ids(filed.close()) == ["a", "b"]
        assert filed.close() == []


def test_child_does_not_hold_jobs_of_its_parent(filed: SqliteQueue, tmp_path: Path) -> None:
    with locked(tmp_path / "queue.db"):
        filed.put_many(some("a"))
        pid = os.fork()
        if pid == 0:
            os._exit(filed.unsent)
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


def test_jobs_that_arrive_while_the_queue_is_stuck_keep_their_order(clock: FakeClock) -> None:
    stuck, released = threading.Event(), threading.Event()

    class Failing(MemoryQueue):
        is_failing = True

        def _send(self) -> list[str]:
            stuck.set()
            assert released.wait(10)
            return super()._send()

    queue = Failing(ROOM, clock)
    sending = threading.Thread(target=queue.put_many, args=([job("first")],))
    sending.start()
    assert stuck.wait(10)
    for name in ("second", "third", "fourth"):
        assert queue.put_many([job(name)]) == []
    assert (queue.depth, queue.bytes) == (4, 4 * job("first").size)
    released.set()
    sending.join(10)
    assert queue.put_many([job("fifth")]) == []
    assert [one.id for one in queue.claim(5, 30.0)] == ["first", "second", "third", "fourth", "fifth"]
