"""Answers with images. They need a judge that can see; each call costs.

An image goes to the model with its bytes, without metadata, where it came with the turn or may be fetched (``media``); else by its address. An
id that no model can open is only named to it.
"""

from __future__ import annotations

from typing import Any

from ...core import jsonio
from ...core.turn import Turn
from ..lib import applies
from ..lib.media import listed, media_of, shown
from ..lib.replies import entries, number_within, numbered, reason_of, yes_no
from ..prompts import multimodal_image as prompts
from ..registry import Asks, Result, metric, skip

_MOST_IMAGES = 100
"""Images of a turn above which no judge is asked about each of them."""


@metric(
    media=True,
    applies=applies.image,
    version="2",
    needs=("input", "output"),
    threshold=0.5,
    aliases=("trusys:image-helpfulness",),
)
def llm_image_helpfulness(turn: Turn, judge: Asks) -> Result:
    """How much the images of an answer help to understand it.

    One question per image to a judge that can see, in their order; each is a score of 0..10. One outside is an error.
    The value is the mean of the scores, divided by 10. All images of the turn count as the answer's, each once. An empty
    answer is judged like any other. Passes from the threshold on (default 0.5).

    Skipped with ``missing:input`` or ``missing:output`` when either is unknown, with ``missing:image`` without an image, and with
    ``too_long`` when there are more than 100.

    Detail: ``scores`` (0..10, in the images' order) and ``reasoning`` (of all images).

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
            prompts.HELPFUL,
            {"question": turn.input, "answer": turn.output or "(empty)", "image": image.name},
            '{"reasoning": "<what the image shows, and what it adds>", "score": <0 to 10>}',
            media=shown([image]),
        )
        detail["scores"].append(number_within(reply, 0, 10))
        reasons.append(reason_of(reply, "reasoning"))
    detail["reasoning"] = "\n".join(reason for reason in reasons if reason) or None
    return Result(sum(detail["scores"]) / (10 * len(images)), detail=detail, explanation=detail["reasoning"])


def _share_of_yes(reply: dict[str, Any]) -> Result:
    """How many of the verdicts are yes; 0 without a verdict."""
    given = entries(reply)
    found = yes_no(reply, len(given))
    reasons = "\n".join(reason for reason in map(reason_of, given) if reason) or None
    return Result(sum(found) / len(found) if found else 0.0, detail={"verdicts": given}, explanation=reasons)


@metric(
    media=True,
    applies=applies.image,
    version="2",
    needs=("input", "context"),
    threshold=0.5,
    aliases=("trusys:multimodal-contextual-relevancy",),
)
def llm_multimodal_contextual_relevancy(turn: Turn, judge: Asks) -> Result:
    """How much of the retrieved context, texts and images, is relevant to the question.

    One question to a judge that can see: it takes the context apart into statements and images, and says yes or no to each.
    The value is the share of yes, and 0 without a verdict. All images of the turn count as context, each once. Passes from
    the threshold on (default 0.5).

    Skipped with ``missing:input`` or ``missing:context`` when either is unknown, and with ``missing:image`` without an image.

    Detail: ``verdicts`` (as the judge gave them: ``statement``, ``reason``, ``verdict``).

    Source: Trusys multimodal-contextual-relevancy.
    """
    images = media_of(turn, "image")
    if not images:
        return skip("missing:image")
    reply = judge.ask(
        "verdicts",
        prompts.RELEVANT,
        {"question": turn.input, "context": numbered(turn.context), "images": listed(images)},
        '{"verdicts": [{"statement": "<the statement, or the image and what it shows>", "reason": "<why>", "verdict": "<yes or no>"}, ...]}',
        media=shown(images),
    )
    return _share_of_yes(reply)


@metric(
    media=True,
    applies=applies.image,
    version="2",
    needs=("ground_truth", "context"),
    threshold=0.5,
    aliases=("trusys:multimodal-contextual-recall",),
)
def llm_multimodal_contextual_recall(turn: Turn, judge: Asks) -> Result:
    """How much of the right answer could be known from the retrieved context, texts and images.

    One question to a judge that can see: it takes the right answer apart into sentences and images, and says for each whether
    something in the context says so. The value is the share of yes, and 0 without a verdict. All images of the turn count as
    context, each once. Passes from the threshold on (default 0.5).

    Skipped with ``missing:ground_truth`` or ``missing:context`` when either is unknown, and with ``missing:image`` without an image.

    Detail: ``verdicts`` (as the judge gave them: ``statement``, ``reason``, ``verdict``).

    Source: Trusys multimodal-contextual-recall.
    """
    images = media_of(turn, "image")
    if not images:
        return skip("missing:image")
    reply = judge.ask(
        "verdicts",
        prompts.RECALLED,
        {"right_answer": jsonio.text_of(turn.ground_truth), "context": numbered(turn.context), "images": listed(images)},
        '{"verdicts": [{"statement": "<the sentence or image>", "reason": "<which text or image says so, or what is missing>", '
        '"verdict": "<yes or no>"}, ...]}',
        media=shown(images),
    )
    return _share_of_yes(reply)
