from __future__ import annotations

from typing import Any

import pytest

import otel_agenteval as oa


def evaluate(metric: str, retrieved: list[str] | None, relevant: list[str] | None, **params: Any) -> oa.Score:
    return oa.get_metric(metric, **params).evaluate(oa.Turn.from_dict({"retrieved_ids": retrieved, "relevant_ids": relevant}))


def test_recall_takes_k_before_duplicates_fall_together() -> None:
    assert evaluate("code_recall_at_k", ["a", "a", "b"], ["a", "b"], k=2).value == 0.5
    assert evaluate("code_recall_at_k", ["a"], ["a", "A", "b"]).value == 0.5, "relevant ids form a set"
    assert evaluate("code_recall_at_k", [str(i) for i in range(11)], ["10"]).value == 0.0, "k is 10 by default"


def test_mrr_counts_to_its_last_rank() -> None:
    assert evaluate("code_mrr", ["x", "x", "x", "a"], ["a"]).value == 0.25
    assert evaluate("code_mrr", ["x", "b", "a"], ["a", "b"], max_rank=2).value == 0.5
    assert evaluate("code_mrr", ["x", "a"], ["a"], max_rank=1).value == 0.0


def test_recall_at_k_says_what_was_found_and_missed() -> None:
    counts = {"k": 2, "relevant_count": 2, "retrieved_at_k": 2, "relevant_found_at_k": 1}
    found = evaluate("code_recall_at_k", ["A", "x", "y"], ["a", "b"], k=2).detail
    assert found == {**counts, "relevant_found": ["a"], "relevant_missed": ["b"]}


def test_mrr_says_which_document_came_first() -> None:
    found = {"first_relevant_rank": 2, "max_rank": 0, "reciprocal_rank": 0.5, "first_relevant_doc": "A"}
    assert evaluate("code_mrr", ["x", "A"], ["a"]).detail == found
    none = {"first_relevant_rank": 0, "max_rank": 0, "reciprocal_rank": 0.0, "first_relevant_doc": None}
    assert evaluate("code_mrr", ["x"], ["a"]).detail == none


@pytest.mark.parametrize("metric", ["code_recall_at_k", "code_mrr"])
def test_relevant_ids_come_from_the_references_when_the_turn_has_none(metric: str) -> None:
    turn = oa.Turn.from_dict({"retrieved_ids": ["a"], "references": {"relevant_ids": ["a"]}})
    assert oa.get_metric(metric).evaluate(turn).value == 1.0
