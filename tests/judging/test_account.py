"""Every metric of every closed turn has exactly one counted outcome, and ``why`` reports it."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.core import semconv
from otel_agenteval.engine.ending_root import TurnScorer
from otel_agenteval.engine.work import WorkQueue
from otel_agenteval.evaluation.limits import Shedding
from otel_agenteval.outlets.base import Outlet
from otel_agenteval.outlets.store.reader import StoreReader
from tests.support.clock import FakeClock
from tests.support.judges import ScriptedModels
from tests.support.rig import Rig

GOOD = {"score": 90, "reason": "It answers."}
CODE = "code_latency"


@pytest.fixture(autouse=True)
def _heavy_metric() -> None:
    @oa.metric(traits=("heavy",))
    def code_takes_long(turn: oa.Turn) -> float:
        """Stands for a metric that takes milliseconds."""
        return 1.0


def config(models: ScriptedModels, **more: Any) -> dict[str, Any]:
    judge = {"base_url": models.url, "model": "scripted", "max_concurrency": 2, **more.pop("judge", {})}
    metrics = [
        "code_takes_long", {"llm_relevance": {}, "sample": {"rate": 0.5}}, {"llm_coherence": {}, "when": {"agent": "vip"}},
        {"code_empty_answer": {}, "when": {"agent": "vip", "step": "retrieval"}},
    ]  # fmt: skip
    return {"judge": judge, "inline": {"metrics": [CODE]}, "metrics": metrics, **more}


def outcomes(rig: Rig) -> dict[str, dict[str, float]]:
    """Return the number of results by outcome, for each metric."""
    found: dict[str, dict[str, float]] = {}
    for (metric, _, outcome), count in rig.count(semconv.RESULTS).items():
        if outcome != "superseded":
            its = found.setdefault(metric, {})
            its[outcome] = its.get(outcome, 0) + count
    return found


def assert_accounted(rig: Rig, turns: int, waiting: int = 0) -> None:
    """Check that outcomes and waiting jobs add up to turns × metrics."""
    found = outcomes(rig)
    assert sum(rig.count(semconv.TURNS).values()) == turns
    expected = {CODE, "code_takes_long", "llm_relevance", "llm_coherence", "code_empty_answer"}
    assert set(found) <= expected
    missing = {metric: turns - sum(found.get(metric, {}).values()) for metric in expected}
    assert sum(missing.values()) == waiting, found
    assert all(count == 0 for metric, count in missing.items() if metric.startswith("code_")), found
    dropped = sum(its.get("dropped", 0) for its in found.values())
    assert sum(rig.count(semconv.DROPPED).values()) == dropped


def test_each_outcome_is_counted_once_and_reported(models: ScriptedModels) -> None:
    models.play(*[GOOD] * 100)
    with Rig(config(models)) as rig:
        for number in range(40):
            rig.run("vip" if number % 2 else "bot")
        assert rig.engine.drain(60, judges=True)
        assert_accounted(rig, 40)
        found = outcomes(rig)
        assert found["llm_coherence"] == {"gated": 20, "pass": 20}
        assert found["code_empty_answer"] == {"gated": 40}
        assert set(found["llm_relevance"]) == {"pass", "sampled_out"}
        why = rig.engine.why(rig.turns()[0].turn_id)
        assert why is not None
        assert (why["code_empty_answer"], why["llm_coherence"]) == ("gated: when.agent", "gated: when.agent")
        assert (why[CODE], why["llm_relevance"] in ("scored", "sampled out (p=0.5)")) == ("scored", True)
        vip = rig.engine.why(next(turn.turn_id for turn in rig.turns() if turn.agent == "vip"))
        assert vip is not None
        assert (vip["code_empty_answer"], vip["llm_coherence"]) == ("gated: when.step", "scored")


def test_a_store_tells_the_outcomes_that_the_engine_tells(
    models: ScriptedModels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models.play(*[GOOD] * 5)
    store = str(tmp_path / "scores.db")
    metrics = [*config(models)["metrics"], "code_recall_at_k"]
    with Rig({**config(models), "metrics": metrics, "outlets": {"store": store}}) as rig:
        monkeypatch.setattr(WorkQueue, "fill", 0.9)
        rig.run("bot")
        rig.run("vip")
        assert rig.engine.drain(60, judges=True)
        assert rig.engine.flush(60)
        live = [rig.engine.why(turn.turn_id) for turn in rig.turns()]
        ids = [turn.turn_id for turn in rig.turns()]
    with StoreReader(store) as reader:
        assert [reader.why(turn_id) for turn_id in ids] == live
    told = {outcome for outcomes in live for outcome in (outcomes or {}).values()}
    assert {"scored", "gated: when.agent", "gated: when.step", "dropped: shed"} <= told
    assert any(outcome.startswith("skipped: missing:") for outcome in told)


def test_a_lost_turn_says_why(models: ScriptedModels) -> None:
    models.play()
    with Rig(config(models, queue={"max_bytes": 1})) as rig:
        rig.run()
        rig.processor.force_flush()
        context = rig.exported("invoke_agent bot").context
        why = rig.engine.why(f"{context.trace_id:032x}-{context.span_id:016x}")
        assert why is not None
        assert set(why.values()) == {"dropped: queue_full"}
        assert set(why) == {CODE, "code_takes_long", "llm_relevance", "llm_coherence", "code_empty_answer"}
        assert_accounted(rig, 1)


def test_the_equation_holds_when_things_fail(models: ScriptedModels, monkeypatch: pytest.MonkeyPatch) -> None:
    models.play(*[GOOD, 400, "prose", GOOD] * 50)
    with Rig(config(models)) as rig:
        real, seen = TurnScorer.evaluate, []

        def failing(self: TurnScorer, *args: Any, **how: Any) -> Any:
            seen.append(1)
            if len(seen) % 5 == 0:
                raise RuntimeError("of ours")
            return real(self, *args, **how)

        monkeypatch.setattr(TurnScorer, "evaluate", failing)
        judging = rig.engine.judging
        assert judging is not None
        written, calls = judging.planner.content.redacted_json, []

        def unredacted(turn: Any) -> bytes:
            calls.append(1)
            if len(calls) % 3 == 0:
                raise ValueError("redaction failed")
            return written(turn)

        monkeypatch.setattr(judging.planner.content, "redacted_json", unredacted)
        for _ in range(40):
            rig.run("vip")
        assert rig.engine.drain(60, judges=True)
        assert_accounted(rig, 40)
        found = outcomes(rig)
        assert found[CODE]["dropped"] == 8
        assert found["llm_coherence"]["error"] >= 5
        assert rig.count(semconv.DROPPED)[("llm_coherence", "fault")] == 8


def test_the_equation_holds_at_shutdown(models: ScriptedModels) -> None:
    models.play(*[GOOD] * 100)
    limited = config(models, judge={"budget": {"calls_per_hour": 4}}, exit_timeout="1s")
    with Rig(limited, clock=FakeClock()) as rig:
        for _ in range(30):
            rig.run("vip")
        rig.engine.shutdown()
        assert_accounted(rig, 30)
        assert outcomes(rig)["llm_coherence"]["dropped"] >= 20
        assert rig.count(semconv.DROPPED)[("llm_coherence", "shutdown")] >= 20


def test_the_equation_holds_at_a_shutdown_in_which_an_outlet_hangs(models: ScriptedModels) -> None:
    models.play(*[GOOD] * 100)
    with Rig(config(models, exit_timeout="300ms")) as rig:
        hangs, released = threading.Event(), threading.Event()

        class Hanging(Outlet):
            name = "hanging"

            def emit(self, batch: Any) -> None:
                hangs.set()
                released.wait(60)

        rig.engine.outlets.add(Hanging())
        rig.run("vip")
        assert hangs.wait(60)
        for _ in range(9):
            rig.run("vip")
        rig.engine.shutdown()
        released.set()
        thread = rig.engine.worker._thread
        assert thread is not None
        thread.join(60)
        found = outcomes(rig)
        assert {metric: sum(its.values()) for metric, its in found.items() if metric.startswith("code_")} == dict.fromkeys(
            (CODE, "code_takes_long", "code_empty_answer"), 10
        )
        assert found[CODE]["dropped"] == 9


def test_conversations_are_accounted_for_too(models: ScriptedModels) -> None:
    models.play(*[GOOD] * 10)
    given = {
        **config(models), "metrics": [], "conversation": {"metrics": [{"code_contains": {"value": "x"}}, {"llm_relevance": {}, "when": {"agent": "vip"}}]},
    }  # fmt: skip
    with Rig(given) as rig:
        for number in range(6):
            rig.run("vip" if number % 2 else "bot", attributes={"gen_ai.conversation.id": f"c{number}"})
        rig.turns()
        for number in range(6):
            assert rig.engine.end_conversation(f"c{number}")
        assert rig.engine.drain(60, judges=True)
        assert outcomes(rig)["llm_relevance"] == {"gated": 3, "pass": 3}
        assert sum(outcomes(rig)["code_contains"].values()) == 6
        assert (rig.engine.why("conversation-c0") or {})["llm_relevance"] == "gated: when.agent"


# --- load shedding


def test_levels_go_up_at_once_and_down_one_by_one() -> None:
    clock = FakeClock()
    shedding = Shedding(clock.monotonic)
    assert [shedding.update(fill) for fill in (0.0, 0.49, 0.5, 0.9)] == [0, 0, 1, 3]
    assert shedding.update(0.7) == 3  # not low enough
    assert shedding.update(0.1) == 3  # too early
    clock.advance(5)
    assert shedding.update(0.1) == 2
    assert shedding.update(0.1) == 2
    clock.advance(5)
    assert shedding.update(0.44) == 1
    clock.advance(5)
    assert (shedding.update(0.3), shedding.update(0.2)) == (1, 0)


@pytest.mark.parametrize(
    ("fill", "left_out"), [(0.0, set()), (0.6, {"llm"}), (0.75, {"llm", "embed"}), (0.9, {"llm", "embed", "heavy"})]
)
def test_a_full_worker_leaves_out_judges_first_and_heavy_metrics_last(
    models: ScriptedModels, fill: float, left_out: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    models.play(*[GOOD] * 5, vectors={"Paris.": [1.0, 0.0], "What is the capital of France?": [1.0, 0.0]})
    kinds = {"llm": "llm_coherence", "embed": "embed_coherence", "heavy": "code_takes_long"}
    given = {**config(models), "metrics": list(kinds.values()), "embedder": {"base_url": models.url, "model": "scripted"}}
    with Rig(given) as rig:
        monkeypatch.setattr(WorkQueue, "fill", fill)
        rig.run()
        assert rig.engine.drain(60, judges=True)
        found = outcomes(rig)
        assert {kind for kind, metric in kinds.items() if found[metric] == {"dropped": 1}} == left_out
        assert sum(found[CODE].values()) == 1
        why = rig.engine.why(rig.turns()[0].turn_id) or {}
        assert {kind for kind, metric in kinds.items() if why[metric] == "dropped: shed"} == left_out
        assert rig.engine.telemetry.read(semconv.LOAD_LEVEL).values == {(): len(left_out)}


def test_a_dead_judge_s_full_queue_switches_nothing_else_off(models: ScriptedModels) -> None:
    models.play()
    with Rig(config(models, judge={"queue": {"max_bytes": 100}})) as rig:
        for _ in range(20):
            rig.run("vip")
        rig.turns()
        assert rig.engine.telemetry.read(semconv.LOAD_LEVEL).values == {(): 0}
        assert outcomes(rig)["code_takes_long"] == {"ok": 20}
        assert outcomes(rig)["llm_coherence"] == {"dropped": 20}
