"""Samples and what follows from them: probabilities that are right, quotas, cascades, facts, and estimates over all turns."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Mapping
from typing import Any

import pytest
from opentelemetry.trace import TraceState

import otel_agenteval as oa
from otel_agenteval.config.loader import load_config
from otel_agenteval.config.selector import Selector
from otel_agenteval.core import semconv
from otel_agenteval.core.errors import ConfigError
from otel_agenteval.core.score import Score
from otel_agenteval.evaluation.conditions import Condition, Known
from otel_agenteval.evaluation.selection import select_metrics
from otel_agenteval.judging.baselines import History
from otel_agenteval.judging.sampling import Cascade, Chance, SamplingRule, position, rules_of, upstream_probability
from otel_agenteval.statistics.estimates import SINCE_START, Estimates, group_of
from otel_agenteval.statistics.weighted import Sums, vector
from tests.support.clock import FakeClock
from tests.support.judges import ScriptedModels
from tests.support.rig import Rig

GOOD = {"score": 90, "reason": "It answers."}
TURNS = 200_000


class Population:
    """Turns of three agents over some hours: failing ones are rare and bad, and a cheap metric guesses at the expensive one's value."""

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
    "a quota": SamplingRule(0.01, min_per_hour=200),
    "a quota without a rate": SamplingRule(0.0, min_per_hour=500),
    "a quota and a condition": SamplingRule(0.005, Condition("error", (), ""), min_per_hour=100),
    "a cascade": SamplingRule(0.02, None, cascade=Cascade("embed_x", Condition("score.embed_x < 0.5", ["embed_x"], ""))),
    "all of them": SamplingRule(
        0.02, Condition("error", (), ""), [(Selector(agent=("rare",)), 0.5)], 50, cascade=Cascade("embed_x", Condition("score.embed_x < 0.4", ["embed_x"], "")),
    ),
}  # fmt: skip


def draw(rule: SamplingRule, population: Population, seed: str = "") -> list[tuple[str, str, float, float]]:
    """(trace, agent, value, probability) of the turns that are judged, by the steps that a live turn takes."""
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_rules_quotas_cascades_and_head_sampling_together_favour_nothing(population: Population) -> None:
    """Of the turns that came in, over many samples: the mean of the errors is nothing, and intervals are as wide as errors are large."""
    errors, hits, runs = [], 0, 40
    for seed in range(runs):
        rule = RULES["all of them"]
        rule._hours.clear()
        kept = Population.__new__(Population)
        sampled = random.Random(seed)
        kept.turns = [turn for turn in population.turns if sampled.random() < 0.2]
        truth = sum(value for _, _, value, _, _ in kept.turns) / len(kept.turns)
        estimates = Estimates(3600.0, FakeClock())
        for trace, _, value, probability in draw(rule, kept, str(seed)):
            group = group_of("rule" if probability == 1.0 else "rate")
            estimates.choose("m", "", probability, group, trace)
            estimates.add("m", "", trace, trace, value, probability, group)
        [estimate] = estimates.read().values()
        errors.append((estimate.mean - truth) / ((estimate.high - estimate.low) / 2 / 1.96))
        hits += estimate.low <= truth <= estimate.high
    mean = sum(errors) / runs
    assert abs(mean) < 3 / math.sqrt(runs)
    assert 0.7 < math.sqrt(sum((error - mean) ** 2 for error in errors) / runs) < 1.3
    assert hits >= 34  # of 38 that are expected


@pytest.mark.slow
def test_the_interval_holds_the_mean_as_often_as_it_says(population: Population) -> None:
    rule = RULES["a quota and a condition"]
    few = Population.__new__(Population)
    few.turns = population.turns[:10_000]
    few.mean = sum(value for _, _, value, _, _ in few.turns) / len(few.turns)
    hits = 0
    for seed in range(60):
        rule._hours.clear()
        sums = Sums()
        for _, _, value, probability in draw(rule, few, str(seed)):
            sums.add(vector(1 / probability, value))
            sums.least, sums.most = 0.0, 1.0
        estimate = sums.estimate()
        assert estimate is not None
        hits += estimate.low <= few.mean <= estimate.high
    assert hits >= 51, hits  # of 57 that are expected


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


def test_what_a_lower_rate_judges_is_a_subset_for_all_metrics(population: Population) -> None:
    traces = [trace for trace, *_ in population.turns[:50_000]]
    turn = oa.Turn(turn_id="t")
    chosen = [
        {trace for trace in traces if position(trace, "s") < SamplingRule(rate).chance(turn).probability}
        for rate in (0.01, 0.05, 0.3, 1.0)
    ]
    assert all(one < other for one, other in itertools.pairwise(chosen))


def test_a_head_sampler_that_takes_the_trace_id_s_bits_does_not_shift_the_sample(population: Population) -> None:
    """Kept are traces with high random bits, as consistent probability sampling has it; judged of them is the rate, not more."""
    threshold = int(0.9 * 2**56)
    kept = [trace for trace, *_ in population.turns if int(trace[18:], 16) >= threshold]
    judged = sum(position(trace) < 0.05 for trace in kept)
    assert abs(judged - 0.05 * len(kept)) < 4 * math.sqrt(0.05 * 0.95 * len(kept))


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
        assert rig.engine.drain(10, judges=True)
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
        assert rig.engine.drain(10, judges=True)
        [event] = judged(rig)
        assert (event[semconv.DECIDED_BY], event[semconv.SAMPLE_PROBABILITY]) == ("rule", 1.0)


def test_a_cascade_has_the_lower_of_both_probabilities(models: ScriptedModels) -> None:
    models.play(*[GOOD] * 100, vectors=VECTORS)
    first = {CHEAP_METRIC: {}, "sample": {"rate": 0.6}}
    with Rig(config(models, {**CASCADE, "rate": 0.3}, first)) as rig:
        for number in range(60):
            rig.run(says="Bananas." if number % 2 else "Paris.")
        assert rig.engine.drain(20, judges=True)
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
        assert rig.engine.drain(10, judges=True)
        assert results(rig, CHEAP_METRIC) == {"skipped": 1}
        assert results(rig) == {"pass": 1}


def test_metrics_may_wait_for_one_that_waits(models: ScriptedModels) -> None:
    models.play({"score": 20, "reason": "No."}, GOOD, vectors=VECTORS)
    given = config(models, CASCADE)
    given["metrics"].append(
        {
            "llm_coherence": {},
            "sample": {"rate": 0, "cascade": {"after": EXPENSIVE_METRIC, "judge_if": "score.llm_relevance < 0.5"}},
        }
    )
    given["judge"]["max_concurrency"] = 1
    with Rig(given) as rig:
        rig.run(says="Bananas.")
        rig.run(says="Paris.")
        assert rig.engine.drain(10, judges=True)
        assert results(rig, EXPENSIVE_METRIC) == {"fail": 1, "sampled_out": 1}
        assert sum(results(rig, "llm_coherence").values()) == 2
        assert results(rig, "llm_coherence")["sampled_out"] == 1


def test_what_is_dropped_takes_along_what_waits_for_it(models: ScriptedModels) -> None:
    models.play()
    with Rig(config(models, CASCADE, judge={"queue": {"max_bytes": 100}})) as rig:
        rig.run()
        rig.turns()
        assert results(rig) == results(rig, CHEAP_METRIC) == {"dropped": 1}


def test_the_head_sampler_s_probability_goes_with_the_score(models: ScriptedModels) -> None:
    from opentelemetry.sdk.trace.sampling import Decision, Sampler, SamplingResult

    class Half(Sampler):
        def should_sample(self, *args: Any, attributes: Any = None, **kwargs: Any) -> SamplingResult:
            given = attributes if attributes is not None else args[4]
            return SamplingResult(Decision.RECORD_AND_SAMPLE, given, TraceState([("ot", "th:8")]))

        def get_description(self) -> str:
            return "half"

    models.play(GOOD, GOOD)
    with Rig(config(models, {"rate": 1}, None), sampler=Half()) as rig:
        rig.run()
        assert rig.engine.drain(10, judges=True)
        [event] = judged(rig)
        assert event[semconv.UPSTREAM_PROBABILITY] == 0.5
    with Rig(config(models, {"rate": 1}, None)) as rig:
        rig.run()
        assert rig.engine.drain(10, judges=True)
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
        assert rig.engine.drain(10, judges=True)
        assert results(rig) == {"sampled_out": 1, "pass": 1}


def test_a_quota_is_met_by_live_turns_and_reported(models: ScriptedModels) -> None:
    models.play(*[GOOD] * 100)
    clock = FakeClock()
    with Rig(config(models, {"rate": 0, "min_per_hour": 3, "strata": ["agent"]}, None), clock=clock) as rig:
        for hour in range(2):
            for _ in range(3):
                rig.run("a")
            rig.run("b")
            rig.turns()
            clock.advance(3600)
            assert rig.engine.drain(10, judges=True), hour
        found = judged(rig)
        assert len(found) == 8
        assert {(event[semconv.DECIDED_BY], event[semconv.SAMPLE_PROBABILITY]) for event in found} == {("quota", 1.0)}


def test_a_revised_turn_is_judged_if_it_was(models: ScriptedModels) -> None:
    """The chance is drawn once for a turn: a quota that is met by now does not undo it."""
    models.play(*[GOOD] * 10)
    clock = FakeClock()
    with Rig(config(models, {"rate": 0, "min_per_hour": 1}, None), clock=clock) as rig:
        judging = rig.engine.judging
        assert judging is not None
        rig.run()
        [scored] = rig.scored()
        for _ in range(50):
            rig.run()
        assert rig.engine.drain(10, judges=True)
        before = len(judged(rig))
        scored.turn.revision, scored.new = 2, False
        scored.supersedes = scored.turn.turn_id
        judging.plan(scored)
        assert rig.engine.drain(10, judges=True)
        assert len(judged(rig)) == before + 1


def refused(given: Any) -> None:
    """Read a configuration whose sample is not valid."""
    found = load_config(given, {})
    rules_of(found, select_metrics(found))


@pytest.mark.parametrize(
    ("sample", "message"),
    [
        ({"rate": 0, "cascade": {"after": "embed_coherenc", "judge_if": "error"}}, "metrics[0].sample.cascade.after: must be another judged metric of this configuration, got 'embed_coherenc'. Did you mean embed_coherence?"),
        ({"rate": 0, "cascade": {"after": CHEAP_METRIC, "judge_if": "score.x < 1"}}, "metrics[0].sample.cascade.judge_if: position 1: unknown name 'score.x'"),
        ({"rate": 0, "cascade": {"after": CHEAP_METRIC}}, "metrics[0].sample.cascade.judge_if"),
        ({"rate": 0, "min_per_hour": 0}, "metrics[0].sample.min_per_hour: must be a whole number from 1, or null"),
        ({"rate": 0, "strata": ["user"]}, "metrics[0].sample.strata: must be a list of agent, service, model and conversation"),
        ({"rate": 0, "rates": [{"rate": 2}]}, "metrics[0].sample.rates[0].rate: must be a share from 0 to 1"),
        ({"rate": 0, "rates": [{"rat": 1}]}, "metrics[0].sample.rates[0].rat: unknown key. Did you mean 'rate'?"),
        ({"rate": 0, "rates": [{"rate": 1, "when": {"agnt": "x"}}]}, "metrics[0].sample.rates[0].when.agnt: unknown key. Did you mean 'agent'?"),
    ],
)  # fmt: skip
def test_a_sample_that_is_wrong_is_refused_with_its_path(models: ScriptedModels, sample: Any, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        refused(config(models, sample))
    assert message in str(caught.value)


def test_metrics_that_wait_for_each_other_are_refused() -> None:
    def after(name: str, first: str) -> dict[str, Any]:
        return {name: {}, "sample": {"rate": 0, "cascade": {"after": first, "judge_if": f"score.{first} < 1"}}}

    with pytest.raises(ConfigError, match="llm_relevance after llm_coherence after llm_relevance"):
        refused({"metrics": [after("llm_relevance", "llm_coherence"), after("llm_coherence", "llm_relevance")]})


def test_a_configured_sample_is_written_as_it_was_read(models: ScriptedModels) -> None:
    sample = {
        "rate": 0.1,
        "rates": [{"when": {"agent": ["a"]}, "rate": 0.5}],
        "min_per_hour": 3,
        "strata": ["model"],
        "cascade": CASCADE["cascade"],
    }
    read = load_config(config(models, sample), {})
    assert read.to_dict()["metrics"][0]["sample"] == sample
    assert load_config(read.to_dict(), {}) == read


# --- estimates


def test_estimates_forget_what_is_older_than_their_window() -> None:
    clock = FakeClock()
    estimates = Estimates(3600.0, clock)
    estimates.add("m", "bot", "t1", "t1", 0.0, 0.5)
    clock.advance(1800)
    estimates.add("m", "bot", "t2", "t2", 1.0, 0.5)
    assert estimates.read()["m", "bot"].mean == 0.5
    clock.advance(1900)
    assert estimates.read()["m", "bot"].mean == 1.0
    clock.advance(3700)
    assert estimates.read() == {}


def test_a_revised_score_takes_the_place_of_the_one_before() -> None:
    estimates = Estimates(3600.0, FakeClock())
    for value in (0.0, 1.0):
        estimates.add("m", "bot", "t1", "turn-1", value, 0.5)
    found = estimates.read()["m", "bot"]
    assert (found.mean, found.n_eff) == (1.0, 1.0)


def test_turns_of_one_trace_count_as_one() -> None:
    alone, together = Estimates(3600.0, FakeClock()), Estimates(3600.0, FakeClock())
    for n in range(100):
        value = float(n // 10 % 2)
        alone.add("m", "", f"trace {n}", f"turn {n}", value, 0.5)
        together.add("m", "", f"trace {n // 10}", f"turn {n}", value, 0.5)
    one, other = alone.read()["m", ""], together.read()["m", ""]
    assert one.mean == other.mean == 0.5
    assert (round(one.n_eff), round(other.n_eff)) == (100, 10)
    assert other.high - other.low > 2.5 * (one.high - one.low)


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
        assert rig.engine.drain(20, judges=True)
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


def test_an_estimate_does_not_fall_when_the_budget_is_used_up(models: ScriptedModels) -> None:
    models.play(*[GOOD] * 10)
    with Rig(config(models, {"rate": 1}, None, judge={"budget": {"calls_per_hour": 5, "soft": 1}})) as rig:
        judging = rig.engine.judging
        assert judging is not None
        judging.may_start = False
        for _ in range(10):
            rig.run()
            rig.run(says="")
        assert rig.engine.flush(20)
        while judging.step():
            pass
        assert rig.engine.flush(20)
        assert results(rig) == {"pass": 5, "fail": 10}
        assert judging.queue.depth == 5
        assert rig.engine.telemetry.read(semconv.ESTIMATE_MEAN).values[EXPENSIVE_METRIC, "bot", "1h"] == pytest.approx(0.45)
