"""Invalid parameter values raise an error with the metric and the parameter."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest

import otel_agenteval as oa

NO_NUMBERS = [{"value": value} for value in ("forty-two", "", None, True, [42], nan, "1e999")]
REFUSED: dict[str, list[dict[str, Any]]] = {
    "code_agent_consistency": [
        {"signal_weights": {"confidence": -1}},
        {"signal_weights": {"other": 1}},
        {"signal_weights": {"confidence": inf}},
    ],
    "code_agent_reliability": [{"signal_weights": {"confidence": -1}}],
    "code_audio_transcription_quality": [{"normalize": "upper"}],
    "code_bleu": [{"max_n": 0}, {"max_n": 17}, {"tokenizer": "13a"}, {"smoothing": "method1"}, {"references": 5}],
    "code_carbon_emissions": [{"grid_intensity": -1}],
    "code_consent_compliance": [{"match": "data"}, {"consent": {"x": "perhaps"}}],
    "code_contains": [{"value": ["x"]}],
    "code_contains_all": [{"value": 'a,"b'}],
    "code_contains_any": [{"value": '"a" b,c'}, {"value": [["a"]]}],
    "code_content_similarity": [{"mode": "bag"}],
    "code_conversation_completeness": [
        {"weights": [0.5, 0.5]},
        {"weights": [0.5, 0.5, 0.5, 0.5]},
        {"weights": [2, -1, 0, 0]},
        {"expected_tools": 5},
    ],
    "code_coordination_efficiency": [{"weights": [1, 1, 1, 1]}, {"weights": [0, 0, 0, 0, 0]}],
    "code_data_minimization": [{"denominator": "all"}],
    "code_energy_consumption": [{"threshold_kwh": -1}],
    "code_equals": [{"value": None}],
    "code_equals_number": [
        *NO_NUMBERS,
        {"value": 1, "tolerance": -1},
        {"value": 1, "tolerance": nan},
        {"value": 1, "extract": "second"},
    ],
    "code_field_completeness": [{"fields": "a"}],
    "code_greater_than": NO_NUMBERS,
    "code_has_matching_span": [{"query": "execute_tool"}],
    "code_hub_agents": [{"share_of_highest": 1.5}],
    "code_json_equals": [{"lenient": True}],
    "code_less_than": NO_NUMBERS,
    "code_meteor": [{"alpha": 1.5}, {"beta": -1}, {"beta": nan}, {"gamma": -0.1}, {"stemmer": "porter"}],
    "code_mrr": [{"max_rank": -1}],
    "code_network_centralization": [{"mode": "other"}],
    "code_pii_leakage": [{"ruleset": "mine"}, {"aggregate": "sum"}, {"weights": {"email": 2}}],
    "code_privacy_budget": [{"total_budget": nan}, {"scope": "planet"}],
    "code_recall_at_k": [{"k": 0}],
    "code_regex_match": [{"pattern": "x", "flags": "x"}, {"pattern": "x", "timeout_ms": 0}],
    "code_resource_utilization": [{"target_cpu_percent": -1}],
    "code_rouge": [{"variant": "rougeW"}, {"measure": "f2"}],
    "code_rouge_n": [{"n": 0}, {"tokenizer": "word"}],
    "code_safety_policy": [{"block_threshold": -1}, {"blocked_actions": "block"}, {"warn_threshold": "low"}],
    "code_self_organization": [{"min_interactions": -1}],
    "code_swarm_intelligence": [{"weights": [-1, 1, 1, 1]}],
    "code_tool_call_count": [{"tool": "a", "count": -1}],
    "code_tool_call_f1": [{"mode": "bag"}],
    "code_tool_success": [{"empty_value": 2}],
    "code_tool_was_called": [{"tool": ""}, {"tool": "a", "tools": ["a"]}],
    "code_turn_autonomy": [{"max_iterations": 0}, {"max_duration_s": 0}, {"weights": [1]}, {"weights": [-1, 0, 0, 0]}],
    "code_word_count": [{"min": -1}, {"tokenizer": "lines"}],
    "code_workflow_execution_order": [{"expected_order": []}, {"expected_order": "ABC"}],
    "code_workflow_performance_efficiency": [{"max_tokens": -1}],
    "code_workflow_structure_validity": [{"expected_edges": [["A"]]}],
    "code_workflow_tool_chain_validity": [
        {"patterns": []},
        {"patterns": [{"before": "A"}]},
        {"patterns": [{"tool": "A", "befor": "B"}]},
        {"patterns": [{"tool": ""}]},
    ],
    "embed_image_caption_accuracy": [{"weights": [1]}, {"weights": [0.5, 2]}, {"weights": [-1, 1]}, {"weights": "high"}],
    "embed_loop_detection": [{"window": 0}, {"window": 101}, {"stop_words": "none"}],
    "embed_response_context": [{"aggregate": "mean"}],
    "llm_audio_call_category": [{"categories": []}, {"categories": "billing"}],
    "llm_audio_false_intent_identification": [{"expected": "perhaps"}],
    "llm_audio_language": [{"expected": "English"}, {"expected": []}, {"expected": "en", "match": "loose"}],
    "llm_audio_sentiment": [{"expected": []}, {"labels": [" "]}],
    "llm_context_precision": [{"method": "claims"}],
    "llm_factuality": [{"scores": {"F": 1}}, {"scores": {"A": 2}}, {"scores": {"A": nan}}],
    "llm_faithfulness": [{"method": "map"}],
    "llm_groundedness": [{"fabrication_cap": 1.5}],
    "llm_moderation": [{"categories": "hate"}, {"min_confidence": 2}, {"min_confidence": -1}, {"threshold": 1}],
    "llm_policy_compliance": [{"policy_text": " \n"}],
    "llm_reasoning_efficiency": [{"max_chars": -1}],
    "llm_reasoning_groundedness": [{"max_result_chars": 0}],
    "llm_relevance": [{"k": 1}],
    "llm_violence": [
        {"threshold": 3},
        {"inverse": True},
        {"policy": {"block": 3}},
        {"policy": {"block_threshold": -1}},
        {"policy": {"blocked_actions": "block"}},
        {"policy": 5},
        {"policy_text": "x"},
    ],
}


@pytest.mark.parametrize(
    ("metric", "params"), [(metric, params) for metric, cases in REFUSED.items() for params in cases], ids=str
)
def test_values_are_refused_when_the_metric_is_built(metric: str, params: dict[str, Any]) -> None:
    with pytest.raises(oa.ConfigError, match=rf"{metric}\.({'|'.join(params)})\b"):
        oa.get_metric(metric, **params)
