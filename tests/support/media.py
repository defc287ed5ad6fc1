"""Real media, generated for tests: images by Pillow, videos and recordings by PyAV, speech by espeak-ng."""

from __future__ import annotations

import base64
import io
import subprocess
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tests.support.servers import program

Picture = np.ndarray[Any, Any]
"""Array of height × width × 3, with values from 0 to 255."""


def scenery(width: int = 320, height: int = 240, *, seed: int = 1) -> Picture:
    """Return a picture of large shapes and some detail. Its left edge matches its right edge."""
    random = np.random.default_rng(seed)
    down, across = np.mgrid[0:height, 0:width].astype(float)
    layers = []
    for _ in range(3):
        waves = np.zeros((height, width))
        for size in (1, 2, 3, 5, 8, 16, 32):
            x, y, phase = random.integers(-size, size + 1), random.uniform(-size, size), random.uniform(0, 6.28)
            waves += np.sin(2 * np.pi * (x * across / width + y * down / height) + phase) / size**0.5
        layers.append(waves)
    waves = np.stack(layers, axis=2)
    plain = 128 + 90 * waves / np.abs(waves).max()
    return np.clip(plain + random.normal(0, 12, plain.shape), 0, 255).astype(np.uint8)


def image(picture: Picture, form: str = "PNG", **options: Any) -> bytes:
    from PIL import Image

    out = io.BytesIO()
    Image.fromarray(picture).save(out, form, **options)
    return out.getvalue()


def blurred(picture: Picture, radius: float) -> Picture:
    from PIL import Image, ImageFilter

    return np.asarray(Image.fromarray(picture).filter(ImageFilter.GaussianBlur(radius)))


def with_place(picture: Picture, form: str = "JPEG", orientation: int = 1) -> bytes:
    """Return an image with metadata: location, author and description."""
    from PIL import Image

    exif = Image.Exif()
    exif[0x0112], exif[0x013B], exif[0x010F] = orientation, "Erika Mustermann", "SecretCam"
    gps = exif.get_ifd(0x8825)
    gps[1], gps[2], gps[3], gps[4] = "N", (52.0, 31.0, 12.0), "E", (13.0, 24.0, 18.0)
    return image(picture, form, exif=exif, **({"comment": b"at home with Erika"} if form == "JPEG" else {}))


def uri(data: bytes, mime: str) -> str:
    return f"data:{mime};base64,{base64.b64encode(data).decode()}"


def video(
    pictures: Iterable[Picture], *, form: str = "mp4", codec: str = "libx264", fps: int = 25, bitrate: int = 4_000_000
) -> bytes:
    import av

    out = io.BytesIO()
    with av.open(out, "w", format=form) as container:
        stream = None
        for picture in pictures:
            if stream is None:
                stream = container.add_stream(codec, rate=fps)
                stream.height, stream.width = picture.shape[:2]
                stream.pix_fmt, stream.bit_rate = "yuv420p", bitrate
            container.mux(stream.encode(av.VideoFrame.from_ndarray(np.ascontiguousarray(picture), format="rgb24")))
        assert stream is not None
        container.mux(stream.encode(None))
    return out.getvalue()


def moving(seconds: float, *, fps: int = 25, speed: int = 2, at: Callable[[int], int] | None = None) -> list[Picture]:
    """Return pictures of an object that moves evenly, or to the position ``at`` returns."""
    base = blurred(scenery(), 0.7)
    return [np.roll(base, at(n) if at is not None else n * speed, axis=1) for n in range(int(seconds * fps))]


def sound(samples: np.ndarray[Any, Any], *, form: str = "wav", codec: str = "pcm_s16le", rate: int = 16_000) -> bytes:
    """Return an audio file of channels × samples, with values from -1 to 1."""
    import av

    samples = np.atleast_2d(samples)
    layout = "mono" if len(samples) == 1 else "stereo"
    out = io.BytesIO()
    with av.open(out, "w", format=form) as container:
        stream = container.add_stream(codec, rate=rate, layout=layout)
        ints = (np.clip(samples, -1, 1) * 32767).astype(np.int16)
        frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(ints.T.reshape(1, -1)), format="s16", layout=layout)
        frame.sample_rate = rate
        for resampled in av.AudioResampler(
            format=stream.format.name, layout=layout, rate=stream.rate, frame_size=stream.codec_context.frame_size or None
        ).resample(frame):
            container.mux(stream.encode(resampled))
        container.mux(stream.encode(None))
    return out.getvalue()


def tone(seconds: float, *, rate: int = 16_000, hertz: float = 440.0, level: float = 0.3) -> np.ndarray[Any, Any]:
    return level * np.sin(2 * np.pi * hertz * np.arange(int(seconds * rate)) / rate)


def speech(words: str, folder: Path, *, voice: str = "en", rate: int = 16_000) -> np.ndarray[Any, Any]:
    """Return spoken words, without silence at both ends."""
    import av

    file = folder / "speech.wav"
    espeak = program("espeak-ng").resolve()
    own = next(
        (file.parent for file in (espeak.parent.parent / "root").rglob("phontab")), None
    )  # the data folder, if espeak-ng is unpacked instead of installed
    subprocess.run([espeak, *(() if own is None else (f"--path={own.parent}",)), "-v", voice, "-w", file, words], check=True)
    with av.open(str(file)) as container:
        resampler = av.AudioResampler(format="flt", layout="mono", rate=rate)
        pieces = [out.to_ndarray()[0] for frame in container.decode(audio=0) for out in resampler.resample(frame)]
    samples = np.concatenate(pieces)
    loud = np.flatnonzero(np.abs(samples) > 0.02)
    return samples[loud[0] : loud[-1]]


def together(*tracks: Sequence[tuple[float, np.ndarray[Any, Any]]], seconds: float, rate: int = 16_000) -> np.ndarray[Any, Any]:
    """Return one channel per track, with the track's sounds at their times."""
    out = np.zeros((len(tracks), int(seconds * rate)))
    for row, track in enumerate(tracks):
        for start, samples in track:
            place = int(start * rate)
            out[row, place : place + len(samples)] += samples[: out.shape[1] - place]
    return out
