"""Fixtures: a web UI for a store with turns of three days."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from otel_agenteval.page.api import Options
from tests.support.browser import chromium
from tests.support.page import ServedPage
from tests.support.stored_turns import filled, some_turns

COUNT = 300


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedPage]:
    folder = tmp_path_factory.mktemp("page")
    store = filled(folder / "scores.db", some_turns(COUNT, content=True))
    options = Options(content=True, trace_url="https://traces.example/{trace_id}?q=1", labels=str(folder / "labels.jsonl"))
    with ServedPage(store, options) as served:
        yield served
