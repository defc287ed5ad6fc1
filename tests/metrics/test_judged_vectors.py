"""The catalog's examples of judged metrics. A scripted judge gives the replies of each vector, in order."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.metrics.registry import catalog
from tests.metrics.test_vectors import VECTORS, _same


def _vectors() -> list[Any]:
    return [
        pytest.param(vector, id=vector["id"])
        for path in sorted(VECTORS.glob("*.json"))
        for vector in json.loads(path.read_text(encoding="utf-8"))["vectors"]
        if vector["metric"].startswith(("llm_", "embed_"))
    ]


@pytest.mark.parametrize("vector", _vectors())
def test_a_judged_vector_gives_the_expected_score(vector: dict[str, Any], models: Any) -> None:
    expected = vector["expected"]
    try:
        oa.get_metric(vector["metric"], **vector["params"])
    except oa.ConfigError:
        assert expected["status"] == "error"
        return
    replies = [reply["raw"] if "raw" in reply else reply["reply"] for reply in vector.get("judge_replies") or []]
    turn = oa.Turn.from_dict(vector["turn"])
    score = models.score(vector["metric"], turn, *replies, vectors=vector.get("embeddings"), **vector["params"])
    assert score.status == expected["status"], score
    assert _same(score.value, expected.get("value"), vector["tolerance"]), score
    if expected.get("passed") is not None:
        assert score.passed is expected["passed"]
    assert _same(score.detail, expected.get("detail", {}), vector["tolerance"]), score.detail
    for name, want in (vector.get("also") or {}).items():
        companion = score.also[name]
        assert _same(companion.value, want.get("value"), vector["tolerance"])
        assert companion.passed is want.get("passed", companion.passed)
    if vector["metric"].startswith("embed_"):
        assert len(models.requests) <= 1


def _first_of_each(fits: Callable[[dict[str, Any]], Any]) -> list[Any]:
    """Return the first vector of each metric and method that fits."""
    found = [case for case in _vectors() if fits(case.values[0])]
    return list({(case.values[0]["metric"], case.values[0]["params"].get("method")): case for case in reversed(found)}.values())


def _number_in(vector: dict[str, Any]) -> str | None:
    """Return the key of the verdict's number in the last reply."""
    last = ((vector.get("judge_replies") or [{}])[-1]).get("reply") or {}
    keys = ("score", "verdict") if "label" in last or "language" in last else ("score", "verdict", "confidence")
    return next((key for key in keys if isinstance(last.get(key), (int, float)) and last[key] is not True), None)


@pytest.mark.parametrize("vector", _first_of_each(lambda vector: vector["expected"]["status"] == "ok" and _number_in(vector)))
def test_a_score_outside_its_scale_is_an_error(vector: dict[str, Any], models: Any) -> None:
    """The score isn't clipped, because the judge used another scale or no number."""
    *before, last = (reply["reply"] for reply in vector["judge_replies"])
    key = _number_in(vector)
    turn, vectors = oa.Turn.from_dict(vector["turn"]), vector.get("embeddings")
    models.score(vector["metric"], turn, *before, last, vectors=vectors, **vector["params"])
    scale = re.search(rf'"{key}": <(?:whole number from )?([\d.]+) to ([\d.]+)>', models.asked[-1])
    assert scale is not None
    low, high = map(float, scale.groups())
    for outside in (low - 1, high + 0.01, f"{high * 10}", True, "nan"):
        score = models.score(vector["metric"], turn, *before, {**last, key: outside}, vectors=vectors, **vector["params"])
        assert (score.status, score.value, score.passed, score.error_type) == ("error", None, None, "invalid_reply")


@pytest.mark.parametrize("vector", _first_of_each(lambda vector: vector.get("judge_replies")))
def test_without_a_readable_judge_there_is_no_score(vector: dict[str, Any], models: Any) -> None:
    metric, turn = oa.get_metric(vector["metric"], **vector["params"]), oa.Turn.from_dict(vector["turn"])
    assert metric.evaluate(turn).detail == {"reason": "no_judge"}
    score = models.score(vector["metric"], turn, "I would say 90.", "[0.75]", **vector["params"])
    assert (score.status, score.error_type, score.value) == ("error", "unreadable_reply", None)


def test_there_is_a_vector_for_every_metric_that_asks() -> None:
    asking = {metric.name for metric in catalog() if metric.kind != "code"}
    assert {vector.values[0]["metric"] for vector in _vectors()} >= asking
