"""Fixtures of all tests: a clean environment, and the package's original registry of metrics."""

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

# No deadlines, because the machine can be busy. Each build draws the same examples.
_examples = int(os.environ.get("AGENTEVAL_TEST_EXAMPLES", "25"))
settings.register_profile(
    "project",
    deadline=None,
    max_examples=_examples,
    derandomize=_examples == 25 and not {"CI", "AGENTEVAL_REQUIRE_SERVERS"}.isdisjoint(os.environ),
    suppress_health_check=list(HealthCheck),
)
settings.load_profile("project")

# Test collection creates a million lasting objects. Searching them for cycles would take a quarter of the time.
gc.disable()

_slow: collections.Counter[str] = collections.Counter()
"""Slow tests that aren't run, by folder."""


def pytest_collection_finish(session: pytest.Session) -> None:
    gc.freeze()
    gc.enable()


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    _slow.update(item.path.parent.name for item in items if item.get_closest_marker("slow"))


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):  # a pytest-xdist worker, which reports to the main process
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
    """Return the package's original registry of metrics."""
    registry.discover()
    return (
        dict(registry._METRICS),
        {name: list(entries) for name, entries in registry._ALIASES.items()},
        list(registry._PATTERN_ALIASES),
    )


@pytest.fixture(autouse=True)
def _process(_metrics: tuple[dict[str, Any], dict[str, Any], list[Any]]) -> Iterator[None]:
    """Hide OTEL_… variables, and restore variables, metrics and the garbage collector after a test."""
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
    """Return a clock that the test moves."""
    return FakeClock()


@pytest.fixture(scope="session")
def models() -> Iterator[ScriptedModels]:
    """Yield a judge and an embedder with scripted replies. Each ``play`` and ``score`` replaces the script."""
    scripted = ScriptedModels()
    yield scripted
    scripted.close()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """Yield a PostgreSQL server for all tests of a process."""
    with postgres_server() as server:
        yield server


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def anywhere(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Anywhere:
    """Return a function that returns the path or address of a new store, for each kind of store."""
    if request.param == "sqlite":
        return lambda: str(tmp_path_factory.mktemp("stores") / "scores.db")
    return request.getfixturevalue("postgres").database
