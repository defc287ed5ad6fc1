"""Judges receive no personal data and no secrets, but metrics in this process see everything."""

from __future__ import annotations

import json

import pytest

import otel_agenteval as oa
from otel_agenteval.evaluation import redaction
from otel_agenteval.evaluation.evaluator import evaluate
from otel_agenteval.evaluation.redaction import KINDS, Redactor, redacted_text, redacted_turn
from tests.support.rig import Rig

KEY = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("write to ada@example.org today", "write to [EMAIL_1] today"),
        ("call +1 555 123 4567 now", "call [PHONE_1] now"),
        ("card 4111 1111 1111 1111.", "card [CARD_1]."),
        (f"ssn 123-45-6789 token {KEY}", "ssn [SSN_1] token [SECRET_1]"),
        ("a@example.org A@Example.org, c@example.org", "[EMAIL_1] [EMAIL_1], [EMAIL_2]"),
        ("+1 555 123 4567 or +1-555-123-4567", "[PHONE_1] or [PHONE_1]"),
        ("nothing to see, 42 apples", "nothing to see, 42 apples"),
        ("", ""),
    ],
)
def test_a_find_is_replaced_by_its_kind(text, left):
    assert redacted_text(text, KINDS) == left


def test_only_what_is_asked_for_is_taken_out():
    text = "ada@example.org, +1 555 123 4567"
    assert (redacted_text(text, ["phone"]), redacted_text(text, [])) == ("ada@example.org, [PHONE_1]", text)


@pytest.mark.parametrize("before", [89_990, 99_995, 100_000, 300_000])
def test_a_long_text_is_read_to_its_end(before):
    assert redacted_text("x " * (before // 2) + "ada@example.org", KINDS).endswith("[EMAIL_1]")


def test_every_text_of_a_turn_is_redacted_and_its_ids_are_not():
    turn = oa.Turn.from_dict({
        "turn_id": "t-4111111111111111", "input": "I am ada@example.org", "output": "Hello ada@example.org",
        "messages": [{"role": "user", "content": "ada@example.org"}],
        "tool_calls": [{"name": "mail", "arguments": {"to": ["ada@example.org"]}, "result": '{"to": "ada@example.org"}'}],
        "context": ["ada@example.org"], "references": {"who": "ada@example.org"},
    })  # fmt: skip
    left = redacted_turn(turn, ["email"])
    assert "ada@" not in json.dumps(left.to_dict())
    assert (left.turn_id, left.tool_calls[0].arguments) == ("t-4111111111111111", {"to": ["[EMAIL_1]"]})
    assert turn.input == "I am ada@example.org"
    assert redacted_turn(turn, []) is turn


def test_names_of_fields_and_ids_inside_of_content_are_content():
    written = {
        "turn_id": "t-4111111111111111",
        "tool_calls": [{
            "span_id": "4111111111111111", "call_id": "c-4111111111111111", "name": "mail",
            "arguments": {"id": "ada@example.org", "parent": "bob@example.org", "ada@example.org": {"start": "bob@example.org"}},
        }],
        "metadata": {"id": "ada@example.org"}, "spans": [{"id": "4111111111111111", "attributes": {"id": "ada@example.org"}}],
    }  # fmt: skip
    left = Redactor(["email", "card"]).turn(written)
    assert "ada@" not in json.dumps(left)
    assert "bob@" not in json.dumps(left)
    assert left["tool_calls"][0]["arguments"] == {"id": "[EMAIL_1]", "parent": "[EMAIL_2]", "[EMAIL_1]": {"start": "[EMAIL_2]"}}
    assert (left["turn_id"], left["spans"][0]["id"]) == ("t-4111111111111111", "4111111111111111")
    assert (left["tool_calls"][0]["span_id"], left["tool_calls"][0]["call_id"]) == ("4111111111111111", "c-4111111111111111")


@pytest.mark.parametrize("backend", [{}, {"backend": "sqlite", "path": "q.db"}])
def test_nothing_leaves_when_redaction_fails_and_that_is_counted(models, monkeypatch, tmp_path, backend):
    monkeypatch.chdir(tmp_path)

    def failing(*_):
        raise RuntimeError("no")

    monkeypatch.setattr(redaction, "searcher", lambda _: failing)
    models.play({"score": 80})
    judge = {"base_url": models.url, "model": "scripted", "queue": backend}
    with Rig({"inline": {"metrics": ["code_latency"]}, "metrics": ["llm_relevance"], "judge": judge}) as rig:
        rig.run(says="Write to ada@example.org.")
        rig.scored()
        assert rig.engine.drain(60, judges=True)
        results = {key[2]: count for key, count in rig.count("agenteval.results").items() if key[0] == "llm_relevance"}
        assert sum(results.values()) == 1
        assert not results.keys() & {"pass", "fail", "ok", "skipped"}
        assert rig.engine.failures
        assert [event.attributes["gen_ai.evaluation.name"] for event in rig.log_events()][:1] == ["code_latency"]
    assert models.requests == []
    assert b"ada@" not in b"".join(file.read_bytes() for file in tmp_path.iterdir())


def test_what_is_nested_too_deep_to_be_looked_at_does_not_leave():
    value = "ada@example.org"
    for _ in range(100):
        value = [value]
    assert "ada@" not in json.dumps(Redactor(KINDS).turn({"metadata": value, "tool_calls": [{"arguments": value}]}))


def test_on_the_command_line_a_judge_sees_the_redacted_turn_and_code_sees_the_real_one(models):
    turn = oa.Turn.from_dict({"turn_id": "t", "input": "Who?", "output": "ada@example.org"})
    models.play({"score": 80})
    metrics = [oa.get_metric("code_pii_leakage", ruleset="default"), oa.get_metric("llm_relevance")]
    pii, relevance = evaluate(turn, metrics, judge=models.judge, redact=["email"])
    assert (pii.value < 1, relevance.value) == (True, 0.8)
    assert "[EMAIL_1]" in models.asked[0]
    assert "ada@" not in models.asked[0]


@pytest.mark.parametrize(("options", "seen"), [({}, "[EMAIL_1]"), ({"privacy": {"redact": []}}, "ada@example.org")])
def test_live_a_judge_sees_what_the_configuration_lets_out(models, options, seen):
    models.play({"score": 80})
    judge = {"base_url": models.url, "model": "scripted"}
    with Rig({"inline": {"metrics": []}, "metrics": ["llm_relevance"], "judge": judge, **options}) as rig:
        rig.run(says="Write to ada@example.org.")
        rig.scored()
        assert rig.engine.drain(60, judges=True)
        assert seen in models.asked[0]
