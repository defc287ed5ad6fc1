"""Whatever a turn holds and a judge replies, a metric gives a score within its range, never raises, says the same twice, and changes nothing."""

from __future__ import annotations

import copy
import math
from functools import cache
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import otel_agenteval as oa
from otel_agenteval.judging.models.reply_schema import keys_of, schema_of
from otel_agenteval.metrics.question import Answers
from otel_agenteval.metrics.registry import catalog
from scripts.prompt_pages import PARAMS, judged, known_of, methods_of

METRICS = [metric for metric in catalog() if metric.kind == "code"]
CANDIDATES = [
    "search",
    1,
    0.5,
    ["search"],
    {"type": "object"},
    {"a": 1},
    "code_word_count",
    ["code_word_count"],
    [{"tool": "search"}],
    lambda turn: 1.0,
]
"""Values for required parameters: the first that is allowed is taken."""

texts = st.one_of(
    st.none(),
    st.text(max_size=80),
    st.sampled_from(["", " ", "{}", "[1, 2]", "<a>b</a>", "SELECT 1", "1e400", "\ud83d\ude00", "a" * 3000]),
)
numbers = st.one_of(st.none(), st.floats(0, 1e9), st.integers(0, 10**6))
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=8)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
names = st.sampled_from(["search", "book", "", "évasion", "a" * 50])
people = st.sampled_from(["a", "b", "c", "planner", ""])


def some(**fields):
    return st.fixed_dictionaries({}, optional=fields)


tool_calls = st.lists(
    some(
        name=names,
        arguments=st.one_of(st.none(), st.dictionaries(st.text(max_size=5), values, max_size=3)),
        result=values,
        error=st.one_of(st.none(), st.text(max_size=9)),
        duration_s=numbers,
    ),
    max_size=5,
)
turns = some(
    input=texts, output=texts, system=texts, reasoning=texts, ground_truth=st.one_of(texts, values), error=st.one_of(st.none(), st.text(max_size=9)),
    context=st.lists(st.text(max_size=20), max_size=3), retrieved_ids=st.one_of(st.none(), st.lists(st.text(max_size=4), max_size=4)),
    relevant_ids=st.one_of(st.none(), st.lists(st.text(max_size=4), max_size=4)), tool_calls=st.one_of(st.none(), tool_calls),
    duration_s=numbers, cost_usd=numbers, usage=st.one_of(st.none(), some(input_tokens=st.integers(0, 10**6), output_tokens=st.integers(0, 10**6))),
    llm_calls=st.one_of(st.integers(0, 5), st.lists(some(model=st.sampled_from(["gpt-4o", "x", None]), input_tokens=st.integers(0, 10**6), output_tokens=st.integers(0, 10**6), finish_reason=st.sampled_from(["stop", "length", None])), max_size=3)),
    messages=st.lists(st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant", "tool"]), "content": texts}), max_size=4),
    interactions=st.lists(st.fixed_dictionaries({"from": people, "to": st.one_of(people, st.lists(people, max_size=3))}, optional={"success": st.booleans(), "response_time_s": numbers}), max_size=6),
    handoffs=st.lists(some(**{"from": people, "to": people, "success": st.booleans(), "duration_s": numbers}), max_size=3),
    conflicts=st.lists(some(resolved=st.booleans(), resolution_time_s=numbers), max_size=3),
    workflow=some(graph=some(nodes=st.lists(people, max_size=4), edges=st.lists(st.tuples(people, people).map(list), max_size=6), entry=people, exits=st.lists(people, max_size=2)), steps=st.lists(some(executor=people, status=st.sampled_from(["ok", "failed"])), max_size=4)),
    tool_definitions=st.lists(st.fixed_dictionaries({"name": names}), max_size=2), history=st.lists(some(output=texts), max_size=3),
    logprobs=st.lists(st.floats(-20, 0), max_size=4),
)  # fmt: skip


@cache
def bound(name):
    """The metric with something that is allowed for each required parameter."""
    metric = oa.get_metric(name).metric
    given = {}
    for needed in [parameter.name for parameter in metric.parameters.values() if parameter.required]:
        for candidate in CANDIDATES:
            try:
                oa.get_metric(name, **given, **{needed: candidate})
            except oa.ConfigError:
                continue
            given[needed] = candidate
            break
    found = oa.get_metric(name, **given)
    assert set(given) == {parameter.name for parameter in metric.parameters.values() if parameter.required}
    return found


def plain(turn):
    return copy.deepcopy(turn.to_dict())


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(turns)
def test_any_turn_gives_a_score_in_range(metric, known):
    try:
        turn = oa.Turn.from_dict(known)
    except oa.ConfigError:
        return  # no turn
    before = plain(turn)
    scores = [bound(metric.name).evaluate(turn) for _ in range(2)]
    assert scores[0] == scores[1]
    assert plain(turn) == before
    score = scores[0]
    if score.status == "ok":
        assert math.isfinite(score.value)
        if metric.type == "boolean":
            assert score.value in (0.0, 1.0)
            assert score.passed is (score.value == 1.0)
    else:
        assert (score.value, score.passed) == (None, None)
        assert score.detail.get("reason") if score.status == "skipped" else score.error_type
        assert score.error_type not in (
            "TypeError",
            "AttributeError",
            "KeyError",
            "IndexError",
            "ZeroDivisionError",
            "RecursionError",
        )


LARGE = {
    "a megabyte of output": {"input": "x", "output": "word " * 210_000, "ground_truth": "word"},
    "ten thousand tool calls": {"output": "x", "tool_calls": [{"name": f"t{i % 7}", "arguments": {"i": i}, "result": "r"} for i in range(10_000)]},
    "a graph of agents that runs in circles": {"output": "x", "interactions": [{"from": f"a{i % 40}", "to": f"a{(i * 7 + 1) % 40}"} for i in range(2_000)]},
}  # fmt: skip


@pytest.mark.parametrize("what", LARGE)
@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_a_large_turn_gives_a_score_too(metric, what):
    score = bound(metric.name).evaluate(oa.Turn.from_dict(LARGE[what]))
    assert score.status in ("ok", "skipped", "error")
    assert score.error_type not in ("RecursionError", "MemoryError")


class AnyReply(Answers):
    """A judge whose replies have the requested form, but any value can be absent or of another type."""

    def __init__(self, seed):
        self.seed = seed

    def answer(self, question):
        random = Random(f"{self.seed} {question.stage} {question.data}")
        schema = question.schema or schema_of(question.reply) or {"properties": {key: {} for key in keys_of(question.reply)}}
        return {key: self._value(random, inner) for key, inner in schema["properties"].items() if random.random() < 0.9}

    def _value(self, random, schema):
        if random.random() < 0.2:
            return random.choice([None, True, 0, -1, 2.5, math.inf, "", "x", "yes", [], ["a"], {}, {"a": [1]}])
        if "enum" in schema:
            return random.choice(schema["enum"])
        if "properties" in schema:
            return {key: self._value(random, inner) for key, inner in schema["properties"].items()}
        if "items" in schema:
            return [self._value(random, schema["items"]) for _ in range(random.randrange(4))]
        return random.choice([True, False, 0, 0.5, 1, 7, 100, "A sentence.", "no"])


@pytest.mark.parametrize("metric", judged(), ids=lambda metric: metric.name)
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(facts=some(**dict.fromkeys(("input", "output", "reasoning"), texts)), seed=st.integers(0, 10**6), form=st.integers(0, 3))
def test_any_reply_gives_a_score_in_range(metric, facts, seed, form):
    needed = {parameter.name: PARAMS[parameter.name] for parameter in metric.parameters.values() if parameter.required}
    methods = methods_of(metric)
    chosen = oa.get_metric(metric.name, **needed, **methods[form % len(methods)])
    turn = oa.Turn.from_dict(known_of(metric) | (facts if form == 0 else {}))
    before, judge = plain(turn), AnyReply(seed)
    score = chosen.evaluate(turn, judge=judge)
    assert score == chosen.evaluate(turn, judge=judge)
    assert plain(turn) == before
    assert score.error_type in (None, "invalid_reply"), score.explanation
    assert (score.value is None) is (score.status != "ok")
    assert score.value is None or 0 <= score.value <= (7 if metric.family in ("safety_policy", "risk_autonomy") else 1)
