"""The ``embed_`` metrics compare answers with images or expected captions, based on embeddings."""

from __future__ import annotations

from typing import Annotated

from annotated_types import Ge, Le

from ...core import jsonio
from ...core.turn import Turn
from ..lib import applies
from ..lib.media import images_for_model, media_of
from ..lib.tokens import tokens_of
from ..lib.values import Share
from ..registry import EPSILON, Embeds, Result, metric, skip
from .embeddings import cosine, share


@metric(
    needs=("output",),
    threshold=0.25,
    applies=applies.image,
    aliases=("agentunit:cross_modal_grounding", "agentunit:CrossModalGroundingMetric"),
    traits=("media",),
)
def embed_cross_modal_grounding(
    turn: Turn, embedder: Embeds, *, threshold: Annotated[float, Ge(-1), Le(1)] = 0.25, model: str = "ViT-B/32"
) -> Result:
    """Similarity between the answer and the turn's images, relative to a threshold.

    The similarity is the highest cosine between the embeddings of the answer and any image. If the similarity is at least
    ``threshold``, the value is 1 and the metric passes. Otherwise, the metric fails, and the value is ``similarity / threshold``,
    or 0 if the similarity is negative. If the answer doesn't contain text, the score is skipped as ``empty_output``.

    The embedder must support images and text. A server receives each image's data, URI, or ID. ``local/clip`` must open each image.

    Parameters:
        threshold: Lowest similarity (not value) that passes.
        model: Name of the model for which you chose the threshold. This option doesn't select the embedder.

    Detail: ``similarity`` (-1..1) and ``is_grounded``.
    """
    if not (images := images_for_model(media_of(turn, "image"))):
        return skip("missing:image")
    if not (output := turn.output or "").strip():
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
    applies=applies.image,
    version="3",
    aliases=("agentunit:image_caption_accuracy", "agentunit:ImageCaptionAccuracyMetric"),
)
def embed_image_caption_accuracy(
    turn: Turn, embedder: Embeds, *, use_semantic: bool = True, weights: tuple[Share, Share] = (0.7, 0.3)
) -> Result:
    """Similarity between an image caption (the answer) and the ground truth, in meaning and words.

    By default, the value is ``0.7 * cosine + 0.3 * F1``. The cosine compares the embeddings, and negative cosines count as 0. F1
    compares the sets of lowercase words, separated by whitespace. Scripts without spaces are split as in ``code_bleu``. If the
    answer doesn't contain text, the score is skipped as ``empty_output``.

    Parameters:
        use_semantic: If false, the value is F1 alone, and the metric doesn't request embeddings.
        weights: Weights of the cosine and F1. A weighted sum above 1 counts as 1.

    Detail: ``keyword_precision``, ``keyword_recall``, ``keyword_f1``, and ``semantic_similarity`` (0..1, if used).
    """
    output, caption = turn.output or "", jsonio.text_of(turn.ground_truth)
    words, wanted = set(tokens_of(output, "whitespace")), set(tokens_of(caption, "whitespace"))
    if not words:
        return skip("empty_output")
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
