"""The data files of metrics have the form that their loaders expect."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.metrics.llm import video
from otel_agenteval.metrics.prompts import SENTENCES, Prompts
from otel_agenteval.metrics.registry import catalog

METRICS = Path(oa.__file__).parent / "metrics"
FAMILIES = sorted(path.stem for path in (METRICS / "prompts").glob("*.yaml"))
PARTS = ("How: ", "Scale", "What counts: ", "What does not count: ", "Good: ", "Bad: ")
"""Starts of a prompt's parts, in their order."""


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
def test_every_prompt_is_used_by_its_family(family: str) -> None:
    module = METRICS / ("lib" if family == "g_eval" else "llm") / f"{family}.py"
    used = set(re.findall(r"_PROMPTS\[[\"'](\w+)[\"']\]", module.read_text(encoding="utf-8")))
    by_topic = {name.removeprefix("llm_") for name in metrics_of(family)} if family == "safety_policy" else set()
    assert used | (by_topic & Prompts(family).texts.keys()) == Prompts(family).texts.keys()


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


def test_video_prompts_describe_every_dimension() -> None:
    prompts = Prompts("video")
    by_prompt = {
        "looks": video._QUALITY,
        "shows_prompt": video._ALIGNMENT,
        "steady": video._CONSISTENCY,
        "plausible": video._PLAUSIBILITY,
    }
    for name, dimensions in by_prompt.items():
        assert [one for one in dimensions if f"{one}: " not in prompts[name]] == []


def metrics_of(family: str) -> set[str]:
    return {metric.name for metric in catalog() if metric.family == family}
