"""Videos and recordings with an inserted fault. Only the measure of this fault changes."""

from __future__ import annotations

import base64
import io
import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import psutil
import pytest
from PIL import Image

from otel_agenteval.core.errors import MetricError
from otel_agenteval.media import decoder, decoding
from otel_agenteval.media import sound as sound_here
from otel_agenteval.media import video as video_here
from otel_agenteval.media.access import MediaContent, type_of
from otel_agenteval.media.decoding import Video, sound_of, video_of
from otel_agenteval.media.rules import Rules, opening
from otel_agenteval.media.sound import Limits
from tests.support.media import blurred, moving, scenery, sound, speech, together, tone, video

GOOD = moving(2)
STILL_RULES = Rules()


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Decode in this process, because starting another process takes time."""

    def run(command: Any, **options: Any) -> Any:
        order, _, data = options["input"].partition(b"\n")
        return SimpleNamespace(stdout=json.dumps(decoder._decoded(json.loads(order), data)).encode(), returncode=0)

    monkeypatch.setattr(decoder, "limit", lambda order: None)
    monkeypatch.setattr(decoding, "subprocess", SimpleNamespace(**{**vars(subprocess), "run": run}))


def watched(pictures: Any, frames: int = 8, sampling: Any = "even", **options: Any) -> Video:
    data = video(pictures, **options)
    return video_of(MediaContent(data, type_of(data) or ""), frames, sampling)


def measures(pictures: Any, **options: Any) -> dict[str, Any]:
    return watched(pictures, **options).measured


def listened(samples: Any, *, find_speech: bool = False, **options: Any) -> dict[str, Any]:
    data = sound(samples, **options)
    return sound_of(MediaContent(data, type_of(data) or ""), speech=find_speech)


def fault(data: bytes, mime: str | None = None, rules: Rules = STILL_RULES) -> str:
    mime = mime or type_of(data) or "video/mp4"
    read = (lambda one: video_of(one, 4)) if mime.startswith("video") else sound_of
    with opening(rules), pytest.raises(MetricError) as caught:
        read(MediaContent(data, mime))
    return caught.value.error_type


def shown(found: Video) -> list[Image.Image]:
    return [Image.open(io.BytesIO(base64.b64decode(frame.uri.partition(",")[2]))) for frame in found.frames]


# --- videos


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(("form", "codec"), [("mp4", "libx264"), ("webm", "libvpx-vp9"), ("avi", "mpeg4")])
def test_a_good_video_has_no_faults(form: str, codec: str) -> None:
    found = measures(GOOD, form=form, codec=codec)
    assert (found["width"], found["height"], found["fps"]) == (320, 240, 25.0)
    assert found["duration_s"] == found["measured_s"] == pytest.approx(2, abs=0.05)
    assert found["sharpness"] > 50
    assert found["blockiness"] < 1.6
    assert found["flicker"] < 0.3
    assert [found[name] for name in ("cuts_s", "jumps_s", "frozen_s", "black_s")] == [[], [], [], []]


@pytest.mark.usefixtures("here")
def test_blur() -> None:
    found = [measures([blurred(one, radius) for one in GOOD[:20]])["sharpness"] for radius in (0, 1, 3)]
    assert found == sorted(found, reverse=True)
    assert found[0] > 50
    assert found[2] < 10


@pytest.mark.usefixtures("here")
def test_noise() -> None:
    random = np.random.default_rng(0)
    noisy = [np.clip(one + random.normal(0, 25, one.shape), 0, 255).astype(np.uint8) for one in GOOD[:25]]
    assert measures(noisy)["sharpness"] > 10 * measures(GOOD[:25])["sharpness"]


@pytest.mark.usefixtures("here")
def test_flicker() -> None:
    """A periodic change of brightness is measured with its size."""
    for much in (5, 20):
        found = measures(
            [np.clip(one.astype(int) + (much if n % 2 else -much), 0, 255).astype(np.uint8) for n, one in enumerate(GOOD[:25])]
        )
        assert found["flicker"] == pytest.approx(much, rel=0.15)


@pytest.mark.usefixtures("here")
def test_light_that_changes_slowly_does_not_flicker() -> None:
    fading = [(one * (0.3 + 0.7 * n / len(GOOD))).astype(np.uint8) for n, one in enumerate(GOOD)]
    assert measures(fading)["flicker"] < 0.5


@pytest.mark.usefixtures("here")
def test_cuts() -> None:
    scenes = [blurred(scenery(seed=seed), 0.7) for seed in (5, 6, 7)]
    pictures = [np.roll(scene, n, axis=1) for scene in scenes for n in range(15)]
    found = measures(pictures)
    assert found["cuts_s"] == pytest.approx([0.6, 1.2], abs=0.05)
    assert found["jumps_s"] == []


@pytest.mark.usefixtures("here")
def test_a_jump_is_no_cut() -> None:
    found = measures(moving(2, at=lambda n: n * 2 if n < 25 else n * 2 + 14))
    assert (found["jumps_s"], found["cuts_s"]) == ([1.0], [])


@pytest.mark.usefixtures("here")
def test_frozen_pictures() -> None:
    found = measures(GOOD[:20] + [GOOD[20]] * 30 + GOOD[20:40])
    ((start, end),) = found["frozen_s"]
    assert (start, end) == (pytest.approx(0.8, abs=0.1), pytest.approx(2.04, abs=0.1))


@pytest.mark.usefixtures("here")
def test_black_pictures() -> None:
    found = measures(GOOD[:20] + [np.zeros_like(GOOD[0])] * 25 + GOOD[20:40])
    assert found["black_s"] == [[pytest.approx(0.8, abs=0.05), pytest.approx(1.8, abs=0.05)]]


@pytest.mark.usefixtures("here")
def test_blocks() -> None:
    assert measures(GOOD, codec="mpeg4", bitrate=60_000)["blockiness"] > 2
    assert measures(GOOD)["blockiness"] < 1.3


# --- what a judge sees of them


@pytest.mark.usefixtures("here")
def test_frames_are_evenly_spaced_and_from_where_they_say() -> None:
    shades = [np.full((48, 64, 3), 2 * n, np.uint8) for n in range(100)]
    found = watched(shades, 5)
    assert [frame.at_s for frame in found.frames] == [pytest.approx(n * 0.8) for n in range(5)]
    assert [int(np.asarray(one.convert("L")).mean()) for one in shown(found)] == [pytest.approx(40 * n, abs=4) for n in range(5)]


@pytest.mark.usefixtures("here")
def test_a_short_video_has_no_frame_twice() -> None:
    assert len(watched(GOOD[:3], 8).frames) == 3


@pytest.mark.usefixtures("here")
def test_a_frame_of_each_scene() -> None:
    pictures = [scene for seed, long in ((5, 60), (6, 10), (7, 30)) for scene in [blurred(scenery(seed=seed), 0.7)] * long]
    assert [frame.at_s for frame in watched(pictures, 8, "scenes").frames] == pytest.approx([1.2, 2.6, 3.4], abs=0.05)
    assert len(watched(GOOD, 4, "scenes").frames) == 4, "one scene"


@pytest.mark.usefixtures("here")
def test_frames_are_no_larger_than_a_judge_looks_at() -> None:
    with opening(Rules(max_edge=100)):
        assert {one.size for one in shown(watched(GOOD[:10], 3))} == {(100, 75)}


# --- recordings


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("form", "codec"), [("wav", "pcm_s16le"), ("mp3", "libmp3lame"), ("ogg", "libopus"), ("webm", "libopus"), ("flac", "flac")]
)
def test_each_form_is_heard_alike(form: str, codec: str) -> None:
    found = listened(np.concatenate([tone(2, rate=48_000), np.zeros(96_000)]), form=form, codec=codec, rate=48_000)
    assert found["duration_s"] == pytest.approx(4, abs=0.1)
    assert found["silence"] == pytest.approx(0.5, abs=0.03)
    assert found["longest_silence_s"] == pytest.approx(2, abs=0.1)
    assert found["peak"] == pytest.approx(0.3, abs=0.03)
    assert found["clipped"] == 0


@pytest.mark.usefixtures("here")
def test_clipping() -> None:
    found = [listened(np.clip(tone(2) * much, -1, 1))["clipped"] for much in (1, 3.0, 3.5, 6)]
    assert found == sorted(found)
    assert found[0] == 0
    assert found[3] == pytest.approx(0.62, abs=0.08), "0.62 of a sine of 1.8 lies above full scale"


@pytest.mark.usefixtures("here")
def test_each_sample_of_a_run_at_full_scale_is_clipped() -> None:
    wave = np.tile([0, 1, 1, 0, 1, 0, -1, -1, -1, 0], 160)  # one sample alone isn't clipped
    assert listened(wave)["clipped"] == pytest.approx(0.5, abs=0.001)


@pytest.fixture(scope="module")
def voices(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    folder = tmp_path_factory.mktemp("voices")
    agent = speech("Good morning, this is the service desk. Let me read you the conditions of your contract in full.", folder)
    return agent, speech("Stop please, I only want to cancel.", folder, voice="en+f3")


@pytest.mark.usefixtures("here")
def test_an_interruption(voices: tuple[Any, Any]) -> None:
    agent, user = voices
    found = listened(together([(0.5, agent)], [(3.0, user)], seconds=9), find_speech=True)
    agent_end, user_end = 0.5 + len(agent) / 16_000, 3 + len(user) / 16_000
    assert found["speech"] == [[[pytest.approx(0.5, abs=0.1), pytest.approx(agent_end, abs=0.15)]],
                               [[pytest.approx(3.0, abs=0.1), pytest.approx(user_end, abs=0.15)]]]  # fmt: skip
    ((one),) = found["interruptions"]
    assert (one["by_channel"], one["of_channel"], one["at_s"]) == (2, 1, pytest.approx(3.0, abs=0.1))
    assert one["stops_after_s"] == pytest.approx(agent_end - 3, abs=0.2)
    assert found["talk_over_s"] == pytest.approx(min(agent_end, user_end) - 3, abs=0.2)


@pytest.mark.usefixtures("here")
def test_an_agent_that_yields_stops_soon(voices: tuple[Any, Any]) -> None:
    agent, user = voices
    found = listened(together([(0.5, agent[: int(3.0 * 16_000)])], [(3.0, user)], seconds=9), find_speech=True)
    ((one),) = found["interruptions"]
    assert one["stops_after_s"] < 0.7


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("form", [("wav", "pcm_s16le"), ("mp3", "libmp3lame")])
def test_taking_turns_is_no_interruption(voices: tuple[Any, Any], form: tuple[str, str]) -> None:
    agent, user = voices
    found = listened(together([(0.5, agent)], [(7.0, user)], seconds=11), find_speech=True, form=form[0], codec=form[1])
    assert (found["interruptions"], found["talk_over_s"]) == ([], 0)
    assert found["speech_s"] == pytest.approx((len(agent) + len(user)) / 16_000, abs=0.4)


@pytest.mark.usefixtures("here")
def test_one_voice_on_both_channels_is_one_speaker(voices: tuple[Any, Any]) -> None:
    track = together([(0.5, voices[0])], seconds=7)[0]
    found = listened(np.stack([track, track]), find_speech=True)
    assert (len(found["speech"]), found["talk_over_s"], found["channels"]) == (1, 0, 2)


# --- the decoder's own code, without its process


def test_it_measures_the_same_in_this_process(voices: tuple[Any, Any]) -> None:
    limits = Limits(time.monotonic() + 60, 10**8, 1568)
    data = video([blurred(scenery(seed=seed), 0.7) for seed in (5, 6) for _ in range(15)])
    for sampling in ("even", "scenes"):
        apart = video_of(MediaContent(data, "video/mp4"), 4, sampling)
        here = video_here.examined(data, "video/mp4", 4, sampling, limits)
        assert here["measured"] == apart.measured
        assert [frame["at_s"] for frame in here["frames"]] == [frame.at_s for frame in apart.frames]
    call = sound(together([(0.5, voices[0])], [(3.0, voices[1])], seconds=9))
    assert sound_here.examined(call, "audio/wav", True, limits) == sound_of(MediaContent(call, "audio/wav"), speech=True)
    over = Limits(time.monotonic() - 1, 10**8, 1568)
    assert sound_here.examined(call, "audio/wav", False, over)["measured_s"] < 9
    long = video_here.examined(video(moving(4)), "video/mp4", 4, "even", over)
    assert [frame["at_s"] for frame in long["frames"]] == pytest.approx([0, 1, 2, 3], abs=0.1)


# --- what cannot be decoded


NOISE = np.random.default_rng(0)
RECORDING = sound(tone(1, rate=48_000), form="webm", codec="libopus", rate=48_000)


@pytest.mark.usefixtures("here")
def test_broken_files_are_errors_with_a_type() -> None:
    whole = video(GOOD[:25])
    found = {
        "cut in the middle": fault(whole[: len(whole) // 2]),
        "webm cut in the middle": fault(video(GOOD[:25], form="webm", codec="libvpx-vp9")[:15_000]),
        "head alone": fault(whole[:64]),
        "noise with the right head": fault(whole[:32] + NOISE.bytes(50_000)),
        "sound without anything": fault(b"RIFF\xff\xff\xff\xffWAVE" + bytes(40)),
        "mp3 of noise": fault(b"ID3\x04\0\0\0\0\0\0" + NOISE.bytes(3_000), "audio/mpeg"),
        "a sound as video": fault(RECORDING, "video/webm"),
        "a video as sound": fault(whole, "audio/mp4"),
    }
    assert set(found.values()) == {"invalid_media"}, found


@pytest.mark.usefixtures("here")
def test_files_that_name_other_files_open_none(tmp_path: Path) -> None:
    """Playlists, which the decoder supports, are never opened."""
    secret = tmp_path / "secret.mp4"
    secret.write_bytes(video(GOOD[:5]))
    playlist = f"#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nfile://{secret}\n#EXT-X-ENDLIST\n"
    for text in (playlist, f"ffconcat version 1.0\nfile {secret}\n"):
        for mime in ("video/mp4", "video/webm", "video/ogg", "video/x-msvideo", "audio/wav", "audio/mpeg"):
            assert fault(text.encode(), mime) == "invalid_media"


@pytest.mark.usefixtures("here")
def test_pictures_that_are_too_large_are_not_decoded() -> None:
    assert fault(video([scenery(640, 480)] * 3), rules=Rules(max_pixels=100_000)) == "media_too_large"


def test_memory_has_a_bound() -> None:
    big = video([scenery(1920, 1080)] * 2)
    assert fault(big, rules=Rules(decode_memory=150 * 2**20)) in ("media_too_large", "invalid_media")
    assert video_of(MediaContent(big, "video/mp4"), 2).measured["width"] == 1920


_WORK = """
import json, sys, time
from otel_agenteval.media.decoder import has_turn
order = json.loads(sys.stdin.buffer.readline())
began = time.monotonic() if has_turn(order) else None
time.sleep(0.2)
print(json.dumps({"frames": [], "measured": {"began": began, "ended": time.monotonic()}}))
"""


@pytest.mark.parametrize("at_once", [1, 2])
def test_as_many_decoders_work_as_their_memory_allows(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "_DECODER", ("-c", _WORK))

    def work(_: int) -> dict[str, Any]:
        with opening(Rules(decode_memory=100, decode_total=100 * at_once + 50)):
            return video_of(MediaContent(b"", "video/mp4"), 1).measured

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(work, range(4)))
    for one in found:
        beside = [other for other in found if other["began"] <= one["began"] < other["ended"]]
        assert 1 <= len(beside) <= at_once


def test_a_decoder_whose_turn_does_not_come_is_an_error() -> None:
    """Other tests may run decoders at the same time, so not all 30 places must be free."""
    order = {"at_once": 30, "wait": 0.0}
    program = f"from otel_agenteval.media.decoder import has_turn; print(*[has_turn({order}) for _ in range(31)])"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert found.count("True") > 20
    assert found[-1] == "False"
    assert decoder.BUSY["error"] == "media_timeout"


@pytest.mark.usefixtures("here")
def test_of_what_takes_too_long_the_beginning_counts() -> None:
    with opening(Rules(decode_timeout=0.05)):
        found = watched(moving(12), 4)
    assert found.measured["measured_s"] < found.measured["duration_s"] == pytest.approx(12, abs=0.1)
    assert [frame.at_s for frame in found.frames] == pytest.approx([0, 3, 6, 9], abs=0.1), "pictures are of all of it"


def test_a_decoder_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "_START_SECONDS", 0.2)
    monkeypatch.setattr(decoding, "_MOST_WAITING", 0.0)
    monkeypatch.setattr(decoding, "_DECODER", ("-c", "import time; time.sleep(600)"))
    before = {child.pid for child in psutil.Process().children()}
    assert fault(b"\0\0\0\x18ftypisom", rules=Rules(decode_timeout=0.1)) == "media_timeout"
    assert {child.pid for child in psutil.Process().children()} <= before


def test_a_decoder_that_crashes_takes_nobody_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "_DECODER", ("-c", "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"))
    assert fault(b"\0\0\0\x18ftypisom") == "invalid_media"


def test_the_decoder_sees_nothing_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_API_KEY", "sk-secret")
    show = "import os, json; print(json.dumps({'error': 'invalid_media', 'message': ' '.join(os.environ)}))"
    monkeypatch.setattr(decoding, "_DECODER", ("-c", show))
    with pytest.raises(MetricError) as caught:
        video_of(MediaContent(b"", "video/mp4"), 1)
    assert "JUDGE_API_KEY" not in str(caught.value)
