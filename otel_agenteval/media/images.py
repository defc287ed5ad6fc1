"""Functions that open images within limits, measure images, and prepare images for a judge."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..core.errors import MetricError, MissingExtra
from ..core.extras import require
from .access import IMAGES, MediaContent, as_data, type_of
from .metadata import WITHOUT_METADATA, without_metadata
from .rules import current_rules, shared

if TYPE_CHECKING:
    import numpy as np

_MEASURED_EDGE = 1024
"""Maximum pixels of a measured image's longer side. This limit makes the sharpness of small and large images comparable."""
_QUALITY = 90
_HASH_EDGE = 8


@dataclass(frozen=True, slots=True)
class Measures:
    """Technical measurements of an image, independent of its subject."""

    width: int
    height: int
    sharpness: float
    """Variance of the Laplacian of the brightness (0 to 255), measured at 1,024 pixels or less. Below 50, images look blurred."""
    brightness: float
    """Mean brightness, from 0 to 1."""
    contrast: float
    """Standard deviation of the brightness, from 0 to 0.5."""
    dark: float
    """Share of pixels that are almost black and therefore show no detail."""
    bright: float
    """Share of pixels that are almost white and therefore show no detail."""


def measured(content: MediaContent) -> Measures:
    """Return an image's measurements, such as its width and height.

    Raises MetricError if the image is broken (``invalid_media``), too large (``media_too_large``), or of an unsupported type
    (``unsupported_media``). Raises MissingExtra if Pillow isn't installed.
    """

    def measure() -> Measures:
        import numpy as np

        with _opened(content) as image:
            size = image.size
            image.draft("L", (_MEASURED_EDGE, _MEASURED_EDGE))
            small = _opaque(image).convert("L")
            small.thumbnail((_MEASURED_EDGE, _MEASURED_EDGE))
            grey = np.asarray(small, np.float32)
        brightness, contrast = float(grey.mean()) / 255, float(grey.std()) / 255
        return Measures(
            size[0], size[1], sharpness_of(grey), brightness, contrast, float((grey <= 4).mean()), float((grey >= 251).mean())
        )

    return shared(("image", content), measure)


def sharpness_of(grey: np.ndarray[Any, Any]) -> float:
    if min(grey.shape) < 3:
        return 0.0
    around = grey[:-2, 1:-1] + grey[2:, 1:-1] + grey[1:-1, :-2] + grey[1:-1, 2:]
    return float((around - 4 * grey[1:-1, 1:-1]).var())


def likeness(one: MediaContent, other: MediaContent) -> float:
    """Return two images' similarity: the share (0 to 1) of equal bits in the difference hashes (dHash)."""
    return float((_hash(one) == _hash(other)).mean())


def _hash(content: MediaContent) -> Any:
    import numpy as np

    with _opened(content) as image:
        from PIL import Image

        small = _opaque(image).convert("L").resize((_HASH_EDGE + 1, _HASH_EDGE + 1), Image.Resampling.BOX)
    grey = np.asarray(small, np.int16)
    return np.concatenate(((grey[:-1, 1:] > grey[:-1, :-1]).ravel(), (grey[1:, :-1] > grey[:-1, :-1]).ravel()))


def for_judge(content: MediaContent) -> str:
    """Return an image as a ``data:`` URI for a judge: scaled down, opaque, and without metadata.

    BMP and TIFF images are converted, because models don't accept these formats. Small animations keep their frames and
    transparency. If Pillow isn't installed, only the metadata is removed. Raises MetricError for the same reasons as
    :func:`measured`. Raises MissingExtra if the image must be converted, but Pillow isn't installed.
    """
    most = current_rules().max_edge
    fits = True
    with suppress(MissingExtra), _opened(content) as image:
        fits = max(image.size) <= most and (getattr(image, "is_animated", False) or _opaque(image) is image)
    if content.mime in WITHOUT_METADATA and fits:
        data, mime = content.data, content.mime
    else:
        data, mime = _scaled(content, most)
    return as_data(MediaContent(without_metadata(data), mime))


def decoded(content: MediaContent) -> Any:
    """Decode an image to an RGB Pillow image, rotated upright. Raises MetricError for the same reasons as :func:`measured`."""
    from PIL import ImageOps

    with _opened(content) as image:
        return _opaque(ImageOps.exif_transpose(image)).convert("RGB")


def _scaled(content: MediaContent, edge: int) -> tuple[bytes, str]:
    from PIL import ImageOps

    with _opened(content) as image:
        image.draft("RGB", (edge, edge))
        upright = ImageOps.exif_transpose(image)
        is_drawing = content.mime in ("image/png", "image/gif")
        small = _opaque(upright)
        small.thumbnail((edge, edge))
        out = io.BytesIO()
        if is_drawing:
            small.convert("RGB").save(out, "PNG")
            return out.getvalue(), "image/png"
        small.convert("RGB").save(out, "JPEG", quality=_QUALITY)
        return out.getvalue(), "image/jpeg"


_NEARLY_WHITE = 240


def _opaque(image: Any) -> Any:
    """Remove transparency and convert the image to 8 bits per value. If nothing changes, return the same image.

    Transparent pixels become white, or black if over 90 % of the visible pixels are nearly white. In 32-bit images, white is the
    smallest of 1, 255, and 65,535 that no pixel exceeds. If a pixel exceeds 65,535, white is the highest value.
    """
    if image.mode == "F" or image.mode.startswith("I"):
        import numpy as np
        from PIL import Image

        values = np.nan_to_num(np.asarray(image, np.float32), posinf=0, neginf=0).clip(0)
        most = float(values.max())
        full = 65_535 if ";16" in image.mode else next((full for full in (1, 255, 65_535) if most <= full), most)
        return Image.fromarray((values * (255 / full) + 0.5).astype(np.uint8))
    if image.has_transparency_data:
        from PIL import Image

        layer = image.convert("RGBA")
        alpha = layer.getchannel("A")
        if alpha.getextrema()[0] < 255:
            visible = layer.convert("L").histogram(alpha)
            is_white = sum(visible[_NEARLY_WHITE:]) > 0.9 * sum(visible)
            return Image.alpha_composite(Image.new("RGBA", layer.size, "black" if is_white else "white"), layer).convert("RGB")
    return image


@contextmanager
def _opened(content: MediaContent) -> Iterator[Any]:
    """Open an image, and decode its pixels on first use. Raises the errors of :func:`measured`."""
    pillow = require("PIL.Image", feature="analyzing images", extra="media")
    found = type_of(content.data)
    if found not in IMAGES:
        raise MetricError(
            "unsupported_media", f"the image must be PNG, JPEG, GIF, WebP, BMP, or TIFF, got {found or content.mime}"
        )
    most = current_rules().max_pixels
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pillow.open(io.BytesIO(content.data), formats=[found.partition("/")[2].upper()]) as image:
                if image.width * image.height > most:
                    raise MetricError(
                        "media_too_large",
                        f"the image must have at most {most:,} pixels (media.max_pixels), got {image.width} x {image.height}",
                    )
                yield image
    except MetricError:
        raise
    except pillow.DecompressionBombError:
        raise MetricError(
            "media_too_large", f"the image must have at most {most:,} pixels (media.max_pixels), got far more"
        ) from None
    except Exception as error:  # broken files can cause any exception
        raise MetricError("invalid_media", f"decoding the image failed ({type(error).__name__})") from None
