"""A judge receives a recording's samples, but no text from its file."""

from __future__ import annotations

import base64
import io
import json
import struct
from typing import Any

import numpy as np
import pytest

pytest.importorskip("av")

import av

import otel_agenteval as oa
from otel_agenteval.core.errors import MetricError
from otel_agenteval.media import decoding
from otel_agenteval.media.access import MediaContent, type_of
from otel_agenteval.media.decoding import samples_of, sound_without_metadata
from tests.media.test_decoding import here  # noqa: F401 - a fixture
from tests.support.judges import ScriptedModels
from tests.support.media import image, scenery, sound, tone, uri, video

MARK = b"Erika-Mustermann-was-here-in-Berlin"
PICTURE = image(scenery(32, 32), "JPEG", comment=MARK)


def tagged(form: str, codec: str) -> bytes:
    """Return a recording with tags of the file and the track and, if the container allows it, a text track."""
    plain = sound(tone(1, rate=48_000), form=form, codec=codec, rate=48_000)
    out = io.BytesIO()
    options = {"movflags": "use_metadata_tags"} if form == "mp4" else {}
    with av.open(io.BytesIO(plain)) as source, av.open(out, "w", format=form, options=options) as target:
        for name in ("title", "artist", "comment", "location", "copyright", "encoder"):
            target.metadata[name] = MARK.decode()
        copy = target.add_stream_from_template(source.streams.audio[0])
        for name in ("title", "handler_name", "comment"):
            copy.metadata[name] = MARK.decode()
        words = target.add_mux_stream("mov_text") if form == "mp4" else None
        for packet in source.demux(source.streams.audio[0]):
            if packet.dts is not None:
                packet.stream = copy
                target.mux(packet)
        if words is not None:
            said = av.Packet(struct.pack(">H", len(MARK)) + MARK)
            said.stream, said.time_base, said.pts, said.dts, said.duration = words, words.time_base, 0, 0, 1
            target.mux(said)
    return out.getvalue()


def chunk(name: bytes, body: bytes) -> bytes:
    return name + struct.pack("<I", len(body)) + body + bytes(len(body) % 2)


def told_wav() -> bytes:
    data = tagged("wav", "pcm_s16le")
    head, rest = data[12:36], data[36:]
    more = [(name, MARK) for name in (b"bext", b"iXML", b"_PMX", b"id3 ", b"cue ", b"JUNK", b"PAD ", MARK[:4])]
    more.append((b"LIST", b"INFOIART" + struct.pack("<I", len(MARK)) + MARK))
    body = b"WAVE" + head + b"".join(chunk(*one) for one in more) + rest + b"".join(chunk(*one) for one in more)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def told_mp3() -> bytes:
    """Return an MP3 with a picture before the audio, and tags of two old formats after it."""
    frame = b"\0image/jpeg\0\3\0" + PICTURE
    picture = b"APIC" + struct.pack(">I", len(frame)) + b"\0\0" + frame
    size = len(picture)
    head = b"ID3\3\0\0" + bytes(size >> shift & 127 for shift in (21, 14, 7, 0)) + picture
    ape = b"APETAGEX" + struct.pack("<IIII", 2000, 32 + len(MARK), 1, 0) + bytes(8) + MARK
    return head + tagged("mp3", "libmp3lame") + ape + b"TAG" + MARK[:30].ljust(30) + bytes(95)


def told_flac() -> bytes:
    data = tagged("flac", "flac")
    head = struct.pack(">II", 3, 10) + b"image/jpeg" + struct.pack(">I", len(MARK)) + MARK + bytes(16)
    picture = head + struct.pack(">I", len(PICTURE)) + PICTURE
    blocks = [(2, b"riff" + MARK), (6, picture), (1, MARK)]
    more = b"".join(bytes((kind,)) + len(body).to_bytes(3, "big") + body for kind, body in blocks)
    return data[:42] + more + data[42:]


def box(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", 8 + len(body)) + name + body


def told_mp4() -> bytes:
    return tagged("mp4", "aac") + b"".join(box(name, MARK) for name in (b"udta", b"meta", b"uuid", b"free", b"skip", b"XMP_"))


def told_video() -> bytes:
    return video([scenery(64, 48)] * 5) + box(b"udta", MARK)


def vorbis_in(form: str) -> bytes:
    """Put Vorbis into a container other than Ogg, which keeps the comments in the track's header."""
    out = io.BytesIO()
    samples = (np.stack([tone(1, rate=48_000)] * 2) * 32_767).astype(np.int16)
    with av.open(out, "w", format="ogg") as target:
        stream = target.add_stream("vorbis", rate=48_000, layout="stereo", options={"strict": "-2"})
        frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(samples.T.reshape(1, -1)), format="s16", layout="stereo")
        frame.sample_rate = 48_000
        for piece in av.AudioResampler("fltp", "stereo", 48_000, stream.codec_context.frame_size or 64).resample(frame):
            target.mux(stream.encode(piece))
        target.mux(stream.encode(None))
    whole = io.BytesIO()
    with av.open(io.BytesIO(out.getvalue())) as source, av.open(whole, "w", format=form) as target:
        target.metadata["title"] = MARK.decode()
        copy = target.add_stream_from_template(source.streams.audio[0])
        if form == "webm":
            heads = bytes(copy.codec_context.extradata or b"")
            at = heads.index(b"\x03vorbis") + 7
            (vendor,) = struct.unpack_from("<I", heads, at)
            copy.codec_context.extradata = heads[: at + 4] + MARK[:vendor].ljust(vendor) + heads[at + 4 + vendor :]
        for packet in source.demux(source.streams.audio[0]):
            if packet.dts is not None:
                packet.stream = copy
                target.mux(packet)
    return whole.getvalue()


MADE = {
    "wav": told_wav,
    "mp3": told_mp3,
    "flac": told_flac,
    "opus in ogg": lambda: tagged("ogg", "libopus"),
    "vorbis in ogg": lambda: vorbis_in("ogg"),
    "vorbis in webm": lambda: vorbis_in("webm"),
    "opus in webm": lambda: tagged("webm", "libopus"),
    "aac in mp4": told_mp4,
}


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("name", MADE)
def test_a_judge_hears_nothing_but_samples(name: str, models: ScriptedModels) -> None:
    data = MADE[name]()
    assert MARK[:7] in data
    mime = str(type_of(data))
    turn = oa.Turn.from_dict({"attachments": [{"modality": "audio", "mime_type": mime, "data": base64.b64encode(data).decode()}]})
    models.score("llm_audio_language", turn, {"reason": "r", "language": "en"}, expected="en")
    (sound_part,) = (part for part in models.requests[0]["messages"][-1]["content"] if part["type"] != "text")
    sent = base64.b64decode(sound_part["input_audio"]["data"])
    assert MARK[:5] not in sent
    assert MARK not in base64.b64decode(base64.b64encode(json.dumps(models.requests[0]).encode()))
    heard, told = (samples_of(MediaContent(one, str(type_of(one)))) for one in (sent, data))
    assert np.abs(heard[: len(told)] - told[: len(heard)]).max() < 0.01
    assert abs(len(heard) - len(told)) < 2_000


def test_of_a_video_that_is_a_recording_only_the_sound_is_sent() -> None:
    with pytest.raises(MetricError, match="audio track is missing"):
        sound_without_metadata(MediaContent(told_video(), "video/mp4"))


@pytest.mark.parametrize("metric", ["llm_audio_language", "llm_video_visual_quality"])
def test_without_its_package_nothing_is_sent_as_it_is(
    metric: str, models: ScriptedModels, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decoding, "can_decode", lambda: False)
    kind, data = ("audio", told_mp3()) if "audio" in metric else ("video", told_video())
    mime = "audio/mpeg" if kind == "audio" else "video/mp4"
    params: dict[str, Any] = {"expected": "en"} if kind == "audio" else {}
    turn = oa.Turn.from_dict({"input": "?", "attachments": [{"modality": kind, "uri": uri(data, mime)}]})
    score = models.score(metric, turn, **params)
    assert (score.status, score.error_type) == ("error", "MissingExtra")
    assert "otel-agenteval[media]" in str(score.explanation)
