"""The ``llm_`` metrics judge the turn's last video, based on sampled frames. The judge must support images.

The judge receives frames with their positions in the video, from the first of these sources that is available:

1. the attachment's field ``frames`` (evenly spaced frames)
2. frames from the video file, if the turn contains the file or the ``media`` configuration allows fetching it. This requires the
   extra ``[media]``.

If neither source is available, the judge receives only the video's HTTP address or, without an address, the video's ID as text. An
HTTP address is an error with providers other than ``openai`` and ``gemini``. Any other URL is an error. If otel-agenteval
opened the video file, the judge also reads measurements of resolution, bitrate, sharpness, blockiness, flicker, cuts, motion jumps,
and frozen and black periods. If the turn doesn't contain a video, the score is skipped as ``missing:video``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from ...core.turn import Turn
from ...media.decoding import Sampling
from ..lib import applies
from ..lib.media import Frames, Medium, evenly_spaced, image_for_model, name_of, newest_video, opened_video
from ..lib.replies import Criteria, g_eval, invalid, number_within, reason_of
from ..prompts import Prompts
from ..registry import Asks, Result, metric, skip

_PROMPTS = Prompts("video")
# dimensions, which the prompts describe
_QUALITY = ("resolution", "clarity", "colour_accuracy", "artifact_freedom")
_ALIGNMENT = ("subject_alignment", "action_alignment", "attribute_alignment", "scene_alignment")
_CONSISTENCY = ("motion_smoothness", "transition_naturalness", "flicker_freedom", "object_persistence")
_PLAUSIBILITY = ("physical_plausibility", "object_integrity", "causal_coherence")


class _Sample(NamedTuple):
    text: str
    media: list[str]
    """Images for the judge, or the video's address."""
    measured: dict[str, Any] | None = None


def _sample_frames(video: Medium, num_frames: int, sampling: Sampling) -> _Sample:
    if total := len(video.frames):
        places = evenly_spaced(total, num_frames)
        lines = []
        for number, place in enumerate(places, 1):
            part = place / total
            time = f"{part * video.duration_s:.2f} s" if video.duration_s else f"{100 * part:.0f} % of its length"
            lines.append(f"{number}. {name_of(video.frames[place])} at {time}")
        head = f"{len(places)} of {total} frames of the video {video.name}, in order:"
        return _Sample("\n".join([head, *lines]), [image_for_model(video.frames[place]) for place in places])
    if (found := opened_video(video, num_frames, sampling)) is None:
        return _Sample(f"The video itself: {video.name}", [video.reference] if video.reference else [])
    times = [f"{number}. at {frame.at_s:.2f} s" for number, frame in enumerate(found.frames, 1)]
    head = f"{len(times)} frames of the video {video.name}, in order:"
    text = "\n".join([head, *times, "", *_measurements_as_text(found.measured)])
    return _Sample(text, [frame.uri for frame in found.frames], found.measured)


def _measurements_as_text(measured: Mapping[str, Any]) -> list[str]:
    facts = {name: measured[name] for name in ("width", "height", "fps", "duration_s", "codec", "bitrate_kbps")}
    lines = [
        "Measured by program in every frame, also between those that you see:",
        "{width} x {height} pixels, {fps} frames a second, {duration_s} s, {codec} with {bitrate_kbps} kbit/s".format(**facts),
        f"sharpness {measured['sharpness']} (variance of the Laplacian; below about 50 looks blurred)",
        f"blockiness {measured['blockiness']} (1: no blocks of compression are seen; 2 and more: they are)",
        f"flicker {measured['flicker']} (of 255; 2 and more is seen)",
    ]
    labels = {"cuts_s": "cuts at", "jumps_s": "motion jumps at", "frozen_s": "frozen from", "black_s": "black from"}
    for name, label in labels.items():
        found = [f"{at[0]} to {at[1]} s" if isinstance(at, list) else f"{at} s" for at in measured[name]]
        more = " and more" if len(found) > _MOST_LISTED else ""
        lines.append(f"{label} {', '.join(found[:_MOST_LISTED])}{more}" if found else f"{label}: none")
    if measured["measured_s"] < 0.98 * measured["duration_s"]:
        lines.append(f"(all this of the first {measured['measured_s']} s)")
    return lines


_MOST_LISTED = 50


def _by_dimensions(
    turn: Turn, judge: Asks, num_frames: int, sampling: Sampling, task: str, dimensions: Collection[str], **material: str
) -> Result:
    if (video := newest_video(turn)) is None:
        return skip("missing:video")
    sample = _sample_frames(video, num_frames, sampling)
    reply = judge.ask(
        "score",
        task,
        {**material, "video": sample.text},
        '{"reason": "<what the frames show, and what speaks against the highest level>", "scores": {"evidence": "<for each dimension, '
        'in order, what decides it and in which frame>", ' + ", ".join(f'"{name}": <0 to 10>' for name in dimensions) + "}}",
        media=sample.media,
    )
    if not isinstance(scores := reply.get("scores"), Mapping):
        raise invalid("scores", "an object with a number for each dimension")
    detail: dict[str, Any] = {"reason": reason_of(reply)}
    if sample.measured is not None:
        detail["measured"] = sample.measured
    found = {name: number_within(scores, 0, 10, name) for name in dimensions}
    detail["dimension_scores"] = found
    return Result(sum(found.values()) / (10 * len(found)), detail=detail, explanation=detail["reason"])


@metric(threshold=0.5, applies=applies.video, version="3", aliases=("trusys:video-visual-quality",), traits=("media",))
def llm_video_visual_quality(turn: Turn, judge: Asks, *, num_frames: Frames = 8, sampling: Sampling = "even") -> Result:
    """Visual quality of a video: resolution, clarity, color accuracy, and freedom from artifacts.

    A single judge call scores ``resolution``, ``clarity``, ``colour_accuracy``, and ``artifact_freedom`` from 0 to 10. The value is
    the mean score divided by 10. A missing or invalid score is an error.

    Parameters:
        num_frames: Maximum number of frames that the judge receives.
        sampling: With ``scenes``, frames show the middles of scenes if the opened file has cuts. Otherwise, they're evenly spaced.

    Detail: ``dimension_scores``, ``reason``, and, if the video file was opened, ``measured``.
    """
    return _by_dimensions(turn, judge, num_frames, sampling, _PROMPTS["looks"], _QUALITY)


@metric(threshold=0.5, applies=applies.video, version="3", aliases=("trusys:text-to-video",), traits=("media",))
def llm_text_to_video(turn: Turn, judge: Asks, *, num_frames: Frames = 8, sampling: Sampling = "even") -> Result:
    """Rate how well a generated video matches its prompt (the turn's input).

    A single judge call scores ``subject_alignment``, ``action_alignment``, ``attribute_alignment``, and ``scene_alignment`` from 0
    to 10. The value is the mean score divided by 10. A missing or invalid score is an error. If the input is missing, the score is
    skipped as ``missing:input``.

    Parameters:
        num_frames: Maximum number of frames that the judge receives.
        sampling: With ``scenes``, frames show the middles of scenes if the opened file has cuts. Otherwise, they're evenly spaced.

    Detail: ``dimension_scores``, ``reason``, and, if the video file was opened, ``measured``.
    """
    if newest_video(turn) is None:
        return skip("missing:video")
    if not turn.input:
        return skip("missing:input")
    return _by_dimensions(turn, judge, num_frames, sampling, _PROMPTS["shows_prompt"], _ALIGNMENT, prompt=turn.input)


@metric(threshold=0.5, applies=applies.video, version="3", aliases=("trusys:video-temporal-consistency",), traits=("media",))
def llm_video_temporal_consistency(turn: Turn, judge: Asks, *, num_frames: Frames = 8, sampling: Sampling = "even") -> Result:
    """Consistency of a video over time: motion, transitions, flicker, and persistent objects.

    A single judge call scores ``motion_smoothness``, ``transition_naturalness``, ``flicker_freedom``, and ``object_persistence``
    from 0 to 10. The value is the mean score divided by 10. A missing or invalid score is an error.

    Parameters:
        num_frames: Maximum number of frames that the judge receives.
        sampling: With ``scenes``, frames show the middles of scenes if the opened file has cuts. Otherwise, they're evenly spaced.

    Detail: ``dimension_scores``, ``reason``, and, if the video file was opened, ``measured``.
    """
    return _by_dimensions(turn, judge, num_frames, sampling, _PROMPTS["steady"], _CONSISTENCY)


@metric(threshold=0.5, applies=applies.video, version="3", aliases=("trusys:video-factual-consistency",), traits=("media",))
def llm_video_factual_consistency(turn: Turn, judge: Asks, *, num_frames: Frames = 8, sampling: Sampling = "even") -> Result:
    """Plausibility of a video: physics, intact objects, and causes before effects.

    A single judge call scores ``physical_plausibility``, ``object_integrity``, and ``causal_coherence`` from 0 to 10. The value is
    the mean score divided by 10. A missing or invalid score is an error.

    Parameters:
        num_frames: Maximum number of frames that the judge receives.
        sampling: With ``scenes``, frames show the middles of scenes if the opened file has cuts. Otherwise, they're evenly spaced.

    Detail: ``dimension_scores``, ``reason``, and, if the video file was opened, ``measured``.
    """
    return _by_dimensions(turn, judge, num_frames, sampling, _PROMPTS["plausible"], _PLAUSIBILITY)


@metric(threshold=0.5, applies=applies.video, version="3", aliases=("trusys:video-g-eval",), traits=("media",))
def llm_video_g_eval(
    turn: Turn,
    judge: Asks,
    *,
    criteria: Criteria,
    steps: list[str] | None = None,
    num_frames: Frames = 8,
    sampling: Sampling = "even",
) -> Result:
    """Use evaluation steps (G-Eval) to rate how well a video meets your criteria.

    For each criterion, the first judge call derives evaluation steps, unless you set ``steps``. The second call follows the steps
    and returns a score from 0 to 10. The value is the mean of these scores, divided by 10. If the turn's input is known, the judge
    reads this input as the video's prompt.

    If a reply contains no steps, no reason, or a score outside 0..10, the metric's score is an error.

    Parameters:
        criteria: One criterion, or a list of criteria that are evaluated separately.
        steps: Evaluation steps for all criteria. By default, the judge derives them.
        num_frames: Maximum number of frames that the judge receives.
        sampling: With ``scenes``, frames show the middles of scenes if the opened file has cuts. Otherwise, they're evenly spaced.

    Detail: ``steps``, ``score`` (0..10), and ``reason``. With several criteria, the detail contains ``reason`` and ``criteria``, a
    list of ``{criterion, steps, score, reason}``. If the video file was opened, ``measured`` is added.
    """
    if (video := newest_video(turn)) is None:
        return skip("missing:video")
    sample = _sample_frames(video, num_frames, sampling)
    asked = {"prompt": turn.input} if turn.input else {}
    found = g_eval(judge, criteria, steps, "a video", {**asked, "video": sample.text}, sample.media)
    if sample.measured is not None and found.detail is not None:
        found.detail["measured"] = sample.measured
    return found
