"""Judges of videos: the frames that they receive, and their scores."""

from __future__ import annotations

from typing import Any

import pytest

import otel_agenteval as oa
from tests.support.judges import ScriptedModels

PIXEL = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="
JUDGES = {
    "llm_video_visual_quality": ("resolution", "clarity", "colour_accuracy", "artifact_freedom"),
    "llm_text_to_video": ("subject_alignment", "action_alignment", "attribute_alignment", "scene_alignment"),
    "llm_video_temporal_consistency": ("motion_smoothness", "transition_naturalness", "flicker_freedom", "object_persistence"),
    "llm_video_factual_consistency": ("physical_plausibility", "object_integrity", "causal_coherence"),
}


def video(*frames: Any, **known: Any) -> dict[str, Any]:
    return {"modality": "video", "frames": list(frames), **known} if frames else {"modality": "video", **known}


def turn(*attachments: dict[str, Any], **known: Any) -> oa.Turn:
    return oa.Turn.from_dict({"input": "a red dog runs", "attachments": list(attachments), **known})


def scores(name: str, *given: Any) -> dict[str, Any]:
    return dict(zip(JUDGES[name], given, strict=False))


@pytest.mark.parametrize("name", JUDGES)
def test_the_value_is_the_mean_of_the_dimensions(models: ScriptedModels, name: str) -> None:
    given = scores(name, 10, "8", 3, 3)
    score = models.score(name, turn(video(uri="clip-7")), {"scores": {**given, "charm": 0}, "reason": "So."})
    assert score.value == pytest.approx(sum(map(float, given.values())) / (10 * len(given)))
    assert (score.passed, score.explanation) == (True, "So.")
    assert score.detail == {"dimension_scores": {key: float(value) for key, value in given.items()}, "reason": "So."}
    (asked,) = models.asked
    assert all(dimension in asked for dimension in JUDGES[name])
    assert "clip-7" in asked
    assert ("a red dog runs" in asked) is (name == "llm_text_to_video")
    form = asked.partition("Reply with one JSON object")[2]
    assert form.index('"evidence"') < min(form.index(f'"{dimension}": <0 to 10>') for dimension in JUDGES[name])


@pytest.mark.parametrize("name", ["llm_video_visual_quality", "llm_video_factual_consistency"])
@pytest.mark.parametrize(
    "spoiled",
    [
        pytest.param(lambda known: {"scores": {**known, next(iter(known)): "good"}}, id="one is no number"),
        pytest.param(lambda known: {"scores": {**known, next(iter(known)): 30}}, id="one is above the scale"),
        pytest.param(lambda known: {"scores": list(known.values())}, id="they are a list"),
    ],
)
def test_a_dimension_that_cannot_be_read_is_an_error(models: ScriptedModels, name: str, spoiled: Any) -> None:
    score = models.score(name, turn(video(uri="v")), spoiled(scores(name, 5, 5, 5, 5)))
    assert (score.status, score.error_type) == ("error", "invalid_reply")


def test_a_video_is_needed_before_its_prompt(models: ScriptedModels) -> None:
    assert models.score("llm_text_to_video", turn(input="")).detail == {"reason": "missing:video"}
    assert models.score("llm_text_to_video", turn(video(uri="v"), input="")).detail == {"reason": "missing:input"}
    for known in ({"modality": "image", "uri": "i"}, video(), video(transcript="hello")):
        assert models.score("llm_video_visual_quality", turn(known)).detail == {"reason": "missing:video"}


# --- frames


@pytest.mark.parametrize(
    ("total", "wanted", "places"),
    [
        pytest.param(16, 8, [0, 2, 4, 6, 8, 10, 12, 14], id="every second"),
        pytest.param(10, 3, [0, 3, 6], id="rounded down"),
        pytest.param(5, 1, [0], id="the first"),
    ],
)
def test_evenly_spaced_frames_are_shown(models: ScriptedModels, total: int, wanted: int, places: list[int]) -> None:
    name = "llm_video_visual_quality"
    frames = [f"https://example.com/frame-{place}.png" for place in range(total)]
    models.score(name, turn(video(*frames, uri="v")), {"scores": scores(name, 5, 5, 5, 5)}, num_frames=wanted)
    content = models.requests[0]["messages"][-1]["content"]
    assert [part["image_url"]["url"] for part in content[1:]] == [frames[place] for place in places]
    assert f"{len(places)} of {total} frames" in models.asked[0]


def test_the_judge_is_told_when_a_frame_is(models: ScriptedModels) -> None:
    name, reply = "llm_video_visual_quality", {"scores": scores("llm_video_visual_quality", 5, 5, 5, 5)}
    models.score(name, turn(video("f0", "f1", "f2", "f3", duration_s=10)), reply)
    assert "3. f2 at 5.00 s" in models.asked[0]
    models.score(name, turn(video("f0", "f1", "f2", "f3")), reply)
    assert "3. f2 at 50 % of its length" in models.asked[0]


def test_data_is_shown_and_not_written_out(models: ScriptedModels) -> None:
    name = "llm_video_visual_quality"
    models.score(name, turn(video(PIXEL)), {"scores": scores(name, 5, 5, 5, 5)})
    content = models.requests[0]["messages"][-1]["content"]
    assert PIXEL not in content[0]["text"]
    assert content[1]["image_url"]["url"] == PIXEL


def test_the_last_video_is_judged(models: ScriptedModels) -> None:
    name = "llm_video_visual_quality"
    made = {"role": "assistant", "attachments": [video(uri="made-by-agent")]}
    about = turn(video(uri="given-by-user"), messages=[{"role": "user", "attachments": [video(uri="given-by-user")]}, made])
    models.score(name, about, {"scores": scores(name, 5, 5, 5, 5)})
    assert "made-by-agent" in models.asked[0]
    assert "given-by-user" not in models.asked[0]


# --- criteria of one's own


def test_criteria_are_judged_step_by_step_and_required_before_the_video(models: ScriptedModels) -> None:
    replies = [{"steps": ["look"]}, {"score": 3, "reason": "dull"}]
    score = models.score("llm_video_g_eval", turn(video("f0", uri="v")), *replies, criteria="creativity")
    assert (score.value, score.passed, score.detail["steps"]) == (0.3, False, ["look"])
    assert all(text in models.asked[1] for text in ("creativity", "look", "f0", "a red dog runs"))
    assert models.score("llm_video_g_eval", turn()).error_type == "missing_parameter"
    assert models.score("llm_video_g_eval", turn(), criteria="c").detail == {"reason": "missing:video"}
    with pytest.raises(oa.ConfigError):
        oa.get_metric("llm_video_g_eval", criteria="")
    with pytest.raises(oa.ConfigError):
        oa.get_metric("llm_video_g_eval", criteria="c", num_frames=0)


# --- embeddings

VECTORS = {"t": [1.0, 0.0], "f0": [1.0, 0.0], "f1": [0.0, 1.0], "f2": [-1.0, 0.0], "f3": [0.6, 0.8]}


@pytest.mark.parametrize(
    ("frames", "num_frames", "value", "detail"),
    [
        (["f2", "f2", "f3"], 8, 0.6 * -1.4 / 3 + 0.4 * 0.6, {"avg": -1.4 / 3, "max": 0.6, "min": -1.0, "num_frames_analyzed": 3}),
        (["f2"], 8, 0.0, {"avg": -1.0, "max": -1.0, "min": -1.0, "num_frames_analyzed": 1}),
        (["f0", "f1", "f3", "f1"], 2, 0.6 * 0.8 + 0.4, {"avg": 0.8, "max": 1.0, "min": 0.6, "num_frames_analyzed": 2}),
    ],
)
def test_relevance_is_likeness_of_answer_and_frames(
    models: ScriptedModels, frames: list[str], num_frames: int, value: float, detail: dict[str, float]
) -> None:
    name = "embed_video_response_relevance"
    score = models.score(name, turn(video(*frames), output="t"), vectors=VECTORS, num_frames=num_frames)
    assert (score.value, score.passed) == (pytest.approx(max(0.0, value)), None)
    assert score.detail == pytest.approx(detail)
    assert len(models.requests) == 1


@pytest.mark.parametrize(
    ("attachments", "output", "reason"),
    [
        pytest.param([video("f0")], None, "missing:output", id="the answer is unknown"),
        pytest.param([video(uri="v")], "t", "missing:video", id="a video without frames"),
    ],
)
def test_relevance_does_not_apply(attachments: list[Any], output: str | None, reason: str) -> None:
    score = oa.get_metric("embed_video_response_relevance").evaluate(turn(*attachments, output=output))
    assert (score.status, score.detail) == ("skipped", {"reason": reason})
