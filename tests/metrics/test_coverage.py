"""``docs/reference/metrics/coverage.md``: on which recorded turns each metric is evaluated, with what values, and what feeds it."""

from __future__ import annotations

import importlib.metadata
import re
from pathlib import Path
from typing import Any

import pytest

import otel_agenteval as oa
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


@pytest.mark.slow
def test_all_kinds_of_turns_are_there(recorded: Any) -> None:
    kinds = {one.kind for one in recorded}
    assert kinds == set(metric_coverage.KINDS)


@pytest.mark.slow
def test_each_metric_has_a_row(rows: Any) -> None:
    text = metric_coverage.PAGE.read_text(encoding="utf-8")
    named = re.findall(r"^\| `(\w+)` \| (?:\d+ %|–) \|", text, re.MULTILINE)
    assert sorted(named) == sorted(metric.name for metric in catalog()) == sorted(rows)


def test_each_way_in_is_described() -> None:
    text = (ROOT / "docs" / "reference" / "metrics" / "facts.md").read_text(encoding="utf-8")
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    sections = {
        title.lower().replace(",", "").replace(" ", "-"): body for title, body in zip(parts[1::2], parts[2::2], strict=True)
    }
    assert set(metric_coverage.WAYS_IN.values()) == set(sections)
    assert not [title for title, body in sections.items() if "assert " not in body], "a fact without an example that is run"


@pytest.mark.parametrize("what", ["constant", "never evaluated", "explained in vain"])
def test_what_is_not_explained_is_found(what: str) -> None:
    name = "code_is_xml" if what == "explained in vain" else "code_word_count"
    row = metric_coverage.Row(oa.get_metric(name).metric)
    row.seen["plain chat"] = 2
    if what == "never evaluated":
        row.reasons["missing:something"] = 2
    else:
        row.evaluated["plain chat"] = 2
        row.values = [0.0, 0.0] if what == "constant" else [0.0, 1.0]
    assert len(metric_coverage.unexplained({name: row})) == 1


def a_turn(**truth: Any) -> Any:
    known = oa.Turn.from_dict({"turn_id": "t", "input": "q", "output": "", "tool_calls": []})
    said = {"error": False, "output": "Done.", "tools": [], "llm": [{"status": 200}], **truth}
    return metric_coverage.Recorded("set/s1#1", "plain chat", known, said)


def test_failures_on_healthy_turns_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    [(turn, metric, why)] = metric_coverage.failures([a_turn()])
    assert (turn, metric) == ("set/s1#1", "code_empty_answer")
    assert why
    assert not metric_coverage.print_failures([a_turn()])
    assert re.search(r"code_empty_answer +1 +100\.00 %", capsys.readouterr().out)


@pytest.mark.parametrize(
    "truth",
    [
        {"error": True}, {"output": None}, {"tools": [{"name": "a", "ok": False}]}, {"tools": [{"name": "a", "arguments": {}, "ok": True}] * 3},
        {"llm": [{"status": 500}]}, {"llm": [{"status": 200, "finish_reason": "length"}]},
    ],
)  # fmt: skip
def test_a_turn_that_did_not_go_well_is_not_healthy(truth: Any) -> None:
    assert not a_turn(**truth).healthy
