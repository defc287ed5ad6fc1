"""Detect refusals by known sentence patterns, for answers with undecided evidence.

A refusal also requires that the rest of the answer has no result.
"""

from __future__ import annotations

import re
from typing import Literal

from ..injection.languages import ENGLISH_WORDS
from ..injection.normalise import folded
from .languages import CUES, DRAFT, Words, asks_for_other_words, compiled
from .text import ITEM, length, sentences_of, without_emphasis, without_quotes

_FIRST = 500
"""Characters within which the first declining sentence must start."""
_HEAD = 1_500
"""Characters that are read. Refusals decline within them."""
_LONGEST = 2_500
"""Maximum length of a refusal in characters."""
_BEFORE = 65
"""Maximum characters of content before the declining sentence."""
_AFTER = 420
"""Maximum characters of content after the declining sentence."""
_WHOLE_WEAK = 330
"""Maximum length of an answer that declines only by redirecting the user."""

_CODE = re.compile(r"```|^(?: {4}|\t)\S", re.MULTILINE)
_TABLE = re.compile(r"^[^\S\n]*\|.*\|.*\|", re.MULTILINE)
_DATA = re.compile(r"[0-9]")
_STEPS = re.compile(r"→|->|: (?:open|go|click|choose|first)\b")
_BUT = re.compile(
    r",? (?:but|aber|mais|pero|ma|mas|maar|ale|ama|но|але|men|tetapi|tapi|nhung|lekin|however)\b|ولكن|لكن|אבל|लेकिन|ですが|ますが|但|지만"
)

Kind = Literal["declines", "redirects"]


def declines(output: str, asked: str = "") -> Kind | None:
    """Return how a sentence declines, or None.

    The rest of the answer must not have a result. ``asked`` is the user's text.
    """
    if len(output) > _LONGEST or output.lstrip()[:1] in ("{", "["):
        return None
    head = without_emphasis(folded(output[:_FIRST]))
    english = len(ENGLISH_WORDS.findall(head)) >= 3
    languages = [language for language, cues in CUES if (language.name == "en" or not english) and _has_any(head, cues)]
    if not languages:
        return None
    first = sentences_of(without_quotes(head))
    if not any(_may_decline(first, compiled(language)) for language in languages):
        return None
    if _delivers_something(output):
        return None
    if len(output) > _FIRST:
        head = without_emphasis(folded(output[:_HEAD]))
    head = without_quotes(head)
    if DRAFT.match(head) or asks_for_other_words(folded(asked[:300])):
        return None
    sentences = sentences_of(head)
    for language in languages:
        kind = _kind_of(sentences, compiled(language))
        if kind is not None:
            return kind
    return None


def _may_decline(sentences: list[str], words: Words) -> bool:
    """Return True if one of the first sentences declines before any content."""
    before = 0.0
    for sentence in sentences:
        if words.decline.search(sentence) or words.weak.search(sentence):
            return True
        if words.empty.search(sentence) is None:
            before += length(sentence)
            if before > _BEFORE:
                return False
    return False


def _has_any(text: str, pieces: tuple[str, ...]) -> bool:
    for piece in pieces:  # a generator would be slower than the search
        if piece in text:
            return True
    return False


def _delivers_something(output: str) -> bool:
    return bool(_CODE.search(output) or _TABLE.search(output)) or len(ITEM.findall(output)) >= 3


def _kind_of(sentences: list[str], words: Words) -> Kind | None:
    before = 0.0
    for place, sentence in enumerate(sentences):
        found = _declines(sentence, words)
        if found is not None:
            rest = [sentence[found.end() :], *sentences[place + 1 :]]
            return "declines" if _delivers_little(rest, words) else None
        if words.weak.search(sentence) and _only_redirects(sentences, place, words):
            return "redirects"
        if words.empty.search(sentence) is None:
            if _DATA.search(sentence):
                return None
            before += length(sentence)
            if before > _BEFORE:
                return None
    return None


def _declines(sentence: str, words: Words) -> re.Match[str] | None:
    found = words.decline.search(sentence)
    if found is None or words.pardon.search(sentence):
        return None
    return found


def _delivers_little(rest: list[str], words: Words) -> bool:
    substance = 0.0
    numbers = 0
    for place, sentence in enumerate(rest):
        but = _BUT.search(sentence) if place == 0 else None
        text = sentence[but.end() :] if but is not None else sentence if place else ""
        if not text:
            continue
        if _STEPS.search(text):
            return False
        if words.empty.search(text) is None and _declines(text, words) is None:
            substance += length(text)
            numbers += len(_DATA.findall(text)) > 0
    return substance <= _AFTER and not numbers


def _only_redirects(sentences: list[str], place: int, words: Words) -> bool:
    if sum(map(length, sentences)) > _WHOLE_WEAK or any(map(_DATA.search, sentences)):
        return False
    if any(map(words.pardon.search, sentences)):
        return False
    but = _BUT.search(sentences[place])
    others = [sentence for at, sentence in enumerate(sentences) if at != place] + ([sentences[place][but.end() :]] if but else [])
    return (
        sum(length(sentence) for sentence in others if not words.empty.search(sentence) and not words.weak.search(sentence)) < 90
    )
