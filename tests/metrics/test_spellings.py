"""Parameters under the names and in the units of the five catalogs, in camel case, and each only once."""

from __future__ import annotations

import datetime
import re
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.evaluation.selection import select_metrics
from otel_agenteval.metrics import names
from otel_agenteval.metrics.bound_metric import live_metric
from otel_agenteval.metrics.registry import ResolvedName, catalog
from otel_agenteval.metrics.spellings import Converted, Unsupported

METRICS = {metric.name: metric for metric in catalog()}


def camel(name: str) -> str:
    return re.sub(r"_([a-z0-9])", lambda letter: letter[1].upper(), name)


def test_camel_case_works_for_every_parameter_of_every_metric() -> None:
    names = [(metric, name) for metric in METRICS.values() for name in metric.parameters if name not in metric.spellings]
    assert len(names) > 300
    for metric, name in names:
        for spelled in {camel(name), camel(name)[0].upper() + camel(name)[1:], name.replace("_", "-")}:
            assert ResolvedName(metric, {}, {}).parameters({spelled: 1}) == {name: 1}, (metric.name, spelled)


@pytest.mark.parametrize(
    ("name", "given", "params"),
    [
        ("code_mrr", {"maxRank": 3, "passThreshold": 0.5}, {"max_rank": 3, "threshold": 0.5}),
        ("agenteval:ToolSelectionMetric", {"expectedTools": ["a"], "strictOrder": True}, {"expected_tools": ["a"], "strict_order": True}),
        ("agenteval:ToolArgumentsMetric", {"requiredArgumentsByTool": {"a": ["b"]}}, {"required_arguments": {"a": ["b"]}}),
        ("agenteval:ToolEfficiencyMetric", {"maxExpectedCalls": 3, "maxExpectedDuration": "00:01:30"}, {"max_calls": 3, "max_duration_s": 90.0}),
        ("agenteval:TaskCompletionMetric", {"completionCriteria": ["c"]}, {"criteria": ["c"], "method": "holistic"}),
        (
            "agenteval:WorkflowToolChainValidityMetric",
            {"requiredPatterns": [{"Tool": "a", "beforeTool": "b"}], "threshold": 100},
            {"patterns": [{"tool": "a", "before": "b"}], "threshold": 1.0},
        ),
        ("agenteval:WorkflowPerformanceEfficiencyMetric", {"maxDuration": "5m", "maxTotalCost": 0.5}, {"max_duration_s": 300.0, "max_total_cost": 0.5}),
        ("pandaprobe:agent_reliability", {"top_k_percentile": 0.2, "ensemble_weight": 0.2}, {"top_k": 0.2, "ensemble": 0.2}),
        ("hpd:ToolArgumentMatchesEvaluator", {"toolName": "t", "argumentName": "a", "expectedValue": "v"}, {"tool": "t", "argument": "a", "expected": "v"}),
        ("hpd:RougeEvaluator", {"variant": "RougeL"}, {"variant": "rougeL"}),
        ("hpd:TurnAutonomyEvaluator", {"MaxDuration": datetime.timedelta(minutes=5)}, {"max_duration_s": 300.0}),
        ("hpd:SafetyPolicy", {"BlockThreshold": 4, "BlockedRecommendedActions": ["block"]}, {"block_threshold": 4.0, "blocked_actions": ("block",)}),
        ("hpd:HasMatchingSpanEvaluator", {"query": {"NameEquals": "a", "MinDuration": "00:00:02"}}, {"query": {"name_equals": "a", "min_duration_s": 2.0}, "without_spans": "skip"}),
        ("agentunit:PIILeakageMetric", {"severity_weights": {"email": 0.5}}, {"ruleset": "seed", "weights": {"email": 0.5}}),
        ("trusys:latency", {"threshold": 200}, {"threshold_ms": 200.0}),
        ("trusys:is-json", {"value": {"type": "object"}}, {"schema": {"type": "object"}}),
    ],
)  # fmt: skip
def test_a_seed_s_parameters_have_its_names_and_units(name: str, given: dict[str, Any], params: dict[str, Any]) -> None:
    metric = oa.get_metric(name, **given)
    bound = oa.get_metric(metric.name, **params)
    assert (metric.name, metric.params) == (bound.name, bound.params)


def test_a_policy_has_its_own_keys_and_what_has_no_meaning_here_is_refused() -> None:
    given = {"BlockThreshold": 4, "BlockedRecommendedActions": ["block"]}
    policy = oa.get_metric("hpd:ViolenceSafetyEvaluator", policy=given).params["policy"]
    assert (policy.block_threshold, policy.blocked_actions) == (4, ("block",))
    with pytest.raises(oa.ConfigError, match=r"code_turn_autonomy\.stopKindWeight.*`weights`"):
        oa.get_metric("hpd:TurnAutonomyEvaluator", stopKindWeight=0.5)


@pytest.mark.parametrize(
    ("name", "given", "threshold"),
    [
        ("agenteval:llm_faithfulness", 70, 0.7),
        ("agenteval:code_recall_at_5", 100, 1.0),
        ("MRRMetric", 33, 0.33),  # AgentEval's alone
        ("agenteval:code_mrr", 0.33, 0.33),  # below 1 of 100 cannot be meant
        ("agenteval:ConversationCompleteness", 0.8, 0.8),  # its score is 0 to 1 there too
        ("code_mrr", 0.33, 0.33),
    ],
)
def test_a_pass_mark_is_on_the_scale_of_the_name(name: str, given: float, threshold: float) -> None:
    assert oa.get_metric(name, threshold=given).threshold == pytest.approx(threshold)


@pytest.mark.parametrize(("name", "given"), [("code_rouge_n", 90), ("promptfoo:rouge-n", 80), ("llm_faithfulness", -2)])
def test_threshold_of_a_ratio_is_refused_outside_its_range(name: str, given: float) -> None:
    with pytest.raises(oa.ConfigError, match=r"threshold: must be from -1 to 1, got -?\d+\. Example: "):
        oa.get_metric(name, threshold=given)
    assert oa.get_metric("code_latency", threshold=5).threshold == 5


@pytest.mark.parametrize("measure", ["dot", "euclidean"])
def test_threshold_above_1_is_accepted_for_other_measures(measure: str) -> None:
    assert oa.get_metric("embed_similar", value="a", metric=measure, threshold=2).threshold == 2
    with pytest.raises(oa.ConfigError, match="threshold: must be from -1 to 1, got 2"):
        oa.get_metric("embed_similar", value="a", threshold=2)


@pytest.mark.parametrize("name", ["trusys:latency", "code_latency_threshold"])
def test_a_threshold_in_milliseconds_is_on_no_scale(name: str) -> None:
    assert live_metric(name, {"threshold": 2000}, scale=100).params["threshold_ms"] == 2000
    assert live_metric("code_tool_success", {"Threshold": 70}, scale=100).threshold == pytest.approx(0.7)


@pytest.mark.parametrize("given", [1, 1.0, -5, 101, True, "70", float("nan")])
def test_a_pass_mark_that_cannot_be_meant_is_refused(given: Any) -> None:
    with pytest.raises(oa.ConfigError, match=r"^code_mrr\.passThreshold: "):
        oa.get_metric("agenteval:MRRMetric", passThreshold=given)


@pytest.mark.parametrize(
    ("given", "seconds"),
    [(30, 30), ("30s", 30), ("500ms", 0.5), ("1.5 h", 5400), ("00:00:30.5", 30.5), ("1.02:00:00", 93600), ("01:30", 5400)],
)
def test_a_duration_is_read_in_the_forms_of_the_seeds(given: Any, seconds: float) -> None:
    assert oa.get_metric("agenteval:ToolEfficiencyMetric", maxExpectedDuration=given).params["max_duration_s"] == seconds


@pytest.mark.parametrize("given", ["soon", "30", True, [30]])
def test_a_duration_that_cannot_be_meant_is_refused(given: Any) -> None:
    with pytest.raises(oa.ConfigError, match=r"maxExpectedDuration: .*, got "):
        oa.get_metric("agenteval:ToolEfficiencyMetric", maxExpectedDuration=given)


@pytest.mark.parametrize(
    ("name", "given", "says"),
    [
        ("code_mrr", {"maxRank": 3, "max_rank": 3}, "code_mrr.max_rank: 'max_rank' is set twice"),
        ("agentunit:pii_leakage", {"severityWeights": {}, "weights": {}}, "'weights' is set twice"),
    ],
)
def test_a_parameter_is_given_once(name: str, given: dict[str, Any], says: str) -> None:
    with pytest.raises(oa.ConfigError, match=re.escape(says)):
        oa.get_metric(name, **given)


def test_every_spelling_of_a_seed_leads_to_a_parameter_or_says_what_to_do() -> None:
    for seed, (_, metrics) in names.seeds().items():
        for name, spellings in metrics.items():
            assert any(alias.startswith(f"{seed}:") for alias in METRICS[name].aliases), (seed, name)
            for theirs, spelling in spellings.items():
                if isinstance(spelling, Unsupported):
                    continue
                if isinstance(spelling, Converted) and spelling.ours.startswith("no effect, because "):
                    continue
                ours = spelling.ours.split(" ")[0].strip("`,") if isinstance(spelling, Converted) else spelling
                assert ours in METRICS[name].parameters, (seed, name, theirs)


def test_a_configuration_takes_the_same_names(tmp_path: Any) -> None:
    file = tmp_path / "agenteval.yaml"
    file.write_text(
        "inline: {metrics: []}\nmetrics:\n  - agenteval:MRRMetric: {maxRank: 3, passThreshold: 50}\n  - promptfoo:similar:dot: {value: a}\n"
    )
    bound = select_metrics(oa.load_config(str(file)))
    assert [(metric.name, metric.params) for metric in bound] == [
        ("code_mrr", {"max_rank": 3, "threshold": 0.5}),
        ("embed_similar", {"value": "a", "metric": "dot"}),
    ]
    file.write_text("metrics:\n  - code_mrr: {maxRank: 3,\n      max_rank: 3}\n  - deepeval:HallucinationMetric\n")
    with pytest.raises(oa.ConfigError, match=r"agenteval\.yaml.*is set twice"):
        select_metrics(oa.load_config(str(file)))
    file.write_text("metrics:\n  - deepeval:HallucinationMetric\n")
    with pytest.raises(
        oa.ConfigError, match=r"agenteval\.yaml.*deepeval:HallucinationMetric: .*use llm_hallucination, .*llm_faithfulness"
    ):
        select_metrics(oa.load_config(str(file)))
