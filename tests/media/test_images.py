"""Measurements of images, and the images that a judge receives."""

from __future__ import annotations

import base64
import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from otel_agenteval.core.errors import MetricError
from otel_agenteval.media.access import MediaContent, content_of, type_of
from otel_agenteval.media.images import Measures, for_judge, likeness, measured
from otel_agenteval.media.rules import Rules, opening
from tests.support.media import Picture, blurred, image, scenery, uri, with_place

PICTURE = scenery(640, 480)


def content(data: bytes) -> MediaContent:
    return MediaContent(data, type_of(data) or "")


def look(picture: Picture, form: str = "PNG", **options: object) -> Measures:
    return measured(content(image(picture, form, **options)))


def fault(data: bytes, rules: Rules | None = None) -> str:
    with opening(rules or Rules()), pytest.raises(MetricError) as caught:
        measured(content(data))
    return caught.value.error_type


@pytest.mark.parametrize("form", ["JPEG", "WEBP", "GIF", "TIFF"])
def test_each_type_is_measured_and_alike(form: str) -> None:
    found, exact = look(PICTURE, form), look(PICTURE)
    assert (found.width, found.height) == (640, 480)
    assert found.brightness == pytest.approx(exact.brightness, abs=0.02)
    assert found.contrast == pytest.approx(exact.contrast, abs=0.02)


def test_sharpness_falls_with_blur() -> None:
    found = [look(blurred(PICTURE, radius)).sharpness for radius in (0, 0.5, 1, 2, 4)]
    assert found == sorted(found, reverse=True)
    assert found[0] > 1000
    assert 50 > found[3] > found[4]


def test_sharpness_hardly_depends_on_the_size() -> None:
    small = blurred(scenery(1024, 768, seed=2), 1)
    large = np.asarray(Image.fromarray(small).resize((2048, 1536), Image.Resampling.BICUBIC))
    assert look(large, "BMP").sharpness == pytest.approx(look(small, "BMP").sharpness, rel=0.25)


def test_exposure_follows_the_light() -> None:
    dark, bright = look((PICTURE * 0.02).astype(np.uint8)), look(np.clip(PICTURE.astype(int) + 220, 0, 255).astype(np.uint8))
    assert dark.brightness < 0.02
    assert dark.dark > 0.9
    assert bright.brightness > 0.95
    assert bright.bright > 0.9
    assert max(look(PICTURE).dark, look(PICTURE).bright) < 0.01


def test_the_same_image_is_known_again() -> None:
    one = content(image(PICTURE))
    small = np.asarray(Image.fromarray(PICTURE).resize((200, 150)))
    lighter = np.clip(PICTURE.astype(int) + 25, 0, 255).astype(np.uint8)
    for other in (image(PICTURE, "JPEG", quality=40), image(small), image(lighter), image(blurred(PICTURE, 2), "WEBP")):
        assert likeness(one, content(other)) > 0.95
    for seed in range(2, 5):
        assert likeness(one, content(image(scenery(640, 480, seed=seed)))) < 0.8


# --- what cannot be opened


def test_broken_and_cut_off() -> None:
    for form in ("PNG", "JPEG", "WEBP", "GIF"):
        data = image(PICTURE, form)
        assert fault(data[: len(data) // 3]) == "invalid_media"
    assert fault(b"\x89PNG\r\n\x1a\n" + b"\0" * 100) == "invalid_media"
    assert fault(b"GIF89a") == "invalid_media"


def test_a_bomb_is_known_by_its_head(monkeypatch: pytest.MonkeyPatch) -> None:
    """50,000 × 50,000 pixels in a few kB would take 7.5 GB after decoding."""

    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", 50_000, 50_000, 8, 2, 0, 0, 0))
    bomb = b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(bytes(10_000_000), 9)) + chunk(b"IEND", b"")
    assert len(bomb) < 20_000
    monkeypatch.setattr(Image.Image, "load", lambda self: pytest.fail("it was decoded"))
    assert fault(bomb) == "media_too_large"
    with pytest.raises(MetricError):
        for_judge(content(bomb))


def test_images_of_other_types_are_not_opened() -> None:
    with pytest.raises(MetricError) as caught:
        content_of(uri(b"<svg xmlns='http://www.w3.org/2000/svg'/>", "image/svg+xml"), "image")
    assert caught.value.error_type == "invalid_media"
    heic = b"\0\0\0\x18ftypheic" + bytes(100)
    assert fault(heic) == "unsupported_media"
    with pytest.raises(MetricError) as caught:
        for_judge(content(heic))
    assert caught.value.error_type == "unsupported_media"


# --- what a judge sees


def shown(data: bytes, **rules: int) -> tuple[str, Image.Image, bytes]:
    with opening(Rules(**rules)):
        found = for_judge(content(data))
    head, _, body = found.partition(",")
    raw = base64.b64decode(body)
    return head.removeprefix("data:").removesuffix(";base64"), Image.open(io.BytesIO(raw)), raw


def test_a_small_image_is_shown_as_it_is_without_its_metadata() -> None:
    data = image(PICTURE)
    assert shown(data)[2] == data
    mime, picture, raw = shown(with_place(PICTURE))
    assert (mime, picture.size) == ("image/jpeg", (640, 480))
    assert b"Mustermann" not in raw


@pytest.mark.parametrize(
    ("form", "max_edge", "mime", "size"),
    [
        ("JPEG", 200, "image/jpeg", (200, 150)), ("PNG", 200, "image/png", (200, 150)), ("WEBP", 200, "image/jpeg", (200, 150)),
        ("BMP", 1_000, "image/jpeg", (640, 480)), ("TIFF", 1_000, "image/jpeg", (640, 480)),
    ],
)  # fmt: skip
def test_a_judge_sees_a_smaller_image_of_a_type_it_takes(form: str, max_edge: int, mime: str, size: tuple[int, int]) -> None:
    found, picture, raw = shown(image(PICTURE, form) if form == "BMP" else with_place(PICTURE, form), max_edge=max_edge)
    assert (found, picture.size) == (mime, size)
    assert not picture.getexif()
    assert b"Mustermann" not in raw


def test_a_large_image_is_put_upright() -> None:
    assert shown(with_place(PICTURE, orientation=6), max_edge=200)[1].size == (150, 200)


def test_a_judge_sees_an_opaque_image() -> None:
    see_through = Image.fromarray(np.dstack((PICTURE, np.full(PICTURE.shape[:2], 40, np.uint8))))
    out = io.BytesIO()
    see_through.save(out, "WEBP", lossless=True)
    mime, picture, _ = shown(out.getvalue(), max_edge=200)
    assert (mime, picture.mode) == ("image/jpeg", "RGB")
    assert np.asarray(picture).min() >= 255 - 50
