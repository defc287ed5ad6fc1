"""Choose and open the frames of a video."""

from __future__ import annotations

from typing import Annotated

from annotated_types import Ge, Le

from ...core.turn import Turn
from ...media.access import content_of, may_open
from ...media.decoding import Sampling, Video, video_of
from .media import Medium, media_of

Frames = Annotated[int, Ge(1), Le(1000)]


def newest_video(turn: Turn, *, with_frames: bool = False) -> Medium | None:
    """Return the last video, or None. Those that the agent made follow those of the user."""
    videos = [video for video in media_of(turn, "video") if video.frames or not with_frames]
    return videos[-1] if videos else None


def spaced(total: int, wanted: int) -> list[int]:
    count = min(wanted, total)
    return [place * total // count for place in range(count)]


def opened_video(video: Medium, num_frames: int, sampling: Sampling = "even") -> Video | None:
    """Open a video and return its frames and measurements, or None if it may not be opened.

    Raises:
        MetricError: If the file is broken, too large or not a video.
        MissingExtra: If PyAV isn't installed.
    """
    if video.reference is None or not may_open(video.reference):
        return None
    return video_of(content_of(video.reference, "video"), num_frames, sampling)
