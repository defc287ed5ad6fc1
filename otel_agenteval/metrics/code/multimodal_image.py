"""How far answers refer to the images, sounds and videos that the user gave, and whether images are fit to be looked at."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal

from annotated_types import Ge, Le

from ...core import jsonio
from ...core.turn import Turn
from ...media.access import Content
from ...media.decoding import writing_in
from ...media.images import Measures, likeness, measured
from ..lib import applies
from ..lib.media import attachments_of, contents_of, modalities_of
from ..registry import Result, metric, skip

_KEYWORDS = {
    "image": frozenset(("image", "picture", "photo", "visual", "see", "shown", "display")),
    "audio": frozenset(("audio", "sound", "hear", "listen", "voice", "spoken")),
    "video": frozenset(("video", "clip", "footage", "scene", "frame")),
    "text": frozenset(("text", "written", "document", "read")),
}
"""Words that refer to a modality; the order is that of the result."""
_CONNECTIVES = (
    "while", "also", "additionally", "furthermore", "moreover", "in addition to", "along with", "together with", "combined with",
)  # fmt: skip
_ENOUGH_CONNECTIVES = 3
_WORD = re.compile(r"\w+")


def _modalities(turn: Turn) -> set[str]:
    """What the user gave: attachments by their modality or media type, and text."""
    found = {"text"} if turn.input and turn.input.strip() else set()
    for attachment in attachments_of(turn):
        found |= modalities_of(attachment)
    return found


def _phrases(text: str, phrases: tuple[str, ...], word_boundaries: bool) -> Iterator[str]:
    for phrase in phrases:
        if word_boundaries:
            words = r"\s+".join(phrase.split())  # of our own list: letters and spaces only
            if re.search(rf"\b{words}\b", text):
                yield phrase
        elif phrase in text:
            yield phrase


def _referenced(text: str, present: set[str], word_boundaries: bool) -> list[str]:
    if word_boundaries:
        words = {found.group() for found in _WORD.finditer(text)}
        return [name for name, keywords in _KEYWORDS.items() if name in present and keywords & words]
    return [name for name, keywords in _KEYWORDS.items() if name in present and any(word in text for word in keywords)]


@metric(
    applies=applies.media,
    needs=("output",),
    aliases=("agentunit:multimodal_coherence", "agentunit:MultimodalCoherenceMetric"),
    heavy=True,
)
def code_multimodal_coherence(turn: Turn, *, word_boundaries: bool = True) -> Result:
    """How far the answer refers to everything that the user gave, and how well it connects it.

    ``0.6 * referenced / present modalities + 0.4 * min(1, connectives / 3)``. Present are image, audio and video by the
    attachments' modality or media type, and text when the input has text. A modality is referenced when the answer has one
    of its words, whatever the case: image (image, picture, photo, visual, see, shown, display), audio (audio, sound, hear,
    listen, voice, spoken), video (video, clip, footage, scene, frame), text (text, written, document, read). Connectives
    count once each: while, also, additionally, furthermore, moreover, in addition to, along with, together with, combined
    with. An empty answer is 0. Skipped with ``missing:output``, or with ``missing:image`` when no modality is present.

    Parameters:
        word_boundaries: whether only whole words count; off, "see" is also found in "seems".

    Detail: ``coverage_score``, ``coherence_score`` (the two parts, 0..1), ``referenced_modalities`` (in the order image, audio,
    video, text), ``present_modalities``.

    Source: AgentUnit multimodal_coherence.
    """
    present = _modalities(turn)
    if not present:
        return skip("missing:image")
    text = (turn.output or "").lower()
    referenced = _referenced(text, present, word_boundaries)
    connectives = len(list(_phrases(text, _CONNECTIVES, word_boundaries)))
    coverage = len(referenced) / len(present)
    coherence = min(1.0, connectives / _ENOUGH_CONNECTIVES)
    return Result(
        0.6 * coverage + 0.4 * coherence,
        detail={
            "coverage_score": coverage,
            "coherence_score": coherence,
            "referenced_modalities": referenced,
            "present_modalities": [name for name in _KEYWORDS if name in present],
        },
    )


Bound = Annotated[float, Ge(0), Le(1)]
_MOST_IMAGES = 100
"""Images of a turn that are looked at."""


def _contents(turn: Turn) -> list[Content] | Result:
    """The images that may be opened, or why there is nothing to measure."""
    found = contents_of(turn, "image")
    if not found:
        return skip("media_not_open")
    return skip("too_long") if len(found) > _MOST_IMAGES else found


def _share_that_holds(turn: Turn, holds: Callable[[Measures], bool], *shown: str) -> Result:
    """The share of images of which something holds, and what was measured of each."""
    found = _contents(turn)
    if isinstance(found, Result):
        return found
    looks = [measured(content) for content in found]
    good = sum(map(holds, looks))
    detail: dict[str, Any] = {
        "images": [{name: round(getattr(look, name), 3) for name in ("width", "height", *shown)} for look in looks]
    }
    return Result(good / len(looks), detail=detail)


@metric(media=True, applies=applies.image, threshold=1.0, extra="media")
def code_image_sharpness(turn: Turn, *, min_sharpness: Annotated[float, Ge(0)] = 50.0) -> Result:
    """Share of the turn's images that are sharp enough to be read.

    Sharpness is the variance of the Laplacian of the brightness (0..255), of the image scaled down to at most 1,024 pixels a side. Photographs in focus
    have some hundreds, blurred ones less than 50; drawings with large plain areas can have little, too. Passes when all images are sharp
    (default threshold 1).

    Images that came with the turn are measured, and those that may be fetched (``media``). Skipped with ``missing:image`` without an image, with
    ``media_not_open`` when none may be opened, and with ``too_long`` when there are more than 100. A broken image is an error. Needs
    the extra ``[media]``.

    Parameters:
        min_sharpness: from which sharpness on an image counts as sharp.

    Detail: ``images``, each with ``width``, ``height`` (pixels) and ``sharpness``.

    Source: our own.
    """
    return _share_that_holds(turn, lambda look: look.sharpness >= min_sharpness, "sharpness")


@metric(media=True, applies=applies.image, threshold=1.0, extra="media")
def code_image_exposure(turn: Turn, *, max_lost: Bound = 0.4, brightness: tuple[Bound, Bound] = (0.08, 0.95)) -> Result:
    """Share of the turn's images that are neither too dark nor too bright to show anything.

    An image is well exposed when its mean brightness lies within bounds, and no more than a share of its pixels is lost: so dark or so bright
    that nothing can be told there. Documents on white paper are bright on purpose: raise ``max_lost`` for them. Passes when all images are well
    exposed (default threshold 1). Which images are measured, and when it is skipped, is as in ``code_image_sharpness``.

    Parameters:
        max_lost: largest share of pixels that are black, or white, without detail; 0..1.
        brightness: least and largest mean brightness, each 0..1.

    Detail: ``images``, each with ``width``, ``height`` (pixels), ``brightness``, ``dark`` and ``bright`` (shares of pixels).

    Source: our own.
    """
    least, most = brightness
    return _share_that_holds(
        turn,
        lambda look: least <= look.brightness <= most and max(look.dark, look.bright) <= max_lost,
        "brightness", "dark", "bright",
    )  # fmt: skip


@metric(media=True, applies=applies.image, threshold=1.0, extra="media")
def code_image_blank(turn: Turn, *, min_contrast: Bound = 0.02) -> Result:
    """Share of the turn's images that show something: an image of one colour is what a failed upload, render or screenshot looks like.

    Something is shown when the standard deviation of the brightness is large enough. Passes when no image is blank (default threshold 1). Which
    images are measured, and when it is skipped, is as in ``code_image_sharpness``.

    Parameters:
        min_contrast: standard deviation of the brightness (0..0.5) from which on an image shows something.

    Detail: ``images``, each with ``width``, ``height`` (pixels) and ``contrast``.

    Source: our own.
    """
    return _share_that_holds(turn, lambda look: look.contrast >= min_contrast, "contrast")


@metric(media=True, applies=applies.image, threshold=1.0, extra="media")
def code_image_duplicate(turn: Turn, *, max_likeness: Bound = 0.95) -> Result:
    """Share of the turn's images that are not another one once more, as it is or scaled, converted or compressed anew.

    Two images are the same when their hashes of differences (dHash of 128 bits) agree in more than ``max_likeness`` of the bits; blank ones are alike. Passes
    when none is there twice (default threshold 1). The same bytes under the same reference are one image. Which images are measured, and when
    it is skipped, is as in ``code_image_sharpness``; a single image is skipped with ``not_applicable:one_image``.

    Parameters:
        max_likeness: share of equal bits, 0..1, above which two images are the same.

    Detail: ``duplicates``, a list of ``[place, place of the first one like it, likeness]``, places from 0.

    Source: our own.
    """
    found = _contents(turn)
    if isinstance(found, Result):
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
"""Numbers with what stands inside of them, and runs of letters: readers lose the spaces between both."""


def _words(text: str) -> Counter[str]:
    return Counter(word.casefold() for word in _READ_WORD.findall(unicodedata.normalize("NFKC", text)))


@metric(media=True, applies=applies.image, threshold=0.5, extra="ocr")
def code_image_text_overlap(
    turn: Turn, *, share_of: Literal["image", "text"] = "image", against: Literal["output", "ground_truth"] = "output"
) -> Result:
    """How much of the writing in the turn's images stands in the answer, or of a text in the images.

    The writing is read by a local model (OCR), and compared word by word, without case: each word counts as often as it is there. ``share_of: image`` asks
    whether the answer repeats what can be read (a transcription, an invoice's fields); ``share_of: text`` whether what is said can be read there (an
    image that was made with a given text).

    Which images are read, and when it is skipped, is as in ``code_image_sharpness``; skipped also with ``missing:output`` or ``missing:ground_truth``
    without the text, and with ``no_writing`` where nothing is there whose share could be told. Latin letters, digits and Chinese are read; other scripts hardly. Needs
    the extra ``[ocr]``.

    Parameters:
        share_of: whose words are looked for: those of the ``image`` in the text, or those of the ``text`` in the images.
        against: the text: the turn's ``output``, or its ``ground_truth``.

    Detail: ``read`` (words in the images), ``words`` (in the text), ``found`` (in both).

    Source: our own.
    """
    text = turn.output if against == "output" else None if turn.ground_truth is None else jsonio.text_of(turn.ground_truth)
    if text is None:
        return skip(f"missing:{against}")
    found = _contents(turn)
    if isinstance(found, Result):
        return found
    read, said = _words("\n".join(line for lines in writing_in(found) for line in lines)), _words(text)
    both = (read & said).total()
    detail = {"read": read.total(), "words": said.total(), "found": both}
    whole = (read if share_of == "image" else said).total()
    if not whole:
        return skip("no_writing", **detail)
    return Result(both / whole, detail=detail)
