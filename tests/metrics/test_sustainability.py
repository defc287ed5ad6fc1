from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.metrics.code import sustainability

ENERGY, CARBON, RESOURCES = "code_energy_consumption", "code_carbon_emissions", "code_resource_utilization"
CALL = {"provider": "openai", "model": "gpt-4o-mini", "output_tokens": 500}


def evaluate(metric: str, turn: dict[str, Any], **params: Any) -> oa.Score:
    return oa.get_metric(metric, **params).evaluate(oa.Turn.from_dict(turn))


def span(name: str, parent: str | None = None, **attributes: Any) -> dict[str, Any]:
    return {"id": name, "parent": parent, "attributes": {key.replace("__", "."): value for key, value in attributes.items()}}


@pytest.mark.parametrize(
    ("kwh", "limit", "value"),
    [
        pytest.param(5, 0, 0.0, id="anything over a threshold of nothing"),
        pytest.param(0, 0, 1.0, id="nothing within a threshold of nothing"),
    ],
)
def test_energy_counts_by_how_far_it_exceeds_the_threshold(kwh: float, limit: float, value: float) -> None:
    score = evaluate(ENERGY, {"metadata": {"energy_kwh": kwh}}, threshold_kwh=limit)
    assert (score.value, score.passed) == (value, value == 1)
    assert score.detail == {"energy_kwh": kwh, "threshold_kwh": limit, "under_threshold": kwh <= limit}


@pytest.mark.parametrize(
    ("spans", "kwh"),
    [
        pytest.param([span("a", energy__kwh=0.2)], 0.2, id="one span"),
        pytest.param([span("r"), span("a", "r", energy__kwh=0.2), span("b", "r", energy__kwh=0.3)], 0.5, id="two spans add up"),
        pytest.param(
            [span("r", energy__kwh=1), span("a", "r"), span("b", "a", energy__kwh=1)], 1.0, id="a span speaks for those below it"
        ),
        pytest.param([span("a", "gone", energy__kwh=0.2)], 0.2, id="a parent that is not there"),
        pytest.param([span("a", "b", energy__kwh=0.2), span("b", "a", energy__kwh=0.3)], 0.2, id="a circle counts once"),
        pytest.param(
            [span("a", energy__kwh="0.2"), span("b", energy__kwh=True), span("c", energy__kwh=-1), span("d", energy__kwh=0.3)],
            0.3,
            id="only numbers from 0",
        ),
    ],
)
def test_energy_is_read_from_spans(spans: list[dict[str, Any]], kwh: float) -> None:
    assert evaluate(ENERGY, {"spans": spans}).detail["energy_kwh"] == pytest.approx(kwh)
    assert evaluate(ENERGY, {"spans": spans, "metadata": {"energy_kwh": 9}}).detail["energy_kwh"] == 9


def test_carbon_is_what_was_stated_or_else_energy_times_the_grid() -> None:
    score = evaluate(CARBON, {"metadata": {"carbon_kg": 0.1, "energy_kwh": 99}})
    assert (score.value, score.passed) == (0.5, False)
    assert score.detail == {
        "carbon_kg": 0.1,
        "threshold_kg": 0.05,
        "under_threshold": False,
        "equivalents": {"km_driven": pytest.approx(0.46), "trees_needed": pytest.approx(0.1 / 21)},
    }
    assert evaluate(CARBON, {"spans": [span("a", carbon__kg=0)]}).value == 1.0
    from_energy = evaluate(CARBON, {"metadata": {"energy_kwh": 0.2}}, grid_intensity=0.5)
    assert (from_energy.value, from_energy.detail["carbon_kg"], from_energy.detail["energy_kwh"]) == (0.5, 0.1, 0.2)
    assert "estimated" not in from_energy.detail
    assert evaluate(CARBON, {"metadata": {"energy_kwh": 0.2}}).detail["carbon_kg"] == pytest.approx(0.095)


# --- estimates


@pytest.fixture
def _fresh_library() -> Iterator[None]:
    sustainability._ecologits_estimate.cache_clear()
    yield
    sustainability._ecologits_estimate.cache_clear()


def test_an_estimate_is_that_of_the_library_and_says_so() -> None:
    tracers = pytest.importorskip("ecologits.tracers.utils")
    impact = tracers.llm_impacts("openai", "gpt-4o-mini", 500, 3.0).energy.value
    score = evaluate(ENERGY, {"llm_calls": [{**CALL, "duration_s": 3}]})
    assert score.detail["energy_kwh"] == pytest.approx((impact.min + impact.max) / 2)
    assert score.detail["estimated"] is True
    carbon = evaluate(CARBON, {"llm_calls": [{**CALL, "duration_s": 3}]}, grid_intensity=2)
    assert carbon.detail["carbon_kg"] == pytest.approx(2 * score.detail["energy_kwh"])
    assert carbon.detail["estimated"] is True


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"provider": None}, id="without a provider"),
        pytest.param({"provider": None, "model": "openai/gpt-4o-mini"}, id="with a gateway's prefix"),
    ],
)
def test_a_model_is_known_by_its_other_names(changes: dict[str, Any]) -> None:
    pytest.importorskip("ecologits")
    usual = evaluate(ENERGY, {"llm_calls": [CALL]}).value
    score = evaluate(ENERGY, {"llm_calls": [{**CALL, **changes}]})
    assert (score.status, score.value) == ("ok", usual)


def test_calls_add_up_and_failed_ones_count_nothing() -> None:
    pytest.importorskip("ecologits")
    one = evaluate(ENERGY, {"llm_calls": [CALL]}).detail["energy_kwh"]
    failed = {**CALL, "output_tokens": None, "error": "boom"}
    assert evaluate(ENERGY, {"llm_calls": [CALL, failed, CALL]}).detail["energy_kwh"] == pytest.approx(2 * one)


@pytest.mark.parametrize(
    "calls",
    [
        pytest.param(3, id="calls of which only the number is known"),
        pytest.param([CALL, {**CALL, "model": "my-own-model"}], id="a model that nobody knows"),
        pytest.param([CALL, {**CALL, "output_tokens": None}], id="a call without tokens"),
        pytest.param([CALL] * 501, id="too many calls"),
        pytest.param([{"model": "gpt-4o-mini", "error": "boom"}], id="only calls that failed"),
    ],
)
def test_what_cannot_be_told_of_every_call_is_not_estimated(calls: Any) -> None:
    for metric in (ENERGY, CARBON):
        score = evaluate(metric, {"llm_calls": calls})
        assert (score.status, score.detail) == ("skipped", {"reason": "missing:energy"})


@pytest.mark.usefixtures("_fresh_library")
def test_without_a_library_that_works_there_is_no_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    assert evaluate(CARBON, {"llm_calls": [CALL]}, estimate=False).status == "skipped"

    def fail(*args: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(pytest.importorskip("ecologits.tracers.utils"), "llm_impacts", fail)
    assert evaluate(ENERGY, {"llm_calls": [CALL]}).status == "skipped"
    sustainability._ecologits_estimate.cache_clear()
    monkeypatch.setitem(sys.modules, "ecologits.tracers.utils", None)
    assert evaluate(ENERGY, {"llm_calls": [CALL]}).status == "skipped"


@pytest.mark.usefixtures("_fresh_library")
def test_the_library_leaves_the_process_s_logging_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ecologits")
    for name in [name for name in sys.modules if name.split(".")[0] == "ecologits"]:
        monkeypatch.delitem(sys.modules, name)
    loggers = logging.getLoggerClass()
    assert evaluate(ENERGY, {"llm_calls": [CALL]}).status == "ok"
    assert logging.getLoggerClass() is loggers


# --- resources


@pytest.mark.parametrize(
    ("percent", "value"),
    [
        pytest.param(0, 0.0, id="unused"),
        pytest.param(40, 1.0, id="at the lower bound"),
        pytest.param(96.01, 0.799875, id="just above it"),
    ],
)
def test_a_resource_counts_by_how_close_it_is_to_its_target(percent: float, value: float) -> None:
    for name, metadata in (
        ("cpu", {"cpu_percent": percent}),
        ("gpu", {"gpu_percent": percent}),
        ("memory", {"memory_mb": percent / 80 * 4096}),
    ):
        score = evaluate(RESOURCES, {"metadata": metadata})
        assert score.value == pytest.approx(value)
        assert list(score.detail) == [name]
        assert score.passed is None


def test_resources_are_averaged_as_far_as_they_are_known() -> None:
    score = evaluate(RESOURCES, {"metadata": {"cpu_percent": 80, "memory_mb": 0}}, target_memory_gb=8)
    assert score.value == 0.5
    assert score.detail == {
        "cpu": {"used_percent": 80, "target_percent": 80, "score": 1.0},
        "memory": {"used_gb": 0, "target_gb": 8, "score": 0.0},
    }


def test_a_target_of_nothing_wants_nothing_and_the_first_span_counts() -> None:
    params = {"target_cpu_percent": 0, "target_gpu_percent": 0}
    assert evaluate(RESOURCES, {"metadata": {"cpu_percent": 0, "gpu_percent": 1}}, **params).value == 0.5
    spans = [span("r"), span("a", "r", cpu_percent=20), span("b", "r", cpu_percent=80)]
    assert evaluate(RESOURCES, {"spans": spans}).value == 0.5


@pytest.mark.parametrize(
    ("metric", "metadata", "reason"),
    [
        pytest.param(ENERGY, {}, "missing:energy", id="no energy"),
        pytest.param(ENERGY, {"energy_kwh": "0.1"}, "missing:energy", id="energy as a text"),
        pytest.param(ENERGY, {"energy_kwh": 10**400}, "missing:energy", id="more energy than there is"),
        pytest.param(CARBON, {"energy_kwh": None}, "missing:energy", id="no carbon and no energy"),
        pytest.param(CARBON, {"carbon_kg": -1}, "missing:energy", id="negative carbon"),
    ],
)
def test_does_not_apply(metric: str, metadata: dict[str, Any], reason: str) -> None:
    score = evaluate(metric, {"metadata": metadata})
    assert (score.status, score.value, score.detail) == ("skipped", None, {"reason": reason})
