"""Judges of recordings, by sound or transcript. Each call costs.

A recording goes to the judge with its bytes where it came with the turn or may be fetched (``media``); else by its address. An id that no model can
open is only named to it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

from annotated_types import MinLen
from pydantic import StringConstraints

from ...core.errors import MetricError
from ...core.turn import Turn
from ...media.access import Content
from ...media.decoding import can_find_speech, sound_of
from ..lib import applies
from ..lib.media import contents_of, heard, listed, media_of, written
from ..lib.replies import boolean, choice, entries, invalid, optional_number, reason_of
from ..lib.values import Words
from ..prompts import audio as prompts
from ..registry import Asks, Result, metric, skip, vacuous


def _measured(content: Content) -> dict[str, Any] | None:
    """Who speaks when in a recording with a channel for each; None where that cannot be told."""
    if not can_find_speech():
        return None
    found = sound_of(content, speech=True)
    return {name: found[name] for name in ("speech", "interruptions", "talk_over_s")} if len(found["speech"]) > 1 else None


def _as_text(measured: Mapping[str, Any]) -> str:
    lines = [
        f"Channel {number} speaks: {', '.join(f'{start} to {end} s' for start, end in spoken) or 'never'}."
        for number, spoken in enumerate(measured["speech"], 1)
    ]
    lines += [
        f"At {one['at_s']} s channel {one['by_channel']} begins while channel {one['of_channel']} speaks, which stops {one['stops_after_s']} s later."
        for one in measured["interruptions"]
    ]
    return "\n".join([*lines, f"They speak at the same time for {measured['talk_over_s']} s in all."])


class _Heard(NamedTuple):
    material: dict[str, Any]
    """What a judge reads of the recordings."""
    media: list[str]
    """What it hears."""


def _heard(turn: Turn) -> _Heard | None:
    """The turn's recordings and what is said in them; None when there is neither."""
    recordings = media_of(turn, "audio")
    given = turn.references.get("transcript")
    transcript = (
        given
        if isinstance(given, str) and given.strip()
        else ""
        if isinstance(given, str)
        else written(recordings, for_judge=True)
    )
    if not recordings and not transcript:
        return None
    material = {"recordings": listed(recordings), "transcript": transcript}
    return _Heard({name: text for name, text in material.items() if text}, heard(recordings))


_Labels = Annotated[Sequence[Words], MinLen(1)]
_Expected = Words | _Labels | None
_SENTIMENTS = ("positive", "neutral", "negative")


def _expected_labels(expected: str | Sequence[str] | None, labels: Sequence[str]) -> set[str] | None:
    """What is expected, in the labels' spelling; None when nothing is."""
    if expected is None:
        return None
    known = {label.upper(): label for label in labels}
    wanted = [expected] if isinstance(expected, str) else expected
    unknown = next((label for label in wanted if label.upper() not in known), None)
    if unknown is not None:
        raise MetricError("invalid_parameter", f"expected: {unknown!r} is none of the labels {', '.join(labels)}")
    return {known[label.upper()] for label in wanted}


def _labelled(turn: Turn, judge: Asks, task: str, labels: Sequence[str], expected: str | Sequence[str] | None) -> Result:
    """The judge's label of the recording, and whether it is one of those expected."""
    wanted = _expected_labels(expected, labels)
    sound = _heard(turn)
    if sound is None:
        return skip("missing:audio")
    reply = judge.ask(
        "label",
        task,
        sound.material,
        '{"reason": "<what was said or heard that decides it>", "label": "<one of the labels>", "confidence": <0 to 1>}',
        criteria={"labels": "\n".join(labels)},
        media=sound.media,
    )
    label = choice(reply, labels)
    reason = reason_of(reply)
    detail = {"label": label, "confidence": optional_number(reply, "confidence"), "reason": reason}
    if wanted is None:
        return Result(None, label=label, detail=detail, explanation=reason)
    return Result(label in wanted, detail=detail, explanation=reason)


@metric(
    media=True, applies=applies.audio, version="2", references=("transcript",), boolean=True, aliases=("trusys:audio-sentiment",)
)
def llm_audio_sentiment(turn: Turn, judge: Asks, *, expected: _Expected = None, labels: _Labels = _SENTIMENTS) -> Result:
    """What mood a recording is in, and whether it is the expected one.

    One question to a judge that can hear (or reads the transcript): it picks one of the labels; any other is an error. Labels are
    compared without case. With ``expected`` it passes when the label is among them; without, there is no value, only the label.

    The recordings are the turn's audio attachments; their ``transcript``, or the turn's reference ``transcript``, is shown
    beside them, and is enough without them. Skipped with ``missing:audio`` when there is neither.

    Parameters:
        expected: the label, or a list of labels, that passes; none by default.
        labels: what the judge chooses from.

    Detail: ``label`` (as it is configured), ``confidence`` (null where the judge gave none), ``reason``.

    Source: Trusys audio-sentiment.
    """
    return _labelled(turn, judge, prompts.SENTIMENT, labels, expected)


@metric(
    media=True,
    applies=applies.audio,
    version="2",
    references=("transcript",),
    boolean=True,
    aliases=("trusys:audio-call-category",),
)
def llm_audio_call_category(turn: Turn, judge: Asks, *, categories: _Labels, expected: _Expected = None) -> Result:
    """What a call is about, and whether it is what was expected.

    One question to a judge that can hear (or reads the transcript): it picks one of the categories; any other is an error.
    Categories are compared without case. With ``expected`` it passes when the category is among them; without, there is no
    value, only the label.

    The recordings are the turn's audio attachments; their ``transcript``, or the turn's reference ``transcript``, is shown
    beside them, and is enough without them. Skipped with ``missing:audio`` when there is neither.

    Parameters:
        categories: required; what the judge chooses from.
        expected: the category, or a list of categories, that passes; none by default.

    Detail: ``label`` (as it is configured), ``confidence`` (null where the judge gave none), ``reason``.

    Source: Trusys audio-call-category.
    """
    return _labelled(turn, judge, prompts.CATEGORY, categories, expected)


_Tag = Annotated[str, StringConstraints(strip_whitespace=True, pattern=r"^[A-Za-z]{2,3}([-_][A-Za-z0-9]{1,8})*$")]
_TAG = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{1,8})*")


def _tag(text: str, match: Literal["primary", "exact"]) -> str:
    whole = text.lower().replace("_", "-")
    return whole if match == "exact" else whole.partition("-")[0]


@metric(
    media=True, applies=applies.audio, version="2", references=("transcript",), boolean=True, aliases=("trusys:audio-language",)
)
def llm_audio_language(
    turn: Turn, judge: Asks, *, expected: _Tag | Annotated[list[_Tag], MinLen(1)], match: Literal["primary", "exact"] = "primary"
) -> Result:
    """Whether the language of a recording is the expected one.

    One question to a judge that can hear (or reads the transcript), which answers with a BCP 47 tag such as ``en`` or ``pt-BR``;
    anything else is an error. Passes when the tag is among the expected ones, without case.

    The recordings are the turn's audio attachments; their ``transcript``, or the turn's reference ``transcript``, is shown
    beside them, and is enough without them. Skipped with ``missing:audio`` when there is neither.

    Parameters:
        expected: required; a BCP 47 tag, or a list of tags.
        match: ``primary`` compares the language alone (``en-US`` is ``en``), ``exact`` the whole tags.

    Detail: ``language`` (as the judge wrote it), ``confidence`` (null where the judge gave none), ``reason``.

    Source: Trusys audio-language.
    """
    sound = _heard(turn)
    if sound is None:
        return skip("missing:audio")
    reply = judge.ask(
        "label",
        prompts.LANGUAGE,
        sound.material,
        '{"reason": "<what shows it>", "language": "<BCP 47 tag>", "confidence": <0 to 1>}',
        media=sound.media,
    )
    given = reply.get("language")
    if not isinstance(given, str) or not _TAG.fullmatch(given.strip()):
        raise invalid("language", "a BCP 47 tag")
    reason = reason_of(reply)
    detail = {"language": given.strip(), "confidence": optional_number(reply, "confidence"), "reason": reason}
    wanted = [expected] if isinstance(expected, str) else expected
    found = _tag(given.strip(), match) in {_tag(one, match) for one in wanted}
    return Result(found, detail=detail, explanation=reason)


@metric(
    media=True,
    applies=applies.audio,
    version="3",
    references=("transcript",),
    threshold=0.5,
    aliases=("trusys:audio-interruption-handling",),
)
def llm_audio_interruption_handling(turn: Turn, judge: Asks) -> Result:
    """How well an agent that speaks deals with being interrupted: the share of interruptions that it handled.

    One question to a judge that can hear (or reads the transcript): it lists the interruptions and says whether each was handled
    gracefully. Without one the value is 1, marked vacuous. Passes from the threshold on (default 0.5).

    The recordings are the turn's audio attachments; their ``transcript``, or the turn's reference ``transcript``, is shown
    beside them, and is enough without them. Skipped with ``missing:audio`` when there is neither.

    With the extra ``[media]``, a recording that can be opened is measured: when each channel speaks, where one begins while another one speaks,
    and how soon that one stops. The judge reads it beside the recording. In one channel with all voices nothing of that can be told.

    Detail: ``measured`` (of each recording: ``speech``, ``interruptions``, ``talk_over_s``, times in seconds), ``interruptions`` (as the judge gave them: ``statement``, what the user broke in with; ``at_s``, in seconds, -1 where nothing
    shows it; ``reason``; ``handled``).

    Source: Trusys audio-interruption-handling.
    """
    sound = _heard(turn)
    if sound is None:
        return skip("missing:audio")
    measured = [found for content in contents_of(turn, "audio") if (found := _measured(content))]
    reply = judge.ask(
        "interruptions",
        prompts.INTERRUPTIONS,
        {**sound.material, "measured": "\n".join(map(_as_text, measured))} if measured else sound.material,
        '{"interruptions": [{"statement": "<what the user breaks in with>", "at_s": <seconds>, "reason": "<what the agent does next>", '
        '"handled": <true or false>}, ...]}',
        media=sound.media,
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


@metric(
    media=True,
    applies=applies.audio,
    version="2",
    references=("transcript",),
    boolean=True,
    aliases=("trusys:audio-false-intent-identification",),
)
def llm_audio_false_intent_identification(turn: Turn, judge: Asks, *, expected: bool | None = None) -> Result:
    """Whether a speaker has false or misleading intent: passes when there is none, or when it is as expected.

    One question to a judge that can hear (or reads the transcript): whether it detects such intent. Passes when it detects none;
    with ``expected``, when it detects what was expected.

    The recordings are the turn's audio attachments; their ``transcript``, or the turn's reference ``transcript``, is shown
    beside them, and is enough without them. Skipped with ``missing:audio`` when there is neither.

    Parameters:
        expected: whether false intent is there; unknown by default.

    Detail: ``detected``, ``evidence``, ``reason``.

    Source: Trusys audio-false-intent-identification.
    """
    sound = _heard(turn)
    if sound is None:
        return skip("missing:audio")
    reply = judge.ask(
        "verdict",
        prompts.FALSE_INTENT,
        sound.material,
        '{"reason": "<what speaks for and against it>", "evidence": ["<words that show it>", ...], "detected": <true or false>}',
        media=sound.media,
    )
    detected = boolean(reply, "detected")
    reason = reason_of(reply)
    detail = {"detected": detected, "evidence": reply.get("evidence"), "reason": reason}
    return Result(detected == expected if expected is not None else not detected, detail=detail, explanation=reason)
