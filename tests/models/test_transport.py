"""Network and server faults: which requests are retried, when, and for how long."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from datetime import datetime, timezone
from email.utils import format_datetime
from typing import Any

import httpcore
import pytest

import otel_agenteval as oa
from otel_agenteval.core.errors import JudgeError
from otel_agenteval.core.pacing import CircuitBreaker, TokenBucket
from otel_agenteval.judging.models.model_server import RateLimits, RequestOptions
from otel_agenteval.judging.models.transport import Connections
from tests.models.wire import Request, Response, Server, said
from tests.support.clock import FakeClock
from tests.support.drips import PLACES, dripping
from tests.support.servers import until

OK = said("openai", '{"score": 1}')
CUT = Response(b'{"choices"', cut=True)


def ask(judge: oa.Judge) -> dict[str, Any]:
    return judge.ask("relevance", "Judge it.", {"answer": "Paris"}, "{}")


def error_of(judge: oa.Judge) -> str:
    with pytest.raises(JudgeError) as caught:
        ask(judge)
    return caught.value.error_type


# --- retries


@pytest.mark.parametrize("fault", [408, 429, 500, 529, CUT])
def test_what_may_go_well_the_next_time_is_tried_again(fault: Any, server: Server, judge: oa.Judge, sleeps: list[float]) -> None:
    server.will(fault, fault, OK)
    assert ask(judge) == {"score": 1}
    assert len(sleeps) == 2
    assert 0 <= sleeps[0] <= 0.5
    assert 0 <= sleeps[1] <= 1.0
    (account,) = judge.accounts()
    assert (account.attempts, account.error_type) == (3, None)
    assert account.duration_s == pytest.approx(sum(sleeps))


@pytest.mark.parametrize("status", [401, 413, 301])
def test_what_will_not_change_is_not(status: int, server: Server, judge: oa.Judge, sleeps: list[float]) -> None:
    server.will(status)
    assert error_of(judge) == f"http_{status}"
    assert (len(server.requests), sleeps) == (1, [])


@pytest.mark.parametrize(("fault", "error_type"), [(500, "http_500"), (CUT, "unreachable")])
def test_three_attempts_are_all(fault: Any, error_type: str, server: Server, judge: oa.Judge) -> None:
    server.will(*[fault] * 3)
    assert error_of(judge) == error_type
    assert judge.accounts()[0].attempts == 3
    assert judge.accounts()[0].error_type == error_type


def test_pauses_are_spread(server: Server, judge: oa.Judge, sleeps: list[float]) -> None:
    server.answering = lambda _: Response({}, 409)
    for _ in range(5):
        error_of(judge)
    assert len(set(sleeps)) == len(sleeps) == 10


def in_seconds(seconds: int, clock: FakeClock) -> str:
    """Return the time in some seconds, in HTTP's format."""
    return format_datetime(datetime.fromtimestamp(clock.time_ns() / 1e9 + seconds, timezone.utc), usegmt=True)


@pytest.mark.parametrize(
    ("status", "header", "least"),
    [(429, "7", 7.0), (503, "7", 7.0), (429, "a date", 20.0), (429, "soon", 0.0), (429, "-5", 0.0), (429, "nan", 0.0)],
)
def test_a_server_says_how_long_to_wait(
    status: int, header: str, least: float, server: Server, judge: oa.Judge, clock: FakeClock, sleeps: list[float]
) -> None:
    server.will(Response({}, status, {"Retry-After": in_seconds(20, clock) if header == "a date" else header}), OK)
    ask(judge)
    assert least <= sleeps[0] <= least + 0.5


@pytest.mark.parametrize("header", ["3600", "inf"])
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
    until(lambda: len(server.requests) == 3, "the server has read the third request")
    release.set()
    judge.close()


def test_an_answer_that_is_too_large_is_not_read(server: Server, judge: oa.Judge) -> None:
    server.will(Response(b" " * (5 * 2**20)))
    assert error_of(judge) == "reply_too_large"


def test_a_server_that_is_not_there_is_an_error(clock: FakeClock) -> None:
    judge = oa.Judge("http://127.0.0.1:1/v1", "m-1", clock=clock, sleep=clock.advance)
    assert error_of(judge) == "unreachable"
    judge.close()


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


@pytest.mark.parametrize("status", [400, 429])
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
    both = threading.Barrier(2, timeout=60)

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
        thread.join(60)
    judge.close()
    assert (most, judge.total().requests, judge.total().failed) == (2, 8, 0)


def test_a_place_that_does_not_get_free_in_time_is_an_error(clock: FakeClock) -> None:
    limits = RateLimits(RequestOptions(max_concurrency=1, clock=clock, sleep=clock.advance))
    limits.enter(0, clock.monotonic() + 1)
    with pytest.raises(JudgeError, match="concurrency"):
        limits.enter(0, clock.monotonic())
    limits.leave()
    limits.enter(0, clock.monotonic())


# --- connections: one for each question at once, used again, released


def post(connections: Connections, server: Server) -> int:
    with connections.lend() as connection:
        return sent(connection, server)


def sent(connection: httpcore.ConnectionPool, server: Server) -> int:
    return connection.request("POST", f"{server.url}/chat/completions", content=b"{}").status


def test_questions_at_once_have_one_each_and_the_next_ones_use_them_again(server: Server) -> None:
    together = threading.Barrier(8)

    def answer(_: Request) -> Response:
        together.wait(60)
        return Response(said("openai", "{}"))

    server.answering = answer
    connections = Connections(server.url)
    for _ in range(2):
        threads = [threading.Thread(target=post, args=(connections, server)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    connections.close()
    assert len(server.requests) == 16
    assert len({request.connection for request in server.requests}) == 8


def test_what_is_released_is_not_used_again_even_if_it_was_in_use(server: Server) -> None:
    server.reply({}, {}, {})
    connections = Connections(server.url)
    with connections.lend() as connection:
        sent(connection, server)
        connections.close()
    post(connections, server)
    post(connections, server)
    connections.close()
    ports = [request.connection for request in server.requests]
    assert ports[0] != ports[1] == ports[2]


def test_what_was_not_needed_for_a_while_is_closed(server: Server) -> None:
    server.reply(*[{}] * 6)
    clock = FakeClock()
    connections = Connections(server.url, clock)
    with connections.lend() as one, connections.lend() as other:
        sent(one, server)
        sent(other, server)
    for pause in (20, 20, 1):  # after the second the other one was not needed for 40 seconds
        clock.advance(pause)
        with connections.lend() as again:
            assert again is one
    with connections.lend() as again, connections.lend() as new:
        assert again is one
        assert new is not other
    sent(other, server)  # what is used after all connects anew
    ports = [request.connection for request in server.requests]
    assert ports[2] not in ports[:2]
    other.close()
    connections.close()


def test_the_environment_s_proxy_is_asked_unless_the_server_is_excepted(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy"):  # a proxy without a scheme is one of HTTP
        monkeypatch.setenv(name, server.url.removesuffix("/v1").removeprefix("http://"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    server.reply({"score": 1}, {"score": 2})
    for address in ("http://models.example/v1", server.url):
        judge = oa.Judge(address, "m-1")
        judge.ask("relevance", "Rate it.", {"input": "x"}, '{"score": number}')
        judge.close()
    assert [request.path for request in server.requests] == ["http://models.example/v1/chat/completions", "/v1/chat/completions"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_leaves_its_parent_s_connections_alone(server: Server) -> None:
    server.reply({}, {}, {})
    connections = Connections(server.url)
    post(connections, server)
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if post(connections, server) == 200 else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert post(connections, server) == 200
    connections.close()
    ports = [request.connection for request in server.requests]
    assert ports[0] == ports[2] != ports[1]


# --- answers that never end, though no single wait is long


BODY = b'{"choices": [{"message": {"content": "{\\"score\\": 1}"}}], "data": [{"index": 0, "embedding": [1.0]}]}'
SECONDS = 0.3


def judged(url: str, **options: Any) -> Any:
    judge = oa.Judge(url, "m-1", timeout=SECONDS, deadline=SECONDS, sleep=lambda _: None, **options)
    try:
        return judge.ask("moderation", "Judge it.", {"response": "Paris"}, "{}")
    finally:
        judge.close()


def moderated(url: str) -> Any:
    return judged(url, endpoint="moderations")


def embedded(url: str) -> Any:
    embedder = oa.Embedder(url, "m-1", timeout=SECONDS, deadline=SECONDS, sleep=lambda _: None)
    try:
        return embedder.embed(["Paris"])
    finally:
        embedder.close()


def error_when(ask: Callable[[str], Any], url: str) -> str:
    with pytest.raises(JudgeError) as caught:
        ask(url)
    return caught.value.error_type


@pytest.mark.parametrize(("ask", "place"), [*((judged, place) for place in PLACES), (moderated, "head"), (embedded, "body")])
def test_a_model_server_that_drips_is_given_up(ask: Callable[[str], Any], place: str) -> None:
    with dripping(place, BODY) as host:
        assert error_when(ask, f"{host.url}/v1") == "timeout"


@pytest.mark.parametrize(("scheme", "place"), [("http", "body"), ("https", "headers")])
def test_a_proxy_that_drips_is_given_up(scheme: str, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with dripping(place, BODY) as host:
        for name in (f"{scheme.upper()}_PROXY", f"{scheme}_proxy"):
            monkeypatch.setenv(name, host.url)
        assert error_when(judged, f"{scheme}://models.example/v1") == "timeout"


def test_a_handshake_that_drips_is_given_up() -> None:
    with dripping("head", bytes(200)) as host:
        assert error_when(judged, f"https://127.0.0.1:{host.port}/v1") in ("timeout", "unreachable")


def test_a_name_that_is_not_resolved_in_time_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    answered = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *a, **k: answered.wait(60) and [])
    assert error_when(judged, "http://models.example/v1") == "timeout"
    answered.set()
