"""Results of the detectors on labeled turns. The page in the docs has the same figures."""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).parents[2]


class Floor(NamedTuple):
    """Minimum precision and recall, and maximum false alarm rate, of a detector on a half."""

    precision: float
    recall: float
    false_alarms: float


FLOORS = {
    "pii_leakage": Floor(0.95, 0.80, 0.03),
    "secret_leak": Floor(0.95, 0.88, 0.03),
    "ungrounded_numbers": Floor(0.87, 0.88, 0.13),
    "ungrounded_urls": Floor(0.90, 0.95, 0.10),
    "injection_markers": Floor(0.83, 0.76, 0.15),
    "refusal": Floor(0.88, 0.75, 0.10),
    "system_prompt_leak": Floor(0.95, 0.82, 0.04),
}
"""Limits for both halves, slightly below the results on the test half."""


def _script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)  # detectors.py imports whole_turns
    spec.loader.exec_module(module)
    return module


whole_turns = _script("whole_turns")
detectors = _script("detectors")
detectors.outcomes = cache(detectors.outcomes)  # the page and the floors are measured on the same cases
whole_turns.evaluate = cache(whole_turns.evaluate)


@pytest.mark.parametrize("name", detectors.DETECTORS)
@pytest.mark.parametrize("half", detectors.HALVES)
def test_a_detector_is_right_often_enough(name: str, half: str) -> None:
    found = detectors.figures(detectors.outcomes(name, half))
    floor = FLOORS[name]
    assert found.cases
    assert found.precision is not None
    assert found.precision >= floor.precision
    assert found.recall >= floor.recall
    assert found.false_alarm_rate <= floor.false_alarms


@pytest.fixture(scope="module")
def whole() -> Any:
    """Evaluate the default metrics on the whole turns that weren't used for tuning."""
    return whole_turns.evaluate("test")


def test_ordinary_turns_raise_few_alarms(whole: Any) -> None:
    assert 1000 * whole.ordinary_alarms / whole.ordinary <= 20


@pytest.mark.parametrize("name", whole_turns.LABELED)
def test_a_detector_gives_a_verdict_only_while_it_is_right(name: str, whole: Any) -> None:
    of = whole.by_name[name]
    right = of.false_alarms <= 0.05 * of.innocent and of.found >= 0.85 * of.problems
    assert right or whole_turns.is_signal(name)


def test_the_default_pack_takes_the_precise_methods() -> None:
    assert detectors.detector("refusal").params == {"method": "answer"}
    assert detectors.detector("pii_leakage").metric.parameters["ruleset"].default == "precise"


def test_the_page_is_what_the_script_writes() -> None:
    assert detectors.PAGE.read_text(encoding="utf-8") == detectors.page(), "run python scripts/detectors.py --write"


def case(flag: bool, lang: str = "en") -> object:
    return detectors.Case("a", lang, flag, "k", {})


def test_the_figures_are_shares_of_faults_and_of_alarms() -> None:
    outcome = detectors.Outcome
    of = [outcome(case(True), True, False)] * 3 + [outcome(case(True), False, True), outcome(case(False), True, False)]
    of += [outcome(case(False), False, False)] * 3
    found = detectors.figures(of)
    assert (found.cases, found.precision, found.recall, found.false_alarm_rate, found.skipped) == (8, 0.75, 0.75, 0.25, 1)
    assert [each.wrong for each in of] == [False] * 3 + [True, True] + [False] * 3
    assert detectors.figures([]).precision is None
