"""Tests of ``docs/reference/metrics/coverage.md`` and its script."""

from __future__ import annotations

import importlib.metadata
import re
from pathlib import Path
from typing import Any

import pytest

from otel_agenteval.core.extras import extra_installed
from otel_agenteval.metrics.registry import catalog
from scripts import metric_coverage

ROOT = Path(__file__).parents[2]
NEEDS_EXTRAS = pytest.mark.skipif(
    any(metric.extra is not None and not extra_installed(metric.extra) for metric in catalog()),
    reason="not all optional packages are installed",
)


def price_table_is_pinned() -> bool:
    try:
        installed = importlib.metadata.version("genai-prices")
    except importlib.metadata.PackageNotFoundError:
        return False
    pins = (ROOT / "requirements" / "dev.txt").read_text(encoding="utf-8")
    return re.search(rf"^genai-prices=={re.escape(installed)}(\s|$)", pins, re.MULTILINE) is not None


@pytest.fixture(scope="module")
def recorded() -> Any:
    return metric_coverage.read_recordings(metric_coverage.archives())


@pytest.fixture(scope="module")
def rows(recorded: Any) -> Any:
    return metric_coverage.measured(recorded)


@pytest.mark.slow
@NEEDS_EXTRAS
@pytest.mark.skipif(not price_table_is_pinned(), reason="the page's costs are those of the pinned table of prices")
def test_the_page_is_up_to_date(rows: Any, recorded: Any) -> None:
    assert metric_coverage.PAGE.read_text(encoding="utf-8") == metric_coverage.page(rows, recorded), (
        "run python scripts/gen_docs.py --measure coverage"
    )


@pytest.mark.slow
@NEEDS_EXTRAS
def test_every_constant_is_explained_and_what_is_never_evaluated_can_be_fed(rows: Any) -> None:
    assert metric_coverage.unexplained(rows) == []
