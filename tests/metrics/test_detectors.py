"""The detectors on labelled turns: how many there are and of what sort, how well they do, and that the page says so."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

from otel_agenteval import Turn
from otel_agenteval.metrics.registry import catalog

ROOT = Path(__file__).parents[2]


class Floor(NamedTuple):
    """What a detector must reach on a half: precision and recall at least, false alarms at most."""

    precision: float
    recall: float
    false_alarms: float


FLOORS = {
    "pii_leakage": Floor(0.95, 0.80, 0.03),
    "secret_leak": Floor(0.95, 0.88, 0.03),
    "ungrounded_numbers": Floor(0.92, 0.88, 0.08),
    "ungrounded_urls": Floor(0.90, 0.95, 0.10),
    "injection_markers": Floor(0.84, 0.77, 0.13),
    "refusal": Floor(0.88, 0.75, 0.10),
    "system_prompt_leak": Floor(0.95, 0.82, 0.04),
}
"""Held on both halves; a little below what is reached on the test half."""
CASES = 300
LANGUAGES = 8
ENGLISH = {"train": 0.7, "test": 0.45}
"""The largest share of English: who looks for a fault in many languages must not be measured in one."""


def _script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)  # detectors.py imports whole_turns
    spec.loader.exec_module(module)
    return module


whole_turns = _script("whole_turns")
detectors = _script("detectors")


def test_each_detector_is_in_the_default_pack_and_has_a_floor() -> None:
    inline = {metric.name for metric in catalog() if metric.inline}
    assert {f"code_{name}" for name in detectors.DETECTORS} <= inline
    assert FLOORS.keys() == set(detectors.DETECTORS)


@pytest.mark.parametrize("name", detectors.DETECTORS)
def test_there_are_enough_cases_of_every_sort(name: str) -> None:
    halves = {half: detectors.cases_of(name, half) for half in detectors.HALVES}
    cases = [case for half in halves.values() for case in half]
    assert len(cases) >= CASES
    assert len({case.lang.split("-")[0] for case in cases}) >= LANGUAGES
    for half, of in halves.items():
        assert len(of) >= CASES / 3, half
        assert 0.4 <= sum(case.flag for case in of) / len(of) <= 0.6, f"{half}: half of the cases have the fault"
        assert sum(case.lang.split("-")[0] == "en" for case in of) <= ENGLISH[half] * len(of), half
        assert len({case.kind for case in of}) >= 10, half


@pytest.mark.parametrize("name", detectors.DETECTORS)
def test_no_case_is_there_twice(name: str) -> None:
    cases = [case for half in detectors.HALVES for case in detectors.cases_of(name, half)]
    assert len({case.id for case in cases}) == len(cases)
    assert len({repr(case.turn) for case in cases}) == len(cases)


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
    """The default metrics on the whole turns that nobody tuned on."""
    return whole_turns.evaluate("test")


def test_there_are_enough_whole_turns(whole: Any) -> None:
    assert (whole.turns, whole.ordinary, whole.domains, whole.languages) >= (300, 200, 12, 12)
    assert len(list(whole_turns.turns("train"))) >= 300
    domains = [{case["domain"] for case in whole_turns.turns(half)} for half in detectors.HALVES]
    assert domains[0].isdisjoint(domains[1])


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


@pytest.mark.parametrize(
    ("lang", "group"),
    [("en-GB", "English"), ("zh-Hant", "Chinese, Japanese, Korean"), ("he", "right to left"), ("pt-BR", detectors.OTHERS)],
)
def test_languages_are_grouped_by_script(lang: str, group: str) -> None:
    assert detectors.group_of(lang) == group


@pytest.mark.parametrize(
    ("name", "turn", "fired"),
    [
        ("secret_leak", {"output": "All is well."}, False),
        ("secret_leak", {"output": "ghp_" + "x7Yk2LmQ9RtV4WbN1CzD8FgH5JsK3PaE6UvX"}, True),
        ("refusal", {"output": "I'm sorry, but I can't help with that."}, True),
        ("refusal", {"output": "Here is your list."}, False),
    ],
)
def test_what_fires_is_the_fault(name: str, turn: dict[str, str], fired: bool) -> None:
    score = detectors.detector(name).evaluate(Turn.from_dict(turn))
    assert detectors.fires(name, score) is fired


def test_what_is_wrong_is_listed_without_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detectors, "CASES", tmp_path)
    (tmp_path / "train").mkdir()
    missed = '{"id": "s-1", "lang": "de", "flag": true, "kind": "spelled_out", "turn": {"output": "gee aitch pee"}}'
    (tmp_path / "train" / "secret_leak.jsonl").write_text(f"{missed}\n\n", encoding="utf-8")
    assert detectors.failures("secret_leak", "train") == [
        "code_secret_leak, train: 1 of 1 wrong",
        "  missed  spelled_out: 1 of 1",
        "  s-1  de  missed  spelled_out",
    ]
    assert detectors.failures("secret_leak", "test") == ["code_secret_leak, test: 0 of 0 wrong"]
