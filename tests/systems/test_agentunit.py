"""AgentUnit's documented cases, metrics and custom metrics, as printed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import otel_agenteval as oa
from tests.support.media import image, scenery

# --- media of a case


class PixelEmbedder:
    """An embedder that gives images and texts the same direction, and records what it was given."""

    def __init__(self) -> None:
        self.given: list[str] = []

    def embed(self, texts: list[str]) -> list[list[float]]:
        self.given = [*texts]
        return [[1.0, 0.0] for _ in texts]


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    path = tmp_path / "cat picture.png"
    path.write_bytes(image(scenery()))
    return path


def grounding(case: dict[str, Any], **media: Any) -> tuple[oa.Score, list[str]]:
    embedder = PixelEmbedder()
    result = oa.evaluate(
        lambda question: "A cat.", [case], ["agentunit:CrossModalGroundingMetric"], config={"media": media}, embedder=embedder
    )
    return result.scored[0][1][0], embedder.given


def test_image_path_of_a_case_is_its_image(picture: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(picture.parent)
    for path in (str(picture), picture.name, picture.as_uri(), [picture.name]):
        score, given = grounding({"query": "What is this?", "metadata": {"image_path": path}}, folders=[str(picture.parent)])
        assert (score.value, score.detail["is_grounded"]) == (1.0, True)
        assert given[1].startswith("data:image/png;base64,")


def test_image_path_outside_of_the_folders_is_an_error(picture: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    for folders, error in (([], "media_not_allowed"), ([str(tmp_path / "other")], "media_not_found")):
        score, given = grounding({"query": "?", "metadata": {"image_path": str(picture)}}, folders=folders)
        assert (score.status, score.error_type, given) == ("error", error, [])


def test_address_of_an_image_goes_to_the_model() -> None:
    score, given = grounding({"query": "?", "metadata": {"image_path": "https://a.example/cat.png"}})
    assert (score.value, given[1]) == (1.0, "https://a.example/cat.png")


@pytest.mark.parametrize(("key", "modality"), [("image_path", "image"), ("video_path", "video"), ("audio_path", "audio")])
def test_paths_in_metadata_are_modalities(key: str, modality: str) -> None:
    turn = oa.Turn(input="?", output="It shows and says it.", metadata={key: "a.bin", "note": "x"})
    score = oa.get_metric("agentunit:MultimodalCoherenceMetric").evaluate(turn)
    assert score.detail["present_modalities"] == sorted(["text", modality], key=["image", "audio", "video", "text"].index)
