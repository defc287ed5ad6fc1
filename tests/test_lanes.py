"""Calls that can hang run on separate threads. Callers wait for a limited time, and nothing is lost or done twice."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from otel_agenteval.core.threads import Lane, LaneFull


@pytest.fixture
def hang() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def test_calls_behind_one_that_hangs_are_done_in_order(hang: threading.Event) -> None:
    lane, done = Lane(0.01), []
    with pytest.raises(TimeoutError):
        lane.do(lambda: hang.wait(60))
    for number in range(5):
        lane.do(lambda number=number: done.append(number))
    assert (done, lane.stuck > 0) == ([], True)
    hang.set()
    assert lane.ask(lambda: list(done), 60) == [0, 1, 2, 3, 4]
    assert lane.stuck == 0


def test_question_that_was_given_up_is_not_asked_later(hang: threading.Event) -> None:
    lane, asked = Lane(0.01), []
    with pytest.raises(TimeoutError):
        lane.do(lambda: hang.wait(60))
    for _ in range(3):
        with pytest.raises(TimeoutError):
            lane.ask(lambda: asked.append(1), 0)
    hang.set()
    assert lane.ask(lambda: list(asked), 60) == []


def test_what_waits_has_a_limit(hang: threading.Event) -> None:
    lane = Lane(0.01, max_bytes=10)
    with pytest.raises(TimeoutError):
        lane.do(lambda: hang.wait(60), 4)
    lane.do(lambda: None, 6)
    assert lane.full
    with pytest.raises(LaneFull):
        lane.do(lambda: None, 1)


def test_errors_reach_the_caller_or_if_it_went_on_the_listener(hang: threading.Event) -> None:
    told: list[BaseException] = []
    lane = Lane(0.01, failed=told.append)
    with pytest.raises(ZeroDivisionError):
        lane.do(lambda: 1 // 0)
    with pytest.raises(TimeoutError):
        lane.do(lambda: hang.wait(60) and 1 // 0)
    hang.set()
    lane.ask(lambda: None, 60)
    assert [type(error) for error in told] == [ZeroDivisionError]


def test_many_callers_at_once() -> None:
    lane, done = Lane(60.0), []
    threads = [threading.Thread(target=lambda: [lane.do(lambda: done.append(1)) for _ in range(500)]) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 3_000


def test_caller_without_a_thread_does_not_wait_for_another_one(hang: threading.Event) -> None:
    """At exit, two threads call the lane. Each call runs once, and the second thread waits for a limited time."""
    lane, ran, began = Lane(0.0), [], threading.Event()
    lane.start_no_thread()
    first = threading.Thread(target=lambda: lane.ask(lambda: (began.set(), hang.wait(60), ran.append(1)), 60), daemon=True)
    first.start()
    assert began.wait(60)
    assert not lane.do(lambda: ran.append(2))
    with pytest.raises(TimeoutError):
        lane.ask(lambda: ran.append(3), 0)
    hang.set()
    first.join(60)
    assert lane.ask(lambda: list(ran), 60) == [1, 2]
