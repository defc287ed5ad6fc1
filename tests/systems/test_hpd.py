"""HPD-Agent's documented evaluators, as printed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import otel_agenteval as oa


@pytest.mark.parametrize("query", [{"nameEquals": "search"}, {}, {"not": {"nameEquals": "search"}}])
def test_span_query_without_spans_is_skipped(query: dict[str, Any]) -> None:
    result = oa.evaluate(lambda question: "!", [{"input": "?"}], [{"hpd:HasMatchingSpanEvaluator": {"query": query}}])
    (score,) = result.scored[0][1]
    assert (score.status, score.detail) == ("skipped", {"reason": "missing:spans"})


def test_span_query_fails_if_no_span_matches() -> None:
    turn = oa.Turn.from_dict({"spans": [{"id": "1", "name": "book"}]})
    for name, passed in (("book", True), ("search", False)):
        assert oa.get_metric("hpd:HasMatchingSpanEvaluator", query={"nameEquals": name}).evaluate(turn).passed is passed


@pytest.mark.parametrize(
    "options", [{"Alpha": 0.5, "Gamma": 0.0}, {"alpha": 0.5, "gamma": 0}, SimpleNamespace(alpha=0.5, gamma=0.0)]
)
def test_meteor_takes_its_options(options: Any) -> None:
    turn = oa.Turn(output="the cat sat on the mat")
    score = oa.get_metric("hpd:MeteorEvaluator", references=["the cat is on the mat"], options=options).evaluate(turn)
    plain = oa.get_metric("code_meteor", references=["the cat is on the mat"], alpha=0.5, gamma=0).evaluate(turn)
    assert score.value == plain.value == pytest.approx(5 / 6, abs=1e-4)


def test_unknown_option_of_meteor_is_refused() -> None:
    with pytest.raises(oa.ConfigError, match="delta: unknown parameter"):
        oa.get_metric("hpd:MeteorEvaluator", references=["a"], options={"Delta": 1})
    with pytest.raises(oa.ConfigError, match="must be an object"):
        oa.get_metric("hpd:MeteorEvaluator", references=["a"], options=0.9)
