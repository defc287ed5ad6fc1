"""``docs/reference/metrics/coverage.md``: on which recorded turns each metric is evaluated, with what values, and what feeds it."""

from __future__ import annotations

import importlib
import importlib.metadata
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.core.extras import extra_installed
from otel_agenteval.metrics.registry import catalog

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
def script() -> Iterator[ModuleType]:
    """``scripts/coverage.py``, which has the name of a well-known package."""
    known = {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] == "coverage"}
    path = sys.path.copy()
    sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests" / "support")]
    try:
        yield importlib.import_module("coverage")
    finally:
        for name in ("coverage", "coverage_notes", "check_turns", "recordings"):
            sys.modules.pop(name, None)
        sys.modules.update(known)
        sys.path[:] = path  # the script adds to it, too


@pytest.fixture(scope="module")
def recorded(script: ModuleType) -> Any:
    return script.read_recordings(script.archives())


@pytest.fixture(scope="module")
def rows(script: ModuleType, recorded: Any) -> Any:
    return script.measured(recorded)


@NEEDS_EXTRAS
@pytest.mark.skipif(not price_table_is_pinned(), reason="the page's costs are those of the pinned table of prices")
def test_the_page_is_up_to_date(script: ModuleType, rows: Any, recorded: Any) -> None:
    assert script.PAGE.read_text(encoding="utf-8") == script.page(rows, recorded), "python scripts/coverage.py --write"


@NEEDS_EXTRAS
def test_every_constant_is_explained_and_what_is_never_evaluated_can_be_fed(script: ModuleType, rows: Any) -> None:
    assert script.unexplained(rows) == []


def test_all_kinds_of_turns_are_there(script: ModuleType, recorded: Any) -> None:
    kinds = {one.kind for one in recorded}
    assert kinds == set(script.KINDS)


def test_each_metric_has_a_row(script: ModuleType, rows: Any) -> None:
    text = script.PAGE.read_text(encoding="utf-8")
    named = re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)
    assert sorted(named) == sorted(metric.name for metric in catalog()) == sorted(rows)


def test_each_way_in_is_described(script: ModuleType) -> None:
    text = (ROOT / "docs" / "reference" / "metrics" / "facts.md").read_text(encoding="utf-8")
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    sections = {
        title.lower().replace(",", "").replace(" ", "-"): body for title, body in zip(parts[1::2], parts[2::2], strict=True)
    }
    assert set(script.WAYS_IN.values()) == set(sections)
    assert not [title for title, body in sections.items() if "assert " not in body], "a fact without an example that is run"


@pytest.mark.parametrize("what", ["constant", "never evaluated", "explained in vain"])
def test_what_is_not_explained_is_found(script: ModuleType, what: str) -> None:
    name = "code_is_xml" if what == "explained in vain" else "code_word_count"
    row = script.Row(oa.get_metric(name).metric)
    row.seen["plain chat"] = 2
    if what == "never evaluated":
        row.reasons["missing:something"] = 2
    else:
        row.evaluated["plain chat"] = 2
        row.values = [0.0, 0.0] if what == "constant" else [0.0, 1.0]
    assert len(script.unexplained({name: row})) == 1


def a_turn(script: ModuleType, **truth: Any) -> Any:
    known = oa.Turn.from_dict({"turn_id": "t", "input": "q", "output": "", "tool_calls": []})
    said = {"error": False, "output": "Done.", "tools": [], "llm": [{"status": 200}], **truth}
    return script.Recorded("set/s1#1", "plain chat", known, said)


def test_failures_on_healthy_turns_are_listed(script: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    [(turn, metric, why)] = script.failures([a_turn(script)])
    assert (turn, metric) == ("set/s1#1", "code_empty_answer")
    assert why
    assert not script.print_failures([a_turn(script)])
    assert re.search(r"code_empty_answer +1 +100\.00 %", capsys.readouterr().out)


@pytest.mark.parametrize(
    "truth",
    [
        {"error": True}, {"output": None}, {"tools": [{"name": "a", "ok": False}]}, {"tools": [{"name": "a", "arguments": {}, "ok": True}] * 3},
        {"llm": [{"status": 500}]}, {"llm": [{"status": 200, "finish_reason": "length"}]},
    ],
)  # fmt: skip
def test_a_turn_that_did_not_go_well_is_not_healthy(script: ModuleType, truth: Any) -> None:
    assert not a_turn(script, **truth).healthy
