"""How close answers are in meaning to images and captions. Each call costs."""

from __future__ import annotations

from typing import Annotated

from annotated_types import Ge, Le

from ...core import jsonio
from ...core.turn import Turn
from ..lib import applies
from ..lib.media import media_of, shown
from ..lib.vectors import cosine, share
from ..registry import EPSILON, Embeds, Result, metric, skip

Weight = Annotated[float, Ge(0), Le(1)]


@metric(
    media=True,
    applies=applies.image,
    needs=("output",),
    threshold=0.25,
    aliases=("agentunit:cross_modal_grounding", "agentunit:CrossModalGroundingMetric"),
)
def embed_cross_modal_grounding(
    turn: Turn, embedder: Embeds, *, threshold: Annotated[float, Ge(-1), Le(1)] = 0.25, model: str = "ViT-B/32"
) -> Result:
    """Whether the answer speaks of the image: 1 from a similarity on, below it in proportion.

    The similarity is the cosine of the answer's embedding and the image's, so this takes an embedder for images and texts (such
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
    images = shown(media_of(turn, "image"))
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
        use_semantic: off, the value is F1 alone, and no model is asked.
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
