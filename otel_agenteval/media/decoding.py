"""Measures of sounds and videos, which are decoded in a process of their own (:mod:`.decoder`)."""

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
from .access import Content
from .metadata import WITHOUT_METADATA, without_metadata
from .rules import current_rules
from .sharing import is_shared, shared

Sampling = Literal["even", "scenes"]
_START_SECONDS = 10.0
"""What the process may take beside its work: to start, and to be scheduled."""
_MOST_WAITING = 60.0
"""Seconds that it may wait for others to be done."""
_DECODER, _READER = ("-m", f"{__package__}.decoder"), ("-m", f"{__package__}.ocr")
_FEATURE = {
    "video": ("looking at videos", "media"),
    "sound": ("listening to recordings", "media"),
    "speech": ("finding speech", "media"),
    "samples": ("writing down recordings", "media"),
    "bare": ("sending recordings to a judge", "media"),
    "writing": ("reading the writing in images", "ocr"),
}


@dataclass(frozen=True, slots=True)
class Frame:
    """One picture of a video."""

    at_s: float
    uri: str
    """As a ``data:`` uri, no larger than a judge looks at."""


@dataclass(frozen=True, slots=True)
class Video:
    """Pictures of a video, and what was measured in all of it."""

    frames: tuple[Frame, ...]
    measured: dict[str, Any]


def video_of(content: Content, frames: int, sampling: Sampling = "even") -> Video:
    """Pictures of a video, evenly spaced or one of each scene, and measures of the whole.

    Raises:
        MetricError: it is broken or cut off (``invalid_media``), too large (``media_too_large``) or takes too long (``media_timeout``).
        MissingExtra: PyAV is not installed.
    """
    return shared(("video", content, frames, sampling), lambda: _video(content, frames, sampling))


def _video(content: Content, frames: int, sampling: Sampling) -> Video:
    found = _decoded("video", content, {"frames": frames, "sampling": sampling})
    pictures = tuple(Frame(one["at_s"], f"data:image/jpeg;base64,{one['jpeg']}") for one in found["frames"])
    return Video(pictures, found["measured"])


def sound_of(content: Content, *, speech: bool = False) -> dict[str, Any]:
    """Measures of a recording; with ``speech`` also who speaks when.

    Raises:
        MetricError: as :func:`video_of`.
        MissingExtra: PyAV or webrtcvad is not installed.
    """
    if speech and not can_find_speech():
        raise MissingExtra(*_FEATURE["speech"])
    speech = speech or (is_shared() and can_find_speech())  # the next metric may ask who speaks: it is gone through once
    return shared(("sound", content, speech), lambda: _decoded("sound", content, {"speech": speech}))


def samples_of(content: Content) -> Any:
    """The samples of a recording, all channels mixed, 16,000 a second: an array of float32 between -1 and 1.

    Raises:
        MetricError: as :func:`video_of`.
        MissingExtra: PyAV is not installed.
    """
    import numpy as np

    found = _decoded("samples", content, {})
    return np.frombuffer(base64.b64decode(found["samples"]), np.int16).astype(np.float32) / 32768


def bare_sound_of(content: Content) -> Content:
    """A recording without tags, cover pictures and other tracks: what a judge may hear of it.

    Raises:
        MetricError: as :func:`video_of`.
        MissingExtra: it is no WAV, and PyAV is not installed.
    """
    if content.mime in WITHOUT_METADATA:
        return Content(without_metadata(content.data), content.mime)

    def made() -> Content:
        found = _decoded("bare", content, {})
        return Content(base64.b64decode(found["data"]), found["mime"])

    return shared(("bare", content), made)


def writing_in(images: Sequence[Content]) -> list[list[str]]:
    """The lines of writing in each of some images, from the top down.

    Raises:
        MetricError: as :func:`video_of`.
        MissingExtra: rapidocr is not installed.
    """
    if not (installed("rapidocr") and installed("PIL")):
        raise MissingExtra(*_FEATURE["writing"])
    order = {"images": [(len(content.data), content.mime) for content in images]}
    lines: list[list[str]] = _done_by(_READER, order, b"".join(content.data for content in images))["lines"]
    return lines


def can_decode() -> bool:
    """Whether what decodes is installed."""
    return installed("av") and installed("PIL")


def can_find_speech() -> bool:
    """Whether what finds speech is installed."""
    return can_decode() and installed("webrtcvad")


def _decoded(task: str, content: Content, options: dict[str, Any]) -> dict[str, Any]:
    if not can_decode():
        raise MissingExtra(*_FEATURE[task])
    return _done_by(_DECODER, {"task": task, "mime": content.mime, **options}, content.data)


def _done_by(command: Sequence[str], order: dict[str, Any], data: bytes) -> dict[str, Any]:
    """What a process says of some bytes."""
    rules = current_rules()
    order = {
        "at_once": max(1, rules.decode_total // max(1, rules.decode_memory)), "wait": _MOST_WAITING,
        "seconds": rules.decode_timeout, "memory": rules.decode_memory, "max_pixels": rules.max_pixels, "max_edge": rules.max_edge, **order,
    }  # fmt: skip
    environment = {
        "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path)),
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
    }
    kept = ("PATH", "SYSTEMROOT", "LD_LIBRARY_PATH")
    try:
        done = subprocess.run(  # noqa: S603 - the command is ours
            (_python(), *command), cwd=os.sep, input=json.dumps(order).encode() + b"\n" + data,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=_MOST_WAITING + 2 * rules.decode_timeout + _START_SECONDS, check=False,
            env={**environment, **{name: os.environ[name] for name in kept if name in os.environ}},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise _late(rules.decode_timeout) from None
    except OSError as error:
        raise MetricError(
            "decoder_failed", f"the process that decodes media cannot be started ({type(error).__name__})"
        ) from None
    return _read(done, rules.decode_timeout)


def _read(done: subprocess.CompletedProcess[bytes], seconds: float) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        if -done.returncode in (24, 14, 9):  # SIGXCPU, SIGALRM, and what follows them
            raise _late(seconds) from None
        raise MetricError("invalid_media", f"decoding it ended the decoder (status {done.returncode})") from None
    error = found.get("error")
    if error == "missing":
        raise MetricError("decoder_failed", f"the process that decodes media lacks a package: {found['message'][:200]}")
    if error is not None:
        raise MetricError(error, f"the medium cannot be used: {found['message']}")
    return found


def _late(seconds: float) -> MetricError:
    return MetricError("media_timeout", f"decoding takes longer than {seconds:g} s (media.decode_timeout)")


def _python() -> str:
    """The interpreter: inside of some servers ``sys.executable`` is the server."""
    running = sys.executable or ""
    if "python" in Path(running).name.lower():
        return running
    return shutil.which(f"python3.{sys.version_info[1]}") or shutil.which("python3") or running
