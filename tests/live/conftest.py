"""Fixtures: the scripted model server, and telemetry that is shut down after the test."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.support import fake_llm
from tests.support.live import Live


@pytest.fixture(scope="session")
def llm() -> Iterator[str]:
    """Yield the address of a model server with scripted replies (``fake_llm.SCRIPTS``)."""
    server = fake_llm.serve()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()


@pytest.fixture(autouse=True)
def _event_loop() -> Iterator[None]:
    """Provide an event loop and close it, because frameworks' ``run_sync`` would leave a new loop open."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    asyncio.set_event_loop(None)
    loop.close()


@pytest.fixture
def live() -> Iterator[Live]:
    """Yield telemetry whose exporting processor is registered after ours."""
    live = Live()
    yield live
    live.close()


@pytest.fixture(params=["before", "after"], ids=["exporter before us", "exporter after us"])
def live_in_any_order(request: pytest.FixtureRequest) -> Iterator[Live]:
    """Yield telemetry with ``/metrics``, for each order of registration."""
    live = Live(request.param, metrics=True)
    yield live
    live.close()
