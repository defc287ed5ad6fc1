"""Prepare a turn's images, recordings, and videos for judges and embedding models.

If a file may be opened (:mod:`otel_agenteval.media`), the model receives only the file's pixels or sound, without metadata such as
the author. Otherwise, it receives the unchanged URL or ID. A local file that isn't allowed is an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from annotated_types import Ge, Le

from ...core.turn import Turn
from ...media.access import ImageReference, MediaContent, as_data, content_of, may_open
from ...media.decoding import Sampling, Video, sound_without_metadata, video_of
from ...media.images import for_judge
from ...media.rules import current_rules, scheme_of

Modality = Literal["image", "audio", "video"]

_MEDIA_TYPES: Mapping[Modality, str] = {"image": "image/png", "audio": "audio/wav", "video": "video/mp4"}


@dataclass(frozen=True, slots=True)
class Medium:
    reference: str | None
    """A URI, a path, or an ID that only the medium's provider can resolve."""
    frames: tuple[str, ...] = ()
    """URIs or IDs of frames that were sampled from a video, in order."""
    transcript: str | None = None
    duration_s: float | None = None

    @property
    def name(self) -> str:
        return name_of(self.reference) if self.reference else "(no reference)"


def is_accessible(reference: str) -> bool:
    """Return True if the reference is a URL or a data URI."""
    return "://" in reference or reference[:5].lower() == "data:"


def name_of(reference: str) -> str:
    return "(attached)" if reference[:5].lower() == "data:" else reference


def attachments_of(turn: Turn) -> Iterator[Mapping[str, Any]]:
    yield from turn.attachments
    for message in turn.messages:
        yield from message.attachments


def attachments_at(metadata: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield an attachment for each path in AgentUnit's metadata keys, such as ``image_path``."""
    for modality in _MEDIA_TYPES:
        given = metadata.get(f"{modality}_path")
        for path in given if isinstance(given, (list, tuple)) else (given,):
            if isinstance(path, str) and path.strip():
                yield {"modality": modality, "uri": path if scheme_of(path) else Path(path).absolute().as_uri()}


def modalities_of(attachment: Mapping[str, Any]) -> set[str]:
    named = {str(attachment.get("modality")).lower(), str(attachment.get("mime_type")).lower().partition("/")[0]}
    return named & {"image", "audio", "video"}


def media_of(turn: Turn, modality: Modality) -> list[Medium]:
    found = (_medium(attachment, modality) for attachment in attachments_of(turn) if modality in modalities_of(attachment))
    return list(dict.fromkeys(medium for medium in found if medium.reference or medium.frames or medium.transcript))


def _text(attachment: Mapping[str, Any], key: str) -> str | None:
    value = attachment.get(key)
    return value.strip() or None if isinstance(value, str) else None


def _medium(attachment: Mapping[str, Any], modality: Modality) -> Medium:
    frames = attachment.get("frames")
    listed: Sequence[Any] = frames if isinstance(frames, (list, tuple)) else ()
    seconds = attachment.get("duration_s")
    timed = isinstance(seconds, (int, float)) and not isinstance(seconds, bool) and 0 < seconds < 1e9
    uri, data = _text(attachment, "uri"), _text(attachment, "data")
    if uri and is_accessible(uri):
        reference: str | None = uri
    elif data:
        reference = (
            data if is_accessible(data) else f"data:{_text(attachment, 'mime_type') or _MEDIA_TYPES[modality]};base64,{data}"
        )
    else:
        reference = uri or _text(attachment, "file_id")
    return Medium(
        reference,
        tuple(frame.strip() for frame in listed if isinstance(frame, str) and frame.strip()),
        _text(attachment, "transcript") if modality == "audio" else None,
        float(seconds) if timed and seconds is not None else None,
    )


def images_for_model(media: Iterable[Medium]) -> list[str]:
    return [image_for_model(medium.reference) for medium in media if medium.reference]


def image_for_model(reference: str) -> str:
    return ImageReference(for_judge(content_of(reference, "image")) if _is_openable(reference) else reference)


def _is_openable(reference: str) -> bool:
    """Return True for a local file, and for a URL that may be opened. Opening a local file that isn't allowed raises an error."""
    return may_open(reference) or scheme_of(reference) == "file"


def recordings_for_model(media: Iterable[Medium]) -> list[str]:
    """Return the recordings as data URIs, URLs, or IDs, to send to a model.

    With ``media.transcriber.instead_of_sound``, recordings that may be opened are omitted, because they are transcribed instead.

    Raises:
        MetricError: If a recording can't be opened, is broken, or isn't audio.
        MissingExtra: If a package for opening a recording isn't installed, such as PyAV for MP3 files.
    """
    deaf = not current_rules().hears
    references = [medium.reference for medium in media if medium.reference and not (deaf and may_open(medium.reference))]
    return [
        as_data(sound_without_metadata(content_of(reference, "audio"))) if _is_openable(reference) else reference
        for reference in references
    ]


def transcripts_of(media: Iterable[Medium], *, for_judge: bool = False) -> str:
    """Return the transcripts of the recordings, separated by newlines.

    If a recording doesn't have a transcript and may be opened, the configured transcriber creates a transcript. With ``for_judge``,
    new transcripts are redacted as configured.
    """
    rules = current_rules()
    found = []
    for medium in media:
        text = medium.transcript
        if not text and rules.transcription is not None and medium.reference is not None and may_open(medium.reference):
            from ...media.transcription import transcribed  # imports httpx

            text = transcribed(content_of(medium.reference, "audio"), rules.transcription)
            text = rules.clean(text) if for_judge and rules.clean is not None else text
        if text:
            found.append(text)
    return "\n".join(found)


def contents_of(turn: Turn, modality: Modality) -> list[MediaContent]:
    references = [medium.reference for medium in media_of(turn, modality) if medium.reference]
    return [content_of(reference, modality) for reference in references if may_open(reference)]


# --- frames of a video

Frames = Annotated[int, Ge(1), Le(1000)]


def newest_video(turn: Turn, *, with_frames: bool = False) -> Medium | None:
    videos = [video for video in media_of(turn, "video") if video.frames or not with_frames]
    return videos[-1] if videos else None


def evenly_spaced(total: int, wanted: int) -> list[int]:
    count = min(wanted, total)
    return [place * total // count for place in range(count)]


def opened_video(video: Medium, num_frames: int, sampling: Sampling = "even") -> Video | None:
    """Open a video and return the video's frames and measurements, or None for an ID and for a URL that isn't allowed.

    Raises:
        MetricError: If the file can't be opened, is broken, too large, or not a video.
        MissingExtra: If a package for opening the video isn't installed, such as PyAV.
    """
    if video.reference is None or not _is_openable(video.reference):
        return None
    return video_of(content_of(video.reference, "video"), num_frames, sampling)
