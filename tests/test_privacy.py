"""What leaves for a judge has no personal data and no secrets in it; what is scored here has everything."""

from __future__ import annotations

import json

import pytest

import otel_agenteval as oa
from otel_agenteval.privacy import KINDS, redacted, redacted_text, redacted_turn
from otel_agenteval.references import evaluate
from tests.support.rig import Rig

KEY = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("write to ada@example.org today", "write to [EMAIL] today"),
        ("call +1 555 123 4567 now", "call [PHONE] now"),
        ("card 4111 1111 1111 1111.", "card [CARD]."),
        ("ssn 123-45-6789", "ssn [SSN]"),
        (f"token {KEY}", "token [SECRET]"),
        ("a@example.org b@example.org", "[EMAIL] [EMAIL]"),
        ("nothing to see, 42 apples", "nothing to see, 42 apples"),
        ("", ""),
    ],
)
def test_a_find_is_replaced_by_its_kind(text, left):
    assert redacted_text(text, KINDS) == left


def test_only_what_is_asked_for_is_taken_out():
    text = "ada@example.org, +1 555 123 4567"
    assert redacted_text(text, ["phone"]) == "ada@example.org, [PHONE]"
    assert redacted_text(text, []) == text


@pytest.mark.parametrize("before", [0, 89_990, 99_995, 100_000, 189_995, 300_000])
def test_a_long_text_is_read_to_its_end(before):
    assert redacted_text("x " * (before // 2) + "ada@example.org", KINDS).endswith("[EMAIL]")


def test_every_text_of_a_turn_is_redacted_and_its_ids_are_not():
    turn = oa.Turn.from_dict({
        "turn_id": "t-4111111111111111", "input": "I am ada@example.org", "output": "Hello ada@example.org",
        "messages": [{"role": "user", "content": "ada@example.org"}],
        "tool_calls": [{"name": "mail", "arguments": {"to": ["ada@example.org"]}, "result": '{"to": "ada@example.org"}'}],
        "context": ["ada@example.org"], "references": {"who": "ada@example.org"},
    })  # fmt: skip
    left = redacted_turn(turn, ["email"])
    assert "ada@" not in json.dumps(left.to_dict())
    assert (left.turn_id, left.tool_calls[0].arguments) == ("t-4111111111111111", {"to": ["[EMAIL]"]})
    assert turn.input == "I am ada@example.org"
    assert redacted_turn(turn, []) is turn


def test_what_is_nested_too_deep_to_be_looked_at_does_not_leave():
    value = "ada@example.org"
    for _ in range(100):
        value = [value]
    assert "ada@" not in json.dumps(redacted(value, KINDS))


def test_on_the_command_line_a_judge_sees_the_redacted_turn_and_code_sees_the_real_one(models):
    turn = oa.Turn.from_dict({"turn_id": "t", "input": "Who?", "output": "ada@example.org"})
    models.play({"score": 80})
    metrics = [oa.get_metric("code_pii_leakage"), oa.get_metric("llm_relevance")]
    pii, relevance = evaluate(turn, metrics, judge=models.judge, redact=["email"])
    assert (pii.value < 1, relevance.value) == (True, 0.8)
    assert "[EMAIL]" in models.asked[0]
    assert "ada@" not in models.asked[0]


@pytest.mark.parametrize(("options", "seen"), [({}, "[EMAIL]"), ({"privacy": {"redact": []}}, "ada@example.org")])
def test_live_a_judge_sees_what_the_configuration_lets_out(models, options, seen):
    models.play({"score": 80})
    judge = {"base_url": models.url, "model": "scripted"}
    with Rig({"inline": {"metrics": []}, "metrics": ["llm_relevance"], "judge": judge, **options}) as rig:
        rig.run(says="Write to ada@example.org.")
        rig.scored()
        assert rig.engine.drain(30, judges=True)
        assert seen in models.asked[0]
