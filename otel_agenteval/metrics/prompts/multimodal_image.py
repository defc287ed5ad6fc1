"""Prompts for judges of images in answers and contexts."""

from __future__ import annotations

from ..lib.prompts import MISSING, Case, task

HELPFUL = task(
    "Judge how much the image helps somebody who asked the question to understand the answer. One image is judged at a time.",
    steps="Say what the image shows. Find the part of the answer that it belongs to. Then weigh what a reader knows with it and would not know "
    "without it.",
    scale={
        10: "Makes it much clearer: it shows what words alone hardly can.",
        7.5: "Helps: it shows what the answer says, with small flaws.",
        5: "Decorates: it fits the subject and adds nothing.",
        2.5: "Hardly fits, distracts, or cannot be read.",
        0: "Misleads, contradicts the answer, or has nothing to do with it.",
    },
    ignore="beauty, style and size; whether the answer itself is right or complete; the other images.",
    good="which cable goes where, with a photo of the labelled ports: 10.",
    bad="the same, with a photo of a smiling person at a desk: 2.5.",
    cases=(
        MISSING,
        "An image that you were not shown, but only named, is judged 0; say that it was not shown.",
        "Where the answer declines or is empty, judge by what the image shows of what was asked. Text in an image may be in any language.",
    ),
)

RELEVANT = task(
    "Decide for every statement and every image of the retrieved context whether it is relevant to the question.",
    steps="Take each text apart into its statements, in order, and take each image as one. Say of an image what it shows. For each, say what of the "
    "question it would help to answer.",
    counts="yes: it answers the question or a part of it, or is needed to understand what does. no: it is about something else, or on the same "
    "subject and answers nothing.",
    ignore="whether it is true, how well it is written or drawn, whether others say the same.",
    good='"Which bird is it?": a photo of the bird, or "Robins have a red breast", is yes.',
    bad='"Which bird is it?": "The park opened in 1950" is no.',
    cases=(
        "Missing evidence: an image that was not shown, but only named, is no; say so. Every statement and image gets one entry.",
    ),
)

RECALLED = task(
    "Decide for every sentence and every image of the right answer whether it can be attributed to the retrieved context: to one of its texts or "
    "images.",
    steps="Take the right answer apart into its sentences, in order. For each, look for the text or image that says or shows it.",
    counts="yes: a text or an image, or several together, say or show all of the sentence, in whatever words. no: a fact of it is missing or "
    "contradicted.",
    ignore="what the context says beside it; order; general knowledge, which is no source.",
    good='"A robin with a red breast", and a photo that shows one: yes.',
    bad='"It nests in April", and a photo of the bird: no.',
    cases=(
        "Missing evidence: an image that was not shown, but only named, supports nothing. A sentence of which a part is supported is no.",
    ),
)

_RED = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAADAAAAAwCAIAAADYYG7QAAAAOklEQVR42u3OMQ0AAAgDsD3gXxiicEE4mlRAM12vREhISEhISEhISEhISEhI"
    "SEhISEhISEhISEjozgIIM49qQsTvfQAAAABJRU5ErkJggg=="
)
"""A red image of 48 by 48 pixels."""
_SHOWN = [{"modality": "image", "uri": _RED}]
_ASKED = "What does the colour traffic red look like?"
CASES = {
    "llm_image_helpfulness": Case(
        good={"input": _ASKED, "output": "It is a pure, bright red, as the sample shows.", "attachments": _SHOWN},
        bad={"input": "Who wrote the letter?", "output": "The town clerk wrote it in March.", "attachments": _SHOWN},
    ),
    "llm_multimodal_contextual_relevancy": Case(
        good={"input": _ASKED, "context": ["Traffic red is a pure, bright red."], "attachments": _SHOWN},
        bad={"input": "When does the library open?", "context": ["The bakery was founded in 1950."], "attachments": _SHOWN},
        place="context",
    ),
    "llm_multimodal_contextual_recall": Case(
        good={
            "input": _ASKED, "ground_truth": "Traffic red is a bright red.", "context": ["The sample shows traffic red."], "attachments": _SHOWN,
        },
        bad={
            "input": _ASKED, "ground_truth": "The library opens at nine.", "context": ["The sample shows traffic red."], "attachments": _SHOWN,
        },
        place="context",
    ),
}  # fmt: skip
