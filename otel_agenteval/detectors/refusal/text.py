"""Split an answer into sentences, without quotations and other words not by the speaker."""

from __future__ import annotations

import re

from ..texts import lazy

ITEM = re.compile(r"^[^\S\n]*(?:[-*•–]|[0-9]{1,2}[.)])\s+\S", re.MULTILINE)
_QUOTED = re.compile(
    r"“[^”\n]{2,400}[”“]|„[^“”\n]{2,400}[“”]|«[^»\n]{2,400}»|「[^」\n]{1,400}」|『[^』\n]{1,400}』|\"[^\"\n]{2,400}\"|(?<!\w)'(?=\w)[^'\n]{3,200}'(?!\w)|^>.*$",
    re.MULTILINE,
)
_QUOTE_SIGN = re.compile("[\"'“„«「『]|^>", re.MULTILINE)
_UNDERLINED = re.compile(r"(?<!\w)_+|_+(?!\w)")
SENTENCE_END = re.compile(r"[\s。！？।؟](?:(?<=[.!?]\s)|(?<=[\n。！？।؟]))[\s。！？।؟]*")
ENGLISH_IDIOM = re.compile(
    r"\b(?=[cunfwd])(?:(?:can't|cannot|can not|could not|couldn't|couldn’t) (?:\w+ly )?(?:wait\b|recommend[^.]{0,40}enough|stress|overstate|emphasi[sz]e|help but|thank you enough|agree more|go wrong|complain|be sure|guarantee|promise|say enough|believe)"
    r"|(?:can't|cannot|could not|couldn't|unable to|not able to|failed to) (?:find|reach|load|get through|connect|locate|retrieve|detect|open the|log in)\b|won't (?:keep|bore|take|be long|hurt)|(?:no|not a) (?:problem|worries|need|wonder|doubt|rush|trouble)\b|not only|not just|don't (?:hesitate|worry)|never mind|wouldn't hurt)"
)
"""Negations that don't decline the request: idioms and failed searches."""
OTHER_IDIOM = re.compile(
    r"\b(?:nicht nur|nicht genug empfehlen|kein problem|keine sorge|kann es kaum erwarten|warmstens|non (?:solo|vedo l'ora)|nessun problema|pas de (?:souci|probleme)|pas seulement|saurais trop|hate de|no (?:hay problema|solo|puedo esperar|puedo decir mas que)|no te preocupes|nao (?:ha problema|se preocupe|so|vejo a hora)|sem problema|geen probleem|niet alleen|nie (?:ma problemu|tylko|moge sie doczekac|moge sie \\w+ nachwalic)|не (?:только|могу нарадоваться|беспокойтесь|могут оторваться|могу дождаться)|не лише|inte bara|inga problem|ingen fara|tidak (?:sabar|masalah|hanya|apa-apa)|khong (?:sao|chi|the cho doi))|迫不及待|没问题|沒問題|不仅|不僅|不客气|待ちきれ|問題ありません|だけでなく|기다릴 수 없|문제없|뿐만 아니라"
)
_DENSE = lazy("[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7a3]")
_DENSITY = 2.5
"""Latin letters per character of Chinese, Japanese or Korean."""


def without_emphasis(text: str) -> str:
    return text.replace("*", "").replace("~", "")


def without_quotes(text: str) -> str:
    """Remove quotations and underlining."""
    if "_" in text:
        text = _UNDERLINED.sub("", text)
    return _QUOTED.sub(" … ", text) if _QUOTE_SIGN.search(text) else text


def sentences_of(text: str) -> list[str]:
    return [piece.strip() for piece in SENTENCE_END.split(text) if piece and piece.strip(" …#.>-")]


def length(text: str) -> float:
    """Return the length in characters, converted to Latin script."""
    return len(text) if text.isascii() else len(text) + (_DENSITY - 1) * len(_DENSE.findall(text))
