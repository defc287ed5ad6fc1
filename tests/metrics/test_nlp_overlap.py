from __future__ import annotations

import math
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import otel_agenteval as oa
from otel_agenteval.metrics.lib.tokens import stem, tokens_of

REFERENCE_NAME = {
    "code_bleu": "references",
    "code_gleu": "references",
    "code_text_f1": "ground_truth",
    "code_rouge": "reference",
    "code_rouge_n": "reference",
    "code_meteor": "references",
}
SKIP_EMPTY = ("code_bleu", "code_gleu", "code_text_f1")


def evaluate(metric: str, output: str | None, reference: Any = None, **params: Any) -> oa.Score:
    given = {} if reference is None else {REFERENCE_NAME[metric]: reference}
    return oa.get_metric(metric, **given, **params).evaluate(oa.Turn(output=output))


# --- words ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tokenizer", "text", "tokens"),
    [
        pytest.param("ms", "Hello, World!", ["HELLO", ",", "WORLD", "!"], id="punctuation is a word of its own, in capitals"),
        pytest.param("ms", "pi 3.14, ok", ["PI", "3.14,", "OK"], id="a number keeps the punctuation after it"),
        pytest.param("ms", "3rd v1.5 $5+2", ["3", "RD", "V1", ".", "5", "$", "5", "+", "2"], id="a number ends its word"),
        pytest.param("ms", "exam-\nple well-\r\nknown a-b", ["EXAMPLE", "WELLKNOWN", "A", "-", "B"], id="broken lines"),
        pytest.param("ms", "a&lt;b &amp;&quot;c&apos;&gt;", ["A", "<", "B", "&", '"', "C", "'", ">"], id="entities"),
        pytest.param("ms", "straße\u00a0ok\u2003x", ["STRAßE", "OK", "X"], id="capitals, white space of any script"),
        pytest.param("ms", "1a2\u00b2 \u00bd.", ["1", "A2\u00b2", "\u00bd."], id="numbers of any kind"),
        pytest.param("word", "It's well_3,14 Ünïcode 東京", ["it", "s", "well", "3", "14", "ünïcode", "東", "京"], id="runs"),
        pytest.param("whitespace", "  The cat,\tsat.\n", ["the", "cat,", "sat."], id="white space divides"),
    ],
)
def test_words(tokenizer: Any, text: str, tokens: list[str]) -> None:
    assert tokens_of(text, tokenizer) == tokens


@pytest.mark.parametrize(
    ("word", "stemmed"),
    [
        ("running", "run"), ("walking", "walk"), ("seeing", "see"), ("bring", "bring"), ("string", "str"),
        ("stopped", "stop"), ("agreed", "agre"), ("used", "used"), ("boxes", "box"), ("does", "doe"), ("cats", "cat"),
        ("gas", "gas"), ("class", "clas"), ("falling", "fal"), ("cat", "cat"),
    ],
)  # fmt: skip
def test_stems(word: str, stemmed: str) -> None:
    assert stem(word) == stemmed


# --- values -----------------------------------------------------------------------------------------------------------

CAT = "the cat is on the mat"
WHITESPACE = {"tokenizer": "whitespace", "smoothing": "epsilon"}

VALUES = [
    pytest.param("code_bleu", {}, CAT, CAT.upper(), 1.0, id="bleu has no case, and takes one text"),
    pytest.param("code_bleu", WHITESPACE, "dog", [CAT], 1e-7 * math.exp(-5), id="bleu without a common word, by epsilon"),
    pytest.param("code_bleu", {**WHITESPACE, "max_n": 1}, "a b", ["a x", "b y"], 0.5, id="epsilon of the best one"),
    pytest.param("code_bleu", {"max_n": 1}, "a b c", ["a b c x", "a b"], 1.0, id="of two references as close the shorter counts"),
    pytest.param("code_bleu", {"tokenizer": "word"}, "!!!!", ["!!!!"], 1.0, id="bleu of an output without words"),
    pytest.param("code_gleu", {"min_n": 2}, "the", ["the"], 0.0, id="gleu of an output that is too short"),
    pytest.param("code_text_f1", {}, "b a a", "A B", 0.8, id="f1 has no order and no case"),
    pytest.param("code_text_f1", {}, "x", ["y", "x x"], 2 / 3, id="f1 of the best ground truth"),
    pytest.param("code_text_f1", {"tokenizer": "whitespace"}, "x.", "x", 0.0, id="f1 of another tokenizer"),
    pytest.param("code_rouge", {"variant": "rougeS"}, "a a", "a a a", 1 / 3, id="rougeS clips"),
    pytest.param("code_rouge", {}, "x y", ["a b", "y x"], 0.5, id="rouge of the best reference"),
    pytest.param("code_rouge", {}, "", "", 1.0, id="rougeL of two empty texts"),
    pytest.param("code_rouge", {}, "a", "!", 0.0, id="rougeL of a reference without words"),
    pytest.param("code_rouge", {"variant": "rouge2"}, "b", "a", 1.0, id="rouge2 of two texts of one word"),
    pytest.param("code_rouge", {"variant": "rougeS"}, "b", "a", 1.0, id="rougeS of two texts of one word"),
    pytest.param("code_rouge_n", {"measure": "recall"}, "the the the cat", "the cat sat on the mat", 0.5, id="or recall"),
    pytest.param("code_rouge_n", {"n": 2}, "The cat, sat", "the cat sat!", 1.0, id="rouge n of runs of two"),
    pytest.param("code_rouge_n", {}, "", "", 0.0, id="rouge n of two empty texts"),
    pytest.param("code_meteor", {}, "paris", ["paris"], 0.5, id="meteor of one word"),
    pytest.param("code_meteor", {"gamma": 0}, "paris", ["paris"], 1.0, id="meteor without a penalty"),
    pytest.param("code_meteor", {"beta": 0}, "a b", ["a b"], 0.5, id="meteor with a flat penalty"),
    pytest.param("code_meteor", {"gamma": 0}, "The dogs were running", ["the dog was runs"], 0.75, id="meteor of stems"),
    pytest.param("code_meteor", {"gamma": 0, "alpha": 1}, "a b", ["a b c d"], 0.5, id="meteor that is recall"),
    pytest.param("code_meteor", {"gamma": 0, "alpha": 0}, "a b", ["a b c d"], 1.0, id="meteor that is precision"),
    pytest.param("code_meteor", {}, "", ["a"], 0.0, id="meteor of an empty output"),
    pytest.param("code_meteor", {}, "!", ["?"], 0.0, id="meteor of two texts without words"),
]


@pytest.mark.parametrize(("metric", "params", "output", "reference", "value"), VALUES)
def test_values(metric: str, params: dict[str, Any], output: str, reference: Any, value: float) -> None:
    score = evaluate(metric, output, reference, **params)
    assert (score.status, score.value) == ("ok", pytest.approx(value, abs=1e-9))
    threshold = {"code_rouge": None, "code_meteor": None, "code_rouge_n": 0.75}.get(metric, 0.5)
    assert score.threshold == threshold
    assert score.passed is (None if threshold is None else score.value >= threshold - 1e-9)
    assert evaluate(metric, output, reference, threshold=0.9, **params).passed is (score.value >= 0.9 - 1e-9)


def test_details() -> None:
    """BLEU uses the shorter of two equally close references, GLEU the first of the best, METEOR the first unmatched word."""
    bleu = evaluate("code_bleu", "a b", ["a b c", "x"], max_n=2).detail
    assert bleu == {"precisions": [1, 1], "brevity_penalty": 1, "output_words": 2, "reference_words": 1}
    gleu = evaluate("code_gleu", "a b", ["x y", "a c", "b d"], max_n=2).detail
    assert gleu == {"matches": 1, "output_runs": 3, "reference_runs": 3, "reference_index": 1}
    meteor = evaluate("code_meteor", "a b x c a", ["y", "c a b a"]).detail
    assert meteor == {"matches": 4, "precision": 0.8, "recall": 1, "chunks": 3, "reference_index": 1}
    assert set(evaluate("code_meteor", "x", ["y", "z"]).detail.values()) == {0}


# --- what is compared, and what is not --------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", REFERENCE_NAME)
def test_does_not_apply_without_an_output_or_a_reference(metric: str) -> None:
    need = "ground_truth" if metric == "code_text_f1" else "references"
    assert evaluate(metric, None).detail == {"reason": "missing:output"}
    assert evaluate(metric, "").detail == {"reason": f"missing:{need}"}
    for nothing in ("", [], None, {}):
        score = oa.get_metric(metric).evaluate(oa.Turn(output="x", ground_truth=nothing))
        assert (score.status, score.detail) == ("skipped", {"reason": f"missing:{need}"})
    turn = oa.Turn(output="x", ground_truth="x")
    assert oa.get_metric(metric, **{REFERENCE_NAME[metric]: []}).evaluate(turn).detail == {"reason": f"missing:{need}"}


@pytest.mark.parametrize("output", ["", " \n"])
@pytest.mark.parametrize("metric", SKIP_EMPTY)
def test_does_not_apply_to_an_empty_output(metric: str, output: str) -> None:
    score = evaluate(metric, output, "x")
    assert (score.status, score.detail) == ("skipped", {"reason": "empty_output"})


@pytest.mark.parametrize("metric", REFERENCE_NAME)
def test_long_texts_are_not_compared(metric: str) -> None:
    for output, reference in (
        ("a" * 100_001, "a"),
        ("a", "a" * 100_001),
        ("a", ["a" * 50_000, "b" * 50_001]),
        ("a" * 50_001, ["a"] * 20),
    ):
        score = evaluate(metric, output, reference)
        assert (score.status, score.detail) == ("skipped", {"reason": "too_long"})
    assert evaluate(metric, "a" * 100_000, "a" * 100_000).status == "ok"


def test_skip_bigrams_of_many_words_are_not_counted() -> None:
    words = " ".join(map(str, range(1_000)))
    assert evaluate("code_rouge", words, "a b", variant="rougeS").status == "ok"
    for output, reference in ((words + " x", "a b"), ("a b", words + " x")):
        assert evaluate("code_rouge", output, reference, variant="rougeS").detail == {"reason": "too_long"}
        assert evaluate("code_rouge", output, reference).status == "ok"


@pytest.mark.parametrize("metric", REFERENCE_NAME)
def test_the_parameter_wins_over_the_turn_and_references_over_the_ground_truth(metric: str) -> None:
    turn = oa.Turn(
        output="a b c d", ground_truth="x y", references={} if metric == "code_text_f1" else {"references": ["y", "z"]}
    )
    assert oa.get_metric(metric).evaluate(turn).value == 0
    assert oa.get_metric(metric, **{REFERENCE_NAME[metric]: "a b c d"}).evaluate(turn).value > 0.9
    ours = oa.Turn(output="a b c d", ground_truth="a b c d", references=turn.references)
    assert (oa.get_metric(metric).evaluate(ours).value == 0) is (metric != "code_text_f1")


@pytest.mark.parametrize("metric", REFERENCE_NAME)
@pytest.mark.parametrize(
    ("truth", "output"),
    [
        pytest.param(["x y", "a b c d"], "a b c d", id="a list of texts"),
        pytest.param(1234, "1234", id="a number"),
        pytest.param({"a": [1, 2]}, '{"a":[1,2]}', id="an object is its JSON text"),
    ],
)
def test_a_ground_truth_of_any_type_is_text(metric: str, truth: Any, output: str) -> None:
    score = oa.get_metric(metric).evaluate(oa.Turn(output=output, ground_truth=truth))
    assert score.value == pytest.approx(evaluate(metric, output, output).value)
    assert score.value > 0


def test_runs_from_longer_to_shorter_are_an_error() -> None:
    score = evaluate("code_gleu", "a", "a", min_n=3, max_n=2)
    assert (score.status, score.value, score.error_type) == ("error", None, "invalid_parameter")


# --- oracles ----------------------------------------------------------------------------------------------------------


def _pairs(vocabulary: str, seed: int, count: int = 40) -> list[tuple[str, list[str]]]:
    """Return random texts of small vocabularies, so that n-grams of any length match."""
    rng = random.Random(seed)

    def text() -> str:
        return " ".join(rng.choices(vocabulary, k=rng.randint(1, 12)))

    return [(text(), [text() for _ in range(rng.randint(1, 3))]) for _ in range(count)]


def test_bleu_and_gleu_are_those_of_nltk() -> None:
    from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu
    from nltk.translate.gleu_score import sentence_gleu

    smoothing = SmoothingFunction().method4
    for output, references in _pairs("abc", 1) + _pairs("abcdefghij", 2):
        words = [reference.split() for reference in references]
        bleu = sentence_bleu(words, output.split(), smoothing_function=smoothing)
        assert evaluate("code_bleu", output, references).value == pytest.approx(bleu, abs=1e-9)
        assert evaluate("code_gleu", output, references).value == pytest.approx(sentence_gleu(words, output.split()), abs=1e-9)


def test_rouge_is_that_of_rouge_score() -> None:
    from rouge_score.rouge_scorer import RougeScorer

    oracle = RougeScorer(["rouge1", "rouge2", "rougeL"])
    for output, references in _pairs("abcd", 4):
        ours, reference = f"{output} end", f"start {references[0]}"  # two words at least: shorter texts have rules of their own
        for variant, found in oracle.score(reference, ours).items():
            wanted = {"precision": found.precision, "recall": found.recall, "f1": found.fmeasure}
            detail = evaluate("code_rouge", ours, reference, variant=variant).detail
            assert {key: detail[key] for key in wanted} == pytest.approx(wanted)
            if variant != "rougeL":
                assert evaluate("code_rouge_n", ours, reference, n=int(variant[-1])).value == pytest.approx(found.fmeasure)


def test_meteor_without_stems_and_repeated_words_is_that_of_nltk() -> None:
    from nltk.translate.meteor_score import single_meteor_score

    class Plain:
        def stem(self, word: str) -> str:
            return word

        def synsets(self, word: str) -> list[Any]:
            return []

    rng = random.Random(5)
    for _ in range(40):
        output, reference = (rng.sample("abcdefgh", k=rng.randint(1, 8)) for _ in range(2))
        wanted = single_meteor_score(reference, output, stemmer=Plain(), wordnet=Plain())  # type: ignore[arg-type]
        score = evaluate("code_meteor", " ".join(output), " ".join(reference), stemmer="none")
        assert score.value == pytest.approx(wanted, abs=1e-9)


# --- properties -------------------------------------------------------------------------------------------------------

CONFIGURED: list[tuple[str, dict[str, Any]]] = [
    ("code_bleu", {}),
    ("trusys:bleu", {}),
    ("code_bleu", {"tokenizer": "word", "max_n": 16}),
    ("code_gleu", {}),
    ("code_text_f1", {}),
    *[("code_rouge", {"variant": variant, "tokenizer": "ms"}) for variant in ("rouge1", "rouge2", "rougeL", "rougeS")],
    ("code_rouge", {"measure": "f1"}),
    ("code_rouge_n", {"n": 2}),
    ("code_meteor", {"gamma": 1, "beta": 0.1, "alpha": 0}),
    ("code_meteor", {"tokenizer": "whitespace"}),
]


@given(st.lists(st.sampled_from(["alpha", "beta", "42", "東京"]), min_size=4, max_size=10).map(" ".join))
def test_a_text_overlaps_fully_with_itself(text: str) -> None:
    for name, params in CONFIGURED:
        if name != "code_meteor" and not params.get("max_n"):
            assert oa.get_metric(name, **params).evaluate(oa.Turn(output=text, ground_truth=text)).value == pytest.approx(1)
    meteor = evaluate("code_meteor", text, text)
    assert meteor.value == pytest.approx(1 - 0.5 / len(tokens_of(text, "word")) ** 3)
