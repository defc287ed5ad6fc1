"""Faults of the network and of servers: what is tried again, when, and for how long."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.core.circuit_breaker import CircuitBreaker
from otel_agenteval.core.errors import JudgeError
from otel_agenteval.core.token_bucket import TokenBucket
from otel_agenteval.judging.models.limits import RateLimits
from otel_agenteval.judging.models.request_options import RequestOptions
from tests.models.wire import Request, Response, Server, said
from tests.support.clock import FakeClock

OK = said("openai", '{"score": 1}')
CUT = Response(b'{"choices"', cut=True)


def ask(judge: oa.Judge) -> dict[str, Any]:
    return judge.ask("relevance", "Judge it.", {"answer": "Paris"}, "{}")


def error_of(judge: oa.Judge) -> str:
    with pytest.raises(JudgeError) as caught:
        ask(judge)
    return caught.value.error_type


# --- retries


@pytest.mark.parametrize("fault", [408, 409, 429, 500, 502, 503, 504, 529, CUT])
def test_what_may_go_well_the_next_time_is_tried_again(fault: Any, server: Server, judge: oa.Judge, sleeps: list[float]) -> None:
    server.will(fault, fault, OK)
    assert ask(judge) == {"score": 1}
    assert len(sleeps) == 2
    assert 0 <= sleeps[0] <= 0.5
    assert 0 <= sleeps[1] <= 1.0
    (account,) = judge.accounts()
    assert (account.attempts, account.error_type) == (3, None)
    assert account.duration_s == pytest.approx(sum(sleeps))


@pytest.mark.parametrize("status", [401, 403, 404, 405, 410, 413, 301])
def test_what_will_not_change_is_not(status: int, server: Server, judge: oa.Judge, sleeps: list[float]) -> None:
    server.will(status)
    assert error_of(judge) == f"http_{status}"
    assert (len(server.requests), sleeps) == (1, [])


@pytest.mark.parametrize(("fault", "error_type"), [(500, "http_500"), (429, "http_429"), (CUT, "unreachable")])
def test_three_attempts_are_all(fault: Any, error_type: str, server: Server, judge: oa.Judge) -> None:
    server.will(*[fault] * 3)
    assert error_of(judge) == error_type
    assert judge.accounts()[0].attempts == 3
    assert judge.accounts()[0].error_type == error_type


def test_pauses_are_spread(server: Server, judge: oa.Judge, sleeps: list[float]) -> None:
    server.answering = lambda _: Response({}, 429)
    for _ in range(5):
        error_of(judge)
    assert len(set(sleeps)) == len(sleeps) == 10


@pytest.mark.parametrize("status", [429, 503])
def test_a_server_says_in_seconds_how_long_to_wait(status: int, server: Server, judge: oa.Judge, sleeps: list[float]) -> None:
    server.will(Response({}, status, {"Retry-After": "7"}), OK)
    ask(judge)
    assert 7.0 <= sleeps[0] <= 7.5


def test_a_server_says_by_a_date_how_long_to_wait(server: Server, judge: oa.Judge, clock: FakeClock, sleeps: list[float]) -> None:
    until = datetime.fromtimestamp(clock.time_ns() / 1e9, timezone.utc) + timedelta(seconds=20)
    server.will(Response({}, 429, {"Retry-After": format_datetime(until, usegmt=True)}), OK)
    ask(judge)
    assert 20.0 <= sleeps[0] <= 20.5


@pytest.mark.parametrize("header", ["soon", "-5", "nan", "", "Mon, 99 Foo 2026"])
def test_a_wait_that_cannot_be_read_is_none(header: str, server: Server, judge: oa.Judge, sleeps: list[float]) -> None:
    server.will(Response({}, 429, {"Retry-After": header}), OK)
    ask(judge)
    assert sleeps[0] <= 0.5


@pytest.mark.parametrize("header", ["3600", "inf", "1e300"])
def test_a_wait_past_the_deadline_is_an_error_at_once(header: str, server: Server, judge: oa.Judge, sleeps: list[float]) -> None:
    server.will(Response({}, 429, {"Retry-After": header}))
    assert error_of(judge) == "http_429"
    assert sleeps == []


def test_the_deadline_holds_for_all_attempts(server: Server, judge_of: Any, clock: FakeClock) -> None:
    judge = judge_of(deadline=10.0)
    server.answering = lambda _: Response({}, 503, {"Retry-After": "6"})
    started = clock.monotonic()
    assert error_of(judge) == "http_503"
    assert len(server.requests) == 2
    assert clock.monotonic() - started <= 10.0


def test_a_repair_has_what_the_question_left_of_the_deadline(server: Server, judge_of: Any, clock: FakeClock) -> None:
    judge = judge_of(deadline=10.0)

    def late(_: Request) -> Response:
        clock.advance(11.0)
        return Response(said("openai", "no"))

    server.answering = late
    assert error_of(judge) == "timeout"
    assert len(server.requests) == 1


# --- hanging, and too much


def test_a_server_that_hangs_is_left(server: Server) -> None:
    release = threading.Event()
    server.answering = lambda _: Response(OK, wait=release)
    judge = oa.Judge(server.url, "m-1", timeout=0.3, sleep=lambda _: None)
    assert error_of(judge) == "timeout"
    assert len(server.requests) == 3
    release.set()
    judge.close()


def test_a_server_that_drips_is_left(server: Server, clock: FakeClock, judge_of: Any) -> None:
    judge = judge_of(timeout=5.0, deadline=1_000.0)
    read = clock.monotonic

    def running() -> float:  # time passes with every look at the clock
        clock.advance(6.0)
        return read()

    judge.server.transport.clock.monotonic = running
    server.answering = lambda _: Response(OK)
    assert error_of(judge) == "timeout"


def test_an_answer_that_is_too_large_is_not_read(server: Server, judge: oa.Judge) -> None:
    server.will(Response(b" " * (5 * 2**20)))
    assert error_of(judge) == "reply_too_large"


def test_a_refusal_that_is_very_large_is_read_in_part(server: Server, judge: oa.Judge) -> None:
    server.will(Response(b"response_format" + b" " * 2**20, 400), OK)
    assert ask(judge) == {"score": 1}


def test_a_server_that_is_not_there_is_an_error(clock: FakeClock) -> None:
    judge = oa.Judge("http://127.0.0.1:1/v1", "m-1", clock=clock, sleep=clock.advance)
    assert error_of(judge) == "unreachable"
    judge.close()


def test_a_closed_judge_can_be_asked_again(server: Server, judge: oa.Judge) -> None:
    server.will(OK, OK)
    ask(judge)
    judge.close()
    assert ask(judge) == {"score": 1}


# --- the breaker


def test_a_server_that_is_down_is_left_alone_and_tried_again(server: Server, judge: oa.Judge, clock: FakeClock) -> None:
    server.answering = lambda _: Response({}, 500)
    assert [error_of(judge) for _ in range(4)] == ["http_500", "http_500", "circuit_open", "circuit_open"]
    assert len(server.requests) == 5
    clock.advance(30.1)
    assert error_of(judge) == "http_500"  # one probe
    assert len(server.requests) == 6
    assert error_of(judge) == "circuit_open"
    clock.advance(30.1)
    server.answering = lambda _: Response(OK)
    assert ask(judge) == ask(judge) == {"score": 1}
    assert judge.accounts()[2].attempts == 0


@pytest.mark.parametrize("status", [400, 401, 404, 429])
def test_a_server_that_answers_is_not_down(status: int, server: Server, judge: oa.Judge) -> None:
    server.answering = lambda _: Response({"error": "credit"}, status)
    for _ in range(6):
        assert error_of(judge) == f"http_{status}"


def failed(breaker: CircuitBreaker, answered: bool = False, began: float = float("inf")) -> bool:
    """Make a call that fails unless it is answered. Return True if it was allowed."""
    wait, trying = breaker.enter()
    if wait == 0:
        breaker.leave(trying, answered, began=began)
    return wait == 0


def test_only_one_call_tries_again(clock: FakeClock) -> None:
    breaker = CircuitBreaker(clock, threshold=1)
    assert failed(breaker)
    assert not failed(breaker)
    clock.advance(30.1)
    assert breaker.enter() == (0.0, True)
    assert breaker.enter() == (None, False)
    breaker.leave(True, answered=None)  # it wasn't called after all
    assert breaker.enter() == (0.0, True)
    breaker.leave(True, answered=True)
    assert breaker.is_closed
    assert breaker.enter() == (0.0, False)


def test_breaker_opens_only_after_failures_in_a_row(clock: FakeClock) -> None:
    breaker = CircuitBreaker(clock, threshold=2)
    for answered in (False, True, False):
        failed(breaker, answered)
    assert breaker.is_closed


def test_breaker_stays_closed_if_the_server_answers_others(clock: FakeClock) -> None:
    breaker = CircuitBreaker(clock, threshold=2)
    began = clock.monotonic()
    clock.advance(1.0)
    failed(breaker, True, began)
    clock.advance(1.0)
    for _ in range(3):  # called at the same time, and too late
        failed(breaker, began=began)
    assert breaker.is_closed
    for _ in range(2):
        failed(breaker, began=clock.monotonic())
    assert not breaker.is_closed


# --- rates


def test_a_rate_is_kept_from_the_first_request_on(server: Server, judge_of: Any, clock: FakeClock) -> None:
    judge = judge_of(requests_per_minute=60)
    server.answering = lambda _: Response(OK)
    started = clock.monotonic()
    for _ in range(20):
        ask(judge)
    assert clock.monotonic() - started == pytest.approx(19.0)


def test_a_bucket_admits_no_more_than_its_rate_and_a_second_s_worth(clock: FakeClock) -> None:
    bucket = TokenBucket(10, clock.monotonic)
    admitted = sum(bucket.take(1) <= 60.0 for _ in range(2_000))
    assert admitted == 610
    clock.advance(1_000.0)
    assert bucket.take(10) == 0.0
    assert bucket.take(5) == pytest.approx(0.5)


def test_a_request_larger_than_the_bucket_waits_for_a_full_one(clock: FakeClock) -> None:
    bucket = TokenBucket(1, clock.monotonic)
    assert bucket.take(10) == 0.0
    assert bucket.take(1) == pytest.approx(10.0)


def test_tokens_are_counted_as_the_server_counts_them(server: Server, judge_of: Any, sleeps: list[float]) -> None:
    judge = judge_of(tokens_per_minute=6_000, deadline=1_000.0)
    used = {"usage": {"prompt_tokens": 2_000, "completion_tokens": 1_000}}
    server.will({**OK, **used}, {**OK, **used})
    ask(judge)
    assert sleeps == []
    ask(judge)
    assert sleeps == [pytest.approx(30.0, abs=1.0)]


def test_a_turn_that_comes_too_late_is_given_back(clock: FakeClock) -> None:
    limits = RateLimits(RequestOptions(requests_per_minute=1, clock=clock, sleep=clock.advance))
    limits.enter(0, clock.monotonic() + 1)
    for _ in range(3):
        with pytest.raises(JudgeError) as caught:
            limits.enter(0, clock.monotonic() + 1)
        assert caught.value.error_type == "rate_limited"
    clock.advance(60.0)
    limits.enter(0, clock.monotonic() + 1)


def test_no_more_questions_at_once_than_allowed(server: Server) -> None:
    lock, now, most = threading.Lock(), 0, 0
    both = threading.Barrier(2, timeout=10)

    def answer(_: Request) -> Response:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        both.wait()  # two are let in together
        with lock:
            now -= 1
        return Response(OK)

    server.answering = answer
    judge = oa.Judge(server.url, "m-1", max_concurrency=2)
    threads = [threading.Thread(target=ask, args=(judge,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    judge.close()
    assert (most, judge.total().requests, judge.total().failed) == (2, 8, 0)


def test_a_place_that_does_not_get_free_in_time_is_an_error(clock: FakeClock) -> None:
    limits = RateLimits(RequestOptions(max_concurrency=1, clock=clock, sleep=clock.advance))
    limits.enter(0, clock.monotonic() + 1)
    with pytest.raises(JudgeError, match="concurrency"):
        limits.enter(0, clock.monotonic())
    limits.leave()
    limits.enter(0, clock.monotonic())
