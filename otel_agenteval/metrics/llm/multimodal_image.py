"""Answers about images, sounds and videos. Judges and embedders must be ones that see; each call costs.

Nothing is fetched or decoded: an image goes to the model by its uri or with its data. An id that no model can open is
only named to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any

from annotated_types import Ge, Le

from ...core import jsonio
from ...core.turn import Turn
from ..lib.media import attachments_of, listed, media_of, modalities_of, references_of
from ..lib.replies import clamped, entries, reason_of, yes_no
from ..lib.vectors import cosine, share
from ..registry import EPSILON, Asks, Embeds, Result, metric, skip

Weight = Annotated[float, Ge(0), Le(1)]

_MOST_IMAGES = 100
"""Images of a turn above which no judge is asked about each of them."""

_KEYWORDS = {
    "image": frozenset(("image", "picture", "photo", "visual", "see", "shown", "display")),
    "audio": frozenset(("audio", "sound", "hear", "listen", "voice", "spoken")),
    "video": frozenset(("video", "clip", "footage", "scene", "frame")),
    "text": frozenset(("text", "written", "document", "read")),
}
"""Words that speak of a modality; the order is that of the result."""
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
    needs=("output",),
    aliases=("agentunit:multimodal_coherence", "agentunit:MultimodalCoherenceMetric"),
    heavy=True,
)
def code_multimodal_coherence(turn: Turn, *, word_boundaries: bool = True) -> Result:
    """How far the answer speaks of everything that the user gave, and how well it joins it together.

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


# --- judges


@metric(needs=("input", "output"), threshold=0.5, aliases=("trusys:image-helpfulness",))
def llm_image_helpfulness(turn: Turn, judge: Asks) -> Result:
    """How much the images of an answer help to understand it.

    One question per image to a judge that sees, in their order; each is a score of 0..10, one outside is moved to the bound.
    The value is the mean of the scores, divided by 10. All images of the turn count as the answer's, each once. An empty
    answer is judged like any other. Passes from the threshold on (default 0.5).

    Skipped with ``missing:input`` or ``missing:output`` when either is unknown, with ``missing:image`` without an image, and with
    ``too_long`` when there are more than 100.

    Detail: ``scores`` (0..10, in the images' order), ``reasoning`` (of all images), and ``clamped`` if a score was outside.

    Source: Trusys image-helpfulness.
    """
    images = media_of(turn, "image")
    if not images:
        return skip("missing:image")
    if len(images) > _MOST_IMAGES:
        return skip("too_long")
    detail: dict[str, Any] = {"scores": []}
    reasons = []
    for place, image in enumerate(images):
        reply = judge.ask(
            f"image_{place}",
            "Judge how much the image helps somebody who asked the question to understand the answer. 10 makes it much clearer, "
            "5 only decorates it, 0 misleads or has nothing to do with it.",
            {"question": turn.input, "answer": turn.output, "image": image.name},
            '{"score": <0 to 10>, "reasoning": "<why>"}',
            media=references_of([image]),
        )
        detail["scores"].append(clamped(reply, 0, 10, detail=detail))
        reasons.append(reason_of(reply, "reasoning"))
    detail["reasoning"] = "\n".join(reason for reason in reasons if reason) or None
    return Result(sum(detail["scores"]) / (10 * len(images)), detail=detail, explanation=detail["reasoning"])


def _share_of_yes(reply: dict[str, Any]) -> Result:
    """How many of the verdicts are yes; 0 without a verdict."""
    given = entries(reply)
    found = yes_no(reply, len(given))
    reasons = "\n".join(reason for reason in map(reason_of, given) if reason) or None
    return Result(sum(found) / len(found) if found else 0.0, detail={"verdicts": given}, explanation=reasons)


@metric(needs=("input", "context"), threshold=0.5, aliases=("trusys:multimodal-contextual-relevancy",))
def llm_multimodal_contextual_relevancy(turn: Turn, judge: Asks) -> Result:
    """How much of the retrieved context, texts and images, is relevant to the question.

    One question to a judge that sees: it takes the context apart into statements and images, and says yes or no to each.
    The value is the share of yes, and 0 without a verdict. All images of the turn count as context, each once. Passes from
    the threshold on (default 0.5).

    Skipped with ``missing:input`` or ``missing:context`` when either is unknown, and with ``missing:image`` without an image.

    Detail: ``verdicts`` (as the judge gave them: ``statement``, ``verdict``, ``reason``).

    Source: Trusys multimodal-contextual-relevancy.
    """
    images = media_of(turn, "image")
    if not images:
        return skip("missing:image")
    reply = judge.ask(
        "verdicts",
        "Go through the retrieved context: take each text apart into its statements, and take each image as one. Say for every "
        "statement and every image whether it is relevant to the question: whether it would help to answer it.",
        {"question": turn.input, "context": turn.context, "images": listed(images)},
        '{"verdicts": [{"statement": "<the statement or the image>", "verdict": "<yes or no>", "reason": "<why>"}, ...]}',
        media=references_of(images),
    )
    return _share_of_yes(reply)


@metric(needs=("ground_truth", "context"), threshold=0.5, aliases=("trusys:multimodal-contextual-recall",))
def llm_multimodal_contextual_recall(turn: Turn, judge: Asks) -> Result:
    """How much of the right answer could be known from the retrieved context, texts and images.

    One question to a judge that sees: it takes the right answer apart into sentences and images, and says for each whether
    something in the context says so. The value is the share of yes, and 0 without a verdict. All images of the turn count as
    context, each once. Passes from the threshold on (default 0.5).

    Skipped with ``missing:ground_truth`` or ``missing:context`` when either is unknown, and with ``missing:image`` without an image.

    Detail: ``verdicts`` (as the judge gave them: ``verdict``, ``reason``).

    Source: Trusys multimodal-contextual-recall.
    """
    images = media_of(turn, "image")
    if not images:
        return skip("missing:image")
    reply = judge.ask(
        "verdicts",
        "Take the right answer apart into its sentences and images. Say for each of them, in their order, whether it can be "
        "attributed to something in the retrieved context: to one of its texts or one of its images.",
        {"right_answer": jsonio.text_of(turn.ground_truth), "context": turn.context, "images": listed(images)},
        '{"verdicts": [{"verdict": "<yes or no>", "reason": "<why, and from where>"}, ...]}',
        media=references_of(images),
    )
    return _share_of_yes(reply)


# --- embeddings


@metric(
    needs=("output",),
    threshold=0.25,
    aliases=("agentunit:cross_modal_grounding", "agentunit:CrossModalGroundingMetric"),
)
def embed_cross_modal_grounding(
    turn: Turn, embedder: Embeds, *, threshold: Annotated[float, Ge(-1), Le(1)] = 0.25, model: str = "ViT-B/32"
) -> Result:
    """Whether the answer speaks of the image: 1 from a similarity on, below it in proportion.

    The similarity is the cosine of the answer's embedding and the image's, so this takes an embedder of images and texts (such
    as CLIP). The value is 1 when it is at least the threshold, else ``similarity / threshold``, at least 0; it passes when it is
    at least the threshold. Of several images the most similar counts. All texts and images are embedded in one call, an
    image by its uri, id or data as it is given.

    Skipped with ``missing:output`` when the answer is unknown, with ``missing:image`` without an image, and with ``empty_output`` when
    the answer has no text.

    Parameters:
        threshold: similarity from which the answer is grounded, -1..1. It bounds the similarity, not the value.
        model: name of the image-text model that the threshold was chosen for; a note, the embedder has its own model.

    Detail: ``similarity`` (-1..1), ``is_grounded``.

    Source: AgentUnit cross_modal_grounding.
    """
    images = references_of(media_of(turn, "image"))
    if not images:
        return skip("missing:image")
    output = turn.output or ""
    if not output.strip():
        return skip("empty_output")
    answer, *seen = embedder.embed([output, *images])
    similarity = max(cosine(image, answer) for image in seen)
    grounded = similarity >= threshold - EPSILON
    if grounded:
        value = 1.0
    else:
        value = share(similarity / threshold) if threshold > 0 else 0.0
    return Result(value, passed=grounded, detail={"similarity": similarity, "is_grounded": grounded})


@metric(
    needs=("output", "ground_truth"),
    aliases=("agentunit:image_caption_accuracy", "agentunit:ImageCaptionAccuracyMetric"),
)
def embed_image_caption_accuracy(
    turn: Turn, embedder: Embeds, *, use_semantic: bool = True, weights: tuple[Weight, Weight] = (0.7, 0.3)
) -> Result:
    """How well the answer, as an image's caption, matches the right caption: in meaning and in words.

    ``0.7 * cosine + 0.3 * F1``. The cosine is that of the embeddings of both texts, at least 0. F1 is the harmonic mean of the
    precision and recall of the distinct words: lower case, separated by white space, with their punctuation. A trend:
    without a threshold nothing passes or fails.

    Skipped with ``missing:output`` or ``missing:ground_truth`` when either is unknown, and with ``empty_output`` when the answer has
    no text.

    Parameters:
        use_semantic: off, the value is F1 alone, and nobody is asked.
        weights: of meaning and words, each 0..1; a value over 1 counts as 1.

    Detail: ``keyword_precision``, ``keyword_recall``, ``keyword_f1``, and ``semantic_similarity`` (0..1) where it was asked for.

    Source: AgentUnit image_caption_accuracy.
    """
    output, caption = turn.output or "", jsonio.text_of(turn.ground_truth)
    if not output.strip():
        return skip("empty_output")
    words, wanted = set(output.lower().split()), set(caption.lower().split())
    shared = len(words & wanted)
    f1 = 2 * shared / (len(words) + len(wanted))
    detail = {
        "keyword_precision": shared / len(words),
        "keyword_recall": shared / len(wanted) if wanted else 0.0,
        "keyword_f1": f1,
    }
    if not use_semantic:
        return Result(f1, detail=detail)
    detail["semantic_similarity"] = share(cosine(*embedder.embed([caption, output])))
    return Result(min(1.0, weights[0] * detail["semantic_similarity"] + weights[1] * f1), detail=detail)
