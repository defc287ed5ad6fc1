"""Live scoring checks whether a metric applies to a turn. ``evaluate()`` doesn't."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.cli.main import main
from otel_agenteval.core import semconv
from otel_agenteval.evaluation.evaluator import evaluate, run, score_one
from otel_agenteval.metrics import registry
from otel_agenteval.metrics.bound_metric import BoundMetric
from otel_agenteval.metrics.registry import catalog
from tests.support.judges import ScriptedModels
from tests.support.rig import Rig

Known = Mapping[str, Any]


def talk(*types: str, agents: int = 2, **more: Any) -> dict[str, Any]:
    """Return interactions of these types around a ring of agents."""
    names = [f"a{number}" for number in range(agents)]
    return {
        "interactions": [
            {"from": names[place % agents], "to": names[(place + 1) % agents], "type": kind, **more}
            for place, kind in enumerate(types)
        ]
    }


CALLED: Known = {"agent_runs": [{"name": "boss"}, {"name": "clerk", "parent": "boss", "duration_s": 1.0}]}
IMAGE: Known = {"attachments": [{"modality": "image", "uri": "https://cdn.example.com/1.png"}]}
VIDEO: Known = {"attachments": [{"modality": "video", "frames": ["https://cdn.example.com/1.png"]}]}
AUDIO: Known = {"attachments": [{"modality": "audio", "uri": "https://cdn.example.com/1.wav"}]}
ONE_STEP: Known = {"llm_calls": 1, "tool_calls": []}
TWO_STEPS: Known = {"llm_calls": 2, "tool_calls": [{"name": "search", "arguments": {}}]}
HISTORY: Known = {"history": [{"input": "My name is Ada.", "output": "Noted."}]}
SPOKEN: Known = {"messages": [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}]}
THREE: Known = talk("request", "request", "request", agents=3)
MANY: Known = talk(*["request", "negotiation"] * 5, agents=3, response_time_s=1.0)

CASES: dict[str, tuple[Known, str, Known]] = {
    "code_adaptation_rate": (talk("request"), "not_applicable:few_interactions", MANY),
    "code_avg_path_length": (CALLED, "not_applicable:two_agents", THREE),
    "code_bottleneck_agents": (CALLED, "not_applicable:two_agents", THREE),
    "code_clustering_coefficient": ({}, "missing:interactions", THREE),
    "code_collective_decision": (CALLED, "missing:interactions", talk("request")),
    "code_communication_efficiency": ({}, "missing:interactions", CALLED),
    "code_conflict_rate": (CALLED, "missing:conflicts", talk("request")),
    "code_conflict_resolution_rate": (talk("request"), "missing:conflicts", {"conflicts": [{"resolved": True}]}),
    "code_handoff_success_rate": (CALLED, "missing:handoffs", {"handoffs": [{"from": "a", "to": "b", "success": True}]}),
    "code_hub_agents": (CALLED, "not_applicable:two_agents", THREE),
    "code_load_balance": (CALLED, "not_applicable:two_agents", THREE),
    "code_multiagent_role_adherence": (CALLED, "missing:agents", {**CALLED, "agents": {"boss": {"can_delegate": True}}}),
    "code_network_centralization": (CALLED, "not_applicable:two_agents", THREE),
    "code_network_density": (CALLED, "not_applicable:two_agents", THREE),
    "code_network_fault_tolerance": (CALLED, "not_applicable:two_agents", {**THREE, "agents": {"a0": {}}}),
    "code_self_organization": (CALLED, "not_applicable:few_interactions", MANY),
    "code_specialization": (CALLED, "missing:interactions", talk("request")),
    "code_swarm_intelligence": (talk("request"), "not_applicable:few_interactions", MANY),
    "code_agent_consistency": ({}, "missing:session", {"session": {"traces": [{"signals": {"confidence": 0.5}}]}}),
    "code_agent_reliability": ({}, "missing:session", {"session": {"traces": [{"signals": {"confidence": 0.5}}]}}),
    "code_carbon_emissions": ({"llm_calls": 1}, "missing:energy", {"metadata": {"energy_kwh": 0.01}}),
    "code_energy_consumption": ({"llm_calls": 1}, "missing:energy", {"spans": [{"id": "1", "attributes": {"energy.kwh": 0.01}}]}),
    "code_consent_compliance": ({}, "missing:consent", {"metadata": {"consent": {"location": False}}}),
    "code_data_minimization": ({"metadata": {"plan": "gold"}}, "missing:metadata", {"metadata": {"email": "a@b.example"}}),
    "code_privacy_budget": ({}, "missing:privacy", {"spans": [{"id": "1", "attributes": {"privacy.epsilon": 0.5}}]}),
    "code_multimodal_coherence": ({}, "missing:image", IMAGE),
    "llm_argument_correctness": (ONE_STEP, "not_applicable:no_tool_calls", TWO_STEPS),
    "llm_tool_correctness": (ONE_STEP, "not_applicable:no_tools", {**ONE_STEP, "tool_definitions": [{"name": "search"}]}),
    "llm_step_efficiency": (ONE_STEP, "not_applicable:one_step", TWO_STEPS),
    "llm_plan_adherence": (ONE_STEP, "not_applicable:one_step", {**ONE_STEP, "reasoning": "First I look it up."}),
    "llm_plan_quality": (ONE_STEP, "not_applicable:one_step", {**ONE_STEP, "reasoning": "First I look it up."}),
    "llm_conversation_coherence": (SPOKEN, "missing:history", HISTORY),
    "llm_goal_progression": (SPOKEN, "missing:history", HISTORY),
    "llm_memory_accuracy": (SPOKEN, "missing:history", HISTORY),
    "llm_repetition": (SPOKEN, "missing:history", HISTORY),
    "llm_knowledge_retention": (SPOKEN, "not_applicable:one_exchange", {"messages": [*SPOKEN["messages"], *SPOKEN["messages"]]}),
    "embed_coherence": ({"output": " "}, "empty_output", {}),
    "llm_code_readability": ({}, "no_code", {"output": "```python\nprint(1)\n```"}),
    "llm_code_correctness": ({}, "no_code", {"output": "```python\nprint(1)\n```"}),
    "llm_image_helpfulness": (VIDEO, "missing:image", IMAGE),
    "llm_multimodal_contextual_recall": ({"context": ["x"], "ground_truth": "x"}, "missing:image", {"context": ["x"], "ground_truth": "x", **IMAGE}),
    "llm_multimodal_contextual_relevancy": ({"context": ["x"]}, "missing:image", {"context": ["x"], **IMAGE}),
    "embed_cross_modal_grounding": ({}, "missing:image", IMAGE),
    "embed_image_caption_accuracy": ({"ground_truth": "x"}, "missing:image", {"ground_truth": "x", **IMAGE}),
    "code_audio_transcription_quality": ({"ground_truth": "x"}, "missing:audio", {"ground_truth": "x", **AUDIO}),
    "llm_moderation": ({"output": ""}, "empty_output", {}),
    **dict.fromkeys(
        ("code_image_blank", "code_image_duplicate", "code_image_exposure", "code_image_sharpness", "code_image_text_overlap"), (VIDEO, "missing:image", IMAGE)
    ),
    **dict.fromkeys(("code_audio_clipping", "code_audio_silence", "code_audio_talk_over"), (IMAGE, "missing:audio", AUDIO)),
    **dict.fromkeys(
        ("embed_video_response_relevance", "llm_text_to_video", "llm_video_factual_consistency", "llm_video_g_eval", "llm_video_temporal_consistency",
         "llm_video_visual_quality"), (IMAGE, "missing:video", VIDEO),
    ),
    **dict.fromkeys(
        ("llm_audio_call_category", "llm_audio_false_intent_identification", "llm_audio_interruption_handling", "llm_audio_language", "llm_audio_sentiment"),
        (IMAGE, "missing:audio", AUDIO),
    ),
}  # fmt: skip
"""For each metric with conditions: a turn to which it doesn't apply, the reason, and a turn to which it applies."""
PARAMETERS: Mapping[str, Mapping[str, Any]] = {
    "llm_audio_call_category": {"categories": ["order"]},
    "llm_audio_language": {"expected": "en"},
    "llm_video_g_eval": {"criteria": "sharp"},
}


def turn(known: Known) -> oa.Turn:
    return oa.Turn.from_dict({"turn_id": "t", "input": "Where is my order?", "output": "On its way.", **known})


def bound(name: str, **more: Any) -> BoundMetric:
    return oa.get_metric(name, **{**PARAMETERS.get(name, {}), **more})


def test_every_metric_that_says_when_it_applies_is_tried() -> None:
    assert {metric.name for metric in catalog() if metric.applies is not None} == set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_a_metric_is_skipped_where_it_says_nothing(name: str) -> None:
    nothing, reason, something = CASES[name]
    score = score_one(bound(name), turn(nothing))
    assert (score.status, score.detail) == ("skipped", {"reason": reason})
    assert bound(name).not_applicable(turn(something)) is None
    live = score_one(bound(name), turn(something))
    assert live.status == "ok" or live.detail["reason"] in ("no_judge", "no_embedder", "media_not_open")
    assert not live.vacuous


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("code_consent_compliance", {"consent": {"location": False}}), ("code_self_organization", {"min_interactions": 1}),
        ("code_adaptation_rate", {"min_interactions": 2}), ("code_multiagent_role_adherence", {"roles": {"a0": {}}}),
        ("code_network_fault_tolerance", {"roles": {"a0": {}, "a1": {}, "a2": {}}}), ("code_data_minimization", {"keys": ("plan",)}), ("code_energy_consumption", {"threshold_kwh": 1e-6}), ("code_carbon_emissions", {"estimate": True}),
    ],
)  # fmt: skip
def test_a_parameter_can_say_what_the_turn_does_not(name: str, params: Known) -> None:
    known = turn({**talk("request", "request", response_time_s=1.0), "metadata": {"plan": "gold"}})
    assert bound(name).not_applicable(known) is not None
    assert bound(name, **params).not_applicable(known) is None


def test_evaluate_alone_keeps_to_the_catalogue() -> None:
    score = oa.get_metric("code_collective_decision").evaluate(turn(CALLED))
    assert (score.status, score.value) == ("ok", 0.0)
    assert oa.get_metric("code_conflict_rate").evaluate(turn({})).vacuous


def test_every_way_to_score_turns_asks() -> None:
    metrics = [oa.get_metric("code_collective_decision"), oa.get_metric("code_turn_error")]
    for scores in (evaluate(turn(CALLED), metrics), run(metrics, turn(CALLED)).scores):
        assert [score.status for score in scores] == ["skipped", "ok"]
        assert scores[0].detail["reason"] == "missing:interactions"


def test_a_predicate_that_fails_is_the_metric_s_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(turn: oa.Turn, params: Known) -> str | None:
        """turns that it can read"""
        raise KeyError("secret")

    monkeypatch.setattr(registry, "_METRICS", dict(registry._METRICS))

    @oa.metric(applies=broken)
    def code_of_a_test(turn: oa.Turn) -> float:
        """A value."""
        return 1.0

    score = score_one(oa.get_metric("code_of_a_test"), turn({}))
    assert (score.status, score.error_type, "secret" in (score.explanation or "")) == ("error", "KeyError", False)
    assert registry.resolve("code_of_a_test")[0].applies_to == "turns that it can read"


def test_a_predicate_says_in_words_what_it_lets_in() -> None:
    with pytest.raises(oa.ConfigError, match=r"'applies' needs a docstring"):

        @oa.metric(applies=lambda turn, params: None)
        def code_of_a_test(turn: oa.Turn) -> float:
            """A value."""
            return 1.0


def test_explain_and_the_list_of_metrics_say_what_a_metric_applies_to(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "code_handoff_success_rate"]) == 0
    assert "Applies to:  turns with a hand-off\n" in capsys.readouterr().out
    assert main(["metrics", "--json"]) == 0
    said = {entry["name"]: entry["applies_to"] for entry in json.loads(capsys.readouterr().out)}
    assert (said["code_handoff_success_rate"], said["code_turn_error"]) == ("turns with a hand-off", None)


def test_why_metrics_were_skipped_is_counted() -> None:
    with Rig({"inline": {"metrics": []}, "metrics": ["code_collective_decision", "code_perplexity", "code_turn_error"]}) as rig:
        rig.run()
        rig.run()
        rig.turns()
        assert rig.count(semconv.SKIPPED) == {
            ("code_collective_decision", "missing:interactions"): 2,
            ("code_perplexity", "missing:logprobs"): 2,
        }


def test_a_turn_that_a_metric_does_not_apply_to_takes_none_of_its_quota(models: ScriptedModels) -> None:
    """With a quota of one turn per hour, the first turn to which the metric applies is judged."""
    models.play({"score": 7, "reason": "plain"})
    entry = {"llm_code_readability": {}, "sample": {"rate": 0.0, "min_per_hour": 1}}
    config = {"inline": {"metrics": []}, "judge": {"base_url": models.url, "model": "scripted"}, "metrics": [entry]}
    with Rig(config) as rig:
        for says in ("It prints a line.", "```python\nprint(1)\n```"):
            rig.run(says=says)
            rig.turns()
        assert rig.engine.drain(60, judges=True)
        assert [score.value for scored in rig.scored() if scored.judged for score in scored.scores] == [0.7]
