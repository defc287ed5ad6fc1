"""Selection of turns for judging, and conditions."""

from __future__ import annotations

import hashlib
import json
import math
import random
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.trace.sampling import Decision, Sampler, SamplingResult
from opentelemetry.trace import TraceState

import otel_agenteval as oa
from otel_agenteval.cli.main import main
from otel_agenteval.config.loader import load_config
from otel_agenteval.config.metrics import Selector
from otel_agenteval.core import semconv
from otel_agenteval.core.errors import ConfigError
from otel_agenteval.core.score import Score
from otel_agenteval.evaluation.conditions import Condition, Known
from otel_agenteval.evaluation.selection import select_conversation_metrics, select_metrics
from otel_agenteval.judging.choose import History
from otel_agenteval.judging.sampling import EVERY_TURN, Cascade, Chance, SamplingRule, position, rules_of, upstream_probability
from otel_agenteval.statistics.estimates import SINCE_START, Estimates
from tests.support.clock import FakeClock
from tests.support.judges import ScriptedModels
from tests.support.rig import Rig

TURN = oa.Turn.from_dict({
    "turn_id": "t", "duration_s": 31.0, "agent": "travel", "output": "Hi.", "error": None, "tool_calls": [{"name": "a", "error": "x"}, {"name": "b"}],
    "llm_calls": [{"model": "m-1"}],
})  # fmt: skip
SCORES = [Score("code_latency", 31.0), Score("code_tool_success", 0.5), Score("code_cost", status="skipped")]
METRICS = ("code_latency", "code_tool_success", "code_cost")


def ids(n: int, seed: int = 7) -> list[str]:
    drawn = random.Random(seed)
    return [f"{drawn.getrandbits(128):032x}" for _ in range(n)]


def test_the_position_is_the_hash_that_is_promised() -> None:
    trace_id = "4bf92f3577b34da6a3ce929d0e0e4736"
    digest = hashlib.sha256(f"agenteval.sampling.v1seed{trace_id}".encode()).hexdigest()
    assert position(trace_id, "seed") == int(digest[:14], 16) / 2**56
    assert position(trace_id, "seed") != position(trace_id)


def test_positions_are_even_and_do_not_follow_the_bits_of_the_trace_id() -> None:
    kept_by_a_head_sampler = [trace_id for trace_id in ids(40_000) if int(trace_id[18:], 16) < 0.1 * 2**56]
    judged = sum(position(trace_id) < 0.05 for trace_id in kept_by_a_head_sampler)
    n = len(kept_by_a_head_sampler)
    assert abs(judged / n - 0.05) < 4 * math.sqrt(0.05 * 0.95 / n)


@given(st.floats(0, 1), st.floats(0, 1), st.integers(0, 2**128 - 1))
def test_what_is_judged_at_a_lower_rate_is_judged_at_a_higher_one(a: float, b: float, trace: int) -> None:
    place = position(f"{trace:032x}")
    assert 0 <= place < 1
    assert not place < min(a, b) or place < max(a, b)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("duration_s > 30", True), ("duration_s > 31", False), ("30 < duration_s", True), ("duration_s > -1", True), ("error", False),
        ("duration_s >= 31 and agent == 'travel'", True), ('agent != "travel"', False), ("not error", True), ("error == false", True),
        ("error or score.code_tool_success < 1", True), ("score.code_tool_success == 0.5", True), ("output_chars < 4", True),
        ("score.code_cost > 0 or score.code_cost <= 0", False), ("cost_usd < 1", False), ("not cost_usd < 1", True),
        ("tool_errors == 1 and tool_calls == 2", True), ("model == 'm-1' and llm_calls == 1", True),
        ("error and error or not error", True), ("error and (error or not error)", False),
        ("input_tokens > 0 or conversation_id == 'x' or stop_kind == 'y' or close_reason == 'z' or service == 's'", False),
        ("truncated or not complete or revision > 1 or output_tokens > 0", False),
    ],
)  # fmt: skip
def test_a_condition_says_what_it_says(text: str, holds: bool) -> None:
    assert Condition(text, METRICS, "sample").holds(TURN, Known(SCORES)) is holds


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("eror", "1"), ("error or score.code_latncy > 1", "10"), ("error and", "10"), ("error error", ""), ("(error", ""), ("error)", "6"),
        ("duration_s > 'x'", "14"), ("agent > 5", "9"), ("duration_s > ; drop", "14"), ("__import__('os')", "1"), ("agent == 'open", "10"),
        ("> 5", "1"), ("not " * 9000 + "error", "1"), ("(" * 2000 + "error", ""),
    ],
)  # fmt: skip
def test_a_condition_that_cannot_be_read_names_the_position(text: str, position: str) -> None:
    with pytest.raises(ConfigError, match=rf"^metrics\[0\]\.sample: position {position}"):
        Condition(text, METRICS, "metrics[0].sample")


@given(st.text(alphabet="eror and()<>='\"5.not_score\n;", max_size=40))
def test_any_text_is_a_condition_or_an_error_of_configuration(text: str) -> None:
    try:
        condition = Condition(text, METRICS, "sample")
    except ConfigError:
        return
    assert condition.holds(TURN, Known(SCORES)) in (True, False)


def entry(name: str, **sample: Any) -> dict[str, Any]:
    return {name: {}, "sample": sample}


def test_the_configuration_gives_metrics_their_rules() -> None:
    given = {
        "metrics": [entry("llm_relevance", rate=0.05, always_if="score.code_latency > 5"), "llm_faithfulness"],
        "inline": {"metrics": ["code_latency"]},
    }
    config = load_config(given, {})
    sampled, every = rules_of(config, select_metrics(config)).values()
    assert sampled.rate == 0.05
    assert sampled.chance(TURN, Known(SCORES)) == (1.0, "rule")
    assert sampled.chance(TURN) == (0.05, "rate")
    assert every is EVERY_TURN


@pytest.mark.parametrize(
    ("where", "given", "message"),
    [
        ("metrics", entry("code_latency", rate=0.5), "metrics[0].sample: "),
        (
            "metrics",
            entry("llm_relevance", rate=0.5, always_if="score.llm_relevance > 0"),
            "metrics[0].sample.always_if: position 1: ",
        ),
        (
            "conversation",
            entry("llm_relevance", rate=0.5, always_if="score.code_latency > 0"),
            "conversation.metrics[0].sample.always_if: ",
        ),
    ],
)
def test_a_rule_that_is_wrong_is_refused_with_its_path(where: str, given: Any, message: str) -> None:
    config = load_config({"metrics": [given]} if where == "metrics" else {"conversation": {"metrics": [given]}}, {})
    select = select_metrics if where == "metrics" else select_conversation_metrics
    with pytest.raises(ConfigError) as caught:
        rules_of(config, select(config))
    assert message in str(caught.value)


WRONG = {"inline": {"metrics": []}, "metrics": [entry("llm_relevance", rate=0.5, always_if="eror")]}
MESSAGE = "metrics[0].sample.always_if: position 1: "


def test_a_rule_that_is_wrong_keeps_an_application_from_starting_and_a_reload_changes_nothing() -> None:
    with pytest.raises(ConfigError, match=re.escape(MESSAGE)):
        Rig(WRONG)
    for before in ([], ["llm_relevance"]):
        with Rig({"inline": {"metrics": []}, "metrics": before}) as rig:
            with pytest.raises(ConfigError, match=re.escape(MESSAGE)):
                rig.engine.reload(load_config({**WRONG, "turn": {"max_spans": 7}}, {}))
            assert rig.engine.config.turn.max_spans != 7
            judging = rig.engine.judging
            assert ([] if judging is None else judging.metrics.names(conversation=False)) == before


@pytest.mark.parametrize("command", [["check-config"], ["eval", "--config"]], ids=lambda command: command[0])
def test_commands_refuse_a_rule_that_is_wrong(command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, spans = tmp_path / "agenteval.yaml", tmp_path / "spans.jsonl"
    file.write_text(json.dumps(WRONG), encoding="utf-8")
    spans.write_text("", encoding="utf-8")
    assert main([*command, str(file), *([str(spans)] if command[0] == "eval" else [])]) == 2
    assert MESSAGE in capsys.readouterr().err


# --- samples, and what follows from them


GOOD = {"score": 90, "reason": "It answers."}
TURNS = 20_000


class Population:
    """Turns of three agents over some hours. Failed turns are rare and bad, and a cheap metric predicts the judged metric."""

    def __init__(self, seed: int) -> None:
        drawn = random.Random(seed)
        self.turns = []
        for number in range(TURNS):
            agent = drawn.choices(("a", "b", "rare"), (70, 29, 1))[0]
            failed = drawn.random() < 0.02
            value = drawn.betavariate(2, 6) if failed else drawn.betavariate(8, 2) - (0.2 if agent == "rare" else 0.0)
            cheap = min(1.0, max(0.0, value + drawn.gauss(0, 0.1)))
            turn = oa.Turn(turn_id=str(number), agent=agent, error="x" if failed else None)
            self.turns.append((f"{drawn.getrandbits(128):032x}", turn, value, cheap, number * 6 * 3600 / TURNS))
        self.mean = sum(value for _, _, value, _, _ in self.turns) / TURNS


@pytest.fixture(scope="module")
def population() -> Population:
    return Population(3)


CHEAP = SamplingRule(0.5)
RULES: dict[str, SamplingRule] = {
    "a rate": SamplingRule(0.02),
    "a condition": SamplingRule(0.02, Condition("error", (), "")),
    "rates of selectors": SamplingRule(0.02, None, [(Selector(agent=("rare",)), 1.0), (Selector(agent=("b",)), 0.1)]),
    "a quota": SamplingRule(0.01, min_per_hour=50),
    "a quota without a rate": SamplingRule(0.0, min_per_hour=100),
    "a quota and a condition": SamplingRule(0.005, Condition("error", (), ""), min_per_hour=40),
    "a cascade": SamplingRule(0.02, None, cascade=Cascade("embed_x", Condition("score.embed_x < 0.5", ["embed_x"], ""))),
    "all of them": SamplingRule(
        0.02, Condition("error", (), ""), [(Selector(agent=("rare",)), 0.5)], 50, cascade=Cascade("embed_x", Condition("score.embed_x < 0.4", ["embed_x"], "")),
    ),
}  # fmt: skip


def draw(rule: SamplingRule, population: Population, seed: str = "") -> list[tuple[str, str, float, float]]:
    """Return (trace, agent, value, probability) of the turns that are judged, with the code for live turns."""
    judged = []
    for trace, turn, value, cheap, at in population.turns:
        place = position(trace, seed)
        chance = rule.chance(turn, Known(), at)
        if rule.cascade is not None and chance.by != "rule":
            first = CHEAP.chance(turn)
            if place >= first.probability:
                continue
            chance = rule.cascade.chance(chance, first, turn, Score("embed_x", cheap))
        if place < chance.probability:
            judged.append((trace, turn.agent or "", value, chance.probability))
    return judged


@pytest.mark.parametrize("name", RULES)
def test_the_mean_of_all_turns_is_recovered_within_its_interval(population: Population, name: str) -> None:
    judged = draw(RULES[name], population)
    assert len(judged) < 0.35 * TURNS
    clock = FakeClock()
    estimates = Estimates(3600.0, clock)
    for trace, _, value, probability in judged:
        estimates.add("m", "", trace, trace, value, probability)
    [estimate] = estimates.read().values()
    # Cascades: what the first metric never sees (u >= 0.5) is not in the frame twice, all weights add up to the population.
    weights = sum(1 / probability for _, _, _, probability in judged)
    spread = math.sqrt(sum((1 - p) / p**2 for _, _, _, p in judged))
    assert abs(weights - TURNS) < 4 * spread
    half = (estimate.high - estimate.low) / 2
    assert abs(estimate.mean - population.mean) < half * 3.3 / 1.96  # 99.9 %: eight draws are tested here; the 95 % below
    assert half < 0.03
    naive = sum(value for _, _, value, _ in judged) / len(judged)
    if "condition" in name or "cascade" in name or "all" in name:
        assert not estimate.low <= naive <= estimate.high  # the plain mean of what was judged is not it


def test_every_stratum_gets_its_minimum_in_every_hour(population: Population) -> None:
    judged: dict[tuple[str, int], int] = {}
    seen: dict[tuple[str, int], int] = {}
    rule = SamplingRule(0.0, min_per_hour=20)
    for trace, turn, _, _, at in population.turns:
        stratum = (turn.agent or "", int(at // 3600))
        seen[stratum] = seen.get(stratum, 0) + 1
        if position(trace) < rule.chance(turn, Known(), at).probability:
            judged[stratum] = judged.get(stratum, 0) + 1
    assert len(judged) == 3 * 6
    for stratum, count in judged.items():
        expected = 20 * (1 + math.log(seen[stratum] / 20))
        assert 20 <= count <= expected + 5 * math.sqrt(expected), (stratum, count)


@pytest.mark.parametrize(
    ("state", "probability"),
    [
        ("ot=th:0", 1.0), ("ot=th:8", 0.5), ("ot=th:c", 0.25), ("ot=th:e668;x=y", 1 - 0xE668 / 0x10000), ("ot=rv:123456789abcde;th:fd70a4", 0.01),
        ("ot=th:", None), ("ot=th:xyz", None), ("ot=rv:123456789abcde", None), ("vendor=th:8", None), ("", None),
    ],
)  # fmt: skip
def test_the_head_sampler_s_probability_is_read_from_the_trace_state(state: str, probability: float | None) -> None:
    found = upstream_probability(TraceState.from_header([state.replace(";x=y", ",x=y")]) if state else None)
    assert found == (None if probability is None else pytest.approx(probability, abs=1e-6))


# --- facts


def turn(**more: Any) -> oa.Turn:
    return oa.Turn.from_dict({"turn_id": "t", "agent": "bot", **more})


def test_a_tool_is_new_once_for_each_agent() -> None:
    history = History()
    calls = {"tool_calls": [{"name": "search"}]}
    found = [history.compare(turn(**calls, agent=agent))["new_tool"] for agent in ("a", "a", "b", "a")]
    assert found == [True, False, True, False]
    assert history.compare(turn(tool_calls=[{"name": "search"}, {"name": "book"}], agent="a"))["new_tool"] is True
    assert history.compare(turn())["new_tool"] is None


def test_slow_and_expensive_are_known_from_the_turns_before() -> None:
    history = History()
    for n in range(20):
        assert history.compare(turn(duration_s=1 + n / 100, cost_usd=0.01))["slow"] is None
    assert history.compare(turn(duration_s=1.1, cost_usd=0.02)) == {"new_tool": None, "slow": False, "expensive": True}
    assert history.compare(turn(duration_s=9.0))["slow"] is True
    assert history.compare(turn(duration_s=9.0, agent="another"))["slow"] is None
    for _ in range(300):
        history.compare(turn(duration_s=9.0))
    assert history.compare(turn(duration_s=8.0))["slow"] is False


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("empty_answer", True), ("new_tool", True), ("slow or expensive", False), ("event.user_feedback", True), ("event.other.thing", False),
        ("not slow", True), ("event.user_feedback and empty_answer", True),
    ],
)  # fmt: skip
def test_conditions_know_these_facts(text: str, holds: bool) -> None:
    known = Known((), {"new_tool": True, "slow": None, "expensive": False}, {"user_feedback"})
    assert Condition(text, (), "").holds(turn(output=" \n"), known) is holds


# --- live

CHEAP_METRIC, EXPENSIVE_METRIC = "embed_coherence", "llm_relevance"
VECTORS = {"What is the capital of France?": [1.0, 0.0], "Paris.": [0.9, 0.1], "Bananas.": [0.0, 1.0]}


def config(models: ScriptedModels, sample: Mapping[str, Any], first: Any = CHEAP_METRIC, **more: Any) -> dict[str, Any]:
    server = {"base_url": models.url, "model": "scripted"}
    metrics = [{EXPENSIVE_METRIC: {}, "sample": sample}, *([] if first is None else [first])]
    return {
        "judge": {**server, **more.pop("judge", {})},
        "embedder": server,
        "metrics": metrics,
        "inline": {"metrics": []},
        **more,
    }


def judged(rig: Rig, metric: str = EXPENSIVE_METRIC) -> list[dict[str, Any]]:
    return [dict(event.attributes) for event in rig.log_events() if event.attributes[semconv.EVALUATION_NAME] == metric]


def results(rig: Rig, metric: str = EXPENSIVE_METRIC) -> dict[str, float]:
    return {key[2]: value for key, value in rig.count(semconv.RESULTS).items() if key[0] == metric}


CASCADE = {"rate": 0, "cascade": {"after": CHEAP_METRIC, "judge_if": "score.embed_coherence < 0.5"}}


@pytest.mark.parametrize("backend", ["memory", "sqlite"])
def test_a_cheap_metric_decides_whether_the_expensive_one_is_asked(models: ScriptedModels, tmp_path: Any, backend: str) -> None:
    models.play(GOOD, vectors=VECTORS)
    queue = {"backend": "sqlite", "path": str(tmp_path / "q.db")} if backend == "sqlite" else {}
    with Rig(config(models, CASCADE, judge={"queue": queue})) as rig:
        for says in ("Paris.", "Bananas.", "Paris."):
            rig.run(says=says)
        assert rig.engine.drain(60, judges=True)
        assert results(rig) == {"sampled_out": 2, "pass": 1}
        assert results(rig, CHEAP_METRIC) == {"pass": 2, "fail": 1}
        [event] = judged(rig)
        assert (event[semconv.DECIDED_BY], event[semconv.SAMPLE_PROBABILITY]) == (CHEAP_METRIC, 1.0)
        [scored] = [
            scored for scored in rig.scored() if scored.judged is not None and scored.scores[0].metric == EXPENSIVE_METRIC
        ]
        assert scored.scores[0].detail["decided_by"] == {"metric": CHEAP_METRIC, "value": 0.0}
        first = rig.engine.why(next(one.turn.turn_id for one in rig.scored() if one.judged is None)) or {}
        assert first[EXPENSIVE_METRIC].startswith(f"sampled out (p=0) after {CHEAP_METRIC}: 0.99")


def test_what_a_condition_names_waits_for_no_other_metric(models: ScriptedModels) -> None:
    models.play(GOOD, vectors=VECTORS)
    with Rig(config(models, {**CASCADE, "always_if": "agent == 'vip'"})) as rig:
        rig.run("vip")
        assert rig.engine.drain(60, judges=True)
        [event] = judged(rig)
        assert (event[semconv.DECIDED_BY], event[semconv.SAMPLE_PROBABILITY]) == ("rule", 1.0)


def test_a_cascade_has_the_lower_of_both_probabilities(models: ScriptedModels) -> None:
    models.play(*[GOOD] * 100, vectors=VECTORS)
    first = {CHEAP_METRIC: {}, "sample": {"rate": 0.6}}
    with Rig(config(models, {**CASCADE, "rate": 0.3}, first)) as rig:
        for number in range(60):
            rig.run(says="Bananas." if number % 2 else "Paris.")
        assert rig.engine.drain(60, judges=True)
        assert sum(results(rig).values()) == sum(results(rig, CHEAP_METRIC).values()) == 60
        found = judged(rig)
        places = {event[semconv.TURN_ID]: position(event[semconv.TURN_ID].partition("-")[0]) for event in found}
        assert {event[semconv.SAMPLE_PROBABILITY] for event in found} == {0.3, 0.6}
        assert all(places[event[semconv.TURN_ID]] < event[semconv.SAMPLE_PROBABILITY] for event in found)


def test_where_the_first_metric_cannot_say_the_rate_decides(models: ScriptedModels) -> None:
    models.play(GOOD)
    given = {**config(models, {**CASCADE, "rate": 1}), "embedder": {}}
    with Rig(given) as rig:
        rig.run()
        assert rig.engine.drain(60, judges=True)
        assert results(rig, CHEAP_METRIC) == {"skipped": 1}
        assert results(rig) == {"pass": 1}


def test_what_is_dropped_takes_along_what_waits_for_it(models: ScriptedModels) -> None:
    models.play()
    with Rig(config(models, CASCADE, judge={"queue": {"max_bytes": 100}})) as rig:
        rig.run()
        rig.turns()
        assert results(rig) == results(rig, CHEAP_METRIC) == {"dropped": 1}


def test_the_head_sampler_s_probability_goes_with_the_score(models: ScriptedModels) -> None:
    class Half(Sampler):
        def should_sample(self, *args: Any, attributes: Any = None, **kwargs: Any) -> SamplingResult:
            given = attributes if attributes is not None else args[4]
            return SamplingResult(Decision.RECORD_AND_SAMPLE, given, TraceState([("ot", "th:8")]))

        def get_description(self) -> str:
            return "half"

    models.play(GOOD, GOOD)
    with Rig(config(models, {"rate": 1}, None), sampler=Half()) as rig:
        rig.run()
        assert rig.engine.drain(60, judges=True)
        [event] = judged(rig)
        assert event[semconv.UPSTREAM_PROBABILITY] == 0.5
    with Rig(config(models, {"rate": 1}, None)) as rig:
        rig.run()
        assert rig.engine.drain(60, judges=True)
        assert semconv.UPSTREAM_PROBABILITY not in judged(rig)[0]


@pytest.mark.parametrize("reloaded", [False, True], ids=["from the start", "after a reload"])
def test_a_user_s_feedback_on_a_span_is_a_reason_to_judge(models: ScriptedModels, reloaded: bool) -> None:
    models.play(GOOD)
    wanted = config(models, {"rate": 0, "always_if": "event.user_feedback"}, None)
    with Rig(config(models, {"rate": 0}, None) if reloaded else wanted) as rig:
        if reloaded:
            assert "judge" not in rig.engine.reload(load_config(wanted, env={}))
        for feedback in (False, True):
            with rig.agent() as root:
                rig.chat("What is the capital of France?", "Paris.")
                if feedback:
                    root.add_event("user_feedback", {"rating": "down"})
        assert rig.engine.drain(60, judges=True)
        assert results(rig) == {"sampled_out": 1, "pass": 1}


def test_a_revised_turn_is_judged_if_it_was(models: ScriptedModels) -> None:
    """A turn is drawn only once, so a quota that has been reached since doesn't change the decision."""
    models.play(*[GOOD] * 10)
    clock = FakeClock()
    with Rig(config(models, {"rate": 0, "min_per_hour": 1}, None), clock=clock) as rig:
        judging = rig.engine.judging
        assert judging is not None
        rig.run()
        [scored] = rig.scored()
        for _ in range(50):
            rig.run()
        assert rig.engine.drain(60, judges=True)
        before = len(judged(rig))
        scored.turn.revision, scored.new = 2, False
        scored.supersedes = scored.turn.turn_id
        judging.plan(scored)
        assert rig.engine.drain(60, judges=True)
        assert len(judged(rig)) == before + 1


def refused(given: Any) -> None:
    """Load a configuration with an invalid sample. This must raise an error."""
    found = load_config(given, {})
    rules_of(found, select_metrics(found))


@pytest.mark.parametrize(
    ("sample", "place"),
    [
        ({"cascade": {"after": "embed_coherenc", "judge_if": "error"}}, "cascade.after: "),
        ({"cascade": {"after": CHEAP_METRIC, "judge_if": "score.x < 1"}}, "cascade.judge_if: position 1: "),
        (
            {"cascade": {"after": CHEAP_METRIC, "judge_if": "score.code_latency < 1"}},
            "cascade.judge_if: position 1: unknown name 'score.code_latency'",
        ),
        ({"cascade": {"after": CHEAP_METRIC}}, "cascade.judge_if"),
        ({"min_per_hour": 0}, "min_per_hour: "),
        ({"rates": [{"rate": 2}]}, "rates[0].rate: "),
        ({"rates": [{"rate": 1, "when": {"agnt": "x"}}]}, "rates[0].when.agnt: "),
    ],
)
def test_a_sample_that_is_wrong_is_refused_with_its_path(models: ScriptedModels, sample: Any, place: str) -> None:
    with pytest.raises(ConfigError) as caught:
        refused(config(models, {"rate": 0, **sample}))
    assert f"metrics[0].sample.{place}" in str(caught.value)


def test_metrics_that_wait_for_each_other_are_refused() -> None:
    def after(name: str, first: str) -> dict[str, Any]:
        return {name: {}, "sample": {"rate": 0, "cascade": {"after": first, "judge_if": f"score.{first} < 1"}}}

    with pytest.raises(ConfigError, match="llm_relevance after llm_coherence after llm_relevance"):
        refused({"metrics": [after("llm_relevance", "llm_coherence"), after("llm_coherence", "llm_relevance")]})


# --- estimates


def test_an_interval_stays_wide_where_all_agree_and_few_were_asked() -> None:
    estimates = Estimates(3600.0, FakeClock())
    for n in range(5):
        estimates.add("m", "", f"{n}", f"{n}", 1.0, 0.1)
    found = estimates.read()["m", ""]
    assert found.mean == found.high == 1.0
    assert found.low == pytest.approx(0.5655, abs=1e-3)  # Wilson's interval of 5 of 5


def test_estimates_of_live_turns_are_gauges(models: ScriptedModels) -> None:
    models.play(*[GOOD, {"score": 40, "reason": "No."}] * 20)
    with Rig(config(models, {"rate": 1}, None)) as rig:
        for _ in range(10):
            rig.run()
        assert rig.engine.drain(60, judges=True)
        key = (EXPENSIVE_METRIC, "bot", "1h")
        read = {
            name: {labels: value for labels, value in rig.engine.telemetry.read(name).values.items() if labels[2] != SINCE_START}
            for name in (semconv.ESTIMATE_MEAN, semconv.ESTIMATE_LOW, semconv.ESTIMATE_HIGH, semconv.ESTIMATE_N)
        }
        assert read[semconv.ESTIMATE_MEAN] == {key: pytest.approx(0.65)}
        assert read[semconv.ESTIMATE_N] == {key: pytest.approx(10)}
        assert read[semconv.ESTIMATE_LOW][key] < 0.6
        assert read[semconv.ESTIMATE_HIGH][key] > 0.7


def test_a_quota_s_chance_is_never_nothing() -> None:
    rule = SamplingRule(0.0, min_per_hour=2)
    chances = [rule.chance(turn(), Known(), 10.0) for _ in range(8)]
    assert chances[:4] == [Chance(1.0, "quota"), Chance(1.0, "quota"), Chance(2 / 3, "quota"), Chance(0.5, "quota")]
    assert chances[-1].probability == 0.25


def test_turns_without_an_answer_are_stood_for_by_their_like() -> None:
    estimates = Estimates(3600.0, FakeClock())
    key = ("m", "bot")
    for n in range(10):  # one turn in ten is empty, which needs no question
        estimates.add(*key, f"empty{n}", f"empty{n}", 0.0, 0.1, "itself")
    for n in range(90):
        estimates.choose(*key, 0.1, "drawn")
        if n == 0:
            assert estimates.read() == {}  # the empty ones alone say nothing of the others
        if n < 30:  # then the budget is used up
            estimates.add(*key, f"t{n}", f"t{n}", 1.0, 0.1)
    found = estimates.read()[key]
    assert found.mean == pytest.approx(0.9)
    assert found.low < 0.9 < found.high
    assert found.n_eff < 40
    for n in range(20):  # turns of a rule were answered first, and stand for turns of the rule alone
        estimates.choose(*key, 1.0, "rule")
        estimates.add(*key, f"bad{n}", f"bad{n}", 0.0, 1.0, "rule")
    assert estimates.read()[key].mean == pytest.approx(900 / 1020)
    estimates.add(*key, "t0", "t0", 0.0, 0.1, "itself")  # its revision has an empty answer
    assert estimates.read()[key].mean == pytest.approx(900 / 1030)
