"""The ``embed_`` metric compares the answer with sampled video frames, based on embeddings."""

from __future__ import annotations

from ...core.turn import Turn
from ...media.access import ImageReference
from ..lib import applies
from ..lib.media import Frames, evenly_spaced, image_for_model, newest_video, opened_video
from ..registry import Embeds, Result, metric, skip
from .embeddings import cosine, share


@metric(
    needs=("output",),
    applies=applies.video,
    aliases=("agentunit:video_response_relevance", "agentunit:VideoResponseRelevanceMetric"),
    traits=("media",),
)
def embed_video_response_relevance(turn: Turn, embedder: Embeds, *, num_frames: Frames = 8) -> Result:
    """Similarity between the answer and the turn's video, based on frame embeddings.

    The value is ``0.6 * mean + 0.4 * max`` of the cosine similarities between the answer and each frame, but at least 0. The metric
    uses the last video attachment that has the field ``frames``, and selects evenly spaced frames. If no attachment has this field,
    the metric opens the last video. To open it, install the extra ``[media]``. The turn must contain the video file, or the
    ``media`` configuration must allow fetching it.

    The metric requires an embedder for images and text. The score is skipped as ``missing:video`` if frames aren't
    available, and as ``empty_output`` if the answer doesn't contain text.

    Parameters:
        num_frames: Maximum number of frames to compare.

    Detail: ``avg``, ``max``, and ``min`` of the cosines, and ``num_frames_analyzed``.
    """
    if (video := newest_video(turn, with_frames=True) or newest_video(turn)) is None:
        return skip("missing:video")
    if not (output := turn.output or "").strip():
        return skip("empty_output")
    if video.frames:
        frames = [image_for_model(video.frames[place]) for place in evenly_spaced(len(video.frames), num_frames)]
    else:
        found = opened_video(video, num_frames)
        frames = [] if found is None else [ImageReference(frame.uri) for frame in found.frames]
    if not frames:
        return skip("missing:video")
    answer, *seen = embedder.embed([output, *frames])
    cosines = [cosine(answer, frame) for frame in seen]
    mean = sum(cosines) / len(cosines)
    detail = {"avg": mean, "max": max(cosines), "min": min(cosines), "num_frames_analyzed": len(cosines)}
    return Result(share(0.6 * mean + 0.4 * max(cosines)), detail=detail)
