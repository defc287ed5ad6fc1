"""Computed metrics for a turn's recordings: sound and transcript quality."""

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
"""Maximum characters of a text that is aligned, about an hour of speech. The work grows with the square."""


@metric(
    uses=("ground_truth",),
    applies=applies.audio,
    version="2",
    aliases=("agentunit:audio_transcription_quality", "agentunit:AudioTranscriptionMetric"),
    extra="audio",
    traits=("media",),
)
def code_audio_transcription_quality(turn: Turn, *, use_wer: bool = True, normalize: Literal["none", "lower"] = "none") -> Result:
    """Accuracy of a transcript: 1 minus its word error rate, at least 0.

    The transcript is the turn's output. Without an output, it is the ``transcript`` of the turn's recordings, or the result
    of ``media.transcriber``. The reference is the turn's ground truth. The word error rate is the number of substitutions,
    deletions and insertions divided by the words of the reference. White space separates words. Case and punctuation count. An
    empty transcript has the error rate 1. A transcript with many extra words can have an error rate above 1.

    The score is skipped with one of these reasons:

    - ``missing:transcript`` if there is no transcript.
    - ``missing:ground_truth`` if the reference is missing or has no words.
    - ``too_long`` if either text has more than 50,000 characters.

    Parameters:
        use_wer: If false, use the character error rate, ignoring white space at the ends.
        normalize: ``lower`` ignores case.

    Detail: ``wer``, ``cer`` (the two rates), ``accuracy`` (1 minus the rate, can be negative).

    Source: AgentUnit audio_transcription_quality.
    """
    transcript = (transcripts_of(media_of(turn, "audio")) or None) if turn.output is None else turn.output
    if transcript is None:
        return skip("missing:transcript")
    if isinstance(turn.ground_truth, (dict, list, tuple)):
        raise MetricError("invalid_reference", "ground_truth: must be one text, the correct transcript")
    reference = jsonio.text_of(turn.ground_truth)
    if not reference.strip():
        return skip("missing:ground_truth")
    if len(reference) > _LONGEST or len(transcript) > _LONGEST:
        return skip("too_long")
    if normalize == "lower":
        reference, transcript = reference.lower(), transcript.lower()
    jiwer: Any = require("jiwer", feature="code_audio_transcription_quality", extra="audio")
    # Any white space separates words here, but only spaces do in jiwer.
    wer = float(jiwer.wer(" ".join(reference.split()), " ".join(transcript.split())))
    cer = float(jiwer.cer(reference, transcript))
    accuracy = 1 - (wer if use_wer else cer)
    return Result(max(0.0, accuracy), detail={"wer": wer, "cer": cer, "accuracy": accuracy})


_MOST_RECORDINGS = 20


def _measured(turn: Turn, *, speech: bool = False) -> list[dict[str, Any]] | Result:
    contents = contents_of(turn, "audio")
    if not contents:
        return skip("media_not_open")
    if len(contents) > _MOST_RECORDINGS:
        return skip("too_long")
    return [sound_of(content, speech=speech) for content in contents]


def _worst(found: list[dict[str, Any]], name: str, *shown: str) -> Result:
    recordings = [{key: one[key] for key in ("duration_s", "channels", name, *shown)} for one in found]
    return Result(max(one[name] for one in found), detail={"recordings": recordings})


@metric(direction="down", applies=applies.recording, extra="media", traits=("media",))
def code_audio_silence(turn: Turn) -> Result:
    """Silent share of a recording, which reveals broken microphones and slow agents.

    The value is the share of 30 ms pieces in which all channels are below -50 dBFS. The most silent recording counts. The
    metric measures recordings in the turn and recordings that ``media`` allows it to fetch, but not the sound of videos.

    The score is skipped with one of these reasons:

    - ``missing:audio`` if there is no recording.
    - ``media_not_open`` if the metric isn't allowed to open any recording.
    - ``too_long`` if there are more than 20 recordings.

    If a recording is broken, the score is an error.

    Detail: ``recordings``, each with ``duration_s``, ``channels``, ``silence`` and ``longest_silence_s``.

    Source: otel-agenteval.
    """
    found = _measured(turn)
    return found if isinstance(found, Result) else _worst(found, "silence", "longest_silence_s")


@metric(direction="down", threshold=0.001, applies=applies.recording, extra="media", traits=("media",))
def code_audio_clipping(turn: Turn) -> Result:
    """Share of a recording that is clipped at full scale, which distorts it.

    A sample is clipped if it and a neighboring sample are at 99 % of full scale or more. The worst recording counts.
    Compression smooths clipped samples, so the metric finds few clipped samples in MP3 files. The metric measures and skips the same
    recordings as ``code_audio_silence``.

    Detail: ``recordings``, each with ``duration_s``, ``channels``, ``clipped`` and ``peak`` (share of full scale).

    Source: otel-agenteval.
    """
    found = _measured(turn)
    return found if isinstance(found, Result) else _worst(found, "clipped", "peak")


@metric(direction="down", applies=applies.recording, extra="media", traits=("media",))
def code_audio_talk_over(turn: Turn) -> Result:
    """Share of a call's speech during which two speakers talk at once.

    The value is the time in which two channels contain speech, divided by the time in which any channel contains speech. The worst
    recording counts. WebRTC's detector finds speech in 30 ms pieces, and pauses under half a second count as speech. The
    detector mistakes music and tones for speech.

    The metric needs one channel per speaker. Otherwise, it is skipped as ``not_applicable:one_channel``. A recording without
    speech has the value 0 (vacuous). The metric measures and skips the same recordings as ``code_audio_silence``.

    Detail: ``recordings``, each with ``duration_s``, ``talk_over``, ``talk_over_s``, ``speech_s`` and ``interruptions``. An
    interruption has ``at_s``, ``by_channel``, ``of_channel`` and ``stops_after_s`` (seconds for which the interrupted speaker
    continues).

    Source: otel-agenteval.
    """
    found = _measured(turn, speech=True)
    if isinstance(found, Result):
        return found
    separate = [one for one in found if len(one["speech"]) > 1]
    if not separate:
        return skip("not_applicable:one_channel")
    for one in separate:
        one["talk_over"] = one["talk_over_s"] / one["speech_s"] if one["speech_s"] else 0.0
    if not any(one["speech_s"] for one in separate):
        return vacuous(0.0)
    return _worst(separate, "talk_over", "talk_over_s", "speech_s", "interruptions")
