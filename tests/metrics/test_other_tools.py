"""Every name in the table of other tools resolves or explains its difference. Parameters have the tool's names."""

from __future__ import annotations

import re
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.metrics.names import Tool, ToolMetric, tool_metrics
from otel_agenteval.metrics.registry import catalog
from otel_agenteval.metrics.spellings import Converted, Unsupported

ROWS = [*tool_metrics()]
SAME = [(tool, row) for tool, row in ROWS if row.ours is not None]
METRICS = {metric.name: metric for metric in catalog()}
CALLED = re.compile(r"\b(?:code|embed|llm)_\w+")


def name_of(row: tuple[Tool, ToolMetric]) -> str:
    return f"{row[0].prefix}:{row[1].name}"


@pytest.mark.parametrize("prefix", sorted({tool.prefix for tool, _ in ROWS}))
def test_each_name_of_a_tool_is_our_metric_or_says_which_to_use(prefix: str) -> None:
    for tool, row in ROWS:
        name = name_of((tool, row))
        if tool.prefix != prefix:
            continue
        if row.ours is not None:
            metric = oa.get_metric(name)
            assert (metric.name, metric.params) == (row.ours, dict(row.preset))
            continue
        assert CALLED.findall(row.note)
        with pytest.raises(oa.ConfigError, match=re.escape(f"{name}: {row.note}")):
            oa.get_metric(name)


def test_each_parameter_of_a_tool_is_the_metric_s_or_refused_with_what_to_do() -> None:
    texts = [row.note for _, row in ROWS]
    for tool, row in SAME:
        for theirs, spelling in {**tool.parameters, **row.parameters}.items():
            if isinstance(spelling, Unsupported):
                texts.append(spelling.how)
                with pytest.raises(oa.ConfigError, match=re.escape(spelling.how[1:])):
                    oa.get_metric(f"{tool.prefix}:{row.name}", **{theirs: "x"})
            elif isinstance(spelling, str):
                assert theirs in tool.parameters or spelling in METRICS[str(row.ours)].parameters, (tool.prefix, row.name, theirs)
            else:
                assert isinstance(spelling, Converted)
    assert {name for text in texts for name in CALLED.findall(text)} - METRICS.keys() == set()


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        ("cost", "code_cost"),  # AgentUnit's; promptfoo's bounds it
        ("promptfoo:cost", "code_max_cost"),
        ("KnowledgeRetentionMetric", "llm_knowledge_retention"),  # one tool has it
        ("exact_match", "code_equals_ground_truth"),  # several have it, and mean the same
        ("ragas:id_based_context_recall", "code_recall_at_k"),
        ("faithfulness", "llm_faithfulness"),  # a seed's, before ragas'
        ("pydantic-evals:Equals", "code_equals"),
        ("not-is-json", "code_is_json"),
    ],
)
def test_a_name_works_alone_where_it_is_clear(name: str, metric: str) -> None:
    assert oa.get_metric(name).name == metric


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("GEval", "deepeval:GEval, pydantic_evals:GEval"),
        ("deepeval:FaithfulnesMetric", "deepeval:FaithfulnessMetric"),
        ("promptfoo:not-llm-rubric", "code_not"),
    ],
)
def test_a_name_without_one_meaning_is_refused_with_what_to_use(name: str, instead: str) -> None:
    with pytest.raises(oa.ConfigError, match=instead):
        oa.get_metric(name)


def test_refused_value_is_named_with_the_allowed_value() -> None:
    with pytest.raises(oa.ConfigError, match=r"must be true, got False\. To count only"):
        oa.get_metric("deepeval:FaithfulnessMetric", penalize_ambiguous_claims=False)


def test_not_turns_a_yes_or_no_around() -> None:
    assert oa.get_metric("promptfoo:not-icontains", value="x").params == {"value": "x", "inverse": True}


@pytest.mark.parametrize(
    ("name", "given", "params"),
    [
        ("deepeval:GEval", {"criteria": "c", "evaluation_steps": ["s"]}, {"criteria": "c", "steps": ["s"], "threshold": 0.5}),
        ("deepeval:GEval", {"criteria": "c", "evaluation_params": ["INPUT", "ACTUAL_OUTPUT"]}, {"criteria": "c", "threshold": 0.5}),
        ("deepeval:GEval", {"criteria": "c", "strict_mode": True}, {"criteria": "c", "threshold": 1.0}),
        ("deepeval:StepEfficiencyMetric", {"strict_mode": False, "include_reason": True}, {"threshold": 0.5}),
        ("deepeval:JsonCorrectnessMetric", {"expected_schema": {}, "threshold": 0.5}, {"schema": {}}),
        (
            "deepeval:ToolCorrectnessMetric",
            {"should_exact_match": True, "should_consider_ordering": True, "evaluation_params": ["INPUT_PARAMETERS", "OUTPUT"]},
            {"exact_match": True, "ordered": True, "check_arguments": True, "check_output": True, "threshold": 0.5},
        ),
        ("promptfoo:is-json", {"value": {"type": "object"}}, {"schema": {"type": "object"}}),
        ("promptfoo:latency", {"threshold": 200}, {"threshold_ms": 200.0}),
        ("promptfoo:word-count", {"value": 3}, {"exact": 3, "tokenizer": "whitespace"}),
        ("promptfoo:word-count", {"value": {"min": 1, "max": 3}}, {"min": 1, "max": 3, "tokenizer": "whitespace"}),
        ("promptfoo:is-xml", {"value": "a, b.c"}, {"required_elements": ("a", "b.c")}),
        ("promptfoo:is-xml", {"value": {"requiredElements": ["a"]}}, {"required_elements": ("a",)}),
        ("promptfoo:is-sql", {"value": {"databaseType": "PostgreSQL", "allowedTables": ["a"]}}, {"dialect": "postgres", "allowed_tables": ("a",)}),
        ("promptfoo:tool-call-f1", {"value": "a, b", "threshold": 0.8}, {"expected_tools": ["a", "b"], "mode": "set", "threshold": 0.8}),
        ("promptfoo:trajectory:tool-used", {"value": ["a"]}, {"tool": "a"}),
        ("promptfoo:trajectory:tool-sequence", {"value": {"steps": ["a", "b"]}}, {"expected": ["a", "b"]}),
        ("promptfoo:trajectory:tool-args-match", {"value": {"name": "t", "args": {"a": 1}}}, {"tool": "t", "argument": "a", "expected": 1}),
        ("promptfoo:conversation-relevance", {"config": {"windowSize": 3}}, {"window_size": 3, "threshold": 0.5}),
        ("mlflow:Guidelines", {"guidelines": ["a", "b"]}, {"rubric": "- a\n- b"}),
        ("mlflow:RegexMatch", {"pattern": "a", "case_insensitive": True, "match_type": "search"}, {"pattern": "a", "flags": "i"}),
        ("pydantic_evals:Contains", {"value": "a, b", "case_sensitive": False}, {"value": ["a, b"], "ignore_case": True}),
        (
            "pydantic_evals:HasMatchingSpan",
            {"query": {"not_": {"name_equals": "a"}, "min_duration": "500ms", "has_attributes": {"maxRank": 1}}},
            {"query": {"not": {"name_equals": "a"}, "min_duration_s": 0.5, "has_attributes": {"maxRank": 1}}},
        ),
    ],
)  # fmt: skip
def test_parameters_go_by_the_tool_s_names(name: str, given: dict[str, Any], params: dict[str, Any]) -> None:
    assert oa.get_metric(name, **given).params == params


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("deepeval:GEval", {"include_reason": False}),
        ("deepeval:GEval", {"evaluation_params": ["retrieval_context"]}),
        ("deepeval:GEval", {"strict_mode": "yes"}),
        ("deepeval:TaskCompletionMetric", {"strict_mode": True, "threshold": 0.3}),
        ("deepeval:FaithfulnessMetric", {"penalize_ambiguous_claims": False}),
        ("deepeval:ToolCorrectnessMetric", {"evaluation_params": ["input"]}),
        ("deepeval:ExactMatchMetric", {"threshold": 2}),
        ("promptfoo:word-count", {"value": {"exactly": 3}}),
        ("promptfoo:is-sql", {"value": {"allowedTables": ["select::null::a"]}}),
        ("promptfoo:is-sql", {"value": {"databaseType": "DB2"}}),
        ("promptfoo:is-sql", {"value": "MySQL"}),
        ("promptfoo:trajectory:tool-used", {"value": ["a", "b"]}),
        ("promptfoo:trajectory:tool-sequence", {"value": {"steps": ["a"], "mode": "exact"}}),
        ("promptfoo:trajectory:tool-sequence", {"value": [{"name": "a"}]}),
        ("promptfoo:trajectory:tool-args-match", {"value": {"name": "t", "args": {"a": 1, "b": 2}}}),
        ("promptfoo:conversation-relevance", {"config": {"window": 3}}),
        ("pydantic_evals:Contains", {"value": ["a"]}),
        ("pydantic_evals:Contains", {"value": "a", "case_sensitive": "no"}),
        ("pydantic_evals:MaxDuration", {"seconds": "soon"}),
        ("mlflow:RegexMatch", {"match_type": "fullmatch"}),
    ],
)
def test_a_value_that_cannot_be_meant_is_refused(name: str, given: dict[str, Any]) -> None:
    with pytest.raises(oa.ConfigError, match=rf"\b({'|'.join(given)})\b"):
        oa.get_metric(name, **given)


@pytest.mark.parametrize(("output", "passed"), [("ORD-7", True), (" ord-7\n", True), ("ORD-7 it is", False)])
def test_a_pattern_of_deepeval_matches_the_whole_output(output: str, passed: bool) -> None:
    metric = oa.get_metric("deepeval:PatternMatchMetric", pattern=r"ORD-\d|x", ignore_case=True)
    assert metric.evaluate(oa.Turn(output=output)).passed is passed
