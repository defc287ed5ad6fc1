"""How well a transcript matches what was said, and whether recordings can be listened to."""

from __future__ import annotations

from typing import Any, Literal

from ...core import jsonio
from ...core.errors import MetricError
from ...core.extras import require
from ...core.turn import Turn
from ...media.decoding import sound_of
from ..lib import applies
from ..lib.media import contents_of, media_of, written
from ..registry import Result, metric, skip, vacuous

_LONGEST = 50_000
"""Characters of a text that is aligned, about an hour of speech: the work grows with the square."""


def _reference(turn: Turn) -> str:
    """The transcript that is right, or ``""``."""
    given = turn.ground_truth
    if isinstance(given, (dict, list, tuple)):
        raise MetricError("invalid_reference", "ground_truth must be one text: the right transcript")
    return jsonio.text_of(given)


def _transcript(turn: Turn) -> str | None:
    """What a model understood: the turn's output, else what is said in its recordings, as it came with them or the transcriber writes it down."""
    if turn.output is not None:
        return turn.output
    return written(media_of(turn, "audio")) or None


def _error_rates(reference: str, transcript: str) -> tuple[float, float]:
    """Word and character error rate. Words are what white space separates; jiwer itself only knows the space."""
    jiwer: Any = require("jiwer", feature="code_audio_transcription_quality", extra="audio")
    words = jiwer.wer(" ".join(reference.split()), " ".join(transcript.split()))
    return float(words), float(jiwer.cer(reference, transcript))


@metric(
    uses=("ground_truth",),
    extra="audio",
    aliases=("agentunit:audio_transcription_quality", "agentunit:AudioTranscriptionMetric"),
    media=True,
)
def code_audio_transcription_quality(turn: Turn, *, use_wer: bool = True, normalize: Literal["none", "lower"] = "none") -> Result:
    """How well a transcript matches what was said: 1 minus its word error rate, at least 0.

    The transcript is the turn's output, or where that is unknown what is said in its recordings: as it came with them (``transcript`` of an attachment), else as
    ``media.transcriber`` writes it down. The
    reference is its ground truth. The word error rate is substitutions, deletions and
    insertions over the words of the reference. Words are what white space separates; case and punctuation count. An empty
    transcript has the rate 1; one with many superfluous words can exceed 1, which ``detail.accuracy`` still shows.

    Skipped with ``missing:transcript`` when the output is unknown, with ``missing:ground_truth`` when there is no reference
    (or it has no word), and with ``too_long`` when either text has more than 50 000 characters. Needs the extra ``[audio]``.

    Parameters:
        use_wer: off, the character error rate counts instead of the word error rate. White space at the ends does not count.
        normalize: ``lower`` compares without case.

    Detail: ``wer``, ``cer`` (the two rates), ``accuracy`` (1 minus the rate that counts, can be negative).

    Source: AgentUnit audio_transcription_quality.
    """
    transcript = _transcript(turn)
    if transcript is None:
        return skip("missing:transcript")
    reference = _reference(turn)
    if not reference.strip():
        return skip("missing:ground_truth")
    if len(reference) > _LONGEST or len(transcript) > _LONGEST:
        return skip("too_long")
    if normalize == "lower":
        reference, transcript = reference.lower(), transcript.lower()
    wer, cer = _error_rates(reference, transcript)
    accuracy = 1 - (wer if use_wer else cer)
    return Result(max(0.0, accuracy), detail={"wer": wer, "cer": cer, "accuracy": accuracy})


_MOST_RECORDINGS = 20
"""Recordings of a turn that are listened to."""


def _measured(turn: Turn, *, speech: bool = False) -> list[dict[str, Any]] | Result:
    """What was measured of each recording that may be opened, or why there is nothing to measure."""
    contents = contents_of(turn, "audio")
    if not contents:
        return skip("media_not_open")
    if len(contents) > _MOST_RECORDINGS:
        return skip("too_long")
    return [sound_of(content, speech=speech) for content in contents]


def _worst(found: list[dict[str, Any]], name: str, *shown: str) -> Result:
    """The largest value of any recording, and what was measured of each."""
    recordings = [{key: one[key] for key in ("duration_s", "channels", name, *shown)} for one in found]
    return Result(max(one[name] for one in found), detail={"recordings": recordings})


@metric(media=True, applies=applies.recording, direction="down", extra="media")
def code_audio_silence(turn: Turn) -> Result:
    """How much of a recording is silent: a broken microphone, a muted line, an agent that takes long to answer.

    The share of pieces of 30 ms in which all channels are below -50 dBFS; of several recordings the most silent counts. A trend: a threshold makes
    it pass or fail.

    Recordings that came with the turn are measured, and those that may be fetched (``media``); sounds of videos are not. Skipped with
    ``missing:audio`` without a recording, with ``media_not_open`` when none may be opened, and with ``too_long`` when there are more than 20. A broken
    recording is an error. Needs the extra ``[media]``.

    Detail: ``recordings``, each with ``duration_s``, ``channels``, ``silence`` and ``longest_silence_s``.

    Source: our own.
    """
    found = _measured(turn)
    return found if isinstance(found, Result) else _worst(found, "silence", "longest_silence_s")


@metric(media=True, applies=applies.recording, direction="down", threshold=0.001, extra="media")
def code_audio_clipping(turn: Turn) -> Result:
    """How much of a recording is cut off at full scale, which sounds distorted and is hard to transcribe.

    The share of samples at 99 % of full scale or more, next to another such one; of several recordings the worst counts. Passes up to the threshold
    (default 0.001). Compression smooths what was cut off before it, so little is found of it in an MP3. Which recordings are measured, and when
    it is skipped, is as in ``code_audio_silence``.

    Detail: ``recordings``, each with ``duration_s``, ``channels``, ``clipped`` and ``peak`` (of full scale).

    Source: our own.
    """
    found = _measured(turn)
    return found if isinstance(found, Result) else _worst(found, "clipped", "peak")


@metric(media=True, applies=applies.recording, direction="down", extra="media")
def code_audio_talk_over(turn: Turn) -> Result:
    """How much of what is said in a call is said while somebody else speaks.

    Seconds in which two channels speak at once, over the seconds in which anybody does; of several recordings the worst counts. It takes a recording
    with a channel for each speaker: of others nothing is known (``not_applicable:one_channel``). Speech is found by WebRTC's detector in pieces of 30 ms;
    pauses below half a second belong to what is said. It takes music and tones for speech. A trend: a threshold makes it pass or fail. Without
    speech the value is 0, marked vacuous. Which recordings are measured, and when it is skipped, is as in ``code_audio_silence``.

    Detail: ``recordings``, each with ``duration_s``, ``talk_over``, ``talk_over_s``, ``speech_s`` and ``interruptions`` (``at_s``, ``by_channel``, ``of_channel``,
    ``stops_after_s``: how long the one who was speaking goes on).

    Source: our own.
    """
    found = _measured(turn, speech=True)
    if isinstance(found, Result):
        return found
    apart = [one for one in found if len(one["speech"]) > 1]
    if not apart:
        return skip("not_applicable:one_channel")
    for one in apart:
        one["talk_over"] = one["talk_over_s"] / one["speech_s"] if one["speech_s"] else 0.0
    if not any(one["speech_s"] for one in apart):
        return vacuous(0.0)
    return _worst(apart, "talk_over", "talk_over_s", "speech_s", "interruptions")
