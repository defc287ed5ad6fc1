"""What is taken out of images before anybody else sees them."""

from __future__ import annotations

import io
import struct

import numpy as np
import pytest
from PIL import Image

from otel_agenteval.core.errors import MetricError
from otel_agenteval.media.metadata import without_metadata
from tests.support.media import image, scenery, with_place

PICTURE = scenery(96, 64)
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


def test_a_progressive_jpeg_of_many_scans_stays_whole() -> None:
    data = with_place(scenery(320, 240))
    progressive = image(scenery(320, 240), "JPEG", progressive=True, comment=b"Erika")
    assert progressive.count(b"\xff\xda") > 3
    found = without_metadata(progressive)
    assert b"Erika" not in found
    assert (pixels(found) == pixels(progressive)).all()
    assert len(found) < len(data) + len(progressive)


def test_a_second_image_behind_the_first_goes_too() -> None:
    data = image(PICTURE, "JPEG")
    assert without_metadata(data + with_place(PICTURE)) == without_metadata(data)


def test_a_colour_profile_stays() -> None:
    from PIL import ImageCms

    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    for form in ("JPEG", "PNG", "WEBP"):
        assert opened(without_metadata(image(PICTURE, form, icc_profile=profile))).info["icc_profile"] == profile


def test_texts_in_a_png_go() -> None:
    from PIL.PngImagePlugin import PngInfo

    info = PngInfo()
    info.add_text("Author", "Erika")
    info.add_itxt("XML:com.adobe.xmp", "<x>Erika</x>", zip=False)
    data = image(PICTURE, "PNG", pnginfo=info)
    assert b"Erika" in data
    assert b"Erika" not in without_metadata(data)


def test_an_animation_keeps_its_pictures_and_loses_its_comment() -> None:
    frames = [Image.fromarray(scenery(48, 32, seed=n)) for n in range(3)]
    out = io.BytesIO()
    frames[0].save(out, "GIF", save_all=True, append_images=frames[1:], loop=0, duration=40, comment=b"by Erika")
    found = without_metadata(out.getvalue())
    assert b"Erika" not in found
    assert (opened(found).n_frames, opened(found).info["loop"]) == (3, 0)
    assert (pixels(found) == pixels(out.getvalue())).all()


def test_what_is_no_such_image_stays_as_it_is() -> None:
    for data in (b"", b"hello", image(PICTURE, "BMP")):
        assert without_metadata(data) is data


@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP", "GIF"])
def test_every_cut_and_many_lies_end_in_one_kind_of_error(form: str) -> None:
    data = with_place(PICTURE, form) if form != "GIF" else image(PICTURE, "GIF")
    random = np.random.default_rng(3)
    spoiled = [data[:length] for length in range(12, len(data), max(1, len(data) // 200))]
    for _ in range(300):
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


def test_a_chunk_that_claims_more_than_there_is() -> None:
    data = image(PICTURE, "PNG")
    with pytest.raises(MetricError):
        without_metadata(data[:8] + struct.pack(">I4s", 2**32 - 1, b"IHDR") + data[16:])
