"""Tests against a real model, on any OpenAI-compatible server.

They run if ``OTEL_AGENTEVAL_TEST_JUDGE_URL`` and ``OTEL_AGENTEVAL_TEST_JUDGE_MODEL`` are set, for example
``http://127.0.0.1:11434/v1`` and ``qwen3:4b``. ``OTEL_AGENTEVAL_TEST_JUDGE_KEY`` is the key, if the server needs one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

import otel_agenteval as oa
from otel_agenteval.judging.models.probe import probe

# Read at import: no OTEL_ variable reaches a test.
URL = os.environ.get("OTEL_AGENTEVAL_TEST_JUDGE_URL", "")
MODEL = os.environ.get("OTEL_AGENTEVAL_TEST_JUDGE_MODEL", "")
KEY = os.environ.get("OTEL_AGENTEVAL_TEST_JUDGE_KEY")

pytestmark = pytest.mark.skipif(not URL, reason="OTEL_AGENTEVAL_TEST_JUDGE_URL is not set")
QUESTION = "What is the capital of France?"


@pytest.fixture
def real() -> Iterator[oa.Judge]:
    judge = oa.Judge(URL, MODEL, KEY, timeout=120, deadline=300, max_concurrency=2)
    yield judge
    judge.close()


def test_a_model_is_named() -> None:
    assert MODEL, "OTEL_AGENTEVAL_TEST_JUDGE_MODEL names the model on the server"


@pytest.mark.parametrize(
    ("metric", "good", "bad"),
    [
        ("llm_relevance", {"output": "The capital of France is Paris."}, {"output": "Bananas are yellow and rich in potassium."}),
        (
            "llm_faithfulness",
            {"output": "Paris is the capital of France.", "context": ["Paris is the capital of France."]},
            {"output": "Paris has nine million trams.", "context": ["Paris is the capital of France."]},
        ),
        (
            "llm_answer_correctness",
            {"output": "It is Paris.", "ground_truth": "Paris"},
            {"output": "It is Lyon.", "ground_truth": "Paris"},
        ),
    ],
)
def test_a_good_answer_scores_higher_than_a_bad_one(
    real: oa.Judge, metric: str, good: dict[str, object], bad: dict[str, object]
) -> None:
    scores = [
        oa.get_metric(metric).evaluate(oa.Turn.from_dict({"input": QUESTION, **facts}), judge=real) for facts in (good, bad)
    ]
    assert [score.status for score in scores] == ["ok", "ok"], scores
    assert scores[0].value is not None
    assert scores[1].value is not None
    assert scores[0].value > scores[1].value
    assert real.total().input_tokens > 0


def test_the_controls_of_the_probe_are_distinguished(real: oa.Judge) -> None:
    found = probe(real, ())
    assert found.fault is None, found
