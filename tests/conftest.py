"""What every test starts from: a clean environment and the registry of metrics as the package made it."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from otel_agenteval.metrics import registry
from tests.support.clock import FakeClock
from tests.support.judges import ScriptedModels
from tests.support.postgres import Anywhere, PostgresServer, postgres_server

# A machine that is busy is no failure, and what runs in CI is the same in every run.
settings.register_profile("project", deadline=None, derandomize=not {"CI", "AGENTEVAL_REQUIRE_SERVERS"}.isdisjoint(os.environ))
settings.load_profile("project")


@pytest.fixture(autouse=True)
def _usual_looks_for_cycles() -> Iterator[None]:
    """Commands that are called here change how often that is done in their process."""
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No OTEL_… variable of the machine reaches a test, and none that a test sets outlives it."""
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def _registry() -> Iterator[None]:
    """Metrics that a test defines are gone after it."""
    registry.discover()
    metrics, aliases, patterns = (
        dict(registry._METRICS),
        {k: list(v) for k, v in registry._ALIASES.items()},
        list(registry._PATTERN_ALIASES),
    )
    yield
    registry._METRICS.clear()
    registry._METRICS.update(metrics)
    registry._ALIASES.clear()
    registry._ALIASES.update(aliases)
    registry._PATTERN_ALIASES[:] = patterns


@pytest.fixture
def clock() -> FakeClock:
    """A clock that the test moves."""
    return FakeClock()


@pytest.fixture(scope="session")
def models() -> Iterator[ScriptedModels]:
    """A judge and an embedder that say what a test tells them to; every ``play`` and ``score`` begins anew."""
    scripted = ScriptedModels()
    yield scripted
    scripted.close()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL for all tests of a process."""
    with postgres_server() as server:
        yield server


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def anywhere(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Anywhere:
    """Gives the path or address of a store that is not there yet, of each kind."""
    if request.param == "sqlite":
        return lambda: str(tmp_path_factory.mktemp("stores") / "scores.db")
    return request.getfixturevalue("postgres").database
