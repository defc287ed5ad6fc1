"""Functions that open audio and video containers, measure silence, clipping, and speech, and copy audio.

This module runs in the decoder process (:mod:`.decoder`).
"""

from __future__ import annotations

import base64
import io
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import av
import numpy as np

FORMATS = {
    "video/mp4": "mp4", "audio/mp4": "mp4", "video/webm": "matroska", "audio/webm": "matroska", "video/ogg": "ogg", "audio/ogg": "ogg",
    "video/x-msvideo": "avi", "audio/wav": "wav", "audio/mpeg": "mp3", "audio/flac": "flac",
}  # fmt: skip
"""Mapping from media type to container reader. A file can't choose its reader, because some formats can open other files."""


class Broken(Exception):
    def __init__(self, message: str, *, too_large: bool = False) -> None:
        super().__init__(message)
        self.too_large = too_large


@dataclass(frozen=True)
class Limits:
    until: float
    """Monotonic time at which measuring stops."""
    max_pixels: int
    max_edge: int


def opened(data: bytes, mime: str) -> Any:
    return av.open(io.BytesIO(data), "r", format=FORMATS[mime], metadata_errors="ignore")


_RATE = 16_000
_FRAME = 480
"""Number of samples in 30 ms, which is the frame length of the speech detector."""
_SECONDS = _FRAME / _RATE
_SILENT = 10 ** (-50 / 20)
"""Maximum root mean square, relative to full scale, of a silent frame of 30 ms (-50 dBFS)."""
_FULL = 0.99
_STRICTNESS = 2
_GAP, _SHORTEST = 0.5, 0.15
"""Maximum pause inside an utterance, and minimum length of an utterance, in seconds."""
_BEGUN = 0.4
"""Seconds that a speaker must have spoken before another speaker can interrupt."""
_MOST_CHANNELS = 8
_OPTIONS = {"fflags": "+bitexact", "id3v2_version": "0"}
"""Container options that keep the software's name out of the file."""
_WRITERS = {"audio/webm": "webm"}
"""Mapping from media type to container writer, for types whose writer differs from the reader."""


@dataclass
class _Channel:
    detector: Any
    speech: list[bool] = field(default_factory=list)
    levels: list[float] = field(default_factory=list)
    remainder: Any = field(default_factory=lambda: np.zeros(0, np.int16))

    def add(self, samples: Any) -> None:
        samples = np.concatenate((self.remainder, samples))
        whole = len(samples) // _FRAME * _FRAME
        for start in range(0, whole, _FRAME):
            piece = samples[start : start + _FRAME]
            level = float(np.sqrt(np.mean(np.square(piece.astype(np.float32) / 32768))))
            self.levels.append(level)
            if self.detector is not None:
                self.speech.append(level >= _SILENT and self.detector.is_speech(piece.tobytes(), _RATE))
        self.remainder = samples[whole:]


@dataclass
class _Waveform:
    """Measurements of a recording at its original sample rate."""

    samples: int = 0
    clipped: int = 0
    peak: float = 0.0
    channel_difference: float = 0.0
    """Largest sample difference between a channel and the first channel."""

    def add(self, wave: Any) -> None:
        full = np.abs(wave) >= _FULL
        pairs = np.pad(full[:, 1:] & full[:, :-1], ((0, 0), (1, 1)))
        self.clipped += int((pairs[:, 1:] | pairs[:, :-1]).sum())
        self.samples += wave.size
        self.peak = max(self.peak, float(np.abs(wave).max(initial=0.0)))
        if len(wave) > 1:
            self.channel_difference = max(self.channel_difference, float(np.abs(wave - wave[0]).max(initial=0.0)))


def examined(data: bytes, mime: str, speech: bool, limits: Limits) -> dict[str, Any]:
    """Return measurements of a recording, such as duration and silence. If ``speech`` is True, include speech times by channel."""
    if speech:
        import webrtcvad
    waveform, partial = _Waveform(), False
    with opened(data, mime) as container:
        stream = _audio_of(container)
        count = stream.codec_context.channels
        if count > _MOST_CHANNELS:
            raise Broken(f"the audio must have at most {_MOST_CHANNELS} channels, got {count}", too_large=True)
        rate, codec = stream.codec_context.sample_rate, stream.codec_context.name
        channels = [_Channel(webrtcvad.Vad(_STRICTNESS) if speech else None) for _ in range(count)]
        resampler = av.AudioResampler(format="s16p", layout=stream.codec_context.layout, rate=_RATE)
        plain = av.AudioResampler(format="fltp")
        for frame in container.decode(stream):
            for piece in plain.resample(frame):
                waveform.add(piece.to_ndarray())
            _add(channels, resampler.resample(frame))
            if time.monotonic() > limits.until:
                partial = True
                break
        else:
            _add(channels, resampler.resample(None))
        stated = float(container.duration / 1_000_000) if container.duration else 0.0
    if not waveform.samples:
        raise Broken("the audio can't be decoded")
    measured = waveform.samples / count / rate
    if not partial and stated and measured < 0.8 * stated - 0.5:
        raise Broken(f"the file ends after {measured:.1f} s, but its header states {stated:.1f} s")
    if waveform.channel_difference < 0.01:  # all channels are equal
        channels = channels[:1]
    least = min(len(channel.levels) for channel in channels)  # the resampler may not return the last samples of each channel
    for channel in channels:
        del channel.levels[least:], channel.speech[least:]
    return {
        "codec": codec, "sample_rate": rate, "channels": count, "duration_s": round(stated or measured, 3), "measured_s": round(measured, 3),
        "peak": round(waveform.peak, 3), "clipped": waveform.clipped / waveform.samples, **_silence(channels), **(_talk(channels) if speech else {}),
    }  # fmt: skip


def _audio_of(container: Any) -> Any:
    if not container.streams.audio:
        raise Broken("the audio track is missing")
    return container.streams.audio[0]


def _add(channels: Sequence[_Channel], pieces: Sequence[Any]) -> None:
    for piece in pieces:
        for channel, wave in zip(channels, piece.to_ndarray(), strict=False):
            channel.add(wave)


def samples(data: bytes, mime: str, limits: Limits) -> dict[str, Any]:
    """Return a recording's samples as Base64: one channel, 16 bits, 16 kHz."""
    found: list[bytes] = []
    with opened(data, mime) as container:
        stream = _audio_of(container)
        resampler = av.AudioResampler(format="s16", layout="mono", rate=_RATE)
        for frame in container.decode(stream):
            found += [piece.to_ndarray().tobytes() for piece in resampler.resample(frame)]
            if time.monotonic() > limits.until:
                break
        else:
            found += [piece.to_ndarray().tobytes() for piece in resampler.resample(None)]
    if not found:
        raise Broken("the audio can't be decoded")
    return {"samples": base64.b64encode(b"".join(found)).decode()}


def _silence(channels: Sequence[_Channel]) -> dict[str, Any]:
    loudest = np.max([channel.levels for channel in channels], axis=0) if channels[0].levels else np.zeros(1)
    silent = loudest < _SILENT
    longest = run = 0
    for one in silent:
        run = run + 1 if one else 0
        longest = max(longest, run)
    return {"silence": float(silent.mean()), "longest_silence_s": round(longest * _SECONDS, 2)}


def _talk(channels: Sequence[_Channel]) -> dict[str, Any]:
    spoken = [_utterances(channel.speech) for channel in channels]
    grid = np.zeros((len(channels), max(len(channel.speech) for channel in channels) + 1), bool)
    for row, utterances in enumerate(spoken):
        for start, end in utterances:
            grid[row, start:end] = True
    any_speech, together = int(grid.any(axis=0).sum()), int((grid.sum(axis=0) > 1).sum())
    return {
        "speech_s": round(any_speech * _SECONDS, 2),
        "speech": [
            [[round(start * _SECONDS, 2), round(end * _SECONDS, 2)] for start, end in utterances] for utterances in spoken
        ],
        "talk_over_s": round(together * _SECONDS, 2),
        "interruptions": _interruptions(spoken),
    }


def _utterances(speech: Sequence[bool]) -> list[tuple[int, int]]:
    """Return (first frame, frame after the end) for each utterance. A frame lasts 30 ms."""
    found: list[list[int]] = []
    for at, one in enumerate(speech):
        if not one:
            continue
        if found and at - found[-1][1] <= _GAP / _SECONDS:
            found[-1][1] = at + 1
        else:
            found.append([at, at + 1])
    return [(start, end) for start, end in found if (end - start) * _SECONDS >= _SHORTEST]


def _interruptions(spoken: Sequence[Sequence[tuple[int, int]]]) -> list[dict[str, Any]]:
    """Return interruptions of one channel by another channel: the time, and the seconds until the interrupted channel stops."""
    found = []
    for by, mine in enumerate(spoken):
        for start, _ in mine:
            for of, theirs in enumerate(spoken):
                for begun, ended in theirs if of != by else ():
                    if begun + _BEGUN / _SECONDS <= start < ended:
                        found.append({
                            "at_s": round(start * _SECONDS, 2), "by_channel": by + 1, "of_channel": of + 1,
                            "stops_after_s": round((ended - start) * _SECONDS, 2),
                        })  # fmt: skip
    return sorted(found, key=lambda one: float(str(one["at_s"])))


def copied(data: bytes, mime: str, limits: Limits) -> dict[str, Any]:
    """Copy a recording's audio packets to an audio file without tags, cover images, and video tracks. Vorbis becomes Ogg."""
    out = io.BytesIO()
    with opened(data, mime) as source:
        heard = mime.replace("video/", "audio/")
        mime = heard if heard in FORMATS else mime
        streams = source.streams.audio
        if not streams:
            raise Broken("the audio track is missing")
        if any(stream.codec_context.name == "vorbis" for stream in streams):  # other containers would keep its comments
            mime = "audio/ogg"
        with av.open(out, "w", format=_WRITERS.get(mime, FORMATS[mime]), options=_OPTIONS) as target:
            copies = {stream.index: target.add_stream_from_template(stream) for stream in streams}
            count = 0
            for packet in source.demux(*streams):
                if time.monotonic() > limits.until:
                    raise Broken("the audio is too long to copy in time (media.decode_timeout)", too_large=True)
                if packet.dts is not None:
                    packet.stream = copies[packet.stream.index]
                    target.mux(packet)
                    count += 1
    if not count:
        raise Broken("the audio track is missing")
    return {"mime": mime, "data": base64.b64encode(out.getvalue()).decode()}
