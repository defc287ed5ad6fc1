"""Define the vocabulary of instructions to an agent, with one entry per language.

All words have the form of :func:`~.normalise.folded`: lower case, and Latin letters without diacritics. A field is an alternation
of the regular expressions in ``data/injection``. The expressions match at the start of a word, or in languages without spaces, at any position.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from ..lists import sections


class Language(NamedTuple):
    """The vocabulary of one language."""

    name: str
    triggers: str
    """Substrings, at least one of which occurs in every instruction. Those in Latin script have no spaces."""
    ignore: str
    rules: str
    """Words for the ignored instructions."""
    former: str
    """Words that identify the ignored instructions: previous, all, your."""
    override: str
    """Other complete phrases for ignoring instructions."""
    role: str
    """Phrases for a new role or the end of all restrictions."""
    agent: str
    """Words that address the reader as an assistant, a model or an AI."""
    hide: str
    """Phrases for not saying something."""
    send: str
    act: str
    """Words for actions of agents: tools, payments, deletions, the prompt."""
    people: str
    """Words for human readers and their context: staff, mail, forms, devices."""
    frequent: frozenset[str]
    """Frequent words, of which every longer text has one, or empty if they aren't needed."""
    spaced: bool


_SPACED = ("en", "de", "fr", "es", "it", "pt", "nl", "pl", "tr", "ru", "uk", "hi", "vi", "id", "sv")
_UNSPACED = ("ar", "he", "ja", "zh", "ko")
"""Languages that join words to their neighbors or don't separate them."""


def _language(name: str, *, spaced: bool) -> Language:
    fields = dict(sections(f"injection/{name}.txt"))
    frequent = frozenset(fields.pop("frequent", ()))
    return Language(name, **{field: "|".join(words) for field, words in fields.items()}, frequent=frequent, spaced=spaced)


@cache
def languages() -> tuple[Language, ...]:
    return tuple(_language(name, spaced=spaced) for names, spaced in ((_SPACED, True), (_UNSPACED, False)) for name in names)


REPORTED = re.compile(
    r"(?<![\w.@/-])(?:prompt[-_ ]injection|injecti\w+|iniettat|injekcj|инъекц|injection|injecao|inyeccion|iniezione|injekt|inject(?:s|ed|ing)\b|attack|attacker|payload|jailbreak|malicious|adversar|red[- ]team|vulnerab|exploit|"
    r"for example|for instance|e\.g\.|such as|examples?\b|phrases?\b|sentences? like|strings? like|texts? like|things like|detects?\b|detection|classifier|regex|pattern:|blocklist|denylist|pytest|assert|test case|unit test|steps to reproduce|postmortem|scenario|"
    r"angreifer|angriff|beispiel|attaque|pirate|exemple|ataque|atacante|ejemplo|exemplo|attacc|aggressor|esempio|aanval|voorbeeld|atak|przyklad|saldir|ornegin|атак|злоумышл|например|зловмис|наприклад|serangan|contoh|tan cong|vi du|angrip|exempel)"
    r"|هجوم|مهاجم|مثال|תוקף|התקפ|לדוגמה|हमल|उदाहरण|攻撃|例えば|インジェクション|攻击|例如|注入|之类|공격|예를 들|인젝션"
)
"""Words in texts about attacks, in any language."""


class LanguagePatterns(NamedTuple):
    """The compiled fields of a language."""

    ignore: re.Pattern[str]
    rules: re.Pattern[str]
    former: re.Pattern[str]
    override: re.Pattern[str]
    role: re.Pattern[str]
    agent: re.Pattern[str]
    hide: re.Pattern[str]
    send: re.Pattern[str]
    act: re.Pattern[str]
    people: re.Pattern[str]


@cache
def compiled(language: Language) -> LanguagePatterns:
    """Return the compiled fields of a language. They are compiled on first use."""
    start = r"(?<!\w)" if language.spaced else ""
    return LanguagePatterns(*(re.compile(f"{start}(?:{getattr(language, field)})") for field in LanguagePatterns._fields))


REVEAL = re.compile(
    r"(?<!\w)(?:reveal|print|show|output|repeat|leak|expose|disclose|display|write out|reproduce|recite|quote|paste|include|send|tell me|dump|echo|revel|rivel|affich|montr|muestr|mostr|gib\b|verrat|zeig|toon|onthul|geef|ujawni|pokaz|goster|ifsa|раскр|выведи|покажи|розкр"
    r"|visa\b|avsloj|skriv ut|tiet lo|in ra|hien thi|ungkap|tampilkan|imprim|escrib|ecris|schreib|stampa|opisz|napisz|напиши)|اكشف|اطبع|أظهر|اعرض|חשוף|הצג|הדפס|दिखा|उजागर|表示|明か|開示|出力|输出|显示|泄露|透露|公开|打印|공개|출력|보여"
)
ATTACK = re.compile(r"prompt[ _-]?injection|jailbreak|attack|malicious|exploit|payload|blocked|abuse|signature", re.IGNORECASE)


@cache
def people() -> re.Pattern[str]:
    """Return the words for human readers in any language, because a notice often matches a similar language."""
    return re.compile(
        "|".join(f"(?<![\\w.@/-])(?:{language.people})" if language.spaced else language.people for language in languages())
    )


@cache
def latin_triggers() -> tuple[tuple[Language, tuple[bytes, ...]], ...]:
    """Return languages with their triggers, for ASCII texts."""
    return tuple(
        (language, tuple(piece.encode() for piece in language.triggers.split("|")))
        for language in languages()
        if language.triggers.isascii()
    )


@cache
def other_triggers() -> tuple[tuple[Language, tuple[str, ...]], ...]:
    """Return the other languages with their triggers."""
    return tuple((language, tuple(language.triggers.split("|"))) for language in languages() if not language.triggers.isascii())
