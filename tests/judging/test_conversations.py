"""Conversations that are judged while they continue: signals of their turns, and earlier messages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from otel_agenteval.backfill.batch import chosen
from otel_agenteval.config.loader import load_config
from otel_agenteval.core import semconv
from otel_agenteval.engine import pipeline
from otel_agenteval.evaluation.selection import SIGNALS, select_metrics
from otel_agenteval.outlets.store.reader import StoreReader
from otel_agenteval.turns.conversations import Conversations
from tests.judging.test_live import held
from tests.support.clock import FakeClock
from tests.support.judges import ScriptedModels
from tests.support.rig import Rig
from tests.turns.test_conversations import turn

RELIABILITY, CONSISTENCY = "code_agent_reliability", "code_agent_consistency"
QUESTION = "What is the capital of France?"


def confidence(value: float) -> dict[str, Any]:
    return {"confidence": value, "reason": None}


def config(models: ScriptedModels, *metrics: Any) -> dict[str, Any]:
    """Return a configuration with session metrics. Signals that ``metrics`` doesn't provide have weight 0."""
    others = {"signal_weights": {signal: 0 for name, signal in SIGNALS.items() if name not in metrics}}
    server = {"base_url": models.url, "model": "scripted", "max_concurrency": 1}
    return {
        "judge": server, "embedder": server, "metrics": list(metrics), "inline": {"metrics": []},
        "conversation": {"metrics": [{RELIABILITY: others}, {CONSISTENCY: others}], "idle_timeout": "10m"},
    }  # fmt: skip


def converse(rig: Rig, *answers: str) -> None:
    for says in answers:
        rig.run(says=says, attributes={"gen_ai.conversation.id": "c1"})
        rig.turns()


def whole_ones(rig: Rig) -> list[Any]:
    return [scored for scored in rig.scored() if scored.conversation]


def values(scored: Any) -> dict[str, Any]:
    return {score.metric: score.value for score in scored.scores}


@pytest.mark.parametrize("place", ["metrics", "conversation"])
@pytest.mark.parametrize("name", [RELIABILITY, "pandaprobe:agent_reliability"])
def test_session_metric_alone_turns_on_its_signals(models: ScriptedModels, place: str, name: str) -> None:
    near = {"Please wait here.": [1.0, 0.0], QUESTION: [0.8, 0.6]}
    models.play(*[confidence(0.9)] * 2, vectors=near)
    given = config(models)
    given["metrics"], given["conversation"] = ([name], {}) if place == "metrics" else ([], {"metrics": [name]})
    with Rig(given) as rig:
        converse(rig, "Please wait here.", "Please wait here.")
        assert rig.engine.drain(60, judges=True)
        assert rig.engine.end_conversation("c1")
        [scored] = whole_ones(rig)
    first, second = scored.scores[0].detail["per_trace_signals"].values()
    assert first.items() >= {"confidence": 0.9, "loop_detection": 1.0, "coherence": 0.8, "coherence_risk": 0.2}.items()
    assert first["step_risk"] == pytest.approx(0.2)
    assert (second["loop_detection"], second["step_risk"]) == (0.0, 1.0)


def test_signals_follow_weights_selectors_and_configured_metrics() -> None:
    session = {"code_agent_reliability": {"signal_weights": {"coherence": 0}}, "when": {"agent": "travel"}}
    given = {
        "inline": {"metrics": []},
        "metrics": [{"llm_confidence": {"threshold": 0.8}}],
        "conversation": {"metrics": [session]},
    }
    found = select_metrics(load_config(given, env={}))
    assert [(one.name, one.when is not None) for one in found] == [
        ("llm_confidence", False),
        ("embed_loop_detection", True),
        ("llm_tool_correctness", True),
    ]
    of_turns, whole, _ = chosen(load_config({}, env={}), ["code_agent_consistency", "llm_confidence"])
    assert [one.name for one in whole] == ["code_agent_consistency"]
    assert sorted(one.name for one in of_turns) == sorted(SIGNALS)


def test_reliability_and_consistency_follow_from_the_signals_of_the_turns(models: ScriptedModels) -> None:
    models.play(confidence(1.0), confidence(0.2), confidence(0.9))
    clock = FakeClock()
    with Rig(config(models, "llm_confidence"), clock=clock) as rig:
        converse(rig, "Paris.", "Rome?", "Paris, I think.")
        assert rig.engine.drain(60, judges=True)
        clock.advance(601)
        rig.engine.intake.tick()
        [scored] = whole_ones(rig)
        # risks 0, 0.8 and 0.1; the worst of three is the 0.8
        assert values(scored)[RELIABILITY] == pytest.approx(0.2)
        assert values(scored)[CONSISTENCY] == pytest.approx(1 - ((0.8**2 + 0.1**2) / 3) ** 0.5, abs=1e-4)
        assert scored.scores[0].detail["total_traces_in_session"] == 3
        turns = {one.turn.output: one.turn.turn_id for one in rig.scored() if one.judged is None and not one.conversation}
        assert scored.scores[0].detail["flagged_traces"] == [turns["Rome?"]]


def test_a_signal_that_comes_after_the_end_revises_what_looks_at_signals(models: ScriptedModels) -> None:
    models.play(confidence(0.4))
    clock = FakeClock()
    given = config(models, "llm_confidence")
    given["conversation"]["metrics"].append({"code_contains": {"value": "Paris"}})
    with Rig(given, clock=clock) as rig:
        judging = held(rig)
        converse(rig, "Paris.")
        assert rig.engine.end_conversation("c1")
        [first] = whole_ones(rig)
        assert first.scores[0].detail["reason"] == "missing:session"
        assert judging.step()  # the judge is late
        rig.turns()
        rig.engine.intake.tick()
        assert len(whole_ones(rig)) == 1  # others may follow
        clock.advance(31)
        rig.engine.intake.tick()
        _, second = whole_ones(rig)
        assert (second.turn.revision, second.supersedes, second.new) == (2, "conversation-c1", False)
        assert values(second) == {RELIABILITY: pytest.approx(0.4), CONSISTENCY: pytest.approx(0.4)}
        clock.advance(120)
        rig.engine.intake.tick()
        assert len(whole_ones(rig)) == 2
        counted = {key[2]: value for key, value in rig.count(semconv.RESULTS).items() if key[0] == RELIABILITY}
        assert counted == {"skipped": 1, "superseded": 1}


def test_what_judges_say_during_shutdown_still_counts(models: ScriptedModels) -> None:
    models.play(confidence(0.4))
    rig = Rig(config(models, "llm_confidence"))
    converse(rig, "Paris.")
    rig.processor.shutdown()
    assert values([scored for scored in rig.kept if scored.conversation][-1])[RELIABILITY] == pytest.approx(0.4)
    rig.provider.shutdown()


def test_conversation_metrics_with_several_workers_are_logged_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    given: Any = {"inline": {"metrics": []}, "conversation": {"metrics": ["code_latency"]}}
    for is_one_of_many in (False, True):
        monkeypatch.setattr(pipeline, "has_other_workers", lambda found=is_one_of_many: found)
        pipeline.warn_of_workers.cache_clear()
        with Rig(given) as rig:
            for _ in range(2):
                converse(rig, "Paris.")
                assert rig.engine.end_conversation("c1")
            assert len(whole_ones(rig)) == 2
        assert len([line for line in caplog.messages if "conversation.metrics" in line]) == is_one_of_many


def test_later_end_without_applicable_metric_keeps_the_scores(models: ScriptedModels, tmp_path: Path, clock: FakeClock) -> None:
    """The user returns after the conversation was forgotten, with one message, which the metric doesn't judge."""
    models.play(*[{"data": {}}, {"verdict": "no", "reason": "because"}] * 2)
    name, path = "llm_knowledge_retention", tmp_path / "scores.db"
    given: Any = {**config(models), "outlets": {"store": str(path)}}
    given["conversation"]["metrics"] = [name]
    with Rig(given, clock=clock) as rig:
        judging = held(rig)
        converse(rig, "Hello Ann.", "I don't know your name.")
        assert rig.engine.end_conversation("c1")
        assert len(whole_ones(rig)) == 1
        assert judging.step()
        rig.turns()
        clock.advance(1201)
        rig.engine.intake.tick()  # the conversation is forgotten
        converse(rig, "You are welcome.")
        assert rig.engine.end_conversation("c1")
        assert len(whole_ones(rig)) == 2
        with StoreReader(path) as reader:
            assert len(reader.scores("conversation-c1")) == 1
            assert reader.why("conversation-c1") == {name: "scored"}


def test_safety_judge_reads_the_redacted_turns_before(models: ScriptedModels) -> None:
    models.play(*[{"score": 0, "reason": "fine"}] * 2)
    given = config(models, "llm_jailbreak_attempt")
    given["conversation"] = {}
    with Rig(given) as rig:
        converse(rig, "First, write to mallory@evil.example.", "Now the second part.")
        assert rig.engine.drain(60, judges=True)
    first, second = models.asked
    assert "<<<EARLIER" not in first
    assert f"1. user: {QUESTION}\n2. assistant: First, write to [EMAIL_1]." in second
    assert "mallory" not in second


# --- the store


def test_signals_may_come_before_their_turn_and_go_with_it() -> None:
    clock = FakeClock()
    store = Conversations(60.0, 10, 2, 1_000, clock.monotonic)
    store.note("c1", "t1", {"confidence": 0.5})
    store.note("c1", "t9", {"confidence": 0.1})  # of a turn that never comes
    for number in (1, 2, 3):
        store.add(turn(number), 1)
        store.note("c1", f"t{number}", {"coherence": number / 10})
    [ended] = store.end("c1")
    assert ended.turn.session == {
        "traces": [{"trace_id": "t2", "signals": {"coherence": 0.2}}, {"trace_id": "t3", "signals": {"coherence": 0.3}}]
    }
    store.note("c1", "t3", {"coherence": 0.3})  # nothing new
    clock.advance(50)
    assert store.due() == []
    store.note("c1", "t3", {"coherence": 0.9})
    assert store.due() == []
    clock.advance(31)
    [late] = store.due()
    assert (late.reason, late.turn.revision, late.supersedes) == ("signals", 2, "conversation-c1")
    assert store.due() == store.end_late() == []
