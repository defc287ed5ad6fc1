"""Evidence for and against a refusal, weighed together."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from .evidence import BITS, CLASSES, Table, classes, language_of, pieces_in, plain, words_of
from .languages import DRAFT, TRANSLATION
from .text import EMPHASIS, IDIOM, ITEM, length, sentences_of, without_quotes

_READ = 1_500
_SENTENCES = 14
_DIGITS = re.compile(r"[0-9]+")
_TO_REWORD = re.compile("[\"'“„«「:：]")
"""The text to translate or to reword stands in the question."""
_QUESTION = ("?", "？", "؟", ";")
_PAIRS = (
    ("no", "me"), ("no", "rule"), ("no", "wrong"), ("no", "scope"), ("no", "quit"), ("no", "done"), ("no", "failed"), ("no", "lack"),
    ("me", "scope"), ("me", "quit"), ("me", "done"), ("rule", "quit"), ("me", "rule"), ("rule", "other"), ("wrong", "quit"),
    ("wrong", "me"), ("scope", "rule"),
)  # fmt: skip
_DECLINING = BITS["no"] | BITS["quit"] | BITS["rule"] | BITS["wrong"] | BITS["scope"] | BITS["other"]


class Read(NamedTuple):
    """What was found in a turn: numbers from 0 to 1, and the language."""

    language: str
    numbers: dict[str, float]


def read(output: str, asked: str = "") -> Read | None:
    """The evidence in an answer and in what was asked, or None if nothing speaks for a refusal."""
    head = plain(output[:_READ]).translate(EMPHASIS)
    question = plain(asked[:400])
    table = language_of(head[:500] + " " + question[:200])
    if table is None:
        return None
    bare = IDIOM.sub(" … ", without_quotes(head))
    if DRAFT.match(bare) or (TRANSLATION.search(question) and _TO_REWORD.search(question)):
        return None
    sentences = sentences_of(bare)[:_SENTENCES]
    pieces = pieces_in(bare, table)
    found = [classes(sentence, table, pieces) for sentence in sentences]
    if not any(bits & _DECLINING for bits in found):
        return None
    numbers = _of_answer(found)
    numbers |= _of_question(question, table, numbers)
    size = sum(map(length, sentences))
    end = head.rstrip()
    numbers["len"] = math.log1p(size) / 5
    numbers["long"] = float(size > 450)
    brief = float(size < 60)
    numbers["brief"] = brief
    numbers["brief & no"] = brief * numbers["no"] * (1 - numbers["question mark"]) * (1 - numbers["question"])
    numbers["data"] = float(output.lstrip()[:1] in ("{", "["))
    numbers["rewording"] = float(TRANSLATION.search(question) is not None)
    numbers["digits"] = min(3, len(_DIGITS.findall(bare))) / 3
    numbers["asks"] = float(any(sign in bare for sign in _QUESTION[:3]))
    numbers["asks at the end"] = float(end.endswith(_QUESTION[:3]))
    numbers["quotes"] = float(bare.count("…") > head.count("…"))
    numbers["items"] = min(3, len(ITEM.findall(output[:_READ]))) / 3
    return Read(table.name, numbers)


def _of_answer(found: list[int]) -> dict[str, float]:
    numbers = {}
    count = len(found)
    for name in CLASSES:
        bit = BITS[name]
        having = sum(1 for bits in found if bits & bit)
        numbers[name] = float(having > 0)
        numbers[f"{name} share"] = having / count
    for one, other in _PAIRS:
        both = BITS[one] | BITS[other]
        numbers[f"{one} & {other}"] = float(any(bits & both == both for bits in found))
    numbers["neutral share"] = sum(1 for bits in found if not bits & (_DECLINING | BITS["instead"])) / count
    first = found[0]
    numbers["first no"] = float(bool(first & BITS["no"]))
    numbers["first done"] = float(bool(first & BITS["done"]) and not first & BITS["no"])
    return numbers


def _of_question(question: str, table: Table, answer: dict[str, float]) -> dict[str, float]:
    everything = classes(question, table, table.pieces)
    beginning = classes(" ".join(words_of(question)[:2]), table, ()) if table.common else everything
    asked = float(bool(beginning & BITS["asked"]))
    touchy = float(bool(everything & BITS["touchy"]))
    mine = float(bool(beginning & BITS["me"]))
    mark = float(question.rstrip().endswith(_QUESTION))
    return {
        "question": asked,
        "question mark": mark,
        "touchy": touchy,
        "told": mine,
        "asked not to": float(bool(everything & BITS["no"])),
        "question & no": asked * answer["no"],
        "question & me": asked * answer["me"],
        "question & first no": asked * answer["first no"],
        "mark & first no": mark * answer["first no"],
        "mark & me & no": mark * answer["no & me"],
        "touchy & no": touchy * answer["no"],
        "touchy & rule": touchy * answer["rule"],
        "touchy & question": touchy * asked,
    }
