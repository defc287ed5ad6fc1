"""Metrics on real images, recordings and videos: their measurements, and what models receive."""

from __future__ import annotations

import base64
import gc
import io
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import otel_agenteval as oa
from otel_agenteval.evaluation.evaluator import evaluate as evaluate_all
from otel_agenteval.evaluation.selection import select_metrics
from otel_agenteval.media import decoding
from otel_agenteval.media.access import MediaContent
from otel_agenteval.media.metadata import without_metadata
from otel_agenteval.media.rules import Rules, opening
from tests.support.judges import ScriptedModels
from tests.support.media import blurred, image, moving, scenery, sound, speech, together, tone, uri, video, with_place

PICTURE = scenery(640, 480)
SHARP = {"modality": "image", "data": base64.b64encode(image(PICTURE)).decode()}


def picture(data: bytes, **more: Any) -> dict[str, Any]:
    return {"modality": "image", "data": base64.b64encode(data).decode(), **more}


def turn(*attachments: dict[str, Any], **known: Any) -> oa.Turn:
    return oa.Turn.from_dict({"input": "What is this?", "output": "A landscape.", "attachments": list(attachments), **known})


def evaluate(name: str, seen: oa.Turn, /, **params: Any) -> oa.Score:
    return oa.get_metric(name, **params).evaluate(seen)


def clip() -> dict[str, Any]:
    """Return a video of one second."""
    return {"modality": "video", "data": base64.b64encode(video(moving(1))).decode()}


def media_in(models: ScriptedModels) -> list[bytes]:
    """Return the images of the last judge call."""
    parts = models.requests[-1]["messages"][-1]["content"]
    return [base64.b64decode(part["image_url"]["url"].partition(",")[2]) for part in parts if part["type"] == "image_url"]


# --- images that are measured


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("code_image_sharpness", blurred(PICTURE, 4)),
        ("code_image_exposure", np.clip(PICTURE.astype(int) + 230, 0, 255).astype(np.uint8)),
        ("code_image_blank", np.full_like(PICTURE, 240)),
    ],
)
def test_a_bad_image_is_told_from_a_good_one(name: str, bad: Any) -> None:
    good = evaluate(name, turn(SHARP))
    assert (good.value, good.passed) == (1.0, True)
    found = evaluate(name, turn(SHARP, picture(image(bad, "JPEG"))))
    assert (found.value, found.passed, len(found.detail["images"])) == (0.5, False, 2)
    assert found.detail["images"][0] | {"width": 640, "height": 480} == found.detail["images"][0]


def test_an_image_that_is_there_twice() -> None:
    small = np.asarray(Image.fromarray(PICTURE).resize((320, 240)))
    others = [picture(image(scenery(seed=seed))) for seed in (4, 5)]
    found = evaluate("code_image_duplicate", turn(SHARP, *others, picture(image(small, "JPEG"))))
    assert (found.value, found.passed) == (0.75, False)
    ((place, first, how),) = found.detail["duplicates"]
    assert (place, first) == (3, 0)
    assert how > 0.95
    assert evaluate("code_image_duplicate", turn(SHARP, *others)).passed
    assert evaluate("code_image_duplicate", turn(SHARP)).detail == {"reason": "not_applicable:one_image"}


@pytest.fixture(scope="module")
def invoice() -> dict[str, Any]:
    """Return a picture of some writing."""
    from PIL import ImageDraw, ImageFont

    page = Image.new("RGB", (640, 200), "white")
    draw, font = ImageDraw.Draw(page), ImageFont.load_default(size=36)
    draw.text((20, 20), "Invoice 4711", fill="black", font=font)
    draw.text((20, 100), "Total: 129.50 EUR", fill="black", font=font)
    return picture(image(np.asarray(page)))


@pytest.mark.slow
def test_writing_in_images_is_compared_with_the_answer(invoice: dict[str, Any]) -> None:
    pytest.importorskip("rapidocr")
    blank = picture(image(np.full((200, 300, 3), 255, np.uint8)))

    def overlap(output: str | None, *images: dict[str, Any], truth: str | None = None, **params: Any) -> oa.Score:
        seen = oa.Turn.from_dict({"attachments": list(images), "output": output, "ground_truth": truth})
        return oa.get_metric("code_image_text_overlap", **params).evaluate(seen)

    whole = overlap("It is invoice 4711, with a total of 129.50 EUR.", invoice, blank)
    assert (whole.value, whole.passed, whole.detail) == (1.0, True, {"read": 5, "words": 10, "found": 5})
    assert overlap("invoice 4712 over 129.50 EUR", invoice).value == pytest.approx(3 / 5)
    assert overlap("invoice 4712 over 129.50 EUR", invoice, share_of="text").value == pytest.approx(3 / 5)
    made = overlap("Here it is.", invoice, truth="INVOICE 4711", share_of="text", against="ground_truth")
    assert made.value == 1.0
    assert overlap("x", blank).detail["reason"] == "no_writing"
    assert overlap(None, invoice).detail == {"reason": "missing:output"}
    assert overlap("x", invoice, against="ground_truth").detail == {"reason": "missing:ground_truth"}


def test_what_cannot_be_read_ends_no_process_but_its_own(invoice: dict[str, Any]) -> None:
    pytest.importorskip("rapidocr")
    assert evaluate("code_image_text_overlap", turn(picture(image(PICTURE)[:3000]))).error_type == "invalid_media"
    with opening(Rules(max_pixels=1_000)):
        assert evaluate("code_image_text_overlap", turn(invoice)).error_type == "media_too_large"


IMAGES = ("code_image_sharpness", "code_image_exposure", "code_image_blank", "code_image_duplicate")
SOUNDS = ("code_audio_silence", "code_audio_clipping", "code_audio_talk_over")


@pytest.mark.parametrize("name", IMAGES)
def test_images_that_are_not_there_or_not_open(name: str) -> None:
    assert oa.get_metric(name).not_applicable(turn()).detail == evaluate(name, turn()).detail == {"reason": "missing:image"}
    for reference in ("img-7", "https://cdn.example.com/a.png", "file:///srv/a.png"):
        assert evaluate(name, turn({"modality": "image", "uri": reference})).detail == {"reason": "media_not_open"}
    assert evaluate(name, turn(*[picture(image(scenery(16, 16, seed=n))) for n in range(101)])).detail == {"reason": "too_long"}


@pytest.mark.parametrize("name", [*IMAGES, *SOUNDS])
def test_what_is_broken_or_lies_is_an_error(name: str) -> None:
    kind = "image" if name in IMAGES else "audio"
    for data in (image(PICTURE)[:200], b"<html>no</html>", b"PK\x03\x04" + bytes(100)):
        beside = [SHARP] if name == "code_image_duplicate" else []
        score = evaluate(
            name, turn(*beside, {"modality": kind, "mime_type": f"{kind}/png", "data": base64.b64encode(data).decode()})
        )
        assert (score.status, score.error_type, score.value) == ("error", "invalid_media", None)


def test_without_its_package_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib
    import importlib.util

    def absent(module: str, *more: Any) -> Any:
        if module.startswith(("PIL", "av", "webrtcvad")):
            raise ModuleNotFoundError(module)
        return real(module, *more)

    real, find = importlib.import_module, importlib.util.find_spec
    monkeypatch.setattr(importlib, "import_module", absent)
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name in ("PIL", "av", "webrtcvad") else find(name, *more)
    )
    heard = {"modality": "audio", "data": base64.b64encode(sound(tone(1))).decode()}
    for name, seen in (("code_image_sharpness", turn(SHARP)), ("code_audio_talk_over", turn(heard))):
        assert "otel-agenteval[media]" in str(evaluate(name, seen).explanation)


# --- recordings that are measured


def recording(samples: Any, **options: Any) -> dict[str, Any]:
    return {"modality": "audio", "data": base64.b64encode(sound(samples, **options)).decode()}


def test_silence_and_clipping_of_the_worst_recording() -> None:
    half, full = np.concatenate([tone(2), np.zeros(32_000)]), tone(2)
    found = evaluate("code_audio_silence", turn(recording(full), recording(half)))
    assert found.value == pytest.approx(0.5, abs=0.02)
    assert [one["silence"] for one in found.detail["recordings"]] == pytest.approx([0, 0.5], abs=0.02)
    clipped = evaluate("code_audio_clipping", turn(recording(full), recording(np.clip(full * 6, -1, 1))))
    assert (clipped.passed, clipped.value) == (False, pytest.approx(0.57, abs=0.1))
    assert clipped.detail["recordings"][0]["clipped"] == 0


@pytest.fixture(scope="module")
def call(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return a call in which a user (second channel) interrupts an agent (first channel) after 3 seconds."""
    folder = tmp_path_factory.mktemp("voices")
    agent = speech("Good morning, this is the service desk. Let me read you the conditions of your contract.", folder)
    user = speech("Stop please, I only want to cancel.", folder, voice="en+f3")
    return recording(together([(0.5, agent)], [(3.0, user)], seconds=9))


def test_talking_at_the_same_time(call: dict[str, Any]) -> None:
    found = evaluate("code_audio_talk_over", turn(call))
    (heard,) = found.detail["recordings"]
    assert found.value == pytest.approx(heard["talk_over_s"] / heard["speech_s"])
    assert 0.2 < found.value < 0.6
    assert [one["by_channel"] for one in heard["interruptions"]] == [2]
    assert evaluate("code_audio_talk_over", turn(recording(tone(2)))).detail == {"reason": "not_applicable:one_channel"}
    silent = evaluate(
        "code_audio_talk_over", turn(recording(np.stack([np.zeros(32_000), tone(2, level=0.001, hertz=50) + 0.02])))
    )
    assert (silent.value, silent.detail["vacuous"]) == (0.0, True)


def test_the_judge_of_interruptions_reads_what_was_measured(models: ScriptedModels, call: dict[str, Any]) -> None:
    reply = {"interruptions": [{"statement": "Stop please", "at_s": 3, "reason": "it went on", "handled": False}]}
    score = models.score("llm_audio_interruption_handling", turn(call), reply)
    assert score.value == 0
    assert [one["by_channel"] for one in score.detail["measured"][0]["interruptions"]] == [2]
    (asked,) = models.asked
    assert "channel 2 begins while channel 1 speaks, which stops" in asked
    sent = models.requests[-1]["messages"][-1]["content"][1]
    data = base64.b64encode(without_metadata(base64.b64decode(call["data"]))).decode()
    assert sent == {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}}


def test_a_transcript_can_come_with_the_recording() -> None:
    pytest.importorskip("jiwer")
    heard = {"modality": "audio", "uri": "call-7", "transcript": "stop please i want to cancel"}
    seen = oa.Turn.from_dict({"attachments": [heard], "ground_truth": "stop please i want to cancel it"})
    found = evaluate("code_audio_transcription_quality", seen)
    assert found.value == pytest.approx(1 - 1 / 7)
    said = oa.Turn.from_dict({"output": "stop", "attachments": [heard], "ground_truth": "stop"})
    assert evaluate("code_audio_transcription_quality", said).value == 1.0, "the output comes first"


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the kinds of media that were decoded so far."""
    made: list[str] = []
    real = decoding._decoded
    monkeypatch.setattr(decoding, "_decoded", lambda task, *more: (made.append(task), real(task, *more))[1])
    return made


def test_nothing_is_opened_for_a_model_that_is_not_there(call: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    from otel_agenteval.media import access

    monkeypatch.setattr(access, "_decoded_uri", lambda *given: pytest.fail("it was opened"))
    for name, reason in (
        ("llm_video_visual_quality", "no_judge"),
        ("llm_audio_sentiment", "no_judge"),
        ("embed_video_response_relevance", "no_embedder"),
    ):
        score = oa.get_metric(name).evaluate(oa.Turn.from_dict({"input": "?", "output": "!", "attachments": [clip(), call]}))
        assert (score.status, score.detail) == ("skipped", {"reason": reason}), name


def test_nothing_is_kept_of_media_that_were_opened(call: dict[str, Any]) -> None:
    held = (MediaContent, Image.Image)
    before = {id(one) for one in gc.get_objects() if isinstance(one, held)}
    for name in ("code_image_duplicate", "code_audio_silence"):
        evaluate(name, turn(SHARP, call))
    gc.collect()
    assert {id(one) for one in gc.get_objects() if isinstance(one, held)} <= before


# --- what a judge sees


def test_the_frames_of_a_real_video_with_their_times_and_measures(models: ScriptedModels) -> None:
    scenes = [blurred(scenery(seed=seed), 0.7) for seed in (5, 6)]
    data = video([np.roll(scene, n, axis=1) for scene in scenes for n in range(50)])
    clip = {"modality": "video", "mime_type": "video/mp4", "data": base64.b64encode(data).decode()}
    dimensions = dict.fromkeys(("motion_smoothness", "transition_naturalness", "flicker_freedom", "object_persistence"), 5)
    score = models.score("llm_video_temporal_consistency", turn(clip), {"scores": dimensions, "reason": "So."}, num_frames=4)
    assert score.value == 0.5
    assert score.detail["measured"]["cuts_s"] == [2.0]
    (asked,) = models.asked
    assert "1. at 0.00 s\n2. at 1.00 s\n3. at 2.00 s\n4. at 3.00 s" in asked
    assert "cuts at 2.0 s" in asked
    sent = [np.asarray(Image.open(io.BytesIO(one)).convert("RGB")).astype(int) for one in media_in(models)]
    wanted = [scenes[0], np.roll(scenes[0], 25, axis=1), scenes[1], np.roll(scenes[1], 25, axis=1)]
    assert [np.abs(one - right).mean() < 8 for one, right in zip(sent, wanted, strict=True)] == [True] * 4, (
        "other frames than it says"
    )

    models.score("llm_video_temporal_consistency", turn(clip), {"scores": dimensions, "reason": "So."}, sampling="scenes")
    assert "1. at 1.00 s\n2. at 3.00 s\n" in models.asked[0]


def test_judges_of_one_run_see_the_frames_that_were_decoded_once(models: ScriptedModels, decoded: list[str]) -> None:
    dimensions = ("resolution", "clarity", "colour_accuracy", "artifact_freedom", "subject_alignment", "action_alignment", "attribute_alignment",
                  "scene_alignment", "physical_plausibility", "object_integrity", "causal_coherence")  # fmt: skip
    metrics = [oa.get_metric(name) for name in ("llm_video_visual_quality", "llm_text_to_video", "llm_video_factual_consistency")]
    metrics.append(oa.get_metric("llm_video_g_eval", criteria="It moves.", steps=["Look."]))
    models.play(*[{"scores": dict.fromkeys(dimensions, 7), "reason": "So."}] * 3, {"score": 7, "reason": "So."})
    scores = evaluate_all(turn(clip()), metrics, judge=models.judge)
    assert [(score.value, score.detail["measured"]["fps"]) for score in scores] == [(0.7, 25.0)] * 4
    assert len(media_in(models)) == 8
    assert decoded == ["video"]


def test_a_video_that_is_broken_is_not_judged(models: ScriptedModels) -> None:
    data = video(moving(1))
    score = models.score(
        "llm_video_visual_quality", turn({"modality": "video", "data": base64.b64encode(data[: len(data) // 2]).decode()})
    )
    assert (score.status, score.error_type) == ("error", "invalid_media")


def test_frames_of_a_video_are_embedded(models: ScriptedModels) -> None:
    seen: dict[str, Any] = {}

    class Vectors(dict[str, Any]):
        def __contains__(self, text: object) -> bool:
            return True

        def __getitem__(self, text: str) -> Any:
            seen[text] = text
            return [1.0, 0.0] if text == "A landscape." else [0.6, 0.8]

    score = models.score("embed_video_response_relevance", turn(clip()), vectors=Vectors(some="thing"), num_frames=3)
    assert (score.value, score.detail["num_frames_analyzed"]) == (pytest.approx(0.6), 3)
    assert sum(text.startswith("data:image/jpeg;base64,") for text in seen) == 3


# --- what the configuration allows


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """Return a folder with an image, and its URL."""
    (tmp_path / "a.jpg").write_bytes(with_place(PICTURE))
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path)))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    yield tmp_path, f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args: Any) -> None:
        pass


def configured(media: dict[str, Any], *metrics: Any) -> list[oa.BoundMetric]:
    return select_metrics(oa.Config(media=media, metrics=list(metrics), inline={"metrics": []}))


def test_an_allowed_host_or_folder_is_opened(models: ScriptedModels, folder: tuple[Path, str]) -> None:
    path, host = folder
    allowed = {"hosts": [host], "private_addresses": True, "folders": [str(path)]}
    for address in (f"http://{host}/a.jpg", f"file://{path}/a.jpg"):
        seen = turn({"modality": "image", "uri": address})
        sharp, helpful = configured(allowed, "code_image_sharpness", "llm_image_helpfulness")
        assert sharp.evaluate(seen).value == 1.0
        models.play({"reasoning": "ok", "score": 8})
        assert helpful.evaluate(seen, judge=models.judge).value == 0.8
        (sent,) = media_in(models)
        assert b"Mustermann" not in sent
        assert Image.open(io.BytesIO(sent)).size == (640, 480)


def test_without_leave_an_address_goes_to_the_model_as_it_is(models: ScriptedModels, folder: tuple[Path, str]) -> None:
    path, host = folder
    (helpful,) = configured({}, "llm_image_helpfulness")
    models.play({"reasoning": "ok", "score": 8})
    assert helpful.evaluate(turn({"modality": "image", "uri": f"http://{host}/a.jpg"}), judge=models.judge).value == 0.8
    assert models.requests[0]["messages"][-1]["content"][1]["image_url"]["url"] == f"http://{host}/a.jpg"
    models.play()
    score = helpful.evaluate(turn({"modality": "image", "uri": f"file://{path}/a.jpg"}), judge=models.judge)
    assert (score.status, score.error_type) == ("error", "media_not_allowed")


def test_metrics_inside_of_composites_may_open_the_same(folder: tuple[Path, str]) -> None:
    path, _ = folder
    inner = {"metrics": [{"code_image_sharpness": {}}, {"code_image_blank": {}}]}
    (both,) = configured({"folders": [str(path)]}, {"code_composite_mean": inner})
    assert both.evaluate(turn({"modality": "image", "uri": f"file://{path}/a.jpg"})).value == 1.0


def test_an_image_is_scaled_to_what_is_configured(models: ScriptedModels) -> None:
    (helpful,) = configured({"max_edge": 100}, "llm_image_helpfulness")
    models.play({"reasoning": "ok", "score": 8})
    assert helpful.evaluate(turn(SHARP), judge=models.judge).value == 0.8
    assert Image.open(io.BytesIO(media_in(models)[0])).size == (100, 75)


def test_the_same_image_in_a_conversation_is_one() -> None:
    again = {"role": "user", "content": "?", "attachments": [SHARP]}
    found = evaluate("code_image_sharpness", turn(SHARP, messages=[again]))
    assert len(found.detail["images"]) == 1
    assert uri(image(PICTURE), "image/png").endswith(SHARP["data"])
