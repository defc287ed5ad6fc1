"""Judges of answers from retrieved material: what they ask, and what they make of the replies."""

from __future__ import annotations

from typing import Any

import pytest

import otel_agenteval as oa
from tests.support.judges import ScriptedModels

FACTS: dict[str, Any] = {
    "input": "When did Ada start?",
    "output": "Ada started in May and left in June.",
    "context": ["Ada joined in May.", "Bob joined in July."],
    "ground_truth": "Ada began in May.",
}


def turn(**changes: Any) -> oa.Turn:
    return oa.Turn.from_dict({**FACTS, **changes})


def verdicts(*words: Any) -> dict[str, Any]:
    return {"verdicts": [{"verdict": word} for word in words]}


# --- what every one of them does

HOLISTIC = {"method": "holistic"}
ONE_QUESTION = [
    # metric, parameters, a good reply, its value, passed
    ("llm_faithfulness", HOLISTIC, {"score": 80}, 0.8, True),
    ("llm_relevance", {}, {"score": "65.5"}, 0.655, False),
    ("llm_context_precision", HOLISTIC, {"score": 70}, 0.7, True),
    ("llm_context_recall", HOLISTIC, {"score": 69}, 0.69, False),
    ("llm_context_relevance", {}, {"relevant": [0]}, 0.5, None),
    ("llm_context_relevance", HOLISTIC, {"score": 0.25}, 0.25, None),
    ("llm_answer_correctness", {}, {"score": 40}, 0.4, False),
    ("llm_answer_similarity", {}, {"score": 0.4}, 0.4, None),
    ("llm_groundedness", {}, {"score": 90, "fabricatedElements": []}, 0.9, True),
    ("llm_factuality", {}, {"category": "B"}, 1.0, True),
    ("llm_noise_sensitivity", {"baseline_response": "Ada started."}, {"score": 1}, 1.0, None),
    ("llm_sql_semantic_equivalence", {}, {"equivalent": True}, 1.0, True),
]
TWO_QUESTIONS = [
    # metric, the key of the list, the verdicts of its three items, value, passed
    ("llm_faithfulness", "statements", ("yes", "no", True), 2 / 3, False),
    ("llm_context_recall", "claims", ("SUPPORTED", "UNSUPPORTED", " supported "), 2 / 3, None),
    ("llm_hallucination", "claims", ("SUPPORTED", "CONTRADICTED", "UNSUPPORTED"), 1 / 3, None),
]


def ids(rows: list[Any]) -> list[str]:
    return ["-".join([row[0].removeprefix("llm_"), *(row[1].values() if isinstance(row[1], dict) else [])]) for row in rows]


@pytest.mark.parametrize(("name", "params", "reply", "value", "passed"), ONE_QUESTION, ids=ids(ONE_QUESTION))
def test_one_question_gives_the_value(
    models: ScriptedModels, name: str, params: Any, reply: Any, value: float, passed: bool | None
) -> None:
    score = models.score(name, turn(), reply, **params)
    assert (score.status, score.value, score.passed) == ("ok", pytest.approx(value), passed)


@pytest.mark.parametrize(("name", "key", "words", "value", "passed"), TWO_QUESTIONS, ids=ids(TWO_QUESTIONS))
def test_two_questions_give_the_value(
    models: ScriptedModels, name: str, key: str, words: Any, value: float, passed: bool | None
) -> None:
    score = models.score(name, turn(), {key: ["first", " ", "second", "third"]}, verdicts(*words))
    assert (score.status, score.value, score.passed) == ("ok", pytest.approx(value), passed)
    assert "1. first\n2. second\n3. third" in models.asked[1]


@pytest.mark.parametrize(("name", "key", "words", "value", "passed"), TWO_QUESTIONS, ids=ids(TWO_QUESTIONS))
def test_verdicts_belong_to_items_by_position(
    models: ScriptedModels, name: str, key: str, words: Any, value: float, passed: bool | None
) -> None:
    extra = models.score(name, turn(), {key: ["a", "b", "c"]}, verdicts(*words, *words))
    bare = models.score(name, turn(), {key: ["a", "b", "c"]}, {"verdicts": list(words)})
    assert extra.value == bare.value == pytest.approx(value)
    none = models.score(name, turn(), {key: ["a", "b", "c"]}, {"verdicts": []})
    assert (none.status, none.value) == ("ok", 0.0)


@pytest.mark.parametrize(("name", "params", "reply", "value", "passed"), ONE_QUESTION, ids=ids(ONE_QUESTION))
@pytest.mark.parametrize(
    "bad",
    [{}, {"score": None}, {"score": True}, {"score": "high"}, {"score": "nan"}, {"score": [1]}, {"category": "AB", "relevant": 1, "equivalent": 2}],
    ids=str,
)  # fmt: skip
def test_an_unusable_reply_is_an_error_at_once(
    models: ScriptedModels, name: str, params: Any, reply: Any, value: float, passed: bool | None, bad: Any
) -> None:
    score = models.score(name, turn(), bad, **params)
    assert (score.status, score.error_type, score.value, score.passed) == ("error", "invalid_reply", None, None)


@pytest.mark.parametrize(("name", "key", "words", "value", "passed"), TWO_QUESTIONS, ids=ids(TWO_QUESTIONS))
@pytest.mark.parametrize("bad", [{}, {"claims": None, "statements": None}, {"claims": "a", "statements": "a"}], ids=str)
def test_a_list_that_is_missing_is_an_error_at_once(
    models: ScriptedModels, name: str, key: str, words: Any, value: float, passed: bool | None, bad: Any
) -> None:
    assert models.score(name, turn(), bad).error_type == "invalid_reply"
    assert models.score(name, turn(), {key: ["a"]}, {"verdicts": None}).error_type == "invalid_reply"


@pytest.mark.parametrize(
    ("name", "changes", "reason"),
    [
        ("llm_faithfulness", {"input": "", "output": None, "context": []}, "missing:input"),
        ("llm_faithfulness", {"output": None, "context": []}, "missing:output"),
        ("llm_faithfulness", {"context": []}, "missing:context"),
        ("llm_relevance", {"input": None}, "missing:input"),
        ("llm_relevance", {"output": None}, "missing:output"),
        ("llm_context_precision", {"context": []}, "missing:context"),
        ("llm_context_recall", {"context": [], "ground_truth": None}, "missing:context"),
        ("llm_context_recall", {"ground_truth": ""}, "missing:ground_truth"),
        ("llm_context_relevance", {"input": ""}, "missing:input"),
        ("llm_answer_correctness", {"ground_truth": None}, "missing:ground_truth"),
        ("llm_answer_similarity", {"output": None, "ground_truth": None}, "missing:output"),
        ("llm_answer_similarity", {"ground_truth": None}, "missing:ground_truth"),
        ("llm_hallucination", {"output": None}, "missing:output"),
        ("llm_hallucination", {"output": " ", "context": []}, "missing:context"),
        ("llm_hallucination", {"output": " \n"}, "empty_output"),
        ("llm_groundedness", {"context": []}, "missing:context"),
        ("llm_factuality", {"ground_truth": None}, "missing:ground_truth"),
        ("llm_noise_sensitivity", {}, "missing:baseline"),
        ("llm_noise_sensitivity", {"output": None}, "missing:output"),
        ("llm_sql_semantic_equivalence", {"ground_truth": None}, "missing:ground_truth"),
        ("llm_sql_semantic_equivalence", {"output": None}, "missing:output"),
    ],
)
def test_nobody_is_asked_where_something_is_missing(models: ScriptedModels, name: str, changes: Any, reason: str) -> None:
    score = models.score(name, turn(**changes))
    assert (score.status, score.detail["reason"]) == ("skipped", reason)


def test_the_reason_is_also_the_explanation(models: ScriptedModels) -> None:
    by_key = models.score("llm_answer_similarity", turn(), {"score": 1, "reason": "the same"})
    assert by_key.detail["reason"] == by_key.explanation == "the same"
    by_other_key = models.score("llm_relevance", turn(), {"score": 90, "reasoning": "on topic"})
    assert by_other_key.detail["reasoning"] == by_other_key.explanation == "on topic"


@pytest.mark.parametrize(
    ("name", "params", "replies", "texts"),
    [
        ("llm_faithfulness", {}, [{"statements": ["s"]}, verdicts("yes")], ("input", "output", "context")),
        ("llm_faithfulness", HOLISTIC, [{"score": 1}], ("input", "output", "context")),
        ("llm_relevance", {}, [{"score": 1}], ("input", "output")),
        ("llm_context_precision", {}, [{"verdict": "RELEVANT"}] * 2, ("input", "context")),
        ("llm_context_precision", HOLISTIC, [{"score": 1}], ("input", "context")),
        ("llm_context_recall", {}, [{"claims": ["c"]}, verdicts("SUPPORTED")], ("context", "ground_truth")),
        ("llm_context_recall", HOLISTIC, [{"score": 1}], ("context", "ground_truth")),
        ("llm_context_relevance", {}, [{"relevant": []}], ("input", "context")),
        ("llm_context_relevance", HOLISTIC, [{"score": 1}], ("input", "context")),
        ("llm_answer_correctness", {}, [{"score": 1}], ("input", "output", "ground_truth")),
        ("llm_answer_similarity", {}, [{"score": 1}], ("output", "ground_truth")),
        ("llm_hallucination", {}, [{"claims": ["c"]}, verdicts("SUPPORTED")], ("output", "context")),
        ("llm_groundedness", {}, [{"score": 1, "fabricatedElements": []}], ("input", "output", "context")),
        ("llm_factuality", {}, [{"category": "D"}], ("input", "output", "ground_truth")),
        ("llm_noise_sensitivity", {"baseline_response": "Ada started."}, [{"score": 1}], ("input", "output")),
        ("llm_sql_semantic_equivalence", {}, [{"equivalent": 0}], ("output", "ground_truth")),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_the_judge_sees_every_text_that_matters(models: ScriptedModels, name: str, params: Any, replies: Any, texts: Any) -> None:
    models.score(name, turn(), *replies, **params)
    seen = "\n".join(models.asked)
    wanted = [FACTS[name] for name in texts]
    for text in [*wanted, *params.values()]:
        for part in text if isinstance(text, list) else [text] if text != "holistic" else []:
            assert part in seen


@pytest.mark.parametrize(
    ("name", "replies"),
    [
        ("llm_faithfulness", [{"statements": ["s"]}, verdicts("yes")]),
        ("llm_context_recall", [{"claims": ["c"]}, verdicts("SUPPORTED")]),
        ("llm_hallucination", [{"claims": ["c"]}, verdicts("SUPPORTED")]),
    ],
)
def test_what_is_stated_is_found_without_a_look_at_the_context(models: ScriptedModels, name: str, replies: Any) -> None:
    """A judge that reads the context while it looks for claims finds those that the context has."""
    models.score(name, turn(), *replies)
    assert [any(chunk in asked for chunk in FACTS["context"]) for asked in models.asked] == [False, True]


# --- one by one


def test_faithfulness_tells_what_is_unsupported(models: ScriptedModels) -> None:
    score = models.score("llm_faithfulness", turn(), {"statements": ["s0", "s1"]}, verdicts("no", "YES"))
    assert score.detail == {"statements": ["s0", "s1"], "unsupported": ["s0"]}
    assert score.explanation == "1 of 2 statements follow from the context"
    claims = {"score": 50, "faithfulClaims": ["a"], "hallucinatedClaims": ["b", ""], "reasoning": "so"}
    holistic = models.score("llm_faithfulness", turn(), claims, method="holistic")
    assert holistic.detail == {
        "faithful_claims": ["a"],
        "hallucinated_claims": ["b"],
        "unsupported": ["b"],
        "reasoning": "so",
    }


def test_an_answer_that_states_nothing_is_faithful_in_vain(models: ScriptedModels) -> None:
    score = models.score("llm_faithfulness", turn(output=""), {"statements": ["  "]})
    assert (score.value, score.passed, score.detail["vacuous"]) == (1.0, True, True)


def test_an_empty_answer_is_irrelevant_without_a_question(models: ScriptedModels) -> None:
    score = models.score("llm_relevance", turn(output=" \n "))
    assert (score.status, score.value, score.passed) == ("ok", 0.0, False)


def test_relevance_tells_what_the_judge_found(models: ScriptedModels) -> None:
    reply = {"score": 60, "addressesQuestion": "yes", "staysOnTopic": False, "irrelevantParts": ["June"], "reasoning": "so"}
    assert models.score("llm_relevance", turn(), reply).detail == {
        "addresses_question": True,
        "stays_on_topic": False,
        "irrelevant_parts": ["June"],
        "reasoning": "so",
    }


@pytest.mark.parametrize(
    ("relevant", "value"),
    [("RNR", 5 / 6), ("NR", 0.5), ("NN", 0.0), ("R", 1.0), ("NNR", 1 / 3), ("RRN", 1.0), ("NRR", (1 / 2 + 2 / 3) / 2)],
)
def test_context_precision_is_the_average_precision(models: ScriptedModels, relevant: str, value: float) -> None:
    words = [{"R": "relevant ", "N": "NOT_RELEVANT"}[letter] for letter in relevant]
    score = models.score("llm_context_precision", turn(context=["same"] * len(relevant)), *({"verdict": word} for word in words))
    assert score.value == pytest.approx(value)
    assert score.passed is None
    assert score.detail == {
        "verdicts": [word.strip().upper() for word in words],
        "total_relevant": relevant.count("R"),
        "reasons": [None] * len(relevant),
    }


@pytest.mark.parametrize("verdict", ["IRRELEVANT", "NOT RELEVANT", "yes", True, None])
def test_context_precision_takes_no_other_word(models: ScriptedModels, verdict: Any) -> None:
    assert models.score("llm_context_precision", turn(context=["a"]), {"verdict": verdict}).error_type == "invalid_reply"


@pytest.mark.parametrize("name", ["llm_context_precision", "llm_context_recall"])
def test_only_the_holistic_method_has_a_threshold_of_its_own(models: ScriptedModels, name: str) -> None:
    assert models.score(name, turn(), {"score": 69.99}, method="holistic").passed is False
    assert models.score(name, turn(), {"score": 70}, method="holistic").passed is True
    assert models.score(name, turn(), {"score": 70}, method="holistic", threshold=0.8).passed is False


def test_a_threshold_is_compared_with_where_there_is_none_by_default(models: ScriptedModels) -> None:
    two = turn(context=["a", "b"])
    assert models.score("llm_context_precision", two, {"verdict": "NOT_RELEVANT"}, {"verdict": "RELEVANT"}, threshold=0.5).passed
    assert models.score("llm_context_relevance", two, {"relevant": [1]}, threshold=0.6).passed is False
    claims = {"claims": ["a", "b"]}
    assert models.score("llm_context_recall", turn(), claims, verdicts("SUPPORTED", "SUPPORTED"), threshold=1).passed is True
    assert models.score("llm_hallucination", turn(), claims, verdicts("CONTRADICTED"), threshold=0.4).passed is False
    assert models.score("llm_hallucination", turn(), claims, verdicts("CONTRADICTED"), threshold=0.5).passed is True
    assert models.score("llm_factuality", turn(), {"category": "A"}, scores={"A": 0.5}, threshold=0.6).passed is False


def test_context_recall_tells_what_is_missing(models: ScriptedModels) -> None:
    score = models.score("llm_context_recall", turn(), {"claims": ["a", "b"]}, verdicts("SUPPORTED"))
    assert score.detail == {
        "claims": [{"claim": "a", "verdict": "SUPPORTED"}, {"claim": "b", "verdict": "UNSUPPORTED"}],
        "missing": ["b"],
    }


def test_context_recall_of_a_truth_without_claims_is_skipped(models: ScriptedModels) -> None:
    score = models.score("llm_context_recall", turn(), {"claims": [""]})
    assert (score.status, score.detail["reason"]) == ("skipped", "no_claims")


@pytest.mark.parametrize("word", ["NO", "partly", None, {"verdict": "MAYBE"}])
def test_context_recall_takes_no_other_word(models: ScriptedModels, word: Any) -> None:
    assert models.score("llm_context_recall", turn(), {"claims": ["a"]}, {"verdicts": [word]}).error_type == "invalid_reply"


@pytest.mark.parametrize(
    ("listed", "units"),
    [
        ([], 0),
        (["u1", "u1", " u2 "], 2),
        ([0, "u1"], 1),
        (["0", 3], 2),
        ([4, -1, 1.5, True, None, {"a": 1}, "nowhere", "", "99999999999"], 0),
        ([0, 1, 2, 3, "u4"], 4),
    ],
    ids=str,
)
def test_context_relevance_counts_the_chunks_that_are_named(models: ScriptedModels, listed: Any, units: int) -> None:
    score = models.score("llm_context_relevance", turn(context=["u1", "u2 ", "u3", "u4"]), {"relevant": listed})
    assert score.value == units / 4
    assert score.detail == {"relevant_units": units, "total_units": 4, "insufficient": False}


def test_a_chunk_that_says_a_number_is_named_by_its_text(models: ScriptedModels) -> None:
    score = models.score("llm_context_relevance", turn(context=["1", "0"]), {"relevant": ["1", 0]})
    assert score.detail["relevant_units"] == 1


@pytest.mark.parametrize(
    "reply", [{"insufficient": "yes"}, {"insufficient": True, "relevant": [0]}, {"insufficient": 1, "relevant": 5}]
)
def test_an_insufficient_context_is_of_no_relevance(models: ScriptedModels, reply: Any) -> None:
    score = models.score("llm_context_relevance", turn(), reply)
    assert (score.value, score.detail["insufficient"], score.detail["total_units"]) == (0.0, True, 2)


@pytest.mark.parametrize("reply", [{"relevant": [], "insufficient": "perhaps"}, {"insufficient": False}, {"relevant": None}])
def test_context_relevance_reads_no_more_into_a_reply(models: ScriptedModels, reply: Any) -> None:
    assert models.score("llm_context_relevance", turn(), reply).error_type == "invalid_reply"


def test_an_answer_that_is_the_ground_truth_is_correct_without_a_question(models: ScriptedModels) -> None:
    same = turn(output=" 42\n", ground_truth=42)
    score = models.score("llm_answer_correctness", same)
    assert (score.value, score.passed, score.detail) == (1.0, True, {"shortcut": "exact"})
    assert models.score("llm_answer_correctness", same, {"score": 10}, exact_shortcut=False).value == 0.1


def test_answer_correctness_tells_which_facts(models: ScriptedModels) -> None:
    reply = {"score": 50, "factsCorrect": ["May"], "factsIncorrect": ["June"], "factsMissing": []}
    assert models.score("llm_answer_correctness", turn(), reply).detail == {
        "facts_correct": ["May"],
        "facts_incorrect": ["June"],
        "facts_missing": [],
        "reasoning": None,
    }


def test_a_hallucination_contradicts_the_context(models: ScriptedModels) -> None:
    words = ("CONTRADICTED", "supported", "unsupported", "who knows", None)
    score = models.score("llm_hallucination", turn(), {"claims": list("abcdef")}, verdicts(*words))
    assert score.value == pytest.approx(1 / 6)
    assert score.detail == {
        "supported": 1,
        "contradicted": 1,
        "unsupported": 4,
        "contradicted_claims": ["a"],
        "unsupported_rate": pytest.approx(4 / 6),
    }


def test_an_answer_without_claims_hallucinates_in_vain(models: ScriptedModels) -> None:
    score = models.score("llm_hallucination", turn(), {"claims": []}, threshold=0.1)
    assert (score.value, score.passed, score.detail["vacuous"]) == (0.0, True, True)


@pytest.mark.parametrize(
    ("said", "params", "value", "passed"),
    [
        ((95, ["a study"]), {}, 0.3, False),
        ((10, ["a study"]), {}, 0.1, False),
        ((95, ["a study"]), {"threshold": 0.1}, 0.3, False),
        ((95, ["a study"]), {"fabrication_cap": 0.5, "threshold": 0.1}, 0.5, False),
        ((95, [" ", ""]), {}, 0.95, True),
    ],
)
def test_what_is_made_up_fails_and_caps_the_value(
    models: ScriptedModels, said: Any, params: Any, value: float, passed: bool
) -> None:
    score = models.score("llm_groundedness", turn(), {"score": said[0], "fabricatedElements": said[1]}, **params)
    assert (score.value, score.passed) == (pytest.approx(value), passed)
    assert score.detail["fabricated_elements"] == [text for text in said[1] if text.strip()]


def test_groundedness_needs_to_know_what_is_made_up(models: ScriptedModels) -> None:
    assert models.score("llm_groundedness", turn(), {"score": 90}).error_type == "invalid_reply"


@pytest.mark.parametrize(("category", "value"), [("A", 1.0), ("b", 1.0), (" c ", 1.0), ("D", 0.0), ("E", 1.0)], ids=str)
def test_factuality_is_the_score_of_the_category(models: ScriptedModels, category: str, value: float) -> None:
    score = models.score("llm_factuality", turn(), {"category": category, "reason": "so"})
    assert (score.value, score.passed, score.detail) == (
        value,
        value > 0,
        {"category": category.strip().upper(), "reason": "so"},
    )


def test_factuality_can_weigh_categories(models: ScriptedModels) -> None:
    assert models.score("llm_factuality", turn(), {"category": "A"}, scores={"A": 0.5}).value == 0.5
    assert models.score("llm_factuality", turn(), {"category": "B"}, scores={"A": 0.5}).value == 1.0
    assert models.score("llm_factuality", turn(), {"category": "D"}, scores={"D": 0.1}).passed is True


@pytest.mark.parametrize("category", ["F", "", "AB", "A.", 1, None])
def test_any_other_category_is_an_error(models: ScriptedModels, category: Any) -> None:
    assert models.score("llm_factuality", turn(), {"category": category}).error_type == "invalid_reply"


def test_noise_sensitivity_compares_with_the_baseline(models: ScriptedModels) -> None:
    models.score("llm_noise_sensitivity", turn(), {"score": 0.5}, baseline_response="in May", noisy_input="Wehn?")
    assert "in May" in models.asked[0]
    assert "Wehn?" in models.asked[0]
    given_by_the_case = turn(references={"baseline_response": "in spring", "noisy_input": "wHEN"})
    assert models.score("llm_noise_sensitivity", given_by_the_case, {"score": 0.5}).value == 0.5
    assert "in spring" in models.asked[0]
    assert "wHEN" in models.asked[0]


@pytest.mark.parametrize(
    ("word", "equal"), [("TRUE", True), ("Yes", True), (1, True), (" pass", True), ("no", False), ("fail", False)]
)
def test_sql_equivalence_reads_words_of_truth(models: ScriptedModels, word: Any, equal: bool) -> None:
    score = models.score("llm_sql_semantic_equivalence", turn(), {"equivalent": word, "reason": "so"})
    assert (score.value, score.passed, score.detail) == (float(equal), equal, {"equivalent": equal, "reason": "so"})
    inverse = models.score("llm_sql_semantic_equivalence", turn(), {"equivalent": word}, inverse=True)
    assert inverse.passed is not equal


def test_sql_equivalence_compares_with_the_reference_query(models: ScriptedModels) -> None:
    asks = turn(output="SELECT 1", ground_truth="the truth")
    models.score(
        "llm_sql_semantic_equivalence", asks, {"equivalent": 1}, reference_sql="SELECT 2", schema={"tables": ["t_orders"]}
    )
    assert "SELECT 2" in models.asked[0]
    assert "t_orders" in models.asked[0]
    assert "the truth" not in models.asked[0]
    no_truth = turn(output="SELECT 1", ground_truth=None, references={"reference_sql": "SELECT 3"})
    assert models.score("llm_sql_semantic_equivalence", no_truth, {"equivalent": 1}).passed is True
    assert "SELECT 3" in models.asked[0]


def test_value_of_a_metric_replaces_the_ground_truth(models: ScriptedModels) -> None:
    """Trusys and promptfoo give the expected answer as ``value``."""
    turn = oa.Turn(input="?", output="a", context=["Lima"])
    replies = ({"claims": ["It is Lima."]}, {"verdicts": [{"claim": "1", "reason": "stated", "verdict": "SUPPORTED"}]})
    score = models.score("trusys:context-recall", turn, *replies, value="It is Lima.")
    assert (score.status, score.value) == ("ok", 1.0)
    assert "It is Lima." in models.asked[0]
    assert turn.ground_truth is None
    assert oa.get_metric("trusys:context-recall").evaluate(turn, judge=models.judge).detail["reason"] == "missing:ground_truth"
    assert oa.get_metric("code_equals_ground_truth", value="a").evaluate(oa.Turn(output="a", ground_truth="b")).passed is True
