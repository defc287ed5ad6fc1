"""The ``code_`` metrics measure the quality of a turn's audio recordings and transcripts."""

from __future__ import annotations

from typing import Any, Literal

from ...core import jsonio
from ...core.errors import MetricError
from ...core.extras import require
from ...core.turn import Turn
from ...media.decoding import sound_of
from ..lib import applies
from ..lib.media import contents_of, media_of, transcripts_of
from ..registry import Result, metric, skip, vacuous

_LONGEST = 50_000
"""Maximum number of characters of each text (about an hour of speech). The alignment time grows with the product of the lengths."""


@metric(
    uses=("ground_truth",),
    applies=applies.audio,
    version="2",
    aliases=("agentunit:audio_transcription_quality", "agentunit:AudioTranscriptionMetric"),
    extra="audio",
    traits=("media",),
)
def code_audio_transcription_quality(turn: Turn, *, use_wer: bool = True, normalize: Literal["none", "lower"] = "none") -> Result:
    """Accuracy of an audio transcript: 1 minus its word error rate, but at least 0.

    The transcript is the turn's output. If the output is missing, the metric uses the ``transcript`` of the turn's recordings, or a
    transcript from ``media.transcriber``. The reference is the turn's ground truth, as a text.

    The word error rate is the number of substituted, deleted, and inserted words, divided by the number of words in the reference.
    Words are separated by whitespace. Differences in case and punctuation count as errors. The error rate can exceed 1.

    The score is skipped for these reasons:

    - ``missing:audio``: the turn has neither a recording nor the reference ``transcript``.
    - ``missing:transcript``: the transcript is missing.
    - ``missing:ground_truth``: the reference is missing or blank.
    - ``too_long``: either text has more than 50,000 characters.

    Parameters:
        use_wer: If false, the value is based on the character error rate, and whitespace at the start and end of the texts is ignored.
        normalize: With ``lower``, the metric ignores case.

    Detail: ``wer`` and ``cer`` (word and character error rate), and ``accuracy`` (1 minus the selected rate, possibly negative).
    """
    transcript = (transcripts_of(media_of(turn, "audio")) or None) if turn.output is None else turn.output
    if transcript is None:
        return skip("missing:transcript")
    if isinstance(turn.ground_truth, (dict, list, tuple)):
        raise MetricError("invalid_reference", "ground_truth: must be text, not an object or list")
    if not (reference := jsonio.text_of(turn.ground_truth)).strip():
        return skip("missing:ground_truth")
    if len(reference) > _LONGEST or len(transcript) > _LONGEST:
        return skip("too_long")
    if normalize == "lower":
        reference, transcript = reference.lower(), transcript.lower()
    jiwer: Any = require("jiwer", feature="code_audio_transcription_quality", extra="audio")
    # Here, any whitespace separates words. In jiwer, only spaces do.
    wer = float(jiwer.wer(" ".join(reference.split()), " ".join(transcript.split())))
    cer = float(jiwer.cer(reference, transcript))
    accuracy = 1 - (wer if use_wer else cer)
    return Result(max(0.0, accuracy), detail={"wer": wer, "cer": cer, "accuracy": accuracy})


_MOST_RECORDINGS = 20


def _measured(turn: Turn, *, speech: bool = False) -> list[dict[str, Any]] | Result:
    if not (contents := contents_of(turn, "audio")):
        return skip("media_not_open" if media_of(turn, "audio") else "missing:audio")
    if len(contents) > _MOST_RECORDINGS:
        return skip("too_long")
    return [sound_of(content, speech=speech) for content in contents]


def _worst(found: list[dict[str, Any]], name: str, *shown: str) -> Result:
    recordings = [{key: one[key] for key in ("duration_s", "channels", name, *shown)} for one in found]
    return Result(max(one[name] for one in found), detail={"recordings": recordings})


@metric(direction="down", applies=applies.recording, extra="media", traits=("media",))
def code_audio_silence(turn: Turn) -> Result:
    """Share of a recording that is silent, for example because of a broken microphone.

    A recording is silent while all of its channels are below -50 dBFS, measured in intervals of 30 ms. If there are several
    recordings, the highest share is used. The metric measures recordings whose data the turn contains, and recordings that the
    ``media`` configuration allows it to open. Videos aren't measured. If a recording can't be decoded, the score is an error.

    The score is skipped for these reasons:

    - ``missing:audio``: the turn doesn't contain recordings.
    - ``media_not_open``: the turn has no recording that the metric may open.
    - ``too_long``: the turn has more than 20 recordings that the metric is allowed to open.

    Detail: ``recordings``, each with ``duration_s``, ``channels``, ``silence``, and ``longest_silence_s``.
    """
    found = _measured(turn)
    return found if isinstance(found, Result) else _worst(found, "silence", "longest_silence_s")


@metric(direction="down", threshold=0.001, applies=applies.recording, version="2", extra="media", traits=("media",))
def code_audio_clipping(turn: Turn) -> Result:
    """Share of a recording that is clipped at full scale, which distorts the sound.

    A sample is clipped if both it and a neighboring sample reach 99 % of full scale. If there are several recordings, the highest
    share is used. In MP3 files, the metric misses most clipped samples, because compression smooths them. ``code_audio_silence``
    describes which recordings are measured, and when the score is skipped.

    Detail: ``recordings``, each with ``duration_s``, ``channels``, ``clipped``, and ``peak`` (share of full scale).
    """
    found = _measured(turn)
    return found if isinstance(found, Result) else _worst(found, "clipped", "peak")


@metric(direction="down", applies=applies.recording, extra="media", traits=("media",))
def code_audio_talk_over(turn: Turn) -> Result:
    """Share of a call's speech time in which at least two speakers talk at once.

    The value is the time in which at least two channels contain speech, divided by the time in which any channel contains speech.
    If there are several recordings, the highest value is used. WebRTC's detector finds speech in 30 ms intervals. Pauses of up to
    half a second count as speech. The detector can mistake music and tones for speech.

    Each speaker needs a separate channel. If all recordings have a single channel or identical channels, the score is skipped as
    ``not_applicable:one_channel``. If the recordings don't contain speech, the value is 0 (vacuous). ``code_audio_silence``
    describes which recordings are measured, and lists the other skip reasons.

    Detail: ``recordings``, each with ``duration_s``, ``channels``, ``talk_over``, ``talk_over_s``, ``speech_s``, and
    ``interruptions``. An interruption has ``at_s``, ``by_channel`` (interrupting), ``of_channel`` (interrupted), and
    ``stops_after_s`` (seconds until the interrupted speaker stops).
    """
    if isinstance(found := _measured(turn, speech=True), Result):
        return found
    if not (separate := [one for one in found if len(one["speech"]) > 1]):
        return skip("not_applicable:one_channel")
    for one in separate:
        one["talk_over"] = one["talk_over_s"] / one["speech_s"] if one["speech_s"] else 0.0
    if not any(one["speech_s"] for one in separate):
        return vacuous(0.0)
    return _worst(separate, "talk_over", "talk_over_s", "speech_s", "interruptions")
