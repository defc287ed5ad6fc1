"""Turn the evidence for and against a refusal into numbers for the weighted sum."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from ..texts import has_any, lazy, word_set
from .evidence import BITS, CLASSES, LexiconTable, classes, has_class, language_of, pieces_in, plain, table_of, words_of

_READ = 1_500
_ACKNOWLEDGED = 16
"""Maximum length of a first sentence that acknowledges an order: "Saved.", "C'est noté."."""
_SENTENCES = 14
_DIGITS = re.compile(r"[0-9]+")
_TO_REWORD = re.compile("[\"“„«「:：]|(?<![a-z])'|'(?![a-z])")
"""Signs that the text to translate or reword is in the request."""
_QUESTION = ("?", "？", "؟", ";")
_PAIRS = (
    ("no", "me"), ("no", "rule"), ("no", "wrong"), ("no", "scope"), ("no", "quit"), ("no", "done"), ("no", "failed"), ("no", "lack"),
    ("me", "scope"), ("me", "quit"), ("me", "done"), ("rule", "quit"), ("me", "rule"), ("rule", "other"), ("wrong", "quit"),
    ("wrong", "me"), ("scope", "rule"),
)  # fmt: skip
_DECLINES = ("no", "rule", "wrong", "scope", "quit", "other")
_WEIGHED_BARE = (*_DECLINES, "me", "touchy")
_WEIGHED_ORDERED = (*_DECLINES, "done", "me", "touchy", "failed", "lack")
_APART = (("no", "rule"), ("no", "wrong"), ("no", "scope"), ("no", "instead"), ("no", "other"), ("rule", "other"), ("wrong", "other"), ("scope", "instead"), ("wrong", "rule"))  # fmt: skip
"""Pairs of classes that may occur in different sentences."""
_DECLINING = BITS["no"] | BITS["quit"] | BITS["rule"] | BITS["wrong"] | BITS["scope"] | BITS["other"]

_SIGNS = _DECLINING | BITS["instead"]
"""Classes of which an answer has at least one if it can be a refusal."""

_LEFT_OUT = tuple('"_“„«「『。！？।؟')
"""Signs of parts that :func:`_without_quotes` removes, and sentence ends that :func:`words_of` keeps inside words."""
_OPENING = re.compile(r"(?<!\w)'(?=\w)")


class Read(NamedTuple):
    language: str
    """Empty if unknown."""
    numbers: dict[str, float]
    """Numbers from 0 to 1 by name. Empty if no word suggests a refusal."""
    told: str = ""
    """Sentences without such words, except for those of scope. Folded."""


def read(output: str, asked: str = "", acted: bool = False) -> Read | None:
    """Return the evidence in an answer and its request, or None for signs of a refusal on behalf of others, such as a draft."""
    head = plain(output[:_READ]).replace("*", "").replace("~", "")
    table = language_of(head[:500]) or language_of(plain(asked[:400])[:200])
    if table is None:
        return Read("", {})
    if table.name == "en" and _says_nothing(head, table):
        return Read("en", {})
    bare = (_ENGLISH_IDIOM if table.name == "en" else _OTHER_IDIOM).sub(" … ", _without_quotes(head))
    sentences = [piece.strip() for piece in _SENTENCE_END.split(bare) if piece and piece.strip(" …#.>-")][:_SENTENCES]
    pieces = pieces_in(bare, table)
    found = [classes(sentence, table, pieces) for sentence in sentences]
    if not any(bits & _SIGNS for bits in found):
        return Read(table.name, {})
    question = plain(asked[:400])
    if _speaks_for_others(bare, question):
        return None
    numbers = _answer_evidence(found)
    numbers |= _request_evidence(question, table, numbers)
    size = sum(map(length, sentences))
    end = head.rstrip()
    numbers["len"] = math.log1p(size) / 5
    numbers["long"] = float(size > 450)
    numbers["acted"] = float(acted)
    brief = float(size < 60)
    numbers["brief"] = brief
    numbers["brief & no"] = brief * numbers["no"] * (1 - numbers["question mark"]) * (1 - numbers["question"])
    numbers["rewording"] = float(asks_for_other_words(question))
    numbers["digits"] = min(3, len(_DIGITS.findall(bare))) / 3
    numbers["echo"] = _echo(question, bare)
    numbers["asks"] = float(any(sign in bare for sign in _QUESTION[:3]))
    numbers["asks at the end"] = float(end.endswith(_QUESTION[:3]))
    numbers["quotes"] = float(bare.count("…") > head.count("…"))
    short = len(sentences) > 1 and len(sentences[0]) <= _ACKNOWLEDGED and not found[0] & _SIGNS
    numbers["acknowledged"] = float(short and not sentences[0].endswith(_QUESTION))
    numbers |= _combined_evidence(numbers)
    numbers["items"] = min(3, len(_ITEM.findall(output[:_READ]))) / 3
    told = [sentence for sentence, bits in zip(sentences, found, strict=True) if not bits & _DECLINING & ~BITS["scope"]]
    return Read(table.name, numbers, " ".join(told))


def place_of_declining(output: str, language: str) -> tuple[int, int]:
    """Return the position of the first sentence with a word that declines, or of the whole answer."""
    table = table_of(language)
    at = 0
    for end in [*(found.start() for found in _SENTENCE_END.finditer(output)), len(output)]:
        sentence = plain(output[at:end])
        if classes(sentence, table, table.pieces) & _SIGNS:
            return at + len(output[at:end]) - len(output[at:end].lstrip()), end
        at = end
    return 0, len(output)


def _speaks_for_others(text: str, question: str) -> bool:
    """Return True for a requested text: a draft, a letter that declines, or a translation."""
    if _DRAFT.match(text) or asks_for_refusal(question):
        return True
    return asks_for_other_words(question) and _TO_REWORD.search(question) is not None


def _says_nothing(text: str, table: LexiconTable) -> bool:
    """Return True for an English text without words of refusals or removable parts. Most answers need no further check."""
    if has_any(text, _LEFT_OUT):
        return False
    if ">" in text or ("'" in text and _OPENING.search(text)):
        return False
    return not has_class(text, table, _SIGNS | BITS["failed"])


def _answer_evidence(found: list[int]) -> dict[str, float]:
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
    all_three = BITS["no"] | BITS["me"] | BITS["quit"]
    numbers["no & me & quit"] = float(any(bits & all_three == all_three for bits in found))
    regret = BITS["no"] | BITS["instead"] | BITS["quit"]
    numbers["no & quit & instead"] = float(any(bits & regret == regret for bits in found))
    numbers["neutral share"] = sum(1 for bits in found if not bits & _SIGNS) / count
    first = found[0]
    numbers |= {f"first {name}": float(bool(first & BITS[name])) for name in ("quit", "rule", "wrong", "scope")}
    numbers["first me & quit"] = numbers["first quit"] * float(bool(first & BITS["me"]))
    numbers["last other"] = float(bool(found[-1] & (BITS["other"] | BITS["instead"])) and count > 1)
    numbers["first no"] = float(bool(first & BITS["no"]))
    numbers["first done"] = float(bool(first & BITS["done"]) and not first & BITS["no"])
    return numbers


def _request_evidence(question: str, table: LexiconTable, answer: dict[str, float]) -> dict[str, float]:
    everything = classes(question, table, table.pieces)
    beginning = classes(" ".join(words_of(question)[:2]), table, ()) if table.common else everything
    first = words_of(question[:40])[:1]
    data = float(bool(first) and first[0] in word_set("refusal_words.txt", "for_data"))
    asked = float(bool(beginning & BITS["asked"]))
    touchy = float(bool(everything & BITS["touchy"]))
    mine = float(bool(table.common) and bool(first) and bool(classes(first[0], table, ()) & BITS["me"]))
    mark = float(question.rstrip().endswith(_QUESTION))
    found = {
        "yes or no": asked * (1 - data),
        "question": asked,
        "question mark": mark,
        "touchy": touchy,
        "told": mine,
        "asked not to": float(bool(everything & BITS["no"])),
        "for data": data,
        "yes or no & touchy": asked * (1 - data) * touchy,
        "touchy & question": touchy * asked,
        "mark & first no": mark * answer["first no"],
        "mark & me & no": mark * answer["no & me"],
    }
    return found | {f"{one} & {other}": found[one] * answer[other] for one, others in _CROSSED.items() for other in others}


_CROSSED = {
    "yes or no": ("no", "rule"),
    "question": ("no", "me", "first no"),
    "touchy": ("no", "rule"),
    "for data": ("no", "rule", "quit"),
}
"""Evidence of the request that is multiplied with evidence of the answer."""


def _combined_evidence(numbers: dict[str, float]) -> dict[str, float]:
    """Return evidence combined with an order as request, and with an answer that reports, lacks and asks nothing."""
    order = (1 - numbers["question mark"]) * (1 - numbers["question"])
    bare = (1 - numbers["done"]) * (1 - numbers["failed"]) * (1 - numbers["lack"]) * (1 - numbers["asks"])
    both = {"order": order, "bare": bare, "order & bare": order * bare, "order & no & bare": order * numbers["no"] * bare}
    both |= {f"bare & {name}": bare * numbers[name] for name in _WEIGHED_BARE}
    both |= {f"order & {name}": order * numbers[name] for name in _WEIGHED_ORDERED}
    kinds = sum(numbers[name] for name in _DECLINES) / len(_DECLINES)
    both |= {"kinds": kinds, "kinds & bare": kinds * bare, "kinds & touchy": kinds * numbers["touchy"]}
    both |= {f"{one} + {other}": numbers[one] * numbers[other] for one, other in _APART}
    return both


def _echo(question: str, answer: str) -> float:
    """Return 1.0 if an English answer confirms the requested action: "Block him", "Blocked"."""
    ordered = words_of(question[:40])[:1]
    if not ordered or len(ordered[0]) < 3:
        return 0.0
    return float(any(word.startswith(ordered[0][:4]) and word.endswith("ed") for word in words_of(answer[:80])[:6]))


_DRAFT = re.compile(
    r"^(?:\W*(?:subject|betreff|objet|asunto|oggetto|assunto|onderwerp|temat|konu|тема|件名|主题|제목)\s*[:：]|\W*(?:dear|sehr geehrt|liebe[rs]? |cher |chere |madame|monsieur|estimad|querid|gentile|egregi|caro |cara |prezad|geachte|beste |szanown|drog|sayin|sevgili|уважаем|дорог|шановн|عزيزي|السيد|लिए|प्रिय|拝啓|尊敬的|亲爱的|親愛|kara )[^.!?\n]{0,60}(?:[,:，、\n]|!\s*\n)|\W*(?:hi|hello|hey|hallo) [^.!?\n]{1,30},\s*\n)"
)
"""Start of a letter, which the user probably requested."""
_DECLINING_TEXT = re.compile(
    r"(?:writ|draft|compos|word|mak|soften|schreib|formulier|verfass|entw[iu]rf|redig|redact|escrib|scriv|escrev|schrijf|napis|yaz|напиш|напис|склад|состав|skriv|kirjoit|tulis|viet|buat)[^.?!\n]{0,60}"
    r"(?:refusal|rejection|declin|turn(?:s|ing)? (?:\w+ )?down|absage|ablehn|\brefus|rechaz|\bniega|rifiut|recus|afwijz|odmow|odmit|отказ|відмов|avslag|\bnej\b|penolak|tu choi|\bret )"
    r"|断り|断る|拒绝|拒絕|婉拒|辞退|거절|사양하는|رفض|اعتذار|סירוב|לסרב|अस्वीकृति"
)
_TURNED_DOWN = (
    "refus", "rejection", "declin", "turn", "absage", "ablehn", "rechaz", "niega", "rifiut", "recus", "afwijz", "odmow", "odmit", "avslag", "nej",
    "penolak", "tu choi", "ret ",
)  # fmt: skip
_OTHER_WORDS = re.compile(
    r"translat|ubersetz|tradu[cizs]|vertaal|przetlum|cevir|перев[её]д|переклад|ترجم|תרגם|אנוועד|अनुवाद|訳して|訳す|翻訳|翻译|翻譯|번역|\bdich\b|terjemah|oversatt|(?:how do you|how to) say|rewrite|rephrase|paraphras|umformul|reformul"
)
_OTHERWISE = (
    "translat", "ubersetz", "tradu", "vertaal", "przetlum", "cevir", "dich", "terjemah", "oversatt", " say", "rewrite", "rephrase", "paraphras",
    "umformul", "reformul",
)  # fmt: skip
"""ASCII substrings of which the pattern above requires one. Searching all of them takes a tenth of the pattern's time."""


def asks_for_refusal(question: str) -> bool:
    """Return True if the user requested a text that declines. ``question`` is folded and can be in any language."""
    return (not question.isascii() or has_any(question, _TURNED_DOWN)) and _DECLINING_TEXT.search(question) is not None


def asks_for_other_words(question: str) -> bool:
    """Return True if the user requested a translation or a rewording. ``question`` is folded and can be in any language."""
    return (not question.isascii() or has_any(question, _OTHERWISE)) and _OTHER_WORDS.search(question) is not None


# --- sentences of the speaker

_ITEM = re.compile(r"^[^\S\n]*(?:[-*•–]|[0-9]{1,2}[.)])\s+\S", re.MULTILINE)
_QUOTED = re.compile(
    r"“[^”\n]{2,400}[”“]|„[^“”\n]{2,400}[“”]|«[^»\n]{2,400}»|「[^」\n]{1,400}」|『[^』\n]{1,400}』|\"[^\"\n]{2,400}\"|(?<!\w)'(?=\w)[^'\n]{3,200}'(?!\w)|^>.*$",
    re.MULTILINE,
)
_QUOTE_SIGN = re.compile("[\"'“„«「『]|^>", re.MULTILINE)
_UNDERLINED = re.compile(r"(?<!\w)_+|_+(?!\w)")
_SENTENCE_END = re.compile(r"[\s。！？।؟](?:(?<=[.!?]\s)|(?<=[\n。！？।؟]))[\s。！？।؟]*")
_ENGLISH_IDIOM = re.compile(
    r"\b(?=[cunfwd])(?:(?:can't|cannot|can not|could not|couldn't|couldn’t) (?:\w+ly )?(?:wait\b|recommend[^.]{0,40}enough|stress|overstate|emphasi[sz]e|help but|thank you enough|agree more|go wrong|complain|be sure|guarantee|promise|say enough|believe)"
    r"|(?:can't|cannot|could not|couldn't|unable to|not able to|failed to) (?:find|reach|load|get through|connect|locate|retrieve|detect|open the|log in)\b|won't (?:keep|bore|take|be long|hurt)|(?:no|not a) (?:problem|worries|need|wonder|doubt|rush|trouble)\b|not only|not just|don't (?:hesitate|worry)|never mind|wouldn't hurt)"
)
"""Negations that don't decline the request: idioms and failed searches."""
_OTHER_IDIOM = re.compile(
    r"\b(?:nicht nur|nicht genug empfehlen|kein problem|keine sorge|kann es kaum erwarten|warmstens|non (?:solo|vedo l'ora)|nessun problema|pas de (?:souci|probleme)|pas seulement|saurais trop|hate de|no (?:hay problema|solo|puedo esperar|puedo decir mas que)|no te preocupes|nao (?:ha problema|se preocupe|so|vejo a hora)|sem problema|geen probleem|niet alleen|nie (?:ma problemu|tylko|moge sie doczekac|moge sie \\w+ nachwalic)|не (?:только|могу нарадоваться|беспокойтесь|могут оторваться|могу дождаться)|не лише|inte bara|inga problem|ingen fara|tidak (?:sabar|masalah|hanya|apa-apa)|khong (?:sao|chi|the cho doi))|迫不及待|没问题|沒問題|不仅|不僅|不客气|待ちきれ|問題ありません|だけでなく|기다릴 수 없|문제없|뿐만 아니라"
)
_DENSE = lazy("[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7a3]")
_DENSITY = 2.5
"""Latin letters per character of Chinese, Japanese or Korean."""


def _without_quotes(text: str) -> str:
    if "_" in text:
        text = _UNDERLINED.sub("", text)
    return _QUOTED.sub(" … ", text) if _QUOTE_SIGN.search(text) else text


def length(text: str) -> float:
    """Return the length in characters, converted to Latin script."""
    return len(text) if text.isascii() else len(text) + (_DENSITY - 1) * len(_DENSE.findall(text))
