"""For any turn and any judge reply, a metric returns a score in its range, doesn't raise, is deterministic, and changes nothing."""

from __future__ import annotations

import copy
import json
import math
from functools import cache
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import otel_agenteval as oa
from otel_agenteval.judging.models.reply import hints_of, schema_of
from otel_agenteval.metrics.question import Answers
from otel_agenteval.metrics.registry import catalog
from scripts.prompt_pages import PARAMS, judged, known_of, methods_of

METRICS = [metric for metric in catalog() if metric.kind in ("code", "embed")]
CANDIDATES = [
    "search", 1, 0.5, ["search"], {"type": "object"}, {"a": 1}, "code_word_count", ["code_word_count"], [{"tool": "search"}], lambda turn: 1.0,
]  # fmt: skip
"""Values for required parameters. The first allowed value is used."""

BUGS = (
    "TypeError", "AttributeError", "KeyError", "IndexError", "ZeroDivisionError", "RecursionError", "MemoryError",
)  # fmt: skip
ODD_TEXTS = ["", " ", "{}", "[1, 2]", "<a>b</a>", "SELECT 1", "```py\nx = 1\n```\n~~~\n{", "1e400", "\ud83d\ude00", "a" * 3000]
texts = st.one_of(st.none(), st.text(max_size=80), st.sampled_from(ODD_TEXTS))
numbers = st.one_of(st.none(), st.floats(0, 1e9), st.integers(0, 10**6))
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=8)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
names = st.sampled_from(["search", "book", "", "évasion", "a" * 50, "planner"])
people = st.sampled_from(["a", "b", "c", "planner", ""])
kinds = st.sampled_from(["request", "response", "delegation", "collaboration", "handoff"])
signals = st.dictionaries(
    st.sampled_from(["confidence", "loop_detection", "tool_correctness", "coherence", "x"]), st.one_of(numbers, values)
)


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
    interactions=st.lists(some(**{"from": st.one_of(people, values), "to": st.one_of(people, st.lists(people, max_size=3)), "type": st.one_of(kinds, values), "message_type": values, "success": values, "response_time_s": st.one_of(numbers, values)}), max_size=12),
    agents=st.dictionaries(people, st.one_of(values, some(authority_level=values, can_delegate=values)), max_size=3),
    agent_runs=st.lists(some(name=people, parent=people, duration_s=numbers), max_size=4),
    session=some(traces=st.one_of(values, st.lists(st.one_of(values, some(trace_id=values, signals=st.one_of(values, signals))), max_size=4))),
    attachments=st.lists(some(modality=st.sampled_from(["image", "audio", "x", None]), mime_type=st.sampled_from(["audio/wav", "x", None, 1]), uri=texts), max_size=2),
    handoffs=st.lists(some(**{"from": people, "to": people, "success": st.booleans(), "duration_s": numbers}), max_size=3),
    conflicts=st.lists(some(resolved=values, resolution_time_s=st.one_of(numbers, values)), max_size=3),
    workflow=some(graph=some(nodes=st.lists(people, max_size=4), edges=st.lists(st.tuples(people, people).map(list), max_size=6), entry=people, exits=st.lists(people, max_size=2)), steps=st.lists(some(executor=people, status=st.sampled_from(["ok", "failed"])), max_size=4)),
    tool_definitions=st.lists(st.fixed_dictionaries({"name": names}), max_size=2), history=st.lists(some(output=texts), max_size=3),
    logprobs=st.lists(st.floats(-20, 0), max_size=4),
)  # fmt: skip


@cache
def bound(name):
    """Return the metric with allowed values for its required parameters."""
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


class Letters:
    """A local embedder that counts some letters."""

    def embed(self, texts):
        return [[float(text.count(letter)) for letter in "aeis "] for text in texts]


def check(metric, turn):
    """Check the form of a metric's score for a turn, and that a second evaluation gives the same score."""
    score = bound(metric.name).evaluate(turn, embedder=Letters())
    assert score == bound(metric.name).evaluate(turn, embedder=Letters())
    assert score.error_type not in BUGS, score
    if score.status == "ok":
        assert math.isfinite(score.value), metric.name
        assert metric.unit != "1" or 0 <= score.value <= 1 + 1e-9, score
        assert metric.type != "boolean" or score.value == float(score.passed), score
    else:
        assert (score.value, score.passed) == (None, None), metric.name
        assert score.detail.get("reason") if score.status == "skipped" else score.error_type, score
    json.dumps(score.to_dict(), allow_nan=False)


@given(turns)
def test_any_turn_gives_a_score_in_range(known):
    try:
        turn = oa.Turn.from_dict(known)
    except oa.ConfigError:
        return  # no turn
    before = plain(turn)
    for metric in METRICS:
        check(metric, turn)
    assert plain(turn) == before


def test_large_turn_gives_a_score():
    calls = [{"name": f"t{i % 7}", "arguments": {"i": i}, "result": "r"} for i in range(10_000)]
    circles = [{"from": f"a{i % 40}", "to": f"a{(i * 7 + 1) % 40}"} for i in range(2_000)]
    turn = oa.Turn.from_dict({"input": "x", "output": "word " * 210_000, "tool_calls": calls, "interactions": circles})
    for metric in METRICS:
        assert bound(metric.name).evaluate(turn, embedder=Letters()).error_type not in BUGS, metric.name


class AnyReply(Answers):
    """A judge with replies of the requested form, in which any value can be missing or have another type."""

    def __init__(self, seed):
        self.seed = seed

    def answer(self, question):
        random = Random(f"{self.seed} {question.stage} {question.data}")
        schema = question.schema or schema_of(question.reply) or {"properties": {key: {} for key in hints_of(question.reply)}}
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
def test_any_reply_gives_a_score_in_range(metric):
    needed = {parameter.name: PARAMS[parameter.name] for parameter in metric.parameters.values() if parameter.required}
    methods = methods_of(metric)
    highest = 7 if metric.family in ("safety_policy", "risk_autonomy") else 1
    for seed in range(12):
        chosen = oa.get_metric(metric.name, **needed, **methods[seed % len(methods)])
        facts = {"input": ODD_TEXTS[seed], "output": ODD_TEXTS[-seed], "reasoning": "x"} if seed < len(ODD_TEXTS) else {}
        turn = oa.Turn.from_dict(known_of(metric) | facts)
        before, judge = plain(turn), AnyReply(seed)
        score = chosen.evaluate(turn, judge=judge)
        assert score == chosen.evaluate(turn, judge=judge)
        assert plain(turn) == before
        assert score.error_type in (None, "invalid_reply"), score.explanation
        assert (score.value is None and score.label is None) is (score.status != "ok")
        assert score.value is None or 0 <= score.value <= highest
