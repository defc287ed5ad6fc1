"""Frames that are sampled from a video."""

from __future__ import annotations

from typing import Annotated

from annotated_types import Ge, Le

from ...core.turn import Turn
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
