"""Functions that measure a video and extract frames for a judge.

This module runs in the decoder process (:mod:`.decoder`).
"""

from __future__ import annotations

import base64
import io
import itertools
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import av
import numpy as np

from .images import sharpness_of
from .sound import Broken, Limits, opened

_SMALL = 160
"""Longer side of frames for comparisons, in pixels."""
_BINS = 32
_CUT_COLORS = 0.30
"""Minimum changed share (0 to 1) of the brightness histogram at a cut."""
_CUT_ALIKE = 0.5
"""Maximum similarity of the frames before and after a cut, relative to the similarity of nearby frames."""
_CUT_CHANGE = 8.0
"""Minimum mean pixel change at a cut, from 0 to 255."""
_SPIKE = 4.0
"""Minimum pixel change at a jump or cut, relative to the median change of nearby frames."""
_AROUND = 12
_SHORTEST_SCENE = 3
_FROZEN_CHANGE = 0.25
_FROZEN_SECONDS = 0.5
_BLACK = 20.0
_BLACK_SPREAD = 6.0
_BLACK_SECONDS = 0.1
_JUMP_CHANGE = 3.0
_BLOCK = 8
_REST = 0.5
"""Maximum seconds at the end of a video that can remain unmeasured."""
_MOST_TO_A_TIME = 400
"""Maximum number of frames to decode between a key frame and a requested time."""
_QUALITY = 88


def examined(data: bytes, mime: str, wanted: int, sampling: str, limits: Limits) -> dict[str, Any]:
    """Return a video's frames, ordered by time, and the video's measurements."""
    facts, track = _measured(data, mime, limits)
    if facts["measured_s"] < facts["duration_s"] - _REST:
        pictures = list(_frames_at(data, mime, [at * facts["duration_s"] / wanted for at in range(wanted)], limits))
    else:
        pictures = list(_frames_numbered(data, mime, _places(track, wanted, sampling, facts["cuts_s"]), limits))
    facts["sharpness"] = round(float(np.median([one["sharpness"] for one in pictures])), 1)
    facts["blockiness"] = round(float(np.median([one["blockiness"] for one in pictures])), 2)
    return {"frames": [{"at_s": one["at_s"], "jpeg": one["jpeg"]} for one in pictures], "measured": facts}


@dataclass
class _Track:
    """Measurements of each frame, in order."""

    times: list[float] = field(default_factory=list)
    brightness: list[float] = field(default_factory=list)
    spread: list[float] = field(default_factory=list)
    change: list[float] = field(default_factory=lambda: [0.0])
    """Mean pixel change since the previous frame, from 0 to 255."""
    colors: list[float] = field(default_factory=lambda: [0.0])
    """Share of the brightness histogram that changed since the previous frame."""
    alike: list[float] = field(default_factory=lambda: [1.0])
    """Correlation with the previous frame, or 1 if either frame has little contrast."""
    _histogram: Any = None

    def add(self, at: float, grey: Any, before: Any) -> None:
        self.times.append(at)
        histogram = np.bincount((grey / (256 / _BINS)).astype(np.uint8).ravel(), minlength=_BINS) / grey.size
        self.brightness.append(float(grey.mean()))
        self.spread.append(float(grey.std()))
        if before is not None:
            self.change.append(float(np.abs(grey - before).mean()))
            self.colors.append(float(np.abs(histogram - self._histogram).sum()) / 2)
            spreads = self.spread[-1] * self.spread[-2]
            shared = float(((grey - self.brightness[-1]) * (before - self.brightness[-2])).mean())
            self.alike.append(shared / spreads if spreads > _BLACK_SPREAD**2 else 1.0)
        self._histogram = histogram


def _measured(data: bytes, mime: str, limits: Limits) -> tuple[dict[str, Any], _Track]:
    track, before, partial = _Track(), None, False
    with opened(data, mime) as container:
        if not container.streams.video:
            raise Broken("the video track is missing")
        stream = container.streams.video[0]
        width, height = stream.codec_context.width, stream.codec_context.height
        _require_size(width, height, limits)
        stream.thread_type = "NONE"
        rate = float(stream.average_rate or 25)
        scale = _SMALL / max(width, height, 1)
        small = max(2, round(width * scale)), max(2, round(height * scale))
        for number, frame in enumerate(container.decode(stream)):
            _require_size(frame.width, frame.height, limits)
            grey = frame.reformat(*small, format="gray").to_ndarray().astype(np.float32)
            track.add(float(frame.time) if frame.time is not None else number / rate, grey, before)
            before = grey
            if time.monotonic() > limits.until:
                partial = True
                break
        said = float(container.duration / 1_000_000) if container.duration else 0.0
        codec = stream.codec_context.name
    if not track.times:
        raise Broken("the video can't be decoded")
    seen = track.times[-1] - track.times[0] + 1 / rate
    if not partial and said and seen < 0.8 * said - 0.5:
        raise Broken(f"the file ends after {seen:.1f} s, but its header states {said:.1f} s")
    cuts = _cuts(track)
    facts: dict[str, Any] = {
        "width": width, "height": height, "codec": codec, "fps": round(rate, 2), "duration_s": round(said or seen, 3),
        "measured_s": round(seen, 3), "bitrate_kbps": round(len(data) * 8 / 1000 / max(said or seen, 0.001)),
        "flicker": round(_flicker(track, cuts), 2), "cuts_s": [round(track.times[at], 2) for at in cuts],
        "frozen_s": _periods(track, [change < _FROZEN_CHANGE for change in track.change], _FROZEN_SECONDS, cuts),
        "black_s": _periods(
            track, [level < _BLACK and spread < _BLACK_SPREAD for level, spread in zip(track.brightness, track.spread, strict=True)],
            _BLACK_SECONDS, (),
        ),
        "jumps_s": [round(track.times[at], 2) for at in _jumps(track, cuts)],
    }  # fmt: skip
    return facts, track


def _require_size(width: int, height: int, limits: Limits) -> None:
    most = limits.max_pixels
    if width * height > most:
        raise Broken(f"the frames must have at most {most:,} pixels (media.max_pixels), got {width} x {height}", too_large=True)


def _median_around(values: Sequence[float], at: int) -> float:
    near = [*values[max(1, at - _AROUND) : at], *values[at + 1 : at + 1 + _AROUND]]
    return float(np.median(near)) if near else 0.0


def _cuts(track: _Track) -> list[int]:
    found: list[int] = []
    for at in range(1, len(track.times)):
        change, colors = track.change[at], track.colors[at]
        other_colors = colors > _CUT_COLORS and change > _SPIKE * _median_around(track.change, at)
        other_shapes = track.alike[at] < _CUT_ALIKE * max(0.0, _median_around(track.alike, at))
        if change > _CUT_CHANGE and (other_colors or other_shapes) and not (found and at - found[-1] < _SHORTEST_SCENE):
            found.append(at)
    return found


def _jumps(track: _Track, cuts: Sequence[int]) -> list[int]:
    """Return the indexes of frames that seem to follow missing frames, because the picture changes suddenly without a cut."""
    beside = {at + step for at in cuts for step in (-1, 0, 1)}
    return [
        at
        for at in range(2, len(track.times))
        if at not in beside and track.change[at] > _JUMP_CHANGE and track.change[at] > _SPIKE * _median_around(track.change, at) > 0
        and track.change[at] > _SPIKE * track.change[at - 1]
    ]  # fmt: skip


def _flicker(track: _Track, cuts: Sequence[int]) -> float:
    """Return the mean amplitude at which the brightness alternates between frames. Ignores steady changes and cuts."""
    if len(track.brightness) < 3:
        return 0.0
    swings = np.abs(np.diff(np.asarray(track.brightness), 2)) / 4
    keep = np.ones(len(swings), bool)
    for at in cuts:
        keep[max(0, at - 2) : at + 1] = False
    return float(swings[keep].mean()) if keep.any() else 0.0


def _periods(track: _Track, flags: Sequence[bool], least: float, breaks: Sequence[int]) -> list[list[float]]:
    """Return (start, end) of each period of at least ``least`` seconds in which all ``flags`` are True. ``breaks`` end a period."""
    found: list[list[float]] = []
    start = None
    step = (track.times[-1] - track.times[0]) / max(len(track.times) - 1, 1)
    for at, (now, when) in enumerate(zip([*flags, False], [*track.times, track.times[-1] + step], strict=True)):
        holds = now and at not in breaks
        if holds and start is None:
            start = when
        elif not holds and start is not None:
            if when - start >= least:
                found.append([round(start, 2), round(when, 2)])
            start = when if now else None
    return found


def _places(track: _Track, wanted: int, sampling: str, cuts: Sequence[float]) -> list[int]:
    total = len(track.times)
    if sampling == "scenes" and cuts:
        bounds = [0, *(at for at, when in enumerate(track.times) if round(when, 2) in set(cuts)), total]
        middles = [(start + end) // 2 for start, end in itertools.pairwise(bounds) if end > start]
        return [middles[at * len(middles) // min(wanted, len(middles))] for at in range(min(wanted, len(middles)))]
    count = min(wanted, total)
    return [at * total // count for at in range(count)]


def _frames_numbered(data: bytes, mime: str, places: Sequence[int], limits: Limits) -> Iterator[dict[str, Any]]:
    left = list(places)
    with opened(data, mime) as container:
        stream = container.streams.video[0]
        stream.thread_type = "NONE"
        for at, frame in enumerate(container.decode(stream)):
            if at == left[0]:
                left.pop(0)
                yield _picture(frame, limits)
            if not left:
                return


def _frames_at(data: bytes, mime: str, times: Sequence[float], limits: Limits) -> Iterator[dict[str, Any]]:
    """Yield frames at or soon after the ``times``. Used for videos that are too long to decode completely."""
    last = -1.0
    with opened(data, mime) as container:
        stream = container.streams.video[0]
        stream.thread_type = "NONE"
        for when in times:
            container.seek(int(when * av.time_base))
            frames = itertools.islice(container.decode(stream), _MOST_TO_A_TIME)
            frame = next((one for one in frames if one.time is not None and one.time >= when), None)
            if frame is not None and frame.time > last:
                last = frame.time
                yield _picture(frame, limits)


def _picture(frame: Any, limits: Limits) -> dict[str, Any]:
    grey = frame.reformat(format="gray").to_ndarray().astype(np.float32)
    picture = frame.to_image()
    turned = getattr(frame, "rotation", 0) or 0
    if turned:
        picture = picture.rotate(turned, expand=True)
    picture.thumbnail((limits.max_edge, limits.max_edge))
    out = io.BytesIO()
    picture.save(out, "JPEG", quality=_QUALITY)
    return {
        "at_s": round(float(frame.time or 0), 3), "jpeg": base64.b64encode(out.getvalue()).decode(), "sharpness": sharpness_of(grey),
        "blockiness": _blockiness(grey),
    }  # fmt: skip


def _blockiness(grey: Any) -> float:
    """Return the ratio of edges on the compression-block grid to other edges: 1 without blocks, 2 with visible blocks."""
    found = []
    for steps in (np.abs(np.diff(grey, axis=1)), np.abs(np.diff(grey, axis=0)).T):
        if steps.shape[1] >= 3 * _BLOCK:
            means = steps.mean(axis=0)
            on = means[_BLOCK - 1 :: _BLOCK]
            off = np.delete(means, np.s_[_BLOCK - 1 :: _BLOCK])
            found.append((float(on.mean()) + 0.1) / (float(off.mean()) + 0.1))
    return max(found, default=1.0)
