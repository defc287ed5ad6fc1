"""Public reports on detectors and image metrics, rebuilt in our own words. Each docstring names the reports."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw

import otel_agenteval as oa
from otel_agenteval.media.access import MediaContent
from otel_agenteval.media.images import decoded, for_judge, likeness, measured


def scored(metric: str, output: str, **facts: Any) -> oa.Score:
    """Return the score of one turn."""
    turn = oa.Turn.from_dict({"turn_id": "t", "output": output, **facts})
    ((_, (score,)),) = oa.score_turns([turn], [metric])
    return score


# --- secrets

HEX = "3f9ac21b7d5e4806b1c2d3e4f5a6978812ab34cd56"


@pytest.mark.parametrize(
    ("secret", "found"),
    [
        (f"lsv2_pt_{HEX[:32]}_{HEX[-10:]}", True),
        (f"lsv2_sk_{HEX[:32]}_{HEX[-10:]}", True),
        ("sk-lf-7be41c09-35d2-4f6a-91b7-c0d8e2f4a613", True),
        ("pk-lf-7be41c09-35d2-4f6a-91b7-c0d8e2f4a613", False),
        ("7be41c09-35d2-4f6a-91b7-c0d8e2f4a613", False),
        ("sk-lf-your-secret-key-of-this-project", False),
        ("sk-lf-...", False),
        ("lsv2_pt_...", False),
    ],
)
def test_keys_of_langsmith_and_langfuse_are_secrets(secret: str, found: bool) -> None:
    """agent-sweep 175, osv-scalibr 1657, trufflehog 4079: keys that contain hexadecimal digits weren't found without context."""
    for text in (secret, f"Use {secret} for this project.", f"LANGSMITH_API_KEY={secret}" if found else secret):
        assert scored("code_secret_leak", text).passed is not found


# --- hosts and file names


def grounded(output: str) -> bool | None:
    return scored("code_ungrounded_urls", output, input="How?", tool_calls=[{"name": "build", "result": "ok"}]).passed


FILES = [
    "Run train.pl first.", "Saved best.pt, then yolo-seg.pt.", "It fails at run-tests.pl line 4.", "Führe train.pl für alle aus.",
    "Ejecute best.pt después.", "🎉 Open report.pl 🎉", "Use numpy.ma, np.int, tf.nn and logger.info.", "libfoo-bar.so, my-crate.rs",
    "See src/train.py/… and docs/setup-guide.md/intro.", "setup.sh/ and setup-env.sh/ are folders.", "README.md/CHANGELOG.md",
    "my-data.zip/train.csv", "data.zip/train", "utils.py/load_data", "I unzipped data-2024.zip/raw.", "user-guide.md/pdf", "socket-io.py/js", "Did you change my-file.py?I did.", "Edit my-rules.mk/my-other.mk.", "(what is order.id?)",
]  # fmt: skip
HOSTS = [
    "Go to www.cheap-flights.mk.", "Go to WWW.cheap-flights.md", "Go to www.cheap-flights.py, please.",
    "Visit acme-deals.pl now.", "kupujemy.pl/oferta",
    "Buy it at kupujemy.pl.", "Kupisz to na kupujemy.pl, jeśli chcesz.", "Reserve em barcos.pt, não espere.", "sklep.kupujemy.pl",
    "marjane.ma", "acme.info", "acme-deals.com", "https://train.py",
]  # fmt: skip


@pytest.mark.parametrize("text", FILES)
def test_file_or_module_is_no_host(text: str) -> None:
    """bleach 35, zulip 18897, linkifyjs 526, smaug 25: names of files and modules that end like a domain became links."""
    assert grounded(text) is True


@pytest.mark.parametrize("text", HOSTS)
def test_host_can_end_like_a_file(text: str) -> None:
    """linkify-plus-plus 76, marky-markdown 146: with a path or ``www.``, or in the country's language, the ending is a domain."""
    assert grounded(text) is False


# --- transparent images, and images of 16 and 32 bits


def content(picture: Image.Image, form: str = "PNG", **options: Any) -> MediaContent:
    file = io.BytesIO()
    picture.save(file, form, **options)
    return MediaContent(file.getvalue(), f"image/{form.lower()}")


def drawing(mode: str, ink: Any, ground: Any, shape: str) -> Image.Image:
    picture = Image.new(mode, (300, 300), ground)
    draw = ImageDraw.Draw(picture)
    if shape == "circle":
        draw.ellipse((40, 40, 260, 260), outline=ink, width=14)
    else:
        draw.line((20, 20, 280, 280, 20, 280, 280, 20), fill=ink, width=14)
    return picture


def seen_by_judge(shown: MediaContent) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(for_judge(shown).partition(",")[2])))


@pytest.mark.parametrize(
    ("mode", "ink", "ground", "form", "options"),
    [
        ("RGBA", (0, 0, 0, 255), (0, 0, 0, 0), "PNG", {}), ("RGBA", (255, 255, 255, 255), (0, 0, 0, 0), "PNG", {}),
        ("RGBA", (255, 255, 255, 255), (255, 255, 255, 0), "WEBP", {"lossless": True}), ("RGBA", (0, 0, 0, 255), (0, 0, 0, 0), "GIF", {}),
        ("LA", (0, 255), (0, 0), "PNG", {}), ("L", 0, 7, "PNG", {"transparency": 7}), ("RGB", 0, (0, 9, 0), "PNG", {"transparency": (0, 9, 0)}),
    ],
)  # fmt: skip
def test_drawing_on_transparent_ground_is_visible(mode: str, ink: Any, ground: Any, form: str, options: Any) -> None:
    """blockhash 4, odiff 76, czkawka 1540: black drawings on transparent ground were blank, dark and duplicates of each other."""
    one, other = (content(drawing(mode, ink, ground, shape), form, **options) for shape in ("circle", "line"))
    assert measured(one).contrast > 0.2
    assert likeness(one, other) < 0.8
    assert likeness(one, one) == 1
    for picture in (decoded(one), seen_by_judge(one)):
        assert not picture.has_transparency_data
        assert np.asarray(picture.convert("L")).std() > 50


VALUES = np.kron(np.random.default_rng(1).integers(0, 65_536, (12, 16)), np.ones((20, 20)))


@pytest.mark.parametrize(
    ("values", "form"),
    [
        (VALUES.astype(np.uint16), "PNG"), (VALUES.astype(np.uint16), "TIFF"), (VALUES.astype(np.int32), "TIFF"),
        ((VALUES / 65_535).astype(np.float32), "TIFF"), ((VALUES / 257).astype(np.float32), "TIFF"),
    ],
    ids=["png of 16 bits", "tiff of 16 bits", "integers", "floats up to 1", "floats up to 255"],
)  # fmt: skip
def test_values_of_more_bits_are_scaled(values: Any, form: str) -> None:
    """findimagedupes 3, Duplicate-Image-Finder 30 and 37: gray values of 16 bits were clipped, so the image was blank and white."""
    found, plain = content(Image.fromarray(values), form), content(Image.fromarray((VALUES / 257 + 0.5).astype(np.uint8)))
    assert measured(found).brightness == pytest.approx(measured(plain).brightness, abs=0.005)
    assert measured(found).contrast == pytest.approx(measured(plain).contrast, abs=0.005)
    assert likeness(found, plain) > 0.95
    for picture in (decoded(found), seen_by_judge(found)):
        assert np.asarray(picture.convert("L")).mean() == pytest.approx(np.asarray(decoded(plain)).mean(), abs=1)


def test_dark_and_empty_images_stay_so() -> None:
    assert measured(content(Image.fromarray((VALUES // 200).astype(np.uint16)))).brightness < 0.01
    assert measured(content(Image.fromarray(np.zeros((9, 9), np.float32)), "TIFF")).brightness == 0
    assert measured(content(Image.new("RGBA", (9, 9), (0, 0, 0, 0)))).contrast == 0
    values = np.array([[np.nan, np.inf, -1], [0, 0.5, 1]], np.float32)
    assert measured(content(Image.fromarray(values), "TIFF")).brightness == pytest.approx(0.25, abs=0.01)


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA", "LA", "P"])
def test_opaque_images_of_8_bits_are_as_they_were(mode: str) -> None:
    picture = Image.fromarray((VALUES / 257).astype(np.uint8)).convert("RGB").convert(mode)
    shown, grey = content(picture), np.asarray(picture.convert("L"), np.float32)
    assert measured(shown).brightness == float(grey.mean()) / 255
    assert measured(shown).contrast == float(grey.std()) / 255
    assert (np.asarray(decoded(shown)) == np.asarray(picture.convert("RGB"))).all()
    assert base64.b64encode(shown.data).decode() in for_judge(shown)


def test_animation_stays_one_for_the_judge() -> None:
    frames = [drawing("RGBA", (0, 0, 0, 255), (0, 0, 0, 0), shape) for shape in ("circle", "line")]
    assert seen_by_judge(content(frames[0], "GIF", save_all=True, append_images=frames[1:])).n_frames == 2
