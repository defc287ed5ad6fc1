"""Planted causes are found, and nothing is found without a cause: single facts, pairs, weights, conversations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from otel_agenteval.statistics.differences import Contrast, TurnFact, find_differences

TOOLS = ("search", "book", "pay", "mail", "calculate")


class World:
    """Turns of several agents, with some attributes that depend on each other."""

    def __init__(self, seed: int, n: int) -> None:
        random = np.random.default_rng(seed)
        self.random, self.n = random, n
        self.model = random.choice(4, n, p=[0.6, 0.25, 0.1, 0.05])
        self.language = random.choice(4, n, p=[0.8, 0.1, 0.06, 0.04])
        self.agent, self.region = random.choice(4, n), random.choice(10, n)
        self.tools = random.random((n, 5)) < [0.5, 0.3, 0.2, 0.1, 0.05]
        self.duration = random.lognormal(1, 1, n) * (1 + self.tools.sum(1))
        self.length = random.lognormal(4, 1, n)
        self.turn = random.integers(1, 12, n)

    def rows(self, chosen: Any) -> list[dict[str, Any]]:
        return [
            {
                "model": f"m{self.model[i]}", "provider": f"p{self.model[i] // 2}", "language": f"l{self.language[i]}", "agent": f"a{self.agent[i]}",
                "region": f"r{self.region[i]}", "tool": [name for name, used in zip(TOOLS, self.tools[i], strict=True) if used],
                "duration_s": float(self.duration[i]), "length": float(self.length[i]), "turn": int(self.turn[i]), "unknown": None,
            }
            for i in chosen
        ]  # fmt: skip

    def cause(self, kind: str) -> Any:
        return {
            "none": np.zeros(self.n, dtype=bool), "model = m2": self.model == 2, "language = l3": self.language == 3, "tool = mail": self.tools[:, 3],
            "duration_s >": self.duration > np.quantile(self.duration, 0.9), "model = m1 and tool = book": (self.model == 1) & self.tools[:, 1],
        }[kind]  # fmt: skip


CAUSES = ("model = m2", "language = l3", "tool = mail", "duration_s >", "model = m1 and tool = book")


def planted(kind: str, seed: int, n: int, *, skewed: bool = False) -> tuple[list[Contrast], int]:
    world = World(seed, n)
    bad = world.random.random(n) < np.where(world.cause(kind), 0.35, 0.02)
    kept = np.ones(n)
    if skewed:  # slow turns, some models and likely failures are judged more often
        kept = np.where(world.model == 0, 0.15, 0.8) * np.where(world.duration > np.quantile(world.duration, 0.7), 1, 0.4)
        kept = np.clip(kept * np.where(bad & (world.random.random(n) < 0.7), 1.6, 1), 0.02, 1)
    chosen = np.flatnonzero(world.random.random(n) < kept)
    found = find_differences(world.rows(chosen), bad[chosen], weights=1 / kept[chosen])
    return found.findings, found.bad


def is_found(kind: str, findings: list[Contrast]) -> bool:
    def names(one: Contrast) -> set[str]:
        return {str(fact) for fact in one.facts}

    if kind == "duration_s >":
        return any(name.startswith(kind) for one in findings[:3] for name in names(one))
    return any(names(one) == set(kind.split(" and ")) for one in findings[:3])


@pytest.mark.parametrize("kind", CAUSES)
def test_planted_cause_is_found(kind: str) -> None:
    findings, bad = planted(kind, 1, 6_000, skewed=True)
    assert bad >= 50
    assert is_found(kind, findings)
    assert len(findings) <= 3


def test_nothing_is_found_without_a_cause() -> None:
    assert [one for seed in range(4) for one in planted("none", seed, 1_500)[0]] == []


@pytest.mark.slow
@pytest.mark.parametrize("skewed", [False, True])
def test_simulated_error_rates_hold(skewed: bool) -> None:
    """At most 5 % of comparisons without a cause find one, and at least 95 % of planted causes are found."""
    alarms = sum(bool(planted("none", seed, 2_000, skewed=skewed)[0]) for seed in range(200))
    assert alarms <= 10
    found = [(kind, *planted(kind, seed, 6_000, skewed=skewed)) for kind in CAUSES for seed in range(20)]
    hits = [is_found(kind, findings) for kind, findings, bad in found if bad >= 50]
    assert len(hits) >= 80
    assert sum(hits) >= 0.95 * len(hits)


def test_explained_facts_are_left_out() -> None:
    """A provider with only one model isn't a second finding, nor is a fact that often occurs with the cause."""
    turns = [{"model": "m1", "provider": "p1", "cache": "off" if i % 10 else "on"} for i in range(60)]
    turns += [{"model": "m2", "provider": "p2", "cache": "on" if i % 3 else "off"} for i in range(400)]
    bad = [i < 50 for i in range(460)]
    (found,) = find_differences(turns, bad).findings
    assert found.facts == (TurnFact("model", "m1"),)
    assert found.also == [TurnFact("provider", "p1")]
    assert found.turns == (50, 10)
    assert not found.few


def test_facts_of_the_selected_turns_are_no_findings() -> None:
    """A group's own version doesn't explain anything, and hides no other fact."""
    turns = [
        {"version": f"v{i // 200}", "prompt": f"p{i // 200}", "tool": ["pay"] if i % (2 + i // 200 * 8) == 0 else []}
        for i in range(400)
    ]
    found = find_differences(
        [{**one, "region": f"r{i % 7}"} for i, one in enumerate(turns)], [i < 200 for i in range(400)], selected=True
    )
    assert found.same == [TurnFact("version", "v0"), TurnFact("prompt", "p0")]
    assert [str(one) for one in found.findings] == ["tool = pay"]


def test_turns_of_one_conversation_count_once() -> None:
    """Fifty failed turns of two conversations are only two independent draws."""
    turns: list[dict[str, Any]] = [{"agent": "a" if i < 50 else f"b{i % 4}"} for i in range(400)]
    bad = [i < 50 for i in range(400)]
    conversations = [f"bad {i // 25}" if i < 50 else str(i) for i in range(400)]
    assert find_differences(turns, bad).findings
    assert find_differences(turns, bad, draws=conversations).findings == []


def test_weights_correct_skewed_sampling() -> None:
    """All failures of model a were judged, but few of model b. Among all turns, both fail equally often."""
    turns = [{"model": "a"}] * 200 + [{"model": "b"}] * 110
    bad = [True] * 100 + [False] * 100 + [True] * 10 + [False] * 100
    weights = [1.0] * 200 + [10.0] * 10 + [1.0] * 100
    assert find_differences(turns, bad).findings
    assert find_differences(turns, bad, weights=weights).findings == []


def test_too_few_turns_are_not_compared() -> None:
    found = find_differences([{"model": "a"}, {"model": "b"}], [True, False])
    assert (found.findings, found.tested) == ([], 0)


def test_few_turns_are_said_to_be_few() -> None:
    turns = [{"model": "a"}] * 10 + [{"model": "b"}] * 200
    (found,) = find_differences(turns, [i < 10 for i in range(210)]).findings
    assert found.few
    low, high = found.interval
    assert low < found.bad - found.rest <= high


def test_causes_come_before_effects_that_fit_better() -> None:
    random = np.random.default_rng(5)
    model, tool = random.random(600) < 0.5, random.random(600) < 0.5
    bad = (model & tool & (random.random(600) < 0.8)) | (random.random(600) < 0.02)
    turns = [
        {"model": "m" if m else "n", "tool": "rates" if t else "pay", "answer": "long" if b else "short"}
        for m, t, b in zip(model, tool, bad, strict=True)
    ]
    assert [str(one) for one in find_differences(turns, bad).findings] == ["answer = long"]
    cause, effect = find_differences(turns, bad, effects=["answer"]).findings
    assert {str(fact) for fact in cause.facts} == {"model = m", "tool = rates"}
    assert (str(effect), effect.effect, cause.effect) == ("answer = long", True, False)
