"""The ``code_`` metrics check the quality and text of a turn's images, or search the answer for references to media."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable
from typing import Annotated, Literal

from annotated_types import Ge

from ...core import jsonio
from ...core.turn import Turn
from ...media.access import MediaContent
from ...media.decoding import writing_in
from ...media.images import Measures, likeness, measured
from ..lib import applies
from ..lib.media import attachments_of, contents_of, media_of, modalities_of
from ..lib.tokens import normalized
from ..lib.values import Share
from ..registry import Result, metric, skip

_KEYWORDS = {
    "image": frozenset(("image", "picture", "photo", "visual", "see", "shown", "display")),
    "audio": frozenset(("audio", "sound", "hear", "listen", "voice", "spoken")),
    "video": frozenset(("video", "clip", "footage", "scene", "frame")),
    "text": frozenset(("text", "written", "document", "read")),
}
"""Words that refer to each modality. ``detail`` lists modalities in this order."""
_CONNECTIVES = (
    "while", "also", "additionally", "furthermore", "moreover", "in addition to", "along with", "together with", "combined with",
)  # fmt: skip
_ENOUGH_CONNECTIVES = 3


def _occurs(phrase: str, text: str, word_boundaries: bool) -> bool:
    if not word_boundaries:
        return phrase in text
    words = r"\s+".join(phrase.split())  # phrases only have letters and spaces
    return re.search(rf"\b{words}\b", text) is not None


@metric(
    needs=("output",),
    uses=("attachments",),
    applies=applies.media,
    aliases=("agentunit:multimodal_coherence", "agentunit:MultimodalCoherenceMetric"),
    traits=("heavy",),
)
def code_multimodal_coherence(turn: Turn, *, word_boundaries: bool = True) -> Result:
    """Share of the turn's modalities that the answer mentions, plus points for connectives.

    The value is ``0.6 * referenced / present modalities + 0.4 * min(1, connectives / 3)``. Images, audio, or video are present if
    an attachment has this modality or media type. Text is present if the input contains text. A modality is referenced if the
    answer contains one of its words, ignoring case:

    - image: image, picture, photo, visual, see, shown, display
    - audio: audio, sound, hear, listen, voice, spoken
    - video: video, clip, footage, scene, frame
    - text: text, written, document, read

    The metric counts each of these connectives at most once: while, also, additionally, furthermore, moreover, in addition to,
    along with, together with, combined with. If the answer is empty, the value is 0.

    Parameters:
        word_boundaries: If true, only whole words count. If false, "see" also matches "seems".

    Detail: ``coverage_score`` (share of the modalities that the answer mentions), ``coherence_score``
    (``min(1, connectives / 3)``), ``referenced_modalities``, and ``present_modalities``.
    """
    present = {"text"} if turn.input and turn.input.strip() else set()
    present = present.union(*map(modalities_of, attachments_of(turn)))
    if not present:
        return skip("missing:image")
    text = (turn.output or "").lower()
    referenced = [
        name
        for name, keywords in _KEYWORDS.items()
        if name in present and any(_occurs(word, text, word_boundaries) for word in keywords)
    ]
    connectives = sum(_occurs(phrase, text, word_boundaries) for phrase in _CONNECTIVES)
    coverage = len(referenced) / len(present)
    coherence = min(1.0, connectives / _ENOUGH_CONNECTIVES)
    detail = {
        "coverage_score": coverage,
        "coherence_score": coherence,
        "referenced_modalities": referenced,
        "present_modalities": [name for name in _KEYWORDS if name in present],
    }
    return Result(0.6 * coverage + 0.4 * coherence, detail=detail)


_MOST_IMAGES = 100


def _contents(turn: Turn) -> list[MediaContent] | Result:
    if not (found := contents_of(turn, "image")):
        return skip("media_not_open" if media_of(turn, "image") else "missing:image")
    return skip("too_long") if len(found) > _MOST_IMAGES else found


def _share_that_holds(turn: Turn, holds: Callable[[Measures], bool], *shown: str) -> Result:
    if isinstance(found := _contents(turn), Result):
        return found
    measures = [measured(content) for content in found]
    good = sum(map(holds, measures))
    images = [{name: round(getattr(image, name), 3) for name in ("width", "height", *shown)} for image in measures]
    return Result(good / len(measures), detail={"images": images})


@metric(threshold=1.0, applies=applies.image, extra="media", traits=("media",))
def code_image_sharpness(turn: Turn, *, min_sharpness: Annotated[float, Ge(0)] = 50.0) -> Result:
    """Share of the turn's images that are sharp enough to read.

    Sharpness is the variance of the Laplacian of the brightness (0..255). Images are first scaled down to at most 1,024 pixels per
    side. Sharp photos have a sharpness of several hundred, and blurred photos less than 50. Drawings with plain areas can also be
    below 50.

    Transparent images get a white background (black if nearly all visible pixels are white). 16-bit values become 8-bit.

    The metric measures images whose data the turn contains, and images that the ``media`` configuration allows it to open. If an
    image can't be decoded, the score is an error. The score is skipped for these reasons:

    - ``missing:image``: the turn doesn't contain images.
    - ``media_not_open``: the metric isn't allowed to open any image.
    - ``too_long``: the turn has more than 100 images that the metric is allowed to open.

    Parameters:
        min_sharpness: Lowest sharpness at which an image counts as sharp.

    Detail: ``images``, each with ``width`` and ``height`` (pixels), and ``sharpness``.
    """
    return _share_that_holds(turn, lambda image: image.sharpness >= min_sharpness, "sharpness")


@metric(threshold=1.0, applies=applies.image, extra="media", traits=("media",))
def code_image_exposure(turn: Turn, *, max_lost: Share = 0.4, brightness: tuple[Share, Share] = (0.08, 0.95)) -> Result:
    """Share of the turn's images that are neither too dark nor too bright.

    An image counts as well exposed if all of these conditions are true:

    - Its mean brightness is in the range ``brightness``.
    - The share of dark pixels (brightness 4 of 255 or less) is at most ``max_lost``.
    - The share of bright pixels (brightness 251 of 255 or more) is at most ``max_lost``.

    Documents on white paper are mostly bright, so raise ``max_lost`` for them. ``code_image_sharpness`` explains which images are
    measured and when scores are skipped.

    Parameters:
        max_lost: Maximum share of dark pixels, and of bright pixels.
        brightness: Lowest and highest mean brightness (0..1) of a well-exposed image.

    Detail: ``images``, each with ``width`` and ``height`` (pixels), ``brightness``, and the shares of ``dark`` and ``bright`` pixels.
    """
    least, most = brightness
    return _share_that_holds(
        turn,
        lambda image: least <= image.brightness <= most and max(image.dark, image.bright) <= max_lost,
        "brightness", "dark", "bright",
    )  # fmt: skip


@metric(threshold=1.0, applies=applies.image, extra="media", traits=("media",))
def code_image_blank(turn: Turn, *, min_contrast: Share = 0.02) -> Result:
    """Share of the turn's images that aren't blank.

    An image is blank if its contrast (the standard deviation of its brightness) is below ``min_contrast``. ``code_image_sharpness`` explains which images are measured and when scores are skipped.

    Parameters:
        min_contrast: Lowest contrast (0..0.5) of an image that isn't blank.

    Detail: ``images``, each with ``width`` and ``height`` (pixels), and ``contrast``.
    """
    return _share_that_holds(turn, lambda image: image.contrast >= min_contrast, "contrast")


@metric(threshold=1.0, applies=applies.image, extra="media", traits=("media",))
def code_image_duplicate(turn: Turn, *, max_likeness: Share = 0.95) -> Result:
    """Share of the turn's images that don't duplicate an earlier image.

    The metric compares difference hashes (dHash, 128 bits). Two images are duplicates if the share of equal bits is above
    ``max_likeness``. Scaled, converted, or recompressed copies usually count as duplicates. All images of a single color are
    duplicates of each other. If the turn refers to an image several times, the image counts once.

    ``code_image_sharpness`` explains which images are measured and when scores are skipped. If only one image is measured, the
    score is skipped as ``not_applicable:one_image``.

    Parameters:
        max_likeness: Share of equal bits (0..1) above which two images are duplicates.

    Detail: ``duplicates``, a list of ``[position, position of the earlier image, likeness]``. Positions start at 0 and
    count only opened images.
    """
    if isinstance(found := _contents(turn), Result):
        return found
    if len(found) == 1:
        return skip("not_applicable:one_image")
    twice: list[tuple[int, int, float]] = []
    for place, content in enumerate(found):
        alike = ((other, likeness(found[other], content)) for other in range(place))
        first = next(((other, how) for other, how in alike if how > max_likeness), None)
        if first is not None:
            twice.append((place, first[0], round(first[1], 3)))
    return Result(1 - len(twice) / len(found), detail={"duplicates": twice})


_READ_WORD = re.compile(r"\d+(?:[.,:/-]\d+)*|[^\W\d_]+")
"""A number with its separators, or a run of letters. ``12kg`` is split in two, because OCR can omit spaces after numbers."""


def _words(text: str) -> Counter[str]:
    return Counter(word.casefold() for word in _READ_WORD.findall(normalized(unicodedata.normalize("NFKC", text))))


@metric(threshold=0.5, applies=applies.image, extra="ocr", traits=("media",), version="2")
def code_image_text_overlap(
    turn: Turn, *, share_of: Literal["image", "text"] = "image", against: Literal["output", "ground_truth"] = "output"
) -> Result:
    """Share of the words in the images that a text also contains, or the reverse.

    The text is the answer or the ground truth. A local OCR model reads the images. The model recognizes Latin letters, digits, and
    Chinese, but hardly any other script. The metric ignores case, and counts each word as often as it occurs. To check that the
    answer contains all text of an image, use ``share_of: image``. To check that a generated image contains a text, use ``share_of:
    text``.

    ``code_image_sharpness`` explains which images are read and when scores are skipped. If the text is missing, the score is
    skipped as ``missing:output`` or ``missing:ground_truth``. Without words to compare, the score is skipped as ``no_writing``.

    Parameters:
        share_of: ``image`` returns the share of the images' words that the text contains. ``text`` returns the share of the text's
            words that the images contain.
        against: Text to compare the images with: the turn's ``output`` or its ``ground_truth``.

    Detail: the number of words in the images (``read``), in the text (``words``), and in both (``found``).
    """
    text = turn.output if against == "output" else None if turn.ground_truth is None else jsonio.text_of(turn.ground_truth)
    if text is None:
        return skip(f"missing:{against}")
    if isinstance(found := _contents(turn), Result):
        return found
    read, wanted = _words("\n".join(line for lines in writing_in(found) for line in lines)), _words(text)
    both = (read & wanted).total()
    detail = {"read": read.total(), "words": wanted.total(), "found": both}
    if not (whole := (read if share_of == "image" else wanted).total()):
        return skip("no_writing", **detail)
    return Result(both / whole, detail=detail)
