from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import otel_agenteval as oa

IMAGE, AUDIO, VIDEO = {"modality": "image"}, {"modality": "audio"}, {"modality": "video"}


def evaluate(output: str | None, *attachments: dict[str, Any], asked: str | None = None, **params: Any) -> oa.Score:
    turn = oa.Turn.from_dict({"input": asked, "output": output, "attachments": list(attachments)})
    return oa.get_metric("code_multimodal_coherence", **params).evaluate(turn)


@pytest.mark.parametrize(
    ("output", "attachments", "asked", "referenced", "connectives"),
    [
        pytest.param("I SEE it", [IMAGE], None, ["image"], 0, id="a word in any case"),
        pytest.param("a clip with voice", [VIDEO, AUDIO], None, ["audio", "video"], 0, id="always in the same order"),
        pytest.param("The document", [], "what?", ["text"], 0, id="text alone is a modality"),
        pytest.param("The document", [IMAGE], " ", [], 0, id="a blank question is no text"),
        pytest.param("The image", [AUDIO], None, [], 0, id="what was not given is not counted"),
        pytest.param("The photo", [IMAGE, IMAGE], None, ["image"], 0, id="two images are one modality"),
        pytest.param("The photo", [{"modality": "file", "mime_type": "image/png"}], None, ["image"], 0, id="by its media type"),
        pytest.param("It seems displayed", [IMAGE], None, [], 0, id="parts of words do not count"),
        pytest.param("see,image", [IMAGE], None, ["image"], 0, id="signs end a word"),
        pytest.param("also also ALSO", [IMAGE], None, [], 1, id="a connective counts once"),
        pytest.param(
            "In addition\n to it, along with that, together with both", [IMAGE], None, [], 3, id="connectives of several words"
        ),
        pytest.param("meanwhile, in additional", [IMAGE], None, [], 0, id="parts of connectives do not count"),
        pytest.param("while also additionally furthermore moreover", [IMAGE], None, [], 5, id="three connectives are enough"),
        pytest.param("", [IMAGE], None, [], 0, id="an empty answer"),
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


def test_without_word_boundaries_parts_of_words_count() -> None:
    score = evaluate("It seems ready, meanwhile", IMAGE, asked="q", word_boundaries=False)
    assert score.detail["referenced_modalities"] == ["image", "text"]
    assert score.value == pytest.approx(0.6 + 0.4 / 3)


def test_attachments_of_messages_count_too() -> None:
    turn = oa.Turn.from_dict({"output": "a sound", "messages": [{"role": "user", "attachments": [AUDIO]}]})
    assert oa.get_metric("code_multimodal_coherence").evaluate(turn).detail["present_modalities"] == ["audio"]


@pytest.mark.parametrize(
    ("output", "attachments", "reason"),
    [
        pytest.param(None, [IMAGE], "missing:output", id="the answer is unknown"),
        pytest.param(None, [], "missing:output", id="nothing is known"),
        pytest.param("x", [], "missing:image", id="nothing was given"),
        pytest.param("x", [{"modality": "document"}, {}], "missing:image", id="nothing that is heard or seen"),
    ],
)
def test_does_not_apply(output: str | None, attachments: list[dict[str, Any]], reason: str) -> None:
    score = evaluate(output, *attachments)
    assert (score.status, score.value, score.detail) == ("skipped", None, {"reason": reason})


def test_a_megabyte_is_read() -> None:
    score = evaluate("in " * 330_000 + "addition to the image", IMAGE)
    assert (score.detail["referenced_modalities"], score.detail["coherence_score"]) == (["image"], pytest.approx(1 / 3))


ATTACHMENTS = st.lists(
    st.dictionaries(
        st.sampled_from(["modality", "mime_type", "uri"]),
        st.none() | st.integers() | st.sampled_from(["image", "audio/wav", "x"]),
    )
)


@given(st.none() | st.text(), st.none() | st.text(), ATTACHMENTS, st.booleans())
def test_any_turn_gives_one_answer_in_range_and_is_not_changed(
    asked: str | None, output: str | None, attachments: list[dict[str, Any]], word_boundaries: bool
) -> None:
    turn = oa.Turn.from_dict({"input": asked, "output": output, "attachments": attachments})
    untouched = repr(turn.to_dict())
    metric = oa.get_metric("code_multimodal_coherence", word_boundaries=word_boundaries)
    score = metric.evaluate(turn)
    assert score == metric.evaluate(turn)
    assert score.status == "skipped" or 0 <= score.value <= 1
    assert repr(turn.to_dict()) == untouched


@pytest.mark.parametrize("alias", ["agentunit:multimodal_coherence", "agentunit:MultimodalCoherenceMetric"])
def test_names_of_the_other_catalogue_resolve(alias: str) -> None:
    assert oa.get_metric(alias).name == "code_multimodal_coherence"
