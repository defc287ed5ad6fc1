"""Functions that decode and measure recordings and videos, and read text in images, in a separate process (:mod:`.decoder`)."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ..core.errors import MetricError, MissingExtra
from ..core.extras import installed
from .access import MediaContent
from .metadata import WITHOUT_METADATA, without_metadata
from .rules import current_rules, is_shared, shared

Sampling = Literal["even", "scenes"]
_START_SECONDS = 10.0
"""Additional seconds for the process to start and to be scheduled."""
_MOST_WAITING = 60.0
"""Maximum seconds that a decoder process waits for other decoder processes."""
_DECODER = ("-m", f"{__package__}.decoder")
_FEATURE = {
    "video": ("analyzing videos", "media"),
    "sound": ("analyzing recordings", "media"),
    "speech": ("detecting speech", "media"),
    "samples": ("transcribing recordings", "media"),
    "bare": ("sending recordings to a judge", "media"),
    "writing": ("reading text in images", "ocr"),
}


@dataclass(frozen=True, slots=True)
class Frame:
    at_s: float
    uri: str
    """``data:`` URI of an image with at most ``media.max_edge`` pixels on the longer side."""


@dataclass(frozen=True, slots=True)
class Video:
    """Frames of a video, and measurements of the video up to ``media.decode_timeout``."""

    frames: tuple[Frame, ...]
    measured: dict[str, Any]


def video_of(content: MediaContent, frames: int, sampling: Sampling = "even") -> Video:
    """Return a video's measurements, and up to ``frames`` frames, which are evenly spaced or show one scene each.

    Raises MetricError for a broken video (``invalid_media``), a large video (``media_too_large``), slow decoding
    (``media_timeout``), and a decoder that can't run (``decoder_failed``). Raises MissingExtra if PyAV or Pillow isn't installed.
    """

    def decode() -> Video:
        found = _decoded("video", content, {"frames": frames, "sampling": sampling})
        pictures = tuple(Frame(one["at_s"], f"data:image/jpeg;base64,{one['jpeg']}") for one in found["frames"])
        return Video(pictures, found["measured"])

    return shared(("video", content, frames, sampling), decode)


def sound_of(content: MediaContent, *, speech: bool = False) -> dict[str, Any]:
    """Return measurements of a recording, such as duration and silence. If ``speech`` is True, include speech times.

    Raises the same errors as :func:`video_of`. Raises MissingExtra if ``speech`` is True and webrtcvad isn't installed.
    """
    if speech and not can_find_speech():
        raise MissingExtra(*_FEATURE["speech"])
    speech = speech or (is_shared() and can_find_speech())  # decode once, because the next metric may need speech
    return shared(("sound", content, speech), lambda: _decoded("sound", content, {"speech": speech}))


def samples_of(content: MediaContent) -> Any:
    """Return a recording's samples (16 kHz, mixed to one channel, float32 from -1 to 1). Raises the errors of :func:`video_of`."""
    import numpy as np

    found = _decoded("samples", content, {})
    return np.frombuffer(base64.b64decode(found["samples"]), np.int16).astype(np.float32) / 32768


def sound_without_metadata(content: MediaContent) -> MediaContent:
    """Return a recording without tags, cover images, and video tracks. Raises the errors of :func:`video_of`."""
    if content.mime in WITHOUT_METADATA:
        return MediaContent(without_metadata(content.data), content.mime)

    def decode() -> MediaContent:
        found = _decoded("bare", content, {})
        return MediaContent(base64.b64decode(found["data"]), found["mime"])

    return shared(("bare", content), decode)


def writing_in(images: Sequence[MediaContent]) -> list[list[str]]:
    """Return each image's text lines, from top to bottom. Raises MetricError, or MissingExtra without rapidocr and Pillow."""
    if not (installed("rapidocr") and installed("PIL")):
        raise MissingExtra(*_FEATURE["writing"])
    order = {"task": "writing", "images": [(len(content.data), content.mime) for content in images]}
    lines: list[list[str]] = _carried_out(order, b"".join(content.data for content in images))["lines"]
    return lines


def can_decode() -> bool:
    return installed("av") and installed("PIL")


def can_find_speech() -> bool:
    return can_decode() and installed("webrtcvad")


def _decoded(task: str, content: MediaContent, options: dict[str, Any]) -> dict[str, Any]:
    if not can_decode():
        raise MissingExtra(*_FEATURE[task])
    return _carried_out({"task": task, "mime": content.mime, **options}, content.data)


def _carried_out(order: dict[str, Any], data: bytes) -> dict[str, Any]:
    """Send a decoding request and the media bytes to a new decoder process, and return its result."""
    rules = current_rules()
    order = {
        "at_once": max(1, rules.decode_total // max(1, rules.decode_memory)), "wait": _MOST_WAITING,
        "seconds": rules.decode_timeout, "memory": rules.decode_memory, "max_pixels": rules.max_pixels, "max_edge": rules.max_edge, **order,
    }  # fmt: skip
    added = {"PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path)), "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    kept = ("PATH", "SYSTEMROOT", "LD_LIBRARY_PATH")
    try:
        done = subprocess.run(  # noqa: S603 - a fixed command
            (_python(), *_DECODER), cwd=os.sep, input=json.dumps(order).encode() + b"\n" + data,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=_MOST_WAITING + 2 * rules.decode_timeout + _START_SECONDS, check=False,
            env={**added, **{name: os.environ[name] for name in kept if name in os.environ}},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise _late(rules.decode_timeout) from None
    except OSError as error:
        raise MetricError("decoder_failed", f"the decoder process can't be started ({type(error).__name__})") from None
    return _result_of(done, rules.decode_timeout)


def _result_of(done: subprocess.CompletedProcess[bytes], seconds: float) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        if -done.returncode in (24, 14, 9):  # SIGXCPU, SIGALRM, SIGKILL
            raise _late(seconds) from None
        raise MetricError("invalid_media", f"the decoder process crashed on the media file (status {done.returncode})") from None
    error = found.get("error")
    if error == "missing":
        raise MetricError("decoder_failed", f"the decoder process lacks a package: {found['message'][:200]}")
    if error is not None:
        raise MetricError(error, f"the media file can't be decoded: {found['message']}")
    return found


def _late(seconds: float) -> MetricError:
    return MetricError("media_timeout", f"decoding took longer than {seconds:g} s (media.decode_timeout)")


def _python() -> str:
    """Return the path of the Python interpreter. In some servers, ``sys.executable`` is the path of the server program instead."""
    running = sys.executable or ""
    if "python" in Path(running).name.lower():
        return running
    return shutil.which(f"python3.{sys.version_info[1]}") or shutil.which("python3") or running
