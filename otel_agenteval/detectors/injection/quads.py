"""Rule out texts without any instruction in one pass, for any number of words.

The pass looks up every four letters of the text.
"""

from __future__ import annotations

import unicodedata

from ..screen import Finder

# --- words ---------------------------------------------------------------------------------------------------------

_PIECES = (
    b"ignor", b"disregard", b"forget", b"instru", b"prompt", b"theuser", b"ssist", b"agent", b"model", b"youarenow",
    b"inst]", b"<|im", b"<|us", b"<|as", b"<|sy", b"<|en", b"<|eo", b"<|be", b"<|st", b"bot,", b"llm", b"<system", b"<<sys", b"#system", b"nolongerapply", b"yournew", b"claude", b"copilot", b"conversation", b"tool",
    b"struzion", b"anweisung", b"regeln", b"nutzer", b"consigne", b"utilisat", b"outil", b"usuari", b"utente", b"gebruiker",
    b"sisten", b"pengguna", b"ligen", b"beforeyourepl", b"fromnow", b"utomat", b"chatbot", b"modeenabled", b"doanythingnow", b"yourans", b"yourrep", b"yourresp", b"yoursum", b"summarise", b"summarize", b"newtask", b"realtask", b"realjob", b"theprogram", b"yournew", b"questionabove", b"allyourmes", b"whichever", b"reviewerb", b"reviewbot", b"casoomiso", b"crawler", b"computerlisten", b"computerread", b"robo",
    b"machin", b"software", b"neural", b"gpt,", b"youruser", b"yourowner", b"whoever", b"guideline", b"grader", b"evaluator", b"classif",
    b"spamfilter", b"algori", b"maschin", b"longterm", b"permanentl", b"verbatim", b"unrestrict", b"restriction", b"nolimits", b"sinlim", b"semlimit",
    b"senzalim", b"personag", b"personaje", b"supersed", b"role,sys", b"systemno", b"frompointon", b"youarenolonger", b"youreno",
    b"pretendtob", b"obeythe", b"replyonly", b"respondonly", b"replywith", b"answerwith", b"respondwith", b"outputonly", b"markas", b"treatthis",
    b"treatas", b"withoutaski", b"withouttell", b"donottellthe", b"donttellthe", b"tellyour", b"dontmention", b"donotmention", b"doesntneedtoknow",
    b"nomatterwhat", b"youwereto", b"yourinst", b"yourguide", b"yourrules", b"yourtrue", b"yourname", b"yourtransl", b"yournext", b"yourlast",
    b"tomemory", b"appendthe", b"forwardall", b"programm", b"programa", b"logiciel", b"moteur", b"lettori", b"leitores", b"lectores",
    b"niemand", b"sagdem", b"merkedir", b"antworte", b"desormais", b"reponds", b"retiens", b"reenvia", b"recuerda", b"desdeahora",
    b"apartirdeahora", b"rispondi", b"inoltra", b"dorain", b"nondirlo", b"responda", b"encaminhe", b"agoravoce",
    b"naoconte", b"antwoord", b"onthoud", b"vanafnu", b"digitalhelper", b"digitalreader", b"readingthis", b"readthis", b"thatreads",
    b"whichreads", b"whoreads", b"listening", b"humain", b"umano", b"overridey", b"overrideal",
    b"vafgehp", b"vtaber",
)  # fmt: skip
"""Substrings of which every ASCII instruction contains at least one. The last two are in rot13."""
_MARKED_PIECES = (
    b"sistan", b"trolyai", b"mohinhngonngu", b"nguoidung", b"chidan", b"huongdan", b"anvandar", b"kullanici", b"kullanc", b"uzytkown", b"uytkown",
    b"herramient", b"ferrament", b"asystent", b"polecen", b"talimat", b"tekoaly", b"kielimall", b"ohjee", b"jazykov", b"pokyny",
    b"zapamietaj", b"przeslij", b"nikomu", b"odteraz", b"programie", b"algoryt", b"preposl", b"zapamatuj", b"odted", b"vidarebef", b"komihag",
    b"franochmed", b"vastaa", b"valita", b"alakerro", b"videresend", b"sigdetik", b"glemd",
    b"raspund", b"trimite", b"tineminte", b"nimanui", b"valaszol", b"tovabbit", b"jegyezd", b"hagydfigy", b"utasit", b"neszolj", b"kimseye",
    b"bundanboyle", b"bundansonra", b"sistemme", b"yapayzek", b"gonder", b"khongnoi", b"tugio", b"tubaygio", b"haynho", b"traloi", b"chuyentiep",
    b"hethong", b"jawab", b"teruskan", b"ingatlah", b"mulaisekarang", b"beritahu", b"abaikan", b"agenai",
    b"troly", b"tactu",
)  # fmt: skip
"""More substrings, for languages whose sentences are rarely pure ASCII."""


# --- letters as numbers --------------------------------------------------------------------------------------------

_LETTERS = "abcdefghijklmnopqrstuvwxyz<|#,"
"""Characters that are kept. A character's number is its position, counted from 1. Brackets become ``|``, and a colon becomes a comma."""
_ALIKE = {"[": "|", "]": "|", ":": ",", **dict(zip("013457@$!", "oieastasi", strict=True))}


def _number(sign: str) -> int:
    sign = sign.lower()
    return _LETTERS.find(_ALIKE.get(sign, sign)) + 1


def _number_in_latin(code: int) -> int:
    first = unicodedata.normalize("NFD", chr(code))[0]
    return _number("s" if first == "ß" else first if first.isascii() else "x")


_NUMBERS = bytes(_number(chr(code)) if code < 0xC0 else _number_in_latin(code) for code in range(256))
_DROPPED = bytes(code for code in range(0xC0) if not _NUMBERS[code])
_GAPS = b" \n\t\r"
_KEEPING_GAPS = bytes(code for code in _DROPPED if code not in _GAPS)
_EVERYWHERE, _IN_MARKED = 1, 2
_END = bytes(4)
_OF_ONE_WORD = (
    b"ignor", b"forget", b"prompt", b"ssist", b"agent", b"model", b"tool", b"llm", b"regeln", b"outil", b"ligen", b"machin",
    b"bot,", b"gpt,", b"neural", b"umano",
)  # fmt: skip
"""Short substrings that two adjacent words often form by chance, as in "to old"."""
_IN_A_WORD = {piece: 4 << place for place, piece in enumerate(_OF_ONE_WORD)}
_FINDER = Finder((
    *((piece.translate(_NUMBERS), _IN_A_WORD.get(piece, _EVERYWHERE)) for piece in _PIECES),
    *((piece.translate(_NUMBERS), _IN_MARKED) for piece in _MARKED_PIECES),
))  # fmt: skip
_WORDS = tuple((bit, piece.translate(_NUMBERS)) for piece, bit in _IN_A_WORD.items())
_SHAPE = bytes(32 if code in b" \t\n\r\x0b\x0c" else 120 for code in range(256))
_APART = b" x x x x "


def has_piece(text: str) -> bool:
    """Return True if a text may contain an instruction.

    Letters may be separated by spaces and signs, carry diacritics or be replaced by digits.
    """
    in_ascii = text.isascii()
    try:
        data = text.encode("latin-1")
    except UnicodeEncodeError:
        data = unicodedata.normalize("NFKD", text).encode("ascii", "ignore")
    numbers = data.translate(_NUMBERS, _DROPPED) + _END
    found = _FINDER.found_in(numbers)
    if found & (_EVERYWHERE if in_ascii else _EVERYWHERE | _IN_MARKED):
        return True
    if found <= _EVERYWHERE | _IN_MARKED:
        return False
    words = data.translate(_NUMBERS, _KEEPING_GAPS)
    for bit, piece in _WORDS:
        if found & bit and piece in words:
            return True
    shape = data.translate(_SHAPE)
    if b"  " in shape:
        shape = b" ".join(shape.split())
    return _APART in b" %b " % shape
