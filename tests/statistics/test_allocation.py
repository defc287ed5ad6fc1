"""What a budget is spent on: by the formula, within bounds, and by simulation against one share for all."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_agenteval.config.loader import load_config
from otel_agenteval.core import semconv
from otel_agenteval.core.errors import ConfigError
from otel_agenteval.judging.allocator import Allocator
from otel_agenteval.statistics.allocation import FadingMoments, Stratum, allocate
from tests.support.clock import FakeClock
from tests.support.judges import SteadyModels
from tests.support.rig import Rig


def test_it_is_neymans_allocation_where_no_bound_is_met() -> None:
    """Cochran, Sampling Techniques, 5.5: n_h is proportional to N_h S_h / sqrt(c_h)."""
    strata = {"a": Stratum(1_000, 0.4, 0.01), "b": Stratum(4_000, 0.1, 0.01), "c": Stratum(2_000, 0.2, 0.04)}
    found = allocate(strata, 2.0, 1.0, power=1.0)
    shares = {key: one.turns * one.spread / math.sqrt(one.cost) for key, one in strata.items()}
    whole = sum(shares[key] * strata[key].cost for key in strata)
    for key, turns in found.items():
        assert turns == pytest.approx(2.0 * shares[key] / whole, rel=1e-6)


@given(
    st.dictionaries(
        st.integers(0, 30),
        st.builds(Stratum, st.floats(0, 1e5), st.floats(0.01, 1), st.floats(1e-5, 1), st.floats(0.01, 1)), max_size=12,
    ),
    st.floats(0, 50), st.floats(0, 20), st.floats(0, 1),
)  # fmt: skip
def test_it_never_spends_more_and_starves_nobody(strata: dict[int, Stratum], budget: float, least: float, power: float) -> None:
    found = allocate(strata, budget, least, power)
    assert found.keys() == strata.keys()
    assert sum(turns * strata[key].cost for key, turns in found.items()) <= budget * (1 + 1e-6) + 1e-9
    enough = sum(min(least, one.turns * one.most) * one.cost for one in strata.values()) < budget
    for key, turns in found.items():
        assert 0 <= turns <= strata[key].turns * strata[key].most * (1 + 1e-9)
        if enough:
            assert turns >= min(least, strata[key].turns * strata[key].most) * (1 - 1e-9)


def test_older_scores_fade_and_few_say_little() -> None:
    moments = FadingMoments()
    assert moments.spread == pytest.approx(math.sqrt(0.1))
    for _ in range(300):
        moments.add(1.0)
    assert moments.spread < 0.06
    for place in range(600):
        moments.add(float(place % 2))
    assert moments.spread == pytest.approx(0.5, abs=0.02)


# --- by simulation

_USD = 0.001


def options(**more: Any) -> Any:
    return load_config({"judge": {"budget": {"usd_per_hour": 0.5, "allocate": {}, **more}}}, {}).judge.budget


def test_every_probability_is_right_while_plans_change() -> None:
    """The estimate of the whole hour, over many hours, is the truth: a share that follows what was seen favours nothing."""
    off = []
    for seed in range(8):
        random, clock = np.random.default_rng(seed), FakeClock(time_ns=1_700_000_000 * 10**9)
        allocator, weights, weighted = Allocator(options(usd_per_hour=0.2), clock), 0.0, 0.0
        for _ in range(4_000):
            clock.advance(0.9)
            p = allocator.rate("llm_x", "bot", 1.0)
            assert 0 < p <= 1
            value = float(random.random() < 0.9)
            if random.random() < p:
                allocator.judged("llm_x", "bot", value, _USD, forced=False)
                weights, weighted = weights + 1 / p, weighted + value / p
        off.append(weighted / weights - 0.9)
    assert abs(np.mean(off)) < 3 * np.std(off, ddof=1) / math.sqrt(len(off))


def test_what_rules_take_is_taken_off_first() -> None:
    clock = FakeClock(time_ns=1_700_000_000 * 10**9)
    allocator = Allocator(options(), clock)
    shares = []
    for forced in (False, True):
        for _ in range(3_000):
            clock.advance(1.2)
            allocator.rate("llm_x", "bot", 1.0)
            allocator.judged("llm_x", "bot", 1.0, _USD / 10, forced=forced)
        shares.append(allocator.rate("llm_x", "bot", 1.0))
    assert shares[1] < shares[0]


def test_until_a_price_is_known_the_configured_share_holds() -> None:
    allocator = Allocator(options(), FakeClock(time_ns=1_700_000_000 * 10**9))
    shares = [allocator.rate("llm_x", "bot", 0.3) for _ in range(200)]
    assert set(shares) == {0.3}


# --- in a running engine


def test_a_live_agent_is_judged_as_planned_and_the_plan_is_shown() -> None:
    models = SteadyModels()
    clock = FakeClock(time_ns=1_700_000_000 * 10**9)
    config = {
        "judge": {"base_url": models.url, "model": "m", "budget": {"calls_per_hour": 40, "allocate": {"least": 3}}},
        "metrics": ["llm_relevance"],
        "inline": {"metrics": ["code_latency"]},
    }
    try:
        with Rig(config, clock=clock) as rig:
            for _ in range(150):
                rig.run()
                clock.advance(12)
                assert rig.engine.drain(60, judges=True)
            asked = len(models.requests)
            assert 5 <= asked <= 40
            rate = rig.engine.telemetry.read(semconv.ALLOCATED_RATE).values
            assert 0 < rate["llm_relevance", "bot"] < 0.5
            events = [dict(one.attributes) for one in rig.log_events()]
            judged = [one for one in events if one[semconv.EVALUATION_NAME] == "llm_relevance"]
            assert {one[semconv.DECIDED_BY] for one in judged} == {"budget"}
            assert judged[0][semconv.SAMPLE_PROBABILITY] == 1.0
            assert judged[-1][semconv.SAMPLE_PROBABILITY] < 1.0
    finally:
        models.close()


def test_without_anything_to_spread_the_configuration_is_refused() -> None:
    config = {
        "judge": {"base_url": "http://127.0.0.1:1/v1", "model": "m", "budget": {"allocate": {}}},
        "metrics": ["llm_relevance"],
    }
    with pytest.raises(ConfigError, match=r"judge\.budget\.allocate: .*usd_per_hour or calls_per_hour"):
        Rig(config)
