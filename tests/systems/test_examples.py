"""The examples in the documentation of five systems run under their names (``tests/systems/examples.yaml``)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

import otel_agenteval as oa
from otel_agenteval.evaluation.selection import select_metrics
from otel_agenteval.metrics.names import presets
from tests.support.judges import ScriptedModels

EXAMPLES: dict[str, list[dict[str, Any]]] = yaml.safe_load(Path(__file__).with_name("examples.yaml").read_text(encoding="utf-8"))
ROWS = [
    pytest.param(system, example, id=f"{system}-{i}-{next(iter(example['metric']))}")
    for system, examples in EXAMPLES.items()
    for i, example in enumerate(examples)
]


@pytest.mark.parametrize(("system", "example"), ROWS)
def test_documented_example_gives_its_score(system: str, example: dict[str, Any], models: ScriptedModels) -> None:
    ((name, params),) = example["metric"].items()
    turn = oa.Turn.from_dict(example["turn"])
    vectors = example.get("vectors")
    score = models.score(f"{system}:{name}", turn, *example.get("replies", ()), vectors=vectors, **params)
    assert score.status == "ok", score
    assert score.value == pytest.approx(example["value"], abs=1e-4)
    assert score.passed == example.get("passed", score.passed)
    assert_matches(score.detail, example.get("detail", {}))
    assert ("said" in example) <= ("differs" in example)


def assert_matches(found: Any, expected: Any) -> None:
    """Check that a detail has the expected keys, also in nested objects. Numbers may differ by rounding."""
    if isinstance(expected, dict):
        for key, value in expected.items():
            assert_matches(found[key], value)
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_matches(one, other)
    else:
        assert found == (pytest.approx(expected, abs=1e-4) if isinstance(expected, float) else expected)


@pytest.mark.parametrize("system", EXAMPLES)
def test_documented_examples_are_a_configuration(system: str) -> None:
    distinct = {str(example["metric"]): example["metric"] for example in EXAMPLES[system]}.values()
    entries = [
        {f"{system}:{name}": params, "name": f"example_{i}"}
        for i, metric in enumerate(distinct)
        for name, params in metric.items()
    ]
    selected = select_metrics(oa.Config(preset=system, inline={"metrics": []}, metrics=entries))
    assert EXAMPLES.keys() == presets().keys()
    assert sum(bound.name.endswith(f".example_{i}") for i in range(len(entries)) for bound in selected) == len(entries)
