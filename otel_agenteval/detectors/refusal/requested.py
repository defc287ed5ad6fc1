"""Recognize texts that the user requested: drafts, refusals on behalf of others, translations and rewordings."""

from __future__ import annotations

import re

DRAFT = re.compile(
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
    """Return True if the user requested a text that declines.

    ``question`` is folded and can be in any language.
    """
    return _may_have(question, _TURNED_DOWN) and _DECLINING_TEXT.search(question) is not None


def asks_for_other_words(question: str) -> bool:
    """Return True if the user requested a translation or a rewording.

    ``question`` is folded and can be in any language.
    """
    return _may_have(question, _OTHERWISE) and _OTHER_WORDS.search(question) is not None


def _may_have(text: str, pieces: tuple[str, ...]) -> bool:
    if not text.isascii():
        return True
    for piece in pieces:  # a generator would be slower than the search
        if piece in text:
            return True
    return False
