"""How far answers refer to the images, sounds and videos that the user gave."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...core.turn import Turn
from ..lib import applies
from ..lib.media import attachments_of, modalities_of
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
