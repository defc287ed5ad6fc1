"""Metadata that is removed from images before a judge receives them."""

from __future__ import annotations

import base64
import io
import itertools
import re
import struct
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageCms

from otel_agenteval.core.errors import MetricError
from otel_agenteval.media.access import MediaContent, type_of
from otel_agenteval.media.images import for_judge
from otel_agenteval.media.metadata import without_metadata
from otel_agenteval.media.rules import Rules, opening
from tests.support.media import image, scenery, with_place

PICTURE = scenery(96, 64)
MARK = b"Erika-Mustermann-was-here-in-Berlin"
TOLD = (b"Mustermann", b"SecretCam", b"Erika", b"GPS")


def pixels(data: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))


def opened(data: bytes) -> Image.Image:
    return Image.open(io.BytesIO(data))


@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP"])
def test_places_and_names_go_and_pixels_stay(form: str) -> None:
    data = with_place(PICTURE, form)
    assert opened(data).getexif().get_ifd(0x8825), "the test's image has no place"
    found = without_metadata(data)
    assert not opened(found).getexif()
    assert not any(word in found for word in TOLD)
    assert (pixels(found) == pixels(data)).all()
    assert without_metadata(found) == found


@pytest.mark.parametrize("orientation", [1, 3, 6, 8])
def test_of_a_jpeg_only_which_side_is_up_stays(orientation: int) -> None:
    found = without_metadata(with_place(PICTURE, orientation=orientation))
    exif = opened(found).getexif()
    assert dict(exif) == ({} if orientation == 1 else {0x0112: orientation})
    assert not any(word in found for word in TOLD)


def profile(*, primaries: tuple[float, ...] = (), told: bytes = b"") -> bytes:
    """Return a valid color profile with text in every possible place."""
    whole = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
    (count,) = struct.unpack_from(">I", whole, 128)
    entries = [struct.unpack_from(">4sII", whole, 132 + 12 * number) for number in range(count)]
    tags = {name: bytes(whole[start : start + size]) for name, start, size in entries}
    for name, start in zip((b"rXYZ", b"gXYZ", b"bXYZ"), range(0, len(primaries), 3), strict=False):
        tags[name] = b"XYZ " + bytes(4) + struct.pack(">3i", *(round(one * 65_536) for one in primaries[start : start + 3]))
    if told:
        for name in (b"desc", b"cprt", b"dmnd", b"dmdd", b"view", b"meta"):
            tags[name] = b"text" + bytes(4) + told + name
        tags[b"wtpt"] += told
        whole[48:56], whole[80:84], whole[100:128] = told[:8], told[:4], told[:28].ljust(28, b"!")
    table, body, place = struct.pack(">I", len(tags)), b"", 132 + 12 * len(tags)
    for name, data in tags.items():
        table += struct.pack(">4sII", name, place + len(body), len(data))
        body += data + bytes(-len(data) % 4)
    return struct.pack(">I", place + len(body)) + bytes(whole[4:128]) + table + body + told


WIDE = (0.51512, 0.24120, -0.00105, 0.29198, 0.69225, 0.04189, 0.15710, 0.06657, 0.78407)
"""The primaries of Display P3."""


@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP"])
@pytest.mark.parametrize("primaries", [(), WIDE])
def test_a_colour_profile_stays_and_its_texts_go(form: str, primaries: tuple[float, ...]) -> None:
    told = profile(primaries=primaries, told=MARK)
    data = image(PICTURE, form, icc_profile=told)
    found = without_metadata(data)
    kept = opened(found).info["icc_profile"]
    assert MARK in told
    assert MARK[:8] not in kept + found
    assert (pixels(found) == pixels(data)).all()
    srgb = ImageCms.createProfile("sRGB")
    looks = [
        np.asarray(ImageCms.profileToProfile(opened(data).convert("RGB"), ImageCms.ImageCmsProfile(io.BytesIO(one)), srgb), int)
        for one in (profile(primaries=primaries), kept)
    ]
    assert np.abs(looks[0] - looks[1]).max() <= 1
    assert without_metadata(found) == found


def test_a_profile_that_is_not_made_of_numbers_goes() -> None:
    lab = ImageCms.ImageCmsProfile(ImageCms.createProfile("LAB")).tobytes()
    broken = [profile(primaries=(1e3, 0, 0)), profile()[:300], b"acsp", b"", profile().replace(b"para", b"text"), lab]
    for one in broken:
        assert "icc_profile" not in opened(without_metadata(image(PICTURE, "PNG", icc_profile=one))).info, one[:40]


def chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def riff(name: bytes, body: bytes) -> bytes:
    return name + struct.pack("<I", len(body)) + body + bytes(len(body) % 2)


def segment(marker: int, body: bytes) -> bytes:
    return bytes((0xFF, marker)) + struct.pack(">H", len(body) + 2) + body


def told_png() -> bytes:
    """Return a PNG with text in every chunk that can contain text, and also in other chunks."""
    data = image(PICTURE, "PNG")
    end = data.index(b"IDAT") - 4
    packed = zlib.compress(MARK)
    chunks = [
        (b"tEXt", b"Comment\0" + MARK), (b"zTXt", b"Comment\0\0" + packed), (b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + MARK),
        (b"eXIf", b"II*\0" + MARK), (b"iCCP", MARK + b"\0\0" + zlib.compress(profile(told=MARK))), (b"tIME", MARK[:7]), (b"pHYs", MARK[:9]),
        (b"sPLT", MARK), (b"hIST", MARK), (b"gAMA", MARK), (b"cHRM", MARK * 2), (b"sRGB", MARK), (b"sBIT", MARK), (b"bKGD", MARK), (b"prVt", MARK),
    ]  # fmt: skip
    more, last = b"".join(itertools.starmap(chunk, chunks)), chunk(b"tEXt", b"x\0" + MARK)
    return data[:end] + more + data[end:-12] + last + data[-12:] + MARK


def told_jpeg() -> bytes:
    """Return a JPEG with all application segments, comments, previews and unknown segments, also between scans."""
    data = image(PICTURE, "JPEG", progressive=True, icc_profile=profile(told=MARK), exif=with_exif())
    start = data.index(b"JFIF") - 4
    (size,) = struct.unpack_from(">H", data, start + 2)
    preview = b"JFIF\0\x01\x02\0\0\x01\0\x01\x03\x01" + MARK[:9]
    head = [segment(0xE0, preview), segment(0xE0, b"JFXX\0\x10" + MARK), segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0" + MARK)]
    head += [segment(marker, MARK) for marker in (*range(0xE1, 0xF0), 0xFE)]
    head += [segment(0xED, b"Photoshop 3.0\08BIM\x04\x04" + MARK), segment(0xEE, b"Adobe\0\x64\0\0\0\0\x01" + MARK)]
    head.append(segment(0xE2, b"FPXR\0" + MARK))
    scan = data.rindex(b"\xff\xda")
    between = segment(0xFE, MARK) + segment(0xE5, MARK)
    return data[:start] + b"".join(head) + data[start + 2 + size : scan] + between + data[scan:] + MARK


def with_exif() -> Image.Exif:
    exif = Image.Exif()
    exif[0x0112], exif[0x010E], exif[0x9286] = 6, MARK.decode(), MARK.decode()
    return exif


def told_webp(**options: Any) -> bytes:
    data = image(PICTURE, "WEBP", icc_profile=profile(told=MARK), exif=with_exif(), xmp=b"<x>" + MARK + b"</x>", **options)
    body = data[12:] + riff(b"INFO", MARK) + riff(b"ANIM", MARK) + riff(MARK[:4], MARK)
    return b"RIFF" + struct.pack("<I", len(body) + 4) + b"WEBP" + body + MARK


def told_animation() -> bytes:
    """Return an animation that also has text in its frames."""
    frame = riff(b"VP8 ", image(PICTURE, "WEBP", quality=50)[20:]) + riff(b"UNKN", MARK) + riff(b"EXIF", MARK)
    head = riff(b"VP8X", b"\x2e\0\0\0" + struct.pack("<I", 95)[:3] + struct.pack("<I", 63)[:3])
    area = bytes(6) + struct.pack("<I", 95)[:3] + struct.pack("<I", 63)[:3] + bytes(4)
    body = head + riff(b"ANIM", bytes(6)) + riff(b"ANMF", area + frame) * 2 + riff(b"EXIF", MARK)
    return b"RIFF" + struct.pack("<I", len(body) + 4) + b"WEBP" + body


def told_gif() -> bytes:
    data = image(PICTURE, "GIF", comment=MARK)
    end = data.index(b"\x2c", 800)
    blocks = bytes((len(MARK),)) + MARK + b"\0"
    more = b"\x21\xfe" + blocks + b"\x21\xff\x0bXMP DataXMP" + blocks + b"\x21\x01\x0c" + bytes(12) + blocks
    more += b"\x21\xff\x0bNETSCAPE2.0\x03\x01\0\0" + blocks + b"\x21\xf9\x04\0\0\0\0" + blocks + b"\x21\xaa" + blocks
    return data[:end] + more + data[end:] + MARK


@pytest.mark.parametrize("make", [told_png, told_jpeg, told_webp, told_animation, told_gif])
def test_nothing_but_pixels_is_left(make: Callable[[], bytes]) -> None:
    data = make()
    assert MARK in data
    found = without_metadata(data)
    assert MARK[:6] not in found
    assert MARK[:4] not in found
    assert (pixels(found) == pixels(data)).all()
    assert without_metadata(found) == found


@pytest.mark.parametrize("make", [told_png, told_jpeg, told_webp, told_gif])
def test_a_judge_sees_nothing_but_pixels(make: Callable[[], bytes]) -> None:
    data = make()
    for edge in (1_000, 32):
        with opening(Rules(max_edge=edge)):
            seen = base64.b64decode(for_judge(MediaContent(data, type_of(data) or "")).partition(",")[2])
        assert MARK[:6] not in seen
        kept = opened(seen).info.get("icc_profile", b"")  # which PNG keeps compressed
        assert not any(text in MARK for text in re.findall(rb"[\x20-\x7e]{4,}", kept))


@pytest.mark.parametrize(
    ("part", "longer"),
    [(b"\xff\xdb\0\x43", b"\xff\xdb\0\x47" + bytes(4)), (b"\xff\xda\0\x0c", b"\xff\xda\0\x10" + bytes(4))],
    ids=["a table", "a scan's head"],
)
def test_a_jpeg_with_more_in_a_part_than_pixels_is_broken(part: bytes, longer: bytes) -> None:
    data = image(PICTURE, "JPEG")
    assert part in data
    assert fault_of(data.replace(part, longer, 1)) == "invalid_media"


def test_an_animation_keeps_its_pictures_and_loses_its_comment() -> None:
    frames = [Image.fromarray(scenery(48, 32, seed=n)) for n in range(3)]
    out = io.BytesIO()
    frames[0].save(out, "GIF", save_all=True, append_images=frames[1:], loop=0, duration=40, comment=b"by Erika")
    found = without_metadata(out.getvalue())
    assert b"Erika" not in found
    assert (opened(found).n_frames, opened(found).info["loop"]) == (3, 0)
    assert (pixels(found) == pixels(out.getvalue())).all()


@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP", "GIF"])
def test_every_cut_and_many_lies_end_in_one_kind_of_error(form: str) -> None:
    data = with_place(PICTURE, form) if form != "GIF" else image(PICTURE, "GIF")
    random = np.random.default_rng(3)
    spoiled = [data[:length] for length in range(12, len(data), max(1, len(data) // 100))]
    for _ in range(100):
        other = bytearray(data)
        for place in random.integers(12, len(data), 5):
            other[place] = random.integers(0, 256)
        spoiled.append(bytes(other))
    faults = [fault for one in spoiled if (fault := fault_of(one)) is not None]
    assert set(faults) == {"invalid_media"}


def fault_of(data: bytes) -> str | None:
    try:
        without_metadata(data)
    except MetricError as error:
        return error.error_type
    return None
