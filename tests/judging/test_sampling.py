"""Which turns are judged, and what a condition may say."""

from __future__ import annotations

import hashlib
import json
import math
import random
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import otel_agenteval as oa
from otel_agenteval.backfill.batch import chosen
from otel_agenteval.cli.main import main
from otel_agenteval.config.loader import load_config
from otel_agenteval.core.errors import ConfigError
from otel_agenteval.core.score import Score
from otel_agenteval.evaluation.conditions import Condition, Known
from otel_agenteval.evaluation.selection import select_conversation_metrics, select_metrics
from otel_agenteval.judging.sampling import EVERY_TURN, SamplingRule, position, rules_of
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


def test_weighting_by_the_probability_recovers_the_mean_of_all_turns() -> None:
    """200,000 turns of which errors are rare, bad, and always judged; their weighted mean is the population's."""
    drawn = random.Random(11)
    rule = SamplingRule(0.05, Condition("error", (), "sample"))
    good, bad = oa.Turn(turn_id="g"), oa.Turn(turn_id="b", error="x")
    total = weights = weighted = squares = 0.0
    n = 200_000
    for trace_id in ids(n, 3):
        failed = drawn.random() < 0.02
        value = drawn.betavariate(2, 6) if failed else drawn.betavariate(8, 2)
        total += value
        probability = rule.chance(bad if failed else good).probability
        if position(trace_id) < probability:
            weights += 1 / probability
            weighted += value / probability
            squares += (1 - probability) * (value / probability) ** 2
    mean, estimate = total / n, weighted / n
    assert abs(estimate - mean) < 2.6 * math.sqrt(squares) / n
    assert abs(weights / n - 1) < 0.02


@given(st.floats(0, 1), st.floats(0, 1), st.integers(0, 2**128 - 1))
def test_what_is_judged_at_a_lower_rate_is_judged_at_a_higher_one(a: float, b: float, trace: int) -> None:
    place = position(f"{trace:032x}")
    assert 0 <= place < 1
    assert not place < min(a, b) or place < max(a, b)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("duration_s > 30", True),
        ("duration_s > 31", False),
        ("duration_s >= 31 and agent == 'travel'", True),
        ('agent != "travel"', False),
        ("error", False),
        ("not error", True),
        ("error == false", True),
        ("error or score.code_tool_success < 1", True),
        ("score.code_tool_success == 0.5", True),
        ("score.code_cost > 0 or score.code_cost <= 0", False),
        ("cost_usd < 1", False),
        ("not cost_usd < 1", True),
        ("tool_errors == 1 and tool_calls == 2", True),
        ("model == 'm-1' and llm_calls == 1", True),
        ("output_chars < 4", True),
        ("error and error or not error", True),
        ("error and (error or not error)", False),
        ("30 < duration_s", True),
        ("duration_s > -1", True),
        ("input_tokens > 0 or conversation_id == 'x' or stop_kind == 'y' or close_reason == 'z' or service == 's'", False),
        ("truncated or not complete or revision > 1 or output_tokens > 0", False),
    ],
)
def test_a_condition_says_what_it_says(text: str, holds: bool) -> None:
    assert Condition(text, METRICS, "sample").holds(TURN, Known(SCORES)) is holds


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("eror", "position 1: unknown name 'eror'. Did you mean error? (known: error, complete, "),
        ("error or score.code_latncy > 1", "position 10: unknown name 'score.code_latncy'. Did you mean score.code_latency?"),
        ("error and", "position 10"),
        ("error error", "position "),
        ("(error", "position "),
        ("error)", "position 6"),
        ("duration_s > 'x'", "position 14: must be a number to compare with duration_s, got"),
        ("agent > 5", "position 9: must be a text to compare with agent, got '5'"),
        ("duration_s > ; drop", "position 14"),
        ("__import__('os')", "position 1: must be a name"),
        ("agent == 'open", "position 10"),
        ("> 5", "position 1"),
        ("not " * 9000 + "error", "position 1"),
        ("(" * 2000 + "error", "position "),
    ],
)
def test_a_condition_that_cannot_be_read_names_the_position(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Condition(text, METRICS, "metrics[0].sample")
    assert str(caught.value).startswith("metrics[0].sample: ")
    assert message in str(caught.value)


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
        ("metrics", entry("code_latency", rate=0.5), "metrics[0].sample: code_latency is evaluated on every turn"),
        (
            "metrics",
            entry("llm_relevance", rate=0.5, always_if="eror"),
            "metrics[0].sample.always_if: position 1: unknown name 'eror'",
        ),
        ("metrics", entry("llm_relevance", rate=0.5, always_if="score.llm_relevance > 0"), "unknown name"),
        (
            "conversation",
            entry("llm_relevance", rate=0.5, always_if="score.code_latency > 0"),
            "conversation.metrics[0].sample.always_if",
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
MESSAGE = "metrics[0].sample.always_if: position 1: unknown name 'eror'"


def test_a_rule_that_is_wrong_keeps_an_application_from_starting() -> None:
    with pytest.raises(ConfigError, match=re.escape(MESSAGE)):
        Rig(WRONG)


@pytest.mark.parametrize("before", [[], ["llm_relevance"]], ids=["nothing is judged", "something is judged"])
def test_a_reload_with_a_rule_that_is_wrong_changes_nothing(before: list[str]) -> None:
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


def test_a_back_fill_refuses_a_rule_that_is_wrong() -> None:
    with pytest.raises(ConfigError, match=re.escape(MESSAGE)):
        chosen(load_config(WRONG, {}), None)
