from __future__ import annotations

from typing import Any

import pytest

import otel_agenteval as oa


def evaluate(metric: str, retrieved: list[str] | None, relevant: list[str] | None, **params: Any) -> oa.Score:
    return oa.get_metric(metric, **params).evaluate(oa.Turn.from_dict({"retrieved_ids": retrieved, "relevant_ids": relevant}))


@pytest.mark.parametrize(
    ("retrieved", "relevant", "params", "value"),
    [
        pytest.param(["a", "b"], ["B", "A"], {}, 1.0, id="ids have no case"),
        pytest.param(["a"], ["a", "A", "b"], {}, 0.5, id="relevant ids form a set"),
        pytest.param(["a", "a", "b"], ["a", "b"], {"k": 2}, 0.5, id="the first k are taken before duplicates fall together"),
        pytest.param(["a"], ["a"], {"k": 100}, 1.0, id="k may exceed what was retrieved"),
        pytest.param([str(i) for i in range(11)], ["10"], {}, 0.0, id="k is 10 by default"),
        pytest.param([], ["a"], {}, 0.0, id="nothing retrieved"),
    ],
)
def test_recall_at_k_scores(retrieved: list[str], relevant: list[str], params: dict[str, Any], value: float) -> None:
    score = evaluate("code_recall_at_k", retrieved, relevant, **params)
    assert (score.value, score.passed) == (value, value >= 0.7)


def test_recall_at_k_says_what_was_found_and_missed() -> None:
    assert evaluate("code_recall_at_k", ["A", "x", "y"], ["a", "b"], k=2).detail == {
        "k": 2,
        "relevant_count": 2,
        "retrieved_at_k": 2,
        "relevant_found_at_k": 1,
        "relevant_found": ["a"],
        "relevant_missed": ["b"],
    }


@pytest.mark.parametrize(
    ("retrieved", "relevant", "params", "value"),
    [
        pytest.param(["x", "y", "A"], ["a"], {}, 1 / 3, id="the third place"),
        pytest.param(["x", "x", "x", "a"], ["a"], {}, 0.25, id="duplicates keep their places"),
        pytest.param(["x", "b", "a"], ["a", "b"], {}, 0.5, id="the first relevant one counts"),
        pytest.param(["x", "a"], ["a"], {"max_rank": 1}, 0.0, id="after the last rank that counts"),
        pytest.param(["x", "a"], ["a"], {"max_rank": 2}, 0.5, id="at the last rank that counts"),
        pytest.param(["x"], ["a"], {}, 0.0, id="nothing relevant"),
        pytest.param([], ["a"], {}, 0.0, id="nothing retrieved"),
    ],
)
def test_mrr_scores(retrieved: list[str], relevant: list[str], params: dict[str, Any], value: float) -> None:
    score = evaluate("code_mrr", retrieved, relevant, **params)
    assert (score.value, score.passed) == (value, value >= 0.33)


def test_mrr_says_which_document_came_first() -> None:
    found = {"first_relevant_rank": 2, "max_rank": 0, "reciprocal_rank": 0.5, "first_relevant_doc": "A"}
    assert evaluate("code_mrr", ["x", "A"], ["a"]).detail == found
    none = {"first_relevant_rank": 0, "max_rank": 0, "reciprocal_rank": 0.0, "first_relevant_doc": None}
    assert evaluate("code_mrr", ["x"], ["a"]).detail == none


@pytest.mark.parametrize("metric", ["code_recall_at_k", "code_mrr"])
@pytest.mark.parametrize(
    ("retrieved", "relevant", "reason"),
    [
        pytest.param(None, None, "missing:retrieved_ids", id="nothing is known"),
        pytest.param(["a"], None, "missing:relevant_ids", id="relevance is unknown"),
        pytest.param([], [], "missing:relevant_ids", id="nothing is relevant"),
    ],
)
def test_does_not_apply_when(metric: str, retrieved: Any, relevant: Any, reason: str) -> None:
    score = evaluate(metric, retrieved, relevant)
    assert (score.status, score.detail) == ("skipped", {"reason": reason})


@pytest.mark.parametrize("metric", ["code_recall_at_k", "code_mrr"])
def test_relevant_ids_come_from_the_references_when_the_turn_has_none(metric: str) -> None:
    turn = oa.Turn.from_dict({"retrieved_ids": ["a"], "references": {"relevant_ids": ["a"]}})
    assert oa.get_metric(metric).evaluate(turn).value == 1.0
