"""Parameters of the seed catalogs, under the names and in the units of their constructors.

Camel case (``maxRank``) and the spellings in a metric's decorator work everywhere and aren't listed. Based on AgentEval
@0016d7c, HPD-Agent-Framework (source index), PandaProbe @b8e6b24, AgentUnit 0.7.0 and promptfoo 0.121.20 (Trusys).
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

from .spellings import Refused, Spellings, lowered, percent, renamed, seconds, span_query

PRESETS: Mapping[str, Mapping[str, Any]] = {
    "agenteval:FaithfulnessMetric": {"method": "holistic"},
    "agenteval:ContextPrecisionMetric": {"method": "holistic"},
    "agenteval:ContextRecallMetric": {"method": "holistic"},
    "agenteval:TaskCompletionMetric": {"method": "holistic"},
}
"""Presets of a seed's class name. They equal those of the metric's other name in that seed."""

_NO_MODEL = Refused("configure the model under `judge` or `embedder`")
_PERCENT: Spellings = {"threshold": percent("threshold")}
_OF_POLICY: Spellings = {"policy": renamed("policy", {"blocked_recommended_actions": "blocked_actions"})}

COMMON: Mapping[str, Spellings] = {
    "agenteval": {"chat_client": _NO_MODEL, "embeddings": _NO_MODEL, **_PERCENT},
    "pandaprobe": {"model": _NO_MODEL},
    "hpd": _OF_POLICY,
}
"""Spellings that apply to all metrics of a seed that have the parameter, unless :data:`OF_METRIC` overrides them."""

OF_METRIC: Mapping[str, Mapping[str, Spellings]] = {
    "agenteval": {
        "code_tool_arguments": {"required_arguments_by_tool": "required_arguments"},
        "code_tool_efficiency": {"max_expected_calls": "max_calls", "max_expected_duration": seconds("max_duration_s")},
        "llm_task_completion": {"completion_criteria": "criteria"},
        "code_conversation_completeness": {
            "max_duration": seconds("max_duration_s"),
            "threshold": "threshold",
        },  # 0 to 1 in AgentEval too
        "code_workflow_performance_efficiency": {"max_duration": seconds("max_duration_s")},
        "code_workflow_tool_chain_validity": {
            "required_patterns": renamed("patterns", {"before_tool": "before", "after_tool": "after", "tool_name": "tool"})
        },
    },
    "pandaprobe": {
        "code_agent_reliability": {"top_k_percentile": "top_k", "ensemble_weight_max": "ensemble", "ensemble_weight": "ensemble"},
        "embed_loop_detection": {"window_size": "window"},
    },
    "hpd": {
        "code_contains_all": {"values": "value"},
        "code_contains_any": {"values": "value"},
        "code_tool_was_called": {"tool_name": "tool"},
        "code_tool_call_count": {"tool_name": "tool", "expected_count": "count"},
        "code_tool_argument_matches": {"tool_name": "tool", "argument_name": "argument", "expected_value": "expected"},
        "code_tool_result_contains": {"tool_name": "tool"},
        "code_has_matching_span": {"query": span_query("query")},
        "code_tool_call_order": {"expected_order": "expected"},
        "code_field_accuracy": {"expected_value": "expected"},
        "llm_semantic_field_equality": {"field_name": "field"},
        "code_rouge": {"variant": lowered("variant")},
        "code_safety_policy": {"blocked_recommended_actions": "blocked_actions"},
        "code_threshold_gate": {"inner": "metric"},
        "code_not": {"inner": "metric"},
        "code_turn_autonomy": {
            "max_duration": seconds("max_duration_s"),
            **{
                f"{signal}_weight": Refused("give `weights`: [iterations, denied permissions, stop kind, duration]")
                for signal in ("iteration", "permission_denied", "stop_kind", "duration")
            },
        },
    },
    "agentunit": {
        "code_pii_leakage": {"severity_weights": "weights"},
        "code_privacy_budget": {"epsilon_budget": "total_budget", "total_epsilon_budget": "total_budget"},
        "code_data_minimization": {"context_keys": "keys"},
        "embed_cross_modal_grounding": {"clip_model_name": "model"},
        "embed_video_response_relevance": {"clip_model_name": _NO_MODEL},
        "embed_image_caption_accuracy": {"model_name": _NO_MODEL},
        "code_energy_consumption": {
            "sample_interval": Refused("omit it, because the turn provides the energy; AgentUnit ignores it too")
        },
        **{
            metric: {"agent_roles": "roles"}
            for metric in ("code_coordination_efficiency", "code_multi_agent_summary", "code_multiagent_role_adherence")
        },
    },
}
"""Spellings of parameters by seed and metric."""


def spellings_under(seed: str, alias: str, metric: str, parameters: Container[str]) -> Spellings:
    """Return the spellings of a metric's parameters under a seed's name for it.

    Trusys' metrics are promptfoo's, with the same parameters.
    """
    shared: Spellings = {}
    if seed == "trusys":
        from . import other_tools  # imported on first use, because most configurations don't need it

        same = other_tools.row_of("promptfoo", alias)
        shared = same.parameters if same is not None and same.ours == metric else {}
    common = {
        name: spelling for name, spelling in COMMON.get(seed, {}).items() if name in parameters or isinstance(spelling, Refused)
    }
    return {**common, **shared, **OF_METRIC.get(seed, {}).get(metric, {})}
