"""The ``llm_`` metrics judge a turn's audio recordings, based on the sound or on transcripts.

If the turn contains a recording's file, or the ``media`` configuration allows opening it, the judge receives the sound (providers
``openai`` and ``gemini``). With ``media.transcriber.instead_of_sound``, the judge receives only a transcript. For other recordings,
the judge receives the HTTP address (provider ``gemini``) or, without an address, the ID as text. If the judge's provider doesn't
accept the sound or address, or if a local file isn't allowed, the score is an error.

The judge also reads the turn's reference ``transcript`` or, if unset, transcripts from the attachments or ``media.transcriber``. If
the turn has no recording and no transcript, the score is skipped as ``missing:audio``.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from annotated_types import MinLen
from pydantic import StringConstraints

from ...core.errors import MetricError
from ...core.fact_forms import a_document, one_or_more
from ...core.turn import Turn
from ...media.decoding import can_find_speech, sound_of
from ..lib import applies
from ..lib.media import contents_of, media_of, recordings_for_model, transcripts_of
from ..lib.replies import boolean, choice, entries, invalid, numbered, optional_number, reason_of
from ..lib.values import Words, readable
from ..prompts import Prompts
from ..registry import Asks, Result, metric, skip, vacuous

_audio_metric = functools.partial(metric, references=("transcript",), applies=applies.audio, traits=("media",))

_PROMPTS = Prompts("audio")


def _speech_as_text(measured: Mapping[str, Any]) -> str:
    lines = [
        f"Channel {number} speaks: {', '.join(f'{start} to {end} s' for start, end in times) or 'never'}."
        for number, times in enumerate(measured["speech"], 1)
    ]
    lines += [
        f"At {one['at_s']} s channel {one['by_channel']} begins while channel {one['of_channel']} speaks, which stops {one['stops_after_s']} s later."
        for one in measured["interruptions"]
    ]
    return "\n".join([*lines, f"They speak at the same time for {measured['talk_over_s']} s in all."])


def _transcript(given: Any) -> str:
    def segment(given: Any, path: str) -> str:
        speaker = given.get("speaker", given.get("role")) if isinstance(given, Mapping) else None
        text = a_document(given, path)
        return f"{speaker}: {text}" if speaker and text.strip() else text.strip()

    segments = given.get("segments", given) if isinstance(given, Mapping) else given
    return "\n".join(filter(None, readable(one_or_more(segment), segments, "transcript")))


def _recordings_of(turn: Turn) -> tuple[dict[str, Any], list[str]] | None:
    recordings = media_of(turn, "audio")
    given = turn.references.get("transcript")
    transcript = transcripts_of(recordings, for_judge=True) if given is None else _transcript(given)
    if not recordings and not transcript:
        return None
    material = {"recordings": numbered(one.name for one in recordings), "transcript": transcript}
    return {name: text for name, text in material.items() if text}, recordings_for_model(recordings)


def _ask(turn: Turn, judge: Asks, stage: str, task: str, form: str, **criteria: str) -> dict[str, Any] | None:
    if (found := _recordings_of(turn)) is None:
        return None
    material, media = found
    return judge.ask(stage, task, material, form, criteria=criteria or None, media=media)


_Labels = Annotated[Sequence[Words], MinLen(1)]
_Expected = Words | _Labels | None
_SENTIMENTS = ("positive", "neutral", "negative")


def _expected_labels(expected: str | Sequence[str] | None, labels: Sequence[str]) -> set[str] | None:
    if expected is None:
        return None
    known = {label.upper(): label for label in labels}
    wanted = [expected] if isinstance(expected, str) else expected
    if (unknown := next((label for label in wanted if label.upper() not in known), None)) is not None:
        raise MetricError("invalid_parameter", f"expected: must be one of {', '.join(labels)}, got {unknown!r}")
    return {known[label.upper()] for label in wanted}


def _free_label(label: Any) -> str:
    words = re.sub(r"[\W\d_]+", " ", label).split() if isinstance(label, str) else []
    if not words:
        raise invalid("label", "a few words")
    return " ".join(words[:5]).lower()


def _label_recordings(
    turn: Turn, judge: Asks, task: str, labels: Sequence[str] | None, expected: str | Sequence[str] | None
) -> Result:
    if labels is None:
        wanted = {_free_label(label) for label in ([expected] if isinstance(expected, str) else expected or ())} or None
    else:
        wanted = _expected_labels(expected, labels)
    choices, more = ("the category", "") if labels is None else ("one of the labels", ', "confidence": <0 to 1>')
    form = f'{{"reason": "<what was said or heard that decides it>", "label": "<{choices}>"{more}}}'
    reply = _ask(turn, judge, "label", task, form, **({} if labels is None else {"labels": "\n".join(labels)}))
    if reply is None:
        return skip("missing:audio")
    label = _free_label(reply.get("label")) if labels is None else choice(reply, labels)
    reason = reason_of(reply)
    detail = {"label": label, "confidence": optional_number(reply, "confidence"), "reason": reason}
    if wanted is None:
        return Result(None, label=label, detail=detail, explanation=reason)
    return Result(label in wanted, detail=detail, explanation=reason)


@_audio_metric(boolean=True, version="2", aliases=("trusys:audio-sentiment",))
def llm_audio_sentiment(turn: Turn, judge: Asks, *, expected: _Expected = None, labels: _Labels = _SENTIMENTS) -> Result:
    """Sentiment of a recording, as a label that you can compare with an expected label.

    A single judge call returns one of the labels, in upper or lower case. Any other label is an error. If you set ``expected``, the
    metric passes if the returned label is an expected label. Otherwise, the score has a label but no value.

    Parameters:
        expected: One of the ``labels``, or a list of them.
        labels: Labels that the judge can select.

    Detail: ``label`` (as configured), ``confidence`` (null if the judge didn't return it), and ``reason``.
    """
    return _label_recordings(turn, judge, _PROMPTS["sentiment"], labels, expected)


@_audio_metric(boolean=True, version="2", aliases=("trusys:audio-call-category",))
def llm_audio_call_category(turn: Turn, judge: Asks, *, categories: _Labels | None = None, expected: _Expected = None) -> Result:
    """Category of a call, as a label that you can compare with an expected label.

    A single judge call returns the category. If you set ``expected``, the metric passes if the returned category is an expected
    category. If you don't set ``expected``, the score has a label but no value.

    Parameters:
        categories: Categories that the judge can return, in upper or lower case. Any other category is an error. By default, the
            judge describes the category in a few words.
        expected: One expected category, or a list of expected categories.

    Detail: ``label`` (as configured, or up to five of the judge's words), ``confidence`` (null if the judge didn't return it), and
    ``reason``.
    """
    task = _PROMPTS["category" if categories is not None else "free_category"]
    return _label_recordings(turn, judge, task, categories, expected)


_Tag = Annotated[str, StringConstraints(strip_whitespace=True, pattern=r"^[A-Za-z]{2,3}([-_][A-Za-z0-9]{1,8})*$")]
_TAG = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{1,8})*")


def _compared_tag(text: str, match: Literal["primary", "exact"]) -> str:
    whole = text.lower().replace("_", "-")
    return whole if match == "exact" else whole.partition("-")[0]


@_audio_metric(boolean=True, version="2", aliases=("trusys:audio-language",))
def llm_audio_language(
    turn: Turn, judge: Asks, *, expected: _Tag | Annotated[list[_Tag], MinLen(1)], match: Literal["primary", "exact"] = "primary"
) -> Result:
    """Check that a recording is in the expected language.

    A single judge call returns a BCP 47 language tag, such as ``en`` or ``pt-BR``. Any other reply is an error. The metric passes
    if the tag matches an expected tag (see ``match``).

    Parameters:
        expected: One expected BCP 47 tag, or a list of expected tags.
        match: ``primary`` compares only the language (``en-US`` equals ``en``). ``exact`` compares whole tags. Both ignore case.

    Detail: ``language`` (as the judge returned it), ``confidence`` (null if the judge didn't return it), and ``reason``.
    """
    form = '{"reason": "<what shows it>", "language": "<BCP 47 tag>", "confidence": <0 to 1>}'
    if (reply := _ask(turn, judge, "label", _PROMPTS["language"], form)) is None:
        return skip("missing:audio")
    given = reply.get("language")
    if not isinstance(given, str) or not _TAG.fullmatch(given.strip()):
        raise invalid("language", "a BCP 47 tag")
    tag, reason = given.strip(), reason_of(reply)
    detail = {"language": tag, "confidence": optional_number(reply, "confidence"), "reason": reason}
    wanted = {_compared_tag(one, match) for one in ([expected] if isinstance(expected, str) else expected)}
    return Result(_compared_tag(tag, match) in wanted, detail=detail, explanation=reason)


@_audio_metric(threshold=0.5, version="3", aliases=("trusys:audio-interruption-handling",))
def llm_audio_interruption_handling(turn: Turn, judge: Asks) -> Result:
    """Share of interruptions that a voice agent handled gracefully.

    A single judge call lists the user's interruptions, and decides for each one whether the agent handled it gracefully. If there
    are no interruptions, the value is 1 (vacuous).

    If the extra ``[media]`` is installed, otel-agenteval measures each recording that it may open and that has several channels,
    one per speaker. The judge also reads these measurements: times of speech in each channel, interruptions, and the duration of
    simultaneous speech.

    Detail: ``interruptions`` (as the judge returned them) and ``measured``. Each interruption has ``statement`` (the user's
    interrupting words), ``at_s`` (seconds, -1 if unknown), ``reason``, and ``handled``. For each measured recording, ``measured``
    contains ``speech``, ``interruptions``, and ``talk_over_s`` (in seconds).
    """
    if (recordings := _recordings_of(turn)) is None:
        return skip("missing:audio")
    material, media = recordings
    sounds = [sound_of(content, speech=True) for content in contents_of(turn, "audio") if can_find_speech()]
    separate = [sound for sound in sounds if len(sound["speech"]) > 1]  # with one channel per speaker
    measured = [{name: sound[name] for name in ("speech", "interruptions", "talk_over_s")} for sound in separate]
    reply = judge.ask(
        "interruptions",
        _PROMPTS["interruptions"],
        {**material, "measured": "\n".join(map(_speech_as_text, measured))} if measured else material,
        '{"interruptions": [{"statement": "<what the user breaks in with>", "at_s": <seconds>, "reason": "<what the agent does next>", '
        '"handled": <true or false>}, ...]}',
        media=media,
    )
    given = entries(reply, "interruptions")
    detail: dict[str, Any] = {"measured": measured} if measured else {}
    if not given:
        return vacuous(1.0, interruptions=[], **detail)
    if not all(isinstance(entry, Mapping) for entry in given):
        raise invalid("interruptions", "a list of objects")
    handled = sum(boolean(entry, "handled") for entry in given)
    reasons = "\n".join(reason for reason in map(reason_of, given) if reason) or None
    return Result(handled / len(given), detail={"interruptions": given, **detail}, explanation=reasons)


@_audio_metric(boolean=True, version="2", aliases=("trusys:audio-false-intent-identification",))
def llm_audio_false_intent_identification(turn: Turn, judge: Asks, *, expected: bool | None = None) -> Result:
    """Check that no speaker hides their true intent.

    A single judge call detects false intent. By default, the metric passes if the judge doesn't detect false intent.

    Parameters:
        expected: If true, the metric passes only if the judge detects false intent. Null is the same as false.

    Detail: ``detected``, ``evidence``, and ``reason``.
    """
    form = (
        '{"reason": "<what speaks for and against it>", "evidence": ["<words that show it>", ...], "detected": <true or false>}'
    )
    if (reply := _ask(turn, judge, "verdict", _PROMPTS["false_intent"], form)) is None:
        return skip("missing:audio")
    detected, reason = boolean(reply, "detected"), reason_of(reply)
    detail = {"detected": detected, "evidence": reply.get("evidence"), "reason": reason}
    return Result(detected == bool(expected), detail=detail, explanation=reason)
