"""Find names of secrets in many languages, and check if values next to them are secrets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import NamedTuple

from ..texts import lazy, word_set, words

PASSWORD, KEY, WEAK = 3, 2, 1
"""Strength of a name, which determines which values are secrets.

After a password's name, an everyday word is a secret only if it's clearly a value, as in ``password=monkey``. After a key's name,
the value must mix letters and digits. After a weak name, the value must look random.
"""

_PASSWORDS = (
    r"pass?(?:word|wd|wort|phrase|code)|passord|kennw(?:or)?t|codewort|contrase(?:ñ|n|ny)a|senha|palavra_passe|mot_de_passe|mdp|wachtwoord|l[öo]senord(?:et)?|has[łl]o"
    r"|hesl[oa]|adgangskode|salasana|jelsz[óo]|lozinka|parol[ăea]|[şs]ifre(?:si|niz)?|(?:kata_)?sandi|парол[ьяіїею]\w{0,2}|κωδικός"
    r"|(?:c[óo]d(?:e|igo|ice)|clave|chave|chiave)_(?:d[ei]_|d_)?(?:acceso|acc[èe]s|acesso|accesso)|(?:zugangs|zugriffs)code"
    r"|(?:ssh|store|key|smtp|ftp|db|database|sql|pg|postgres|mongo|redis|user|usr|root|admin|require|my|mail|ldap|proxy|imap|http|wifi|vnc|sasl|auth|wp|priv|sudo|become|app|svc|service|account"
    r"|login|hub|git|registry|docker|new|old|test|default|basic)_?pass|(?:bind|root)pw|masterauth|(?:^|_)(?:pwd|pswd|psk|pw)"
    r"|secret_?(?:str|bytes)|(?:client|app|application|api|shared|webhook|consumer|jwt|session|signing|hmac|oauth|auth|totp|otp|mfa|2fa|django|flask|nextauth|cookie)_?secret"
)
_KEYS = (
    r"(?:api|app|secret|private|access|auth|encryption|encrypt|signing|sign|master|account|shared_?access|service|webhook|consumer|client|storage|subscription|license|deploy|ssh"
    r"|session|admin|root|jwt|hmac|aes|wi_?fi|wlan|wpa2?)_?keys?(?:_base)?|secret_?(?:access_?key|string|value|text)"
    r"|(?:access|auth|refresh|id|api|bearer|session|secret|security|bot|csrf|xsrf|device|verification|verify|reset|personal_?access|oauth2?|jwt|deploy|push|registration|invite"
    r"|login|user|service|github|gitlab|slack|npm|vault|auth0|hf|discord|telegram)_?tokens?|(?:_|redis_?cli_)auth|authtoken|credential|(?:proxy_)?authorization|(?:set_)?cookie"
    r"|(?:^|_)(?:pass|clave|chave|chiave|cl[ée]|sleutel|klucz|ключ|токен)|(?:api|zugriffs|geheim)_?schlüssel"
)
_WEAK_ONES = r"(?:^|_)(?:tokens?|secrets?|credentials?|passkey|auth|code_verifier|connection_?string)"
_SUFFIX = r"(?:_?(?:[0-9]{1,2}|prod|dev|test|live|staging|old|new|plain|text|value))?"
_STRENGTHS = tuple(
    (strength, lazy(rf"(?:{names}){_SUFFIX}\Z")) for strength, names in ((PASSWORD, _PASSWORDS), (KEY, _KEYS), (WEAK, _WEAK_ONES))
)
_NO_NAME = lazy(
    r"(?:^|_)(?:ask|no|prompt|has|is|show|hide|forgot|reset|toggle|remember|without|allow|need)_pass|(?:page|next|cursor|continuation|sync|offset)_?token"
)
"""Pattern for names of options and page tokens, such as ``show_password`` and ``next_token``. Their values aren't secrets."""


@cache
def _unspaced() -> dict[str, int]:
    """Map names of secrets to strengths, for languages without spaces and languages that attach particles to words."""
    return {
        name: strength
        for section, strength in (("unspaced_passwords", PASSWORD), ("unspaced_keys", KEY))
        for name in words("secrets.txt", section)
    }


_STEM = lazy(lambda: "|".join((*words("secrets.txt", "name_stems"), *_unspaced())))
"""Pattern for stems of names, and for names in scripts without spaces. It's fast, because few letters can start a match."""
_LONGEST = 64
_SPLIT = lazy(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[\s.\-/:'’]+")
_AFTER = lazy(r"[\w$-]{0,64}(?:\.\w{1,64}){0,4}", re.ASCII)
_AFTER_LATIN = lazy(r"[A-Za-z0-9_$\u00c0-\u052f-]{0,64}(?:\.[A-Za-z0-9_\u00c0-\u052f]{1,64}){0,4}")
_WORDS_BEFORE = lazy(r"(?:[^\W\d_]{1,14}[ '’-]){1,3}\Z")
_MARKER = lazy(r"\[SECRET_[0-9]{1,6}\]")
_LAST_WORDS = lazy(r"keys?|tokens?|secret|value|passe|acceso|accès|acc?esso|schlüssel|sleutel")


class Name(NamedTuple):
    start: int
    end: int
    strength: int


def strength_of(name: str) -> int:
    """Return how strongly a name suggests a secret, or 0 for other names."""
    return _strength_of(name[-_LONGEST:])


@lru_cache(maxsize=4096)
def _strength_of(name: str) -> int:
    lowered = name.casefold()
    whole = _unspaced().get(lowered.strip(" :：*_"))
    if whole is not None:
        return whole
    if not may_name(lowered):
        return 0
    plain = _SPLIT.sub("_", name.strip(" :：*$-")).lower().rstrip("_")
    if _NO_NAME.search(plain) is not None:
        return 0
    return next((strength for strength, names in _STRENGTHS if names.search(plain) is not None), 0)


def may_name(lowered: str) -> bool:
    return _STEM.search(lowered) is not None


def names_in(text: str, lowered: str) -> Iterator[Name]:
    """Yield the names of secrets in a text. ``lowered`` is the text in lower case, with the same length."""
    after = _AFTER if text.isascii() else _AFTER_LATIN
    done = 0
    for stem in _STEM.finditer(lowered):
        if stem.start() < done:
            continue
        if (strength := _unspaced().get(stem.group())) is not None:
            yield Name(*stem.span(), strength)
            continue
        rest = after.match(text, stem.end())
        done = stem.end() if rest is None else rest.end()
        start, floor = stem.start(), max(0, stem.start() - _LONGEST)
        while start > floor and (text[start - 1] in "_$.-" or (text[start - 1].isalnum() and text[start - 1] < "\u0530")):
            start -= 1
        name = _strongest_name(text, start, done) if _MARKER.match(text, max(0, start - 1)) is None else None
        if name is not None:
            yield name


def _strongest_name(text: str, start: int, end: int) -> Name | None:
    """Return the strongest name that ends with the word at ``start``, including up to three preceding words."""
    word = text[start:end]
    best = Name(start, end, strength_of(word))
    if _LAST_WORDS.fullmatch(word.lower()) is not None:
        before = _WORDS_BEFORE.search(text, max(0, start - 45), start)
        floor = before.start() if before is not None else start
        for begin in range(start - 2, floor - 1, -1):
            if begin == floor or not text[begin - 1].isalpha():
                best = max(best, Name(begin, end, strength_of(text[begin:end])), key=lambda name: name.strength)
    return best if best.strength else None


# --- values in a secret's position: secrets, placeholders, code and ordinary words

_ORDINARY = lazy(
    r"(?:obligat|obbligat|requerid|requis|requir|richiest|erforderlich|pflicht|incorrect|incorret|errat|errad|falsch|ung[üu]ltig|inv[aá]lid|expir|caducad|scadut|abgelaufen|vergessen"
    r"|olvidad|oubli|dimenticat|esquecid|caché|oculta|versteckt|chiffr|cifrad|cifrat|verschl|siehe|voir|vedi|ver\b|see\b|optional|opcional|facultati|opzional|leer\b|vac[ií]|vide\b"
    r"|vuot|vazi|genera[td]|unchanged|forbidden|hunter-|wymagan|verlopen|vereist|zorunlu|обязател|неверн)\w*",
    re.IGNORECASE,
)
"""Pattern for ordinary values after a word such as "password", for example "required"."""
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
"""Pattern for values that nobody chooses as a password, such as versions, paths, and numbers."""
_SIGNS = frozenset("!@#$%^&*+=?~")


def is_nothing(value: str) -> bool:
    """Return True if a value is a placeholder, a reference, or a word such as "required"."""
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
    """Return True if a value is a template or masked: ``${…}``, ``<…>``, ``%s``, ``****``."""
    return _TEMPLATE.match(value) is not None


_DIGIT, _LETTER, _HUMP = lazy(r"\d"), lazy(r"[^\W\d_]"), lazy(r"[A-ZÀ-Þ][a-zß-ÿ]")


def is_mixed(word: str, least: int = 8) -> bool:
    if len(word) < least:
        return False
    if _DIGIT.search(word) is not None and _LETTER.search(word) is not None:
        return True
    return len(_HUMP.findall(word, 1)) >= 2


def is_random(value: str) -> bool:
    if len(value) < 8 or CODE.fullmatch(value) is not None or re.fullmatch(r"[0-9.,:T Z+-]+", value):
        return False
    digits = len(_DIGIT.findall(value))
    return digits >= 2 and len(_LETTER.findall(value)) >= 3 and (len(value) >= 16 or digits >= 3)


def is_chosen(value: str, least: int = 6) -> bool:
    """Return True if a person might have chosen a value as a password. It must mix letters with digits or signs."""
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
