"""The catalog's examples for every ``code_`` metric with a family file in this folder."""

from __future__ import annotations

import json
import math
import pathlib
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.metrics.registry import catalog

VECTORS = pathlib.Path(__file__).parent.parent / "data" / "vectors"


def _vectors() -> list[Any]:
    registered = {metric.name for metric in catalog() if metric.kind == "code"}
    return [
        pytest.param(vector, id=vector["id"])
        for path in sorted(VECTORS.glob("*.json"))
        for vector in json.loads(path.read_text(encoding="utf-8"))["vectors"]
        if vector["metric"] in registered
    ]


def _same(got: Any, want: Any, tolerance: float) -> bool:
    """Compare numbers with a tolerance, objects by the expected keys only, and other values exactly."""
    if isinstance(want, dict):
        return isinstance(got, dict) and all(key in got and _same(got[key], inner, tolerance) for key, inner in want.items())
    if isinstance(want, list):
        return (
            isinstance(got, list)
            and len(got) == len(want)
            and all(_same(g, w, tolerance) for g, w in zip(got, want, strict=True))
        )
    if isinstance(want, bool) or not isinstance(want, (int, float)):
        return bool(got == want)
    return isinstance(got, (int, float)) and math.isclose(got, want, rel_tol=0, abs_tol=max(tolerance, 1e-9))


def _inner(result: dict[str, Any]) -> oa.Score:
    if "rating" in result:
        rating = result["rating"]
        return oa.Score.from_dict({"metric": "rating", "value": rating["score"], "detail": rating})
    known = {key: result[key] for key in ("value", "status", "type", "direction", "passed") if key in result}
    return oa.Score.from_dict({"metric": result["name"], **known})


def _scored(vector: dict[str, Any], turn: oa.Turn) -> oa.Score:
    params = dict(vector["params"])
    if "oracle" in params:  # a function, written as text only in the vectors
        params["oracle"] = eval(params["oracle"])
    metric = oa.get_metric(vector["metric"], **params)
    if "inner_results" in vector:
        return metric.combine([_inner(result) for result in vector["inner_results"]])
    return metric.evaluate(turn)


@pytest.mark.parametrize("vector", _vectors())
def test_a_vector_gives_the_expected_score_also_when_the_turn_went_through_json(vector: dict[str, Any]) -> None:
    turn = oa.Turn.from_dict(vector["turn"])
    score = _scored(vector, turn)
    expected = vector["expected"]
    assert score.status == expected["status"], score
    assert _same(score.value, expected.get("value"), vector["tolerance"]), score
    if expected.get("passed") is not None:
        assert score.passed is expected["passed"]
    assert _same(score.detail, expected.get("detail", {}), vector["tolerance"]), score.detail
    assert _scored(vector, oa.Turn.from_dict(json.loads(json.dumps(turn.to_dict())))) == score
