"""The data files of metrics have the format that their loaders expect."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

import otel_agenteval as oa
from otel_agenteval.core.files import load_yaml
from otel_agenteval.metrics import names
from otel_agenteval.metrics.names.conversions import SPELLINGS
from otel_agenteval.metrics.prompts import SENTENCES, Prompts
from otel_agenteval.metrics.registry import catalog

METRICS = Path(oa.__file__).parent / "metrics"
FAMILIES = sorted(path.stem for path in (METRICS / "prompts").glob("*.yaml"))
PARTS = ("How: ", "Scale", "What counts: ", "What does not count: ", "Good: ", "Bad: ")
"""Starts of the parts of a prompt, in order."""


@pytest.mark.parametrize("family", FAMILIES)
def test_prompts_are_texts_with_their_parts_in_order(family: str) -> None:
    prompts = Prompts(family)
    assert prompts.content.keys() <= {"prompts", "cases", "categories", "evidence"}
    for name, text in prompts.texts.items():
        lines = text.split("\n")
        found = [part for line in lines for part in PARTS if line.startswith(part)]
        assert found == [part for part in PARTS if part in found], name
        assert lines == [line.strip() for line in lines], name
        assert set(re.findall(r"\{([a-z_]+)\}", text)) <= ({"what"} if family == "g_eval" else set()), (
            f"not one of {[*SENTENCES]}"
        )


@pytest.mark.parametrize("family", FAMILIES)
def test_probe_cases_are_turns_for_metrics_of_the_family(family: str) -> None:
    cases: list[dict[str, Any]] = Prompts(family).content.get("cases", [])
    for case in cases:
        assert {"metrics", "good", "bad"} <= case.keys() <= {"metrics", "good", "bad", "params", "place"}
        oa.Turn.from_dict(case["good"])
        oa.Turn.from_dict(case["bad"])
    named = [name for case in cases for name in case["metrics"]]
    assert len(named) == len(set(named))
    assert set(named) <= metrics_of(family)


# --- names


@pytest.mark.parametrize("prefix", names.TOOLS)
def test_file_of_a_tool_maps_its_metrics(prefix: str) -> None:
    content = load_yaml(METRICS / "names" / f"{prefix}.yaml")
    assert {"title", "version", "metrics"} <= content.keys() <= {"title", "version", "parameters", "snake_case", "metrics"}
    assert set(content.get("snake_case", {})) <= {name for entry in content["metrics"] for name in entry.split(", ")}
    for entry in content["metrics"].values():
        assert isinstance(entry, str) or {"metric"} <= entry.keys() <= {"metric", "preset", "note", "parameters"}
    for entries in (content, *content["metrics"].values()):
        assert faults_of(entries.get("parameters", {}) if isinstance(entries, dict) else {}) == []


def faults_of(parameters: dict[str, Any]) -> list[str]:
    """Return parameters whose mapping is neither a name nor a known conversion."""
    return [name for name, one in parameters.items() if not isinstance(one, str) and next(iter(one)) not in SPELLINGS]


# --- all


@pytest.mark.parametrize("path", sorted(METRICS.rglob("*.yaml")), ids=lambda path: path.name)
def test_no_name_occurs_twice_in_a_mapping(path: Path) -> None:
    def repeated(node: yaml.Node | None) -> list[str]:
        if isinstance(node, yaml.MappingNode):
            keys = [name for key, _ in node.value for name in key.value.split(", ")]
            return [*{key for key in keys if keys.count(key) > 1}, *(key for _, value in node.value for key in repeated(value))]
        return [key for one in node.value for key in repeated(one)] if isinstance(node, yaml.SequenceNode) else []

    assert repeated(yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)) == []


def metrics_of(family: str) -> set[str]:
    return {metric.name for metric in catalog() if metric.family == family}
