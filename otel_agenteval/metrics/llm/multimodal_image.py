"""The ``llm_`` metrics judge turns that contain images. The judge must support images.

If the turn contains the image itself, or the ``media`` configuration allows fetching it, the judge receives the image without
metadata. Otherwise, the judge receives the image's ``http`` or ``https`` address. Other URLs are errors. For Bedrock judges, all
URLs are errors. If the image has only an ID or a path without a scheme, the judge receives this ID or path as text.
"""

from __future__ import annotations

import functools
from typing import Any

from ...core import jsonio
from ...core.turn import Turn
from ..lib import applies
from ..lib.media import images_for_model, media_of
from ..lib.replies import entries, number_within, numbered, reason_of, yes_no
from ..prompts import Prompts
from ..registry import Asks, Result, metric, skip

_image_metric = functools.partial(metric, threshold=0.5, applies=applies.image, version="2", traits=("media",))

_PROMPTS = Prompts("multimodal_image")

_MOST_IMAGES = 100
"""Maximum number of images per turn that are judged one by one."""


@_image_metric(needs=("input", "output"), aliases=("trusys:image-helpfulness",))
def llm_image_helpfulness(turn: Turn, judge: Asks) -> Result:
    """Rate how much the turn's images help the reader understand the answer.

    One judge call per image returns a score from 0 to 10. A score outside this range is an error. The value is the mean score
    divided by 10. Repeated images count once. Empty answers are also judged. If the turn has more than 100 images, the score is
    skipped as ``too_long``.

    Detail: ``scores`` (0..10, in the order of the images) and ``reasoning`` (one text with the reasons for all images).
    """
    if not (images := media_of(turn, "image")):
        return skip("missing:image")
    if len(images) > _MOST_IMAGES:
        return skip("too_long")
    detail: dict[str, Any] = {"scores": []}
    reasons = []
    for place, image in enumerate(images):
        reply = judge.ask(
            f"image_{place}",
            _PROMPTS["helpful"],
            {"question": turn.input, "answer": turn.output or "(empty)", "image": image.name},
            '{"reasoning": "<what the image shows, and what it adds>", "score": <0 to 10>}',
            media=images_for_model([image]),
        )
        detail["scores"].append(number_within(reply, 0, 10))
        reasons.append(reason_of(reply, "reasoning"))
    detail["reasoning"] = "\n".join(reason for reason in reasons if reason) or None
    return Result(sum(detail["scores"]) / (10 * len(images)), detail=detail, explanation=detail["reasoning"])


def _share_of_yes(reply: dict[str, Any]) -> Result:
    given = entries(reply)
    found = yes_no(reply, len(given))
    reasons = "\n".join(reason for reason in map(reason_of, given) if reason) or None
    return Result(sum(found) / len(found) if found else 0.0, detail={"verdicts": given}, explanation=reasons)


@_image_metric(needs=("input", "context"), aliases=("trusys:multimodal-contextual-relevancy",))
def llm_multimodal_contextual_relevancy(turn: Turn, judge: Asks) -> Result:
    """Share of the retrieved texts and images that are relevant to the question.

    A single judge call splits the context into statements and images, and returns yes or no for each. The value is the share of yes
    verdicts, or 0 if there are no verdicts. The turn's images are part of the context.

    Detail: ``verdicts``, each with ``statement``, ``reason``, and ``verdict``, as the judge returned them.
    """
    if not (images := media_of(turn, "image")):
        return skip("missing:image")
    reply = judge.ask(
        "verdicts",
        _PROMPTS["relevant"],
        {"question": turn.input, "context": numbered(turn.context), "images": numbered(image.name for image in images)},
        '{"verdicts": [{"statement": "<the statement, or the image and what it shows>", "reason": "<why>", "verdict": "<yes or no>"}, ...]}',
        media=images_for_model(images),
    )
    return _share_of_yes(reply)


@_image_metric(needs=("ground_truth", "context"), aliases=("trusys:multimodal-contextual-recall",))
def llm_multimodal_contextual_recall(turn: Turn, judge: Asks) -> Result:
    """Share of the ground truth that the retrieved texts and images support.

    A single judge call splits the ground truth into sentences and images, and returns yes or no for each. The value is the share of
    yes verdicts, or 0 if there are no verdicts. The turn's images are part of the context.

    Detail: ``verdicts``, each with ``statement``, ``reason``, and ``verdict``, as the judge returned them.
    """
    if not (images := media_of(turn, "image")):
        return skip("missing:image")
    reply = judge.ask(
        "verdicts",
        _PROMPTS["recalled"],
        {
            "right_answer": jsonio.text_of(turn.ground_truth),
            "context": numbered(turn.context),
            "images": numbered(image.name for image in images),
        },
        '{"verdicts": [{"statement": "<the sentence or image>", "reason": "<which text or image says so, or what is missing>", '
        '"verdict": "<yes or no>"}, ...]}',
        media=images_for_model(images),
    )
    return _share_of_yes(reply)
