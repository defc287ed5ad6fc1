"""Judges of videos, by frames sampled from them. Each call costs.

Nothing is fetched or decoded: frames come with the attachment. Where there are none, the judge gets the video's own uri.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from ...core.turn import Turn
from ..lib import applies
from ..lib.frames import Frames, newest_video, spaced
from ..lib.g_eval import Criteria, g_eval
from ..lib.media import Medium, name_of, references_of
from ..lib.replies import clamped, invalid, reason_of
from ..prompts import video as prompts
from ..registry import Asks, Result, metric, skip


class _Sample(NamedTuple):
    text: str
    """What a judge reads of the video."""
    media: list[str]
    """What it sees."""


def _sampled(video: Medium, num_frames: int) -> _Sample:
    total = len(video.frames)
    if not total:
        return _Sample(f"The video itself: {video.name}", references_of([video]))
    places = spaced(total, num_frames)
    lines = [f"{number}. {name_of(video.frames[place])} at {_time(video, place)}" for number, place in enumerate(places, 1)]
    head = f"{len(places)} of {total} frames of the video {video.name}, in order:"
    return _Sample("\n".join([head, *lines]), [video.frames[place] for place in places])


def _time(video: Medium, place: int) -> str:
    part = place / len(video.frames)
    return f"{part * video.duration_s:.2f} s" if video.duration_s else f"{100 * part:.0f} % of its length"


def _by_dimensions(
    turn: Turn, judge: Asks, num_frames: int, task: str, dimensions: Collection[str], material: Mapping[str, Any]
) -> Result:
    """The mean of the judge's scores of 0..10 for each dimension, over 10."""
    video = newest_video(turn)
    if video is None:
        return skip("missing:video")
    sample = _sampled(video, num_frames)
    reply = judge.ask(
        "score",
        task,
        {**material, "video": sample.text},
        '{"reason": "<what the frames show, and what speaks against the highest level>", "scores": {"evidence": "<for each dimension, '
        'in order, what decides it and in which frame>", ' + ", ".join(f'"{name}": <0 to 10>' for name in dimensions) + "}}",
        media=sample.media,
    )
    scores = reply.get("scores")
    if not isinstance(scores, Mapping):
        raise invalid("scores", "an object with a number for each dimension")
    detail: dict[str, Any] = {"reason": reason_of(reply)}
    found = {name: clamped(scores, 0, 10, name, detail) for name in dimensions}
    detail["dimension_scores"] = found
    return Result(sum(found.values()) / (10 * len(found)), detail=detail, explanation=detail["reason"])


@metric(applies=applies.video, version="2", threshold=0.5, aliases=("trusys:video-visual-quality",))
def llm_video_visual_quality(turn: Turn, judge: Asks, *, num_frames: Frames = 8) -> Result:
    """How good a video looks: sharp, clear, with true colours and without artifacts.

    One question to a judge that can see. It scores the dimensions ``resolution``, ``clarity``, ``colour_accuracy`` and
    ``artifact_freedom`` from 0 to 10; the value is their mean, divided by 10. A dimension that is missing or no number is an
    error, a score outside is moved to the bound. Passes from the threshold on (default 0.5).

    The judge sees evenly spaced frames of the turn's last video (``frames`` of the attachment, by their time), or the video's uri
    where there are no frames. Skipped with ``missing:video`` without a video.

    Parameters:
        num_frames: how many frames are shown, 1 to 1000; all where there are fewer.

    Detail: ``dimension_scores``, ``reason``, and ``clamped`` if a score was outside.

    Source: Trusys video-visual-quality (dimensions are our own).
    """
    return _by_dimensions(turn, judge, num_frames, prompts.LOOKS, prompts.QUALITY, {})


@metric(applies=applies.video, version="2", threshold=0.5, aliases=("trusys:text-to-video",))
def llm_text_to_video(turn: Turn, judge: Asks, *, num_frames: Frames = 8) -> Result:
    """How well a generated video shows what was asked for.

    One question to a judge that can see. It scores the dimensions ``subject_alignment``, ``action_alignment``,
    ``attribute_alignment`` and ``scene_alignment`` with the prompt (the turn's input) from 0 to 10; the value is their mean,
    divided by 10. A dimension that is missing or no number is an error, a score outside is moved to the bound. Passes
    from the threshold on (default 0.5).

    The judge sees evenly spaced frames of the turn's last video (``frames`` of the attachment, by their time), or the video's uri
    where there are no frames. Skipped with ``missing:video`` without a video and with ``missing:input`` without a prompt.

    Parameters:
        num_frames: how many frames are shown, 1 to 1000; all where there are fewer.

    Detail: ``dimension_scores``, ``reason``, and ``clamped`` if a score was outside.

    Source: Trusys text-to-video (dimensions are our own).
    """
    if newest_video(turn) is None:
        return skip("missing:video")
    if not turn.input:
        return skip("missing:input")
    return _by_dimensions(turn, judge, num_frames, prompts.SHOWS_PROMPT, prompts.ALIGNMENT, {"prompt": turn.input})


@metric(applies=applies.video, version="2", threshold=0.5, aliases=("trusys:video-temporal-consistency",))
def llm_video_temporal_consistency(turn: Turn, judge: Asks, *, num_frames: Frames = 8) -> Result:
    """How steady a video is over time: smooth motion, natural transitions, no flicker, and objects that stay what they are.

    One question to a judge that can see. It scores the dimensions ``motion_smoothness``, ``transition_naturalness``,
    ``flicker_freedom`` and ``object_persistence`` from 0 to 10; the value is their mean, divided by 10. A dimension that is
    missing or no number is an error, a score outside is moved to the bound. Passes from the threshold on (default 0.5).

    The judge sees evenly spaced frames of the turn's last video (``frames`` of the attachment, by their time), or the video's uri
    where there are no frames. Skipped with ``missing:video`` without a video.

    Parameters:
        num_frames: how many frames are shown, 1 to 1000; all where there are fewer.

    Detail: ``dimension_scores``, ``reason``, and ``clamped`` if a score was outside.

    Source: Trusys video-temporal-consistency (dimensions are our own).
    """
    return _by_dimensions(turn, judge, num_frames, prompts.STEADY, prompts.CONSISTENCY, {})


@metric(applies=applies.video, version="2", threshold=0.5, aliases=("trusys:video-factual-consistency",))
def llm_video_factual_consistency(turn: Turn, judge: Asks, *, num_frames: Frames = 8) -> Result:
    """How far a video agrees with how the world works: physics, whole objects, causes before effects.

    One question to a judge that can see. It scores the dimensions ``physical_plausibility``, ``object_integrity`` and
    ``causal_coherence`` from 0 to 10; the value is their mean, divided by 10. A dimension that is missing or no number is an
    error, a score outside is moved to the bound. Passes from the threshold on (default 0.5).

    The judge sees evenly spaced frames of the turn's last video (``frames`` of the attachment, by their time), or the video's uri
    where there are no frames. Skipped with ``missing:video`` without a video.

    Parameters:
        num_frames: how many frames are shown, 1 to 1000; all where there are fewer.

    Detail: ``dimension_scores``, ``reason``, and ``clamped`` if a score was outside.

    Source: Trusys video-factual-consistency (dimensions are our own).
    """
    return _by_dimensions(turn, judge, num_frames, prompts.PLAUSIBLE, prompts.PLAUSIBILITY, {})


@metric(applies=applies.video, version="2", threshold=0.5, aliases=("trusys:video-g-eval",), spellings={"value": "criteria"})
def llm_video_g_eval(
    turn: Turn, judge: Asks, *, criteria: Criteria, steps: list[str] | None = None, num_frames: Frames = 8
) -> Result:
    """How well a video meets criteria of your own, evaluated step by step (G-Eval).

    Two questions for each criterion: first the judge derives evaluation steps from it (not asked when ``steps`` are given),
    then it follows them, looks at the video and gives a score of 0..10. The value is the score divided by 10; of several
    criteria it is the mean. Passes from the threshold on (default 0.5). The prompt (the turn's input) is shown where it is known.

    The judge sees evenly spaced frames of the turn's last video (``frames`` of the attachment, by their time), or the video's uri
    where there are no frames. Skipped with ``missing:video`` without a video. An error when there are no steps, when a score
    is outside of 0..10 or when it has no reason.

    Parameters:
        criteria: required; one text, or several, which are evaluated one by one.
        steps: evaluation steps for all criteria; by default the judge derives them.
        num_frames: how many frames are shown, 1 to 1000; all where there are fewer.

    Detail: ``steps``, ``score`` (0..10), ``reason``; with several criteria ``criteria``, a list of these with ``criterion``, and
    ``reason``.

    Source: Trusys video-g-eval.
    """
    video = newest_video(turn)
    if video is None:
        return skip("missing:video")
    sample = _sampled(video, num_frames)
    asked = {"prompt": turn.input} if turn.input else {}
    return g_eval(judge, criteria, steps, "a video", {**asked, "video": sample.text}, sample.media)
