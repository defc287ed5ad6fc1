"""The scripted model server, and telemetry set-ups that are gone after their test."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.support import fake_llm
from tests.support.live import Live


@pytest.fixture(scope="session")
def llm() -> Iterator[str]:
    """Address of a model server that answers by script (``fake_llm.SCRIPTS``)."""
    server = fake_llm.serve()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()


@pytest.fixture(autouse=True)
def _event_loop() -> Iterator[None]:
    """``run_sync`` of a framework takes the thread's loop, or makes one that nobody closes."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    asyncio.set_event_loop(None)
    loop.close()


@pytest.fixture
def live() -> Iterator[Live]:
    """A set-up whose exporting processor comes after ours."""
    live = Live()
    yield live
    live.close()


@pytest.fixture(params=["before", "after"], ids=["exporter before us", "exporter after us"])
def live_in_any_order(request: pytest.FixtureRequest) -> Iterator[Live]:
    """A set-up with ``/metrics`` for each order of registration."""
    live = Live(request.param, metrics=True)
    yield live
    live.close()
