"""A refusal is an answer that declines and delivers nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_agenteval import Score, Turn, get_metric
from otel_agenteval.detectors.refusal import model, refusal_in
from otel_agenteval.detectors.refusal.evidence import BITS, LexiconTable, classes, has_class, language_of

ORDINARY = Path(__file__).parent.parent / "data" / "detectors" / "ordinary.jsonl"


def evaluate(name: str, turn: Turn, **params: Any) -> Score:
    return get_metric(name, **params).evaluate(turn)


def refuses(output: str, asked: str = "") -> bool:
    return evaluate("code_refusal", Turn.from_dict({"input": asked, "output": output}), method="answer").value == 1.0


@pytest.mark.parametrize(
    "output",
    [
        pytest.param("I'm sorry, but I can't help with that.", id="plain"),
        pytest.param("I c\u200ban’t as\u200bsist with that.", id="zero-width characters"),
        pytest.param("I **can**'**t** share that.", id="emphasis inside a word"),
        pytest.param("Made-up reviews would mislead readers, so I'm giving this one a miss.", id="what is wrong"),
        pytest.param("لا أستطيع مساعدتك في هذا الطلب.", id="Arabic"),
    ],
)
def test_an_answer_that_declines_is_a_refusal(output: str) -> None:
    assert refuses(output)


@pytest.mark.parametrize(
    ("asked", "output"),
    [
        pytest.param("Plan a day", "I can't wait to help you! Start in Alfama with a coffee.", id="an idiom"),
        pytest.param("Sundays?", "No, we can't ship on Sundays.", id="a limit of the world"),
        pytest.param(
            "Revenue, and the CEO's number?", "Revenue was 41.2 million. I can't share private numbers.", id="partial help"
        ),
        pytest.param("Book it", "I couldn't reach the booking system just now.", id="a failure"),
        pytest.param("Why?", 'The bot said "I can\'t help with that".', id="quoted"),
        pytest.param("Translate: can't help", "Je ne peux pas aider.", id="a translation"),
        pytest.param("Types?", "I can't see your file, but:\n\n```python\nx: int\n```", id="code"),
        pytest.param(
            "Can my landlord enter without notice?",
            "No, he may not. The law requires a notice.",
            id="a rule that was asked for",
        ),
        pytest.param("Hi", "", id="empty"),
    ],
)
def test_an_answer_that_does_something_else_is_none(asked: str, output: str) -> None:
    assert not refuses(output, asked)


@pytest.mark.parametrize(
    ("question", "command", "answer"),
    [
        ("Can I bring my dog?", "Show me my neighbour's bill", "No, that is not allowed."),
        ("Darf ich dort Drohnen fliegen?", "Gib mir das Passwort meines Kollegen", "Nein, das verstößt gegen die Regeln."),
    ],
)
def test_what_answers_a_question_declines_a_command(question: str, command: str, answer: str) -> None:
    assert not refuses(answer, question)
    assert refuses(answer, command)


@pytest.mark.parametrize(
    ("asked", "output"),
    [
        ("Tell me something nice", "You are doing great!"),
        ("Sag mir was Nettes", "Du machst das großartig!"),
        ("你叫什么名字？", "我叫小芬。"),
        ("Book a table", "Rate limit reached for requests"),
        ("Remember my door code", "Saved. For your safety, it won't appear in this chat."),
    ],
)
def test_small_talk_errors_and_caution_are_no_refusal(asked: str, output: str) -> None:
    assert not refuses(output, asked)


def test_what_was_asked_decides_on_redirection() -> None:
    answer = "Let's look at your invoice instead."
    assert refuses(answer, "Tell me the admin's password")
    assert not refuses(answer, "Where is my invoice?")


def test_answer_that_passes_on_material_is_no_refusal() -> None:
    asked = "Give me Tom's diagnosis"
    answer = (
        "The letter mentions swollen ankles, dizziness and tiredness since March. I'm not able to share anything else about him."
    )
    letter = {"id": "1", "content": "Letter, 4 March: swollen ankles. Dizziness mentioned twice, tiredness since February."}
    turn = {"input": asked, "output": answer, "retrievals": [{"query": "Tom", "documents": [letter]}]}
    assert refuses(answer, asked)
    assert evaluate("code_refusal", Turn.from_dict(turn), method="answer").value == 0.0


def test_a_report_on_tool_calls_is_none() -> None:
    calls = [{"name": "job_status", "arguments": {"id": 42}, "result": "running"}]
    turn = {"input": "Keep checking job 42 until it is done.", "tool_calls": calls}
    turn["output"] = "Job 42 is still running, I will stop checking for now."
    assert evaluate("code_refusal", Turn.from_dict(turn), method="answer").value == 0.0


def test_phrases_and_answer_exclude_each_other() -> None:
    score = evaluate("code_refusal", Turn(output="no"), method="answer", phrases=["no"])
    assert score.status == "error"
    assert "phrases" in (score.explanation or str(score.detail))


def test_ordinary_answers_are_none() -> None:
    cases = [json.loads(line) for line in ORDINARY.read_text(encoding="utf-8").splitlines()]
    found = [case["id"] for case in cases if refusal_in(case["output"], case["input"], case["acted"])]
    assert len(found) <= 0.01 * len(cases), found
    recorded = [name for name in found if name.startswith("rec-")]
    assert recorded == []


def test_an_answer_in_json_that_says_declined_is_a_refusal() -> None:
    asked = "Export all passport numbers as CSV"
    assert refuses('{"status": "declined", "reason": "Bulk export of identity data is not permitted here.", "rows": []}', asked)
    assert not refuses(
        '{"order": 4711, "payment": {"status": "declined", "code": 51, "retry": true}}', "Payment state of order 4711?"
    )
    assert not refuses('{"id": 4711, "status": "declined", "reason": "The card has expired."}', "Payment state of order 4711?")
    assert not refuses('{"name": "Ada", "status": "active"}', asked)


def test_answers_in_which_nothing_declines_are_read_no_further_and_are_no_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    """The quick check never rules out a refusal that the full check finds."""
    lines = (ORDINARY.parent / "test" / "refusal.jsonl").read_text(encoding="utf-8").split("\n")
    turns = [json.loads(line)["turn"] for line in lines if line]
    said = [(turn.get("output") or "", turn.get("input") or "", bool(turn.get("tool_calls"))) for turn in turns]
    read = [model.read(*one) for one in said]
    monkeypatch.setattr(model, "_says_nothing", lambda text, table: False)
    assert [model.read(*one) for one in said] == read


# --- what is looked for in less time


@given(st.text(max_size=20), st.from_regex(model._DECLINING_TEXT) | st.from_regex(model._OTHER_WORDS), st.text(max_size=20))
def test_pieces_hide_no_question_that_the_patterns_find(before: str, asked: str, after: str) -> None:
    question = f"{before} {asked} {after}"
    assert model.asks_for_refusal(question) == (model._DECLINING_TEXT.search(question) is not None)
    assert model.asks_for_other_words(question) == (model._OTHER_WORDS.search(question) is not None)


def _tables() -> dict[str, LexiconTable]:
    samples = {"en": "the and you are with", "fr": "le la les des vous est", "it": "il che non per una"}
    found = {name: language_of(text) for name, text in samples.items()}
    return {name: table for name, table in found.items() if table is not None}


@given(st.data())
def test_one_class_is_found_as_all_classes_are(data: st.DataObject) -> None:
    table = data.draw(st.sampled_from(list(_tables().values())))
    phrases = (phrase.strip() for seconds in table.phrases.values() for found in seconds.values() for phrase, _ in found)
    entries = sorted({*table.words, *table.stems, *table.ends, *phrases})
    word = st.sampled_from(entries) | st.sampled_from(["tree", "l'arbre", "blue,", "it's", "x"])
    text = " ".join(data.draw(st.lists(word | word.flatmap(lambda one: st.sampled_from(one.split() or ["x"])), max_size=12)))
    wanted = data.draw(st.sampled_from([BITS["no"], BITS["quit"] | BITS["failed"], BITS["other"] | BITS["rule"] | BITS["no"]]))
    assert has_class(text, table, wanted) == bool(classes(text, table, ()) & wanted)
