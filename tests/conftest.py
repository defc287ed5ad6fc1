"""What every test starts from: a clean environment and the registry of metrics as the package made it."""

from __future__ import annotations

import collections
import gc
import os
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from otel_agenteval.metrics import registry
from tests.support.clock import FakeClock
from tests.support.judges import ScriptedModels
from tests.support.postgres import Anywhere, PostgresServer, postgres_server

# A machine that is busy is no failure, and a build draws the same examples each time.
_examples = int(os.environ.get("AGENTEVAL_TEST_EXAMPLES", "25"))
settings.register_profile(
    "project",
    deadline=None,
    max_examples=_examples,
    derandomize=_examples == 25 and not {"CI", "AGENTEVAL_REQUIRE_SERVERS"}.isdisjoint(os.environ),
    suppress_health_check=list(HealthCheck),
)
settings.load_profile("project")

# Collecting makes a million objects that stay. Looking for cycles among them takes a quarter of the time.
gc.disable()

_slow: collections.Counter[str] = collections.Counter()
"""Slow tests that this run leaves out, by folder."""


def pytest_collection_finish(session: pytest.Session) -> None:
    gc.freeze()
    gc.enable()


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    _slow.update(item.path.parent.name for item in items if item.get_closest_marker("slow"))


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):  # a process of pytest-xdist, which reports to the first one
        session.config.workeroutput["slow"] = dict(_slow)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    _slow.update({folder: count - _slow[folder] for folder, count in getattr(node, "workeroutput", {}).get("slow", {}).items()})


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _slow:
        folders = ", ".join(f"{count} in {folder}" for folder, count in sorted(_slow.items()))
        terminalreporter.write_line(f"left out as slow: {folders}. 'make test-all' runs them.")


@pytest.fixture(scope="session")
def _metrics() -> tuple[dict[str, Any], dict[str, Any], list[Any]]:
    """The registry of metrics as the package makes it."""
    registry.discover()
    return (
        dict(registry._METRICS),
        {name: list(entries) for name, entries in registry._ALIASES.items()},
        list(registry._PATTERN_ALIASES),
    )


@pytest.fixture(autouse=True)
def _process(_metrics: tuple[dict[str, Any], dict[str, Any], list[Any]]) -> Iterator[None]:
    """Hide the machine's OTEL_… variables, and undo what a test changes of its process: variables, metrics, the garbage collector."""
    before, thresholds = dict(os.environ), gc.get_threshold()
    for name in before:
        if name.startswith("OTEL_"):
            del os.environ[name]
    yield
    gc.set_threshold(*thresholds)
    if os.environ != before:
        os.environ.clear()
        os.environ.update(before)
    metrics, aliases, patterns = _metrics
    if metrics != registry._METRICS:
        for changed, kept in ((registry._METRICS, metrics), (registry._ALIASES, aliases)):
            changed.clear()
            changed.update(kept)
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
