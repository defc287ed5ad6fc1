"""Tests whether a value in a secret's position is a secret, and not a placeholder, code or an ordinary word."""

from __future__ import annotations

import re

from ..lists import word_set
from ..texts import lazy

_ORDINARY = lazy(
    r"(?:obligat|obbligat|requerid|requis|requir|richiest|erforderlich|pflicht|incorrect|incorret|errat|errad|falsch|ung[üu]ltig|inv[aá]lid|expir|caducad|scadut|abgelaufen|vergessen"
    r"|olvidad|oubli|dimenticat|esquecid|caché|oculta|versteckt|chiffr|cifrad|cifrat|verschl|siehe|voir|vedi|ver\b|see\b|optional|opcional|facultati|opzional|leer\b|vac[ií]|vide\b"
    r"|vuot|vazi|genera[td]|unchanged|forbidden|hunter-|wymagan|verlopen|vereist|zorunlu|обязател|неверн)\w*",
    re.IGNORECASE,
)
"""Words that forms, messages and tables use about passwords, in the languages of :mod:`.words`."""
PLACEHOLDER = lazy(
    r"placeholder|redacted|change-?_?me|[_-]here\b|x{5,}|\*{3,}|\.{4,}|your[_-]?|<|0{8,}|\[[A-Z]+[_-][0-9a-f]+\]", re.IGNORECASE
)
_TEMPLATE = lazy(
    r"[{<\[]|https?://|\$[{(]|\$[A-Za-z_]\w*\Z|%[A-Za-z_]\w*%?\Z|%\(|\*{3,}|\u2022{2,}|x{4,}\Z|\.{3,}|@[\w.]+@\Z|\$[0-9]{1,2}\Z|\?\Z|\(\(|:'|!(?:Ref|Sub|vault|GetAtt)\b|(?:env|file|fd):",
    re.IGNORECASE,
)
_FILLED_IN = lazy(r"\$?\{[\w.:]*\}|\u2026")
PLAIN = lazy(r"[A-Z]?[a-zà-ÿ]+[.!?:]?|[A-Z]+[.!?:]?")
CODE = lazy(
    r"[A-Za-z_$][\w$]*(?:(?:\.|->|::)[A-Za-z_$][\w$]*)+[.;]?|\$[A-Z_][A-Z0-9_]*|%[sdr]|%\([a-z_]+\)s|@[a-z_.]+|:[a-z_]+|![A-Za-z]+"
)
PATH = lazy(r"[a-z_-]+(?:/[\w.-]+)+|(?:~|\.{1,2})?(?:/[\w.-]+){2,}")
_UNCHOSEN = lazy(
    r".*(?:[(){}\[\]<>\\|\"'`]|://).*|[A-Za-z_.-]+=.*|v?[0-9]+(?:[.-][0-9]+)+[\w.-]*|[\w.]+\([^)]*\)?;?|https?:\S+|(?:~|\.{0,2})/\S+|[A-Z]:\\\S+|\w+(?:/[\w.#-]+)+|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|[a-z]+(?:_[a-z0-9]+)+"
    r"|(?:[a-z0-9-]+\.)+[a-z]{2,6}|[\w.+-]+@[\w-]+\.[\w.]+|[0-9]{1,6}[-–]?[a-z]{1,3}|[0-9]{1,4}[-–][A-Za-z]+(?:-[a-z]+)*\+?|[A-Z]{1,4}[-/#]?[0-9]+|[A-Z]+[0-9]{1,2}[A-Z]*|[0-9]+(?:\.[0-9]+)?[%€$£].*"
    r"|(?:sha|md|utf|base|aes|rsa|oauth|argon|bcrypt|tls|pbkdf|http|scram|hs|rs|x)[-_]?[0-9]+[\w.-]*|[a-z]+-[0-9]{1,2}|(?:user|step|page|item|line|part|level|db|key|host|node)-?[0-9]+"
    r"|[0-9]{1,2}/[0-9]{1,2}|[\w./-]+:[0-9][\w.+~-]*|\w{1,3}&\w{1,3}|[A-Za-z]+\?|\+?[0-9][0-9\s().-]*"
)
"""Versions, calls, addresses, paths, variable names, units and counts."""
_SIGNS = frozenset("!@#$%^&*+=?~")


def is_nothing(value: str) -> bool:
    """Return True if a value is a placeholder, a reference, or a word that isn't a secret."""
    plain = value.strip(" .!?:*_-\"'`").casefold()
    return (
        len(plain) < 2
        or plain in word_set("secrets.txt", "no_values")
        or len(set(plain)) == 1
        or is_template(value)
        or PLACEHOLDER.search(value) is not None
        or _ORDINARY.fullmatch(plain) is not None
        or _FILLED_IN.search(value) is not None
    )


def is_template(value: str) -> bool:
    """Return True if a value is filled in elsewhere: ``${…}``, ``<…>``, ``%s``, ``****``."""
    return _TEMPLATE.match(value) is not None


_DIGIT, _LETTER, _HUMP = lazy(r"\d"), lazy(r"[^\W\d_]"), lazy(r"[A-ZÀ-Þ][a-zß-ÿ]")


def is_mixed(word: str, least: int = 8) -> bool:
    """Return True if a word looks generated. It mixes letters and digits, or has capitals inside, unlike natural words."""
    if len(word) < least:
        return False
    if _DIGIT.search(word) is not None and _LETTER.search(word) is not None:
        return True
    return len(_HUMP.findall(word, 1)) >= 2


def is_random(value: str) -> bool:
    """Return True if a value looks random: long, with letters and digits. Dates, versions and code identifiers don't count."""
    if len(value) < 8 or CODE.fullmatch(value) is not None or re.fullmatch(r"[0-9.,:T Z+-]+", value):
        return False
    digits = len(_DIGIT.findall(value))
    return digits >= 2 and len(_LETTER.findall(value)) >= 3 and (len(value) >= 16 or digits >= 3)


def is_chosen(value: str, least: int = 6) -> bool:
    """Return True if a person may have chosen the value as a password. It has letters, and also digits or signs."""
    value = value.rstrip(".!?:")
    if (
        not least <= len(value) <= 64
        or " " in value
        or max(value) >= "\u2e80"
        or is_nothing(value)
        or _UNCHOSEN.fullmatch(value) is not None
    ):
        return False
    return sum(sign.isalpha() for sign in value) >= 2 and any(sign.isdigit() or sign in _SIGNS for sign in value)
