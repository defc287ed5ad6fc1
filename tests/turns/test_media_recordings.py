"""Recordings of real SDKs and frameworks with media: each turn has the media that the model's server received."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.media.access import content_of, may_open
from otel_agenteval.metrics.lib.media import attachments_of, media_of
from tests.support.recordings import files_in

FILES = files_in("media.tar.xz")
SETS = sorted(name.removesuffix(".jsonl") for name in FILES if name.endswith(".jsonl"))
NOT_WRITTEN: Mapping[tuple[str, str], str] = {
    ("adk", "What is in this picture?"): "ADK writes <not serializable> in the place of bytes",
    (
        "openai-chat-traceloop",
        "What is in this picture?",
    ): "Traceloop wants to upload images, and writes no message where it cannot",
    ("openai-responses-traceloop", "What does this paper say?"): "Traceloop writes a file's name without the file",
}
"""Media that the model received, but that no span of a set contains."""


@pytest.fixture(scope="module", params=SETS)
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[oa.Turn], list[Any]]:
    """Return a set's name, its turns in order, and their truth."""
    file = Path(tmp_path_factory.mktemp("media"), "spans.jsonl")
    file.write_text(FILES[f"{request.param}.jsonl"], encoding="utf-8")
    turns = sorted(oa.load_turns(file), key=lambda turn: turn.start or 0)
    return request.param, turns, json.loads(FILES[f"{request.param}.truth.json"])


def told_of(attachment: Mapping[str, Any]) -> dict[str, str] | None:
    """Return a medium in the form of the truth, or None if only its kind is known."""
    address = str(attachment.get("uri") or "")
    if address and not address.startswith("data:"):
        return {"uri": address}
    text = attachment.get("data") or address.partition(",")[2]
    if not text:
        return None
    data = base64.b64decode(str(text).replace("-", "+").replace("_", "/"))
    return {"kind": str(attachment["modality"]), "sha256": hashlib.sha256(data).hexdigest()[:16]}


def test_each_turn_has_its_media(recorded: tuple[str, list[oa.Turn], list[Any]]) -> None:
    name, turns, truth = recorded
    assert len(turns) == len(truth)
    for turn, wanted in zip(turns, truth, strict=True):
        assert turn.output == wanted["output"]
        found = [told for attachment in attachments_of(turn) if (told := told_of(attachment)) is not None]
        if (name, wanted["input"]) in NOT_WRITTEN:
            assert found == [], "it is written now: take it from the list"
            continue
        assert turn.input == wanted["input"]
        assert list({json.dumps(one): one for one in found}.values()) == wanted["media"], wanted["input"]


def test_what_came_with_a_turn_can_be_opened(recorded: tuple[str, list[oa.Turn], list[Any]]) -> None:
    _, turns, _ = recorded
    for turn in turns:
        for kind in ("image", "audio", "video"):
            for medium in media_of(turn, kind):  # type: ignore[arg-type]
                if medium.reference is not None and may_open(medium.reference):
                    assert content_of(medium.reference, kind).mime in ("image/png", "audio/wav")


def test_metrics_measure_them(recorded: tuple[str, list[oa.Turn], list[Any]]) -> None:
    _, turns, _ = recorded
    scores = [oa.get_metric(name).evaluate(turn) for turn in turns for name in ("code_image_blank", "code_audio_silence")]
    assert not [score for score in scores if score.status == "error"]
    opened = sum(media.reference is not None and may_open(media.reference) for turn in turns for media in media_of(turn, "image"))
    assert sum(score.metric == "code_image_blank" and score.passed is True for score in scores) == opened
