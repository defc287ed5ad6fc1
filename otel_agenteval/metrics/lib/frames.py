"""Frames of a video: those that came with it, and those that are taken from it."""

from __future__ import annotations

from typing import Annotated

from annotated_types import Ge, Le

from ...core.turn import Turn
from ...media.access import content_of, may_open
from ...media.decoding import Sampling, Video, video_of
from .media import Medium, media_of

Frames = Annotated[int, Ge(1), Le(1000)]


def newest_video(turn: Turn, *, with_frames: bool = False) -> Medium | None:
    """The last video: one that the agent made comes after what the user gave."""
    videos = [video for video in media_of(turn, "video") if video.frames or not with_frames]
    return videos[-1] if videos else None


def spaced(total: int, wanted: int) -> list[int]:
    """Places of evenly spaced frames, none twice."""
    count = min(wanted, total)
    return [place * total // count for place in range(count)]


def opened_video(video: Medium, num_frames: int, sampling: Sampling = "even") -> Video | None:
    """Pictures and measures of a video that may be opened; None where it may not.

    Raises:
        MetricError: it is broken, too large, or no video.
        MissingExtra: PyAV is not installed.
    """
    if video.reference is None or not may_open(video.reference):
        return None
    return video_of(content_of(video.reference, "video"), num_frames, sampling)
