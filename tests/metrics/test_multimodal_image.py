from __future__ import annotations

from typing import Any

import pytest

import otel_agenteval as oa
from tests.support.judges import ScriptedModels

IMAGE, AUDIO, VIDEO = {"modality": "image"}, {"modality": "audio"}, {"modality": "video"}


def evaluate(output: str | None, *attachments: dict[str, Any], asked: str | None = None, **params: Any) -> oa.Score:
    turn = oa.Turn.from_dict({"input": asked, "output": output, "attachments": list(attachments)})
    return oa.get_metric("code_multimodal_coherence", **params).evaluate(turn)


@pytest.mark.parametrize(
    ("output", "attachments", "asked", "referenced", "connectives"),
    [
        pytest.param("a clip with voice", [VIDEO, AUDIO], None, ["audio", "video"], 0, id="always in the same order"),
        pytest.param("The document", [IMAGE], " ", [], 0, id="a blank question is no text"),
        pytest.param("The photo", [{"modality": "file", "mime_type": "image/png"}], None, ["image"], 0, id="by its media type"),
        pytest.param("It seems displayed", [IMAGE], None, [], 0, id="parts of words do not count"),
        pytest.param("while also additionally furthermore moreover", [IMAGE], None, [], 5, id="three connectives are enough"),
        pytest.param("In addition\n to it, along with that, together with both", [IMAGE], None, [], 3, id="several words"),
    ],
)
def test_coherence_is_coverage_and_connectives(
    output: str, attachments: list[dict[str, Any]], asked: str | None, referenced: list[str], connectives: int
) -> None:
    score = evaluate(output, *attachments, asked=asked)
    assert score.detail["referenced_modalities"] == referenced
    assert score.detail["coverage_score"] == len(referenced) / len(score.detail["present_modalities"])
    assert score.detail["coherence_score"] == min(1.0, connectives / 3)
    assert score.value == pytest.approx(0.6 * score.detail["coverage_score"] + 0.4 * score.detail["coherence_score"])
    assert score.passed is None


def test_attachments_of_messages_count_too() -> None:
    turn = oa.Turn.from_dict({"output": "a sound", "messages": [{"role": "user", "attachments": [AUDIO]}]})
    assert oa.get_metric("code_multimodal_coherence").evaluate(turn).detail["present_modalities"] == ["audio"]


@pytest.mark.parametrize(
    ("output", "attachments", "reason"),
    [
        pytest.param("x", [], "missing:image", id="nothing was given"),
        pytest.param("x", [{"modality": "document"}, {}], "missing:image", id="nothing that is heard or seen"),
    ],
)
def test_does_not_apply(output: str | None, attachments: list[dict[str, Any]], reason: str) -> None:
    score = evaluate(output, *attachments)
    assert (score.status, score.value, score.detail) == ("skipped", None, {"reason": reason})


# --- judges and embedders

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="
FACTS: dict[str, Any] = {
    "input": "Which bird is it?", "output": "A robin.", "ground_truth": "A robin with a red breast.", "context": ["Robins are red."],
}  # fmt: skip


def picture(uri: str = "photo-1", **known: Any) -> dict[str, Any]:
    return {"modality": "image", "uri": uri, **known}


def seen(*attachments: dict[str, Any], **changes: Any) -> oa.Turn:
    return oa.Turn.from_dict({**FACTS, "attachments": list(attachments), **changes})


def verdicts(*words: Any) -> dict[str, Any]:
    return {"verdicts": [{"verdict": word, "reason": "r"} for word in words]}


def test_each_image_is_judged_and_the_mean_counts(models: ScriptedModels) -> None:
    score = models.score(
        "llm_image_helpfulness", seen(picture("a1"), picture("b2")), {"score": 9, "reasoning": "clear"}, {"score": "5"}
    )
    assert (score.value, score.detail) == (pytest.approx(0.7), {"scores": [9.0, 5.0], "reasoning": "clear"})
    for asked, name in zip(models.asked, ("a1", "b2"), strict=True):
        assert all(text in asked for text in (name, FACTS["input"], FACTS["output"]))


def test_one_image_that_cannot_be_judged_is_an_error(models: ScriptedModels) -> None:
    score = models.score("llm_image_helpfulness", seen(picture("a"), picture("b")), {"score": 9}, {"score": "nice"})
    assert (score.status, score.error_type, score.value) == ("error", "invalid_reply", None)


def test_an_image_that_messages_repeat_is_judged_once(models: ScriptedModels) -> None:
    messages = [{"role": "user", "attachments": [picture()]}, {"role": "user", "attachments": [picture()]}]
    assert models.score("llm_image_helpfulness", seen(picture(), messages=messages), {"score": 5}).value == 0.5


@pytest.mark.parametrize(
    ("attachment", "shown"),
    [
        pytest.param(picture("https://example.com/a.png"), "https://example.com/a.png", id="an address"),
        pytest.param({"mime_type": "image/jpeg", "data": PIXEL}, f"data:image/png;base64,{PIXEL}", id="data of another type"),
        pytest.param(picture("id", data=PIXEL), f"data:image/png;base64,{PIXEL}", id="data rather than an id"),
    ],
)
def test_an_image_that_can_be_opened_goes_to_the_judge(models: ScriptedModels, attachment: Any, shown: str) -> None:
    models.score("llm_image_helpfulness", seen(attachment), {"score": 5})
    text, *parts = models.requests[0]["messages"][-1]["content"]
    assert [part["image_url"]["url"] for part in parts] == [shown]
    assert PIXEL not in text["text"]


def test_more_images_than_anybody_should_pay_for_are_not_judged(models: ScriptedModels) -> None:
    score = models.score("llm_image_helpfulness", seen(*(picture(f"i{place}") for place in range(101))))
    assert score.detail == {"reason": "too_long"}


CONTEXTUAL = {"llm_multimodal_contextual_relevancy": "input", "llm_multimodal_contextual_recall": "ground_truth"}


@pytest.mark.parametrize("name", CONTEXTUAL)
@pytest.mark.parametrize(
    ("reply", "value"), [(verdicts("yes", "no", "YES "), 2 / 3), ({"verdicts": ["no", *["yes"] * 3]}, 3 / 4), (verdicts(), 0.0)]
)
def test_the_share_of_yes_counts(models: ScriptedModels, name: str, reply: Any, value: float) -> None:
    score = models.score(name, seen(picture("a1"), picture("b2")), reply)
    assert (score.value, score.passed) == (pytest.approx(value), value >= 0.5)
    assert score.detail == {"verdicts": reply["verdicts"]}
    (asked,) = models.asked
    assert all(text in asked for text in ("a1", "b2", *FACTS["context"], FACTS[CONTEXTUAL[name]]))
    assert f"1. {FACTS['context'][0]}\n" in asked


@pytest.mark.parametrize("name", CONTEXTUAL)
@pytest.mark.parametrize("reply", [{}, {"verdicts": None}, {"verdicts": "yes"}, verdicts("idk"), {"verdicts": [{"reason": "r"}]}])
def test_verdicts_that_cannot_be_read_are_an_error(models: ScriptedModels, name: str, reply: Any) -> None:
    assert models.score(name, seen(picture()), reply).error_type == "invalid_reply"


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("llm_image_helpfulness", "input", "output"),
        ("llm_multimodal_contextual_relevancy", "input", "context"),
        ("llm_multimodal_contextual_recall", "ground_truth", "context"),
        ("embed_cross_modal_grounding", "output", None),
        ("embed_image_caption_accuracy", "output", "ground_truth"),
    ],
)
def test_the_first_need_that_is_absent_is_named(models: ScriptedModels, name: str, first: str, second: str | None) -> None:
    nothing = dict.fromkeys(FACTS)
    assert models.score(name, seen(**nothing)).detail == {"reason": f"missing:{first}"}
    if second is not None:
        known = {**FACTS, second: None}
        assert models.score(name, seen(picture(), **known)).detail == {"reason": f"missing:{second}"}
    if name != "embed_image_caption_accuracy":
        for unusable in ((), (AUDIO,), (IMAGE,), (picture(" "),)):
            assert models.score(name, seen(*unusable)).detail == {"reason": "missing:image"}
    reason = "no_judge" if name.startswith("llm_") else "no_embedder"
    assert oa.get_metric(name).evaluate(seen(picture())).detail == {"reason": reason}


VECTORS = {"A robin.": [1.0, 0.0], "i5": [0.5, 3**0.5 / 2], "i1": [0.1, 0.99**0.5], "away": [-1.0, 0.0], "flat": [0.0, 0.0]}


@pytest.mark.parametrize(
    ("uris", "params", "value", "similarity"),
    [
        pytest.param(["i1", "i5", "away"], {}, 1.0, 0.5, id="the most similar image counts"),
        pytest.param(["i5"], {"threshold": 0.5}, 1.0, 0.5, id="at the threshold"),
        pytest.param(["flat"], {}, 0.0, 0.0, id="a zero vector"),
        pytest.param(["away"], {"threshold": 0}, 0.0, -1.0, id="a threshold of 0"),
        pytest.param(["away"], {"threshold": -0.5}, 0.0, -1.0, id="a threshold below 0"),
    ],
)
def test_grounding_is_likeness_of_answer_and_image(
    models: ScriptedModels, uris: list[str], params: Any, value: float, similarity: float
) -> None:
    score = models.score("embed_cross_modal_grounding", seen(*map(picture, uris)), vectors=VECTORS, **params)
    grounded = value == 1.0
    assert (score.value, score.passed) == (pytest.approx(value), grounded)
    assert score.detail == {"similarity": pytest.approx(similarity), "is_grounded": grounded}
    assert len(models.requests) == 1


def test_grounding_of_an_empty_answer_does_not_apply(models: ScriptedModels) -> None:
    assert models.score("embed_cross_modal_grounding", seen(picture(), output=" ")).detail == {"reason": "empty_output"}


def test_a_caption_that_means_the_opposite_counts_by_its_words(models: ScriptedModels) -> None:
    vectors = {"A robin.": [1.0, 0.0], "robin. no": [-1.0, 0.0]}
    score = models.score("embed_image_caption_accuracy", seen(ground_truth="robin. no"), vectors=vectors)
    assert (score.value, score.detail["semantic_similarity"]) == (pytest.approx(0.3 * 0.5), 0.0)


def test_a_caption_by_words_alone_asks_nobody(models: ScriptedModels) -> None:
    score = models.score("embed_image_caption_accuracy", seen(output="a b"), use_semantic=False)
    assert (score.value, models.requests) == (pytest.approx(2 / 7), [])
    assert models.score("embed_image_caption_accuracy", seen(output=""), use_semantic=False).detail == {"reason": "empty_output"}
    assert models.score("embed_image_caption_accuracy", seen(ground_truth=" "), use_semantic=False).value == 0.0
