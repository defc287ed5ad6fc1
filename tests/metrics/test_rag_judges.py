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
    # metric, parameters, a good reply, its value, passed, what the judge sees
    ("llm_faithfulness", HOLISTIC, {"score": 80}, 0.8, True, "input output context"),
    ("llm_relevance", {}, {"score": "65.5"}, 0.655, False, "input output"),
    ("llm_context_precision", HOLISTIC, {"score": 70}, 0.7, True, "input context"),
    ("llm_context_recall", HOLISTIC, {"score": 69}, 0.69, False, "context ground_truth"),
    ("llm_context_relevance", {}, {"relevant": [0]}, 0.5, None, "input context"),
    ("llm_context_relevance", HOLISTIC, {"score": 0.25}, 0.25, None, "input context"),
    ("llm_answer_correctness", {}, {"score": 40}, 0.4, False, "input output ground_truth"),
    ("llm_answer_similarity", {}, {"score": 0.4}, 0.4, None, "output ground_truth"),
    ("llm_groundedness", {}, {"score": 90, "fabricatedElements": []}, 0.9, True, "input output context"),
    ("llm_factuality", {}, {"category": "B"}, 1.0, True, "input output ground_truth"),
    ("llm_noise_sensitivity", {"baseline_response": "Ada started."}, {"score": 1}, 1.0, None, "input output"),
    ("llm_sql_semantic_equivalence", {}, {"equivalent": True}, 1.0, True, "output ground_truth"),
]
TWO_QUESTIONS = [
    # metric, the key of the list, the verdicts of its three items, value, passed, what the judge sees
    ("llm_faithfulness", "statements", ("yes", "no", True), 2 / 3, False, "input output context"),
    ("llm_context_recall", "claims", ("SUPPORTED", "UNSUPPORTED", " supported "), 2 / 3, None, "context ground_truth"),
    ("llm_hallucination", "claims", ("SUPPORTED", "CONTRADICTED", "UNSUPPORTED"), 1 / 3, None, "output context"),
]


def unseen(models: ScriptedModels, names: str) -> list[str]:
    """Return texts of the turn that the judge didn't receive."""
    texts = [FACTS[name] for name in names.split()]
    parts = [part for text in texts for part in (text if isinstance(text, list) else [text])]
    return [part for part in parts if part not in "\n".join(models.asked)]


def ids(rows: list[Any]) -> list[str]:
    return ["-".join([row[0].removeprefix("llm_"), *(row[1].values() if isinstance(row[1], dict) else [])]) for row in rows]


@pytest.mark.parametrize(("name", "params", "reply", "value", "passed", "seen"), ONE_QUESTION, ids=ids(ONE_QUESTION))
def test_one_question_shows_every_text_that_matters_and_gives_the_value(
    models: ScriptedModels, name: str, params: Any, reply: Any, value: float, passed: bool | None, seen: str
) -> None:
    score = models.score(name, turn(), reply, **params)
    assert (score.status, score.value, score.passed) == ("ok", pytest.approx(value), passed)
    assert unseen(models, seen) == []
    assert params.get("baseline_response", "") in models.asked[0]


@pytest.mark.parametrize(("name", "key", "words", "value", "passed", "seen"), TWO_QUESTIONS, ids=ids(TWO_QUESTIONS))
def test_verdicts_belong_to_items_by_position(
    models: ScriptedModels, name: str, key: str, words: Any, value: float, passed: bool | None, seen: str
) -> None:
    """A judge that also reads the context finds only claims of the context."""
    score = models.score(name, turn(), {key: ["first", " ", "second", "third"]}, verdicts(*words))
    assert (score.status, score.value, score.passed) == ("ok", pytest.approx(value), passed)
    assert "1. first\n2. second\n3. third" in models.asked[1]
    assert unseen(models, seen) == []
    assert [any(chunk in asked for chunk in FACTS["context"]) for asked in models.asked] == [False, True]
    extra = models.score(name, turn(), {key: ["a", "b", "c"]}, verdicts(*words, *words))
    bare = models.score(name, turn(), {key: ["a", "b", "c"]}, {"verdicts": list(words)})
    assert extra.value == bare.value == pytest.approx(value)
    none = models.score(name, turn(), {key: ["a", "b", "c"]}, {"verdicts": []})
    assert (none.status, none.value) == (("error", None) if name == "llm_hallucination" else ("ok", 0.0))


@pytest.mark.parametrize(
    ("name", "params", "replies"),
    [
        *[(name, params, [{}]) for name, params, *_ in ONE_QUESTION],
        *[(name, {}, [{key: "a"}]) for name, key, *_ in TWO_QUESTIONS],
        *[(name, {}, [{key: ["a"]}, {"verdicts": None}]) for name, key, *_ in TWO_QUESTIONS],
        *[("llm_context_precision", {}, [{"verdict": word}]) for word in ("IRRELEVANT", "yes", True, None)],
        *[("llm_context_recall", {}, [{"claims": ["a"]}, {"verdicts": [word]}]) for word in ("NO", None, {"verdict": "MAYBE"})],
        *[("llm_context_relevance", {}, [reply]) for reply in ({"relevant": [], "insufficient": "perhaps"}, {"relevant": None})],
        *[("llm_factuality", {}, [{"category": word}]) for word in ("F", "", "A.", 1, None)],
        ("llm_groundedness", {}, [{"score": 90}]),
        ("llm_sql_semantic_equivalence", {}, [{"equivalent": 2}]),
    ],
    ids=str,
)
def test_a_reply_of_another_form_is_an_error_at_once(models: ScriptedModels, name: str, params: Any, replies: Any) -> None:
    score = models.score(name, turn(), *replies, **params)
    assert (score.status, score.error_type, score.value, score.passed) == ("error", "invalid_reply", None, None)


@pytest.mark.parametrize(
    ("name", "changes", "reason"),
    [
        ("llm_faithfulness", {"input": "", "output": None, "context": []}, "missing:input"),
        ("llm_faithfulness", {"output": None, "context": []}, "missing:output"),
        ("llm_relevance", {"input": None}, "missing:input"),
        ("llm_context_recall", {"context": [], "ground_truth": None}, "missing:context"),
        ("llm_context_recall", {"ground_truth": ""}, "missing:ground_truth"),
        ("llm_context_relevance", {"input": ""}, "missing:input"),
        ("llm_answer_correctness", {"ground_truth": None}, "missing:ground_truth"),
        ("llm_answer_similarity", {"output": None, "ground_truth": None}, "missing:output"),
        ("llm_hallucination", {"output": " ", "context": []}, "missing:context"),
        ("llm_hallucination", {"output": " \n"}, "empty_output"),
        ("llm_noise_sensitivity", {}, "missing:baseline"),
        ("llm_sql_semantic_equivalence", {"ground_truth": None}, "missing:ground_truth"),
        ("llm_sql_semantic_equivalence", {"output": None}, "missing:output"),
    ],
)
def test_nobody_is_asked_where_something_is_missing(models: ScriptedModels, name: str, changes: Any, reason: str) -> None:
    score = models.score(name, turn(**changes))
    assert (score.status, score.detail["reason"]) == ("skipped", reason)


# --- one by one


@pytest.mark.parametrize(
    ("name", "changes", "replies", "found"),
    [
        ("llm_faithfulness", {"output": ""}, [{"statements": ["  "]}], ("ok", 1.0, True, True)),
        ("llm_hallucination", {}, [{"claims": []}], ("ok", 0.0, None, True)),
        ("llm_context_recall", {}, [{"claims": [""]}], ("skipped", None, None, False)),
        ("llm_relevance", {"output": " \n "}, [], ("ok", 0.0, False, False)),
    ],
)
def test_a_text_that_states_nothing(models: ScriptedModels, name: str, changes: Any, replies: Any, found: Any) -> None:
    score = models.score(name, turn(**changes), *replies)
    assert (score.status, score.value, score.passed, score.vacuous) == found


@pytest.mark.parametrize("output", ["", " \n ", "Paris"])
def test_relevance_without_a_judge_is_skipped(output: str) -> None:
    assert oa.get_metric("llm_relevance").evaluate(turn(output=output)).detail == {"reason": "no_judge"}


@pytest.mark.parametrize(
    ("name", "reply", "detail"),
    [
        (
            "llm_relevance",
            {"score": 60, "addressesQuestion": "yes", "staysOnTopic": False, "irrelevantParts": ["June"], "reasoning": "so"},
            {"addresses_question": True, "stays_on_topic": False, "irrelevant_parts": ["June"], "reasoning": "so"},
        ),
        (
            "llm_answer_correctness",
            {"score": 50, "factsCorrect": ["May"], "factsIncorrect": ["June"], "factsMissing": [], "reasoning": "so"},
            {"facts_correct": ["May"], "facts_incorrect": ["June"], "facts_missing": [], "reasoning": "so"},
        ),
        ("llm_answer_similarity", {"score": 1, "reason": "so"}, {"reason": "so"}),
    ],
)
def test_the_detail_is_what_the_judge_found(models: ScriptedModels, name: str, reply: Any, detail: Any) -> None:
    score = models.score(name, turn(), reply)
    assert (score.detail, score.explanation) == (detail, "so")


def test_faithfulness_tells_what_is_unsupported(models: ScriptedModels) -> None:
    score = models.score("llm_faithfulness", turn(), {"statements": ["s0", "s1"]}, verdicts("no", "YES"))
    assert score.detail == {"statements": ["s0", "s1"], "unsupported": ["s0"]}
    assert score.explanation == "1 of 2 statements follow from the context"
    claims = {"score": 50, "faithfulClaims": ["a"], "hallucinatedClaims": ["b", ""], "reasoning": "so"}
    holistic = models.score("llm_faithfulness", turn(), claims, method="holistic")
    assert holistic.detail == {"faithful_claims": ["a"], "hallucinated_claims": ["b"], "unsupported": ["b"], "reasoning": "so"}


@pytest.mark.parametrize(("relevant", "value"), [("RNR", 5 / 6), ("NN", 0.0), ("NRR", (1 / 2 + 2 / 3) / 2)])
def test_context_precision_is_the_average_precision(models: ScriptedModels, relevant: str, value: float) -> None:
    words = [{"R": "relevant ", "N": "NOT_RELEVANT"}[letter] for letter in relevant]
    score = models.score("llm_context_precision", turn(context=["same"] * len(relevant)), *({"verdict": word} for word in words))
    assert unseen(models, "input") == []
    assert score.value == pytest.approx(value)
    assert score.passed is None
    assert score.detail == {
        "verdicts": [word.strip().upper() for word in words],
        "total_relevant": relevant.count("R"),
        "reasons": [None] * len(relevant),
    }


@pytest.mark.parametrize("name", ["llm_context_precision", "llm_context_recall"])
def test_only_the_holistic_method_has_a_threshold_of_its_own(models: ScriptedModels, name: str) -> None:
    scores = [
        models.score(name, turn(), {"score": score}, method="holistic", **more)
        for score, more in ((69.99, {}), (70, {}), (70, {"threshold": 0.8}))
    ]
    assert [score.passed for score in scores] == [False, True, False]


def test_a_threshold_is_compared_with_where_there_is_none_by_default(models: ScriptedModels) -> None:
    two = turn(context=["a", "b"])
    assert models.score("llm_context_precision", two, {"verdict": "NOT_RELEVANT"}, {"verdict": "RELEVANT"}, threshold=0.5).passed
    assert models.score("llm_context_relevance", two, {"relevant": [1]}, threshold=0.6).passed is False
    claims = {"claims": ["a", "b"]}
    assert models.score("llm_context_recall", turn(), claims, verdicts("SUPPORTED", "SUPPORTED"), threshold=1).passed is True
    assert (
        models.score("llm_hallucination", turn(), claims, verdicts("CONTRADICTED", "UNSUPPORTED"), threshold=0.4).passed is False
    )
    assert (
        models.score("llm_hallucination", turn(), claims, verdicts("CONTRADICTED", "UNSUPPORTED"), threshold=0.5).passed is True
    )
    assert models.score("llm_context_precision", two, {"score": 70}, method="holistic", threshold=0.8).passed is False
    weighed = models.score("llm_factuality", turn(), {"category": "A"}, scores={"A": 0.5}, threshold=0.6)
    assert (weighed.value, weighed.passed) == (0.5, False)
    assert models.score("llm_factuality", turn(), {"category": "B"}, scores={"A": 0.5}).value == 1.0


def test_context_recall_tells_what_is_missing(models: ScriptedModels) -> None:
    score = models.score("llm_context_recall", turn(), {"claims": ["a", "b"]}, verdicts("SUPPORTED"))
    assert score.detail == {
        "claims": [{"claim": "a", "verdict": "SUPPORTED"}, {"claim": "b", "verdict": "UNSUPPORTED"}],
        "missing": ["b"],
    }


ODD_PLACES = [4, -1, 1.5, True, None, {"a": 1}, "nowhere", "", "99999999999"]


@pytest.mark.parametrize(
    ("listed", "units"), [([0, "u1"], 1), (["0", 3, " u2 "], 3), (ODD_PLACES, 0), ([0, 1, 2, 3, "u4"], 4)], ids=str
)
def test_context_relevance_counts_the_chunks_that_are_named(models: ScriptedModels, listed: Any, units: int) -> None:
    score = models.score("llm_context_relevance", turn(context=["u1", "u2 ", "u3", "u4"]), {"relevant": listed})
    assert score.value == units / 4
    assert score.detail == {"relevant_units": units, "total_units": 4, "insufficient": False}


@pytest.mark.parametrize(
    "reply", [{"insufficient": "yes"}, {"insufficient": True, "relevant": [0]}, {"insufficient": 1, "relevant": 5}]
)
def test_an_insufficient_context_is_of_no_relevance(models: ScriptedModels, reply: Any) -> None:
    score = models.score("llm_context_relevance", turn(), reply)
    assert (score.value, score.detail["insufficient"], score.detail["total_units"]) == (0.0, True, 2)


def test_an_answer_that_is_the_ground_truth_is_correct_without_a_question(models: ScriptedModels) -> None:
    same = turn(output=" 42\n", ground_truth=42)
    score = models.score("llm_answer_correctness", same)
    assert (score.value, score.passed, score.detail) == (1.0, True, {"shortcut": "exact"})
    assert models.score("llm_answer_correctness", same, {"score": 10}, exact_shortcut=False).value == 0.1


def test_a_hallucination_contradicts_the_context(models: ScriptedModels) -> None:
    words = ("CONTRADICTED", "supported", "unsupported", "who knows", None)
    score = models.score("llm_hallucination", turn(), {"claims": list("abcde")}, verdicts(*words))
    assert score.value == pytest.approx(1 / 5)
    assert score.detail == {
        "supported": 1,
        "contradicted": 1,
        "unsupported": 3,
        "contradicted_claims": ["a"],
        "unsupported_rate": pytest.approx(3 / 5),
    }


@pytest.mark.parametrize(("params", "value"), [({}, 0.3), ({"fabrication_cap": 0.5, "threshold": 0.1}, 0.5)])
def test_what_is_made_up_fails_and_caps_the_value(models: ScriptedModels, params: Any, value: float) -> None:
    score = models.score("llm_groundedness", turn(), {"score": 95, "fabricatedElements": ["a study", " "]}, **params)
    assert (score.value, score.passed, score.detail["fabricated_elements"]) == (pytest.approx(value), False, ["a study"])


@pytest.mark.parametrize(("category", "value"), [(" c ", 1.0), ("D", 0.0), ("E", 1.0)], ids=str)
def test_factuality_is_the_score_of_the_category(models: ScriptedModels, category: str, value: float) -> None:
    score = models.score("llm_factuality", turn(), {"category": category, "reason": "so"})
    assert (score.value, score.passed) == (value, value > 0)
    assert score.detail == {"category": category.strip().upper(), "reason": "so"}


def test_noise_sensitivity_compares_with_the_baseline(models: ScriptedModels) -> None:
    models.score("llm_noise_sensitivity", turn(), {"score": 0.5}, baseline_response="in May", noisy_input="Wehn?")
    assert [text in models.asked[0] for text in ("in May", "Wehn?")] == [True, True]
    given_by_the_case = turn(references={"baseline_response": "in spring", "noisy_input": "wHEN"})
    assert models.score("llm_noise_sensitivity", given_by_the_case, {"score": 0.5}).value == 0.5
    assert [text in models.asked[0] for text in ("in spring", "wHEN")] == [True, True]


@pytest.mark.parametrize(("word", "equal"), [(" Yes", True), (1, True), ("fail", False)])
def test_sql_equivalence_reads_words_of_truth(models: ScriptedModels, word: Any, equal: bool) -> None:
    score = models.score("llm_sql_semantic_equivalence", turn(), {"equivalent": word, "reason": "so"})
    assert (score.value, score.passed, score.detail) == (float(equal), equal, {"equivalent": equal, "reason": "so"})
    inverse = models.score("llm_sql_semantic_equivalence", turn(), {"equivalent": word}, inverse=True)
    assert inverse.passed is not equal


def test_sql_equivalence_compares_with_the_reference_query(models: ScriptedModels) -> None:
    asks = turn(output="SELECT 1", ground_truth="the truth")
    params = {"reference_sql": "SELECT 2", "schema": {"tables": ["t_orders"]}}
    models.score("llm_sql_semantic_equivalence", asks, {"equivalent": 1}, **params)
    assert [text in models.asked[0] for text in ("SELECT 2", "t_orders", "the truth")] == [True, True, False]
    no_truth = turn(output="SELECT 1", ground_truth=None, references={"reference_sql": "SELECT 3"})
    assert models.score("llm_sql_semantic_equivalence", no_truth, {"equivalent": 1}).passed is True
    assert "SELECT 3" in models.asked[0]


def test_value_of_a_metric_replaces_the_ground_truth(models: ScriptedModels) -> None:
    """Trusys and promptfoo pass the expected answer as ``value``."""
    turn = oa.Turn(input="?", output="a", context=["Lima"])
    replies = ({"claims": ["It is Lima."]}, {"verdicts": [{"claim": "1", "reason": "stated", "verdict": "SUPPORTED"}]})
    score = models.score("trusys:context-recall", turn, *replies, value="It is Lima.")
    assert (score.status, score.value) == ("ok", 1.0)
    assert "It is Lima." in models.asked[0]
    assert turn.ground_truth is None
    assert oa.get_metric("trusys:context-recall").evaluate(turn, judge=models.judge).detail["reason"] == "missing:ground_truth"
    assert oa.get_metric("code_equals_ground_truth", value="a").evaluate(oa.Turn(output="a", ground_truth="b")).passed is True
