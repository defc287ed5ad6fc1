"""The catalog index matches the decorators. A metric is the same whether its module is imported or not."""

from __future__ import annotations

import dataclasses

import pytest

import otel_agenteval as oa
from otel_agenteval.metrics import registry
from otel_agenteval.metrics.bound_metric import BoundMetric
from otel_agenteval.metrics.registry import Metric, catalog, indexed

METRICS = [metric for metric in catalog() if metric.is_ours]
DERIVED = ("kind", "reads", "inline")
BOUND = ("params", "threshold", "signature_hash", "missing", "asks", "_call", "_facts", "_inverse", "_when_true")


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_an_indexed_metric_says_what_its_module_says(metric: Metric) -> None:
    found = indexed(metric.name)
    assert found is not None
    assert not found.is_imported
    for name in (*(field.name for field in dataclasses.fields(Metric) if field.name != "source"), *DERIVED):
        assert getattr(found, name) == getattr(metric, name), name
    assert found.definition == metric.definition
    for params in ({}, metric.live):
        lazy, imported = BoundMetric(found, params), BoundMetric(metric, params)
        assert [getattr(lazy, name) for name in BOUND] == [getattr(imported, name) for name in BOUND]


def test_a_metric_is_imported_by_its_first_turn() -> None:
    found = indexed("code_empty_answer")
    assert found is not None
    lazy = BoundMetric(found, {})
    turn = oa.Turn.from_dict({"turn_id": "t", "input": "a", "output": "b"})
    assert lazy.evaluate(turn).to_dict() == oa.get_metric("code_empty_answer").evaluate(turn).to_dict()
    assert lazy._fn is found.fn


def test_what_an_unused_metric_applies_to_is_asked_of_its_module() -> None:
    metric = next(metric for metric in METRICS if metric.selective and not metric.required)
    found = indexed(metric.name)
    assert found is not None
    turn = oa.Turn.from_dict({"turn_id": "t", "input": "a", "output": "b"})
    lazy, imported = BoundMetric(found, {}).not_applicable(turn), BoundMetric(metric, {}).not_applicable(turn)
    assert (lazy and lazy.to_dict()) == (imported and imported.to_dict())


def test_a_metric_that_is_newer_than_the_index_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(registry.builtin(), "code_latency")
    assert oa.get_metric("code_latency").name == "code_latency"


def test_a_name_of_ours_is_refused_before_its_module_is_imported() -> None:
    with pytest.raises(oa.ConfigError, match=r"metric 'code_latency' is already defined at .*performance_cost\.py"):

        @oa.metric()
        def code_latency(turn: oa.Turn) -> float:
            """Another one."""
            return 0.0
