"""Images, sounds and videos of a turn, as judges and embedders get them.

What the configuration allows is opened (:mod:`otel_agenteval.media`): then a model gets pixels and samples, without what a file says about its maker.
Other addresses go to the model as they are, and its server may fetch them. Ids are only named to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ...core.turn import Turn
from ...media.access import Content, as_data, content_of, may_open
from ...media.decoding import bare_sound_of
from ...media.images import for_judge
from ...media.rules import current_rules
from ...media.types import ImageReference

Modality = Literal["image", "audio", "video"]

_MEDIA_TYPES: Mapping[Modality, str] = {"image": "image/png", "audio": "audio/wav", "video": "video/mp4"}
"""Media types that are assumed for data of unknown type."""


@dataclass(frozen=True, slots=True)
class Medium:
    """One image, recording or video."""

    reference: str | None
    """A uri, or an id that means something only to those who gave it."""
    frames: tuple[str, ...] = ()
    """Sampled frames of a video, in order: uris or ids."""
    transcript: str | None = None
    """What is said in a recording."""
    duration_s: float | None = None

    @property
    def name(self) -> str:
        """What a text calls it."""
        return name_of(self.reference) if self.reference else "(no reference)"


def is_open(reference: str) -> bool:
    """Whether a model can get at it: an id without a scheme is only named to it."""
    return "://" in reference or reference[:5].lower() == "data:"


def name_of(reference: str) -> str:
    """The reference as a text shows it: content that travels inside of it is not repeated."""
    return "(attached)" if reference[:5].lower() == "data:" else reference


def attachments_of(turn: Turn) -> Iterator[Mapping[str, Any]]:
    """Everything that is attached to the turn or to one of its messages."""
    yield from turn.attachments
    for message in turn.messages:
        yield from message.attachments


def modalities_of(attachment: Mapping[str, Any]) -> set[str]:
    """What an attachment is, by its modality and its media type."""
    named = {str(attachment.get("modality")).lower(), str(attachment.get("mime_type")).lower().partition("/")[0]}
    return named & {"image", "audio", "video"}


def media_of(turn: Turn, modality: Modality) -> list[Medium]:
    """The turn's media of one kind, in order, each once: the messages of a conversation repeat what was attached before."""
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
    return Medium(
        _reference(attachment, modality),
        tuple(frame.strip() for frame in listed if isinstance(frame, str) and frame.strip()),
        _text(attachment, "transcript") if modality == "audio" else None,
        float(seconds) if timed and seconds is not None else None,
    )


def _reference(attachment: Mapping[str, Any], modality: Modality) -> str | None:
    """What a model can get at, else what names it."""
    uri, data = _text(attachment, "uri"), _text(attachment, "data")
    if uri and is_open(uri):
        return uri
    if data:
        return data if is_open(data) else f"data:{_text(attachment, 'mime_type') or _MEDIA_TYPES[modality]};base64,{data}"
    return uri or _text(attachment, "file_id")


def listed(media: Iterable[Medium]) -> str:
    """Media as a judge reads of them; they are shown in the same order."""
    return "\n".join(f"{index}. {medium.name}" for index, medium in enumerate(media, 1))


def shown(media: Iterable[Medium]) -> list[str]:
    """What a model sees of images.

    Raises:
        MetricError: one that may be opened cannot be, or is none.
    """
    return [as_seen(medium.reference) for medium in media if medium.reference]


def as_seen(reference: str) -> str:
    """What a model sees of an image, or of a frame."""
    return ImageReference(for_judge(content_of(reference, "image")) if may_open(reference) else reference)


def heard(media: Iterable[Medium]) -> list[str]:
    """What a model hears of recordings; nothing of one that was written down for a model that cannot hear.

    Raises:
        MetricError: one that may be opened cannot be, or is none.
        MissingExtra: PyAV is not installed, which takes out what a recording says about its maker.
    """
    deaf = not current_rules().hears
    references = [medium.reference for medium in media if medium.reference and not (deaf and may_open(medium.reference))]
    return [
        as_data(bare_sound_of(content_of(reference, "audio"))) if may_open(reference) else reference for reference in references
    ]


def written(media: Iterable[Medium], *, for_judge: bool = False) -> str:
    """What is said in recordings: what came with them, else what the configured transcriber writes down of those that may be opened.

    Args:
        media: the recordings.
        for_judge: whether it leaves the process: what is written down here is redacted then, as all that came with the turn was.
    """
    clean = current_rules().clean if for_judge else None
    return "\n".join(text for medium in media if (text := medium.transcript or _transcribed(medium, clean)))


def _transcribed(medium: Medium, clean: Callable[[str], str] | None) -> str | None:
    wanted = current_rules().transcription
    if wanted is None or medium.reference is None or not may_open(medium.reference):
        return None
    from ...media.transcription import transcribed  # imports httpx

    found = transcribed(content_of(medium.reference, "audio"), wanted)
    return found if clean is None else clean(found)


def contents_of(turn: Turn, modality: Modality) -> list[Content]:
    """The bytes of the turn's media of one kind that may be opened.

    Raises:
        MetricError: one of them cannot be, or is of another kind.
    """
    references = [medium.reference for medium in media_of(turn, modality) if medium.reference]
    return [content_of(reference, modality) for reference in references if may_open(reference)]
