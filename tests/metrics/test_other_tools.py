"""Every name in the table of other tools resolves, or says how it differs; its parameters go by the tool's names."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.evaluation.selection import select_metrics
from otel_agenteval.metrics.names import TOOLS, Tool, ToolMetric, load_tool, tool_metrics
from otel_agenteval.metrics.registry import catalog, resolve
from otel_agenteval.metrics.spellings import Converted, Unsupported

ROWS = [*tool_metrics()]
SAME = [(tool, row) for tool, row in ROWS if row.ours is not None]
DIFFERENT = [(tool, row) for tool, row in ROWS if row.ours is None]
METRICS = {metric.name: metric for metric in catalog()}
CALLED = re.compile(r"\b(?:code|embed|llm)_\w+")
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "metrics" / "other-tools.md"


def name_of(row: tuple[Tool, ToolMetric]) -> str:
    return f"{row[0].prefix}:{row[1].name}"


@pytest.mark.parametrize("found", SAME, ids=name_of)
def test_a_name_with_the_same_meaning_is_our_metric_with_what_it_presets(found: tuple[Tool, ToolMetric]) -> None:
    metric = oa.get_metric(name_of(found))
    assert (metric.name, metric.params) == (found[1].ours, dict(found[1].preset))


@pytest.mark.parametrize("found", DIFFERENT, ids=name_of)
def test_a_name_with_another_meaning_says_how_and_names_a_metric_of_ours(found: tuple[Tool, ToolMetric]) -> None:
    with pytest.raises(oa.ConfigError, match=re.escape(f"{name_of(found)}: {found[1].note}")):
        oa.get_metric(name_of(found))
    assert CALLED.findall(found[1].note)


def test_every_metric_that_the_table_names_exists() -> None:
    texts = [row.note for _, row in ROWS] + [
        getattr(spelling, "how", getattr(spelling, "ours", ""))
        for tool, row in ROWS
        for spelling in (*tool.parameters.values(), *row.parameters.values())
    ]
    assert {name for text in texts for name in CALLED.findall(text)} - METRICS.keys() == set()


def test_every_parameter_that_a_name_of_theirs_stands_for_is_the_metric_s() -> None:
    for tool, row in SAME:
        for theirs, spelling in row.parameters.items():
            if isinstance(spelling, str):
                assert spelling in METRICS[str(row.ours)].parameters, (tool.prefix, row.name, theirs)


def test_a_tool_names_a_metric_once() -> None:
    assert len({name_of(found) for found in ROWS}) == len(ROWS)


def test_the_page_has_every_name() -> None:
    page = PAGE.read_text(encoding="utf-8")
    sections = {tool.prefix: page.split(f"\n## {tool.title}\n", 1)[1].split("\n## ", 1)[0] for tool in map(load_tool, TOOLS)}
    assert [name_of(found) for found in ROWS if f"`{found[1].name}`" not in sections[found[0].prefix]] == []


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        ("KnowledgeRetentionMetric", "llm_knowledge_retention"),  # one tool has it
        ("exact_match", "code_equals_ground_truth"),  # several have it, and mean the same
        ("ragas:id_based_context_recall", "code_recall_at_k"),
        ("mlflow:relevance_to_query", "llm_relevance"),
        ("faithfulness", "llm_faithfulness"),  # a seed's, before ragas'
        ("code_cost", "code_cost"),
        ("pydantic-evals:Equals", "code_equals"),
        ("not-is-json", "code_is_json"),
    ],
)
def test_a_name_works_alone_where_it_is_clear(name: str, metric: str) -> None:
    assert oa.get_metric(name).name == metric


def test_a_seed_s_name_comes_before_another_tool_s() -> None:
    assert resolve("cost")[0].name == "code_cost"  # AgentUnit's; promptfoo's bounds it
    assert resolve("promptfoo:cost")[0].name == "code_max_cost"


def test_a_name_that_means_two_things_is_ambiguous() -> None:
    with pytest.raises(oa.ConfigError, match=r"GEval: ambiguous name\. Use one of deepeval:GEval, pydantic_evals:GEval"):
        oa.get_metric("GEval")


def test_an_unknown_name_of_a_known_tool_gets_the_nearest() -> None:
    with pytest.raises(oa.ConfigError, match=r"unknown metric of DeepEval\. Did you mean deepeval:FaithfulnessMetric"):
        oa.get_metric("deepeval:FaithfulnesMetric")


def test_not_turns_a_yes_or_no_around_and_says_what_to_do_with_a_number() -> None:
    assert oa.get_metric("promptfoo:not-icontains", value="x").params == {"value": "x", "inverse": True}
    with pytest.raises(oa.ConfigError, match=r"Use code_not with"):
        oa.get_metric("promptfoo:not-llm-rubric")


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
        ("ragas:AspectCritic", {"definition": "d"}, {"rubric": "d"}),
        ("promptfoo:is-json", {"value": {"type": "object"}}, {"schema": {"type": "object"}}),
        ("promptfoo:latency", {"threshold": 200}, {"threshold_ms": 200.0}),
        ("promptfoo:cost", {"threshold": 0.1}, {"max_cost_usd": 0.1}),
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
        ("promptfoo:similar:dot", {"value": "a"}, {"value": "a", "metric": "dot"}),
        ("mlflow:Guidelines", {"guidelines": ["a", "b"]}, {"rubric": "- a\n- b"}),
        ("mlflow:RegexMatch", {"pattern": "a", "case_insensitive": True, "match_type": "search"}, {"pattern": "a", "flags": "i"}),
        ("pydantic_evals:Contains", {"value": "a, b", "case_sensitive": False}, {"value": ["a, b"], "ignore_case": True}),
        ("pydantic_evals:MaxModelRequests", {"max_requests": 3}, {"max_iterations": 3}),
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
    ("name", "given", "says"),
    [
        ("deepeval:GEval", {"model": "gpt"}, "llm_g_eval.model: not supported. "),
        ("deepeval:GEval", {"include_reason": False}, "omit it"),
        ("deepeval:GEval", {"evaluation_params": ["retrieval_context"]}, "Put other facts into `criteria`"),
        ("deepeval:GEval", {"strict_mode": "yes"}, "must be true or false"),
        ("deepeval:TaskCompletionMetric", {"strict_mode": True, "threshold": 0.3}, "'threshold' is set twice, as 'strict_mode' and as 'threshold'"),
        ("deepeval:FaithfulnessMetric", {"penalize_ambiguous_claims": False}, "llm_hallucination counts"),
        ("deepeval:ToolCorrectnessMetric", {"evaluation_params": ["input"]}, "a list of input_parameters and output"),
        ("deepeval:ExactMatchMetric", {"threshold": 2}, "must be above 0 and at most 1"),
        ("promptfoo:latency", {"threshold": 100, "weight": 2}, "use code_weighted_score"),
        ("promptfoo:word-count", {"value": {"exactly": 3}}, "an object with min and max"),
        ("promptfoo:is-sql", {"value": {"allowedTables": ["select::null::a"]}}, "plain names"),
        ("promptfoo:is-sql", {"value": {"databaseType": "DB2"}}, "supported dialect"),
        ("promptfoo:is-sql", {"value": "MySQL"}, "an object with databaseType"),
        ("promptfoo:trajectory:tool-used", {"value": ["a", "b"]}, "one entry per tool"),
        ("promptfoo:trajectory:tool-sequence", {"value": {"steps": ["a"], "mode": "exact"}}, "code_tool_selection with strict_order"),
        ("promptfoo:trajectory:tool-sequence", {"value": [{"name": "a"}]}, "a list of tool names"),
        ("promptfoo:trajectory:tool-args-match", {"value": {"name": "t", "args": {"a": 1, "b": 2}}}, "code_tool_correctness with check_arguments"),
        ("promptfoo:conversation-relevance", {"config": {"window": 3}}, "windowSize"),
        ("pydantic_evals:Contains", {"value": ["a"]}, "a text or a number"),
        ("pydantic_evals:Contains", {"value": "a", "case_sensitive": "no"}, "must be true or false"),
        ("pydantic_evals:MaxDuration", {"seconds": "soon"}, "must be a number of seconds"),
        ("mlflow:RegexMatch", {"match_type": "fullmatch"}, "for the whole output"),
    ],
)  # fmt: skip
def test_a_value_that_cannot_be_meant_is_refused(name: str, given: dict[str, Any], says: str) -> None:
    with pytest.raises(oa.ConfigError, match=re.escape(says)):
        oa.get_metric(name, **given)


def test_each_refusal_of_a_parameter_is_raised() -> None:
    for tool, row in SAME:
        for theirs, spelling in {**tool.parameters, **row.parameters}.items():
            if isinstance(spelling, Unsupported):
                with pytest.raises(oa.ConfigError, match=re.escape(spelling.how)):
                    oa.get_metric(f"{tool.prefix}:{row.name}", **{theirs: "x"})
            assert isinstance(spelling, (str, Converted, Unsupported))


TURN = oa.Turn.from_dict({
    "input": "When does it open?", "output": "It opens at nine.", "ground_truth": "It opens at nine.", "duration_s": 1.5,
    "tool_calls": [{"name": "search", "arguments": {"q": "hours"}}],
})  # fmt: skip


@pytest.mark.parametrize(
    ("theirs", "given", "ours", "params"),
    [
        ("promptfoo:icontains", {"value": "NINE"}, "code_icontains", {"value": "NINE"}),
        ("promptfoo:not-contains", {"value": "ten"}, "code_not_contains", {"value": "ten"}),
        ("promptfoo:icontains-all", {"value": "IT, NINE"}, "code_contains_all", {"value": "IT, NINE", "ignore_case": True}),
        ("promptfoo:latency", {"threshold": 1000}, "code_latency_threshold", {"threshold_ms": 1000}),
        ("promptfoo:trajectory:tool-used", {"value": "search"}, "code_tool_was_called", {"tool": "search"}),
        ("promptfoo:word-count", {"value": {"max": 3}}, "code_word_count", {"max": 3}),
        ("deepeval:ExactMatchMetric", {}, "code_equals_ground_truth", {}),
        ("ragas:NonLLMStringSimilarity", {}, "code_levenshtein_similarity", {}),
        ("pydantic_evals:MaxDuration", {"seconds": 2}, "code_max_duration", {"max_seconds": 2}),
        ("pydantic_evals:ToolCorrectness", {"expected_tools": ["search"]}, "code_tool_call_f1", {"expected_tools": ["search"], "threshold": 1.0}),
        ("pydantic_evals:Contains", {"value": "opens at"}, "code_contains", {"value": "opens at"}),
    ],
)  # fmt: skip
def test_a_score_is_that_of_our_metric(theirs: str, given: dict[str, Any], ours: str, params: dict[str, Any]) -> None:
    found, own = oa.get_metric(theirs, **given).evaluate(TURN), oa.get_metric(ours, **params).evaluate(TURN)
    assert (found.status, found.value, found.passed) == ("ok", own.value, own.passed)


@pytest.mark.parametrize(("output", "passed"), [("ORD-7", True), (" ord-7\n", True), ("ORD-7 it is", False)])
def test_a_pattern_of_deepeval_matches_the_whole_output(output: str, passed: bool) -> None:
    metric = oa.get_metric("deepeval:PatternMatchMetric", pattern=r"ORD-\d|x", ignore_case=True)
    assert metric.evaluate(oa.Turn(output=output)).passed is passed


def test_the_configuration_on_the_page_is_valid(tmp_path: Path) -> None:
    file = tmp_path / "agenteval.yaml"
    file.write_text(PAGE.read_text(encoding="utf-8").split("```yaml\n")[1].split("```")[0], encoding="utf-8")
    bound = {metric.name: metric.params for metric in select_metrics(oa.load_config(str(file)))}
    assert bound["code_mrr"] == {"max_rank": 5, "threshold": 0.5}
    assert bound["code_icontains"] == {"value": "as an AI", "inverse": True}
    assert bound["llm_g_eval"]["threshold"] == 0.6
