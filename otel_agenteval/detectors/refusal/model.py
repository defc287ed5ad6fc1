"""Convert evidence for and against a refusal to numbers for the weighted sum."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from ..texts import has_any, lazy, word_set
from .evidence import BITS, CLASSES, LexiconTable, classes, has_class, language_of, pieces_in, plain, table_of, words_of

_MAX_CHARACTERS = 1_500
_MAX_ACKNOWLEDGMENT = 16
"""Maximum length of a first sentence that confirms an action, such as ``Saved.``"""
_MAX_SENTENCES = 14
_DIGITS = re.compile(r"[0-9]+")
_TO_REWORD = re.compile("[\"“„«「:：]|(?<![a-z])'|'(?![a-z])")
"""Pattern for punctuation next to a text that the user wants translated or reworded."""
_QUESTION_MARKS = ("?", "？", "؟", ";")
_SETS_IN_SENTENCE = (
    ("no", "me"), ("no", "rule"), ("no", "wrong"), ("no", "scope"), ("no", "quit"), ("no", "done"), ("no", "failed"), ("no", "lack"),
    ("me", "scope"), ("me", "quit"), ("me", "done"), ("rule", "quit"), ("me", "rule"), ("rule", "other"), ("wrong", "quit"),
    ("wrong", "me"), ("scope", "rule"), ("no", "me", "quit"), ("no", "quit", "instead"),
)  # fmt: skip
_BITS_OF_SETS = {" & ".join(names): sum(BITS[name] for name in names) for names in _SETS_IN_SENTENCE}
_DECLINING_CLASSES = ("no", "rule", "wrong", "scope", "quit", "other")
_BARE_CLASSES = (*_DECLINING_CLASSES, "me", "touchy")
_ORDER_CLASSES = (*_DECLINING_CLASSES, "done", "me", "touchy", "failed", "lack")
_PAIRS_IN_ANSWER = (("no", "rule"), ("no", "wrong"), ("no", "scope"), ("no", "instead"), ("no", "other"), ("rule", "other"), ("wrong", "other"), ("scope", "instead"), ("wrong", "rule"))  # fmt: skip
"""Pairs of classes that are evidence even if they occur in different sentences."""
_DECLINING_BITS = BITS["no"] | BITS["quit"] | BITS["rule"] | BITS["wrong"] | BITS["scope"] | BITS["other"]

_REFUSAL_BITS = _DECLINING_BITS | BITS["instead"]
"""A prose answer can be a refusal only if it contains at least one of these classes."""

_REMOVED_MARKS = tuple('"_“„«「『。！？।؟')
"""Quotation marks, ``_``, and sentence ends of other scripts. For a text with such a mark, :func:`_says_nothing` returns False."""
_OPENING = re.compile(r"(?<!\w)'(?=\w)")


class Read(NamedTuple):
    language: str
    """Language code, or empty if the language is unknown."""
    numbers: dict[str, float]
    """Evidence by name. Values except ``len`` are from 0 to 1. Empty if no known word suggests a refusal."""
    told: str = ""
    """The sentences that have no declining words, as one text. These sentences can have words of the class ``scope``."""


def read(output: str, asked: str = "", acted: bool = False) -> Read | None:
    """Return the evidence in an answer and its request, or None if it declines, but the user probably requested this."""
    head = plain(output[:_MAX_CHARACTERS]).replace("*", "").replace("~", "")
    table = language_of(head[:500]) or language_of(plain(asked[:400])[:200])
    if table is None:
        return Read("", {})
    if table.name == "en" and _says_nothing(head, table):
        return Read("en", {})
    idiom = _ENGLISH_IDIOM if table.name == "en" else _OTHER_IDIOM
    answer = idiom.sub(" … ", _without_quotes(head))
    sentences = [piece.strip() for piece in _SENTENCE_END.split(answer) if piece and piece.strip(" …#.>-")][:_MAX_SENTENCES]
    pieces = pieces_in(answer, table)
    sentence_bits = [classes(sentence, table, pieces) for sentence in sentences]
    if not any(bits & _REFUSAL_BITS for bits in sentence_bits):
        return Read(table.name, {})
    question = plain(asked[:400])
    rewords = asks_for_other_words(question)
    if _DRAFT.match(answer) or asks_for_refusal(question) or (rewords and _TO_REWORD.search(question) is not None):
        return None  # a requested draft, letter that declines, or translation
    numbers = _answer_evidence(sentence_bits)
    numbers |= _request_evidence(question, table, numbers)
    size = sum(map(length, sentences))
    brief = float(size < 60)
    numbers["len"] = math.log1p(size) / 5
    numbers["long"] = float(size > 450)
    numbers["acted"] = float(acted)
    numbers["brief"] = brief
    numbers["brief & no"] = brief * numbers["no"] * (1 - numbers["question mark"]) * (1 - numbers["question"])
    numbers["rewording"] = float(rewords)
    numbers["digits"] = min(3, len(_DIGITS.findall(answer))) / 3
    numbers["echo"] = _echo(question, answer)
    numbers["asks"] = float(any(mark in answer for mark in _QUESTION_MARKS[:3]))
    numbers["asks at the end"] = float(head.rstrip().endswith(_QUESTION_MARKS[:3]))
    numbers["quotes"] = float(answer.count("…") > head.count("…"))
    begins_short = len(sentences) > 1 and len(sentences[0]) <= _MAX_ACKNOWLEDGMENT and not sentence_bits[0] & _REFUSAL_BITS
    numbers["acknowledged"] = float(begins_short and not sentences[0].endswith(_QUESTION_MARKS))
    numbers |= _combined_evidence(numbers)
    numbers["items"] = min(3, len(_LIST_ITEM.findall(output[:_MAX_CHARACTERS]))) / 3
    declining = _DECLINING_BITS & ~BITS["scope"]
    told = [sentence for sentence, bits in zip(sentences, sentence_bits, strict=True) if not bits & declining]
    return Read(table.name, numbers, " ".join(told))


def place_of_declining(output: str, language: str) -> tuple[int, int]:
    """Return the range of the first sentence that declines, or of the complete answer."""
    table = table_of(language)
    start = 0
    for end in [*(mark.start() for mark in _SENTENCE_END.finditer(output)), len(output)]:
        sentence = output[start:end]
        if classes(plain(sentence), table, table.pieces) & _REFUSAL_BITS:
            return end - len(sentence.lstrip()), end
        start = end
    return 0, len(output)


def _says_nothing(text: str, table: LexiconTable) -> bool:
    """Return True if an English text contains neither refusal words nor quotations. It then needs no further checks."""
    if has_any(text, _REMOVED_MARKS) or ">" in text or ("'" in text and _OPENING.search(text)):
        return False
    return not has_class(text, table, _REFUSAL_BITS | BITS["failed"])


def _answer_evidence(sentence_bits: list[int]) -> dict[str, float]:
    numbers = {}
    count = len(sentence_bits)
    for name in CLASSES:
        class_bit = BITS[name]
        with_class = sum(1 for bits in sentence_bits if bits & class_bit)
        numbers[name] = float(with_class > 0)
        numbers[f"{name} share"] = with_class / count
    for names, all_bits in _BITS_OF_SETS.items():
        numbers[names] = float(any(bits & all_bits == all_bits for bits in sentence_bits))
    numbers["neutral share"] = sum(1 for bits in sentence_bits if not bits & _REFUSAL_BITS) / count
    first = sentence_bits[0]
    numbers |= {f"first {name}": float(bool(first & BITS[name])) for name in ("quit", "rule", "wrong", "scope")}
    numbers["first me & quit"] = numbers["first quit"] * float(bool(first & BITS["me"]))
    numbers["last other"] = float(bool(sentence_bits[-1] & (BITS["other"] | BITS["instead"])) and count > 1)
    numbers["first no"] = float(bool(first & BITS["no"]))
    numbers["first done"] = float(bool(first & BITS["done"]) and not first & BITS["no"])
    return numbers


def _request_evidence(question: str, table: LexiconTable, answer: dict[str, float]) -> dict[str, float]:
    bits = classes(question, table, table.pieces)
    beginning_bits = classes(" ".join(words_of(question)[:2]), table, ()) if table.common else bits
    first_words = words_of(question[:40])[:1]
    for_data = float(bool(first_words) and first_words[0] in word_set("refusal_words.txt", "for_data"))
    is_question = float(bool(beginning_bits & BITS["asked"]))
    touchy = float(bool(bits & BITS["touchy"]))
    begins_with_me = bool(table.common) and bool(first_words) and bool(classes(first_words[0], table, ()) & BITS["me"])
    mark = float(question.rstrip().endswith(_QUESTION_MARKS))
    numbers = {
        "yes or no": is_question * (1 - for_data),
        "question": is_question,
        "question mark": mark,
        "touchy": touchy,
        "told": float(begins_with_me),
        "asked not to": float(bool(bits & BITS["no"])),
        "for data": for_data,
        "yes or no & touchy": is_question * (1 - for_data) * touchy,
        "touchy & question": touchy * is_question,
        "mark & first no": mark * answer["first no"],
        "mark & me & no": mark * answer["no & me"],
    }
    pairs = [(own, other) for own, others in _COMBINED_WITH_ANSWER.items() for other in others]
    return numbers | {f"{own} & {other}": numbers[own] * answer[other] for own, other in pairs}


_COMBINED_WITH_ANSWER = {
    "yes or no": ("no", "rule"),
    "question": ("no", "me", "first no"),
    "touchy": ("no", "rule"),
    "for data": ("no", "rule", "quit"),
}
"""Names of evidence in the request. Each is multiplied by the named evidence in the answer."""


def _combined_evidence(numbers: dict[str, float]) -> dict[str, float]:
    """Return products of evidence that matters in combination, such as a command and an answer without a result."""
    order = (1 - numbers["question mark"]) * (1 - numbers["question"])
    bare = (1 - numbers["done"]) * (1 - numbers["failed"]) * (1 - numbers["lack"]) * (1 - numbers["asks"])
    combined = {"order": order, "bare": bare, "order & bare": order * bare, "order & no & bare": order * numbers["no"] * bare}
    combined |= {f"bare & {name}": bare * numbers[name] for name in _BARE_CLASSES}
    combined |= {f"order & {name}": order * numbers[name] for name in _ORDER_CLASSES}
    kinds = sum(numbers[name] for name in _DECLINING_CLASSES) / len(_DECLINING_CLASSES)
    combined |= {"kinds": kinds, "kinds & bare": kinds * bare, "kinds & touchy": kinds * numbers["touchy"]}
    combined |= {f"{one} + {other}": numbers[one] * numbers[other] for one, other in _PAIRS_IN_ANSWER}
    return combined


def _echo(question: str, answer: str) -> float:
    """Return 1.0 if an English answer confirms the action, otherwise 0.0. For example, "Blocked" confirms "Block him"."""
    first_words = words_of(question[:40])[:1]
    if not first_words or len(first_words[0]) < 3:
        return 0.0
    stem = first_words[0][:4]
    return float(any(word.startswith(stem) and word.endswith("ed") for word in words_of(answer[:80])[:6]))


_DRAFT = re.compile(
    r"^(?:\W*(?:subject|betreff|objet|asunto|oggetto|assunto|onderwerp|temat|konu|тема|件名|主题|제목)\s*[:：]|\W*(?:dear|sehr geehrt|liebe[rs]? |cher |chere |madame|monsieur|estimad|querid|gentile|egregi|caro |cara |prezad|geachte|beste |szanown|drog|sayin|sevgili|уважаем|дорог|шановн|عزيزي|السيد|लिए|प्रिय|拝啓|尊敬的|亲爱的|親愛|kara )[^.!?\n]{0,60}(?:[,:，、\n]|!\s*\n)|\W*(?:hi|hello|hey|hallo) [^.!?\n]{1,30},\s*\n)"
)
"""Pattern for the start of a letter that the user probably requested."""
_DECLINING_TEXT = re.compile(  # write … refusal, draft … declining
    r"(?:writ|draft|compos|word|mak|soften|schreib|formulier|verfass|entw[iu]rf|redig|redact|escrib|scriv|escrev|schrijf|napis|yaz|напиш|напис|склад|состав|skriv|kirjoit|tulis|viet|buat)[^.?!\n]{0,60}"
    r"(?:refusal|rejection|declin|turn(?:s|ing)? (?:\w+ )?down|absage|ablehn|\brefus|rechaz|\bniega|rifiut|recus|afwijz|odmow|odmit|отказ|відмов|avslag|\bnej\b|penolak|tu choi|\bret )"
    r"|断り|断る|拒绝|拒絕|婉拒|辞退|거절|사양하는|رفض|اعتذار|סירוב|לסרב|अस्वीकृति"
)
_DECLINING_STEMS = (
    "refus", "rejection", "declin", "turn", "absage", "ablehn", "rechaz", "niega", "rifiut", "recus", "afwijz", "odmow", "odmit", "avslag", "nej",
    "penolak", "tu choi", "ret ",
)  # fmt: skip
_OTHER_WORDS = re.compile(  # translate, rephrase, how do you say
    r"translat|ubersetz|tradu[cizs]|vertaal|przetlum|cevir|перев[её]д|переклад|ترجم|תרגם|אנוועד|अनुवाद|訳して|訳す|翻訳|翻译|翻譯|번역|\bdich\b|terjemah|oversatt|(?:how do you|how to) say|rewrite|rephrase|paraphras|umformul|reformul"
)
_OTHER_WORDS_STEMS = (
    "translat", "ubersetz", "tradu", "vertaal", "przetlum", "cevir", "dich", "terjemah", "oversatt", " say", "rewrite", "rephrase", "paraphras",
    "umformul", "reformul",
)  # fmt: skip
"""Stems for a fast pre-check. In ASCII text, every match of ``_OTHER_WORDS`` contains one of these stems."""


def asks_for_refusal(question: str) -> bool:
    """Return True if the user requested a text that declines. ``question`` is a result of :func:`plain`, in any language."""
    return (not question.isascii() or has_any(question, _DECLINING_STEMS)) and _DECLINING_TEXT.search(question) is not None


def asks_for_other_words(question: str) -> bool:
    """Return True if the user requested a translation or a rewording. ``question`` is a result of :func:`plain`, in any language."""
    return (not question.isascii() or has_any(question, _OTHER_WORDS_STEMS)) and _OTHER_WORDS.search(question) is not None


# --- sentences of the speaker

_LIST_ITEM = re.compile(r"^[^\S\n]*(?:[-*•–]|[0-9]{1,2}[.)])\s+\S", re.MULTILINE)
_QUOTED = re.compile(
    r"“[^”\n]{2,400}[”“]|„[^“”\n]{2,400}[“”]|«[^»\n]{2,400}»|「[^」\n]{1,400}」|『[^』\n]{1,400}』|\"[^\"\n]{2,400}\"|(?<!\w)'(?=\w)[^'\n]{3,200}'(?!\w)|^>.*$",
    re.MULTILINE,
)
_QUOTE_SIGN = re.compile("[\"'“„«「『]|^>", re.MULTILINE)
_UNDERLINED = re.compile(r"(?<!\w)_+|_+(?!\w)")
_SENTENCE_END = re.compile(r"[\s。！？।؟](?:(?<=[.!?]\s)|(?<=[\n。！？।؟]))[\s。！？।؟]*")
_ENGLISH_IDIOM = re.compile(  # can't wait, couldn't find, no problem
    r"\b(?=[cunfwd])(?:(?:can't|cannot|can not|could not|couldn't|couldn’t) (?:\w+ly )?(?:wait\b|recommend[^.]{0,40}enough|stress|overstate|emphasi[sz]e|help but|thank you enough|agree more|go wrong|complain|be sure|guarantee|promise|say enough|believe)"
    r"|(?:can't|cannot|could not|couldn't|unable to|not able to|failed to) (?:find|reach|load|get through|connect|locate|retrieve|detect|open the|log in)\b|won't (?:keep|bore|take|be long|hurt)|(?:no|not a) (?:problem|worries|need|wonder|doubt|rush|trouble)\b|not only|not just|don't (?:hesitate|worry)|never mind|wouldn't hurt)"
)
"""Pattern for idioms and failed searches, whose negations don't decline the request."""
_OTHER_IDIOM = re.compile(  # kein Problem, pas de souci
    r"\b(?:nicht nur|nicht genug empfehlen|kein problem|keine sorge|kann es kaum erwarten|warmstens|non (?:solo|vedo l'ora)|nessun problema|pas de (?:souci|probleme)|pas seulement|saurais trop|hate de|no (?:hay problema|solo|puedo esperar|puedo decir mas que)|no te preocupes|nao (?:ha problema|se preocupe|so|vejo a hora)|sem problema|geen probleem|niet alleen|nie (?:ma problemu|tylko|moge sie doczekac|moge sie \\w+ nachwalic)|не (?:только|могу нарадоваться|беспокойтесь|могут оторваться|могу дождаться)|не лише|inte bara|inga problem|ingen fara|tidak (?:sabar|masalah|hanya|apa-apa)|khong (?:sao|chi|the cho doi))|迫不及待|没问题|沒問題|不仅|不僅|不客气|待ちきれ|問題ありません|だけでなく|기다릴 수 없|문제없|뿐만 아니라"
)
_EAST_ASIAN_CHARACTER = lazy("[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7a3]")
_LETTERS_PER_CHARACTER = 2.5
"""Number of Latin letters that one Chinese, Japanese, or Korean character represents."""


def _without_quotes(text: str) -> str:
    if "_" in text:
        text = _UNDERLINED.sub("", text)
    return _QUOTED.sub(" … ", text) if _QUOTE_SIGN.search(text) else text


def length(text: str) -> float:
    """Return a text's length in Latin letters. An East Asian character counts as 2.5 letters."""
    return len(text) if text.isascii() else len(text) + (_LETTERS_PER_CHARACTER - 1) * len(_EAST_ASIAN_CHARACTER.findall(text))
