"""Inputs of ``scripts/metric_coverage.py``: parameters, references, and notes on constant or missing values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_WEATHER = {"type": "object", "properties": {"city": {"type": "string"}}}

PARAMETERS: Mapping[str, Mapping[str, Any]] = {
    "code_array_length": {"min": 1},
    "code_code_language": {"language": "python"},
    "code_contains": {"value": "Paris"},
    "code_contains_all": {"value": ["is", "the"]},
    "code_contains_any": {"value": ["weather", "°C", "sunny"]},
    "code_contains_code_language": {"language": "python"},
    "code_equals": {"value": "The capital of France is Paris."},
    "code_equals_number": {"value": 42, "extract": "first"},
    "code_field_accuracy": {"field": "name", "expected": "Ada Lovelace"},
    "code_field_completeness": {"fields": ["name", "age"]},
    "code_greater_than": {"value": 18, "extract": "first"},
    "code_icontains": {"value": "paris"},
    "code_keyword_coverage": {"keywords": ["weather", "°C", "the"]},
    "code_latency_threshold": {"threshold_ms": 100},
    "code_less_than": {"value": 18, "extract": "first"},
    "code_max_cost": {"max_cost_usd": 0.0002},
    "code_max_duration": {"max_seconds": 0.1},
    "code_max_input_tokens": {"max_tokens": 100},
    "code_max_iterations": {"max_iterations": 2},
    "code_max_output_tokens": {"max_tokens": 30},
    "code_max_tokens": {"max_tokens": 150},
    "code_not_contains": {"value": "Paris"},
    "code_not_equals": {"value": "The capital of France is Paris."},
    "code_recall_at_k": {"k": 1},
    "code_regex_match": {"pattern": "[0-9]+ ?°C"},
    "code_schema_conformance": {"schema": {"type": "object"}},
    "code_starts_with": {"value": "The "},
    "code_tool_argument_matches": {"tool": "get_weather", "argument": "city", "expected": "Paris"},
    "code_tool_call_count": {"tool": "get_weather", "count": 1},
    "code_tool_result_contains": {"tool": "get_weather", "expected": "sunny"},
    "code_tool_was_called": {"tool": "get_weather"},
    "code_has_matching_span": {"query": {"name_contains": "tool"}},
    "code_word_count": {"max": 10},
    "code_workflow_execution_order": {"expected_order": ["concierge", "travel_specialist"]},
    "code_workflow_performance_efficiency": {"max_duration_s": 0.1, "max_tokens": 150},
    "code_workflow_tool_chain_validity": {"patterns": [{"tool": "get_weather"}]},
    "embed_similar": {"value": "It is sunny in Paris."},
    "llm_aspect_critic": {"rubric": "polite"},
    "llm_audio_call_category": {"categories": ["order", "complaint"]},
    "llm_audio_language": {"expected": "en"},
    "llm_conversational_g_eval": {"criteria": "helpful"},
    "llm_custom_judge": {"rubric": "polite"},
    "llm_g_eval": {"criteria": "helpful"},
    "llm_policy_compliance": {"policy_text": "Give no advice on law."},
    "llm_policy_compliance_passed": {"policy_text": "Give no advice on law."},
    "llm_role_adherence": {"role": "a support agent"},
    "llm_rubric": {"rubric": "polite"},
    "llm_semantic_field_equality": {"field": "name"},
    "llm_topic_adherence": {"allowed_topics": ["weather"]},
    "llm_video_g_eval": {"criteria": "sharp"},
}
"""Parameters of metrics that have required parameters."""

EXAMPLES: Mapping[str, Any] = {
    "required_arguments": {"get_weather": ["city", "unit"]},
    "transcript": "Hello, I am calling about my order.",
    "baseline_response": "It is sunny.",
    "noisy_input": "whats teh weather",  # codespell:ignore teh
    "reference_sql": "SELECT 1",
}
"""References that the recordings don't contain. They are the same for every turn."""

NOT_RUN: Mapping[str, str] = {
    "code_code_execution": "not measured, because it executes code in a sandbox.",
    "code_task_oracle": "not measured, because it calls your own function.",
}

WAYS_IN: Mapping[str, str] = {
    "agents": "agent-roles",
    "interactions": "interactions",
    "conflicts": "conflicts",
    "handoffs": "interactions",
    "workflow": "workflow",
    "logprobs": "log-probabilities",
    "metadata": "metadata",
    "consent": "consent",
    "privacy": "privacy-budget",
    "energy": "energy-carbon-and-machines",
    "resources": "energy-carbon-and-machines",
    "session": "session-signals",
    "history": "earlier-turns",
    "context": "context",
    "ground_truth": "ground-truth",
    "references": "ground-truth",
    "reference": "ground-truth",
    "relevant_ids": "relevant-documents",
    "expected_tools": "expected-tools",
    "expected": "expected-tools",
    "required_arguments": "expected-tools",
    "transcript": "transcripts-and-media",
    "audio": "transcripts-and-media",
    "image": "transcripts-and-media",
    "video": "transcripts-and-media",
    "spec": "code-specifications",
    "reference_sql": "code-specifications",
    "schema": "code-specifications",
    "baseline_response": "baselines",
    "noisy_input": "baselines",
    "baseline": "baselines",
}
"""Turn fields that spans rarely contain, with their section of docs/reference/metrics/facts.md."""

_ONE_IMAGE = "always {}, because the only recorded image is a small, smooth gradient. For values of other images, see [Evaluate media](../../guides/evaluate-media.md)."
_ONE_SOUND = "always {}, because the only recorded sound is a tone of 0.1 s. For values of other sounds, see [Evaluate media](../../guides/evaluate-media.md)."

CONSTANT: Mapping[str, str] = {
    "code_audio_clipping": _ONE_SOUND.format(0),
    "code_audio_silence": _ONE_SOUND.format(0),
    "code_image_blank": _ONE_IMAGE.format(1),
    "code_image_exposure": _ONE_IMAGE.format(1),
    "code_image_sharpness": _ONE_IMAGE.format(0),
    "code_multimodal_coherence": "always 0, because the scripted answers don't mention images or sounds.",
    "code_array_length": "always 0, because no recorded agent returns an array.",
    "code_clustering_coefficient": (
        "always 0, because the recorded spans only contain call trees and hand-off chains. "
        "For other graphs, [provide interactions](facts.md#interactions)."
    ),
    "code_code_language": "always 0, because no recorded agent returns only Python code.",
    "code_contains_xml": "always 0, because no recorded agent returns XML.",
    "code_handoff_success_rate": "always 1, because no recorded hand-off failed. A failed hand-off is a span with an error, or an `agent.handoff` event with `success` set to false.",
    "code_html_shape": "always 0, because no recorded agent returns HTML.",
    "code_injection_markers": "always 1, because the recordings don't contain injections.",
    "code_is_sql": "always 0, because no recorded agent returns only SQL.",
    "code_is_xml": "always 0, because no recorded agent returns XML.",
    "code_pii_leakage": "always 1, because answers contain placeholders instead of personal data.",
    "code_refusal": "always 0, because no recorded agent refuses.",
    "code_secret_leak": "always 1, because no answer contains a secret.",
    "code_system_prompt_leak": "always 0, because no answer repeats the agent's system prompt.",
    "code_sql_shape": "always 0, because no recorded agent returns only SQL.",
    "code_ungrounded_urls": "always vacuous, because no recorded answer contains a URL that the metric checks.",
}
"""Reasons why a metric's values are constant or missing on all recordings."""
