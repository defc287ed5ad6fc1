"""Fixtures: a scripted model server, and a judge that calls it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import otel_agenteval as oa
from tests.models.wire import KEY, Server
from tests.support.clock import FakeClock


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


@pytest.fixture
def sleeps() -> list[float]:
    """Return a list of the seconds that the test's judge slept."""
    return []


@pytest.fixture
def judge_of(server: Server, clock: FakeClock, sleeps: list[float]) -> Iterator[Callable[..., oa.Judge]]:
    """Yield a function that creates judges. Only their sleeping moves the clock."""
    made: list[oa.Judge] = []

    def sleep(seconds: float) -> None:
        sleeps.append(seconds)
        clock.advance(seconds)

    def make(model: str = "m-1", **options: Any) -> oa.Judge:
        made.append(oa.Judge(server.url, model, KEY, clock=clock, sleep=sleep, **options))
        return made[-1]

    yield make
    for judge in made:
        judge.close()


@pytest.fixture
def judge(judge_of: Callable[..., oa.Judge]) -> oa.Judge:
    return judge_of()


@pytest.fixture
def embedder(server: Server, clock: FakeClock) -> Iterator[oa.Embedder]:
    embedder = oa.Embedder(server.url, "e-1", KEY, clock=clock, sleep=clock.advance)
    yield embedder
    embedder.close()
