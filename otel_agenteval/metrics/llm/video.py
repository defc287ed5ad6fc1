"""Judges of videos, by frames sampled from them. Each call costs.

Frames come with the attachment (``frames``), or they are taken from the video where it can be opened (extra ``[media]``); then the judge also reads
what was measured in all of it. Else it gets the video's own address.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from ...core.turn import Turn
from ...media.decoding import Sampling
from ..lib import applies
from ..lib.frames import Frames, newest_video, opened_video, spaced
from ..lib.g_eval import Criteria, g_eval
from ..lib.media import Medium, as_seen, name_of
from ..lib.replies import invalid, number_within, reason_of
from ..prompts import video as prompts
from ..registry import Asks, Result, metric, skip


class _Sample(NamedTuple):
    text: str
    """What a judge reads of the video."""
    media: list[str]
    """What it sees."""
    measured: dict[str, Any] | None = None


def _sampled(video: Medium, num_frames: int, sampling: Sampling) -> _Sample:
    total = len(video.frames)
    if total:
        places = spaced(total, num_frames)
        lines = [f"{number}. {name_of(video.frames[place])} at {_time(video, place)}" for number, place in enumerate(places, 1)]
        head = f"{len(places)} of {total} frames of the video {video.name}, in order:"
        return _Sample("\n".join([head, *lines]), [as_seen(video.frames[place]) for place in places])
    found = opened_video(video, num_frames, sampling)
    if found is None:
        return _Sample(f"The video itself: {video.name}", [video.reference] if video.reference else [])
    times = [f"{number}. at {frame.at_s:.2f} s" for number, frame in enumerate(found.frames, 1)]
    text = "\n".join([f"{len(times)} frames of the video {video.name}, in order:", *times, "", *_evidence(found.measured)])
    return _Sample(text, [frame.uri for frame in found.frames], found.measured)


def _time(video: Medium, place: int) -> str:
    part = place / len(video.frames)
    return f"{part * video.duration_s:.2f} s" if video.duration_s else f"{100 * part:.0f} % of its length"


def _evidence(measured: Mapping[str, Any]) -> list[str]:
    """What was measured, as a judge reads it."""
    facts = {name: measured[name] for name in ("width", "height", "fps", "duration_s", "codec", "bitrate_kbps")}
    lines = [
        "Measured by program in every frame, also between those that you see:",
        "{width} x {height} pixels, {fps} frames a second, {duration_s} s, {codec} with {bitrate_kbps} kbit/s".format(**facts),
        f"sharpness {measured['sharpness']} (variance of the Laplacian; below about 50 looks blurred)",
        f"blockiness {measured['blockiness']} (1: no blocks of compression are seen; 2 and more: they are)",
        f"flicker {measured['flicker']} (of 255; 2 and more is seen)",
    ]
    for name, said in (
        ("cuts_s", "cuts at"),
        ("jumps_s", "motion jumps at"),
        ("frozen_s", "frozen from"),
        ("black_s", "black from"),
    ):
        found = [f"{at[0]} to {at[1]} s" if isinstance(at, list) else f"{at} s" for at in measured[name]]
        lines.append(
            f"{said} {', '.join(found[:_MOST_LISTED])}{' and more' if len(found) > _MOST_LISTED else ''}"
            if found
            else f"{said}: none"
        )
    if measured["measured_s"] < 0.98 * measured["duration_s"]:
        lines.append(f"(all this of the first {measured['measured_s']} s)")
    return lines


_MOST_LISTED = 50


def _by_dimensions(
    turn: Turn,
    judge: Asks,
    num_frames: int,
    sampling: Sampling,
    task: str,
    dimensions: Collection[str],
    material: Mapping[str, Any],
) -> Result:
    """The mean of the judge's scores of 0..10 for each dimension, over 10."""
    video = newest_video(turn)
    if video is None:
        return skip("missing:video")
    sample = _sampled(video, num_frames, sampling)
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
    if sample.measured is not None:
        detail["measured"] = sample.measured
    found = {name: number_within(scores, 0, 10, name) for name in dimensions}
    detail["dimension_scores"] = found
    return Result(sum(found.values()) / (10 * len(found)), detail=detail, explanation=detail["reason"])


@metric(media=True, applies=applies.video, version="3", threshold=0.5, aliases=("trusys:video-visual-quality",))
def llm_video_visual_quality(turn: Turn, judge: Asks, *, num_frames: Frames = 8, sampling: Sampling = "even") -> Result:
    """How good a video looks: sharp, clear, with true colours and without artifacts.

    One question to a judge that can see. It scores the dimensions ``resolution``, ``clarity``, ``colour_accuracy`` and
    ``artifact_freedom`` from 0 to 10; the value is their mean, divided by 10. A dimension that is missing or no number is an
    error, and so is a score outside. Passes from the threshold on (default 0.5).

    The judge sees frames of the turn's last video, with their times: ``frames`` of the attachment, evenly spaced, or else pictures that are taken
    from the video itself, where it came with the turn or may be fetched and the extra ``[media]`` is installed. Of these it also reads what
    was measured: resolution, bitrate, sharpness, blockiness, flicker, cuts, motion jumps, frozen and black stretches. Else it gets the
    video's address. Skipped with ``missing:video`` without a video.

    Parameters:
        num_frames: how many frames are shown, 1 to 1000; all where there are fewer.
        sampling: ``even``, or ``scenes`` for the middle picture of each scene (only of a video that is opened).

    Detail: ``dimension_scores``, ``reason`` and ``measured`` (of a video that was opened).

    Source: Trusys video-visual-quality (dimensions are our own).
    """
    return _by_dimensions(turn, judge, num_frames, sampling, prompts.LOOKS, prompts.QUALITY, {})


@metric(media=True, applies=applies.video, version="3", threshold=0.5, aliases=("trusys:text-to-video",))
def llm_text_to_video(turn: Turn, judge: Asks, *, num_frames: Frames = 8, sampling: Sampling = "even") -> Result:
    """How well a generated video shows what was asked for.

    One question to a judge that can see. It scores the dimensions ``subject_alignment``, ``action_alignment``,
    ``attribute_alignment`` and ``scene_alignment`` with the prompt (the turn's input) from 0 to 10; the value is their mean,
    divided by 10. A dimension that is missing or no number is an error, and so is a score outside. Passes
    from the threshold on (default 0.5).

    The judge sees frames of the turn's last video, with their times: ``frames`` of the attachment, evenly spaced, or else pictures that are taken
    from the video itself, where it came with the turn or may be fetched and the extra ``[media]`` is installed. Of these it also reads what
    was measured: resolution, bitrate, sharpness, blockiness, flicker, cuts, motion jumps, frozen and black stretches. Else it gets the
    video's address. Skipped with ``missing:video`` without a video and with ``missing:input`` without a prompt.

    Parameters:
        num_frames: how many frames are shown, 1 to 1000; all where there are fewer.
        sampling: ``even``, or ``scenes`` for the middle picture of each scene (only of a video that is opened).

    Detail: ``dimension_scores``, ``reason`` and ``measured`` (of a video that was opened).

    Source: Trusys text-to-video (dimensions are our own).
    """
    if newest_video(turn) is None:
        return skip("missing:video")
    if not turn.input:
        return skip("missing:input")
    return _by_dimensions(turn, judge, num_frames, sampling, prompts.SHOWS_PROMPT, prompts.ALIGNMENT, {"prompt": turn.input})


@metric(media=True, applies=applies.video, version="3", threshold=0.5, aliases=("trusys:video-temporal-consistency",))
def llm_video_temporal_consistency(turn: Turn, judge: Asks, *, num_frames: Frames = 8, sampling: Sampling = "even") -> Result:
    """How steady a video is over time: smooth motion, natural transitions, no flicker, and objects that stay what they are.

    One question to a judge that can see. It scores the dimensions ``motion_smoothness``, ``transition_naturalness``,
    ``flicker_freedom`` and ``object_persistence`` from 0 to 10; the value is their mean, divided by 10. A dimension that is
    missing or no number is an error, and so is a score outside. Passes from the threshold on (default 0.5).

    The judge sees frames of the turn's last video, with their times: ``frames`` of the attachment, evenly spaced, or else pictures that are taken
    from the video itself, where it came with the turn or may be fetched and the extra ``[media]`` is installed. Of these it also reads what
    was measured: resolution, bitrate, sharpness, blockiness, flicker, cuts, motion jumps, frozen and black stretches. Else it gets the
    video's address. Skipped with ``missing:video`` without a video.

    Parameters:
        num_frames: how many frames are shown, 1 to 1000; all where there are fewer.
        sampling: ``even``, or ``scenes`` for the middle picture of each scene (only of a video that is opened).

    Detail: ``dimension_scores``, ``reason`` and ``measured`` (of a video that was opened).

    Source: Trusys video-temporal-consistency (dimensions are our own).
    """
    return _by_dimensions(turn, judge, num_frames, sampling, prompts.STEADY, prompts.CONSISTENCY, {})


@metric(media=True, applies=applies.video, version="3", threshold=0.5, aliases=("trusys:video-factual-consistency",))
def llm_video_factual_consistency(turn: Turn, judge: Asks, *, num_frames: Frames = 8, sampling: Sampling = "even") -> Result:
    """How far a video agrees with how the world works: physics, whole objects, causes before effects.

    One question to a judge that can see. It scores the dimensions ``physical_plausibility``, ``object_integrity`` and
    ``causal_coherence`` from 0 to 10; the value is their mean, divided by 10. A dimension that is missing or no number is an
    error, and so is a score outside. Passes from the threshold on (default 0.5).

    The judge sees frames of the turn's last video, with their times: ``frames`` of the attachment, evenly spaced, or else pictures that are taken
    from the video itself, where it came with the turn or may be fetched and the extra ``[media]`` is installed. Of these it also reads what
    was measured: resolution, bitrate, sharpness, blockiness, flicker, cuts, motion jumps, frozen and black stretches. Else it gets the
    video's address. Skipped with ``missing:video`` without a video.

    Parameters:
        num_frames: how many frames are shown, 1 to 1000; all where there are fewer.
        sampling: ``even``, or ``scenes`` for the middle picture of each scene (only of a video that is opened).

    Detail: ``dimension_scores``, ``reason`` and ``measured`` (of a video that was opened).

    Source: Trusys video-factual-consistency (dimensions are our own).
    """
    return _by_dimensions(turn, judge, num_frames, sampling, prompts.PLAUSIBLE, prompts.PLAUSIBILITY, {})


@metric(
    media=True,
    applies=applies.video,
    version="3",
    threshold=0.5,
    aliases=("trusys:video-g-eval",),
    spellings={"value": "criteria"},
)
def llm_video_g_eval(
    turn: Turn,
    judge: Asks,
    *,
    criteria: Criteria,
    steps: list[str] | None = None,
    num_frames: Frames = 8,
    sampling: Sampling = "even",
) -> Result:
    """How well a video meets criteria of your own, evaluated step by step (G-Eval).

    Two questions for each criterion: first the judge derives evaluation steps from it (not asked when ``steps`` are given),
    then it follows them, looks at the video and gives a score of 0..10. The value is the score divided by 10; of several
    criteria it is the mean. Passes from the threshold on (default 0.5). The prompt (the turn's input) is shown where it is known.

    The judge sees frames of the turn's last video, with their times: ``frames`` of the attachment, evenly spaced, or else pictures that are taken
    from the video itself, where it came with the turn or may be fetched and the extra ``[media]`` is installed. Of these it also reads what
    was measured: resolution, bitrate, sharpness, blockiness, flicker, cuts, motion jumps, frozen and black stretches. Else it gets the
    video's address. Skipped with ``missing:video`` without a video. An error when there are no steps, when a score
    is outside of 0..10 or when it has no reason.

    Parameters:
        criteria: required; one text, or several, which are evaluated one by one.
        steps: evaluation steps for all criteria; by default the judge derives them.
        num_frames: how many frames are shown, 1 to 1000; all where there are fewer.
        sampling: ``even``, or ``scenes`` for the middle picture of each scene (only of a video that is opened).

    Detail: ``steps``, ``score`` (0..10), ``reason``; with several criteria ``criteria``, a list of these with ``criterion``, and
    ``reason``. ``measured`` of a video that was opened.

    Source: Trusys video-g-eval.
    """
    video = newest_video(turn)
    if video is None:
        return skip("missing:video")
    sample = _sampled(video, num_frames, sampling)
    asked = {"prompt": turn.input} if turn.input else {}
    found = g_eval(judge, criteria, steps, "a video", {**asked, "video": sample.text}, sample.media)
    if sample.measured is not None and found.detail is not None:
        found.detail["measured"] = sample.measured
    return found
