"""How well a transcript matches what was said."""

from __future__ import annotations

from typing import Any, Literal

from ...core import jsonio
from ...core.errors import MetricError
from ...core.extras import require
from ...core.turn import Turn
from ..registry import Result, metric, skip

_LONGEST = 50_000
"""Characters of a text that is aligned, about an hour of speech: the work grows with the square."""


def _reference(turn: Turn) -> str:
    """The transcript that is right, or ``""``."""
    given = turn.ground_truth
    if isinstance(given, (dict, list, tuple)):
        raise MetricError("invalid_reference", "ground_truth must be one text: the right transcript")
    return jsonio.text_of(given)


def _error_rates(reference: str, transcript: str) -> tuple[float, float]:
    """Word and character error rate. Words are what white space separates; jiwer itself only knows the space."""
    jiwer: Any = require("jiwer", feature="code_audio_transcription_quality", extra="audio")
    words = jiwer.wer(" ".join(reference.split()), " ".join(transcript.split()))
    return float(words), float(jiwer.cer(reference, transcript))


@metric(
    uses=("ground_truth",),
    extra="audio",
    aliases=("agentunit:audio_transcription_quality", "agentunit:AudioTranscriptionMetric"),
    heavy=True,
)
def code_audio_transcription_quality(turn: Turn, *, use_wer: bool = True, normalize: Literal["none", "lower"] = "none") -> Result:
    """How well a transcript matches what was said: 1 minus its word error rate, at least 0.

    The transcript is the turn's output, the reference its ground truth. The word error rate is substitutions, deletions and
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
    transcript = turn.output
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
