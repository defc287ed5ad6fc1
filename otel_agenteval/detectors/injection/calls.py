"""Detect prompt injection by structure: a text addresses a machine and makes a demand.

The score adds two kinds of evidence. The first is the *addressee*: a name that only machines have, in direct address, after "to"
or "for", or as the reader of the text. Names that people can have too count less, and hidden text needs no name. The second is the
*demand*: to hide something, to give a verdict, or to act. A mention of an assistant or an instruction to people has only one of the
two.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from ..lists import word_set, words
from .languages import REPORTED
from .pieces import has_any, quick
from .readers import GRANTS, HIDES, MACHINES, NAMES, READS, VERDICTS, any_of

FOUND = 3
"""Minimum sum of the scores for addressee and demand."""

_MACHINE = any_of(*MACHINES)
_NAME = any_of(*NAMES)
_DIRECTED = any_of(
    r"(?:to|for|dear|hey|hi|hello|ok|attention|note|psst|listen|please|oi|oye|ei|hai|ciao|caro|cara|hola|liebe[rs]?|hallo|an (?:die|den|das|alle|jed\w+|\w+ische\w*)|fur|achtung|by the way|btw|also|cher|chere|chers|pour|aux?|a l'attention de|salut|querid\w+|estimad\w+|para|al|a (?:la|los|las)|all'|per|ao|prezad\w+|beste|aan|voor|drogi|droga|dla|sayin|sevgili|merhaba)\b",
    r"(?:уважаем\w+|дорог\w+|для|эй|привет|к|шановн\w+|до|gui|kinh gui|danh cho|untuk|kepada|halo|till|kara|hej|mily|mila|til|kjaere|hyva|arvoisa|ps|p\.s\.|memo|message|instructions?|directives?)\b",
    r"إلى|يا |أيها|عزيزي|ملاحظة ل|ל(?=ב|מ|ע)|प्रिय|致|给|請|亲爱的|尊敬的|ถึง|เรียน",
)
_AFTER = quick(r"へ|に告|様|さん|の方|에게|아[ ,]|께|के लिए|को\b|请|請|必须|务必|注意")
"""Particles behind a name that mark the addressee, in languages with such particles."""
_TOPIC = quick(r"은|는|は")
_ENDS_AS_ORDER = quick(r"하라|해라|시오|세요|지 마|말 것|할 것|주라|せよ|ください|こと(?:$|。)|しろ|なさい|べし")
_ASKED = any_of(
    r"(?:must|should|shall|ha(?:s|ve) to|needs? to|(?:are|is) (?:now |hereby )?(?:instructed|required|asked|authori[sz]ed|ordered|requested)|muss\w*|soll\w*|doi(?:t|vent|s)|deben?|debes|deve|devono|devem|moet(?:en)?|musi\w*|powin\w*|должн\w+|обязан\w*|повинн\w+|phai|harus|wajib|maste|ska\b|taytyy|meli)\b|,? (?:always|please|kindly|never|do not|don't)\b",
    r"يجب|חייב|चाहिए|必ず|必须|務必|务必|해야|하라|ต้อง|จง|请|請",
)
_STAFF = quick(
    r"\b(?:callers?|call centre|call center|greet|duty manager|supervisor|shift|escalate to|policyholder|showings?|landlord)\b"
)
_REPLIES = any_of(
    r"before (?:you |giving |any )?(?:repl|respond|answer)\w*|before any (?:answer|reply)|(?:your|the|each|every) (?:next |final )?(?:reply|response|answer|summary|output)(?: you (?:write|give|produce))? (?:must|has to|should|shall|needs to)|(?:end|beginning|start) of (?:each|every|your) (?:repl|respons|answer|summar)\w*",
    r"avant de repondre|antes de responder|prima di rispondere|bevor du antwortest|voordat je antwoordt|zanim odpowiesz|(?:deine|ta|tu|sua|la tua) (?:antwort|reponse|respuesta|resposta|risposta) (?:muss|doit|debe|deve)|перед (?:тем как ответить|ответом)|перед відповіддю",
    r"回答[する]*前|答える前|回复(?:之)?前|回答(?:之)?前|답변하기 전|قبل الرد|לפני שתענה|उत्तर देने से पहले",
)
_DOCS = quick(
    r"\b(?:version \d|changelog|scoped?|authorization header|endpoints?|openapi|sdk|set \w+=|parameters?|make test)\b|\w=(?:true|false)\b"
)
OWN = quick(
    r"\b(?:my|our|mein\w*|unser\w*|mes|mon|nos|mis?|nuestr\w+|mi[ei]|nostr\w+|minhas?|meus?|noss\w+|mijn|onze|moj\w+|moich|nasz\w*|мо[ейюяий]\w*|наш\w*|cua (?:toi|chung toi)|saya|kami|mina|vara|vores|i (?:told|asked|gave|sent)|je t'ai|te dije|ich dir|j'ai)\b|\wlarim(?:i|a)\b|طلبي|رسالتي|שלי|मेरे|हमारे|私の|我的|我们的|제가|내 "
)


def calls(sentences: Sequence[str], text: str, *, hidden: bool = False) -> bool:
    """Return True if a sentence addresses a machine, and it or the next one demands something.

    Args:
        sentences: Folded sentences of a text that :func:`~.readers.marked` has processed.
        text: The whole text in the same form.
        hidden: True if readers can't see the text. Then no addressee is needed.
    """
    named = _may_name(text)
    if not (named or hidden):
        return False
    staff = _STAFF.search(text) is not None
    seen: set[tuple[str, ...]] = set()
    for place in range(len(sentences)):
        together = tuple(sentences[place : place + 4])
        if together not in seen:  # check repeated sentences only once
            seen.add(together)
            if _demands(together, named=named, hidden=hidden, staff=staff):
                return True
    return False


def _demands(sentences: tuple[str, ...], *, named: bool, hidden: bool, staff: bool) -> bool:
    """Return True if the first of at most four sentences addresses a machine, and it or a following one demands something."""
    sentence, *following = sentences
    called, end = _called(sentence, staff) if named and _may_name(sentence) else (0, 0)
    if called:
        wanted = _wanted_behind(called, sentence[end:], following)
    elif hidden and _FOR_EDITORS.search(sentence) is None:
        called, wanted = 1, _wanted(sentence)
    else:
        return False
    return wanted > 0 and called + wanted >= FOUND and not _is_about(" ".join(sentences[:2]))


def _wanted_behind(called: int, rest: str, following: Sequence[str]) -> int:
    wanted = _wanted(rest) or int(called == 2 and _is_imperative(rest))
    if called == 2 and len(rest) < 3:  # a heading, for example of project notes for coding agents
        return max(wanted, 2 * any(HIDES.search(each) is not None for each in following))
    return max(wanted, _wanted(following[0]) - (called < 2)) if following else wanted


_IMPERATIVE = re.compile(r"[^.:,!]{0,70}[:!,]\s*(?P<first>[^\W\d_]{2,})\s(?:\S+\s+){2}\S")
"""Words that start a descriptive sentence."""


def _is_imperative(rest: str) -> bool:
    """Return True if the text after the address starts like an instruction.

    Instructions don't start with an article, a pronoun or a form in -ing.
    """
    found = _IMPERATIVE.match(rest)
    return (
        found is not None
        and found["first"] not in word_set(_WORDS, "no_imperative")
        and not found["first"].endswith(("ing", "ed", "s"))
    )


_FOR_EDITORS = quick(
    r"\b(?:todo|fixme|xxx|hack|eslint|prettier|stylelint|remove before|remove after|copyright|licen[sc]e|generated by|google tag|analytics|deprecated|cms|stylesheet|selector|jquery|polyfill)\b"
)
"""Comments that authors of pages write for each other."""


_WORDS = "injection_words.txt"


@cache
def _names(in_ascii: bool) -> tuple[str, ...]:
    """Return substrings of which every name of a machine or person contains at least one."""
    return tuple(piece for piece in words(_WORDS, "calls") if not in_ascii or piece.isascii())


def _may_name(text: str) -> bool:
    return has_any(text, _names(text.isascii()))


def _called(sentence: str, staff: bool) -> tuple[int, int]:
    """Return how surely a sentence addresses a machine (0 to 2), and the end of the address."""
    best = (0, 0)
    for pattern, machine in ((_MACHINE, True), (_NAME, False)):
        for found in pattern.finditer(sentence):
            if not machine and staff and found.group().startswith("agent"):
                continue
            strength = _strength(sentence, found, machine=machine)
            if strength > best[0]:
                best = strength, found.end()
        if best[0] == 2:
            return best
    return (1, 0) if not best[0] and _REPLIES.search(sentence) is not None else best


_MARK = re.compile(r"\)\s?:|[,:!،、#\]】]|\s[-–—]\s")
_CLAUSE = re.compile(r"[.,:;!?()\[\]#*/>\"|}{=،、。,]|--|\s[-–—]\s")


_PLAIN = re.compile(r"[\w'’/ -]*")


def _strength(sentence: str, found: re.Match[str], *, machine: bool) -> int:
    rest = sentence[found.end() : found.end() + 90]
    if _SUGGESTS.match(rest) is not None or _OTHERS_ACT.search(rest) is not None:
        return 0
    before = _CLAUSE.split(sentence[max(0, found.start() - 90) : found.start()])[-1]
    words = before.split()
    directed = _is_directed(sentence, before, rest)
    if not directed and words[-1:] in (["a"], ["an"]):
        return 0
    if _is_set_off(before, rest, directed=directed, machine=machine):
        return 2
    if _PERSON.match(rest) is not None or _DEFINES.search(before) is not None:
        return 0
    if not machine:
        return int(not words and _AFTER.match(rest.lstrip()) is not None)
    if _OTHER_SCRIPT.search(sentence) is not None and (
        (directed and len(words) <= 7) or READS.search(sentence, max(0, found.start() - 60), min(len(sentence), found.end() + 60))
    ):
        return 2
    return int((directed and len(words) <= 5) or _ASKED.search(rest[:60]) is not None)


def _is_directed(sentence: str, before: str, rest: str) -> bool:
    """Return True if a word such as "to" or "dear" directs the sentence to the name."""
    words = before.split()
    return (
        (bool(words) and (words[-1] in _PREPOSITIONS or _DIRECTED.search(" ".join(words[-4:])) is not None))
        or _AFTER.match(rest.lstrip()) is not None
        or (_TOPIC.match(rest) is not None and _ENDS_AS_ORDER.search(sentence) is not None)
    )


def _is_set_off(before: str, rest: str, *, directed: bool, machine: bool) -> bool:
    """Return True if punctuation sets the address off, as in ``Note to agents: …``."""
    mark = _MARK.search(rest[:60])
    if mark is not None:
        between = rest[: mark.start()]
    elif directed and len(rest) < 20 and not rest.rstrip().endswith("?"):
        between = rest.rstrip(". ")
    else:
        return False
    if (mark is not None and mark.group() in "]】" and not directed) or (not machine and any(map(str.isdigit, between))):
        return False
    if len(between.split()) > (7 if machine else 2) or _PLAIN.fullmatch(between) is None:
        return False
    words = len(before.split())
    return not words or (directed and words <= 12) or (words <= 2 and READS.search(before) is not None)


_OTHERS_ACT = quick(r", (?:(?:it|they|you) (?:can|may|will|might|could)|we|our) ")
_PERSON = quick(
    r"s?[ -](?:users?|crawlers?|engineers?|developers?|teams?|vendors?|compan(?:y|ies)|customers?|research\w*|experts?|startups?|scientists?|trainers?|features?|skills?)\b"
)
_DEFINES = quick(r"(?<!you )\b(?:is|are|was|were|ist|sind|est|sont|sono) (?:an?|the|ein\w*|une?|una|uno|our) (?:\w+ ){0,2}\Z")
_SUGGESTS = quick(
    r"s?(?:[ -](?:assistant|agent|chatbot|model|tool|system)s?)? (?:\w+ )?(?:suggest|ask|tell|offer|request|recommend|claim|say|promis|urg|pressur)\w* (?:\w+ )?(?:that )?(?:you|us|them|for)\b"
)
_PREPOSITIONS = frozenset({"pro", "do", "an", "a", "ao", "to", "for", "til"})
"""Some are other words in other languages, so they count only directly before the name."""
_OTHER_SCRIPT = re.compile("[\u0370-\u1dff\u2e80-\ud7ff]")


def _wanted(text: str) -> int:
    """Return 2 for a demand to hide something, to give a verdict or to act, and 0 for other texts."""
    return 2 * (len(text) >= 6 and any(demand.search(text) is not None for demand in (HIDES, VERDICTS, GRANTS)))


def _is_about(text: str) -> bool:
    """Return True if a text is about attacks, or is documentation."""
    return REPORTED.search(text) is not None or _DOCS.search(text) is not None
