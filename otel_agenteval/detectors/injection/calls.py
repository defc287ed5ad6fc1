"""Detect texts that address an AI and make a demand, as prompt injections do.

The address and the demand get separate ratings. The *address* rating is high if the text clearly addresses an AI, as in "Note to
AI agents:". The *demand* rating is high if the text asks the reader to hide something, give a verdict, or act. Hidden text
doesn't need an address. Text that only mentions an assistant gets a low address rating.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from ..screen import Finder
from ..texts import has_any, word_set, words
from .readers import GRANTS, HIDES, MACHINES, NAMES, READS, REPORTED, VERDICTS, any_of

_CALLS = 3
"""Minimum sum of the address and demand ratings of a prompt injection. Each rating is from 0 to 2."""

_MACHINE = any_of(*MACHINES)
_NAME = any_of(*NAMES)
_DIRECTED = any_of(
    r"(?:to|for|dear|hey|hi|hello|ok|attention|note|psst|listen|please|oi|oye|ei|hai|ciao|caro|cara|hola|liebe[rs]?|hallo|an (?:die|den|das|alle|jed\w+|\w+ische\w*)|fur|achtung|by the way|btw|also|cher|chere|chers|pour|aux?|a l'attention de|salut|querid\w+|estimad\w+|para|al|a (?:la|los|las)|all'|per|ao|prezad\w+|beste|aan|voor|drogi|droga|dla|sayin|sevgili|merhaba)\b",
    r"(?:уважаем\w+|дорог\w+|для|эй|привет|к|шановн\w+|до|gui|kinh gui|danh cho|untuk|kepada|halo|till|kara|hej|mily|mila|til|kjaere|hyva|arvoisa|ps|p\.s\.|memo|message|instructions?|directives?)\b",
    r"إلى|يا |أيها|عزيزي|ملاحظة ل|ל(?=ב|מ|ע)|प्रिय|致|给|請|亲爱的|尊敬的|ถึง|เรียน",
)
_AFTER = re.compile(r"へ|に告|様|さん|の方|에게|아[ ,]|께|के लिए|को\b|请|請|必须|务必|注意")
"""Words after a name that mark it as the addressee, such as Japanese ``へ``."""
_ASKED = any_of(
    r"(?:must|should|shall|ha(?:s|ve) to|needs? to|(?:are|is) (?:now |hereby )?(?:instructed|required|asked|authori[sz]ed|ordered|requested)|muss\w*|soll\w*|doi(?:t|vent|s)|deben?|debes|deve|devono|devem|moet(?:en)?|musi\w*|powin\w*|должн\w+|обязан\w*|повинн\w+|phai|harus|wajib|maste|ska\b|taytyy|meli)\b|,? (?:always|please|kindly|never|do not|don't)\b",
    r"يجب|חייב|चाहिए|必ず|必须|務必|务必|해야|하라|ต้อง|จง|请|請",
)
_REPLIES = any_of(
    r"before (?:you |giving |any )?(?:repl|respond|answer)\w*|before any (?:answer|reply)|(?:your|the|each|every) (?:next |final )?(?:reply|response|answer|summary|output)(?: you (?:write|give|produce))? (?:must|has to|should|shall|needs to)|(?:end|beginning|start) of (?:each|every|your) (?:repl|respons|answer|summar)\w*",
    r"avant de repondre|antes de responder|prima di rispondere|bevor du antwortest|voordat je antwoordt|zanim odpowiesz|(?:deine|ta|tu|sua|la tua) (?:antwort|reponse|respuesta|resposta|risposta) (?:muss|doit|debe|deve)|перед (?:тем как ответить|ответом)|перед відповіддю",
    r"回答[する]*前|答える前|回复(?:之)?前|回答(?:之)?前|답변하기 전|قبل الرد|לפני שתענה|उत्तर देने से पहले",
)


def calls_machine(text: str, *, hidden: bool = False) -> bool:
    """Return True if a text addresses an AI and makes a demand.

    The demand can be in the same or a following sentence. Prepare ``text`` with :func:`~.readers.marked`, then with
    :func:`~.normalise.folded`. Set ``hidden`` for text that people can't see, which doesn't need an address.
    """
    may_name = len(text) < _LONG or _finder().found_in(_letters(text) + _END) > 0
    named = may_name and has_any(text, _name_pieces(text.isascii()))
    if not (named or hidden):
        return False
    sentences = [" ".join(piece[:700].split()) for piece in _SENTENCE_END.split(text) if piece and len(piece) > 3]
    whole = "\n".join(sentences)
    names = [name for name in _name_pieces(whole.isascii()) if name in whole] if named else []
    together = (tuple(sentences[place : place + 4]) for place in range(len(sentences)))
    return any(_is_call(four, names, hidden=hidden) for four in dict.fromkeys(together))  # repeated sentences only once


_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|[\n\r。！？।؟<>]+|[.!?]?\"\s")


def _is_call(sentences: tuple[str, ...], names: Sequence[str], *, hidden: bool) -> bool:
    """Return True if the first sentence addresses an AI and a demand follows. If ``hidden``, a demand is enough."""
    sentence, *following = sentences
    address, end = _address_in(sentence) if has_any(sentence, names) else (0, 0)
    if address:
        rest = sentence[end:]
        demand = _demand_in(rest) or int(address == 2 and _is_imperative(rest))
        if address == 2 and len(rest) < 3:  # a heading, for example of project notes for coding agents
            demand = max(demand, 2 * any(HIDES.search(each) is not None for each in following))
        elif following:
            demand = max(demand, _demand_in(following[0]) - (address < 2))
    elif hidden and _FOR_EDITORS.search(sentence) is None:
        address, demand = 1, _demand_in(sentence)
    else:
        return False
    return demand > 0 and address + demand >= _CALLS and REPORTED.search(" ".join(sentences[:2])) is None


_IMPERATIVE = re.compile(r"[^.:,!]{0,70}[:!,]\s*(?P<first>[^\W\d_]{2,})\s(?:\S+\s+){2}\S")
"""Pattern for a punctuation mark before four or more words, as in ``Note: add this line now``."""


def _is_imperative(rest: str) -> bool:
    """Return True if a command might follow a punctuation mark, as in ``: add this line now``."""
    found = _IMPERATIVE.match(rest)
    return (
        found is not None
        and found["first"] not in word_set(_WORDS, "no_imperative")
        and not found["first"].endswith(("ing", "ed", "s"))
    )


_FOR_EDITORS = re.compile(
    r"\b(?:todo|fixme|xxx|hack|eslint|prettier|stylelint|remove before|remove after|copyright|licen[sc]e|generated by|google tag|analytics|deprecated|cms|stylesheet|selector|jquery|polyfill)\b"
)
"""Pattern for comments that are meant for the authors of a web page, such as ``TODO``."""


_WORDS = "injection_words.txt"


@cache
def _name_pieces(in_ascii: bool) -> tuple[str, ...]:
    """Return substrings for a fast pre-check. Every name of an AI or an assistant contains at least one of these substrings."""
    return tuple(piece for piece in words(_WORDS, "calls") if not in_ascii or piece.isascii())


@cache
def _finder() -> Finder:
    return Finder((_letters(piece), 1) for piece in _name_pieces(in_ascii=False))


_LETTERS = bytes(byte & 31 for byte in range(256))
_END = b"    "
_LONG = 300
"""Minimum text length for which a :class:`Finder` is faster than separate searches."""


def _letters(text: str) -> bytes:
    return text.encode("utf-8", "replace").translate(_LETTERS)


def _address_in(sentence: str) -> tuple[int, int]:
    """Rate how clearly a sentence addresses an AI (0 to 2). Return the rating and the end of the address."""
    best = (0, 0)
    for pattern, machine in ((_MACHINE, True), (_NAME, False)):
        for found in pattern.finditer(sentence):
            strength = _address_strength(sentence, found, machine=machine)
            if strength > best[0]:
                best = strength, found.end()
        if best[0] == 2:
            return best
    return (1, 0) if not best[0] and _REPLIES.search(sentence) is not None else best


_MARK = re.compile(r"\)\s?:|[,:!،、#\]】]|\s[-–—]\s")
_CLAUSE = re.compile(r"[.,:;!?()\[\]#*/>\"|}{=،、。,]|--|\s[-–—]\s")
_PLAIN = re.compile(r"[\w'’/ -]*")


def _address_strength(sentence: str, found: re.Match[str], *, machine: bool) -> int:
    rest = sentence[found.end() : found.end() + 90]
    before = _CLAUSE.split(sentence[max(0, found.start() - 90) : found.start()])[-1]
    words = before.split()
    last = words[-1] if words else ""
    is_marked = _AFTER.match(rest.lstrip()) is not None
    directed = is_marked or last in _PREPOSITIONS or _DIRECTED.search(" ".join(words[-4:])) is not None
    if _is_set_off(before, rest, directed=directed, machine=machine):
        return 2
    if not machine:
        return int(not words and is_marked)
    return int((directed and len(words) <= 5) or _ASKED.search(rest[:60]) is not None)


def _is_set_off(before: str, rest: str, *, directed: bool, machine: bool) -> bool:
    if (mark := _MARK.search(rest[:60])) is not None:
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


_PREPOSITIONS = frozenset({"pro", "do", "an", "a", "ao", "to", "for", "til"})
"""Prepositions that mark an addressee only directly before a name, because they have other meanings in other languages."""


def _demand_in(text: str) -> int:
    return 2 * (len(text) >= 6 and any(demand.search(text) is not None for demand in (HIDES, VERDICTS, GRANTS)))
