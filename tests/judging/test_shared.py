"""What judge workers share on a server: what they spent, and which judge is down."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from otel_agenteval.core.circuit_breaker import CircuitBreaker
from otel_agenteval.judging.queues import Counter, Demand, MemorySpendBook, SpendBook, SqliteSpendBook
from otel_agenteval.judging.queues.redis_shared import RedisOutages, RedisSpendBook
from tests.support.clock import FakeClock
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer

HOUR = Counter("", "usd", 3600.0)
OWN = Counter("llm_relevance", "calls", 3600.0)


@pytest.fixture(scope="module")
def server(tmp_path_factory: Any) -> Iterator[RedisServer]:
    found = RedisServer(tmp_path_factory.mktemp("redis"))
    yield found
    found.stop()


@pytest.mark.parametrize("kind", ["sqlite", "redis"])
def test_every_book_says_the_same(kind: str, tmp_path: Path, request: Any) -> None:
    chosen = random.Random(3)
    memory = MemorySpendBook()
    if kind == "sqlite":
        other: SpendBook = SqliteSpendBook(str(tmp_path / "book.db"))
    else:
        other = RedisSpendBook(request.getfixturevalue("server").url, str(tmp_path))
    at = 1_767_225_600.0
    for _ in range(400):
        at += chosen.choice((0.0, 5.0, 70.0, 900.0))
        counters = chosen.sample([HOUR, OWN], chosen.randrange(1, 3))
        if chosen.random() < 0.7:
            demands = [
                Demand(counter, chosen.choice((0.5, 1.0, 30.0)), 20.0, chosen.choice((16.0, 20.0))) for counter in counters
            ]
            assert memory.take(demands, at) == pytest.approx(other.take(demands, at))
        else:
            amounts = [(counter, chosen.choice((0.25, 2.0))) for counter in counters]
            memory.add(amounts, at)
            other.add(amounts, at)
        assert memory.used(HOUR, at) == pytest.approx(other.used(HOUR, at))
    other.close()


def test_workers_together_keep_to_one_bound(server: RedisServer, tmp_path: Path) -> None:
    books = [RedisSpendBook(server.url, str(tmp_path)) for _ in range(4)]
    taken: list[float] = []

    def ask(book: RedisSpendBook) -> None:
        waits = [book.take([Demand(OWN, 1.0, 70.0, 70.0)], 1_767_225_600.0) for _ in range(50)]
        taken.extend(wait for wait in waits if wait == 0.0)

    threads = [threading.Thread(target=ask, args=(book,)) for book in books]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) == 70
    for book in books:
        book.close()


def test_without_the_server_no_model_is_asked_and_what_was_spent_is_sent_later(server: RedisServer, tmp_path: Path) -> None:
    proxy = Proxy(server.port)
    book = RedisSpendBook(f"redis://127.0.0.1:{proxy.port}", str(tmp_path))
    other = RedisSpendBook(server.url, str(tmp_path))
    at = 1_767_225_600.0
    assert book.take([Demand(OWN, 1.0, 2.0, 2.0)], at) == 0.0
    proxy.cut()
    assert book.take([Demand(OWN, 1.0, 2.0, 2.0)], at) > 0.0
    book.add([(OWN, 4.0)], at)
    assert other.used(OWN, at) == 1.0
    proxy.heal()
    until_it_is_told(book, at)
    assert other.used(OWN, at) == 5.0
    book.close()
    other.close()
    proxy.close()


def until_it_is_told(book: RedisSpendBook, at: float) -> None:
    """The book leaves a server alone for a moment after it could not be reached."""
    gate = threading.Event()
    for _ in range(200):
        book.add([], at)
        book.take([Demand(HOUR, 0.0, 1.0, 1.0)], at)
        if not book._unsent:
            return
        gate.wait(0.05)
    raise AssertionError("it was never sent")


def test_one_worker_that_finds_the_judge_down_stops_all(server: RedisServer, tmp_path: Path, clock: FakeClock) -> None:
    one, two = (CircuitBreaker(clock, kind="llm", shared=RedisOutages(server.url, str(tmp_path))) for _ in range(2))
    other_kind = CircuitBreaker(clock, kind="embed", shared=RedisOutages(server.url, str(tmp_path)))
    one.leave(False, False, down=True)
    assert two.enter() == (30.0, False)
    assert other_kind.enter() == (0.0, False)
    clock.advance(31)
    assert two.enter() == (0.0, True)
    two.leave(True, True)
    third = CircuitBreaker(clock, kind="llm", shared=RedisOutages(server.url, str(tmp_path)))
    assert third.enter() == (0.0, False)
