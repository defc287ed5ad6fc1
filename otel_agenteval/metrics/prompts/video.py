"""Prompts for judges of videos."""

from __future__ import annotations

from collections.abc import Mapping

from ..lib.prompts import Case, task

_SAMPLED = (
    "Missing evidence: frames are samples. What they cannot show, as what happens between them or all motion where there is one frame, lowers no level; say so. "
    "Where you can see nothing of the video, every dimension is 0."
)

QUALITY = {
    "resolution": "fine detail can be seen, nothing is coarse",
    "clarity": "sharp, in focus, neither too dark nor too bright",
    "colour_accuracy": "colours look true and balanced, or are a style that is kept up",
    "artifact_freedom": "no noise, blocks, banding, ghosting or distortion",
}
ALIGNMENT = {
    "subject_alignment": "the people, animals and things that were asked for are there",
    "action_alignment": "they do what was asked for",
    "attribute_alignment": "their number, colour, size, style and other properties are as asked for",
    "scene_alignment": "place, time, light and mood are as asked for",
}
CONSISTENCY = {
    "motion_smoothness": "things move without jumps from frame to frame",
    "transition_naturalness": "scenes and camera change in a natural way",
    "flicker_freedom": "light, colour and texture do not flicker",
    "object_persistence": "people and things keep their look, and do not appear or vanish without cause",
}
PLAUSIBILITY = {
    "physical_plausibility": "weight, motion, light and shadow follow the laws of nature",
    "object_integrity": "bodies and things have the right parts, and do not melt or merge",
    "causal_coherence": "effects follow from causes, and events come in an order that can be",
}


def _by_dimension(
    what: str,
    dimensions: Mapping[str, str],
    levels: tuple[str, str, str, str, str],
    *,
    steps: str,
    ignore: str,
    good: str,
    bad: str,
    cases: tuple[str, ...] = (),
) -> str:
    """Return one task for all dimensions, each with a level of the same scale."""
    return task(
        what,
        steps=f"{steps} Then score each dimension by itself.",
        scale=dict(zip((10, 7.5, 5, 2.5, 0), levels, strict=True)),
        counts="; ".join(f"{name}: {meaning}" for name, meaning in dimensions.items()) + ".",
        ignore=ignore,
        good=good,
        bad=bad,
        cases=(*cases, _SAMPLED),
    )


LOOKS = _by_dimension(
    "Judge the visual quality of the video, dimension by dimension.",
    QUALITY,
    (
        "Without a fault, as a professional recording.",
        "Faults that one sees only when looking for them.",
        "Faults that everybody sees and that disturb little.",
        "Faults that make it hard to see what is shown.",
        "Nothing can be made out.",
    ),
    steps="Look at each frame, at its edges, textures, faces and text. Note each fault with the frame that shows it.",
    ignore="what is shown, and whether it is beautiful, true or asked for; blur, grain or dark that is plainly meant.",
    good="crisp frames with a soft background by intent: clarity 10.",
    bad="blocks around everything that moves: artifact_freedom 2.5.",
    cases=("A black or blank frame shows no detail: 0, unless it is a cut or a fade.",),
)

SHOWS_PROMPT = _by_dimension(
    "Judge how well the video shows what the prompt asks for, dimension by dimension.",
    ALIGNMENT,
    (
        "All that was asked for.",
        "All but a detail.",
        "A main part, and another is missing or wrong.",
        "Little of it.",
        "Nothing of it, or the opposite.",
    ),
    steps="List what the prompt asks for under each dimension. Find each in the frames, and name the frame that shows it or that should.",
    ignore="image quality; additions that the prompt does not rule out. A dimension of which the prompt asks nothing is 10.",
    good='"a red dog runs", frames with a red dog in mid-stride: subject_alignment 10, action_alignment 10.',
    bad="the same prompt, a brown dog asleep: subject_alignment 10, action_alignment 0, attribute_alignment 0.",
    cases=("An empty video, or one that only shows a notice that it was refused, is 0 throughout.",),
)

STEADY = _by_dimension(
    "Judge how consistent the video is over time, from frame to frame, dimension by dimension.",
    CONSISTENCY,
    (
        "Steady throughout.",
        "A small break that few would notice.",
        "Breaks that everybody notices, in a part of it.",
        "Breaks in most of it.",
        "No frame fits the one before.",
    ),
    steps="Compare each frame with the one before: places, sizes, shapes, colours, light, what is there. Note each break with the two frames.",
    ignore="sharpness and subject; cuts to another scene; motion that fits the time between two frames, however far.",
    good="a cup stands at the same place in all frames while the camera moves around it: object_persistence 10.",
    bad="a coat is red, then green, then red: object_persistence 2.5.",
)

PLAUSIBLE = _by_dimension(
    "Judge how far what the video shows agrees with how the world works, dimension by dimension.",
    PLAUSIBILITY,
    (
        "It could have been filmed.",
        "A small oddity that few would notice.",
        "Something that cannot be, beside much that can.",
        "Much that cannot be.",
        "Nothing in it could be.",
    ),
    steps="Say what is there and what happens. Look at hands, limbs, faces, text, shadows, reflections, falling, liquids and contact. Note each thing that cannot "
    "be, with the frame.",
    ignore="whether the events are likely, and image quality. What a cartoon, a fantasy or a trick of film makes of the world on purpose is judged by that world's own rules.",
    good="a ball falls, bounces lower each time, and its shadow goes with it: physical_plausibility 10.",
    bad="a hand with seven fingers that melts into its cup: object_integrity 0.",
)


_RED = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAEAAAABACAIAAAAlC+aJAAAAS0lEQVR42u3PQQkAAAgAsetfWiP4FgYrsKZeS0BAQEBAQEBAQEBA"
    "QEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEDgsqnc8OJg6Ln3AAAAAElFTkSuQmCC"
)
"""A red frame."""
_BLUE = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAEAAAABACAIAAAAlC+aJAAAAS0lEQVR42u3PQQkAAAgAsetfWiP4FgYrsGqeExAQEBAQEBAQEBAQ"
    "EBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBA4LMf88OL0EKXAAAAAAElFTkSuQmCC"
)
"""A blue frame."""


def _red(params: Mapping[str, str]) -> Case:
    def turn(frame: str) -> dict[str, object]:
        video = {"modality": "video", "frames": [frame, frame], "duration_s": 1}
        return {"input": "A plain red screen for one second, nothing else.", "attachments": [video]}

    return Case(good=turn(_RED), bad=turn(_BLUE), params=params, place="input")


CASES = {
    "llm_text_to_video": _red({}),
    "llm_video_g_eval": _red({"criteria": "The whole screen is red in every frame."}),
}
"""Injection cases. The other metrics show the judge only images, which contain no text for an attempt."""
