"""How close answers are in meaning to the video that they are about, by frames sampled from it. Each call costs."""

from __future__ import annotations

from ...core.turn import Turn
from ..lib import applies
from ..lib.frames import Frames, newest_video, spaced
from ..lib.vectors import cosine, share
from ..registry import Embeds, Result, metric, skip


@metric(
    applies=applies.video,
    needs=("output",),
    aliases=("agentunit:video_response_relevance", "agentunit:VideoResponseRelevanceMetric"),
)
def embed_video_response_relevance(turn: Turn, embedder: Embeds, *, num_frames: Frames = 8) -> Result:
    """How close the answer is in meaning to the video that it is about, frame by frame.

    ``0.6 * mean + 0.4 * max`` of the cosines of answer and frames, at least 0. The frames are evenly spaced ones of the turn's last
    video that has frames; answer and frames are embedded in one call, each frame by its uri or id as it is given, so this
    takes an embedder for images and texts. A trend: without a threshold nothing passes or fails.

    Skipped with ``missing:output`` when the answer is unknown, with ``missing:video`` without a video or frames, and with
    ``empty_output`` when the answer has no text.

    Parameters:
        num_frames: how many frames are compared, 1 to 1000; all where there are fewer.

    Detail: ``avg``, ``max``, ``min`` (of the cosines), ``num_frames_analyzed``.

    Source: AgentUnit video_response_relevance.
    """
    video = newest_video(turn, with_frames=True)
    if video is None:
        return skip("missing:video")
    output = turn.output or ""
    if not output.strip():
        return skip("empty_output")
    frames = [video.frames[place] for place in spaced(len(video.frames), num_frames)]
    answer, *seen = embedder.embed([output, *frames])
    found = [cosine(answer, frame) for frame in seen]
    mean = sum(found) / len(found)
    detail = {"avg": mean, "max": max(found), "min": min(found), "num_frames_analyzed": len(found)}
    return Result(share(0.6 * mean + 0.4 * max(found)), detail=detail)
