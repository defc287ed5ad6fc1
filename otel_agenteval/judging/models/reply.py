"""The verdict in a judge's reply: one rule for all models, forms and metrics.

A verdict is a JSON object that stands by itself in what the judge says, fenced or not, with words around it or not, and has keys
that were asked for. What stands inside of another value, of a thought or of quotation marks is none: a judge quotes what it judges,
and that may hold a verdict in its own favour. Verdicts that say the same count as one. There is none where two disagree, where the
words around it state another one, or where an object is broken: nothing inside of that is ever taken.
"""

from __future__ import annotations

import functools
import json
import math
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

_COMMENTS = frozenset(("reason", "reasoning", "explanation"))
"""Keys that explain a verdict: two that differ in these alone say the same."""
_MOST_BRACKETS = 1_000
"""Brackets in the words of a reply that are looked at."""

# --- thoughts ---------------------------------------------------------------------------------------------------------

_TAG = r"think|thinking|thoughts?|reasoning|reflection|scratchpad|analysis|inner_monologue|seed:think"
_THOUGHTS = (
    (rf"<(?:{_TAG})\b[^<>]*>", rf"</(?:{_TAG})\s*>"),
    (r"\[THINK\]", r"\[/THINK\]"),
    ("◁think▷", "◁/think▷"),
    (r"<\|begin_of_thought\|>", r"<\|end_of_thought\|>"),
    (r"<\|START_THINKING\|>", r"<\|END_THINKING\|>"),
    (r"<\|channel>\s*thought\b", r"<channel\|>"),
    (r"<\|channel\|>\s*(?:analysis|commentary)\b", r"<\|channel\|>\s*final\b[^<{]*(?:<\|constrain\|>[^<{]*)?<\|message\|>"),
    (r"\A\s*(?:analysis|commentary)(?=[^\W\d_])", r"assistant\s*final"),
)
"""How thoughts begin and end that a server left in: tags, and the channels of OpenAI's open models, whole and with their marks lost."""
_UNQUOTED = r"(?<![\"'“‘«])(?<![^`]`)"
_END = rf"{_UNQUOTED}(?:{'|'.join(end for _, end in _THOUGHTS[:-1])})"
_ANY_END = re.compile(_END, re.IGNORECASE)
_ENDS = [re.compile(_UNQUOTED + end, re.IGNORECASE) for _, end in _THOUGHTS]
_MARK = re.compile(
    "|".join((
        *(rf"(?P<begin{number}>{_UNQUOTED}{begin})" for number, (begin, _) in enumerate(_THOUGHTS)),
        rf"(?P<end>{_END})",
        r"[{}\[]",
    )),
    re.IGNORECASE,
)  # fmt: skip
"""What the words of a reply are read up to."""

# --- objects ----------------------------------------------------------------------------------------------------------

_ASIDE = re.compile(r"""\{\{?(?=[^{}]*\S)[^{}"'“”:\[\]]+\}?\}""")
"""Braces in prose, such as ``{name}`` or ``{a, b}``: no object, and nothing is in them that could be one."""
_LIST = re.compile(r'\[\s*(?:[\[{"]|-?\d[\d.]*\s*,|(?:true|false|null)\b)')
"""A bracket that begins a list of values, and not a link, a note or a place."""
_MEMBER = re.compile(r"""["'”]\s*:\s*\Z""")
"""What stands before a value within an object."""
_QUOTED_LINE = re.compile(r"(?:\A|\n)[ \t]*>[ \t>]*\Z")
_VERDICT_FIRST = re.compile(r"\s*(?:\{|```)")
_QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’", "«": "»", "„": "“"}
_LONGEST_PREFIX = 40


def _pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in items:
        if key in found and found[key] != value:
            raise ValueError("a key has two values")
        found[key] = value
    return found


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("no finite number")
    return value


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_float=_number, parse_constant=_no_number, strict=False)


class _Broken(Exception):
    """A reply whose verdict is in doubt."""


@dataclass(slots=True)
class _Said:
    """What a judge said aloud."""

    objects: list[dict[str, Any]] = field(default_factory=list)
    """Those that stand by themselves."""
    drafts: list[dict[str, Any]] = field(default_factory=list)
    """Those before the end of a thought that has no beginning: it may be a quoted one, and then they are verdicts."""
    words: list[str] = field(default_factory=list)
    """What is said around them."""
    first: int = 0
    """How many of the words stand before the first object."""


def verdict_in(text: str, keys: Collection[str] = (), *, cut: bool = False) -> dict[str, Any] | None:
    """The verdict in a reply; None if it has none beyond doubt.

    A single object that lacks what was asked for is given as it is: the metric that asked says what is missing.

    Args:
        text: what the judge said.
        keys: what was asked for; without any, every object is a verdict.
        cut: whether the reply was cut at a limit of its length: then only a verdict that it begins or ends with is one.
    """
    asked = {_plain(key): key for key in keys}
    decisive = {plain: key for plain, key in asked.items() if plain not in _COMMENTS} or asked
    try:
        said = _read(text, asked, cut=cut)
        found = [_Candidate.of(one, decisive) for one in (*said.drafts, *said.objects)]
    except _Broken:
        return None
    verdicts = [one for one in found if one.facts or not decisive]
    if not verdicts:
        return said.objects[0] if len(found) == len(said.objects) == 1 else None
    chosen = max(reversed(verdicts), key=lambda one: one.exact)
    if not all(_is_part(one.facts, chosen.facts) for one in verdicts) or _stated_otherwise(said.words, chosen):
        return None
    return chosen.value


@dataclass(frozen=True, slots=True)
class _Candidate:
    value: dict[str, Any]
    facts: dict[str, Any]
    """What it says, by plain key."""
    exact: int
    """How many of the keys that were asked for it has, letter for letter."""

    @classmethod
    def of(cls, value: dict[str, Any], asked: Mapping[str, str]) -> _Candidate:
        """An object as an answer to what was asked for.

        Raises:
            _Broken: it says two things.
        """
        facts: dict[str, Any] = {}
        for key, one in value.items():
            plain = _plain(key)
            is_asked = plain in asked if asked else plain not in _COMMENTS
            if is_asked and facts.setdefault(plain, one) != one:
                raise _Broken
        return cls(value, facts, sum(key in value for key in asked.values()))


def _is_blank(words: str) -> bool:
    return not words.replace("```json", "").strip(" \t\r\n`")


def _is_part(facts: Mapping[str, Any], of: Mapping[str, Any]) -> bool:
    return all(name in of and of[name] == value for name, value in facts.items())


def _plain(key: str) -> str:
    """A key without what does not make it another one to a reader: case, marks, spaces and invisible characters."""
    return _plain_of_short(key) if len(key) <= _LONGEST_PREFIX else _made_plain(key)


def _made_plain(key: str) -> str:
    return re.sub(r"[\W_]", "", unicodedata.normalize("NFKC", key).casefold())


_plain_of_short = functools.lru_cache(maxsize=1_000)(_made_plain)
"""Replies of one metric have the same keys; models may also write long ones, which are not kept."""


# --- reading ----------------------------------------------------------------------------------------------------------


def _read(text: str, keys: Collection[str], *, cut: bool) -> _Said:
    said = _Said()
    at = looked = 0
    while (mark := _MARK.search(text, at)) is not None:
        start = mark.start()
        said.words.append(text[at:start])
        if mark.lastgroup is not None:
            at = _after_thought(text, mark, said)
        elif mark[0] == "[":
            looked += 1
            if looked > _MOST_BRACKETS:
                raise _Broken
            at = _after_list(text, start)
        elif (aside := _ASIDE.match(text, start)) is not None:
            said.words.append(aside[0])
            at = aside.end()
        else:
            at = _after_object(text, start, keys, said)
    rest = text[at:]
    if cut and not (said.objects and (_is_blank(rest) or all(map(_is_blank, said.words[: said.first])))):
        raise _Broken
    said.words.append(rest)
    return said


def _after_thought(text: str, mark: re.Match[str], said: _Said) -> int:
    """Where a thought ends, and what was said before it if it has no beginning."""
    if mark.lastgroup == "end":
        _forget(text, mark, said)
        return mark.end()
    end = _ENDS[int((mark.lastgroup or "").removeprefix("begin"))].search(text, mark.end())
    if end is None:
        raise _Broken
    return end.end()


def _forget(text: str, end: re.Match[str], said: _Said) -> None:
    """What was said so far was a thought, whose beginning stood in the prompt; unless its end is only mentioned."""
    is_mentioned = text[max(0, end.start() - 1) : end.start()] in (" ", "\t") or _VERDICT_FIRST.match(text)
    if is_mentioned or said.drafts:
        said.drafts += said.objects
    said.objects.clear()
    said.words.clear()


def _after_list(text: str, start: int) -> int:
    try:
        return _DECODER.raw_decode(text, start)[1]
    except (ValueError, RecursionError):
        if _LIST.match(text, start):
            raise _Broken from None
        return start + 1


def _after_object(text: str, start: int, keys: Collection[str], said: _Said) -> int:
    before = text[max(0, start - _LONGEST_PREFIX) : start]
    try:
        if text[start] == "}" or _MEMBER.search(before):
            raise _Broken
        value, end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError, _Broken):
        return _after_broken(text, start, keys, said)
    quote = _QUOTES.get(before[-1:])
    if quote is not None and text[end : end + 1] != quote:
        raise _Broken
    if quote is None and not _QUOTED_LINE.search(before):
        said.first = said.first if said.objects else len(said.words)
        said.objects.append(value)
    return end


def _after_broken(text: str, start: int, keys: Collection[str], said: _Said) -> int:
    """Where to continue after what is no object: a thought can hold anything, if it was none that was to be a verdict."""
    end = _ANY_END.search(text, start)
    head = _plain(text[start : start + _LONGEST_PREFIX].partition(":")[0])
    if end is None or text[start] == "}" or not keys or any(head.startswith(key) for key in keys):
        raise _Broken
    _forget(text, end, said)
    return end.end()


# --- words ------------------------------------------------------------------------------------------------------------

_STATES = r"[\"'“”*_`\s]{0,6}(?:[:=]|[-=]?>)[\"'“”*_`\s]{0,6}(-?\d+(?:\.\d+)?|[A-Za-z_]+)"
_TRUE, _FALSE = frozenset(("true", "yes", "pass")), frozenset(("false", "no", "fail"))


def _stated_otherwise(words: Iterable[str], verdict: _Candidate) -> bool:
    """Whether the words around a verdict state another one, as in ``score: 0``: then the object may be a quotation."""
    around = "\n".join(words)
    for key, value in verdict.value.items():
        if _plain(key) in verdict.facts and isinstance(value, (int, float, str)):
            stated = re.finditer(rf"(?<!\w){re.escape(key)}{_STATES}", around, re.IGNORECASE)
            if any(_differs(found[1], value) for found in stated):
                return True
    return False


def _differs(stated: str, value: float | str) -> bool:
    if isinstance(value, str) and not _is_numeric(value):
        word = value.strip().casefold()
        rivals = _TRUE | _FALSE if word in _TRUE | _FALSE else frozenset[str]()
        is_word_of_a_choice = stated.isupper() and (len(stated) > 1) == (len(word) > 1)
        return stated.casefold() != word and (stated.casefold() in rivals or is_word_of_a_choice)
    if isinstance(value, bool):
        return stated.casefold() in (_FALSE if value else _TRUE)
    return _is_numeric(stated) and float(stated) != float(value)


def _is_numeric(text: str) -> bool:
    return re.fullmatch(r"\s*-?\d+(?:\.\d+)?\s*", text) is not None
