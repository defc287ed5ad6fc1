"""A changed prompt needs a new metric version, so that a series of scores never mixes prompts."""

from __future__ import annotations

import json
import re

import pytest

import otel_agenteval as oa
from otel_agenteval.judging.models import prompt
from otel_agenteval.metrics.llm import rag_judges
from otel_agenteval.metrics.question import Question
from otel_agenteval.metrics.registry import catalog
from scripts.prompt_versions import EVERY_JUDGE, FILE, changed, prompts

KNOWN = json.loads(FILE.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def found() -> dict[str, tuple[str, str]]:
    return prompts()


def test_no_prompt_changed_without_a_new_version(found: dict[str, tuple[str, str]]) -> None:
    assert changed(KNOWN, found) == []


def test_every_metric_that_asks_has_its_prompts_in_the_file(found: dict[str, tuple[str, str]]) -> None:
    asking = {metric.name for metric in catalog() if metric.kind == "llm"}
    assert asking == found.keys() - {EVERY_JUDGE}
    nothing_asked = "4f53cda18c2baa0c"  # the hash of no question at all
    assert nothing_asked not in {digest for _, digest in found.values()}


def test_a_changed_word_is_noticed(found: dict[str, tuple[str, str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rag_judges, "SCORE", '{"score": <0 to 1>, "reason": "<why, in short>"}')
    monkeypatch.setattr("scripts.prompt_versions.SYSTEM", f"{prompt.SYSTEM} Be kind.")
    faults = changed(KNOWN, prompts())
    names = {re.split(":", fault)[0] for fault in faults}
    assert {EVERY_JUDGE, "llm_answer_similarity", "llm_noise_sensitivity"} <= names
    assert "llm_relevance" not in names
    assert all("raise its version" in fault for fault in faults)


def test_what_every_judge_is_told_is_part_of_what_replies_are_kept_by(monkeypatch: pytest.MonkeyPatch) -> None:
    judge = oa.Judge("http://127.0.0.1:1/v1", "m-1", cache={})
    question = Question("score", "t", {}, "r")
    before = judge._key(question)
    monkeypatch.setattr("otel_agenteval.judging.models.judge.VERSION", "another")
    assert judge._key(question) != before
