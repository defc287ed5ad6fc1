"""What every queue must do, run against each of them."""

from __future__ import annotations

import random
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from otel_agenteval.judging.queues import Job, JobQueue, MemoryQueue, SqliteQueue
from otel_agenteval.judging.queues.redis import RedisQueue
from tests.support.clock import FakeClock
from tests.support.process import environment
from tests.support.redis_server import RedisServer

ROOM = 10_000


@pytest.fixture(scope="module")
def redis_server(tmp_path_factory: Any) -> Iterator[RedisServer]:
    """A server for all tests of this module."""
    server = RedisServer(tmp_path_factory.mktemp("redis"))
    yield server
    server.stop()


@pytest.fixture(params=["memory", "sqlite", "redis"])
def make(request: Any, tmp_path: Path, clock: FakeClock) -> Iterator[Callable[..., JobQueue]]:
    """Makes a queue with a bound; those in one file, or on the server, share its jobs."""
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


def test_several_are_done_at_once(queue: JobQueue) -> None:
    queue.put_many([job("a"), job("b"), job("c")])
    assert claimed(queue, 2) == ["a", "b"]
    queue.ack_many(["a", "b", "unknown"])
    assert (queue.depth, queue.bytes) == (1, 1_000)
    assert queue.put_many([job("a")]) == []
    assert claimed(queue) == ["c"]


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


def test_every_claim_has_a_lease_of_its_own(queue: JobQueue, clock: FakeClock) -> None:
    queue.put_many([job("a")])
    tokens = set()
    for _ in range(3):
        [found] = queue.claim(1, 1.0)
        tokens.add(found.token)
        clock.advance(2)
    assert len(tokens) == 3
    assert "" not in tokens


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


@pytest.mark.parametrize("make", ["sqlite", "redis"], indirect=True)
def test_a_bare_id_stands_for_what_this_queue_has_claimed(make: Any, clock: FakeClock) -> None:
    queue, other = make(), make()
    queue.put_many([job("a")])
    claimed(queue, lease=1.0)
    clock.advance(2)
    claimed(other)
    assert not queue.ack("a")
    assert not queue.retry_at("a", now(clock))
    assert not queue.dead("a", "timeout")
    assert queue.extend(["a"], 60.0) == ["a"]
    assert other.ack("a")
    assert queue.depth == 0


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
    for i in range(600):
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


def test_what_a_killed_process_had_claimed_comes_back_after_its_lease(tmp_path: Path, clock: FakeClock) -> None:
    script = """
        import os, signal, sys
        from otel_agenteval.judging.queues import Job, SqliteQueue
        from tests.support.clock import FakeClock
        queue = SqliteQueue(sys.argv[1], 10_000, FakeClock())
        queue.put_many([Job("a", b"1"), Job("b", b"2")])
        assert queue.claim(1, 60.0)[0].id == "a"
        os.kill(os.getpid(), signal.SIGKILL)
    """
    file = str(tmp_path / "queue.db")
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script), file], env=environment(), check=False)
    assert done.returncode == -9
    queue = SqliteQueue(file, ROOM, clock)
    assert claimed(queue) == ["b"]
    clock.advance(61)
    assert [(one.id, one.attempts) for one in queue.claim(1, 60.0)] == [("a", 2)]
