"""The verdict cache."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.core import semconv
from otel_agenteval.judging.models import VerdictCache
from tests.models.wire import Server
from tests.support.clock import FakeClock
from tests.support.judges import ScriptedModels
from tests.support.rig import Rig

DAY = 86_400.0


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "verdicts.db")


def ask(judge: oa.Judge, text: str = "Paris", task: str = "Judge it.") -> dict[str, Any]:
    return judge.ask("relevance", task, {"answer": text}, '{"score": <0 to 100>}')


# --- the file


def test_what_is_kept_outlives_the_process_that_asked(path: str, clock: FakeClock) -> None:
    cache = VerdictCache(path, DAY, 10_000, clock=clock)
    cache["k"] = "Ünïcode"
    assert stat.S_IMODE(Path(path).stat().st_mode) == 0o600
    cache.close()
    again = VerdictCache(path, DAY, 10_000, clock=clock)
    assert (again.get("k"), again.get("other"), len(again), list(again)) == ("Ünïcode", None, 1, ["k"])
    again.clear()
    assert (again.get("k"), again.bytes, again.faults) == (None, 0, 0)
    again.close()


def test_a_reply_is_forgotten_after_its_time(path: str, clock: FakeClock) -> None:
    cache = VerdictCache(path, DAY, 10_000, clock=clock)
    cache["k"] = "old"
    clock.advance(DAY - 1)
    assert cache.get("k") == "old"
    clock.advance(1)
    assert (cache.get("k"), len(cache)) == (None, 0)
    cache["new"] = "new"
    assert cache.bytes < 200  # what was too old is not only hidden
    cache.close()


def test_past_its_size_the_oldest_go(path: str, clock: FakeClock) -> None:
    cache = VerdictCache(path, DAY, 10_000, clock=clock)
    for n in range(100):
        cache[f"k{n}"] = "x" * 872
        assert cache.bytes <= 10_000
    assert list(cache) == [f"k{n}" for n in range(90, 100)]
    cache["huge"] = "x" * 20_000
    assert ("huge" in cache, len(cache)) == (False, 10)
    cache["k95"] = "again"
    assert (cache["k95"], len(cache)) == ("again", 10)
    cache.close()


def test_a_file_that_cannot_be_used_is_a_miss(tmp_path: Path, server: Server, judge_of: Any) -> None:
    (tmp_path / "verdicts.db").write_bytes(b"this is no database, and never was one" * 40)
    cache = VerdictCache(str(tmp_path / "verdicts.db"), DAY, 10_000)
    server.reply({"score": 1}, {"score": 2})
    judge = judge_of(cache=cache)
    assert [ask(judge), ask(judge)] == [{"score": 1}, {"score": 2}]
    assert cache.faults >= 2


# --- the key


def test_the_same_question_with_other_marker_numbers_is_known(server: Server, judge_of: Any) -> None:
    judge = judge_of(cache={})
    server.reply({"score": 1}, {"score": 2})
    assert ask(judge, "[EMAIL_1] wrote to [EMAIL_2]") == {"score": 1}
    assert ask(judge, "[EMAIL_5] wrote to [EMAIL_3]") == {"score": 1}
    assert ask(judge, "[EMAIL_1] wrote to [EMAIL_1]") == {"score": 2}


def test_a_metric_s_version_and_parameters_make_it_another_question(models: ScriptedModels) -> None:
    cache: dict[str, str] = {}
    judge = oa.Judge(models.url, "scripted", cache=cache)

    def define(version: str) -> None:
        @oa.metric(version=version, needs=("output",))
        def llm_versioned(turn: oa.Turn, judge: Any, *, level: int = 1) -> float:
            """The same question in each version."""
            return float(judge.ask("rate", "Rate it.", {"text": turn.output}, '{"score": 0}')["score"])

    def score(**params: Any) -> float | None:
        return oa.get_metric("llm_versioned", **params).evaluate(oa.Turn(output="a"), judge=judge).value

    models.play({"score": 0.1}, {"score": 0.2}, {"score": 0.3})
    define("1")
    assert [score(), score(), score(level=2)] == [0.1, 0.1, 0.2]
    define("2")
    assert [score(), score()] == [0.3, 0.3]
    judge.close()


# --- what is kept


@pytest.mark.parametrize(("refused", "times"), [('{"score": "banana"}', 2), ('{"reasoning": "x"}', 1)])
def test_what_the_metric_refuses_is_asked_anew(refused: str, times: int, server: Server, judge_of: Any) -> None:
    cache: dict[str, str] = {}
    judge = judge_of(cache=cache)
    metric, turn = oa.get_metric("llm_relevance"), oa.Turn(input="q", output="a")
    server.reply(*[refused] * times, {"score": 90, "reasoning": "r"})
    assert metric.evaluate(turn, judge=judge).error_type == "invalid_reply"
    assert not cache
    assert [metric.evaluate(turn, judge=judge).value for _ in range(2)] == [0.9, 0.9]
    assert (len(cache), len(server.requests)) == (1, times + 1)


def test_of_several_questions_none_is_kept_where_the_last_reply_is_refused(server: Server, judge_of: Any) -> None:
    cache: dict[str, str] = {}
    judge = judge_of(cache=cache)
    metric, turn = oa.get_metric("llm_g_eval", criteria="Is it right?"), oa.Turn(input="q", output="a")
    good = [{"steps": ["Read it."]}, {"score": 5, "reason": "r"}]
    server.reply(good[0], {"score": 11, "reason": "r"}, *good)
    assert [metric.evaluate(turn, judge=judge).status for _ in range(3)] == ["error", "ok", "ok"]
    assert (len(cache), len(server.requests)) == (2, 4)


def test_something_else_in_the_file_is_a_miss(server: Server, judge_of: Any) -> None:
    cache: dict[str, str] = {}
    judge = judge_of(cache=cache)
    server.reply({"score": 1}, {"score": 2}, {"score": 3})
    assert ask(judge) == {"score": 1}
    for broken in ("no JSON", "[1]"):
        cache.update(dict.fromkeys(cache, broken))
        assert ask(judge)["score"] > 1


# --- live


def live(models: ScriptedModels, path: str, **cache: Any) -> dict[str, Any]:
    judge = {"base_url": models.url, "model": "scripted", "max_concurrency": 1}
    judge |= {"cache": {"path": path, **cache}, "budget": {"calls_per_hour": 1}}
    return {"judge": judge, "metrics": ["llm_relevance"], "inline": {"metrics": []}}


def test_live_a_known_verdict_is_counted_and_takes_nothing_of_the_budget(models: ScriptedModels, path: str) -> None:
    models.play({"score": 90})
    with Rig(live(models, path, audit=0)) as rig:
        for _ in range(3):
            rig.run(says="Paris.")
        assert rig.engine.drain(60, judges=True)
        scores = [e.attributes[semconv.SCORE_VALUE] for e in rig.log_events()]
        assert scores == [0.9] * 3
        assert rig.count("agenteval.judge.cache") == {("miss",): 1, ("hit",): 2}
        assert rig.count("agenteval.judge.requests") == {("ok",): 1}
    with Rig(live(models, path, audit=0)) as rig:
        rig.run(says="Paris.")
        assert rig.engine.drain(60, judges=True)
        assert rig.count("agenteval.judge.cache") == {("hit",): 1}
    assert len(models.requests) == 1


def test_live_an_audit_asks_whatever_is_known(models: ScriptedModels, path: str) -> None:
    models.play({"score": 90}, {"score": 80}, {"score": 70})
    options = live(models, path, audit=1)
    options["judge"]["budget"] = {}
    with Rig(options) as rig:
        for _ in range(3):
            rig.run(says="Paris.")
        assert rig.engine.drain(60, judges=True)
        assert rig.count("agenteval.judge.cache") == {("audit",): 3}
    assert len(models.requests) == 3
